// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The Ethernet interface of a RoCE card: a net_device on the same PCI
 * function, which carries what is not RDMA, and whose addresses are the GIDs.
 * Its rings are in ring.c.
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>

#include "eth.h"
#include "netdev.h"
#include "port.h"

#define RHCA_ETH_FEATURES \
	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA)

static struct rhca_eth *rhca_eth_of(struct net_device *ndev)
{
	return netdev_priv(ndev);
}

/* --- the link ----------------------------------------------------------- */

/* Mbit/s of one lane, by the InfiniBand code of its speed. */
static u32 rhca_lane_speed(u32 code)
{
	switch (code) {
	case IB_SPEED_DDR:
		return 5000;
	case IB_SPEED_QDR:
	case IB_SPEED_FDR10:
		return 10000;
	case IB_SPEED_FDR:
		return 14000;
	case IB_SPEED_EDR:
		return 25000;
	case IB_SPEED_HDR:
		return 50000;
	default:
		return 2500;
	}
}

static void rhca_eth_take_port(struct rhca_eth *eth,
			       const struct rdma_hca_port *port)
{
	u32 speed = be32_get_bits(port->mtu_width_speed, RDMA_HCA_PORT_SPEED);
	u32 width = be32_get_bits(port->mtu_width_speed, RDMA_HCA_PORT_WIDTH);
	int lanes = ib_width_enum_to_int(width);

	WRITE_ONCE(eth->speed, rhca_lane_speed(speed) * max(lanes, 1));
	if (be32_get_bits(port->state, RDMA_HCA_PORT_STATE) == IB_PORT_ACTIVE)
		netif_carrier_on(eth->ndev);
	else
		netif_carrier_off(eth->ndev);
}

/* The card is asked in turn, so that the last answer is the newest. */
void rhca_eth_update_link(struct rhca_dev *dev)
{
	struct rdma_hca_port port;

	mutex_lock(&dev->link_lock);
	if (dev->ndev && !rhca_read_port(dev, &port))
		rhca_eth_take_port(rhca_eth_of(dev->ndev), &port);
	mutex_unlock(&dev->link_lock);
	rhca_tell_port(dev);
}

/* --- what is received --------------------------------------------------- */

static void rhca_put_mac(__be32 *high, __be32 *low, const u8 *mac)
{
	*high = cpu_to_be32(rhca_mac_high(mac));
	*low = cpu_to_be32((u32)rhca_mac_low(mac) << 16);
}

/* Caller holds the lock of the address lists. */
static void rhca_put_rx_filter(struct net_device *ndev,
			       struct rdma_hca_rx_mode *mode)
{
	struct netdev_hw_addr *addr;
	u32 flags = 0, count = 0;

	if (ndev->flags & IFF_PROMISC)
		flags |= RDMA_HCA_RX_MODE_PROMISC;
	if ((ndev->flags & IFF_ALLMULTI) ||
	    netdev_mc_count(ndev) > RDMA_HCA_RX_MODE_MAX_MULTICAST)
		flags |= RDMA_HCA_RX_MODE_ALLMULTI;
	else
		netdev_for_each_mc_addr(addr, ndev)
			ether_addr_copy(mode->multicast[count++], addr->addr);
	mode->flags = cpu_to_be32(flags);
	mode->count = cpu_to_be32(count);
}

/* Caller holds RTNL. */
static int rhca_eth_set_filter(struct rhca_eth *eth, const u8 *mac)
{
	struct rdma_hca_rx_mode *mode;
	struct rhca_mailbox box;
	int err;

	BUILD_BUG_ON(struct_size(mode, multicast,
				 RDMA_HCA_RX_MODE_MAX_MULTICAST) >
		     RDMA_HCA_MAILBOX_SIZE);
	err = rhca_mailbox_alloc(eth->dev, &box);
	if (err)
		return err;
	mode = box.buf;
	rhca_put_mac(&mode->mac_h, &mode->mac_l, mac);
	netif_addr_lock_bh(eth->ndev);
	rhca_put_rx_filter(eth->ndev, mode);
	netif_addr_unlock_bh(eth->ndev);
	err = rhca_cmd_in(eth->dev, RDMA_HCA_CMD_SET_RX_MODE, 0, &box);
	rhca_mailbox_free(eth->dev, &box);
	return err;
}

static void rhca_rx_mode_work(struct work_struct *work)
{
	struct rhca_eth *eth = container_of(work, struct rhca_eth, rx_mode);
	int err = 0;

	rtnl_lock();
	if (eth->dev && !rhca_failed(eth->dev))
		err = rhca_eth_set_filter(eth, eth->ndev->dev_addr);
	rtnl_unlock();
	if (err)
		netdev_warn(eth->ndev, "receive filter not set: %d\n", err);
}

/* Under a spinlock; a command sleeps. */
static void rhca_set_rx_mode(struct net_device *ndev)
{
	schedule_work(&rhca_eth_of(ndev)->rx_mode);
}

