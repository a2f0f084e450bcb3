/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The classic pcap format, with times in nanoseconds. */
#include <glib.h>
#include <stdio.h>

#include "lib-pcap.h"

#define MAGIC_NANOSECONDS 0xa1b23c4d
#define LINKTYPE_INFINIBAND 247
#define SNAPLEN 65535
#define NS_PER_SECOND 1000000000

struct Pcap {
    FILE *file;
};

static void put(Pcap *pcap, const void *data, size_t len)
{
    g_assert_cmpuint(fwrite(data, 1, len, pcap->file), ==, len);
}

Pcap *pcap_create(const char *path)
{
    struct {
        uint32_t magic;
        uint16_t major, minor;
        int32_t zone;
        uint32_t accuracy, snaplen, linktype;
    } header = {
        .magic = MAGIC_NANOSECONDS,
        .major = 2,
        .minor = 4,
        .snaplen = SNAPLEN,
        .linktype = LINKTYPE_INFINIBAND,
    };
    Pcap *pcap = g_new(Pcap, 1);

    pcap->file = fopen(path, "wb");
    g_assert_nonnull(pcap->file);
    put(pcap, &header, sizeof(header));
    return pcap;
}

void pcap_add(Pcap *pcap, int64_t time_ns, const void *packet, size_t len)
{
    uint32_t header[4] = {
        time_ns / NS_PER_SECOND, time_ns % NS_PER_SECOND, len, len,
    };

    put(pcap, header, sizeof(header));
    put(pcap, packet, len);
}

void pcap_close(Pcap *pcap)
{
    g_assert_cmpint(fclose(pcap->file), ==, 0);
    g_free(pcap);
}
