# SPDX-License-Identifier: GPL-2.0-or-later
# The tests' programs, the agent and what wakes a guest, in $(root), for the rdma-core that was built in the folder $(of_rdma_core);
# libraries of programs/preload are given beside what others wrote: LD_PRELOAD=preload-NAME.so. CC,
# triplet, libraries: of the guests' architecture; the last, what rdma-core needs.

programs := guest-tests/programs
image := guest-tests/image
library := $(of_rdma_core)/rdma-core
objects := $(of_rdma_core)/guest/objects

CFLAGS := -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -I $(library)/include -I hw-rdma-hca/abi \
	$(if $(shell grep -l ibv_create_comp_cntr $(library)/include/infiniband/verbs.h),-DHAS_COMP_CNTR)
LIBS := -L $(library)/lib -Wl,--as-needed -libverbs -lrdmacm -libumad -Wl,-rpath-link,$(libraries)

bin := $(patsubst $(programs)/%.c,$(root)/usr/bin/%,$(filter-out %/common.c,$(wildcard $(programs)/*.c)))
sbin := $(root)/usr/sbin/agent $(root)/usr/sbin/wake
preload := $(patsubst $(programs)/preload/%.c,$(root)/usr/lib/$(triplet)/preload-%.so,$(wildcard $(programs)/preload/*.c))

# What has no source any more.
$(shell rm -f $(filter-out $(bin) $(preload),$(wildcard $(root)/usr/bin/* $(root)/usr/lib/*/preload-*)))

all: $(bin) $(sbin) $(preload)

$(bin): $(root)/usr/bin/%: $(objects)/%.o $(objects)/common.o
	@mkdir -p $(@D)
	$(CC) -pthread -o $@ $^ $(LIBS)

$(objects)/%.o: $(programs)/%.c scripts/programs.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(sbin): $(root)/usr/sbin/%: $(image)/%.c scripts/programs.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $<

$(preload): $(root)/usr/lib/$(triplet)/preload-%.so: $(programs)/preload/%.c scripts/programs.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<

.SECONDARY:
-include $(wildcard $(objects)/*.d)
