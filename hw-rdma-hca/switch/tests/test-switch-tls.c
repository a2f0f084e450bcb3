/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program's cables over TLS: with each other, and with OpenSSL, which knows who
 * they are and moves the bytes of a peer; who may not connect, and who says nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/tests/lib-test.h"
#include "lib-program.h"
#include "switch/tls.h"

#define KEY "324b7b5eb6239c8a1dfdebba7ba06dd6055f3da07fc234a5b49af70f52843807"
#define NO_KEY                                                                 \
    "000b7b5eb6239c8a1dfdebba7ba06dd6055f3da07fc234a5b49af70f52843807"

/* Credentials */

static char *in_folder(const char *dir, const char *name, const char *end)
{
    g_autofree char *file = g_strconcat(name, end, NULL);

    return g_build_filename(dir, file, NULL);
}

/* Those of scripts/make-credentials; another @name has another authority. */
static char *credentials(const char *name)
{
    char *dir = program_path(name);
    const char *argv[] = { MAKE_CREDENTIALS, dir, NULL };
    GSubprocess *process;

    if (g_file_test(dir, G_FILE_TEST_EXISTS)) {
        return dir;
    }
    process = g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_NONE, NULL);
    g_assert_nonnull(process);
    g_assert_true(g_subprocess_wait_check(process, NULL, NULL));
    g_object_unref(process);
    return dir;
}

/* OpenSSL's end */

typedef struct Stranger {
    GSubprocess *process;
    Peer peer; /* what passes by it */
} Stranger;

/* A client of, or a server at, @port; with these arguments, up to NULL. */
static Stranger stranger(bool server, unsigned port, ...)
{
    GSubprocessLauncher *launcher = program_launcher(
        G_SUBPROCESS_FLAGS_STDERR_SILENCE);
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    g_autofree char *at = g_strdup_printf("127.0.0.1:%u", port);
    Stranger it;
    const char *arg;
    int pair[2];
    va_list ap;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                    ==, 0);
    g_ptr_array_add(args, (char *)"openssl");
    g_ptr_array_add(args, (char *)(server ? "s_server" : "s_client"));
    g_ptr_array_add(args, (char *)"-quiet");
    g_ptr_array_add(args, (char *)(server ? "-accept" : "-connect"));
    g_ptr_array_add(args, at);
    va_start(ap, port);
    while ((arg = va_arg(ap, const char *))) {
        g_ptr_array_add(args, (char *)arg);
    }
    va_end(ap);
    g_ptr_array_add(args, NULL);
    g_subprocess_launcher_take_stdin_fd(launcher, dup(pair[1]));
    g_subprocess_launcher_take_stdout_fd(launcher, pair[1]);
    it.process = g_subprocess_launcher_spawnv(
        launcher, (const char *const *)args->pdata, NULL);
    g_assert_nonnull(it.process);
    g_object_unref(launcher);
    it.peer = peer_of(pair[0]);
    return it;
}

/* A client with the certificate of @name. */
static Stranger certified(unsigned port, const char *dir, const char *name)
{
    g_autofree char *ca = in_folder(dir, "ca", "-cert.pem");
    g_autofree char *cert = in_folder(dir, name, "-cert.pem");
    g_autofree char *key = in_folder(dir, name, "-key.pem");

    return stranger(false, port, "-CAfile", ca, "-verify_return_error",
                    "-verify_hostname", "localhost", "-cert", cert, "-key", key,
                    NULL);
}

static void stranger_end(Stranger *it)
{
    peer_close(&it->peer);
    g_subprocess_force_exit(it->process);
    g_assert_true(g_subprocess_wait(it->process, NULL, NULL));
    g_object_unref(it->process);
}

/* It is sent away before it has heard anything. */
static void expect_refused(Stranger it)
{
    peer_expect_end(&it.peer);
    g_assert_cmpuint(it.peer.in->len, ==, 0);
    stranger_end(&it);
}

static void expect_served(Stranger it)
{
    peer_greet(&it.peer);
    peer_guid(&it.peer, PEER_HERE);
    stranger_end(&it);
}

