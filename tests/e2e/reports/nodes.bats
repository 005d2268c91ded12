#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several traces as one.  What each program did it says itself: so many calls, by its arguments.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup() {
	test_setup
	cat >a.c <<-'C'
		#include <stdlib.h>
		static volatile int seen;
		__attribute__((noinline)) void leaf(int i) { seen = i; }
		__attribute__((noinline)) void twice(int i) { leaf(i); leaf(i); seen = 0; }
		int main(int argc, char **argv) { for (int i = atoi(argv[1]); i; i--) twice(i); return argc - 2; }
	C
	sed 's/twice/other/' a.c >b.c
	gcc -O1 -o a a.c
	gcc -O1 -o b b.c
	mkdir run
	"$KRON" record -q --node 1 -o run/one ./a 30
	"$KRON" record -q --node 2 -o run/two ./b 5
	"$KRON" record -q --node 3 -o run/ten ./a 100
}

calls() { # FUNCTION DIR...
	local f=$1
	shift
	"$KRON" report --json "$@" | $PYTHON -c '
import json, sys
print(*sorted(f["calls"] for f in json.load(sys.stdin) if f["function"] == sys.argv[1]))' "$f"
}

@test "a function is there once, with the calls of all nodes that have the same file" {
	[ "$(calls twice run)" = 130 ]
	[ "$(calls other run)" = 5 ]
	[ "$(calls leaf run)" = "10 260" ] # two programs, two functions of this name
	[ "$(calls twice run/one run/ten)" = 130 ]
	[ "$(calls twice run/ten)" = 100 ]
}

@test "samples come in order of time, each with its own node, and none twice" {
	"$KRON" dump --json run >all.json
	for t in one two ten; do "$KRON" dump --json run/$t; done >each.json
	$PYTHON - <<-'P'
		import json
		all_of, each = ([json.loads(x) for x in open(f)] for f in ("all.json", "each.json"))
		times = [e["time_ns"] for e in all_of]
		assert times == sorted(times)
		# one host has one clock: the stamps are those of the traces by themselves
		key = lambda e: (e.get("timestamp", ""), e.get("thread", 0), e["kind"], e.get("function", ""))
		assert sorted(map(key, all_of)) == sorted(map(key, each))
		node = {e["node_name"]: e["node"] for e in all_of if "node" in e}
		assert node == {"1": 1, "2": 2, "3": 3}, node
	P
}

@test "where two have one number, each is named by its directory" {
	"$KRON" record -q --node 2 -o run/two-2 ./b 7
	[ "$("$KRON" info --json run | $PYTHON -c '
import json, sys
print(*sorted(n["name"] for n in json.load(sys.stdin)["nodes"]))')" = "one ten two two-2" ]
	"$KRON" replay run | grep -qE '\[two-2\.[0-9]+\] \| .*other'
	mkdir more
	"$KRON" record -q --node 2 -o more/two ./b 7
	"$KRON" info run/one run/two more/two | grep -qE '^ *one\.[0-9]+ '
	"$KRON" info run/one run/two more/two | grep -qE '^ *#3\.[0-9]+ .* ./b 7$'
}

@test "processes are named by node, and exports know all of them" {
	"$KRON" info run >info
	grep -qE '^ +1\.[0-9]+ .* ./a 30$' info
	grep -qE '^ +3\.[0-9]+ .* ./a 100$' info
	[ "$(grep -c 'one clock with the others of its host' info)" = 3 ]
	"$KRON" replay run | grep -qE '\[2\.[0-9]+\] \| .*other'
	"$KRON" export -q -f sqlite -o all.db run
	[ "$($PYTHON -c 'import sqlite3; print(*sqlite3.connect("all.db").execute(
		"select node, count(*) from process group by 1 order by 1"))')" = "('1', 1) ('2', 1) ('3', 1)" ]
	"$KRON" export -f chrome run | $PYTHON -c '
import json, sys
e = json.load(sys.stdin)["traceEvents"]
assert len({x["pid"] for x in e}) == 3
assert sum(x.get("ph") == "X" and x["name"] == "leaf" for x in e) == 270'
	if command -v otf2-print >/dev/null && "$KRON" export -f otf2 -o otf run 2>/dev/null; then
		[ "$(otf2-print otf/*.otf2 | grep -c '^ENTER .*"leaf"')" = 270 ]
	fi
}

@test "of another host's trace the wall clock is what there is, and that is said" {
	sed -i 's/^boot_id=.*/boot_id=another/' run/two/session
	"$KRON" info run | grep -q 'by the hosts.* wall clocks, error unknown'
	[ "$(calls other run)" = 5 ]
}

@test "one recording twice, and a trace that is none, are refused" {
	run "$KRON" report run run/one
	[ "$status" = 1 ]
	[[ $output == *"are one recording: name each trace once" ]]
	mkdir empty
	run "$KRON" report empty
	[ "$status" = 1 ]
	[[ $output == *"is not a trace directory"* ]]
}

@test "names of nodes and hosts that somebody made up write nothing but text to the terminal" {
	sed -i $'s/^node=.*/node=2\e]0;x\a/; s/^hostname=.*/hostname=h\e[31m/' run/two/session
	mv run/ten $'run/t\e[31m'
	for c in info report replay dump; do
		"$KRON" $c run >$c.out 2>$c.err
		! grep -q $'[\e\a]' $c.out $c.err
	done
	grep -q 'h\\x1b\[31m' info.out
}

@test "clocks that contradict each other are refused or read, and nothing else" {
	local n
	cp -r run/two two
	for n in 0 1 9223372036854775807 9223372036854775808 18446744073709551615; do
		for key in start_tsc start_mono_ns start_real_ns end_tsc end_mono_ns tsc_hz boot_id; do
			rm -rf run/two
			cp -r two run/two
			sed -i "s/^boot_id=.*/boot_id=b/; s/^$key=.*/$key=$n/" run/two/session
			printf 'reference\tx\n5\t%s\t7\t1\n%s\t%s\t%s\t%s\n' $n $n $n $n $n >run/two/clock
			status=0
			timeout 60 "$KRON" report run >out 2>err || status=$?
			[ $status -le 1 ]
			! grep -q 'runtime error' err
		done
	done
}
