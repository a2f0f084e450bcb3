/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choices and actions that several targets have. */
#include <inttypes.h>
#include <string.h>

#include "lib-fuzz.h"

#define MOST_SGE 3
#define MOST_INLINE 48
#define POLLS 64

static const uint8_t group[16] = { 0xff, 0x12, 0x40, 0x1b, [15] = 7 };

/* ---- choices ---- */

unsigned fuzz_take_side(Fuzz *f)
{
    return take_bool(&f->in);
}

unsigned fuzz_take_qp(Fuzz *f)
{
    return take_below(&f->in, FUZZ_NQPS);
}

/* A good guest does not send what is hidden in its own memory. */
static bool is_private(const Fuzz *f, unsigned side, uint32_t key)
{
    return f->guest[side] == FUZZ_GUEST_GOOD &&
           (key == f->mr[side][FUZZ_WRITABLE]->key ||
            key == f->mr[side][FUZZ_LOCAL]->key);
}

uint32_t fuzz_take_key(Fuzz *f, unsigned side, bool own, const Mr **mr)
{
    unsigned which = take_below(&f->in, 16);
    const Mr *known = f->mr[side][which % FUZZ_NREGIONS];
    uint32_t key = known->key;

    if (which == 15) {
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
    RDMA_HCA_OPCODE_BIND_MW,
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
    uint32_t len = wr_is_atomic(wr->opcode) ? 8 : take_below(&f->in, 2048);

    *sge = mr_sge(f->mr[side][FUZZ_ALL], 64, len);
    return 1;
}

/* One work request; its parts stay where they are. */
static void take_wr(Fuzz *f, unsigned side, SendWr *wr, Sge *sge, UdAddress *ud)
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
    wr->swap_add = wr->compare = wr->flags & 0x80;
}

void fuzz_act_send(Fuzz *f)
{
    unsigned side = fuzz_take_side(f), which = fuzz_take_qp(f);
    unsigned n = 1 + take_bool(&f->in);
    Qp *qp = f->qp[which][side];
    UdAddress ud[2];
    Sge sge[2][MOST_SGE];
    SendWr wr[2];

    if (f->guest[side] != FUZZ_GUEST_GOOD) {
        qp->sq.tail = qp->sq.head; /* what is in use is written over */
    }
    for (unsigned i = 0; i < n; i++) {
        if (which == FUZZ_UD) {
            take_address(f, side, &ud[i]);
        }
        take_wr(f, side, &wr[i], sge[i], which == FUZZ_UD ? &ud[i] : NULL);
    }
    qp_post_send(qp, wr, n);
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
    take_wr(f, side, &wr, own, which == FUZZ_UD ? &ud : NULL);
    wr.flags |= SEND_SIGNALED;
    for (unsigned n = 1 + take_below(&f->in, 8); n; n--) {
        qp_post_recv(peer, &recv, 1);
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
    unsigned side = fuzz_take_side(f);
    Qp *qp = f->qp[fuzz_take_qp(f)][side];
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
        qp_post_recv(qp, &wr, 1);
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
