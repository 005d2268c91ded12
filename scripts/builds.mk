# SPDX-License-Identifier: MIT
# builds.mk - the builds of scripts/check-builds, with as many jobs at a time as make was told, whatever
# build they are of: where one has a single thing to do (configure, a link, its last test), another goes on.
#
#     make -j N -f scripts/builds.mk BUILD=... WORK=...
#
# Each leaves WORK/NAME.log, and WORK/NAME.ok when it was right.  In BUILD nothing is made: others use it meanwhile.
SHELL = /bin/sh
MAKEFLAGS += --no-print-directory
ask = $(shell MAKEFLAGS= make -s -C $(BUILD) $(1) | tail -n 1)
unit := $(call ask,print-unit-tests)
fuzzers := $(filter tests/fuzz/%,$(call ask,print-tests))
# the builds run beside each other, and a test that fails for that is no fault of theirs
export KRON_TEST_AGAIN := $(WORK)/unsteady
# it is packed to be unpacked: xz -e takes twelve times as long as -0
export XZ_OPT := -0
clang := $(if $(shell command -v clang),CC=clang CXX=clang++)
# what is built once needs no list of what each object came from: a file for each, by three programs
flags := --enable-werror --disable-dependency-tracking CFLAGS='-O1 -g1' CXXFLAGS=-O1

# where the tools read what others may have damaged, sanitizers see most
readers := tests/e2e/tree/cli.bats tests/e2e/reports/readers.bats

# The runtime is no case for TSan: its lanes belong to one thread each, by assembly that it cannot
# see.  test_threads plays the traced threads in C.
thread_units := $(addprefix tests/unit/,collect/test_threads collect/test_collect collect/test_drain \
	collect/test_drain_processes trace/test_trace)
threads := $(thread_units) tests/faults/kills.py
# what these tests run, and nothing else
thread_programs := kron runtime/libkron-rt.so probes/packs.stamp tests/samples_of $(thread_units)

all: distcheck tsan
.PHONY: all unpacked distcheck tsan

unpacked:
	+@exec >$(WORK)/$@.log 2>&1 && mkdir $(WORK)/src && $(MAKE) --quiet -C $(BUILD) distdir distdir=$(WORK)/src/kron && \
		chmod -R a-w $(WORK)/src && touch $(WORK)/$@.ok

# What is packed builds elsewhere, tests, installs, and leaves nothing.  With clang, whose UBSan knows
# most, and ASan in the same build; fuzzers go where nobody else does: a minute of them.
distcheck: unpacked
	+@exec >$(WORK)/$@.log 2>&1 && mkdir $(WORK)/pack && cd $(WORK)/pack && $(WORK)/src/kron/configure --quiet && \
		KRON_FUZZ_SECONDS=8 FUZZ_SECONDS=8 $(MAKE) --quiet distcheck \
		TESTS='$(unit) $(fuzzers) $(readers)' DISTCHECK_CONFIGURE_FLAGS="--enable-asan $(clang) $(flags)" && touch $(WORK)/$@.ok

tsan: unpacked
	+@exec >$(WORK)/$@.log 2>&1 && mkdir $(WORK)/$@ && cd $(WORK)/$@ && \
		$(WORK)/src/kron/configure --quiet --enable-tsan $(flags) && \
		TSAN_OPTIONS=log_path=$(WORK)/race $(MAKE) --quiet check-TESTS TESTS='$(threads)' \
		check_PROGRAMS='$(thread_programs)' && touch $(WORK)/$@.ok
