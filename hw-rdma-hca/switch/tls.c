/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLS of a port's stream, by GnuTLS: x509 or pre-shared keys, from a folder of files
 * that are named as those of QEMU's tls-creds-x509 and tls-creds-psk.
 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/uio.h>

#include "tls.h"

#define PRIORITY_X509 "NORMAL"
#define PRIORITY_PSK "NORMAL:+ECDHE-PSK:+DHE-PSK:+PSK"

struct SwTlsCreds {
    bool psk;
    char *dir;
    /* Of ports that listen, and of ports that connect. NULL: there are none. */
    gnutls_certificate_credentials_t x509[2];
    gnutls_psk_server_credentials_t psk_server;
    gnutls_psk_client_credentials_t psk_client;
};

struct SwTls {
    gnutls_session_t session;
    const SwTlsCreds *creds;
    bool server;
    bool full; /* what was taken is not all sent */
};

static bool fail(GError **error, int ret, const char *what)
{
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", what,
                gnutls_strerror(ret));
    return false;
}

/* Credentials */

/* The path of @name in the folder; NULL: it has no such file. */
static char *file_of(const SwTlsCreds *creds, const char *name)
{
    char *path = g_build_filename(creds->dir, name, NULL);

    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_clear_pointer(&path, g_free);
    }
    return path;
}

static bool want_file(const SwTlsCreds *creds, const char *name, char **path,
                      GError **error)
{
    *path = file_of(creds, name);
    if (!*path) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "%s: there is no %s", creds->dir, name);
    }
    return *path;
}

typedef int ReadPem(gnutls_certificate_credentials_t x509, const char *path,
                    gnutls_x509_crt_fmt_t format);

/* Who may have signed, or who is not to be trusted any more. */
static bool read_list(SwTlsCreds *creds, bool server, const char *name,
                      ReadPem *read, bool needed, GError **error)
{
    g_autofree char *path = file_of(creds, name);
    int ret;

    if (!path) {
        return !needed || want_file(creds, name, &path, error);
    }
    ret = read(creds->x509[server], path, GNUTLS_X509_FMT_PEM);
    return ret >= 0 || fail(error, ret, path);
}

/* A client without a certificate of its own may meet a peer that asks for none. */
static bool read_own(SwTlsCreds *creds, bool server, GError **error)
{
    const char *cert_name = server ? "server-cert.pem" : "client-cert.pem";
    const char *key_name = server ? "server-key.pem" : "client-key.pem";
    g_autofree char *cert = file_of(creds, cert_name);
    g_autofree char *key = NULL;
    int ret;

    if (!cert && !server) {
        return true;
    }
    if ((!cert && !want_file(creds, cert_name, &cert, error)) ||
        !want_file(creds, key_name, &key, error)) {
        return false;
    }
    ret = gnutls_certificate_set_x509_key_file(creds->x509[server], cert, key,
                                               GNUTLS_X509_FMT_PEM);
    return ret >= 0 || fail(error, ret, cert);
}

static bool load_x509(SwTlsCreds *creds, bool server, GError **error)
{
    int ret = gnutls_certificate_allocate_credentials(&creds->x509[server]);

    if (ret < 0) {
        return fail(error, ret, creds->dir);
    }
    return read_list(creds, server, "ca-cert.pem",
                     gnutls_certificate_set_x509_trust_file, true, error) &&
           read_list(creds, server, "ca-crl.pem",
                     gnutls_certificate_set_x509_crl_file, false, error) &&
           read_own(creds, server, error);
}

static bool load_psk_server(SwTlsCreds *creds, const char *keys, GError **error)
{
    int ret = gnutls_psk_allocate_server_credentials(&creds->psk_server);

    if (ret >= 0) {
        ret = gnutls_psk_set_server_credentials_file(creds->psk_server, keys);
    }
    return ret >= 0 || fail(error, ret, keys);
}

