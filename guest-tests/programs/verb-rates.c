/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: verb-rates DEVICE SECONDS
 *
 * How many objects a second one process can make and end on a device, one at a time, and how many commands it takes: of our
 * cards ibv_query_qp() is one command, QUERY_QP. Each case lasts so long; a line for each.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

#define WORK_REQUESTS 16
#define LARGE (1024 * 1024)

struct rates {
    struct device device;
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region memory;
};

static void query(struct rates *rates)
{
    check(state_of(rates->qp[0]) == IBV_QPS_RTS);
}

static void register_memory(struct rates *rates, size_t length)
{
    struct ibv_mr *mr = ibv_reg_mr(rates->device.pd, rates->memory.addr, length, ACCESS_ALL);

    check(mr);
    check(!ibv_dereg_mr(mr));
}

static void register_page(struct rates *rates)
{
    register_memory(rates, 4096);
}

static void register_large(struct rates *rates)
{
    register_memory(rates, LARGE);
}

static void make_cq(struct rates *rates)
{
    destroy_cq(create_cq(&rates->device, WORK_REQUESTS));
}

static void make_qp(struct rates *rates)
{
    struct ibv_qp *qp = create_qp(&rates->device, rates->cq, IBV_QPT_RC, WORK_REQUESTS, 0);

    connect_qp(&rates->device, qp, qp->qp_num);
    check(!ibv_destroy_qp(qp));
}

static void measure(struct rates *rates, const char *what, void (*once)(struct rates *rates), double seconds)
{
    double start = seconds_now(), spent;
    unsigned long count = 0;

    do {
        once(rates);
        count++;
        spent = seconds_now() - start;
    } while (spent < seconds);
    printf("%s: %.1f a second\n", what, count / spent);
}

int main(int argc, char **argv)
{
    double seconds = argc == 3 ? atof(argv[2]) : 0;
    struct rates rates;

    check(seconds > 0);
    open_device_named(&rates.device, argv[1]);
    rates.cq = create_cq(&rates.device, WORK_REQUESTS);
    create_connection(&rates.device, rates.cq, WORK_REQUESTS, rates.qp);
    create_region(&rates.device, &rates.memory, LARGE);

    measure(&rates, "commands", query, seconds);
    measure(&rates, "registrations of 4096 bytes", register_page, seconds);
    measure(&rates, "registrations of 1048576 bytes", register_large, seconds);
    measure(&rates, "queue pairs", make_qp, seconds);
    measure(&rates, "completion queues", make_cq, seconds);

    destroy_region(&rates.memory);
    check(!ibv_destroy_qp(rates.qp[0]) && !ibv_destroy_qp(rates.qp[1]));
    destroy_cq(rates.cq);
    close_device(&rates.device);
    return 0;
}
