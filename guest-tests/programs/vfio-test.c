/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: vfio-test GROUP FUNCTION
 *
 * A driver of the card in user space: FUNCTION, a PCI address, is bound to vfio-pci and is all that is in its IOMMU group. The
 * card reaches what the process has mapped for it, with the rights that it has mapped it with, as long as it is mapped; and
 * nothing else, be it by commands or by a queue pair, which has traffic while its memory goes.
 */
#include "common.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <pthread.h>
#include <rdma_hca_cmd.h>
#include <rdma_hca_cxt.h>
#include <rdma_hca_regs.h>
#include <rdma_hca_wqe.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define PCI_COMMAND 4
#define PCI_COMMAND_MASTER 4

/* Bus addresses: of the driver's own pages, and of those that come and go, neither beside the other. */
#define OWN 0x40000000u
#define GUEST_OF_CARD 0x50000000u

/* The driver's own pages. */
enum {
    INBOX,
    OUTBOX,
    CONTEXTS, /* three: QPs, CQs, EQs */
    REGIONS = CONTEXTS + 3, /* two: MPT, MTT */
    EVENTS = REGIONS + 2,
    COMPLETIONS,
    SENDS,
    RECEIVES,
    RECORDS, /* of the CQ's consumer index, and of receives */
    SOURCE,  /* several */
    PAGES = SOURCE + 8,
};

#define SOURCES (PAGES - SOURCE)
#define LOG_CQ 6
#define LOG_SENDS 6
#define PD 7
#define EQN 0
#define CQN 1
#define QPN 2
#define PSN 100
/* Regions by bus addresses: the whole bus, as far as the IOMMU lets the card; the two queues. */
#define KEY_BUS 0x100
#define KEY_SENDS 0x200
#define KEY_RECEIVES 0x300

struct driver {
    int container, group, device;
    uint8_t *bar0, *bar2;
    uint8_t *own;
    uint32_t posted, done; /* work requests */
};

static void *page_of(struct driver *driver, unsigned int number)
{
    return driver->own + number * PAGE;
}

