/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread of a card. See rdma-hca-thread.h.
 */
#include "qemu/osdep.h"
#include "../abi/rdma_hca_regs.h"
#include "hw/core/cpu.h"
#include "hw/pci/msix.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/bitmap.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "rdma-hca-thread.h"
#include "trace.h"

/* Doorbells that come together: those within this time of the last one. */
#define BURST_NS 10000
/* Of these so many are done by who rings them: a message, with what arms a CQ. */
#define BURST_HERE 4
/* That the other end of the cable has to hear that this one moves, and to answer. */
#define DEPART_MS 100

/* ---- calling the core ---- */

/* What dma_map() returns stays valid from enter to leave. */
static void core_enter(RdmaHcaThread *thread)
{
    qemu_rec_mutex_lock(&thread->lock);
    g_assert(!thread->map);
    rcu_read_lock();
    thread->map = rdma_hca_ram_map(&thread->ram);
    if (thread->iommu) {
        rdma_hca_iommu_begin(thread->iommu);
    }
}

static void core_leave(RdmaHcaThread *thread)
{
    if (thread->reset_wanted) {
        thread->reset_wanted = false;
        hca_reset(thread->hca);
        qemu_bh_schedule(thread->run_bh);
    }
    thread->map = NULL;
    rcu_read_unlock();
    qemu_rec_mutex_unlock(&thread->lock);
}

/*
 * Whether a core function has led to who asks, with the BQL. Behind a vIOMMU it
 * may: an IOMMU tells of a fault by a write, which goes to where the guest wants.
 */
static bool is_inside(const RdmaHcaThread *thread)
{
    return thread->iommu && thread->map;
}

/* Take the lock if it is free: one's own is not, in a core function's middle. */
static bool try_lock(RdmaHcaThread *thread)
{
    if (qemu_rec_mutex_trylock(&thread->lock)) {
        return false;
    }
    if (!thread->map) {
        return true;
    }
    qemu_rec_mutex_unlock(&thread->lock);
    return false;
}

/* ---- the card's turns ---- */

/* A turn's doorbells. True if there are more. */
static bool drain_doorbells(RdmaHcaThread *thread)
{
    RdmaHcaDoorbells *ring = thread->ring;
    uint32_t consumed = ring->consumed;
    uint32_t produced = qatomic_load_acquire(&ring->produced);
    uint32_t count = MIN(produced - consumed, RDMA_HCA_DOORBELL_BUDGET);

    if (!count) {
        return false;
    }
    trace_rdma_hca_doorbells(thread->name, count, produced - consumed - count);
    for (uint32_t end = consumed + count; consumed != end; consumed++) {
        const RdmaHcaDoorbell *db =
            &ring->slot[consumed % RDMA_HCA_DOORBELL_RING];

        hca_doorbell(thread->hca, db->bar, db->offset, db->value, db->size);
    }
    rdma_hca_doorbells_consume(ring, consumed);
    return consumed != produced;
}

/*
 * A command, or a reset, comes after what was rung before it. It has to be
 * seen before one looks for doorbells, or some that came between would not
 * be.
 */
static bool run_turn(RdmaHcaThread *thread)
{
    bool wanted = hca_command_wanted(thread->hca);
    bool more;

    if (hca_reset_wanted(thread->hca)) {
        rdma_hca_doorbells_discard_before_command(thread->ring);
    }
    more = drain_doorbells(thread);
    if (wanted && !rdma_hca_doorbells_hold_command(thread->ring)) {
        hca_run_command(thread->hca);
    }
    return hca_run_data(thread->hca) || more;
}

/* A cable whose end is away looks for another stream more often. */
static void watch_moves(RdmaHcaThread *thread)
{
    bool waits = hca_link_waits(thread->hca);

    if (waits != thread->waits) {
        thread->waits = waits;
        trace_rdma_hca_cable_away(thread->name, waits);
        rdma_hca_cable_hurry(thread->cable, waits);
    }
}

