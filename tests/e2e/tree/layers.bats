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

# A line of check-layers that WANT has, each once, and the rule in words after some of them.
said_once() {
	local want
	run scripts/check-layers build
	[ "$status" = 1 ]
	while IFS= read -r want; do
		[ "$(grep -cF -- "$want" <<<"$output")" = 1 ] || { echo "not said once: $want"; echo "$output"; return 1; }
	done <want
	[ "${#lines[@]}" -le $(($(wc -l <want) * 2)) ] || { echo "$output"; return 1; }
}

@test "as they are they pass" {
	run scripts/check-layers build
	[ "$output" = "" ]
	[ "$status" = 0 ]
}

# All in one copy, and one run: it takes seconds.
@test "each rule that is broken is said" {
	# a folder with too many files
	for i in $(seq 45); do echo "int a$i;" >trace/report/a$i.c; done
	echo "trace/report: " >want
	# a source with too many lines
	yes '/* */' | head -n 800 >>trace/view/view.c
	echo "trace/view/view.c: " >>want
	# an include from a room above
	echo '#include "inject/disk/patch_info.h"' >>inject/plan/stub.c
	echo "inject/plan may not include from inject/disk" >>want
	# a header without its folder
	echo '#include "stub.h"' >>inject/plan/stub.c
	echo 'name the folder: "inject/plan/..."' >>want
	# a room that nobody knows
	mkdir trace/attic
	echo 'int a;' >trace/attic/a.c
	echo "trace/attic: check-layers has no row for it" >>want
	# a library that one file knows
	echo '#include <sqlite3.h>' >>trace/writer.c
	echo "trace/writer.c: only trace/export/sqlite/export_sqlite.c trace/export/sqlite/export_sqlite_intervals.c trace/export/sqlite/export_sqlite_intervals.h trace/export/sqlite/export_sqlite_messages.c trace/export/sqlite/export_sqlite_messages.h trace/export/sqlite/export_sqlite_pages.c trace/export/sqlite/export_sqlite_pages.h may include <sqlite3>" >>want
	# the trace knows no ELF
	echo '#include <elf.h>' >>trace/reader.c
	echo "trace/ builds without any ELF library" >>want
	# a second thunk
	printf '\tlahf\n' >>runtime/core/stacks.S
	echo "only runtime/*/thunk* are thunks" >>want
	# somebody prints
	echo 'void f(void) { printf("x"); }' >>collect/tasks.c
	echo "collect/tasks.c: only cmd/ exits and prints" >>want
	# planning opens a file
	echo 'int open(const char *, int); int f(void) { return open("x", 0); }' >x.c
	gcc -c -o build/inject/plan/x.o x.c
	echo "inject/plan/x.o: planning may not call open()" >>want
	# the runtime needs a library
	echo 'int getpid(void); int f(void) { return getpid(); }' >x.c
	gcc -shared -fPIC -nostdlib -Wl,--no-as-needed -o build/runtime/libkron-rt.so x.c
	echo "build/runtime/libkron-rt.so needs getpid" >>want
	rm x.c
	said_once
}
