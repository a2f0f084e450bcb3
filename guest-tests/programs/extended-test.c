/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: extended-test CASE
 *
 * Verbs beyond the classic ones: time in completions, moderation, domains, contexts of another process, DMA buffers; and
 * those that there are not. Prints what it has seen, exits with 1 at the first that is not as it should be.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define NS_PER_S 1000000000ull
#define PAGE 4096u

static struct device device;

/* A verb that there is not: NULL, or an errno value. */
#define refused_pointer(call, err) (errno = 0, check(!(call)), check(errno == (err)))
#define refused(call, err) check((call) == (err))

/* A write within a region, which has to end well. */
static void write_and_wait(struct ibv_cq_ex *cq, struct ibv_qp *qp, struct region *r)
{
    post(qp, IBV_WR_RDMA_WRITE, 1, sge_of(r, 0, 8), (uintptr_t)r->addr + 64, r->mr->rkey);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static uint64_t raw_clock(void)
{
    struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

    check(!ibv_query_rt_values_ex(device.context, &values));
    check(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
    check(values.raw_clock.tv_sec == 0);
    return values.raw_clock.tv_nsec;
}

static uint64_t time_of_day(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void test_clock(void)
{
    struct ibv_device_attr_ex attr;
    uint64_t clock, day;

    check(!ibv_query_device_ex(device.context, NULL, &attr));
    check(attr.hca_core_clock == 1000000);
    check(attr.completion_timestamp_mask == (1ull << 39) - 1);
    check(attr.cq_mod_caps.max_cq_count == 65535 && attr.cq_mod_caps.max_cq_period == 65535);
    check(attr.odp_caps.general_caps == 0);
    clock = raw_clock();
    day = time_of_day();
    usleep(300000);
    clock = raw_clock() - clock;
    day = time_of_day() - day;
    printf("in %ju ns of the day the card counts %ju\n", (uintmax_t)day, (uintmax_t)clock);
    check(clock > day / 10 * 9 && clock < day / 10 * 11);
}

static void test_timestamps(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 16,
        .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
                    IBV_WC_EX_WITH_CVLAN,
    };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(device.context, &attr);
    const uint64_t mask = (1ull << 39) - 1;
    struct ibv_qp *qp[2];
    struct region r;

    check(cq);
    create_region(&device, &r, PAGE);
    create_connection(&device, cq, 4, qp);
    for (int i = 0; i < 20; i++) {
        uint64_t before = raw_clock(), day = time_of_day(), took, ts, wall;

        post(qp[0], IBV_WR_RDMA_WRITE, i, sge_of(&r, 0, 8), (uintptr_t)r.addr + 64, r.mr->rkey);
        usleep(1000);
        start_poll(cq);
        check(cq->status == IBV_WC_SUCCESS);
        ts = ibv_wc_read_completion_ts(cq);
        wall = ibv_wc_read_completion_wallclock_ns(cq);
        took = raw_clock() - before;
        check(cq->wr_id == (uint64_t)i);
        check(((ts - before) & mask) <= took);
        /* Both clocks are read in turn; the guest's processor may be taken away in between. */
        check(wall + NS_PER_S / 2 > day && wall < time_of_day() + NS_PER_S / 2);
        check(ibv_wc_read_cvlan(cq) == 0);
        ibv_end_poll(cq);
    }
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
    attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
    refused_pointer(ibv_create_cq_ex(device.context, &attr), EOPNOTSUPP);
}

/* --- completion queues -------------------------------------------------------------------------------------------- */

static void wait_event(struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq;
    void *context;

    check(!ibv_get_cq_event(channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
}

static void test_moderation(void)
{
    struct ibv_modify_cq_attr moderate = {
        .attr_mask = IBV_CQ_ATTR_MODERATE,
        .moderate = { .cq_count = 8, .cq_period = 50000 },
    };
    struct ibv_comp_channel *channel = ibv_create_comp_channel(device.context);
    struct ibv_cq_init_attr_ex attr = { .cqe = 64, .channel = channel };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(device.context, &attr);
    struct ibv_cq *plain = ibv_cq_ex_to_cq(cq);
    struct ibv_qp *qp[2];
    struct region r;
    double begin;

    check(channel && cq);
    check(!ibv_modify_cq(plain, &moderate));
    create_region(&device, &r, PAGE);
    create_connection(&device, cq, 16, qp);
    for (int n = 3; n <= 8; n += 5) {
        check(!ibv_req_notify_cq(plain, 0));
        begin = seconds_now();
        for (int i = 0; i < n; i++) {
            post(qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&r, 0, 8), (uintptr_t)r.addr + 64, r.mr->rkey);
        }
        wait_event(channel);
        printf("event for %d entries after %.1f ms\n", n, (seconds_now() - begin) * 1e3);
        check(n == 8 || seconds_now() - begin >= 0.05);
        for (int i = 0; i < n; i++) {
            expect_completion(cq, 1, IBV_WC_SUCCESS);
        }
    }
    /* Without it the first entry is told of. */
    moderate.moderate.cq_count = 0;
    check(!ibv_modify_cq(plain, &moderate));
    check(!ibv_req_notify_cq(plain, 0));
    post(qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&r, 0, 8), (uintptr_t)r.addr + 64, r.mr->rkey);
    wait_event(channel);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    moderate.attr_mask = 1 << 1;
    refused(ibv_modify_cq(plain, &moderate), EINVAL);
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
    check(!ibv_destroy_comp_channel(channel));
}

static void test_ignore_overrun(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 4,
        .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
        .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
    };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(device.context, &attr);
    struct ibv_qp *qp[2];
    struct region r;

    check(cq);
    create_region(&device, &r, PAGE);
    r.addr[0] = 1;
    create_connection(&device, cq, 16, qp);
    for (int i = 0; i < 16; i++) {
        post(qp[0], IBV_WR_RDMA_WRITE, i, sge_of(&r, 0, 8), (uintptr_t)r.addr + 64 + i * 8, r.mr->rkey);
    }
    /* The last one is there; its completion is, soon after. */
    for (double end = seconds_now() + 20; seconds_now() < end && !*(volatile uint8_t *)(r.addr + 64 + 15 * 8);) {
        usleep(1000);
    }
    usleep(500000);
    for (int i = 12; i < 16; i++) {
        expect_completion(cq, i, IBV_WC_SUCCESS);
    }
    check(state_of(qp[0]) == IBV_QPS_RTS);
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
}

/* --- domains ------------------------------------------------------------------------------------------------------ */

static _Atomic int pieces; /* of memory that a domain has handed out */

/* The page in front of a piece has its length. */
static void *domain_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
    uint8_t *p = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    check(pd->context == device.context && context == &pieces && alignment <= PAGE && type >> 32 == 0);
    check(p != MAP_FAILED);
    pieces++;
    *(size_t *)p = PAGE + size;
    return p + PAGE;
}

