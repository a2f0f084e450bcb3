/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choices and actions that several targets have. */
#include <inttypes.h>
#include <string.h>

#include "../cxtmgt/cxtmgt_int.h"
#include "lib-fuzz.h"
#include "lib-lie.h"
#include "lib-make.h"

#define MOST_SGE 3
#define MOST_INLINE 48
#define POLLS 64

static const uint8_t group[16] = { 0xff, 0x12, 0x40, 0x1b, [15] = 7 };

/* ---- choices ---- */

unsigned fuzz_take_side(Fuzz *f)
{
    return take_bool(&f->in);
}

/* Mostly one with a receive queue of its own. */
unsigned fuzz_take_qp(Fuzz *f)
{
    uint8_t which = take8(&f->in);

    return which < 160 ? which % FUZZ_SHARED
                       : FUZZ_SHARED + which % (FUZZ_NQPS - FUZZ_SHARED);
}

Qp *fuzz_take_sender(Fuzz *f, unsigned side)
{
    Qp *qp = f->qp[fuzz_take_qp(f)][side];

    return qp->sq.entries ? qp : f->qp[FUZZ_RC][side];
}

Srq *fuzz_srq_of(const Fuzz *f, unsigned side, unsigned which)
{
    if (which == FUZZ_SHARED) {
        return f->srq[FUZZ_SRQ][side];
    }
    return which == (side ? FUZZ_XRC_BACK : FUZZ_XRC)
               ? f->srq[FUZZ_SRQ_XRC][side]
               : NULL;
}

/* A good guest does not send what is hidden in its own memory. */
static bool is_private(const Fuzz *f, unsigned side, uint32_t key)
{
    return f->guest[side] == FUZZ_GUEST_GOOD &&
           (key == f->mr[side][FUZZ_WRITABLE]->key ||
            key == f->mr[side][FUZZ_LOCAL]->key ||
            key == f->claimed[side]->key);
}

uint32_t fuzz_take_mem_key(Fuzz *f, unsigned side, unsigned *which)
{
    uint8_t kind = take8(&f->in);
    uint32_t key = f->mem_key[side][kind % FUZZ_NMEM_KEYS];

    if (which) {
        *which = kind % FUZZ_NMEM_KEYS;
    }
    /* As it began, or one of the next three. */
    return key + (kind >> 6);
}

uint32_t fuzz_take_key(Fuzz *f, unsigned side, bool own, const Mr **mr)
{
    unsigned which = take_below(&f->in, 16), mem;
    const Mr *known = f->mr[side][which % FUZZ_NREGIONS];
    uint32_t key = known->key;

    if (which == 13) {
        key = fuzz_take_mem_key(f, side, &mem);
        known = f->mem[side][mem];
    } else if (which == 15) {
        key = take_bool(&f->in) ? take_below(&f->in, 64) : take_odd(&f->in);
    } else if (which == 14) {
        key ^= 1u << take_below(&f->in, 32);
    } else if (which >= 10) {
        known = f->mr[side][FUZZ_ALL];
        key = known->key;
    }
    if (own && is_private(f, side, key)) {
        known = f->mr[side][FUZZ_ALL];
        key = known->key;
    }
    *mr = which >= 14 ? NULL : known;
    return key;
}

uint64_t fuzz_take_va(Fuzz *f, const Mr *mr)
{
    uint8_t kind = take_below(&f->in, 8);

    if (!mr || kind == 7) {
        return take_odd(&f->in);
    }
    if (kind == 6) { /* around the end */
        return mr->va + mr->len - 8 + take_below(&f->in, 16);
    }
    if (kind == 5) { /* around the start */
        return mr->va - 8 + take_below(&f->in, 16);
    }
    return mr->va + take_below(&f->in, mr->len);
}

uint32_t fuzz_take_len(Fuzz *f)
{
    switch (take_below(&f->in, 8)) {
    case 0:
        return 0;
    case 1:
        return take_odd(&f->in);
    case 2: /* packets around full ones */
        return (take_below(&f->in, 24) + 1) * 256 - 1 + take_below(&f->in, 3);
    default:
        return take_below(&f->in, 256);
    }
}

