/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses of paths (interface document, tables 3-2-40 and 3-4-4). Without a
 * GRH a path is the document's: LIDs, or on RoCE both MACs and IPv4 addresses.
 * With it (ours) a RoCE path names its source by its place in the GID table.
 */
#include "path.h"

#include <string.h>

#include "../wire/gid.h"

void hca_front_path(HcaPath *path, bool roce, const HcaFrontAddresses *from)
{
    if (path->grh) {
        memcpy(path->dgid.raw, from->dgid, sizeof(path->dgid.raw));
    }
    if (!roce) {
        path->dlid = from->low >> 16;
        return;
    }
    hca_path_mac(path->dmac, from->dmac_h, from->low >> 16);
    if (!path->grh) {
        hca_path_mac(path->smac, from->smac_h, from->low);
        path->sip = from->sip;
        path->dgid = hca_gid_of_ipv4(from->dip);
    }
}
