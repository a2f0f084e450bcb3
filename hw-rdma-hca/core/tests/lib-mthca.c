/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-mthca.h"

#include <string.h>

#include "../../abi/rdma_hca_regs.h"

#define CMD_TIME_NS (10 * NS_PER_S)
#define POLL_TOKEN 0xffff
#define CHUNK_PAGES 64 /* of 4 KiB, to which tables are mapped */
#define MAX_LOG_CHUNK 4
#define MTT_SIZE 8
#define LOG_EQ_SIZE 7
#define PAGE_SHIFT 12
#define NUM_VECTORS 8

/* Entries of both kinds of queues have their owner in the last byte. */
#define ENTRY_SIZE 32
#define ENTRY_OWNER 31
G_STATIC_ASSERT(sizeof(struct mthca_eqe) == ENTRY_SIZE);
G_STATIC_ASSERT(sizeof(struct mthca_cqe) == ENTRY_SIZE);
G_STATIC_ASSERT(offsetof(struct mthca_eqe, owner) == ENTRY_OWNER);
G_STATIC_ASSERT(offsetof(struct mthca_cqe, owner) == ENTRY_OWNER);

/* ---- registers and commands ---- */

uint32_t mthca_read(Mthca *m, uint32_t offset)
{
    return GUINT32_SWAP_LE_BE(host_bar0_read(m->host, offset));
}

void mthca_write(Mthca *m, uint32_t offset, uint32_t value)
{
    host_bar0_write(m->host, offset, GUINT32_SWAP_LE_BE(value));
}

static uint32_t hcr(Mthca *m, uint32_t reg)
{
    return mthca_read(m, MTHCA_HCR + reg);
}

static void set_hcr(Mthca *m, uint32_t reg, uint32_t value)
{
    mthca_write(m, MTHCA_HCR + reg, value);
}

static bool is_ready(void *opaque)
{
    return !(hcr(opaque, RDMA_HCA_HCR_CTRL) & RDMA_HCA_HCR_GO);
}

typedef struct Wait {
    Mthca *m;
    struct mthca_eqe eqe;
} Wait;

static bool event_came(void *opaque)
{
    Wait *wait = opaque;

    return mthca_eq_take(wait->m, &wait->m->eq[MTHCA_EQ_CMD], &wait->eqe);
}

static uint8_t wait_event(Mthca *m, uint64_t *out)
{
    Wait wait = { .m = m };
    const struct mthca_eqe *eqe = &wait.eqe;

    g_assert_true(lab_wait(m->host->lab, event_came, &wait, CMD_TIME_NS));
    mthca_eq_arm(m, 1u << m->eq[MTHCA_EQ_CMD].eqn);
    g_assert_cmphex(eqe->type, ==, 0x0a);
    g_assert_cmphex(GUINT16_FROM_BE(eqe->cmd.token), ==, m->token);
    g_assert_true(is_ready(m));
    if (out) {
        *out = (uint64_t)GUINT32_FROM_BE(eqe->cmd.out_param_h) << 32 |
               GUINT32_FROM_BE(eqe->cmd.out_param_l);
    }
    return eqe->cmd.status;
}

static uint8_t wait_go(Mthca *m, uint64_t *out)
{
    g_assert_true(lab_wait(m->host->lab, is_ready, m, CMD_TIME_NS));
    if (out) {
        *out = (uint64_t)hcr(m, RDMA_HCA_HCR_OUT_PARAM_H) << 32 |
               hcr(m, RDMA_HCA_HCR_OUT_PARAM_L);
    }
    return hcr(m, RDMA_HCA_HCR_CTRL) >> 24;
}

