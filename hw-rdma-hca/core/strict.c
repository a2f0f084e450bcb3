/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The strict mode: what is told, and once. */
#include "strict.h"

#include <libdeflate.h>
#include <string.h>

#include "cxtmgt/cxtmgt.h"
#include "service.h"

#define ACK_TIMEOUT_UNIT_NS 4096 /* IBA 9.7.6.1.3 */

/* Until when packets of a QP that has gone may be on their way. */
typedef struct Gone {
    uint32_t qpn;
    int64_t until;
} Gone;

struct HcaStrict {
    Gone *gone; /* the last one of each index of the table of QPs */
};

static const struct {
    const char *name;
    const char *text;
} kinds[HCA_STRICT_NKINDS] = {
    [HCA_STRICT_SQ_OVERRUN] = { "sq-overrun",
                                "a send is posted in the place of one that is "
                                "not done" },
    [HCA_STRICT_NO_RECEIVE] = { "no-receive",
                                "a message comes for which no receive is "
                                "posted yet" },
    [HCA_STRICT_PAYLOAD] = { "payload-changed",
                             "memory was written while it was being sent" },
    [HCA_STRICT_KEY_GOING] = { "key-going",
                               "the peer uses a key whose invalidation is "
                               "posted" },
    [HCA_STRICT_KEY_READ] = { "key-read",
                              "the peer invalidates a key by which it still "
                              "reads" },
    [HCA_STRICT_RD_ATOMIC] = { "rd-atomic",
                               "the peer's max_rd_atomic is more than "
                               "max_dest_rd_atomic here" },
    [HCA_STRICT_PSN_ALIKE] = { "psn-alike", "sq_psn and rq_psn are the same" },
    [HCA_STRICT_QPN_SOON] = { "qpn-soon",
                              "packets of this number's last life may be on "
                              "their way" },
    [HCA_STRICT_CQ_SMALL] = { "cq-small",
                              "the CQ has less room than its QPs can "
                              "complete" },
};

HcaStrict *hca_strict_new(const HcaConfig *config)
{
    HcaStrict *strict;

    if (!config->strict) {
        return NULL;
    }
    strict = g_new0(HcaStrict, 1);
    strict->gone = g_new0(Gone, 1u << config->log_qps);
    return strict;
}

void hca_strict_free(HcaStrict *strict)
{
    if (strict) {
        g_free(strict->gone);
        g_free(strict);
    }
}

void hca_strict_reset(HcaStrict *strict, const HcaConfig *config)
{
    if (strict) {
        memset(strict->gone, 0, sizeof(Gone) << config->log_qps);
    }
}

const char *hca_strict_name(uint64_t kind)
{
    return kind < HCA_STRICT_NKINDS ? kinds[kind].name : "?";
}

void hca_strict_tell(Hca *hca, HcaQp *qp, HcaStrictKind kind, uint32_t index)
{
    g_autofree char *text = NULL;

    if (qp->strict_told >> kind & 1) {
        return;
    }
    qp->strict_told |= 1u << kind;
    hca_trace(hca, HCA_TRACE_STRICT, qp->qpn, kind, index, 0);
    text = g_strdup_printf("strict: QP 0x%x, %s (index %u): %s", qp->qpn,
                           kinds[kind].name, index, kinds[kind].text);
    hca->host.ops->warn(hca->host.opaque, text);
}

uint32_t hca_strict_sum(const struct iovec *iov, unsigned iovcnt)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < iovcnt; i++) {
        sum = libdeflate_crc32(sum, iov[i].iov_base, iov[i].iov_len);
    }
    return sum | 1;
}

/* States */

/* As long as the requester would have sent its last packet again. */
static int64_t patience(const HcaQp *qp)
{
    return ((int64_t)ACK_TIMEOUT_UNIT_NS << (qp->attr.ack_timeout & 31)) *
           (qp->attr.retry_count + 1);
}

static bool is_connected(const HcaQp *qp)
{
    return qp->attr.service == HCA_SERVICE_RC ||
           qp->attr.service == HCA_SERVICE_UC;
}

static uint32_t slots(uint32_t len, uint8_t entry_log)
{
    return len >> entry_log;
}

