/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is asked of the program while it runs: by its control socket, by a signal. */
#define _GNU_SOURCE /* prlimit() */
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/tests/lib-test.h"
#include "lib-program.h"

static void usr1(void)
{
    char *path = program_path("p");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--ports=3", port, NULL);
    Peer peer = peer_connect(path);

    peer_guid(&peer, PEER_HERE);
    g_subprocess_send_signal(program.process, SIGUSR1);
    program_expect(&program, "port=0 guid=0x525400fffe800001 lid=0");
    program_expect(&program, "port=1 state=init link=up peer=managed");
    program_expect(&program, "port=3 state=down link=none");
    program_expect(&program, "1 PortXmitPkts 1\n");
    program_expect(&program, "0 agent.smps 1\n");
    peer_guid(&peer, PEER_HERE);
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(port);
}

static void control(void)
{
    char *path = program_path("p"), *ctl = program_path("ctl"),
         *file = program_path("f.pcapng");
    char *port = g_strdup_printf("unix-listen:%s", path);
    char *capture = g_strdup_printf("capture 1 %s", file);
    Program program = program_start("log", "--control", ctl, port, NULL);
    Peer peer = peer_connect(path);
    char *long_line = g_strnfill(20000, 'x');
    Peer rude;

    peer_guid(&peer, PEER_HERE);
    control_expect(ctl, "help", "counters [PORT]");
    control_expect(ctl, "ports", "port=1 state=init");
    control_expect(ctl, "counters", "1 PortRcvPkts 1\n");
    control_expect(ctl, "counters 1", "1 PortRcvPkts 1\n");
    control_expect(ctl, "counters 2", "error: no such port");
    control_expect(ctl, "counters -1", "error: no such port");
    control_expect(ctl, "frobnicate", "error: no such command");
    control_expect(ctl, "", "error: no such command");
    control_expect(ctl, "faults 1", "error: faults PORT");
    control_expect(ctl, "faults 0 off", "error: faults PORT");
    control_expect(ctl, "faults 1 action=frob", "error: 'frob'");
    control_expect(ctl, "faults 1 action=drop,direction=rx,count=1", "ok");
    peer_ask(&peer, HCA_ATTR_NODE_INFO, PEER_HERE); /* that one is lost */
    peer_guid(&peer, PEER_HERE);
    control_expect(ctl, "counters 1", "1 fault.rx.drop 1\n");
    control_expect(ctl, "faults 1 off", "ok");
    control_expect(ctl, "capture 1 /no/such/folder/f", "error: cannot write");
    control_expect(ctl, capture, "ok");
    peer_guid(&peer, PEER_HERE);
    control_expect(ctl, "capture 1 off", "ok");
    control_expect(ctl, "counters 1", "1 capture.packets 2\n");
    rude = peer_of(peer_connect_bare(ctl));
    peer_write(&rude, long_line, 20000);
    peer_expect_end(&rude);
    peer_close(&rude);
    control_expect(ctl, "quit", "ok");
    g_assert_cmpint(program_wait(&program), ==, 0);
    g_assert_false(g_file_test(ctl, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(file, G_FILE_TEST_EXISTS));
    g_unlink(file);
    peer_close(&peer);
    g_free(long_line);
    g_free(path);
    g_free(ctl);
    g_free(file);
    g_free(port);
    g_free(capture);
}

/* Several commands at once, over one connection. */
static void commands(void)
{
    char *path = program_path("p"), *ctl = program_path("ctl");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--control", ctl, port, NULL);
    Peer peer = peer_of(peer_connect_bare(ctl));
    unsigned oks = 0;

    for (unsigned i = 0; i < 100; i++) {
        peer_write(&peer, "ports\nhelp\n", 11);
    }
    while (oks < 200) {
        oks = 0;
        g_assert_true(peer_read(&peer));
        for (guint i = 0; i + 3 <= peer.in->len; i++) {
            oks += !memcmp(peer.in->data + i, "ok\n", 3);
        }
    }
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(ctl);
    g_free(port);
}

/* The port of one end is Down, the other end sees it, until it is plugged. */
static void unplug_listening(void)
{
    char *path = program_path("p"), *ctl = program_path("ctl");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--control", ctl, "--ports=2", port,
                                    NULL);
    Peer peer = peer_connect(path), next;

    peer_guid(&peer, PEER_HERE);
    control_expect(ctl, "unplug", "error: no such port");
    control_expect(ctl, "unplug 2", "error: no such port");
    control_expect(ctl, "plug 3", "error: no such port");
    control_expect(ctl, "plug 1", "ok"); /* it is */
    peer_guid(&peer, PEER_HERE);
    for (unsigned i = 0; i < 3; i++) {
        control_expect(ctl, "unplug 1", "ok");
        control_expect(ctl, "unplug 1", "ok");
        control_expect(ctl, "ports", "port=1 state=down link=none");
        peer_expect_end(&peer);
        peer_close(&peer);
        next = peer_of(
            peer_connect_bare(path)); /* in the queue, and no further */
        control_expect(ctl, "ports", "port=1 state=down link=none");
        g_assert_cmpint(recv(next.fd, &(char) { 0 }, 1, MSG_DONTWAIT), ==, -1);
        control_expect(ctl, "plug 1", "ok");
        peer = next;
        peer_greet(&peer);
        peer_guid(&peer, PEER_HERE);
        control_expect(ctl, "ports", "port=1 state=init link=up");
    }
    control_expect(ctl, "unplug 1", "ok");
    peer_close(&peer);
    program_end(&program);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_free(path);
    g_free(ctl);
    g_free(port);
}

