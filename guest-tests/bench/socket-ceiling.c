/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a unix stream socket between two processes does with messages of one size: the ceiling of everything that a card
 * sends through one. Others that spin beside them stand for guests that poll.
 *
 *   socket-ceiling bandwidth SIZE SECONDS [SPINNING]   one write a message, reads of 256 KiB; prints MB/s (2^20)
 *   socket-ceiling latency SIZE SECONDS [SPINNING]     there and back; prints half of it in microseconds: average, median and
 *                                                      99th percentile
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_SIZE (256 * 1024)
#define MOST_SPINNING 64
#define MOST_TIMES 1000000

static void die(const char *what)
{
    fprintf(stderr, "socket-ceiling: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
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

/* @len bytes; false: there are no more. */
static bool get(int fd, char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, data, len);

        if (n < 0) {
            die("read");
        }
        if (n == 0) {
            return false;
        }
        len -= n;
    }
    return true;
}

/* The other process */

static void take(int fd, char *data)
{
    while (get(fd, data, READ_SIZE)) {
    }
    put(fd, data, 1);
}

static void answer(int fd, char *data, size_t size)
{
    while (get(fd, data, size)) {
        put(fd, data, size);
    }
}

/* This one */

static void send_all(int fd, char *data, size_t size, double seconds)
{
    double start = now();
    double bytes = 0;

    while (now() - start < seconds) {
        put(fd, data, size);
        bytes += size;
    }
    shutdown(fd, SHUT_WR);
    get(fd, data, 1);
    printf("%.2f\n", bytes / (now() - start) / 1048576);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void ask(int fd, char *data, size_t size, double seconds)
{
    double *times = calloc(MOST_TIMES, sizeof(*times));
    double start = now(), last = start;
    long count = 0;

    if (!times) {
        die("memory");
    }
    while (last - start < seconds && count < MOST_TIMES) {
        double before = last;

        put(fd, data, size);
        get(fd, data, size);
        last = now();
        times[count++] = last - before;
    }
    shutdown(fd, SHUT_WR);
    qsort(times, count, sizeof(*times), compare);
    printf("%.2f %.2f %.2f\n", (last - start) / count * 5e5, times[count / 2] * 5e5, times[count * 99 / 100] * 5e5);
    free(times);
}

/* A process of its own that ends with this one. */
static pid_t fork_child(void)
{
    pid_t parent = getpid(), child = fork();

    if (child < 0) {
        die("fork");
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
    }
    return child;
}

static pid_t spin(void)
{
    pid_t child = fork_child();

    if (child == 0) {
        for (volatile unsigned long n = 0;; n++) {
        }
    }
    return child;
}

int main(int argc, char **argv)
{
    pid_t spinning[MOST_SPINNING];
    int fds[2], num_spinning = argc == 5 ? atoi(argv[4]) : 0;
    bool bandwidth;
    double seconds;
    size_t size;
    char *data;

    if (argc < 4 || argc > 5 || (size = atol(argv[2])) < 1 || (seconds = atof(argv[3])) <= 0 || num_spinning < 0 ||
        num_spinning > MOST_SPINNING) {
        fprintf(stderr, "usage: socket-ceiling bandwidth|latency SIZE SECONDS [SPINNING]\n");
        return 2;
    }
    bandwidth = !strcmp(argv[1], "bandwidth");
    data = calloc(1, size > READ_SIZE ? size : READ_SIZE);
    if (!data || socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) {
        die("start");
    }
    if (fork_child() == 0) {
        close(fds[0]);
        bandwidth ? take(fds[1], data) : answer(fds[1], data, size);
        return 0;
    }
    close(fds[1]);
    for (int i = 0; i < num_spinning; i++) {
        spinning[i] = spin();
    }
    (bandwidth ? send_all : ask)(fds[0], data, size, seconds);
    for (int i = 0; i < num_spinning; i++) {
        kill(spinning[i], SIGKILL);
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
