// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flow rules of raw packet QPs (SET_FLOW): what frames a QP gets. The driver
 * gives each rule a number; the card has the rules.
 */
#include "flow.h"

struct rhca_flow {
	struct ib_flow ibflow;
	u32 index;
};

static void rhca_put_eth(struct rdma_hca_flow_match *match,
			 const struct ib_flow_eth_filter *filter)
{
	memcpy(match->dmac, filter->dst_mac, sizeof(match->dmac));
	memcpy(match->smac, filter->src_mac, sizeof(match->smac));
	match->ether_type = filter->ether_type;
	match->vlan_tci = filter->vlan_tag;
}

static void rhca_put_ipv4(struct rdma_hca_flow_match *match,
			  const struct ib_flow_ipv4_filter *filter)
{
	memcpy(match->sip + 12, &filter->src_ip, sizeof(filter->src_ip));
	memcpy(match->dip + 12, &filter->dst_ip, sizeof(filter->dst_ip));
	match->protocol = filter->proto;
	match->tclass = filter->tos;
	match->hop_limit = filter->ttl;
}

static void rhca_put_ipv6(struct rdma_hca_flow_match *match,
			  const struct ib_flow_ipv6_filter *filter)
{
	memcpy(match->sip, filter->src_ip, sizeof(match->sip));
	memcpy(match->dip, filter->dst_ip, sizeof(match->dip));
	match->flow_label = filter->flow_label;
	match->protocol = filter->next_hdr;
	match->tclass = filter->traffic_class;
	match->hop_limit = filter->hop_limit;
}

static void rhca_put_ports(struct rdma_hca_flow_match *match,
			   const struct ib_flow_tcp_udp_filter *filter)
{
	match->sport = filter->src_port;
	match->dport = filter->dst_port;
}

/* Frames without this layer do not match. */
static void rhca_need_layer(struct rdma_hca_flow *flow, u8 layer)
{
	flow->value.layers |= layer;
	flow->mask.layers |= layer;
}

/* A rule of one protocol cannot ask for two. */
static int rhca_need_protocol(struct rdma_hca_flow *flow, u8 protocol)
{
	if ((flow->value.protocol ^ protocol) & flow->mask.protocol)
		return -EINVAL;
	flow->value.protocol = protocol;
	flow->mask.protocol = 0xff;
	return 0;
}

static int rhca_put_l4(struct rdma_hca_flow *flow,
		       const struct ib_flow_spec_tcp_udp *spec, u8 protocol)
{
	rhca_put_ports(&flow->value, &spec->val);
	rhca_put_ports(&flow->mask, &spec->mask);
	if (spec->mask.src_port || spec->mask.dst_port)
		rhca_need_layer(flow, RDMA_HCA_FLOW_HAS_PORTS);
	return rhca_need_protocol(flow, protocol);
}

/* IP comes with its protocol, which TCP or UDP may have named before. */
static int rhca_put_l3(struct rdma_hca_flow *flow,
		       const union ib_flow_spec *spec)
{
	u8 protocol = flow->value.protocol, mask = flow->mask.protocol;

	if (spec->type == IB_FLOW_SPEC_IPV4) {
		if (spec->ipv4.mask.flags)
			return -EOPNOTSUPP;
		rhca_put_ipv4(&flow->value, &spec->ipv4.val);
		rhca_put_ipv4(&flow->mask, &spec->ipv4.mask);
		rhca_need_layer(flow, RDMA_HCA_FLOW_HAS_IPV4);
	} else {
		rhca_put_ipv6(&flow->value, &spec->ipv6.val);
		rhca_put_ipv6(&flow->mask, &spec->ipv6.mask);
		rhca_need_layer(flow, RDMA_HCA_FLOW_HAS_IPV6);
	}
	return mask ? rhca_need_protocol(flow, protocol) : 0;
}

static void rhca_put_l2(struct rdma_hca_flow *flow,
			const struct ib_flow_spec_eth *spec)
{
	rhca_put_eth(&flow->value, &spec->val);
	rhca_put_eth(&flow->mask, &spec->mask);
	if (spec->mask.vlan_tag)
		rhca_need_layer(flow, RDMA_HCA_FLOW_HAS_VLAN);
}

