/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile driver of a card with the interface of an InfiniHost III Lx: commands
 * and their mailboxes, doorbells and registers, and all that the card reads of
 * its memory, which may be anything at any moment: translations, records, work
 * queues, links of shared queues and of groups, headers of QP 0 and QP 1. The
 * other machine has a good driver of such a card, and goes on.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "lib-fuzz.h"
#include "lib-lie.h"
#include "lib-mthca-pair.h"

#define CQN 0x330005u
#define SRQN 9
#define QKEY 0x11111111u
#define MLID 0xc001u
#define DATA_PAGES 4
#define NMAILBOXES 3 /* of a QP's way to RTS */
#define HEADERS 0    /* in the region for data */
#define PAYLOAD 512
#define MAX_MOVES 4 /* to another card, in a run */

/* A connection of each kind; that of QP 1 has no peer. */
enum {
    RC,
    SHARED,
    UD,
    GSI,
    NQPS
};

typedef struct Machine {
    Mthca *m;
    MthcaCq cq;
    MthcaSrq srq;
    MthcaQp qp[NQPS];
    MthcaMr *data;
} Machine;

typedef struct State {
    Input *in;
    Lab *lab;
    Machine machine[2];
    struct mthca_qp_mailbox box[NQPS][NMAILBOXES]; /* of machine 0 */
    uint64_t secret; /* a page of machine 1's that nobody has rights to */
    unsigned moves;
} State;

/* ---- two machines that are good ---- */

static void make_qp(Machine *machine, unsigned which)
{
    static const uint8_t services[NQPS] = { MTHCA_QPC_SERVICE_RC,
                                            MTHCA_QPC_SERVICE_RC,
                                            MTHCA_QPC_SERVICE_UD,
                                            MTHCA_QPC_SERVICE_MLX };

    machine->qp[which] = (MthcaQp) {
        .qpn = which == GSI ? 12 : 0x770010u + which,
        .service = services[which],
        .send_cq = &machine->cq,
        .recv_cq = &machine->cq,
        .mr = mthca_mr(machine->m, 1, 0),
        .log_sq = 3,
        .log_rq = 3,
        .log_stride = 7,
        .uar = 2,
        .sq_record = 1 + which,
        .rq_record = 0x7ff0 + which,
        .srq = which == SHARED ? &machine->srq : NULL,
    };
}

static void make_machine(State *s, unsigned side)
{
    Machine *machine = &s->machine[side];
    Mthca *m = machine->m = mthca_new(&s->lab->host[side]);

    mthca_probe(m);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL));
    machine->cq = (MthcaCq) {
        .cqn = CQN,
        .mr = mthca_mr(m, 1, 0),
        .log_size = 6,
        .uar = 2,
        .ci_record = 0x7fff,
        .arm_record = 0,
    };
    mthca_must(mthca_sw2hw_cq(m, &machine->cq));
    machine->srq = (MthcaSrq) {
        .srqn = SRQN,
        .mr = mthca_mr(m, 1, 0),
        .log_size = 4,
        .log_stride = 6,
        .uar = 2,
        .record = 0x7ffd,
    };
    mthca_must(mthca_sw2hw_srq(m, &machine->srq));
    machine->data = mthca_mr(m, DATA_PAGES, 0x1234);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0, 12, 1, 0, NULL));
    for (unsigned i = 0; i < NQPS; i++) {
        make_qp(machine, i);
        mthca_must(mthca_qp_to_init(m, &machine->qp[i]));
        if (side == 0) {
            host_read(m->host, m->mbox_in, &s->box[i][0], sizeof(s->box[i][0]));
        }
    }
}

static void connect(State *s, unsigned side)
{
    Machine *machine = &s->machine[side];
    Mthca *m = machine->m;
    uint16_t dlid = s->lab->host[!side].config.lid;

    for (unsigned i = 0; i < NQPS; i++) {
        MthcaQp *qp = &machine->qp[i];

        mthca_must(mthca_qp_to_rtr(m, qp, dlid, s->machine[!side].qp[i].qpn));
        host_read(m->host, m->mbox_in, &s->box[i][1], sizeof(s->box[i][1]));
        mthca_must(mthca_qp_to_rts(m, qp));
        host_read(m->host, m->mbox_in, &s->box[i][2], sizeof(s->box[i][2]));
    }
}

