/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-hca: an RDMA host channel adapter, as a PCI Express function.
 *
 * A thin skin: configuration space, BARs, properties and reset. The card
 * itself is in ../core, its thread in rdma-hca-thread.c.
 */
#include "qemu/osdep.h"
#include "../abi/mthca/mthca_regs.h"
#include "../abi/rdma_hca_regs.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie.h"
#include "migration/vmstate.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-rdma-hca.h"
#include "qapi/visitor-impl.h"
#include "qemu/module.h"
#include "qemu/uuid.h"
#include "rdma-hca-compat.h"
#include "rdma-hca-faults.h"
#include "rdma-hca-net.h"
#include "rdma-hca-state.h"
#include "rdma-hca.h"
#include "system/runstate.h"
#include "system/system.h"
#include "trace.h"

/* Network controller, InfiniBand (PCI Code and ID Assignment). */
#define PCI_CLASS_NETWORK_INFINIBAND 0x0207
#ifndef PCI_CLASS_SERIAL_INFINIBAND
#define PCI_CLASS_SERIAL_INFINIBAND 0x0c06
#endif
/*
 * MSI-X messages of the Ethernet function, beside those of event queues: one for
 * each pair of rings.
 */
#define ETH_VECTORS RDMA_HCA_ETH_MAX_QUEUES
#define MAX_VECTORS 2048
#define EXPRESS_CAP_OFFSET 0x80
#define AER_CAP_OFFSET 0x100
/* An EUI-64 under QEMU's OUI, which is of the local kind. */
#define GUID_PREFIX 0x5254000000000000ull
#define GUID_SUFFIX_BITS 40

struct RdmaHcaState {
    PCIDevice parent_obj;

    /* Properties. */
    HcaConfig config;
    uint16_t lid;     /* 0: by the end of the cable */
    uint64_t guid;    /* 0: made up from the place of the card */
    uint32_t max_mtu; /* bytes */
    uint32_t vectors; /* of event queues */
    RdmaHcaCable *cable;
    NICConf nic;
    IOThread *iothread;
    RdmaHcaFaultList *faults;
    uint32_t fault_seed;
    char *capture;
    uint64_t capture_size; /* bytes; 0: no limit */
    char *recorder_file;
    char *pkeys;
    OnOffAuto managed;

    RdmaHcaNet *net; /* the cable of a RoCE card that has no other */
    MemoryRegion bar0;
    MemoryRegion bar2;
    MemoryRegion dev_mem; /* BAR 4, if the card has device memory */
    RdmaHcaThread thread;
    bool alive; /* from realize to exit */
    VMChangeStateEntry *vm_state;
    RdmaHcaSaved saved;
    uint32_t faults_size; /* of the same as JSON, while they are saved */
    uint8_t *faults_json;
};

/* ---- BARs ---- */

static uint64_t bar0_read(void *opaque, hwaddr offset, unsigned size)
{
    RdmaHcaState *s = opaque;
    uint64_t value;

    /* A vCPU may still be on its way here when the card is unplugged. */
    if (!s->alive) {
        return UINT32_MAX;
    }
    value = hca_bar0_read(s->thread.hca, offset);
    trace_rdma_hca_bar0_read(s->thread.name, offset, value, size);
    return value;
}

static void bar0_write(void *opaque, hwaddr offset, uint64_t value,
                       unsigned size)
{
    RdmaHcaState *s = opaque;
    RdmaHcaDoorbell doorbell = {
        .value = value, .offset = offset, .bar = RDMA_HCA_BAR0, .size = size
    };

    if (!s->alive) {
        return;
    }
    trace_rdma_hca_bar0_write(s->thread.name, offset, value, size);
    if (s->thread.has_pin && (hca_bar0_clears_pin(s->thread.hca, offset) ||
                              hca_bar0_is_reset(s->thread.hca, offset))) {
        pci_irq_deassert(PCI_DEVICE(s));
    }
    if (hca_bar0_is_doorbell(s->thread.hca, offset)) {
        rdma_hca_thread_doorbell(&s->thread, &doorbell);
    } else {
        rdma_hca_thread_register(&s->thread, offset, value);
    }
}

static uint64_t bar2_read(void *opaque, hwaddr offset, unsigned size)
{
    RdmaHcaState *s = opaque;

    return s->alive ? hca_bar2_read(s->thread.hca, offset, size) : UINT64_MAX;
}

