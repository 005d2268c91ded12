#!/bin/bash
# SPDX-License-Identifier: MIT
# Damaged traces for a few seconds (FUZZ_SECONDS), with a seed that changes every day; a failure
# names it.
source "${KRON_TOP_SRC:-$(dirname "$0")/../..}/tests/lib.sh"
test_setup

for seed in small naps ways "walk 800 2"; do
	# shellcheck disable=SC2086
	set -- $seed
	seed=$1
	shift
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" "$seed" "$seed" "$@"
	tap "readers survive damaged traces: $seed" env TMPDIR="$T" \
		ASAN_OPTIONS=allocator_may_return_null=1 timeout 250 \
		"$KRON_TOP_BUILD/tests/fuzz/fuzz_trace" "$seed" $((${FUZZ_SECONDS:-10} / 4)) "${FUZZ_SEED:-$(date +%j)}"
done
[ "$tap_failed" = 1 ] || rm -rf "$T"
tap_done
