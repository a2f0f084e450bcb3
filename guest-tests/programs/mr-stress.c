/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: mr-stress PROCESSES REGIONS SEED
 *
 * Register and free REGIONS memory regions from that many processes at once: any size up to a megabyte, any offset, any
 * access, up to LIVE at a time in each process, in a random order. Every USE-th one is used by the process's own
 * connection, both as the local and as the remote end of an RDMA Write, and the data is compared.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA (4u << 20)
#define LIVE 64
#define USE 64
#define USE_LENGTH 9000

struct worker {
    struct device device;
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region far;
    uint8_t *arena;
    unsigned int seed;
    struct ibv_mr *live[LIVE];
};

static unsigned int pick(struct worker *w, unsigned int end)
{
    return rand_r(&w->seed) % end;
}

/* Most regions are small, as most are in life; one in 64 is large. */
static size_t pick_length(struct worker *w)
{
    unsigned int kind = pick(w, 64);

    if (kind == 0) {
        return 1 + pick(w, 1u << 20);
    }
    return 1 + pick(w, kind < 16 ? 1u << 16 : 1u << 13);
}

static int pick_access(struct worker *w)
{
    static const int access[] = {
        0,
        IBV_ACCESS_LOCAL_WRITE,
        IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
        ACCESS_ALL,
    };

    return access[pick(w, sizeof(access) / sizeof(access[0]))];
}

static struct ibv_mr *register_any(struct worker *w, int access)
{
    size_t length = pick_length(w);
    struct ibv_mr *mr = ibv_reg_mr(w->device.pd, w->arena + pick(w, ARENA - length), length, access);

    check(mr);
    return mr;
}

static void fill(struct worker *w, uint8_t *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        at[i] = pick(w, 256);
    }
}

/* Write to a region from elsewhere, and from it back to elsewhere. */
static void use(struct worker *w, struct ibv_mr *mr)
{
    size_t length = mr->length < USE_LENGTH ? mr->length : USE_LENGTH;
    size_t offset = pick(w, mr->length - length + 1);
    struct ibv_sge near = { .addr = (uintptr_t)mr->addr + offset, .length = length, .lkey = mr->lkey };
    uint8_t *back = w->far.addr + USE_LENGTH;

    fill(w, w->far.addr, length);
    post(w->qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&w->far, 0, length), near.addr, mr->rkey);
    expect_completion(w->cq, 1, IBV_WC_SUCCESS);
    post(w->qp[0], IBV_WR_RDMA_WRITE, 2, near, (uintptr_t)back, w->far.mr->rkey);
    expect_completion(w->cq, 2, IBV_WC_SUCCESS);
    check(!memcmp(w->far.addr, back, length));
}

static void set_up(struct worker *w)
{
    open_device(&w->device);
    w->cq = create_cq(&w->device, 16);
    create_connection(&w->device, w->cq, 4, w->qp);
    create_region(&w->device, &w->far, 2 * USE_LENGTH);
    w->arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(w->arena != MAP_FAILED);
    memset(w->arena, 1, ARENA);
}

static void tear_down(struct worker *w)
{
    destroy_region(&w->far);
    check(!ibv_destroy_qp(w->qp[0]) && !ibv_destroy_qp(w->qp[1]));
    destroy_cq(w->cq);
    close_device(&w->device);
}

static int work(unsigned int regions, unsigned int seed)
{
    struct worker w = { .seed = seed };

    set_up(&w);
    for (unsigned int n = 0; n < regions; n++) {
        struct ibv_mr **slot = &w.live[pick(&w, LIVE)];
        bool used = n % USE == 0;

        if (*slot) {
            check(!ibv_dereg_mr(*slot));
        }
        *slot = register_any(&w, used ? ACCESS_ALL : pick_access(&w));
        if (used) {
            use(&w, *slot);
        }
    }
    for (int i = 0; i < LIVE; i++) {
        check(!w.live[i] || !ibv_dereg_mr(w.live[i]));
    }
    tear_down(&w);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned int processes, regions, seed;
    int status, failed = 0;
    double start = seconds_now();

    check(argc == 4);
    processes = strtoul(argv[1], NULL, 0);
    regions = strtoul(argv[2], NULL, 0);
    seed = strtoul(argv[3], NULL, 0);
    check(processes);
    for (unsigned int i = 0; i < processes; i++) {
        pid_t pid = fork();

        check(pid >= 0);
        if (!pid) {
            exit(work(regions / processes + (i < regions % processes), seed + i));
        }
    }
    while (wait(&status) > 0) {
        failed |= status;
    }
    check(!failed);
    printf("%u regions in %.1f s, %.0f a second\n", regions, seconds_now() - start, regions / (seconds_now() - start));
    return 0;
}
