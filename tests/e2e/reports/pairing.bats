#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Real traces of calls that end without returning (tests/bins/unwinding.cc says how many there are
# of each): the profile and the call tree that come out.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup() {
	test_setup
	compile unwinding bins/unwinding.cc -fno-omit-frame-pointer
	"$KRON" record -q -- ./unwinding >out
	[ "$(cat out)" = 40003 ]
}

calls() {
	"$KRON" report --json | json "next((r['calls'] for r in d if r['function'] == '$1'), 0)"
}

# replayed FUNCTION MARK: how many calls of FUNCTION ended with this mark
replayed() {
	"$KRON" replay | grep -c "} /\* $1$2 \*/" || true
}

@test "every call is counted, however it ends" {
	[ "$("$KRON" info --json | json 'd["lost"]')" = 0 ]
	[ "$(calls catcher)" = 300 ]
	[ "$(calls thrower)" = 300 ]
	[ "$(calls jumper)" = 50 ]
	[ "$(calls handler)" = 40 ]
	[ "$(calls yields)" = 60 ]
	[ "$(calls body)" = 3 ]
	[ "$(calls resume)" = 63 ]
	[ "$(calls dive)" = 40001 ]
	# 2 of each catcher's guards, 1 of those that do not throw, 1 in those that catch
	[ "$(calls leaf)" = $((300 * 3 + 50 * 2 + 40 * 3 + 60 * 2 + 2)) ]
}

@test "exits that were not taken are inferred, the others seen" {
	[ "$(replayed thrower ', no exit seen')" = 100 ]
	[ "$(replayed middle ', no exit seen')" = 100 ]
	[ "$(replayed jumper ', no exit seen')" = 50 ]
	[ "$(replayed catcher)" = 300 ]
	[ "$(replayed yields)" = 60 ]
	[ "$(replayed resume)" = 63 ]
	[ "$(replayed raiser)" = 40 ]
	[ "$(replayed body)" = 3 ]
	[ "$("$KRON" replay | grep -c 'no entry seen')" = 0 ]
	# handlers that jump out: one cannot be told from one that still waits
	[ "$(replayed handler)" = 20 ]
}

@test "samples add up: entries = exits + inferred + open" {
	"$KRON" dump --json >samples
	"$KRON" replay --no-merge >tree
	entries=$(grep -c '"kind":"entry"' samples)
	exits=$(grep -c '"kind":"exit"' samples)
	ended=$(grep -c '} /\*' tree)
	unseen=$(grep -c 'no exit seen\|still running' tree || true)
	[ "$entries" = "$ended" ]
	[ "$exits" = $((ended - unseen)) ]
}

@test "times are consistent" {
	"$KRON" report --json | json 'all(r["self_ns"] <= r["total_ns"] and r["min_ns"] <= r["avg_ns"] <= r["max_ns"] for r in d)' | grep -qx True
	# one thread: self times add up to what the outermost call took, but for those on other
	# stacks, which do not end before what they interrupted goes on
	"$KRON" report --json | json 'sum(r["self_ns"] for r in d if r["function"] not in ("body", "yields", "handler", "leaf")) <= 1.001 * max(r["total_ns"] for r in d) + 1000' | grep -qx True
}
