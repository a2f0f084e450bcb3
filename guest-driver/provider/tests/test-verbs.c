// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device, its clock, and memory regions. */
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

void test_query_device(void)
{
	struct ibv_device_attr_ex attr = {};

	CHECK_EQ(rhca_query_device_ex(&ctx.vctx.context, NULL, &attr,
				      sizeof(attr)),
		 0);
	CHECK_EQ(attr.orig_attr.max_qp_wr, RHCA_MAX_WR);
	CHECK_EQ(attr.orig_attr.max_srq_wr, RHCA_MAX_WR);
	CHECK(!strcmp(attr.orig_attr.fw_ver, "1.5"));
}

void test_rt_values(void)
{
	struct ibv_values_ex values = {
		.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 31,
	};

	set_clock(0x123456789abcdef);
	CHECK_EQ(rhca_query_rt_values(&ctx.vctx.context, &values), EOPNOTSUPP);
	ctx.has_clock = true;
	CHECK_EQ(rhca_query_rt_values(&ctx.vctx.context, &values), 0);
	CHECK_EQ(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	CHECK_EQ(values.raw_clock.tv_sec, 0);
	CHECK_EQ(values.raw_clock.tv_nsec, 0x123456789abcdef);
	values.comp_mask = 0;
	CHECK_EQ(rhca_query_rt_values(&ctx.vctx.context, &values), 0);
	CHECK_EQ(values.comp_mask, 0);
}

/* One key for all, if there is one; the kernel does not know of it. */
void test_null_mr(void)
{
	struct ibv_mr *mr;

	CHECK_FAILS(rhca_alloc_null_mr(pd), EOPNOTSUPP);
	ctx.null_key = 0x4242;
	mr = rhca_alloc_null_mr(pd);
	CHECK_EQ(mr->lkey, 0x4242);
	CHECK(mr->pd == pd && mr->context == &ctx.vctx.context);
	kernel.dereg_err = EIO;
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	kernel.dereg_err = 0;
}

void test_import(void)
{
	struct ibv_pd *imported = rhca_import_pd(&ctx.vctx.context, 17);
	struct ibv_mr *mr = rhca_import_mr(imported, 5);

	CHECK_EQ(imported->handle, 17);
	CHECK(imported->context == &ctx.vctx.context);
	CHECK_EQ(mr->lkey, 0x55);
	CHECK_FAILS(rhca_import_mr(imported, 6), ENOENT);
	rhca_unimport_mr(mr);
	rhca_unimport_pd(imported);
}

/* There is no paging on demand, whatever the kernel says of it. */
void test_on_demand(void)
{
	CHECK_FAILS(rhca_reg_mr(pd, NULL, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND),
		    EOPNOTSUPP);
	CHECK_FAILS(rhca_reg_mr(pd, NULL, 1, 0, 0), ENOMEM);
}

void test_dmabuf(void)
{
	struct ibv_mr *mr = rhca_reg_dmabuf_mr(pd, 0, 4096, 0x5000, 3, 0);

	CHECK_EQ(mr->lkey, 0x77);
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	CHECK_FAILS(rhca_reg_dmabuf_mr(pd, 0, 4096, 0x5000, -1, 0), EBADF);
}
