/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See common.h. */
#include "common.h"

#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double patience(void)
{
    const char *factor = getenv("GUEST_PATIENCE");

    return 20.0 * (factor ? atof(factor) : 1);
}

_Noreturn void fail(const char *file, int line, const char *what)
{
    printf("%s:%d: not so: %s (errno %d, %s)\n", file, line, what, errno, strerror(errno));
    exit(1);
}

void await_start(const char *format, ...)
{
    sigset_t set;
    va_list args;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check(!sigprocmask(SIG_BLOCK, &set, NULL));
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    check(!sigwait(&set, &number));
}

double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int run_case(int argc, char **argv, const struct test_case *cases, struct device *device, void (*begin)(void), void (*end)(void))
{
    const struct test_case *found = cases;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while (argc > 1 && found->name && strcmp(argv[1], found->name)) {
        found++;
    }
    if (argc > 1 && found->name) {
        if (device) {
            open_device(device);
        }
        if (begin) {
            begin();
        }
        found->run();
        if (end) {
            end();
        }
        if (device) {
            close_device(device);
        }
        return 0;
    }
    fprintf(stderr, "usage: %s CASE; a case is one of", argv[0]);
    for (; cases->name; cases++) {
        fprintf(stderr, " %s", cases->name);
    }
    fprintf(stderr, "\n");
    return 2;
}

/* --- device and memory ------------------------------------------------------------------------------------------- */

void open_device_named(struct device *device, const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i = 0;

    check(list);
    while (name && list[i] && strcmp(ibv_get_device_name(list[i]), name)) {
        i++;
    }
    check(list[i]);
    device->context = ibv_open_device(list[i]);
    check(device->context);
    ibv_free_device_list(list);
    device->pd = ibv_alloc_pd(device->context);
    check(device->pd);
    check(!ibv_query_device(device->context, &device->attr));
    check(!ibv_query_port(device->context, 1, &device->port));
    check(!ibv_query_gid(device->context, 1, 0, &device->gid));
}

void open_device(struct device *device)
{
    open_device_named(device, NULL);
}

void close_device(struct device *device)
{
    check(!ibv_dealloc_pd(device->pd));
    check(!ibv_close_device(device->context));
}

void create_region(struct device *device, struct region *region, size_t length)
{
    region->length = length;
    region->addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(region->addr != MAP_FAILED);
    region->mr = ibv_reg_mr(device->pd, region->addr, length, ACCESS_ALL);
    check(region->mr);
}

void destroy_region(struct region *region)
{
    check(!ibv_dereg_mr(region->mr));
    munmap(region->addr, region->length);
}

struct ibv_sge sge_of(const struct region *region, size_t offset, uint32_t length)
{
    return (struct ibv_sge) {
        .addr = (uintptr_t)region->addr + offset,
        .length = length,
        .lkey = region->mr->lkey,
    };
}

/* --- queues ------------------------------------------------------------------------------------------------------- */

struct ibv_cq_ex *create_cq(struct device *device, unsigned int entries)
{
    struct ibv_cq_init_attr_ex attr = { .cqe = entries, .wc_flags = IBV_WC_STANDARD_FLAGS };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(device->context, &attr);

    if (!cq && errno == EOPNOTSUPP) {
        cq = (struct ibv_cq_ex *)ibv_create_cq(device->context, entries, NULL, NULL, 0);
    }
    check(cq);
    return cq;
}

void destroy_cq(struct ibv_cq_ex *cq)
{
    check(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static uint64_t send_ops(enum ibv_qp_type type)
{
    uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

    if (type != IBV_QPT_UD) {
        ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |
               IBV_QP_EX_WITH_LOCAL_INV;
    }
    if (type == IBV_QPT_RC) {
        ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
               IBV_QP_EX_WITH_SEND_WITH_INV;
    }
    return ops;
}

struct ibv_qp *create_qp(struct device *device, struct ibv_cq_ex *cq, enum ibv_qp_type type, unsigned int work_requests,
                         unsigned int inline_data)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = {
            .max_send_wr = work_requests,
            .max_recv_wr = work_requests,
            .max_send_sge = 4,
            .max_recv_sge = 4,
            .max_inline_data = inline_data,
        },
        .qp_type = type,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = device->pd,
        .send_ops_flags = send_ops(type),
    };
    struct ibv_qp *qp = ibv_create_qp_ex(device->context, &attr);

    if (!qp && errno == EOPNOTSUPP) {
        attr.comp_mask &= ~IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        qp = ibv_create_qp_ex(device->context, &attr);
    }
    check(qp);
    return qp;
}

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = QKEY,
        .qp_access_flags = ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    check(!ibv_modify_qp(qp, &attr, mask));
}

struct ibv_ah_attr own_path(const struct device *device)
{
    struct ibv_ah_attr path = { .dlid = device->port.lid, .port_num = 1 };

    if (device->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        path.is_global = 1;
        path.grh.dgid = device->gid;
        path.grh.hop_limit = 64;
    }
    return path;
}

static void to_rtr(struct device *device, struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = own_path(device),
    };
    int mask = IBV_QP_STATE;

    if (qp->qp_type != IBV_QPT_UD) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qp->qp_type == IBV_QPT_RC) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    check(!ibv_modify_qp(qp, &attr, mask));
}

static void to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 4,
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (qp->qp_type == IBV_QPT_RC) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    check(!ibv_modify_qp(qp, &attr, mask));
}

void prepare_qp(struct device *device, struct ibv_qp *qp, uint32_t peer)
{
    to_init(qp);
    to_rtr(device, qp, peer);
}

void connect_qp(struct device *device, struct ibv_qp *qp, uint32_t peer)
{
    prepare_qp(device, qp, peer);
    to_rts(qp);
}

void connect_pair(struct device *device, struct ibv_qp *qp[2])
{
    for (int i = 0; i < 2; i++) {
        connect_qp(device, qp[i], qp[1 - i]->qp_num);
    }
}

void create_connection(struct device *device, struct ibv_cq_ex *cq, unsigned int work_requests, struct ibv_qp *qp[2])
{
    for (int i = 0; i < 2; i++) {
        qp[i] = create_qp(device, cq, IBV_QPT_RC, work_requests, 0);
    }
    connect_pair(device, qp);
}

void reconnect(struct device *device, struct ibv_qp *qp[2])
{
    for (int i = 0; i < 2; i++) {
        to_state(qp[i], IBV_QPS_RESET);
    }
    connect_pair(device, qp);
}

void destroy_pair(struct ibv_qp *qp[2])
{
    check(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]));
}

void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };

    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    check(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
    return attr.qp_state;
}

/* --- work and completions ----------------------------------------------------------------------------------------- */

void post_recv(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge sge)
{
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;

    check(!ibv_post_recv(qp, &wr, &bad));
}

void post_srq(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge sge)
{
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;

    check(!ibv_post_srq_recv(srq, &wr, &bad));
}

void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge sge, uint64_t remote_addr,
          uint32_t rkey)
{
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = remote_addr, .rkey = rkey },
    };
    struct ibv_send_wr *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = remote_addr;
        wr.wr.atomic.rkey = rkey;
    }
    check(!ibv_post_send(qp, &wr, &bad));
}

void start_poll(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = { 0 };
    double end = seconds_now() + patience();
    int err;

    do {
        err = ibv_start_poll(cq, &attr);
    } while (err == ENOENT && seconds_now() < end);
    check(!err);
}

struct ibv_wc next_completion(struct ibv_cq_ex *cq)
{
    double end = seconds_now() + patience();
    struct ibv_wc wc;
    int n;

    do {
        n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc);
        check(n >= 0);
    } while (!n && seconds_now() < end);
    check(n == 1);
    return wc;
}

void expect_completion(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = next_completion(cq);

    if (wc.wr_id != wr_id || wc.status != status) {
        printf("completion of %ju has status %d (vendor %#x); expected is %ju with %d\n", (uintmax_t)wc.wr_id, wc.status,
               wc.vendor_err, (uintmax_t)wr_id, status);
        exit(1);
    }
}

void discard_completions(struct ibv_cq_ex *cq)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 1) {
    }
}

/* --- another process -------------------------------------------------------------------------------------------------- */

int meet_peer(const char *port, const char *address)
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = address ? 0 : AI_PASSIVE };
    struct addrinfo *found;
    int fd, one = 1;

    check(!getaddrinfo(address, port, &hints, &found));
    check((fd = socket(found->ai_family, found->ai_socktype, 0)) >= 0);
    if (address) {
        check(!connect(fd, found->ai_addr, found->ai_addrlen));
    } else {
        check(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
        check(!bind(fd, found->ai_addr, found->ai_addrlen) && !listen(fd, 1));
        check((fd = accept(fd, NULL, NULL)) >= 0);
    }
    freeaddrinfo(found);
    return fd;
}

void exchange_with(int fd, const void *own, void *other, size_t size)
{
    check(write(fd, own, size) == (ssize_t)size);
    check(recv(fd, other, size, MSG_WAITALL) == (ssize_t)size);
}

/* --- data --------------------------------------------------------------------------------------------------------- */

static uint8_t pattern(unsigned int seed, unsigned int i)
{
    return seed * 31 + i * 7 + (i >> 8);
}

void fill_pattern(uint8_t *at, unsigned int seed, unsigned int length)
{
    for (unsigned int i = 0; i < length; i++) {
        at[i] = pattern(seed, i);
    }
}

void check_pattern(const uint8_t *at, unsigned int seed, unsigned int length)
{
    for (unsigned int i = 0; i < length; i++) {
        check(at[i] == pattern(seed, i));
    }
}