static void bar2_write(void *opaque, hwaddr offset, uint64_t value,
                       unsigned size)
{
    RdmaHcaState *s = opaque;
    RdmaHcaDoorbell doorbell = {
        .value = value, .offset = offset, .bar = RDMA_HCA_BAR2, .size = size
    };

    if (s->alive) {
        rdma_hca_thread_doorbell(&s->thread, &doorbell);
    }
}

/* Accesses of another size or alignment read 0 and write nothing. */
static const MemoryRegionOps bar0_ops = {
    .read = bar0_read,
    .write = bar0_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

static const MemoryRegionOps bar2_ops = {
    .read = bar2_read,
    .write = bar2_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 8 },
};

/* The machine saves device memory with its RAM, and a reset leaves it alone. */
static bool init_bars(RdmaHcaState *s, Error **errp)
{
    memory_region_init_io(&s->bar0, OBJECT(s), &bar0_ops, s, "rdma-hca-regs",
                          RDMA_HCA_BAR0_SIZE);
    memory_region_init_io(&s->bar2, OBJECT(s), &bar2_ops, s, "rdma-hca-uar",
                          RDMA_HCA_BAR2_SIZE);
    return !s->config.device_memory ||
           memory_region_init_ram(&s->dev_mem, OBJECT(s), "rdma-hca-memory",
                                  s->config.device_memory, errp);
}

static void register_bars(RdmaHcaState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);
    uint8_t type = PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64;

    pci_register_bar(pci, RDMA_HCA_BAR0, type, &s->bar0);
    pci_register_bar(pci, RDMA_HCA_BAR2, type, &s->bar2);
    if (s->config.device_memory) {
        pci_register_bar(pci, RDMA_HCA_BAR4,
                         type | PCI_BASE_ADDRESS_MEM_PREFETCH, &s->dev_mem);
    }
}

/* Its name is free again: another card may come to the same place. */
static void forget_dev_mem(RdmaHcaState *s)
{
    if (s->config.device_memory) {
        vmstate_unregister_ram(&s->dev_mem, DEVICE(s));
    }
}

/* Where a driver finds registers that it is told the bus address of. */
static void follow_bar0(RdmaHcaState *s)
{
    pcibus_t base = PCI_DEVICE(s)->io_regions[RDMA_HCA_BAR0].addr;

    qatomic_set_u64(&s->thread.bar0_base, base == PCI_BAR_UNMAPPED ? 0 : base);
}

static uint32_t config_read(PCIDevice *pci, uint32_t addr, int len)
{
    const RdmaHcaState *s = RDMA_HCA(pci);

    return s->alive && hca_is_away(s->thread.hca)
               ? MAKE_64BIT_MASK(0, 8 * len)
               : pci_default_read_config(pci, addr, len);
}

static void config_write(PCIDevice *pci, uint32_t addr, uint32_t value, int len)
{
    pci_default_write_config(pci, addr, value, len);
    follow_bar0(RDMA_HCA(pci));
    if (pci->exp.exp_cap) {
        pcie_cap_flr_write_config(pci, addr, value, len);
        pcie_aer_write_config(pci, addr, value, len);
    }
}

/* ---- properties ---- */

static uint64_t fnv1a(uint64_t hash, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len--) {
        hash = (hash ^ *p++) * 0x100000001b3ull;
    }
    return hash;
}

/*
 * The same each time that the same machine is started, and another one for
 * another card of the machine or the card at the other end of the cable.
 */
static uint64_t default_guid(RdmaHcaState *s)
{
    g_autofree char *path = qdev_get_dev_path(DEVICE(s));
    g_autofree char *address = rdma_hca_cable_address(s->cable);
    uint64_t hash = 0xcbf29ce484222325ull;

    hash = fnv1a(hash, path, strlen(path));
    hash = fnv1a(hash, &s->config.lid, sizeof(s->config.lid));
    if (address) {
        hash = fnv1a(hash, address, strlen(address));
    }
    if (qemu_uuid_set) {
        hash = fnv1a(hash, &qemu_uuid, sizeof(qemu_uuid));
    }
    return GUID_PREFIX | (hash & MAKE_64BIT_MASK(0, GUID_SUFFIX_BITS));
}

/* The interface's MAC as a modified EUI-64 (RFC 4291, appendix A). */
static uint64_t guid_of_mac(const uint8_t *mac)
{
    uint8_t eui[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff,
                       0xfe,       mac[3], mac[4], mac[5] };

    return ldq_be_p(eui);
}

/* Two cards on a cable, with nobody to give them LIDs, get 1 and 2. */
static uint16_t default_lid(RdmaHcaState *s)
{
    return rdma_hca_cable_is_server(s->cable) ? 1 : 2;
}

