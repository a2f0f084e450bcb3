/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-box.h"

uint8_t box_send(Scene *s, const Box *box, const uint32_t *words)
{
    __be32 inbox[BOX_MAX_WORDS];

    for (unsigned i = 0; i < box->nwords; i++) {
        inbox[i] = GUINT32_TO_BE(words[i]);
    }
    return driver_cmd_in(s->drv, box->op, inbox, box->nwords * 4,
                         box->in_modifier, box->op_modifier);
}

void box_put64(uint32_t *words, unsigned word, uint64_t value)
{
    words[word] = RDMA_HCA_HI32(value);
    words[word + 1] = RDMA_HCA_LO32(value);
}

void box_words(uint32_t *words, const void *entry, size_t size)
{
    const __be32 *from = entry;

    for (size_t i = 0; i < size / sizeof(*from); i++) {
        words[i] = GUINT32_FROM_BE(from[i]);
    }
}

static const Field mpt_fields[] = {
    /* Without it all of this is a window's, of which nothing but its key counts. */
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_REGION, .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_FREE, .high = 0),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_FAST_REG, .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_PIECES, .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_NULL, .high = 0),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_DEV_MEM, .high = 0),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_ACCESS_ON_DEMAND, .high = 0),
    /* With the right of a peer to write. */
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_ACCESS_LOCAL_WRITE, .low = 1,
          .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_PHYSICAL, .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_SW_OWNS, .high = 15),
    FIELD(rdma_hca_mpt, page_size, ALL, .high = 19),
    FIELD(rdma_hca_mpt, key, ((1u << LOG_MPTS) - 1) << 8, .low = SPARE_MPT,
          .high = SPARE_MPT),
    FIELD(rdma_hca_mpt, pd, ALL, .high = (1u << LOG_PDS) - 1),
    FIELD(rdma_hca_mpt, length_h, ALL, .high = 0),
    FIELD(rdma_hca_mpt, length_l, ALL, .high = MR_PAGES * HOST_PAGE_SIZE),
    FIELD(rdma_hca_mpt, mtt_seg_h, ALL, .high = 0),
    FIELD(rdma_hca_mpt, mtt_seg_l, ALL, .high = (1u << LOG_MTTS) - 4),
    FIELD(rdma_hca_mpt, mtt_sz, ALL, .low = 4, .high = ALL, .or_zero = true),
};

void box_make_mpt(Scene *s, uint32_t *words)
{
    struct rdma_hca_mpt mpt = scene_mpt(s, 0x10000, 4 * HOST_PAGE_SIZE, 0);

    mpt.key = GUINT32_TO_BE((SPARE_MPT | 0xabc << LOG_MPTS) << 8 | 0xd);
    mpt.mtt_sz = GUINT32_TO_BE(MR_PAGES);
    box_words(words, &mpt, sizeof(mpt));
}

void box_finish_mpt(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_MPT, 0, SPARE_MPT,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

static const Field mtt_fields[] = {
    { .name = "start_index_h",
      .word = BOX_MTT_START,
      .mask = ALL,
      .bad = RDMA_HCA_STAT_BAD_INDEX },
    { .name = "start_index_l",
      .word = BOX_MTT_START + 1,
      .mask = ALL,
      .high = (1u << LOG_MTTS) - 4,
      .bad = RDMA_HCA_STAT_BAD_INDEX },
};

static void make_mtt(Scene *s, uint32_t *words)
{
    words[BOX_MTT_START + 1] = SPARE_MTT;
}

/* The entries may be in use: those that were there come back. */
static struct rdma_hca_mtt_mailbox *saved_mtts;

static void prepare_mtt(Scene *s, const uint32_t *words)
{
    uint64_t index = (uint64_t)words[BOX_MTT_START] << 32 |
                     words[BOX_MTT_START + 1];

    saved_mtts = g_malloc0(BOX_MTT_WORDS * 4);
    if (driver_cmd(s->drv, RDMA_HCA_CMD_READ_MTT, index, 4, 0, s->drv->mbox_out,
                   NULL) == RDMA_HCA_STAT_OK) {
        host_read(s->host, s->drv->mbox_out, saved_mtts, BOX_MTT_WORDS * 4);
    }
}

static void finish_mtt(Scene *s, const uint32_t *words, uint8_t status)
{
    if (!status) {
        EXPECT(scene_command_in(s, RDMA_HCA_CMD_WRITE_MTT, saved_mtts,
                                BOX_MTT_WORDS * 4, 4),
               OK);
    }
    g_clear_pointer(&saved_mtts, g_free);
}

static const Field eqc_fields[] = {
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_STATUS, .high = 0),
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_OWNER, .high = 15),
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_TR, .low = 1, .high = 1),
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_STATE, .low = 1, .high = 3),
    FIELD(rdma_hca_eqc, start_l, ALL, .high = ALL, .step = RDMA_HCA_EQE_SIZE),
    FIELD(rdma_hca_eqc, logsize, RDMA_HCA_EQC_LOGSIZE,
          .high = HCA_MAX_LOG_EQ_SIZE),
    FIELD(rdma_hca_eqc, msix_vector, RDMA_HCA_EQC_VECTOR,
          .high = NUM_VECTORS - 1),
    FIELD(rdma_hca_eqc, pd, ALL, .high = (1u << LOG_PDS) - 1),
    FIELD(rdma_hca_eqc, consumer_index, ALL, .high = 0),
    FIELD(rdma_hca_eqc, producer_index, ALL, .high = 0),
};

void box_make_eqc(Scene *s, uint32_t *words)
{
    struct rdma_hca_eqc eqc = scene_eqc(s, 4);

    box_words(words, &eqc, sizeof(eqc));
}