/* ---- work ---- */

static const uint8_t opcodes[] = {
    RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
    RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
    RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_ATOMIC_CS,
    RDMA_HCA_OPCODE_ATOMIC_FA,  RDMA_HCA_OPCODE_NOP,
    RDMA_HCA_OPCODE_BIND_MW,    RDMA_HCA_OPCODE_REG_MR,
    RDMA_HCA_OPCODE_LOCAL_INV,  RDMA_HCA_OPCODE_SEND_INV,
    RDMA_HCA_OPCODE_FLUSH,      RDMA_HCA_OPCODE_ATOMIC_WRITE,
};

static unsigned take_sges(Fuzz *f, unsigned side, Sge *sge)
{
    unsigned n = take_below(&f->in, MOST_SGE + 1);

    for (unsigned i = 0; i < n; i++) {
        const Mr *mr;

        sge[i].lkey = fuzz_take_key(f, side, true, &mr);
        sge[i].va = fuzz_take_va(f, mr);
        sge[i].len = fuzz_take_len(f);
    }
    return n;
}

static void take_address(Fuzz *f, unsigned side, UdAddress *ud)
{
    uint8_t kind = take8(&f->in);
    const Pair *pair = f->pair;

    *ud = (UdAddress) { .qkey = 0x11111111 };
    if ((kind & 7) == 7) {
        ud_address_to_group(ud, group);
        ud->dlid = 0xc001;
        return;
    }
    ud->roce.document = kind & 8;
    ud->roce.sgid_index = (kind >> 4 & 7) % NUM_GIDS;
    ud_address_to(ud, pair->drv[side], pair->drv[!side]);
    ud->dqpn = f->qp[FUZZ_UD][!side]->qpn;
    ud->grh |= (kind & 7) == 6;
    if ((kind & 7) == 5) { /* to itself */
        ud_address_to(ud, pair->drv[side], pair->drv[side]);
        ud->dqpn = f->qp[FUZZ_UD][side]->qpn;
    }
    if (kind & 0x80) {
        ud->dqpn ^= take8(&f->in);
        ud->qkey = take_odd(&f->in);
    }
}

/* Bits of SendWr's flags that the driver has no use for. */
enum {
    WR_ODD_MEMORY = 0x10,
    WR_ODD_REMOTE = 0x20,
};

/* A piece of the region for everything. */
static unsigned good_sge(Fuzz *f, unsigned side, const SendWr *wr, Sge *sge)
{
    uint32_t len = wr_is_of_eight(wr->opcode) ? 8 : take_below(&f->in, 2048);

    *sge = mr_sge(f->mr[side][FUZZ_ALL], 64, len);
    return 1;
}

/* A list of pages, or of pieces if the region is one of those. */
static SendWr take_reg(Fuzz *f, unsigned side, uint32_t key, bool pieces)
{
    Mr fast = pieces ? *f->pieces[side] : *f->fast[side];
    uint64_t len = fuzz_take_len(f), va;
    uint32_t access;

    if (pieces && !take_below(&f->in, 4)) {
        len = FUZZ_PIECES_LEN;
    }
    fast.key = key;
    va = FUZZ_MEM_VA + take_below(&f->in, 0x4000);
    access = (ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND | RDMA_HCA_ACCESS_FLUSH) ^
             take_below(&f->in, 0x40);
    return pieces ? mem_reg_pieces_wr(&fast, f->piece_list[side], FUZZ_NPIECES,
                                      va, len, access)
                  : mem_reg_wr(&fast, f->list[side], va, len, access);
}

