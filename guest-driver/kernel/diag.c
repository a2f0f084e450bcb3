// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The card's counters (DIAG_RPRT) as hardware counters of the device, in
 * /sys/class/infiniband/<device>/hw_counters. Those that the card's port and
 * link count, and how many planned faults there were, are also the port's
 * (ports/1/hw_counters, `rdma statistic`): netlink has room for so many. Those
 * of the Ethernet function are also the interface's (`ethtool -S`). The names
 * come from the card.
 *
 * In front of the port's own are those that are counted for QPs, in sets, of
 * which a QP counts in one: the core adds the sets that it knows to the port's,
 * which is that of the other QPs.
 */
#include <linux/ctype.h>
#include <net/netlink.h>

#include "card.h"

#define RHCA_DIAG_MAX_COUNTERS	4096
/* Of the port, and bytes that they may have in a netlink message. */
#define RHCA_DIAG_MAX_PORT	96
#define RHCA_DIAG_PORT_ROOM	3600
#define RHCA_DIAG_MAX_ETH	60
#define RHCA_DIAG_MAX_QP	32	/* less than there is room for */
#define RHCA_DIAG_ETH_PREFIX	"ethernet_"

/*
 * Ask for values or names (@what) from number @first on. Returns how many
 * came, at least one, or an errno; *@total: how many there are.
 */
static int rhca_diag_query(struct rhca_dev *dev,
			   const struct rhca_mailbox *box, u8 what, u32 first,
			   u32 *total)
{
	const struct rdma_hca_diag *diag = box->buf;
	u32 room = what == RDMA_HCA_DIAG_NAMES ? RDMA_HCA_DIAG_MAX_NAMES :
						 RDMA_HCA_DIAG_MAX_VALUES;
	u32 count;
	int err;

	err = rhca_cmd(dev, RDMA_HCA_CMD_DIAG_RPRT, what, first, 0, box->dma);
	if (err)
		return err;
	*total = be32_to_cpu(diag->total);
	count = be32_to_cpu(diag->count);
	if (*total > RHCA_DIAG_MAX_COUNTERS || first >= *total || !count ||
	    count > room || count > *total - first)
		return -EPROTO;
	return count;
}

/* What a counter takes in a netlink message. */
static u32 rhca_diag_netlink_size(const char *name)
{
	return nla_total_size(nla_total_size(strlen(name) + 1) +
			      nla_total_size_64bit(sizeof(u64)));
}

/* A name of ASCII that sysfs can have (isalnum() knows Latin letters, too). */
static bool rhca_diag_name_ok(const char *name)
{
	const char *p;

	for (p = name; p < name + RDMA_HCA_DIAG_NAME_SIZE; p++) {
		if (!*p)
			return p > name;
		if (!isascii(*p) || (!isalnum(*p) && *p != '_'))
			return false;
	}
	return false;
}

static bool rhca_diag_of_port(const char *name)
{
	return strstarts(name, "port_") || strstarts(name, "link_") ||
	       strstr(name, "fault_all");
}

/* Of the port's, if there is room. */
static void rhca_diag_add_port(struct rhca_diag *diag, const char *name,
			       u32 number)
{
	u32 size = rhca_diag_netlink_size(name);
	struct rdma_stat_desc *desc = &diag->port_descs[diag->num_port];

	if (diag->num_port == RHCA_DIAG_MAX_PORT ||
	    diag->port_room + size > RHCA_DIAG_PORT_ROOM)
		return;
	desc->name = name;
	desc->priv = (void *)(uintptr_t)number;
	diag->port_room += size;
	diag->num_port++;
}

static int rhca_diag_alloc(struct rhca_diag *diag, u32 num)
{
	diag->num = num;
	diag->names = kvcalloc(num, sizeof(*diag->names), GFP_KERNEL);
	diag->descs = kvcalloc(num, sizeof(*diag->descs), GFP_KERNEL);
	diag->eth_descs = kcalloc(RHCA_DIAG_MAX_ETH, sizeof(*diag->eth_descs),
				  GFP_KERNEL);
	return diag->names && diag->descs && diag->eth_descs ? 0 : -ENOMEM;
}