uint8_t mthca_cmd(Mthca *m, uint16_t op, uint64_t in_param,
                  uint32_t in_modifier, uint8_t op_modifier, uint64_t out_param,
                  uint64_t *out)
{
    uint32_t event = m->events ? RDMA_HCA_HCR_EVENT : 0;

    m->token = m->events ? (m->token + 1) & 0x7fff : POLL_TOKEN;
    g_assert_true(is_ready(m));
    set_hcr(m, RDMA_HCA_HCR_IN_PARAM_H, in_param >> 32);
    set_hcr(m, RDMA_HCA_HCR_IN_PARAM_L, in_param);
    set_hcr(m, RDMA_HCA_HCR_IN_MODIFIER, in_modifier);
    set_hcr(m, RDMA_HCA_HCR_OUT_PARAM_H, out_param >> 32);
    set_hcr(m, RDMA_HCA_HCR_OUT_PARAM_L, out_param);
    set_hcr(m, RDMA_HCA_HCR_TOKEN, (uint32_t)m->token << 16);
    set_hcr(m, RDMA_HCA_HCR_CTRL,
            RDMA_HCA_HCR_GO | event | (uint32_t)op_modifier << 12 | op);
    return m->events ? wait_event(m, out) : wait_go(m, out);
}

/* Behind what a command has there is whatever was there before. */
uint8_t mthca_cmd_in(Mthca *m, uint16_t op, const void *inbox, size_t len,
                     uint32_t in_modifier, uint8_t op_modifier)
{
    host_fill(m->host, m->mbox_in, 0xa5, HOST_PAGE_SIZE);
    host_write(m->host, m->mbox_in, inbox, len);
    return mthca_cmd(m, op, m->mbox_in, in_modifier, op_modifier, 0, NULL);
}

uint8_t mthca_cmd_out(Mthca *m, uint16_t op, void *outbox, size_t len,
                      uint32_t in_modifier, uint8_t op_modifier)
{
    uint8_t status;

    host_fill(m->host, m->mbox_out, 0x5a, HOST_PAGE_SIZE);
    status = mthca_cmd(m, op, 0, in_modifier, op_modifier, m->mbox_out, NULL);
    host_read(m->host, m->mbox_out, outbox, len);
    return status;
}

void mthca_must(uint8_t status)
{
    g_assert_cmphex(status, ==, 0);
}

/* ---- ICM ---- */

static void put_chunk(uint64_t virt, uint64_t bus, unsigned log_pages,
                      struct mthca_icm_entry *entry)
{
    *entry = (struct mthca_icm_entry) {
        GUINT32_TO_BE(virt >> 32), GUINT32_TO_BE((uint32_t)virt),
        GUINT32_TO_BE(bus >> 32), GUINT32_TO_BE((uint32_t)bus | log_pages)
    };
}

uint8_t mthca_map(Mthca *m, uint64_t virt, uint64_t bus, unsigned log_pages)
{
    struct mthca_icm_entry entry;
    uint8_t status;

    put_chunk(virt, bus, log_pages, &entry);
    status = mthca_cmd_in(m, RDMA_HCA_CMD_MAP_ICM, &entry, sizeof(entry), 1, 0);
    for (unsigned i = 0; !status && i < 1u << log_pages; i++) {
        g_hash_table_insert(m->icm, GSIZE_TO_POINTER((virt >> PAGE_SHIFT) + i),
                            GSIZE_TO_POINTER(bus + i * HOST_PAGE_SIZE + 1));
    }
    return status;
}

uint8_t mthca_unmap(Mthca *m, uint64_t virt, unsigned npages)
{
    for (unsigned i = 0; i < npages; i++) {
        g_hash_table_remove(m->icm, GSIZE_TO_POINTER((virt >> PAGE_SHIFT) + i));
    }
    return mthca_cmd(m, RDMA_HCA_CMD_UNMAP_ICM, virt, npages, 0, 0, NULL);
}

uint64_t mthca_icm_bus(Mthca *m, uint64_t virt)
{
    gpointer bus = g_hash_table_lookup(m->icm,
                                       GSIZE_TO_POINTER(virt >> PAGE_SHIFT));

    g_assert_nonnull(bus);
    return GPOINTER_TO_SIZE(bus) - 1 + virt % HOST_PAGE_SIZE;
}