/* What operations on memory have behind next_unit. */
static void take_unit(Fuzz *f, unsigned side, SendWr *wr)
{
    unsigned which;
    uint32_t key = fuzz_take_mem_key(f, side, &which);
    SendWr op;

    switch (wr->opcode) {
    case RDMA_HCA_OPCODE_LOCAL_INV:
        op = mem_inv_wr(key);
        break;
    case RDMA_HCA_OPCODE_REG_MR:
        op = take_reg(f, side, key, which == FUZZ_PIECES);
        break;
    default:
        op = mem_bind_wr(1 + take_bool(&f->in), key, f->bindable[side],
                         fuzz_take_va(f, f->bindable[side]), fuzz_take_len(f),
                         take_below(&f->in, 0x40));
        break;
    }
    memcpy(wr->unit, op.unit, sizeof(wr->unit));
    wr->unit_size = op.unit_size;
    wr->nsge = 0;
}

/* Good, if the first byte is 0, where the region allows it. */
static void take_flush(Fuzz *f, unsigned side, SendWr *wr)
{
    const Mr *mr = f->mr[!side][FUZZ_WRITABLE];

    wr->flush = take8(&f->in) ^ RDMA_HCA_FLUSH_TYPE_GLOBAL;
    wr->flush_len = fuzz_take_len(f);
    if (!(wr->flags & WR_ODD_REMOTE)) {
        wr->rkey = mr->key;
        wr->raddr = mr->va;
    }
}

static bool is_mem_op(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_LOCAL_INV ||
           opcode == RDMA_HCA_OPCODE_REG_MR ||
           opcode == RDMA_HCA_OPCODE_BIND_MW;
}

/* XRC: the queue of the peer's that it names. */
static void take_srqn(Fuzz *f, unsigned side, SendWr *wr)
{
    wr->xrc = true;
    wr->srqn = f->srq[FUZZ_SRQ_XRC][!side]->srqn;
    if (wr->flags & WR_ODD_REMOTE) {
        wr->srqn = take_below(&f->in, 10);
    }
}

/* One work request; its parts stay where they are. */
static void take_wr(Fuzz *f, unsigned side, unsigned which, SendWr *wr,
                    Sge *sge, UdAddress *ud)
{
    static const uint8_t data[MOST_INLINE] = { 1, 2, 3 };
    const Mr *mr;

    *wr = (SendWr) {
        .wr_id = 1,
        .opcode = opcodes[take_below(&f->in, G_N_ELEMENTS(opcodes))],
        .flags = take8(&f->in),
        .imm_be = 0x01020304,
        .ud = ud,
    };
    wr->nsge = wr->flags & WR_ODD_MEMORY ? take_sges(f, side, sge)
                                         : good_sge(f, side, wr, sge);
    wr->sge = sge;
    wr->inline_data = data;
    wr->inline_len = wr->nsge * (MOST_INLINE / MOST_SGE);
    mr = f->mr[!side][FUZZ_ALL];
    wr->rkey = mr->key;
    wr->raddr = (mr->va + 0x808) & ~UINT64_C(7);
    if (wr->flags & WR_ODD_REMOTE) {
        wr->rkey = fuzz_take_key(f, !side, false, &mr);
        wr->raddr = fuzz_take_va(f, mr);
    }
    if (wr->opcode == RDMA_HCA_OPCODE_SEND_INV) {
        wr->rkey = fuzz_take_mem_key(f, !side, NULL);
    }
    if (wr->opcode == RDMA_HCA_OPCODE_FLUSH) {
        take_flush(f, side, wr);
    }
    wr->swap_add = wr->compare = wr->flags & 0x80;
    if (is_mem_op(wr->opcode)) {
        take_unit(f, side, wr);
    } else if (which >= FUZZ_XRC) {
        take_srqn(f, side, wr);
    }
}

void fuzz_post(Fuzz *f, unsigned side, unsigned which, unsigned n)
{
    Qp *qp = f->qp[which][side];
    UdAddress ud[FUZZ_MOST_WRS];
    Sge sge[FUZZ_MOST_WRS][MOST_SGE];
    SendWr wr[FUZZ_MOST_WRS];

    if (f->guest[side] != FUZZ_GUEST_GOOD) {
        qp->sq.tail = qp->sq.head; /* what is in use is written over */
    }
    for (unsigned i = 0; i < n; i++) {
        if (which == FUZZ_UD) {
            take_address(f, side, &ud[i]);
        }
        take_wr(f, side, which, &wr[i], sge[i],
                which == FUZZ_UD ? &ud[i] : NULL);
    }
    qp_post_send(qp, wr, n);
}

