/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The classic pcap format, with times in nanoseconds. InfiniBand packets are
 * records of the Extensible Record Format, type 21: Wireshark decodes those as
 * they are, and knows no link type for an InfiniBand packet alone.
 */
#include <glib.h>
#include <stdio.h>

#include "lib-pcap.h"

#define MAGIC_NANOSECONDS 0xa1b23c4d
#define LINKTYPE_ETHERNET 1
#define LINKTYPE_ERF 197
#define ERF_TYPE_INFINIBAND 21
#define ERF_VARYING_LENGTH 0x04
#define SNAPLEN 65535
#define NS_PER_SECOND 1000000000

/* Lengths are big-endian, the time (seconds, 2^-32 seconds) is not. */
typedef struct ErfHeader {
    uint32_t fraction;
    uint32_t seconds;
    uint8_t type;
    uint8_t flags;
    uint16_t record_len;
    uint16_t losses;
    uint16_t wire_len;
} ErfHeader;

struct Pcap {
    FILE *file;
    uint32_t linktype;
};

static void put(Pcap *pcap, const void *data, size_t len)
{
    g_assert_cmpuint(fwrite(data, 1, len, pcap->file), ==, len);
}

static Pcap *create(const char *path, uint32_t linktype)
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
        .linktype = linktype,
    };
    Pcap *pcap = g_new(Pcap, 1);

    pcap->linktype = linktype;
    pcap->file = fopen(path, "wb");
    g_assert_nonnull(pcap->file);
    put(pcap, &header, sizeof(header));
    return pcap;
}

Pcap *pcap_create(const char *path)
{
    return create(path, LINKTYPE_ERF);
}

Pcap *pcap_create_ethernet(const char *path)
{
    return create(path, LINKTYPE_ETHERNET);
}

void pcap_add(Pcap *pcap, int64_t time_ns, const void *packet, size_t len)
{
    uint32_t seconds = time_ns / NS_PER_SECOND;
    uint64_t ns = time_ns % NS_PER_SECOND;
    ErfHeader erf = {
        .fraction = GUINT32_TO_LE((ns << 32) / NS_PER_SECOND),
        .seconds = GUINT32_TO_LE(seconds),
        .type = ERF_TYPE_INFINIBAND,
        .flags = ERF_VARYING_LENGTH,
        .record_len = GUINT16_TO_BE(sizeof(erf) + len),
        .wire_len = GUINT16_TO_BE(len),
    };
    size_t erf_len = pcap->linktype == LINKTYPE_ERF ? sizeof(erf) : 0;
    uint32_t header[4] = { seconds, ns, erf_len + len, erf_len + len };

    put(pcap, header, sizeof(header));
    put(pcap, &erf, erf_len);
    put(pcap, packet, len);
}

void pcap_close(Pcap *pcap)
{
    g_assert_cmpint(fclose(pcap->file), ==, 0);
    g_free(pcap);
}

char *pcap_path(const char *name)
{
    const char *path = g_getenv("HCA_CAPTURE");

    return path ? g_strdup(path)
                : g_test_build_filename(G_TEST_BUILT, name, NULL);
}
