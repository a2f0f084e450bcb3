/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: dm-test CASE
 *        dm-test peer [-d DEVICE] [-x GID] -p PORT [SERVER]
 *
 * Device memory: in one process, between two of them, and (peer) between two machines. Exits with 1 at the first that is
 * not as it should be.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define PAGE 4096u
#define ACCESS_DM (ACCESS_ALL | IBV_ACCESS_ZERO_BASED)
#define refused_pointer(call, err) (errno = 0, check(!(call)), check(errno == (err)))

static struct device device;

static size_t max_dm_size(void)
{
    struct ibv_device_attr_ex attr;

    check(!ibv_query_device_ex(device.context, NULL, &attr));
    check(attr.max_dm_size >= 1 << 20);
    return attr.max_dm_size;
}

static struct ibv_dm *try_dm(size_t length, uint32_t log_align)
{
    struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = log_align };

    errno = 0;
    return ibv_alloc_dm(device.context, &attr);
}

static struct ibv_dm *alloc_dm(size_t length)
{
    struct ibv_dm *dm = try_dm(length, 0);

    check(dm);
    return dm;
}

static uint8_t *read_dm(struct ibv_dm *dm, size_t offset, size_t length)
{
    uint8_t *data = malloc(length);

    check(data);
    memset(data, 0xa5, length);
    check(!ibv_memcpy_from_dm(data, dm, offset, length));
    return data;
}

/* Whether all of @length bytes are @byte. */
static bool dm_is(struct ibv_dm *dm, size_t length, uint8_t byte)
{
    uint8_t *data = read_dm(dm, 0, length);
    size_t i = 0;

    while (i < length && data[i] == byte) {
        i++;
    }
    free(data);
    return i == length;
}

static void fill_dm(struct ibv_dm *dm, size_t length, uint8_t byte)
{
    uint8_t *data = malloc(length);

    check(data);
    memset(data, byte, length);
    check(!ibv_memcpy_to_dm(dm, 0, data, length));
    free(data);
}

/* --- allocation --------------------------------------------------------------------------------------------------- */

/* All of it is zero, whatever was there before. */
static void test_zeroed(void)
{
    size_t all = max_dm_size();

    for (int i = 0; i < 3; i++) {
        struct ibv_dm *dm = alloc_dm(all);

        check(dm_is(dm, all, 0));
        fill_dm(dm, all, 0x5a);
        check(dm_is(dm, all, 0x5a));
        check(!ibv_free_dm(dm));
    }
}

static void test_exhaustion(void)
{
    size_t pages = max_dm_size() / PAGE, n;
    struct ibv_dm **dm = calloc(pages + 1, sizeof(*dm));

    for (n = 0; n <= pages && (dm[n] = try_dm(1 + n % PAGE, n % 13)); n++) {
    }
    printf("%zu of %zu pages\n", n, pages);
    check(n == pages && errno == ENOMEM);
    /* Two neighbours are room for two pages. */
    check(!ibv_free_dm(dm[10]) && !ibv_free_dm(dm[12]));
    refused_pointer(try_dm(PAGE + 1, 0), ENOMEM);
    check(!ibv_free_dm(dm[11]));
    refused_pointer(try_dm(2 * PAGE, 14), ENOMEM);
    check(dm[10] = try_dm(3 * PAGE, 12));
    for (size_t i = 0; i < n; i++) {
        if (i != 11 && i != 12) {
            check(!ibv_free_dm(dm[i]));
        }
    }
    free(dm);
    check(!ibv_free_dm(alloc_dm(max_dm_size())));
}

