/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the flight recorder holds, as lines and as a capture. */
#include "record_text.h"

#include "../card.h"
#include "../fault/faults.h"
#include "../record/pcapng.h"
#include "../strict.h"
#include "packet_text.h"
#include "state_text.h"

#define NS_PER_SECOND 1000000000

/* How an event is written; see trace_events.h. */
typedef struct EventRow {
    const char *name;
    const char *number; /* NAME:WAY */
    const char *args;   /* of the same, with spaces between them */
} EventRow;

static const EventRow rows[] = {
#define EVENT_ROW(event, its_number, its_args)                                 \
    [HCA_TRACE_##event] = { #event, its_number, its_args },
    HCA_TRACE_EVENTS(EVENT_ROW)
#undef EVENT_ROW
};

/* " NAME VALUE", by NAME:WAY; returns what follows it. */
static const char *add_value(GString *text, const char *what, uint64_t value)
{
    const char *way = strchr(what, ':');

    g_string_append_printf(text, " %.*s ", (int)(way - what), what);
    switch (way[1]) {
    case 's':
        g_string_append(text, hca_qp_state_text(value));
        break;
    case 'r':
        g_string_append(text, hca_drop_reason_text(value));
        break;
    case 'p':
        g_string_append(text, hca_fault_place_text(value));
        break;
    case 'a':
        g_string_append(text, hca_fault_action_text(value));
        break;
    case 'k':
        g_string_append(text, hca_strict_name(value));
        break;
    case 'd':
        g_string_append_printf(text, "%" G_GUINT64_FORMAT, value);
        break;
    default:
        g_string_append_printf(text, "0x%" G_GINT64_MODIFIER "x", value);
        break;
    }
    return way[2] ? way + 3 : way + 2;
}

/* A state that was loaded may have any. */
static const EventRow *row_of(const HcaRecord *record)
{
    static const EventRow unknown = { "?", "number:x", "" };

    return record->event < HCA_TRACE_NEVENTS ? &rows[record->event] : &unknown;
}

static void add_event(GString *text, const HcaRecord *record)
{
    const EventRow *row = row_of(record);
    const char *args = row->args;

    g_string_append(text, row->name);
    add_value(text, row->number, record->len);
    for (unsigned i = 0; *args; i++) {
        args = add_value(text, args, record->arg[i]);
    }
}

static void add_fault(GString *text, const HcaRecord *record)
{
    if (record->fault != HCA_RECORD_NO_FAULT) {
        g_string_append_printf(text, " fault: %s (rule %u)",
                               hca_fault_done_word(record->fault),
                               record->rule);
    }
}

static const HcaEncap *encap_of(const Hca *hca)
{
    return hca_config_is_roce(&hca->config) ? &hca_encap_roce : &hca_encap_ib;
}

static uint32_t kept(const HcaRecord *record)
{
    return MIN(record->len, HCA_RECORD_HEAD);
}

static void add_packet(GString *text, const Hca *hca, const HcaRecord *record)
{
    static const char *const ways[] = {
        [HCA_RECORD_TX] = "TX   ",
        [HCA_RECORD_RX] = "RX   ",
        [HCA_RECORD_LOOPBACK] = "LOOP ",
    };

    g_string_append(text, ways[record->kind]);
    hca_packet_text(text, encap_of(hca), record->head, kept(record),
                    record->len);
    add_fault(text, record);
}

static void add_time(GString *text, int64_t at_ns)
{
    g_string_append_printf(text, "%5" G_GINT64_FORMAT ".%09u ",
                           at_ns / NS_PER_SECOND,
                           (unsigned)(at_ns % NS_PER_SECOND));
}

void hca_recorder_visit(const Hca *hca, HcaLineFn *fn, void *opaque)
{
    const HcaRecorder *recorder = hca->host.recorder;
    g_autoptr(GString) line = g_string_new(NULL);
    const HcaRecord *record;

    for (uint32_t i = 0; recorder && (record = hca_recorder_get(recorder, i));
         i++) {
        g_string_truncate(line, 0);
        add_time(line, record->at_ns);
        if (record->kind == HCA_RECORD_EVENT) {
            add_event(line, record);
        } else {
            add_packet(line, hca, record);
        }
        fn(opaque, line->str);
    }
}

/* pcapng */

static guint begin_packet(GByteArray *file, HcaPcapngLinkType type,
                          const HcaRecord *record)
{
    static const HcaPcapngWay ways[] = {
        [HCA_RECORD_TX] = HCA_PCAPNG_OUTBOUND,
        [HCA_RECORD_RX] = HCA_PCAPNG_INBOUND,
        [HCA_RECORD_LOOPBACK] = HCA_PCAPNG_NO_WAY,
    };
    const HcaPcapngPacket packet = {
        .way = ways[record->kind],
        .at_ns = record->at_ns,
        .data = record->head,
        .kept = kept(record),
        .len = record->len,
    };

    return hca_pcapng_begin_packet(file, type, &packet);
}

static void comment_event(GByteArray *file, const HcaRecord *record)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_time(text, record->at_ns);
    add_event(text, record);
    hca_pcapng_comment(file, text->str);
}

static void comment_fault(GByteArray *file, const HcaRecord *record)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_fault(text, record);
    if (text->len) {
        hca_pcapng_comment(file, g_strchug(text->str));
    }
}

/* Events in front of the first packet are comments of the interface. */
GByteArray *hca_recorder_pcapng(const Hca *hca)
{
    const HcaRecorder *recorder = hca->host.recorder;
    HcaPcapngLinkType type = hca_config_is_roce(&hca->config)
                                 ? HCA_PCAPNG_ETHERNET
                                 : HCA_PCAPNG_IB;
    const HcaRecord *record;
    GByteArray *file;
    guint block;

    if (!recorder) {
        return NULL;
    }
    file = g_byte_array_new();
    hca_pcapng_end(file, hca_pcapng_begin_section(file, "rdma-hca"));
    block = hca_pcapng_begin_interface(file, type, "cable");
    for (uint32_t i = 0; (record = hca_recorder_get(recorder, i)); i++) {
        if (record->kind == HCA_RECORD_EVENT) {
            comment_event(file, record);
        } else {
            hca_pcapng_end(file, block);
            block = begin_packet(file, type, record);
            comment_fault(file, record);
        }
    }
    hca_pcapng_end(file, block);
    return file;
}