/* Take @count names that came; the first is that of counter @first. */
static int rhca_diag_take_names(struct rhca_diag *diag,
				const struct rdma_hca_diag *from, u32 first,
				u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		char *name = diag->names[first + i];
		struct rdma_stat_desc *desc = &diag->descs[first + i];

		memcpy(name, from->name[i], RDMA_HCA_DIAG_NAME_SIZE);
		if (!rhca_diag_name_ok(name))
			return -EPROTO;
		desc->name = name;
		desc->priv = (void *)(uintptr_t)(first + i);
		if (rhca_diag_of_port(name))
			rhca_diag_add_port(diag, name, first + i);
		if (strstarts(name, RHCA_DIAG_ETH_PREFIX) &&
		    diag->num_eth < RHCA_DIAG_MAX_ETH)
			diag->eth_descs[diag->num_eth++] = *desc;
	}
	return 0;
}

static int rhca_diag_get_names(struct rhca_dev *dev,
			       const struct rhca_mailbox *box)
{
	struct rhca_diag *diag = &dev->diag;
	u32 first = 0, total;
	int count, err;

	do {
		count = rhca_diag_query(dev, box, RDMA_HCA_DIAG_NAMES, first,
					&total);
		if (count < 0)
			return count;
		err = first ? 0 : rhca_diag_alloc(diag, total);
		if (!err && total != diag->num)
			err = -EPROTO;
		if (!err)
			err = rhca_diag_take_names(diag, box->buf, first,
						   count);
		if (err)
			return err;
		first += count;
	} while (first < total);
	return 0;
}

/* One command brings all of a set: values, or names. */
static int rhca_diag_query_set(struct rhca_dev *dev,
			       const struct rhca_mailbox *box, u8 what,
			       u32 number)
{
	const struct rdma_hca_diag *diag = box->buf;
	u32 count;
	int err;

	err = rhca_cmd(dev, RDMA_HCA_CMD_QUERY_QP_COUNTERS, what, number, 0,
		       box->dma);
	if (err)
		return err;
	count = be32_to_cpu(diag->count);
	if (!count || count > RHCA_DIAG_MAX_QP ||
	    be32_to_cpu(diag->total) != count)
		return -EPROTO;
	return count;
}

static int rhca_diag_get_qp_names(struct rhca_dev *dev,
				  const struct rhca_mailbox *box)
{
	const struct rdma_hca_diag *from = box->buf;
	struct rhca_diag *diag = &dev->diag;
	int count, i;

	if (!rhca_has_qp_counters(dev))
		return 0;
	count = rhca_diag_query_set(dev, box, RDMA_HCA_DIAG_NAMES, 0);
	if (count < 0)
		return count;
	diag->qp_names = kmemdup(from->name, count * sizeof(from->name[0]),
				 GFP_KERNEL);
	if (!diag->qp_names)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (!rhca_diag_name_ok(diag->qp_names[i]))
			return -EPROTO;
		rhca_diag_add_port(diag, diag->qp_names[i], i);
	}
	diag->num_qp = count;
	return 0;
}

static int rhca_diag_take_set(struct rhca_dev *dev,
			      const struct rhca_mailbox *box, u32 number,
			      bool clear, struct rdma_hw_stats *stats)
{
	u8 what = clear ? RDMA_HCA_QP_COUNTERS_CLEAR : RDMA_HCA_DIAG_VALUES;
	const struct rdma_hca_diag *from = box->buf;
	int count, i;

	count = rhca_diag_query_set(dev, box, what, number);
	if (count < 0)
		return count;
	if (count != dev->diag.num_qp)
		return -EPROTO;
	for (i = 0; i < count; i++)
		stats->value[i] = rhca_get64(from->value[i].h,
					     from->value[i].l);
	return 0;
}

int rhca_diag_read_set(struct rhca_dev *dev, u32 number, bool clear,
		       struct rdma_hw_stats *stats)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_diag_take_set(dev, &box, number, clear, stats);
	rhca_mailbox_free(dev, &box);
	return err;
}

struct rdma_hw_stats *rhca_diag_alloc_set(const struct rhca_dev *dev)
{
	const struct rhca_diag *diag = &dev->diag;
	struct rdma_hw_stats *stats;

