// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * devlink: `dev info`, the health reporter "card", `dev reload`.
 *
 * The core holds the instance's lock when it calls; pci->lock comes behind it.
 */
#include <net/devlink.h>

#include "compat.h"
#include "devlink.h"
#include "recovery.h"

/* What a card says of itself: %016llx, or two numbers. */
#define RHCA_TEXT_SIZE	24

static struct rhca_pci *rhca_of_devlink(struct devlink *devlink)
{
	return *(struct rhca_pci **)devlink_priv(devlink);
}

/* --- info --------------------------------------------------------------- */

static int rhca_put_identity(struct devlink_info_req *req,
			     const struct rhca_dev *dev)
{
	u32 version = dev->caps.fw_version;
	char text[RHCA_TEXT_SIZE];
	int err;

	snprintf(text, sizeof(text), "%016llx",
		 be64_to_cpu(dev->ibdev.node_guid));
	err = devlink_info_serial_number_put(req, text);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%016llx", dev->caps.board_id);
	err = devlink_info_version_fixed_put(
		req, DEVLINK_INFO_VERSION_GENERIC_BOARD_ID, text);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%x", dev->pdev->revision);
	err = devlink_info_version_fixed_put(
		req, DEVLINK_INFO_VERSION_GENERIC_BOARD_REV, text);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%u.%u", version >> 16, version & 0xffff);
	return devlink_info_version_running_put(
		req, DEVLINK_INFO_VERSION_GENERIC_FW, text);
}

/* Of a card that is stopped the driver's name alone is known. */
static int rhca_info_get(struct devlink *devlink, struct devlink_info_req *req,
			 struct netlink_ext_ack *extack)
{
	struct rhca_pci *pci = rhca_of_devlink(devlink);
	int err;

	err = rhca_info_driver_put(req, RHCA_NAME);
	mutex_lock(&pci->lock);
	if (!err && pci->dev)
		err = rhca_put_identity(req, pci->dev);
	mutex_unlock(&pci->lock);
	return err;
}

/* --- reload ------------------------------------------------------------- */

static int rhca_reload_down(struct devlink *devlink, bool netns_change,
			    enum devlink_reload_action action,
			    enum devlink_reload_limit limit,
			    struct netlink_ext_ack *extack)
{
	struct rhca_pci *pci = rhca_of_devlink(devlink);

	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack, "the card stays in its namespace");
		return -EOPNOTSUPP;
	}
	rhca_halt(pci, RHCA_HALT_RELOAD, NULL);
	return 0;
}

static int rhca_reload_up(struct devlink *devlink,
			  enum devlink_reload_action action,
			  enum devlink_reload_limit limit,
			  u32 *actions_performed,
			  struct netlink_ext_ack *extack)
{
	struct rhca_pci *pci = rhca_of_devlink(devlink);

	*actions_performed = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT);
	return rhca_continue(pci, RHCA_HALT_RELOAD);
}

static const struct devlink_ops rhca_devlink_ops = {
	.info_get = rhca_info_get,
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = rhca_reload_down,
	.reload_up = rhca_reload_up,
};

/* --- health ------------------------------------------------------------- */

static struct rhca_pci *
rhca_of_reporter(struct devlink_health_reporter *reporter)
{
	return devlink_health_reporter_priv(reporter);
}

static int rhca_put_history(struct devlink_fmsg *fmsg,
			    const struct rhca_pci *pci)
{
	enum rhca_state state = READ_ONCE(pci->state);
	int err;

	err = rhca_fmsg(devlink_fmsg_string_pair_put(fmsg, "state",
						     rhca_state_name(state)));
	if (!err)
		err = rhca_fmsg(devlink_fmsg_u32_pair_put(fmsg, "failures",
							  pci->failures));
	if (!err)
		err = rhca_fmsg(devlink_fmsg_u32_pair_put(
			fmsg, "lost_interrupts", pci->lost_interrupts));
	if (!err && pci->failure)
		err = rhca_fmsg(devlink_fmsg_string_pair_put(
			fmsg, "last_failure", pci->failure));
	return err;
}

static int rhca_diagnose(struct devlink_health_reporter *reporter,
			 struct devlink_fmsg *fmsg,
			 struct netlink_ext_ack *extack)
{
	struct rhca_pci *pci = rhca_of_reporter(reporter);
	int err;

	mutex_lock(&pci->lock);
	err = rhca_put_history(fmsg, pci);
	mutex_unlock(&pci->lock);
	return err;
}

/* The last command; all ones, or zeros, of a card that does not answer. */
static int rhca_put_hcr(struct devlink_fmsg *fmsg, const struct rhca_pci *pci)
{
	static const char * const names[] = {
		"in_param_h", "in_param_l", "in_modifier", "out_param_h",
		"out_param_l", "token", "ctrl",
	};
	int err;
	u32 i;

	err = rhca_fmsg(devlink_fmsg_pair_nest_start(fmsg, "hcr"));
	if (!err)
		err = rhca_fmsg(devlink_fmsg_obj_nest_start(fmsg));
	for (i = 0; !err && i < ARRAY_SIZE(names); i++) {
		u32 word = readl(pci->bar0 + RDMA_HCA_HCR + 4 * i);

		err = rhca_fmsg(devlink_fmsg_u32_pair_put(fmsg, names[i],
							  word));
	}
	if (!err)
		err = rhca_fmsg(devlink_fmsg_obj_nest_end(fmsg));
	if (!err)
		err = rhca_fmsg(devlink_fmsg_pair_nest_end(fmsg));
	return err;
}

static int rhca_put_registers(struct devlink_fmsg *fmsg,
			      const struct rhca_pci *pci)
{
	u32 reset = readl(pci->bar0 + RDMA_HCA_RESET);
	u16 command, status;
	int err;

	pci_read_config_word(pci->pdev, PCI_COMMAND, &command);
	pci_read_config_word(pci->pdev, PCI_STATUS, &status);
	err = rhca_fmsg(devlink_fmsg_u32_pair_put(fmsg, "pci_command",
						  command));
	if (!err)
		err = rhca_fmsg(devlink_fmsg_u32_pair_put(fmsg, "pci_status",
							  status));
	if (!err)
		err = rhca_fmsg(devlink_fmsg_u32_pair_put(fmsg, "reset",
							  reset));
	return err ? err : rhca_put_hcr(fmsg, pci);
}

static int rhca_dump(struct devlink_health_reporter *reporter,
		     struct devlink_fmsg *fmsg, void *context,
		     struct netlink_ext_ack *extack)
{
	struct rhca_pci *pci = rhca_of_reporter(reporter);
	int err;

	mutex_lock(&pci->lock);
	err = rhca_put_history(fmsg, pci);
	if (!err)
		err = rhca_put_registers(fmsg, pci);
	mutex_unlock(&pci->lock);
	return err;
}

static int rhca_recover_card(struct devlink_health_reporter *reporter,
			     void *context, struct netlink_ext_ack *extack)
{
	return rhca_recover(rhca_of_reporter(reporter));
}

static const struct devlink_health_reporter_ops rhca_reporter_ops = {
	.name = "card",
	.recover = rhca_recover_card,
	.dump = rhca_dump,
	.diagnose = rhca_diagnose,
};

/* --- life --------------------------------------------------------------- */

int rhca_devlink_create(struct rhca_pci *pci)
{
	struct devlink *devlink;

	devlink = devlink_alloc(&rhca_devlink_ops, sizeof(struct rhca_pci *),
				&pci->pdev->dev);
	if (!devlink)
		return -ENOMEM;
	*(struct rhca_pci **)devlink_priv(devlink) = pci;
	rhca_devlink_allow_reload(devlink);
	pci->reporter = rhca_reporter_create(devlink, &rhca_reporter_ops, pci);
	if (IS_ERR(pci->reporter)) {
		devlink_free(devlink);
		return PTR_ERR(pci->reporter);
	}
	pci->devlink = devlink;
	return 0;
}

void rhca_devlink_destroy(struct rhca_pci *pci)
{
	devlink_health_reporter_destroy(pci->reporter);
	devlink_free(pci->devlink);
}

void rhca_devlink_register(struct rhca_pci *pci)
{
	devlink_register(pci->devlink);
}

void rhca_devlink_unregister(struct rhca_pci *pci)
{
	devlink_unregister(pci->devlink);
}
