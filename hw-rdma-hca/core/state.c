/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of fields, walked. */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool hca_state_refuse(HcaStateError *error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return false;
}

/* A bool that is neither 0 nor 1 is none: whoever looks at it may do anything. */
static void take_value(const HcaField *field, void *to, const void *from)
{
    switch ((HcaFieldKind)field->kind) {
    case HCA_FIELD_BOOL:
        *(uint8_t *)to = *(const uint8_t *)from != 0;
        break;
    case HCA_FIELD_UINT:
        memmove(to, from, field->size);
        break;
    case HCA_FIELD_STRUCT:
        hca_struct_take(field->of, to, from);
        break;
    }
}

void hca_struct_take(const HcaStruct *type, void *to, const void *from)
{
    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];
        char *into = (char *)to + field->offset;
        const char *out_of = (const char *)from + field->offset;

        if (field->use != HCA_FIELD_SAVED) {
            continue;
        }
        for (uint32_t n = 0; n < field->number; n++) {
            take_value(field, into + (size_t)n * field->size,
                       out_of + (size_t)n * field->size);
        }
    }
}

void hca_state_save_room(void *room, GArray *records)
{
    g_array_append_vals(records, room, 1);
}

bool hca_state_is_one(uint32_t n, HcaStateError *error)
{
    return n == 1 || hca_state_refuse(error, "%u records", n);
}

typedef struct Byte {
    uint8_t value;
} Byte;

static const HcaField byte_fields[] = { HCA_SAVED(Byte, value) };
const HcaStruct hca_byte_struct = HCA_STRUCT(Byte, byte_fields);

void hca_state_put_packet(GArray *bytes, const void *packet, size_t len)
{
    uint32_t header = GUINT32_TO_LE(len);

    g_array_append_vals(bytes, &header, sizeof(header));
    g_array_append_vals(bytes, packet, len);
}

const uint8_t *hca_state_get_packet(const uint8_t **bytes, uint32_t *n,
                                    size_t max, size_t *len)
{
    const uint8_t *packet;
    uint32_t header;

    if (*n < sizeof(header)) {
        return NULL;
    }
    memcpy(&header, *bytes, sizeof(header));
    *len = GUINT32_FROM_LE(header);
    if (*len > max || *len > *n - sizeof(header)) {
        return NULL;
    }
    packet = *bytes + sizeof(header);
    *bytes = packet + *len;
    *n -= sizeof(header) + *len;
    return packet;
}