static uint32_t bus_of(unsigned int number)
{
    return OWN + number * PAGE;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static uint8_t *new_pages(unsigned int number)
{
    uint8_t *memory = mmap(NULL, number * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    check(memory != MAP_FAILED);
    return memory;
}

static void map(struct driver *driver, void *memory, uint64_t bus, unsigned int pages, uint32_t rights)
{
    struct vfio_iommu_type1_dma_map dma = {
        .argsz = sizeof(dma),
        .flags = rights,
        .vaddr = (uintptr_t)memory,
        .iova = bus,
        .size = pages * PAGE,
    };

    check(!ioctl(driver->container, VFIO_IOMMU_MAP_DMA, &dma));
}

static void unmap(struct driver *driver, uint64_t bus)
{
    struct vfio_iommu_type1_dma_unmap dma = { .argsz = sizeof(dma), .iova = bus, .size = PAGE };

    check(!ioctl(driver->container, VFIO_IOMMU_UNMAP_DMA, &dma));
    check(dma.size == PAGE);
}

#define READ VFIO_DMA_MAP_FLAG_READ
#define WRITE VFIO_DMA_MAP_FLAG_WRITE

/* Where a page is in the machine's memory. It stays there, for the pages of a mapping are pinned, and the others locked. */
static uint64_t physical(const void *page)
{
    int fd = open("/proc/self/pagemap", O_RDONLY);
    uint64_t entry;

    check(fd >= 0);
    check(pread(fd, &entry, sizeof(entry), (uintptr_t)page / PAGE * sizeof(entry)) == sizeof(entry));
    close(fd);
    check(entry >> 63 && (entry & ((1ull << 55) - 1)));
    return (entry & ((1ull << 55) - 1)) * PAGE;
}

static bool is_all(const uint8_t *page, uint8_t value)
{
    return page[0] == value && !memcmp(page, page + 1, PAGE - 1);
}

/* --- the function ------------------------------------------------------------------------------------------------ */

static uint8_t *map_bar(struct driver *driver, unsigned int index)
{
    struct vfio_region_info info = { .argsz = sizeof(info), .index = index };
    uint8_t *bar;

    check(!ioctl(driver->device, VFIO_DEVICE_GET_REGION_INFO, &info));
    bar = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, driver->device, info.offset);
    check(bar != MAP_FAILED);
    return bar;
}

static void set_bus_master(struct driver *driver)
{
    struct vfio_region_info info = { .argsz = sizeof(info), .index = VFIO_PCI_CONFIG_REGION_INDEX };
    uint16_t command;

    check(!ioctl(driver->device, VFIO_DEVICE_GET_REGION_INFO, &info));
    check(pread(driver->device, &command, sizeof(command), info.offset + PCI_COMMAND) == sizeof(command));
    command |= PCI_COMMAND_MASTER;
    check(pwrite(driver->device, &command, sizeof(command), info.offset + PCI_COMMAND) == sizeof(command));
}

static void open_function(struct driver *driver, const char *group, const char *function)
{
    struct vfio_group_status status = { .argsz = sizeof(status) };
    char path[64];

    snprintf(path, sizeof(path), "/dev/vfio/%s", group);
    driver->container = open("/dev/vfio/vfio", O_RDWR);
    driver->group = open(path, O_RDWR);
    check(driver->container >= 0 && driver->group >= 0);
    check(!ioctl(driver->group, VFIO_GROUP_GET_STATUS, &status));
    check(status.flags & VFIO_GROUP_FLAGS_VIABLE);
    check(!ioctl(driver->group, VFIO_GROUP_SET_CONTAINER, &driver->container));
    check(!ioctl(driver->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU));
    driver->device = ioctl(driver->group, VFIO_GROUP_GET_DEVICE_FD, function);
    check(driver->device >= 0);
    driver->bar0 = map_bar(driver, VFIO_PCI_BAR0_REGION_INDEX);
    driver->bar2 = map_bar(driver, VFIO_PCI_BAR2_REGION_INDEX);
    set_bus_master(driver);
    driver->own = new_pages(PAGES);
    map(driver, driver->own, OWN, PAGES, READ | WRITE);
}

static volatile uint32_t *reg(struct driver *driver, uint32_t offset)
{
    return (volatile uint32_t *)(driver->bar0 + offset);
}

static void wait_clear(struct driver *driver, uint32_t offset, uint32_t bits)
{
    double deadline = seconds_now() + patience();

    while (le32toh(*reg(driver, offset)) & bits) {
        check(seconds_now() < deadline);
    }
}

static void reset(struct driver *driver)
{
    *reg(driver, RDMA_HCA_RESET) = htole32(1);
    wait_clear(driver, RDMA_HCA_RESET, 1);
    driver->posted = driver->done = 0;
    memset(driver->own, 0, PAGES * PAGE);
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

struct command {
    uint16_t op;
    uint8_t op_modifier;
    uint32_t in_modifier;
    uint64_t in, out;
};

/* The status. */
static uint8_t run(struct driver *driver, struct command command)
{
    volatile uint32_t *hcr = reg(driver, RDMA_HCA_HCR);

    hcr[RDMA_HCA_HCR_IN_PARAM_H / 4] = htole32(RDMA_HCA_HI32(command.in));
    hcr[RDMA_HCA_HCR_IN_PARAM_L / 4] = htole32(RDMA_HCA_LO32(command.in));
    hcr[RDMA_HCA_HCR_IN_MODIFIER / 4] = htole32(command.in_modifier);
    hcr[RDMA_HCA_HCR_OUT_PARAM_H / 4] = htole32(RDMA_HCA_HI32(command.out));
    hcr[RDMA_HCA_HCR_OUT_PARAM_L / 4] = htole32(RDMA_HCA_LO32(command.out));
    hcr[RDMA_HCA_HCR_TOKEN / 4] = htole32(RDMA_HCA_PREP(RDMA_HCA_HCR_TOKEN_MASK, RDMA_HCA_CMD_POLL_TOKEN));
    hcr[RDMA_HCA_HCR_CTRL / 4] = htole32(RDMA_HCA_HCR_GO | RDMA_HCA_PREP(RDMA_HCA_HCR_OP_MODIFIER, command.op_modifier) |
                                         RDMA_HCA_PREP(RDMA_HCA_HCR_OP, command.op));
    wait_clear(driver, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL, RDMA_HCA_HCR_GO);
    return RDMA_HCA_GET(RDMA_HCA_HCR_STATUS, le32toh(hcr[RDMA_HCA_HCR_CTRL / 4]));
}

static void run_in(struct driver *driver, struct command command, const void *inbox, size_t length)
{
    memset(page_of(driver, INBOX), 0, PAGE);
    memcpy(page_of(driver, INBOX), inbox, length);
    command.in = bus_of(INBOX);
    check(run(driver, command) == RDMA_HCA_STAT_OK);
}

static uint8_t query_fw(struct driver *driver, uint64_t outbox)
{
    return run(driver, (struct command){ .op = RDMA_HCA_CMD_QUERY_FW, .out = outbox });
}

static bool has_answer(const void *page)
{
    return be32toh(((const struct rdma_hca_fw *)page)->magic) == RDMA_HCA_FW_MAGIC;
}

/* A command that needs an inbox: a page of ICM is mapped, and gone again with the next reset. */
static uint8_t read_inbox(struct driver *driver, void *page, uint64_t inbox)
{
    struct rdma_hca_icm_entry *entry = page;

    memset(page, 0, PAGE);
    entry[RDMA_HCA_ICM_SLOT(0)].page_l = htobe32(bus_of(CONTEXTS) | 1);
    reset(driver);
    return run(driver, (struct command){
        .op = RDMA_HCA_CMD_MAP_ICM, .op_modifier = RDMA_HCA_ICM_CXT, .in_modifier = 1, .in = inbox });
}

/* The mailboxes of commands: inside of what is mapped, and everywhere else. */
static void test_outside(struct driver *driver)
{
    uint8_t *other = new_pages(1);
    const uint64_t outside[] = {
        0, PAGE, OWN - PAGE, OWN + PAGES * PAGE, OWN + (1ull << 32), 0x100000, 0xfee00000, ~(uint64_t)(PAGE - 1),
        physical(driver->own), physical(other), GUEST_OF_CARD,
    };

    check(!mlock(other, PAGE));
    memset(other, 0x5a, PAGE);
    reset(driver);
    for (unsigned int i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        check(query_fw(driver, outside[i]) == RDMA_HCA_STAT_BAD_PARAM);
        check(query_fw(driver, bus_of(OUTBOX)) == RDMA_HCA_STAT_OK);
        check(has_answer(page_of(driver, OUTBOX)));
        memset(page_of(driver, OUTBOX), 0, PAGE);
    }
    check(is_all(other, 0x5a));
    for (unsigned int number = 0; number < PAGES; number++) {
        check(is_all(page_of(driver, number), 0));
    }
}

/* To be read only. (Linux 6.1 lets intel-iommu read what is to be written only.) */
static void test_rights(struct driver *driver)
{
    uint8_t *page = new_pages(1);

    map(driver, page, GUEST_OF_CARD, 1, READ);
    check(read_inbox(driver, page, GUEST_OF_CARD) == RDMA_HCA_STAT_OK);
    memset(page, 0x5a, PAGE);
    check(query_fw(driver, GUEST_OF_CARD) == RDMA_HCA_STAT_BAD_PARAM);
    check(is_all(page, 0x5a));
    unmap(driver, GUEST_OF_CARD);
    memset(page, 0, PAGE);
    check(read_inbox(driver, page, GUEST_OF_CARD) == RDMA_HCA_STAT_BAD_PARAM);
}

/* A bus address is that of one page, of none, and of another one. */
static void test_unmapped(struct driver *driver)
{
    uint8_t *page[2] = { new_pages(1), new_pages(1) };

    for (unsigned int round = 0; round < 20; round++) {
        for (unsigned int i = 0; i < 2; i++) {
            memset(page[i], 0x5a, PAGE);
            memset(page[!i], 0x5a, PAGE);
            check(query_fw(driver, GUEST_OF_CARD) == RDMA_HCA_STAT_BAD_PARAM);
            map(driver, page[i], GUEST_OF_CARD, 1, READ | WRITE);
            check(query_fw(driver, GUEST_OF_CARD) == RDMA_HCA_STAT_OK);
            check(has_answer(page[i]));
            memset(page[i], 0x5a, PAGE);
            unmap(driver, GUEST_OF_CARD);
            check(query_fw(driver, GUEST_OF_CARD) == RDMA_HCA_STAT_BAD_PARAM);
            check(is_all(page[i], 0x5a) && is_all(page[!i], 0x5a));
        }
    }
}

/* --- a queue pair with itself ------------------------------------------------------------------------------------ */

static void map_icm(struct driver *driver, uint8_t kind, unsigned int page, unsigned int count)
{
    struct rdma_hca_icm_entry entry[2] = {};

    entry[RDMA_HCA_ICM_SLOT(0)].page_l = htobe32(bus_of(page) | count);
    run_in(driver, (struct command){ .op = RDMA_HCA_CMD_MAP_ICM, .op_modifier = kind, .in_modifier = 1 }, entry, sizeof(entry));
}

static void add_region(struct driver *driver, uint32_t key, uint32_t start, uint32_t length)
{
    struct rdma_hca_mpt mpt = {
        .flags = htobe32(RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_ACCESS_LOCAL_WRITE |
                         RDMA_HCA_ACCESS_REMOTE_WRITE),
        .key = htobe32(key),
        .pd = htobe32(PD),
        .start_l = htobe32(start),
        .length_l = htobe32(length),
    };

    run_in(driver, (struct command){ .op = RDMA_HCA_CMD_SW2HW_MPT, .in_modifier = RDMA_HCA_GET(RDMA_HCA_KEY_INDEX, key) }, &mpt,
           sizeof(mpt));
}

static void start_card(struct driver *driver)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = htobe32(0x0000 | 4),
        .cqc_base_l = htobe32(0x1000 | 4),
        .eqc_base_l = htobe32(0x2000 | 5),
        .mpt_base_l = htobe32(0x0000 | 4),
        .mtt_base_l = htobe32(0x1000),
    };

    reset(driver);
    map_icm(driver, RDMA_HCA_ICM_CXT, CONTEXTS, 3);
    map_icm(driver, RDMA_HCA_ICM_TPT, REGIONS, 2);
    run_in(driver, (struct command){ .op = RDMA_HCA_CMD_INIT_HCA }, &init, sizeof(init));
    check(run(driver, (struct command){ .op = RDMA_HCA_CMD_INIT_IB, .in_modifier = 1 }) == RDMA_HCA_STAT_OK);
    add_region(driver, KEY_BUS, 0, ~0u);
    add_region(driver, KEY_SENDS, bus_of(SENDS), PAGE);
    add_region(driver, KEY_RECEIVES, bus_of(RECEIVES), PAGE);
}