/* One turn of the card; another one follows as long as there is work. */
static void run_card(RdmaHcaThread *thread)
{
    bool more;

    if (!thread->running) {
        return;
    }
    core_enter(thread);
    more = run_turn(thread);
    if (hca_link_failed(thread->hca)) {
        rdma_hca_cable_drop(thread->cable);
    } else if (!thread->settled && hca_link_settled(thread->hca)) {
        thread->settled = true;
        rdma_hca_cable_settle(thread->cable);
    }
    watch_moves(thread);
    core_leave(thread);
    if (more) {
        qemu_bh_schedule(thread->run_bh);
    }
}

static void run_bh(void *opaque)
{
    run_card(opaque);
}

static void timer_cb(void *opaque)
{
    run_card(opaque);
}

/* What the cable tells. */

static void cable_up(void *opaque)
{
    RdmaHcaThread *thread = opaque;

    qatomic_set(&thread->link_up, true);
    thread->settled = false;
    core_enter(thread);
    hca_link_up(thread->hca);
    core_leave(thread);
    run_card(thread);
}

static void cable_down(void *opaque)
{
    RdmaHcaThread *thread = opaque;

    qatomic_set(&thread->link_up, false);
    core_enter(thread);
    hca_link_down(thread->hca);
    core_leave(thread);
    run_card(thread);
}

static void cable_readable(void *opaque)
{
    run_card(opaque);
}

static void cable_writable(void *opaque)
{
    RdmaHcaThread *thread = opaque;

    core_enter(thread);
    hca_link_writable(thread->hca);
    core_leave(thread);
    run_card(thread);
}

static const RdmaHcaCableEvents cable_events = {
    .up = cable_up,
    .down = cable_down,
    .readable = cable_readable,
    .writable = cable_writable,
};

/* ---- with the BQL: doing things in the card's thread, and waiting ---- */

typedef void SyncFn(RdmaHcaThread *thread, void *opaque);

typedef struct SyncCall {
    SyncFn *func;
    RdmaHcaThread *thread;
    void *opaque;
    bool done; /* with sync_lock */
} SyncCall;

static void sync_call_bh(void *opaque)
{
    SyncCall *call = opaque;
    RdmaHcaThread *thread = call->thread;

    call->func(thread, call->opaque);
    QEMU_LOCK_GUARD(&thread->sync_lock);
    call->done = true;
    qemu_cond_broadcast(&thread->sync_done);
}

/*
 * Not aio_wait_bh_oneshot(): that would run bottom halves of the main loop
 * inside of whatever a vCPU or the main loop is doing. The card's thread needs
 * nothing from us, so a plain wait ends. Where the main loop is in its place it
 * does nothing while we hold the BQL, and we are as good.
 */
static void sync_call(RdmaHcaThread *thread, SyncFn *func, void *opaque)
{
    SyncCall call = { .func = func, .thread = thread, .opaque = opaque };

    if (thread->iommu) {
        func(thread, opaque);
        return;
    }
    aio_bh_schedule_oneshot(thread->ctx, sync_call_bh, &call);
    QEMU_LOCK_GUARD(&thread->sync_lock);
    while (!call.done) {
        qemu_cond_wait(&thread->sync_done, &thread->sync_lock);
    }
}

/*
 * A state has been loaded. Its cable, if it has none that would know of that, is
 * there already.
 */
static void arrive(RdmaHcaThread *thread)
{
    thread->loaded = false;
    core_enter(thread);
    hca_arrive(thread->hca);
    if (qatomic_read(&thread->link_up)) {
        hca_link_up(thread->hca);
    }
    watch_moves(thread);
    core_leave(thread);
}

static void do_start(RdmaHcaThread *thread, void *opaque)
{
    thread->running = true;
    rdma_hca_doorbells_set_open(thread->ring, true);
    rdma_hca_cable_start(thread->cable);
    if (thread->loaded) {
        arrive(thread);
    }
    qemu_bh_schedule(thread->run_bh);
}

/*
 * What the guest has rung is the card's, and what the card has written is in
 * memory, which does not change any more: it may be saved.
 */
