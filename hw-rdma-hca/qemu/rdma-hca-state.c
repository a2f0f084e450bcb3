/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of fields, told to QEMU. */
#include "qemu/osdep.h"
#include "rdma-hca-state.h"

/* What a stream may ask for before it has said anything. */
#define MOST_BYTES (1u << 30)

/* ---- lists of fields ---- */

static const VMStateDescription *describe(const HcaStruct *type);

static const VMStateInfo *info_of(const HcaField *field)
{
    if (field->kind == HCA_FIELD_BOOL) {
        return &vmstate_info_bool;
    }
    switch (field->size) {
    case 1:
        return &vmstate_info_uint8;
    case 2:
        return &vmstate_info_uint16;
    case 4:
        return &vmstate_info_uint32;
    default:
        g_assert(field->size == 8);
        return &vmstate_info_uint64;
    }
}

static VMStateField field_of(const HcaField *field)
{
    VMStateField to = {
        .name = field->name,
        .offset = field->offset,
        .size = field->size,
        .num = field->number,
        .flags = field->number > 1 ? VMS_ARRAY : VMS_SINGLE,
    };

    if (field->kind == HCA_FIELD_STRUCT) {
        to.vmsd = describe(field->of);
        to.flags = VMS_STRUCT | (field->number > 1 ? VMS_ARRAY : 0);
    } else if (field->kind == HCA_FIELD_UINT && field->size == 1 &&
               field->number > 1) {
        to.info = &vmstate_info_buffer;
        to.size = field->number;
        to.flags = VMS_BUFFER;
    } else {
        to.info = info_of(field);
    }
    return to;
}

/* Made once for each list, and kept. */
static const VMStateDescription *describe(const HcaStruct *type)
{
    static GHashTable *known;
    const VMStateField end = VMSTATE_END_OF_LIST();
    VMStateDescription *vmsd;
    VMStateField *fields;
    unsigned n = 0;

    if (!known) {
        known = g_hash_table_new(NULL, NULL);
    }
    vmsd = g_hash_table_lookup(known, type);
    if (vmsd) {
        return vmsd;
    }
    fields = g_new0(VMStateField, type->nfields + 1);
    for (unsigned i = 0; i < type->nfields; i++) {
        if (type->fields[i].use == HCA_FIELD_SAVED) {
            fields[n++] = field_of(&type->fields[i]);
        }
    }
    fields[n] = end;
    vmsd = g_new0(VMStateDescription, 1);
    vmsd->name = type->type;
    vmsd->fields = fields;
    g_hash_table_insert(known, (gpointer)type, vmsd);
    return vmsd;
}

/* ---- sections ---- */

static bool has_records(void *opaque)
{
    const RdmaHcaRecords *records = opaque;

    return records->number;
}

/* Before there is memory for them. */
static bool number_ok(void *opaque, int version_id)
{
    const RdmaHcaRecords *records = opaque;

    return records->number > 0 && records->number <= MOST_BYTES / records->size;
}

/* Bytes are written as they are. */
static VMStateField records_field(const HcaStruct *record)
{
    VMStateField to = {
        .name = "record",
        .offset = offsetof(RdmaHcaRecords, record),
    };

    if (record == &hca_byte_struct) {
        to.info = &vmstate_info_buffer;
        to.size_offset = offsetof(RdmaHcaRecords, number);
        to.flags = VMS_VBUFFER | VMS_POINTER | VMS_ALLOC;
    } else {
        to.vmsd = describe(record);
        to.num_offset = offsetof(RdmaHcaRecords, number);
        to.size = record->size;
        to.flags = VMS_STRUCT | VMS_VARRAY_INT32 | VMS_POINTER | VMS_ALLOC;
    }
    return to;
}

static const VMStateDescription *describe_records(const HcaSection *section)
{
    const VMStateField fields[] = {
        VMSTATE_INT32(number, RdmaHcaRecords),
        VMSTATE_VALIDATE("number of records", number_ok),
        records_field(section->record),
        VMSTATE_END_OF_LIST(),
    };
    VMStateDescription *vmsd = g_new0(VMStateDescription, 1);

    vmsd->name = g_strdup_printf("rdma-hca/%s/records", section->name);
    vmsd->version_id = vmsd->minimum_version_id = section->version;
    vmsd->needed = has_records;
    vmsd->fields = g_memdup2(fields, sizeof(fields));
    return vmsd;
}

/*
 * Nothing but a subsection, of which there is nothing if there are no records. A
 * subsection's name begins with what it is of: with the last letter one that
 * begins like another is not taken for the other's.
 */
static const VMStateDescription *describe_section(const HcaSection *section)
{
    static const VMStateField nothing[] = { VMSTATE_END_OF_LIST() };
    VMStateDescription *vmsd = g_new0(VMStateDescription, 1);
    const VMStateDescription **subsections = g_new0(const VMStateDescription *,
                                                    2);

    subsections[0] = describe_records(section);
    vmsd->name = g_strdup_printf("rdma-hca/%s/", section->name);
    vmsd->fields = nothing;
    vmsd->subsections = subsections;
    return vmsd;
}

const VMStateField *rdma_hca_state_fields(const VMStateField *own,
                                          unsigned nown, size_t offset)
{
    const VMStateField end = VMSTATE_END_OF_LIST();
    unsigned n = hca_state_nsections();
    VMStateField *fields = g_new0(VMStateField, nown + n + 1);

    g_assert(n <= RDMA_HCA_MAX_SECTIONS);
    memcpy(fields, own, nown * sizeof(*own));
    for (unsigned i = 0; i < n; i++) {
        const HcaSection *section = hca_state_section(i);

        fields[nown + i] = (VMStateField) {
            .name = section->name,
            .offset = offset + offsetof(RdmaHcaSaved, section[i]),
            .size = sizeof(RdmaHcaRecords),
            .vmsd = describe_section(section),
            .flags = VMS_STRUCT,
        };
    }
    fields[nown + n] = end;
    return fields;
}

/* ---- records ---- */

void rdma_hca_saved_fill(RdmaHcaSaved *saved, HcaState *state)
{
    rdma_hca_saved_clear(saved);
    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        gsize number;

        saved->section[i].record = g_array_steal(state->records[i], &number);
        saved->section[i].number = number;
    }
    hca_state_free(state);
}

HcaState *rdma_hca_saved_take(RdmaHcaSaved *saved)
{
    HcaState *state = hca_state_new();

    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        const RdmaHcaRecords *records = &saved->section[i];

        if (records->number) {
            g_array_append_vals(state->records[i], records->record,
                                records->number);
        }
    }
    rdma_hca_saved_clear(saved);
    return state;
}

void rdma_hca_saved_clear(RdmaHcaSaved *saved)
{
    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        RdmaHcaRecords *records = &saved->section[i];

        g_clear_pointer(&records->record, g_free);
        records->number = 0;
        records->size = hca_state_section(i)->record->size;
    }
}