static void create_queues(struct driver *driver)
{
    struct rdma_hca_eqc eqc = {
        .flags = htobe32(RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, RDMA_HCA_EQ_OWNER_HW) |
                         RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_FIRED) | RDMA_HCA_EQC_TR),
        .start_l = htobe32(bus_of(EVENTS)),
        .logsize = htobe32(RDMA_HCA_PREP(RDMA_HCA_EQC_LOGSIZE, 4)),
        .pd = htobe32(PD),
        .lkey = htobe32(KEY_BUS),
    };
    struct rdma_hca_cqc cqc = {
        .flags = htobe32(RDMA_HCA_CQC_TR),
        .start_l = htobe32(bus_of(COMPLETIONS)),
        .logsize_usrpage = htobe32(RDMA_HCA_PREP(RDMA_HCA_CQC_LOGSIZE, LOG_CQ)),
        .comp_eqn = htobe32(EQN),
        .pd = htobe32(PD),
        .lkey = htobe32(KEY_BUS),
        .cqn = htobe32(CQN),
        .ci_db_l = htobe32(bus_of(RECORDS)),
    };
    struct rdma_hca_cqe *cqe = page_of(driver, COMPLETIONS);

    memset(page_of(driver, EVENTS), RDMA_HCA_OWNER_HW, RDMA_HCA_EQE_SIZE << 4);
    for (unsigned int i = 0; i < 1u << LOG_CQ; i++) {
        cqe[i].ctrl = htole32(RDMA_HCA_PREP(RDMA_HCA_CQE_OWNER, RDMA_HCA_OWNER_HW));
    }
    run_in(driver, (struct command){ .op = RDMA_HCA_CMD_SW2HW_EQ, .in_modifier = EQN }, &eqc, sizeof(eqc));
    run_in(driver, (struct command){ .op = RDMA_HCA_CMD_SW2HW_CQ, .in_modifier = CQN }, &cqc, sizeof(cqc));
}

