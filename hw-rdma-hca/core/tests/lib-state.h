/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States of cards as bytes, so that they can be compared, cut and changed: of each
 * section its name, version, how many records, and what is saved of those, packed
 * and little-endian.
 */
#ifndef LIB_STATE_H
#define LIB_STATE_H

#include "../hca_state.h"

/* What a card has, when all that it writes has arrived; to be freed. */
HcaState *state_save(Hca *hca);
/* Bytes of a state that is freed. */
GByteArray *state_write(HcaState *state);
/* NULL: they are none. */
HcaState *state_read(const uint8_t *bytes, size_t len, HcaStateError *error);
/* @is what @should_be is; or the section that is another one is named. */
void state_expect(const GByteArray *should_be, const GByteArray *is);

/* What a state says that is not so. */
typedef struct StateLie {
    const char *section;
    int records;       /* that there are; -1: one at least */
    const char *field; /* of the first; NULL: none */
    uint64_t value;
    const char *why; /* it is refused for that */
} StateLie;

void state_tell(HcaState *state, const StateLie *lie);

#endif /* LIB_STATE_H */
