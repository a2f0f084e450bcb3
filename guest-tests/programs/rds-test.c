/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reliable datagrams (RDS) between two machines: rds-test CASE SELF PEER PORT MESSAGES. Each side checks what it receives, and in
 * which order, and ends when it has all, and the peer too. PORT is the first of SOCKETS ports that nobody has used yet: what a
 * socket has half sent when it goes comes to whoever has the peer's port next.
 */
#include "common.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/rds.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKETS 4
#define LARGEST 100000

struct header {
    uint32_t from, to, number, length;
};

static struct in_addr self, peer;
static int first_port;
static uint8_t buffer[LARGEST + 1], expected[LARGEST + 1];

static struct sockaddr_in address_of(struct in_addr host, int port)
{
    return (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr = host, .sin_port = htons(port) };
}

static int open_socket(int port)
{
    struct sockaddr_in name = address_of(self, port);
    int fd = socket(AF_RDS, SOCK_SEQPACKET, 0), transport = RDS_TRANS_IB;

    check(fd >= 0);
    check(!setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &transport, sizeof(transport)));
    check(!bind(fd, (struct sockaddr *)&name, sizeof(name)));
    check(!fcntl(fd, F_SETFL, O_NONBLOCK));
    return fd;
}

/* Whether this machine has messages that have not been sent. */
static bool has_unsent(int fd)
{
    socklen_t room = 0;
    int got = getsockopt(fd, SOL_RDS, RDS_INFO_SEND_MESSAGES, NULL, &room);

    check(got >= 0 || errno == ENOSPC);
    return got < 0;
}

/* RDS forgets what it has not sent when its socket goes. */
static void close_socket(int fd)
{
    double start = seconds_now();

    while (has_unsent(fd)) {
        check(seconds_now() - start < 60);
        usleep(1000);
    }
    check(!close(fd));
}

static void wait_for(int fd, int events)
{
    struct pollfd one = { .fd = fd, .events = events };

    check(poll(&one, 1, 60000) == 1);
}

/* Whoever polls is told that there is something to read, too, when the ports that are congested are others than before. */
static ssize_t receive(int fd, void *data, size_t size, int flags)
{
    ssize_t got;

    do {
        wait_for(fd, POLLIN);
        got = recv(fd, data, size, flags);
    } while (got < 0 && errno == EAGAIN);
    return got;
}

