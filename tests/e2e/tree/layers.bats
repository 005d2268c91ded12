#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# scripts/check-layers: a rule that is broken is reported, one of each kind.  The rules are broken in
# a copy of the sources, with this build's objects beside them.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup() {
	test_setup
	need gcc nm
	# what a distribution has of them, or git
	(cd "$KRON_TOP_SRC" && scripts/sources '*.c' '*.h' '*.S' '*.inc' 'scripts/*' |
		tar -cf - -T -) | tar -xf -
	mkdir -p build/runtime build/base
	cp "$KRON_TOP_BUILD/runtime/libkron-rt.so" build/runtime/
	cp "$KRON_TOP_BUILD"/base/*.o build/base/
	for room in elf code plan; do
		mkdir -p build/inject/$room
		cp "$KRON_TOP_BUILD/inject/$room"/*.o build/inject/$room/
	done
}

# broken TEXT: check-layers fails and says so
broken() {
	run scripts/check-layers build
	[ "$status" = 1 ]
	[[ $output == *"$1"* ]] || { echo "$output"; return 1; }
	[ "${#lines[@]}" -le 2 ] || { echo "$output"; return 1; } # the line, and the rule
}

@test "as they are they pass" {
	run scripts/check-layers build
	[ "$output" = "" ]
	[ "$status" = 0 ]
}

@test "a folder with too many files" {
	for i in $(seq 45); do echo "int a$i;" >trace/report/a$i.c; done
	broken "trace/report: "
}

@test "a source with too many lines" {
	yes '/* */' | head -n 800 >>trace/report/report_events.c
	broken "trace/report/report_events.c: "
}

@test "an include from a room above" {
	echo '#include "inject/disk/patch_info.h"' >>inject/plan/stub.c
	broken "inject/plan may not include from inject/disk"
}

@test "a header without its folder" {
	echo '#include "stub.h"' >>inject/plan/stub.c
	broken 'name the folder: "inject/plan/..."'
}

@test "a room that nobody knows" {
	mkdir trace/attic
	echo 'int a;' >trace/attic/a.c
	broken "trace/attic: check-layers has no row for it"
}

@test "a library that one file knows" {
	echo '#include <sqlite3.h>' >>trace/writer.c
	broken "trace/writer.c: only trace/export/export_sqlite.c may include <sqlite3>"
}

@test "the trace knows no ELF" {
	echo '#include <elf.h>' >>trace/reader.c
	broken "trace/ builds without any ELF library"
}

@test "a second thunk" {
	printf '\tlahf\n' >>runtime/core/stacks.S
	broken "only runtime/*/thunk* are thunks"
}

@test "somebody prints" {
	echo 'void f(void) { printf("x"); }' >>collect/tasks.c
	broken "collect/tasks.c: only cmd/ exits and prints"
}

@test "planning opens a file" {
	echo 'int open(const char *, int); int f(void) { return open("x", 0); }' >x.c
	gcc -c -o build/inject/plan/x.o x.c
	broken "inject/plan/x.o: planning may not call open()"
}

@test "the runtime needs a library" {
	echo 'int getpid(void); int f(void) { return getpid(); }' >x.c
	gcc -shared -fPIC -nostdlib -Wl,--no-as-needed -o build/runtime/libkron-rt.so x.c
	broken "build/runtime/libkron-rt.so needs getpid"
}
