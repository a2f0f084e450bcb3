/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans of faults as text: action=drop,direction=rx,probability=0.01. The keys
 * are those of QEMU's rdma-hca-cable, where rules are JSON.
 */
#include <errno.h>
#include <math.h>

#include "program.h"

typedef struct Name {
    const char *name;
    unsigned value;
} Name;

static const Name actions[] = {
    { "drop", HCA_FAULT_DROP },       { "duplicate", HCA_FAULT_DUPLICATE },
    { "reorder", HCA_FAULT_REORDER }, { "delay", HCA_FAULT_DELAY },
    { "corrupt", HCA_FAULT_CORRUPT }, { NULL },
};

static const Name directions[] = {
    { "tx", 1 << HCA_FAULT_TX },
    { "rx", 1 << HCA_FAULT_RX },
    { "both", 1 << HCA_FAULT_TX | 1 << HCA_FAULT_RX },
    { NULL },
};

static const Name kinds[] = {
    { "send", HCA_FAULT_SEND },
    { "write", HCA_FAULT_WRITE },
    { "read-request", HCA_FAULT_READ_REQUEST },
    { "read-response", HCA_FAULT_READ_RESPONSE },
    { "atomic", HCA_FAULT_ATOMIC },
    { "atomic-response", HCA_FAULT_ATOMIC_RESPONSE },
    { "ack", HCA_FAULT_ACK },
    { "rnr-nak", HCA_FAULT_RNR_NAK },
    { "nak", HCA_FAULT_NAK },
    { "other", HCA_FAULT_OTHER },
    { NULL },
};

static bool find(const Name *names, const char *text, unsigned *value)
{
    for (; names->name; names++) {
        if (!strcmp(names->name, text)) {
            *value = names->value;
            return true;
        }
    }
    return false;
}

static bool number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;

    if (!g_ascii_isdigit(*text)) {
        return false;
    }
    errno = 0;
    *value = g_ascii_strtoull(text, &end, 0);
    return !*end && !errno && *value <= most;
}

/* Values */

static bool set_action(HcaFaultRule *rule, const char *text)
{
    unsigned value;

    if (!find(actions, text, &value)) {
        return false;
    }
    rule->action = value;
    return true;
}

static bool set_direction(HcaFaultRule *rule, const char *text)
{
    unsigned value;

    if (!find(directions, text, &value)) {
        return false;
    }
    rule->directions = value;
    return true;
}

/* Several are joined by +. */
static bool set_kinds(HcaFaultRule *rule, const char *text)
{
    char **each = g_strsplit(text, "+", -1);
    bool good = *each != NULL;
    unsigned value;

    for (char **kind = each; *kind; kind++) {
        if (find(kinds, *kind, &value)) {
            rule->kinds |= 1u << value;
        } else {
            good = false;
        }
    }
    g_strfreev(each);
    return good;
}

/* Upwards: what is not impossible does not become so. */
static bool set_probability(HcaFaultRule *rule, const char *text)
{
    char *end;
    double value = g_ascii_strtod(text, &end);

    if (!*text || *end || !(value >= 0 && value <= 1)) {
        return false;
    }
    rule->probability = ceil(value * HCA_FAULT_ALWAYS);
    return true;
}

static bool set_opcode(HcaFaultRule *rule, const char *text)
{
    uint64_t value = 0;

    rule->match_opcode = number(text, UINT8_MAX, &value);
    rule->opcode = value;
    return rule->match_opcode;
}

static bool set_qpn(HcaFaultRule *rule, const char *text)
{
    uint64_t value = 0;

    rule->match_qpn = number(text, UINT32_MAX, &value);
    rule->qpn = value;
    return rule->match_qpn;
}

/* One PSN, or the first and the last of some. */
static bool set_psn(HcaFaultRule *rule, const char *text)
{
    char **ends = g_strsplit(text, "-", 2);
    uint64_t first = 0, last = 0;

    rule->match_psn = ends[0] && number(ends[0], UINT32_MAX, &first) &&
                      (!ends[1] || number(ends[1], UINT32_MAX, &last));
    rule->psn_first = first;
    rule->psn_last = ends[0] && ends[1] ? last : first;
    g_strfreev(ends);
    return rule->match_psn;
}