/* Machine 1 is in a group. */
static void join(State *s)
{
    Machine *machine = &s->machine[1];
    struct mthca_mgm mgm = {
        .mgid = { 0xff, 0x12, [15] = 1 },
        .qp = { GUINT32_TO_BE(MTHCA_MGM_VALID | machine->qp[UD].qpn) },
    };
    uint64_t hash;

    host_write(machine->m->host, machine->m->mbox_in, mgm.mgid, 16);
    mthca_must(mthca_cmd(machine->m, MTHCA_CMD_MGID_HASH, machine->m->mbox_in,
                         0, 0, 0, &hash));
    mthca_must(mthca_cmd_in(machine->m, RDMA_HCA_CMD_WRITE_MGM, &mgm,
                            sizeof(mgm), hash, 0));
}

static void begin(State *s, Input *in)
{
    uint8_t page[HOST_PAGE_SIZE];

    *s = (State) { .in = in };
    s->lab = mthca_lab(1, take_below(in, 8) ? 0 : 2000);
    lab_cable(s->lab, true);
    make_machine(s, 0);
    make_machine(s, 1);
    /* The boxes are those of machine 0. */
    connect(s, 1);
    connect(s, 0);
    join(s);
    s->secret = host_alloc(&s->lab->host[1], 1);
    memset(page, 0x5a, sizeof(page));
    host_write(&s->lab->host[1], s->secret, page, sizeof(page));
    lab_run(s->lab);
}

/* ---- what is rung and written ---- */

static void rest(State *s)
{
    for (unsigned n = 0; lab_step(s->lab); n++) {
        if (n == FUZZ_MOST_TURNS) {
            fuzz_fail("the cards do not come to rest");
        }
    }
}

static Host *victim(State *s)
{
    return &s->lab->host[0];
}

static MthcaQp *take_qp(State *s)
{
    return &s->machine[0].qp[take_below(s->in, NQPS)];
}

static uint32_t odd_number(State *s, uint32_t good)
{
    switch (take_below(s->in, 4)) {
    case 0:
        return good;
    case 1:
        return good ^ 1u << take_below(s->in, 32);
    case 2:
        return good + take8(s->in);
    default:
        return take_odd(s->in);
    }
}

/* A command, by registers; its event is nobody's. */
static void command(State *s, uint16_t op, uint8_t op_modifier, uint64_t in,
                    uint32_t in_modifier, uint64_t out)
{
    const uint32_t words[] = {
        in >> 32,
        in,
        in_modifier,
        out >> 32,
        out,
        take8(s->in) << 16,
        RDMA_HCA_HCR_GO | (take_bool(s->in) ? RDMA_HCA_HCR_EVENT : 0) |
            (uint32_t)op_modifier << 12 | op,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        mthca_write(s->machine[0].m, MTHCA_HCR + 4 * i, words[i]);
    }
    if (take_below(s->in, 8)) {
        rest(s);
    }
}

static void spoil(State *s, void *box, size_t len)
{
    uint32_t *word = box;

    for (unsigned n = take_below(s->in, 4); n; n--) {
        unsigned at = take_below(s->in, len / 4);

        word[at] = take_bool(s->in) ? GUINT32_TO_BE(take_odd(s->in))
                                    : word[at] ^ 1u << take_below(s->in, 32);
    }
}

/* In the mailbox, then the command. */
static void command_with(State *s, uint16_t op, void *box, size_t len,
                         uint32_t number)
{
    Mthca *m = s->machine[0].m;

    spoil(s, box, len);
    host_write(m->host, m->mbox_in, box, len);
    command(s, op, take_below(s->in, 4), m->mbox_in, odd_number(s, number),
            m->mbox_out);
}

/* ---- actions ---- */

