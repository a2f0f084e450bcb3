/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qtest of rdma-hca: the PCI function, its registers, reset, DMA limits, the
 * cable, its faults and its capture, the flight recorder, stop and continue,
 * unplug; the same with a netdev in place of the cable; a vIOMMU in front of it.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "hw/rdma-hca/abi/mthca/mthca_cmd.h"
#include "hw/rdma-hca/abi/mthca/mthca_cxt.h"
#include "hw/rdma-hca/abi/mthca/mthca_regs.h"
#include "hw/rdma-hca/abi/rdma_hca_cmd.h"
#include "hw/rdma-hca/abi/rdma_hca_cxt.h"
#include "hw/rdma-hca/abi/rdma_hca_regs.h"
#include "hw/rdma-hca/abi/rdma_hca_wqe.h"
#include "libqos/libqos-malloc.h"
#include "libqos/pci-pc.h"
#include "libqos/virtio-pci.h"
#include "libqtest.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qlist.h"
#include "qobject/qstring.h"
#include "standard-headers/linux/virtio_iommu.h"
#include "standard-headers/linux/virtio_ring.h"

#define SLOT 4
#define DEVICE_ARG "-device rdma-hca,id=hca0,addr=04.0"
#define MAILBOX 0x200000
#define DEVICE_MEMORY (4 * MiB)
#define DEADLINE_US (20 * G_USEC_PER_SEC)

typedef struct Card {
    QTestState *qts;
    QPCIBus *bus;
    QPCIDevice *dev;
    QPCIBar bar0;
    QPCIBar bar2;
} Card;

typedef struct Command {
    uint16_t op;
    bool event;
    uint8_t op_modifier;
    uint32_t in_modifier;
    uint64_t in_param;
    uint64_t out_param;
} Command;

static void card_find(Card *card, unsigned slot)
{
    card->dev = qpci_device_find(card->bus, QPCI_DEVFN(slot, 0));
    g_assert_nonnull(card->dev);
    qpci_device_enable(card->dev);
    card->bar0 = qpci_iomap(card->dev, RDMA_HCA_BAR0, NULL);
    card->bar2 = qpci_iomap(card->dev, RDMA_HCA_BAR2, NULL);
}

/* The table is in BAR 0, which gets another address by that. */
static void enable_msix(Card *card)
{
    qpci_msix_enable(card->dev);
    card->bar0 = card->dev->msix_table_bar;
}

static void card_open(Card *card, const char *args)
{
    card->qts = qtest_initf("-M q35 -nodefaults %s", args);
    card->bus = qpci_new_pc(card->qts, NULL);
    card_find(card, SLOT);
}

static void card_close(Card *card)
{
    g_free(card->dev);
    qpci_free_pc(card->bus);
    qtest_quit(card->qts);
}

static uint32_t hcr_read(Card *card, unsigned reg)
{
    return qpci_io_readl(card->dev, card->bar0, RDMA_HCA_HCR + reg);
}

static void hcr_write(Card *card, unsigned reg, uint32_t value)
{
    qpci_io_writel(card->dev, card->bar0, RDMA_HCA_HCR + reg, value);
}

static void post(Card *card, const Command *cmd)
{
    hcr_write(card, RDMA_HCA_HCR_IN_PARAM_H, RDMA_HCA_HI32(cmd->in_param));
    hcr_write(card, RDMA_HCA_HCR_IN_PARAM_L, RDMA_HCA_LO32(cmd->in_param));
    hcr_write(card, RDMA_HCA_HCR_IN_MODIFIER, cmd->in_modifier);
    hcr_write(card, RDMA_HCA_HCR_OUT_PARAM_H, RDMA_HCA_HI32(cmd->out_param));
    hcr_write(card, RDMA_HCA_HCR_OUT_PARAM_L, RDMA_HCA_LO32(cmd->out_param));
    hcr_write(card, RDMA_HCA_HCR_TOKEN,
              RDMA_HCA_PREP(RDMA_HCA_HCR_TOKEN_MASK, RDMA_HCA_CMD_POLL_TOKEN));
    hcr_write(card, RDMA_HCA_HCR_CTRL,
              RDMA_HCA_HCR_GO | (cmd->event ? RDMA_HCA_HCR_EVENT : 0) |
                  RDMA_HCA_PREP(RDMA_HCA_HCR_OP_MODIFIER, cmd->op_modifier) |
                  RDMA_HCA_PREP(RDMA_HCA_HCR_OP, cmd->op));
}