/* What is of the other link layer. */
static bool check_roce(RdmaHcaState *s, Error **errp)
{
    if (s->cable && s->nic.peers.ncs[0]) {
        error_setg(errp, "a card has a 'cable' or a 'netdev', not both");
        return false;
    }
    if (s->lid) {
        error_setg(errp, "'lid' is of InfiniBand cards: with link-layer=roce "
                         "there are no LIDs");
        return false;
    }
    if (s->managed != ON_OFF_AUTO_AUTO) {
        error_setg(errp, "'managed' is of InfiniBand cards: with "
                         "link-layer=roce there is no subnet manager");
        return false;
    }
    if (s->nic.peers.queues > 1) {
        error_setg(errp, "'netdev' must be one with a single queue");
        return false;
    }
    if (s->nic.macaddr.a[0] & 1) {
        error_setg(errp, "'mac' must be a unicast address");
        return false;
    }
    return true;
}

static bool check_ib(RdmaHcaState *s, Error **errp)
{
    static const MACAddr none;

    if (rdma_hca_cable_protocol(s->cable) != HCA_CABLE_CARD) {
        error_setg(errp, "a cable with protocol=netdev needs link-layer=roce");
        return false;
    }
    if (s->nic.peers.ncs[0]) {
        error_setg(errp, "'netdev' needs link-layer=roce: an InfiniBand card "
                         "has a 'cable'");
        return false;
    }
    if (memcmp(&s->nic.macaddr, &none, sizeof(none))) {
        error_setg(errp, "'mac' needs link-layer=roce");
        return false;
    }
    return true;
}

static void set_ib_addresses(RdmaHcaState *s)
{
    static const HcaManaged managed[] = {
        [ON_OFF_AUTO_AUTO] = HCA_MANAGED_AUTO,
        [ON_OFF_AUTO_ON] = HCA_MANAGED_ON,
        [ON_OFF_AUTO_OFF] = HCA_MANAGED_OFF,
    };

    s->config.managed = managed[s->managed];
    s->config.lid = s->lid ? s->lid : default_lid(s);
    s->config.guid = s->guid ? s->guid : default_guid(s);
}

/* By default QEMU's next one, which a card that is refused must not use up. */
static void take_mac(RdmaHcaState *s)
{
    qemu_macaddr_default_if_unset(&s->nic.macaddr);
    memcpy(s->config.mac, s->nic.macaddr.a, sizeof(s->config.mac));
    s->config.guid = s->guid ? s->guid : guid_of_mac(s->config.mac);
}

static bool check_properties(RdmaHcaState *s, Error **errp)
{
    unsigned extra = hca_config_is_roce(&s->config) ? ETH_VECTORS : 0;
    const char *message;

    if (!(hca_config_is_roce(&s->config) ? check_roce(s, errp)
                                         : check_ib(s, errp))) {
        return false;
    }
    if (!is_power_of_2(s->max_mtu) || s->max_mtu < 256 || s->max_mtu > 4096) {
        error_setg(errp, "max-mtu must be 256, 512, 1024, 2048 or 4096");
        return false;
    }
    if (s->vectors < 1 || s->vectors > MAX_VECTORS - extra) {
        error_setg(errp, "vectors must be from 1 to %u", MAX_VECTORS - extra);
        return false;
    }
    if (s->recorder_file && !s->config.recorder) {
        error_setg(errp, "recorder-file needs recorder");
        return false;
    }
    s->config.max_mtu = ctz32(s->max_mtu) - 7;
    s->config.num_vectors = s->vectors + extra;
    if (!hca_config_is_roce(&s->config)) {
        set_ib_addresses(s);
    }
    message = s->pkeys ? hca_config_set_pkeys(&s->config, s->pkeys) : NULL;
    if (!message) {
        message = hca_config_check(&s->config);
    }
    if (message) {
        error_setg(errp, "%s", message);
    }
    return !message;
}

/* Take over @faults and @seed, at once if the card is there, or fail. */
static bool change_faults(RdmaHcaState *s, const RdmaHcaFaultList *faults,
                          uint32_t seed, Error **errp)
{
    HcaFaultPlan plan;

    if (!rdma_hca_fault_plan(faults, seed, &plan, errp)) {
        return false;
    }
    if (s->alive) {
        rdma_hca_thread_set_faults(&s->thread, &plan);
    }
    return true;
}

/* @faults, which are right, are the card's. */
static void take_faults(RdmaHcaState *s, RdmaHcaFaultList *faults)
{
    qapi_free_RdmaHcaFaultList(s->faults);
    s->faults = faults;
}

