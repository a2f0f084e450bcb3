/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * InfiniHost III Lx: contexts, and entries of queues in memory, big-endian.
 */
#ifndef MTHCA_CXT_H
#define MTHCA_CXT_H

#include "../rdma_hca_types.h"

/* Entries of tables in ICM, bytes. */
#define MTHCA_QPC_SIZE		256
#define MTHCA_CQC_SIZE		64
#define MTHCA_EQC_SIZE		64
#define MTHCA_SRQC_SIZE		32
#define MTHCA_MPT_SIZE		64

/*
 * A region. Its key is the table's index, with the number of its life in the
 * bits above; users have that rotated to the left by 8.
 */
struct mthca_mpt {
	__be32 flags;
	__be32 page_size;	/* logarithm of bytes, less 12 */
	__be32 key;		/* not rotated */
	__be32 pd;
	__be32 start_h;		/* 10 */
	__be32 start_l;
	__be32 length_h;
	__be32 length_l;
	__be32 lkey;		/* 20 */
	__be32 window_count;
	__be32 window_limit;
	__be32 mtt_seg_h;	/* ICM address of the first MTT entry */
	__be32 mtt_seg_l;	/* 30 */
	__be32 mtt_sz;
	__be32 reserved38[2];
};

#define MTHCA_MPT_STATUS	RDMA_HCA_MASK(31, 28)
#define MTHCA_MPT_STATUS_FREE	3
#define MTHCA_MPT_STATUS_SW	15	/* others: the card's */
#define MTHCA_MPT_MIO		RDMA_HCA_MASK(17, 17)
#define MTHCA_MPT_BIND_ENABLE	RDMA_HCA_MASK(15, 15)
#define MTHCA_MPT_ATOMIC	RDMA_HCA_MASK(14, 14)
#define MTHCA_MPT_REMOTE_WRITE	RDMA_HCA_MASK(13, 13)
#define MTHCA_MPT_REMOTE_READ	RDMA_HCA_MASK(12, 12)
#define MTHCA_MPT_LOCAL_WRITE	RDMA_HCA_MASK(11, 11)
#define MTHCA_MPT_LOCAL_READ	RDMA_HCA_MASK(10, 10)
#define MTHCA_MPT_PHYSICAL	RDMA_HCA_MASK(9, 9)
#define MTHCA_MPT_REGION	RDMA_HCA_MASK(8, 8)
#define MTHCA_MPT_PAGE_SIZE	RDMA_HCA_MASK(4, 0)	/* page_size */
#define MTHCA_MPT_PD		RDMA_HCA_MASK(23, 0)	/* pd */

/* An MTT entry: the address of a page of 4 KiB or more, and this bit. */
#define MTHCA_MTT_PRESENT	1

/* STATUS of an event or a completion queue; 0: it is well. */
#define MTHCA_QUEUE_OVERFLOW	9
#define MTHCA_QUEUE_WRITE_FAIL	10

/* An event queue. */
struct mthca_eqc {
	__be32 flags;
	__be32 start_h;		/* in its region, or without TR on the bus */
	__be32 start_l;
	__be32 logsize;
	__be32 reserved10;
	__be32 intr;
	__be32 pd;
	__be32 lkey;
	__be32 reserved20[2];
	__be32 consumer_index;	/* 28 */
	__be32 producer_index;
	__be32 reserved30[4];
};

#define MTHCA_EQC_STATUS	RDMA_HCA_MASK(31, 28)
#define MTHCA_EQC_OWNER		RDMA_HCA_MASK(27, 24)
#define MTHCA_EQC_OWNER_HW	1
#define MTHCA_EQC_TR		RDMA_HCA_MASK(18, 18)
#define MTHCA_EQC_IGNORE_OVERRUN	RDMA_HCA_MASK(17, 17)
#define MTHCA_EQC_STATE		RDMA_HCA_MASK(11, 8)
#define MTHCA_EQC_STATE_ARMED	9
#define MTHCA_EQC_STATE_FIRED	10
#define MTHCA_EQC_STATE_ALWAYS	11
#define MTHCA_EQC_LOGSIZE	RDMA_HCA_MASK(28, 24)	/* logsize */
#define MTHCA_EQC_INTR		RDMA_HCA_MASK(7, 0)	/* intr */
#define MTHCA_EQC_INTR_MSIX	RDMA_HCA_MASK(7, 7)
#define MTHCA_EQC_INTR_VECTOR	RDMA_HCA_MASK(5, 0)

