/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program's cables: who listens and who connects, peers that come, go and
 * misbehave, and packets through it.
 */
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/tests/lib-test.h"
#include "lib-program.h"

/* Listening: greetings, an SMP, the next peer, the end. */
static void listens(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--guid=5", port, NULL);

    for (unsigned i = 0; i < 3; i++) {
        Peer peer = peer_connect(path);

        g_assert_cmphex(peer_guid(&peer, PEER_HERE), ==,
                        HCA_SWITCH_DEFAULT_GUID + 5);
        peer_close(&peer);
    }
    program_end(&program);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_free(path);
    g_free(port);
}

/* One at a time: the next one's turn comes when the first is gone. */
static void one_at_a_time(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", port, NULL);
    Peer first = peer_connect(path);
    Peer second = peer_of(peer_connect_bare(path));

    peer_guid(&first, PEER_HERE);
    g_assert_cmpuint(second.in->len, ==, 0);
    peer_close(&first);
    peer_greet(&second);
    peer_guid(&second, PEER_HERE);
    peer_close(&second);
    program_end(&program);
    g_free(path);
    g_free(port);
}

/* Who does not greet, or says something else, has to make room. */
static void no_greeting(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--greeting-ms=20", port, NULL);
    Peer silent = peer_of(peer_connect_bare(path));
    Peer wrong, peer;

    peer_expect_end(&silent);
    peer_close(&silent);
    wrong = peer_of(peer_connect_bare(path));
    peer_write(&wrong, "GET / HTTP/1.1\r\n\r\n", 18);
    peer_expect_end(&wrong);
    peer_close(&wrong);
    /* One that has greeted may be silent. */
    peer = peer_connect(path);
    g_usleep(60000);
    peer_guid(&peer, PEER_HERE);
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(port);
}

/* Connecting: whenever the peer is there. */
static void connects(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix:%s", path);
    Program program = program_start("log", "--reconnect-ms=5", port, NULL);
    int listener = -1;

    for (unsigned i = 0; i < 3; i++) {
        Peer peer;

        listener = peer_listen(path);
        peer = peer_accept(listener);
        peer_greet(&peer);
        peer_guid(&peer, PEER_HERE);
        peer_close(&peer);
        close(listener);
        g_unlink(path);
    }
    program_end(&program);
    g_free(path);
    g_free(port);
}

static void tcp(void)
{
    unsigned number, other;
    int listener = peer_listen_tcp(&number), reserved = peer_listen_tcp(&other);
    char *to = g_strdup_printf("tcp:127.0.0.1:%u", number);
    char *at = g_strdup_printf("tcp-listen:localhost:%u", other);
    char *back = g_strdup_printf("tcp:localhost:%u", other);
    Program first, second;
    Peer peer;

    close(reserved);
    first = program_start("log", "--guid=1", "-v", to, at, NULL);
    second = program_start("log2", "--guid=2", "-v", "--reconnect-ms=5", back,
                           NULL);
    peer = peer_accept(listener);
    peer_greet(&peer);
    /* Both ends have heard the other's greeting. */
    program_expect(&first, "port 2: init");
    program_expect(&second, "port 1: init");
    g_assert_cmphex(peer_guid(&peer, (const uint8_t *)"\2", 1), ==,
                    HCA_SWITCH_DEFAULT_GUID + 2);
    peer_close(&peer);
    program_end(&second);
    program_end(&first);
    close(listener);
    g_free(to);
    g_free(at);
    g_free(back);
}

/* A name that is none, a host that is none: again and again, without harm. */
static void unreachable(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--reconnect-ms=1", port,
                                    "tcp:localhost:1", "unix:/no/such/path",
                                    "tcp:no.such.host.invalid:5", NULL);
    Peer peer = peer_connect(path);

    for (unsigned i = 0; i < 100; i++) {
        peer_guid(&peer, PEER_HERE);
    }
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(port);
}

/* Two of them, and a directed route through both. */
static void two(void)
{
    char *a = program_path("a"), *b = program_path("b");
    char *at_a = g_strdup_printf("unix-listen:%s", a);
    char *at_b = g_strdup_printf("unix-listen:%s", b);
    char *to_b = g_strdup_printf("unix:%s", b);
    Program first = program_start("log", "--guid=1", "-v", "--reconnect-ms=5",
                                  at_a, to_b, NULL);
    Program second = program_start("log2", "--guid=2", at_b, NULL);
    Peer peer = peer_connect(a);

    program_expect(&first, "port 2: init");
    g_assert_cmphex(peer_guid(&peer, PEER_HERE), ==,
                    HCA_SWITCH_DEFAULT_GUID + 1);
    g_assert_cmphex(peer_guid(&peer, (const uint8_t *)"\2", 1), ==,
                    HCA_SWITCH_DEFAULT_GUID + 2);
    /* The second one ends: so does its link. */
    program_end(&second);
    program_expect(&first, "port 2: down");
    peer_close(&peer);
    program_end(&first);
    g_free(a);
    g_free(b);
    g_free(at_a);
    g_free(at_b);
    g_free(to_b);
}

