/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an administrator does for SMC (Debian has no smc-tools), by generic netlink:
 *
 *   smc-admin eid NAME   this machine speaks SMC version 2 with those that have the same name
 *   smc-admin stats      what was counted of connections over RDMA, and of those that had to take TCP
 */
#include "common.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/smc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
    struct nlmsghdr header;
    struct genlmsghdr command;
    char attributes[16384];
};

/* What one attribute says, and how much of it there is. */
typedef void visit(int type, const void *data, int length);

static int netlink;
static struct message request, answer;

static void begin(int family, int flags, int command)
{
    memset(&request, 0, sizeof(request));
    request.header = (struct nlmsghdr) { .nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN, .nlmsg_type = family,
                                         .nlmsg_flags = NLM_F_REQUEST | flags };
    request.command = (struct genlmsghdr) { .cmd = command, .version = 1 };
}

static void add(int type, const void *data, int length)
{
    struct nlattr *attribute = (void *)((char *)&request + request.header.nlmsg_len);

    attribute->nla_type = type;
    attribute->nla_len = NLA_HDRLEN + length;
    memcpy((char *)attribute + NLA_HDRLEN, data, length);
    request.header.nlmsg_len += NLA_ALIGN(attribute->nla_len);
}

static void add_text(int type, const char *text)
{
    add(type, text, strlen(text) + 1);
}

static void each(const void *data, int left, visit *found)
{
    while (left >= NLA_HDRLEN) {
        const struct nlattr *attribute = data;

        check(attribute->nla_len >= NLA_HDRLEN && attribute->nla_len <= left);
        found(attribute->nla_type & NLA_TYPE_MASK, (char *)data + NLA_HDRLEN, attribute->nla_len - NLA_HDRLEN);
        data = (char *)data + NLA_ALIGN(attribute->nla_len);
        left -= NLA_ALIGN(attribute->nla_len);
    }
}

/* True if there is more to come. */
static bool take(const struct nlmsghdr *header, visit *found)
{
    if (header->nlmsg_type == NLMSG_ERROR) {
        errno = -*(int *)NLMSG_DATA(header);
        check(!errno);
        return false;
    }
    if (header->nlmsg_type == NLMSG_DONE) {
        return false;
    }
    if (found) {
        each((char *)NLMSG_DATA(header) + GENL_HDRLEN, header->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, found);
    }
    return header->nlmsg_flags & NLM_F_MULTI || request.header.nlmsg_flags & NLM_F_ACK;
}

static void talk(visit *found)
{
    bool more = true;

    check(send(netlink, &request, request.header.nlmsg_len, 0) == request.header.nlmsg_len);
    while (more) {
        int left = recv(netlink, &answer, sizeof(answer), 0);

        check(left > 0);
        for (struct nlmsghdr *header = &answer.header; more && NLMSG_OK(header, (unsigned int)left);
             header = NLMSG_NEXT(header, left)) {
            more = take(header, found);
        }
    }
}

static int family;

static void found_family(int type, const void *data, int length)
{
    if (type == CTRL_ATTR_FAMILY_ID) {
        check(length == 2);
        family = *(const uint16_t *)data;
    }
}

static int family_of(const char *name)
{
    begin(GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
    add_text(CTRL_ATTR_FAMILY_NAME, name);
    talk(found_family);
    check(family);
    return family;
}

static void add_eid(const char *name)
{
    char eid[SMC_MAX_EID_LEN + 1];

    snprintf(eid, sizeof(eid), "%-*s", SMC_MAX_EID_LEN, name);
    begin(family_of(SMC_GENL_FAMILY_NAME), NLM_F_ACK, SMC_NETLINK_ADD_UEID);
    add_text(SMC_NLA_EID_TABLE_ENTRY, eid);
    talk(NULL);
}

static void print(const char *name, const void *data, int length)
{
    uint64_t value = 0;

    check(length <= 8);
    memcpy(&value, data, length);
    printf("%s %llu\n", name, (unsigned long long)value);
}

static void found_rdma(int type, const void *data, int length)
{
    static const struct {
        int type;
        const char *name;
    } counters[] = {
        { SMC_NLA_STATS_T_CLNT_V1_SUCC, "client_v1" }, { SMC_NLA_STATS_T_CLNT_V2_SUCC, "client_v2" },
        { SMC_NLA_STATS_T_SRV_V1_SUCC, "server_v1" },  { SMC_NLA_STATS_T_SRV_V2_SUCC, "server_v2" },
        { SMC_NLA_STATS_T_TX_BYTES, "tx_bytes" },
    };

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        if (counters[i].type == type) {
            print(counters[i].name, data, length);
        }
    }
}

static void found_stats(int type, const void *data, int length)
{
    if (type == SMC_NLA_STATS_SMCR_TECH) {
        each(data, length, found_rdma);
    }
}

static void found_fallback(int type, const void *data, int length)
{
    if (type == SMC_NLA_FBACK_STATS_SRV_CNT) {
        print("server_fallback", data, length);
    } else if (type == SMC_NLA_FBACK_STATS_CLNT_CNT) {
        print("client_fallback", data, length);
    } else if (type == SMC_NLA_FBACK_STATS_RSN_CODE) {
        printf("reason %#x\n", *(const uint32_t *)data);
    }
}

static void found_nest(int type, const void *data, int length)
{
    if (type == SMC_GEN_STATS) {
        each(data, length, found_stats);
    } else if (type == SMC_GEN_FBACK_STATS) {
        each(data, length, found_fallback);
    }
}

static void print_stats(void)
{
    int smc = family_of(SMC_GENL_FAMILY_NAME);

    begin(smc, NLM_F_DUMP, SMC_NETLINK_GET_STATS);
    talk(found_nest);
    begin(smc, NLM_F_DUMP, SMC_NETLINK_GET_FBACK_STATS);
    talk(found_nest);
}

int main(int argc, char **argv)
{
    netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
    check(netlink >= 0);
    if (argc == 3 && !strcmp(argv[1], "eid")) {
        add_eid(argv[2]);
    } else if (argc == 2 && !strcmp(argv[1], "stats")) {
        print_stats();
    } else {
        fail(__FILE__, __LINE__, "smc-admin eid NAME | stats");
    }
    return 0;
}
