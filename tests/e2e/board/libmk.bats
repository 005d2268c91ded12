#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs written against <mk.h>: every compiler, every optimisation, both libraries; their own
# signal handlers; the examples.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

BINS=$KRON_TOP_SRC/tests/bins/libmk
INCLUDE=-I$KRON_TOP_SRC/include
STATIC=$KRON_TOP_BUILD/board/libmk/libmk.a
STRICT="-Wall -Wextra -Werror"

setup() {
	test_setup
	export KRON_BOARD=libmk-$$-$BATS_TEST_NUMBER
	export LD_LIBRARY_PATH=$KRON_TOP_BUILD/board/libmk
}

teardown() {
	"$KRON" board rm "$KRON_BOARD" >/dev/null 2>&1 || true
	test_teardown
}

# every COMPILER... that is installed, with the language: lines for `read`
compilers() {
	local c
	for c in 'gcc c' 'g++ c++' 'clang c' 'clang++ c++'; do
		command -v "${c% *}" >/dev/null && echo "$c"
	done
}

# stores.c prints what it stored, mk_rdsample fetches what the board has of it
samples_are_those() {
	"$KRON_TOP_BUILD/board/toolkit/mk_rdsample" || return 1
	"$PYTHON" - "$1" <<-'END'
		import struct, sys
		words = struct.iter_unpack("<I", open("mk.dat", "rb").read())
		words = [w for w, in words]
		got = []
		at = 0
		while at < len(words):
		    kind = words[at] >> 27 & 3
		    got.append("%d %x" % (kind, words[at + 3] << 32 | words[at + 4]))
		    at += 5 if kind == 2 else 21
		want = open(sys.argv[1]).read().split("\n")[:-1]
		assert got == want, (len(got), len(want))
	END
}

@test "the report's stores: gcc and clang, C and C++, -O0 to -O3" {
	while read -r cc language; do
		for o in -O0 -O1 -O2 "-O3 -march=native"; do
			# shellcheck disable=SC2086
			$cc $o $STRICT -x "$language" "$BINS/stores.c" -x none -o stores "$INCLUDE" "$STATIC"
			./stores >out || { echo "$cc $o"; head out; false; }
			samples_are_those out || { echo "$cc $o"; false; }
		done
	done < <(compilers)
}

@test "libmk.so, libmk.a and a static program" {
	gcc -O2 "$BINS/stores.c" -o shared "$INCLUDE" -L"$KRON_TOP_BUILD/board/libmk" -lmk
	readelf -d shared | grep -q 'NEEDED.*libmk\.so\.0'
	./shared >out
	samples_are_those out
	gcc -O2 -static "$BINS/stores.c" -o static "$INCLUDE" -L"$KRON_TOP_BUILD/board/libmk" -lmk
	./static >out
	samples_are_those out
	gcc -O2 -no-pie "$BINS/stores.c" -o fixed "$INCLUDE" "$STATIC"
	./fixed >out
	samples_are_those out
}

@test "installed: #include <mk.h> and -lmk" {
	make -s -C "$KRON_TOP_BUILD" install DESTDIR="$T/dest" >install.log 2>&1 ||
		{ cat install.log; false; }
	prefix=$T/dest$(sed -n 's/^prefix = //p' "$KRON_TOP_BUILD/Makefile")
	cat >prog.c <<-'END'
		#include <mk.h>
		#define SEND_EVENT 10
		int main(void) { MK_DEFAULT_MAP(); mk_ts1 = SEND_EVENT; return 0; }
	END
	gcc -std=c99 -pedantic $STRICT -o prog prog.c -I"$prefix/include" -L"$prefix/lib" -lmk
	LD_LIBRARY_PATH=$prefix/lib ./prog
	"$prefix/bin/mk_rdsample"
	[ "$(od -An -tu4 -j16 -N4 mk.dat | tr -d ' ')" = 10 ]
	[ -r "$prefix/share/man/man3/libmk.3" ]
	[ -L "$prefix/lib/libmk.so" ]
}

@test "a library that asks libc for sigaction gets libmk's" {
	cat >lib.c <<-'END'
		#include <signal.h>
		static void handler(int s) { (void)s; }
		void set(void)
		{
			struct sigaction a = {.sa_handler = handler};
			sigfillset(&a.sa_mask);
			sigaction(SIGSEGV, &a, 0);
			sigprocmask(SIG_SETMASK, &a.sa_mask, 0);
		}
	END
	cat >prog.c <<-'END'
		#include <mk.h>
		void set(void);
		int main(void) { MK_DEFAULT_MAP(); set(); mk_memory[9] = 5; return mk_memory[9] != 5; }
	END
	gcc -shared -fPIC -o libset.so lib.c
	for way in "-L. -lset -L$KRON_TOP_BUILD/board/libmk -lmk" "-L. -lset $STATIC"; do
		# shellcheck disable=SC2086
		gcc -o prog prog.c "$INCLUDE" $way -Wl,-rpath,.
		./prog
	done
}

