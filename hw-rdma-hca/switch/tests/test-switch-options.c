/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program's command line: what it refuses, and what comes of its options;
 * captures.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "core/record/pcapng.h"
#include "core/tests/lib-pcapng.h"
#include "core/tests/lib-test.h"
#include "lib-program.h"

static void help(void)
{
    static const char *const texts[] = {
        "--guid",        "--name",    "--ports",   "--mtu",
        "--vls",         "--buffer",  "--verbose", "--reconnect-ms",
        "--greeting-ms", "--capture", "--fault",   "--capture-max",
        "--seed",        "--control", "unix:PATH", "tcp-listen:HOST:PORT",
        "probability",   "SIGUSR1",
    };
    GError *error = NULL;
    char *path = g_test_build_filename(G_TEST_BUILT, "hca-switch", NULL);
    GSubprocess *process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE,
                                            &error, path, "--help", NULL);
    char *out;

    g_assert_no_error(error);
    g_assert_true(
        g_subprocess_communicate_utf8(process, NULL, NULL, &out, NULL, NULL));
    g_assert_cmpint(g_subprocess_get_exit_status(process), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_test_message("%s", texts[i]);
        g_assert_nonnull(strstr(out, texts[i]));
    }
    g_free(out);
    g_free(path);
    g_object_unref(process);
}

typedef struct BadLine {
    const char *args[3], *message;
} BadLine;

static const BadLine bad_lines[] = {
    { { NULL }, "no PORT" },
    { { "/tmp/x" }, "an address is" },
    { { "unix:" }, "path has" },
    { { "tcp:localhost" }, "port number" },
    { { "tcp-listen:localhost:0" }, "port number" },
    { { "tcp:localhost:70000" }, "70000" },
    { { "--frob", "unix:/x" }, "Unknown option" },
    { { "--guid=0", "unix:/x" }, "--guid" },
    { { "--guid=0x1ffffffffffffffff", "unix:/x" }, "--guid" },
    { { "--guid=x", "unix:/x" }, "--guid" },
    { { "--ports=0", "unix:/x", "unix:/y" }, "--ports" },
    { { "--ports=1", "unix:/x", "unix:/y" }, "--ports" },
    { { "--ports=49", "unix:/x" }, "48 ports" },
    { { "--ports=-1", "unix:/x" }, "--ports" },
    { { "--mtu=1500", "unix:/x" }, "mtu must" },
    { { "--vls=3", "unix:/x" }, "vls must" },
    { { "--buffer=1", "unix:/x" }, "queue" },
    { { "--name=0123456789012345678901234567890123456789012345678901234567890"
        "1234",
        "unix:/x" },
      "64 bytes" },
    { { "--reconnect-ms=0", "unix:/x" }, "--reconnect-ms" },
    { { "--greeting-ms=-1", "unix:/x" }, "--greeting-ms" },
    { { "--move-limit-ms=-1", "unix:/x" }, "--move-limit-ms" },
    { { "--capture-max=-1", "unix:/x" }, "--capture-max" },
    { { "tls:localhost" }, "port number" },
    { { "tls:localhost:1" }, "--tls-x509 or --tls-psk" },
    { { "--tls-x509=/x", "--tls-psk=/x", "tls:localhost:1" }, "given both" },
    { { "--tls-x509=/x", "tls:localhost:1" }, "no ca-cert.pem" },
    { { "--tls-psk=/x", "tls-listen:localhost:1" }, "no keys.psk" },
    { { "--tls-allow=2=x", "unix:/x" }, "--tls-allow" },
    { { "--seed=4294967296", "unix:/x" }, "--seed" },
    { { "--capture=2=/tmp/x", "unix:/x" }, "--capture" },
    { { "--fault=action=drop", "unix:/x" }, "--fault" },
    { { "--fault=2:action=drop", "unix:/x" }, "--fault" },
    { { "--fault=1:", "unix:/x" }, "KEY=VALUE" },
    { { "--fault=1:direction=tx", "unix:/x" }, "action must" },
    { { "--fault=1:action=spill", "unix:/x" },
      "'spill' is no value of action" },
    { { "--fault=1:action=drop,colour=red", "unix:/x" }, "no 'colour'" },
    { { "--fault=1:action=drop,probability=2", "unix:/x" }, "probability" },
    { { "--fault=1:action=delay", "unix:/x" }, "delay-ns" },
    { { "--fault=1:action=drop,psn=1-2-3", "unix:/x" }, "psn" },
    { { "--fault=1:action=drop;action=frob", "unix:/x" }, "frob" },
    { { "--control=", "unix:/x" }, "path has" },
};

