/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of a card is saved, as lists of fields. A room says of each of its
 * structures what becomes of every member: saved, worked out of what is saved, or
 * something that begins anew. `make check T=source/state` holds these lists against
 * the structures as the compiler sees them.
 *
 * What is saved is sections, each of them records of one structure. How a section
 * is written down is for others to say: as VMState by QEMU (qemu/rdma-hca-state.c),
 * as bytes by the tests (lib-state.h). What comes later is another section: a state
 * that has none of it is one where there are no such records.
 */
#ifndef HCA_STATE_H
#define HCA_STATE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What becomes of a member. */
typedef enum HcaFieldUse {
    HCA_FIELD_SAVED,
    HCA_FIELD_ELSEWHERE, /* in a section of its own */
    HCA_FIELD_COUNTED,   /* each counter by its number */
    HCA_FIELD_DERIVED,   /* of what is saved, or of the card's options */
    HCA_FIELD_ANEW,      /* it begins anew, and nobody can tell */
} HcaFieldUse;

typedef enum HcaFieldKind {
    HCA_FIELD_BOOL,
    HCA_FIELD_UINT, /* of 1, 2, 4 or 8 bytes, signed ones too */
    HCA_FIELD_STRUCT,
} HcaFieldKind;

typedef struct HcaStruct HcaStruct;

typedef struct HcaField {
    const char *name;
    uint32_t offset;
    uint32_t size;   /* of an element, bytes */
    uint32_t number; /* of elements */
    uint8_t use;     /* HcaFieldUse */
    uint8_t kind;    /* HcaFieldKind, if it is saved */
    const HcaStruct *of;
} HcaField;

/* A type in C, by its name, and its members. */
struct HcaStruct {
    const char *type;
    uint32_t size;
    uint32_t nfields;
    const HcaField *fields;
};

#define HCA_MEMBER_SIZE(t, m) sizeof(((t *)0)->m)
#define HCA_FIELD_KIND(t, m)                                                   \
    _Generic(((t *)0)->m, bool : HCA_FIELD_BOOL, default : HCA_FIELD_UINT)

/* One value; an array, of which @first is the first element (m[0], m[0][0]). */
#define HCA_SAVED(t, m)                                                        \
    {                                                                          \
        .name = #m, .offset = offsetof(t, m), .size = HCA_MEMBER_SIZE(t, m),   \
        .number = 1, .kind = HCA_FIELD_KIND(t, m)                              \
    }
#define HCA_SAVED_ARRAY(t, m, first)                                           \
    {                                                                          \
        .name = #m, .offset = offsetof(t, m),                                  \
        .size = HCA_MEMBER_SIZE(t, first),                                     \
        .number = HCA_MEMBER_SIZE(t, m) / HCA_MEMBER_SIZE(t, first),           \
        .kind = HCA_FIELD_KIND(t, first)                                       \
    }
/* A structure of @its list; an array of them. */
#define HCA_SAVED_STRUCT(t, m, its)                                            \
    {                                                                          \
        .name = #m, .offset = offsetof(t, m), .size = HCA_MEMBER_SIZE(t, m),   \
        .number = 1, .kind = HCA_FIELD_STRUCT, .of = &(its)                    \
    }
#define HCA_SAVED_STRUCTS(t, m, first, its)                                    \
    {                                                                          \
        .name = #m, .offset = offsetof(t, m),                                  \
        .size = HCA_MEMBER_SIZE(t, first),                                     \
        .number = HCA_MEMBER_SIZE(t, m) / HCA_MEMBER_SIZE(t, first),           \
        .kind = HCA_FIELD_STRUCT, .of = &(its)                                 \
    }
/* Members that are not saved, with all that is in them. */
#define HCA_UNSAVED(t, m, how)                                                 \
    {                                                                          \
        .name = #m, .offset = offsetof(t, m), .size = HCA_MEMBER_SIZE(t, m),   \
        .number = 1, .use = (how)                                              \
    }
#define HCA_ELSEWHERE(t, m) HCA_UNSAVED(t, m, HCA_FIELD_ELSEWHERE)
#define HCA_COUNTED(t, m) HCA_UNSAVED(t, m, HCA_FIELD_COUNTED)
#define HCA_DERIVED(t, m) HCA_UNSAVED(t, m, HCA_FIELD_DERIVED)
#define HCA_ANEW(t, m) HCA_UNSAVED(t, m, HCA_FIELD_ANEW)

#define HCA_STRUCT(t, its_fields)                                              \
    {                                                                          \
        .type = #t, .size = sizeof(t), .nfields = G_N_ELEMENTS(its_fields),    \
        .fields = (its_fields)                                                 \
    }

/* Why a state is refused. */
typedef struct HcaStateError {
    char text[160];
} HcaStateError;

/* Say why; returns false. */
bool hca_state_refuse(HcaStateError *error, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/*
 * Part of a room's state. @save appends records (g_array_append_vals()), whose
 * members that are not saved may be anything. @load takes @n of them, for a room
 * that has been reset, or refuses: then the card is reset again. It trusts
 * nothing that is in a record, but that bools are 0 or 1. @kept_in: lists of what
 * the records are of, where the record itself is a form that was made for them.
 */
typedef struct HcaSection {
    const char *name;
    uint8_t version; /* from 1 on: of its form; no other is taken */
    const HcaStruct *record;
    void (*save)(void *room, GArray *records);
    bool (*load)(void *room, const void *records, uint32_t n,
                 HcaStateError *error);
    const HcaStruct *kept_in[6];
} HcaSection;

#define HCA_SECTION(its_name, its_version, its_record, its_save, its_load,     \
                    ...)                                                       \
    {                                                                          \
        .name = (its_name), .version = (its_version), .record = (its_record),  \
        .save = (its_save), .load = (its_load), .kept_in = {                   \
            __VA_ARGS__                                                        \
        }                                                                      \
    }

/*
 * Have what is saved of @to be as it is in @from, whose bools may be any bytes, and
 * which may be the same; the rest stays.
 */
void hca_struct_take(const HcaStruct *type, void *to, const void *from);

/* HcaSection.save of a section whose one record is the room itself. */
void hca_state_save_room(void *room, GArray *records);
/* Whether @n records are one; or say why not. */
bool hca_state_is_one(uint32_t n, HcaStateError *error);

/* A section of bytes: packets one behind the other, each with its length. */
extern const HcaStruct hca_byte_struct;
void hca_state_put_packet(GArray *bytes, const void *packet, size_t len);
/* The next one, of *@n bytes that are left; NULL: it is longer than @max. */
const uint8_t *hca_state_get_packet(const uint8_t **bytes, uint32_t *n,
                                    size_t max, size_t *len);

#endif /* HCA_STATE_H */