/* The LID, when the port is ACTIVE. */
static uint16_t wait_active(struct driver *driver)
{
    struct rdma_hca_port *port = page_of(driver, OUTBOX);
    double deadline = seconds_now() + patience();

    do {
        check(seconds_now() < deadline);
        check(run(driver, (struct command){ .op = RDMA_HCA_CMD_QUERY_PORT, .in_modifier = 1, .out = bus_of(OUTBOX) }) ==
              RDMA_HCA_STAT_OK);
    } while (RDMA_HCA_GET(RDMA_HCA_PORT_STATE, be32toh(port->state)) != IBV_PORT_ACTIVE);
    return RDMA_HCA_GET(RDMA_HCA_PORT_LID, be32toh(port->lid));
}

static void modify_qp(struct driver *driver, uint16_t op, unsigned int state, uint32_t mask, struct rdma_hca_qpc qpc)
{
    qpc.opt_param_mask = htobe32(mask | RDMA_HCA_QP_ATTR_STATE);
    qpc.flags = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_STATE, state) | RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, RDMA_HCA_QP_ST_RC));
    qpc.local_qpn = htobe32(QPN);
    run_in(driver, (struct command){ .op = op, .in_modifier = QPN }, &qpc, sizeof(qpc));
}

static void init_qp(struct driver *driver)
{
    struct rdma_hca_qpc qpc = {
        .mtu_msgmax_sz = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 31) | RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 6)),
        .port_pkey = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .pd = htobe32(PD),
        .params1 = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_ACCESS, RDMA_HCA_ACCESS_REMOTE_WRITE)),
        .cqn_snd = htobe32(CQN),
        .cqn_rcv = htobe32(CQN),
        .snd_wqe_base_l = htobe32(KEY_SENDS),
        .snd_wqe_len = htobe32(64u << LOG_SENDS),
        .rcv_wqe_base_l = htobe32(KEY_RECEIVES),
        .rcv_wqe_len = htobe32(PAGE),
        .rq_db_l = htobe32(bus_of(RECORDS) + 64),
    };

    modify_qp(driver, RDMA_HCA_CMD_RST2INIT_QPEE, RDMA_HCA_QP_STATE_INIT,
              RDMA_HCA_QP_ATTR_PKEY_INDEX | RDMA_HCA_QP_ATTR_PORT | RDMA_HCA_QP_ATTR_ACCESS_FLAGS, qpc);
}