/* A port that was free a moment ago. */
static unsigned free_port(void)
{
    unsigned port;

    close(peer_listen_tcp(&port));
    return port;
}

static int connect_bare(unsigned port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons(port),
    };

    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (!connect(fd, (void *)&address, sizeof(address))) {
            return fd;
        }
        close(fd);
        g_usleep(5000);
    }
}

/* Records */

/* Both ends of a socket that takes little, after their handshakes. */
static void shake(SwTls **ends, int *pair, SwTlsCreds *creds)
{
    static const bool servers[] = { true, false };
    SwTlsStep steps[2] = { SW_TLS_READ, SW_TLS_READ };
    int size = 4096;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                    ==, 0);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(sw_tls_creds_load(creds, servers[i], "qemu", NULL));
        ends[i] = sw_tls_new(creds, pair[i], servers[i] ? NULL : "localhost",
                             NULL);
        g_assert_nonnull(ends[i]);
    }
    while (steps[0] != SW_TLS_DONE || steps[1] != SW_TLS_DONE) {
        for (unsigned i = 0; i < 2; i++) {
            char *why = NULL;

            if (steps[i] != SW_TLS_DONE) {
                steps[i] = sw_tls_shake(ends[i], &why);
                g_assert_cmpstr(why, ==, NULL);
            }
        }
    }
}

static void part(SwTls **ends, const int *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        sw_tls_free(ends[i]);
        close(pair[i]);
    }
}

/*
 * What was taken comes once and in order, whatever the writer has to say when the
 * rest is due: it is never asked for those bytes again.
 */
static void records(void)
{
    g_autofree char *dir = credentials("good");
    SwTlsCreds *creds = sw_tls_creds_new(dir, true);
    static uint8_t out[64 * 1024], in[64 * 1024];
    size_t taken = 0, got = 0;
    unsigned refused = 0, kept = 0;
    SwTls *ends[2];
    int pair[2];

    shake(ends, pair, creds);
    while (refused < 100 || kept < 100) {
        size_t len = g_test_rand_int_range(1, sizeof(out));
        size_t half = g_test_rand_int_range(0, len);
        const struct iovec iov[] = { { out, half },
                                     { out + half, len - half } };
        struct iovec to = { in, g_test_rand_int_range(1, sizeof(in)) };
        ssize_t n;

        for (size_t i = 0; i < len; i++) {
            out[i] = (taken + i) * 2654435761u >> 24;
        }
        n = sw_tls_writev(ends[0], iov, 2);
        if (n == -EAGAIN) {
            g_assert_true(sw_tls_is_full(ends[0]));
            refused++;
        } else {
            g_assert_cmpint(n, ==, len);
            kept += sw_tls_is_full(ends[0]);
            taken += n;
        }
        n = sw_tls_readv(ends[1], &to, 1);
        for (ssize_t i = 0; i < n; i++) {
            g_assert_cmphex(in[i], ==,
                            (uint8_t)((got + i) * 2654435761u >> 24));
        }
        got += MAX(n, 0);
    }
    while (got < taken) {
        struct iovec to = { in, sizeof(in) };
        ssize_t n;

        sw_tls_flush(ends[0]);
        n = sw_tls_readv(ends[1], &to, 1);
        g_assert_true(n > 0 || n == -EAGAIN);
        got += MAX(n, 0);
    }
    g_assert_cmpuint(got, ==, taken);
    g_assert_cmpint(sw_tls_flush(ends[0]), ==, 0);
    g_assert_false(sw_tls_is_full(ends[0]));
    part(ends, pair);
    sw_tls_creds_free(creds);
}

/* Cases */

/* A switch with a port that listens, by credentials of a kind; one more option. */
static Program listener(const char *by, const char *option, unsigned *number)
{
    g_autofree char *dir = credentials("good");
    g_autofree char *tls = g_strdup_printf("--tls-%s=%s", by, dir);
    g_autofree char *at = NULL;

    *number = free_port();
    at = g_strdup_printf("tls-listen:127.0.0.1:%u", *number);
    return program_start("log", "-v", tls, option, at, NULL);
}

