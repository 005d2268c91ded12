#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# test_summary.bats - the sum that ./bootstrap check ends with counts every test once.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

# result NAME RESULT...: as automake's TAP driver leaves it
result() {
	local name=$1 r
	shift
	mkdir -p tests
	for r; do
		echo ":test-result: $r" >>"tests/$name.trs"
		echo "$r: tests/$name 1 - something" >>"tests/$name.log"
	done
}

@test "what passed, failed and was skipped" {
	result a 'PASS a' 'PASS b' 'SKIP c'
	result b 'PASS a' 'FAIL b' 'ERROR - exited with status 1'
	result c 'ERROR - missing test plan'
	run "$KRON_TOP_SRC/scripts/test-summary" .
	[ "${lines[-1]}" = "3 2 1" ]
}

@test "a test that did not compile is one failure, and the others count" {
	result a 'PASS a' 'PASS b'
	result b 'PASS a'
	run "$KRON_TOP_SRC/scripts/test-summary" . tests/a tests/b.bats tests/c tests/d.sh
	[ "${lines[-1]}" = "3 2 0" ]
	[[ $output == *"tests/c did not build"* ]]
	[[ $output == *"tests/d.sh did not build"* ]]
}

@test "the files of those that failed" {
	result a 'PASS a' 'SKIP b'
	result b 'PASS a' 'FAIL b'
	result c 'ERROR - missing test plan'
	[ "$("$KRON_TOP_SRC/scripts/test-summary" --failed . | xargs)" = "tests/b.trs tests/c.trs" ]
}