static void connect(struct driver *driver)
{
    struct rdma_hca_qpc rtr = {
        .mtu_msgmax_sz = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, IBV_MTU_4096) | RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 31)),
        .remote_qpn = htobe32(QPN),
        .dlid_slid = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_DLID, wait_active(driver))),
        .rnr_nextrecvpsn = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_PSN, PSN)),
    };
    struct rdma_hca_qpc rts = {
        .rnr_retry_path = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_RETRY_COUNT, 1)),
        .ackto_path = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_ACK_TIMEOUT, 14)),
        .next_send_psn = htobe32(RDMA_HCA_PREP(RDMA_HCA_QPC_PSN, PSN)),
    };

    modify_qp(driver, RDMA_HCA_CMD_INIT2RTR_QPEE, RDMA_HCA_QP_STATE_RTR,
              RDMA_HCA_QP_ATTR_AV | RDMA_HCA_QP_ATTR_PATH_MTU | RDMA_HCA_QP_ATTR_DEST_QPN | RDMA_HCA_QP_ATTR_RQ_PSN |
                  RDMA_HCA_QP_ATTR_MIN_RNR_TIMER | RDMA_HCA_QP_ATTR_MAX_DEST_RD_ATOMIC,
              rtr);
    modify_qp(driver, RDMA_HCA_CMD_RTR2RTS_QPEE, RDMA_HCA_QP_STATE_RTS,
              RDMA_HCA_QP_ATTR_SQ_PSN | RDMA_HCA_QP_ATTR_TIMEOUT | RDMA_HCA_QP_ATTR_RETRY_CNT | RDMA_HCA_QP_ATTR_RNR_RETRY |
                  RDMA_HCA_QP_ATTR_MAX_QP_RD_ATOMIC,
              rts);
}

