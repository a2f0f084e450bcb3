/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: command-rate COUNT
 *
 * How many commands a second the card's command register takes from one process: ibv_query_qp() is one command, QUERY_QP.
 * Then how many regions of one page a second it can register and free, one at a time.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

static void report(const char *what, unsigned int count, double start)
{
    printf("%s: %.0f a second\n", what, count / (seconds_now() - start));
}

int main(int argc, char **argv)
{
    unsigned int count = argc == 2 ? strtoul(argv[1], NULL, 0) : 0;
    struct ibv_cq_ex *cq;
    struct device device;
    struct region memory;
    struct ibv_qp *qp[2];
    double start;

    check(count);
    open_device(&device);
    cq = create_cq(&device, 16);
    create_connection(&device, cq, 4, qp);
    create_region(&device, &memory, 4096);

    start = seconds_now();
    for (unsigned int i = 0; i < count; i++) {
        check(state_of(qp[0]) == IBV_QPS_RTS);
    }
    report("commands", count, start);

    start = seconds_now();
    for (unsigned int i = 0; i < count; i++) {
        struct ibv_mr *mr = ibv_reg_mr(device.pd, memory.addr, memory.length, ACCESS_ALL);

        check(mr);
        check(!ibv_dereg_mr(mr));
    }
    report("registrations", count, start);

    destroy_region(&memory);
    check(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]));
    destroy_cq(cq);
    close_device(&device);
    return 0;
}
