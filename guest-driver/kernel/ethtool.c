// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What an operator sees of the Ethernet interface, and can set. */
#include <linux/ethtool.h>

#include "compat.h"
#include "eth.h"

/* --- what it is --------------------------------------------------------- */

static void rhca_get_drvinfo(struct net_device *ndev,
			     struct ethtool_drvinfo *info)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	u32 version = eth->dev->caps.fw_version;

	strscpy(info->driver, RHCA_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(eth->pci->pdev),
		sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u",
		 version >> 16, version & 0xffff);
}

static int rhca_get_link_ksettings(struct net_device *ndev,
				   struct ethtool_link_ksettings *settings)
{
	bool link = netif_carrier_ok(ndev);

	settings->base.speed = link ? READ_ONCE(rhca_eth_of(ndev)->speed) :
				      SPEED_UNKNOWN;
	settings->base.duplex = link ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	if (rhca_eth_of(ndev)->can_pause) {
		ethtool_link_ksettings_add_link_mode(settings, supported,
						     Pause);
		ethtool_link_ksettings_add_link_mode(settings, supported,
						     Asym_Pause);
	}
	return 0;
}

/* --- rings -------------------------------------------------------------- */

static int rhca_eth_reopen(struct rhca_eth *eth, u8 num)
{
	return rhca_failed(eth->dev) ? -EIO : rhca_rings_exchange(eth, num);
}

static void rhca_get_ringparam(struct net_device *ndev,
			       struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);

	ring->tx_max_pending = 1 << RDMA_HCA_ETH_MAX_LOG_RING;
	ring->rx_max_pending = 1 << RDMA_HCA_ETH_MAX_LOG_RING;
	ring->tx_pending = 1 << eth->log_tx;
	ring->rx_pending = 1 << eth->log_rx;
}

static u8 rhca_log_ring(u32 pending, u8 min)
{
	return max_t(u8, order_base_2(pending), min);
}

static int rhca_set_ringparam(struct net_device *ndev,
			      struct ethtool_ringparam *ring,
			      struct kernel_ethtool_ringparam *kernel_ring,
			      struct netlink_ext_ack *extack)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	u8 log_tx = rhca_log_ring(ring->tx_pending, RHCA_ETH_MIN_LOG_TX);
	u8 log_rx = rhca_log_ring(ring->rx_pending, RHCA_ETH_MIN_LOG_RX);
	int err = 0;

	if (ring->rx_mini_pending || ring->rx_jumbo_pending)
		return -EINVAL;
	swap(eth->log_tx, log_tx);
	swap(eth->log_rx, log_rx);
	if (netif_running(ndev))
		err = rhca_eth_reopen(eth, eth->num_queues);
	if (err) {
		eth->log_tx = log_tx;
		eth->log_rx = log_rx;
	}
	return err;
}

/* A channel is a pair of rings. */
static void rhca_get_channels(struct net_device *ndev,
			      struct ethtool_channels *channels)
{
	const struct rhca_eth *eth = rhca_eth_of(ndev);

	channels->max_combined = eth->max_queues;
	channels->combined_count = eth->num_queues;
}

static int rhca_set_channels(struct net_device *ndev,
			     struct ethtool_channels *channels)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	struct rhca_rss rss = eth->rss;
	u8 old = eth->num_queues;
	u8 num = channels->combined_count;
	int err;

	if (num == old)
		return 0;
	/* The table is that of the rings which the card gets. */
	eth->num_queues = num;
	rhca_rss_spread(eth);
	if (netif_running(ndev)) {
		eth->num_queues = old;
		err = rhca_eth_reopen(eth, num);
	} else {
		err = netif_set_real_num_queues(ndev, num, num);
	}
	if (err) {
		eth->num_queues = old;
		eth->rss = rss;
	}
	return err;
}

/* --- interrupts --------------------------------------------------------- */

static void rhca_read_coalesce(const struct rhca_queue *queue,
			       struct ethtool_coalesce *coalesce)
{
	coalesce->tx_coalesce_usecs = queue->tx_coalesce.usecs;
	coalesce->tx_max_coalesced_frames = queue->tx_coalesce.frames;
	coalesce->rx_coalesce_usecs = queue->rx_coalesce.usecs;
	coalesce->rx_max_coalesced_frames = queue->rx_coalesce.frames;
}

/* What waits for frames alone might wait for ever. */
static int rhca_take_coalesce(struct rhca_coalesce *to, u32 usecs, u32 frames)
{
	if (usecs > U16_MAX || frames > U16_MAX || (frames > 1 && !usecs))
		return -EINVAL;
	to->usecs = usecs;
	to->frames = frames;
	return 0;
}

