// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The Ethernet interface of a RoCE card: a net_device on the same PCI
 * function, which carries what is not RDMA, and whose addresses are the GIDs.
 * Its rings are in ring.c, its settings in ethtool.c.
 */
#include <linux/rtnetlink.h>

#include "eth.h"
#include "netdev.h"
#include "port.h"

#define RHCA_ETH_FEATURES \
	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA)
#define RHCA_TSO_FEATURES \
	(NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN)

/* A peer that is short of buffers may stop the port for 8 s. */
#define RHCA_ETH_TX_TIMEOUT	(15 * HZ)

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
	dev->link_unknown = dev->ndev && rhca_read_port(dev, &port);
	if (dev->ndev && !dev->link_unknown)
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
	bool first;
	int err = 0;

	rtnl_lock();
	if (eth->dev && !rhca_failed(eth->dev))
		err = rhca_eth_set_filter(eth, eth->ndev->dev_addr);
	first = !eth->filter_unknown;
	eth->filter_unknown = err;
	rtnl_unlock();
	/* It is tried again each second. */
	if (err && first)
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
	return rhca_failed(eth->dev) ? -EIO :
				       rhca_rings_exchange(eth, eth->num_queues);
}

/* A card that is not there is told when it starts. */
static int rhca_eth_tell_mtu(struct rhca_eth *eth, int mtu)
{
	if (!eth->dev || rhca_failed(eth->dev))
		return 0;
	return rhca_tell_mtu(eth->dev, mtu);
}

static int rhca_change_mtu(struct net_device *ndev, int mtu)
{
	struct rhca_eth *eth = rhca_eth_of(ndev);
	int old = ndev->mtu;
	int err;

	/* Users must not hear of more than the card sends. */
	err = rhca_eth_tell_mtu(eth, max(mtu, old));
	if (err)
		return err;
	WRITE_ONCE(ndev->mtu, mtu);
	if (netif_running(ndev))
		err = rhca_eth_reopen(eth);
	if (err)
		WRITE_ONCE(ndev->mtu, old);
	return rhca_eth_tell_mtu(eth, ndev->mtu) ?: err;
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

/* Whether there is a use for the card's hashes. */
static int rhca_set_features(struct net_device *ndev,
			     netdev_features_t features)
{
	netdev_features_t old = ndev->features;
	int err;

	if (!((old ^ features) & NETIF_F_RXHASH))
		return 0;
	ndev->features = features;
	err = rhca_rings_set_rss(rhca_eth_of(ndev));
	if (err)
		ndev->features = old;
	return err;
}

static const struct net_device_ops rhca_netdev_ops = {
	.ndo_open = rhca_open,
	.ndo_stop = rhca_close,
	.ndo_start_xmit = rhca_start_xmit,
	.ndo_features_check = rhca_features_check,
	.ndo_set_features = rhca_set_features,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_set_rx_mode = rhca_set_rx_mode,
	.ndo_set_mac_address = rhca_set_mac_address,
	.ndo_change_mtu = rhca_change_mtu,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_tx_timeout = rhca_tx_timeout,
};

/* --- life --------------------------------------------------------------- */

static void rhca_eth_set_features(struct rhca_eth *eth)
{
	u32 card = eth->dev->caps.features;
	netdev_features_t features = RHCA_ETH_FEATURES;

	if (card & RDMA_HCA_FEATURE_ETH_TSO)
		features |= RHCA_TSO_FEATURES;
	eth->ndev->vlan_features = features;
	features |= NETIF_F_RXCSUM;
	if (card & RDMA_HCA_FEATURE_ETH_RSS)
		features |= NETIF_F_RXHASH;
	eth->can_pause = card & RDMA_HCA_FEATURE_ETH_PAUSE;
	eth->ndev->hw_features = features;
	eth->ndev->features = features;
}

/* @wanted queues, or as many as there are. */
static void rhca_eth_set_queues(struct rhca_eth *eth,
				const struct rdma_hca_port *port, u32 wanted)
{
	u32 card = be32_get_bits(port->eth, RDMA_HCA_PORT_ETH_QUEUES);

	eth->max_queues = clamp_t(u32, card, 1, eth->dev->num_eth_vectors);
	eth->num_queues = min_t(u32, eth->max_queues, wanted);
	rhca_rss_spread(eth);
}

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
	ndev->watchdog_timeo = RHCA_ETH_TX_TIMEOUT;
	ndev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = max_mtu;
	ndev->mtu = min_t(u32, ETH_DATA_LEN, max_mtu);
	rhca_eth_set_features(eth);
	rhca_rss_init(eth);
	rhca_eth_set_queues(eth, port, num_online_cpus());
	return netif_set_real_num_queues(ndev, eth->num_queues,
					 eth->num_queues);
}