static void settle(RdmaHcaThread *thread)
{
    core_enter(thread);
    while (drain_doorbells(thread)) {
        continue;
    }
    hca_settle(thread->hca);
    core_leave(thread);
}

static void do_stop(RdmaHcaThread *thread, void *opaque)
{
    thread->running = false;
    rdma_hca_doorbells_set_open(thread->ring, false);
    rdma_hca_cable_stop(thread->cable);
    settle(thread);
}

static void do_reset(RdmaHcaThread *thread, void *opaque)
{
    rdma_hca_doorbells_discard(thread->ring);
    if (is_inside(thread)) {
        thread->reset_wanted = true;
        return;
    }
    core_enter(thread);
    hca_reset(thread->hca);
    core_leave(thread);
    qemu_bh_schedule(thread->run_bh);
}

static void do_unplug(RdmaHcaThread *thread, void *opaque)
{
    thread->running = false;
    rdma_hca_doorbells_set_open(thread->ring, false);
    thread->unplugged = true;
}

static void do_finish(RdmaHcaThread *thread, void *opaque)
{
    rdma_hca_cable_stop(thread->cable);
    rdma_hca_cable_close(thread->cable);
    core_enter(thread);
    hca_free(thread->hca);
    core_leave(thread);
    thread->hca = NULL;
    timer_free(thread->timer);
    qemu_bh_delete(thread->run_bh);
}

static void do_nothing(RdmaHcaThread *thread, void *opaque)
{
}

/* A change of the map is over when nobody uses the former map any more. */
static void ram_changed(void *opaque)
{
    sync_call(opaque, do_nothing, NULL);
}

static void deliver_interrupts(void *opaque)
{
    RdmaHcaThread *thread = opaque;
    unsigned v = 0;

    if (qatomic_xchg(&thread->pin, false) && thread->has_pin) {
        pci_irq_assert(thread->pci);
    }
    while ((v = find_next_bit(thread->vectors, thread->num_vectors, v)) <
           thread->num_vectors) {
        if (bitmap_test_and_clear_atomic(thread->vectors, v, 1)) {
            msix_notify(thread->pci, v);
        }
        v++;
    }
}

static bool rings_alone(RdmaHcaThread *thread)
{
    int64_t now = get_clock();

    if (now - thread->rung_ns > BURST_NS) {
        thread->burst = 0;
    }
    thread->rung_ns = now;
    if (thread->burst == BURST_HERE) {
        return false;
    }
    thread->burst++;
    return true;
}

/*
 * Do a turn of the card in place of its thread, with its lock: to wake that
 * takes longer than most turns do. What the turn leaves is for the thread. With
 * the BQL, too, so the interrupts can be delivered at once.
 */
static void run_here(RdmaHcaThread *thread)
{
    trace_rdma_hca_turn_here(thread->name);
    thread->here = true;
    run_card(thread);
    thread->here = false;
    qemu_rec_mutex_unlock(&thread->lock);
    deliver_interrupts(thread);
}

/*
 * Not what may take long while all of the machine waits for the BQL: a capture
 * is as slow as its disk, and a reset has each QP to see to.
 */
static bool is_short(RdmaHcaThread *thread)
{
    return thread->capture_fd < 0 && !hca_reset_wanted(thread->hca);
}

static bool run_command_here(RdmaHcaThread *thread)
{
    if (!try_lock(thread)) {
        return false;
    }
    run_here(thread);
    return true;
}

/*
 * Only a card that has nothing else to do: of many doorbells in a row it makes
 * less work together, and while it waits for answers more of them come.
 */
static bool run_doorbell_here(RdmaHcaThread *thread)
{
    if (!rings_alone(thread) || !is_short(thread) || !try_lock(thread)) {
        return false;
    }
    if (hca_expects_peers(thread->hca)) {
        qemu_rec_mutex_unlock(&thread->lock);
        return false;
    }
    run_here(thread);
    return true;
}

