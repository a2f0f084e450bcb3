// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

/* The file that stands for the BAR, and where it begins there. */
static uint8_t *open_device_memory(void)
{
	uint8_t *file;
	int fd = memfd_create("bar", 0);

	CHECK(fd >= 0 && !ftruncate(fd, 4 * DM_PAGE));
	ctx.vctx.context.cmd_fd = fd;
	file = mmap(NULL, 4 * DM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	CHECK(file != MAP_FAILED);
	return file;
}

static void close_device_memory(uint8_t *file)
{
	munmap(file, 4 * DM_PAGE);
	close(ctx.vctx.context.cmd_fd);
	CHECK_EQ(kernel.dms, 0);
}

static struct ibv_dm *alloc_dm(size_t length)
{
	struct ibv_alloc_dm_attr attr = {
		.length = length,
		.log_align_req = 5,
	};

	return rhca_alloc_dm(&ctx.vctx.context, &attr);
}

void test_device_memory(void)
{
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(4100);
	char text[9] = "\0textual", got[9] = "";

	CHECK(dm);
	CHECK_EQ(kernel.dm_attr.log_align_req, 5);
	CHECK_EQ(dm->context == &ctx.vctx.context, 1);
	/* From and to anywhere in the host's memory. */
	CHECK_EQ(ibv_memcpy_to_dm(dm, 4092, text + 1, 8), 0);
	CHECK(!memcmp(file + DM_PAGE + 4092, text + 1, 8));
	CHECK_EQ(ibv_memcpy_from_dm(got + 1, dm, 4092, 8), 0);
	CHECK(!memcmp(got, text, 9));
	CHECK_EQ(ibv_memcpy_to_dm(dm, 4100, NULL, 0), 0);
	/* Nothing else. */
	memset(file + DM_PAGE + 4092, 0, 8);
	for (size_t i = 0; i < 4 * DM_PAGE; i++)
		CHECK_EQ(file[i], 0);
	CHECK_EQ(rhca_free_dm(dm), 0);
	close_device_memory(file);
}

void test_bad_device_memory(void)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int err;
	} copies[] = {
		{ 0, 104, EFAULT },
		{ 100, 4, EFAULT },
		{ 104, 0, EFAULT },
		{ UINT64_MAX - 3, 4, EFAULT },
		{ UINT64_MAX - 3, 8, EFAULT },
		{ 4, SIZE_MAX - 3, EFAULT },
		{ 0, SIZE_MAX - 3, EFAULT },
		{ 2, 4, EINVAL },
		{ 4, 3, EINVAL },
		{ 97, 3, EINVAL },
	};
	struct ibv_alloc_dm_attr attr = { .length = 4, .comp_mask = 1 };
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(100);
	uint8_t data[128] = { 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(copies); i++) {
		CHECK_EQ(ibv_memcpy_to_dm(dm, copies[i].offset, data,
					  copies[i].length),
			 copies[i].err);
		CHECK_EQ(ibv_memcpy_from_dm(data, dm, copies[i].offset,
					    copies[i].length),
			 copies[i].err);
	}
	CHECK_EQ(file[DM_PAGE], 0);
	CHECK_FAILS(alloc_dm(1 << 20), ENOMEM);
	CHECK_FAILS(rhca_alloc_dm(&ctx.vctx.context, &attr), EINVAL);
	ctx.has_dm = false;
	CHECK_FAILS(alloc_dm(100), EOPNOTSUPP);
	ctx.has_dm = true;
	CHECK_EQ(kernel.dms, 1);
	/* What is in use stays, and is mapped. */
	kernel.free_dm_err = EBUSY;
	CHECK_EQ(rhca_free_dm(dm), EBUSY);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 0, data, 4), 0);
	kernel.free_dm_err = 0;
	CHECK_EQ(rhca_free_dm(dm), 0);
	/* What cannot be mapped is given back. */
	close(ctx.vctx.context.cmd_fd);
	CHECK_FAILS(alloc_dm(100), EBADF);
	close_device_memory(file);
}

void test_dm_mr(void)
{
	const unsigned int access =
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(100);
	struct ibv_mr *mr = rhca_reg_dm_mr(pd, dm, 20, 80, access);

	CHECK(mr);
	CHECK_EQ(mr->lkey, 20);
	CHECK_EQ(mr->length, 80);
	CHECK_EQ(kernel.dm_mr_access, access);
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	mr = rhca_reg_dm_mr(pd, dm, 100, 0, access);
	CHECK(mr);
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	CHECK_FAILS(rhca_reg_dm_mr(pd, dm, 20, 81, access), EINVAL);
	CHECK_FAILS(rhca_reg_dm_mr(pd, dm, 101, 0, access), EINVAL);
	CHECK_FAILS(rhca_reg_dm_mr(pd, dm, UINT64_MAX, 2, access), EINVAL);
	CHECK_FAILS(rhca_reg_dm_mr(pd, dm, 1, SIZE_MAX, access), EINVAL);
	CHECK_FAILS(rhca_reg_dm_mr(pd, dm, 0, 4, 0), EINVAL);
	CHECK_EQ(rhca_free_dm(dm), 0);
	close_device_memory(file);
}

/* Two see the same; the one that has it imported frees nothing. */
void test_import_dm(void)
{
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(100), *imported;
	uint32_t word = 0x12345678, got = 0;

	imported = rhca_import_dm(&ctx.vctx.context, DM_HANDLE);
	CHECK(imported);
	CHECK_EQ(imported->handle, DM_HANDLE);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 96, &word, 4), 0);
	CHECK_EQ(ibv_memcpy_from_dm(&got, imported, 96, 4), 0);
	CHECK_EQ(got, word);
	CHECK_EQ(ibv_memcpy_from_dm(&got, imported, 100, 4), EFAULT);
	rhca_unimport_dm(imported);
	CHECK_EQ(kernel.dms, 1);
	CHECK_FAILS(rhca_import_dm(&ctx.vctx.context, 8), ENOENT);
	CHECK_EQ(rhca_free_dm(dm), 0);
	close_device_memory(file);
}