/* A QP of some state to another, with the mailbox of some step. */
static void act_modify(State *s)
{
    static const uint16_t ways[] = {
        RDMA_HCA_CMD_RST2INIT_QPEE, RDMA_HCA_CMD_INIT2INIT_QPEE,
        RDMA_HCA_CMD_INIT2RTR_QPEE, RDMA_HCA_CMD_RTR2RTS_QPEE,
        RDMA_HCA_CMD_RTS2RTS_QPEE,  RDMA_HCA_CMD_SQERR2RTS_QPEE,
        RDMA_HCA_CMD_2ERR_QPEE,     RDMA_HCA_CMD_RTS2SQD_QPEE,
        RDMA_HCA_CMD_SQD2SQD_QPEE,  RDMA_HCA_CMD_SQD2RTS_QPEE,
        RDMA_HCA_CMD_ERR2RST_QPEE,  RDMA_HCA_CMD_QUERY_QP,
    };
    unsigned which = take_below(s->in, NQPS);
    struct mthca_qp_mailbox box = s->box[which][take_below(s->in, NMAILBOXES)];

    command_with(s, ways[take_below(s->in, G_N_ELEMENTS(ways))], &box,
                 sizeof(box), s->machine[0].qp[which].qpn);
}

/* From RESET to RTS, as well as it goes. */
static void act_revive(State *s)
{
    static const uint16_t ways[] = { RDMA_HCA_CMD_ERR2RST_QPEE,
                                     RDMA_HCA_CMD_RST2INIT_QPEE,
                                     RDMA_HCA_CMD_INIT2RTR_QPEE,
                                     RDMA_HCA_CMD_RTR2RTS_QPEE };
    unsigned which = take_below(s->in, NQPS);
    Mthca *m = s->machine[0].m;

    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        if (i) {
            host_write(m->host, m->mbox_in, &s->box[which][i - 1],
                       sizeof(s->box[which][i - 1]));
        }
        command(s, ways[i], i ? 0 : 3, i ? m->mbox_in : 0,
                s->machine[0].qp[which].qpn, 0);
    }
    s->machine[0].qp[which].sq_head = s->machine[0].qp[which].rq_head = 0;
}

static void act_queues(State *s)
{
    Machine *machine = &s->machine[0];
    union {
        struct mthca_cqc cqc;
        struct mthca_eqc eqc;
        struct mthca_srqc srqc;
        struct mthca_mpt mpt;
        struct mthca_resize_cq resize;
        struct mthca_mgm mgm;
        uint8_t bytes[256];
    } box = { .bytes = { 0 } };
    uint32_t spare = CQN + 1 + take_below(s->in, 3);

    switch (take_below(s->in, 12)) {
    case 0:
        mthca_put_cqc(&machine->cq, machine->m->pd, 1, &box.cqc);
        command_with(s, RDMA_HCA_CMD_SW2HW_CQ, &box, sizeof(box.cqc), spare);
        break;
    case 1:
        command_with(s, RDMA_HCA_CMD_HW2SW_CQ, &box, sizeof(box.cqc), spare);
        break;
    case 2:
        mthca_put_eqc(&machine->m->eq[0], machine->m->pd,
                      take_bool(s->in) ? 31 : 0, &box.eqc);
        command_with(s, RDMA_HCA_CMD_SW2HW_EQ, &box, sizeof(box.eqc), 7);
        break;
    case 3:
        command_with(s, RDMA_HCA_CMD_HW2SW_EQ, &box, sizeof(box.eqc), 7);
        break;
    case 4:
        mthca_put_srqc(&machine->srq, machine->m->pd, &box.srqc);
        command_with(s, RDMA_HCA_CMD_SW2HW_SRQ, &box, sizeof(box.srqc),
                     SRQN + 1);
        break;
    case 5:
        command_with(s, RDMA_HCA_CMD_HW2SW_SRQ, &box, sizeof(box.srqc), SRQN);
        break;
    case 6:
        mthca_put_mpt(machine->data, machine->m->place[MTHCA_MTT].base,
                      machine->m->pd, &box.mpt);
        command_with(s, RDMA_HCA_CMD_SW2HW_MPT, &box, sizeof(box.mpt),
                     machine->data->index + take_below(s->in, 2));
        break;
    case 7:
        command_with(s, RDMA_HCA_CMD_HW2SW_MPT, &box, sizeof(box.mpt),
                     machine->data->index);
        break;
    case 8:
        box.resize.logsize = GUINT32_TO_BE(6u << 24);
        box.resize.lkey = GUINT32_TO_BE(machine->cq.mr->key);
        command_with(s, RDMA_HCA_CMD_RESIZE_CQ, &box, sizeof(box.resize), CQN);
        break;
    case 9: /* chains, in circles too */
        box.mgm.next = GUINT32_TO_BE(take_below(s->in, 8) << 6);
        box.mgm.mgid[0] = 0xff;
        box.mgm.mgid[15] = take_below(s->in, 4);
        box.mgm.qp[0] = GUINT32_TO_BE(MTHCA_MGM_VALID | machine->qp[UD].qpn);
        command_with(s, RDMA_HCA_CMD_WRITE_MGM, &box, sizeof(box.mgm),
                     take_below(s->in, 8));
        break;
    case 10:
        command(s, RDMA_HCA_CMD_ARM_SRQ, 0, take8(s->in), SRQN, 0);
        break;
    default:
        command(s, RDMA_HCA_CMD_MAP_EQ, 0, take64(s->in),
                odd_number(s, 1 + take_below(s->in, 3)), 0);
    }
}

