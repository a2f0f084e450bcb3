/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BARs (interface document 3.1): where an access goes. Accesses themselves
 * are in hca.h.
 */
#ifndef HCA_FRONT_BARS_H
#define HCA_FRONT_BARS_H

#include <stdbool.h>

typedef struct HcaBars HcaBars;

HcaBars *hca_bars_new(void);
void hca_bars_free(HcaBars *bars);
void hca_bars_reset(HcaBars *bars);

/* Whether software has written the reset register; tell it that all is over. */
bool hca_bars_reset_wanted(const HcaBars *bars);
void hca_bars_reset_done(HcaBars *bars);

#endif /* HCA_FRONT_BARS_H */