/* Poll @offset of BAR 0 until no bit of @mask is set; the value read last. */
static uint32_t wait_clear(Card *card, uint32_t offset, uint32_t mask)
{
    int64_t deadline = g_get_monotonic_time() + DEADLINE_US;
    uint32_t value;

    while ((value = qpci_io_readl(card->dev, card->bar0, offset)) & mask) {
        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
        g_usleep(100);
    }
    return value;
}

static uint8_t run(Card *card, const Command *cmd)
{
    uint32_t ctrl;

    post(card, cmd);
    ctrl = wait_clear(card, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL, RDMA_HCA_HCR_GO);
    return RDMA_HCA_GET(RDMA_HCA_HCR_STATUS, ctrl);
}

static uint8_t run_nop(Card *card)
{
    return run(card, &(Command) { .op = RDMA_HCA_CMD_NOP });
}

static uint8_t query_fw(Card *card, uint64_t mailbox)
{
    return run(
        card, &(Command) { .op = RDMA_HCA_CMD_QUERY_FW, .out_param = mailbox });
}

static void assert_alive(Card *card)
{
    g_assert_cmphex(run_nop(card), ==, RDMA_HCA_STAT_OK);
}

static void reset_by_register(Card *card)
{
    qpci_io_writel(card->dev, card->bar0, RDMA_HCA_RESET, 1);
    wait_clear(card, RDMA_HCA_RESET, 1);
}

/* An error whose text has @reason in it. */
static void assert_refused(QDict *reply, const char *reason)
{
    QDict *error = qdict_get_qdict(reply, "error");

    g_assert_nonnull(error);
    if (!strstr(qdict_get_str(error, "desc"), reason)) {
        g_test_message("%s", qdict_get_str(error, "desc"));
        g_test_fail();
    }
    qobject_unref(reply);
}

/* The PCI function. */

static uint32_t bar_size(QPCIDevice *dev, int bar)
{
    uint8_t reg = PCI_BASE_ADDRESS_0 + 4 * bar;
    uint32_t was = qpci_config_readl(dev, reg);
    uint32_t mask;

    qpci_config_writel(dev, reg, 0xffffffff);
    mask = qpci_config_readl(dev, reg) & PCI_BASE_ADDRESS_MEM_MASK;
    qpci_config_writel(dev, reg, was);
    return -mask;
}

static void assert_bar(QPCIDevice *dev, int bar, uint32_t size, uint8_t flags)
{
    uint32_t value = qpci_config_readl(dev, PCI_BASE_ADDRESS_0 + 4 * bar);

    g_assert_cmphex(value & ~PCI_BASE_ADDRESS_MEM_MASK, ==,
                    PCI_BASE_ADDRESS_SPACE_MEMORY |
                        PCI_BASE_ADDRESS_MEM_TYPE_64 | flags);
    g_assert_cmphex(bar_size(dev, bar), ==, size);
}

static void test_identity(void)
{
    Card card;
    uint8_t express;

    card_open(&card, DEVICE_ARG);
    g_assert_cmphex(qpci_config_readw(card.dev, PCI_VENDOR_ID), ==,
                    RDMA_HCA_PCI_VENDOR_ID);
    g_assert_cmphex(qpci_config_readw(card.dev, PCI_DEVICE_ID), ==,
                    RDMA_HCA_PCI_DEVICE_ID);
    g_assert_cmphex(qpci_config_readb(card.dev, PCI_REVISION_ID), ==,
                    RDMA_HCA_PCI_REVISION);
    g_assert_cmphex(qpci_config_readw(card.dev, PCI_CLASS_DEVICE), ==, 0x0207);
    assert_bar(card.dev, RDMA_HCA_BAR0, RDMA_HCA_BAR0_SIZE, 0);
    assert_bar(card.dev, RDMA_HCA_BAR2, RDMA_HCA_BAR2_SIZE, 0);
    assert_bar(card.dev, RDMA_HCA_BAR4, DEVICE_MEMORY,
               PCI_BASE_ADDRESS_MEM_PREFETCH);

    express = qpci_find_capability(card.dev, PCI_CAP_ID_EXP, 0);
    g_assert_cmpint(express, !=, 0);
    g_assert_cmphex(qpci_config_readl(card.dev, express + PCI_EXP_DEVCAP) &
                        PCI_EXP_DEVCAP_FLR,
                    !=, 0);
    enable_msix(&card);
    g_assert_cmpint(qpci_msix_table_size(card.dev), ==, RDMA_HCA_MAX_EQS);
    qpci_msix_disable(card.dev);
    card_close(&card);
}