/* ICM comes and goes, below what is in use. */
static void act_icm(State *s)
{
    Mthca *m = s->machine[0].m;
    const MthcaPlace *place = &m->place[take_below(s->in, MTHCA_NTABLES)];
    uint64_t virt = place->base + 0x1000ull * take_below(s->in, 64);
    uint64_t page = s->machine[0].data->page[take_below(s->in, DATA_PAGES)];
    struct mthca_icm_entry entry = {
        .virt_h = GUINT32_TO_BE(virt >> 32),
        .virt_l = GUINT32_TO_BE((uint32_t)virt),
        .page_h = GUINT32_TO_BE(page >> 32),
        .page_l = GUINT32_TO_BE((uint32_t)page | take_below(s->in, 2)),
    };

    if (take_bool(s->in)) {
        command(s, RDMA_HCA_CMD_UNMAP_ICM, 0, virt,
                take_bool(s->in) ? 1 : take8(s->in), 0);
    } else {
        command_with(s, RDMA_HCA_CMD_MAP_ICM, &entry, sizeof(entry), 1);
    }
}

static void act_any_command(State *s)
{
    Mthca *m = s->machine[0].m;
    uint32_t box[64];

    take_bytes(s->in, box, 4 * take_below(s->in, 16));
    host_write(m->host, m->mbox_in, box, sizeof(box));
    command(s, take16(s->in) & 0xfff, take_below(s->in, 16),
            take_bool(s->in) ? m->mbox_in : take_odd(s->in), odd_number(s, 1),
            take_bool(s->in) ? m->mbox_out : take_odd(s->in));
}

/* Memory that the card reads. */
static void act_memory(State *s)
{
    Machine *machine = &s->machine[0];
    Mthca *m = machine->m;
    const MthcaMr *mrs[] = { machine->qp[RC].mr, machine->qp[SHARED].mr,
                             machine->qp[UD].mr, machine->qp[GSI].mr,
                             machine->srq.mr,    machine->cq.mr,
                             m->eq[0].mr,        machine->data };
    unsigned which = take_below(s->in, G_N_ELEMENTS(mrs) + 2);
    uint64_t at = take_below(s->in, HOST_PAGE_SIZE / 4) * 4;
    uint32_t words[4] = { 0 };
    uint64_t bus;

    if (which < G_N_ELEMENTS(mrs)) {
        bus = mthca_mr_bus(mrs[which], at);
    } else if (which == G_N_ELEMENTS(mrs)) { /* translations */
        bus = mthca_icm_bus(m, m->place[MTHCA_MTT].base) + at;
    } else { /* records */
        bus = mthca_icm_bus(m, m->place[MTHCA_UARC].base + 2 * MTHCA_UARC_SIZE +
                                   0x3f000) +
              at;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        words[i] = GUINT32_TO_BE(take_odd(s->in));
    }
    host_write(m->host, bus, words,
               MIN(4 * (1 + take_below(s->in, 4)),
                   HOST_PAGE_SIZE - bus % HOST_PAGE_SIZE));
}

