/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A card with the interface of an InfiniHost III Lx as its driver meets it:
 * probe and remove in their order, ICM that comes and goes, MTT entries that
 * the driver writes, event queues by registers; and what no driver does.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "../mad/mad.h"
#include "../wire/packet.h"
#include "lib-card.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

static uint8_t nop(Mthca *m)
{
    return mthca_cmd(m, RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL);
}

/* ---- a driver's life ---- */

/* Nothing of one life is left in the next, and nothing is mapped in between. */
static void check_lives(uint32_t latency)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 21, latency);
    const Host *host = &lab->host[0];

    for (unsigned life = 0; life < 3; life++) {
        uint64_t messages = host->msix[MTHCA_EQ_CMD];

        mthca_probe(m);
        g_assert_cmpuint(host->msix[MTHCA_EQ_CMD], ==, messages + 1);
        for (unsigned i = 0; i < 300; i++) {
            g_assert_cmphex(nop(m), ==, 0);
        }
        g_assert_cmpuint(host->msix[MTHCA_EQ_CMD], ==, messages + 301);
        mthca_remove(m);
        g_assert_cmpuint(hca_v2p_live_pages(host->hca->v2p), ==, 0);
        g_assert_cmpuint(hca_cxt_live_pages(host->hca->cm), ==, 0);
        g_assert_cmpuint(hca_v2p_live_mpts(host->hca->v2p), ==, 0);
        g_assert_cmpuint(hca_cxt_live(host->hca->cm)->eqs, ==, 0);
        mthca_free(m);
        m = mthca_new(&lab->host[0]);
    }
    mthca_lab_free(lab, m);
}

static void test_lives(void)
{
    check_lives(0);
}

static void test_lives_late(void)
{
    check_lives(3000);
}

/* The other one probes while nothing of the first was taken back. */
static void test_reset(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);

    for (unsigned life = 0; life < 3; life++) {
        mthca_probe(m);
        mthca_free(m);
        m = mthca_new(&lab->host[0]);
    }
    mthca_query(m);
    g_assert_cmpuint(hca_v2p_live_pages(lab->host[0].hca->v2p), ==, 0);
    mthca_lab_free(lab, m);
}

/*
 * From the write that resets on it is away, as nothing else says when that is over;
 * a card with a register for it is not.
 */
static void test_away(void)
{
    Lab *lab = mthca_lab(8, 0), *native = lab_new(8, NULL);
    Hca *hca = lab->host[0].hca;

    g_assert_false(hca_is_away(hca));
    g_assert_true(hca_bar0_write(hca, MTHCA_RESET, GUINT32_SWAP_LE_BE(1)));
    g_assert_true(hca_is_away(hca));
    hca_run(hca);
    g_assert_false(hca_is_away(hca));
    hca = native->host[0].hca;
    g_assert_true(hca_bar0_write(hca, RDMA_HCA_RESET, 1));
    g_assert_false(hca_is_away(hca));
    lab_free(native);
    lab_free(lab);
}

/* ---- the port, by MADs ---- */

static uint8_t mad_ifc(Mthca *m, uint8_t mad[256])
{
    uint8_t status;

    host_fill(m->host, m->mbox_in, 0, HOST_PAGE_SIZE);
    host_write(m->host, m->mbox_in, mad, 256);
    status = mthca_cmd(m, RDMA_HCA_CMD_MAD_IFC, m->mbox_in, 1, 3, m->mbox_out,
                       NULL);
    host_read(m->host, m->mbox_out, mad, 256);
    return status;
}

/* A Get of the subnet management agent. */
static void get_attribute(Mthca *m, uint16_t attribute, uint32_t modifier,
                          uint8_t mad[256])
{
    memset(mad, 0, 256);
    mad[0] = 1;    /* base version */
    mad[1] = 0x01; /* LID routed */
    mad[2] = 1;    /* class version */
    mad[3] = 0x01; /* Get */
    mad[16] = attribute >> 8;
    mad[17] = attribute;
    mad[23] = modifier;
    g_assert_cmphex(mad_ifc(m, mad), ==, 0);
    g_assert_cmphex(mad[3], ==, 0x81);
}