/* Entries that @qp may have in @cqn at a time. */
static uint64_t may_complete(const HcaQp *qp, uint32_t cqn)
{
    const HcaServiceRow *service = hca_service(qp->attr.service);
    uint64_t n = 0;

    if (service->sends && qp->attr.sq_cqn == cqn) {
        n += slots(qp->attr.sq_len, qp->attr.sq_entry_log);
    }
    if (service->receives && !qp->srq && qp->attr.rq_cqn == cqn) {
        n += slots(qp->attr.rq_len, qp->attr.rq_entry_log);
    }
    return n;
}

static void judge_cq(Hca *hca, HcaQp *qp, uint32_t cqn)
{
    const HcaCq *cq = hca_cq_peek(hca->cm, cqn);
    uint64_t n = 0;

    if (!cq) {
        return;
    }
    for (uint32_t qpn = 0; qpn < 1u << hca->config.log_qps; qpn++) {
        const HcaQp *other = hca_qp_peek(hca->cm, qpn);

        n += other && other != qp ? may_complete(other, cqn) : 0;
    }
    if (n + may_complete(qp, cqn) > 1u << cq->attr.log_size) {
        hca_strict_tell(hca, qp, HCA_STRICT_CQ_SMALL, cqn);
    }
}

static void judge_birth(Hca *hca, HcaQp *qp)
{
    const HcaServiceRow *service = hca_service(qp->attr.service);

    if (qp->special) {
        return;
    }
    if (service->sends) {
        judge_cq(hca, qp, qp->attr.sq_cqn);
    }
    if (service->receives && qp->attr.rq_cqn != qp->attr.sq_cqn) {
        judge_cq(hca, qp, qp->attr.rq_cqn);
    }
}

static Gone *gone_of(const Hca *hca, uint32_t qpn)
{
    return &hca->strict->gone[qpn & ((1u << hca->config.log_qps) - 1)];
}

void hca_strict_state(Hca *hca, HcaQp *qp, uint8_t old_state)
{
    Gone *gone = gone_of(hca, qp->qpn);

    if (qp->state == HCA_QP_INIT && old_state == HCA_QP_RST) {
        judge_birth(hca, qp);
    } else if (qp->state == HCA_QP_RTR && is_connected(qp) &&
               gone->qpn == qp->qpn && hca_now(hca) < gone->until) {
        hca_strict_tell(hca, qp, HCA_STRICT_QPN_SOON, 0);
    } else if (qp->state == HCA_QP_RTS && old_state == HCA_QP_RTR) {
        qp->strict_lived = true;
        if (is_connected(qp) && qp->attr.sq_psn == qp->attr.rq_psn) {
            hca_strict_tell(hca, qp, HCA_STRICT_PSN_ALIKE, qp->attr.sq_psn);
        }
    } else if (qp->state == HCA_QP_RST && qp->strict_lived &&
               is_connected(qp)) {
        *gone = (Gone) { qp->qpn, hca_now(hca) + patience(qp) };
    }
}

/* State: packets of QPs that have gone, which may be on their way */

static const HcaField gone_fields[] = {
    HCA_SAVED(Gone, qpn),
    HCA_SAVED(Gone, until),
};
static const HcaStruct gone_struct = HCA_STRUCT(Gone, gone_fields);

static const HcaField strict_fields[] = { HCA_ELSEWHERE(HcaStrict, gone) };
static const HcaStruct strict_struct = HCA_STRUCT(HcaStrict, strict_fields);

static void save_gone(void *room, GArray *records)
{
    const Hca *hca = room;

    for (uint32_t i = 0; hca->strict && i < 1u << hca->config.log_qps; i++) {
        if (hca->strict->gone[i].until) {
            g_array_append_val(records, hca->strict->gone[i]);
        }
    }
}

/* A card that is not strict has no use for them. */
static bool load_gone(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    const Hca *hca = room;
    const Gone *gone = records;

    for (; n && hca->strict; n--, gone++) {
        if (gone->qpn > HCA_QPN_MASK) {
            return hca_state_refuse(error, "QP %u", gone->qpn);
        }
        *gone_of(hca, gone->qpn) = *gone;
    }
    return true;
}

const HcaSection hca_strict_section = HCA_SECTION(
    "strict", 1, &gone_struct, save_gone, load_gone, &strict_struct);