void fuzz_act_send(Fuzz *f)
{
    unsigned side = fuzz_take_side(f), which = fuzz_take_qp(f);

    fuzz_post(f, side, which, 1 + take_bool(&f->in));
}

/* A receive for @which; a guest that is not good writes over what is in use. */
static void post_recv(Fuzz *f, unsigned side, unsigned which, const RecvWr *wr)
{
    Srq *srq = fuzz_srq_of(f, side, which);
    Qp *qp = f->qp[which][side];

    if (srq) {
        if (f->guest[side] != FUZZ_GUEST_GOOD && !srq_room(srq)) {
            srq_forget(srq);
        }
        srq_post(srq, wr, 1);
    } else if (qp->rq.entries) {
        qp_post_recv(qp, wr, 1);
    }
}

/* Requests that are good, and what the peer has to have ready. */
void fuzz_act_exchange(Fuzz *f)
{
    unsigned side = fuzz_take_side(f), which = fuzz_take_qp(f);
    Qp *qp = f->qp[which][side], *peer = f->qp[which][!side];
    Sge sge = mr_sge(f->mr[!side][FUZZ_ALL], 0, 4096), own[MOST_SGE];
    RecvWr recv = { .wr_id = 1, .nsge = 1, .sge = &sge };
    UdAddress ud;
    SendWr wr;

    if (f->guest[side] != FUZZ_GUEST_GOOD) {
        qp->sq.tail = qp->sq.head;
    }
    if (f->guest[!side] != FUZZ_GUEST_GOOD) {
        peer->rq.tail = peer->rq.head;
    }
    if (which == FUZZ_UD) {
        take_address(f, side, &ud);
    }
    take_wr(f, side, which, &wr, own, which == FUZZ_UD ? &ud : NULL);
    wr.flags |= SEND_SIGNALED;
    for (unsigned n = 1 + take_below(&f->in, 8); n; n--) {
        post_recv(f, !side, which, &recv);
        qp_post_send(qp, &wr, 1);
    }
    if (take_bool(&f->in)) {
        fuzz_rest(f);
    }
}

/* More events than an event queue has room for. */
void fuzz_act_arm(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);

    for (unsigned n = take8(&f->in); n; n--) {
        cq_arm(f->pair->cq[side], false);
    }
}

void fuzz_act_recv(Fuzz *f)
{
    unsigned side = fuzz_take_side(f), which = fuzz_take_qp(f);
    Qp *qp = f->qp[which][side];
    unsigned n = 1 + take_below(&f->in, 8);

    if (f->guest[side] != FUZZ_GUEST_GOOD) {
        qp->rq.tail = qp->rq.head;
    }
    for (unsigned i = 0; i < n; i++) {
        Sge sge[MOST_SGE];
        RecvWr wr = { .wr_id = i, .sge = sge };

        if (take_below(&f->in, 4) == 3) {
            wr.nsge = take_sges(f, side, sge);
        } else {
            sge[0] = mr_sge(f->mr[side][FUZZ_ALL], 0, 2048);
            wr.nsge = 1;
        }
        post_recv(f, side, which, &wr);
    }
}

void fuzz_act_poll(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);
    uint8_t what = take8(&f->in);
    Driver *drv = f->pair->drv[side];
    Cq *cq = f->pair->cq[side];
    Wc wc;

    if (f->guest[side] != FUZZ_GUEST_GOOD) {
        return;
    }
    for (unsigned n = 0; n < POLLS && cq_poll(cq, &wc); n++) {
        continue;
    }
    if (what & 1) {
        cq_arm(cq, what & 2);
    }
    if (what & 4) {
        driver_poll_eq(drv, EQ_COMP);
        driver_poll_eq(drv, EQ_ASYNC);
        g_queue_clear_full(&drv->events, g_free);
    }
}