/* Memory for a chunk, aligned to its size as a page allocator has it. */
static uint64_t alloc_chunk(Mthca *m, unsigned log_pages)
{
    uint64_t size = (uint64_t)HOST_PAGE_SIZE << log_pages;
    uint64_t bus;

    do {
        bus = host_alloc(m->host, 1u << log_pages);
    } while (bus % size);
    return bus;
}

/* The first @size bytes of a table, in chunks of several sizes. */
static void map_table(Mthca *m, MthcaTable table, uint64_t size)
{
    uint64_t virt = m->place[table].base, end = virt + size;

    while (virt < end) {
        unsigned log_pages = g_rand_int_range(m->host->lab->rand, 0,
                                              MAX_LOG_CHUNK + 1);

        while (virt % ((uint64_t)HOST_PAGE_SIZE << log_pages) ||
               ((uint64_t)HOST_PAGE_SIZE << log_pages) > end - virt) {
            log_pages--;
        }
        mthca_must(mthca_map(m, virt, alloc_chunk(m, log_pages), log_pages));
        virt += (uint64_t)HOST_PAGE_SIZE << log_pages;
    }
}

static uint8_t map_area(Mthca *m, uint16_t op, unsigned pages)
{
    struct mthca_icm_entry entry[4];

    g_assert_cmpuint(pages, >=, 1);
    g_assert_cmpuint(pages, <=, G_N_ELEMENTS(entry));
    for (unsigned i = 0; i < pages; i++) {
        put_chunk(0, host_alloc(m->host, 1), 0, &entry[i]);
    }
    return mthca_cmd_in(m, op, entry, pages * sizeof(entry[0]), pages, 0);
}

/* ---- the probe ---- */

Lab *mthca_lab(uint32_t seed, uint32_t latency_ns)
{
    HcaConfig config[2];

    for (unsigned side = 0; side < 2; side++) {
        lab_config(&config[side], side);
        config[side].personality = HCA_PERSONALITY_MTHCA;
        config[side].memory_latency_ns = latency_ns;
        config[side].num_vectors = NUM_VECTORS;
    }
    return lab_new(seed, config);
}

Mthca *mthca_new(Host *host)
{
    Mthca *m = g_new0(Mthca, 1);

    m->host = host;
    m->mbox_in = host_alloc(host, 1);
    m->mbox_out = host_alloc(host, 1);
    m->icm = g_hash_table_new(NULL, NULL);
    m->mrs = g_ptr_array_new();
    m->pd = 0xabcd01; /* with a tag */
    return m;
}

void mthca_free(Mthca *m)
{
    for (unsigned i = 0; i < m->mrs->len; i++) {
        MthcaMr *mr = g_ptr_array_index(m->mrs, i);

        g_free(mr->page);
        g_free(mr);
    }
    g_ptr_array_unref(m->mrs);
    g_hash_table_unref(m->icm);
    g_free(m);
}

Lab *mthca_lab_with(Mthca **m, uint32_t seed, uint32_t latency_ns)
{
    Lab *lab = mthca_lab(seed, latency_ns);

    *m = mthca_new(&lab->host[0]);
    return lab;
}

void mthca_lab_free(Lab *lab, Mthca *m)
{
    mthca_free(m);
    lab_free(lab);
}

void mthca_query(Mthca *m)
{
    const struct mthca_fw *fw = (const void *)m->fw;

    mthca_write(m, MTHCA_RESET, 1);
    lab_run(m->host->lab);
    g_assert_cmphex(mthca_read(m, MTHCA_RESET), ==, 0);
    mthca_must(
        mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_FW, m->fw, sizeof(m->fw), 0, 0));
    g_assert_cmphex(mthca_cmd_out(m, MTHCA_CMD_ENABLE_LAM, m->lim, 16, 0, 0),
                    ==, MTHCA_STAT_LAM_NOT_PRE);
    mthca_must(map_area(m, MTHCA_CMD_MAP_FA, GUINT16_FROM_BE(fw->pages)));
    mthca_must(mthca_cmd(m, MTHCA_CMD_RUN_FW, 0, 0, 0, 0, NULL));
    mthca_must(mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_DEV_LIM, m->lim,
                             sizeof(m->lim), 0, 0));
}

