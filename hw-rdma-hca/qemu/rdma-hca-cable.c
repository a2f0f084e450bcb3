/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all kinds of cables have in common. See rdma-hca-cable.h.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "rdma-hca-cable.h"

bool rdma_hca_cable_plug(RdmaHcaCable *cable, AioContext *ctx,
                         QemuRecMutex *lock, const RdmaHcaCableEvents *events,
                         void *opaque, Error **errp)
{
    if (!cable) {
        return true;
    }
    if (rdma_hca_cable_is_plugged(cable)) {
        error_setg(errp, "%s %s is in another card already",
                   object_get_typename(OBJECT(cable)),
                   object_get_canonical_path_component(OBJECT(cable)));
        return false;
    }
    cable->events = events;
    cable->opaque = opaque;
    cable->ctx = ctx;
    cable->lock = lock;
    RDMA_HCA_CABLE_GET_CLASS(cable)->plug(cable);
    return true;
}

void rdma_hca_cable_unplug(RdmaHcaCable *cable)
{
    if (!cable) {
        return;
    }
    if (RDMA_HCA_CABLE_GET_CLASS(cable)->unplug) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->unplug(cable);
    }
    cable->events = NULL;
    cable->opaque = NULL;
    cable->ctx = NULL;
    cable->lock = NULL;
}

bool rdma_hca_cable_is_plugged(const RdmaHcaCable *cable)
{
    return cable->events;
}

HcaCableProtocol rdma_hca_cable_protocol(const RdmaHcaCable *cable)
{
    return cable ? RDMA_HCA_CABLE_GET_CLASS(cable)->protocol(cable)
                 : HCA_CABLE_CARD;
}

bool rdma_hca_cable_is_server(const RdmaHcaCable *cable)
{
    return !cable || !RDMA_HCA_CABLE_GET_CLASS(cable)->is_server ||
           RDMA_HCA_CABLE_GET_CLASS(cable)->is_server(cable);
}

bool rdma_hca_cable_comes_back(const RdmaHcaCable *cable)
{
    return cable && RDMA_HCA_CABLE_GET_CLASS(cable)->comes_back &&
           RDMA_HCA_CABLE_GET_CLASS(cable)->comes_back(cable);
}

char *rdma_hca_cable_address(const RdmaHcaCable *cable)
{
    return cable && RDMA_HCA_CABLE_GET_CLASS(cable)->address
               ? RDMA_HCA_CABLE_GET_CLASS(cable)->address(cable)
               : NULL;
}

void rdma_hca_cable_start(RdmaHcaCable *cable)
{
    if (cable) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->start(cable);
    }
}

void rdma_hca_cable_stop(RdmaHcaCable *cable)
{
    if (cable) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->stop(cable);
    }
}

void rdma_hca_cable_close(RdmaHcaCable *cable)
{
    if (cable) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->close(cable);
    }
}

ssize_t rdma_hca_cable_writev(RdmaHcaCable *cable, const struct iovec *iov,
                              int iovcnt)
{
    return cable ? RDMA_HCA_CABLE_GET_CLASS(cable)->writev(cable, iov, iovcnt)
                 : -EPIPE;
}

ssize_t rdma_hca_cable_readv(RdmaHcaCable *cable, const struct iovec *iov,
                             int iovcnt)
{
    return cable ? RDMA_HCA_CABLE_GET_CLASS(cable)->readv(cable, iov, iovcnt)
                 : -EPIPE;
}

void rdma_hca_cable_drop(RdmaHcaCable *cable)
{
    if (cable && RDMA_HCA_CABLE_GET_CLASS(cable)->drop) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->drop(cable);
    }
}

void rdma_hca_cable_settle(RdmaHcaCable *cable)
{
    if (cable && RDMA_HCA_CABLE_GET_CLASS(cable)->settle) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->settle(cable);
    }
}

void rdma_hca_cable_forget(RdmaHcaCable *cable)
{
    if (cable && RDMA_HCA_CABLE_GET_CLASS(cable)->forget) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->forget(cable);
    }
}

bool rdma_hca_cable_can_part(const RdmaHcaCable *cable)
{
    return cable && RDMA_HCA_CABLE_GET_CLASS(cable)->part;
}

void rdma_hca_cable_part(RdmaHcaCable *cable)
{
    if (rdma_hca_cable_can_part(cable)) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->part(cable);
    }
}

void rdma_hca_cable_hurry(RdmaHcaCable *cable, bool hurry)
{
    if (cable && RDMA_HCA_CABLE_GET_CLASS(cable)->hurry) {
        RDMA_HCA_CABLE_GET_CLASS(cable)->hurry(cable, hurry);
    }
}

static const TypeInfo cable_types[] = {
    {
        .name = TYPE_RDMA_HCA_CABLE,
        .parent = TYPE_OBJECT,
        .instance_size = sizeof(RdmaHcaCable),
        .class_size = sizeof(RdmaHcaCableClass),
        .abstract = true,
    },
};

DEFINE_TYPES(cable_types)
