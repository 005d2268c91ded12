#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The examples that measure: no test of times, but of what must be so in each run.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

filter_levels() { "$KRON_TOP_SRC/examples/filter-levels/filter-levels" --build "$KRON_TOP_BUILD" "$@"; }

@test "filter-levels: every sample is there, every level is in the table and in the picture" {
	filter_levels --repeats 2 --calls 300 --rounds 3 -o picture.svg >out
	# 16 functions, 2 repeats and one before, 300 calls, entry and exit
	grep -Eq '^ +usual: +28,800 samples of 28,800 that should be there, 0 lost$' out
	grep -Eq '^ +constant: +28,800 samples of 28,800 that should be there, 0 lost$' out
	[ "$(grep -cE '^ +([0-9]|1[0-5]) +[0-9.]+ \| +[0-9.]+ +[0-9.]+ \| +[0-9.]+ +[0-9.]+$' out)" = 16 ]
	[ "$(grep -cE '^ +group [0-6], ' out)" = 7 ]
	[ "$("$PYTHON" -c 'import sys, xml.etree.ElementTree as e
print(sum(n.text.startswith("level ") for n in e.parse("picture.svg").iter() if n.tag.endswith("title")))')" = 80 ]
	# its folder is gone
	[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'filter-levels.*')" ]
}

@test "filter-levels: wrong usage, no kron" {
	run filter_levels --repeats 0
	[ "$status" = 2 ]
	run filter_levels --build /nowhere
	[ "$status" = 1 ]
	[[ $output = "filter-levels: no /nowhere/kron; --build says where kron was built" ]]
}

@test "overrun's script runs both ways" {
	"$KRON_TOP_SRC/examples/overrun/run" "$KRON_TOP_BUILD" >out
	[ "$(grep -c '^A burst of 100 triggers' out)" = 2 ]
	run "$KRON_TOP_SRC/examples/overrun/run" /nowhere
	[ "$status" = 1 ]
}
