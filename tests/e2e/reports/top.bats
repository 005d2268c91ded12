#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron top on a running recording: a program that calls one function three times as often as
# another.  Looking must not change what is recorded.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup() {
	test_setup
	unset KRON_BOARD
	cat >work.c <<-'C'
		#include <stdio.h>
		#include <unistd.h>
		static volatile long n[2];
		__attribute__((noinline)) static void often(void) { n[0]++; }
		__attribute__((noinline)) static void seldom(void) { n[1]++; }
		int main(int argc, char **argv)
		{
			(void)argv;
			for (long i = 0; access("stop", F_OK); i++) {
				for (int k = 0; k < 100; k++)
					often(), often(), often(), seldom();
				if (i % 10 == 0)
					usleep(1000);
				if (argc > 1)
					printf("%ld\n", i);
			}
			return 0;
		}
	C
	${CC:-gcc} -O1 -o work work.c
}

is_recorded() { "$KRON" status --board $recorder --json 2>/dev/null | grep -q '"processes":1'; }

start() {
	"$KRON" record "$@" -q -o t -- ./work 3>&- &
	recorder=$!
	wait_until is_recorded
}

stop() {
	touch stop
	wait $recorder
}

@test "functions by how often they are recorded, without being noticed" {
	start
	run --separate-stderr "$KRON" top --board $recorder -d 200 -n 8 --json
	stop
	[ "$status" = 0 ]
	[ "${#lines[@]}" = 8 ]
	python3 - "$output" <<-'P'
		import json, sys
		looks = [json.loads(l) for l in sys.argv[1].splitlines()]
		assert all(look["lost"] == 0 for look in looks), looks
		# how many it sees depends on how often it gets a processor, and on how much is in the buffer just then
		told = [look for look in looks[1:] if look["seen"] >= 40]
		assert len(told) >= 3, looks
		for look in told:
		    seen = {f["function"]: f["seen"] for f in look["functions"]}
		    rate = {f["function"]: f["per_second"] for f in look["functions"]}
		    often, seldom = seen["often [work]"], seen["seldom [work]"]
		    assert abs(often / seldom - 3) < 0.1 + 15 * (1 / often + 1 / seldom) ** 0.5, seen
		    assert rate["often [work]"] >= rate["seldom [work]"] > 0, rate
		    assert look["functions"][0]["function"] == "often [work]", look
	P
	"$KRON" report --json t | json '{r["function"]: r["calls"] for r in d}' >calls
	python3 -c 'd = eval(open("calls").read()); assert d["often"] == 3 * d["seldom"], d'
	[ "$("$KRON" info --json t | json 'd["lost"]')" = 0 ]
}

@test "text, a limit, and the end of the recording" {
	start
	run --separate-stderr "$KRON" top --board $recorder -d 1500 -n 1 -l 1
	[ "$status" = 0 ]
	[[ ${lines[0]} == "board kron-"*" samples/s, 0 lost, 1 threads"* ]]
	[[ ${lines[2]} == *"often [work]" ]]
	[ "${#lines[@]}" = 3 ]
	"$KRON" top --board $recorder -d 100 >out &
	top=$!
	wait_until [ -s out ]
	stop
	wait $top # ends with the recording
}

# A thread goes from buffer to buffer all the while, and a look takes its time.
@test "a thread is one thread, whenever it is looked at" {
	start
	run --separate-stderr "$KRON" top --board $recorder -d 10 -n 400 --json
	stop
	[ "$status" = 0 ]
	[ "${#lines[@]}" = 400 ]
	[ "$(printf '%s\n' "${lines[@]}" | grep -o '"threads":[0-9]*' | sort -u)" = '"threads":1' ]
}

often_is_shown() {
	tmux -L "$screen" capture-pane -p >shot
	grep -q '% *often' shot
}

@test "refusals" {
	run "$KRON" top --board no_such_board
	[ "$status" = 1 ]
	"$KRON" board create "top-$$"
	run "$KRON" top --board "top-$$"
	"$KRON" board rm "top-$$"
	[ "$status" = 1 ]
	[[ $output == "kron top: no recording is running on board top-$$" ]]
	start --bus exact
	run "$KRON" top --board $recorder
	stop
	[ "$status" = 1 ]
	[[ $output == *"kron status --watch 1"* ]]
}

# In a /dev/shm of its own, for nobody may record there but the test.
@test "without a name it finds the recording that runs, whatever boards there are" {
	need_own_shm
	cat >script <<-'SH'
		"$KRON" top -n 1 2>none
		echo "none: $?"
		"$KRON" board create
		"$KRON" board create other
		"$KRON" top -n 1 2>>none
		echo "none: $?"
		start() {
			"$KRON" record -q -o $1 -- ./work &
			pids="$pids $!"
			until "$KRON" status --board $! --json 2>/dev/null | grep -q '"processes":1'; do sleep 0.05; done
		}
		start t
		"$KRON" top -n 1 -d 200 --json >one
		echo "one: $?"
		KRON_BOARD=other "$KRON" top -n 1 2>named
		echo "named: $?"
		start u
		"$KRON" top -n 1 2>two
		echo "two: $?"
		echo $pids >pids
		touch stop
		wait
	SH
	run -0 in_own_shm 1g "exec sh ./script"
	[ "$output" = $'none: 1\nnone: 1\none: 0\nnamed: 1\ntwo: 1' ]
	[ "$(sort -u none)" = "kron top: no recording is running" ]
	[ "$(json '[f["function"] for f in d["functions"]][0]' <one)" = "often [work]" ]
	[ "$(cat named)" = "kron top: no recording is running on board other" ]
	read -r a b <pids
	[ "$(wc -l <two)" = 1 ]
	[[ $(cat two) == "kron top: 2 recordings are running: --board names one of them: "*"$a"*"$b"* ]] ||
		[[ $(cat two) == "kron top: 2 recordings are running: --board names one of them: "*"$b"*"$a"* ]]
}

@test "a small terminal: lines are cut, and the picture stays where it is" {
	need tmux
	start
	screen=kron-top-$$
	tmux -L "$screen" -f /dev/null new-session -d -x 34 -y 6 "'$KRON' top --board $recorder -d 200"
	wait_until often_is_shown
	stop
	tmux -L "$screen" kill-server || true
	cat shot
	sed -n 1p shot | grep -q '^board '
	[ -z "$(sed -n 2p shot)" ]
	sed -n 3p shot | grep -q '^ *Samples/s  '
	sed -n 4p shot | grep -q '% *often'
	sed -n 5p shot | grep -q '% *seldom'
}
