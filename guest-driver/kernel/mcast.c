// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups (WRITE_MGM): the driver has the table, and writes a group
 * to the card whole when it has changed.
 */
#include "qp.h"

/* A multicast group as the card has it; free: @count is 0. */
struct rhca_mgm {
	union ib_gid mgid;
	u32 count;
	u32 qpn[RDMA_HCA_MGM_MAX_QPS];
};

int rhca_mcast_init(struct rhca_dev *dev)
{
	mutex_init(&dev->mgm_lock);
	dev->mgm = kvcalloc(RDMA_HCA_MGM_NUM, sizeof(*dev->mgm), GFP_KERNEL);
	if (!dev->mgm)
		return -ENOMEM;
	return rhca_mailbox_alloc(dev, &dev->mgm_box);
}

void rhca_mcast_cleanup(struct rhca_dev *dev)
{
	if (dev->mgm_box.buf)
		rhca_mailbox_free(dev, &dev->mgm_box);
	kvfree(dev->mgm);
}

/* What WRITE_MGM says of the group. Returns its index. */
static u32 rhca_fill_mgm(struct rhca_dev *dev, const struct rhca_mgm *group)
{
	struct rdma_hca_mgm *mgm = dev->mgm_box.buf;
	u32 i;

	memset(mgm, 0, RDMA_HCA_MGM_SIZE);
	memcpy(mgm->mgid, group->mgid.raw, sizeof(mgm->mgid));
	mgm->count = cpu_to_be32(group->count);
	for (i = 0; i < group->count; i++)
		mgm->qpn[i] = cpu_to_be32(group->qpn[i]);
	return group - dev->mgm;
}

/* The group of @gid; *@free: one that is free, or NULL. */
static struct rhca_mgm *rhca_find_group(struct rhca_dev *dev,
					const union ib_gid *gid,
					struct rhca_mgm **free)
{
	struct rhca_mgm *group;

	*free = NULL;
	for (group = dev->mgm; group < dev->mgm + RDMA_HCA_MGM_NUM; group++) {
		if (!group->count)
			*free = *free ?: group;
		else if (!memcmp(&group->mgid, gid, sizeof(*gid)))
			return group;
	}
	return NULL;
}

/* The place of @qpn in @group, or its count. */
static u32 rhca_find_member(const struct rhca_mgm *group, u32 qpn)
{
	u32 i;

	for (i = 0; i < group->count; i++)
		if (group->qpn[i] == qpn)
			break;
	return i;
}

/* A QP that is a member already stays it once. */
static int rhca_join(struct rhca_dev *dev, const union ib_gid *gid, u32 qpn)
{
	struct rhca_mgm *group, *free;
	u32 index;
	int err;

	group = rhca_find_group(dev, gid, &free);
	if (!group) {
		if (!free)
			return -ENOMEM;
		group = free;
		group->mgid = *gid;
	}
	if (rhca_find_member(group, qpn) < group->count)
		return 0;
	if (group->count == RDMA_HCA_MGM_MAX_QPS)
		return -ENOMEM;
	group->qpn[group->count++] = qpn;
	index = rhca_fill_mgm(dev, group);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_WRITE_MGM, index, &dev->mgm_box);
	if (err)
		group->count--;
	return err;
}

/*
 * The core destroys a QP only once it has left, be it at the end of a process,
 * where nobody can try again. So this does not fail: a card that does not obey
 * has failed, and forgets all groups.
 */
static int rhca_leave(struct rhca_dev *dev, const union ib_gid *gid, u32 qpn)
{
	struct rhca_mgm *group, *free;
	u32 i;

	group = rhca_find_group(dev, gid, &free);
	if (!group)
		return -EINVAL;
	i = rhca_find_member(group, qpn);
	if (i == group->count)
		return -EINVAL;
	group->qpn[i] = group->qpn[--group->count];
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_WRITE_MGM, 0,
			rhca_fill_mgm(dev, group), dev->mgm_box.dma);
	return 0;
}

int rhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	int err;

	mutex_lock(&dev->mgm_lock);
	err = rhca_join(dev, gid, to_rhca_qp(ibqp)->qpn);
	mutex_unlock(&dev->mgm_lock);
	return err;
}

int rhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	int err;

	mutex_lock(&dev->mgm_lock);
	err = rhca_leave(dev, gid, to_rhca_qp(ibqp)->qpn);
	mutex_unlock(&dev->mgm_lock);
	return err;
}
