#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# run_test.bats - what runs the tests: does it see what they leave behind, or do not say?
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

RUN_TEST=$KRON_TOP_SRC/scripts/run-test

setup() {
	test_setup
	export KRON_TEST_GRACE=1
	segment=/dev/shm/kron-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
}

teardown() {
	rm -f "$segment"
	test_teardown
}

# a_test LINE...: the test file t.sh
a_test() {
	printf '%s\n' '#!/bin/bash' "$@" 'echo "ok 1 - something"' 'echo "1..1"' >t.sh
}

@test "a good test passes" {
	a_test 'true'
	run "$RUN_TEST" ./t.sh
	[ "$status" = 0 ]
	[ "$output" = "ok 1 - something
1..1" ]
}

@test "what begins too late to end before CI does is left out, and said so" {
	a_test 'echo "${KRON_CHECK_UNTIL-none}" >ran'
	KRON_CHECK_UNTIL=$(($(date +%s) + 500)) run "$RUN_TEST" ./t.sh
	[ "$status" = 0 ]
	[[ $output == "1..0 # SKIP CI ends in "*" s: run it by hand" ]]
	[ ! -e ran ]
	KRON_CHECK_UNTIL=$(($(date +%s) + 900)) run "$RUN_TEST" ./t.sh
	[ "$output" = "ok 1 - something
1..1" ]
	[ "$(cat ran)" = none ]
}

@test "one that fails runs again where that is asked for, and its first words are kept" {
	a_test 'if [ -e before ]; then echo "ok 1 - steady"; else touch before; echo "not ok 1 - steady"; fi'
	KRON_TEST_AGAIN=unsteady run "$RUN_TEST" ./t.sh
	[ "$status" = 0 ]
	[ "$(cat unsteady)" = ./t.sh ]
	[ "${lines[0]}" = "# at first: not ok 1 - steady" ]
	[[ $output == *"
ok 1 - steady
ok 1 - something
1..1" ]]
	a_test 'echo run >>runs; exit 3'
	KRON_TEST_AGAIN=unsteady run "$RUN_TEST" ./t.sh
	[ "$status" = 3 ]
	[ "$(wc -l <runs)" = 2 ]
}

@test "a segment that nobody holds is left behind" {
	a_test "echo x >$segment"
	run "$RUN_TEST" ./t.sh
	[ "$status" = 99 ]
	[[ $output == *"Bail out! left behind in shared memory: "*"$segment"* ]]
}

@test "one that goes within the grace is not" {
	a_test "echo x >$segment; (sleep 0.3; rm $segment) >/dev/null 2>&1 &"
	run "$RUN_TEST" ./t.sh
	[ "$status" = 0 ]
}

@test "what somebody else leaves is not" {
	need_own_shm
	a_test 'touch up; until [ -e made ]; do sleep 0.02; done'
	(until [ -e up ]; do sleep 0.02; done; echo x >"$segment"; touch made) &
	run env -u KRON_TEST_SHM "$RUN_TEST" ./t.sh
	[ "$status" = 0 ]
	[ -e "$segment" ]
}

@test "one that was there before is not" {
	echo x >"$segment"
	a_test "echo y >>'$segment'" # touched meanwhile, as by kron status
	run "$RUN_TEST" ./t.sh
	[ "$status" = 0 ]
}

@test "a living recording is not" {
	a_test '"$KRON" record -q -o trace -- sleep 20 >/dev/null 2>&1 &' 'echo $! >pid' \
		'until [ -s trace/tasks ]; do sleep 0.05; done'
	run "$RUN_TEST" ./t.sh
	kill "$(cat pid)"
	[ "$status" = 0 ]
	while [ -L "/dev/shm$(sed -n 's/^segment=//p' trace/session)" ]; do sleep 0.05; done
}

@test "a recording that was killed is" {
	a_test '"$KRON" record -q -o trace -- sleep 20 >/dev/null 2>&1 &' \
		'until [ -s trace/tasks ]; do sleep 0.05; done' \
		'program=$(cat /proc/$!/task/$!/children)' 'kill -KILL $! $program' \
		'while kill -0 $program 2>/dev/null; do sleep 0.05; done'
	run "$RUN_TEST" ./t.sh
	segment=/dev/shm$(sed -n 's/^segment=//p' trace/session)
	[ "$status" = 99 ]
	[[ $output == *"Bail out! left behind in shared memory: "*"$segment"* ]]
}

@test "one that takes too long" {
	a_test 'sleep 20'
	KRON_TEST_TIMEOUT=1 run "$RUN_TEST" ./t.sh
	[ "$status" = 124 ]
	[[ $output == *"took longer than 1 s"* ]]
}

@test "what it leaves in its folder is named" {
	a_test 'echo x >"$TMPDIR/rest"'
	run "$RUN_TEST" ./t.sh
	[[ $output == *"# left behind: "* ]]
	rm -r "${output##*# left behind: }"
}

@test "one that waits for others begins when they have ended, with their priority" {
	chrt --idle 0 sh -c 'chrt --other --pid 0 $$' || skip "who is idle stays so here"
	a_test 'echo "${KRON_TEST_AFTER-none}" $(chrt --pid $$ | head -n 1) >ran'
	echo $$ >others
	KRON_TEST_AFTER=$T/others chrt --idle 0 "$RUN_TEST" ./t.sh >out &
	sleep 1
	[ ! -e ran ]
	rm others
	wait $!
	[[ $(cat ran) == "none "*SCHED_OTHER ]]
	grep -q '^ok 1' out
}
