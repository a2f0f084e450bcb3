/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A programming interface: how software sees a card. One is chosen when a card
 * is made; nobody below front/ knows which.
 *
 *   .          the documents', abi/: registers.c, ceu/commands.c, format.c
 *   mthca/     that of a mem-free InfiniHost III Lx
 */
#ifndef HCA_FRONT_INTERFACE_H
#define HCA_FRONT_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "../config.h"
#include "../format.h"

typedef struct Hca Hca;

/* The two 64-bit doorbells of a UAR page. */
typedef enum HcaUarDoorbell {
    HCA_UAR_SEND,
    HCA_UAR_CQ,
    HCA_NUAR_DOORBELLS
} HcaUarDoorbell;

/*
 * What lies where in the BARs. Values are as @big_endian says; a 64-bit
 * doorbell's words come in the order of their addresses, and the second rings.
 */
typedef struct HcaRegisters {
    bool big_endian;
    uint32_t hcr;   /* in BAR 0; its words are alike in all interfaces */
    uint32_t reset; /* in BAR 0: software writes 1 */
    /* Who resets looks for the card in configuration space until it is back. */
    bool goes_away;
    /* In BAR 0: what is written there lowers the interrupt pin. 0: no pin. */
    uint32_t clear_pin, clear_pin_size;
    uint32_t uar[HCA_NUAR_DOORBELLS]; /* in each page of BAR 2 */
    /*
     * Beside these, what is read there; NULL: 0. From any thread, as
     * hca_bar0_read().
     */
    uint32_t (*read)(const Hca *hca, uint32_t offset);
    /* Other registers of BAR 0, of which all are for writing only. */
    bool (*is_doorbell)(uint32_t offset);
    void (*ring)(Hca *hca, uint32_t offset, uint32_t value);
    void (*ring_uar)(Hca *hca, uint32_t uar, HcaUarDoorbell doorbell,
                     uint32_t first, uint32_t second);
    uint32_t (*send_qpn)(uint32_t first, uint32_t second);
    /* BAR 2 for reading; NULL: there is nothing to be read. */
    uint64_t (*read_uar)(Hca *hca, uint32_t at, unsigned size);
} HcaRegisters;

typedef struct HcaInterface {
    const HcaRegisters *registers;
    const struct HcaCommandTable *commands; /* ceu/ceu.h */
    const HcaFormat *format;
} HcaInterface;

extern const HcaInterface hca_interface; /* the documents' */

const HcaInterface *hca_front_interface(HcaPersonality personality);

#endif /* HCA_FRONT_INTERFACE_H */
