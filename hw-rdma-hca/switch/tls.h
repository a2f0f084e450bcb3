/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLS of a port's stream. See tls.c. */
#ifndef HCA_SWITCH_TLS_H
#define HCA_SWITCH_TLS_H

#include "program.h"

/*
 * What is in the folder @dir: keys (@psk), or certificates. Nothing is read yet; what
 * is for ports that listen (@server), or for those that connect, is loaded once. False
 * and @error: it is not there, or not good. @user: whose key it is.
 */
SwTlsCreds *sw_tls_creds_new(const char *dir, bool psk);
bool sw_tls_creds_load(SwTlsCreds *creds, bool server, const char *user,
                       GError **error);
void sw_tls_creds_free(SwTlsCreds *creds);

/*
 * The next step of a handshake: again, when the socket is readable, or writable.
 * SW_TLS_FAILED with @why, to be freed.
 */
typedef enum SwTlsStep {
    SW_TLS_DONE,
    SW_TLS_READ,
    SW_TLS_WRITE,
    SW_TLS_FAILED,
} SwTlsStep;

/*
 * Of the non-blocking socket @fd, which stays the caller's and must outlive it.
 * @host: who is to be there, of a port that connects; NULL of one that listens. NULL
 * and @error: GnuTLS has no session for us.
 */
SwTls *sw_tls_new(const SwTlsCreds *creds, int fd, const char *host,
                  GError **error);
void sw_tls_free(SwTls *tls);
SwTlsStep sw_tls_shake(SwTls *tls, char **why);
/*
 * After the handshake: the peer's distinguished name, or the user of its key; to be
 * freed. NULL: it has none.
 */
char *sw_tls_peer(SwTls *tls);

/*
 * As writev() and readv() on a non-blocking stream, with a negative errno; but of what
 * was taken the last may be here still: when sw_tls_is_full(), call sw_tls_flush() as
 * soon as the socket is writable. It returns 0 when all is sent, or -EAGAIN.
 */
ssize_t sw_tls_writev(SwTls *tls, const struct iovec *iov, int iovcnt);
ssize_t sw_tls_readv(SwTls *tls, const struct iovec *iov, int iovcnt);
bool sw_tls_is_full(const SwTls *tls);
int sw_tls_flush(SwTls *tls);

/*
 * Handshakes that a port waits for. Whoever is at their other ends is not known, so
 * they are few, have little time, and keep nobody else from the port.
 */
#define SW_HANDSHAKES_MAX 8 /* another one ends the oldest */

typedef GQueue SwHandshakes; /* the oldest first */

/*
 * It is done: @tls is the callee's. Or it has failed, @tls is NULL, and @why is lent.
 */
typedef void SwHandshakeDone(void *opaque, GSocket *socket, SwTls *tls,
                             const char *why);

/*
 * Takes @tls, and a reference of @socket. @limit_ms: 0 is none. @done is never called
 * before it returns.
 */
void sw_handshake_begin(SwHandshakes *handshakes, GSocket *socket, SwTls *tls,
                        unsigned limit_ms, SwHandshakeDone *done, void *opaque);
/* All end, and nobody is told. */
void sw_handshakes_cancel(SwHandshakes *handshakes);

#endif /* HCA_SWITCH_TLS_H */