/* On the vCPU's own, with nothing of QEMU beneath it. */
static void wait_without_bql(CPUState *cpu, run_on_cpu_data data)
{
    RdmaHcaDoorbells *ring = data.host_ptr;

    bql_unlock();
    rdma_hca_doorbells_wait(ring, RDMA_HCA_DOORBELL_MARK);
    bql_lock();
    rdma_hca_doorbells_unref(ring);
}

/*
 * Here the BQL must be kept: another device's DMA may have led here, and that
 * device must not be entered by a second thread in the middle of what it does.
 * But before a vCPU goes on with its guest it does what is queued for it.
 */
static void hold_back(RdmaHcaThread *thread)
{
    RdmaHcaDoorbells *ring = thread->ring;

    if (current_cpu &&
        rdma_hca_doorbells_level(ring) >= RDMA_HCA_DOORBELL_MARK &&
        ring->produced % RDMA_HCA_DOORBELL_BURST == 0) {
        trace_rdma_hca_doorbells_wait(thread->name, current_cpu->cpu_index);
        async_run_on_cpu(current_cpu, wait_without_bql,
                         RUN_ON_CPU_HOST_PTR(rdma_hca_doorbells_ref(ring)));
    }
}

/* Who holds the BQL need not wait for the main loop. */
static void make_room(RdmaHcaThread *thread)
{
    if (thread->iommu) {
        run_command_here(thread);
    } else {
        rdma_hca_doorbells_wait(thread->ring, RDMA_HCA_DOORBELL_RING);
    }
}

void rdma_hca_thread_doorbell(RdmaHcaThread *thread,
                              const RdmaHcaDoorbell *doorbell)
{
    RdmaHcaDoorbells *ring = thread->ring;

    if (rdma_hca_doorbells_level(ring) == RDMA_HCA_DOORBELL_RING) {
        make_room(thread);
    }
    /*
     * While the VM is stopped only a debugger writes; its writes get lost. So
     * do those that the card's own turn has led to.
     */
    if (rdma_hca_doorbells_level(ring) == RDMA_HCA_DOORBELL_RING) {
        trace_rdma_hca_doorbell_lost(thread->name, doorbell->bar,
                                     doorbell->offset);
        return;
    }
    rdma_hca_doorbells_put(ring, doorbell);
    if (!run_doorbell_here(thread)) {
        qemu_bh_schedule(thread->run_bh);
        hold_back(thread);
    }
}

void rdma_hca_thread_register(RdmaHcaThread *thread, uint32_t offset,
                              uint32_t value)
{
    /* Before the card can see what is written; a command is not written to. */
    if (hca_bar0_is_reset(thread->hca, offset) ||
        !hca_command_wanted(thread->hca)) {
        rdma_hca_doorbells_mark_command(thread->ring);
    }
    if (hca_bar0_write(thread->hca, offset, value) &&
        !(is_short(thread) && run_command_here(thread))) {
        qemu_bh_schedule(thread->run_bh);
    }
}

/* Those that a card asked for which is another one now. */
static void forget_interrupts(RdmaHcaThread *thread)
{
    qemu_bh_cancel(thread->msix_bh);
    bitmap_test_and_clear_atomic(thread->vectors, 0, thread->num_vectors);
    qatomic_set(&thread->pin, false);
}

void rdma_hca_thread_reset(RdmaHcaThread *thread)
{
    sync_call(thread, do_reset, NULL);
    forget_interrupts(thread);
}

typedef struct CountersCall {
    HcaCounterFn *fn;
    void *opaque;
} CountersCall;

static void do_counters(RdmaHcaThread *thread, void *opaque)
{
    CountersCall *call = opaque;

    core_enter(thread);
    hca_counters_visit(thread->hca, call->fn, call->opaque);
    core_leave(thread);
}

void rdma_hca_thread_counters(RdmaHcaThread *thread, HcaCounterFn *fn,
                              void *opaque)
{
    CountersCall call = { .fn = fn, .opaque = opaque };

    sync_call(thread, do_counters, &call);
}