/* Errors that the card finds on the bus, which the machine's user makes. */
static void test_bus_errors(void)
{
    static const struct {
        const char *name;
        uint16_t status;
    } errors[] = {
        { "BAD_TLP", PCI_EXP_DEVSTA_CED },
        { "COMP_ABORT", PCI_EXP_DEVSTA_NFED },
        { "DLP", PCI_EXP_DEVSTA_FED },
    };
    uint8_t express;
    Card card;

    card_open(&card, DEVICE_ARG);
    express = qpci_find_capability(card.dev, PCI_CAP_ID_EXP, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
        g_autofree char *answer = qtest_hmp(
            card.qts, "pcie_aer_inject_error hca0 %s", errors[i].name);

        g_assert_true(g_str_has_prefix(answer, "OK"));
        g_assert_cmphex(qpci_config_readw(card.dev, express + PCI_EXP_DEVSTA) &
                            0xf,
                        ==, errors[i].status);
        qpci_config_writew(card.dev, express + PCI_EXP_DEVSTA,
                           errors[i].status);
        g_assert_cmphex(
            qpci_config_readw(card.dev, express + PCI_EXP_DEVSTA) & 0xf, ==, 0);
        assert_alive(&card);
    }
    card_close(&card);
}

#include "hw/rdma-hca/qemu/tests/rdma-hca-memory.c.inc"

/* Commands. */

static void test_command(void)
{
    struct rdma_hca_fw fw;
    Card card;

    card_open(&card, DEVICE_ARG);
    assert_alive(&card);
    g_assert_cmphex(run(&card, &(Command) { .op = 0xabc }), ==,
                    RDMA_HCA_STAT_BAD_OP);

    g_assert_cmphex(query_fw(&card, MAILBOX), ==, RDMA_HCA_STAT_OK);
    qtest_memread(card.qts, MAILBOX, &fw, sizeof(fw));
    g_assert_cmphex(be32_to_cpu(fw.magic), ==, RDMA_HCA_FW_MAGIC);
    g_assert_cmpint(be32_to_cpu(fw.interface_version), ==,
                    RDMA_HCA_INTERFACE_VERSION);
    card_close(&card);
}

/* A mailbox may be anywhere, but must not lead to a register. */
static void test_dma_refused(void)
{
    Card card, other = { 0 };
    uint64_t ram_end = 128 * 1024 * 1024;

    card_open(&card, DEVICE_ARG " -m 128M -device edu,addr=05.0");
    other.qts = card.qts;
    other.bus = card.bus;
    other.dev = qpci_device_find(card.bus, QPCI_DEVFN(5, 0));
    g_assert_nonnull(other.dev);
    qpci_device_enable(other.dev);
    other.bar0 = qpci_iomap(other.dev, 0, NULL);

    g_assert_cmphex(query_fw(&card, card.bar0.addr), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, card.bar0.addr + RDMA_HCA_HCR), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, card.bar2.addr), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, other.bar0.addr), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, 0xfee00000), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, ram_end), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, ~0xfffull), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(query_fw(&card, ram_end - 0x1000), ==, RDMA_HCA_STAT_OK);
    g_free(other.dev);
    card_close(&card);
}

static void test_bus_master(void)
{
    static const uint8_t mark = 0x5a;
    Card card;
    uint16_t command;
    uint8_t byte;

    card_open(&card, DEVICE_ARG);
    command = qpci_config_readw(card.dev, PCI_COMMAND);
    qpci_config_writew(card.dev, PCI_COMMAND, command & ~PCI_COMMAND_MASTER);
    qtest_memwrite(card.qts, MAILBOX, &mark, sizeof(mark));
    g_assert_cmphex(query_fw(&card, MAILBOX), ==, RDMA_HCA_STAT_BAD_PARAM);
    qtest_memread(card.qts, MAILBOX, &byte, sizeof(byte));
    g_assert_cmphex(byte, ==, mark);

    qpci_config_writew(card.dev, PCI_COMMAND, command);
    g_assert_cmphex(query_fw(&card, MAILBOX), ==, RDMA_HCA_STAT_OK);
    card_close(&card);
}

