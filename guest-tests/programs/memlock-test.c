/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: memlock-test
 *
 * A user who may lock little memory (RLIMIT_MEMLOCK). Regions count, and the memory of CQs, QPs and SRQs, which their provider
 * registers. Whatever would exceed the limit fails with ENOMEM, of however many parts it consists, and leaves nothing locked;
 * what was there before goes on to work.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 256u /* that the user may lock */
#define USER 1000
#define FEW 64
#define MANY 1024

static struct device device;
static uint8_t *memory;

/* What is there all the time. */
static struct ibv_cq_ex *bench_cq;
static struct ibv_qp *bench_qp[2];
static struct region bench_region;

static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

/* Pages that the process has locked by registering them. */
static unsigned int locked(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    unsigned int kib = 0;
    char line[256];
    bool found = false;

    check(status);
    while (!found && fgets(line, sizeof(line), status)) {
        found = sscanf(line, "VmPin: %u kB", &kib) == 1;
    }
    fclose(status);
    check(found);
    return kib * 1024 / PAGE;
}

/* One QP writes to memory of the other. */
static void use_bench(void)
{
    memset(bench_region.addr, rand(), PAGE / 2);
    post(bench_qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&bench_region, 0, PAGE / 2), (uintptr_t)bench_region.addr + PAGE / 2,
         bench_region.mr->rkey);
    expect_completion(bench_cq, 1, IBV_WC_SUCCESS);
    check(!memcmp(bench_region.addr, bench_region.addr + PAGE / 2, PAGE / 2));
}

/* --- what takes memory -------------------------------------------------------------------------------------------- */

/* Those of the verbs that return an error do not set errno. */
static bool ok(int err)
{
    errno = err;
    return !err;
}

static bool make_region(void)
{
    return (mr = ibv_reg_mr(device.pd, memory, 8 * PAGE, ACCESS_ALL)) != NULL;
}

static bool free_region(void)
{
    return ok(ibv_dereg_mr(mr));
}

static bool make_cq(void)
{
    return (cq = ibv_create_cq(device.context, MANY, NULL, NULL, 0)) != NULL;
}

static bool free_cq(void)
{
    return ok(ibv_destroy_cq(cq));
}

static bool make_small_cq(void)
{
    return (cq = ibv_create_cq(device.context, FEW, NULL, NULL, 0)) != NULL;
}

static bool resize_cq(void)
{
    return ok(ibv_resize_cq(cq, MANY));
}

static bool make_srq(void)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = MANY, .max_sge = 1 } };

    return (srq = ibv_create_srq(device.pd, &attr)) != NULL;
}

static bool free_srq(void)
{
    return ok(ibv_destroy_srq(srq));
}

static bool make_small_srq(void)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = FEW, .max_sge = 1 } };

    return (srq = ibv_create_srq(device.pd, &attr)) != NULL;
}

static bool resize_srq(void)
{
    struct ibv_srq_attr attr = { .max_wr = MANY };

    return ok(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
}

static bool make_qp(void)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ibv_cq_ex_to_cq(bench_cq),
        .recv_cq = ibv_cq_ex_to_cq(bench_cq),
        .cap = { .max_send_wr = FEW, .max_recv_wr = FEW, .max_send_sge = 4, .max_recv_sge = 4 },
        .qp_type = IBV_QPT_RC,
    };

    return (qp = ibv_create_qp(device.pd, &attr)) != NULL;
}

static bool free_qp(void)
{
    return ok(ibv_destroy_qp(qp));
}

static bool nothing(void)
{
    return true;
}

static const struct object {
    const char *name;
    bool (*prepare)(void);
    bool (*make)(void);
    bool (*destroy)(void);
} objects[] = {
    { "region", nothing, make_region, free_region },
    { "CQ", nothing, make_cq, free_cq },
    { "larger CQ", make_small_cq, resize_cq, free_cq },
    { "SRQ", nothing, make_srq, free_srq },
    { "larger SRQ", make_small_srq, resize_srq, free_srq },
    { "QP", nothing, make_qp, free_qp },
};

/* --- too little --------------------------------------------------------------------------------------------------- */

/* Leave so many pages that may be locked. */
static struct ibv_mr *leave(unsigned int left)
{
    struct ibv_mr *rest = ibv_reg_mr(device.pd, memory, (PAGES - locked() - left) * PAGE, ACCESS_ALL);

    check(rest);
    check(locked() == PAGES - left);
    return rest;
}

/* Whether it was made although no more than so many pages were left. */
static bool fits(const struct object *object, unsigned int left)
{
    unsigned int before;
    struct ibv_mr *rest;
    bool made;

    check(object->prepare());
    before = locked();
    rest = leave(left);
    made = object->make();
    check(made || errno == ENOMEM);
    check(made || locked() == PAGES - left);
    use_bench();
    check(!ibv_dereg_mr(rest));
    check(made || locked() == before);
    if (made || object->prepare != nothing) {
        check(object->destroy());
    }
    return made;
}

static void find_size(const struct object *object)
{
    unsigned int before = locked(), left = 0;

    while (!fits(object, left)) {
        left++;
        check(locked() == before);
    }
    check(left > 0);
    check(locked() == before);
    printf("%s: %u pages\n", object->name, left);
}

/* To the last page, and no further. */
static void fill_up(void)
{
    struct ibv_mr *rest = leave(0);

    check(!ibv_reg_mr(device.pd, memory, 1, 0) && errno == ENOMEM);
    use_bench();
    check(!ibv_dereg_mr(rest));
    check(!ibv_reg_mr(device.pd, memory, (PAGES + 1) * PAGE, ACCESS_ALL) && errno == ENOMEM);
}

/* A region that shall get more than there is has none; all that is left to do with it is to free it. */
static void register_again(void)
{
    unsigned int before = locked();
    struct ibv_mr *rest;

    check(make_region());
    rest = leave(1);
    check(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 2 * PAGE, 0) && errno == ENOMEM);
    use_bench();
    check(!ibv_dereg_mr(rest) && free_region());
    check(locked() == before);
}

/* --- the user ----------------------------------------------------------------------------------------------------- */

static void become_user(void)
{
    struct rlimit limit = { PAGES * PAGE, PAGES * PAGE };

    check(!setrlimit(RLIMIT_MEMLOCK, &limit));
    check(!setgid(USER) && !setuid(USER));
}

static void set_up(void)
{
    become_user();
    open_device(&device);
    memory = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED);
    bench_cq = create_cq(&device, 4);
    create_connection(&device, bench_cq, 4, bench_qp);
    create_region(&device, &bench_region, PAGE);
}

static void tear_down(void)
{
    destroy_region(&bench_region);
    check(!ibv_destroy_qp(bench_qp[0]) && !ibv_destroy_qp(bench_qp[1]));
    destroy_cq(bench_cq);
    check(locked() == 0);
    close_device(&device);
}

int main(void)
{
    set_up();
    fill_up();
    register_again();
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        find_size(&objects[i]);
    }
    tear_down();
    return 0;
}
