# SPDX-License-Identifier: GPL-2.0-or-later
# rdma-hca: set up, build, run and test. `make help` says what there is; scripts/ has one script a stage.

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help run snapshot check soak check-long check-late check-lies check-arm64 check-libvirt check-packages check-mthca check-debug check-threads check-mutations mutate bench bench-cards bench-sweep bench-served ledger loss matrix matrix-row guest shell circle env build pair packages clean distclean
.DEFAULT_GOAL := help

S := build/stamps
stage := scripts/stage

# Sources by what is built from them. They are looked up, not listed.
files = $(shell find $(1) -type f)
sources = $(shell find $(1) -type f \( -name '*.[ch]' -o -name '*.c.inc' -o -name '*.json' -o -name '*.build' -o -name '*.txt' \
	-o -name Kconfig -o -name Kbuild -o -name '*.mk' -o -name Makefile -o -name trace-events \) 2>/dev/null)
abi      := $(call sources,hw-rdma-hca/abi)
core     := $(call sources,hw-rdma-hca/core)
device   := $(filter-out hw-rdma-hca/core/tests/% hw-rdma-hca/core/fuzz/%,$(core)) $(abi) $(call sources,hw-rdma-hca/qemu)
switch   := $(call sources,hw-rdma-hca/switch)
benches  := $(call sources,hw-rdma-hca/bench)
driver   := $(call sources,guest-driver/kernel) $(call sources,guest-tests/kernel)
provider := $(call sources,guest-driver/provider)
programs := $(filter-out guest-tests/programs/apps/%,$(call sources,guest-tests/programs)) \
	$(wildcard guest-tests/image/*.c guest-tests/image/guest-*)

# What is built for guests of another architecture than the host's, ARCH=arm64, is in $A, all of it.
A := build
ifeq ($(firstword $(origin ARCH)),command)
$(if $(filter amd64 arm64,$(ARCH)),,$(error ARCH=$(ARCH): there are amd64 and arm64))
ifneq ($(ARCH),amd64)
export GUEST_ARCH := $(ARCH)
A := build/$(ARCH)
endif
endif
SA := $A/stamps

# Versions that there are to choose from: see scripts/versions.
versions = $(shell sed -n 's/^$(1) \([^ ]*\).*/\1/p' scripts/versions)
linuxes := $(call versions,linux)
linux := $(filter-out $(firstword $(linuxes)),$(linuxes))

# chosen NAME,VERSIONS: the version to build of QEMU or rdma-core: the first, or that of the command line.
chosen = $(if $(filter command,$(firstword $(origin $(1)))),$(if $(filter newest,$($(1))),$(lastword $(2)),$(or $(filter $($(1)),$(2)),$(error \
	$(1)=$($(1)): there are $(2) and newest))),$(firstword $(2)))

# What is built of QEMU is in $Q, its stamps in $(SQ).
qemus := $(call versions,qemu)
qemu := $(call chosen,QEMU,$(qemus))
Q := $A
ifneq ($(qemu),$(firstword $(qemus)))
Q := build/qemus/$(qemu)
export HOST_QEMU := $(realpath .)/$Q
endif
SQ := $Q/stamps

# The guests' kernel: the usual one; one of `named`, which a script makes ready; or that of KERNEL and HEADERS. What is built for
# it is in $K, its stamps in $(SK).
built := $(filter $(linuxes),$(notdir $(wildcard patches/linux/*)))
debug := $(built:%=debug-%)
named := $(linux) $(debug) $(built:%=gdb-%)
ifeq ($(KERNEL),newest)
override KERNEL := $(lastword $(linux))
endif
ifeq ($(KERNEL),$(firstword $(linuxes)))
override KERNEL :=
endif
ifeq ($(KERNEL),)
K := $A
kernel := $(SA)/guest-unpacked
else
ifneq ($(filter $(KERNEL),$(named)),)
K := build/kernels/$(KERNEL)
else
# A build tree: the vmlinux in it, if QEMU can start that.
ifneq ($(wildcard $(KERNEL)/.config),)
override HEADERS := $(KERNEL)
override KERNEL := $(HEADERS)/$(shell scripts/tree-kernel '$(HEADERS)/.config')
tree_modules := $(wildcard $(patsubst %.o,%.ko,$(shell sed 's,^kernel/,,; s,^,$(HEADERS)/,' '$(HEADERS)/modules.order' 2>/dev/null)))
endif
release := $(shell sed -n 's/.*"\(.*\)".*/\1/p' '$(HEADERS)/include/generated/utsrelease.h' 2>/dev/null)
$(if $(release),,$(error KERNEL=$(KERNEL): say its build tree with HEADERS, or give one of: $(named)))
K := build/kernels/$(release)
endif
kernel := $K/stamps/kernel
export GUEST_KERNEL := $(realpath .)/$K
endif
SK := $K/stamps

# What is built of rdma-core is in $R, its stamps in $(SR).
rdma_cores := $(call versions,rdma-core)
rdma_core := $(call chosen,RDMA_CORE,$(rdma_cores))
R := $A
ifneq ($(rdma_core),$(firstword $(rdma_cores)))
R := build/rdma-cores/$(rdma_core)
export GUEST_RDMA_CORE := $(realpath .)/$R
endif
SR := $R/stamps

help:
	@echo 'make run             set up and build what is missing, start two guests, run the demonstration'
	@echo 'make snapshot        keep what its guests are when they are up: make run SNAPSHOT=1 goes on from there'
	@echo 'make check           the same set-up, then all tests'
	@echo 'make check T=PATTERN only the tests whose name matches this regular expression; T=list names them'
	@echo '                     SINCE=REV: only those that what changed since this commit can break'
	@echo '                     SHAKY=fail: also fail for guest cases that fail only once'
	@echo 'make soak            N=20 rounds of guest programs beside LOAD=2 spinning processes; T=PATTERN as above'
	@echo 'make check-long      all tests, some of them longer; T=PATTERN as above'
	@echo 'make check-late      the guests'\'' tests with memory that takes its time; T=PATTERN as above'
	@echo 'make check-lies      units, while states of their cards lie; T=PATTERN as above'
	@echo 'make check-threads   the qtest with a QEMU under the thread sanitizer; T=PATTERN as above'
	@echo 'make check-mutations mistakes in the tree, each of which make check SINCE=HEAD has to find; T=ROOM one'
	@echo 'make mutate          300 small mistakes in card and switch: those that no unit test finds; T=ROOM one, N=... so many'
	@echo 'make fuzz            look for inputs that break card or switch; T=NAME one target, SECONDS=N for so long each'
	@echo 'make fuzz-coverage   lines of card and switch that the kept inputs reach; make fuzz-keep T=NAME keeps what was learned'
	@echo 'make ledger          write guest-tests/pyverbs/ledger* anew: how rdma-core'\''s own tests go'
	@echo 'make bench           our cards, Soft-RoCE, virtio-net and sockets side by side: build/bench; BASE=FILE compares'
	@echo 'make bench-cards     nanoseconds a message of two cards in one process, without guests'
	@echo 'make bench-sweep     their messages a second in simulated time by caches, latency and QPs: build/bench'
	@echo 'make bench-served    cards served to a distribution'\''s QEMU by vfio-user beside the same ones in ours'
	@echo 'make matrix          the demonstration and a few tests with each QEMU, kernel and rdma-core; T=PATTERN some'
	@echo 'make loss            goodput and retransmissions on a cable that loses packets'
	@echo 'make check-debug     tests of the driver under a kernel that checks it: KASAN, lockdep, failing allocations'
	@echo 'make guest           two guests, with their consoles (make shell is the same); LINK=roce: RoCE cards;'
	@echo '                     LINK=managed: with opensm to start; APPS=1: with applications; GDB=1: and gdb at guest1'\''s kernel'
	@echo '                     RUN=COMMAND: runs it in both, without a terminal; SERVER=... CLIENT=...: one in each;'
	@echo '                     GDB=FILE: gdb runs the commands of this file meanwhile; OUT=FOLDER: for counters, recorders, captures'
	@echo 'make circle          seconds from a changed line of driver, provider, card or kernel to a test of it; TREE=DIR: a kernel'\''s'
	@echo '                     build tree with CONFIG_GDB_SCRIPTS'
	@echo 'make build           set up and build only'
	@echo 'make packages        Debian packages of device, switch, server, driver and provider: build/debs'
	@echo 'make check-packages  installs and uses them in whole systems of Debian 12 and 13, and removes them'
	@echo 'make check-mthca     the long form of what guests do with a card that they know, also in whole systems of Debian 12 and 13'
	@echo 'make check-arm64     tests with an aarch64 guest as each second one; ARCH=arm64 builds what that is made of'
	@echo 'make check-libvirt   starts the domains of docs/libvirt'
	@echo 'make pair            and what ci/rdma-hca-pair wants beside that: docs/ci.md'
	@echo 'make env             where things are, as shell variables: eval "$$(make -s env)"'
	@echo 'make clean           remove what was built; make distclean: also what was fetched'
	@echo
	@echo 'ACCEL=kvm|tcg        what the guests run with (by trial if not given). Logs: build/logs'
	@echo 'QEMU=$(subst $() $(),|,$(qemus))|newest RDMA_CORE=$(subst $() $(),|,$(rdma_cores))|newest  other versions of these'
	@echo 'KERNEL=TREE          their kernel: of a build tree; or KERNEL=FILE HEADERS=TREE: vmlinux or bzImage, and its build tree. KERNEL=$(subst $() $(),|,$(named))|newest: that one'

run: build
	@LINK='$(LINK)' SNAPSHOT='$(SNAPSHOT)' guest-tests/demonstration.py

# What the guests of `make run` are when they are up.
snapshot: build
	@LINK='$(LINK)' guest-tests/snapshot.py

check: build $S/unit $(SR)/python-disk $S/apps-layer $S/debian-layer $S/stock-qemu $(patsubst %,$S/headers-%,$(firstword $(linux)) $(lastword $(linux)))
	@scripts/run-tests $(if $(SINCE),--since '$(SINCE)') '$(T)'

# Whether make check SINCE= finds mistakes: those of scripts/mutations; T=ROOM one.
check-mutations: build $S/unit $S/fuzz
	@scripts/check-mutations $(T)

# Which small mistakes in the card and the switch no unit test finds; T=ROOM, N=COUNT.
mutate: $S/host
	@scripts/mutate $(if $(filter command line,$(origin N)),--count $(N)) $(T)

# What fails seldom: N rounds of guest programs beside LOAD processes that spin.
N ?= 20
LOAD ?= 2
soak: build $(SR)/python-disk $S/apps-layer $S/debian-layer
	@scripts/run-tests --soak '$(N)' --load '$(LOAD)' '$(T)'

# Tests take their long forms.
check-long: export LONG := 1
check-long: $(linux:%=$S/headers-%) packages $(systems:%=$S/system-%) $S/libvirt check

# Guests whose cards have memory that takes its time; so do they.
late_options := memory-latency-ns=2000
check-late: build $S/unit $(SR)/python-disk $S/apps-layer $S/debian-layer
	@CARD_OPTIONS='$(late_options)' GUEST_PATIENCE=$(or $(GUEST_PATIENCE),4) scripts/run-tests '$(or $(T),^guest/)'

# In front of one turn of so many states of the card are changed, and given to one in another process.
check-lies: $S/unit
	@HCA_LIES=50 scripts/run-tests '$(or $(T),^unit/)'

check-threads: build $(SQ)/qemu-tsan
	@scripts/check-threads '$(T)'

# What `make check-debug` runs. Its guests are slow, and get more time. Cases are left out in which Linux's
# own RDS, iSER, Soft-RoCE or ib_sa (several ways of one subnet) break its checkers' rules.
debug_tests := ^guest/(driver|recovery|host_faults|reset|concurrency|stress|verbs|srq|memory|dm|extended|raw|roce|roce_driver|tools|interface|life|life_pairs|apps_nvme|apps_nfs|apps_srp|apps_ucx/test_(capabilities|transports|protocols|loss|peer_killed|figures|roce_\w+)|kernel_checks|fabric_(pair|managers|ipoib|switch)|fabric_trunk/test_(topology|routes|all_pairs|both_cables|cable_pulled)|fabric_apps/test_(nvme|nfs|mpi|libfabric|perftest))$$

ifneq ($(filter $(KERNEL),$(debug)),)
check-debug: build $S/apps-layer
	@scripts/run-tests '$(T)'
else
check-debug:
	@$(MAKE) --no-print-directory check-debug KERNEL=debug-$(or $(KERNEL),$(firstword $(linuxes))) HEADERS= GUEST_PATIENCE=$(or $(GUEST_PATIENCE),10) GUEST_MEMORY=$(or $(GUEST_MEMORY),1024) \
		T='$(or $(T),$(debug_tests))'
endif

bench: build $S/bench-packages $S/unit
	@guest-tests/bench/bench.py

bench-cards: $S/unit
	@build/unit/cards --recorder=1024
	@build/unit/cards --roce --recorder=1024

bench-sweep: $S/bench-packages $S/unit
	@guest-tests/bench/sweep.py

bench-served: build $S/stock-qemu
	@guest-tests/bench/served.py

# The versions that README promises: the oldest and the newest with each other, and each between; T=PATTERN some.
matrix:
	@scripts/matrix '$(T)'

matrix-row: run $S/apps-layer
	@scripts/run-tests '^(qtest/.*|unit/provider|guest/(driver|verbs|roce|apps_rsockets))$$'

ledger: build $(SR)/python-disk
	@guest-tests/test_pyverbs.py --ledger
	@guest-tests/test_mthca_pyverbs.py --ledger

loss: build
	@guest-tests/loss_figures.py

# Two guests' consoles, or what RUN says in both, or SERVER and CLIENT in one each. They have the applications with APPS=1 or
# LINK=managed, which wants opensm, and RoCE cards with LINK=roce. OUT: a folder for what is left of them. What the command line
# sets is in the environment, too, and a $ in it is the guests'. What the environment has by these names is something else.
$(foreach name,RUN SERVER CLIENT GDB OUT,$(eval override $(name) := $$(if $$(filter command,$$(firstword $$(origin $(name)))),$$(value $(name)))))
export RUN SERVER CLIENT GDB OUT
guest shell: build $(if $(APPS)$(filter managed,$(LINK)),$S/apps-layer)
ifneq ($(RUN)$(SERVER),)
	@ci/rdma-hca-pair --link "$${LINK:-ib}" $(if $(APPS),--apps) $${GDB:+--gdb "$$GDB"} $${OUT:+--artifacts "$$OUT" --capture} \
		$${SERVER:+--server "$$SERVER" --client "$$CLIENT"} $${RUN:+-- "$$RUN"}
else
	@LINK='$(LINK)' APPS='$(APPS)' GDB='$(GDB)' guest-tests/shell.py
endif

# From a changed line to a test of it, by the clock, with a kernel's build tree: one that is built here, if there is no other.
TREE ?= build/kernels/gdb-$(firstword $(built))/tree
circle:
ifeq ($(origin TREE),file)
	@$(MAKE) --no-print-directory build KERNEL=gdb-$(firstword $(built))
endif
	@scripts/circle '$(TREE)'

env:
	@scripts/env

build: $(SQ)/qemu $S/switch $(SA)/guest-unpacked $(SR)/rdma-core-layer $(SR)/programs-layer $(SK)/modules-layer

# With a subnet manager for managed InfiniBand.
pair: build $S/apps-layer

layers_made := rdma-core rdma-core-layer programs-layer perftest pyverbs python-disk
# Debian packages: build/debs. They are installed in whole systems of Debian's, and taken out again.
packages: $S/packages

systems := bookworm trixie
# Pairs of an x86-64 guest and an aarch64 one, in which tests run that need no more than the guests have.
arm64_tests := ^guest/(anywhere_arm64|verbs|memory|srq|extended|dm|concurrency|corners|roce|roce_cable|roce_faults|roce_driver|driver|recovery|counters|raw)$$
check-arm64: build
	@$(MAKE) --no-print-directory build ARCH=arm64
	@PEER_ARCH=arm64 GUEST_PATIENCE=$(or $(GUEST_PATIENCE),3) scripts/run-tests '$(or $(T),$(arm64_tests))'

check-libvirt: export LONG := 1
check-libvirt: build $S/apps-layer $S/libvirt
	@scripts/run-tests '^guest/anywhere_libvirt$$'

# The card that guests know: all that there is of it, also in whole systems.
check-mthca: export LONG := 1
check-mthca: build $(SR)/python-disk $S/apps-layer $S/debian-layer $(systems:%=$S/system-%)
	@scripts/run-tests '$(or $(T),^guest/mthca.*)'

check-packages: export LONG := 1
check-packages: build packages $(systems:%=$S/system-%)
	@scripts/run-tests '^guest/anywhere_packages$$'

clean:
	rm -rf build/qemu build/qemu-tsan build/qemu-data build/switch build/hca-switch build/unit build/rdma-core build/rdma-core-root \
		build/driver build/kernel-test \
		$(foreach made,modules.* initramfs* rdma-core* programs* objects python python.squashfs apps apps-headers apps.squashfs,build/guest/$(made)) \
		build/pyverbs build/templates build/debs build/systems build/packages build/stock build/run build/logs build/accelerator build/check-driver \
		$(foreach made,driver kernel-test guest/modules.* guest/initramfs* stamps/driver stamps/modules-layer,build/kernels/*/$(made))
	rm -rf $(foreach made,qemu qemu-tsan qemu-data stamps/qemu stamps/qemu-tsan,build/qemus/*/$(made)) \
		$(foreach made,rdma-core rdma-core-root perftest perftest-root pyverbs guest $(layers_made:%=stamps/%),build/rdma-cores/*/$(made))
	rm -f $(foreach made,qemu qemu-tsan switch unit driver modules-layer apps-layer stock-qemu packages $(systems:%=system-%) $(layers_made),$S/$(made))

distclean:
	rm -rf build

# One rule a stage. A stage's script is among what it depends on.

define stage_done
	@mkdir -p $(@D)
	@touch $@
endef

$S/machine: scripts/check-machine
	@scripts/check-machine
	$(stage_done)

$S/apt: scripts/configure-apt | $S/machine
	@$(stage) 'configure apt' scripts/configure-apt
	$(stage_done)

$S/host: scripts/install-host-packages scripts/host-packages | $S/apt
	@$(stage) 'install host packages' scripts/install-host-packages
	$(stage_done)

ifeq ($A,build)
$(SQ)/qemu-source: scripts/fetch-sources $(wildcard patches/qemu/*.patch patches/qemu/$(qemu)/*.patch) | $S/host
	@$(stage) 'fetch qemu' scripts/fetch-sources qemu $(qemu)
	$(stage_done)

$(SR)/rdma-core-source: scripts/fetch-sources $(wildcard patches/rdma-core/*.patch patches/rdma-core/$(rdma_core)/*.patch) | $S/host
	@$(stage) 'fetch rdma-core' scripts/fetch-sources rdma-core $(rdma_core)
	$(stage_done)
else
# Another architecture has the same sources, and its own compiler.
$(SA)/host: scripts/install-host-packages scripts/$(ARCH)-packages | $S/host
	@$(stage) 'install packages for $(ARCH)' scripts/install-host-packages scripts/$(ARCH)-packages
	@mkdir -p $A && ln -sfn ../src $A/src
	$(stage_done)

$(SA)/qemu-source $(SA)/rdma-core-source: $(SA)/%: $S/% | $(SA)/host
	$(stage_done)

$(SA)/guest-packages: | $(SA)/host
endif

$(SQ)/qemu: $(SQ)/qemu-source scripts/build-qemu $(device)
	@$(stage) 'build qemu' scripts/build-qemu
	$(stage_done)

$S/switch: scripts/switch.mk $(filter-out hw-rdma-hca/switch/tests/% hw-rdma-hca/switch/fuzz/%,$(switch)) \
		$(filter-out hw-rdma-hca/core/tests/% hw-rdma-hca/core/fuzz/%,$(core)) $(abi) | $S/host
	@$(stage) 'build switch' $(MAKE) -f scripts/switch.mk -j $(shell nproc)
	$(stage_done)

$(SQ)/qemu-tsan: $(SQ)/qemu scripts/build-qemu-tsan
	@$(stage) 'build qemu for threads' scripts/build-qemu-tsan
	$(stage_done)

$(SR)/rdma-core: $(SR)/rdma-core-source scripts/build-rdma-core $(provider) $(abi)
	@$(stage) 'build rdma-core' scripts/build-rdma-core
	$(stage_done)

$(SR)/perftest-source: scripts/fetch-sources scripts/versions | $S/host
	@$(stage) 'fetch perftest' scripts/fetch-sources perftest $(lastword $(call versions,perftest))
	$(stage_done)

$(SR)/perftest: $(SR)/perftest-source $(SR)/rdma-core-source scripts/build-perftest | $(SR)/rdma-core
	@$(stage) 'build perftest' scripts/build-perftest
	$(stage_done)

$(SA)/guest-packages: scripts/fetch-guest scripts/image.sh guest-tests/image/packages | $S/host
	@$(stage) 'fetch guest packages' scripts/fetch-guest
	$(stage_done)

$(SA)/guest-unpacked: $(SA)/guest-packages scripts/unpack-guest scripts/image.sh scripts/extract-vmlinux
	@$(stage) 'unpack guest packages' scripts/unpack-guest
	$(stage_done)

$(SK)/driver: $(kernel) scripts/build-driver scripts/kbuild.sh $(driver) $(abi)
	@$(stage) 'build driver' scripts/build-driver
	$(stage_done)

# The layers of the guests' root that what is built here goes to.

$(SK)/modules-layer: $(SK)/driver $(tree_modules) $(SA)/guest-unpacked scripts/build-modules-layer scripts/image.sh \
		guest-tests/image/modules guest-tests/image/initramfs-init
	@$(stage) 'build modules layer' scripts/build-modules-layer
	$(stage_done)

$(SR)/rdma-core-layer: $(SR)/rdma-core $(if $(filter-out $A,$R),$(SR)/perftest) scripts/build-rdma-core-layer scripts/image.sh
	@$(stage) 'build rdma-core layer' scripts/build-rdma-core-layer
	$(stage_done)

$(SR)/programs-layer: scripts/build-programs-layer scripts/programs.mk scripts/image.sh $(programs) $(abi) | $(SR)/rdma-core
	@$(stage) 'build programs layer' scripts/build-programs-layer
	$(stage_done)

# Other kernels for the guests.

define kernel_rule
$(built:%=build/kernels/$(1)-%/stamps/kernel): build/kernels/$(1)-%/stamps/kernel: scripts/build-kernel scripts/take-kernel \
		guest-tests/image/kernel.config guest-tests/image/$(1).config $(wildcard patches/linux/*.patch patches/linux/*/*.patch) | $S/guest-packages
	@$$(stage) 'build $(1)-$$* kernel' scripts/build-kernel $(1) $$*
	$$(stage_done)
endef
$(foreach kind,debug gdb,$(eval $(call kernel_rule,$(kind))))

$(linux:%=build/kernels/%/stamps/kernel): build/kernels/%/stamps/kernel: scripts/fetch-kernel scripts/kbuild.sh scripts/versions | $S/host
	@$(stage) 'fetch Linux $*' scripts/fetch-kernel $*
	$(stage_done)

$S/headers-%: scripts/fetch-kernel scripts/kbuild.sh scripts/versions | $S/host
	@$(stage) 'fetch headers of Linux $*' scripts/fetch-kernel $* headers
	$(stage_done)

ifdef release
$(SK)/kernel: $(KERNEL) $(HEADERS)/Module.symvers $K/paths scripts/take-kernel
	@$(stage) 'take kernel $(release)' scripts/take-kernel '$(KERNEL)' '$(HEADERS)' '$(MODULES)'
	$(stage_done)

# Another kernel may have the same release.
$K/paths: FORCE
	@mkdir -p $(@D)
	@echo '$(realpath $(KERNEL) $(HEADERS) $(MODULES))' | cmp -s - $@ || echo '$(realpath $(KERNEL) $(HEADERS) $(MODULES))' >$@
FORCE:
endif

# What only the tests written in Python need.

$(SR)/pyverbs: $(SR)/rdma-core-source scripts/build-pyverbs
	@$(stage) 'build pyverbs' scripts/build-pyverbs
	$(stage_done)

$S/python-packages: $S/guest-packages scripts/fetch-layer scripts/image.sh guest-tests/image/python-packages
	@$(stage) 'fetch python packages' scripts/fetch-layer python
	$(stage_done)

$(SR)/python-disk: $(SR)/pyverbs $S/python-packages scripts/build-python-disk scripts/image.sh
	@$(stage) 'build python disk' scripts/build-python-disk
	$(stage_done)

# What only the tests of applications need.

$S/apps-packages: $S/guest-packages scripts/fetch-layer scripts/image.sh guest-tests/image/apps-packages guest-tests/image/apps-headers
	@$(stage) 'fetch applications' scripts/fetch-layer apps
	$(stage_done)

$S/apps-layer: $S/apps-packages scripts/build-apps-layer scripts/image.sh $(call sources,guest-tests/programs/apps)
	@$(stage) 'build apps layer' scripts/build-apps-layer
	$(stage_done)

# What only guests that have nothing of ours need.

$S/debian-layer: $S/guest-packages scripts/build-debian-layer scripts/image.sh guest-tests/image/debian-packages
	@$(stage) 'build debian layer' scripts/build-debian-layer
	$(stage_done)

# What only the tests with a QEMU without our card need.

$S/stock-qemu: scripts/fetch-stock-qemu scripts/image.sh | $S/host
	@$(stage) 'fetch stock QEMU' scripts/fetch-stock-qemu
	$(stage_done)

# Packages, and guests of whole systems that install them.

$S/package-tools: scripts/install-host-packages scripts/package-packages | $S/host
	@$(stage) 'install packaging tools' scripts/install-host-packages scripts/package-packages
	$(stage_done)

$S/packages: $S/qemu $S/switch $S/rdma-core $S/package-tools scripts/build-packages $(call files,packaging) $(driver) $(provider) $(abi) \
		hw-rdma-hca/server/rdma-hca-server hw-rdma-hca/tools/rdma-hca-fault hw-rdma-hca/qemu/rdma-hca.rst
	@$(stage) 'build packages' scripts/build-packages
	$(stage_done)

$S/system-%: scripts/build-system guest-tests/image/agent.c | $S/package-tools
	@$(stage) 'build system $*' scripts/build-system $*
	$(stage_done)

$S/libvirt: scripts/install-host-packages scripts/libvirt-packages | $S/host
	@$(stage) 'install libvirt' scripts/install-host-packages scripts/libvirt-packages
	$(stage_done)

# What only the benchmark needs.

$S/bench-packages: scripts/install-host-packages scripts/bench-packages | $S/host
	@$(stage) 'install benchmark packages' scripts/install-host-packages scripts/bench-packages
	$(stage_done)

$S/unit: scripts/unit.mk $(core) $(switch) $(benches) $(abi) | $S/host
	@$(stage) 'build unit tests' $(MAKE) -f scripts/unit.mk -j $(shell nproc)
	$(stage_done)

# Fuzz targets: built with the tests, run for longer by hand.

.PHONY: fuzz fuzz-keep fuzz-coverage clean-fuzz

SECONDS ?= 600

$S/fuzz: scripts/fuzz.mk $(core) $(switch) $(abi) | $S/host
	@$(stage) 'build fuzz targets' $(MAKE) -f scripts/fuzz.mk -j $(shell nproc)
	$(stage_done)

check: $S/fuzz

fuzz: $S/fuzz
	@scripts/fuzz search $(SECONDS) $(T)

fuzz-keep: $S/fuzz
	@scripts/fuzz keep $(T)

fuzz-coverage: $S/fuzz
	@scripts/fuzz coverage

clean: clean-fuzz

clean-fuzz:
	rm -rf build/fuzz
	rm -f $S/fuzz
