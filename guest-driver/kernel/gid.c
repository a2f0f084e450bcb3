// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The GID table of a RoCE card (SET_GID): the core fills it with the addresses
 * of the interface and of those on it (VLANs).
 */
#include <linux/if_vlan.h>
#include <rdma/ib_cache.h>

#include "port.h"

static int rhca_set_gid(struct rhca_dev *dev, u32 index,
			const struct rdma_hca_gid_entry *entry)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	*(struct rdma_hca_gid_entry *)box.buf = *entry;
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SET_GID, index, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

int rhca_add_gid(const struct ib_gid_attr *attr, void **context)
{
	const struct rhca_dev *dev = to_rhca(attr->device);
	struct rdma_hca_gid_entry entry = {};
	u8 mac[ETH_ALEN];
	u16 vlan;
	int err;

	/* RoCEv1 has places at the most: the card knows nothing of them. */
	if (attr->gid_type == IB_GID_TYPE_ROCE &&
	    dev->caps.features & RDMA_HCA_FEATURE_ROCE_V1_GIDS)
		return 0;
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	err = rdma_read_gid_l2_fields(attr, &vlan, mac);
	if (err)
		return err;
	memcpy(entry.gid, attr->gid.raw, sizeof(entry.gid));
	be32p_replace_bits(&entry.type_vlan, RDMA_HCA_GID_TYPE_ROCE_V2,
			   RDMA_HCA_GID_TYPE);
	if (vlan < VLAN_N_VID) {
		be32p_replace_bits(&entry.type_vlan, 1, RDMA_HCA_GID_HAS_VLAN);
		be32p_replace_bits(&entry.type_vlan, vlan, RDMA_HCA_GID_VLAN);
	}
	entry.mac_h = cpu_to_be32(rhca_mac_high(mac));
	entry.mac_l = cpu_to_be32((u32)rhca_mac_low(mac) << 16);
	return rhca_set_gid(to_rhca(attr->device), attr->index, &entry);
}

/*
 * The core does not look whether that went well. A card that went on to speak
 * for an address which may be another machine's by then has failed.
 */
int rhca_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct rhca_dev *dev = to_rhca(attr->device);

	rhca_cmd_revoke(dev, RDMA_HCA_CMD_SET_GID, 0, attr->index,
			dev->cmd.blank.dma);
	return 0;
}