#include "hw/rdma-hca/qemu/tests/rdma-hca-registers.c.inc"

#define EQ_MPT 2
#define EQ_KEY (EQ_MPT << 8 | 0xa5)
#define VECTOR 5
#define MSI_ADDRESS 0x600000
#define MSI_DATA 0x1234

static void run_in(Card *card, const Command *cmd, const void *inbox,
                   size_t len)
{
    Command with_inbox = *cmd;

    with_inbox.in_param = MAILBOX;
    qtest_memset(card->qts, MAILBOX, 0, RDMA_HCA_MAILBOX_SIZE);
    qtest_memwrite(card->qts, MAILBOX, inbox, len);
    g_assert_cmphex(run(card, &with_inbox), ==, RDMA_HCA_STAT_OK);
}

/* Card-virtual address 0 of @kind on @pages pages from @page on. */
static void map_icm(Card *card, uint8_t kind, uint32_t page, unsigned pages)
{
    struct rdma_hca_icm_entry entry[2] = { 0 };

    entry[RDMA_HCA_ICM_SLOT(0)].page_l = cpu_to_be32(page | pages);
    run_in(card,
           &(Command) { .op = RDMA_HCA_CMD_MAP_ICM,
                        .op_modifier = kind,
                        .in_modifier = 1 },
           entry, sizeof(entry));
}

static void init_hca(Card *card)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = cpu_to_be32(0x0000 | 4),
        .cqc_base_l = cpu_to_be32(0x1000 | 4),
        .eqc_base_l = cpu_to_be32(0x2000 | 5),
        .mpt_base_l = cpu_to_be32(0x0000 | 4),
        .mtt_base_l = cpu_to_be32(0x1000),
    };

    map_icm(card, RDMA_HCA_ICM_CXT, ICM_PAGES, 3);
    map_icm(card, RDMA_HCA_ICM_TPT, ICM_PAGES + 0x3000, 2);
    run_in(card, &(Command) { .op = RDMA_HCA_CMD_INIT_HCA }, &init,
           sizeof(init));
}

static void init_eq_of(Card *card, uint8_t event)
{
    struct rdma_hca_mpt mpt = {
        .flags = cpu_to_be32(RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION |
                             RDMA_HCA_MPT_PHYSICAL |
                             RDMA_HCA_ACCESS_LOCAL_WRITE),
        .key = cpu_to_be32(EQ_KEY),
        .start_l = cpu_to_be32(EQ_BUFFER),
        .length_l = cpu_to_be32(RDMA_HCA_EQE_SIZE << EQ_LOG_SIZE),
    };
    struct rdma_hca_eqc eqc = {
        .flags = cpu_to_be32(
            RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, RDMA_HCA_EQ_OWNER_HW) |
            RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_FIRED) |
            RDMA_HCA_EQC_TR),
        .logsize = cpu_to_be32(
            RDMA_HCA_PREP(RDMA_HCA_EQC_LOGSIZE, EQ_LOG_SIZE)),
        .msix_vector = cpu_to_be32(VECTOR),
        .lkey = cpu_to_be32(EQ_KEY),
    };

    qtest_memset(card->qts, EQ_BUFFER, RDMA_HCA_OWNER_HW,
                 RDMA_HCA_EQE_SIZE << EQ_LOG_SIZE);
    run_in(card,
           &(Command) { .op = RDMA_HCA_CMD_SW2HW_MPT, .in_modifier = EQ_MPT },
           &mpt, sizeof(mpt));
    run_in(card, &(Command) { .op = RDMA_HCA_CMD_SW2HW_EQ, .in_modifier = EQN },
           &eqc, sizeof(eqc));
    g_assert_cmphex(run(card, &(Command) { .op = RDMA_HCA_CMD_MAP_EQ,
                                           .in_modifier = EQN,
                                           .in_param = 1ull << event }),
                    ==, RDMA_HCA_STAT_OK);
}