/* A completion queue. */
struct mthca_cqc {
	__be32 flags;
	__be32 start_h;		/* in its region, or without TR on the bus */
	__be32 start_l;
	__be32 logsize_usrpage;
	__be32 error_eqn;	/* 10: of no use */
	__be32 comp_eqn;
	__be32 pd;
	__be32 lkey;
	__be32 last_notified_index;	/* 20 */
	__be32 solicit_producer_index;
	__be32 consumer_index;
	__be32 producer_index;
	__be32 cqn;		/* 30 */
	__be32 ci_record;	/* index in its UAR's records */
	__be32 arm_record;
	__be32 reserved3c;
};

#define MTHCA_CQC_STATUS	RDMA_HCA_MASK(31, 28)
#define MTHCA_CQC_TR		RDMA_HCA_MASK(18, 18)
#define MTHCA_CQC_IGNORE_OVERRUN	RDMA_HCA_MASK(17, 17)
#define MTHCA_CQC_STATE		RDMA_HCA_MASK(11, 8)
#define MTHCA_CQC_STATE_DISARMED	0
#define MTHCA_CQC_STATE_ARMED_SOLICITED	6
#define MTHCA_CQC_STATE_ARMED	9
#define MTHCA_CQC_STATE_FIRED	10
#define MTHCA_CQC_LOGSIZE	RDMA_HCA_MASK(28, 24)	/* logsize_usrpage */
#define MTHCA_CQC_UAR		RDMA_HCA_MASK(23, 0)
#define MTHCA_CQC_EQN		RDMA_HCA_MASK(7, 0)	/* comp_eqn */

/* A shared receive queue: 48 bytes in a mailbox, of which ICM has less. */
struct mthca_srqc {
	__be32 state_logsize_srqn;
	__be32 lkey;
	__be32 record;		/* index in its UAR's records */
	__be32 logstride_usrpage;
	__be32 wqe_base_h;	/* 10 */
	__be32 wqe_base_l;
	__be32 eqn_pd;
	__be16 limit;
	__be16 wqe_cnt;
	__be16 reserved20;
	__be16 wqe_counter;
	__be32 reserved24[3];
};

#define MTHCA_SRQC_STATE	RDMA_HCA_MASK(31, 28)	/* state_logsize_srqn */
#define MTHCA_SRQC_STATE_FAILED	15
#define MTHCA_SRQC_LOGSIZE	RDMA_HCA_MASK(27, 24)
#define MTHCA_SRQC_SRQN		RDMA_HCA_MASK(23, 0)
#define MTHCA_SRQC_LOGSTRIDE	RDMA_HCA_MASK(31, 29)	/* less 4 */
#define MTHCA_SRQC_UAR		RDMA_HCA_MASK(23, 0)
#define MTHCA_SRQC_PD		RDMA_HCA_MASK(23, 0)	/* eqn_pd */

/* A path of a QP. */
struct mthca_path {
	__be32 port_pkey;
	__u8 rnr_retry;		/* 7:5 */
	__u8 g_mlpath;
	__be16 dlid;
	__u8 ack_timeout;	/* 7:3 */
	__u8 gid_index;
	__u8 static_rate;
	__u8 hop_limit;
	__be32 sl_tclass_flow;
	__u8 dgid[16];
};

#define MTHCA_PATH_PORT		RDMA_HCA_MASK(25, 24)	/* port_pkey */
#define MTHCA_PATH_PKEY_INDEX	RDMA_HCA_MASK(6, 0)
#define MTHCA_PATH_GRH		0x80			/* g_mlpath */
#define MTHCA_PATH_MLPATH	0x7f
#define MTHCA_PATH_SL		RDMA_HCA_MASK(31, 28)	/* sl_tclass_flow */
#define MTHCA_PATH_TCLASS	RDMA_HCA_MASK(27, 20)
#define MTHCA_PATH_FLOW		RDMA_HCA_MASK(19, 0)

