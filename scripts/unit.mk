# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests: every core/tests/test-*.c is a program of its own. What they share is a library, so that a change to the card is
# one link and not one for each program: the whole card (core/, but for its tests) and the tests' helpers (core/tests/lib*.c), all
# under the address and undefined behaviour sanitizers. The same of the switch, of which the program itself is built, too. Without
# sanitizers, as are their cards: fabric-cards, which guest tests use, and the benchmarks of bench/.

source := hw-rdma-hca
out := build/unit
# Words more for the compiler: what is built with others has another folder.
more :=

CFLAGS := $(more) -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -fPIC \
	-I$(source)/core -I$(source)/abi -I$(source)/core/tests -I$(source) $(shell pkg-config --cflags glib-2.0 libdeflate)
LIBS := $(shell pkg-config --libs glib-2.0 libdeflate) -lm -pthread

card := $(shell find $(source)/core -name '*.c' ! -path '*/tests/*' ! -path '*/fuzz/*')
helpers := $(wildcard $(source)/core/tests/lib*.c)
tests := $(wildcard $(source)/core/tests/test-*.c)
object = $(patsubst $(source)/%.c,$(out)/%.o,$(1))
benches := $(out)/cards $(out)/sweep
programs := $(patsubst $(source)/core/tests/%.c,$(out)/%,$(tests))

# The switch (switch/) and what it takes of the card: cables, packets, management agents.
parts := $(filter $(addprefix $(source)/core/,fault/% link/% record/% wire/% mad/% config.c state.c),$(card))
switch := $(wildcard $(source)/switch/*.c)
engine := $(addprefix $(source)/switch/,switch.c port.c packet.c forward.c output.c queue.c agent.c counters.c report.c tls.c fault_text.c)
switch_helpers := $(wildcard $(source)/switch/tests/lib*.c) $(addprefix $(source)/core/tests/,lib-test.c lib-pcapng.c)
switch_tests := $(wildcard $(source)/switch/tests/test-*.c)
switch_programs := $(patsubst $(source)/switch/tests/%.c,$(out)/%,$(switch_tests))
GIO := $(shell pkg-config --cflags gio-unix-2.0 gnutls)
GIO_LIBS := $(shell pkg-config --libs gio-unix-2.0 gnutls)

# A test whose source is gone is none any more.
all: $(programs) $(switch_programs) $(out)/hca-switch $(out)/fabric-cards $(benches) $(out)/card.elf
	@rm -f $(filter-out $(programs) $(switch_programs),$(wildcard $(out)/test-*))

$(out)/libcard.so: $(call object,$(card) $(helpers))
	gcc $(CFLAGS) -shared -o $@ $^ $(LIBS)

$(out)/libswitch.so: $(call object,$(parts) $(engine) $(switch_helpers))
	gcc $(CFLAGS) -shared -o $@ $^ $(LIBS) $(GIO_LIBS)

# A program whose library alone is new is as good as new.
program = $(if $(filter %.o,$?),gcc $(CFLAGS) -o $@ $(filter %.o,$^) -L$(out) -l$(1) -Wl$(comma)-rpath$(comma)'$$ORIGIN' $(LIBS) $(2),touch $@)
comma := ,

$(programs): $(out)/%: $(out)/core/tests/%.o $(out)/libcard.so
	$(call program,card)

$(switch_programs): $(out)/%: $(out)/switch/tests/%.o $(out)/libswitch.so
	$(call program,switch,$(GIO_LIBS))

$(out)/hca-switch: $(call object,$(parts) $(switch))
	gcc $(CFLAGS) -o $@ $^ $(LIBS) $(GIO_LIBS)

$(out)/switch/%.o: CFLAGS += $(GIO)
$(out)/switch/tests/test-switch-tls.o: CFLAGS += -DMAKE_CREDENTIALS='"$(abspath scripts/make-credentials)"'

plain = $(patsubst $(source)/%.c,$(out)/plain/%.o,$(1))
plain_card := $(call plain,$(card))
fabric_cards := $(call plain,$(source)/switch/tests/fabric-cards.c)
bench_parts := $(call plain,$(source)/bench/rig.c $(helpers))
PLAIN_CFLAGS := -O2 $(filter-out -O1 -fPIC -fsanitize% -fno-sanitize% $(more),$(CFLAGS)) $(GIO)

$(out)/fabric-cards: $(plain_card) $(fabric_cards)
	gcc $(PLAIN_CFLAGS) -o $@ $^ $(LIBS) $(GIO_LIBS)

$(benches): $(out)/%: $(out)/plain/bench/%.o $(plain_card) $(bench_parts)
	gcc $(PLAIN_CFLAGS) -o $@ $^ $(LIBS)

# For `make check T=source/state`: gdb reads types and lists in it; where all has an address, pointers are known without running it.
$(out)/card.elf: $(plain_card)
	gcc -no-pie -nostartfiles -Wl,-e,0 -o $@ $^ $(LIBS)

$(out)/plain/%.o: $(source)/%.c scripts/unit.mk
	@mkdir -p $(@D)
	gcc $(PLAIN_CFLAGS) -MMD -MP -c -o $@ $<

$(out)/%.o: $(source)/%.c scripts/unit.mk
	@mkdir -p $(@D)
	gcc $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(call object,$(card) $(helpers) $(tests) $(switch) $(switch_helpers) $(switch_tests))) $(patsubst %.o,%.d,$(plain_card) $(fabric_cards) $(bench_parts)) $(benches:$(out)/%=$(out)/plain/bench/%.d)
.PHONY: all
.SECONDARY:
