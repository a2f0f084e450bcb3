/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: mr-large MEGABYTES small|huge|fresh
 *
 * Register one region of that size, in small pages or in huge ones, which have been written to before, or in small ones that
 * nobody has touched. Its last bytes are then used by a connection of the process with itself. Prints how long each step took.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LENGTH 1000

static uint8_t *map(size_t length, bool huge)
{
    uint8_t *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0), -1, 0);

    check(memory != MAP_FAILED);
    check(huge || !madvise(memory, length, MADV_NOHUGEPAGE));
    return memory;
}

/* Write what the last bytes hold over the first ones. */
static void use(struct device *device, struct ibv_mr *mr)
{
    uint8_t *memory = mr->addr;
    struct ibv_cq_ex *cq = create_cq(device, 4);
    struct ibv_sge sge = {
        .addr = (uintptr_t)memory + mr->length - LENGTH,
        .length = LENGTH,
        .lkey = mr->lkey,
    };
    struct ibv_qp *qp[2];

    create_connection(device, cq, 1, qp);
    memset(memory + mr->length - LENGTH, 0x5a, LENGTH);
    post(qp[0], IBV_WR_RDMA_WRITE, 1, sge, (uintptr_t)memory, mr->rkey);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    check(!memcmp(memory, memory + mr->length - LENGTH, LENGTH));
    check(!ibv_destroy_qp(qp[0]));
    check(!ibv_destroy_qp(qp[1]));
    destroy_cq(cq);
}

int main(int argc, char **argv)
{
    size_t length = argc == 3 ? strtoul(argv[1], NULL, 0) << 20 : 0;
    struct device device;
    uint8_t *memory;
    struct ibv_mr *mr;
    double start[4];

    check(length);
    open_device(&device);
    memory = map(length, !strcmp(argv[2], "huge"));
    start[0] = seconds_now();
    for (size_t at = 0; at < length && strcmp(argv[2], "fresh"); at += 4096) {
        memory[at] = 1;
    }
    start[1] = seconds_now();
    mr = ibv_reg_mr(device.pd, memory, length, ACCESS_ALL);
    check(mr);
    start[2] = seconds_now();
    use(&device, mr);
    start[3] = seconds_now();
    check(!ibv_dereg_mr(mr));
    printf("written in %.3f s, registered in %.3f s, freed in %.3f s\n", start[1] - start[0], start[2] - start[1],
           seconds_now() - start[3]);
    close_device(&device);
    return 0;
}