/* A queue pair. In mailboxes a mask of what is to be taken lies in front. */
struct mthca_qpc {
	__be32 flags;
	__be32 reserved04;
	__u8 mtu_msgmax;	/* 08: 7:5 code, 4:0 log of bytes */
	__u8 rq_size_stride;	/* 7:3 log of entries, 2:0 of bytes, less 4 */
	__u8 sq_size_stride;
	__u8 rlkey_sched;
	__be32 usr_page;
	__be32 local_qpn;	/* 10 */
	__be32 remote_qpn;
	__be32 reserved18[2];
	struct mthca_path path;	/* 20 */
	struct mthca_path alt_path;
	__be32 rdd;		/* 60 */
	__be32 pd;
	__be32 wqe_base;	/* high word of where both queues are */
	__be32 wqe_lkey;
	__be32 params1;		/* 70 */
	__be32 reserved74;
	__be32 next_send_psn;
	__be32 cqn_snd;
	__be32 snd_wqe_base;	/* 80: low word, in the region */
	__be32 snd_record;	/* index in the UAR's records */
	__be32 last_acked_psn;
	__be32 ssn;
	__be32 params2;		/* 90 */
	__be32 rnr_nextrecvpsn;
	__be32 ra_buff;
	__be32 cqn_rcv;
	__be32 rcv_wqe_base;	/* a0 */
	__be32 rcv_record;
	__be32 qkey;
	__be32 srqn;
	__be32 rmsn;		/* b0 */
	__be16 sq_counter;
	__be16 rq_counter;
	__be32 reservedb8[18];
};

struct mthca_qp_mailbox {
	__be32 opt_param_mask;
	__be32 reserved;
	struct mthca_qpc qpc;
};

#define MTHCA_QPC_STATE		RDMA_HCA_MASK(31, 28)	/* flags */
#define MTHCA_QPC_STATE_DRAINING	7
#define MTHCA_QPC_SERVICE	RDMA_HCA_MASK(18, 16)
#define MTHCA_QPC_SERVICE_RC	0
#define MTHCA_QPC_SERVICE_UC	1
#define MTHCA_QPC_SERVICE_UD	3
#define MTHCA_QPC_SERVICE_MLX	7	/* QP 0 and QP 1: packets with headers */
#define MTHCA_QPC_MIGRATION	RDMA_HCA_MASK(12, 11)
#define MTHCA_QPC_MIGRATED	3
#define MTHCA_QPC_DE		RDMA_HCA_MASK(8, 8)
#define MTHCA_QPC_UAR		RDMA_HCA_MASK(23, 0)	/* usr_page */
#define MTHCA_QPC_NUMBER	RDMA_HCA_MASK(23, 0)	/* QPNs, PSNs, CQNs, PD */
#define MTHCA_QPC_SRA_MAX	RDMA_HCA_MASK(23, 21)	/* params1: a log */
#define MTHCA_QPC_RETRY_COUNT	RDMA_HCA_MASK(18, 16)
#define MTHCA_QPC_SRE		RDMA_HCA_MASK(15, 15)
#define MTHCA_QPC_SWE		RDMA_HCA_MASK(14, 14)
#define MTHCA_QPC_SAE		RDMA_HCA_MASK(13, 13)
#define MTHCA_QPC_SSC		RDMA_HCA_MASK(3, 3)	/* each send has a CQE */
#define MTHCA_QPC_RRA_MAX	RDMA_HCA_MASK(23, 21)	/* params2: a log */
#define MTHCA_QPC_RRE		RDMA_HCA_MASK(15, 15)
#define MTHCA_QPC_RWE		RDMA_HCA_MASK(14, 14)
#define MTHCA_QPC_RAE		RDMA_HCA_MASK(13, 13)
#define MTHCA_QPC_RSC		RDMA_HCA_MASK(3, 3)
#define MTHCA_QPC_MIN_RNR_TIMER	RDMA_HCA_MASK(28, 24)	/* rnr_nextrecvpsn */
#define MTHCA_QPC_USES_SRQ	RDMA_HCA_MASK(24, 24)	/* srqn */