static int rhca_write_coalesce(struct rhca_queue *queue,
			       const struct ethtool_coalesce *coalesce)
{
	struct rhca_coalesce tx, rx;
	int err;

	err = rhca_take_coalesce(&tx, coalesce->tx_coalesce_usecs,
				 coalesce->tx_max_coalesced_frames);
	if (!err)
		err = rhca_take_coalesce(&rx, coalesce->rx_coalesce_usecs,
					 coalesce->rx_max_coalesced_frames);
	if (err)
		return err;
	swap(queue->tx_coalesce, tx);
	swap(queue->rx_coalesce, rx);
	err = rhca_rings_set_coalesce(queue);
	if (err) {
		queue->tx_coalesce = tx;
		queue->rx_coalesce = rx;
	}
	return err;
}

static bool rhca_has_coalesce(const struct rhca_eth *eth)
{
	return eth->dev->caps.features & RDMA_HCA_FEATURE_ETH_MODERATION;
}

static int rhca_get_coalesce(struct net_device *ndev,
			     struct ethtool_coalesce *coalesce,
			     struct kernel_ethtool_coalesce *kernel_coalesce,
			     struct netlink_ext_ack *extack)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);

	if (!rhca_has_coalesce(eth))
		return -EOPNOTSUPP;
	rhca_read_coalesce(&eth->queue[0], coalesce);
	return 0;
}

static int rhca_set_coalesce(struct net_device *ndev,
			     struct ethtool_coalesce *coalesce,
			     struct kernel_ethtool_coalesce *kernel_coalesce,
			     struct netlink_ext_ack *extack)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	int err = rhca_has_coalesce(eth) ? 0 : -EOPNOTSUPP;
	u8 i;

	/* Also of queues that come later. */
	for (i = 0; !err && i < RDMA_HCA_ETH_MAX_QUEUES; i++)
		err = rhca_write_coalesce(&eth->queue[i], coalesce);
	return err;
}

/* A queue that is in use, or an errno. */
static struct rhca_queue *rhca_coalesce_queue(struct net_device *ndev, u32 index)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);

	if (!rhca_has_coalesce(eth))
		return ERR_PTR(-EOPNOTSUPP);
	if (index >= eth->num_queues)
		return ERR_PTR(-EINVAL);
	return &eth->queue[index];
}

static int rhca_get_queue_coalesce(struct net_device *ndev, u32 index,
				   struct ethtool_coalesce *coalesce)
{
	struct rhca_queue *queue = rhca_coalesce_queue(ndev, index);

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	rhca_read_coalesce(queue, coalesce);
	return 0;
}

static int rhca_set_queue_coalesce(struct net_device *ndev, u32 index,
				   struct ethtool_coalesce *coalesce)
{
	struct rhca_queue *queue = rhca_coalesce_queue(ndev, index);

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	return rhca_write_coalesce(queue, coalesce);
}

/* --- flow control of the link ------------------------------------------- */

static int rhca_put_pause(struct rhca_eth *eth, struct rhca_pause pause)
{
	u64 in = (pause.rx ? RDMA_HCA_PAUSE_RX : 0) |
		 (pause.tx ? RDMA_HCA_PAUSE_TX : 0);

	return rhca_cmd(eth->dev, RDMA_HCA_CMD_SET_PAUSE, 0, 0, in, 0);
}

/* A card that begins has none. */
int rhca_pause_restore(struct rhca_eth *eth)
{
	if (!eth->pause.rx && !eth->pause.tx)
		return 0;
	return rhca_put_pause(eth, eth->pause);
}

static void rhca_get_pauseparam(struct net_device *ndev,
				struct ethtool_pauseparam *param)
{
	const struct rhca_eth *eth = rhca_eth_of(ndev);

	param->autoneg = AUTONEG_DISABLE;
	param->rx_pause = eth->pause.rx;
	param->tx_pause = eth->pause.tx;
}

static int rhca_set_pauseparam(struct net_device *ndev,
			       struct ethtool_pauseparam *param)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	struct rhca_pause pause = {
		.rx = param->rx_pause,
		.tx = param->tx_pause,
	};
	int err;

	if (!eth->can_pause || param->autoneg)
		return -EOPNOTSUPP;
	err = rhca_put_pause(eth, pause);
	if (!err)
		eth->pause = pause;
	return err;
}

/* --- receive-side scaling ----------------------------------------------- */

