/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of all counters and gauges.
 *
 * Units count by plain increments of their own structures, which they own
 * alone; here each field gets a name. Nothing is copied or summed until
 * somebody asks.
 */
#include "counters.h"

#include "card.h"
#include "ceu/ceu.h"
#include "eth/eth.h"
#include "requester/requester.h"
#include "responder/units.h"
#include "send/send.h"

/* In the order in which they are shown: of the data path. */
typedef enum HcaUnit {
    UNIT_CEU,
    UNIT_SEND,
    UNIT_REQUESTER,
    UNIT_RESPONDER,
    UNIT_CXTMGT,
    UNIT_V2P,
    UNIT_PORT,
    UNIT_LINK,
    UNIT_FAULT,
    UNIT_CAPTURE,
    UNIT_ETHERNET,
    NUNITS
} HcaUnit;

static const char *const unit_names[] = {
    [UNIT_CEU] = "ceu",
    [UNIT_SEND] = "send",
    [UNIT_REQUESTER] = "requester",
    [UNIT_RESPONDER] = "responder",
    [UNIT_CXTMGT] = "cxtmgt",
    [UNIT_V2P] = "v2p",
    [UNIT_PORT] = "port",
    [UNIT_LINK] = "link",
    [UNIT_FAULT] = "fault",
    [UNIT_CAPTURE] = "capture",
    [UNIT_ETHERNET] = "ethernet",
};

/* A counter is a uint64_t of its unit's structure; a gauge is a function. */
typedef struct Row {
    HcaUnit unit;
    const char *name;
    const char *text;
    HcaCounterKind kind;
    const void *(*structure)(const Hca *hca);
    size_t offset;
    uint64_t (*gauge)(const Hca *hca);
} Row;

static const void *card_counters(const Hca *hca)
{
    return &hca->counters;
}

static const void *ceu_counters(const Hca *hca)
{
    return hca_ceu_counters(hca->ceu);
}

static const void *cxt_counters(const Hca *hca)
{
    return hca_cxt_counters(hca->cm);
}

static const void *v2p_counters(const Hca *hca)
{
    return hca_v2p_counters(hca->v2p);
}

static const void *link_counters(const Hca *hca)
{
    return hca_link_counters(hca->link);
}

static const void *fault_counters(const Hca *hca)
{
    return hca_link_fault_counters(hca->link);
}

static const void *capture_counters(const Hca *hca)
{
    return hca_link_capture_counters(hca->link);
}

/* Zeros on a card that has no Ethernet function. */
static const void *eth_counters(const Hca *hca)
{
    static const HcaEthCounters none;

    return hca->eth ? hca_eth_counters(hca->eth) : &none;
}

static HcaMqGauges mq_gauges(const Hca *hca)
{
    HcaMqGauges gauges;

    hca_mq_gauges(hca->mq, &gauges);
    return gauges;
}

#define GAUGE_FN(fn, value)                                                    \
    static uint64_t fn(const Hca *hca)                                         \
    {                                                                          \
        return value;                                                          \
    }

GAUGE_FN(send_queue, hca->send_queue.length)
GAUGE_FN(timers, hca->timers.count)
GAUGE_FN(swpb_used, mq_gauges(hca).swpb.used)
GAUGE_FN(swpb_peak, mq_gauges(hca).swpb.peak)
GAUGE_FN(rpb_used, mq_gauges(hca).rpb.used)
GAUGE_FN(rpb_peak, mq_gauges(hca).rpb.peak)
GAUGE_FN(reb_used, mq_gauges(hca).reb.used)
GAUGE_FN(reb_peak, mq_gauges(hca).reb.peak)
GAUGE_FN(pool_waiting, mq_gauges(hca).waiting)
GAUGE_FN(resp_queue, hca->resp_queue.length)
GAUGE_FN(qps, hca_cxt_live(hca->cm)->qps)
GAUGE_FN(cqs, hca_cxt_live(hca->cm)->cqs)
GAUGE_FN(eqs, hca_cxt_live(hca->cm)->eqs)
GAUGE_FN(cxt_pages, hca_cxt_live_pages(hca->cm))
GAUGE_FN(waiting_events, hca_cxt_waiting_events(hca->cm))
GAUGE_FN(mpts, hca_v2p_live_mpts(hca->v2p))
GAUGE_FN(tpt_pages, hca_v2p_live_pages(hca->v2p))
GAUGE_FN(link_up, hca_link_is_up(hca->link))
GAUGE_FN(held, hca_link_held(hca->link))
GAUGE_FN(captured, hca_link_is_captured(hca->link))
GAUGE_FN(eth_running, hca->eth ? hca_eth_running(hca->eth) : 0)

