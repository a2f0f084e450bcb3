/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel driver makes of a request of a process that a provider would not write: too short, with a reserved field or
 * an unknown bit set, with something behind it. Written to the device by hand; what is well-formed has to be taken.
 */
#include "common.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma_hca_user.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/uverbs0"
#define PAGE 4096
#define TAIL 16 /* bytes behind a request */

/* A command: the part of the core, the driver's part, and the response, of which the driver has the end. */
struct command {
    const char *name;
    uint32_t number;
    void *core;
    size_t core_size;
    void *driver;
    size_t driver_size;
    size_t response_size;
    size_t comp_mask; /* its offset in the driver's part; 0: none */
    size_t reserved;  /* likewise */
    bool is_mute;     /* it has no response, and no field that says where */
};

static union {
    uint64_t align;
    uint8_t bytes[512];
} response;

/* Write the command, with extra bytes of the driver's part cut off or added, these all of one value; 0 or errno. */
static int issue(int fd, const struct command *command, long extra, int value)
{
    uint8_t buffer[1024] = {};
    struct ib_uverbs_cmd_hdr header = { .command = command->number };
    uint64_t where = (uintptr_t)&response;
    uint8_t *at = buffer + sizeof(header);
    size_t size;

    memcpy(at, command->core, command->core_size);
    if (!command->is_mute) {
        memcpy(at, &where, sizeof(where));
    }
    at += command->core_size;
    memcpy(at, command->driver, command->driver_size);
    at += command->driver_size;
    if (extra > 0) {
        memset(at, value, extra);
    }
    size = at + extra - buffer;
    header.in_words = size / 4;
    header.out_words = command->response_size / 4;
    memcpy(buffer, &header, sizeof(header));
    return write(fd, buffer, size) == (ssize_t)size ? 0 : errno;
}

static void expect(int fd, const struct command *command, long extra, int value, const char *what, int wanted)
{
    int got = issue(fd, command, extra, value);

    if (got == wanted) {
        return;
    }
    printf("%s with %s: %s, not %s\n", command->name, what, strerror(got), strerror(wanted));
    fail(__FILE__, __LINE__, command->name);
}

static void expect_field(int fd, const struct command *command, size_t offset, const char *what, int wanted)
{
    uint8_t *field = (uint8_t *)command->driver + offset;

    if (offset) {
        *field = 1;
        expect(fd, command, 0, 0, what, wanted);
        *field = 0;
    }
}

/* fd: a context that has been made, or -1: the command makes one, and each try has a file of its own. */
static void try_all(int fd, const struct command *command)
{
    const struct {
        long extra;
        int value;
        const char *what;
        int wanted;
    } tries[] = {
        { 0, 0, "nothing wrong", 0 },
        { TAIL, 0, "zeros behind it", 0 },
        { TAIL, 0xff, "something behind it", EOPNOTSUPP },
        { -8, 0, "its end cut off", EINVAL },
    };
    size_t count = sizeof(tries) / sizeof(*tries) - !command->driver_size;

    for (size_t i = 0; i < count; i++) {
        int file = fd < 0 ? open(DEVICE, O_RDWR | O_CLOEXEC) : fd;

        check(file >= 0);
        expect(file, command, tries[i].extra, tries[i].value, tries[i].what, tries[i].wanted);
        if (fd < 0) {
            close(file);
        }
    }
    if (fd >= 0) {
        expect_field(fd, command, command->comp_mask, "an unknown bit in comp_mask", EOPNOTSUPP);
        expect_field(fd, command, command->reserved, "a reserved field", EINVAL);
    }
}

/* As a process does that wants its objects: the handle, the response's first word. */
static uint32_t make(int fd, const struct command *command)
{
    uint32_t handle;

    check(!issue(fd, command, 0, 0));
    memcpy(&handle, response.bytes, sizeof(handle));
    return handle;
}

