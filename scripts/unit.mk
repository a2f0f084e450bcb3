# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests: every core/tests/test-*.c is a program of its own, linked with the whole card (core/, but for its tests) and with
# the tests' helpers (core/tests/lib*.c), all under the address and undefined behaviour sanitizers.

source := hw-rdma-hca
out := build/unit

CFLAGS := -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-I$(source)/core -I$(source)/abi -I$(source)/core/tests -I$(source) $(shell pkg-config --cflags glib-2.0 libdeflate)
LIBS := $(shell pkg-config --libs glib-2.0 libdeflate) -lm -pthread

card := $(shell find $(source)/core -name '*.c' ! -path '*/tests/*' ! -path '*/fuzz/*')
helpers := $(wildcard $(source)/core/tests/lib*.c)
tests := $(wildcard $(source)/core/tests/test-*.c)
object = $(patsubst $(source)/%.c,$(out)/%.o,$(1))
programs := $(patsubst $(source)/core/tests/%.c,$(out)/%,$(tests))

# A test whose source is gone is none any more.
all: $(programs)
	@rm -f $(filter-out $(programs),$(wildcard $(out)/test-*))

$(programs): $(out)/%: $(out)/core/tests/%.o $(call object,$(card) $(helpers))
	gcc $(CFLAGS) -o $@ $^ $(LIBS)

$(out)/%.o: $(source)/%.c scripts/unit.mk
	@mkdir -p $(@D)
	gcc $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(call object,$(card) $(helpers) $(tests)))
.PHONY: all
.SECONDARY:
