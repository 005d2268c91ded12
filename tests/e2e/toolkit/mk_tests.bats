#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mk_mem_test, test_mk, mk_sample_test, mk_nite_test: what they print, and how they end.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup() {
	test_setup
	export KRON_BOARD=mk-tests.$$
	PATH=$KRON_TOP_BUILD/board/toolkit:$PATH
}

teardown() {
	local p
	for p in $(jobs -p); do
		kill "$p" 2>/dev/null && wait "$p" || true
	done
	"$KRON" board rm "$KRON_BOARD" >/dev/null 2>&1 || true
	test_teardown
}

a_board() { "$KRON" board create "$@" "$KRON_BOARD" >/dev/null; }
a_file() { truncate -s 32M board; }

# words FIRST COUNT: of local memory, as a plain file has it
words() { od -A n -v -t x4 -w4 -j $((0x1000000 + 4 * $1)) -N $((4 * $2)) board; }

@test "mk_mem_test finds no errors in the emulated board's memory" {
	a_board
	run mk_mem_test 0 5000
	[ "$status" = 0 ]
	[ "$output" = "mk_mem_test: 5000 words from 000000 on, two patterns: no errors" ]
	run mk_mem_test 0x3fffff 1
	[ "$status" = 0 ]
}

@test "mk_mem_test writes those words and no others, each another value" {
	a_file
	mk_mem_test --board ./board 100 1000
	[ "$(words 0 100 | sort -u)" = " 00000000" ]
	[ "$(words 1100 100 | sort -u)" = " 00000000" ]
	[ "$(words 100 1000 | sort -u | wc -l)" = 1000 ]
	[ "$(od -A n -v -t x4 -w4 -N $((0x1000000)) board | sort -u)" = " 00000000" ]
}

@test "mk_mem_test reports each word with what it wrote and what it read" {
	# a board that forgets: its file is another one after each write
	a_file
	while :; do dd if=/dev/zero of=board bs=4 seek=$((0x400000 + 7)) count=1 conv=notrunc,nocreat; done \
		2>/dev/null 3>&- &
	found=
	for ((i = 0; i < 50 && !found; i++)); do
		run mk_mem_test --board ./board 0 100000
		[ "$status" = 0 ] || found=1
	done
	kill %1
	[ "$status" = 1 ]
	[[ ${lines[0]} =~ ^"mk_mem_test: word 000007: wrote "[0-9a-f]{8}", read 00000000"$ ]]
	[[ ${lines[-1]} =~ ^"mk_mem_test: 100000 words from 000000 on, two patterns: "[12]" error" ]]
}

@test "mk_mem_test: wrong usage" {
	a_board
	for args in "" "0" "0 0" "0 4194305" "4194304 1" "4194303 2" "x 1" "1 x" "1 2 3" "0x 1" "--no 1 2"; do
		# shellcheck disable=SC2086
		run mk_mem_test $args
		[ "$status" = 2 ]
		[[ $output = "mk_mem_test: "* ]]
		[ "${#lines[@]}" = 1 ]
	done
}

