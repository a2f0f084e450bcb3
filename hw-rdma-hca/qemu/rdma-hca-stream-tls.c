/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which TLS a cable that is a stream socket has: its properties, as of QEMU's other
 * sockets. See rdma-hca-stream.h.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "rdma-hca-stream.h"

/* Properties; they are looked at when the object is complete. */

static char *stream_get_tls_creds(Object *obj, Error **errp)
{
    return g_strdup(RDMA_HCA_STREAM(obj)->tls_creds);
}

static char *stream_get_tls_authz(Object *obj, Error **errp)
{
    return g_strdup(RDMA_HCA_STREAM(obj)->tls_authz);
}

static char *stream_get_tls_hostname(Object *obj, Error **errp)
{
    return g_strdup(RDMA_HCA_STREAM(obj)->tls_hostname);
}

static void stream_set_string(Object *obj, char **to, const char *name,
                              const char *value, Error **errp)
{
    if (rdma_hca_stream_can_be_set(RDMA_HCA_STREAM(obj), name, errp)) {
        g_free(*to);
        *to = g_strdup(value);
    }
}

static void stream_set_tls_creds(Object *obj, const char *value, Error **errp)
{
    stream_set_string(obj, &RDMA_HCA_STREAM(obj)->tls_creds, "tls-creds", value,
                      errp);
}

static void stream_set_tls_authz(Object *obj, const char *value, Error **errp)
{
    stream_set_string(obj, &RDMA_HCA_STREAM(obj)->tls_authz, "tls-authz", value,
                      errp);
}

static void stream_set_tls_hostname(Object *obj, const char *value,
                                    Error **errp)
{
    stream_set_string(obj, &RDMA_HCA_STREAM(obj)->tls_hostname, "tls-hostname",
                      value, errp);
}

void rdma_hca_stream_tls_class_init(ObjectClass *klass)
{
    object_class_property_add_str(klass, "tls-creds", stream_get_tls_creds,
                                  stream_set_tls_creds);
    object_class_property_set_description(
        klass, "tls-creds", "Id of the TLS credentials of this end");
    object_class_property_add_str(klass, "tls-authz", stream_get_tls_authz,
                                  stream_set_tls_authz);
    object_class_property_set_description(
        klass, "tls-authz",
        "Id of the authorization object that says whose x509 certificates may "
        "connect to a listening cable");
    object_class_property_add_str(klass, "tls-hostname",
                                  stream_get_tls_hostname,
                                  stream_set_tls_hostname);
    object_class_property_set_description(
        klass, "tls-hostname",
        "The name that the x509 certificate of a listening cable must have");
}

/* The credentials */

static QCryptoTLSCreds *stream_find_creds(const RdmaHcaStream *stream,
                                          Error **errp)
{
    Object *creds = object_resolve_path_component(object_get_objects_root(),
                                                  stream->tls_creds);

    if (!creds) {
        error_setg(errp, "there are no TLS credentials with id '%s' (yet)",
                   stream->tls_creds);
        return NULL;
    }
    if (!object_dynamic_cast(creds, TYPE_QCRYPTO_TLS_CREDS)) {
        error_setg(errp, "'%s' is no object of TLS credentials",
                   stream->tls_creds);
        return NULL;
    }
    return QCRYPTO_TLS_CREDS(creds);
}

static bool stream_check_names(const RdmaHcaStream *stream, Error **errp)
{
    if (!stream->tls_creds && (stream->tls_authz || stream->tls_hostname)) {
        error_setg(errp, "tls-authz and tls-hostname need tls-creds");
        return false;
    }
    if (stream->tls_authz && !stream->server) {
        error_setg(errp, "tls-authz is of a cable with server=on");
        return false;
    }
    if (stream->tls_hostname && stream->server) {
        error_setg(errp, "tls-hostname is of a cable with server=off");
        return false;
    }
    if (stream->tls_creds && stream->share == ON_OFF_AUTO_ON) {
        error_setg(errp, "shared-memory=on cannot be together with tls-creds");
        return false;
    }
    return true;
}

bool rdma_hca_stream_tls_complete(RdmaHcaStream *stream, Error **errp)
{
    QCryptoTLSCreds *creds;

    if (!stream_check_names(stream, errp)) {
        return false;
    }
    if (!stream->tls_creds) {
        return true;
    }
    creds = stream_find_creds(stream, errp);
    if (!creds || !qcrypto_tls_creds_check_endpoint(
                      creds,
                      stream->server ? QCRYPTO_TLS_CREDS_ENDPOINT_SERVER
                                     : QCRYPTO_TLS_CREDS_ENDPOINT_CLIENT,
                      errp)) {
        return false;
    }
    stream->creds = QCRYPTO_TLS_CREDS(object_ref(OBJECT(creds)));
    return true;
}

void rdma_hca_stream_tls_finalize(RdmaHcaStream *stream)
{
    object_unref(OBJECT(stream->creds));
    g_free(stream->tls_creds);
    g_free(stream->tls_authz);
    g_free(stream->tls_hostname);
}

void rdma_hca_stream_tls_begin(RdmaHcaStream *stream, QIOChannelSocket *sioc,
                               RdmaHcaHandshakeDone *done)
{
    const RdmaHcaTlsEnd end = {
        .creds = stream->creds,
        .server = stream->server,
        .authz = stream->tls_authz,
        .hostname = stream->tls_hostname ? stream->tls_hostname
                    : stream->addr->type == SOCKET_ADDRESS_TYPE_INET
                        ? stream->addr->u.inet.host
                        : NULL,
        /* Who connects to a peer waits for that one. */
        .limit_ms = stream->server ? stream->greeting_ms : 0,
    };

    rdma_hca_handshake_begin(&stream->handshakes, &end, sioc, done, stream);
}