/* Two switches and a directed route through both. */
static void trunk(gconstpointer by)
{
    g_autofree char *dir = credentials("good");
    g_autofree char *option = g_strdup_printf("--tls-%s=%s", (char *)by, dir);
    unsigned number = free_port();
    g_autofree char *at = g_strdup_printf("tls-listen:127.0.0.1:%u", number);
    g_autofree char *to = g_strdup_printf("tls:localhost:%u", number);
    g_autofree char *path = program_path("p");
    g_autofree char *port = g_strdup_printf("unix-listen:%s", path);
    Program first = program_start("log", "--guid=1", "-v", option, port, at,
                                  NULL);
    Program second = program_start("log2", "--guid=2", "-v", option,
                                   "--reconnect-ms=5", to, NULL);
    Peer peer = peer_connect(path);

    /* Both ends have heard the other's greeting. */
    program_expect(&first, "port 2: init");
    program_expect(&second, "port 1: init");
    for (unsigned i = 0; i < 100; i++) {
        g_assert_cmphex(peer_guid(&peer, (const uint8_t *)"\2", 1), ==,
                        HCA_SWITCH_DEFAULT_GUID + 2);
    }
    peer_close(&peer);
    program_end(&second);
    program_end(&first);
}

/*
 * Data by OpenSSL and by a plain cable, both ways; also more of it than the way takes
 * at once, so that records are sent in parts.
 */
static void data(gconstpointer by)
{
    bool psk = g_str_equal(by, "psk");
    g_autofree char *dir = credentials("good");
    g_autofree char *option = g_strdup_printf("--tls-%s=%s", (char *)by, dir);
    unsigned number = free_port(), n;
    g_autofree char *at = g_strdup_printf("tls-listen:127.0.0.1:%u", number);
    g_autofree char *path = program_path("p"), *ctl = program_path("ctl");
    g_autofree char *port = g_strdup_printf("unix-listen:%s", path);
    Program program = program_start("log", option, "--control", ctl, port, at,
                                    NULL);
    Peer peer = peer_connect(path);
    Stranger it = psk ? stranger(false, number, "-psk", KEY, "-psk_identity",
                                 "qemu", NULL)
                      : certified(number, dir, "client");
    Parcel back = { .slid = 2, .dlid = 1, .size = 1000 };
    g_autoptr(GByteArray) packet = parcel_pack(&back);
    GByteArray *sent;

    peer_greet(&it.peer);
    peer_guid(&it.peer, PEER_HERE);
    peer_configure(&peer);
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned j = 0; j < 10; j++) {
            peer_send_packet(&it.peer, packet);
        }
        peer_expect_packets(&peer, packet, 10);
    }
    n = peer_fill(&peer, &sent, ctl);
    peer_expect_packets(&it.peer, sent, n);
    g_byte_array_unref(sent);
    peer_close(&peer);
    stranger_end(&it);
    program_end(&program);
}

/* Who is not known does not get the port, nor keep anybody from it. */
static void unknown_certificates(void)
{
    g_autofree char *dir = credentials("good");
    g_autofree char *others = credentials("others");
    g_autofree char *ca = in_folder(dir, "ca", "-cert.pem");
    unsigned number;
    Program program = listener("x509", "--tls-allow=1=CN=cl*.example", &number);
    Peer plain = peer_of(connect_bare(number));

    peer_write(&plain, "GET / HTTP/1.1\r\n\r\n", 18);
    peer_expect_end(&plain);
    peer_close(&plain);
    /* No certificate at all; one of another authority; one that may not. */
    expect_refused(stranger(false, number, "-CAfile", ca, NULL));
    {
        g_autofree char *cert = in_folder(others, "client", "-cert.pem");
        g_autofree char *key = in_folder(others, "client", "-key.pem");

        expect_refused(stranger(false, number, "-CAfile", ca, "-cert", cert,
                                "-key", key, NULL));
    }
    program_expect(&program, "issuer");
    expect_refused(certified(number, dir, "other"));
    program_expect(&program, "CN=other.example may not connect");
    expect_served(certified(number, dir, "client"));
    program_end(&program);
}