static void domain_free(struct ibv_pd *pd, void *context, void *p, uint64_t type)
{
    uint8_t *begin = (uint8_t *)p - PAGE;

    check(pd->context == device.context && context == &pieces && type >> 32 == 0);
    munmap(begin, *(size_t *)begin);
    pieces--;
}

/* Two threads, each with a thread domain and all of its queues in memory of its own. */
static void *run_domain(void *opaque)
{
    unsigned int *writes = opaque;
    struct ibv_td_init_attr td_attr = { 0 };
    struct ibv_td *td = ibv_alloc_td(device.context, &td_attr);
    struct ibv_parent_domain_init_attr parent_attr = {
        .pd = device.pd,
        .td = td,
        .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
        .alloc = domain_alloc,
        .free = domain_free,
        .pd_context = &pieces,
    };
    struct device mine = device;
    struct ibv_cq_init_attr_ex cq_attr = { .cqe = 64, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region r;

    check(td);
    mine.pd = ibv_alloc_parent_domain(device.context, &parent_attr);
    check(mine.pd);
    cq_attr.parent_domain = mine.pd;
    cq = ibv_create_cq_ex(device.context, &cq_attr);
    check(cq);
    create_region(&mine, &r, PAGE);
    create_connection(&mine, cq, 16, qp);
    for (unsigned int i = 0; i < *writes; i++) {
        write_and_wait(cq, qp[0], &r);
    }
    refused(ibv_dealloc_pd(mine.pd), EBUSY);
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
    refused(ibv_dealloc_td(td), EBUSY);
    check(!ibv_dealloc_pd(mine.pd));
    check(!ibv_dealloc_td(td));
    return NULL;
}

static void test_domains(void)
{
    unsigned int writes = 200;
    pthread_t thread[2];

    run_domain(&writes);
    check(pieces == 0);
    for (int i = 0; i < 2; i++) {
        check(!pthread_create(&thread[i], NULL, run_domain, &writes));
    }
    for (int i = 0; i < 2; i++) {
        check(!pthread_join(thread[i], NULL));
    }
}

/* --- a context of another process --------------------------------------------------------------------------------- */

/* What one process tells another one of its objects. */
struct shared {
    uint32_t pd, mr, lkey, rkey;
    uint32_t qpn;
    uint64_t addr;
};

static void send_shared(int socket, const struct shared *shared, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec iov = { .iov_base = (void *)shared, .iov_len = sizeof(*shared) };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.header = (struct cmsghdr) {
            .cmsg_len = CMSG_LEN(sizeof(int)),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    check(sendmsg(socket, &message, 0) == sizeof(*shared));
}

static int receive_shared(int socket, struct shared *shared)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec iov = { .iov_base = shared, .iov_len = sizeof(*shared) };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    int fd = -1;

    check(recvmsg(socket, &message, 0) == sizeof(*shared));
    if (message.msg_controllen) {
        memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
    }
    return fd;
}

/* The process that is given a context: its own queues, the other one's domain and region. */
static int run_importer(int socket)
{
    struct device mine = { 0 };
    struct shared other, own;
    struct ibv_cq_ex *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    int fd = receive_shared(socket, &other);

    check(fd >= 0);
    refused_pointer(ibv_import_device(socket), EINVAL);
    mine.context = ibv_import_device(fd);
    check(mine.context);
    check(!ibv_query_port(mine.context, 1, &mine.port));
    check(!ibv_query_gid(mine.context, 1, 0, &mine.gid));
    mine.pd = ibv_import_pd(mine.context, other.pd);
    check(mine.pd);
    refused_pointer(ibv_import_mr(mine.pd, 0x12345), ENOENT);
    mr = ibv_import_mr(mine.pd, other.mr);
    check(mr);
    check(mr->lkey == other.lkey && mr->rkey == other.rkey && !mr->addr && mr->length == PAGE);
    cq = create_cq(&mine, 16);
    qp = create_qp(&mine, cq, IBV_QPT_RC, 4, 0);
    own = (struct shared) { .qpn = qp->qp_num };
    send_shared(socket, &own, -1);
    connect_qp(&mine, qp, other.qpn);
    check(read(socket, &own, 1) == 1);
    /* From the first half of the region to the second one. */
    for (int i = 0; i < 50; i++) {
        struct ibv_sge sge = { .addr = other.addr, .length = 16, .lkey = mr->lkey };

        post(qp, IBV_WR_RDMA_WRITE, i, sge, other.addr + PAGE / 2, mr->rkey);
        expect_completion(cq, i, IBV_WC_SUCCESS);
    }
    check(!ibv_destroy_qp(qp));
    destroy_cq(cq);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(mine.pd);
    check(!ibv_close_device(mine.context));
    return 0;
}

static void test_import(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_qp *own, *qp[2];
    struct shared shared;
    struct region r;
    int status, fd, pair[2];
    char number[16];
    pid_t child;

    /* Not a child of the one that has the device: another program. */
    check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    snprintf(number, sizeof(number), "%d", pair[1]);
    child = fork();
    if (!child) {
        execl("/proc/self/exe", "extended-test", "importer", number, NULL);
        _exit(1);
    }
    create_region(&device, &r, PAGE);
    memset(r.addr, 0x5a, 16);
    own = create_qp(&device, cq, IBV_QPT_RC, 4, 0);
    shared = (struct shared) {
        .pd = device.pd->handle,
        .mr = r.mr->handle,
        .lkey = r.mr->lkey,
        .rkey = r.mr->rkey,
        .qpn = own->qp_num,
        .addr = (uintptr_t)r.addr,
    };
    fd = dup(device.context->cmd_fd);
    send_shared(pair[0], &shared, fd);
    close(fd);
    receive_shared(pair[0], &shared);
    connect_qp(&device, own, shared.qpn);
    check(write(pair[0], "", 1) == 1);
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check(!memcmp(r.addr + PAGE / 2, r.addr, 16));
    /* What was imported is here still. */
    create_connection(&device, cq, 4, qp);
    write_and_wait(cq, qp[0], &r);
    destroy_pair(qp);
    check(!ibv_destroy_qp(own));
    destroy_region(&r);
    destroy_cq(cq);
    close(pair[0]);
    close(pair[1]);
}

/* --- DMA buffers -------------------------------------------------------------------------------------------------- */

/* Of the kernel's drm_mode.h and drm.h. */
struct drm_dumb {
    uint32_t height, width, bpp, flags;
    uint32_t handle, pitch;
    uint64_t size;
};
struct drm_prime {
    uint32_t handle, flags;
    int32_t fd;
};
#define DRM_CREATE_DUMB _IOWR('d', 0xb2, struct drm_dumb)
#define DRM_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime)

/* Memory of the module vgem, as a file. */
static int dma_buffer(size_t pages)
{
    struct drm_dumb dumb = { .width = PAGE / 4, .height = pages, .bpp = 32 };
    struct drm_prime handle = { .flags = O_CLOEXEC | O_RDWR };
    int drm = open("/dev/dri/card0", O_RDWR);

    check(drm >= 0);
    check(!ioctl(drm, DRM_CREATE_DUMB, &dumb));
    check(dumb.size == pages * PAGE);
    handle.handle = dumb.handle;
    check(!ioctl(drm, DRM_HANDLE_TO_FD, &handle));
    close(drm);
    return handle.fd;
}

/* Data from ordinary memory into the buffer at offset, and back. */
static void use_buffer(struct ibv_cq_ex *cq, struct ibv_qp *qp, struct region *r, int fd, uint8_t *seen, uint64_t offset,
                       size_t length, uint64_t iova)
{
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(device.pd, offset, length, iova, fd, ACCESS_ALL | IBV_ACCESS_RELAXED_ORDERING);
    struct ibv_sge sge = { .addr = iova, .length = length, .lkey = mr ? mr->lkey : 0 };

    check(mr);
    for (size_t i = 0; i < length; i++) {
        r->addr[i] = i * 7 + offset;
    }
    memset(seen, 0, 4 * PAGE);
    post(qp, IBV_WR_RDMA_WRITE, 1, sge_of(r, 0, length), iova, mr->rkey);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    check(!memcmp(seen + offset, r->addr, length));
    for (size_t i = 0; i < 4 * PAGE; i++) {
        check(seen[i] == 0 || (i >= offset && i < offset + length));
    }
    memset(r->addr, 0, length);
    post(qp, IBV_WR_RDMA_WRITE, 2, sge, (uintptr_t)r->addr, r->mr->rkey);
    expect_completion(cq, 2, IBV_WC_SUCCESS);
    check(!memcmp(seen + offset, r->addr, length));
    check(!ibv_dereg_mr(mr));
}

static void test_dmabuf(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    int fd = dma_buffer(4);
    uint8_t *seen = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    struct region r;

    check(seen != MAP_FAILED);
    create_region(&device, &r, 4 * PAGE);
    create_connection(&device, cq, 4, qp);
    use_buffer(cq, qp[0], &r, fd, seen, 0, 4 * PAGE, 0);
    use_buffer(cq, qp[0], &r, fd, seen, PAGE, 2 * PAGE, 0x123456789000);
    use_buffer(cq, qp[0], &r, fd, seen, PAGE + 100, PAGE, 0xabcdef000 + 100);
    use_buffer(cq, qp[0], &r, fd, seen, 4 * PAGE - 1, 1, PAGE - 1);
    /* Out of it, of no length, at another place in its page, or no buffer at all. */
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, 4 * PAGE + 1, 0, fd, ACCESS_ALL), EINVAL);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, UINT64_MAX, 2, UINT64_MAX, fd, ACCESS_ALL), EINVAL);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, 0, 0, fd, ACCESS_ALL), EINVAL);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, PAGE, 1, fd, ACCESS_ALL), EINVAL);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, PAGE, 0, 999, ACCESS_ALL), EBADF);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, PAGE, 0, device.context->cmd_fd, ACCESS_ALL), EINVAL);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, PAGE, 0, fd, ACCESS_ALL | IBV_ACCESS_ON_DEMAND), EINVAL);
    refused_pointer(ibv_reg_dmabuf_mr(device.pd, 0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    /* The region keeps the memory, whoever else has let it go. */
    mr = ibv_reg_dmabuf_mr(device.pd, 0, PAGE, 0x1000, fd, ACCESS_ALL);
    check(mr);
    munmap(seen, 4 * PAGE);
    close(fd);
    post(qp[0], IBV_WR_RDMA_WRITE, 3, sge_of(&r, 0, 64), 0x1000, mr->rkey);
    expect_completion(cq, 3, IBV_WC_SUCCESS);
    check(!ibv_dereg_mr(mr));
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
}

/* --- memory of files ---------------------------------------------------------------------------------------------- */

/*
 * What a peer may only read, but the process may write, and the file system has to write back: from Linux 6.5 on that is not
 * pinned for writing. In the current folder.
 */
static void test_file(void)
{
    const size_t size = 4 * PAGE;
    int file = open("extended-test.file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    struct region r;
    uint8_t *seen;

    create_region(&device, &r, 2 * size);
    create_connection(&device, cq, 4, qp);
    for (size_t i = 0; i < size; i++) {
        r.addr[i] = i * 7;
    }
    check(file >= 0 && pwrite(file, r.addr, size, 0) == (ssize_t)size && !fsync(file));
    seen = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(seen != MAP_FAILED);
    mr = ibv_reg_mr(device.pd, seen, size, IBV_ACCESS_REMOTE_READ);
    check(mr);
    post(qp[0], IBV_WR_RDMA_READ, 1, sge_of(&r, size, size), (uintptr_t)seen, mr->rkey);
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    check(!memcmp(r.addr, r.addr + size, size));
    check(!ibv_dereg_mr(mr));
    check(!munmap(seen, size) && !close(file) && !unlink("extended-test.file"));
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
}

/* --- what there is not -------------------------------------------------------------------------------------------- */

static void test_access_flags(void)
{
    static const int taken[] = { IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_HUGETLB, 1 << 21, 1 << 29 };
    struct region r;

    create_region(&device, &r, PAGE);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        struct ibv_mr *mr = ibv_reg_mr(device.pd, r.addr, PAGE, ACCESS_ALL | taken[i]);

        check(mr);
        check(!ibv_dereg_mr(mr));
    }
    refused_pointer(ibv_reg_mr(device.pd, r.addr, PAGE, ACCESS_ALL | IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
    refused_pointer(ibv_reg_mr(device.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
    refused_pointer(ibv_reg_mr(device.pd, r.addr, PAGE, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    refused_pointer(ibv_reg_mr(device.pd, r.addr, PAGE, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
    destroy_region(&r);
}

static void test_refused(void)
{
    struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
    struct ibv_flow_action_esp_attr esp = { 0 };
    struct ibv_counters_init_attr counters = { 0 };
    struct ibv_rwq_ind_table_init_attr table = { 0 };
    struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1 };
    struct ibv_ece ece = { 0 };
    struct ibv_cq_ex *cq = create_cq(&device, 4);
    struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = device.pd,
                                   .cq = ibv_cq_ex_to_cq(cq) };
    struct ibv_qp *qp[2];
    struct ibv_sge sge;
    struct region r;

    create_region(&device, &r, PAGE);
    create_connection(&device, cq, 4, qp);
    sge = sge_of(&r, 0, PAGE);
    refused(ibv_advise_mr(device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
    refused(ibv_query_ece(qp[0], &ece), EOPNOTSUPP);
    refused(ibv_set_ece(qp[0], &ece), EOPNOTSUPP);
    refused(ibv_modify_qp_rate_limit(qp[0], &rate), EOPNOTSUPP);
    refused_pointer(ibv_create_wq(device.context, &wq), EOPNOTSUPP);
    refused_pointer(ibv_create_rwq_ind_table(device.context, &table), EOPNOTSUPP);
    refused_pointer(ibv_create_flow(qp[0], &flow),
                    device.port.link_layer == IBV_LINK_LAYER_ETHERNET ? EINVAL : EOPNOTSUPP);
    refused_pointer(ibv_create_flow_action_esp(device.context, &esp), EOPNOTSUPP);
    refused_pointer(ibv_create_counters(device.context, &counters), EOPNOTSUPP);
#ifdef HAS_COMP_CNTR
    refused_pointer(ibv_create_comp_cntr(device.context, &(struct ibv_comp_cntr_init_attr){}), EOPNOTSUPP);
#endif
    for (int op = IBV_WR_RDMA_WRITE; op <= IBV_WR_RDMA_READ; op++) {
        check(ibv_query_qp_data_in_order(qp[0], op, 0) == 0);
        check(ibv_query_qp_data_in_order(qp[0], op, IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS) == 0);
    }
    destroy_pair(qp);
    destroy_region(&r);
    destroy_cq(cq);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

#define MOST_QPS 64

static struct ibv_qp *create_sender(struct ibv_cq *cq, uint32_t max_send_wr)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { .max_send_wr = max_send_wr, .max_send_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };

    return ibv_create_qp(device.pd, &attr);
}

/* QPs for all slots that the card has left, the largest first; how many. */
static unsigned take_slots(struct ibv_cq *cq, uint32_t max_send_wr, struct ibv_qp **qp)
{
    unsigned n = 0;

    while (max_send_wr) {
        check(n < MOST_QPS);
        errno = 0;
        qp[n] = create_sender(cq, max_send_wr);
        if (qp[n]) {
            n++;
        } else {
            check(errno == ENOMEM);
            max_send_wr /= 2;
        }
    }
    return n;
}

/* Who wants more send WRs than the card has for all QPs is told so when the QP is made: what is made can leave RESET. */
static void test_send_slots(void)
{
    struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    struct ibv_cq *cq = ibv_create_cq(device.context, 1, NULL, NULL, 0);
    struct ibv_qp *qp[MOST_QPS];
    struct ibv_device_attr attr;
    unsigned first = 0;

    check(cq && !ibv_query_device(device.context, &attr));
    for (int round = 0; round < 2; round++) {
        unsigned n = take_slots(cq, attr.max_qp_wr, qp);

        printf("%u QPs, the largest of %d WRs\n", n, attr.max_qp_wr);
        check(n > 1 && (!round || n == first));
        first = n;
        for (unsigned i = 0; i < n; i++) {
            check(!ibv_modify_qp(qp[i], &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
        }
        for (unsigned i = 0; i < n; i++) {
            check(!ibv_destroy_qp(qp[i]));
        }
    }
    check(!ibv_destroy_cq(cq));
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "clock", test_clock },
    { "timestamps", test_timestamps },
    { "moderation", test_moderation },
    { "ignore_overrun", test_ignore_overrun },
    { "domains", test_domains },
    { "import", test_import },
    { "dmabuf", test_dmabuf },
    { "file", test_file },
    { "access_flags", test_access_flags },
    { "refused", test_refused },
    { "send_slots", test_send_slots },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "importer")) {
        return run_importer(atoi(argv[2]));
    }
    return run_case(argc, argv, cases, &device, NULL, NULL);
}