/* One for each layer, actions are one. *@layers: bits of those that have been. */
static int rhca_put_spec(struct rdma_hca_flow *flow,
			 const union ib_flow_spec *spec, u32 *layers)
{
	u32 layer = BIT((spec->type & IB_FLOW_SPEC_LAYER_MASK) >> 4);

	if (*layers & layer)
		return -EINVAL;
	*layers |= layer;
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		rhca_put_l2(flow, &spec->eth);
		return 0;
	case IB_FLOW_SPEC_IPV4:
	case IB_FLOW_SPEC_IPV6:
		return rhca_put_l3(flow, spec);
	case IB_FLOW_SPEC_TCP:
		return rhca_put_l4(flow, &spec->tcp_udp, IPPROTO_TCP);
	case IB_FLOW_SPEC_UDP:
		return rhca_put_l4(flow, &spec->tcp_udp, IPPROTO_UDP);
	case IB_FLOW_SPEC_ACTION_TAG:
		flow->tag = cpu_to_be32(spec->flow_tag.tag_id);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/* The specifications lie behind the attribute, one behind the other. */
static int rhca_put_specs(struct rdma_hca_flow *flow,
			  const struct ib_flow_attr *attr)
{
	const union ib_flow_spec *spec = (const void *)(attr + 1);
	u32 layers = 0;
	int err;
	u8 i;

	for (i = 0; i < attr->num_of_specs; i++) {
		err = rhca_put_spec(flow, spec, &layers);
		if (err)
			return err;
		spec = (const void *)spec + spec->size;
	}
	return 0;
}

static int rhca_flow_kind(enum ib_flow_attr_type type)
{
	switch (type) {
	case IB_FLOW_ATTR_NORMAL:
		return RDMA_HCA_FLOW_NORMAL;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		return RDMA_HCA_FLOW_ALL_DEFAULT;
	case IB_FLOW_ATTR_MC_DEFAULT:
		return RDMA_HCA_FLOW_MC_DEFAULT;
	case IB_FLOW_ATTR_SNIFFER:
		return RDMA_HCA_FLOW_SNIFFER;
	default:
		return -EOPNOTSUPP;
	}
}

/* Rules of other kinds than the normal one look at nothing. */
static int rhca_check_flow(struct ib_qp *ibqp, const struct ib_flow_attr *attr)
{
	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	if (attr->flags & ~IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	if (attr->port != RHCA_PORT)
		return -EINVAL;
	if (attr->type != IB_FLOW_ATTR_NORMAL &&
	    (attr->num_of_specs || attr->flags))
		return -EINVAL;
	return 0;
}

static int rhca_put_flow(struct ib_qp *ibqp, const struct ib_flow_attr *attr,
			 struct rdma_hca_flow *flow)
{
	int kind = rhca_flow_kind(attr->type);

	if (kind < 0)
		return kind;
	memset(flow, 0, sizeof(*flow));
	flow->qpn = cpu_to_be32(to_rhca_qp(ibqp)->qpn);
	be32p_replace_bits(&flow->kind_priority, kind, RDMA_HCA_FLOW_KIND);
	be32p_replace_bits(&flow->kind_priority, attr->priority,
			   RDMA_HCA_FLOW_PRIORITY);
	if (attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		be32p_replace_bits(&flow->kind_priority, 1,
				   RDMA_HCA_FLOW_DONT_TRAP);
	return rhca_put_specs(flow, attr);
}

static int rhca_flow_add(struct rhca_dev *dev, struct ib_qp *ibqp,
			 const struct ib_flow_attr *attr, u32 index)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_put_flow(ibqp, attr, box.buf);
	if (!err)
		err = rhca_cmd(dev, RDMA_HCA_CMD_SET_FLOW,
			       RDMA_HCA_SET_FLOW_ADD, index, box.dma, 0);
	rhca_mailbox_free(dev, &box);
	return err;
}

struct ib_flow *rhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_flow *flow;
	int err;

	err = rhca_take_no_request(udata);
	if (!err)
		err = rhca_check_flow(ibqp, attr);
	if (err)
		return ERR_PTR(err);
	flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	err = rhca_bitmap_alloc(&dev->flow_map, &flow->index, NULL);
	if (err)
		goto rule;
	err = rhca_flow_add(dev, ibqp, attr, flow->index);
	if (err)
		goto number;
	return &flow->ibflow;

number:
	rhca_bitmap_free(&dev->flow_map, flow->index, 1);
rule:
	kfree(flow);
	return ERR_PTR(err);
}

int rhca_destroy_flow(struct ib_flow *ibflow)
{
	struct rhca_flow *flow = container_of(ibflow, struct rhca_flow, ibflow);
	struct rhca_dev *dev = to_rhca(ibflow->device);

	rhca_cmd_revoke(dev, RDMA_HCA_CMD_SET_FLOW, RDMA_HCA_SET_FLOW_REMOVE,
			flow->index, 0);
	rhca_bitmap_free(&dev->flow_map, flow->index, 1);
	kfree(flow);
	return 0;
}