/* The same between two of the card's look-ups; or memory is not there. */
static void act_plan(State *s)
{
    Machine *machine = &s->machine[0];
    uint8_t data[8];

    if (take_bool(s->in)) {
        machine_plan_failure(0, take8(s->in), 1 + take_below(s->in, 3));
        return;
    }
    take_bytes(s->in, data, sizeof(data));
    machine_plan_write(0, take8(s->in),
                       mthca_mr_bus(machine->qp[take_below(s->in, NQPS)].mr,
                                    take_below(s->in, 500) * 8),
                       data, sizeof(data));
}

static void act_doorbell(State *s)
{
    const MthcaQp *qp = take_qp(s);
    uint64_t words;

    if (take_bool(s->in)) {
        words = (uint64_t)odd_number(s, 1u << 24 | qp->sq_head << 8 | 0x0a)
                    << 32 |
                odd_number(s, qp->qpn << 8 | 4);
        host_uar_write64(victim(s), 0x2000 + MTHCA_SEND_DB,
                         GUINT64_TO_BE(words));
    } else {
        words = (uint64_t)odd_number(s, 2u << 24 | CQN) << 32 |
                odd_number(s, s->machine[0].cq.ci);
        host_uar_write64(victim(s), 0x2000 + MTHCA_CQ_DB, GUINT64_TO_BE(words));
    }
}

static void act_register(State *s)
{
    static const uint32_t registers[] = { MTHCA_EQ_ARM + 4, MTHCA_EQ_SET_CI + 8,
                                          MTHCA_EQ_SET_CI + 16, MTHCA_CLEAR_INT,
                                          MTHCA_HCR + 0x18 };
    uint32_t at = registers[take_below(s->in, G_N_ELEMENTS(registers))];

    mthca_read(s->machine[0].m, at);
    mthca_write(s->machine[0].m, at, take_odd(s->in));
}

/* A good work request of the hostile machine, or the other one's. */
static void act_send(State *s)
{
    unsigned side = take_below(s->in, 2), which = take_below(s->in, GSI);
    Machine *machine = &s->machine[side];
    static const uint8_t mgid[16] = { 0xff, 0x12, [15] = 1 };
    static const uint8_t opcodes[] = { HCA_OP_SEND, HCA_OP_RDMA_WRITE,
                                       HCA_OP_RDMA_READ, HCA_OP_ATOMIC_FA };
    bool group = take_below(s->in, 4) == 0;
    MthcaWr wr = {
        .opcode = which == UD ? HCA_OP_SEND : opcodes[take_below(s->in, 4)],
        .signalled = true,
        .raddr = take8(s->in),
        .rkey = s->machine[!side].data->key,
        .nsge = 1,
        .sge = { { take8(s->in), take_bool(s->in) ? 8 : take16(s->in) % 2000,
                   machine->data->key } },
        .dlid = group ? MLID : s->lab->host[!side].config.lid,
        .dqpn = group ? 0xffffff : s->machine[!side].qp[UD].qpn,
        .qkey = QKEY,
        .dgid = group ? mgid : NULL,
    };

    if (wr.opcode == HCA_OP_ATOMIC_FA) {
        wr.sge[0].len = 8;
    }
    mthca_post_send(machine->m, &machine->qp[which], &wr);
    mthca_ring_send(machine->m, &machine->qp[which], 1);
}

static void act_recv(State *s)
{
    Machine *machine = &s->machine[take_below(s->in, 2)];
    unsigned which = take_below(s->in, NQPS);
    MthcaSge to = { 4096, 2048, machine->data->key };

    if (which == SHARED) {
        uint32_t index = mthca_srq_post(machine->m, &machine->srq, &to, 1);

        mthca_srq_release(machine->m, &machine->srq, index);
    } else {
        mthca_post_recv(machine->m, &machine->qp[which], &to, 1);
    }
}