static void test_port(void)
{
    const struct rdma_hca_set_ib set = {
        .cap_mask = GUINT32_TO_BE(1u << 1), /* IsSM */
    };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    uint8_t mad[256];

    mthca_probe(m);
    get_attribute(m, 0x11, 0, mad);      /* NodeInfo */
    g_assert_cmphex(mad[64 + 2], ==, 1); /* a channel adapter, */
    g_assert_cmphex(mad[64 + 3], ==, 1); /* of one port */
    get_attribute(m, 0x15, 1, mad);      /* PortInfo: down, and polling */
    g_assert_cmphex(mad[64 + 32] & 0xf, ==, 1);
    g_assert_cmphex(
        mthca_cmd(m, RDMA_HCA_CMD_INIT_IB, m->mbox_in, 1, 0, 0, NULL), ==, 0);
    lab_cable(lab, true);
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_SET_IB, &set, sizeof(set), 1, 0), ==, 0);
    get_attribute(m, 0x15, 1, mad);
    g_assert_cmphex(mad[64 + 23] & 2, ==, 2);
    g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_INIT_IB, 0, 2, 0, 0, NULL), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL), ==,
                    0);
    g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL), ==,
                    0);
    mthca_lab_free(lab, m);
}

/* Events of the port since the last call. */
static unsigned port_events(Mthca *m, uint8_t subtype)
{
    struct mthca_eqe eqe;
    unsigned n = 0;

    lab_run(m->host->lab);
    while (mthca_eq_take(m, &m->eq[MTHCA_EQ_ASYNC], &eqe)) {
        g_assert_cmphex(eqe.type, ==, HCA_EVENT_PORT_CHANGE);
        g_assert_cmphex(eqe.subtype, ==, subtype);
        n++;
    }
    return n;
}

/*
 * The peer's port closes, and this one's: only of the former there is an event, as
 * ib_mthca closes a port when nobody is left whom it could tell.
 */
static void test_port_events(void)
{
    MthcaPair pair;
    Mthca *m, *peer;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_UD);
    m = pair.side[0].m;
    peer = pair.side[1].m;
    g_assert_cmpuint(port_events(m, MTHCA_EQE_PORT_ACTIVE), ==, 1);
    mthca_must(mthca_cmd(peer, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL));
    g_assert_cmpuint(port_events(m, MTHCA_EQE_PORT_DOWN), ==, 1);
    mthca_must(mthca_cmd(peer, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL));
    g_assert_cmpuint(port_events(m, MTHCA_EQE_PORT_ACTIVE), ==, 1);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL));
    g_assert_cmpuint(port_events(m, MTHCA_EQE_PORT_DOWN), ==, 0);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL));
    g_assert_cmpuint(port_events(m, MTHCA_EQE_PORT_ACTIVE), ==, 1);
    g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_CLOSE_IB, 0, 2, 0, 0, NULL), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    mthca_pair_free(&pair);
}

/* QP 0 and QP 1 are two numbers behind the reserved ones, or none. */
static void test_special(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    const Hca *hca = lab->host[0].hca;

    mthca_probe(m);
    for (unsigned which = 0; which < 2; which++) {
        g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0,
                                  8 + 2 * which, which, 0, NULL),
                        ==, 0);
    }
    g_assert_cmpuint(hca_cxtmgt_special(hca->cm, HCA_SPECIAL_SMI), ==, 8);
    g_assert_cmpuint(hca_cxtmgt_special(hca->cm, HCA_SPECIAL_GSI), ==, 10);
    g_assert_cmphex(
        mthca_cmd(m, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0, 12, 2, 0, NULL), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    for (unsigned which = 0; which < 2; which++) {
        g_assert_cmphex(
            mthca_cmd(m, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0, 0, which, 0, NULL),
            ==, 0);
    }
    mthca_lab_free(lab, m);
}