/* What ib_mthca's profile has by default, but for fewer doorbell records. */
static const struct {
    uint64_t entry;
    unsigned log_num;
} profile[MTHCA_NTABLES] = {
    [MTHCA_UARC] = { MTHCA_UARC_SIZE, 3 },
    [MTHCA_MTT] = { 64, 20 },
    [MTHCA_QPC] = { MTHCA_QPC_SIZE, 16 },
    [MTHCA_RDB] = { 32, 18 },
    [MTHCA_MPT] = { MTHCA_MPT_SIZE, 17 },
    [MTHCA_CQC] = { MTHCA_CQC_SIZE, 16 },
    [MTHCA_SRQC] = { MTHCA_SRQC_SIZE, 13 },
    [MTHCA_EQPC] = { 32, 16 },
    [MTHCA_MCG] = { 256, 13 },
    [MTHCA_UAR_SCRATCH] = { 32, 11 },
    [MTHCA_EEC] = { 256, 0 },
    [MTHCA_EEEC] = { 32, 0 },
    [MTHCA_EQC] = { MTHCA_EQC_SIZE, 5 },
};

/* The larger ones first, each aligned to its size. */
static void make_profile(Mthca *m)
{
    bool placed[MTHCA_NTABLES] = { false };

    for (unsigned n = 0; n < MTHCA_NTABLES; n++) {
        unsigned next = MTHCA_NTABLES;

        for (unsigned i = 0; i < MTHCA_NTABLES; i++) {
            m->place[i].log_num = profile[i].log_num;
            m->place[i].size = MAX(profile[i].entry << profile[i].log_num,
                                   HOST_PAGE_SIZE);
            if (!placed[i] && (next == MTHCA_NTABLES ||
                               m->place[i].size > m->place[next].size)) {
                next = i;
            }
        }
        placed[next] = true;
        m->place[next].base = m->icm_size;
        m->icm_size += m->place[next].size;
    }
}

void mthca_map_tables(Mthca *m)
{
    const uint64_t chunk = (uint64_t)CHUNK_PAGES * HOST_PAGE_SIZE;
    uint64_t aux;

    make_profile(m);
    mthca_must(
        mthca_cmd(m, MTHCA_CMD_SET_ICM_SIZE, m->icm_size, 0, 0, 0, &aux));
    mthca_must(map_area(m, MTHCA_CMD_MAP_ICM_AUX, aux));
    map_table(m, MTHCA_EQC, HOST_PAGE_SIZE);
    map_table(m, MTHCA_MTT, chunk);
    map_table(m, MTHCA_MPT, chunk);
    map_table(m, MTHCA_QPC, chunk);
    map_table(m, MTHCA_EQPC, chunk);
    map_table(m, MTHCA_CQC, chunk);
    map_table(m, MTHCA_SRQC, chunk);
    map_table(m, MTHCA_MCG, m->place[MTHCA_MCG].size);
}

