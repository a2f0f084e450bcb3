/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The services (IBA 9.2, annex A14). */
#include "service.h"

#include "wire/packet.h"

const HcaServiceRow hca_services[HCA_NSERVICES] = {
    [HCA_SERVICE_RC] = { .bth = HCA_BTH_RC,
                         .reliable = true,
                         .sends = true,
                         .serves = true,
                         .receives = true },
    [HCA_SERVICE_UC] = { .bth = HCA_BTH_UC,
                         .sends = true,
                         .serves = true,
                         .receives = true },
    [HCA_SERVICE_UD] = { .bth = HCA_BTH_UD,
                         .sends = true,
                         .serves = true,
                         .receives = true,
                         .datagram = true },
    [HCA_SERVICE_XRC_INI] = { .bth = HCA_BTH_XRC,
                              .reliable = true,
                              .sends = true,
                              .xrc = true },
    [HCA_SERVICE_XRC_TGT] = { .bth = HCA_BTH_XRC,
                              .reliable = true,
                              .serves = true,
                              .xrc = true },
    [HCA_SERVICE_RAW] = { .bth = HCA_SERVICE_NO_BTH,
                          .sends = true,
                          .receives = true,
                          .datagram = true,
                          .raw = true },
};
