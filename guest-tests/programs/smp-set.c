/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: smp-set PATH ATTRIBUTE MODIFIER BYTE=VALUE...
 *
 * Gets an attribute of subnet management along a directed route (0, 0,1 and so on), changes some of its bytes and Sets it. What
 * the programs of infiniband-diags cannot be asked for, as they want a port that is up.
 */
#include "common.h"

#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTED 0x81
#define GET 1
#define SET 2
#define MAD_SIZE 256
#define PERMISSIVE 0xffff

/* A MAD of this class (IBA 14.2.1.2). */
struct smp {
    uint8_t base_version, class, class_version, method;
    uint16_t status;
    uint8_t hop_pointer, hop_count;
    uint64_t id;
    uint16_t attribute, reserved;
    uint32_t modifier;
    uint64_t m_key;
    uint16_t slid, dlid;
    uint8_t reserved2[28];
    uint8_t data[64];
    uint8_t path[64], return_path[64];
};

static int port, agent;

static void read_path(struct smp *smp, const char *path)
{
    unsigned int hop = 0;

    for (const char *at = strchr(path, ','); at; at = strchr(at + 1, ',')) {
        check(++hop < sizeof(smp->path));
        smp->path[hop] = strtoul(at + 1, NULL, 0);
    }
    smp->hop_count = hop;
}

/* The answer is in smp. */
static void ask(struct smp *smp, uint8_t method)
{
    void *buffer = umad_alloc(1, umad_size() + MAD_SIZE);
    int length = MAD_SIZE;

    check(buffer);
    smp->method = method;
    smp->status = 0;
    smp->hop_pointer = 0;
    smp->id++;
    memcpy(umad_get_mad(buffer), smp, MAD_SIZE);
    umad_set_addr(buffer, PERMISSIVE, 0, 0, 0);
    check(umad_send(port, agent, buffer, MAD_SIZE, 1000 * patience(), 0) >= 0);
    check(umad_recv(port, buffer, &length, -1) == agent);
    check(!umad_status(buffer)); /* it came in time */
    memcpy(smp, umad_get_mad(buffer), MAD_SIZE);
    check((ntohs(smp->status) & 0x7fff) == 0);
    umad_free(buffer);
}

int main(int argc, char **argv)
{
    struct smp smp = { .base_version = 1, .class = DIRECTED, .class_version = 1, .slid = PERMISSIVE, .dlid = PERMISSIVE };
    char device[1][UMAD_CA_NAME_LEN];

    _Static_assert(sizeof(smp) == MAD_SIZE, "a MAD");
    check(argc > 4);
    read_path(&smp, argv[1]);
    smp.attribute = htons(strtoul(argv[2], NULL, 0));
    smp.modifier = htonl(strtoul(argv[3], NULL, 0));
    check(!umad_init());
    check(umad_get_cas_names(device, 1) == 1);
    port = umad_open_port(device[0], 1);
    check(port >= 0);
    agent = umad_register(port, DIRECTED, 1, 0, NULL);
    check(agent >= 0);

    ask(&smp, GET);
    for (char **change = argv + 4; *change; change++) {
        char *value;
        unsigned long byte = strtoul(*change, &value, 0);

        check(byte < sizeof(smp.data) && *value == '=');
        smp.data[byte] = strtoul(value + 1, NULL, 0);
    }
    ask(&smp, SET);

    umad_unregister(port, agent);
    umad_close_port(port);
    return 0;
}
