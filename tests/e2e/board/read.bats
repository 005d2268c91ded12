#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron read: mk.dat from traces and boards, read back by a reader that is not kron's.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/e2e/board/board.bash"
bats_require_minimum_version 1.5.0

# mkdat FILE EXPRESSION: s is the list of samples, each (header, time, source, data, counters)
mkdat() {
	"$PYTHON" - "$@" <<-'EOF'
		import struct, sys
		data, s, at = open(sys.argv[1], "rb").read(), [], 0
		while at < len(data):
		    a, b, source, high, low = struct.unpack_from("<5I", data, at)
		    kind = a >> 27 & 3
		    assert kind in (2, 3) and not a >> 24 & 1, hex(a)
		    at += 20
		    counters = ()
		    if kind == 3:
		        counters = struct.unpack_from("<16I", data, at)
		        at += 64
		    s.append((a >> 24, (a & 0xffffff) << 32 | b, source, high << 32 | low, counters))
		assert at == len(data)
		print(eval(sys.argv[2]))
	EOF
}

@test "a trace becomes mk.dat, sample by sample" {
	compile triggers bins/triggers.c
	"$KRON" record -q -- ./triggers 3 5000
	samples=$("$KRON" info --json | json 'd["samples"]')
	run "$KRON" read
	[ "$status" = 0 ]
	[ "$("$KRON" info --json | json '"{:,} samples -> mk.dat".format(d["samples"])')" = "$output" ]
	[ "$(mkdat mk.dat 'len(s)')" = "$samples" ]
	[ "$(stat -c %s mk.dat)" = $((20 * samples)) ]
	# by time, threads as they are, every call with both its events
	[ "$(mkdat mk.dat 'all(a[1] <= b[1] for a, b in zip(s, s[1:]))')" = True ]
	[ "$(mkdat mk.dat 'len({e[2] for e in s})')" = 3 ]
	tick=$("$KRON" dump --json | "$PYTHON" -c 'import json, sys
print(next(e["event"] for e in map(json.loads, sys.stdin) if e.get("function") == "tick"))')
	[ "$(mkdat mk.dat "sum(e[3] & 0xffffffff == $tick for e in s)")" = 15000 ]
	[ "$(mkdat mk.dat "sum(e[3] & 0xffffffff == $tick + 1 for e in s)")" = 15000 ]
}

@test "timestamps count as many ticks as wanted" {
	cat >sleeper.c <<-'EOF'
		#include <unistd.h>
		__attribute__((noinline)) unsigned mark(unsigned x) { __asm__ volatile("" : "+r"(x)); return x * 12345 + 678; }
		int main(void) { unsigned x = mark(1); usleep(300000); return mark(x) == 1; }
	EOF
	compile sleeper "$PWD/sleeper.c"
	"$KRON" record -q -F mark -- ./sleeper
	"$KRON" read
	"$KRON" read --hz 1000 -o slow.dat
	"$KRON" read --hz 1000000000 -o - >fast.dat
	want=$("$KRON" dump --json | "$PYTHON" -c 'import json, sys
t = [json.loads(l)["time_ns"] for l in sys.stdin if json.loads(l)["kind"] in ("entry", "exit")]
print(len(t) == 4 and t[3] - t[0])')
	[ "$want" -ge 300000000 ]
	[ "$(mkdat mk.dat "abs(100 * (s[3][1] - s[0][1]) - $want) < 200")" = True ]
	[ "$(mkdat slow.dat "abs(1000000 * (s[3][1] - s[0][1]) - $want) < 2000000")" = True ]
	[ "$(mkdat fast.dat "abs(s[3][1] - s[0][1] - $want) < 10")" = True ]
	# counted from where the machine's own clock has its zero
	[ "$("$PYTHON" -c 'import time, sys; print(0 <= time.monotonic() - int(sys.argv[1]) / 1e7 < 600)' "$(mkdat mk.dat 's[0][1]')")" = True ]
}

@test "interval descriptions name the functions that were called" {
	cat >shapes.cc <<-'EOF'
		#include <string>
		__attribute__((noinline)) int f(const std::string &s) { int n = 0; for (char c : s) n += c * c; return n; }
		__attribute__((noinline)) int never(int x) { __asm__ volatile("" : "+r"(x)); return x * 12345 + 678; }
		int main(int argc, char **) { return f("abc") - 28814 + (argc > 7 ? never(1) : 0); }
	EOF
	compile shapes "$PWD/shapes.cc"
	"$KRON" record -q -- ./shapes
	"$KRON" read --intervals interval.info
	grep -qE '^1 [0-9]+ [0-9]+ "main"$' interval.info
	grep -qE '^1 [0-9]+ [0-9]+ "f"$' interval.info
	[ "$(grep -c never interval.info)" = 0 ]
	# each line's events are those of the samples
	mkdat mk.dat '"\n".join(sorted({str((e[3] & 0xffffffff) // 2) for e in s}))' >in_samples
	"$PYTHON" -c 'import re
lines = open("interval.info").read().splitlines()
m = [re.fullmatch(r"1 (\d+) (\d+) \"[^\"]*\"", l) for l in lines]
assert all(m)
assert all(int(x[2]) == int(x[1]) + 1 and int(x[1]) % 2 == 0 for x in m)
print("\n".join(sorted(str(int(x[1]) // 2) for x in m)))' >in_info
	diff in_samples in_info
}

@test "what lies in a board's memory is read from its oldest sample on" {
	export KRON_BOARD=$B
	"$KRON" board create "$B" --virtual-clock
	"$KRON" read --board "$B" -o empty.dat
	[ -e empty.dat ]
	[ ! -s empty.dat ]
	"$KRON" ctl write counter3 33
	"$KRON" ctl write trace1 1
	"$KRON" ctl write resource2 2
	"$KRON" ctl write trace3 3
	"$KRON" ctl tick 2000
	"$KRON" read --board "$B"
	[ "$(mkdat mk.dat '[(e[0] >> 3 & 3, e[3] & 0xffffffff, e[4][3:4]) for e in s]')" = "[(2, 1, ()), (3, 2, (33,)), (2, 3, ())]" ]
	[ "$("$KRON" status --json | json 'd["samples"], d["words"]')" = "(3, 31)" ]
	# near the end of memory: the pointer goes on, round the end, and counts it
	"$KRON" ctl write config 0x13001
	"$KRON" ctl write map $((0x3fffff - 11))
	"$KRON" ctl write config 0x3201
	for i in $(seq 10 19); do
		"$KRON" ctl write trace0 "$i"
		"$KRON" ctl tick 400
	done
	[ "$("$KRON" status --json | json 'd["wraps"], d["map"] & 0x3fffff')" = "(1, 38)" ]
	"$KRON" read --board "$B" -o wrapped.dat
	"$PYTHON" - <<-'EOF'
		import struct
		data = open("wrapped.dat", "rb").read()
		events = [w[4] for w in struct.iter_unpack("<5I", data[-200:])]
		assert events == list(range(10, 20)), events
	EOF
	run "$KRON" read --board "$B" kron.data
	[ "$status" = 2 ]
	run "$KRON" read --board "$B" --intervals x
	[ "$status" = 2 ]
}

@test "by the exact bus a trace and the board's memory say the same" {
	"$KRON" board create "$B"
	steps_start 1 --board "$B" --bus exact --when-full wait
	steps 700
	steps 1
	steps_end
	"$KRON" read t -o trace.dat
	"$KRON" read --board "$B" -o board.dat
	[ "$(stat -c %s board.dat)" = $((20 * 1402)) ]
	cmp trace.dat board.dat
}

@test "what cannot be read or written is said" {
	run "$KRON" read nothing
	refuses_with "nothing"
	compile triggers bins/triggers.c
	"$KRON" record -q -- ./triggers 1 100000
	run "$KRON" read -o /dev/full
	refuses_with "cannot write /dev/full: No space left on device"
	run "$KRON" read -o none/mk.dat
	refuses_with "cannot write none/mk.dat: No such file"
	run "$KRON" read --intervals /dev/full
	[ "$status" = 1 ]
	"$KRON" read -o - | head -c 20 >one
	[ "$(mkdat one 'len(s)')" = 1 ]
	run "$KRON" read --hz 0
	[ "$status" = 2 ]
	truncate -s 1000 kron.data/samples
	run "$KRON" read
	[ "$status" = 0 ] || [ "$status" = 1 ]
}