/* opt_param_mask */
#define MTHCA_OPT_ALT_PATH	RDMA_HCA_MASK(0, 0)
#define MTHCA_OPT_RIGHTS	RDMA_HCA_MASK(3, 1)
#define MTHCA_OPT_PKEY_INDEX	RDMA_HCA_MASK(4, 4)
#define MTHCA_OPT_QKEY		RDMA_HCA_MASK(5, 5)
#define MTHCA_OPT_RNR_TIMER	RDMA_HCA_MASK(6, 6)
#define MTHCA_OPT_PATH		RDMA_HCA_MASK(7, 7)
#define MTHCA_OPT_SRA_MAX	RDMA_HCA_MASK(8, 8)
#define MTHCA_OPT_RRA_MAX	RDMA_HCA_MASK(9, 9)
#define MTHCA_OPT_MIGRATION	RDMA_HCA_MASK(10, 10)
#define MTHCA_OPT_PORT		RDMA_HCA_MASK(11, 11)
#define MTHCA_OPT_RETRY_COUNT	RDMA_HCA_MASK(12, 12)
#define MTHCA_OPT_ACK_TIMEOUT	RDMA_HCA_MASK(14, 14)
#define MTHCA_OPT_RNR_RETRY	RDMA_HCA_MASK(15, 15)

/* A doorbell record: a counter, and whose it is, which the card does not read. */
#define MTHCA_RECORD_SIZE	8

/* An entry of a completion queue; its owner is written last. */
#define MTHCA_CQE_SIZE		32
struct mthca_cqe {
	__be32 my_qpn;
	__be32 my_ee;
	__be32 rqpn;
	__be32 rlid_path;
	union {			/* 10 */
		__be32 imm;
		struct {
			__u8 syndrome;
			__u8 vendor_err;
			__be16 db_count;
		};
		struct {
			__be16 pkey_index;	/* of QP 1 */
			__be16 reserved12;
		};
	};
	__be32 byte_cnt;
	__be32 wqe;		/* offset in its region */
	__u8 opcode;
	__u8 is_send;
	__u8 reserved1e;
	__u8 owner;
};
#define MTHCA_CQE_SL		RDMA_HCA_MASK(31, 28)	/* rlid_path */
#define MTHCA_CQE_GRH		RDMA_HCA_MASK(23, 23)
#define MTHCA_CQE_MLPATH	RDMA_HCA_MASK(22, 16)
#define MTHCA_CQE_RLID		RDMA_HCA_MASK(15, 0)
#define MTHCA_CQE_IS_SEND	0x80			/* is_send */
#define MTHCA_CQE_ERROR_RECV	0xfe			/* opcode */
#define MTHCA_CQE_ERROR_SEND	0xff

/* An entry of an event queue; its owner is written last. */
#define MTHCA_EQE_SIZE		32
struct mthca_eqe {
	__u8 reserved00;
	__u8 type;		/* HcaEventType */
	__u8 reserved02;
	__u8 subtype;
	union {
		__be32 raw[6];
		struct {
			__be32 number;	/* of a QP, CQ or SRQ */
		} object;
		struct {
			__be32 cqn;
			__be32 reserved08;
			__u8 reserved0c[3];
			__u8 syndrome;	/* 1: overrun, 2: access */
		} cq;
		struct {
			__be16 reserved04;
			__be16 token;
			__be32 reserved08;
			__u8 reserved0c[3];
			__u8 status;
			__be32 out_param_h;
			__be32 out_param_l;
		} cmd;
		struct {
			__be32 reserved04[2];
			__be32 port;
		} port;
	};
	__u8 reserved1c[3];
	__u8 owner;
};
#define MTHCA_EQE_PORT		RDMA_HCA_MASK(29, 28)	/* port */
#define MTHCA_EQE_PORT_DOWN	1			/* subtype */
#define MTHCA_EQE_PORT_ACTIVE	4
#define MTHCA_OWNER_SW		0x00
#define MTHCA_OWNER_HW		0x80

/* An entry of the multicast table. */
struct mthca_mgm {
	__be32 next;
	__be32 reserved04[3];
	__u8 mgid[16];		/* 10 */
	__be32 qp[56];		/* the first that is not valid ends them */
};

#define MTHCA_MGM_NEXT		RDMA_HCA_MASK(31, 6)	/* index, 0: the last */
#define MTHCA_MGM_VALID		RDMA_HCA_MASK(31, 31)	/* qp */
#define MTHCA_MGM_QPN		RDMA_HCA_MASK(23, 0)

#endif /* MTHCA_CXT_H */
