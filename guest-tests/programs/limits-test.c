/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: limits-test CASE [NUMBER]   As many objects of a kind as a card has: the last of them, and one more. NUMBER: of what there
 * is, as many as the kernel has.
 */
#define _GNU_SOURCE
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct device device;

#define MEGABYTE (1u << 20)

/* As many as there are, then ENOMEM; then all go, and one can be made again. */
#define FILL_UP(type, made, create, destroy)                      \
    do {                                                          \
        type **all = calloc(MAX_OBJECTS, sizeof(*all)), *object;  \
                                                                  \
        check(all);                                               \
        for (made = 0; (object = (create)); made++) {             \
            check(made < MAX_OBJECTS);                            \
            all[made] = object;                                   \
        }                                                         \
        check(errno == ENOMEM);                                   \
        for (unsigned int i = 0; i < made; i++) {                 \
            object = all[i];                                      \
            check(!(destroy));                                    \
        }                                                         \
        check(object = (create));                                 \
        check(!(destroy));                                        \
        free(all);                                                \
    } while (0)
#define MAX_OBJECTS 70000

static struct ibv_qp *create_small_qp(struct ibv_cq_ex *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = { .max_send_wr = 1, .max_send_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };

    return ibv_create_qp(device.pd, &attr);
}

/* Of what there is, as many as the kernel has not: the second argument. */
static unsigned int taken;

static void test_all_qps(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    unsigned int made;

    FILL_UP(struct ibv_qp, made, create_small_qp(cq), ibv_destroy_qp(object));
    printf("%u QPs\n", made);
    check(made + taken == (unsigned int)device.attr.max_qp);
    destroy_cq(cq);
}

static void test_all_cqs(void)
{
    unsigned int made;

    FILL_UP(struct ibv_cq, made, ibv_create_cq(device.context, 1, NULL, NULL, 0), ibv_destroy_cq(object));
    printf("%u CQs\n", made);
    check(made + taken == (unsigned int)device.attr.max_cq);
}

/* The one that the program has already counts too. */
static void test_all_pds(void)
{
    unsigned int made;

    FILL_UP(struct ibv_pd, made, ibv_alloc_pd(device.context), ibv_dealloc_pd(object));
    printf("%u PDs\n", made);
    check(made + taken == (unsigned int)device.attr.max_pd - 1);
}

static void *map_pages(size_t length, int flags)
{
    void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags, -1, 0);

    check(at != MAP_FAILED);
    return at;
}

static void test_all_regions(void)
{
    void *page = map_pages(4096, 0);
    unsigned int made;

    FILL_UP(struct ibv_mr, made, ibv_reg_mr(device.pd, page, 4096, 0), ibv_dereg_mr(object));
    printf("%u regions\n", made);
    check(made + taken == (unsigned int)device.attr.max_mr);
}

/*
 * Small pages: the card's translation entries run out long before its regions do. Larger ones are taken where bus and region
 * addresses agree in more bits: behind an IOMMU, whose addresses are aligned, they cannot with a region that begins at an odd
 * page; without one, where odd pages of the memory are not next to even ones.
 */
static void test_all_translations(void)
{
    const size_t length = 16 * MEGABYTE, page = 4096;
    uint8_t *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned int made;

    check(memory != MAP_FAILED);
    madvise(memory, length, MADV_NOHUGEPAGE);
    for (size_t first = 0; first <= page; first += page) {
        for (size_t at = first; at < length; at += 2 * page) {
            memory[at] = 1;
        }
    }
    FILL_UP(struct ibv_mr, made, ibv_reg_mr_iova(device.pd, memory, length, page, 0), ibv_dereg_mr(object));
    printf("%u regions of 16 MiB in small pages\n", made);
    check(made > 200 && made < 300);
}

/* Huge pages, of which there have to be eight: far more fit, since an entry then stands for a huge page. */
static void test_huge_pages(void)
{
    void *memory = map_pages(16 * MEGABYTE, MAP_HUGETLB);
    struct ibv_mr *mr[1000];

    for (int i = 0; i < 1000; i++) {
        check(mr[i] = ibv_reg_mr(device.pd, memory, 16 * MEGABYTE, ACCESS_ALL));
    }
    for (int i = 0; i < 1000; i++) {
        check(!ibv_dereg_mr(mr[i]));
    }
}

/* Each process has a doorbell page; the last one taken is an error like others. */
static void test_all_contexts(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    unsigned int made;

    FILL_UP(struct ibv_context, made, ibv_open_device(list[0]), ibv_close_device(object));
    printf("%u contexts\n", made);
    check(made > 1000);
    ibv_free_device_list(list);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct test_case cases[] = {
    { "all_qps", test_all_qps },
    { "all_cqs", test_all_cqs },
    { "all_pds", test_all_pds },
    { "all_regions", test_all_regions },
    { "all_translations", test_all_translations },
    { "huge_pages", test_huge_pages },
    { "all_contexts", test_all_contexts },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    taken = argc == 3 ? strtoul(argv[2], NULL, 0) : 0;
    return run_case(argc, argv, cases, &device, NULL, NULL);
}
