/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A state that lies (lib-lie.h), of machine 0's card while it works: what it
 * takes has to be a card as good as any other. Honest states are in between, of
 * both cards.
 *
 * Whoever sends a state sends the machine's memory, too: machine 0 has no secrets.
 */
#include "lib-fuzz.h"
#include "lib-lie.h"

static void act_bytes(Fuzz *f)
{
    lie_in_bytes(&f->in, &f->lab->host[0]);
}

static void act_start_over(Fuzz *f)
{
    fuzz_start_over(f, 0);
}

static const FuzzAction actions[] = {
    { "lie", fuzz_act_lie },       { "lie", fuzz_act_lie },
    { "lie", fuzz_act_lie },       { "bytes", act_bytes },
    { "reload", fuzz_act_reload }, { "start over", act_start_over },
    { "send", fuzz_act_send },     { "exchange", fuzz_act_exchange },
    { "recv", fuzz_act_recv },     { "arm", fuzz_act_arm },
    { "poll", fuzz_act_poll },     { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },     { "time", fuzz_act_time },
    { "revive", fuzz_act_revive }, { "modify", fuzz_act_modify },
    { "group", fuzz_act_group },   { "cable", fuzz_act_cable },
    { "events", fuzz_act_events }, { "multicast", fuzz_act_multicast },
    { "gid", fuzz_act_gid },       { "region", fuzz_act_region },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f;

    fuzz_begin(&f, data, size, FUZZ_GUEST_DRIVER);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    return 0;
}
