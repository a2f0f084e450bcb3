/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream of a cable: greeting and framing, cut anywhere, with errors of
 * reads and writes; what is between frames, and frames that say what is not
 * so. As a machine does, the lab ends a stream of which the card says that it
 * has failed. RoCE cards are on a cable of each kind that they may have.
 */
#include <errno.h>
#include <string.h>

#include "../link/framing.h"
#include "lib-frame.h"

#define MOST_FATES 16

/* What reads or writes of one side come to, one after the other. */
typedef struct Fates {
    int fate[MOST_FATES]; /* at most so many bytes, or an errno */
    unsigned count, at;
} Fates;

typedef struct Stream {
    HcaHostOps ops[2]; /* below */
    Fates reads[2], writes[2];
} Stream;

static Stream stream;

static const HcaFraming *framing(const Fuzz *f)
{
    return hca_framing(f->lab->host[0].config.cable);
}

/* False: as usual. */
static bool next_fate(Fates *fates, int *fate)
{
    if (fates->at == fates->count) {
        return false;
    }
    *fate = fates->fate[fates->at++];
    return true;
}

/* One that is told to come back is called again, when there is room or news. */
static ssize_t fail(Host *host, int fate)
{
    if (fate == -EAGAIN) {
        host->lab->want_write[host->side] = true;
        host->kicked = true;
    }
    return fate;
}

static ssize_t on_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;
    struct iovec some = *iov;
    int fate;

    if (next_fate(&stream.writes[host->side], &fate)) {
        if (fate < 0) {
            return fail(host, fate);
        }
        some.iov_len = MIN(some.iov_len, (size_t)fate + 1);
    }
    return stream.ops[host->side].link_writev(opaque, &some, 1);
}

static ssize_t on_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;
    struct iovec some = *iov;
    int fate;

    if (next_fate(&stream.reads[host->side], &fate)) {
        if (fate <= 0) {
            return fail(host, fate);
        }
        some.iov_len = MIN(some.iov_len, (size_t)fate);
    }
    return stream.ops[host->side].link_readv(opaque, &some, 1);
}

static void watch(Host *host)
{
    stream.ops[host->side] = host->ops;
    stream.reads[host->side].count = stream.reads[host->side].at = 0;
    stream.writes[host->side].count = stream.writes[host->side].at = 0;
    host->ops.link_writev = on_writev;
    host->ops.link_readv = on_readv;
}

static void act_fates(Fuzz *f)
{
    static const int errors[] = { -EAGAIN, -EINTR, -EPIPE, 0 };
    unsigned side = fuzz_take_side(f);
    Fates *fates = take_bool(&f->in) ? &stream.reads[side]
                                     : &stream.writes[side];

    fates->at = 0;
    fates->count = 1 + take_below(&f->in, MOST_FATES);
    for (unsigned i = 0; i < fates->count; i++) {
        uint8_t fate = take8(&f->in);

        fates->fate[i] = fate < 0xe0 ? fate : errors[fate & 3];
        if (fates->fate[i] == 0 && fates == &stream.writes[side]) {
            fates->fate[i] = -EPIPE; /* writes do not say 0 */
        }
    }
}

/* ---- bytes ---- */

static void act_bytes(Fuzz *f)
{
    unsigned from = fuzz_take_side(f);
    uint8_t bytes[64];
    size_t len = 1 + take_below(&f->in, sizeof(bytes));

    take_bytes(&f->in, bytes, len);
    lab_cable_inject(f->lab, from, bytes, len);
}

static void act_greeting(Fuzz *f)
{
    unsigned from = fuzz_take_side(f);
    uint8_t frame[HCA_GREETING_FRAME_SIZE];
    uint8_t how = take8(&f->in);
    HcaGreeting greeting = {
        .enabled = !(how & 1),
        .managed = how & 2,
        .old = how & 4,
        .waits = how & 8,
        .resumes = how & 16,
    };
    size_t len = hca_frame_write_greeting(
        frame, f->roce ? HCA_LINK_LAYER_ROCE : HCA_LINK_LAYER_IB, &greeting);

    if (take_bool(&f->in)) {
        frame_edit(f, frame, len);
    }
    lab_cable_inject(f->lab, from, frame, len - take_below(&f->in, 2));
}

static void act_state(Fuzz *f)
{
    unsigned from = fuzz_take_side(f);
    uint8_t frame[HCA_STATE_FRAME_SIZE];
    size_t len = hca_frame_write_state(frame, take_bool(&f->in));

    if (take_bool(&f->in)) {
        frame[HCA_FRAME_HEADER_SIZE] = take8(&f->in);
    }
    lab_cable_inject(f->lab, from, frame, len);
}

