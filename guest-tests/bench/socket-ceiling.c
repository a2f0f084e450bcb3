/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a unix stream socket between two processes does with messages of one size: the ceiling of everything that a card
 * sends through one.
 *
 *   socket-ceiling bandwidth SIZE COUNT    one write a message, reads of 256 KiB; prints MB/s (2^20)
 *   socket-ceiling latency SIZE COUNT      there and back; prints half of it in microseconds
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_SIZE (256 * 1024)

static void die(const char *what)
{
    fprintf(stderr, "socket-ceiling: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0) {
            die("write");
        }
        data += n;
        len -= n;
    }
}

/* @len bytes, at most @most at a time. */
static void get(int fd, char *data, size_t len, size_t most)
{
    while (len > 0) {
        ssize_t n = read(fd, data, len < most ? len : most);

        if (n <= 0) {
            die("read");
        }
        len -= n;
    }
}

static void answer(int fd, char *data, size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        get(fd, data, size, size);
        put(fd, data, size);
    }
}

static void ask(int fd, char *data, size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        put(fd, data, size);
        get(fd, data, size, size);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void peer(int fd, int bandwidth, char *data, size_t size, long count)
{
    if (bandwidth) {
        get(fd, data, size * count, READ_SIZE);
        put(fd, data, 1);
    } else {
        answer(fd, data, size, count);
    }
}

int main(int argc, char **argv)
{
    int bandwidth, fds[2];
    double start, seconds;
    size_t size;
    long count;
    char *data;

    if (argc != 4 || (size = atol(argv[2])) < 1 || (count = atol(argv[3])) < 1) {
        fprintf(stderr, "usage: socket-ceiling bandwidth|latency SIZE COUNT\n");
        return 2;
    }
    bandwidth = !strcmp(argv[1], "bandwidth");
    data = calloc(1, size > READ_SIZE ? size : READ_SIZE);
    if (!data || socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) {
        die("start");
    }
    if (fork() == 0) {
        peer(fds[1], bandwidth, data, size, count);
        return 0;
    }
    start = now();
    if (bandwidth) {
        for (long i = 0; i < count; i++) {
            put(fds[0], data, size);
        }
        get(fds[0], data, 1, 1);
    } else {
        ask(fds[0], data, size, count);
    }
    seconds = now() - start;
    wait(NULL);
    printf("%.2f\n", bandwidth ? size * count / seconds / 1048576 : seconds / count / 2 * 1e6);
    return 0;
}
