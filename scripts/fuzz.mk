# SPDX-License-Identifier: GPL-2.0-or-later
# Fuzz targets: every core/fuzz/fuzz-*.c is a program of its own, linked with libFuzzer, the whole card (core/), the tests'
# helpers (core/tests/lib*.c) and those of the targets (core/fuzz/lib*.c), all under the address and undefined behaviour
# sanitizers. Only the card is watched by libFuzzer, and its steps counted: what the helpers do is no news. COVERAGE=1 builds the same with
# the compiler's own count of lines, for scripts/fuzz coverage. Every switch/fuzz/fuzz-*.c is one of the switch, with its engine and
# what that takes of the card.

source := hw-rdma-hca
out := build/fuzz$(if $(COVERAGE),/coverage)

CC := clang
watched := $(if $(COVERAGE),-fprofile-instr-generate -fcoverage-mapping,-fsanitize=fuzzer-no-link -fsanitize-coverage=trace-pc -fno-sanitize-coverage=trace-cmp)
CFLAGS := -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-I$(source)/core -I$(source)/abi -I$(source)/core/tests -I$(source)/core/fuzz -I$(source) \
	$(shell pkg-config --cflags glib-2.0 libdeflate)
# What the machine may do with a card (hca.h) goes through lib-meter.c.
calls := hca_new hca_free hca_reset hca_run hca_load hca_bar0_write hca_doorbell hca_link_up hca_link_down hca_link_writable hca_depart hca_drain \
	hca_set_faults hca_start_capture
LDFLAGS := -fsanitize=fuzzer,address,undefined $(if $(COVERAGE),-fprofile-instr-generate) $(calls:%=-Wl,--wrap=%) -Wl,--wrap=__sanitizer_cov_trace_pc
LIBS := $(shell pkg-config --libs glib-2.0 libdeflate) -lm -pthread
GIO := $(shell pkg-config --cflags gio-unix-2.0 gnutls)
GIO_LIBS := $(shell pkg-config --libs gio-unix-2.0 gnutls)

card := $(shell find $(source)/core -name '*.c' ! -path '*/tests/*' ! -path '*/fuzz/*')
helpers := $(wildcard $(source)/core/tests/lib*.c $(source)/core/fuzz/lib*.c)
targets := $(wildcard $(source)/core/fuzz/fuzz-*.c)
object = $(patsubst $(source)/%.c,$(out)/%.o,$(1))
parts := $(filter $(addprefix $(source)/core/,fault/% link/% record/% wire/% mad/% config.c state.c),$(card))
engine := $(addprefix $(source)/switch/,switch.c port.c packet.c forward.c output.c queue.c agent.c counters.c report.c)
# What is around the engine that a user gives text to (fuzz-control.c).
around := $(addprefix $(source)/switch/,address.c control.c fault_text.c options.c tls.c)
switch_helpers := $(wildcard $(source)/switch/fuzz/lib*.c) $(source)/core/tests/lib-input.c
switch_targets := $(wildcard $(source)/switch/fuzz/fuzz-*.c)
switch_programs := $(patsubst $(source)/switch/fuzz/%.c,$(out)/%,$(switch_targets))
programs := $(patsubst $(source)/core/fuzz/%.c,$(out)/%,$(targets))

# A target whose source is gone is none any more.
all: $(programs) $(switch_programs)
	@rm -f $(filter-out $(programs) $(switch_programs),$(filter-out %.log,$(wildcard $(out)/fuzz-*)))

$(programs): $(out)/%: $(out)/core/fuzz/%.o $(call object,$(card) $(helpers))
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(switch_programs): $(out)/%: $(out)/switch/fuzz/%.o $(call object,$(parts) $(engine) $(switch_helpers))
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(GIO_LIBS)

$(out)/fuzz-control: $(call object,$(around))
$(call object,$(around)) $(out)/switch/fuzz/fuzz-control.o: CFLAGS += $(GIO)
$(call object,$(card) $(engine) $(around)): CFLAGS += $(watched)

$(out)/%.o: $(source)/%.c scripts/fuzz.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(call object,$(card) $(helpers) $(targets) $(engine) $(around) $(switch_helpers) $(switch_targets)))
.PHONY: all
.SECONDARY:
