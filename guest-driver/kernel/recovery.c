// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * When the card stands still, because somebody wants it to, and when it starts
 * again: after that, or after a failure, soon or later.
 */
#include <net/devlink.h>

#include "device.h"
#include "recovery.h"

/* How long a card has to run to be well; how long to wait with one that is not. */
#define RHCA_WELL_SECS		1
#define RHCA_MAX_PAUSE_SECS	64

/* --- pauses ------------------------------------------------------------- */

static bool rhca_was_well(const struct rhca_pci *pci)
{
	return time_after(pci->failed_at,
			  pci->started + RHCA_WELL_SECS * HZ);
}

/* Longer each time. */
static void rhca_grow_pause(struct rhca_pci *pci)
{
	pci->pause_secs = clamp_t(u32, 2 * pci->pause_secs, 1,
				  RHCA_MAX_PAUSE_SECS);
}

/* How long the restart of a card that has failed has to wait, in jiffies. */
static unsigned long rhca_pause_left(const struct rhca_pci *pci)
{
	unsigned long end = pci->started + pci->pause_secs * HZ;

	return rhca_was_well(pci) || time_after(jiffies, end) ? 0 :
								end - jiffies;
}

/* --- devlink's reporter ------------------------------------------------- */

#if IS_ENABLED(CONFIG_NET_DEVLINK)

/* The card is looked at, then recovered, if the operator has not said no. */
static void rhca_report_failure(struct rhca_pci *pci)
{
	devlink_health_report(pci->reporter, READ_ONCE(pci->failure), pci);
}

/* As long as devlink has the card for broken, it recovers nothing by itself. */
static void rhca_report_health(struct rhca_pci *pci)
{
	if (READ_ONCE(pci->state) == RHCA_RUNNING)
		devlink_health_reporter_state_update(
			pci->reporter, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

#else

static void rhca_report_failure(struct rhca_pci *pci)
{
	rhca_recover(pci);
}

static void rhca_report_health(struct rhca_pci *pci)
{
}

#endif

/* --- starts ------------------------------------------------------------- */

static int rhca_start_or_retry(struct rhca_pci *pci)
{
	int err;

	pci->started = jiffies;
	err = rhca_start(pci);
	if (!err) {
		rhca_report_health(pci);
		return 0;
	}
	rhca_grow_pause(pci);
	dev_err(&pci->pdev->dev, "restart failed: %d, again in %u s\n", err,
		pci->pause_secs);
	rhca_life(pci, RHCA_RETRY);
	queue_delayed_work(system_long_wq, &pci->restart,
			   pci->pause_secs * HZ);
	return err;
}

/* Caller holds pci->lock. */
static bool rhca_is_broken(const struct rhca_pci *pci)
{
	enum rhca_state state = READ_ONCE(pci->state);

	return !pci->halters && (state == RHCA_FAILED || state == RHCA_WAITING);
}

/* A card that fails as soon as it runs is to have longer pauses. */
static void rhca_judge(struct rhca_pci *pci)
{
	if (READ_ONCE(pci->state) != RHCA_FAILED)
		return;
	if (rhca_was_well(pci))
		pci->pause_secs = 0;
	else
		rhca_grow_pause(pci);
}

int rhca_recover(struct rhca_pci *pci)
{
	int err = 0;

	mutex_lock(&pci->lock);
	if (rhca_is_broken(pci)) {
		dev_warn(&pci->pdev->dev, "restarting\n");
		rhca_judge(pci);
		rhca_stop(pci);
		/* Lost configuration is one reason why a card fails. */
		pci_restore_state(pci->pdev);
		pci_save_state(pci->pdev);
		err = rhca_start_or_retry(pci);
	}
	mutex_unlock(&pci->lock);
	return err;
}

/* A failure is reported, which may recover it; what has failed is tried again. */
static void rhca_restart(struct work_struct *work)
{
	struct rhca_pci *pci = container_of(to_delayed_work(work),
					    struct rhca_pci, restart);
	unsigned long left;
	bool broken, again;

	mutex_lock(&pci->lock);
	broken = rhca_is_broken(pci);
	again = READ_ONCE(pci->state) == RHCA_WAITING;
	left = again ? 0 : rhca_pause_left(pci);
	mutex_unlock(&pci->lock);
	if (!broken)
		return;
	if (left)
		queue_delayed_work(system_long_wq, &pci->restart, left);
	else if (again)
		rhca_recover(pci);
	else
		rhca_report_failure(pci);
}

/* --- who wants the card to stand still ---------------------------------- */

void rhca_halt(struct rhca_pci *pci, enum rhca_halter halter, const char *why)
{
	mutex_lock(&pci->lock);
	pci->halters |= halter;
	if (why && pci->dev)
		rhca_fail(pci->dev, why);
	rhca_stop(pci);
	mutex_unlock(&pci->lock);
}

int rhca_continue(struct rhca_pci *pci, enum rhca_halter halter)
{
	int err = 0;

	mutex_lock(&pci->lock);
	pci->halters &= ~halter;
	if (!pci->halters && READ_ONCE(pci->state) == RHCA_HALTED) {
		/* What was saved has been used up; now there is no reset. */
		pci_save_state(pci->pdev);
		pci->pause_secs = 0;
		err = rhca_start_or_retry(pci);
	}
	mutex_unlock(&pci->lock);
	return err;
}

int rhca_first_start(struct rhca_pci *pci)
{
	int err;

	mutex_lock(&pci->lock);
	pci->started = jiffies;
	err = rhca_start(pci);
	mutex_unlock(&pci->lock);
	return err;
}

void rhca_watch(struct rhca_pci *pci)
{
	mutex_lock(&pci->lock);
	pci->halters &= ~RHCA_HALT_PROBE;
	if (rhca_is_broken(pci))
		queue_delayed_work(system_long_wq, &pci->restart, 0);
	mutex_unlock(&pci->lock);
}

void rhca_unwatch(struct rhca_pci *pci)
{
	mutex_lock(&pci->lock);
	pci->halters |= RHCA_HALT_REMOVAL;
	mutex_unlock(&pci->lock);
	cancel_delayed_work_sync(&pci->restart);
}

int rhca_recovery_init(struct rhca_pci *pci)
{
	mutex_init(&pci->lock);
	spin_lock_init(&pci->state_lock);
	INIT_DELAYED_WORK(&pci->restart, rhca_restart);
	pci->state = RHCA_HALTED;
	pci->halters = RHCA_HALT_PROBE;
	pci->wq = alloc_ordered_workqueue(RHCA_NAME "-%s",
					  WQ_HIGHPRI | WQ_MEM_RECLAIM,
					  pci_name(pci->pdev));
	return pci->wq ? 0 : -ENOMEM;
}

void rhca_recovery_cleanup(struct rhca_pci *pci)
{
	cancel_delayed_work_sync(&pci->restart);
	destroy_workqueue(pci->wq);
}