static bool set_offset(HcaFaultRule *rule, const char *text)
{
    uint64_t value;

    if (!number(text, INT32_MAX, &value)) {
        return false;
    }
    rule->offset = value;
    return true;
}

static bool set_mask(HcaFaultRule *rule, const char *text)
{
    uint64_t value;

    if (!number(text, UINT8_MAX, &value)) {
        return false;
    }
    rule->mask = value;
    return true;
}

static bool set_delay(HcaFaultRule *rule, const char *text)
{
    return number(text, UINT64_MAX, &rule->delay_ns);
}

static bool set_after(HcaFaultRule *rule, const char *text)
{
    return number(text, UINT64_MAX, &rule->after_ns);
}

static bool set_for(HcaFaultRule *rule, const char *text)
{
    return number(text, UINT64_MAX, &rule->for_ns);
}

static bool set_u32(uint32_t *field, const char *text)
{
    uint64_t value;

    if (!number(text, UINT32_MAX, &value)) {
        return false;
    }
    *field = value;
    return true;
}

static bool set_skip(HcaFaultRule *rule, const char *text)
{
    return set_u32(&rule->skip, text);
}

static bool set_every(HcaFaultRule *rule, const char *text)
{
    return set_u32(&rule->every, text);
}

static bool set_count(HcaFaultRule *rule, const char *text)
{
    return set_u32(&rule->count, text);
}

static bool set_distance(HcaFaultRule *rule, const char *text)
{
    return set_u32(&rule->distance, text);
}

/* Rules */

static const struct {
    const char *name;
    bool (*set)(HcaFaultRule *rule, const char *text);
} keys[] = {
    { "action", set_action },     { "direction", set_direction },
    { "kind", set_kinds },        { "opcode", set_opcode },
    { "qpn", set_qpn },           { "psn", set_psn },
    { "skip", set_skip },         { "every", set_every },
    { "count", set_count },       { "probability", set_probability },
    { "distance", set_distance }, { "delay-ns", set_delay },
    { "offset", set_offset },     { "mask", set_mask },
    { "after-ns", set_after },    { "for-ns", set_for },
};

static bool set_key(HcaFaultRule *rule, const char *name, const char *value,
                    GError **error)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (strcmp(keys[i].name, name)) {
            continue;
        }
        if (keys[i].set(rule, value)) {
            return true;
        }
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "'%s' is no value of %s", value, name);
        return false;
    }
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                "a rule has no '%s'", name);
    return false;
}

static bool parse_word(HcaFaultRule *rule, const char *word, GError **error)
{
    char **pair = g_strsplit(word, "=", 2);
    bool good = pair[0] && pair[1];

    if (good) {
        good = set_key(rule, pair[0], pair[1], error);
    } else {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "'%s' is not KEY=VALUE", word);
    }
    g_strfreev(pair);
    return good;
}

static bool parse_rule(HcaFaultPlan *plan, const char *text, GError **error)
{
    HcaFaultRule rule = {
        .action = HCA_FAULT_NACTIONS, /* which it must say */
        .directions = 1 << HCA_FAULT_TX | 1 << HCA_FAULT_RX,
        .probability = HCA_FAULT_ALWAYS,
        .offset = -1,
    };
    char **words = g_strsplit(text, ",", -1);
    bool good = plan->nrules < HCA_FAULT_MAX_RULES;

    if (!good) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "a port may have %d rules at most", HCA_FAULT_MAX_RULES);
    }
    for (char **word = words; good && *word; word++) {
        good = parse_word(&rule, *word, error);
    }
    if (good) {
        plan->rule[plan->nrules++] = rule;
    }
    g_strfreev(words);
    return good;
}

bool sw_faults_parse(const char *text, HcaFaultPlan *plan, GError **error)
{
    char **rules = g_strsplit(text, ";", -1);
    const char *wrong = NULL;
    bool good = *rules != NULL;

    if (!good) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "there is no rule: KEY=VALUE,...");
    }
    for (char **rule = rules; good && *rule; rule++) {
        good = parse_rule(plan, *rule, error);
    }
    g_strfreev(rules);
    if (good) {
        wrong = hca_fault_check(plan);
    }
    if (wrong) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s",
                    wrong);
    }
    return good && !wrong;
}