void fuzz_read_uar(Fuzz *f, uint32_t offset)
{
    uint64_t value = host_uar_read64(&f->lab->host[0], offset);

    if (value && (value != (uint64_t)f->lab->now ||
                  offset % RDMA_HCA_UAR_PAGE_SIZE != RDMA_HCA_CLOCK)) {
        fuzz_fail("%#" PRIx64 " is read at %#x of BAR 2", value, offset);
    }
}

/* ---- time ---- */

void fuzz_act_turns(Fuzz *f)
{
    for (unsigned n = take_below(&f->in, 32) + 1; n && lab_step(f->lab); n--) {
        continue;
    }
}

void fuzz_act_rest(Fuzz *f)
{
    fuzz_rest(f);
}

void fuzz_act_time(Fuzz *f)
{
    static const int64_t ns[] = { NS_PER_US, 20 * NS_PER_US, NS_PER_MS,
                                  10 * NS_PER_MS };

    fuzz_sleep(f, ns[take_below(&f->in, G_N_ELEMENTS(ns))]);
}

/* ---- queue pairs ---- */

static bool has_driver(const Fuzz *f, unsigned side)
{
    return f->guest[side] != FUZZ_GUEST_DRIVER;
}

static void take_attr(Fuzz *f, QpAttr *attr)
{
    uint8_t kind = take8(&f->in);

    fuzz_attr(attr);
    attr->mtu = 1 + (kind & 3);
    if (kind & 4) {
        attr->access = take8(&f->in);
        attr->max_rd_atomic = take_below(&f->in, 17);
        attr->max_dest_rd_atomic = take_below(&f->in, 17);
    }
    if (kind & 8) {
        attr->sq_psn = attr->rq_psn = 0xfffff8;
    }
    if (kind & 16) {
        attr->roce.document = true;
    } else {
        attr->roce.sgid_index = (kind >> 5) % NUM_GIDS;
        attr->grh = kind & 32;
    }
}

void fuzz_act_revive(Fuzz *f)
{
    unsigned which = fuzz_take_qp(f);
    QpAttr attr;

    take_attr(f, &attr);
    for (unsigned side = 0; side < 2; side++) {
        if (has_driver(f, side)) {
            qp_to_err(f->qp[which][side]); /* a tag comes back */
            qp_to_rst(f->qp[which][side]);
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        if (has_driver(f, side)) {
            fuzz_bring_up(f, side, which, &attr);
        }
    }
}

void fuzz_act_modify(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);
    Qp *qp = f->qp[fuzz_take_qp(f)][side];
    uint8_t what = take_below(&f->in, 6);
    struct rdma_hca_qpc qpc;

    if (!has_driver(f, side)) {
        return;
    }
    switch (what) {
    case 0:
        qp_to_err(qp);
        break;
    case 1:
    case 2:
        qp_to_sqd(qp, what == 1);
        break;
    case 3:
        qp_sqd_to_rts(qp);
        break;
    case 4:
        qp_sqe_to_rts(qp);
        break;
    default:
        qp_query(qp, &qpc);
        break;
    }
}

void fuzz_act_group(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);
    unsigned n = take_below(&f->in, 9);
    const Qp *member[8];

    for (unsigned i = 0; i < G_N_ELEMENTS(member); i++) {
        member[i] = f->qp[FUZZ_UD][side];
    }
    if (n < 8) {
        member[n] = f->qp[FUZZ_RC][side];
    }
    if (has_driver(f, side)) {
        driver_write_mgm(f->pair->drv[side], take_below(&f->in, 4), group,
                         member, n);
    }
}

void fuzz_act_cable(Fuzz *f)
{
    lab_cable(f->lab, false);
    if (take_bool(&f->in)) {
        fuzz_rest(f);
    }
    lab_cable(f->lab, true);
}

/* ---- what a driver has given its card ---- */

