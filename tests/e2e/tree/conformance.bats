#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# scripts/check-conformance: a row that names no test, or a test that no row names, is reported.  The sources
# are a copy.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup() {
	test_setup
	# what a distribution has of them, or git
	(cd "$KRON_TOP_SRC" && scripts/sources 'scripts/*' 'doc/*' 'tests/*' | tar -cf - -T -) | tar -xf -
}

# reported TEXT: check-conformance fails and says this, and nothing else
reported() {
	run scripts/check-conformance
	[ "$status" = 1 ]
	[ "$output" = "$1" ] || { echo "$output"; return 1; }
}

# row ID TEST: a row at the end of the page
row() {
	echo "| $1 | a rule | how | $2 |" >>doc/CONFORMANCE.md
	line=doc/CONFORMANCE.md:$(wc -l <doc/CONFORMANCE.md)
}

@test "as it is it passes" {
	run scripts/check-conformance
	[ "$status" = 0 ]
}

@test "a row has a test, or the reason why there is none" {
	row C-NEW-1 'none: there is no such thing on this side'
	run scripts/check-conformance
	[ "$status" = 0 ]
	row C-NEW-2 ''
	reported "$line: C-NEW-2 has no test"
}

@test "an id occurs once" {
	row C-BG-1 'none: there is no such thing on this side'
	[[ $(scripts/check-conformance) == "$line: C-BG-1 stands in line "*", too" ]]
}

@test "a name that only occurs in the file is not a test" {
	# each is a word, or a part of one, in its file
	row C-NEW-1 '`chip:begin_test_mode`'
	reported "$line: tests/unit/board/test_model_chip.c runs no test 'begin_test_mode'"
	sed -i '$d' doc/CONFORMANCE.md
	row C-NEW-1 '`e2e/toolkit/mk_rpt.py:one_sentence`'
	reported "$line: tests/e2e/toolkit/mk_rpt.py runs no test 'one_sentence'"
	sed -i '$d' doc/CONFORMANCE.md
	row C-NEW-1 '`e2e/toolkit/mk_rpt.py:usag`'
	reported "$line: tests/e2e/toolkit/mk_rpt.py runs no test 'usag'"
	sed -i '$d' doc/CONFORMANCE.md
	row C-NEW-1 '`e2e/board/board.bats:groups and sampling`'
	reported "$line: tests/e2e/board/board.bats runs no test 'groups and sampling'"
}

@test "a test of the model that no row names" {
	sed -i 's/`cable:cable_is_slower_than_memory`/`cable:cable_takes_two_bytes_at_a_time`/' doc/CONFORMANCE.md
	reported "tests/unit/board/test_model_cable.c: doc/CONFORMANCE.md does not name cable_is_slower_than_memory"
}