/* By offsets, as a driver knows them. */
static void put_init(const Mthca *m, uint8_t init[0x200])
{
    static const struct {
        MthcaTable table;
        uint16_t at;
        uint8_t log_at; /* behind @at; 0: there is none */
    } rows[] = {
        { MTHCA_QPC, 0x30, 7 },   { MTHCA_EEC, 0x40, 7 },
        { MTHCA_SRQC, 0x48, 7 },  { MTHCA_CQC, 0x50, 7 },
        { MTHCA_EQPC, 0x60, 0 },  { MTHCA_EEEC, 0x70, 0 },
        { MTHCA_EQC, 0x80, 7 },   { MTHCA_RDB, 0x90, 0 },
        { MTHCA_MCG, 0xc0, 0 },   { MTHCA_MPT, 0xf0, 0xb },
        { MTHCA_MTT, 0x100, 0 },  { MTHCA_UAR_SCRATCH, 0x130, 0 },
        { MTHCA_UARC, 0x138, 0 },
    };

    memset(init, 0, 0x200);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint64_t base = GUINT64_TO_BE(m->place[rows[i].table].base);

        memcpy(init + rows[i].at, &base, sizeof(base));
        if (rows[i].log_at) {
            init[rows[i].at + rows[i].log_at] |=
                m->place[rows[i].table].log_num;
        }
    }
    init[0x0f] = 1;    /* multi-threaded tables */
    init[0x17] = 1;    /* ports of UD address vectors */
    init[0xd3] = 8;    /* multicast: entries, their hash, the table */
    init[0xd6] = 0x10; /* 4096 */
    init[0xdb] = 13;
    init[0x129] = 6; /* UAR contexts of 256 KiB */
    init[0x12a] = 11;
}

static uint8_t physical_region(Mthca *m)
{
    uint32_t index = m->next_mpt++;
    struct mthca_mpt mpt = {
        .flags = GUINT32_TO_BE(0xf0027f00), /* all rights, PHYSICAL, REGION */
        .key = GUINT32_TO_BE(index),
        .pd = GUINT32_TO_BE(m->pd),
        .length_h = UINT32_MAX,
        .length_l = UINT32_MAX,
    };

    m->physical = index << 8;
    return mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), index, 0);
}

void mthca_init(Mthca *m)
{
    const struct mthca_dev_lim *lim = (const void *)m->lim;
    uint8_t init[0x200];

    put_init(m, init);
    mthca_must(
        mthca_cmd_in(m, RDMA_HCA_CMD_INIT_HCA, init, sizeof(init), 0, 0));
    mthca_must(mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_ADAPTER, m->adapter,
                             sizeof(m->adapter), 0, 0));
    m->next_mpt = 1u << lim->log_reserved_mpts;
    m->next_mtt = 1u << (lim->log_reserved_mtts >> 4);
    mthca_must(physical_region(m));
}

/* ---- regions ---- */

void mthca_write_mtt(Mthca *m, MthcaMr *mr)
{
    for (unsigned i = 0; i < mr->npages; i++) {
        uint64_t entry = GUINT64_TO_BE(mr->page[i] | MTHCA_MTT_PRESENT);
        uint64_t at = m->place[MTHCA_MTT].base +
                      (uint64_t)(mr->mtt + i) * MTT_SIZE;

        host_write(m->host, mthca_icm_bus(m, at), &entry, sizeof(entry));
    }
}

void mthca_put_mpt(const MthcaMr *mr, uint64_t mtt_base, uint32_t pd,
                   struct mthca_mpt *mpt)
{
    uint64_t mtt = mtt_base + (uint64_t)mr->mtt * MTT_SIZE;

    *mpt = (struct mthca_mpt) {
        .flags = GUINT32_TO_BE(0xf0027d00), /* all rights, REGION */
        .key = GUINT32_TO_BE(mr->index),
        .pd = GUINT32_TO_BE(pd),
        .length_l = GUINT32_TO_BE(mr->npages * HOST_PAGE_SIZE),
        .mtt_seg_h = GUINT32_TO_BE(mtt >> 32),
        .mtt_seg_l = GUINT32_TO_BE((uint32_t)mtt),
    };
}

static uint32_t index_of(const Mthca *m, const MthcaMr *mr)
{
    return mr->index & ((1u << m->place[MTHCA_MPT].log_num) - 1);
}

uint8_t mthca_sw2hw_mpt(Mthca *m, MthcaMr *mr)
{
    struct mthca_mpt mpt;

    mthca_put_mpt(mr, m->place[MTHCA_MTT].base, m->pd, &mpt);
    return mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt),
                        index_of(m, mr), 0);
}

