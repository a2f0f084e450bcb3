/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-scene.h"

void scene_init(Scene *s, uint32_t seed)
{
    s->pair = pair_new(seed, 16384);
    s->drv = s->pair->drv[0];
    s->host = s->drv->host;
    pair_connect(s->pair, NULL, s->bystander);
}

void scene_check(Scene *s)
{
    pair_check_works(s->pair, s->bystander, 0);
    pair_check_works(s->pair, s->bystander, 1);
}

void scene_free(Scene *s)
{
    scene_check(s);
    pair_free(s->pair);
}

static void reset(Lab *lab, Host *host)
{
    host_bar0_write(host, RDMA_HCA_RESET, 1);
    lab_run(lab);
    g_assert_cmphex(host_bar0_read(host, RDMA_HCA_RESET), ==, 0);
}

void scene_reset_card(Scene *s)
{
    reset(s->pair->lab, s->host);
}

void scene_recover(Scene *s)
{
    Pair *pair = s->pair;

    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        driver_free(pair->drv[i]);
        reset(pair->lab, host);
        pair->drv[i] = driver_new(host);
        pair->pd[i] = pd_new(pair->drv[i]);
        pair->cq[i] = cq_new(pair->drv[i], 6, CARD_UAR);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, 16384,
                             ACCESS_ALL);
    }
    s->drv = pair->drv[0];
    lab_run(pair->lab);
    pair_connect(pair, NULL, s->bystander);
    scene_check(s);
}

uint8_t scene_command(Scene *s, uint16_t op, uint64_t in_param,
                      uint32_t in_modifier, uint8_t op_modifier)
{
    return driver_cmd(s->drv, op, in_param, in_modifier, op_modifier,
                      s->drv->mbox_out, NULL);
}

uint8_t scene_command_in(Scene *s, uint16_t op, const void *inbox, size_t len,
                         uint32_t in_modifier)
{
    return driver_cmd_in(s->drv, op, inbox, len, in_modifier, 0);
}

uint8_t scene_map_icm(Scene *s, uint8_t kind, uint64_t virt, uint64_t page,
                      uint32_t npages)
{
    struct rdma_hca_icm_entry entry[2] = { 0 };

    entry[RDMA_HCA_ICM_SLOT(0)] = (struct rdma_hca_icm_entry) {
        .virt_h = GUINT32_TO_BE(RDMA_HCA_HI32(virt)),
        .virt_l = GUINT32_TO_BE(RDMA_HCA_LO32(virt)),
        .page_h = GUINT32_TO_BE(RDMA_HCA_HI32(page)),
        .page_l = GUINT32_TO_BE(RDMA_HCA_LO32(page) | npages),
    };
    return driver_cmd_in(s->drv, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 1,
                         kind);
}

uint8_t scene_unmap_icm(Scene *s, uint8_t kind, uint64_t virt, uint32_t npages)
{
    return scene_command(s, RDMA_HCA_CMD_UNMAP_ICM, virt, npages, kind);
}

void scene_small_map(Scene *s)
{
    g_assert_cmphex(
        scene_map_icm(s, RDMA_HCA_ICM_CXT, 0, host_alloc(s->host, 3), 3), ==,
        0);
    g_assert_cmphex(
        scene_map_icm(s, RDMA_HCA_ICM_TPT, 0, host_alloc(s->host, 2), 2), ==,
        0);
}

uint8_t scene_small_init(Scene *s)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = GUINT32_TO_BE(0x0000 | 4),
        .cqc_base_l = GUINT32_TO_BE(0x1000 | 4),
        .eqc_base_l = GUINT32_TO_BE(0x2000 | LOG_EQS),
        .mpt_base_l = GUINT32_TO_BE(0x0000 | 4),
        .mtt_base_l = GUINT32_TO_BE(0x1000),
    };

    return scene_command_in(s, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0);
}
