/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile driver on machine 0: registers, commands and their mailboxes,
 * doorbells, work requests; the card's tables, rings and mailboxes in its
 * memory change between two look-ups, memory is not there, time passes.
 * Machine 1 has a good driver, and is connected.
 */
#include <string.h>

#include "lib-command.h"
#include "lib-fuzz.h"
#include "lib-make.h"

/* ---- commands ---- */

/* Nothing but room for the last one's event is waited for. */
static void check_done(const Hca *hca)
{
    if (hca_command_wanted(hca) && !hca_ceu_event_waits(hca->ceu)) {
        fuzz_fail("the card rests, and has a command to do");
    }
}

/* Until the command is over, or not. */
static void run_command(Fuzz *f, const uint32_t *reg, bool wait)
{
    Host *host = &f->lab->host[0];

    for (unsigned i = 0; i < RDMA_HCA_HCR_SIZE / 4; i++) {
        host_bar0_write(host, RDMA_HCA_HCR + i * 4, reg[i]);
    }
    if (wait) {
        fuzz_rest(f);
        check_done(host->hca);
    }
}

/* The registers of a command, whose mailbox is written. */
static void put_command(Fuzz *f, const FuzzCommand *command, uint32_t *reg)
{
    const Driver *drv = f->pair->drv[0];
    uint64_t in = command->in_param ? command->in_param : drv->mbox_in;

    fuzz_write_inbox(f, command);
    reg[RDMA_HCA_HCR_IN_PARAM_H / 4] = in >> 32;
    reg[RDMA_HCA_HCR_IN_PARAM_L / 4] = in;
    reg[RDMA_HCA_HCR_IN_MODIFIER / 4] = command->in_modifier;
    reg[RDMA_HCA_HCR_OUT_PARAM_H / 4] = drv->mbox_out >> 32;
    reg[RDMA_HCA_HCR_OUT_PARAM_L / 4] = drv->mbox_out;
    reg[RDMA_HCA_HCR_CTRL / 4] = RDMA_HCA_HCR_GO |
                                 RDMA_HCA_PREP(RDMA_HCA_HCR_OP, command->op) |
                                 RDMA_HCA_PREP(RDMA_HCA_HCR_OP_MODIFIER,
                                               command->op_modifier);
}

/* Events that find no room. */
static void act_small_eq(Fuzz *f)
{
    uint32_t reg[RDMA_HCA_HCR_SIZE / 4] = { 0 };
    FuzzCommand command[2];

    fuzz_small_eq(f, &command[0], &command[1]);
    for (unsigned i = 0; i < G_N_ELEMENTS(command); i++) {
        put_command(f, &command[i], reg);
        run_command(f, reg, true);
    }
}

/* A command that is good but for what the input changes. */
static void act_command(Fuzz *f)
{
    uint8_t odd = take8(&f->in);
    FuzzCommand command;
    uint32_t reg[RDMA_HCA_HCR_SIZE / 4] = { 0 };

    fuzz_take_command(f, &command);
    for (unsigned n = odd & 3; n; n--) { /* words of the mailbox */
        unsigned at = take_below(&f->in, MAX(command.nwords, 1));

        command.word[at] = take_bool(&f->in) ? take_odd(&f->in)
                                             : command.word[at] ^
                                                   1u << take_below(&f->in, 32);
    }
    put_command(f, &command, reg);
    if (odd & 4) { /* a register */
        unsigned at = take_below(&f->in, G_N_ELEMENTS(reg));

        reg[at] = take_odd(&f->in);
    }
    if (odd & 8) {
        reg[RDMA_HCA_HCR_CTRL / 4] |= RDMA_HCA_HCR_EVENT;
    }
    run_command(f, reg, !(odd & 16));
}

/* Several that are good. */
static void act_rows(Fuzz *f)
{
    uint32_t reg[RDMA_HCA_HCR_SIZE / 4] = { 0 };

    for (unsigned n = 2 + take_below(&f->in, 6); n; n--) {
        FuzzCommand command;

        fuzz_take_command(f, &command);
        put_command(f, &command, reg);
        run_command(f, reg, true);
    }
}

