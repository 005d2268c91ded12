#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron export to directories, databases and binary formats: their own readers must find the calls
# and times of kron report.  On a synthetic trace with inferred ends and hostile names, on a real
# program, and on a tree of processes with threads.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

traces='small real tree'

setup() {
	test_setup
	"$KRON_TOP_BUILD/tests/unit/make_trace" small small
	"$KRON" record -q -o real -- git --version >/dev/null
	"$KRON" record -q -o tree -- sh -c 'xz -c /etc/services | xz -dc | git hash-object --stdin; sort /etc/passwd' >/dev/null
}

# agree FORMAT: export each trace, and let its reader's figures meet those of the report
agree() {
	local trace
	for trace in $traces; do
		"$KRON" export -f "$1" -o "$trace.$1" "$trace"
		"$KRON" report --json "$trace" >report.json
		"$PYTHON" "$KRON_TOP_SRC/tests/e2e/export_agree.py" "$1" "$trace.$1" report.json
	done
}

@test "uftrace report and replay: calls and times of kron report" {
	need uftrace
	agree uftrace
	uftrace graph --no-pager -d real.uftrace >graph
	grep -q 'FUNCTION CALL GRAPH' graph
	uftrace info --no-pager -d tree.uftrace | grep -q 'number of tasks'
}

@test "directories: never half of one, never over another" {
	local format
	for format in uftrace; do
		mkdir full
		echo mine >full/file
		run --separate-stderr "$KRON" export -f $format -o full small
		[ "$status" = 1 ]
		[[ $stderr == *"full is there already and not empty"* ]]
		[ "$(ls full)" = file ]
		rm -r full
		# a name in a directory that is not there
		run --separate-stderr "$KRON" export -f $format -o none/x small
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
		# files may not grow beyond some blocks: nothing is left, under no name
		mkdir room
		run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' - \
			"$KRON" export -f $format -o room/x tree
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *"room/x"* ]]
		[ -z "$(ls -A room)" ]
		# an empty one may be there, and a slash behind the name
		mkdir room/x
		"$KRON" export -f $format -o room/x/ small
		[ "$(ls -A room)" = x ]
		rm -r room
		run "$KRON" export -f $format small
		[ "$status" = 2 ]
	done
}