static void bad_line(gconstpointer data)
{
    const BadLine *bad = data;
    Program program = program_start("log", bad->args[0], bad->args[1],
                                    bad->args[2], NULL);
    char *log;

    g_assert_true(g_subprocess_wait(program.process, NULL, NULL));
    log = program_log(&program);
    g_test_message("%s", log);
    g_assert_true(g_str_has_prefix(log, "hca-switch: "));
    g_assert_nonnull(strstr(log, bad->message));
    g_assert_cmpint(program_wait(&program), ==, 2);
    g_free(log);
}

/* Good ones, all together. */
static void all_options(void)
{
    char *path = program_path("p"), *capture = program_path("c");
    char *one = g_strdup_printf("1=%s.1", capture);
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start(
        "log", "--guid=0xabcdef", "--name=somebody", "--ports=48", "--mtu=2048",
        "--vls=15", "--buffer=16384", "--reconnect-ms=1", "--greeting-ms=0",
        "--capture", capture, "--capture", one, "--capture-max=100000",
        "--fault=2:action=drop,direction=both,kind=send+nak,opcode=0x64,"
        "qpn=1,psn=5-7,skip=1,every=2,count=3,probability=0.5;action=corrupt,"
        "offset=9,mask=1;action=reorder,distance=3;action=delay,delay-ns=9",
        "--seed=4294967295", "--verbose", port, NULL);
    Peer peer = peer_connect(path);
    uint8_t info[HCA_SMP_DATA_SIZE];

    g_assert_cmphex(peer_guid(&peer, PEER_HERE), ==, 0xabcdef);
    peer_ask(&peer, HCA_ATTR_NODE_INFO, PEER_HERE);
    peer_answer(&peer, info);
    g_assert_cmpuint(info[3], ==, 48);
    peer_ask(&peer, HCA_ATTR_NODE_DESC, PEER_HERE);
    peer_answer(&peer, info);
    g_assert_cmpstr((char *)info, ==, "somebody");
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(capture);
    g_free(one);
    g_free(port);
}

/* Rules of the command line are there from the first packet on. */
static void fault_option(void)
{
    char *path = program_path("p"), *ctl = program_path("ctl");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start(
        "log", "--control", ctl, "--fault",
        "1:action=drop,direction=rx,count=2", "--fault",
        "1:action=duplicate,direction=tx", port, NULL);
    Peer peer = peer_connect(path);
    uint8_t info[HCA_SMP_DATA_SIZE];

    for (unsigned i = 0; i < 3; i++) {
        peer_ask(&peer, HCA_ATTR_NODE_INFO, PEER_HERE);
    }
    peer_answer(&peer, info);
    peer_answer(&peer, info);
    control_expect(ctl, "counters 1", "1 fault.tx.duplicate 1\n");
    control_expect(ctl, "counters 1", "1 fault.rx.drop 2\n");
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(ctl);
    g_free(port);
}

/* Captures */

