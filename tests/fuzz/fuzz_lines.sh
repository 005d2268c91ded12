#!/bin/bash
# SPDX-License-Identifier: MIT
# Damaged debug information for a few seconds (FUZZ_SECONDS), with a seed that changes every day; a
# failure names it.
source "${KRON_TOP_SRC:-$(dirname "$0")/../..}/tests/lib.sh"
test_setup
seed=${FUZZ_SEED:-$(date +%j)}

if ! grep -q 'define HAVE_DW 1' "$KRON_TOP_BUILD/config.h"; then
	tap_skip "lines of damaged debug information" "built without libdw"
else
	for v in 4 5; do
		compile "c$v" bins/calc.c "-gdwarf-$v"
	done
	compile packed bins/calc.c -gz
	tap "lines of damaged debug information, seed $seed" timeout 250 \
		"$KRON_TOP_BUILD/tests/fuzz/fuzz_lines" -t "${FUZZ_SECONDS:-3}" -s "$seed" c4 c5 packed
fi
[ "$tap_failed" = 1 ] || rm -rf "$T"
tap_done
