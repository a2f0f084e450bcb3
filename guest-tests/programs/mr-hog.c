/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: mr-hog memory MEGABYTES fresh|touched    Map memory and register it, a region of that size after another, until there
 *                                                 is an error; fresh: nobody has touched it before
 *        mr-hog tables PAGES LEFT                 Register so many pages again and again until one of the card's tables is full,
 *                                                 then give the last LEFT regions back; the others stay until it is killed
 *
 * Prints how far it came, and why not further.
 */
#define _GNU_SOURCE
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct device device;

static void *map(size_t length)
{
    return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static bool take(size_t length, bool touched)
{
    void *memory = map(length);

    if (memory == MAP_FAILED) {
        return false;
    }
    if (touched) {
        memset(memory, 1, length);
    }
    return ibv_reg_mr(device.pd, memory, length, ACCESS_ALL) != NULL;
}

/* The kernel gives back what was registered. */
static void take_memory(size_t megabytes, bool touched)
{
    size_t taken = 0;

    while (take(megabytes << 20, touched)) {
        taken += megabytes;
    }
    printf("%zu MiB, then: %s\n", taken, strerror(errno));
}

static void take_tables(size_t pages, int left)
{
    struct ibv_mr **mr = calloc(device.attr.max_mr, sizeof(*mr));
    void *memory = map(pages * 4096);
    int taken = 0;

    check(mr && memory != MAP_FAILED);
    while (taken < device.attr.max_mr && (mr[taken] = ibv_reg_mr(device.pd, memory, pages * 4096, 0))) {
        taken++;
    }
    check(taken == device.attr.max_mr || errno == ENOMEM);
    check(taken >= left);
    while (left--) {
        check(!ibv_dereg_mr(mr[--taken]));
    }
    printf("%d regions\n", taken);
    fflush(stdout);
    pause();
}

int main(int argc, char **argv)
{
    bool tables = argc == 4 && !strcmp(argv[1], "tables");

    check(tables || (argc == 4 && !strcmp(argv[1], "memory")));
    /* The kernel would rather read the program again and again than give up. */
    check(!mlockall(MCL_CURRENT));
    open_device(&device);
    if (tables) {
        take_tables(strtoul(argv[2], NULL, 0), atoi(argv[3]));
    } else {
        take_memory(strtoul(argv[2], NULL, 0), !strcmp(argv[3], "touched"));
    }
    return 0;
}
