/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* caps.c: what the card has: QUERY_FW, QUERY_ADAPTER, QUERY_DEV_LIM decoded. */
#ifndef RHCA_CAPS_H
#define RHCA_CAPS_H

#include <linux/types.h>

struct rhca_dev;

/* The subnet and the general services interface: QPs 0 and 1. */
#define RHCA_SPECIAL_QPS	2

struct rhca_caps {
	u32 fw_version;
	u32 features;
	u64 board_id;

	/* logarithms to base 2 */
	u8 log_qps;
	u8 log_cqs;
	u8 log_eqs;
	u8 log_mpts;
	u8 log_mtts;
	u8 log_pds;
	u8 log_max_msg;
	u8 log_max_wqes;
	u8 log_max_cqes;
	u8 log_srqs;
	u8 log_max_srq_wqes;
	u8 log_xrcds;
	u8 log_flows;
	u8 log_counter_sets;
	u8 log_sq_slots;	/* of all send queues */

	/* counts, taken from the low end of each table */
	u32 reserved_qps;
	u32 reserved_cqs;
	u32 reserved_eqs;
	u32 reserved_mpts;
	u32 reserved_mtts;
	u32 reserved_pds;
	u32 reserved_srqs;
	u32 special_qpn;	/* the card's number of QP 0; next: QP 1 */

	u32 num_uars;
	u32 num_pkeys;		/* places in the port's table */
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_srq_sge;
	u32 max_send_wqe_size;	/* bytes */
	u32 max_recv_wqe_size;	/* bytes */
	u32 max_inline;		/* bytes */
	u32 max_page_list;	/* entries of a REG_MR, 0: there is none */
	u8 max_sra;
	u8 max_rra;
	u8 ack_delay;
	u8 max_mtu;		/* IB MTU code */
	u32 num_gids;
	u64 max_icm;		/* bytes */
	u32 clock_khz;		/* 0: no time in completions */
	u64 dev_mem;		/* bytes, of whole pages */
};

/* Ask the card what it is; -ENODEV if this driver cannot drive it. */
int rhca_query_caps(struct rhca_dev *dev);

#endif /* RHCA_CAPS_H */