/* ---- MTT entries ---- */

/* Whether an event that happens now is written to the first page of @mr. */
static bool is_written(Mthca *m, MthcaEq *eq, uint64_t page)
{
    struct mthca_eqe eqe;
    HcaEvent event = { .type = HCA_EVENT_PORT_CHANGE, .number = 1 };
    HcaEventPlace place = { 0 };

    g_assert_cmphex(
        mthca_cmd(m, RDMA_HCA_CMD_MAP_EQ, 1u << 9, eq->eqn, 0, 0, NULL), ==, 0);
    hca_eq_event(m->host->hca->cm, &event, &place);
    lab_run(m->host->lab);
    host_read(m->host, page, &eqe, sizeof(eqe));
    return eqe.owner == MTHCA_OWNER_SW && eqe.type == HCA_EVENT_PORT_CHANGE;
}

/*
 * The same entries name other pages for the next region: the card goes by what
 * the processor has written, and never writes to them.
 */
static void check_mtt(uint32_t latency)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 3, latency);
    MthcaEq eq = { .eqn = 9, .log_size = 5 };

    mthca_probe(m);
    eq.mr = mthca_mr(m, 3, 0x5a5);
    for (unsigned round = 0; round < 20; round++) {
        uint64_t old = eq.mr->page[0];

        g_assert_cmphex(mthca_sw2hw_eq(m, &eq), ==, 0);
        g_assert_true(is_written(m, &eq, old));
        g_assert_cmphex(mthca_hw2sw_eq(m, &eq), ==, 0);
        g_assert_cmphex(mthca_hw2sw_mpt(m, eq.mr), ==, 0);
        host_fill(m->host, old, 0xee, HOST_PAGE_SIZE);
        for (unsigned i = 0; i < eq.mr->npages; i++) {
            eq.mr->page[i] = host_alloc(m->host, 1);
        }
        mthca_write_mtt(m, eq.mr);
        /* With the next tag, as a driver has it. */
        eq.mr->index += 1u << m->place[MTHCA_MPT].log_num;
        eq.mr->key = eq.mr->index << 8 | eq.mr->index >> 24;
        g_assert_cmphex(mthca_sw2hw_mpt(m, eq.mr), ==, 0);
        g_assert_cmphex(mthca_sw2hw_eq(m, &eq), ==, 0);
        g_assert_true(is_written(m, &eq, eq.mr->page[0]));
        g_assert_false(is_written(m, &eq, old));
        g_assert_cmphex(mthca_hw2sw_eq(m, &eq), ==, 0);
    }
    mthca_lab_free(lab, m);
}

static void test_mtt(void)
{
    check_mtt(0);
}

static void test_mtt_late(void)
{
    check_mtt(2000);
}

/* An entry that is not there: the queue fails, and nothing else. */
static void test_mtt_absent(void)
{
    const uint64_t none = 0;
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaEq eq = { .eqn = 9, .log_size = 5 };

    mthca_probe(m);
    eq.mr = mthca_mr(m, 1, 0);
    g_assert_cmphex(mthca_hw2sw_mpt(m, eq.mr), ==, 0);
    host_write(m->host,
               mthca_icm_bus(m, m->place[MTHCA_MTT].base + 8 * eq.mr->mtt),
               &none, sizeof(none));
    g_assert_cmphex(mthca_sw2hw_mpt(m, eq.mr), ==, 0);
    g_assert_cmphex(mthca_sw2hw_eq(m, &eq), ==, 0);
    g_assert_false(is_written(m, &eq, eq.mr->page[0]));
    g_assert_cmpint(hca_eq_peek(m->host->hca->cm, 9)->status, ==,
                    HCA_QUEUE_WRITE_FAIL);
    g_assert_cmphex(nop(m), ==, 0);
    mthca_lab_free(lab, m);
}

/* Addresses in ICM that are not there, or not at an entry. */
static void test_mtt_places(void)
{
    static const struct {
        uint32_t high, low;
        uint8_t status;
    } rows[] = {
        { 0, 4, RDMA_HCA_STAT_BAD_PARAM },
        { 1, 0, RDMA_HCA_STAT_BAD_PARAM },
        { UINT32_MAX, 0xfffffff8, RDMA_HCA_STAT_BAD_PARAM },
        { 0, 0xfffffff8, 0 }, /* the last one of the space, for one page */
    };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaMr *mr;
    struct mthca_mpt mpt;

    mthca_probe(m);
    mr = mthca_mr(m, 1, 0);
    g_assert_cmphex(mthca_hw2sw_mpt(m, mr), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        mthca_put_mpt(mr, 0, m->pd, &mpt);
        mpt.mtt_seg_h = GUINT32_TO_BE(rows[i].high);
        mpt.mtt_seg_l = GUINT32_TO_BE(rows[i].low);
        g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_MPT, &mpt,
                                     sizeof(mpt), mr->index, 0),
                        ==, rows[i].status);
    }
    mthca_lab_free(lab, m);
}

/* All 32 bits of a key count, wherever its entry is. */
static void test_keys(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaMr *mr;
    HcaMatchInfo info = { .flags = HCA_V2P_RELATIVE_ADDR, .len = 8 };
    uint64_t data;

    mthca_probe(m);
    info.pd = m->pd;
    for (uint32_t tag = 1; tag < 1u << 15; tag <<= 1) {
        mr = mthca_mr(m, 1, tag);
        for (unsigned bit = 0; bit < 32; bit++) {
            info.key = mr->key ^ 1u << bit;
            g_assert_cmpint(
                hca_v2p_read(m->host->hca->v2p, HCA_V2P_RWM, &info, &data), ==,
                HCA_V2P_KEY_ERR);
        }
        info.key = mr->key;
        g_assert_cmpint(
            hca_v2p_read(m->host->hca->v2p, HCA_V2P_RWM, &info, &data), ==,
            HCA_V2P_SUCCESS);
    }
    mthca_lab_free(lab, m);
}

/* The entry as it was is given back to who asks for it. */
static void test_hw2sw_mpt(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaMr *mr;
    struct mthca_mpt mpt, back;

    mthca_probe(m);
    mr = mthca_mr(m, 2, 3);
    mthca_put_mpt(mr, m->place[MTHCA_MTT].base, m->pd, &mpt);
    mpt.flags &= GUINT32_TO_BE(0x0fffffff);
    g_assert_cmphex(mthca_cmd_out(m, RDMA_HCA_CMD_HW2SW_MPT, &back,
                                  sizeof(back), mr->index & 0x1ffff, 0),
                    ==, 0);
    g_assert_cmpmem(&mpt, sizeof(mpt), &back, sizeof(back));
    g_assert_cmphex(mthca_hw2sw_mpt(m, mr), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    mthca_lab_free(lab, m);
}

/* ---- ICM ---- */

/* Entries of regions go with their page, and are there again on another one. */
static void test_icm_moves(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    const uint64_t virt = 0xf0000000;
    uint64_t pages;
    struct mthca_icm_entry entry[2];

    mthca_probe(m);
    pages = hca_v2p_live_pages(m->host->hca->v2p);
    /* A hole, a chunk, a chunk over it and beyond; and all of it, and more. */
    g_assert_cmphex(mthca_unmap(m, virt, 64), ==, 0);
    g_assert_cmphex(mthca_map(m, virt + 4096, host_alloc(m->host, 1), 0), ==,
                    0);
    g_assert_cmpuint(hca_v2p_live_pages(m->host->hca->v2p), ==, pages + 1);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bus = host_alloc(m->host, 1);

        entry[i] = (struct mthca_icm_entry) {
            0, GUINT32_TO_BE((uint32_t)virt + i * 4096),
            GUINT32_TO_BE(bus >> 32), GUINT32_TO_BE((uint32_t)bus)
        };
    }
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 2, 0), ==,
        0);
    g_assert_cmpuint(hca_v2p_live_pages(m->host->hca->v2p), ==, pages + 2);
    g_assert_cmpuint(hca_cxt_live_pages(m->host->hca->cm), ==, pages + 2);
    g_assert_cmphex(mthca_unmap(m, virt, 64), ==, 0);
    g_assert_cmpuint(hca_v2p_live_pages(m->host->hca->v2p), ==, pages);
    mthca_lab_free(lab, m);
}

/* A table's page goes, and with it what was cached of its entries. */
static void test_icm_writes_back(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaMr *mr;
    uint64_t at, bus;
    struct mthca_mpt entry;

    mthca_probe(m);
    m->next_mpt += HOST_PAGE_SIZE / MTHCA_MPT_SIZE; /* not that of the EQs */
    mr = mthca_mr(m, 1, 1);
    at = m->place[MTHCA_MPT].base + (mr->index & 0x1ffff) * 64ull;
    bus = mthca_icm_bus(m, at);
    g_assert_cmphex(mthca_unmap(m, at & ~4095ull, 1), ==, 0);
    host_read(m->host, bus, &entry, sizeof(entry));
    g_assert_cmphex(GUINT32_FROM_BE(entry.key), ==, mr->index);
    /* It is no entry any more that can be taken back, but its number is free. */
    g_assert_cmphex(mthca_hw2sw_mpt(m, mr), ==, 0);
    mthca_lab_free(lab, m);
}

static void test_icm_refused(void)
{
    static const struct {
        uint64_t virt;
        uint64_t page;
    } wrong[] = {
        { 0xf0000000, 0x1001 },        /* two pages at an odd one */
        { 0xf0001000, 0x2001 },        /* the same on the card's side */
        { 0xf0000800, 0x1000 },        /* no page */
        { UINT64_C(1) << 32, 0x1000 }, /* behind the space */
        { UINT64_C(1) << 63, 0x1000 },
        { 0, 21 }, /* more than there is */
        { 0, 31 },
    };
    struct mthca_icm_entry entry[256];
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    uint64_t pages;

    mthca_probe(m);
    pages = hca_v2p_live_pages(m->host->hca->v2p);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        entry[0] = (struct mthca_icm_entry) {
            GUINT32_TO_BE(wrong[i].virt >> 32),
            GUINT32_TO_BE((uint32_t)wrong[i].virt),
            GUINT32_TO_BE(wrong[i].page >> 32),
            GUINT32_TO_BE((uint32_t)wrong[i].page),
        };
        g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_MAP_ICM, entry,
                                     sizeof(entry[0]), 1, 0),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    /* Each of them would do alone. */
    for (unsigned i = 0; i < 256; i++) {
        entry[i] = (struct mthca_icm_entry) { .page_l = GUINT32_TO_BE(20) };
    }
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 256, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_MAP_ICM, entry, 16, 257, 0),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_MAP_ICM, entry, 16, 0, 0), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(mthca_unmap(m, UINT64_C(1) << 32, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(mthca_unmap(m, 0, 0), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpuint(hca_v2p_live_pages(m->host->hca->v2p), ==, pages);
    g_assert_cmphex(
        mthca_cmd(m, MTHCA_CMD_SET_ICM_SIZE, UINT64_MAX, 0, 0, 0, NULL), ==,
        RDMA_HCA_STAT_EXCEED_LIM);
    mthca_lab_free(lab, m);
}

/* INIT_HCA of a host whose atomics would have another order, or twice. */
static void test_init_refused(void)
{
    uint8_t init[0x200] = { 0 };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);

    mthca_query(m);
    init[0x17] = 2;
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    init[0x17] = 0;
    init[0x37] = 17; /* more QPs than there are */
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_EXCEED_LIM);
    init[0x37] = 16;
    init[0xfb] = 18; /* of regions */
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_EXCEED_LIM);
    init[0xfb] = 17;
    init[0xdb] = 14; /* of groups */
    init[0xd7] = 1;
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    init[0xdb] = 2; /* or more hashes than groups */
    init[0xd7] = 5;
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    init[0xd7] = 4;
    init[0x87] = 6; /* more EQs than there are: room, as iPXE has it */
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        0);
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_BAD_SYS_STATE);
    mthca_lab_free(lab, m);
}