/* A QP that writes to its own card's memory, and pages to write. */
static void bring_up(struct driver *driver)
{
    start_card(driver);
    create_queues(driver);
    init_qp(driver);
    connect(driver);
    for (unsigned int i = 0; i < SOURCES; i++) {
        memset(page_of(driver, SOURCE + i), i + 1, PAGE);
    }
}

/* Write a page at a bus address over another one. */
static void post_write(struct driver *driver, uint64_t from, uint64_t to)
{
    struct {
        struct rdma_hca_next_unit next;
        struct rdma_hca_raddr_unit remote;
        struct rdma_hca_data_unit data;
        uint8_t pad[16];
    } *wqe = page_of(driver, SENDS);
    uint32_t slot = driver->posted++ % (1u << LOG_SENDS);
    uint32_t low = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD, slot * 64 / 16) |
                   RDMA_HCA_PREP(RDMA_HCA_SEND_DB_OPCODE, RDMA_HCA_OPCODE_RDMA_WRITE);
    uint32_t high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, QPN) | RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SIZE, 3);

    _Static_assert(sizeof(*wqe) == 64, "a slot");
    wqe += slot;
    memset(wqe, 0, sizeof(*wqe));
    wqe->next.flags = htole32(RDMA_HCA_WQE_CQ_UPDATE);
    wqe->remote.raddr_l = htole32(RDMA_HCA_LO32(to));
    wqe->remote.raddr_h = htole32(RDMA_HCA_HI32(to));
    wqe->remote.rkey = htole32(KEY_BUS);
    wqe->data.byte_cnt = htole32(PAGE);
    wqe->data.lkey = htole32(KEY_BUS);
    wqe->data.addr_l = htole32(RDMA_HCA_LO32(from));
    wqe->data.addr_h = htole32(RDMA_HCA_HI32(from));
    __sync_synchronize();
    *(volatile uint64_t *)(driver->bar2 + RDMA_HCA_SEND_DB) = htole64((uint64_t)high << 32 | low);
}

/* The syndrome of the next completion, or 0. */
static uint8_t next_syndrome(struct driver *driver)
{
    volatile struct rdma_hca_cqe *cqe = page_of(driver, COMPLETIONS);
    double deadline = seconds_now() + patience();
    uint32_t ctrl, error;

    cqe += driver->done % (1u << LOG_CQ);
    while (RDMA_HCA_GET(RDMA_HCA_CQE_OWNER, ctrl = le32toh(cqe->ctrl)) != RDMA_HCA_OWNER_SW) {
        check(seconds_now() < deadline);
    }
    __sync_synchronize();
    error = le32toh(cqe->err);
    cqe->ctrl = htole32(RDMA_HCA_PREP(RDMA_HCA_CQE_OWNER, RDMA_HCA_OWNER_HW));
    driver->done++;
    *(volatile uint32_t *)page_of(driver, RECORDS) = htole32(driver->done);
    return RDMA_HCA_GET(RDMA_HCA_CQE_OPCODE, ctrl) == RDMA_HCA_OPCODE_INVALID ? RDMA_HCA_GET(RDMA_HCA_CQE_SYNDROME, error) : 0;
}

