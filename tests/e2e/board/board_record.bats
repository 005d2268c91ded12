#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron record on boards with names, and what kron ctl and kron status do to a running one.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/e2e/board/board.bash"
bats_require_minimum_version 1.5.0

# A recorder's own board, by its trace.
own_board() {
	sed -n 's,^segment=/,,p' "$1/session"
}

is_state() { [ "$("$KRON" board list --json | json "any($1 for e in d)")" = True ]; }

wait_for_state() { # wait_for_state EXPRESSION: of the entry e in kron board list
	wait_until is_state "$1" || { "$KRON" board list; return 1; }
}

board_is_unused() { ! grep -qs "kron-board.$(id -u).$B" /proc/[0-9]*/maps; }

@test "the filter of a running recording is switched, in all its processes" {
	steps_start 3
	steps 100
	own=$(own_board t)
	"$KRON" ctl --board "$own" filter fffe
	steps 5000
	"$KRON" ctl --board "$own" filter ffff
	steps 10
	"$KRON" ctl --board "$RECORDER" off all
	steps 7000
	"$KRON" ctl --board "$RECORDER" on 0
	steps 1
	"$KRON" ctl --board "${own#kron-}" sampling off
	steps 9000
	"$KRON" ctl --board "${own#kron-}" sampling on
	steps 1000
	# MK_OE off: no trigger is answered
	"$KRON" ctl --board "$own" write config 0x1201
	steps 300
	"$KRON" ctl --board "$own" write config 0x3201
	steps 5
	[ "$("$KRON" ctl --board "$own" filter)" = 0001 ]
	steps_end
	[ "$(calls_of_step t)" = $((3 * (100 + 10 + 1 + 1000 + 5))) ]
	[ ! -L "/dev/shm/$own" ]
}

@test "a reset of the board stops no recording" {
	steps_start 2
	steps 10
	"$KRON" ctl --board "$RECORDER" filter 0
	steps 10
	"$KRON" ctl --board "$RECORDER" reset
	steps 100
	# the bare one takes the outputs away, and the default configuration gives them back
	"$KRON" ctl --board "$RECORDER" write reset 0
	steps 1000
	"$KRON" ctl --board "$RECORDER" reset
	steps 10000
	steps_end
	[ "$(calls_of_step t)" = $((2 * 10110)) ]
}

@test "status shows a recording" {
	steps_start 2
	steps 20000
	"$KRON" status --board "$RECORDER" --json >s
	[ "$(json 'd["recorder_pid"]' <s)" = "$RECORDER" ]
	[ "$(json 'd["bus"], d["processes"], d["processes_started"], d["lost"]' <s)" = "('lane', 2, 2, 0)" ]
	[ "$(json 'd["trace"]' <s)" = "$PWD/t" ]
	[ "$(json 'd["chunks_owned"] >= 2 and d["chunks_max"] > 100' <s)" = True ]
	"$KRON" status --board "$RECORDER" | grep -q "^Recorder  *kron record, pid $RECORDER, bus lane"
	"$KRON" board list | grep -q "^$(own_board t)  *recorder's .*kron record, pid $RECORDER"
	run "$KRON" board rm "$(own_board t)"
	refuses_with "a kron record is on board $(own_board t): end it first"
	run "$KRON" board rm "$RECORDER"
	refuses_with "a kron record is on board"
	pid=$RECORDER
	steps_end
	[ "$(calls_of_step t)" = 40000 ]
	run "$KRON" status --board "$pid"
	refuses_with "there is no board $pid"
}

@test "a running recording waits or discards as it is told" {
	"$KRON" board create "$B"
	"$KRON" ctl --board "$B" wait
	steps_start 2 --board "$B" -b 1M
	steps 10
	[ "$("$KRON" status --board "$B" --json | json 'd["csr"]["write_wait"]')" = False ]
	"$KRON" ctl --board "$B" wait
	steps 300000
	[ "$("$KRON" status --board "$B" --json | json 'd["csr"]["write_wait"]')" = True ]
	steps_end
	[ "$(calls_of_step t)" = 600020 ]
	[ "$("$KRON" info --json t | json 'd["lost"]')" = 0 ]
	[ "$("$KRON" status --board "$B" --json | json 'd["csr"]["write_wait"]')" = True ]
	steps_start 1 --board "$B" -b 1M --when-full wait
	steps 10
	[ "$("$KRON" status --board "$B" --json | json 'd["csr"]["write_wait"]')" = True ]
	steps_end
}