/* ---- registers ---- */

/* An EQ is armed by one register, for many; its index has all its bits. */
static void test_eq_registers(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    Hca *hca = lab->host[0].hca;
    const Host *host = &lab->host[0];
    HcaEvent event = { .type = HCA_EVENT_PORT_CHANGE, .number = 1 };
    HcaEventPlace place = { 0 };
    MthcaEq *eq;
    uint64_t messages;

    mthca_probe(m);
    eq = &m->eq[MTHCA_EQ_ASYNC];
    messages = host->msix[MTHCA_EQ_ASYNC];
    hca_eq_event(hca->cm, &event, &place);
    hca_eq_event(hca->cm, &event, &place);
    lab_run(lab);
    g_assert_cmpuint(host->msix[MTHCA_EQ_ASYNC], ==, messages + 1);
    /* With entries in it, at once, and each time. */
    mthca_eq_arm(m, 1u << eq->eqn);
    lab_run(lab);
    g_assert_cmpuint(host->msix[MTHCA_EQ_ASYNC], ==, messages + 2);
    /* Of all EQs; those that are not there are no matter. */
    mthca_eq_arm(m, UINT32_MAX);
    lab_run(lab);
    g_assert_cmpuint(host->msix[MTHCA_EQ_ASYNC], ==, messages + 3);
    g_assert_cmpuint(card_counter(hca, "cxtmgt_db_bad_eqn"), ==, 29);
    /* Indices that cannot be: behind, beyond, and alike in 24 bits. */
    for (unsigned i = 0; i < 3; i++) {
        static const uint32_t wrong[] = { UINT32_MAX, 3, 0x01000002 };

        mthca_write(m, MTHCA_EQ_SET_CI + 8 * eq->eqn, wrong[i]);
        lab_run(lab);
        g_assert_cmpuint(card_counter(hca, "cxtmgt_db_bad_ci"), ==, i + 1);
    }
    mthca_write(m, MTHCA_EQ_SET_CI + 8 * eq->eqn, 2);
    mthca_eq_arm(m, 1u << eq->eqn);
    lab_run(lab);
    g_assert_cmpuint(host->msix[MTHCA_EQ_ASYNC], ==, messages + 3);
    /* What lies between the words is no register. */
    mthca_write(m, MTHCA_EQ_SET_CI + 8 * eq->eqn + 4, 1);
    mthca_write(m, MTHCA_EQ_ARM, UINT32_MAX);
    lab_run(lab);
    g_assert_cmpuint(card_counter(hca, "cxtmgt_db_bad_ci"), ==, 3);
    g_assert_cmpuint(hca_eq_peek(hca->cm, eq->eqn)->arm, ==, HCA_EQ_ARMED);
    mthca_lab_free(lab, m);
}

/* In the other order of bytes nothing happens; and nothing is where others have it. */
static void test_order(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    Host *host = &lab->host[0];

    mthca_probe(m);
    host_bar0_write(host, MTHCA_RESET, 1);
    host_bar0_write(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL, RDMA_HCA_HCR_GO);
    host_bar0_write(host, RDMA_HCA_EQ_DB + 4, RDMA_HCA_EQ_DB_ARM | 77);
    lab_run(lab);
    g_assert_cmphex(host_bar0_read(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL), ==,
                    0);
    g_assert_cmphex(nop(m), ==, 0);
    mthca_lab_free(lab, m);
}

