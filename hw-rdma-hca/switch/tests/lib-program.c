/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-program.h"

#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <unistd.h>

#define PATIENCE_MS 60000

static char *dir;

int program_run_tests(void)
{
    char *remove;
    int status;

    dir = g_dir_make_tmp("hca-switch-XXXXXX", NULL);
    g_assert_nonnull(dir);
    status = g_test_run();
    remove = g_strdup_printf("rm -rf '%s'", dir);
    g_assert_cmpint(system(remove), ==, 0);
    g_free(remove);
    g_free(dir);
    return status;
}

char *program_path(const char *name)
{
    return g_build_filename(dir, name, NULL);
}

/* Programs */

static GPtrArray *arguments(va_list ap)
{
    GPtrArray *args = g_ptr_array_new_with_free_func(g_free);
    const char *arg;

    g_ptr_array_add(args,
                    g_test_build_filename(G_TEST_BUILT, "hca-switch", NULL));
    while ((arg = va_arg(ap, const char *))) {
        g_ptr_array_add(args, g_strdup(arg));
    }
    g_ptr_array_add(args, NULL);
    return args;
}

/* A test that aborts leaves no program, which would keep its output open. */
static void die_with_test(void *opaque)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

GSubprocessLauncher *program_launcher(GSubprocessFlags flags)
{
    GSubprocessLauncher *launcher = g_subprocess_launcher_new(flags);

    g_subprocess_launcher_set_child_setup(launcher, die_with_test, NULL, NULL);
    return launcher;
}

Program program_start(const char *name, ...)
{
    GSubprocessLauncher *launcher = program_launcher(0);
    GError *error = NULL;
    GPtrArray *args;
    Program program;
    va_list ap;

    va_start(ap, name);
    args = arguments(ap);
    va_end(ap);
    program.log = program_path(name);
    g_unlink(program.log); /* it would be written over, and not cut */
    g_subprocess_launcher_set_stderr_file_path(launcher, program.log);
    program.process = g_subprocess_launcher_spawnv(
        launcher, (const char *const *)args->pdata, &error);
    g_assert_no_error(error);
    g_ptr_array_unref(args);
    g_object_unref(launcher);
    return program;
}

char *program_log(const Program *program)
{
    char *text = NULL;

    g_assert_true(g_file_get_contents(program->log, &text, NULL, NULL));
    return text;
}

void program_expect(const Program *program, const char *text)
{
    for (unsigned ms = 0; ms < PATIENCE_MS; ms += 5) {
        char *log = program_log(program);
        bool found = strstr(log, text);

        g_free(log);
        if (found) {
            return;
        }
        g_usleep(5000);
    }
    g_error("the log has no '%s'", text);
}

int program_wait(Program *program)
{
    int status;

    g_assert_true(g_subprocess_wait(program->process, NULL, NULL));
    status = g_subprocess_get_if_exited(program->process)
                 ? g_subprocess_get_exit_status(program->process)
                 : -1;
    g_clear_object(&program->process);
    g_clear_pointer(&program->log, g_free);
    return status;
}

void program_end(Program *program)
{
    g_subprocess_send_signal(program->process, SIGTERM);
    g_assert_cmpint(program_wait(program), ==, 0);
}

/* Peers */

static void await(int fd, short events)
{
    struct pollfd poller = { .fd = fd, .events = events };

    g_assert_cmpint(poll(&poller, 1, PATIENCE_MS), ==, 1);
}

static struct sockaddr_un unix_address(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    g_assert_cmpuint(strlen(path), <, sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    return address;
}

int peer_connect_bare(const char *path)
{
    struct sockaddr_un address = unix_address(path);

    for (unsigned ms = 0; ms < PATIENCE_MS; ms += 5) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (!connect(fd, (void *)&address, sizeof(address))) {
            return fd;
        }
        close(fd);
        g_usleep(5000);
    }
    g_error("nobody listens at %s", path);
}