/* How far an event queue has been read: as far as it was written. */
static void give_room(Host *host, uint32_t eqn)
{
    const HcaEq *eq = hca_eq_find(host->hca->cm, eqn);

    if (eq) {
        host_bar0_write(host, RDMA_HCA_EQ_DB + eqn * RDMA_HCA_EQ_DB_STRIDE,
                        RDMA_HCA_EQ_DB_ARM | RDMA_HCA_PREP(RDMA_HCA_EQ_DB_CI,
                                                           eq->producer_index));
    }
}

void fuzz_act_events(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);
    uint8_t what = take8(&f->in);

    if (what & 1) {
        give_room(&f->lab->host[side],
                  what & 2 ? FUZZ_COMP_EQN : FUZZ_SPARE_EQN);
    } else if (has_driver(f, side)) {
        fuzz_make_eq(f->mr[side][FUZZ_ALL], FUZZ_SPARE_EQN, what >> 1 & 3);
        driver_cmd(f->pair->drv[side], RDMA_HCA_CMD_MAP_EQ, UINT32_MAX,
                   FUZZ_SPARE_EQN, 0, 0, NULL);
    }
}

void fuzz_act_multicast(Fuzz *f)
{
    unsigned from = fuzz_take_side(f);
    Qp *qp = f->qp[FUZZ_UD][from];
    UdAddress ud = { .qkey = 0x11111111 };
    Sge sge = mr_sge(f->mr[from][FUZZ_ALL], 64, take8(&f->in));
    SendWr wr = {
        .opcode = RDMA_HCA_OPCODE_SEND, .ud = &ud, .nsge = 1, .sge = &sge
    };

    for (unsigned side = 0; side < 2; side++) {
        Qp *member = f->qp[FUZZ_UD][side];
        Sge to = mr_sge(f->mr[side][FUZZ_ALL], 0, 2048);
        RecvWr recv = { .nsge = 1, .sge = &to };

        if (has_driver(f, side)) {
            driver_write_mgm(f->pair->drv[side], 0, group,
                             (const Qp *const *)&member, 1);
        }
        qp_post_recv(member, &recv, 1);
    }
    ud_address_to_group(&ud, group);
    ud.dlid = 0xc001;
    if (f->roce) {
        ud.roce.sgid_index = take_below(&f->in, NUM_GIDS);
    }
    qp_post_send(qp, &wr, 1);
    fuzz_rest(f);
}

void fuzz_act_gid(Fuzz *f)
{
    unsigned side = fuzz_take_side(f), index = take_below(&f->in, NUM_GIDS);
    bool there = take_bool(&f->in);
    Driver *drv = f->pair->drv[side];
    Gid gid = drv->gid[index];

    if (f->roce && has_driver(f, side)) {
        driver_set_gid(drv, index, there ? &gid : NULL);
        drv->gid[index] = gid; /* where it belongs */
    }
}

void fuzz_bring_back(Fuzz *f, const Mr *mr)
{
    uint32_t index = mr_index(mr);
    struct rdma_hca_mpt mpt;

    if (!driver_cmd_out(mr->drv, RDMA_HCA_CMD_QUERY_MPT, &mpt, sizeof(mpt),
                        index, 0)) {
        driver_cmd_in(mr->drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), index,
                      0);
    }
}

void fuzz_act_region(Fuzz *f)
{
    static const uint8_t which[] = { FUZZ_READABLE, FUZZ_WRITABLE, FUZZ_ALL };
    unsigned side = fuzz_take_side(f);
    const Mr *mr = f->mr[side][which[take_below(&f->in, G_N_ELEMENTS(which))]];

    if (has_driver(f, side) && driver_cmd(mr->drv, RDMA_HCA_CMD_HW2SW_MPT, 0,
                                          mr_index(mr), 0, 0, NULL)) {
        fuzz_bring_back(f, mr);
    }
}

void fuzz_act_lie(Fuzz *f)
{
    lie_in_state(&f->in, &f->lab->host[0]);
}

void fuzz_act_reload(Fuzz *f)
{
    host_reload(&f->lab->host[take_bool(&f->in)]);
}