/* Killed, and started again: the path is taken over, all begins anew. */
static void killed(void)
{
    char *path = program_path("p"), *control = program_path("ctl");
    char *port = g_strdup_printf("unix-listen:%s", path);

    for (unsigned i = 0; i < 3; i++) {
        Program program = program_start("log", "--control", control, port,
                                        NULL);
        uint8_t info[HCA_SMP_DATA_SIZE];
        Peer peer = peer_connect(path);

        peer_ask(&peer, HCA_ATTR_SWITCH_INFO, PEER_HERE);
        peer_answer(&peer, info);
        g_assert_cmphex(info[11] & 4, ==, 4); /* PortStateChange */
        g_subprocess_send_signal(program.process, SIGKILL);
        g_assert_cmpint(program_wait(&program), ==, -1);
        peer_expect_end(&peer);
        peer_close(&peer);
        g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
        g_assert_true(g_file_test(control, G_FILE_TEST_EXISTS));
    }
    g_unlink(path);
    g_unlink(control);
    g_free(path);
    g_free(control);
    g_free(port);
}

/* The path of one that lives is not taken. */
static void in_use(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program first = program_start("log", port, NULL);
    Peer peer = peer_connect(path);
    Program second = program_start("log2", port, NULL);
    char *log;

    g_assert_true(g_subprocess_wait(second.process, NULL, NULL));
    log = program_log(&second);
    g_assert_nonnull(strstr(log, path));
    g_free(log);
    g_assert_cmpint(program_wait(&second), ==, 1);
    peer_guid(&peer, PEER_HERE);
    peer_close(&peer);
    peer = peer_connect(path);
    peer_close(&peer);
    program_end(&first);
    g_free(path);
    g_free(port);
}

/* Packets */

/* Data through the program; its ends read and write when they like. */
static void data(void)
{
    char *a = program_path("a"), *b = program_path("b");
    char *at_a = g_strdup_printf("unix-listen:%s", a);
    char *at_b = g_strdup_printf("unix-listen:%s", b);
    Program program = program_start("log", "-v", at_a, at_b, NULL);
    Peer first = peer_connect(a), second = peer_connect(b);
    Parcel parcel = { .slid = 1, .dlid = 2, .size = 1000 };
    GByteArray *packet = parcel_pack(&parcel);

    peer_guid(&second, PEER_HERE);
    peer_configure(&first);
    for (unsigned i = 0; i < 1000; i++) {
        peer_send_packet(&first, packet);
        if (i % 10 == 9) {
            peer_expect_packets(&second, packet, 10);
        }
    }
    g_byte_array_unref(packet);
    peer_close(&first);
    peer_close(&second);
    program_end(&program);
    g_free(a);
    g_free(b);
    g_free(at_a);
    g_free(at_b);
}

/*
 * A peer that hangs up while the switch does not read from it, because another
 * one does not read: it makes room for the next one at once.
 */
static void hangs_up(void)
{
    char *a = program_path("a"), *b = program_path("b"),
         *ctl = program_path("ctl");
    char *at_a = g_strdup_printf("unix-listen:%s", a);
    char *at_b = g_strdup_printf("unix-listen:%s", b);
    Program program = program_start("log", "--control", ctl, at_a, at_b, NULL);
    Peer first = peer_connect(a), second = peer_connect(b);
    GByteArray *packet;

    peer_guid(&second, PEER_HERE);
    peer_configure(&first);
    peer_fill(&first, &packet, ctl);
    peer_close(&first);
    first = peer_connect(a);
    peer_guid(&first, PEER_HERE);
    peer_expect_packets(&second, packet, 30);
    g_byte_array_unref(packet);
    peer_close(&first);
    peer_close(&second);
    program_end(&program);
    g_free(a);
    g_free(b);
    g_free(ctl);
    g_free(at_a);
    g_free(at_b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/program/listens", listens);
    test_add("/switch/program/one-at-a-time", one_at_a_time);
    test_add("/switch/program/no-greeting", no_greeting);
    test_add("/switch/program/connects", connects);
    test_add("/switch/program/tcp", tcp);
    test_add("/switch/program/unreachable", unreachable);
    test_add("/switch/program/two", two);
    test_add("/switch/program/killed", killed);
    test_add("/switch/program/in-use", in_use);
    test_add("/switch/program/data", data);
    test_add("/switch/program/hangs-up", hangs_up);
    return program_run_tests();
}
