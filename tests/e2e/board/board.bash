# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Boards for tests.  Source it after tests/lib.sh, in a bats file.
#
#   $B              a name that no other test has; goes at the end of the test, whatever happens
#   steps_start ... a traced program that takes steps when it is told to: tests/bins/steps.c

setup() {
	test_setup
	unset KRON_BOARD
	B=test-$$-$BATS_TEST_NUMBER
	export B
}

teardown() {
	local o
	steps_kill
	for o in /dev/shm/kron-board."$(id -u)"."${B:?}"*; do
		if [ -e "$o" ]; then rm -rf "$o"; fi
	done
	test_teardown
}

board_object() { # board_object NAME
	echo "/dev/shm/kron-board.$(id -u).$1"
}

# One sentence on stderr, and status 1.  Call after `run`.
refuses_with() { # refuses_with TEXT
	[ "$status" = 1 ] || { echo "# status $status: $output"; return 1; }
	[ "$(wc -l <<<"$output")" = 1 ] || { echo "# not one line: $output"; return 1; }
	[[ $output == *"$1"* ]] || { echo "# not '$1': $output"; return 1; }
}

# ---- a program in steps ----

steps_start() { # steps_start PROCESSES RECORD-OPTION...
	local n=$1
	shift
	[ -x steps ] || compile steps bins/steps.c
	rm -f in.fifo out.fifo
	mkfifo in.fifo out.fifo
	"$KRON" record -q -o t -F step "$@" -- ./steps "$n" <in.fifo >out.fifo 2>err.txt 3>&- &
	RECORDER=$!
	exec 7>in.fifo 8<out.fifo
}

steps() { # steps N: when it returns, each process has taken N steps
	local answer
	echo "$1" >&7
	read -r -t 60 answer <&8
	[ "$answer" = done ]
}

steps_end() {
	exec 7>&- 8<&-
	wait "$RECORDER"
	RECORDER=
}

# The program ends with its input, and its recorder with it.
steps_kill() {
	if [ -n "${RECORDER-}" ]; then
		exec 7>&- 8<&-
		wait "$RECORDER" 2>/dev/null || true
		RECORDER=
	fi
}

# As a SIGKILL leaves it: the program goes on.
kill_recorder() {
	kill -9 "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	KILLED=$RECORDER
	RECORDER=
}

calls_of_step() { # calls_of_step DIR
	"$KRON" report --json "$1" | json 'sum(f["calls"] for f in d if f["function"] == "step")'
}
