/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: placement-test CASE
 *        placement-test [-n] -d DEVICE [-x GID_INDEX] -p TCP_PORT [ADDRESS]
 *
 * Atomic write and FLUSH (annex A19 of the InfiniBand specification). A case is on the first device, one QP of the process
 * as the peer of another. With a port it is the server, with an address too its client, which writes into the server's
 * memory; each time that it has flushed it, it says what has to be there, and the server looks. With -n there is no FLUSH.
 */
#include "common.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE 65536
#define FLUSH_ACCESS (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
/* Of device_cap_flags_ex; infiniband/verbs.h has no names for them. */
#define CAP_FLUSH (3ull << 38)
#define CAP_ATOMIC_WRITE (1ull << 40)
#define OPS (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH)

static struct device device;
static struct ibv_cq_ex *cq;

static uint64_t cap_flags(void)
{
    struct ibv_device_attr_ex attr;

    check(!ibv_query_device_ex(device.context, NULL, &attr));
    return attr.device_cap_flags_ex;
}

static struct ibv_qp *try_qp(enum ibv_qp_type type, uint64_t ops)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 2, .max_recv_sge = 1 },
        .qp_type = type,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = device.pd,
        .send_ops_flags = ops,
    };

    return ibv_create_qp_ex(device.context, &attr);
}

/* --- QPs, which allow what the rights say --------------------------------------------------------------------------- */

/* Who the other end is. */
struct peer {
    uint32_t qpn;
    uint32_t rkey;
    uint64_t addr;
    union ibv_gid gid;
    uint16_t lid;
};

static void to_rts(struct ibv_qp *qp, const struct peer *peer, int gid_index, unsigned int access)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = access,
    };

    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = { .dlid = peer->lid, .port_num = 1 },
    };
    if (device.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh = (struct ibv_global_route) { .dgid = peer->gid, .hop_limit = 64, .sgid_index = gid_index };
    }
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 4,
    };
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* --- work requests -------------------------------------------------------------------------------------------------- */

static struct ibv_qp_ex *begin(struct ibv_qp *qp, uint64_t wr_id)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

    ibv_wr_start(ex);
    ex->wr_id = wr_id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    return ex;
}

static void ends(uint64_t wr_id, enum ibv_wc_opcode opcode, enum ibv_wc_status status)
{
    struct ibv_wc wc = next_completion(cq);

    if (wc.wr_id != wr_id || wc.status != status || (!status && wc.opcode != opcode)) {
        printf("completion of %ju has status %d, opcode %d (vendor %#x); expected are %ju, %d and %d\n", (uintmax_t)wc.wr_id,
               wc.status, wc.opcode, wc.vendor_err, (uintmax_t)wr_id, status, opcode);
        exit(1);
    }
}

static void flush(struct ibv_qp *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level,
                  enum ibv_wc_status status)
{
    struct ibv_qp_ex *ex = begin(qp, 1);

    ibv_wr_flush(ex, rkey, addr, length, type, level);
    check(!ibv_wr_complete(ex));
    ends(1, IBV_WC_FLUSH, status);
}

static void atomic_write(struct ibv_qp *qp, uint32_t rkey, uint64_t addr, uint64_t value, enum ibv_wc_status status)
{
    struct ibv_qp_ex *ex = begin(qp, 2);

    ibv_wr_atomic_write(ex, rkey, addr, &value);
    check(!ibv_wr_complete(ex));
    ends(2, IBV_WC_ATOMIC_WRITE, status);
}

static void fill(uint8_t *to, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        to[i] = rand();
    }
}

static bool without_flush;

/* Write and FLUSH by one doorbell: only the FLUSH tells of its end. */
static void write_and_flush(struct ibv_qp *qp, const struct region *from, uint32_t length, uint32_t rkey, uint64_t addr,
                            uint8_t level)
{
    struct ibv_qp_ex *ex = begin(qp, 3);
    struct ibv_sge sge = sge_of(from, 0, length);

    ex->wr_flags = without_flush ? IBV_SEND_SIGNALED : 0;
    ibv_wr_rdma_write(ex, rkey, addr);
    ibv_wr_set_sge_list(ex, 1, &sge);
    if (without_flush) {
        check(!ibv_wr_complete(ex));
        ends(3, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
        return;
    }
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_flush(ex, rkey, addr, length, IBV_FLUSH_GLOBAL, level);
    check(!ibv_wr_complete(ex));
    ends(3, IBV_WC_FLUSH, IBV_WC_SUCCESS);
}

/* --- cases, in one process ------------------------------------------------------------------------------------------ */

static struct ibv_qp *qp[2];
static struct region memory; /* the first's; the second's is registered as a case likes */
static uint8_t *target;
static struct ibv_mr *mr;

static void connect_both(unsigned int access)
{
    for (int i = 0; i < 2; i++) {
        struct peer peer = { .qpn = qp[1 - i]->qp_num, .gid = device.gid, .lid = device.port.lid };

        to_rts(qp[i], &peer, 0, access);
    }
}

static void renew(unsigned int access)
{
    to_state(qp[0], IBV_QPS_RESET);
    to_state(qp[1], IBV_QPS_RESET);
    connect_both(access);
}

static void set_up(unsigned int qp_access, int access)
{
    check((cap_flags() & (CAP_FLUSH | CAP_ATOMIC_WRITE)) == (CAP_FLUSH | CAP_ATOMIC_WRITE));
    check(qp[0] = try_qp(IBV_QPT_RC, OPS));
    check(qp[1] = try_qp(IBV_QPT_RC, OPS));
    connect_both(qp_access);
    create_region(&device, &memory, SIZE);
    check(target = aligned_alloc(4096, SIZE));
    memset(target, 0, SIZE);
    check(mr = ibv_reg_mr(device.pd, target, SIZE, access));
}

static void tear_down(void)
{
    check(!ibv_dereg_mr(mr));
    free(target);
    destroy_region(&memory);
    check(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]));
}

