/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A link with a fault injector whose peer is the test; cases that run in both
 * directions.
 */
#ifndef LIB_FAULT_H
#define LIB_FAULT_H

#include "../wire/wire.h"
#include "lib-pair.h"

#define FAULT_BTH_AT HCA_LRH_SIZE
#define FAULT_QPN 5

typedef struct FaultBench {
    HcaHostOps ops;
    HcaLinkLayer layer;
    HcaLink *link;
    GByteArray *out, *in;
    size_t out_at, in_at;
    size_t room; /* bytes that the cable takes */
    int64_t now;
    unsigned clock_reads;
    GArray *traces;
} FaultBench;

void fault_bench_init(FaultBench *b);
/* The link goes down and comes up. */
void fault_bench_restart(FaultBench *b);
void fault_bench_free(FaultBench *b);
/* The packet leaves or arrives; fault_expect() sees what becomes of it. */
void fault_pass(FaultBench *b, HcaFaultDirection d, const uint8_t *packet,
                size_t len);
/* The next packet that comes out behind the injector, or NULL. */
const uint8_t *fault_next_out(FaultBench *b, HcaFaultDirection d, size_t *len);
/* A packet of @opcode with an AETH that fits it, if it has one. */
size_t fault_make(uint8_t *bytes, uint8_t opcode, uint32_t qpn, uint32_t psn,
                  uint8_t syndrome);
void fault_pass_one(FaultBench *b, HcaFaultDirection d, uint8_t opcode,
                    uint32_t qpn, uint32_t psn);
void fault_pass_psns(FaultBench *b, HcaFaultDirection d, uint32_t first,
                     uint32_t last);
/* The PSNs of what comes out now, all of it: "1 2 4". */
char *fault_psns_out(FaultBench *b, HcaFaultDirection d);
void fault_expect(FaultBench *b, HcaFaultDirection d, const char *psns);
void fault_let_pass(FaultBench *b, int64_t ns);
/* How many there were of that direction and kind. */
uint64_t fault_injected(FaultBench *b, HcaFaultDirection d,
                        HcaFaultAction action);
void fault_set(FaultBench *b, const HcaFaultPlan *plan);
void fault_set_none(FaultBench *b);

/* Pass @packet: does it not come out? */
bool fault_dropped(FaultBench *b, HcaFaultDirection d, const uint8_t *packet,
                   size_t size);

/* Cases that run in each direction. Their data is a FaultCase *const *. */
typedef void FaultCase(FaultBench *b, HcaFaultDirection d);
void fault_both_directions(gconstpointer data);
void fault_both_directions_roce(gconstpointer data);

#endif /* LIB_FAULT_H */