static int rhca_set_mac_address(struct net_device *ndev, void *p)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	struct sockaddr *addr = p;
	int err;

	err = eth_prepare_mac_addr_change(ndev, p);
	if (!err)
		err = rhca_eth_set_filter(eth, addr->sa_data);
	if (!err)
		eth_commit_mac_addr_change(ndev, p);
	return err;
}

/* --- open and close ----------------------------------------------------- */

static int rhca_open(struct net_device *ndev)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	int err;

	err = rhca_rings_open(eth);
	if (!err)
		rhca_tell_port(eth->dev);
	return err;
}

/* The card may have been stopped meanwhile, and its rings with it. */
static int rhca_close(struct net_device *ndev)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);

	rhca_rings_close(eth);
	if (eth->dev)
		rhca_tell_port(eth->dev);
	return 0;
}

/* New rings after something about them has changed. */
static int rhca_eth_reopen(struct rhca_eth *eth)
{
	return rhca_failed(eth->dev) ? -EIO : rhca_rings_exchange(eth);
}

static int rhca_change_mtu(struct net_device *ndev, int mtu)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	int old = ndev->mtu;
	int err = 0;

	WRITE_ONCE(ndev->mtu, mtu);
	if (netif_running(ndev))
		err = rhca_eth_reopen(eth);
	if (err)
		WRITE_ONCE(ndev->mtu, old);
	return err;
}

static void rhca_tx_timeout(struct net_device *ndev, unsigned int queue)
{
	schedule_work(&rhca_eth_of(ndev)->reset);
}

static void rhca_eth_reset_work(struct work_struct *work)
{
	struct rhca_eth *eth = container_of(work, struct rhca_eth, reset);

	rtnl_lock();
	if (eth->dev && eth->open)
		rhca_eth_reopen(eth);
	rtnl_unlock();
}

static const struct net_device_ops rhca_netdev_ops = {
	.ndo_open = rhca_open,
	.ndo_stop = rhca_close,
	.ndo_start_xmit = rhca_start_xmit,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_set_rx_mode = rhca_set_rx_mode,
	.ndo_set_mac_address = rhca_set_mac_address,
	.ndo_change_mtu = rhca_change_mtu,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_tx_timeout = rhca_tx_timeout,
};

/* --- ethtool ------------------------------------------------------------ */

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
	return 0;
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
		err = rhca_eth_reopen(eth);
	if (err) {
		eth->log_tx = log_tx;
		eth->log_rx = log_rx;
	}
	return err;
}

static int rhca_get_sset_count(struct net_device *ndev, int sset)
{
	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return rhca_eth_of(ndev)->dev->diag.num_eth;
}

static void rhca_get_strings(struct net_device *ndev, u32 sset, u8 *data)
{
	const struct rhca_dev *dev = rhca_eth_of(ndev)->dev;
	u32 i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < dev->diag.num_eth; i++, data += ETH_GSTRING_LEN)
		strscpy(data, rhca_diag_eth_name(dev, i), ETH_GSTRING_LEN);
}

static void rhca_get_ethtool_stats(struct net_device *ndev,
				   struct ethtool_stats *stats, u64 *data)
{
	int err = rhca_diag_read_eth(rhca_eth_of(ndev)->dev, data);

	if (err)
		netdev_warn(ndev, "no counters: %d\n", err);
}

static const struct ethtool_ops rhca_ethtool_ops = {
	.get_drvinfo = rhca_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = rhca_get_link_ksettings,
	.get_ringparam = rhca_get_ringparam,
	.set_ringparam = rhca_set_ringparam,
	.get_ts_info = ethtool_op_get_ts_info,
	.get_sset_count = rhca_get_sset_count,
	.get_strings = rhca_get_strings,
	.get_ethtool_stats = rhca_get_ethtool_stats,
};

/* --- life --------------------------------------------------------------- */

static int rhca_eth_describe(struct rhca_eth *eth,
			     const struct rdma_hca_port *port)
{
	u32 max_mtu = be32_get_bits(port->eth, RDMA_HCA_PORT_ETH_MAX_MTU);
	struct net_device *ndev = eth->ndev;
	u8 mac[ETH_ALEN];

	if (max_mtu < ETH_MIN_MTU || max_mtu > RDMA_HCA_ETH_MAX_MTU) {
		dev_err(&eth->pci->pdev->dev, "card's MTU makes no sense: %u\n",
			max_mtu);
		return -ENODEV;
	}
	memcpy(mac, &port->mac_h, 4);
	memcpy(mac + 4, &port->mac_l, 2);
	if (is_valid_ether_addr(mac))
		eth_hw_addr_set(ndev, mac);
	else
		eth_hw_addr_random(ndev);

	SET_NETDEV_DEV(ndev, &eth->pci->pdev->dev);
	ndev->netdev_ops = &rhca_netdev_ops;
	ndev->ethtool_ops = &rhca_ethtool_ops;
	ndev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = max_mtu;
	ndev->mtu = min_t(u32, ETH_DATA_LEN, max_mtu);
	ndev->hw_features = RHCA_ETH_FEATURES | NETIF_F_RXCSUM;
	ndev->features = ndev->hw_features;
	ndev->vlan_features = RHCA_ETH_FEATURES;
	return 0;
}