static int try_context(void)
{
    struct ib_uverbs_get_context core = {};
    struct rdma_hca_alloc_ucontext_req driver = { .comp_mask = 0x80000000 }; /* an offer: no need to know it */
    struct command command = {
        .name = "GET_CONTEXT",
        .number = IB_USER_VERBS_CMD_GET_CONTEXT,
        .core = &core,
        .core_size = sizeof(core),
        .driver = &driver,
        .driver_size = sizeof(driver),
        .response_size = sizeof(struct ib_uverbs_get_context_resp) + sizeof(struct rdma_hca_alloc_ucontext_resp),
    };
    struct rdma_hca_alloc_ucontext_resp resp;
    int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

    try_all(-1, &command);
    driver.reserved = 1;
    expect(fd, &command, 0, 0, "a reserved field", EINVAL);
    driver.reserved = 0;
    make(fd, &command);
    memcpy(&resp, response.bytes + sizeof(struct ib_uverbs_get_context_resp), sizeof(resp));
    check(resp.comp_mask == 0 && resp.null_key == 0 && resp.num_qps && resp.num_srqs);
    return fd;
}

static uint32_t try_pd(int fd)
{
    struct ib_uverbs_alloc_pd core = {};
    struct command command = {
        .name = "ALLOC_PD",
        .number = IB_USER_VERBS_CMD_ALLOC_PD,
        .core = &core,
        .core_size = sizeof(core),
        .response_size = sizeof(struct ib_uverbs_alloc_pd_resp) + sizeof(struct rdma_hca_alloc_pd_resp),
    };

    try_all(fd, &command);
    return make(fd, &command);
}

static void try_regions(int fd, uint32_t pd, uint8_t *pages)
{
    struct ib_uverbs_reg_mr reg = {
        .start = (uintptr_t)pages,
        .length = PAGE,
        .hca_va = (uintptr_t)pages,
        .pd_handle = pd,
    };
    struct command register_it = {
        .name = "REG_MR",
        .number = IB_USER_VERBS_CMD_REG_MR,
        .core = &reg,
        .core_size = sizeof(reg),
        .response_size = sizeof(struct ib_uverbs_reg_mr_resp),
    };
    struct ib_uverbs_rereg_mr rereg = { .flags = IBV_REREG_MR_CHANGE_ACCESS, .access_flags = IBV_ACCESS_REMOTE_READ };
    struct command change = {
        .name = "REREG_MR",
        .number = IB_USER_VERBS_CMD_REREG_MR,
        .core = &rereg,
        .core_size = sizeof(rereg),
        .response_size = sizeof(struct ib_uverbs_rereg_mr_resp),
    };

    try_all(fd, &register_it);
    rereg.mr_handle = make(fd, &register_it);
    try_all(fd, &change);
}

static uint32_t try_cq(int fd, uint8_t *pages)
{
    struct ib_uverbs_create_cq core = { .cqe = 64, .comp_channel = -1 };
    struct rdma_hca_create_cq_req driver = {
        .buf_addr = (uintptr_t)pages,
        .ci_db_addr = (uintptr_t)pages + PAGE,
    };
    struct command create = {
        .name = "CREATE_CQ",
        .number = IB_USER_VERBS_CMD_CREATE_CQ,
        .core = &core,
        .core_size = sizeof(core),
        .driver = &driver,
        .driver_size = sizeof(driver),
        .response_size = sizeof(struct ib_uverbs_create_cq_resp) + sizeof(struct rdma_hca_create_cq_resp),
        .comp_mask = offsetof(struct rdma_hca_create_cq_req, comp_mask),
        .reserved = offsetof(struct rdma_hca_create_cq_req, reserved),
    };
    struct ib_uverbs_resize_cq core2 = { .cqe = 32 };
    struct rdma_hca_resize_cq_req driver2 = { .buf_addr = (uintptr_t)pages };
    struct command resize = {
        .name = "RESIZE_CQ",
        .number = IB_USER_VERBS_CMD_RESIZE_CQ,
        .core = &core2,
        .core_size = sizeof(core2),
        .driver = &driver2,
        .driver_size = sizeof(driver2),
        .response_size = sizeof(struct ib_uverbs_resize_cq_resp),
        .comp_mask = offsetof(struct rdma_hca_resize_cq_req, comp_mask),
        .reserved = offsetof(struct rdma_hca_resize_cq_req, reserved),
    };
    uint32_t cq;

    try_all(fd, &create);
    cq = make(fd, &create);
    core2.cq_handle = cq;
    try_all(fd, &resize);
    return cq;
}

