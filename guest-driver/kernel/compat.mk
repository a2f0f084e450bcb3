# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The kernel's headers, not its version, say what it has: see compat.h. has NAME,HEADER,PATTERN[,LINES,WORD]: -DRHCA_NAME if
# there is a line with the pattern, and with the word there or in so many lines behind it.
has = $(if $(shell grep -sA$(or $(4),0) '$(3)' $(srctree)/include/$(2) | grep '$(or $(5),.)'),-DRHCA_$(1))
ccflags-y += $(call has,CREATE_CQ_HAS_BUNDLE,rdma/ib_verbs.h,(\*create_cq),2,bundle)
ccflags-y += $(call has,REG_DMABUF_HAS_BUNDLE,rdma/ib_verbs.h,(\*reg_user_mr_dmabuf),4,bundle)
ccflags-y += $(call has,REG_MR_HAS_DMAH,rdma/ib_verbs.h,(\*reg_user_mr),3,ib_dmah)
ccflags-y += $(call has,HAS_UMEM_GET_VA,rdma/ib_umem.h,ib_umem_get_va)
ccflags-y += $(call has,HAS_RESIZE_USER_CQ,rdma/ib_verbs.h,(\*resize_user_cq))
ccflags-y += $(call has,HAS_FLUSH,rdma/ib_verbs.h,IB_ACCESS_FLUSH_GLOBAL)
ccflags-y += $(call has,HAS_RES_SRQ,rdma/ib_verbs.h,fill_res_srq_entry)
ccflags-y += $(call has,COUNTER_HAS_PORT,rdma/ib_verbs.h,(\*counter_bind_qp),1,port)
ccflags-y += $(call has,HAS_COUNTER_INIT,rdma/ib_verbs.h,(\*counter_init))
ccflags-y += $(call has,HAS_INVALIDATE_MAPPINGS,linux/dma-buf.h,invalidate_mappings)
ccflags-y += $(call has,FMSG_KEEPS_ERRORS,net/devlink.h,void devlink_fmsg_u32_pair_put)
ccflags-y += $(call has,REPORTER_HAS_PERIODS,net/devlink.h,default_graceful_period)
ccflags-y += $(call has,INFO_NEEDS_DRIVER,net/devlink.h,devlink_info_driver_name_put)
ccflags-y += $(call has,DEVLINK_HAS_FEATURES,net/devlink.h,devlink_set_features)
ccflags-y += $(call has,HAS_PAGE_POOL_FOLDER,net/page_pool/helpers.h,.)
ccflags-y += $(call has,HAS_RXFH_PARAM,linux/ethtool.h,struct ethtool_rxfh_param)
ccflags-y += $(call has,HAS_RXFH_FIELDS,linux/ethtool.h,struct ethtool_rxfh_fields)
ccflags-y += $(call has,HAS_RX_RING_COUNT,linux/ethtool.h,get_rx_ring_count)