/* Every opcode with anything behind it: an answer, and the card goes on. */
static void test_commands_at_random(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    GRand *rand = lab->rand;
    uint8_t box[512];

    mthca_probe(m);
    for (unsigned round = 0; round < 20000; round++) {
        uint16_t op = g_rand_boolean(rand) ? g_rand_int(rand) % 0x48
                                           : 0xff0 | g_rand_int(rand) % 16;
        uint64_t out = g_rand_boolean(rand) ? m->mbox_out : g_rand_int(rand);

        if (op == RDMA_HCA_CMD_CLOSE_HCA || op == RDMA_HCA_CMD_UNMAP_ICM ||
            op == RDMA_HCA_CMD_MAP_EQ || op == RDMA_HCA_CMD_HW2SW_EQ ||
            op == RDMA_HCA_CMD_HW2SW_MPT || op == RDMA_HCA_CMD_MAP_ICM) {
            continue; /* they would take away what says how it ended */
        }
        random_fill(rand, box, sizeof(box));
        host_write(m->host, m->mbox_in, box, sizeof(box));
        mthca_cmd(m, op, m->mbox_in,
                  g_rand_boolean(rand) ? g_rand_int(rand)
                                       : g_rand_int(rand) % 64,
                  g_rand_int_range(rand, 0, 16), out, NULL);
    }
    g_assert_cmphex(nop(m), ==, 0);
    mthca_lab_free(lab, m);
}

/*
 * The pin in place of messages: raised with an entry, lowered by one register, as
 * the machine keeps it.
 */
static void test_pin(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    Host *host = &lab->host[0];
    uint8_t eqc[MTHCA_EQC_SIZE];

    m->intx = true;
    mthca_probe(m);
    g_assert_true(host->pin);
    for (unsigned v = 0; v < MTHCA_NUM_EQS; v++) {
        g_assert_cmpuint(host->msix[v], ==, 0);
    }
    mthca_must(mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_EQ, eqc, sizeof(eqc),
                             m->eq[MTHCA_EQ_CMD].eqn, 0));
    g_assert_cmphex(eqc[0x17], ==, m->adapter[0x10]);
    lab_run(lab);
    host->pin = false;
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL));
    g_assert_true(host->pin);
    g_assert_true(hca_has_pin(host->hca));
    for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
        g_assert_cmpint(hca_bar0_clears_pin(host->hca, at), ==,
                        at == MTHCA_CLEAR_INT || at == MTHCA_CLEAR_INT + 4);
    }
    mthca_remove(m);
    mthca_lab_free(lab, m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/probe/lives", test_lives);
    test_add("/mthca/probe/lives-late", test_lives_late);
    test_add("/mthca/probe/reset", test_reset);
    test_add("/mthca/probe/away", test_away);
    test_add("/mthca/probe/port", test_port);
    test_add("/mthca/probe/port-events", test_port_events);
    test_add("/mthca/probe/special", test_special);
    test_add("/mthca/probe/init-refused", test_init_refused);
    test_add("/mthca/mtt/other-pages", test_mtt);
    test_add("/mthca/mtt/other-pages-late", test_mtt_late);
    test_add("/mthca/mtt/absent", test_mtt_absent);
    test_add("/mthca/mtt/places", test_mtt_places);
    test_add("/mthca/mpt/keys", test_keys);
    test_add("/mthca/mpt/given-back", test_hw2sw_mpt);
    test_add("/mthca/icm/moves", test_icm_moves);
    test_add("/mthca/icm/writes-back", test_icm_writes_back);
    test_add("/mthca/icm/refused", test_icm_refused);
    test_add("/mthca/registers/eqs", test_eq_registers);
    test_add("/mthca/registers/pin", test_pin);
    test_add("/mthca/registers/order", test_order);
    test_add("/mthca/commands/at-random", test_commands_at_random);
    return g_test_run();
}