static void unknown_keys(void)
{
    unsigned number;
    Program program = listener("psk", "--tls-allow=qemu", &number);

    close(connect_bare(number)); /* it listens */
    expect_refused(
        stranger(false, number, "-psk", NO_KEY, "-psk_identity", "qemu", NULL));
    expect_refused(
        stranger(false, number, "-psk", KEY, "-psk_identity", "nobody", NULL));
    expect_refused(
        stranger(false, number, "-psk", KEY, "-psk_identity", "third", NULL));
    program_expect(&program, "third may not connect");
    expect_served(
        stranger(false, number, "-psk", KEY, "-psk_identity", "qemu", NULL));
    program_end(&program);
}

/* A server that is not the one whose name was given gets nothing. */
static void hostname(void)
{
    g_autofree char *dir = credentials("good");
    unsigned number = free_port();
    g_autofree char *to = g_strdup_printf("tls:localhost:%u", number);
    g_autofree char *cert = in_folder(dir, "elsewhere", "-cert.pem");
    g_autofree char *key = in_folder(dir, "elsewhere", "-key.pem");
    g_autofree char *good_cert = in_folder(dir, "server", "-cert.pem");
    g_autofree char *good_key = in_folder(dir, "server", "-key.pem");
    g_autofree char *ca = in_folder(dir, "ca", "-cert.pem");
    Program program;
    Stranger it;

    it = stranger(true, number, "-cert", cert, "-key", key, "-CAfile", ca,
                  "-Verify", "1", "-verify_return_error", NULL);
    program = program_start("log", "-v", "--tls-x509", dir, "--reconnect-ms=5",
                            to, NULL);
    program_expect(&program, "name in the certificate does not match");
    g_subprocess_force_exit(it.process);
    expect_refused(it);
    it = stranger(true, number, "-cert", good_cert, "-key", good_key, "-CAfile",
                  ca, "-Verify", "1", "-verify_return_error", NULL);
    expect_served(it);
    program_end(&program);
}

/* Who says nothing does not keep others out, however many they are. */
static void silent(void)
{
    g_autofree char *dir = credentials("good");
    unsigned number;
    Program program = listener("x509", "--greeting-ms=0", &number);
    Peer peers[SW_HANDSHAKES_MAX + 12];

    for (unsigned i = 0; i < G_N_ELEMENTS(peers); i++) {
        peers[i] = peer_of(connect_bare(number));
    }
    /* The first had to make room, and then all for the one that is known. */
    for (unsigned i = 0; i < 12; i++) {
        peer_expect_end(&peers[i]);
    }
    expect_served(certified(number, dir, "client"));
    for (unsigned i = 0; i < G_N_ELEMENTS(peers); i++) {
        peer_expect_end(&peers[i]);
        peer_close(&peers[i]);
    }
    program_end(&program);
}

static void late(void)
{
    unsigned number;
    Program program = listener("x509", "--greeting-ms=20", &number);
    Peer peer = peer_of(connect_bare(number));

    peer_expect_end(&peer);
    peer_close(&peer);
    program_expect(&program, "the TLS handshake takes too long");
    program_end(&program);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/tls/records", records);
    test_add_data("/switch/tls/trunk/x509", "x509", trunk);
    test_add_data("/switch/tls/trunk/psk", "psk", trunk);
    test_add_data("/switch/tls/data/x509", "x509", data);
    test_add_data("/switch/tls/data/psk", "psk", data);
    test_add("/switch/tls/unknown/x509", unknown_certificates);
    test_add("/switch/tls/unknown/psk", unknown_keys);
    test_add("/switch/tls/hostname", hostname);
    test_add("/switch/tls/silent", silent);
    test_add("/switch/tls/late", late);
    return program_run_tests();
}