/* About the limits of a fragment (a page), and many of them; beside each other what differs much. */
static uint32_t length_of(uint32_t number)
{
    static const uint32_t lengths[] = { 16, LARGEST, 17, 4095, 4096, 100, 4097, 20000, 8191, 8192, 1000, 65536, 8193, 64 };

    return lengths[number % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void make(uint8_t *data, uint32_t from, uint32_t to, uint32_t number, uint32_t length)
{
    struct header header = { from, to, number, length };

    for (uint32_t i = 0; i < length; i++) {
        data[i] = (i * 31 + from * 7 + to * 3 + number * 11) ^ i >> 8;
    }
    memcpy(data, &header, sizeof(header));
}

/* False if there is no room for it now, or its receiver has too much. */
static bool send_to(int fd, int port, const void *data, uint32_t length)
{
    struct sockaddr_in name = address_of(peer, port);
    ssize_t sent = sendto(fd, data, length, 0, (struct sockaddr *)&name, sizeof(name));

    if (sent < 0) {
        check(errno == EAGAIN || errno == ENOBUFS);
        return false;
    }
    check(sent == length);
    return true;
}

/* --- messages: each socket to each of the peer's, both ways at once ------------------------------------------------ */

struct lane {
    int fd;
    uint32_t sent, received, next[SOCKETS]; /* next: the number that each of the peer's has */
};

static void send_next(struct lane *lane, uint32_t from)
{
    uint32_t to = (from + lane->sent) % SOCKETS, number = lane->sent / SOCKETS, length = length_of(lane->sent);

    make(buffer, from, to, number, length);
    lane->sent += send_to(lane->fd, first_port + to, buffer, length);
}

static bool receive_next(struct lane *lane, uint32_t to)
{
    struct sockaddr_in name;
    socklen_t size = sizeof(name);
    ssize_t got = recvfrom(lane->fd, buffer, sizeof(buffer), 0, (struct sockaddr *)&name, &size);
    uint32_t from, number;

    if (got < 0) {
        check(errno == EAGAIN);
        return false;
    }
    check(name.sin_addr.s_addr == peer.s_addr);
    from = ntohs(name.sin_port) - first_port;
    check(from < SOCKETS);
    number = lane->next[from]++;
    /* Which message of the sender's it was to be: every SOCKETSth is for this socket. */
    make(expected, from, to, number, length_of(number * SOCKETS + (to + SOCKETS - from) % SOCKETS));
    check(got == ((struct header *)expected)->length && !memcmp(buffer, expected, got));
    lane->received++;
    return true;
}

static void exchange(uint32_t count, bool begin)
{
    struct pollfd polled[SOCKETS];
    struct lane lanes[SOCKETS] = { };
    uint32_t all = count - count % SOCKETS;
    bool left = true;

    for (int i = 0; i < SOCKETS; i++) {
        lanes[i].fd = open_socket(first_port + i);
    }
    printf("ready\n");
    if (!begin) {
        receive(lanes[0].fd, buffer, sizeof(buffer), MSG_PEEK); /* what is sent to a port that nobody has is lost */
    }
    while (left) {
        left = false;
        for (int i = 0; i < SOCKETS; i++) {
            while (lanes[i].received < all && receive_next(&lanes[i], i)) {
            }
            if (lanes[i].sent < all) {
                send_next(&lanes[i], i);
            }
            left |= lanes[i].sent < all || lanes[i].received < all;
            polled[i] = (struct pollfd) { .fd = lanes[i].fd, .events = POLLIN | (lanes[i].sent < all ? POLLOUT : 0) };
        }
        check(!left || poll(polled, SOCKETS, 60000) > 0);
    }
    for (int i = 0; i < SOCKETS; i++) {
        check(recv(lanes[i].fd, buffer, sizeof(buffer), 0) < 0 && errno == EAGAIN);
        close_socket(lanes[i].fd);
    }
}

static void messages(uint32_t count)
{
    exchange(count, true);
}

static void answers(uint32_t count)
{
    exchange(count, false);
}

/* --- congestion: the peer does not read until this side says that it can send no more ------------------------------ */

static void fill_up(uint32_t count)
{
    int data = open_socket(first_port), words = open_socket(first_port + 1);
    bool congested = false;

    for (uint32_t i = 0; i < count;) {
        make(buffer, 0, 0, i, 1000);
        if (send_to(data, first_port, buffer, 1000)) {
            i++;
        } else if (errno == ENOBUFS && !congested) {
            congested = true;
            printf("congested after %u messages\n", i);
            check(send_to(words, first_port + 1, "read", 4));
        } else {
            wait_for(data, POLLOUT);
        }
    }
    check(congested);
    check(receive(words, buffer, sizeof(buffer), 0) == 4);
    close_socket(words);
    close_socket(data);
}

static void read_late(uint32_t count)
{
    int data = open_socket(first_port), words = open_socket(first_port + 1), small = 20000;

    check(!setsockopt(data, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
    printf("ready\n");
    check(receive(words, buffer, sizeof(buffer), 0) == 4);
    for (uint32_t i = 0; i < count; i++) {
        make(expected, 0, 0, i, 1000);
        check(receive(data, buffer, sizeof(buffer), 0) == 1000 && !memcmp(buffer, expected, 1000));
    }
    check(send_to(words, first_port + 1, "done", 4));
    close_socket(words);
    close_socket(data);
}

/* --- RDMA: one side lends memory with a message, the other writes it, reads it, and says so ------------------------- */

/* Room for the largest thing that goes beside a message. */
union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(struct rds_rdma_args))];
};

static void send_with(int fd, int type, const void *data, size_t size)
{
    struct sockaddr_in name = address_of(peer, first_port);
    union control control = { .header = { CMSG_LEN(size), SOL_RDS, type } };
    struct iovec text = { "text", 4 };
    struct msghdr message = {
        .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = CMSG_SPACE(size),
    };

    memcpy(CMSG_DATA(&control.header), data, size);
    check(sendmsg(fd, &message, 0) == 4);
}

static void receive_with(int fd, int type, void *data, size_t size)
{
    union control control;
    char text[8];
    struct iovec piece = { text, sizeof(text) };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t got;

    do {
        wait_for(fd, POLLIN);
        got = recvmsg(fd, &message, 0);
    } while (got < 0 && errno == EAGAIN);
    check(got >= 0 && message.msg_controllen >= CMSG_LEN(size) && control.header.cmsg_type == type);
    memcpy(data, CMSG_DATA(&control.header), size);
}

static void rdma_to(int fd, rds_rdma_cookie_t cookie, uint64_t flags)
{
    struct rds_iovec piece = { (uintptr_t)buffer, LARGEST };
    struct rds_rdma_args args = {
        .cookie = cookie, .remote_vec = { 0, LARGEST }, .local_vec_addr = (uintptr_t)&piece, .nr_local = 1,
        .flags = flags | RDS_RDMA_NOTIFY_ME, .user_token = 7 + flags,
    };
    struct rds_rdma_notify status;

    send_with(fd, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
    receive_with(fd, RDS_CMSG_RDMA_STATUS, &status, sizeof(status));
    check(status.user_token == args.user_token && status.status == RDS_RDMA_SUCCESS);
}

static void borrow(uint32_t count)
{
    int fd = open_socket(first_port);
    rds_rdma_cookie_t cookie;

    printf("ready\n");
    for (uint32_t i = 0; i < count; i++) {
        receive_with(fd, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
        make(buffer, 1, 2, i, LARGEST);
        rdma_to(fd, cookie, RDS_RDMA_READWRITE);
        memset(buffer, 0, sizeof(buffer));
        /* A Read whose answer is lost is repeated, and without a fence after the message that says that it is done. */
        rdma_to(fd, cookie, RDS_RDMA_FENCE);
        make(expected, 1, 2, i, LARGEST);
        check(!memcmp(buffer, expected, LARGEST));
        /* Only now may the next loan come: it could overtake a status, which comes by another completion queue. */
        check(send_to(fd, first_port, "next", 4));
    }
    close_socket(fd);
}

static void lend(uint32_t count)
{
    int fd = open_socket(first_port);
    rds_rdma_cookie_t cookie;
    char text[8];

    for (uint32_t i = 0; i < count; i++) {
        struct rds_get_mr_args args = { .vec = { (uintptr_t)buffer, LARGEST }, .cookie_addr = (uintptr_t)&cookie,
                                        .flags = RDS_RDMA_READWRITE };
        struct rds_free_mr_args back = { .flags = RDS_RDMA_INVALIDATE };

        memset(buffer, 0, sizeof(buffer));
        send_with(fd, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
        for (int k = 0; k < 3; k++) {
            check(receive(fd, text, sizeof(text), 0) == 4);
            make(expected, 1, 2, i, LARGEST);
            check(!memcmp(buffer, expected, LARGEST));
        }
        back.cookie = cookie;
        check(!setsockopt(fd, SOL_RDS, RDS_FREE_MR, &back, sizeof(back)));
    }
    close_socket(fd);
}

static const struct {
    const char *name;
    void (*run)(uint32_t count);
} cases[] = {
    { "messages", messages },   { "answers", answers }, { "fill_up", fill_up },
    { "read_late", read_late }, { "borrow", borrow },   { "lend", lend },
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(argc == 6 && inet_aton(argv[2], &self) && inet_aton(argv[3], &peer));
    first_port = atoi(argv[4]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run(strtoul(argv[5], NULL, 0));
            printf("done\n");
            return 0;
        }
    }
    fail(__FILE__, __LINE__, "a case of that name");
}