static unsigned length(const RdmaHcaFaultList *faults)
{
    unsigned n = 0;

    for (; faults; faults = faults->next) {
        n++;
    }
    return n;
}

bool rdma_hca_add_faults(RdmaHcaState *s, const RdmaHcaFaultList *more,
                         Error **errp)
{
    unsigned kept = length(s->faults);
    RdmaHcaFaultList *faults = QAPI_CLONE(RdmaHcaFaultList, s->faults);
    RdmaHcaFaultList **tail = &faults;
    HcaFaultPlan plan;

    while (*tail) {
        tail = &(*tail)->next;
    }
    *tail = QAPI_CLONE(RdmaHcaFaultList, more);
    if (!rdma_hca_fault_plan(faults, s->fault_seed, &plan, errp)) {
        qapi_free_RdmaHcaFaultList(faults);
        return false;
    }
    rdma_hca_thread_add_faults(&s->thread, &plan, kept);
    take_faults(s, faults);
    return true;
}

RdmaHcaFaultStateList *rdma_hca_fault_states(RdmaHcaState *s)
{
    HcaFaultState states[HCA_FAULT_MAX_RULES];
    RdmaHcaFaultStateList *list = NULL, **tail = &list;
    unsigned i = 0;

    rdma_hca_thread_fault_states(&s->thread, states, length(s->faults));
    for (RdmaHcaFaultList *l = s->faults; l; l = l->next, i++) {
        RdmaHcaFaultState *state = g_new0(RdmaHcaFaultState, 1);

        state->fault = QAPI_CLONE(RdmaHcaFault, l->value);
        state->matched = states[i].matched;
        state->done = states[i].done;
        QAPI_LIST_APPEND(tail, state);
    }
    return list;
}

static void get_faults(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    visit_type_RdmaHcaFaultList(v, name, &RDMA_HCA(obj)->faults, errp);
}

static void set_faults(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    RdmaHcaState *s = RDMA_HCA(obj);
    RdmaHcaFaultList *faults;

    /* QEMU's visitor of a plain string has no function for structures. */
    if (!v->start_struct) {
        error_setg(errp, "faults needs JSON");
        return;
    }
    if (!visit_type_RdmaHcaFaultList(v, name, &faults, errp)) {
        return;
    }
    if (!change_faults(s, faults, s->fault_seed, errp)) {
        qapi_free_RdmaHcaFaultList(faults);
        return;
    }
    take_faults(s, faults);
}

static void release_faults(Object *obj, const char *name, void *opaque)
{
    qapi_free_RdmaHcaFaultList(RDMA_HCA(obj)->faults);
    RDMA_HCA(obj)->faults = NULL;
}

static void get_fault_seed(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &RDMA_HCA(obj)->fault_seed, errp);
}

static void set_fault_seed(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    RdmaHcaState *s = RDMA_HCA(obj);
    uint32_t seed;

    if (visit_type_uint32(v, name, &seed, errp) &&
        change_faults(s, s->faults, seed, errp)) {
        s->fault_seed = seed;
    }
}

/* ---- life ---- */

static void vm_state_changed(void *opaque, bool running, RunState state)
{
    RdmaHcaState *s = opaque;

    rdma_hca_thread_set_running(&s->thread, running);
}

static void exit_express(PCIDevice *pci)
{
    if (pci->exp.exp_cap) {
        pcie_aer_exit(pci);
        pcie_cap_exit(pci);
    }
}

static bool init_capabilities(RdmaHcaState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (hca_config_is_roce(&s->config)) {
        pci_config_set_class(pci->config, PCI_CLASS_NETWORK_ETHERNET);
    }
    if (pci_bus_is_express(pci_get_bus(pci))) {
        if (pcie_endpoint_cap_init(pci, EXPRESS_CAP_OFFSET) < 0) {
            error_setg(errp, "no room for the PCI Express capability");
            return false;
        }
        pcie_cap_flr_init(pci);
        pcie_cap_deverr_init(pci);
        if (pcie_aer_init(pci, PCI_ERR_VER, AER_CAP_OFFSET, PCI_ERR_SIZEOF,
                          errp) < 0) {
            pcie_cap_exit(pci);
            return false;
        }
    }
    if (msix_init(pci, s->config.num_vectors, &s->bar0, RDMA_HCA_BAR0,
                  RDMA_HCA_MSIX_TABLE, &s->bar0, RDMA_HCA_BAR0,
                  RDMA_HCA_MSIX_PBA, 0, errp) < 0) {
        exit_express(pci);
        return false;
    }
    for (unsigned v = 0; v < s->config.num_vectors; v++) {
        msix_vector_use(pci, v);
    }
    return true;
}