/* Ports of UDP are not looked at, unless a user wants that: fragments have none. */
#define RHCA_RSS_DEFAULT	(RDMA_HCA_RSS_IPV4 | RDMA_HCA_RSS_TCP_IPV4 | \
				 RDMA_HCA_RSS_IPV6 | RDMA_HCA_RSS_TCP_IPV6)

void rhca_rss_init(struct rhca_eth *eth)
{
	eth->rss.types = RHCA_RSS_DEFAULT;
	netdev_rss_key_fill(eth->rss.key, sizeof(eth->rss.key));
}

void rhca_rss_spread(struct rhca_eth *eth)
{
	bool by_user = netif_is_rxfh_configured(eth->ndev);
	u8 *table = eth->rss.table;
	u32 i;

	for (i = 0; i < RDMA_HCA_RSS_TABLE_SIZE; i++)
		if (!by_user || table[i] >= eth->num_queues)
			table[i] = ethtool_rxfh_indir_default(i,
							      eth->num_queues);
}

static u32 rhca_get_rxfh_key_size(struct net_device *ndev)
{
	return RDMA_HCA_RSS_KEY_SIZE;
}

static u32 rhca_get_rxfh_indir_size(struct net_device *ndev)
{
	return RDMA_HCA_RSS_TABLE_SIZE;
}

static bool rhca_has_rss(const struct rhca_eth *eth)
{
	return eth->dev->caps.features & RDMA_HCA_FEATURE_ETH_RSS;
}

/* @table, @key: NULL if not wanted. */
static int rhca_read_rss(struct net_device *ndev, u32 *table, u8 *key)
{
	const struct rhca_eth *eth = rhca_eth_of(ndev);
	u32 i;

	if (!rhca_has_rss(eth))
		return -EOPNOTSUPP;
	for (i = 0; table && i < RDMA_HCA_RSS_TABLE_SIZE; i++)
		table[i] = eth->rss.table[i];
	if (key)
		memcpy(key, eth->rss.key, sizeof(eth->rss.key));
	return 0;
}

static int rhca_set_rss(struct rhca_eth *eth, const struct rhca_rss *rss)
{
	struct rhca_rss old = eth->rss;
	int err;

	if (!rhca_has_rss(eth))
		return -EOPNOTSUPP;
	eth->rss = *rss;
	err = rhca_rings_set_rss(eth);
	if (err)
		eth->rss = old;
	return err;
}

/* @table, @key: NULL if they stay. */
static int rhca_write_rss(struct net_device *ndev, const u32 *table,
			  const u8 *key, u8 hfunc)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	struct rhca_rss rss = eth->rss;
	u32 i;

	if (hfunc != ETH_RSS_HASH_NO_CHANGE && hfunc != ETH_RSS_HASH_TOP)
		return -EOPNOTSUPP;
	for (i = 0; table && i < RDMA_HCA_RSS_TABLE_SIZE; i++)
		rss.table[i] = table[i];
	if (key)
		memcpy(rss.key, key, sizeof(rss.key));
	return rhca_set_rss(eth, &rss);
}

#ifdef RHCA_HAS_RXFH_PARAM
static int rhca_get_rxfh(struct net_device *ndev,
			 struct ethtool_rxfh_param *rxfh)
{
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	return rhca_read_rss(ndev, rxfh->indir, rxfh->key);
}

static int rhca_set_rxfh(struct net_device *ndev,
			 struct ethtool_rxfh_param *rxfh,
			 struct netlink_ext_ack *extack)
{
	return rhca_write_rss(ndev, rxfh->indir, rxfh->key, rxfh->hfunc);
}
#else
static int rhca_get_rxfh(struct net_device *ndev, u32 *table, u8 *key,
			 u8 *hfunc)
{
	if (hfunc)
		*hfunc = ETH_RSS_HASH_TOP;
	return rhca_read_rss(ndev, table, key);
}

static int rhca_set_rxfh(struct net_device *ndev, const u32 *table,
			 const u8 *key, const u8 hfunc)
{
	return rhca_write_rss(ndev, table, key, hfunc);
}
#endif

#define RHCA_RXH_IP	(RXH_IP_SRC | RXH_IP_DST)
#define RHCA_RXH_PORTS	(RHCA_RXH_IP | RXH_L4_B_0_1 | RXH_L4_B_2_3)

