// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that the card reads and writes. It is mapped apart from the
 * application's heap, so that a child after fork() shares none of its pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <util/util.h>

#include "rhca.h"

/*
 * Memory of a parent domain's allocator, who sees to forks. Returns
 * IBV_ALLOCATOR_USE_DEFAULT if there is none or it does not want to, NULL with
 * errno set if there is no memory.
 */
static void *rhca_custom_alloc(struct rhca_pd *parent, size_t size,
			       size_t alignment, enum rhca_resource resource)
{
	void *addr;

	if (!parent || !parent->alloc)
		return IBV_ALLOCATOR_USE_DEFAULT;
	addr = parent->alloc(&parent->ibv_pd, parent->alloc_context, size,
			     alignment, resource);
	if (!addr) {
		errno = ENOMEM;
	} else if (addr != IBV_ALLOCATOR_USE_DEFAULT &&
		   (uintptr_t)addr % alignment) {
		parent->free(&parent->ibv_pd, parent->alloc_context, addr,
			     resource);
		errno = EINVAL;
		addr = NULL;
	}
	return addr;
}

static void rhca_custom_free(struct rhca_pd *parent, void *addr,
			     enum rhca_resource resource)
{
	parent->free(&parent->ibv_pd, parent->alloc_context, addr, resource);
}

static int rhca_buf_map(struct rhca_buf *buf)
{
	int err;

	buf->addr = mmap(NULL, buf->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED)
		return errno;
	err = ibv_dontfork_range(buf->addr, buf->size);
	if (err) {
		err = errno;
		munmap(buf->addr, buf->size);
	}
	return err;
}

int rhca_buf_alloc(struct rhca_buf *buf, size_t size, struct rhca_pd *parent,
		   enum rhca_resource resource)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int err = 0;

	*buf = (struct rhca_buf){ .size = align(size, page) };
	if (!size)
		return 0;

	buf->addr = rhca_custom_alloc(parent, buf->size, page, resource);
	if (!buf->addr)
		return errno;
	if (buf->addr == IBV_ALLOCATOR_USE_DEFAULT) {
		err = rhca_buf_map(buf);
	} else {
		buf->from = parent;
		buf->resource = resource;
	}
	if (err) {
		buf->addr = NULL;
		return err;
	}
	/*
	 * Have real pages before the kernel pins them: what is pinned for
	 * reading only could otherwise be the page of zeros that all share.
	 */
	memset(buf->addr, 0, buf->size);
	return 0;
}

void rhca_buf_free(struct rhca_buf *buf)
{
	if (!buf->addr)
		return;
	if (buf->from) {
		rhca_custom_free(buf->from, buf->addr, buf->resource);
	} else {
		ibv_dofork_range(buf->addr, buf->size);
		munmap(buf->addr, buf->size);
	}
	buf->addr = NULL;
}

/* A record has a cache line of its own: two threads may be busy with two. */
#define RHCA_RECORD_STRIDE	64
#define RHCA_RECORDS		64

struct rhca_db_page {
	struct list_node list;
	struct rhca_buf buf;
	uint64_t free;			/* a bit for each record */
};

static struct rhca_db_page *rhca_db_page_new(struct rhca_context *ctx)
{
	struct rhca_db_page *page = calloc(1, sizeof(*page));
	int err;

	if (!page) {
		errno = ENOMEM;
		return NULL;
	}
	err = rhca_buf_alloc(&page->buf, RHCA_RECORDS * RHCA_RECORD_STRIDE,
			     NULL, RHCA_RESOURCE_RECORD);
	if (err) {
		free(page);
		errno = err;
		return NULL;
	}
	page->free = UINT64_MAX;
	list_add(&ctx->db_pages, &page->list);
	return page;
}

static struct rhca_db_page *rhca_db_page_with_free(struct rhca_context *ctx)
{
	struct rhca_db_page *page;

	list_for_each(&ctx->db_pages, page, list)
		if (page->free)
			return page;
	return rhca_db_page_new(ctx);
}

/* One of our own pages. */
static __le32 *rhca_record_take(struct rhca_context *ctx)
{
	struct rhca_db_page *page;
	__le32 *record = NULL;
	unsigned int n;

	pthread_mutex_lock(&ctx->db_mutex);
	page = rhca_db_page_with_free(ctx);
	if (page) {
		n = __builtin_ctzll(page->free);
		page->free &= page->free - 1;
		record = (__le32 *)((uint8_t *)page->buf.addr +
				    n * RHCA_RECORD_STRIDE);
	}
	pthread_mutex_unlock(&ctx->db_mutex);
	return record;
}

__le32 *rhca_record_alloc(struct rhca_context *ctx, struct rhca_pd *parent)
{
	__le32 *record = rhca_custom_alloc(parent, RHCA_RECORD_STRIDE,
					   RHCA_RECORD_STRIDE,
					   RHCA_RESOURCE_RECORD);

	if (record == IBV_ALLOCATOR_USE_DEFAULT)
		record = rhca_record_take(ctx);
	if (record)
		*record = htole32(0);
	return record;
}

/* False: it is in none of our pages. */
static bool rhca_record_put(struct rhca_context *ctx, __le32 *record)
{
	struct rhca_db_page *page;
	bool found = false;
	size_t offset;

	pthread_mutex_lock(&ctx->db_mutex);
	list_for_each(&ctx->db_pages, page, list) {
		offset = (uintptr_t)record - (uintptr_t)page->buf.addr;
		if (offset >= page->buf.size)
			continue;
		found = true;
		page->free |= 1ULL << (offset / RHCA_RECORD_STRIDE);
		if (page->free == UINT64_MAX) {
			list_del(&page->list);
			rhca_buf_free(&page->buf);
			free(page);
		}
		break;
	}
	pthread_mutex_unlock(&ctx->db_mutex);
	return found;
}

void rhca_record_free(struct rhca_context *ctx, struct rhca_pd *parent,
		      __le32 *record)
{
	if (record && !rhca_record_put(ctx, record))
		rhca_custom_free(parent, record, RHCA_RESOURCE_RECORD);
}