/* The card with all that it has before the guest may use it. */
static bool start_thread(RdmaHcaState *s, Error **errp)
{
    RdmaHcaCable *cable = s->net ? RDMA_HCA_CABLE(s->net) : s->cable;
    MemoryRegion *dev_mem = s->config.device_memory ? &s->dev_mem : NULL;
    HcaFaultPlan plan;
    HcaConfig config;

    s->config.cable = rdma_hca_cable_protocol(cable);
    config = s->config;
    if (config.cable == HCA_CABLE_CARD && !rdma_hca_cable_comes_back(cable)) {
        config.move_limit_ms = 0; /* it would wait in vain */
    }
    if (!rdma_hca_thread_start(&s->thread, PCI_DEVICE(s), &config, dev_mem,
                               s->iothread, cable, errp)) {
        return false;
    }
    if (s->capture && !rdma_hca_thread_capture(&s->thread, s->capture,
                                               s->capture_size, errp)) {
        rdma_hca_thread_unplug(&s->thread);
        rdma_hca_thread_finish(&s->thread);
        return false;
    }
    rdma_hca_thread_record_to(&s->thread, s->recorder_file);
    rdma_hca_fault_plan(s->faults, s->fault_seed, &plan, &error_abort);
    rdma_hca_thread_set_faults(&s->thread, &plan);
    rdma_hca_thread_set_running(&s->thread, runstate_is_running());
    return true;
}

static void rdma_hca_realize(PCIDevice *pci, Error **errp)
{
    RdmaHcaState *s = RDMA_HCA(pci);

    if (!check_properties(s, errp)) {
        return;
    }
    hca_config_settle(&s->config);
    if (!init_bars(s, errp)) {
        return;
    }
    if (!init_capabilities(s, errp)) {
        goto forget_dev_mem;
    }
    if (hca_config_is_roce(&s->config)) {
        take_mac(s);
    }
    if (hca_config_is_roce(&s->config) && !s->cable) {
        s->net = rdma_hca_net_new(DEVICE(s), &s->nic);
    }
    if (!start_thread(s, errp)) {
        goto free_net;
    }
    if (s->thread.has_pin) {
        pci_config_set_interrupt_pin(pci->config, 1);
    }
    register_bars(s);
    s->vm_state = rdma_hca_add_vm_state_handler(DEVICE(s), vm_state_changed, s);
    s->alive = true;
    return;

free_net:
    g_clear_pointer(&s->net, rdma_hca_net_free);
    msix_uninit(pci, &s->bar0, &s->bar0);
    exit_express(pci);
forget_dev_mem:
    forget_dev_mem(s);
}

static void finish(RdmaHcaState *s)
{
    rdma_hca_thread_finish(&s->thread);
    g_clear_pointer(&s->net, rdma_hca_net_free);
}

static void finish_bh(void *opaque)
{
    finish(opaque);
    object_unref(OBJECT(opaque));
}

/* The context that no device polls in the middle of anything. */
static void finish_later(RdmaHcaState *s)
{
    object_ref(OBJECT(s));
    aio_bh_schedule_oneshot(iohandler_get_aio_context(), finish_bh, s);
}

static void rdma_hca_exit(PCIDevice *pci)
{
    RdmaHcaState *s = RDMA_HCA(pci);

    s->alive = false;
    qemu_del_vm_change_state_handler(s->vm_state);
    if (rdma_hca_thread_unplug(&s->thread)) {
        finish(s);
    } else {
        finish_later(s);
    }
    msix_uninit(pci, &s->bar0, &s->bar0);
    forget_dev_mem(s);
    exit_express(pci);
    rdma_hca_saved_clear(&s->saved);
}

static void rdma_hca_reset_hold(Object *obj, ResetType type)
{
    RdmaHcaState *s = RDMA_HCA(obj);

    if (PCI_DEVICE(obj)->exp.exp_cap) {
        pcie_cap_deverr_reset(PCI_DEVICE(obj));
    }
    if (s->alive) {
        trace_rdma_hca_reset(s->thread.name);
        rdma_hca_thread_reset(&s->thread);
    }
}

/* ---- state ---- */