#define COUNTER(u, get, type, n, field, t)                                     \
    {                                                                          \
        .unit = UNIT_##u, .name = (n), .text = (t), .structure = (get),        \
        .offset = offsetof(type, field)                                        \
    }
#define GAUGE(u, n, k, fn, t)                                                  \
    {                                                                          \
        .unit = UNIT_##u, .name = (n), .text = (t), .kind = HCA_COUNTER_##k,   \
        .gauge = (fn)                                                          \
    }

#define CEU(n, field, t) COUNTER(CEU, ceu_counters, HcaCeuCounters, n, field, t)
#define COMMAND(n, op)                                                         \
    CEU("cmd_" n, opcodes[RDMA_HCA_CMD_##op], #op " commands")
#define STATUS(n, s)                                                           \
    CEU("status_" n, status[RDMA_HCA_STAT_##s], "commands answered " #s)
#define CARD(u, n, field, t) COUNTER(u, card_counters, HcaCounters, n, field, t)
#define SEND(n, field, t) CARD(SEND, n, field, t)
#define REQ(n, field, t) CARD(REQUESTER, n, field, t)
#define WAIT(n, w, t) REQ("wait_" n, waits[HCA_WAIT_##w], "waits: " t)
#define RESP(n, field, t) CARD(RESPONDER, n, field, t)
#define REFUSED(n, o, t)                                                       \
    RESP("refused_" n, outcomes[HCA_EXE_##o], "requests refused: " t)
#define DROP(n, d, t)                                                          \
    CARD(PORT, "drop_" n, drops[HCA_DROP_##d], "packets dropped: " t)
#define CXT(n, field, t)                                                       \
    COUNTER(CXTMGT, cxt_counters, HcaCxtCounters, n, field, t)
#define EVENT(n, e)                                                            \
    CXT("event_" n, eqe_types[RDMA_HCA_EVENT_##e], #e " events written")
#define V2P(n, field, t) COUNTER(V2P, v2p_counters, HcaV2pCounters, n, field, t)
#define CHANNEL(n, c)                                                          \
    V2P("requests_" n, requests[HCA_V2P_##c], "requests of channel " #c),      \
        V2P("pended_" n, pended[HCA_V2P_##c], "waits of " #c " for a refill"), \
        V2P("reads_" n, reads[HCA_V2P_##c], "DMA reads of " #c),               \
        V2P("read_bytes_" n, read_bytes[HCA_V2P_##c],                          \
            "bytes that " #c " read"),                                         \
        V2P("writes_" n, writes[HCA_V2P_##c], "DMA writes of " #c),            \
        V2P("write_bytes_" n, write_bytes[HCA_V2P_##c],                        \
            "bytes that " #c " wrote")
#define CACHE(c, C)                                                            \
    V2P(#c "_hits", c.hits, C " cache hits"),                                  \
        V2P(#c "_misses", c.misses, C " cache misses"),                        \
        V2P(#c "_refills", c.refills, C " lines read from ICM"),               \
        V2P(#c "_write_backs", c.write_backs, C " lines written to ICM"),      \
        V2P(#c "_write_back_errors", c.write_back_errors,                      \
            C " lines that ICM did not take")
#define LINK(n, field, t)                                                      \
    COUNTER(LINK, link_counters, HcaLinkCounters, n, field, t)
#define FAULT(n, field, t)                                                     \
    COUNTER(FAULT, fault_counters, HcaFaultCounters, n, field, t)
#define FAULTS(d, D, what)                                                     \
    FAULT(d "_drop", injected[HCA_FAULT_##D][HCA_FAULT_DROP],                  \
          what " packets dropped by a plan of faults"),                        \
        FAULT(d "_duplicate", injected[HCA_FAULT_##D][HCA_FAULT_DUPLICATE],    \
              what " packets doubled"),                                        \
        FAULT(d "_reorder", injected[HCA_FAULT_##D][HCA_FAULT_REORDER],        \
              what " packets held back for others to pass"),                   \
        FAULT(d "_delay", injected[HCA_FAULT_##D][HCA_FAULT_DELAY],            \
              what " packets held back for a time"),                           \
        FAULT(d "_corrupt", injected[HCA_FAULT_##D][HCA_FAULT_CORRUPT],        \
              what " packets with bits inverted")
#define CAPTURE(n, field, t)                                                   \
    COUNTER(CAPTURE, capture_counters, HcaCaptureCounters, n, field, t)
#define ETH(n, field, t)                                                       \
    COUNTER(ETHERNET, eth_counters, HcaEthCounters, n, field, t)

/* Append only: a row's number is DIAG_RPRT's. */
static const Row table[] = {
    CEU("commands", commands, "commands executed"),
    CEU("unknown", unknown, "commands that are none"),
    CEU("mailboxes_refused", mailboxes_refused,
        "inboxes and outboxes misplaced or not RAM"),
    CEU("ignored_writes", ignored_writes, "register writes while busy"),
    STATUS("ok", OK),
    STATUS("bad_op", BAD_OP),
    STATUS("bad_param", BAD_PARAM),
    STATUS("bad_sys_state", BAD_SYS_STATE),
    STATUS("bad_resource", BAD_RESOURCE),
    STATUS("resource_busy", RESOURCE_BUSY),
    STATUS("exceed_lim", EXCEED_LIM),
    STATUS("bad_res_state", BAD_RES_STATE),
    STATUS("bad_index", BAD_INDEX),
    STATUS("bad_qp_state", BAD_QP_STATE),
    STATUS("bad_seg_param", BAD_SEG_PARAM),
    STATUS("bad_size", BAD_SIZE),
    COMMAND("query_dev_lim", QUERY_DEV_LIM),
    COMMAND("query_fw", QUERY_FW),
    COMMAND("query_adapter", QUERY_ADAPTER),
    COMMAND("query_port", QUERY_PORT),
    COMMAND("nop", NOP),
    COMMAND("diag_rprt", DIAG_RPRT),
    COMMAND("init_ib", INIT_IB),
    COMMAND("close_ib", CLOSE_IB),
    COMMAND("init_hca", INIT_HCA),
    COMMAND("close_hca", CLOSE_HCA),
    COMMAND("map_icm", MAP_ICM),
    COMMAND("unmap_icm", UNMAP_ICM),
    COMMAND("sw2hw_mpt", SW2HW_MPT),
    COMMAND("query_mpt", QUERY_MPT),
    COMMAND("hw2sw_mpt", HW2SW_MPT),
    COMMAND("read_mtt", READ_MTT),
    COMMAND("write_mtt", WRITE_MTT),
    COMMAND("sync_tpt", SYNC_TPT),
    COMMAND("map_eq", MAP_EQ),
    COMMAND("sw2hw_eq", SW2HW_EQ),
    COMMAND("hw2sw_eq", HW2SW_EQ),
    COMMAND("query_eq", QUERY_EQ),
    COMMAND("sw2hw_cq", SW2HW_CQ),
    COMMAND("hw2sw_cq", HW2SW_CQ),
    COMMAND("query_cq", QUERY_CQ),
    COMMAND("resize_cq", RESIZE_CQ),
    COMMAND("rst2init_qpee", RST2INIT_QPEE),
    COMMAND("init2init_qpee", INIT2INIT_QPEE),
    COMMAND("init2rtr_qpee", INIT2RTR_QPEE),
    COMMAND("rtr2rts_qpee", RTR2RTS_QPEE),
    COMMAND("rts2rts_qpee", RTS2RTS_QPEE),
    COMMAND("sqerr2rts_qpee", SQERR2RTS_QPEE),
    COMMAND("2err_qpee", 2ERR_QPEE),
    COMMAND("rts2sqd_qpee", RTS2SQD_QPEE),
    COMMAND("sqd2sqd_qpee", SQD2SQD_QPEE),
    COMMAND("sqd2rts_qpee", SQD2RTS_QPEE),
    COMMAND("err2rst_qpee", ERR2RST_QPEE),
    COMMAND("query_qp", QUERY_QP),

    SEND("doorbells", doorbells, "send doorbells"),
    SEND("db_bad_qpn", db_bad_qpn, "doorbells for no QP"),
    SEND("db_bad_uar", db_bad_uar, "doorbells from another UAR page"),
    SEND("db_bad_state", db_bad_state, "doorbells for a QP not in RTS"),
    SEND("db_overflow", db_overflow, "doorbells beyond the send queue"),
    SEND("wqes", wqes, "send WQEs fetched"),
    SEND("wqes_chained", wqes_chained, "of them, linked by the one before"),
    SEND("wqe_nop", wqe_opcodes[RDMA_HCA_OPCODE_NOP], "NOP WQEs"),
    SEND("wqe_write", wqe_opcodes[RDMA_HCA_OPCODE_RDMA_WRITE],
         "RDMA Write WQEs"),
    SEND("wqe_write_imm", wqe_opcodes[RDMA_HCA_OPCODE_RDMA_WRITE_IMM],
         "RDMA Write with immediate WQEs"),
    SEND("wqe_send", wqe_opcodes[RDMA_HCA_OPCODE_SEND], "Send WQEs"),
    SEND("wqe_send_imm", wqe_opcodes[RDMA_HCA_OPCODE_SEND_IMM],
         "Send with immediate WQEs"),
    SEND("wqe_read", wqe_opcodes[RDMA_HCA_OPCODE_RDMA_READ], "RDMA Read WQEs"),
    SEND("wqe_cmp_swap", wqe_opcodes[RDMA_HCA_OPCODE_ATOMIC_CS],
         "Compare and Swap WQEs"),
    SEND("wqe_fetch_add", wqe_opcodes[RDMA_HCA_OPCODE_ATOMIC_FA],
         "Fetch and Add WQEs"),
    SEND("wqe_good", wqe_checks[HCA_WQE_GOOD], "WQEs that failed no check"),
    SEND("wqe_bad_place", wqe_checks[HCA_WQE_BAD_PLACE],
         "WQEs outside their queue"),
    SEND("wqe_unreadable", wqe_checks[HCA_WQE_UNREADABLE],
         "WQEs whose queue could not be read"),
    SEND("wqe_bad_opcode", wqe_checks[HCA_WQE_BAD_OPCODE],
         "WQEs of no use with their service"),
    SEND("wqe_bad_units", wqe_checks[HCA_WQE_BAD_UNITS],
         "WQEs with units missing or too many"),
    SEND("wqe_bad_length", wqe_checks[HCA_WQE_BAD_LENGTH],
         "WQEs above a length limit"),
    SEND("wqe_bad_entry", wqe_checks[HCA_WQE_BAD_ENTRY],
         "WQEs with an entry that was refused"),
    GAUGE(SEND, "qps_scheduled", INSTANT, send_queue,
          "QPs with something to send"),

    REQ("packets_sent", packets_sent, "Send and Write packets sent first"),
    REQ("reads_sent", reads_sent, "Read and atomic requests sent first"),
    REQ("retransmissions", retransmissions, "packets sent again"),
    WAIT("state", STATE, "the QP does not send in its state"),
    WAIT("rnr", RNR, "the peer was not ready to receive"),
    WAIT("barrier", BARRIER, "a WQE put aside is still to complete"),
    WAIT("fence", FENCE, "Reads before a fence"),
    WAIT("reads", READS, "as many Reads out as the peer takes"),
    WAIT("psns", PSNS, "no PSNs left"),
    WAIT("swpb", SWPB, "no room in the send and write packet buffer"),
    WAIT("rpb", RPB, "no room in the read buffers"),
    WAIT("cable", CABLE, "the cable took no packet"),
    REQ("acks_rx", acks_rx, "ACKs received"),
    REQ("rnrs_rx", rnrs_rx, "RNR NAKs received"),
    REQ("naks_rx", naks_rx, "other NAKs received"),
    REQ("nak_rx_psn", nak_codes_rx[HCA_NAK_PSN_SEQ],
        "NAKs received: PSN sequence"),
    REQ("nak_rx_invalid", nak_codes_rx[HCA_NAK_INVALID_REQUEST],
        "NAKs received: invalid request"),
    REQ("nak_rx_access", nak_codes_rx[HCA_NAK_REMOTE_ACCESS],
        "NAKs received: remote access"),
    REQ("nak_rx_operation", nak_codes_rx[HCA_NAK_REMOTE_OP],
        "NAKs received: remote operation"),
    REQ("nak_rx_rd", nak_codes_rx[HCA_NAK_INVALID_RD],
        "NAKs received: invalid RD request"),
    REQ("nak_rx_reserved", nak_codes_rx[HCA_NNAKS - 1],
        "NAKs received: reserved code"),
    REQ("responses_rx", responses_rx, "Read and atomic responses taken"),
    REQ("answers_lost", answers_lost, "answers that tell of a lost one"),
    REQ("timeouts", timeouts, "transport timer expired"),
    REQ("rnr_timeouts", rnr_timeouts, "RNR timer expired"),
    REQ("retries_exhausted", retries_exhausted, "QPs that gave up"),
    REQ("rnr_retries_exhausted", rnr_retries_exhausted,
        "QPs that gave up after RNR NAKs"),
    REQ("wqes_completed", wqes_completed, "send WQEs done"),
    REQ("wqes_failed", wqes_failed, "send WQEs that ended in an error"),
    REQ("wqes_flushed", wqes_flushed, "send WQEs flushed"),
    GAUGE(REQUESTER, "swpb_used", INSTANT, swpb_used,
          "send and write packet buffer: elements in use"),
    GAUGE(REQUESTER, "swpb_peak", PEAK, swpb_peak,
          "send and write packet buffer: most in use"),
    GAUGE(REQUESTER, "rpb_used", INSTANT, rpb_used,
          "read packet buffer: elements in use"),
    GAUGE(REQUESTER, "rpb_peak", PEAK, rpb_peak,
          "read packet buffer: most in use"),
    GAUGE(REQUESTER, "reb_used", INSTANT, reb_used,
          "read entry buffer: elements in use"),
    GAUGE(REQUESTER, "reb_peak", PEAK, reb_peak,
          "read entry buffer: most in use"),
    GAUGE(REQUESTER, "qps_waiting", INSTANT, pool_waiting,
          "QPs that wait for room in a buffer"),
    GAUGE(REQUESTER, "timers", INSTANT, timers, "QPs with a timer running"),

    RESP("sends", requests[HCA_REQUEST_SEND], "Send packets executed"),
    RESP("writes", requests[HCA_REQUEST_WRITE], "Write packets executed"),
    RESP("reads", requests[HCA_REQUEST_READ], "Read requests executed"),
    RESP("atomics", requests[HCA_REQUEST_ATOMIC], "atomics executed"),
    RESP("executed", outcomes[HCA_EXE_OK], "request packets executed"),
    REFUSED("psn", PSN, "ahead of what is expected"),
    REFUSED("no_wqe", NO_WQE, "no receive WQE is posted"),
    REFUSED("opcode", OPCODE, "out of place in a message"),
    REFUSED("forbidden", FORBIDDEN, "not allowed by the QP"),
    REFUSED("length", LENGTH, "wrong length"),
    REFUSED("alignment", ALIGNMENT, "atomic not aligned"),
    REFUSED("resources", RESOURCES, "more Reads than allowed"),
    REFUSED("too_long", TOO_LONG, "too long for the receive WQE"),
    REFUSED("access", ACCESS, "R_Key, address or length"),
    REFUSED("remote_memory", REMOTE_MEMORY, "allowed, but not RAM"),
    REFUSED("local_prot", LOCAL_PROT, "scatter entry refused"),
    REFUSED("bad_wqe", BAD_WQE, "receive WQE malformed"),
    REFUSED("bad_queue", BAD_QUEUE, "receive queue unusable"),
    REFUSED("cq_lost", CQ_LOST, "completion not written"),
    RESP("duplicates", duplicates, "requests received again"),
    RESP("acks_tx", acks_tx, "ACKs sent"),
    RESP("rnrs_tx", rnrs_tx, "RNR NAKs sent"),
    RESP("naks_tx", naks_tx, "other NAKs sent"),
    RESP("nak_tx_psn", nak_codes_tx[HCA_NAK_PSN_SEQ],
         "NAKs sent: PSN sequence"),
    RESP("nak_tx_invalid", nak_codes_tx[HCA_NAK_INVALID_REQUEST],
         "NAKs sent: invalid request"),
    RESP("nak_tx_access", nak_codes_tx[HCA_NAK_REMOTE_ACCESS],
         "NAKs sent: remote access"),
    RESP("nak_tx_operation", nak_codes_tx[HCA_NAK_REMOTE_OP],
         "NAKs sent: remote operation"),
    RESP("read_responses_tx", read_responses_tx, "Read responses sent"),
    RESP("atomic_responses_tx", atomic_responses_tx, "atomic responses sent"),
    RESP("rq_fetches", rq_fetches, "fetches of receive WQEs"),
    RESP("rq_record_reads", rq_record_reads, "reads of a posted count"),
    RESP("receives_completed", receives_completed, "receive WQEs done"),
    RESP("receives_failed", receives_failed,
         "receive WQEs that ended in an error"),
    RESP("receives_flushed", receives_flushed, "receive WQEs flushed"),
    GAUGE(RESPONDER, "qps_scheduled", INSTANT, resp_queue,
          "QPs with a response to send"),

    GAUGE(CXTMGT, "qps", INSTANT, qps, "QPs not in RST"),
    GAUGE(CXTMGT, "cqs", INSTANT, cqs, "CQs owned by the card"),
    GAUGE(CXTMGT, "eqs", INSTANT, eqs, "EQs owned by the card"),
    GAUGE(CXTMGT, "icm_pages", INSTANT, cxt_pages,
          "ICM pages mapped for contexts"),
    CXT("qpc_lookups", qpc_lookups, "QP contexts fetched by number"),
    CXT("cqc_lookups", cqc_lookups, "CQ contexts fetched by number"),
    CXT("eqc_lookups", eqc_lookups, "EQ contexts fetched by number"),
    CXT("icm_writes", icm_writes, "contexts written to ICM"),
    CXT("icm_write_errors", icm_write_errors, "contexts that ICM did not take"),
    CXT("transitions", transitions, "QP transitions commanded"),
    CXT("transitions_refused", transitions_refused, "QP transitions refused"),
    CXT("cqes", cqes, "CQEs written"),
    CXT("error_cqes", error_cqes, "of them, in error"),
    CXT("cq_overruns", cq_overruns, "CQs that overran"),
    CXT("cqes_lost", cqes_lost, "CQEs that no CQ took"),
    CXT("cq_doorbells", cq_doorbells, "CQ doorbells"),
    CXT("cq_ci_reads", cq_ci_reads, "reads of a consumer index"),
    CXT("db_bad_cqn", db_bad_cqn, "doorbells for no CQ"),
    CXT("db_bad_uar", db_bad_uar, "CQ doorbells from another UAR page"),
    CXT("db_bad_eqn", db_bad_eqn, "doorbells for no EQ"),
    CXT("db_bad_ci", db_bad_ci, "doorbells with an impossible index"),
    CXT("eqes", eqes, "EQEs written"),
    EVENT("comp", COMP),
    EVENT("comm_est", COMM_EST),
    EVENT("sq_drained", SQ_DRAINED),
    EVENT("cq_error", CQ_ERROR),
    EVENT("wq_catas_error", WQ_CATAS_ERROR),
    EVENT("port_change", PORT_CHANGE),
    EVENT("cmd", CMD),
    EVENT("wq_inval_req_error", WQ_INVAL_REQ_ERROR),
    EVENT("wq_access_error", WQ_ACCESS_ERROR),
    CXT("interrupts", interrupts, "interrupts sent"),
    CXT("eq_doorbells", eq_doorbells, "EQ doorbells"),
    CXT("eq_waits", eq_waits, "events that found their EQ full"),
    CXT("events_unmapped", events_unmapped, "events that no EQ asked for"),
    CXT("events_lost", events_lost, "events whose EQ had failed"),
    GAUGE(CXTMGT, "events_waiting", INSTANT, waiting_events,
          "events that wait for room in their EQ"),

    GAUGE(V2P, "mpts", INSTANT, mpts, "regions owned by the card"),
    GAUGE(V2P, "icm_pages", INSTANT, tpt_pages,
          "ICM pages mapped for the MPT and MTT"),
    CACHE(mpt, "MPT"),
    CACHE(mtt, "MTT"),
    V2P("passed", failed[HCA_V2P_SUCCESS], "requests that failed no check"),
    V2P("failed_key", failed[HCA_V2P_KEY_ERR], "requests with a bad key"),
    V2P("failed_flags", failed[HCA_V2P_FLAGS_ERR],
        "requests for access not allowed"),
    V2P("failed_pd", failed[HCA_V2P_PD_ERR],
        "requests of another protection domain"),
    V2P("failed_length", failed[HCA_V2P_LENGTH_ERR],
        "requests outside their region"),
    V2P("failed_dma", failed[HCA_V2P_DMA_ERR],
        "requests that led to what is not RAM"),
    CHANNEL("ceu", CEU),
    CHANNEL("db", DB),
    CHANNEL("wp_wqe", WP_WQE),
    CHANNEL("wp_nd", WP_ND),
    CHANNEL("rtc", RTC),
    CHANNEL("rrc", RRC),
    CHANNEL("rwm", RWM),
    CHANNEL("ee", EE),

    CARD(PORT, "tx_packets", tx_packets, "packets made"),
    CARD(PORT, "rx_packets", rx_packets, "packets received"),
    DROP("short", PARSE_SHORT, "too short"),
    DROP("parse_length", PARSE_LENGTH, "lengths that disagree"),
    DROP("version", PARSE_VERSION, "header version"),
    DROP("lnh", PARSE_LNH, "not an InfiniBand transport"),
    DROP("opcode", PARSE_OPCODE, "opcode unknown"),
    DROP("vcrc", PARSE_VCRC, "wrong VCRC"),
    DROP("icrc", PARSE_ICRC, "wrong ICRC"),
    DROP("lid", LID, "not for this LID or address"),
    DROP("port_down", PORT_DOWN, "port not enabled"),
    DROP("qpn", QPN, "no such QP"),
    DROP("qp_state", QP_STATE, "QP state takes no packets"),
    DROP("service", SERVICE, "opcode of another service"),
    DROP("pkey", PKEY, "P_Key"),
    DROP("qkey", QKEY, "Q_Key"),
    DROP("source", SOURCE, "not from the connected peer"),
    DROP("duplicate", DUPLICATE, "received before, nothing to answer"),
    DROP("psn", PSN, "out of sequence"),
    DROP("ghost", GHOST, "answer to nothing outstanding"),
    DROP("no_wqe", NO_WQE, "no receive WQE (UC, UD)"),
    DROP("length", LENGTH, "does not fit (UC, UD)"),
    DROP("opcode_seq", OPCODE_SEQ, "out of place in a message (UC)"),
    DROP("access", ACCESS, "memory refused"),
    DROP("resources", RESOURCES, "no room to answer"),

    GAUGE(LINK, "up", INSTANT, link_up, "1 while the peer is there"),
    LINK("peers", peers, "times that a peer came, or the link"),
    LINK("tx_packets", tx_packets, "packets sent to the peer"),
    LINK("tx_bytes", tx_bytes, "bytes of them"),
    LINK("tx_writes", tx_writes, "writes to the cable"),
    LINK("tx_waits", tx_waits, "times that the cable was full"),
    LINK("tx_discarded", tx_discarded, "packets lost for want of a peer"),
    LINK("rx_packets", rx_packets, "packets from the peer"),
    LINK("rx_bytes", rx_bytes, "bytes of them"),
    LINK("rx_reads", rx_reads, "reads from the cable"),
    LINK("rx_frame_errors", rx_frame_errors, "breaks of the framing"),
    LINK("rx_marked_bad", rx_marked_bad, "packets marked bad by the peer"),
    LINK("loopback_packets", loopback_packets, "packets to the own address"),

    FAULTS("tx", TX, "sent"),
    FAULTS("rx", RX, "received"),
    FAULT("held_full", held_full, "packets not held back for want of room"),
    GAUGE(FAULT, "held", INSTANT, held, "packets held back"),
    GAUGE(CAPTURE, "on", INSTANT, captured, "1 while packets are captured"),
    CAPTURE("packets", packets, "packets captured"),
    CAPTURE("bytes", bytes, "bytes of the capture's file"),

    COMMAND("set_gid", SET_GID),
    COMMAND("write_mgm", WRITE_MGM),
    COMMAND("read_mgm", READ_MGM),
    SEND("wqe_bad_address", wqe_checks[HCA_WQE_BAD_ADDRESS],
         "datagrams without a source address"),
    CARD(PORT, "tx_unreachable", tx_unreachable,
         "packets lost for want of a source address"),
    CARD(PORT, "rx_multicast", rx_multicast, "packets to groups of the card"),
    DROP("group", GROUP, "multicast to no group of the card"),
    DROP("fragment", PARSE_FRAGMENT, "RoCEv2 in IP fragments"),
    DROP("ip_header", PARSE_IP_HEADER, "IP options or checksum"),
    DROP("udp", PARSE_UDP, "UDP length or checksum"),

    COMMAND("setup_eth", SETUP_ETH),
    COMMAND("set_rx_mode", SET_RX_MODE),
    GAUGE(ETHERNET, "running", INSTANT, eth_running,
          "1 while the rings are set up"),
    ETH("tx_frames", tx_frames, "frames sent"),
    ETH("tx_bytes", tx_bytes, "bytes of them"),
    ETH("tx_errors", tx_errors, "frames that could not be sent"),
    ETH("rx_frames", rx_frames, "frames received"),
    ETH("rx_bytes", rx_bytes, "bytes of them"),
    ETH("rx_checksum_ok", rx_checksum_ok, "of them, TCP and UDP verified"),
    ETH("rx_filtered", rx_filtered, "frames not for this interface"),
    ETH("rx_no_buffer", rx_no_buffer,
        "frames lost: no buffer, or one too small"),
    ETH("rx_errors", rx_errors, "frames lost: no header, or memory refused"),
    ETH("interrupts", interrupts, "interrupts sent"),
    ETH("bad_doorbells", bad_doorbells, "doorbells of no meaning"),

    WAIT("outstanding", OUTSTANDING, "as many requests out as the limit says"),
    REQ("cnp_rx", cnp_rx, "congestion notifications received"),
    REQ("limit_halved", limit_halved, "outstanding limits halved"),
    REQ("limit_restored", limit_restored, "outstanding limits restored"),
    RESP("ecn_marked_rx", ecn_marked_rx, "packets received with a CE mark"),
    RESP("cnp_tx", cnp_tx, "congestion notifications sent"),
    EVENT("congestion", CONGESTION),
    FAULT("tx_mark", injected[HCA_FAULT_TX][HCA_FAULT_MARK],
          "sent packets marked as having met congestion"),
    FAULT("rx_mark", injected[HCA_FAULT_RX][HCA_FAULT_MARK],
          "received packets marked as having met congestion"),
};

unsigned hca_counters_number(void)
{
    return G_N_ELEMENTS(table);
}

static uint64_t row_value(const Hca *hca, const Row *row)
{
    const char *structure;

    if (row->gauge) {
        return row->gauge(hca);
    }
    structure = row->structure(hca);
    return *(const uint64_t *)(structure + row->offset);
}

void hca_counter_get(const Hca *hca, unsigned index, HcaCounter *counter)
{
    const Row *row = &table[index];

    *counter = (HcaCounter) {
        .unit = unit_names[row->unit],
        .name = row->name,
        .text = row->text,
        .kind = row->kind,
        .value = row_value(hca, row),
    };
}

void hca_counters_visit(const Hca *hca, HcaCounterFn *fn, void *opaque)
{
    for (HcaUnit unit = 0; unit < NUNITS; unit++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(table); i++) {
            if (table[i].unit == unit) {
                HcaCounter counter;

                hca_counter_get(hca, i, &counter);
                fn(opaque, &counter);
            }
        }
    }
}