/* How the card calls a kind of flow: by its ports if they count, and without. */
static const struct rhca_flow_type {
	u32 flow_type;
	u32 ports;		/* 0: it has none */
	u32 addresses;
} rhca_flow_types[] = {
	{ TCP_V4_FLOW, RDMA_HCA_RSS_TCP_IPV4, RDMA_HCA_RSS_IPV4 },
	{ UDP_V4_FLOW, RDMA_HCA_RSS_UDP_IPV4, RDMA_HCA_RSS_IPV4 },
	{ IPV4_FLOW, 0, RDMA_HCA_RSS_IPV4 },
	{ TCP_V6_FLOW, RDMA_HCA_RSS_TCP_IPV6, RDMA_HCA_RSS_IPV6 },
	{ UDP_V6_FLOW, RDMA_HCA_RSS_UDP_IPV6, RDMA_HCA_RSS_IPV6 },
	{ IPV6_FLOW, 0, RDMA_HCA_RSS_IPV6 },
};

/* Those of which it does not know more have the addresses alone. */
static struct rhca_flow_type rhca_flow_type_of(u32 flow_type)
{
	struct rhca_flow_type other = { .flow_type = flow_type };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rhca_flow_types); i++)
		if (rhca_flow_types[i].flow_type == flow_type)
			return rhca_flow_types[i];
	switch (flow_type) {
	case SCTP_V4_FLOW:
	case AH_ESP_V4_FLOW:
	case AH_V4_FLOW:
	case ESP_V4_FLOW:
		other.addresses = RDMA_HCA_RSS_IPV4;
		break;
	case SCTP_V6_FLOW:
	case AH_ESP_V6_FLOW:
	case AH_V6_FLOW:
	case ESP_V6_FLOW:
		other.addresses = RDMA_HCA_RSS_IPV6;
		break;
	}
	return other;
}

static int rhca_get_hash_fields(struct net_device *ndev,
				struct rhca_hash_fields *fields)
{
	struct rhca_flow_type type = rhca_flow_type_of(fields->flow_type);
	const struct rhca_eth *eth = rhca_eth_of(ndev);

	if (!rhca_has_rss(eth))
		return -EOPNOTSUPP;
	if (eth->rss.types & type.ports)
		fields->data = RHCA_RXH_PORTS;
	else if (eth->rss.types & type.addresses)
		fields->data = RHCA_RXH_IP;
	else
		fields->data = 0;
	return 0;
}

static int rhca_set_hash_fields(struct net_device *ndev,
				const struct rhca_hash_fields *fields,
				struct netlink_ext_ack *extack)
{
	struct rhca_flow_type type = rhca_flow_type_of(fields->flow_type);
	struct rhca_eth *eth = rhca_eth_of(ndev);
	struct rhca_rss rss = eth->rss;

	if (fields->data == RHCA_RXH_PORTS && type.ports)
		rss.types |= type.ports;
	else if (fields->data == RHCA_RXH_IP && type.addresses)
		rss.types &= ~type.ports;
	else
		return -EINVAL;
	return rhca_set_rss(eth, &rss);
}

static u32 rhca_get_rx_ring_count(struct net_device *ndev)
{
	return rhca_eth_of(ndev)->num_queues;
}

#ifndef RHCA_HAS_RX_RING_COUNT
static int rhca_get_rxnfc(struct net_device *ndev, struct ethtool_rxnfc *nfc,
			  u32 *rules)
{
	switch (nfc->cmd) {
	case ETHTOOL_GRXRINGS:
		nfc->data = rhca_get_rx_ring_count(ndev);
		return 0;
#ifndef RHCA_HAS_RXFH_FIELDS
	case ETHTOOL_GRXFH:
		return rhca_get_hash_fields(ndev, nfc);
#endif
	default:
		return -EOPNOTSUPP;
	}
}
#endif

#ifndef RHCA_HAS_RXFH_FIELDS
static int rhca_set_rxnfc(struct net_device *ndev, struct ethtool_rxnfc *nfc)
{
	return nfc->cmd == ETHTOOL_SRXFH ?
		       rhca_set_hash_fields(ndev, nfc, NULL) : -EOPNOTSUPP;
}
#endif

/* --- statistics --------------------------------------------------------- */