/* They may have changed since the machine was started. */
static bool load_faults(RdmaHcaState *s, Error **errp)
{
    g_autofree char *text = g_strndup((const char *)s->faults_json,
                                      s->faults_size);
    RdmaHcaFaultList *faults;
    HcaFaultPlan plan;

    if (!rdma_hca_faults_parse(text, &faults, errp)) {
        return false;
    }
    if (!rdma_hca_fault_plan(faults, s->fault_seed, &plan, errp)) {
        qapi_free_RdmaHcaFaultList(faults);
        return false;
    }
    take_faults(s, faults);
    return true;
}

static void forget_faults_text(RdmaHcaState *s)
{
    g_clear_pointer(&s->faults_json, g_free);
    s->faults_size = 0;
}

static int pre_save(void *opaque)
{
    RdmaHcaState *s = opaque;

    rdma_hca_saved_fill(&s->saved, rdma_hca_thread_save(&s->thread));
    forget_faults_text(s);
    s->faults_json = (uint8_t *)rdma_hca_faults_text(s->faults);
    s->faults_size = strlen((const char *)s->faults_json);
    return 0;
}

static int post_save(void *opaque)
{
    RdmaHcaState *s = opaque;

    rdma_hca_saved_clear(&s->saved);
    forget_faults_text(s);
    return 0;
}

static int pre_load(void *opaque)
{
    return post_save(opaque);
}

static bool load(RdmaHcaState *s, Error **errp)
{
    HcaState *state = rdma_hca_saved_take(&s->saved);
    bool ok = rdma_hca_thread_load(&s->thread, state, errp);

    hca_state_free(state);
    return ok && load_faults(s, errp);
}

static int post_load(void *opaque, int version_id)
{
    RdmaHcaState *s = opaque;
    Error *err = NULL;
    bool ok = load(s, &err);

    if (!ok) {
        error_prepend(&err, "rdma-hca %s: ", s->thread.name);
        error_report_err(err);
    }
    forget_faults_text(s);
    follow_bar0(s);
    return ok ? 0 : -EINVAL;
}

#define MOST_FAULTS_TEXT (1u << 20)

static bool faults_size_ok(void *opaque, int version_id)
{
    return ((RdmaHcaState *)opaque)->faults_size <= MOST_FAULTS_TEXT;
}

static const VMStateField own_fields[] = {
    VMSTATE_PCI_DEVICE(parent_obj, RdmaHcaState),
    VMSTATE_STRUCT(parent_obj.exp.aer_log, RdmaHcaState, 0,
                   vmstate_pcie_aer_log, PCIEAERLog),
    VMSTATE_MSIX(parent_obj, RdmaHcaState),
    VMSTATE_UINT32(fault_seed, RdmaHcaState),
    VMSTATE_UINT32(faults_size, RdmaHcaState),
    VMSTATE_VALIDATE("size of the faults", faults_size_ok),
    VMSTATE_VBUFFER_ALLOC_UINT32(faults_json, RdmaHcaState, 0, NULL,
                                 faults_size),
};

static const VMStateDescription *describe_state(void)
{
    VMStateDescription *vmsd = g_new0(VMStateDescription, 1);

    vmsd->name = TYPE_RDMA_HCA;
    vmsd->version_id = vmsd->minimum_version_id = 1;
    vmsd->pre_save = pre_save;
    vmsd->post_save = post_save;
    vmsd->pre_load = pre_load;
    vmsd->post_load = post_load;
    vmsd->fields = rdma_hca_state_fields(own_fields, ARRAY_SIZE(own_fields),
                                         offsetof(RdmaHcaState, saved));
    return vmsd;
}

RdmaHcaThread *rdma_hca_thread(RdmaHcaState *s)
{
    return s->alive ? &s->thread : NULL;
}

static bool get_link_up(Object *obj, Error **errp)
{
    return qatomic_read(&RDMA_HCA(obj)->thread.link_up);
}

/* The values of HcaLinkLayer, less one. */
static const char *const link_layer_names[] = { "ib", "roce" };

static const QEnumLookup link_layer_lookup = {
    .array = link_layer_names,
    .size = ARRAY_SIZE(link_layer_names),
};

static const char *const ack_policy_names[] = {
    [HCA_ACK_COALESCED] = "coalesced",
    [HCA_ACK_REQUESTED] = "requested",
    [HCA_ACK_EACH] = "each",
};

static const QEnumLookup ack_policy_lookup = {
    .array = ack_policy_names,
    .size = ARRAY_SIZE(ack_policy_names),
};

/* Whether it is too late to set @name. */
static bool is_made(Object *obj, const char *name, Error **errp)
{
    if (DEVICE(obj)->realized) {
        error_setg(errp, "'%s' can only be set when the card is made", name);
    }
    return DEVICE(obj)->realized;
}