static void init_eq(Card *card)
{
    init_eq_of(card, RDMA_HCA_EVENT_CMD);
}

/* MSI-X has to be enabled. */
static void init_vector(Card *card, unsigned vector, uint32_t address)
{
    QPCIDevice *dev = card->dev;
    uint64_t entry = dev->msix_table_off + vector * PCI_MSIX_ENTRY_SIZE;

    qtest_writel(card->qts, address, 0);
    qpci_io_writel(dev, dev->msix_table_bar, entry + PCI_MSIX_ENTRY_LOWER_ADDR,
                   address);
    qpci_io_writel(dev, dev->msix_table_bar, entry + PCI_MSIX_ENTRY_UPPER_ADDR,
                   0);
    qpci_io_writel(dev, dev->msix_table_bar, entry + PCI_MSIX_ENTRY_DATA,
                   MSI_DATA);
    qpci_io_writel(dev, dev->msix_table_bar, entry + PCI_MSIX_ENTRY_VECTOR_CTRL,
                   0);
}

/* Wait for the interrupt and take it back. */
static void take_interrupt(Card *card, uint32_t address)
{
    int64_t deadline = g_get_monotonic_time() + DEADLINE_US;

    while (qtest_readl(card->qts, address) != MSI_DATA) {
        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
        g_usleep(100);
    }
    qtest_writel(card->qts, address, 0);
}

/* An event of a command, the @ci-th of its queue, and its interrupt. */
static void expect_event(Card *card, uint32_t ci)
{
    uint64_t slot = EQ_BUFFER + ci % (1 << EQ_LOG_SIZE) * RDMA_HCA_EQE_SIZE;
    struct rdma_hca_eqe eqe;

    qpci_io_writel(card->dev, card->bar0,
                   RDMA_HCA_EQ_DB + EQN * RDMA_HCA_EQ_DB_STRIDE,
                   RDMA_HCA_EQ_DB_ARM | ci);
    post(card, &(Command) { .op = RDMA_HCA_CMD_NOP, .event = true });
    take_interrupt(card, MSI_ADDRESS);
    qtest_memread(card->qts, slot, &eqe, sizeof(eqe));
    g_assert_cmphex(eqe.owner, ==, RDMA_HCA_OWNER_SW);
    g_assert_cmphex(eqe.type, ==, RDMA_HCA_EVENT_CMD);
    g_assert_cmphex(le32_to_cpu(eqe.cmd.token), ==, RDMA_HCA_CMD_POLL_TOKEN);
    g_assert_cmphex(le32_to_cpu(eqe.cmd.status), ==, RDMA_HCA_STAT_OK);
    qtest_writeb(card->qts, slot + RDMA_HCA_EQE_SIZE - 1, RDMA_HCA_OWNER_HW);
}

static void test_interrupt(void)
{
    Card card;

    card_open(&card, SMALL_CARD);
    init_hca(&card);
    init_eq(&card);
    enable_msix(&card);
    init_vector(&card, VECTOR, MSI_ADDRESS);
    for (uint32_t ci = 0; ci < 3u << EQ_LOG_SIZE; ci++) {
        expect_event(&card, ci);
    }
    card_close(&card);
}

/* Reset. */

static void test_reset_register(void)
{
    Card card;

    card_open(&card, DEVICE_ARG);
    for (unsigned i = 0; i < 20; i++) {
        reset_by_register(&card);
        assert_alive(&card);
        g_assert_cmphex(query_fw(&card, MAILBOX), ==, RDMA_HCA_STAT_OK);
    }
    card_close(&card);
}