/* Headers of a MAD, more or less. */
static void act_headers(State *s)
{
    Machine *machine = &s->machine[0];
    HcaPacket packet = {
        .dlid = s->lab->host[1].config.lid,
        .opcode = 0x64,
        .mig_req = true,
        .pkey = 0xffff,
        .dest_qp = 1,
        .src_qp = 1,
        .qkey = 0x80010000,
        .has_grh = take_bool(s->in),
        .payload_len = 256,
    };
    uint8_t headers[HCA_MAX_HEADER_SIZE];
    uint32_t len = hca_ib_build(&packet, headers);
    MthcaSge sge[] = { { HEADERS, len, machine->data->key },
                       { PAYLOAD, 256, machine->data->key } };

    for (unsigned n = take_below(s->in, 4); n; n--) {
        headers[take_below(s->in, len)] = take8(s->in);
    }
    if (take_below(s->in, 4) == 0) {
        sge[0].len = take8(s->in);
    }
    host_write(machine->m->host, machine->data->page[0], headers, len);
    mthca_post_mlx(machine->m, &machine->qp[GSI], sge, 2, take_bool(s->in));
    mthca_ring_send(machine->m, &machine->qp[GSI], 1);
}

/* Who is good takes what has come. */
static void poll_good(State *s)
{
    Machine *machine = &s->machine[1];
    struct mthca_cqe cqe;

    while (mthca_cq_take(machine->m, &machine->cq, &cqe)) {
    }
    mthca_cq_consume(machine->m, &machine->cq);
}

static void act_time(State *s)
{
    /* A peer that is not ready is asked again each 10 us. */
    static const int64_t times[] = { NS_PER_US, 100 * NS_PER_US, NS_PER_MS,
                                     10 * NS_PER_MS };

    rest(s);
    poll_good(s);
    lab_run_for(s->lab, times[take_below(s->in, G_N_ELEMENTS(times))]);
}

static void act_cable(State *s)
{
    lab_cable(s->lab, false);
    rest(s);
    lab_cable(s->lab, true);
    rest(s);
}

/* Such cards are large, and take their time to be made. */
static void act_move(State *s)
{
    if (s->moves++ < MAX_MOVES) {
        rest(s);
        host_reload(victim(s));
    }
}

static void act_lie(State *s)
{
    if (s->moves++ < MAX_MOVES) {
        lie_in_state(s->in, victim(s));
    }
}

static void (*const actions[])(State *) = {
    act_modify,   act_revive, act_queues,   act_icm,  act_any_command,
    act_memory,   act_memory, act_plan,     act_send, act_send,
    act_doorbell, act_recv,   act_register, act_time, act_headers,
    act_cable,    act_recv,   act_move,     act_lie,
};

/* ---- what has to be true ---- */

static void check_secret(State *s)
{
    uint8_t page[HOST_PAGE_SIZE];

    host_read(&s->lab->host[1], s->secret, page, sizeof(page));
    for (unsigned i = 0; i < sizeof(page); i++) {
        if (page[i] != 0x5a) {
            fuzz_fail("memory that nobody may write has changed");
        }
    }
}

/* The good machine does; the other one after a reset. */
static void check_works(State *s)
{
    Mthca *m = s->machine[1].m;

    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL));
    mthca_free(s->machine[0].m);
    m = s->machine[0].m = mthca_new(victim(s));
    mthca_probe(m);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL));
}

static void end(State *s)
{
    machine_plan_nothing();
    rest(s);
    check_secret(s);
    check_works(s);
    for (unsigned side = 0; side < 2; side++) {
        mthca_free(s->machine[side].m);
    }
    lab_free(s->lab);
    machine_forget();
    if (meter.live) {
        fuzz_fail("the cards are gone and keep %zu bytes", meter.live);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input in = { data, size };
    State s;

    begin(&s, &in);
    while (in.left) {
        actions[take_below(&in, G_N_ELEMENTS(actions))](&s);
    }
    end(&s);
    return 0;
}