static void test_refused(void)
{
    struct ibv_alloc_dm_attr attr = { .length = 4, .comp_mask = 1 };
    size_t all = max_dm_size();
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    uint32_t word = 0;

    refused_pointer(try_dm(0, 0), EINVAL);
    refused_pointer(try_dm(all + 1, 0), EINVAL);
    refused_pointer(try_dm(SIZE_MAX, 0), EINVAL);
    refused_pointer(try_dm(4, 63), EINVAL);
    refused_pointer(try_dm(4, UINT32_MAX), EINVAL);
    refused_pointer(ibv_alloc_dm(device.context, &attr), EINVAL);
    dm = alloc_dm(100);
    refused_pointer(ibv_reg_dm_mr(device.pd, dm, 0, 100, ACCESS_ALL), EINVAL);
    refused_pointer(ibv_reg_dm_mr(device.pd, dm, 0, 101, ACCESS_DM), EINVAL);
    refused_pointer(ibv_reg_dm_mr(device.pd, dm, 101, 0, ACCESS_DM), EINVAL);
    refused_pointer(ibv_reg_dm_mr(device.pd, dm, UINT64_MAX, 2, ACCESS_DM), EINVAL);
    refused_pointer(ibv_reg_dm_mr(device.pd, dm, 0, 100, ACCESS_DM | IBV_ACCESS_MW_BIND), EINVAL);
    refused_pointer(ibv_reg_dm_mr(device.pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE), EINVAL);
    check(ibv_memcpy_to_dm(dm, 100, &word, 4) && ibv_memcpy_from_dm(&word, dm, 100, 4));
    mr = ibv_reg_dm_mr(device.pd, dm, 4, 96, ACCESS_DM);
    check(mr);
    check(ibv_free_dm(dm) == EBUSY);
    check(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, device.pd, NULL, 0, ACCESS_ALL));
    check(!ibv_memcpy_to_dm(dm, 0, &word, 4));
    check(!ibv_dereg_mr(mr));
    check(!ibv_free_dm(dm));
}

/* --- who sees it -------------------------------------------------------------------------------------------------- */

/* What is mapped at any page of the file but its own: nothing that it has not been given, and nothing in part. */
static void look_around(const uint8_t *secret)
{
    struct ibv_dm *dm = alloc_dm(3 * PAGE);
    int found = 0;

    check(dm_is(dm, 3 * PAGE, 0));
    fill_dm(dm, 3 * PAGE, 0x11);
    for (unsigned int page = 0; page < 2048; page++) {
        for (unsigned int n = 1; n <= 4; n++) {
            uint8_t *p = mmap(NULL, n * PAGE, PROT_READ, MAP_SHARED, device.context->cmd_fd, (off_t)page * PAGE);

            if (p == MAP_FAILED) {
                continue;
            }
            found++;
            /* The page of doorbells, or all of its own memory. */
            check(n == 1 || (n == 3 && p[0] == 0x11 && memcmp(p, secret, 64)));
            munmap(p, n * PAGE);
        }
    }
    check(found == 2);
    check(!ibv_free_dm(dm));
}

/* Another process has some memory, and finds nothing of this one's. */
static void run_other(int from, int to)
{
    uint8_t secret[64], byte = 1;

    check(read(from, secret, sizeof(secret)) == sizeof(secret));
    open_device(&device);
    look_around(secret);
    check(write(to, &byte, 1) == 1);
    /* The first one has written again. */
    check(read(from, &byte, 1) == 1);
    look_around(secret);
    close_device(&device);
}

static void test_isolated(void)
{
    uint8_t secret[64], byte = 1, *seen;
    int there[2], back[2], status;
    struct ibv_dm *dm;
    pid_t child;

    check(!pipe(there) && !pipe(back));
    close_device(&device);
    child = fork();
    if (!child) {
        run_other(there[0], back[1]);
        _exit(0);
    }
    open_device(&device);
    memset(secret, 0xc3, sizeof(secret));
    dm = alloc_dm(2 * PAGE);
    fill_dm(dm, 2 * PAGE, 0xc3);
    check(write(there[1], secret, sizeof(secret)) == sizeof(secret));
    check(read(back[0], &byte, 1) == 1);
    fill_dm(dm, 2 * PAGE, 0xc3);
    check(write(there[1], &byte, 1) == 1);
    check(waitpid(child, &status, 0) == child && status == 0);
    check(dm_is(dm, 2 * PAGE, 0xc3));
    /* A second mapping of its own is of the same memory; one for execution, or private, there is not. */
    for (off_t at = 0; (seen = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, device.context->cmd_fd, at)) == MAP_FAILED; at += PAGE) {
        check(at < 1 << 24);
        check(mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, device.context->cmd_fd, at) == MAP_FAILED);
    }
    check(seen[2 * PAGE - 1] == 0xc3);
    munmap(seen, 2 * PAGE);
    check(!ibv_free_dm(dm));
}