static int get_link_layer(Object *obj, Error **errp)
{
    return RDMA_HCA(obj)->config.link_layer - 1;
}

static void set_link_layer(Object *obj, int value, Error **errp)
{
    if (!is_made(obj, "link-layer", errp)) {
        RDMA_HCA(obj)->config.link_layer = value + 1;
    }
}

static int get_ack_policy(Object *obj, Error **errp)
{
    return RDMA_HCA(obj)->config.ack_policy;
}

static void set_ack_policy(Object *obj, int value, Error **errp)
{
    if (!is_made(obj, "ack-policy", errp)) {
        RDMA_HCA(obj)->config.ack_policy = value;
    }
}

static void add_enum_properties(ObjectClass *klass)
{
    ObjectProperty *p;

    p = object_class_property_add_enum(klass, "link-layer", "RdmaHcaLinkLayer",
                                       &link_layer_lookup, get_link_layer,
                                       set_link_layer);
    object_property_set_default_str(p, "ib");
    object_class_property_set_description(
        klass, p->name, "ib: InfiniBand; roce: RoCEv2 and Ethernet");
    p = object_class_property_add_enum(klass, "ack-policy", "RdmaHcaAckPolicy",
                                       &ack_policy_lookup, get_ack_policy,
                                       set_ack_policy);
    object_property_set_default_str(p, "coalesced");
    object_class_property_set_description(
        klass, p->name,
        "coalesced, requested or each: when a reliable connection is "
        "acknowledged");
}

/* What the skin adds to the card's table of options. */
static const struct {
    Property property;
    const char *text;
} own_properties[] = {
    { DEFINE_PROP_LINK("cable", RdmaHcaState, cable, TYPE_RDMA_HCA_CABLE,
                       RdmaHcaCable *),
      "The rdma-hca-cable that is plugged in" },
    { DEFINE_PROP_UINT16("lid", RdmaHcaState, lid, 0),
      "The port's LID, 1 to 49151; 0: 1 at a listening cable, 2 at a "
      "connecting one (InfiniBand)" },
    { DEFINE_PROP_ON_OFF_AUTO("managed", RdmaHcaState, managed,
                              ON_OFF_AUTO_AUTO),
      "A subnet manager gives the port its LID, state and P_Keys; auto: if the "
      "other end of the cable is a switch, or managed (InfiniBand)" },
    { DEFINE_PROP_NETDEV("netdev", RdmaHcaState, nic.peers),
      "The netdev that is plugged in (RoCE)" },
    { DEFINE_PROP_MACADDR("mac", RdmaHcaState, nic.macaddr),
      "MAC address of the interface (RoCE)" },
    { DEFINE_PROP_UINT64("guid", RdmaHcaState, guid, 0),
      "Node and port GUID; 0: made from the card's address (RoCE: from its "
      "MAC)" },
    { DEFINE_PROP_STRING("pkeys", RdmaHcaState, pkeys),
      "The port's P_Key table, as in 0xffff:0x8001" },
    { DEFINE_PROP_LINK("iothread", RdmaHcaState, iothread, TYPE_IOTHREAD,
                       IOThread *),
      "The iothread that the card runs in; otherwise one of its own" },
    { DEFINE_PROP_UINT32("max-mtu", RdmaHcaState, max_mtu, 4096),
      "Largest path MTU in bytes, 256 to 4096" },
    { DEFINE_PROP_UINT32("vectors", RdmaHcaState, vectors, RDMA_HCA_MAX_EQS),
      "Number of MSI-X vectors, but for two more of RoCE" },
    { DEFINE_PROP_STRING("capture", RdmaHcaState, capture),
      "File for what passes the cable (pcapng)" },
    { DEFINE_PROP_SIZE("capture-size", RdmaHcaState, capture_size, 0),
      "Bytes that the file may have; 0: no limit" },
    { DEFINE_PROP_STRING("recorder-file", RdmaHcaState, recorder_file),
      "File for the flight recorder when something breaks (pcapng)" },
    { DEFINE_PROP_BOOL("strict", RdmaHcaState, config.strict, false),
      "Warn of what a program does that works here and breaks elsewhere" },
};

static Property option_property(const HcaOption *option)
{
    return (Property) {
        .name = option->name,
        .info = option->unit == HCA_UNIT_BYTES ? &qdev_prop_size32
                                               : &qdev_prop_uint32,
        .offset = offsetof(RdmaHcaState, config) + option->offset,
        .set_default = true,
        .defval.u = option->initial,
    };
}

