/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: xrc-test CASE
 *
 * XRC: targets that several processes share, and the SRQs that a sender names. QPs of the card talk to each other.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

static struct device device;

/* --- queues ------------------------------------------------------------------------------------------------------- */

static struct ibv_xrcd *open_domain(int fd)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = fd,
        .oflags = O_CREAT,
    };
    struct ibv_xrcd *xrcd = ibv_open_xrcd(device.context, &attr);

    check(xrcd);
    return xrcd;
}

static struct ibv_srq *create_xsrq(struct ibv_xrcd *xrcd, struct ibv_pd *pd, struct ibv_cq_ex *cq)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = { .max_wr = 16, .max_sge = 2 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .xrcd = xrcd,
        .cq = ibv_cq_ex_to_cq(cq),
    };
    struct ibv_srq *srq = ibv_create_srq_ex(device.context, &attr);

    check(srq);
    return srq;
}

static uint32_t number_of(struct ibv_srq *srq)
{
    uint32_t number;

    check(!ibv_get_srq_num(srq, &number));
    return number;
}

static struct ibv_qp *create_target(struct ibv_xrcd *xrcd)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV,
        .comp_mask = IBV_QP_INIT_ATTR_XRCD,
        .xrcd = xrcd,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(device.context, &attr);

    check(qp);
    return qp;
}

static struct ibv_qp *create_sender(struct ibv_cq_ex *cq)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .cap = { .max_send_wr = 16, .max_send_sge = 1 },
        .qp_type = IBV_QPT_XRC_SEND,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = device.pd,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(device.context, &attr);

    check(qp);
    return qp;
}

/*
 * From RESET to RTS. Each of the two kinds of XRC QP has a part of an RC QP's attributes; those of the other, which
 * programs give all the same, uverbs takes away.
 */
static void connect_xrc(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = { .dlid = device.port.lid, .port_num = 1 },
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 4,
    };
    const int of_target = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const int of_sender = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | of_target));
    attr.qp_state = IBV_QPS_RTS;
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | of_sender));
}

static void post_xrc(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t srqn, struct ibv_sge sge,
                     uint64_t remote_addr, uint32_t rkey)
{
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .qp_type.xrc.remote_srqn = srqn,
    };
    struct ibv_send_wr *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote_addr;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 3;
    } else {
        wr.wr.rdma.remote_addr = remote_addr;
        wr.wr.rdma.rkey = rkey;
    }
    check(!ibv_post_send(qp, &wr, &bad));
}

/* One target, two SRQs, each with a CQ; Sends to either, and the operations that need no WQE. */
static void test_operations(void)
{
    struct ibv_cq_ex *cq[3] = { create_cq(&device, 64), create_cq(&device, 64), create_cq(&device, 64) };
    struct ibv_xrcd *xrcd = open_domain(-1);
    struct ibv_srq *srq[2] = { create_xsrq(xrcd, device.pd, cq[0]), create_xsrq(xrcd, device.pd, cq[1]) };
    struct ibv_qp *target = create_target(xrcd), *sender = create_sender(cq[2]);
    uint64_t base, *words;
    struct region r;

    create_region(&device, &r, 32768);
    base = (uintptr_t)r.addr;
    words = (uint64_t *)(r.addr + 16384);
    connect_xrc(target, sender->qp_num);
    connect_xrc(sender, target->qp_num);
    for (int i = 0; i < 8; i++) {
        struct ibv_wc wc;

        fill_pattern(r.addr + 4096, i, 3000);
        post_srq(srq[i % 2], i, sge_of(&r, 0, 4096));
        post_xrc(sender, IBV_WR_SEND, 1, number_of(srq[i % 2]), sge_of(&r, 4096, 3000), 0, 0);
        wc = next_completion(cq[i % 2]);
        check(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i && wc.byte_len == 3000);
        check(wc.qp_num == target->qp_num && wc.opcode == IBV_WC_RECV);
        check_pattern(r.addr, i, 3000);
        expect_completion(cq[2], 1, IBV_WC_SUCCESS);
    }
    post_xrc(sender, IBV_WR_RDMA_WRITE, 2, number_of(srq[0]), sge_of(&r, 4096, 3000), base + 8192, r.mr->rkey);
    expect_completion(cq[2], 2, IBV_WC_SUCCESS);
    check_pattern(r.addr + 8192, 7, 3000);
    post_xrc(sender, IBV_WR_RDMA_READ, 3, number_of(srq[0]), sge_of(&r, 12288, 3000), base + 8192, r.mr->rkey);
    expect_completion(cq[2], 3, IBV_WC_SUCCESS);
    check_pattern(r.addr + 12288, 7, 3000);
    words[0] = 39;
    post_xrc(sender, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, number_of(srq[0]), sge_of(&r, 16392, 8), base + 16384, r.mr->rkey);
    expect_completion(cq[2], 4, IBV_WC_SUCCESS);
    check(words[0] == 42 && words[1] == 39);
    check(!ibv_destroy_srq(srq[1]));
    check(!ibv_destroy_qp(target) && !ibv_destroy_qp(sender));
    check(!ibv_destroy_srq(srq[0]));
    check(!ibv_close_xrcd(xrcd));
    for (int i = 0; i < 3; i++) {
        destroy_cq(cq[i]);
    }
    destroy_region(&r);
}

/* One of the sender's that stays with it, and names no SRQ though the request does. */
static void post_local(struct ibv_qp *qp, struct ibv_send_wr wr, uint32_t srqn)
{
    struct ibv_send_wr *bad;

    wr.wr_id = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = srqn;
    check(!ibv_post_send(qp, &wr, &bad));
}

/* Windows that a sender binds and takes back; the peer's work requests come by one of type 1. */
static void use_windows(struct ibv_qp *sender, struct ibv_cq_ex *cq, struct region *r, uint32_t srqn)
{
    struct ibv_mr *mr = ibv_reg_mr(device.pd, r->addr, r->mr->length, ACCESS_ALL | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw[2] = { ibv_alloc_mw(device.pd, IBV_MW_TYPE_1), ibv_alloc_mw(device.pd, IBV_MW_TYPE_2) };
    uint64_t there = (uintptr_t)r->addr + 8192;
    struct ibv_mw_bind bind = {
        .wr_id = 1,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = { .mr = mr, .addr = there, .length = 4096, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
    };
    struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

    check(mr && mw[0] && mw[1]);
    check(!ibv_bind_mw(sender, mw[0], &bind));
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    fill_pattern(r->addr + 4096, 99, 3000);
    post_xrc(sender, IBV_WR_RDMA_WRITE, 2, srqn, sge_of(r, 4096, 3000), there, mw[0]->rkey);
    expect_completion(cq, 2, IBV_WC_SUCCESS);
    check_pattern(r->addr + 8192, 99, 3000);
    wr.bind_mw.mw = mw[1];
    wr.bind_mw.rkey = ibv_inc_rkey(mw[1]->rkey);
    wr.bind_mw.bind_info = bind.bind_info;
    post_local(sender, wr, srqn);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    check(ibv_dereg_mr(mr) == EBUSY);
    post_local(sender, (struct ibv_send_wr) { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = wr.bind_mw.rkey }, srqn);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    check(!ibv_dealloc_mw(mw[0]) && !ibv_dealloc_mw(mw[1]));
    check(!ibv_dereg_mr(mr));
}

static void test_windows(void)
{
    struct ibv_cq_ex *cq[2] = { create_cq(&device, 16), create_cq(&device, 16) };
    struct ibv_xrcd *xrcd = open_domain(-1);
    struct ibv_srq *srq = create_xsrq(xrcd, device.pd, cq[0]);
    struct ibv_qp *target = create_target(xrcd), *sender = create_sender(cq[1]);
    struct region r;

    create_region(&device, &r, 32768);
    connect_xrc(target, sender->qp_num);
    connect_xrc(sender, target->qp_num);
    use_windows(sender, cq[1], &r, number_of(srq));
    check(!ibv_destroy_qp(target) && !ibv_destroy_qp(sender));
    check(!ibv_destroy_srq(srq));
    check(!ibv_close_xrcd(xrcd));
    destroy_cq(cq[0]);
    destroy_cq(cq[1]);
    destroy_region(&r);
}

static struct ibv_qp_cap limits_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    check(!ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
    return attr.cap;
}

/* Limits of the side that a QP has not are not looked at, and it has none. */
static void test_limits(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_xrcd *xrcd = open_domain(-1);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = { .max_send_wr = 16, .max_recv_wr = 1u << 30, .max_send_sge = 1, .max_recv_sge = 1000 },
        .qp_type = IBV_QPT_XRC_SEND,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = device.pd,
    };
    struct ibv_qp *sender = ibv_create_qp_ex(device.context, &attr), *target;
    struct ibv_qp_cap found;

    check(sender);
    found = limits_of(sender);
    check(found.max_send_wr >= 16 && found.max_send_sge >= 1 && !found.max_recv_wr && !found.max_recv_sge);
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.cap.max_send_wr = 1u << 30;
    attr.cap.max_send_sge = 1000;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd;
    target = ibv_create_qp_ex(device.context, &attr);
    check(target);
    found = limits_of(target);
    check(!found.max_send_wr && !found.max_send_sge && !found.max_recv_wr && !found.max_recv_sge);
    check(!ibv_destroy_qp(target) && !ibv_destroy_qp(sender));
    check(!ibv_close_xrcd(xrcd));
    destroy_cq(cq);
}

/* What a process of test_shared() says to the other. */
struct word {
    uint32_t qpn;
    uint32_t srqn;
};

static void say(int fd, struct word word)
{
    check(write(fd, &word, sizeof(word)) == sizeof(word));
}

static struct word hear(int fd)
{
    struct word word;

    check(read(fd, &word, sizeof(word)) == sizeof(word));
    return word;
}

#define DOMAIN_FILE "/tmp/xrcd"

/* What each process of the receiving side has. */
struct receiver {
    struct ibv_xrcd *xrcd;
    struct ibv_cq_ex *cq;
    struct ibv_srq *srq;
    struct region region;
};

static void create_receiver(struct receiver *r)
{
    int fd = open(DOMAIN_FILE, O_RDONLY | O_CREAT, 0600);

    check(fd >= 0);
    open_device(&device);
    r->xrcd = open_domain(fd);
    close(fd);
    r->cq = create_cq(&device, 64);
    r->srq = create_xsrq(r->xrcd, device.pd, r->cq);
    create_region(&device, &r->region, 4096);
    post_srq(r->srq, 5, sge_of(&r->region, 0, 64));
}

static void receive_one(struct receiver *r, uint32_t qpn)
{
    struct ibv_wc wc = next_completion(r->cq);

    check(wc.status == IBV_WC_SUCCESS && wc.wr_id == 5 && wc.qp_num == qpn && wc.byte_len == 10);
}

/* Makes the target, receives a message, and ends with all that it has as it is. */
static _Noreturn void first_process(int in, int out)
{
    struct receiver r;
    struct ibv_qp *target;
    struct word peer;

    create_receiver(&r);
    target = create_target(r.xrcd);
    say(out, (struct word) { target->qp_num, number_of(r.srq) });
    peer = hear(in);
    connect_xrc(target, peer.qpn);
    say(out, peer);
    receive_one(&r, target->qp_num);
    hear(in);
    exit(0);
}

/* Opens the target, and receives by it whatever becomes of who made it. */
static _Noreturn void second_process(int in, int out)
{
    struct ibv_qp_open_attr attr = {
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
        .qp_type = IBV_QPT_XRC_RECV,
    };
    struct ibv_qp *target;
    struct receiver r;

    attr.qp_num = hear(in).qpn;
    create_receiver(&r);
    attr.xrcd = r.xrcd;
    target = ibv_open_qp(device.context, &attr);
    check(target);
    say(out, (struct word) { target->qp_num, number_of(r.srq) });
    receive_one(&r, target->qp_num);
    check(state_of(target) == IBV_QPS_RTS);
    say(out, (struct word) { target->qp_num, number_of(r.srq) });
    hear(in);
    check(!ibv_destroy_qp(target) && !ibv_destroy_srq(r.srq) && !ibv_close_xrcd(r.xrcd));
    destroy_cq(r.cq);
    destroy_region(&r.region);
    close_device(&device);
    exit(0);
}

static void expect_end(pid_t process)
{
    int status;

    check(waitpid(process, &status, 0) == process && status == 0);
}

static pid_t start_process(void (*run)(int in, int out), int *in, int *out)
{
    int to[2], from[2];
    pid_t pid;

    check(!pipe(to) && !pipe(from));
    pid = fork();
    check(pid >= 0);
    if (!pid) {
        run(to[0], from[1]);
    }
    *in = from[0];
    *out = to[1];
    return pid;
}

/* Two processes share a domain and a target; the second has it on when the first is gone. */
static void test_shared(void)
{
    struct word target, second;
    pid_t pid[2];
    int in[2], out[2];
    struct ibv_cq_ex *cq;
    struct ibv_qp *sender;
    struct region r;

    pid[0] = start_process(first_process, &in[0], &out[0]);
    pid[1] = start_process(second_process, &in[1], &out[1]);
    open_device(&device);
    cq = create_cq(&device, 64);
    sender = create_sender(cq);
    create_region(&device, &r, 4096);

    target = hear(in[0]);
    connect_xrc(sender, target.qpn);
    say(out[0], (struct word) { sender->qp_num, 0 });
    hear(in[0]);
    say(out[1], target);
    second = hear(in[1]);
    check(second.qpn == target.qpn && second.srqn != target.srqn);
    post_xrc(sender, IBV_WR_SEND, 1, target.srqn, sge_of(&r, 0, 10), 0, 0);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    say(out[0], target);
    expect_end(pid[0]);

    post_xrc(sender, IBV_WR_SEND, 2, second.srqn, sge_of(&r, 0, 10), 0, 0);
    expect_completion(cq, 2, IBV_WC_SUCCESS);
    hear(in[1]);
    /* The first one's SRQ is gone with it: to name it is an error. */
    post_xrc(sender, IBV_WR_SEND, 3, target.srqn, sge_of(&r, 0, 10), 0, 0);
    expect_completion(cq, 3, IBV_WC_REM_INV_REQ_ERR);
    say(out[1], target);
    expect_end(pid[1]);
    check(!ibv_destroy_qp(sender));
    destroy_cq(cq);
    destroy_region(&r);
    unlink(DOMAIN_FILE);
    close_device(&device);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "operations", test_operations },
    { "windows", test_windows },
    { "limits", test_limits },
    { "shared", test_shared },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    bool opens = argc > 1 && !strcmp(argv[1], "shared"); /* by itself, in each process */

    return run_case(argc, argv, cases, opens ? NULL : &device, NULL, NULL);
}