/* Who has imported it keeps its pages, which are nobody else's as long. */
static void test_imported(void)
{
    size_t all = max_dm_size();
    struct ibv_dm *dm = alloc_dm(all / 2), *other, *imported;

    fill_dm(dm, all / 2, 0x77);
    imported = ibv_import_dm(device.context, dm->handle);
    check(imported);
    check(dm_is(imported, all / 2, 0x77));
    refused_pointer(ibv_import_dm(device.context, dm->handle + 1000), ENOENT);
    check(!ibv_free_dm(dm));
    refused_pointer(try_dm(all, 0), ENOMEM);
    other = alloc_dm(all / 2);
    fill_dm(other, all / 2, 0x33);
    check(dm_is(imported, all / 2, 0x77));
    ibv_unimport_dm(imported);
    check(!ibv_free_dm(other));
    other = alloc_dm(all);
    check(dm_is(other, all, 0));
    check(!ibv_free_dm(other));
}

/* --- traffic ------------------------------------------------------------------------------------------------------ */

static void post_atomic(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote, uint32_t rkey,
                        uint64_t compare_add, uint64_t swap)
{
    struct ibv_send_wr wr = {
        .wr_id = opcode,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.atomic = { .remote_addr = remote, .rkey = rkey, .compare_add = compare_add, .swap = swap },
    };
    struct ibv_send_wr *bad;

    check(!ibv_post_send(qp, &wr, &bad));
}

static uint64_t atomic(struct ibv_cq_ex *cq, struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct region *r, uint64_t remote,
                       uint32_t rkey, uint64_t compare_add, uint64_t swap)
{
    post_atomic(qp, opcode, sge_of(r, 0, 8), remote, rkey, compare_add, swap);
    expect_completion(cq, opcode, IBV_WC_SUCCESS);
    return *(volatile uint64_t *)r->addr;
}

/* Messages from one device memory to another, by each operation, and what a processor reads and writes there. */
static void test_traffic(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_dm *dm[2];
    struct ibv_mr *mr[2];
    struct ibv_sge sge;
    struct ibv_qp *qp[2];
    struct region r;
    uint8_t *data;

    create_region(&device, &r, PAGE);
    create_connection(&device, cq, 4, qp);
    for (int i = 0; i < 2; i++) {
        dm[i] = alloc_dm(20000);
        fill_dm(dm[i], 20000, 0x40 + i);
        mr[i] = ibv_reg_dm_mr(device.pd, dm[i], 1000, 19000, ACCESS_DM);
        check(mr[i]);
    }
    sge = (struct ibv_sge) { .addr = 9000, .length = 10000, .lkey = mr[1]->lkey };
    post_recv(qp[1], 1, sge);
    sge = (struct ibv_sge) { .addr = 10, .length = 5000, .lkey = mr[0]->lkey };
    post(qp[0], IBV_WR_SEND, 2, sge, 0, 0);
    for (int i = 0; i < 2; i++) { /* of the send and the receive */
        check(next_completion(cq).status == IBV_WC_SUCCESS);
    }
    data = read_dm(dm[1], 0, 20000);
    for (int i = 0; i < 20000; i++) {
        check(data[i] == (i >= 10000 && i < 15000 ? 0x40 : 0x41));
    }
    free(data);
    fill_dm(dm[0], 2000, 0x66);
    sge = (struct ibv_sge) { .addr = 0, .length = 1000, .lkey = mr[0]->lkey };
    post(qp[0], IBV_WR_RDMA_WRITE, 3, sge, 18000, mr[1]->rkey);
    expect_completion(cq, 3, IBV_WC_SUCCESS);
    sge = (struct ibv_sge) { .addr = 5000, .length = 1000, .lkey = mr[0]->lkey };
    post(qp[0], IBV_WR_RDMA_READ, 4, sge, 18000, mr[1]->rkey);
    expect_completion(cq, 4, IBV_WC_SUCCESS);
    data = read_dm(dm[0], 6000, 1000);
    for (int i = 0; i < 1000; i++) {
        check(data[i] == 0x66);
    }
    free(data);
    fill_dm(dm[1], 2000, 0);
    for (uint64_t i = 0; i < 10; i++) {
        check(atomic(cq, qp[0], IBV_WR_ATOMIC_FETCH_AND_ADD, &r, 8, mr[1]->rkey, 3, 0) == 3 * i);
    }
    check(atomic(cq, qp[0], IBV_WR_ATOMIC_CMP_AND_SWP, &r, 8, mr[1]->rkey, 30, UINT64_MAX) == 30);
    data = read_dm(dm[1], 1008, 8);
    check(*(uint64_t *)data == UINT64_MAX);
    free(data);
    /* One byte too far, which ends the connection. */
    post(qp[0], IBV_WR_RDMA_WRITE, 5, sge_of(&r, 0, 2), 18999, mr[1]->rkey);
    expect_completion(cq, 5, IBV_WC_REM_ACCESS_ERR);
    for (int i = 0; i < 2; i++) {
        check(!ibv_destroy_qp(qp[i]) && !ibv_dereg_mr(mr[i]) && !ibv_free_dm(dm[i]));
    }
    destroy_region(&r);
    destroy_cq(cq);
}

