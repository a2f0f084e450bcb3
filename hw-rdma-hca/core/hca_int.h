/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the assembled card and its state share. */
#ifndef HCA_HCA_INT_H
#define HCA_HCA_INT_H

#include "card.h"

/* Memory takes its time from now on, be that none. */
void hca_be_late(Hca *hca);

#endif /* HCA_HCA_INT_H */
