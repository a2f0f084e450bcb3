# SPDX-License-Identifier: GPL-2.0-or-later
# The switch, build/hca-switch: switch/ and what it takes of the card (cables, packets, management agents), with GLib.

source := hw-rdma-hca
out := build/switch
program := build/hca-switch

CFLAGS := -std=gnu11 -g -O2 -Wall -Wextra -Wno-unused-parameter -Werror \
	-I$(source)/core -I$(source)/abi -I$(source) $(shell pkg-config --cflags gio-unix-2.0 gnutls libdeflate)
LIBS := $(shell pkg-config --libs gio-unix-2.0 gnutls libdeflate) -lm

sources := $(wildcard $(source)/switch/*.c $(source)/core/fault/*.c $(source)/core/link/*.c $(source)/core/record/*.c $(source)/core/wire/*.c $(source)/core/mad/*.c) \
	$(source)/core/config.c $(source)/core/state.c
objects := $(patsubst $(source)/%.c,$(out)/%.o,$(sources))

$(program): $(objects)
	gcc $(CFLAGS) -o $@ $^ $(LIBS)

$(out)/%.o: $(source)/%.c scripts/switch.mk
	@mkdir -p $(@D)
	gcc $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(objects:.o=.d)