# A library's own tests, each twice: as the kernel has it, and between stores to the board.
same_with_the_board() { # SOURCE FLAG...
	local source=$1 cc
	shift
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		for o in -O0 -O2; do
			# shellcheck disable=SC2086
			$cc $o $STRICT -DPLAIN -pthread "-I$KRON_TOP_SRC" "$BINS/$source" -o plain "$@"
			./plain >out || { cat out; false; }
			# shellcheck disable=SC2086
			$cc $o $STRICT -pthread "-I$KRON_TOP_SRC" "$INCLUDE" "$BINS/$source" \
				-o shared -L"$KRON_TOP_BUILD/board/libmk" -lmk "$@"
			./shared >out || { cat out; false; }
			$cc $o -pthread "-I$KRON_TOP_SRC" "$INCLUDE" "$BINS/$source" -o archive \
				"$STATIC" "$@"
			./archive >out || { cat out; false; }
		done
	done
}

@test "the program's own SIGSEGV handlers work as the kernel has them" {
	same_with_the_board handlers.c
}

@test "a static program's handlers, too" {
	gcc -O2 -static -pthread "-I$KRON_TOP_SRC" "$INCLUDE" "$BINS/handlers.c" -o prog "$STATIC"
	./prog >out || { cat out; false; }
}

@test "a handler that throws" {
	need g++ # clang has no landing pads for faults
	flags="-O1 -fnon-call-exceptions $INCLUDE $BINS/throws.cc -o prog"
	# shellcheck disable=SC2086
	for way in -DPLAIN "$STATIC" "-L$KRON_TOP_BUILD/board/libmk -lmk"; do
		g++ $flags $way
		./prog
	done
}

@test "bytes, holes, threads, killed processes" {
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		# shellcheck disable=SC2086
		$cc -O2 $STRICT -pthread "-I$KRON_TOP_SRC" "$INCLUDE" "$BINS/edges.c" -o prog "$STATIC"
		./prog >out 2>err || { cat out err; false; }
	done
	grep -q 'takes stores of whole 32- and 64-bit words alone (board offset 0x1010,' err
}

@test "a store that the board does not take kills, with a sentence" {
	cat >prog.c <<-'END'
		#include <mk.h>
		int main(void) { MK_DEFAULT_MAP(); *(volatile char *)&mk_ts1 = 5; return 0; }
	END
	gcc -o prog prog.c "$INCLUDE" "$STATIC"
	run ./prog
	[ "$status" = 139 ]
	[[ $output == *"libmk: the board takes stores of whole 32- and 64-bit words alone"* ]]
}

@test "a file or device is mapped as it is" {
	truncate -s 32M board
	cat >prog.c <<-'END'
		#include <mk.h>
		#include <signal.h>
		int main(void)
		{
			struct sigaction a;
			MK_DEFAULT_MAP();
			mk_ts1 = 77;
			mk_memory[1] = 4711;
			sigaction(SIGSEGV, 0, &a);
			return a.sa_handler != SIG_DFL;
		}
	END
	gcc -o prog prog.c "$INCLUDE" "$STATIC"
	KRON_BOARD=./board ./prog
	[ "$(od -An -tu4 -j$((0x1184)) -N4 board | tr -d ' ')" = 77 ]
	[ "$(od -An -tu4 -j$((0x1000004)) -N4 board | tr -d ' ')" = 4711 ]
	# nobody had set it up: the recommended configuration
	[ "$(od -An -tx4 -j$((0x1204)) -N4 board | tr -d ' ')" = 00003201 ]
}

@test "what cannot be mapped is said in one sentence" {
	printf '#include <mk.h>\nint main(void) { MK_DEFAULT_MAP(); return 0; }\n' >prog.c
	gcc -o prog prog.c "$INCLUDE" "$STATIC"
	KRON_BOARD=./nothing run ./prog
	[ "$status" = 1 ]
	[ "${#lines[@]}" = 1 ]
	[[ $output == "libmk: "*"./nothing"* ]]
	KRON_BOARD='not a name' run ./prog
	[ "$status" = 1 ]
	[ "${#lines[@]}" = 1 ]
	truncate -s 1M small
	KRON_BOARD=./small run ./prog
	[ "$status" = 1 ]
	[[ $output == *"./small"* ]]
}

@test "a board that somebody has set up stays as it is" {
	"$KRON" board create "$KRON_BOARD"
	cat >prog.c <<-'END'
		#include <mk.h>
		int main(int argc, char **argv)
		{
			(void)argv;
			MK_DEFAULT_MAP();
			if (argc > 1)
				mk_filter = 0x0f0f;
			printf("%x\n", mk_filter & 0xffff);
			return 0;
		}
	END
	gcc -o prog prog.c "$INCLUDE" "$STATIC"
	[ "$(./prog)" = ffff ]
	[ "$(./prog set)" = f0f ]
	[ "$(./prog)" = f0f ]
}

@test "a traced program has its own board" {
	gcc -O1 "$BINS/stores.c" -o stores "$INCLUDE" "$STATIC"
	# with KRON_BOARD, kron record would take that board for itself
	env -u KRON_BOARD "$KRON" record -q -o trace -- env KRON_BOARD="$KRON_BOARD" ./stores >out
	samples_are_those out
	[ "$("$KRON" info --json trace | json 'd["lost"]')" = 0 ]
	[ "$("$KRON" info --json trace | json 'd["samples"] > 1000')" = True ]
}

@test "a program and its recorder on one board, exact" {
	cat >prog.c <<-'END'
		#include <mk.h>
		__attribute__((noinline)) void probed(int i) { mk_ts1 = 1000000 + i; }
		int main(void)
		{
			MK_DEFAULT_MAP();
			for (int i = 0; i < 100; i++)
				probed(i);
			return 0;
		}
	END
	gcc -O1 -o prog prog.c "$INCLUDE" "$STATIC"
	# a probe inside a bus cycle would make it begin again for ever: there is none in libmk
	timeout 60 "$KRON" record -q --bus exact -o trace -- ./prog
	"$KRON" dump trace >dump
	grep -q 'probed' dump
	[ "$(grep -c 'board_cycle\|emulate\|on_fault' dump)" = 0 ]
}

@test "a program that writes over its samples does not stop its recorder" {
	cat >prog.c <<-'END'
		#include <stdio.h>
		#include <mk.h>
		__attribute__((noinline)) void probed(int i) { mk_ts1 = 1000000 + i; }
		int main(void)
		{
			MK_DEFAULT_MAP();
			for (int i = 0; i < 6000; i++) {
				uint32_t before = mk_map_pointer;
				probed(i);
				while (mk_map_pointer - before < 15) /* its three samples are there */
					;
				/* the last of them; now and then the collector looks right then */
				for (int k = 1; k <= 5 && i % 16 == 0; k++)
					mk_memory[MK_MAP_WORD(mk_map_pointer - k)] = i & 16 ? 0 : 0xffffffff;
			}
			probed(4711);
			puts("done");
			return 0;
		}
	END
	gcc -O1 -o prog prog.c "$INCLUDE" "$STATIC"
	timeout -k 5 100 "$KRON" record --bus exact --when-full wait -o trace -- ./prog >out 2>err
	[ "$(cat out)" = done ]
	grep -q "words of the board's memory belong to no sample" err
	# the others are whole: 17,999 of them, the collector may have been faster than the program
	[ "$("$KRON" dump trace | grep -c 'probed\|100[0-9]\{4\}')" -ge $((17999 - 375)) ]
}

@test "counter inputs that a program drives itself" {
	"$KRON" board create "$KRON_BOARD" --virtual-clock
	gcc -O2 $STRICT "$BINS/inputs.c" -o inputs "$INCLUDE" "$STATIC" -pthread
	truncate -s 32M dev
	run ./inputs ./dev
	[ "$status" = 0 ] || { echo "$output"; false; }
	# 300 of 500 clocks while it is high; every other of 2000 changes is an edge, whoever makes it
	[ "${lines[0]}" = "300 500 1000" ] || { echo "$output"; false; }
	[ "${lines[1]}" = "./dev is hardware: its counter inputs are on its connector" ]
}

@test "every public name of libmk is in the page, and no other is public" {
	nm -D --defined-only "$KRON_TOP_BUILD/board/libmk/libmk.so.0" | awk '{ print $3 }' | sort >so
	nm -g --defined-only "$STATIC" | awk 'NF == 3 { print $3 }' | sort >a
	diff so a
	while read -r name; do
		grep -q "$name" "$KRON_TOP_SRC/doc/man/libmk.3" || { echo "$name"; false; }
	done <so
	# and every macro of mk.h that names a register
	for name in $(sed -n 's/^#define \(mk_[a-z_]*\).*/\1/p' "$KRON_TOP_SRC/include/mk.h" | sort -u); do
		grep -q "$name" "$KRON_TOP_SRC/doc/man/libmk.3" || { echo "$name"; false; }
	done
}

@test "sample1: classes 1, 2 and 3" {
	run "$KRON_TOP_SRC/examples/sample1/run" "$KRON_TOP_BUILD"
	[ "$status" = 0 ]
	[[ $output == *"100 loops, the file was there 66 times"* ]]
	count() { awk -v what="$1" 'index($0, what) { print $1 }' <<<"$output" | head -n 1; }
	[ "$(count 'whole program')" = 1 ]
	[ "$(count 'if then')" = 66 ]
	[ "$(count 'if else')" = 34 ]
	[ "$(count 'process input write output')" = 100 ]
}

@test "send and receive: class 4 from two boards" {
	run "$KRON_TOP_SRC/examples/message/run" "$KRON_TOP_BUILD"
	[ "$status" = 0 ] || { echo "$output"; false; }
	[[ $output == *'message send/receive latency'* ]]
	[[ $output != *'earlier than'* ]]
	[ "$(awk '/latency/ { print $1 }' <<<"$output")" = 200 ]
}