typedef void VisitFn(const Hca *hca, HcaLineFn *fn, void *opaque);

typedef struct LinesCall {
    VisitFn *visit;
    HcaLineFn *fn;
    void *opaque;
} LinesCall;

static void do_lines(RdmaHcaThread *thread, void *opaque)
{
    LinesCall *call = opaque;

    core_enter(thread);
    call->visit(thread->hca, call->fn, call->opaque);
    core_leave(thread);
}

void rdma_hca_thread_recorder(RdmaHcaThread *thread, HcaLineFn *fn,
                              void *opaque)
{
    LinesCall call = { .visit = hca_recorder_visit,
                       .fn = fn,
                       .opaque = opaque };

    sync_call(thread, do_lines, &call);
}

void rdma_hca_thread_queues(RdmaHcaThread *thread, HcaLineFn *fn, void *opaque)
{
    LinesCall call = { .visit = hca_queues_visit, .fn = fn, .opaque = opaque };

    sync_call(thread, do_lines, &call);
}

static void do_pcapng(RdmaHcaThread *thread, void *opaque)
{
    GByteArray **data = opaque;

    core_enter(thread);
    *data = hca_recorder_pcapng(thread->hca);
    core_leave(thread);
}

bool rdma_hca_thread_save_recorder(RdmaHcaThread *thread, const char *path,
                                   Error **errp)
{
    g_autoptr(GByteArray) data = NULL;

    sync_call(thread, do_pcapng, &data);
    if (!data) {
        error_setg(errp, "device has no recorder (property recorder)");
        return false;
    }
    return rdma_hca_write_file(path, data, errp);
}

void rdma_hca_thread_record_to(RdmaHcaThread *thread, const char *path)
{
    thread->recorder_path = path;
}

typedef struct FaultsCall {
    const HcaFaultPlan *plan;
    unsigned kept;
} FaultsCall;

static void do_set_faults(RdmaHcaThread *thread, void *opaque)
{
    const FaultsCall *call = opaque;

    core_enter(thread);
    hca_add_faults(thread->hca, call->plan, call->kept);
    core_leave(thread);
    qemu_bh_schedule(thread->run_bh);
}

void rdma_hca_thread_set_faults(RdmaHcaThread *thread, const HcaFaultPlan *plan)
{
    rdma_hca_thread_add_faults(thread, plan, 0);
}

void rdma_hca_thread_add_faults(RdmaHcaThread *thread, const HcaFaultPlan *plan,
                                unsigned kept)
{
    FaultsCall call = { plan, kept };

    sync_call(thread, do_set_faults, &call);
}

typedef struct StatesCall {
    HcaFaultState *states;
    unsigned n;
} StatesCall;

static void do_fault_states(RdmaHcaThread *thread, void *opaque)
{
    const StatesCall *call = opaque;

    core_enter(thread);
    for (unsigned i = 0; i < call->n; i++) {
        hca_fault_state(thread->hca, i, &call->states[i]);
    }
    core_leave(thread);
}

void rdma_hca_thread_fault_states(RdmaHcaThread *thread, HcaFaultState *states,
                                  unsigned n)
{
    StatesCall call = { states, n };

    sync_call(thread, do_fault_states, &call);
}

static void do_capture(RdmaHcaThread *thread, void *opaque)
{
    const uint64_t *max_bytes = opaque;

    core_enter(thread);
    hca_limit_capture(thread->hca, *max_bytes);
    hca_start_capture(thread->hca);
    core_leave(thread);
}

bool rdma_hca_thread_capture(RdmaHcaThread *thread, const char *path,
                             uint64_t max_bytes, Error **errp)
{
    thread->capture_fd = qemu_create(path, O_WRONLY | O_TRUNC | O_BINARY, 0644,
                                     errp);
    if (thread->capture_fd < 0) {
        return false;
    }
    sync_call(thread, do_capture, &max_bytes);
    return true;
}

