/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: regions-test CASE
 *
 * Regions where those of other cards have gone wrong: their ends, several over the same memory, memory that may only be
 * read, that of who forks, receives longer than what 16 or 31 bits hold. QPs of the card talk to each other.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define PAGE 4096u
#define HUGE (2u << 20)

static struct device device;
static struct region own; /* the other end of each transfer */
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp[2];

static void renew(void)
{
    reconnect(&device, qp);
    discard_completions(cq);
}

/* One request between memory of one's own and that of a key, which ends so. */
static void transfer(enum ibv_wr_opcode opcode, const void *at, uint32_t length, uint32_t rkey, enum ibv_wc_status status)
{
    post(qp[0], opcode, 1, sge_of(&own, 0, length), (uintptr_t)at, rkey);
    expect_completion(cq, 1, status);
    if (status) {
        renew();
    }
}

static void *map(size_t length, int prot, int flags, int fd)
{
    void *at = mmap(NULL, length, prot, flags, fd, 0);

    check(at != MAP_FAILED);
    return at;
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

/* Its first byte and its last, by what is read there; none in front of it, none behind. */
static void try_ends(uint8_t *at, size_t length, int flags)
{
    struct ibv_mr *mr = ibv_reg_mr(device.pd, at, length, ACCESS_ALL | flags);

    check(mr);
    at[0] = 0x11;
    at[length - 1] = 0x22;
    transfer(IBV_WR_RDMA_READ, at + length - 1, 1, mr->rkey, IBV_WC_SUCCESS);
    check(own.addr[0] == 0x22);
    own.addr[0] = 0x33;
    transfer(IBV_WR_RDMA_WRITE, at, 1, mr->rkey, IBV_WC_SUCCESS);
    check(at[0] == 0x33);
    transfer(IBV_WR_RDMA_WRITE, at + length, 1, mr->rkey, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_WRITE, at - 1, 1, mr->rkey, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_WRITE, at + length - 1, 2, mr->rkey, IBV_WC_REM_ACCESS_ERR);
    check(!ibv_dereg_mr(mr));
}

/* Whatever begins or ends on no page. */
static void test_ends(void)
{
    static const struct {
        size_t from, length;
    } parts[] = { { 1, 1 }, { PAGE - 1, 2 }, { 0x123, 3 * PAGE }, { PAGE, PAGE }, { 7, 400000 }, { PAGE - 1, 20 * PAGE + 2 } };
    uint8_t *at = map(120 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        try_ends(at + parts[i].from, parts[i].length, 0);
        try_ends(at + parts[i].from, parts[i].length, IBV_ACCESS_HUGETLB);
    }
    munmap(at, 120 * PAGE);
}

/* The same of huge pages: ends that are in the middle of one. There have to be four. */
static void test_huge_ends(void)
{
    static const struct {
        size_t from, length;
    } parts[] = { { 0, HUGE }, { 0x123, HUGE }, { HUGE - 1, HUGE + 2 }, { 5 * PAGE, HUGE - 5 * PAGE }, { 7, 3 * HUGE } };
    uint8_t *at = map(4 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        try_ends(at + parts[i].from, parts[i].length, 0);
        try_ends(at + parts[i].from, parts[i].length, IBV_ACCESS_HUGETLB);
    }
    munmap(at, 4 * HUGE);
}

/* --- rights ------------------------------------------------------------------------------------------------------- */

/* Regions over the same memory are apart: each has its rights, and goes alone. */
static void test_overlapping(void)
{
    uint8_t *at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    struct ibv_mr *reads = ibv_reg_mr(device.pd, at, 4 * PAGE, IBV_ACCESS_REMOTE_READ);
    struct ibv_mr *writes = ibv_reg_mr(device.pd, at + PAGE, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_mr *again = ibv_reg_mr(device.pd, at, 4 * PAGE, IBV_ACCESS_REMOTE_READ);

    check(reads && writes && again);
    check(reads->rkey != writes->rkey && reads->rkey != again->rkey);
    transfer(IBV_WR_RDMA_WRITE, at + PAGE, 8, writes->rkey, IBV_WC_SUCCESS);
    transfer(IBV_WR_RDMA_READ, at + PAGE, 8, writes->rkey, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_WRITE, at + PAGE, 8, reads->rkey, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_WRITE, at, 8, writes->rkey, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_READ, at, 8, reads->rkey, IBV_WC_SUCCESS);
    check(!ibv_dereg_mr(writes));
    transfer(IBV_WR_RDMA_WRITE, at + PAGE, 8, writes->rkey, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_READ, at + PAGE, 8, reads->rkey, IBV_WC_SUCCESS);
    check(!ibv_dereg_mr(reads));
    transfer(IBV_WR_RDMA_READ, at + PAGE, 8, again->rkey, IBV_WC_SUCCESS);
    check(!ibv_dereg_mr(again));
    munmap(at, 4 * PAGE);
}

/*
 * Memory that may only be read has regions that only read; nothing else can be had of it. Linux before 6.5 asks of whatever
 * it pins whether it may be written to, which is not so of memory that is shared.
 */
static void read_only(const void *at, bool shared)
{
    struct ibv_mr *mr = ibv_reg_mr(device.pd, (void *)at, PAGE, IBV_ACCESS_REMOTE_READ);

    if (!mr && shared && errno == EFAULT) {
        printf("this kernel has no regions of shared memory that may only be read\n");
        return;
    }
    check(mr);
    memset(own.addr, 0, 16);
    transfer(IBV_WR_RDMA_READ, at, 16, mr->rkey, IBV_WC_SUCCESS);
    check(!memcmp(own.addr, at, 16));
    transfer(IBV_WR_RDMA_WRITE, at, 16, mr->rkey, IBV_WC_REM_ACCESS_ERR);
    check(!ibv_dereg_mr(mr));
    errno = 0;
    check(!ibv_reg_mr(device.pd, (void *)at, PAGE, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
}

static void test_read_only(void)
{
    int memory = memfd_create("regions", 0), file = open("/proc/self/exe", O_RDONLY);
    uint8_t *shared, *only;

    check(memory >= 0 && file >= 0 && !ftruncate(memory, PAGE));
    shared = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory);
    fill_pattern(shared, 1, PAGE);
    try_ends(shared, PAGE, 0);
    only = map(PAGE, PROT_READ, MAP_SHARED, memory);
    read_only(only, true);
    munmap(only, PAGE);
    only = map(PAGE, PROT_READ, MAP_PRIVATE, memory);
    read_only(only, false);
    munmap(only, PAGE);
    only = map(PAGE, PROT_READ, MAP_PRIVATE, file);
    read_only(only, false);
    munmap(only, PAGE);
    munmap(shared, PAGE);
    check(!close(memory) && !close(file));
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

/* What a child writes into its copy of registered memory its parent's card does not see, nor it what arrives there. */
static void test_parent(void)
{
    struct region r;
    int done[2], status;
    char byte = 0;
    pid_t child;

    create_region(&device, &r, 4 * PAGE);
    memset(r.addr, 0x11, 4 * PAGE);
    check(!pipe(done));
    child = fork();
    check(child >= 0);
    if (!child) {
        memset(r.addr, 0x22, 4 * PAGE); /* each page is written to, and so copied, here first */
        check(write(done[1], &byte, 1) == 1);
        sleep(1);
        for (unsigned i = 0; i < 4 * PAGE; i++) {
            check(r.addr[i] == 0x22);
        }
        _exit(0);
    }
    check(read(done[0], &byte, 1) == 1);
    for (unsigned page = 0; page < 4; page++) {
        transfer(IBV_WR_RDMA_READ, r.addr + page * PAGE, 64, r.mr->rkey, IBV_WC_SUCCESS);
        check(own.addr[0] == 0x11 && own.addr[63] == 0x11);
        memset(own.addr, 0x33 + page, 64);
        transfer(IBV_WR_RDMA_WRITE, r.addr + page * PAGE, 64, r.mr->rkey, IBV_WC_SUCCESS);
        check(r.addr[page * PAGE] == 0x33 + page);
    }
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    check(!close(done[0]) && !close(done[1]));
    destroy_region(&r);
    /* Asked for too late: a kernel that copies at fork() needs it not; else it is refused. */
    if (ibv_is_fork_initialized() != IBV_FORK_UNNEEDED) {
        check(ibv_fork_init() == EINVAL);
    }
}

/* --- lengths ------------------------------------------------------------------------------------------------------ */

/* So much memory of a few pages, each of them many times. */
static uint8_t *map_repeated(size_t length, size_t piece)
{
    int fd = memfd_create("repeated", 0);
    uint8_t *at = map(length + piece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

    check(fd >= 0 && !ftruncate(fd, piece));
    for (size_t i = 0; i < length; i += piece) {
        check(mmap(at + i, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at + i);
    }
    check(!close(fd));
    return at;
}

/* A receive, and what is written and read, of lengths at which a field of other cards ends. */
static void test_lengths(void)
{
    static const uint32_t lengths[] = { 65535, 65536, 65537, (1u << 24) - 1, 1u << 24, (1u << 31) - 1, 1u << 31 };
    const size_t length = (1ul << 31) + PAGE, piece = 16ul << 20;
    uint8_t *at = map_repeated(length, piece);
    struct ibv_mr *mr = ibv_reg_mr(device.pd, at, length, ACCESS_ALL);
    struct ibv_sge sge = { .addr = (uintptr_t)at }, two[2];
    struct ibv_send_wr wr, *bad;

    check(mr);
    sge.lkey = mr->lkey;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        sge.length = lengths[i];
        post_recv(qp[1], 2, sge);
        own.addr[0] = 0x40 + i;
        post(qp[0], IBV_WR_SEND, 1, sge_of(&own, 0, 100), 0, 0);
        for (int n = 0; n < 2; n++) {
            struct ibv_wc wc = next_completion(cq);

            check(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 1 || (wc.wr_id == 2 && wc.byte_len == 100)));
        }
        check(at[0] == 0x40 + i);
        /* One byte more than the receive has room for. */
        if (lengths[i] < 1u << 24) {
            post_recv(qp[1], 2, sge);
            sge.length++;
            post(qp[0], IBV_WR_SEND, 1, sge, 0, 0);
            for (int n = 0; n < 2; n++) {
                struct ibv_wc wc = next_completion(cq);

                check(wc.status == (wc.wr_id == 1 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR));
            }
            renew();
        }
    }
    /* No message has more than 2^31 bytes, be they of one element or of two. */
    check(device.port.max_msg_sz == 1u << 31);
    two[0] = two[1] = sge;
    two[1].length = 1;
    wr = (struct ibv_send_wr) { .wr_id = 1, .sg_list = two, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE,
                                .wr.rdma = { (uintptr_t)at, mr->rkey } };
    check(!ibv_post_send(qp[0], &wr, &bad));
    expect_completion(cq, 1, IBV_WC_LOC_LEN_ERR);
    renew();
    two[0].length++;
    wr.num_sge = 1;
    check(ibv_post_send(qp[0], &wr, &bad) == EINVAL && bad == &wr);
    check(!ibv_dereg_mr(mr));
    munmap(at, length + piece);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "ends", test_ends },
    { "huge_ends", test_huge_ends },
    { "overlapping", test_overlapping },
    { "read_only", test_read_only },
    { "parent", test_parent },
    { "lengths", test_lengths },
    { NULL, NULL },
};

static void begin(void)
{
    create_region(&device, &own, PAGE);
    cq = create_cq(&device, 64);
    create_connection(&device, cq, 8, qp);
}

static void end(void)
{
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&own);
}

int main(int argc, char **argv)
{
    return run_case(argc, argv, cases, &device, begin, end);
}