/* Its region lets the QP go anywhere; the IOMMU does not. */
static void test_data(struct driver *driver)
{
    uint8_t *page = new_pages(1);
    const struct {
        uint64_t bus;
        uint32_t rights;
    } refused[] = {
        { GUEST_OF_CARD, 0 },
        { GUEST_OF_CARD, READ },
        { physical(page), READ | WRITE },
        { GUEST_OF_CARD - PAGE, READ | WRITE },
        { GUEST_OF_CARD + PAGE, READ | WRITE },
    };

    check(!mlock(page, PAGE));
    for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        bring_up(driver);
        map(driver, page, GUEST_OF_CARD, 1, READ | WRITE);
        memset(page, 0x5a, PAGE);
        post_write(driver, bus_of(SOURCE), GUEST_OF_CARD);
        check(!next_syndrome(driver));
        check(is_all(page, 1));
        unmap(driver, GUEST_OF_CARD);
        if (refused[i].rights) {
            map(driver, page, GUEST_OF_CARD, 1, refused[i].rights);
        }
        post_write(driver, bus_of(SOURCE + 1), refused[i].bus);
        check(next_syndrome(driver));
        check(is_all(page, 1));
        if (refused[i].rights) {
            unmap(driver, GUEST_OF_CARD);
        }
    }
}

/* Reads are held to it, too. */
static void test_source(struct driver *driver)
{
    uint8_t *page = new_pages(1);
    const uint64_t refused[] = { physical(page), GUEST_OF_CARD - PAGE, GUEST_OF_CARD };

    check(!mlock(page, PAGE));
    memset(page, 0x5a, PAGE);
    for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        bring_up(driver);
        map(driver, page, GUEST_OF_CARD, 1, READ);
        post_write(driver, GUEST_OF_CARD, bus_of(OUTBOX));
        check(!next_syndrome(driver));
        check(is_all(page_of(driver, OUTBOX), 0x5a));
        unmap(driver, GUEST_OF_CARD);
        memset(page_of(driver, OUTBOX), 0, PAGE);
        post_write(driver, refused[i], bus_of(OUTBOX));
        check(next_syndrome(driver));
        check(is_all(page_of(driver, OUTBOX), 0));
    }
}

/* Write pages of different bytes, as fast as it goes, until that ends in an error. */
static void *keep_writing(void *opaque)
{
    struct driver *driver = opaque;
    double deadline = seconds_now() + patience();
    uint8_t syndrome;

    do {
        check(seconds_now() < deadline);
        while (driver->posted - driver->done < 16) {
            post_write(driver, bus_of(SOURCE + driver->posted % SOURCES), GUEST_OF_CARD);
        }
        syndrome = next_syndrome(driver);
    } while (!syndrome);
    return NULL;
}

/* A page that goes from under the traffic is the process's own as soon as it is unmapped. */
static void test_unmapped_under_traffic(struct driver *driver)
{
    uint8_t *page = new_pages(1);
    uint8_t seen[PAGE];
    pthread_t writer;
    uint32_t before;

    for (unsigned int round = 0; round < 5; round++) {
        bring_up(driver);
        map(driver, page, GUEST_OF_CARD, 1, READ | WRITE);
        check(!pthread_create(&writer, NULL, keep_writing, driver));
        before = __atomic_load_n(&driver->done, __ATOMIC_RELAXED);
        for (double end = seconds_now() + patience(); __atomic_load_n(&driver->done, __ATOMIC_RELAXED) - before <= 10;) {
            check(seconds_now() < end);
            usleep(1000);
        }
        unmap(driver, GUEST_OF_CARD);
        memcpy(seen, page, PAGE);
        usleep(20000);
        check(!memcmp(seen, page, PAGE));
        check(!pthread_join(writer, NULL));
        check(!memcmp(seen, page, PAGE));
        printf("round %u: %u pages written\n", round, driver->done);
    }
}

int main(int argc, char **argv)
{
    struct driver driver = {};

    check(argc == 3);
    open_function(&driver, argv[1], argv[2]);
    test_outside(&driver);
    test_rights(&driver);
    test_unmapped(&driver);
    test_data(&driver);
    test_source(&driver);
    test_unmapped_under_traffic(&driver);
    return 0;
}