void box_finish_eqc(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

static const Field cqc_fields[] = {
    FIELD(rdma_hca_cqc, flags, RDMA_HCA_CQC_STATUS, .high = 0),
    FIELD(rdma_hca_cqc, flags, RDMA_HCA_CQC_TR, .low = 1, .high = 1),
    FIELD(rdma_hca_cqc, flags, RDMA_HCA_CQC_STATE,
          .set = 1u << RDMA_HCA_CQ_STATE_DISARMED |
                 1u << RDMA_HCA_CQ_STATE_ARMED |
                 1u << RDMA_HCA_CQ_STATE_ARMED_SOLICITED),
    FIELD(rdma_hca_cqc, start_l, ALL, .high = ALL, .step = RDMA_HCA_CQE_SIZE),
    FIELD(rdma_hca_cqc, logsize_usrpage, RDMA_HCA_CQC_LOGSIZE,
          .high = HCA_MAX_LOG_CQ_SIZE),
    FIELD(rdma_hca_cqc, logsize_usrpage, RDMA_HCA_CQC_UAR,
          .high = RDMA_HCA_NUM_UARS - 1),
    FIELD(rdma_hca_cqc, comp_eqn, ALL, .low = 1, .high = NUM_EQS),
    FIELD(rdma_hca_cqc, pd, ALL, .high = (1u << LOG_PDS) - 1),
    FIELD(rdma_hca_cqc, ci_db_l, ALL, .high = ALL, .step = 4),
};

void box_make_cqc(Scene *s, uint32_t *words)
{
    struct rdma_hca_cqc cqc = scene_cqc(s, 4);

    box_words(words, &cqc, sizeof(cqc));
}

void box_finish_cqc(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

const Box box_cqc = BOX(SW2HW_CQ, rdma_hca_cqc, cqc_fields,
                        .in_modifier = SPARE_CQN, .make = box_make_cqc,
                        .finish = box_finish_cqc);

/* XRC takes a CQ, too, which is that of all good contexts here. */
static const Field srqc_fields[] = {
    FIELD(rdma_hca_srqc, flags, RDMA_HCA_SRQC_STATUS, .high = 0),
    FIELD(rdma_hca_srqc, flags, RDMA_HCA_SRQC_XRC, .high = 1),
    FIELD(rdma_hca_srqc, flags, RDMA_HCA_SRQC_ENTRY_SZ, .low = 5, .high = 9),
    FIELD(rdma_hca_srqc, len, ALL, .low = 1, .high = 512 << LOG_SRQ_WQES,
          .step = 512),
    FIELD(rdma_hca_srqc, pd, ALL, .high = (1u << LOG_PDS) - 1),
    FIELD(rdma_hca_srqc, db_l, ALL, .high = ALL, .step = 4),
};

static void make_srqc(Scene *s, uint32_t *words)
{
    struct rdma_hca_srqc srqc = good_srqc(s->pair->pd[0], s->pair->mr[0]->key,
                                          16 << 9, 9, UINT64_C(1) << 32 | 4096);

    srqc.cqn = GUINT32_TO_BE(s->pair->cq[0]->cqn);
    box_words(words, &srqc, sizeof(srqc));
}

static void finish_srqc(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_SRQ, 0, SPARE_SRQN,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

static const Field resize_fields[] = {
    FIELD(rdma_hca_resize_cq, logsize, RDMA_HCA_RESIZE_CQ_LOGSIZE,
          .high = HCA_MAX_LOG_CQ_SIZE),
};

static void make_resize(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_resize_cq, logsize)] = RDMA_HCA_PREP(
        RDMA_HCA_RESIZE_CQ_LOGSIZE, 5);
    words[WORD_OF(rdma_hca_resize_cq, lkey)] = s->pair->mr[0]->key;
}

static void prepare_resize(Scene *s, const uint32_t *words)
{
    uint32_t cqc[BOX_MAX_WORDS] = { 0 };

    box_make_cqc(s, cqc);
    EXPECT(box_send(s, &box_cqc, cqc), OK);
}

static void finish_resize(Scene *s, const uint32_t *words, uint8_t status)
{
    box_finish_cqc(s, words, RDMA_HCA_STAT_OK);
}

const Box boxes_open[] = {
    BOX(SW2HW_MPT, rdma_hca_mpt, mpt_fields, .in_modifier = SPARE_MPT,
        .make = box_make_mpt, .finish = box_finish_mpt),
    { .name = "WRITE_MTT",
      .op = RDMA_HCA_CMD_WRITE_MTT,
      .in_modifier = 4,
      .nwords = BOX_MTT_WORDS,
      .fields = mtt_fields,
      .nfields = G_N_ELEMENTS(mtt_fields),
      .make = make_mtt,
      .prepare = prepare_mtt,
      .finish = finish_mtt },
    BOX(SW2HW_EQ, rdma_hca_eqc, eqc_fields, .in_modifier = SPARE_EQN,
        .make = box_make_eqc, .finish = box_finish_eqc),
    BOX(SW2HW_CQ, rdma_hca_cqc, cqc_fields, .in_modifier = SPARE_CQN,
        .make = box_make_cqc, .finish = box_finish_cqc),
    BOX(SW2HW_SRQ, rdma_hca_srqc, srqc_fields, .in_modifier = SPARE_SRQN,
        .make = make_srqc, .finish = finish_srqc),
    BOX(RESIZE_CQ, rdma_hca_resize_cq, resize_fields, .in_modifier = SPARE_CQN,
        .make = make_resize, .prepare = prepare_resize,
        .finish = finish_resize),
};

const unsigned num_boxes_open = G_N_ELEMENTS(boxes_open);

const Box *box_find(uint16_t op)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(boxes_open); i++) {
        if (boxes_open[i].op == op) {
            return &boxes_open[i];
        }
    }
    g_assert_not_reached();
}
