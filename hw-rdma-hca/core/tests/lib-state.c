/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-state.h"

#include <string.h>

#define NAME_SIZE 24
#define HEADER_SIZE (NAME_SIZE + 1 + sizeof(uint32_t))

HcaState *state_save(Hca *hca)
{
    hca_settle(hca);
    return hca_save(hca);
}

/* ---- a record ---- */

static uint32_t saved_number(const HcaField *field)
{
    return field->use == HCA_FIELD_SAVED ? field->number : 0;
}

static void copy_little_endian(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)to)[i] =
            ((const uint8_t *)
                 from)[G_BYTE_ORDER == G_LITTLE_ENDIAN ? i : size - 1 - i];
    }
}

static void write_record(const HcaStruct *type, const void *record,
                         GByteArray *bytes)
{
    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];
        const char *at = (const char *)record + field->offset;
        uint8_t value[8];

        for (uint32_t n = saved_number(field); n; n--, at += field->size) {
            if (field->kind == HCA_FIELD_STRUCT) {
                write_record(field->of, at, bytes);
            } else {
                copy_little_endian(value, at, field->size);
                g_byte_array_append(bytes, value, field->size);
            }
        }
    }
}

static void read_record(const HcaStruct *type, void *record,
                        const uint8_t **bytes)
{
    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];
        char *at = (char *)record + field->offset;

        for (uint32_t n = saved_number(field); n; n--, at += field->size) {
            if (field->kind == HCA_FIELD_STRUCT) {
                read_record(field->of, at, bytes);
            } else {
                copy_little_endian(at, *bytes, field->size);
                *bytes += field->size;
            }
        }
    }
}

/* Bytes of a record. */
static size_t packed_size(const HcaStruct *type);

static size_t element_size(const HcaField *field)
{
    return field->kind == HCA_FIELD_STRUCT ? packed_size(field->of)
                                           : field->size;
}

static size_t packed_size(const HcaStruct *type)
{
    size_t size = 0;

    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];

        size += saved_number(field) * element_size(field);
    }
    return size;
}

/* Which member the byte at @at of a record is of, however deep it lies. */
static void name_byte(const HcaStruct *type, size_t at, GString *name)
{
    const HcaField *field = type->fields;

    while (at >= saved_number(field) * element_size(field)) {
        at -= saved_number(field) * element_size(field);
        field++;
    }
    g_string_append_printf(name, " %s", field->name);
    if (field->kind == HCA_FIELD_STRUCT) {
        name_byte(field->of, at % element_size(field), name);
    }
}

/* ---- a section ---- */

static void write_section(const HcaSection *section, const GArray *records,
                          GByteArray *bytes)
{
    char name[NAME_SIZE] = { 0 };
    uint32_t number = GUINT32_TO_LE(records->len);

    memcpy(name, section->name, MIN(strlen(section->name), NAME_SIZE));
    g_byte_array_append(bytes, (const uint8_t *)name, sizeof(name));
    g_byte_array_append(bytes, &section->version, 1);
    g_byte_array_append(bytes, (const uint8_t *)&number, sizeof(number));
    for (unsigned n = 0; n < records->len; n++) {
        write_record(section->record,
                     records->data + (size_t)n * section->record->size, bytes);
    }
}

static bool read_section(const HcaSection *section, GArray *records,
                         const uint8_t **bytes, size_t *len)
{
    size_t packed = packed_size(section->record);
    uint32_t number;

    if (*len < HEADER_SIZE ||
        strncmp((const char *)*bytes, section->name, NAME_SIZE) ||
        (*bytes)[NAME_SIZE] != section->version) {
        return false;
    }
    memcpy(&number, *bytes + NAME_SIZE + 1, sizeof(number));
    number = GUINT32_FROM_LE(number);
    *bytes += HEADER_SIZE;
    *len -= HEADER_SIZE;
    if (number > *len / packed) {
        return false;
    }
    g_array_set_size(records, number);
    for (uint32_t n = 0; n < number; n++) {
        read_record(section->record,
                    records->data + (size_t)n * section->record->size, bytes);
    }
    *len -= number * packed;
    return true;
}

/* ---- a state ---- */

GByteArray *state_write(HcaState *state)
{
    GByteArray *bytes = g_byte_array_new();

    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        write_section(hca_state_section(i), state->records[i], bytes);
    }
    hca_state_free(state);
    return bytes;
}

HcaState *state_read(const uint8_t *bytes, size_t len, HcaStateError *error)
{
    HcaState *state = hca_state_new();

    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        const HcaSection *section = hca_state_section(i);

        if (!read_section(section, state->records[i], &bytes, &len)) {
            hca_state_refuse(error, "no section %s here", section->name);
            hca_state_free(state);
            return NULL;
        }
    }
    return state;
}

static void expect_section(const HcaSection *section, const GArray *should_be,
                           const GArray *is)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    g_autoptr(GByteArray) b = g_byte_array_new();
    g_autoptr(GString) name = g_string_new(NULL);
    unsigned at = 0;

    write_section(section, should_be, a);
    write_section(section, is, b);
    while (at < MIN(a->len, b->len) && a->data[at] == b->data[at]) {
        at++;
    }
    if (at >= HEADER_SIZE && at < a->len) {
        name_byte(section->record,
                  (at - HEADER_SIZE) % packed_size(section->record), name);
    }
    if (at < MAX(a->len, b->len)) {
        g_error("section %s is another one: %u bytes, not %u, from %u on%s",
                section->name, b->len, a->len, at, name->str);
    }
}

void state_expect(const GByteArray *should_be, const GByteArray *is)
{
    HcaStateError error;
    HcaState *a = state_read(should_be->data, should_be->len, &error);
    HcaState *b = state_read(is->data, is->len, &error);

    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        expect_section(hca_state_section(i), a->records[i], b->records[i]);
    }
    hca_state_free(a);
    hca_state_free(b);
}

/* ---- lies ---- */

static unsigned section_named(const char *name)
{
    unsigned i = 0;

    while (strcmp(hca_state_section(i)->name, name)) {
        g_assert_cmpuint(++i, <, hca_state_nsections());
    }
    return i;
}

/* @path: a member, or one of a member that is a structure. */
static const HcaField *field_named(const HcaStruct *type, const char *path,
                                   size_t *offset)
{
    size_t len = strcspn(path, ".");

    for (unsigned i = 0; i < type->nfields; i++) {
        const HcaField *field = &type->fields[i];

        if (strncmp(field->name, path, len) == 0 && !field->name[len] &&
            field->use == HCA_FIELD_SAVED) {
            *offset += field->offset;
            return path[len] ? field_named(field->of, path + len + 1, offset)
                             : field;
        }
    }
    g_error("%s has no %s", type->type, path);
}

/* Only of a member that can hold it. */
static void set_field(const HcaStruct *type, void *record, const StateLie *lie)
{
    size_t offset = 0;
    const HcaField *field = field_named(type, lie->field, &offset);
    uint64_t value = GUINT64_TO_LE(lie->value);

    g_assert_cmpuint(field->kind, !=, HCA_FIELD_STRUCT);
    memcpy((char *)record + offset, &value, MIN(field->size, sizeof(value)));
}

void state_tell(HcaState *state, const StateLie *lie)
{
    unsigned i = section_named(lie->section);
    GArray *records = state->records[i];

    g_array_set_size(records, lie->records >= 0 ? (unsigned)lie->records
                                                : MAX(records->len, 1));
    if (lie->field) {
        set_field(hca_state_section(i)->record, records->data, lie);
    }
}