/* A queue pair from RST to RTS, with one context for all. */
static void act_rebuild(Fuzz *f)
{
    static const uint16_t way[] = { RDMA_HCA_CMD_RST2INIT_QPEE,
                                    RDMA_HCA_CMD_INIT2RTR_QPEE,
                                    RDMA_HCA_CMD_RTR2RTS_QPEE };
    unsigned steps = G_N_ELEMENTS(way) - take_below(&f->in, 3);
    uint32_t reg[RDMA_HCA_HCR_SIZE / 4] = { 0 };
    FuzzCommand command = { 0 };

    fuzz_make_qp(f, &command);
    command.op = RDMA_HCA_CMD_ERR2RST_QPEE;
    command.op_modifier = RDMA_HCA_MODIFY_NO_INBOX;
    put_command(f, &command, reg);
    run_command(f, reg, true);
    command.op_modifier = 0;
    for (unsigned i = 0; i < steps; i++) {
        command.op = way[i];
        put_command(f, &command, reg);
        run_command(f, reg, true);
    }
}

/* Receive WQEs that have no record: each says whether one follows. */
static void act_chain(Fuzz *f)
{
    Mr *mr = f->pair->mr[0];
    unsigned n = 1 + take_below(&f->in, 4);
    bool physical = take_bool(&f->in);
    uint64_t va = physical ? mr->page[0] : mr->va + 4096;
    struct rdma_hca_data_unit data = {
        .lkey = GUINT32_TO_LE(physical ? GOOD_KEY(FUZZ_SPARE_MPT) : mr->key),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(va)),
    };

    for (uint64_t at = 0; n; n--, at += FUZZ_RECV_WQE_SIZE) {
        uint8_t what = take8(&f->in);
        const struct rdma_hca_next_unit next = {
            .nee_nds = GUINT32_TO_LE(what & 3),
        };
        unsigned full = FUZZ_RECV_WQE_SIZE / sizeof(data) - 1;

        data.byte_cnt = GUINT32_TO_LE(what >> 2 << 4);
        mr_write(mr, at, &next, sizeof(next));
        for (unsigned i = 0; i < (what & 4 ? full : 1); i++) {
            mr_write(mr, at + sizeof(next) + i * sizeof(data), &data,
                     sizeof(data));
        }
    }
}

/* Registers without sense. */
static void act_register(Fuzz *f)
{
    static const uint32_t base[] = { RDMA_HCA_HCR, RDMA_HCA_EQ_DB,
                                     RDMA_HCA_ETH_DB, RDMA_HCA_RESET, 0 };
    uint32_t at = base[take_below(&f->in, G_N_ELEMENTS(base))];

    at += take_odd(&f->in);
    at &= RDMA_HCA_BAR0_SIZE - 4;
    host_bar0_read(&f->lab->host[0], at);
    host_bar0_write(&f->lab->host[0], at, take_odd(&f->in));
}

static void act_reset(Fuzz *f)
{
    if (take_bool(&f->in)) {
        host_reset(&f->lab->host[0]);
    } else {
        host_bar0_write(&f->lab->host[0], RDMA_HCA_RESET, 1);
    }
}

/* A card that works once more. */
static void act_start_over(Fuzz *f)
{
    machine_plan_nothing();
    fuzz_start_over(f, 0);
}

/* ---- doorbells ---- */