/* Lines of the file are USER:KEY, the key in hexadecimal digits. */
static char *key_of(const char *keys, const char *user, GError **error)
{
    g_autofree char *text = NULL, *prefix = g_strconcat(user, ":", NULL);
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents(keys, &text, NULL, error)) {
        return NULL;
    }
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, prefix)) {
            return g_strdup(g_strchomp(*line + strlen(prefix)));
        }
    }
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s: there is no %s",
                keys, user);
    return NULL;
}

static bool load_psk_client(SwTlsCreds *creds, const char *keys,
                            const char *user, GError **error)
{
    g_autofree char *key = key_of(keys, user, error);
    int ret;

    if (!key) {
        return false;
    }
    ret = gnutls_psk_allocate_client_credentials(&creds->psk_client);
    if (ret >= 0) {
        const gnutls_datum_t datum = { (unsigned char *)key, strlen(key) };

        ret = gnutls_psk_set_client_credentials(creds->psk_client, user, &datum,
                                                GNUTLS_PSK_KEY_HEX);
    }
    return ret >= 0 || fail(error, ret, keys);
}

static bool load_psk(SwTlsCreds *creds, bool server, const char *user,
                     GError **error)
{
    g_autofree char *keys = NULL;

    return want_file(creds, "keys.psk", &keys, error) &&
           (server ? load_psk_server(creds, keys, error)
                   : load_psk_client(creds, keys, user, error));
}

SwTlsCreds *sw_tls_creds_new(const char *dir, bool psk)
{
    SwTlsCreds *creds = g_new0(SwTlsCreds, 1);

    creds->dir = g_strdup(dir);
    creds->psk = psk;
    return creds;
}

static bool is_loaded(const SwTlsCreds *creds, bool server)
{
    return creds->x509[server] ||
           (server ? creds->psk_server != NULL : creds->psk_client != NULL);
}

bool sw_tls_creds_load(SwTlsCreds *creds, bool server, const char *user,
                       GError **error)
{
    if (is_loaded(creds, server)) {
        return true;
    }
    return creds->psk ? load_psk(creds, server, user, error)
                      : load_x509(creds, server, error);
}

void sw_tls_creds_free(SwTlsCreds *creds)
{
    if (!creds) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(creds->x509); i++) {
        if (creds->x509[i]) {
            gnutls_certificate_free_credentials(creds->x509[i]);
        }
    }
    if (creds->psk_server) {
        gnutls_psk_free_server_credentials(creds->psk_server);
    }
    if (creds->psk_client) {
        gnutls_psk_free_client_credentials(creds->psk_client);
    }
    g_free(creds->dir);
    g_free(creds);
}

/* The handshake */

static int set_creds(SwTls *tls, const char *host)
{
    const SwTlsCreds *creds = tls->creds;

    if (creds->psk) {
        return tls->server
                   ? gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK,
                                            creds->psk_server)
                   : gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK,
                                            creds->psk_client);
    }
    /* Both ends have to show who they are. */
    if (tls->server) {
        gnutls_certificate_server_set_request(tls->session,
                                              GNUTLS_CERT_REQUIRE);
    } else if (!g_hostname_is_ip_address(host)) {
        gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, host,
                               strlen(host));
    }
    gnutls_session_set_verify_cert(tls->session, tls->server ? NULL : host, 0);
    return gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE,
                                  creds->x509[tls->server]);
}

SwTls *sw_tls_new(const SwTlsCreds *creds, int fd, const char *host,
                  GError **error)
{
    SwTls *tls = g_new0(SwTls, 1);
    int ret;

    tls->creds = creds;
    tls->server = !host;
    ret = gnutls_init(&tls->session, (host ? GNUTLS_CLIENT : GNUTLS_SERVER) |
                                         GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (ret >= 0) {
        ret = gnutls_priority_set_direct(
            tls->session, creds->psk ? PRIORITY_PSK : PRIORITY_X509, NULL);
    }
    if (ret >= 0) {
        ret = set_creds(tls, host);
    }
    if (ret < 0) {
        fail(error, ret, "TLS");
        sw_tls_free(tls);
        return NULL;
    }
    gnutls_handshake_set_timeout(tls->session, GNUTLS_INDEFINITE_TIMEOUT);
    gnutls_transport_set_int(tls->session, fd);
    return tls;
}

void sw_tls_free(SwTls *tls)
{
    if (tls) {
        gnutls_deinit(tls->session);
        g_free(tls);
    }
}

/* What is wrong with the peer's certificate, to be freed. */
static char *certificate_fault(SwTls *tls)
{
    unsigned status = gnutls_session_get_verify_cert_status(tls->session);
    gnutls_datum_t text = { 0 };
    char *why;

    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509,
                                                     &text, 0) < 0) {
        return g_strdup("the certificate is not good");
    }
    why = g_strchomp(g_strdup((char *)text.data));
    gnutls_free(text.data);
    return why;
}