/* What makes a QP, for one that has neither queue. */
static void try_without_queues(int fd, struct command command, struct ib_uverbs_create_qp core,
                               struct rdma_hca_create_qp_req driver)
{
    __u64 *addresses[] = { &driver.sq_addr, &driver.rq_addr, &driver.rq_db_addr };

    command.core = &core;
    command.driver = &driver;
    core.max_send_wr = core.max_recv_wr = 0;
    driver.sq_len = driver.rq_len = 0;
    driver.sq_addr = driver.rq_addr = driver.rq_db_addr = 0;
    expect(fd, &command, 0, 0, "no queues", 0);
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        *addresses[i] = PAGE;
        expect(fd, &command, 0, 0, "the address of a queue that is not there", EINVAL);
        *addresses[i] = 0;
    }
}

static uint32_t try_qp(int fd, uint32_t pd, uint32_t cq, uint8_t *pages)
{
    struct ib_uverbs_create_qp core = {
        .pd_handle = pd,
        .send_cq_handle = cq,
        .recv_cq_handle = cq,
        .max_send_wr = 16,
        .max_recv_wr = 16,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .qp_type = IBV_QPT_RC,
    };
    struct rdma_hca_create_qp_req driver = {
        .sq_addr = (uintptr_t)pages,
        .rq_addr = (uintptr_t)pages,
        .rq_db_addr = (uintptr_t)pages + PAGE,
        .sq_len = PAGE,
        .rq_len = PAGE,
        .sq_entry_sz_log = 6,
        .rq_entry_sz_log = 6,
    };
    struct command command = {
        .name = "CREATE_QP",
        .number = IB_USER_VERBS_CMD_CREATE_QP,
        .core = &core,
        .core_size = sizeof(core),
        .driver = &driver,
        .driver_size = sizeof(driver),
        .response_size = sizeof(struct ib_uverbs_create_qp_resp) + sizeof(struct rdma_hca_create_qp_resp),
        .comp_mask = offsetof(struct rdma_hca_create_qp_req, comp_mask),
        .reserved = offsetof(struct rdma_hca_create_qp_req, reserved),
    };

    try_all(fd, &command);
    try_without_queues(fd, command, core, driver);
    return make(fd, &command);
}

static void try_modify(int fd, uint32_t qp)
{
    struct ib_uverbs_modify_qp core = {
        .qp_handle = qp,
        .attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
    };
    struct command command = {
        .name = "MODIFY_QP",
        .number = IB_USER_VERBS_CMD_MODIFY_QP,
        .core = &core,
        .core_size = sizeof(core),
        .is_mute = true,
    };

    try_all(fd, &command);
}