int peer_listen(const char *path)
{
    struct sockaddr_un address = unix_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(bind(fd, (void *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    return fd;
}

int peer_listen_tcp(unsigned *port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(bind(fd, (void *)&address, len), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    g_assert_cmpint(getsockname(fd, (void *)&address, &len), ==, 0);
    *port = ntohs(address.sin_port);
    return fd;
}

Peer peer_of(int fd)
{
    return (Peer) { fd, g_byte_array_new() };
}

Peer peer_accept(int listener)
{
    await(listener, POLLIN);
    return peer_of(accept(listener, NULL, NULL));
}

void peer_close(Peer *peer)
{
    close(peer->fd);
    g_byte_array_unref(peer->in);
}

void peer_write(Peer *peer, const void *data, size_t len)
{
    g_assert_cmpint(send(peer->fd, data, len, MSG_NOSIGNAL), ==, len);
}

bool peer_read(Peer *peer)
{
    uint8_t data[4096];
    ssize_t n;

    await(peer->fd, POLLIN);
    n = recv(peer->fd, data, sizeof(data), 0);
    if (n <= 0) {
        return false;
    }
    g_byte_array_append(peer->in, data, n);
    return true;
}

GByteArray *peer_frame(Peer *peer, HcaFrameType type)
{
    GByteArray *body = g_byte_array_new();
    HcaFrame frame;
    int size;

    while (!(size = hca_frame_read(&frame, peer->in->data, peer->in->len))) {
        g_assert_true(peer_read(peer));
    }
    g_assert_cmpint(size, >, 0);
    g_assert_cmpint(frame.type, ==, type);
    g_byte_array_append(body, frame.body, frame.len);
    g_byte_array_remove_range(peer->in, 0, size);
    return body;
}

void peer_expect_end(Peer *peer)
{
    while (peer_read(peer)) {
        /* what was before it */
    }
}

void peer_greet(Peer *peer)
{
    const HcaGreeting own = { .enabled = true, .managed = true };
    uint8_t bytes[HCA_GREETING_FRAME_SIZE];
    GByteArray *body = peer_frame(peer, HCA_FRAME_GREETING);
    const HcaFrame frame = { .type = HCA_FRAME_GREETING,
                             .body = body->data,
                             .len = body->len };
    HcaGreeting greeting;

    g_assert_true(
        hca_frame_read_greeting(&frame, HCA_LINK_LAYER_IB, &greeting));
    g_assert_true(greeting.enabled && greeting.managed && greeting.waits);
    g_byte_array_unref(body);
    peer_write(peer, bytes,
               hca_frame_write_greeting(bytes, HCA_LINK_LAYER_IB, &own));
}

Peer peer_connect(const char *path)
{
    Peer peer = peer_of(peer_connect_bare(path));

    peer_greet(&peer);
    return peer;
}

void peer_send_packet(Peer *peer, const GByteArray *packet)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, packet->data[0] >> 4,
                           packet->len);
    peer_write(peer, header, sizeof(header));
    peer_write(peer, packet->data, packet->len);
}

static void peer_send_smp(Peer *peer, const Mad *mad)
{
    Parcel parcel = {
        .vl = HCA_VL_MGMT,
        .slid = HCA_LID_PERMISSIVE,
        .dlid = HCA_LID_PERMISSIVE,
        .size = HCA_MAD_SIZE,
    };
    GByteArray *packet = parcel_pack(&parcel);

    memcpy(packet->data + 28, mad->bytes, HCA_MAD_SIZE);
    packet_seal(packet, true);
    peer_send_packet(peer, packet);
    g_byte_array_unref(packet);
}

void peer_ask(Peer *peer, uint16_t attribute, const uint8_t *path,
              unsigned hops)
{
    Station nobody = { 0 };
    Mad mad;

    smp_init(&mad, &nobody, HCA_METHOD_GET, attribute, 0, path, hops);
    peer_send_smp(peer, &mad);
}

void peer_answer(Peer *peer, uint8_t *data)
{
    GByteArray *packet = peer_frame(peer, HCA_FRAME_PACKET);
    HcaPacket parsed;

    g_assert_cmpint(hca_ib_parse(&parsed, packet->data, packet->len), ==,
                    HCA_PARSE_OK);
    g_assert_cmphex(parsed.payload[HCA_MAD_METHOD], ==, HCA_METHOD_GET_RESP);
    memcpy(data, parsed.payload + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
    g_byte_array_unref(packet);
}

uint64_t peer_guid(Peer *peer, const uint8_t *path, unsigned hops)
{
    uint8_t data[HCA_SMP_DATA_SIZE];

    peer_ask(peer, HCA_ATTR_NODE_INFO, path, hops);
    peer_answer(peer, data);
    return get_be64(data + 12);
}

void peer_set(Peer *peer, uint16_t attribute, uint32_t modifier, uint8_t *data)
{
    Station nobody = { 0 };
    Mad mad;

    smp_init(&mad, &nobody, HCA_METHOD_SET, attribute, modifier,
             (const uint8_t *)"", 0);
    memcpy(mad.bytes + HCA_MAD_DATA, data, HCA_SMP_DATA_SIZE);
    peer_send_smp(peer, &mad);
    peer_answer(peer, data);
}

void peer_configure(Peer *peer)
{
    uint8_t data[HCA_SMP_DATA_SIZE] = { 0 };

    memset(data, 0xff, sizeof(data));
    data[1] = 1;
    data[2] = 2;
    peer_set(peer, HCA_ATTR_LINEAR_FDB, 0, data);
    memset(data, 0, sizeof(data));
    put_be16(data + 6, 2);
    data[11] = 31 << 3;
    peer_set(peer, HCA_ATTR_SWITCH_INFO, 0, data);
    for (unsigned i = 0; i < 4; i++) {
        memset(data, 0, sizeof(data));
        data[32] = i < 2 ? HCA_PORT_ARMED : HCA_PORT_ACTIVE;
        data[36] = 5 << 4;
        data[42] = 31;
        peer_set(peer, HCA_ATTR_PORT_INFO, 1 + i % 2, data);
        g_assert_cmpuint(data[32] & 0xf, ==,
                         i < 2 ? HCA_PORT_ARMED : HCA_PORT_ACTIVE);
    }
}

/* A stream of packets without an end, of which @at bytes have been sent. */
static void send_some(Peer *peer, const GByteArray *frame, size_t *at)
{
    ssize_t n;

    do {
        size_t done = *at % frame->len;

        n = send(peer->fd, frame->data + done, frame->len - done,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
        *at += MAX(n, 0);
    } while (n > 0);
}

unsigned peer_fill(Peer *peer, GByteArray **packet, const char *ctl)
{
    Parcel parcel = { .slid = 1, .dlid = 2, .size = 4096 };
    GByteArray *frame = parcel_pack(&parcel);
    uint8_t header[HCA_FRAME_HEADER_SIZE];
    bool held = false;
    size_t at = 0;
    unsigned n;

    *packet = parcel_pack(&parcel);
    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, frame->len);
    g_byte_array_prepend(frame, header, sizeof(header));
    while (!held) {
        char *ports;

        send_some(peer, frame, &at);
        ports = control_command(ctl, "ports");
        held = strstr(ports, "held=1");
        g_free(ports);
    }
    n = at / frame->len;
    g_byte_array_unref(frame);
    return n;
}

void peer_expect_packets(Peer *peer, const GByteArray *packet, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        GByteArray *got = peer_frame(peer, HCA_FRAME_PACKET);

        g_assert_cmpmem(got->data, got->len, packet->data, packet->len);
        g_byte_array_unref(got);
    }
}

/* Commands */

char *control_command(const char *path, const char *line)
{
    Peer peer = peer_of(peer_connect_bare(path));
    char *answer;

    peer_write(&peer, line, strlen(line));
    peer_write(&peer, "\n", 1);
    do {
        g_assert_true(peer_read(&peer));
        answer = g_strndup((char *)peer.in->data, peer.in->len);
        if (g_str_has_suffix(answer, "ok\n") || strstr(answer, "error: ")) {
            break;
        }
        g_clear_pointer(&answer, g_free);
    } while (!answer);
    peer_close(&peer);
    return answer;
}

void control_expect(const char *path, const char *line, const char *text)
{
    char *answer = control_command(path, line);

    g_test_message("%s", answer);
    g_assert_nonnull(strstr(answer, text));
    g_free(answer);
}

void control_await(const char *path, const char *line, const char *text)
{
    for (unsigned ms = 0; ms < PATIENCE_MS; ms += 5) {
        char *answer = control_command(path, line);
        bool found = strstr(answer, text);

        g_free(answer);
        if (found) {
            return;
        }
        g_usleep(5000);
    }
    g_error("'%s' does not say '%s'", line, text);
}