/* Function level reset; the configuration is put back as it was. */
static void reset_by_flr(Card *card)
{
    uint8_t express = qpci_find_capability(card->dev, PCI_CAP_ID_EXP, 0);
    uint16_t command = qpci_config_readw(card->dev, PCI_COMMAND);
    uint16_t control = qpci_config_readw(card->dev, express + PCI_EXP_DEVCTL);
    uint32_t saved[6];

    for (unsigned i = 0; i < ARRAY_SIZE(saved); i++) {
        saved[i] = qpci_config_readl(card->dev, PCI_BASE_ADDRESS_0 + 4 * i);
    }
    qpci_config_writew(card->dev, express + PCI_EXP_DEVCTL,
                       control | PCI_EXP_DEVCTL_BCR_FLR);
    g_assert_cmphex(
        qpci_config_readw(card->dev, PCI_COMMAND) & PCI_COMMAND_MASTER, ==, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(saved); i++) {
        qpci_config_writel(card->dev, PCI_BASE_ADDRESS_0 + 4 * i, saved[i]);
    }
    qpci_config_writew(card->dev, PCI_COMMAND, command);
}

static void test_flr(void)
{
    Card card;

    card_open(&card, DEVICE_ARG);
    for (unsigned n = 0; n < 10; n++) {
        /* With a command on its way. */
        post(&card,
             &(Command) { .op = RDMA_HCA_CMD_QUERY_FW, .out_param = MAILBOX });
        reset_by_flr(&card);
        g_assert_cmphex(hcr_read(&card, RDMA_HCA_HCR_CTRL) & RDMA_HCA_HCR_GO,
                        ==, 0);
        assert_alive(&card);
        g_assert_cmphex(query_fw(&card, MAILBOX), ==, RDMA_HCA_STAT_OK);
    }
    card_close(&card);
}

static void test_system_reset(void)
{
    Card card;

    card_open(&card, DEVICE_ARG);
    for (unsigned i = 0; i < 5; i++) {
        post(&card, &(Command) { .op = RDMA_HCA_CMD_NOP });
        qtest_system_reset(card.qts);
        g_free(card.dev);
        card_find(&card, SLOT);
        assert_alive(&card);
    }
    card_close(&card);
}

/* A stopped machine's card stands still. */
static void test_stop(void)
{
    Card card;

    card_open(&card, DEVICE_ARG);
    qtest_qmp_assert_success(card.qts, "{'execute': 'stop'}");
    post(&card, &(Command) { .op = RDMA_HCA_CMD_NOP });
    g_usleep(100 * 1000);
    g_assert_cmphex(hcr_read(&card, RDMA_HCA_HCR_CTRL) & RDMA_HCA_HCR_GO, !=,
                    0);
    qtest_qmp_assert_success(card.qts, "{'execute': 'cont'}");
    wait_clear(&card, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL, RDMA_HCA_HCR_GO);
    assert_alive(&card);
    card_close(&card);
}

#include "hw/rdma-hca/qemu/tests/rdma-hca-counters.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-cable.c.inc"

/* Entries of a folder of QEMU's in /proc. */
static unsigned count_entries(QTestState *qts, const char *folder)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", qtest_pid(qts),
                                            folder);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    unsigned count = 0;

    g_assert_nonnull(dir);
    while (g_dir_read_name(dir)) {
        count++;
    }
    return count;
}

/*
 * Plug, use, unplug; with a cable in use, and with it free again. What is
 * unplugged leaves no thread and no file open.
 */
static void test_hotplug(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = socket_path(&dir);
    Card card = { .qts = qtest_init("-M pc -nodefaults "
                                    "-object iothread,id=thread") };
    unsigned files, threads;
    QDict *error;

    card.bus = qpci_new_pc(card.qts, NULL);
    files = count_entries(card.qts, "fd");
    threads = count_entries(card.qts, "task");
    qtest_qmp_assert_success(
        card.qts,
        "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-hca-cable',"
        " 'id': 'a', 'server': true,"
        " 'addr': {'type': 'unix', 'path': %s}}}",
        path);
    for (unsigned i = 0; i < 4; i++) {
        int peer;

        if (i % 2) {
            qtest_qmp_device_add(
                card.qts, "rdma-hca", "hca0",
                "{'addr': '0x4', 'cable': 'a', 'iothread': 'thread'}");
        } else {
            qtest_qmp_device_add(card.qts, "rdma-hca", "hca0",
                                 "{'addr': '0x4', 'cable': 'a'}");
        }
        card_find(&card, SLOT);
        assert_alive(&card);
        flood(&card, 100);
        peer = connect_to(path);
        wait_link(card.qts, "hca0", true);
        error = qtest_qmp(card.qts, "{'execute': 'object-del',"
                                    " 'arguments': {'id': 'a'}}");
        g_assert_true(qdict_haskey(error, "error"));
        qobject_unref(error);
        qpci_unplug_acpi_device_test(card.qts, "hca0", SLOT);
        wait_closed(peer);
        g_free(card.dev);
        /* The cable's listener is left. */
        g_assert_cmpint(count_entries(card.qts, "fd"), ==, files + 1);
        g_assert_cmpint(count_entries(card.qts, "task"), ==, threads);
    }
    qtest_qmp_assert_success(card.qts, "{'execute': 'object-del',"
                                       " 'arguments': {'id': 'a'}}");
    qtest_qmp_assert_success(card.qts, "{'execute': 'object-del',"
                                       " 'arguments': {'id': 'thread'}}");
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    qpci_free_pc(card.bus);
    qtest_quit(card.qts);
    g_assert_cmpint(rmdir(dir), ==, 0);
}