SwTlsStep sw_tls_shake(SwTls *tls, char **why)
{
    int ret = gnutls_handshake(tls->session);

    if (ret >= 0) {
        return SW_TLS_DONE;
    }
    if (!gnutls_error_is_fatal(ret)) {
        return gnutls_record_get_direction(tls->session) ? SW_TLS_WRITE
                                                         : SW_TLS_READ;
    }
    *why = ret == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR
               ? certificate_fault(tls)
               : g_strdup(gnutls_strerror(ret));
    return SW_TLS_FAILED;
}

static char *certificate_name(SwTls *tls)
{
    unsigned n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(tls->session,
                                                               &n);
    gnutls_x509_crt_t cert;
    gnutls_datum_t dn = { 0 };
    char *name = NULL;

    if (!n || gnutls_x509_crt_init(&cert) < 0) {
        return NULL;
    }
    if (gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) >= 0 &&
        gnutls_x509_crt_get_dn2(cert, &dn) >= 0) {
        name = g_strdup((char *)dn.data);
        gnutls_free(dn.data);
    }
    gnutls_x509_crt_deinit(cert);
    return name;
}

char *sw_tls_peer(SwTls *tls)
{
    if (!tls->creds->psk) {
        return certificate_name(tls);
    }
    return tls->server ? g_strdup(gnutls_psk_server_get_username(tls->session))
                       : NULL;
}

/* Bytes */

bool sw_tls_is_full(const SwTls *tls)
{
    return tls->full;
}

static ssize_t result(ssize_t ret)
{
    switch (ret) {
    case GNUTLS_E_AGAIN:
        return -EAGAIN;
    case GNUTLS_E_INTERRUPTED:
        return -EINTR;
    case GNUTLS_E_PREMATURE_TERMINATION:
        return 0;
    default:
        return ret < 0 ? -EPIPE : ret;
    }
}

int sw_tls_flush(SwTls *tls)
{
    int ret = 0;

    if (tls->full) {
        do {
            ret = result(gnutls_record_uncork(tls->session, 0));
        } while (ret == -EINTR);
        tls->full = ret < 0;
    }
    return MIN(ret, 0);
}

/* Packets are small: GnuTLS gathers them, and has what is not sent yet. */
ssize_t sw_tls_writev(SwTls *tls, const struct iovec *iov, int iovcnt)
{
    ssize_t taken = 0;
    int ret = sw_tls_flush(tls);

    if (ret) {
        return ret;
    }
    gnutls_record_cork(tls->session);
    tls->full = true;
    for (int i = 0; i < iovcnt; i++) {
        ret = result(
            gnutls_record_send(tls->session, iov[i].iov_base, iov[i].iov_len));
        if (ret < 0) {
            return ret;
        }
        taken += iov[i].iov_len;
    }
    ret = sw_tls_flush(tls);
    return ret && ret != -EAGAIN ? ret : taken;
}

ssize_t sw_tls_readv(SwTls *tls, const struct iovec *iov, int iovcnt)
{
    ssize_t got = 0, ret = 0;

    for (int i = 0; i < iovcnt; i++) {
        ret = result(
            gnutls_record_recv(tls->session, iov[i].iov_base, iov[i].iov_len));
        got += MAX(ret, 0);
        if (ret < (ssize_t)iov[i].iov_len) {
            break;
        }
    }
    return got ? got : ret;
}