static void act_uar(Fuzz *f)
{
    uint32_t page = take_below(&f->in, 4) ? RDMA_HCA_UAR_KERNEL + 1
                                          : take_below(&f->in, 2048);
    uint32_t at = take_below(&f->in, 16) ? take_bool(&f->in) * RDMA_HCA_CQ_DB
                                         : take16(&f->in) & 0xff8;
    uint64_t value = take_odd(&f->in) << 32;

    if (at == RDMA_HCA_CQ_DB) {
        value |= take_below(&f->in, 4) << 24 | take_below(&f->in, 9);
    } else {
        value = (value & UINT64_C(0xff00000000)) |
                (uint64_t)(2 + take_below(&f->in, 15)) << 40 | take16(&f->in);
    }
    host_uar_write64(&f->lab->host[0], page * RDMA_HCA_UAR_PAGE_SIZE + at,
                     value);
    fuzz_read_uar(f, page * RDMA_HCA_UAR_PAGE_SIZE + at);
}

static void act_eq_doorbell(Fuzz *f)
{
    uint32_t eqn = take_below(&f->in, 9);

    host_bar0_write(&f->lab->host[0],
                    RDMA_HCA_EQ_DB + eqn * RDMA_HCA_EQ_DB_STRIDE,
                    take_odd(&f->in));
}

/* ---- memory ---- */

/* Memory that the card looks at. */
static uint64_t take_place(Fuzz *f)
{
    Driver *drv = f->pair->drv[0];
    unsigned number = fuzz_take_qp(f);
    Qp *qp = f->qp[number][0];
    const Srq *srq = fuzz_srq_of(f, 0, number);
    unsigned which = take_below(&f->in, 9);
    const Mr *sq = qp->sq.mr ? qp->sq.mr : f->qp[FUZZ_RC][0]->sq.mr;
    const Mr *rq = srq ? srq->mr : f->qp[FUZZ_RC][0]->rq.mr;
    const Mr *mr[] = { sq, qp->rq.mr ? qp->rq.mr : rq, f->pair->cq[0]->mr,
                       drv->eq[take_below(&f->in, NUM_EQS)].mr,
                       f->pair->mr[0] };
    uint32_t at = take16(&f->in) & ~3u;

    if (which < G_N_ELEMENTS(mr)) {
        return mr_bus(mr[which], at % mr[which]->len);
    }
    if (which == 5) {
        return srq ? srq->record : qp->rq_record;
    }
    if (which == 6) {
        return drv->mbox_in + at % HOST_PAGE_SIZE;
    }
    return g_array_index(drv->icm_pages, uint64_t,
                         at / HOST_PAGE_SIZE % drv->icm_pages->len) +
           at % HOST_PAGE_SIZE;
}

static void act_scribble(Fuzz *f)
{
    uint64_t place = take_place(f), value = take_odd(&f->in);

    host_write_le32(&f->lab->host[0], place, value);
}

static void act_scribble_later(Fuzz *f)
{
    uint64_t place = take_place(f), value = take_odd(&f->in);

    machine_plan_write(0, take_below(&f->in, 64), place, &value, 4);
}

static void act_failure(Fuzz *f)
{
    unsigned lookups = take_below(&f->in, 64);

    machine_plan_failure(0, lookups, 1 + take_below(&f->in, 16));
}

static const FuzzAction actions[] = {
    { "command", act_command },
    { "command", act_command },
    { "command", act_command },
    { "small eq", act_small_eq },
    { "register", act_register },
    { "reset", act_reset },
    { "start over", act_start_over },
    { "uar", act_uar },
    { "eq doorbell", act_eq_doorbell },
    { "scribble", act_scribble },
    { "scribble later", act_scribble_later },
    { "failure", act_failure },
    { "send", fuzz_act_send },
    { "recv", fuzz_act_recv },
    { "poll", fuzz_act_poll },
    { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },
    { "time", fuzz_act_time },
    { "revive", fuzz_act_revive },
    { "group", fuzz_act_group },
    { "cable", fuzz_act_cable },
    { "events", fuzz_act_events },
    { "rows", act_rows },
    { "rebuild", act_rebuild },
    { "chain", act_chain },
    { "exchange", fuzz_act_exchange },
    { "multicast", fuzz_act_multicast },
    { "arm", fuzz_act_arm },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f;

    fuzz_begin(&f, data, size, FUZZ_GUEST_DRIVER);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    return 0;
}