	/* The core goes by the numbers that the port's have. */
	stats = rdma_alloc_hw_stats_struct(diag->port_descs, diag->num_port,
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	if (stats)
		bitmap_set(stats->is_disabled, diag->num_qp,
			   diag->num_port - diag->num_qp);
	return stats;
}

static struct rdma_hw_stats *
rhca_alloc_hw_device_stats(struct ib_device *ibdev)
{
	const struct rhca_diag *diag = &to_rhca(ibdev)->diag;

	return rdma_alloc_hw_stats_struct(diag->descs, diag->num,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static struct rdma_hw_stats *rhca_alloc_hw_port_stats(struct ib_device *ibdev,
						      u32 port)
{
	const struct rhca_diag *diag = &to_rhca(ibdev)->diag;

	return rdma_alloc_hw_stats_struct(diag->port_descs, diag->num_port,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* Take counter @number for @stats, whose next one is *@slot. */
static void rhca_diag_take_value(struct rdma_hw_stats *stats, int *slot,
				 u32 number, u64 value)
{
	if (*slot < stats->num_counters &&
	    (uintptr_t)stats->descs[*slot].priv == number)
		stats->value[(*slot)++] = value;
}

/* For @stats from number @slot on. */
static int rhca_diag_get_values(struct rhca_dev *dev,
				const struct rhca_mailbox *box,
				struct rdma_hw_stats *stats, int slot)
{
	const struct rdma_hca_diag *diag = box->buf;
	u32 first = 0, total;
	int count, i;

	do {
		count = rhca_diag_query(dev, box, RDMA_HCA_DIAG_VALUES, first,
					&total);
		if (count < 0)
			return count;
		if (total != dev->diag.num)
			return -EPROTO;
		for (i = 0; i < count; i++)
			rhca_diag_take_value(stats, &slot, first + i,
					     rhca_get64(diag->value[i].h,
							diag->value[i].l));
		first += count;
	} while (first < total);
	return 0;
}

/*
 * @port 0: those of the device. Commands bring all, so that @index, the one that
 * is wanted, is of no use.
 */
static int rhca_get_hw_stats(struct ib_device *ibdev,
			     struct rdma_hw_stats *stats, u32 port, int index)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	int num_qp = port ? dev->diag.num_qp : 0;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	if (num_qp)
		err = rhca_diag_take_set(dev, &box, 0, false, stats);
	if (!err)
		err = rhca_diag_get_values(dev, &box, stats, num_qp);
	rhca_mailbox_free(dev, &box);
	return err ? err : stats->num_counters;
}

const char *rhca_diag_eth_name(const struct rhca_dev *dev, u32 i)
{
	return dev->diag.eth_descs[i].name + strlen(RHCA_DIAG_ETH_PREFIX);
}

int rhca_diag_read_eth(struct rhca_dev *dev, u64 *value)
{
	const struct rhca_diag *diag = &dev->diag;
	struct rdma_hw_stats *stats;
	int count;

	stats = rdma_alloc_hw_stats_struct(diag->eth_descs, diag->num_eth,
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	if (!stats)
		return -ENOMEM;
	count = rhca_get_hw_stats(&dev->ibdev, stats, 0, 0);
	if (count > 0)
		memcpy(value, stats->value, count * sizeof(*value));
	rdma_free_hw_stats_struct(stats);
	return min(count, 0);
}

static const struct ib_device_ops rhca_diag_ops = {
	.alloc_hw_device_stats = rhca_alloc_hw_device_stats,
	.alloc_hw_port_stats = rhca_alloc_hw_port_stats,
	.get_hw_stats = rhca_get_hw_stats,
};

void rhca_diag_cleanup(struct rhca_dev *dev)
{
	kfree(dev->diag.eth_descs);
	kfree(dev->diag.port_descs);
	kfree(dev->diag.qp_names);
	kvfree(dev->diag.descs);
	kvfree(dev->diag.names);
	memset(&dev->diag, 0, sizeof(dev->diag));
}

static int rhca_diag_get_all_names(struct rhca_dev *dev,
				   const struct rhca_mailbox *box)
{
	int err;

	dev->diag.port_descs = kcalloc(RHCA_DIAG_MAX_PORT,
				       sizeof(*dev->diag.port_descs),
				       GFP_KERNEL);
	if (!dev->diag.port_descs)
		return -ENOMEM;
	err = rhca_diag_get_qp_names(dev, box);
	return err ? err : rhca_diag_get_names(dev, box);
}

/* A device without counters is a device: they are left out with a word. */
void rhca_diag_init(struct rhca_dev *dev)
{
	struct rhca_mailbox box;
	int err;

	if (!(dev->caps.features & RDMA_HCA_FEATURE_DIAG))
		return;
	err = rhca_mailbox_alloc(dev, &box);
	if (!err) {
		err = rhca_diag_get_all_names(dev, &box);
		rhca_mailbox_free(dev, &box);
	}
	/* The RDMA core refuses an empty list. */
	if (!err && !dev->diag.num_port)
		err = -EPROTO;
	if (err) {
		dev_warn(&dev->pdev->dev, "no counters: %d\n", err);
		rhca_diag_cleanup(dev);
		return;
	}
	ib_set_device_ops(&dev->ibdev, &rhca_diag_ops);
}