static void try_srq(int fd, uint32_t pd, uint8_t *pages)
{
    struct ib_uverbs_create_srq core = { .pd_handle = pd, .max_wr = 16, .max_sge = 1 };
    struct rdma_hca_create_srq_req driver = {
        .buf_addr = (uintptr_t)pages,
        .db_addr = (uintptr_t)pages + PAGE,
        .len = PAGE,
        .entry_sz_log = 6,
    };
    struct command create = {
        .name = "CREATE_SRQ",
        .number = IB_USER_VERBS_CMD_CREATE_SRQ,
        .core = &core,
        .core_size = sizeof(core),
        .driver = &driver,
        .driver_size = sizeof(driver),
        .response_size = sizeof(struct ib_uverbs_create_srq_resp) + sizeof(struct rdma_hca_create_srq_resp),
        .comp_mask = offsetof(struct rdma_hca_create_srq_req, comp_mask),
        .reserved = offsetof(struct rdma_hca_create_srq_req, reserved),
    };
    struct ib_uverbs_modify_srq limit = { .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 3 };
    struct command modify = {
        .name = "MODIFY_SRQ",
        .number = IB_USER_VERBS_CMD_MODIFY_SRQ,
        .core = &limit,
        .core_size = sizeof(limit),
        .is_mute = true,
    };
    struct ib_uverbs_modify_srq larger = { .attr_mask = IBV_SRQ_MAX_WR, .max_wr = 64 };
    struct rdma_hca_modify_srq_req driver2 = { .buf_addr = (uintptr_t)pages, .len = PAGE };
    struct command resize = {
        .name = "MODIFY_SRQ, its size",
        .number = IB_USER_VERBS_CMD_MODIFY_SRQ,
        .core = &larger,
        .core_size = sizeof(larger),
        .driver = &driver2,
        .driver_size = sizeof(driver2),
        .is_mute = true,
        .comp_mask = offsetof(struct rdma_hca_modify_srq_req, comp_mask),
    };
    static const uint32_t sizes[] = { 0, 1, 5, 10, 12, 31, 32, 38, 256 + 6, UINT32_MAX };
    static const uint32_t lengths[] = { 0, 1, 64, 15 * 64, PAGE - 1, 1u << 30 };

    try_all(fd, &create);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        driver.entry_sz_log = sizes[i];
        expect(fd, &create, 0, 0, "entries of no size", EINVAL);
    }
    driver.entry_sz_log = 6;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        driver.len = lengths[i];
        expect(fd, &create, 0, 0, "a queue that is not as long as it should be", EINVAL);
    }
    driver.len = PAGE;
    driver.db_addr++;
    expect(fd, &create, 0, 0, "a record at an odd place", EINVAL);
    driver.db_addr--;
    limit.srq_handle = larger.srq_handle = make(fd, &create);
    try_all(fd, &modify);
    try_all(fd, &resize);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        driver2.len = lengths[i];
        expect(fd, &resize, 0, 0, "a queue that is not as long as it should be", EINVAL);
    }
    driver2.len = PAGE;
    driver2.buf_addr++;
    expect(fd, &resize, 0, 0, "a queue at an odd place", EINVAL);
}

static void try_xrcd(int fd)
{
    struct ib_uverbs_open_xrcd core = { .fd = -1, .oflags = O_CREAT };
    struct command command = {
        .name = "OPEN_XRCD",
        .number = IB_USER_VERBS_CMD_OPEN_XRCD,
        .core = &core,
        .core_size = sizeof(core),
        .response_size = sizeof(struct ib_uverbs_open_xrcd_resp),
    };

    try_all(fd, &command);
}

static void try_ah(int fd, uint32_t pd)
{
    struct ib_uverbs_create_ah core = { .pd_handle = pd, .attr = { .dlid = 1, .port_num = 1 } };
    struct command command = {
        .name = "CREATE_AH",
        .number = IB_USER_VERBS_CMD_CREATE_AH,
        .core = &core,
        .core_size = sizeof(core),
        .response_size = sizeof(struct ib_uverbs_create_ah_resp) + sizeof(struct rdma_hca_create_ah_resp),
    };

    try_all(fd, &command);
}

int main(void)
{
    uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t pd, cq;
    int fd;

    check(pages != MAP_FAILED);
    memset(pages, 0, 2 * PAGE);
    fd = try_context();
    pd = try_pd(fd);
    try_regions(fd, pd, pages);
    cq = try_cq(fd, pages);
    try_modify(fd, try_qp(fd, pd, cq, pages));
    try_srq(fd, pd, pages);
    try_xrcd(fd);
    try_ah(fd, pd);
    close(fd);
    return 0;
}