@test "without a name they test a board of their own, which nobody sees and nothing is left of" {
	need_own_shm
	cat >script <<-'SH'
		unset KRON_BOARD
		for b in default other; do
			"$KRON" board create --virtual-clock $b
			mk_sample_test -b $b >/dev/null
			cksum </dev/shm/kron-board.$(id -u).$b
		done >before
		ls /dev/shm >names
		for tool in "mk_mem_test 0 5000" "test_mk -w 0.1" mk_sample_test "mk_nite_test -t 0.1" "mk_nite_test -x -t 0.1"; do
			$tool >out 2>&1
			echo "$tool: $?, $(tail -n 1 out | grep -c ': no errors$')"
			ls /dev/shm | cmp - names
		done
		mk_nite_test >out 2>&1 &
		until grep -q seed out; do sleep 0.02; done
		ls /dev/shm | cmp - names
		kill -9 $!
		wait
		ls /dev/shm | cmp - names
		for b in default other; do cksum </dev/shm/kron-board.$(id -u).$b; done >after
		cmp before after
	SH
	run in_own_shm 1g "exec sh ./script"
	[ "$status" = 0 ]
	[ "$output" = "mk_mem_test 0 5000: 0, 1
test_mk -w 0.1: 0, 1
mk_sample_test: 0, 1
mk_nite_test -t 0.1: 0, 1
mk_nite_test -x -t 0.1: 0, 1" ]
}

@test "no board, no board of that name, no board at all in that file" {
	for tool in "mk_mem_test 0 1" test_mk mk_sample_test "mk_nite_test -t 0"; do
		run $tool
		[ "$status" = 3 ]
		[[ $output = "${tool%% *}: there is no board $KRON_BOARD"* ]]
		run $tool --board ./nowhere
		[ "$status" = 3 ]
		[[ $output = "${tool%% *}: cannot open ./nowhere: No such file or directory" ]]
		echo short >short
		run $tool --board ./short
		[ "$status" = 3 ]
		[[ $output = *"./short"*"no board" ]]
		run $tool --board "bad name"
		[ "$status" = 3 ]
	done
}

@test "test_mk: register, Resource sample, memory, Timestamp" {
	a_board
	run test_mk -w 0.3
	[ "$status" = 0 ]
	[ "${lines[0]}" = "Source Address Register 0, write and read: ok" ]
	[ "${lines[1]}" = "Resource sample: ok" ]
	[ "${lines[2]}" = "Local memory, words 0 to 2047: ok" ]
	[ "${lines[6]}" = "test_mk: register, sample, memory, clock: no errors" ]
	before=${lines[3]##* } after=${lines[4]##* }
	# 10 MHz for 0.3 s or longer
	[ $((0x$after - 0x$before)) -ge 2970000 ]
}

@test "test_mk on memory that is not a board: errors" {
	a_file
	run test_mk --board ./board -w 0
	[ "$status" = 1 ]
	[[ $output = *"Source Address Register 0, write and read: ok"* ]]
	[[ $output = *"test_mk: sample of level 0: memory address pointer went from 000000 to 000000, not to 000015"* ]]
	[[ $output = *"Resource sample: ERRORS"* ]]
	[[ $output = *"test_mk: register, sample, memory, clock: "[0-9]*" error"* ]]
}

@test "test_mk and mk_nite_test say that a clock stands" {
	a_board --virtual-clock
	run test_mk -w 0.1
	[ "$status" = 1 ]
	[[ $output = *"test_mk: Timestamp: "*" clocks in 0.1"*" s, expected "* ]]
	run mk_nite_test -t 1
	[ "$status" = 3 ]
	[[ $output = "mk_nite_test: board $KRON_BOARD: its clock does not run" ]]
}

@test "test_mk: wrong usage" {
	for args in "-w -1" "-w 401" "-w x" "-w" "-w nan" "-w 1e400" "extra"; do
		# shellcheck disable=SC2086
		run test_mk $args
		[ "$status" = 2 ]
	done
}

@test "mk_sample_test shows the samples that mk_rdsample finds" {
	a_board
	run mk_sample_test
	[ "$status" = 0 ]
	printf '%s\n' "${lines[@]}" >shown
	[ "$(grep -c . shown)" -gt 20 ]
	[ "$(grep -o 'pointer [0-9a-f]*' shown | tr '\n' ' ')" = \
		"pointer 000005 pointer 00000a pointer 00001f pointer 000034 " ]
	# in the order of the chip: header with CPU ID and type, ..., source address
	grep -E '^    ([0-9a-f]{2} ?)+$' shown | tr -d ' \n' >bytes
	[ "$(wc -c <bytes)" = $((2 * (20 + 20 + 84 + 84))) ]
	[ "$(cut -c 1-2,17-24 bytes)" = 1000001000 ]
	[ "$(cut -c 41-42,57-64 bytes)" = 3000001111 ]
	[ "$(cut -c 81-82,97-104 bytes)" = 1800001000 ]
	[ "$(cut -c 249-250,265-272 bytes)" = 3800001111 ]
	# mk.dat has each word as the CPU reads it: little-endian
	mk_rdsample --board "$KRON_BOARD" >/dev/null
	od -A n -v -t x4 mk.dat | tr -d ' \n' | cmp - bytes
}

@test "mk_nite_test: -t, -s, CTRL-C, the summary" {
	a_board
	run mk_nite_test -t 0.2 -s 12345
	[ "$status" = 0 ]
	[ "${lines[0]}" = "mk_nite_test: board $KRON_BOARD, seat 1, seed 12345" ]
	[[ ${lines[1]} =~ ^" "*memory" "*[0-9]+" words"(", "[0-9]+" not checked")?", 0 errors"$ ]]
	[[ ${lines[2]} =~ ^" "*sampling" "*[0-9]+" samples"(", "[0-9]+" not checked")?", 0 errors"$ ]]
	[[ ${lines[-1]} =~ ^"mk_nite_test: 0."[0-9]" s, "[0-9]+" passes: no errors"$ ]]
	mk_nite_test >out 2>&1 3>&- &
	wait_until grep -q seat out
	kill -INT $!
	wait $!
	[[ $(tail -n 1 out) = *": no errors" ]]
}

@test "mk_nite_test -x tests the whole board" {
	a_board
	run mk_nite_test -x -t 1
	echo "$output"
	[ "$status" = 0 ]
	[[ $output =~ "whole board "+[1-9][0-9]*" tests, 0 errors" ]]
}

@test "mk_nite_test: wrong usage" {
	for args in "-t -1" "-t x" "-t 1e99" "-s x" "extra" "-y"; do
		# shellcheck disable=SC2086
		run mk_nite_test $args
		[ "$status" = 2 ]
	done
}

@test "seven share a board, an eighth does not, nor do the others" {
	a_board
	for i in 1 2 3 4 5 6 7; do
		mk_nite_test >out$i 2>&1 3>&- &
		wait_until grep -q seat out$i
	done
	[ "$(cat out? | grep -o 'seat [0-9]' | sort -u | wc -l)" = 7 ]
	for tool in "mk_mem_test 0 1" test_mk mk_sample_test "mk_nite_test -x"; do
		run $tool
		[ "$status" = 3 ]
		[ "$output" = "${tool%% *}: board $KRON_BOARD: another test program is on it" ]
	done
	run mk_nite_test
	[ "$status" = 3 ]
	[[ $output = *"as many mk_nite_test as may share it are on it" ]]
	# shellcheck disable=SC2046
	kill -INT $(jobs -p)
	for p in $(jobs -p); do
		wait "$p"
	done
	cat out?
	[ "$(cat out? | grep -c ': no errors$')" = 7 ]
	run mk_mem_test 0 1
	[ "$status" = 0 ]
}

@test "a board with a kron record on it is left alone" {
	a_board
	"$KRON" record --board "$KRON_BOARD" -q -o trace -- sleep 1000 2>err 3>&- &
	wait_until test -e trace
	wait_until sh -c '! mk_mem_test 0 1 2>/dev/null'
	run mk_mem_test 0 1
	kill %1
	wait %1 || true
	[ "$status" = 3 ]
	[[ $output = "mk_mem_test: board $KRON_BOARD: kron record is on it (pid "*")" ]]
}

@test "a damaged board gives errors, and ends nobody" {
	for seed in 1 2 3 4 5 6 7 8; do
		a_board
		# all over the machine's state, but for what makes it one: the first 64 bytes
		"$PYTHON" - "/dev/shm/kron-board.$(id -u).$KRON_BOARD" $seed <<-'END'
			import random, sys
			rnd = random.Random(int(sys.argv[2]))
			with open(sys.argv[1], "r+b") as f:
			    for _ in range(2000):
			        f.seek(0x2180040 + (rnd.randrange(0x80000 - 0x40) >> rnd.randrange(8)))
			        f.write(bytes([rnd.randrange(256)]))
		END
		for tool in "mk_mem_test 0 100" "test_mk -w 0" mk_sample_test "mk_nite_test -t 0.1" "mk_nite_test -x -t 0.1"; do
			# shellcheck disable=SC2086
			run timeout 60 $tool
			echo "# $seed $tool: $status"
			[[ $status = [0123] ]]
		done
		rm "/dev/shm/kron-board.$(id -u).$KRON_BOARD"
	done
}

@test "help and version" {
	for tool in mk_mem_test test_mk mk_sample_test mk_nite_test; do
		run $tool --help
		[ "$status" = 0 ]
		[[ $output = "Usage: $tool "* ]]
		run $tool --version
		[ "$status" = 0 ]
		[[ $output = "$tool (kron) "* ]]
	done
}
