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

static bool is_saved(const HcaField *field)
{
    return field->use == HCA_FIELD_SAVED;
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

        if (!is_saved(field)) {
            continue;
        }
        for (uint32_t n = 0; n < field->number; n++) {
            take_value(field, into + (size_t)n * field->size,
                       out_of + (size_t)n * field->size);
        }
    }
}

static void write_value(HcaFieldKind kind, const void *at, uint32_t size,
                        GByteArray *bytes)
{
    const uint8_t *from = at;

    if (kind == HCA_FIELD_BOOL) {
        uint8_t value = from[0] != 0;

        g_byte_array_append(bytes, &value, 1);
        return;
    }
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
    g_byte_array_append(bytes, from, size);
#else
    for (uint32_t i = size; i; i--) {
        g_byte_array_append(bytes, &from[i - 1], 1);
    }
#endif
}

static void read_value(void *at, uint32_t size, const uint8_t *bytes)
{
    for (uint32_t i = 0; i < size; i++) {
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
        ((uint8_t *)at)[i] = bytes[i];
#else
        ((uint8_t *)at)[size - 1 - i] = bytes[i];
#endif
    }
}

void hca_struct_write(const HcaStruct *type, const void *record,
                      GByteArray *bytes)
{
    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];
        const char *at = (const char *)record + field->offset;

        for (uint32_t n = is_saved(field) ? field->number : 0; n;
             n--, at += field->size) {
            if (field->kind == HCA_FIELD_STRUCT) {
                hca_struct_write(field->of, at, bytes);
            } else {
                write_value(field->kind, at, field->size, bytes);
            }
        }
    }
}

static void read_struct(const HcaStruct *type, void *record,
                        const uint8_t **bytes)
{
    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];
        char *at = (char *)record + field->offset;

        for (uint32_t n = is_saved(field) ? field->number : 0; n;
             n--, at += field->size) {
            if (field->kind == HCA_FIELD_STRUCT) {
                read_struct(field->of, at, bytes);
            } else {
                read_value(at, field->size, *bytes);
                *bytes += field->size;
            }
        }
    }
}

size_t hca_struct_packed(const HcaStruct *type)
{
    size_t size = 0;

    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];

        if (is_saved(field)) {
            size += field->number * (field->kind == HCA_FIELD_STRUCT
                                         ? hca_struct_packed(field->of)
                                         : field->size);
        }
    }
    return size;
}

bool hca_struct_read(const HcaStruct *type, void *record, const uint8_t **bytes,
                     size_t *len)
{
    size_t size = hca_struct_packed(type);

    if (*len < size) {
        return false;
    }
    *len -= size;
    read_struct(type, record, bytes);
    return true;
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