/* --- a card that goes --------------------------------------------------------------------------------------------- */

/* Memory is in use until the card is lost, and a moment longer. */
static void test_lost(void)
{
    struct ibv_dm *dm = alloc_dm(8 * PAGE);
    struct ibv_mr *mr = ibv_reg_dm_mr(device.pd, dm, 0, 8 * PAGE, ACCESS_DM);
    struct pollfd fatal = { .fd = device.context->async_fd, .events = POLLIN };
    struct ibv_async_event event;
    bool over = false;

    check(mr);
    printf("in use\n");
    fflush(stdout);
    while (!over) {
        fill_dm(dm, 8 * PAGE, 1);
        free(read_dm(dm, 0, 8 * PAGE));
        if (poll(&fatal, 1, 0) == 1) {
            check(!ibv_get_async_event(device.context, &event));
            over = event.event_type == IBV_EVENT_DEVICE_FATAL;
            ibv_ack_async_event(&event);
        }
    }
    for (int i = 0; i < 200; i++) {
        fill_dm(dm, 8 * PAGE, 2);
        usleep(10000);
    }
    (void)!ibv_dereg_mr(mr);
    (void)!ibv_free_dm(dm);
    printf("lost\n");
}

/* --- two machines ------------------------------------------------------------------------------------------------- */

#define PEER_LENGTH 100000u
#define COUNTER 64 /* where it is */

struct end {
    uint16_t lid;
    uint8_t gid[16];
    uint32_t qpn, rkey;
};

static const char *device_name;
static int gid_index;

static void open_named(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i = 0;

    check(list && list[0]);
    while (device_name && list[i] && strcmp(ibv_get_device_name(list[i]), device_name)) {
        i++;
    }
    check(list[i]);
    device.context = ibv_open_device(list[i]);
    check(device.context);
    ibv_free_device_list(list);
    device.pd = ibv_alloc_pd(device.context);
    check(device.pd);
    check(!ibv_query_port(device.context, 1, &device.port));
    check(!ibv_query_gid(device.context, 1, gid_index, &device.gid));
}

/* Both have come to the same place. */
static void meet(int s)
{
    uint8_t own = 1, other;

    exchange_with(s, &own, &other, 1);
}

static void connect_peer(struct ibv_qp *qp, const struct end *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = ACCESS_ALL,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 4,
        .max_rd_atomic = 4,
        .min_rnr_timer = 1,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = { .dlid = peer->lid, .port_num = 1 },
    };

    if (device.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh = (struct ibv_global_route) { .hop_limit = 64, .sgid_index = gid_index };
        memcpy(&attr.ah_attr.grh.dgid, peer->gid, sizeof(peer->gid));
    }
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    check(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    check(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC));
}