uint8_t mthca_hw2sw_mpt(Mthca *m, MthcaMr *mr)
{
    return mthca_cmd(m, RDMA_HCA_CMD_HW2SW_MPT, 0, index_of(m, mr), 1, 0, NULL);
}

MthcaMr *mthca_mr(Mthca *m, unsigned npages, uint32_t tag)
{
    MthcaMr *mr = g_new0(MthcaMr, 1);

    mr->index = m->next_mpt++ | tag << m->place[MTHCA_MPT].log_num;
    mr->key = mr->index << 8 | mr->index >> 24;
    mr->mtt = m->next_mtt;
    mr->npages = npages;
    mr->page = g_new(uint64_t, npages);
    m->next_mtt += (npages + 7) / 8 * 8;
    for (unsigned i = 0; i < npages; i++) {
        mr->page[i] = host_alloc(m->host, 1);
    }
    g_ptr_array_add(m->mrs, mr);
    mthca_write_mtt(m, mr);
    mthca_must(mthca_sw2hw_mpt(m, mr));
    return mr;
}

/* ---- event queues ---- */

void mthca_put_eqc(const MthcaEq *eq, uint32_t pd, uint8_t pin,
                   struct mthca_eqc *eqc)
{
    *eqc = (struct mthca_eqc) {
        .flags = GUINT32_TO_BE(0x01040900), /* software's, TR, armed */
        .logsize = GUINT32_TO_BE(eq->log_size << 24),
        .intr = GUINT32_TO_BE(pin ? pin : 0x80 | (eq->eqn - 1) % MTHCA_NUM_EQS),
        .pd = GUINT32_TO_BE(pd),
        .lkey = GUINT32_TO_BE(eq->mr->key),
    };
}

uint64_t mthca_mr_bus(const MthcaMr *mr, uint64_t at)
{
    return mr->page[at / HOST_PAGE_SIZE] + at % HOST_PAGE_SIZE;
}

static uint64_t entry_bus(const MthcaMr *mr, unsigned log_size, uint32_t index)
{
    return mthca_mr_bus(mr, (index & ((1u << log_size) - 1)) * ENTRY_SIZE);
}

void mthca_ring_clear(Mthca *m, const MthcaMr *mr, unsigned log_size)
{
    uint8_t fresh[ENTRY_SIZE] = { [ENTRY_OWNER] = MTHCA_OWNER_HW };

    for (uint32_t i = 0; i < 1u << log_size; i++) {
        host_write(m->host, entry_bus(mr, log_size, i), fresh, sizeof(fresh));
    }
}

bool mthca_ring_take(Mthca *m, const MthcaMr *mr, unsigned log_size,
                     uint32_t *ci, void *entry)
{
    const uint8_t owner = MTHCA_OWNER_HW;
    uint64_t bus = entry_bus(mr, log_size, *ci);

    host_read(m->host, bus, entry, ENTRY_SIZE);
    if (((uint8_t *)entry)[ENTRY_OWNER] & MTHCA_OWNER_HW) {
        return false;
    }
    host_write(m->host, bus + ENTRY_OWNER, &owner, sizeof(owner));
    ++*ci;
    return true;
}

uint8_t mthca_sw2hw_eq(Mthca *m, MthcaEq *eq)
{
    struct mthca_eqc eqc;

    eq->ci = 0;
    mthca_ring_clear(m, eq->mr, eq->log_size);
    mthca_put_eqc(eq, m->pd, m->intx ? m->adapter[0x10] : 0, &eqc);
    return mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), eq->eqn,
                        0);
}

uint8_t mthca_hw2sw_eq(Mthca *m, MthcaEq *eq)
{
    uint8_t eqc[MTHCA_EQC_SIZE];

    return mthca_cmd_out(m, RDMA_HCA_CMD_HW2SW_EQ, eqc, sizeof(eqc), eq->eqn,
                         0);
}