/* The card's first, then those of each queue, which the driver counts. */
#define RHCA_STAT(field)						\
	{ #field, offsetof(struct rhca_queue_stats, field) }
static const struct {
	const char *name;
	size_t offset;
} rhca_queue_stats[] = {
	RHCA_STAT(rx_packets),
	RHCA_STAT(rx_bytes),
	RHCA_STAT(rx_no_memory),
	RHCA_STAT(tx_packets),
	RHCA_STAT(tx_bytes),
	RHCA_STAT(tx_tso),
	RHCA_STAT(tx_stopped),
	RHCA_STAT(interrupts),
	RHCA_STAT(lost_interrupts),
};

static int rhca_get_sset_count(struct net_device *ndev, int sset)
{
	const struct rhca_eth *eth = rhca_eth_of(ndev);

	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return eth->dev->diag.num_eth +
	       eth->num_queues * ARRAY_SIZE(rhca_queue_stats);
}

static void rhca_get_strings(struct net_device *ndev, u32 sset, u8 *data)
{
	const struct rhca_eth *eth = rhca_eth_of(ndev);
	u32 i, stat;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < eth->dev->diag.num_eth; i++, data += ETH_GSTRING_LEN)
		strscpy(data, rhca_diag_eth_name(eth->dev, i), ETH_GSTRING_LEN);
	for (i = 0; i < eth->num_queues; i++)
		for (stat = 0; stat < ARRAY_SIZE(rhca_queue_stats); stat++)
			ethtool_sprintf(&data, "queue_%u_%s", i,
					rhca_queue_stats[stat].name);
}

static u64 *rhca_put_queue_stats(u64 *data, const struct rhca_queue *queue)
{
	const void *stats = &queue->stats;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rhca_queue_stats); i++)
		*data++ = READ_ONCE(*(u64 *)(stats +
					     rhca_queue_stats[i].offset));
	return data;
}

static void rhca_get_ethtool_stats(struct net_device *ndev,
				   struct ethtool_stats *stats, u64 *data)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	int err = rhca_diag_read_eth(eth->dev, data);
	u8 i;

	if (err)
		netdev_warn(ndev, "no counters: %d\n", err);
	data += eth->dev->diag.num_eth;
	for (i = 0; i < eth->num_queues; i++)
		data = rhca_put_queue_stats(data, &eth->queue[i]);
}

/* That of the card's counters which is called so, if it has one. */
static void rhca_take_stat(const struct rhca_dev *dev, const u64 *value,
			   const char *name, u64 *stat)
{
	u32 i;

	for (i = 0; i < dev->diag.num_eth; i++)
		if (!strcmp(rhca_diag_eth_name(dev, i), name))
			*stat = value[i];
}

static void rhca_get_pause_stats(struct net_device *ndev,
				 struct ethtool_pause_stats *stats)
{
	struct rhca_dev *dev = rhca_eth_of(ndev)->dev;
	u64 *value;

	value = kcalloc(dev->diag.num_eth, sizeof(*value), GFP_KERNEL);
	if (!ZERO_OR_NULL_PTR(value) && !rhca_diag_read_eth(dev, value)) {
		rhca_take_stat(dev, value, "rx_pause", &stats->rx_pause_frames);
		rhca_take_stat(dev, value, "tx_pause", &stats->tx_pause_frames);
	}
	kfree(value);
}

const struct ethtool_ops rhca_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS |
				     ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo = rhca_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = rhca_get_link_ksettings,
	.get_ringparam = rhca_get_ringparam,
	.set_ringparam = rhca_set_ringparam,
	.get_channels = rhca_get_channels,
	.set_channels = rhca_set_channels,
	.get_coalesce = rhca_get_coalesce,
	.set_coalesce = rhca_set_coalesce,
	.get_per_queue_coalesce = rhca_get_queue_coalesce,
	.set_per_queue_coalesce = rhca_set_queue_coalesce,
	.get_pauseparam = rhca_get_pauseparam,
	.set_pauseparam = rhca_set_pauseparam,
	.get_pause_stats = rhca_get_pause_stats,
#ifdef RHCA_HAS_RX_RING_COUNT
	.get_rx_ring_count = rhca_get_rx_ring_count,
#else
	.get_rxnfc = rhca_get_rxnfc,
#endif
#ifdef RHCA_HAS_RXFH_FIELDS
	.get_rxfh_fields = rhca_get_hash_fields,
	.set_rxfh_fields = rhca_set_hash_fields,
#else
	.set_rxnfc = rhca_set_rxnfc,
#endif
	.get_rxfh_key_size = rhca_get_rxfh_key_size,
	.get_rxfh_indir_size = rhca_get_rxfh_indir_size,
	.get_rxfh = rhca_get_rxfh,
	.set_rxfh = rhca_set_rxfh,
	.get_ts_info = ethtool_op_get_ts_info,
	.get_sset_count = rhca_get_sset_count,
	.get_strings = rhca_get_strings,
	.get_ethtool_stats = rhca_get_ethtool_stats,
};