static void describe_option(ObjectClass *klass, const HcaOption *option)
{
    g_autofree char *text = g_strdup_printf("%s, %s%s", option->text,
                                            option->limits,
                                            option->roce ? " (RoCE)" : "");

    object_class_property_set_description(klass, option->name, text);
}

/* What is set before the card is made. */
static void add_properties(ObjectClass *klass)
{
    const unsigned nown = ARRAY_SIZE(own_properties);
    unsigned noptions;
    const HcaOption *options = hca_config_options(&noptions);
    Property *properties = g_new(Property, nown + noptions);

    for (unsigned i = 0; i < nown; i++) {
        properties[i] = own_properties[i].property;
    }
    for (unsigned i = 0; i < noptions; i++) {
        properties[nown + i] = option_property(&options[i]);
    }
    /* The class keeps them for ever. */
    device_class_set_props_n(DEVICE_CLASS(klass), properties, nown + noptions);
    for (unsigned i = 0; i < nown; i++) {
        object_class_property_set_description(
            klass, own_properties[i].property.name, own_properties[i].text);
    }
    for (unsigned i = 0; i < noptions; i++) {
        describe_option(klass, &options[i]);
    }
}

/* What may be written, or is there to be read, while the machine runs. */
static void add_live_properties(ObjectClass *klass)
{
    object_class_property_add(klass, "faults", "RdmaHcaFaultList", get_faults,
                              set_faults, release_faults, NULL);
    object_class_property_set_description(
        klass, "faults",
        "What goes wrong on the cable: [{\"action\":...},...]");
    object_class_property_add(klass, "fault-seed", "uint32", get_fault_seed,
                              set_fault_seed, NULL, NULL);
    object_class_property_set_description(
        klass, "fault-seed", "What the chances of the faults begin with");
    object_class_property_add_bool(klass, "link-up", get_link_up, NULL);
    object_class_property_set_description(
        klass, "link-up", "Whether there is a peer at the end of the cable");
}

static void rdma_hca_init(Object *obj)
{
    hca_config_init(&RDMA_HCA(obj)->config);
    RDMA_HCA(obj)->config.personality = RDMA_HCA_GET_CLASS(obj)->personality;
}

static void rdma_hca_class_init(ObjectClass *klass, RDMA_HCA_CLASS_DATA *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    pc->realize = rdma_hca_realize;
    pc->exit = rdma_hca_exit;
    pc->config_read = config_read;
    pc->config_write = config_write;
    pc->vendor_id = RDMA_HCA_PCI_VENDOR_ID;
    pc->device_id = RDMA_HCA_PCI_DEVICE_ID;
    pc->revision = RDMA_HCA_PCI_REVISION;
    pc->class_id = PCI_CLASS_NETWORK_INFINIBAND;
    RESETTABLE_CLASS(klass)->phases.hold = rdma_hca_reset_hold;

    dc->vmsd = describe_state();
    dc->desc = "RDMA host channel adapter (InfiniBand, RoCE)";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    add_properties(klass);
    add_enum_properties(klass);
    add_live_properties(klass);
}

/* What drivers of the kind of InfiniHost III Lx look for. */
static void rdma_hca_mthca_class_init(ObjectClass *klass,
                                      RDMA_HCA_CLASS_DATA *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    RdmaHcaClass *rc = RDMA_HCA_CLASS(klass);

    rc->personality = HCA_PERSONALITY_MTHCA;
    pc->vendor_id = MTHCA_PCI_VENDOR_ID;
    pc->device_id = MTHCA_PCI_DEVICE_ID;
    pc->revision = MTHCA_PCI_REVISION;
    pc->class_id = PCI_CLASS_SERIAL_INFINIBAND;
    dc->desc = "RDMA host channel adapter with the programming interface of an "
               "InfiniHost III Lx (InfiniBand)";
}

static const TypeInfo rdma_hca_types[] = {
    {
        .name = TYPE_RDMA_HCA,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(RdmaHcaState),
        .instance_init = rdma_hca_init,
        .class_size = sizeof(RdmaHcaClass),
        .class_init = rdma_hca_class_init,
        .interfaces = (InterfaceInfo[]) { { INTERFACE_PCIE_DEVICE }, {} },
    },
    {
        .name = TYPE_RDMA_HCA_MTHCA,
        .parent = TYPE_RDMA_HCA,
        .class_init = rdma_hca_mthca_class_init,
    },
};

DEFINE_TYPES(rdma_hca_types)