bool mthca_eq_take(Mthca *m, MthcaEq *eq, struct mthca_eqe *eqe)
{
    if (!mthca_ring_take(m, eq->mr, eq->log_size, &eq->ci, eqe)) {
        return false;
    }
    mthca_write(m, MTHCA_EQ_SET_CI + eq->eqn * MTHCA_EQ_SET_CI_STRIDE, eq->ci);
    return true;
}

void mthca_eq_arm(Mthca *m, uint32_t eqs)
{
    mthca_write(m, MTHCA_EQ_ARM + 4, eqs);
}

static uint8_t map_eq(Mthca *m, unsigned eq, uint64_t mask, uint32_t how)
{
    return mthca_cmd(m, RDMA_HCA_CMD_MAP_EQ, mask, how | m->eq[eq].eqn, 0, 0,
                     NULL);
}

/* ib_mthca's: asynchronous ones, and those of SRQs; and commands. */
#define ASYNC_MASK 0x1f43feull
#define CMD_MASK (1ull << 0x0a)

void mthca_make_eqs(Mthca *m)
{
    for (unsigned i = 0; i < MTHCA_NUM_EQS; i++) {
        m->eq[i] = (MthcaEq) {
            .eqn = 1 + i,
            .log_size = LOG_EQ_SIZE,
            .mr = mthca_mr(m, 1, 0),
        };
        mthca_must(mthca_sw2hw_eq(m, &m->eq[i]));
    }
    mthca_must(map_eq(m, MTHCA_EQ_ASYNC, ASYNC_MASK & ~CMD_MASK, 0));
    mthca_must(map_eq(m, MTHCA_EQ_CMD, CMD_MASK, 0));
    mthca_eq_arm(m, 7u << 1);
    m->events = true;
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_NOP, 0, 0x1f, 0, 0, NULL));
}

void mthca_probe(Mthca *m)
{
    mthca_query(m);
    mthca_map_tables(m);
    mthca_init(m);
    mthca_make_eqs(m);
}

/* Tables go in units of 64 pages, however many of them there are. */
static void unmap_table(Mthca *m, MthcaTable table)
{
    const MthcaPlace *place = &m->place[table];

    for (uint64_t virt = place->base; virt < place->base + place->size;
         virt += (uint64_t)CHUNK_PAGES * HOST_PAGE_SIZE) {
        mthca_must(mthca_unmap(m, virt, CHUNK_PAGES));
    }
}

void mthca_remove(Mthca *m)
{
    static const MthcaTable chunked[] = {
        MTHCA_SRQC, MTHCA_MCG, MTHCA_CQC, MTHCA_EQPC,
        MTHCA_QPC,  MTHCA_MPT, MTHCA_MTT,
    };

    m->events = false;
    mthca_must(map_eq(m, MTHCA_EQ_ASYNC, ASYNC_MASK & ~CMD_MASK,
                      RDMA_HCA_MAP_EQ_UNMAP));
    mthca_must(map_eq(m, MTHCA_EQ_CMD, CMD_MASK, RDMA_HCA_MAP_EQ_UNMAP));
    for (unsigned i = 0; i < MTHCA_NUM_EQS; i++) {
        mthca_must(mthca_hw2sw_eq(m, &m->eq[i]));
        mthca_must(mthca_hw2sw_mpt(m, m->eq[i].mr));
    }
    mthca_must(
        mthca_cmd(m, RDMA_HCA_CMD_HW2SW_MPT, 0, m->physical >> 8, 1, 0, NULL));
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(chunked); i++) {
        unmap_table(m, chunked[i]);
    }
    mthca_must(mthca_unmap(m, m->place[MTHCA_EQC].base, 1));
    mthca_must(mthca_cmd(m, MTHCA_CMD_UNMAP_ICM_AUX, 0, 0, 0, 0, NULL));
    mthca_must(mthca_cmd(m, MTHCA_CMD_UNMAP_FA, 0, 0, 0, 0, NULL));
}