/* It says that it moves; or the card does, and goes on, with more or less of it. */
static void act_move(Fuzz *f)
{
    unsigned from = fuzz_take_side(f);
    Hca *hca = f->lab->host[from].hca;
    uint8_t frame[HCA_MOVE_FRAME_SIZE];
    unsigned looks = take_below(&f->in, 4);

    if (take_bool(&f->in)) {
        lab_cable_inject(f->lab, from, frame, hca_frame_write_move(frame));
        return;
    }
    if (!hca_depart(hca)) {
        return;
    }
    while (looks-- && !hca_drain(hca)) {
        lab_step(f->lab);
    }
    lab_cable(f->lab, false);
    lab_run_for(f->lab, take_below(&f->in, 20) * NS_PER_S);
    lab_cable(f->lab, true);
}

/* A frame, whose body may not be all there. */
static void act_frame(Fuzz *f)
{
    static uint8_t body[FRAME_MOST];
    unsigned from = fuzz_take_side(f);
    uint8_t header[HCA_FRAME_HEADER_SIZE], odd = take8(&f->in);
    HcaPacket packet = { .opcode = HCA_SEND_ONLY, .psn = 0x123456 };
    size_t len;

    frame_headers(f, from, FUZZ_RC, 0, &packet);
    packet.payload_len = take8(&f->in);
    len = frame_build(f->roce, &packet, body);
    if (odd & 1) {
        len = 1 + take_below(&f->in, FRAME_MOST);
    }
    framing(f)->write_header(header, HCA_FRAME_PACKET, odd >> 4, len);
    if (odd & 2) {
        header[take_below(&f->in, sizeof(header))] = take8(&f->in);
    }
    if (odd & 4) {
        header[0] |= HCA_FRAME_ERROR;
    }
    lab_cable_inject(f->lab, from, header, framing(f)->header_size);
    if (odd & 8) {
        len = take_below(&f->in, len + 1);
    }
    lab_cable_inject(f->lab, from, body, len);
}

/* As a machine does after each turn. */
static void act_machine(Fuzz *f)
{
    for (unsigned side = 0; side < 2; side++) {
        const Hca *hca = f->lab->host[side].hca;

        if (hca_link_failed(hca) || !hca_link_settled(hca)) {
            lab_cable(f->lab, false);
            lab_cable(f->lab, true);
        }
    }
}

/* Plugged while it is plugged: the stream begins anew, what is on it is not. */
static void act_replug(Fuzz *f)
{
    Host *host = &f->lab->host[fuzz_take_side(f)];

    if (take_bool(&f->in)) {
        hca_link_down(host->hca);
    }
    hca_link_up(host->hca);
    host->kicked = true;
}

/* With what it has to say, and then with a driver again. */
static void act_reset(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);

    if (take_bool(&f->in)) {
        lab_step(f->lab);
    }
    host_reset(&f->lab->host[side]);
    if (take_bool(&f->in)) {
        fuzz_start_over(f, side);
    }
}

static void act_capacity(Fuzz *f)
{
    f->lab->capacity = 1 + take_below(&f->in, 65536);
}

static const FuzzAction actions[] = {
    { "fates", act_fates },       { "bytes", act_bytes },
    { "greeting", act_greeting }, { "frame", act_frame },
    { "machine", act_machine },   { "replug", act_replug },
    { "capacity", act_capacity }, { "send", fuzz_act_send },
    { "recv", fuzz_act_recv },    { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },    { "time", fuzz_act_time },
    { "cable", fuzz_act_cable },  { "state", act_state },
    { "reset", act_reset },       { "move", act_move },
};

/* One bit for the link layer, and then the kind of cable. */
static void begin(Fuzz *f, const uint8_t *data, size_t size)
{
    HcaConfig config[2];
    uint8_t kind;

    *f = (Fuzz) { .in = { data, size } };
    kind = take8(&f->in);
    for (unsigned side = 0; side < 2; side++) {
        fuzz_config(&config[side], side, kind & 1);
        if (kind & 1) {
            config[side].cable = (HCA_CABLE_SEGMENT + kind / 2) %
                                 HCA_CABLE_NPROTOCOLS;
        }
    }
    fuzz_begin_with(f, data, size, FUZZ_GUEST_GOOD, config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f;

    begin(&f, data, size);
    f.lab->short_io = false;
    watch(&f.lab->host[0]);
    watch(&f.lab->host[1]);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    memset(stream.reads, 0, sizeof(stream.reads));
    memset(stream.writes, 0, sizeof(stream.writes));
    f.lab->capacity = 65536;
    fuzz_end(&f);
    return 0;
}