static struct rhca_eth *rhca_eth_alloc(struct rhca_pci *pci)
{
	struct net_device *ndev;
	struct rhca_eth *eth;

	ndev = alloc_etherdev(sizeof(*eth));
	if (!ndev)
		return NULL;
	ndev->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	if (!ndev->tstats) {
		free_netdev(ndev);
		return NULL;
	}
	eth = netdev_priv(ndev);
	eth->ndev = ndev;
	eth->pci = pci;
	eth->log_tx = RHCA_ETH_DEFAULT_LOG_RING;
	eth->log_rx = RHCA_ETH_DEFAULT_LOG_RING;
	INIT_WORK(&eth->rx_mode, rhca_rx_mode_work);
	INIT_WORK(&eth->reset, rhca_eth_reset_work);
	rhca_rings_init(eth);
	return eth;
}

static void rhca_eth_free(struct rhca_eth *eth)
{
	struct net_device *ndev = eth->ndev;

	cancel_work_sync(&eth->rx_mode);
	cancel_work_sync(&eth->reset);
	rhca_rings_cleanup(eth);
	free_percpu(ndev->tstats);
	free_netdev(ndev);
}

/* Connect the card that runs now with the interface, or separate them. */
static void rhca_eth_bind(struct rhca_dev *dev, struct rhca_eth *eth,
			  bool bind)
{
	eth->dev = bind ? dev : NULL;
	/* Link events come at any time. */
	mutex_lock(&dev->link_lock);
	dev->ndev = bind ? eth->ndev : NULL;
	mutex_unlock(&dev->link_lock);
}

/* The first start of the card: there is no interface yet. */
static int rhca_eth_create(struct rhca_dev *dev,
			   const struct rdma_hca_port *port)
{
	struct rhca_eth *eth;
	int err;

	eth = rhca_eth_alloc(dev->pci);
	if (!eth)
		return -ENOMEM;
	err = rhca_eth_describe(eth, port);
	if (err)
		goto free;
	netif_carrier_off(eth->ndev);
	/* Users come as soon as it is registered. */
	eth->dev = dev;
	err = register_netdev(eth->ndev);
	if (err)
		goto free;
	/* Not before: linkwatch would remember one that is never registered. */
	rhca_eth_bind(dev, eth, true);
	dev->pci->ndev = eth->ndev;
	schedule_work(&eth->rx_mode);
	return 0;

free:
	rhca_eth_free(eth);
	return err;
}

/* The card is there again. */
static int rhca_eth_attach(struct rhca_dev *dev, struct rhca_eth *eth)
{
	int err;

	rtnl_lock();
	rhca_eth_bind(dev, eth, true);
	err = rhca_eth_set_filter(eth, eth->ndev->dev_addr);
	if (!err && netif_running(eth->ndev))
		err = rhca_rings_open(eth);
	if (err)
		rhca_eth_bind(dev, eth, false);
	else
		netif_device_attach(eth->ndev);
	rtnl_unlock();
	return err;
}

int rhca_eth_start(struct rhca_dev *dev)
{
	struct net_device *ndev = dev->pci->ndev;
	struct rdma_hca_port port;
	int err;

	err = rhca_read_port(dev, &port);
	if (err)
		return err;
	if (be32_get_bits(port.link_layer, RDMA_HCA_PORT_LINK_LAYER) !=
	    RDMA_HCA_LINK_LAYER_ROCE) {
		dev_err(&dev->pdev->dev, "Ethernet, but not its link layer\n");
		return -ENODEV;
	}
	err = ndev ? rhca_eth_attach(dev, rhca_eth_of(ndev)) :
		     rhca_eth_create(dev, &port);
	if (err)
		return err;
	rhca_eth_update_link(dev);
	err = ib_device_set_netdev(&dev->ibdev, dev->ndev, RHCA_PORT);
	if (err)
		rhca_eth_stop(dev);
	return err;
}

void rhca_eth_stop(struct rhca_dev *dev)
{
	struct rhca_eth *eth = rhca_eth_of(dev->ndev);

	rtnl_lock();
	netif_device_detach(eth->ndev);
	rhca_rings_close(eth);
	rhca_eth_bind(dev, eth, false);
	netif_carrier_off(eth->ndev);
	rtnl_unlock();
}

/* Until users of the RDMA device are gone, it is there without a link. */
void rhca_eth_fail(struct rhca_dev *dev)
{
	netif_carrier_off(dev->ndev);
}

void rhca_eth_destroy(struct rhca_pci *pci)
{
	struct net_device *ndev = pci->ndev;

	if (!ndev)
		return;
	pci->ndev = NULL;
	unregister_netdev(ndev);
	rhca_eth_free(rhca_eth_of(ndev));
}