static void expect_refused(QTestState *qts, QDict *args, const char *name)
{
    qdict_put_str(args, "driver", "rdma-hca");
    assert_refused(qtest_qmp(qts,
                             "{'execute': 'device_add',"
                             " 'arguments': %p}",
                             args),
                   name);
}

/* Properties that cannot be: an error that names them. */
static void test_properties(void)
{
    static const char *const wrong_pkeys[] = { "0x8000", "0xffff:", "key" };
    static const struct {
        const char *name;
        uint64_t value;
    } wrong[] = {
        { "lid", 0xc000 },       { "max-mtu", 300 },
        { "max-mtu", 8192 },     { "vectors", 0 },
        { "vectors", 4096 },     { "log-qps", 30 },
        { "log-cqs", 30 },       { "log-eqs", 6 },
        { "log-mpts", 40 },      { "log-mtts", 40 },
        { "log-pds", 40 },       { "mpt-cache-size", 3000 },
        { "mtt-cache-size", 0 }, { "cache-ways", 3 },
        { "rpb-elements", 100 }, { "reb-elements", 1 },
        { "swpb-elements", 0 },  { "device-memory", 12345 },
    };
    QTestState *qts = qtest_init("-M pc -nodefaults");

    for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
        QDict *args = qdict_new();

        qdict_put_int(args, wrong[i].name, wrong[i].value);
        expect_refused(qts, args, wrong[i].name);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(wrong_pkeys); i++) {
        QDict *args = qdict_new();

        qdict_put_str(args, "pkeys", wrong_pkeys[i]);
        expect_refused(qts, args, "pkeys");
    }
    qtest_quit(qts);
}

#include "hw/rdma-hca/qemu/tests/rdma-hca-bad-input.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-faults.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-iommu.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-options.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-recorder.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-roce.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-roce-full.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-roce-options.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-shm.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-state.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-mthca.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-threads.c.inc"
#include "hw/rdma-hca/qemu/tests/rdma-hca-tls.c.inc"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("rdma-hca/identity", test_identity);
    qtest_add_func("rdma-hca/bus-errors", test_bus_errors);
    qtest_add_func("rdma-hca/command", test_command);
    qtest_add_func("rdma-hca/dma-refused", test_dma_refused);
    qtest_add_func("rdma-hca/bus-master", test_bus_master);
    qtest_add_func("rdma-hca/interrupt", test_interrupt);
    qtest_add_func("rdma-hca/reset/register", test_reset_register);
    qtest_add_func("rdma-hca/reset/flr", test_flr);
    qtest_add_func("rdma-hca/reset/system", test_system_reset);
    qtest_add_func("rdma-hca/stop", test_stop);
    qtest_add_func("rdma-hca/hotplug", test_hotplug);
    qtest_add_func("rdma-hca/properties", test_properties);
    qtest_add_func("rdma-hca/properties-described", test_options_described);
    add_memory_tests();
    add_register_tests();
    add_counter_tests();
    add_cable_tests();
    add_bad_input_tests();
    add_fault_tests();
    add_mthca_tests();
    add_iommu_tests();
    add_recorder_tests();
    add_roce_tests();
    add_roce_full_tests();
    add_roce_option_tests();
    add_shm_tests();
    add_state_tests();
    add_tls_tests();
    qtest_add_func("rdma-hca/threads", test_threads);
    return g_test_run();
}