void rdma_hca_thread_set_running(RdmaHcaThread *thread, bool running)
{
    if (running == thread->running) {
        return;
    }
    sync_call(thread, running ? do_start : do_stop, NULL);
    if (!running) {
        qemu_bh_cancel(thread->msix_bh);
        deliver_interrupts(thread);
    }
}

/* The stream of a card that stands still ends. */
static void part(RdmaHcaThread *thread)
{
    if (rdma_hca_cable_can_part(thread->cable)) {
        rdma_hca_cable_part(thread->cable);
        qatomic_set(&thread->link_up, false);
        hca_link_down(thread->hca);
    }
}

/*
 * The machine may go on somewhere else: the other end of the cable is told so, and
 * what is on its way is waited for. The clock that stands is the guest's.
 */
static void depart(RdmaHcaThread *thread)
{
    int64_t end = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + DEPART_MS;
    bool all;

    if (!hca_depart(thread->hca)) {
        return;
    }
    while (!(all = hca_drain(thread->hca)) &&
           qemu_clock_get_ms(QEMU_CLOCK_REALTIME) < end) {
        g_usleep(200);
    }
    trace_rdma_hca_cable_depart(thread->name, all);
    part(thread);
    watch_moves(thread);
}

static void do_save(RdmaHcaThread *thread, void *opaque)
{
    HcaState **state = opaque;

    core_enter(thread);
    depart(thread);
    *state = hca_save(thread->hca);
    core_leave(thread);
}

HcaState *rdma_hca_thread_save(RdmaHcaThread *thread)
{
    HcaState *state;

    sync_call(thread, do_save, &state);
    return state;
}

typedef struct LoadCall {
    const HcaState *state;
    bool ok;
    HcaStateError error;
} LoadCall;

static void do_load(RdmaHcaThread *thread, void *opaque)
{
    LoadCall *call = opaque;

    rdma_hca_doorbells_discard(thread->ring);
    core_enter(thread);
    part(thread);
    call->ok = hca_load(thread->hca, call->state, &call->error);
    core_leave(thread);
    thread->loaded = true;
}

bool rdma_hca_thread_load(RdmaHcaThread *thread, const HcaState *state,
                          Error **errp)
{
    LoadCall call = { .state = state };

    sync_call(thread, do_load, &call);
    forget_interrupts(thread);
    if (!call.ok) {
        error_setg(errp, "the state of the card is refused: %s",
                   call.error.text);
    }
    return call.ok;
}

/*
 * Its own thread sleeps until it is woken. To poll, as IOThreads do by default,
 * pays with a processor that nobody else has work for: who has one gives the
 * card an iothread.
 */
static IOThread *own_iothread_new(Error **errp)
{
    return IOTHREAD(
        object_new_with_props(TYPE_IOTHREAD, object_get_internal_root(),
                              "rdma-hca[*]", errp, "poll-max-ns", "0", NULL));
}

/*
 * Not the context that is polled by who waits for a disk: that may be in the
 * middle of anything.
 */
static bool take_main_loop(RdmaHcaThread *thread, IOThread *iothread,
                           Error **errp)
{
    if (iothread) {
        error_setg(errp,
                   "'iothread' has no use behind a vIOMMU: the card works "
                   "in the main loop");
        return false;
    }
    thread->own_iothread = false;
    thread->iothread = NULL;
    thread->ctx = iohandler_get_aio_context();
    return true;
}

static bool take_iothread(RdmaHcaThread *thread, IOThread *iothread,
                          Error **errp)
{
    thread->own_iothread = !iothread;
    thread->iothread = iothread ? IOTHREAD(object_ref(OBJECT(iothread)))
                                : own_iothread_new(errp);
    if (!thread->iothread) {
        return false;
    }
    thread->ctx = iothread_get_aio_context(thread->iothread);
    return true;
}

static void release_iothread(RdmaHcaThread *thread)
{
    if (thread->own_iothread) {
        iothread_destroy(thread->iothread);
    } else if (thread->iothread) {
        object_unref(OBJECT(thread->iothread));
    }
    thread->iothread = NULL;
    thread->ctx = NULL;
}