static uint8_t pattern(unsigned int who, size_t at)
{
    return at * 7 + at / 251 + who * 91;
}

/* Behind the counter's page: what this one writes into the other's, and reads again into its own. */
static void use_peer(struct ibv_cq_ex *cq, struct ibv_qp *qp, const struct end *peer, struct ibv_dm *dm, struct ibv_mr *mr,
                     unsigned int who)
{
    const uint32_t length = (PEER_LENGTH - PAGE) / 2 & ~3u;
    struct ibv_sge sge = { .addr = PAGE + length, .length = length, .lkey = mr->lkey };
    struct region r;
    uint8_t *data;

    create_region(&device, &r, length);
    for (size_t i = 0; i < length; i++) {
        r.addr[i] = pattern(who, i);
    }
    post(qp, IBV_WR_RDMA_WRITE, 1, sge_of(&r, 0, length), PAGE, peer->rkey);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    post(qp, IBV_WR_RDMA_READ, 2, sge, PAGE, peer->rkey);
    expect_completion(cq, 2, IBV_WC_SUCCESS);
    data = read_dm(dm, PAGE + length, length);
    check(!memcmp(data, r.addr, length));
    free(data);
    for (uint64_t i = 0; i < 100; i++) {
        check(atomic(cq, qp, IBV_WR_ATOMIC_FETCH_AND_ADD, &r, COUNTER, peer->rkey, 5, 0) == 5 * i);
    }
    check(atomic(cq, qp, IBV_WR_ATOMIC_CMP_AND_SWP, &r, COUNTER + 8, peer->rkey, 0, 0x1122334455667788) == 0);
    destroy_region(&r);
}

/* What the other one has written here. */
static void check_own(struct ibv_dm *dm, unsigned int other)
{
    const uint32_t length = (PEER_LENGTH - PAGE) / 2 & ~3u;
    uint8_t *data = read_dm(dm, 0, PAGE + length);

    check(*(uint64_t *)(data + COUNTER) == 500);
    check(*(uint64_t *)(data + COUNTER + 8) == 0x1122334455667788);
    for (size_t i = 0; i < length; i++) {
        check(data[PAGE + i] == pattern(other, i));
    }
    free(data);
}

static void run_peer(const char *server, const char *port)
{
    int s = meet_peer(port, server);
    unsigned int who = server ? 1 : 2;
    struct ibv_cq_ex *cq;
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct end own, peer;

    open_named();
    cq = create_cq(&device, 16);
    qp = create_qp(&device, cq, IBV_QPT_RC, 4, 0);
    dm = alloc_dm(PEER_LENGTH);
    mr = ibv_reg_dm_mr(device.pd, dm, 0, PEER_LENGTH, ACCESS_DM);
    check(mr);
    own = (struct end) { .lid = device.port.lid, .qpn = qp->qp_num, .rkey = mr->rkey };
    memcpy(own.gid, &device.gid, sizeof(own.gid));
    exchange_with(s, &own, &peer, sizeof(own));
    connect_peer(qp, &peer);
    meet(s);
    use_peer(cq, qp, &peer, dm, mr, who);
    meet(s);
    check_own(dm, 3 - who);
    meet(s);
    check(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_free_dm(dm));
    destroy_cq(cq);
    close_device(&device);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "zeroed", test_zeroed },
    { "exhaustion", test_exhaustion },
    { "refused", test_refused },
    { "isolated", test_isolated },
    { "imported", test_imported },
    { "traffic", test_traffic },
    { "lost", test_lost },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    const char *port = NULL;
    int option;

    if (argc <= 2) {
        return run_case(argc, argv, cases, &device, NULL, NULL);
    }
    check(!strcmp(argv[1], "peer"));
    optind = 2;
    while ((option = getopt(argc, argv, "d:x:p:")) != -1) {
        device_name = option == 'd' ? optarg : device_name;
        gid_index = option == 'x' ? atoi(optarg) : gid_index;
        port = option == 'p' ? optarg : port;
        check(option != '?');
    }
    check(port);
    run_peer(argv[optind], port);
    return 0;
}