static uint64_t at(size_t offset)
{
    return (uintptr_t)target + offset;
}

/* Values one behind the other into the same place, and by each way of posting it. */
static void test_atomic_write(void)
{
    volatile uint64_t *place;
    uint64_t value;

    set_up(IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    place = (uint64_t *)(target + 4096);
    for (uint64_t i = 1; i < 200; i++) {
        atomic_write(qp[0], mr->rkey, at(4096), i << 32 | i, IBV_WC_SUCCESS);
        check(*place == (i << 32 | i));
    }
    value = 0x1122334455667788;
    memcpy(memory.addr, &value, sizeof(value));
    post(qp[0], IBV_WR_ATOMIC_WRITE, 4, sge_of(&memory, 0, 8), at(4096), mr->rkey);
    ends(4, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS);
    check(*place == value);
    post(qp[0], IBV_WR_ATOMIC_WRITE, 4, sge_of(&memory, 0, 4), at(4096), mr->rkey);
    ends(4, IBV_WC_ATOMIC_WRITE, IBV_WC_LOC_LEN_ERR);
    renew(IBV_ACCESS_REMOTE_WRITE);
    atomic_write(qp[0], mr->rkey, at(4), 1, IBV_WC_REM_INV_REQ_ERR);
    renew(IBV_ACCESS_REMOTE_WRITE);
    atomic_write(qp[0], mr->rkey, at(SIZE), 1, IBV_WC_REM_ACCESS_ERR);
    renew(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    atomic_write(qp[0], mr->rkey, at(0), 1, IBV_WC_REM_INV_REQ_ERR);
    check(*place == value);
    tear_down();
}

static void test_flush(void)
{
    unsigned int rights = IBV_ACCESS_REMOTE_WRITE | FLUSH_ACCESS;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    set_up(rights, IBV_ACCESS_LOCAL_WRITE | rights);
    check(!ibv_query_qp(qp[0], &attr, IBV_QP_ACCESS_FLAGS, &init));
    check((attr.qp_access_flags & FLUSH_ACCESS) == FLUSH_ACCESS);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t length = i * 611 % SIZE;

        fill(memory.addr, length);
        write_and_flush(qp[0], &memory, length, mr->rkey, at(0), i % 2 ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
        check(!memcmp(target, memory.addr, length));
    }
    for (uint8_t type = 1; type < 4; type++) {
        flush(qp[0], mr->rkey, at(100), SIZE - 100, type, IBV_FLUSH_RANGE, IBV_WC_SUCCESS);
        flush(qp[0], mr->rkey, 1, SIZE_MAX, type, IBV_FLUSH_MR, IBV_WC_SUCCESS);
    }
    flush(qp[0], mr->rkey, at(100), SIZE, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR);
    renew(rights);
    flush(qp[0], mr->rkey + 1, at(0), 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR);
    tear_down();
}

/* Each type has a right of its own, of QP and region; a new registration may change them. */
static void test_rights(void)
{
    set_up(IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT);
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS);
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, IBV_WC_REM_INV_REQ_ERR);
    renew(FLUSH_ACCESS);
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, IBV_WC_SUCCESS);
    check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_FLUSH_PERSISTENT));
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR, IBV_WC_SUCCESS);
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, IBV_WC_REM_ACCESS_ERR);
    renew(FLUSH_ACCESS);
    check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR, IBV_WC_REM_ACCESS_ERR);
    renew(FLUSH_ACCESS);
    flush(qp[0], memory.mr->rkey, (uintptr_t)memory.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR);
    tear_down();
}

