/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-noise.h"

#include <string.h>

uint32_t noise32(Scene *s)
{
    return g_rand_int(s->pair->lab->rand);
}

/* 0, all ones, small, one bit, or anything. */
uint32_t noise_odd32(Scene *s)
{
    uint32_t x = noise32(s);

    switch (pair_rand(s->pair, 0, 6)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return x % 64;
    case 3:
        return 1u << x % 32;
    case 4:
        return x & 0xffff;
    default:
        return x;
    }
}

void noise_fill(Scene *s, void *buf, size_t len)
{
    for (size_t i = 0; i + 4 <= len; i += 4) {
        uint32_t word = noise_odd32(s);

        memcpy((uint8_t *)buf + i, &word, 4);
    }
}

/* Mostly what belongs to the victim: its QPN, its page, its offsets. */
void noise_send_doorbell(Scene *s)
{
    Qp *qp = s->victim[0];
    uint32_t low = noise_odd32(s), high = noise_odd32(s), uar = qp->uar;

    if (pair_rand(s->pair, 0, 8)) {
        high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) | (high & 0x3f);
        low = (low & 0x3f) | RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD,
                                           pair_rand(s->pair, 0, 300) * 4);
    }
    host_uar_write64(qp->drv->host, uar * RDMA_HCA_UAR_PAGE_SIZE,
                     (uint64_t)high << 32 | low);
}

/* An address of RAM now and then, with a mailbox of noise behind it. */
uint64_t noise_mailbox(Scene *s)
{
    Driver *drv = s->pair->drv[0];
    uint8_t data[1024];

    if (pair_rand(s->pair, 0, 6) == 0) {
        return (uint64_t)noise_odd32(s) << 32 | noise_odd32(s);
    }
    noise_fill(s, data, sizeof(data));
    host_write(drv->host, drv->mbox_in, data, sizeof(data));
    return drv->mbox_in;
}

void noise_command(Scene *s, uint16_t op)
{
    Host *host = &s->pair->lab->host[0];
    uint64_t in = noise_mailbox(s);
    uint64_t out = pair_rand(s->pair, 0, 4) ? s->pair->drv[0]->mbox_out
                                            : noise_odd32(s);
    const uint32_t reg[] = {
        in >> 32,
        in,
        noise_odd32(s),
        out >> 32,
        out,
        noise_odd32(s),
        RDMA_HCA_HCR_GO | (noise_odd32(s) & RDMA_HCA_HCR_OP_MODIFIER) |
            (noise_odd32(s) & RDMA_HCA_HCR_EVENT) | op,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(reg); i++) {
        host_bar0_write(host, RDMA_HCA_HCR + i * 4, reg[i]);
    }
    lab_run(s->pair->lab);
    g_assert_false(host_bar0_read(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL) &
                   RDMA_HCA_HCR_GO);
}

static const uint16_t commands[] = {
    0x003, 0x004, 0x006, 0x007, 0x008, 0x009, 0x00a, 0x00d, 0x00e, 0x00f,
    0x010, 0x011, 0x012, 0x013, 0x014, 0x015, 0x016, 0x017, 0x018, 0x019,
    0x01a, 0x01b, 0x01c, 0x01d, 0x01e, 0x01f, 0x020, 0x021, 0x022, 0x023,
    0x024, 0x02c, 0x02d, 0x02f, 0x030, 0x031, 0x038, 0x043, 0xff9, 0xffa,
    0x025, 0x026, 0x050, 0x051, 0x052, 0x00c, 0x05d,
};

uint16_t noise_opcode(Scene *s)
{
    return commands[noise32(s) % G_N_ELEMENTS(commands)];
}