two_lines() { [ "$(wc -l <lines)" -ge 2 ]; }

@test "status is shown again and again" {
	"$KRON" board create "$B"
	"$KRON" status --board "$B" --json -w 1 >lines &
	pid=$!
	wait_until two_lines
	kill $pid
	wait $pid || true
	[ "$(head -n 2 lines | "$PYTHON" -c 'import json, sys
a, b = (json.loads(l) for l in sys.stdin)
print(a["timestamp"] < b["timestamp"])')" = True ]
}

@test "a board that stays is used as it stands, and left" {
	"$KRON" board create "$B"
	export KRON_BOARD=$B
	"$KRON" ctl filter 00f0
	"$KRON" ctl write source5 0x1234
	compile triggers bins/triggers.c
	"$KRON" record -q -o t -F tick -- ./triggers 2 100
	[ "$("$KRON" info --json t | json 'd["samples"]')" = 0 ]
	grep -qx 'filter=f0' t/session
	"$KRON" record -q -o t -F tick -g 5 -- ./triggers 2 100
	[ "$("$KRON" info --json t | json 'd["samples"]')" = 400 ]
	"$KRON" record -q -o t -F tick --filter 1 -- ./triggers 3 100
	[ "$("$KRON" info --json t | json 'd["samples"]')" = 600 ]
	grep -qx "segment=/kron-board.$(id -u).$B" t/session
	[ "$("$KRON" ctl filter)" = 0001 ]
	"$KRON" ctl sampling off
	"$KRON" record -q -o t -F tick -- ./triggers 1 5000
	[ "$("$KRON" info --json t | json 'd["samples"]')" = 10000 ]
	"$KRON" status --json >s
	[ "$(json 'd["source"][5], d["csr"]["sampling"], d["recorder_pid"]' <s)" = "(4660, False, 0)" ]
	# nothing of the recordings stays: as large as before
	[ "$(stat -c %s "$(board_object "$B")")" = $((0x2400000)) ]
	"$KRON" board list | grep -q "^$B  *permanent .*-$"
}

@test "one recorder a board, and it keeps the board" {
	"$KRON" board create "$B"
	steps_start 1 --board "$B"
	steps 10
	run "$KRON" record --board "$B" -o u -- true
	[ "$status" = 125 ]
	[[ $output == *"a kron record (pid $RECORDER) is on board $B, which takes one at a time"* ]]
	run "$KRON" board rm "$B"
	refuses_with "a kron record is on board $B: end it first"
	"$KRON" board list | grep -q "^$B  *permanent .*kron record, pid $RECORDER"
	"$KRON" ctl --board "$B" filter 0
	steps 10
	"$KRON" ctl --board "$B" filter 1
	steps 100
	steps_end
	[ "$(calls_of_step t)" = 110 ]
	"$KRON" board rm "$B"
}

@test "a board that is not there is made and goes with its recorder" {
	steps_start 1 --board "$B"
	steps 10
	[ "$(stat -c %a "$(board_object "$B")")" = 600 ]
	[ "$("$KRON" board list --json | json "[(e['permanent'], e['recorder_pid']) for e in d if e['name'] == '$B']")" = "[(False, $RECORDER)]" ]
	run "$KRON" board create "$B"
	refuses_with "there is a board $B already"
	KRON_BOARD=$B "$KRON" ctl off 0
	steps 10
	steps_end
	[ "$(calls_of_step t)" = 10 ]
	[ ! -e "$(board_object "$B")" ]
	run "$KRON" record --board 'a b' -o t -- true
	[ "$status" = 125 ]
	[[ $output == *'"a b" is not a name for a board'* ]]
	KRON_BOARD=/dev/mk0 run "$KRON" record -o t -- true
	[ "$status" = 125 ]
	[[ $output == *"--bus device:PATH"* ]]
}

@test "many want to record on a board at once" {
	compile triggers bins/triggers.c
	for there in no yes; do
		if [ $there = yes ]; then "$KRON" board create "$B"; fi
		for i in $(seq 6); do
			(st=0
			"$KRON" record --board "$B" -o t.$i -F tick -- ./triggers 1 1000 2>err.$i || st=$?
			echo $st >status.$i) &
		done
		wait
		grep -qx 0 status.*
		for i in $(seq 6); do
			if [ "$(cat status.$i)" = 0 ]; then
				[ "$("$KRON" info --json t.$i | json 'd["samples"]')" = 2000 ]
			else
				[ "$(cat status.$i)" = 125 ]
				grep -qE 'is on board|was removed just now' err.$i
			fi
		done
		rm -rf t.* status.* err.*
	done
	"$KRON" board rm "$B"
}

killed_on_a_board() { # killed_on_a_board RECORD-OPTION...
	"$KRON" board create "$B"
	"$KRON" ctl --board "$B" write source5 0x1234
	steps_start 2 --board "$B" "$@"
	steps 12345
	kill_recorder
	wait_for_state "e['name'] == '$B' and e['orphaned'] and e['trace'] == '$PWD/t'"
	"$KRON" board list | grep -q "recorder (pid $KILLED) killed: \`kron recover $PWD/t\`"
	"$KRON" status --board "$B" | grep -q '^Recorder  *killed'
	run "$KRON" record --board "$B" -o u -- true
	[ "$status" = 125 ]
	[[ $output == *"the kron record (pid $KILLED) on board $B was killed"*"\`kron recover $PWD/t\` gets them"* ]]
	exec 7>&- 8<&-
	"$KRON" recover t >out
	[ "$(calls_of_step t)" = 24690 ]
	# the board is there as it was, and takes the next
	[ "$("$KRON" ctl --board "$B" read source5)" = 00001234 ]
	wait_until board_is_unused
	steps_start 1 --board "$B" "$@"
	steps 77
	steps_end
	[ "$(calls_of_step t)" = 77 ]
	run "$KRON" recover t
	[[ $output == *"complete"* ]]
}

@test "what a killed recorder leaves on a board is recovered" {
	killed_on_a_board
}

@test "what it leaves in the local memory of a board, too" {
	killed_on_a_board --bus exact --when-full wait
}

@test "the exact bus heeds the registers of its board" {
	"$KRON" board create "$B"
	steps_start 3 --board "$B" --bus exact --when-full wait
	steps 100
	"$KRON" ctl --board "$B" off 0
	steps 1000
	"$KRON" ctl --board "$B" on 0
	steps 10
	"$KRON" ctl --board "$B" sampling off
	steps 1000
	"$KRON" ctl --board "$B" sampling on
	steps 1
	"$KRON" status --board "$B" | grep -q "^Recorder  *kron record, pid $RECORDER, bus exact"
	steps_end
	[ "$(calls_of_step t)" = 333 ]
	[ "$("$KRON" read t -o mk.dat)" = "666 samples -> mk.dat" ]
}

@test "processes that outlive their recorder keep the next one off" {
	"$KRON" board create "$B"
	cat >linger.sh <<-'EOF'
		trap '' TERM HUP
		echo started
		read -r _
	EOF
	mkfifo in
	"$KRON" record -q --board "$B" -o t -- bash linger.sh <in >out 3>&- &
	RECORDER=$!
	exec 7>in
	wait_until grep -q started out
	kill -TERM "$RECORDER"
	wait "$RECORDER" || true
	run "$KRON" record --board "$B" -q -o u -- true
	[ "$status" = 125 ]
	[[ $output == *"of an earlier recording still runs on board $B: end it first"* ]]
	echo >&7
	exec 7>&-
	RECORDER=
	wait_until board_is_unused
	"$KRON" record --board "$B" -q -o u -- true
}

@test "what a killed recorder leaves by itself is listed and can be removed" {
	steps_start 1
	steps 1000
	own=$(own_board t)
	kill_recorder
	wait_for_state "e['name'] == '$own' and e['orphaned'] and e['trace'] == '$PWD/t'"
	exec 7>&- 8<&-
	"$KRON" board rm "$own"
	[ ! -L "/dev/shm/$own" ]
	run "$KRON" board rm "$own"
	refuses_with "there is no board $own"
	run "$KRON" recover t
	[ "$status" = 1 ]
}

@test "a trace is not mixed with the samples of another recording on its board" {
	"$KRON" board create "$B"
	compile triggers bins/triggers.c
	"$KRON" record -q --board "$B" -o old -F tick -- ./triggers 1 10
	sed -i '/^end_tsc=/d' old/session # as if it had been killed, and recovered elsewhere
	steps_start 1 --board "$B"
	steps 50
	kill_recorder
	exec 7>&- 8<&-
	run "$KRON" recover old
	[ "$status" = 1 ]
	[[ $output == *"is gone"* ]]
	"$KRON" recover t >out
	[ "$(calls_of_step t)" = 50 ]
}
