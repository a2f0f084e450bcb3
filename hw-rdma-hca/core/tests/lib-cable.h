/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cable of a Lab: two byte pipes of bounded capacity with reads and
 * writes cut at random, and a tap that sees and treats whole packets. Only
 * lib-host.c and lib-lie.c use this.
 */
#ifndef LIB_CABLE_H
#define LIB_CABLE_H

#include "lib-host.h"

void cable_init(Lab *lab);
void cable_destroy(Lab *lab);

/* Like writev() and readv() of machine @side; negative errno. */
ssize_t cable_writev(Lab *lab, unsigned side, const struct iovec *iov,
                     int iovcnt);
ssize_t cable_readv(Lab *lab, unsigned side, const struct iovec *iov,
                    int iovcnt);

/* Around each hca_run() of machine @side: kicks who has to look again. */
void cable_before_run(Lab *lab, unsigned side);
void cable_after_run(Lab *lab, unsigned side);

/* Packets that a tap delayed: deliver what is due; when the next is. */
void cable_release_delayed(Lab *lab);
int64_t cable_next_delayed(Lab *lab);

/* Nobody sees packets any more; what has come of one goes on. */
void cable_untap(Lab *lab);

#endif /* LIB_CABLE_H */
