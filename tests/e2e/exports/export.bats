#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron export: what other tools make of a trace must agree with kron report.  On a synthetic trace
# with inferred ends, coroutines and hostile names, and on one of a real program.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup() {
	test_setup
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small small
	"$KRON" record -q -o real -- git --version >/dev/null
}

# check TRACE PROGRAM: python that has the report in `report`, by function, and the export on stdin
check() {
	"$KRON" report --json "$1" >report.json
	python3 -c '
import json, re, sys
report = json.load(open("report.json"))
total = lambda key: sum(r[key] for r in report)
near = lambda a, b, n: abs(a - b) <= n  # each figure is rounded down to a nanosecond
'"$2"
}

@test "callgrind_annotate finds the self time of kron report" {
	command -v callgrind_annotate >/dev/null || skip "no callgrind_annotate"
	for trace in small real; do
		"$KRON" export -f callgrind -o callgrind.out $trace
		callgrind_annotate --show-percs=no --threshold=100 callgrind.out >text
		check $trace '
text = open("text").read()
found = int(re.search(r"([\d,]+)\s+PROGRAM TOTALS", text)[1].replace(",", ""))
assert near(found, total("self_ns"), 2 * len(report)), (found, total("self_ns"))
first = max(report, key=lambda r: r["self_ns"])
line = next(l for l in text.splitlines() if l.endswith(":" + first["function"] + " [" + first["module"] + "]"))
assert near(int(line.split()[0].replace(",", "")), first["self_ns"], 2), line'
	done
}

@test "callers and callees: every call is there" {
	"$KRON" export -f callgrind real >callgrind.out
	"$KRON" replay --no-merge real >replay
	# a call that has a caller stands indented in the replay
	check real '
functions, root = open("callgrind.out").read().split("fn=(0) (root)\n")
count = lambda text: sum(int(n) for n in re.findall(r"^calls=(\d+)", text, re.M))
inner = sum(1 for l in open("replay") if re.search(r"\|  +.*\{$", l))
assert count(functions) == inner, (count(functions), inner)
assert count(functions) + count(root) == total("calls")'
}

@test "folded stacks add up" {
	for trace in small real; do
		"$KRON" export -f folded $trace | check $trace '
lines = [l.rsplit(" ", 1) for l in sys.stdin.read().splitlines()]
assert lines and all(" " not in way and way.isprintable() for way, n in lines)
found = sum(int(n) for way, n in lines)
assert near(found, total("self_ns"), 2 * len(lines)), (found, total("self_ns"))'
	done
}

@test "Chrome: one event a call, as long as it took" {
	for trace in small real; do
		"$KRON" export -f chrome $trace | check $trace '
events = [e for e in json.load(sys.stdin)["traceEvents"] if e["ph"] == "X"]
assert len(events) == total("calls"), (len(events), total("calls"))
assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events)'
	done
}

@test "speedscope: opens and closes nest, and give the self times" {
	for trace in small real; do
		"$KRON" export -f speedscope $trace | check $trace '
d = json.load(sys.stdin)
frames, self, pieces = d["shared"]["frames"], {}, {}
for p in d["profiles"]:
    stack, last = [], 0
    for e in p["events"]:
        assert e["at"] >= last
        if stack:
            self[stack[-1]] = self.get(stack[-1], 0) + e["at"] - last
            pieces[stack[-1]] = pieces.get(stack[-1], 0) + 1
        last = e["at"]
        if e["type"] == "O":
            stack.append(e["frame"])
        else:
            assert stack.pop() == e["frame"]
    assert not stack and last <= p["endValue"]
if "'$trace'" == "real":  # coroutines and interrupted calls are nested here by force
    for r in report:
        of = [f for f in self if (frames[f]["name"], frames[f]["file"]) == (r["function"], r["module"])]
        mine = sum(self[f] for f in of)
        # each time between two events is a difference of two rounded figures
        assert near(mine, r["self_ns"], sum(pieces[f] for f in of) + 1), (r, mine)'
	done
}

@test "wrong use, a full disk, no trace" {
	run "$KRON" export small
	[ "$status" = 2 ]
	run "$KRON" export -f png small
	[ "$status" = 2 ]
	run "$KRON" export -f folded nothing
	[ "$status" = 1 ]
	[ "${#lines[@]}" = 1 ]
	run "$KRON" export -f chrome -o /dev/full small
	[ "$status" = 1 ]
	[[ $output == *"/dev/full"*"No space left"* ]]
	run bash -c '"$1" export -f folded small >/dev/full' - "$KRON"
	[ "$status" = 1 ]
}