static struct rhca_eth *rhca_eth_alloc(struct rhca_pci *pci)
{
	struct net_device *ndev;
	struct rhca_eth *eth;

	ndev = alloc_etherdev_mq(sizeof(*eth), RDMA_HCA_ETH_MAX_QUEUES);
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
	/* Users come as soon as it is registered. */
	eth->dev = dev;
	err = rhca_eth_describe(eth, port);
	if (err)
		goto free;
	netif_carrier_off(eth->ndev);
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
static int rhca_eth_attach(struct rhca_dev *dev, struct rhca_eth *eth,
			   const struct rdma_hca_port *port)
{
	int err;

	rtnl_lock();
	rhca_eth_bind(dev, eth, true);
	rhca_eth_set_queues(eth, port, eth->num_queues);
	err = rhca_eth_set_filter(eth, eth->ndev->dev_addr);
	if (!err)
		err = rhca_pause_restore(eth);
	if (!err && netif_running(eth->ndev))
		err = rhca_rings_open(eth);
	if (err)
		rhca_eth_bind(dev, eth, false);
	else
		netif_device_attach(eth->ndev);
	rtnl_unlock();
	return err;
}

/* A card that begins has the greatest. */
static int rhca_start_mtu(struct rhca_dev *dev)
{
	int err;

	rtnl_lock();
	err = rhca_tell_mtu(dev, dev->ndev->mtu);
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
	err = ndev ? rhca_eth_attach(dev, rhca_eth_of(ndev), &port) :
		     rhca_eth_create(dev, &port);
	if (err)
		return err;
	rhca_eth_update_link(dev);
	err = rhca_start_mtu(dev);
	if (!err)
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

/* --- what was lost ------------------------------------------------------ */

static u64 rhca_eth_counted(const struct rhca_dev *dev, const u64 *value,
			    const char *name)
{
	u32 i;

	for (i = 0; i < dev->diag.num_eth; i++)
		if (!strcmp(rhca_diag_eth_name(dev, i), name))
			return value[i];
	return 0;
}

/* What the card has counted, if it says so. */
static void rhca_eth_see(struct rhca_dev *dev, struct rhca_eth_seen *seen)
{
	u64 *value;

	value = kcalloc(dev->diag.num_eth, sizeof(*value), GFP_KERNEL);
	if (!ZERO_OR_NULL_PTR(value) && !rhca_diag_read_eth(dev, value)) {
		seen->errors = rhca_eth_counted(dev, value, "rx_errors") +
			       rhca_eth_counted(dev, value, "tx_errors");
		seen->bad_doorbells = rhca_eth_counted(dev, value,
						       "bad_doorbells");
		seen->valid = true;
	}
	kfree(value);
}

/*
 * A ring whose memory was refused stands still. The card tells nobody, but it
 * counts an error, and then takes no doorbell of the ring.
 */
static void rhca_eth_find_still(struct rhca_eth *eth)
{
	struct rhca_eth_seen now = {}, old = eth->seen;

	rhca_eth_see(eth->dev, &now);
	if (!now.valid)
		return;
	if (old.valid && now.bad_doorbells != old.bad_doorbells) {
		netdev_warn(eth->ndev, "a ring stands still\n");
		rhca_eth_reopen(eth);
		return;
	}
	eth->seen = now;
	/* Since the rings were opened there may have been one, too. */
	if (!old.valid || now.errors != old.errors)
		rhca_rings_poll(eth);
}

static void rhca_eth_look_locked(struct rhca_dev *dev, struct rhca_eth *eth)
{
	if (dev->link_unknown)
		rhca_eth_update_link(dev);
	if (eth->filter_unknown)
		schedule_work(&eth->rx_mode);
	if (!eth->open)
		return;
	rhca_rings_look(eth);
	rhca_eth_find_still(eth);
}

/* Who holds RTNL may wait for the card: another time, then. */
void rhca_eth_look(struct rhca_dev *dev)
{
	if (!rtnl_trylock())
		return;
	if (dev->ndev && !rhca_failed(dev))
		rhca_eth_look_locked(dev, rhca_eth_of(dev->ndev));
	rtnl_unlock();
}

/* It outlives the RDMA device. */
struct net_device *rhca_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *ndev = to_rhca(ibdev)->ndev;

	dev_hold(ndev);
	return ndev;
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