/* What no QP, and no work request, can be. */
static void test_refused(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_FLUSH };
    struct ibv_send_wr *bad;
    struct ibv_qp_ex *ex;

    set_up(FLUSH_ACCESS, FLUSH_ACCESS);
    check(!try_qp(IBV_QPT_UC, IBV_QP_EX_WITH_FLUSH) && errno == EOPNOTSUPP);
    check(!try_qp(IBV_QPT_UD, IBV_QP_EX_WITH_ATOMIC_WRITE) && errno == EOPNOTSUPP);
    check(ibv_post_send(qp[0], &wr, &bad) == EINVAL);
    for (int i = 0; i < 3; i++) {
        ex = begin(qp[0], 1);
        ibv_wr_flush(ex, mr->rkey, at(0), i == 2 ? 0x80000001u : 8, i == 0 ? 0 : IBV_FLUSH_GLOBAL, i == 1 ? 2 : IBV_FLUSH_RANGE);
        check(ibv_wr_complete(ex) == EINVAL);
    }
    flush(qp[0], mr->rkey, at(0), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS);
    tear_down();
}

/* A kernel that does not know them offers none of it. */
static void test_missing(void)
{
    check(!(cap_flags() & (CAP_FLUSH | CAP_ATOMIC_WRITE)));
    check(!try_qp(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH) && errno == EOPNOTSUPP);
    check(!try_qp(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE) && errno == EOPNOTSUPP);
    check(target = aligned_alloc(4096, SIZE));
    check(!ibv_reg_mr(device.pd, target, SIZE, IBV_ACCESS_FLUSH_GLOBAL));
    free(target);
}

static const struct test_case cases[] = {
    { "atomic_write", test_atomic_write },
    { "flush", test_flush },
    { "rights", test_rights },
    { "refused", test_refused },
    { "missing", test_missing },
    { NULL, NULL },
};

/* --- two guests ----------------------------------------------------------------------------------------------------- */

/* What the client asks the server to look at: SUM of so many bytes, or the first value. */
struct question {
    uint32_t length; /* 0: that is all */
    uint32_t sum;
    uint64_t value;
};

static uint32_t sum_of(const uint8_t *bytes, uint32_t length)
{
    uint32_t sum = 1;

    for (uint32_t i = 0; i < length; i++) {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

static void serve(int fd)
{
    struct question question;
    char answer = 1;

    do {
        check(recv(fd, &question, sizeof(question), MSG_WAITALL) == sizeof(question));
        check(sum_of(target + 8, question.length) == question.sum);
        check(*(volatile uint64_t *)target == question.value);
        check(write(fd, &answer, 1) == 1);
    } while (question.length);
}

/* The value at the start, data behind it. */
static void ask(int fd, const struct peer *peer)
{
    char answer;

    for (uint32_t i = 1; i <= 200; i++) {
        struct question question = { .length = i == 200 ? 0 : i * 977 % (SIZE - 8), .value = (uint64_t)i << 40 | i };

        fill(memory.addr, question.length);
        question.sum = sum_of(memory.addr, question.length);
        write_and_flush(qp[0], &memory, question.length, peer->rkey, peer->addr + 8, i % 2 ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
        atomic_write(qp[0], peer->rkey, peer->addr, question.value, IBV_WC_SUCCESS);
        check(write(fd, &question, sizeof(question)) == sizeof(question));
        check(recv(fd, &answer, 1, MSG_WAITALL) == 1);
    }
}

static void run_peer(int gid_index, const char *port, const char *address)
{
    int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL;
    struct peer own = { .lid = device.port.lid }, other;
    int fd;

    check(qp[0] = try_qp(IBV_QPT_RC, OPS));
    create_region(&device, &memory, SIZE);
    check(target = aligned_alloc(4096, SIZE));
    memset(target, 0, SIZE);
    check(mr = ibv_reg_mr(device.pd, target, SIZE, IBV_ACCESS_LOCAL_WRITE | rights));
    check(!ibv_query_gid(device.context, 1, gid_index, &own.gid));
    own.qpn = qp[0]->qp_num;
    own.rkey = mr->rkey;
    own.addr = (uintptr_t)target;
    fd = meet_peer(port, address);
    exchange_with(fd, &own, &other, sizeof(own));
    to_rts(qp[0], &other, gid_index, rights);
    exchange_with(fd, &own, &own, sizeof(own)); /* both are ready */
    if (address) {
        ask(fd, &other);
    } else {
        serve(fd);
    }
    exchange_with(fd, &own, &own, sizeof(own));
    close(fd);
    check(!ibv_dereg_mr(mr));
    free(target);
    destroy_region(&memory);
    check(!ibv_destroy_qp(qp[0]));
}

static void begin_case(void)
{
    srand(getpid());
    cq = create_cq(&device, 64);
}

static void end_case(void)
{
    destroy_cq(cq);
}

int main(int argc, char **argv)
{
    const char *port = NULL;
    int option, gid_index = 0;

    if (argc <= 2) {
        return run_case(argc, argv, cases, &device, begin_case, end_case);
    }
    while ((option = getopt(argc, argv, "nd:x:p:")) != -1) {
        if (option == 'n') {
            without_flush = true;
        } else if (option == 'x') {
            gid_index = atoi(optarg);
        } else if (option == 'p') {
            port = optarg;
        }
    }
    check(port);
    open_device(&device);
    begin_case();
    run_peer(gid_index, port, argv[optind]);
    end_case();
    close_device(&device);
    return 0;
}
