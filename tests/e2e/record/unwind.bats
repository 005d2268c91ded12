#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Stacks through trampolines, as debuggers and other people's unwinders see them.
# tests/torture/{unwind,fault}_*.c have the rest.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

make_program() {
	cat >p.c <<-'END'
		#define OPAQUE __attribute__((noinline))
		OPAQUE long load(const long *p) { long v; __asm__ volatile("mov (%1),%0" : "=r"(v) : "r"(p)); return v; }
		OPAQUE int inner(int a, int b) { __asm__ volatile(""); return a * b + 7; }
		OPAQUE int middle(int x) { __asm__ volatile(""); return inner(x, x + 1) * 3; }
		int main(int argc, char **argv)
		{
			int s = 0;
			for (int i = 4; i < 6; i++) s += middle(i);
			return argc > 1 ? (int)load((const long *)8) : s & 1;
		}
	END
	gcc -g -O1 -o p p.c
}

# steps WHAT...: gdb, not traced itself, steps through p as WHAT of kron record says
steps() {
	run "$KRON" record -q "$@" -o d -- gdb -batch -x "$KRON_TOP_SRC/tests/e2e/record/unwind_gdb.py" ./p
	echo "$output" | tail -n 20
	[[ $output == *"RESULT good"* ]]
	[[ $output == *"x is 4"* ]]
}

@test "gdb's stack is whole at every instruction of a probe" {
	need gdb gcc
	make_program
	need_hardware_breakpoints ./p
	steps -F inner -F middle -F main
}

@test "gdb's stack is whole in samples with a value and counts, everywhere" {
	need gdb gcc
	make_program
	need_hardware_breakpoints ./p
	steps -p './p:*%insns trace %rdi'
	steps -p '3:=./p:*%insns count:2'
	steps -p './p:*%insns count:2'
}

@test "gdb finds its way in a core dump" {
	need gdb gcc
	make_program
	ulimit -c unlimited || skip "no core dumps"
	"$KRON" record -q -o d ./p fault || true
	core=$(ls core* 2>/dev/null | head -n 1)
	[ -n "$core" ] || skip "the kernel sends core dumps elsewhere"
	run gdb -batch -ex bt ./p "$core"
	echo "$output"
	[[ $output == *"#0 "*"kron_stubs ()"*"#1 "*"load (p=p@entry=0x8)"*"#2 "*"main ("* ]]
}

@test "libunwind, by cursor and by unw_backtrace" {
	need gcc
	gcc -O2 -rdynamic -pthread -DWITH_LIBUNWIND -I"$KRON_TOP_SRC/tests/torture" -o chains \
		"$KRON_TOP_SRC/tests/torture/faults/unwind_chains.c" -lunwind 2>/dev/null || skip "no libunwind"
	"$KRON" record -q -b 64M -o d ./chains
}

@test "a program's own list of modules has kron's blocks after its own" {
	need gcc
	cat >list.c <<-'END'
		#define _GNU_SOURCE
		#include <link.h>
		#include <stdio.h>
		static int show(struct dl_phdr_info *i, size_t n, void *d)
		{
			(void)n, (void)d;
			puts(i->dlpi_name);
			return 0;
		}
		int main(void) { return dl_iterate_phdr(show, NULL); }
	END
	gcc -o list list.c
	./list >plain
	"$KRON" record -q -o d ./list >traced
	grep -v -e libkron-rt.so -e '^\[kron\]$' traced | cmp - plain
	[ "$(sed -n '/^\[kron\]$/,$p' traced | grep -cv '^\[kron\]$')" = 0 ]
}

@test "a program with gcc's AddressSanitizer, which wants to be the first library" {
	echo 'int main(void) { return 0; }' >trivial.c
	gcc -fsanitize=address -o trivial trivial.c 2>no || skip "no libasan"
	cat >sound.cc <<-'END'
		#include <cstdio>
		#include <stdexcept>
		int main(int argc, char **)
		{
			int *p = new int[argc];
			try {
				if (argc)
					throw std::runtime_error("caught");
			} catch (std::exception &e) {
				puts(e.what());
			}
			puts("and now"), fflush(stdout);
			return p[argc];
		}
	END
	g++ -g -fsanitize=address -o sound sound.cc
	run ./sound
	[ "$status" = 1 ]
	grep -c '^    #[0-9]' <<<"$output" >frames
	run "$KRON" record -q -o d ./sound
	[ "$status" = 1 ]
	[ "${lines[1]}" = "and now" ]
	[[ $output == *heap-buffer-overflow* ]]
	grep -c '^    #[0-9]' <<<"$output" | cmp - frames
}

@test "a patched file has frame information for its stubs, asleep and awake" {
	need gcc g++ eu-elflint
	compile chains torture/faults/unwind_chains.c -rdynamic
	compile throws torture/faults/fault_throw.cc -fnon-call-exceptions -fasynchronous-unwind-tables
	for p in chains throws; do
		"$KRON" patch "$p" -o "$p.kron"
		"./$p" >want
		"./$p.kron" >got
		cmp want got
		"$KRON" record -q -b 64M -o d "./$p.kron" >got
		cmp want got
		eu-elflint --gnu-ld "$p" >want || true
		eu-elflint --gnu-ld "$p.kron" >got || true
		cmp want got
	done
}