/* A file's packets, by the interface, of the ports of these names. */
static void read_capture(const char *path, const char *const *ports,
                         unsigned *packets)
{
    GByteArray *file;
    unsigned interfaces = 0;
    PcapngBlock block;
    size_t at = 0;
    char *data;
    gsize len;

    memset(packets, 0, 4 * sizeof(*packets));
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    file = g_byte_array_new_take((guint8 *)data, len);
    g_assert_true(pcapng_next(file, &at, &block));
    pcapng_check_section(&block, "hca-switch");
    while (pcapng_next(file, &at, &block)) {
        if (block.type == PCAPNG_INTERFACE) {
            g_assert_nonnull(ports[interfaces]);
            pcapng_check_interface(&block, HCA_PCAPNG_IB, ports[interfaces++]);
        } else {
            PcapngPacket packet = pcapng_packet(&block);

            g_assert_cmpuint(packet.interface, <, interfaces);
            packets[packet.interface]++;
        }
    }
    g_assert_null(ports[interfaces]);
    g_byte_array_unref(file);
}

/* All ports in one file, one of them in its own. */
static void captures(void)
{
    char *a = program_path("a"), *b = program_path("b"), *c = program_path("c");
    char *all = program_path("all.pcapng"), *own = program_path("own.pcapng");
    char *third = g_strdup_printf("3=%s", own);
    char *ports[3] = {
        g_strdup_printf("unix-listen:%s", a),
        g_strdup_printf("unix-listen:%s", b),
        g_strdup_printf("unix-listen:%s", c),
    };
    Program program = program_start("log", "--capture", all, "--capture", third,
                                    ports[0], ports[1], ports[2], NULL);
    Peer peer[3] = { peer_connect(a), peer_connect(b), peer_connect(c) };
    unsigned packets[4];

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j <= i; j++) {
            peer_guid(&peer[i], PEER_HERE);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        peer_close(&peer[i]);
        g_free(ports[i]);
    }
    program_end(&program);
    read_capture(all, (const char *[]) { "port 1", "port 2", "port 3", NULL },
                 packets);
    g_assert_cmpuint(packets[0], ==, 2);
    g_assert_cmpuint(packets[1], ==, 4);
    g_assert_cmpuint(packets[2], ==, 0);
    read_capture(own, (const char *[]) { "port 3", NULL }, packets);
    g_assert_cmpuint(packets[0], ==, 6);
    g_unlink(all);
    g_unlink(own);
    g_free(a);
    g_free(b);
    g_free(c);
    g_free(all);
    g_free(own);
    g_free(third);
}

/* The file of a capture that has to end at this size; g_free() it. */
static char *capture_until(const char *max)
{
    char *path = program_path("p"), *file = program_path("f.pcapng");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--capture", file, max, port, NULL);
    Peer peer = peer_connect(path);

    for (unsigned i = 0; i < 20; i++) {
        peer_guid(&peer, PEER_HERE);
    }
    program_expect(&program, "takes no more");
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(port);
    return file;
}

/* It ends whole. */
static void capture_max(void)
{
    char *file = capture_until("--capture-max=2000");
    unsigned packets[4];

    read_capture(file, (const char *[]) { "port 1", NULL }, packets);
    g_assert_cmpuint(packets[0], >=, 1);
    g_assert_cmpuint(packets[0], <, 7);
    g_unlink(file);
    g_free(file);
}

/* One that has no room for its section has nothing. */
static void capture_tiny(void)
{
    char *file = capture_until("--capture-max=46");
    char *data;
    gsize len;

    g_assert_true(g_file_get_contents(file, &data, &len, NULL));
    g_assert_cmpuint(len, ==, 0);
    g_unlink(file);
    g_free(data);
    g_free(file);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/program/help", help);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_lines); i++) {
        test_add_data(test_named("/switch/program/bad-line/%u", i),
                      &bad_lines[i], bad_line);
    }
    test_add("/switch/program/all-options", all_options);
    test_add("/switch/program/captures", captures);
    test_add("/switch/program/capture-max", capture_max);
    test_add("/switch/program/capture-tiny", capture_tiny);
    test_add("/switch/program/fault-option", fault_option);
    return program_run_tests();
}