static void set_dev_mem(RdmaHcaThread *thread, MemoryRegion *mr)
{
    thread->dev_mem = (RdmaHcaRamSection) { .writable = true };
    if (mr) {
        thread->dev_mem.size = memory_region_size(mr);
        thread->dev_mem.host = memory_region_get_ram_ptr(mr);
        thread->dev_mem.mr = mr;
    }
}

static void follow_memory(RdmaHcaThread *thread, bool translated)
{
    AddressSpace *as = pci_get_address_space(thread->pci);

    thread->iommu = translated ? rdma_hca_iommu_new(as, &thread->ram) : NULL;
    rdma_hca_ram_init(&thread->ram, as, "rdma-hca", translated, ram_changed,
                      thread);
}

bool rdma_hca_thread_start(RdmaHcaThread *thread, PCIDevice *pci,
                           const HcaConfig *config, MemoryRegion *dev_mem,
                           IOThread *iothread, RdmaHcaCable *cable,
                           Error **errp)
{
    bool translated = rdma_hca_iommu_translates(pci);

    if (!(translated ? take_main_loop(thread, iothread, errp)
                     : take_iothread(thread, iothread, errp))) {
        return false;
    }
    qemu_rec_mutex_init(&thread->lock);
    if (!rdma_hca_cable_plug(cable, thread->ctx, &thread->lock, &cable_events,
                             thread, errp)) {
        qemu_rec_mutex_destroy(&thread->lock);
        release_iothread(thread);
        return false;
    }
    thread->pci = pci;
    thread->name = qdev_get_human_name(DEVICE(pci));
    thread->cable = cable;
    thread->running = false;
    thread->unplugged = false;
    thread->capture_fd = -1;
    thread->recorder_path = NULL;
    thread->num_vectors = config->num_vectors;
    thread->vectors = bitmap_new(thread->num_vectors);
    thread->pin = false;
    thread->bar0_base = 0;
    thread->settled = false;
    thread->waits = false;
    thread->loaded = false;
    thread->ring = rdma_hca_doorbells_new();
    thread->here = false;
    thread->rung_ns = 0;
    thread->burst = 0;
    qemu_mutex_init(&thread->sync_lock);
    qemu_cond_init(&thread->sync_done);
    thread->msix_bh = qemu_bh_new_guarded(deliver_interrupts, thread,
                                          &DEVICE(pci)->mem_reentrancy_guard);
    thread->run_bh = aio_bh_new(thread->ctx, run_bh, thread);
    thread->timer = aio_timer_new(thread->ctx, QEMU_CLOCK_VIRTUAL, SCALE_NS,
                                  timer_cb, thread);
    set_dev_mem(thread, dev_mem);
    thread->hca = hca_new(config, &rdma_hca_host_ops, thread);
    thread->has_pin = hca_has_pin(thread->hca);
    follow_memory(thread, translated);
    return true;
}

bool rdma_hca_thread_unplug(RdmaHcaThread *thread)
{
    sync_call(thread, do_unplug, NULL);
    rdma_hca_ram_cleanup(&thread->ram);
    /* An interrupt being delivered may have led here. */
    thread->num_vectors = 0;
    thread->has_pin = false;
    return !is_inside(thread);
}

void rdma_hca_thread_finish(RdmaHcaThread *thread)
{
    sync_call(thread, do_finish, NULL);
    if (thread->capture_fd >= 0) {
        close(thread->capture_fd);
    }
    g_clear_pointer(&thread->iommu, rdma_hca_iommu_free);
    qemu_bh_delete(thread->msix_bh);
    g_free(thread->vectors);
    g_free(thread->name);
    rdma_hca_doorbells_unref(thread->ring);
    qemu_cond_destroy(&thread->sync_done);
    qemu_mutex_destroy(&thread->sync_lock);
    rdma_hca_cable_unplug(thread->cable);
    thread->cable = NULL;
    qatomic_set(&thread->link_up, false);
    release_iothread(thread);
    qemu_rec_mutex_destroy(&thread->lock);
}
