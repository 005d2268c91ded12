#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron list: its columns, its JSON, and what it says about files that are none of its business.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

# a program of three functions with symbols
program() {
	cat >small.c <<-'END'
		__attribute__((noinline)) int one(int x) { return x + 1; }
		__attribute__((noinline)) int two(int x) { return x ? one(x) * 3 : 7; }
		int main(int argc, char **argv) { (void)argv; return two(argc); }
	END
	compile small small.c "$@"
}

@test "each function has its address, size, source, tactic and exits" {
	program
	run "$KRON" list small
	[ "$status" = 0 ]
	for name in one two main; do
		want=$(nm -S small | awk -v f=$name '$4 == f { print $1, $2 }')
		# shellcheck disable=SC2086
		set -- $want
		line=$(printf '%s\n' "$output" | awk -v f=$name '$NF == f')
		# shellcheck disable=SC2086
		set -- $((16#$1)) $((16#$2)) $line
		[ $(($3)) = "$1" ]
		[ "$4" = "$2" ]
		[[ $5 == *symtab* ]]
		[[ $6 == jump* ]]
		[[ $7 =~ ^([0-9]+)/\1$ ]]
	done
}

@test "JSON has every function with entry and exits" {
	program
	"$KRON" list --json small >out
	[ "$(json 'sorted(f["name"] for f in d["functions"] if f["name"] in ("one", "two"))' <out)" \
		= "['one', 'two']" ]
	[ "$(json 'all(set(f) >= {"address", "size", "name", "symbol", "sources", "entry", "exits"}
		for f in d["functions"])' <out)" = True ]
	[ "$(json 'all(("tactic" in p) != ("refused" in p) for f in d["functions"]
		for p in f["exits"] + [f["entry"]])' <out)" = True ]
}

@test "JSON says which exits are jumps, and where to, and which functions end in a call" {
	cat >ways.c <<-'END'
		#include <stdlib.h>
		#include <unistd.h>
		#define N __attribute__((noipa))
		void (*pointer)(int);
		N void leaf(int x) { __asm__ volatile("" :: "r"(x)); }
		N void direct(int x) { leaf(x + 1); }
		N void library(int x) { usleep((useconds_t)x); }
		N void indirect(int x) { pointer(x); }
		N void either(int x) { if (x > 1) leaf(x); }
		N void never(int x) { exit(x); }
		N void perhaps(int x) { if (x) exit(x); }
		int main(int argc, char **argv)
		{
			(void)argv;
			pointer = leaf;
			direct(1), library(1), indirect(1), either(argc), perhaps(0), never(0);
		}
	END
	for how in "" -fno-plt; do
		compile ways ways.c -O2 $how
		"$KRON" list --json ways >out
		# of each function the targets of its jumps, None for returns, and the call in the end
		[ "$(json '[sorted({str(e.get("jump_to")) for e in f["exits"]}) + [f["ends_in_call"]]
			for n in ("leaf", "direct", "library", "indirect", "either", "never", "perhaps")
			for f in d["functions"] if f["name"] == n]' <out)" \
			= "[['None', False], ['leaf', False], ['usleep', False], ['', False], ['None', 'leaf', False], [True], ['None', True]]" ]
	done
}

@test "the summary's JSON has exactly the keys that scripts rely on" {
	"$KRON" list --summary --json /bin/bash >out
	[ "$(json 'sorted(d)' <out)" = "['entries', 'exits']" ]
	[ "$(json 'sorted(d["entries"])' <out)" = "['by_tactic', 'found', 'patched', 'refused']" ]
	[ "$(json 'sorted(d["exits"])' <out)" = "['by_tactic', 'found', 'patched', 'refused']" ]
	[ "$(json 'all(c["found"] == c["patched"] + sum(c["refused"].values())
		for c in d.values())' <out)" = True ]
}

@test "the summary counts what the list shows" {
	"$KRON" list --json /bin/bash >list
	"$KRON" list --summary --json /bin/bash >summary
	[ "$(json 'len(d["functions"])' <list)" = "$(json 'd["entries"]["found"]' <summary)" ]
	[ "$(json 'sum("tactic" in e for f in d["functions"] for e in f["exits"])' <list)" \
		= "$(json 'd["exits"]["patched"]' <summary)" ]
}

@test "functions without a name are called module+0x1234" {
	program
	strip small
	run "$KRON" list small
	[ "$status" = 0 ]
	[[ $output == *small+0x* ]]
}

@test "a refusal is explained in words" {
	# with all tactics nothing of it is left
	run "$KRON" list --summary --tactics jump /usr/lib/x86_64-linux-gnu/libc.so.6
	[ "$status" = 0 ]
	[[ $output == *"refused: a branch may land inside the window"* ]]
	[[ $output == *"Entries"*"found"*"patched"*"%"* ]]
}

@test "a C++ function shows its readable name" {
	printf 'namespace n { struct s { int f(int); }; int s::f(int x) { return x; } }
		int main() { n::s s; return s.f(0); }\n' >names.cc
	compile names names.cc -O0
	run "$KRON" list names
	[[ $output == *"n::s::f(int)"* || $output == *"n::s::f"* ]]
}

@test "a static program can be listed" {
	program -static || skip "no static libc"
	run "$KRON" list --summary small
	[ "$status" = 0 ]
}

@test "the same file gives the same list" {
	"$KRON" list --json /bin/bash >a
	"$KRON" list --json /bin/bash >b
	cmp a b
}

@test "files that cannot be listed: one sentence, exit 1" {
	echo hello >text
	head -c 5000 /bin/bash >short
	: >empty
	for file in text short empty /nonexistent /tmp; do
		run --separate-stderr "$KRON" list "$file"
		[ "$status" = 1 ]
		[ -z "$output" ]
		[ "${#stderr_lines[@]}" = 1 ]
	done
}

@test "debug information that makes libdw crash: a sentence, and the rest works" {
	grep -q 'define HAVE_DW 1' "$KRON_TOP_BUILD/config.h" || skip "built without libdw"
	${CC:-gcc} -o deep "$KRON_TOP_SRC/tests/bins/deep_blocks.S"
	run --separate-stderr "$KRON" list -p deep.c:7 deep
	[ "$status" = 1 ]
	[ -z "$output" ]
	[[ $stderr == *"its debug information is damaged: libdw crashed on it (Segmentation fault)"* ]]
	run --separate-stderr "$KRON" list -p deep.c:7 -p main deep
	[[ $output == *main* ]]
	[[ $stderr == *"libdw crashed"* ]]
	"$KRON" record -p deep.c:7 -p main ./deep 2>said
	grep "libdw crashed" said
}

@test "probes that mean another file, or one from kron patch: a sentence, exit 1" {
	compile calc bins/calc.c
	run "$KRON" list -p libc:malloc calc
	[ "$status" = 1 ]
	[ "$output" = "kron list: calc is not a module that a probe means" ]
	"$KRON" patch -q -F main -o calc.kron calc
	run "$KRON" list -p main%blocks calc.kron
	[ "$status" = 1 ]
	[[ $output == *"has the probes that it was given there"* ]]
	[ "${#lines[@]}" = 1 ]
}

@test "wrong usage: exit 2" {
	run "$KRON" list
	[ "$status" = 2 ]
	run "$KRON" list a b
	[ "$status" = 2 ]
	run "$KRON" list --frobnicate /bin/bash
	[ "$status" = 2 ]
}
