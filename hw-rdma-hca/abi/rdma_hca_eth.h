/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: descriptor rings of the Ethernet function,
 * the documents' non-RDMA channel (ours; little-endian).
 *
 * Software writes descriptors and moves a ring's tail (RDMA_HCA_ETH_DB). The
 * card works them off in order and sets DONE in each. One index per ring is
 * unused: a ring of 2^n descriptors holds 2^n - 1.
 */
#ifndef RDMA_HCA_ETH_H
#define RDMA_HCA_ETH_H

#include "rdma_hca_sizes.h"
#include "rdma_hca_types.h"

/* Transmit: a piece of a frame. Frames have no FCS; short ones are padded. */
struct rdma_hca_eth_tx {
	__le32 addr_l;
	__le32 addr_h;
	__le16 len;
	__u8 flags;
	__u8 done;		/* RDMA_HCA_ETH_DONE, and of a frame's last: status */
	/* In a frame's first descriptor, with CSUM. */
	__le16 csum_start;	/* sum from here to the end of the frame... */
	__le16 csum_offset;	/* ...and put it here, behind csum_start */
};

#define RDMA_HCA_ETH_TX_LAST		0x01	/* of the frame */
#define RDMA_HCA_ETH_TX_CSUM		0x02
#define RDMA_HCA_ETH_TX_TSO		0x04	/* struct rdma_hca_eth_tso */

/*
 * In front of the pieces of a TCP segment that is to be sent as segments of
 * @mss bytes: headers are made for each, with their checksums. It counts as a
 * piece, without data.
 */
struct rdma_hca_eth_tso {
	__le16 mss;		/* of what is behind the headers */
	__le16 header_len;	/* of all headers, in bytes */
	__le16 ip_start;	/* where the IP header begins... */
	__le16 tcp_start;	/* ...and TCP's, right behind it */
	__le16 reserved;
	__u8 flags;
	__u8 done;
	__le16 reserved2[2];
};

/*
 * Receive: a whole frame. One that is longer than the buffer is dropped, and
 * the descriptor stays; with ERROR, len is 0.
 */
struct rdma_hca_eth_rx {
	__le32 addr_l;		/* done, and with a hash_type: the hash */
	__le32 addr_h;
	__le16 size;		/* of the buffer */
	__le16 len;		/* of the frame, without FCS */
	__u8 hash_type;		/* what was hashed, of RDMA_HCA_RSS_*; 0: nothing */
	__u8 reserved;
	__u8 flags;
	__u8 done;
};

/* The TCP or UDP checksum was looked at and is right. */
#define RDMA_HCA_ETH_RX_CSUM_OK		0x01

#define RDMA_HCA_ETH_DONE		0x80
#define RDMA_HCA_ETH_ERROR		0x01	/* memory refused, or the frame */

#endif /* RDMA_HCA_ETH_H */