/* It does not connect then, whether it did or was about to. */
static void unplug_connecting(void)
{
    char *path = program_path("p"), *ctl = program_path("ctl");
    char *port = g_strdup_printf("unix:%s", path);
    Program program = program_start("log", "--control", ctl, "--reconnect-ms=5",
                                    port, NULL);
    int listener = -1;

    for (unsigned i = 0; i < 3; i++) {
        struct pollfd poller = { .events = POLLIN };
        Peer peer;

        control_expect(ctl, "unplug 1", "ok"); /* nobody listens there */
        listener = poller.fd = peer_listen(path);
        g_assert_cmpint(poll(&poller, 1, 30), ==, 0);
        control_expect(ctl, "plug 1", "ok");
        peer = peer_accept(listener);
        peer_greet(&peer);
        peer_guid(&peer, PEER_HERE);
        control_expect(ctl, "unplug 1", "ok");
        peer_expect_end(&peer);
        peer_close(&peer);
        g_assert_cmpint(poll(&poller, 1, 30), ==, 0);
        /* Changed one's mind at once: the last connection is the good one. */
        control_expect(ctl, "plug 1", "ok");
        control_expect(ctl, "unplug 1", "ok");
        control_expect(ctl, "plug 1", "ok");
        control_await(ctl, "ports", "link=greeting");
        peer = peer_accept(listener);
        while (poll(&poller, 1, 0)) {
            peer_close(&peer);
            peer = peer_accept(listener);
        }
        peer_greet(&peer);
        peer_guid(&peer, PEER_HERE);
        peer_close(&peer);
        close(listener);
        g_unlink(path);
    }
    program_end(&program);
    g_free(path);
    g_free(ctl);
    g_free(port);
}

/* The number that the program's next descriptor would have. */
static unsigned next_descriptor(const char *pid)
{
    for (unsigned i = 0;; i++) {
        char *name = g_strdup_printf("/proc/%s/fd/%u", pid, i);
        bool used = g_file_test(name, G_FILE_TEST_IS_SYMLINK);

        g_free(name);
        if (!used) {
            return i;
        }
    }
}

static void limit_descriptors(const char *pid, rlim_t most)
{
    struct rlimit limit;

    g_assert_cmpint(prlimit(atoi(pid), RLIMIT_NOFILE, NULL, &limit), ==, 0);
    limit.rlim_cur = most;
    g_assert_cmpint(prlimit(atoi(pid), RLIMIT_NOFILE, &limit, NULL), ==, 0);
}

/* Processor time that it has used, ms. */
static unsigned time_used(const char *pid)
{
    char *name = g_strdup_printf("/proc/%s/stat", pid), *text, **words;
    unsigned ticks;

    g_assert_true(g_file_get_contents(name, &text, NULL, NULL));
    words = g_strsplit(strrchr(text, ')'), " ", 0);
    ticks = atoi(words[12]) + atoi(words[13]);
    g_strfreev(words);
    g_free(text);
    g_free(name);
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

/* Who connects waits then, and the program does not go round in circles. */
static void no_descriptors(void)
{
    char *path = program_path("p"), *ctl = program_path("ctl");
    char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", "--control", ctl, port, NULL);
    const char *pid = g_subprocess_get_identifier(program.process);
    Peer client, peer;
    unsigned before;

    control_expect(ctl, "ports", "port=1");
    control_expect(ctl, "help", "ok"); /* the one before has gone, or goes */
    g_usleep(50000);
    limit_descriptors(pid, next_descriptor(pid));
    before = time_used(pid);
    client = peer_of(peer_connect_bare(ctl));
    peer = peer_of(peer_connect_bare(path));
    peer_write(&client, "ports\n", 6);
    g_usleep(600000);
    g_assert_cmpuint(time_used(pid) - before, <, 200);
    g_assert_cmpint(recv(client.fd, &(char) { 0 }, 1, MSG_DONTWAIT), ==, -1);
    limit_descriptors(pid, 256);
    g_assert_true(peer_read(&client));
    peer_greet(&peer);
    peer_guid(&peer, PEER_HERE);
    peer_close(&client);
    peer_close(&peer);
    program_end(&program);
    g_free(path);
    g_free(ctl);
    g_free(port);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/program/usr1", usr1);
    test_add("/switch/program/control", control);
    test_add("/switch/program/unplug/listening", unplug_listening);
    test_add("/switch/program/unplug/connecting", unplug_connecting);
    test_add("/switch/program/no-descriptors", no_descriptors);
    test_add("/switch/program/commands", commands);
    return program_run_tests();
}
