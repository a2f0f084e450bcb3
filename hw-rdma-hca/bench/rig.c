/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rig.h"

#include <errno.h>
#include <string.h>

#define CABLE_SIZE (256 * 1024)
#define LOG_CQ_SIZE 12

/* One direction: bytes go round. */
typedef struct Cable {
    uint8_t data[CABLE_SIZE];
    size_t written, passed, read; /* without wrapping */
    bool full;                    /* its writer waits for room */
} Cable;

/* From card [i]. */
static Cable cables[2];
static size_t turn_bytes;

/* The cable */

static ssize_t cable_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;
    Cable *cable = &cables[host->side];
    size_t start = cable->written;

    for (int i = 0; i < iovcnt && !cable->full; i++) {
        size_t room = CABLE_SIZE - (cable->written - cable->read);
        size_t len = MIN(iov[i].iov_len, room);
        size_t at = cable->written % CABLE_SIZE;
        size_t first = MIN(len, CABLE_SIZE - at);

        memcpy(cable->data + at, iov[i].iov_base, first);
        memcpy(cable->data, (uint8_t *)iov[i].iov_base + first, len - first);
        cable->written += len;
        cable->full = len < iov[i].iov_len;
    }
    if (!turn_bytes) {
        cable->passed = cable->written;
    }
    return cable->written == start ? -EAGAIN
                                   : (ssize_t)(cable->written - start);
}

static ssize_t cable_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;
    Cable *cable = &cables[!host->side];
    size_t start = cable->read;

    for (int i = 0; i < iovcnt; i++) {
        size_t len = MIN(iov[i].iov_len, cable->passed - cable->read);
        size_t at = cable->read % CABLE_SIZE;
        size_t first = MIN(len, CABLE_SIZE - at);

        memcpy(iov[i].iov_base, cable->data + at, first);
        memcpy((uint8_t *)iov[i].iov_base + first, cable->data, len - first);
        cable->read += len;
    }
    return cable->read == start ? -EAGAIN : (ssize_t)(cable->read - start);
}

/* The cards */

void rig_open(Rig *rig, const HcaConfig config[2], unsigned num_qps,
              bool receives)
{
    QpAttr attr;

    *rig = (Rig) {
        .pair = pair_new_with(1, HOST_PAGE_SIZE, config, NULL, NULL),
        .num_qps = num_qps,
    };
    qp_attr_init(&attr);
    attr.mtu = 5;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
    for (unsigned i = 0; i < 2; i++) {
        rig->cq[i] = cq_new(rig->pair->drv[i], LOG_CQ_SIZE,
                            RDMA_HCA_UAR_KERNEL + 1);
        rig->qp[i] = g_new(Qp *, num_qps);
        for (unsigned n = 0; n < num_qps; n++) {
            QpConfig own;

            qp_config_init(&own, rig->pair->pd[i], rig->cq[i]);
            own.rq_entries = receives ? own.rq_entries : 0;
            rig->qp[i][n] = qp_new(rig->pair->drv[i], &own);
        }
    }
    for (unsigned n = 0; n < num_qps; n++) {
        qp_connect(rig->qp[0][n], rig->qp[1][n], &attr);
    }
}

void rig_plug(Rig *rig, size_t bytes)
{
    lab_run(rig->pair->lab);
    memset(cables, 0, sizeof(cables));
    turn_bytes = bytes;
    for (unsigned i = 0; i < 2; i++) {
        rig->pair->lab->host[i].ops.link_writev = cable_writev;
        rig->pair->lab->host[i].ops.link_readv = cable_readv;
    }
}

void rig_close(Rig *rig)
{
    g_free(rig->qp[0]);
    g_free(rig->qp[1]);
    pair_free(rig->pair);
}

bool rig_turn(Rig *rig, int64_t ns)
{
    Lab *lab = rig->pair->lab;
    bool more = false;

    lab->now += ns;
    for (unsigned i = 0; i < 2; i++) {
        Cable *cable = &cables[i];

        if (turn_bytes) {
            cable->passed = MIN(cable->written, cable->passed + turn_bytes);
        }
        more |= hca_run(lab->host[i].hca);
    }
    for (unsigned i = 0; i < 2; i++) {
        /* What a card has not read by now it does not take as yet. */
        more |= cables[i].written !=
                (turn_bytes ? cables[i].passed : cables[i].read);
        if (cables[i].full && cables[i].written == cables[i].read) {
            cables[i].full = false;
            more = true;
            hca_link_writable(lab->host[i].hca);
        }
    }
    return more;
}

void rig_expect(Cq *cq, unsigned n)
{
    Wc wc;

    while (n--) {
        g_assert_true(cq_poll(cq, &wc));
        g_assert_cmphex(wc.syndrome, ==, 0);
    }
}

static void ignore(const char *text)
{
}

void rig_be_quiet(void)
{
    g_set_print_handler(ignore);
}
