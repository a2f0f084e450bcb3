/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programming interfaces that there are. */
#include "interface.h"

#include "mthca/mthca.h"

const HcaInterface *hca_front_interface(HcaPersonality personality)
{
    static const HcaInterface *const interfaces[] = {
        [HCA_PERSONALITY_NATIVE] = &hca_interface,
        [HCA_PERSONALITY_MTHCA] = &hca_mthca_interface,
    };

    return interfaces[personality];
}
