#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron export: what a trace has besides calls.  Context switches, filter levels and events of
# users' probes are in every format that has a place for them, as somebody else's reader sees it.
# Parquet is in export_paths.bats, which has DuckDB.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

# has FORMAT: export the synthetic trace, and let its reader look
has() {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" naps naps
	"$KRON" export -f "$1" -o "naps.$1" naps 2>err
	[ ! -s err ]
	"$PYTHON" "$KRON_TOP_SRC/tests/e2e/exports/export_more.py" "$1" "naps.$1"
}

@test "CTF: babeltrace2 finds switches, levels and events" {
	need babeltrace2
	has ctf
}

@test "OTF2: otf2-print finds who was on each CPU, levels and events" {
	need otf2-print
	grep -q '^#define HAVE_OTF2 ' "$KRON_TOP_BUILD/config.h" || skip "built without OTF2"
	has otf2
}

@test "SQLite: sqlite finds switches, times on and off the CPUs, levels and events" {
	has sqlite
}

@test "Chrome: times off the CPUs, levels and events" {
	has chrome
}

@test "Perfetto: protoc finds task states and levels" {
	need protoc
	has perfetto
}

@test "callgrind_annotate counts events by function" {
	need callgrind_annotate
	has callgrind
}

@test "pprof: go's reader counts events by stack" {
	need go
	HOME=$T has pprof
}

@test "speedscope: a profile of events by stack" {
	has speedscope
}

@test "uftrace dump and replay show events" {
	need uftrace
	has uftrace
}

@test "folded stacks have no place for events: their number is said" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" naps naps
	"$KRON" export -f folded naps >out 2>err
	[ "$(wc -l <err)" = 1 ]
	grep -q "^kron export: 4 events of users' probes are not in it: .*-f callgrind" err
	run ! grep -q mine out
	# nothing to say where there are none
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small small
	"$KRON" export -f folded small >out 2>err
	[ "$(cat err)" = "kron export: 123 samples were lost: calls and times are too low, and a call may reach across a loss" ]
}

@test "kron dump shows filter levels" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" naps naps
	"$KRON" dump naps | grep -q 'entry nap \[naps\] level 3$'
	"$KRON" dump naps | grep -q 'event mine size=0x1000 \[naps\] level 2$'
	"$KRON" dump naps | grep -q 'entry main \[naps\]$'
	[ "$("$KRON" dump --json naps | grep '"function":"nap"' | grep -c '"level":3')" = 4 ]
}

# The program sleeps for 150 ms, whatever the kernel does; the report has its own arithmetic.
@test "a real program's naps: SQL and CTF find what the program slept" {
	"$KRON" record -q -o probe -- true >/dev/null
	[ "$("$KRON" info --json probe | json 'd["switches"]["recorded"]')" = True ] ||
		skip "context switches are not allowed here"
	need babeltrace2 sqlite3
	compile naps bins/naps.c
	"$KRON" record -q -o trace -- ./naps >/dev/null
	"$KRON" export -f sqlite -o db trace
	"$KRON" export -f ctf -o ctf trace
	"$KRON" report --on-cpu --totals --json trace >totals
	"$KRON" report --on-cpu --json trace >report
	sqlite3 -json db 'SELECT function, on_cpu_ns FROM functions' >functions
	sqlite3 db 'SELECT wall_ns, on_cpu_ns, waiting_ns, waits FROM thread_times' >times
	babeltrace2 --clock-seconds ctf >text
	"$PYTHON" - <<-'EOF'
		import json, re
		totals = json.load(open("totals"))
		wall, cpu, waits, n = (int(f) for f in open("times").read().split("|"))
		assert waits >= 150e6 and n >= 10 and wall - cpu >= waits - 2
		assert abs(totals["on_cpu_ns"] - cpu) <= 1000, (totals, cpu)  # from which sample to which
		mine = {f["function"]: f["on_cpu_ns"] for f in json.load(open("functions"))}
		for f in json.load(open("report")):
		    assert abs(f["total_on_cpu_ns"] - mine.pop(f["function"])) <= 2, f
		assert not mine
		off, sums = None, 0
		for line in open("text"):
		    m = re.match(r'\[(\d+)\.(\d+)\] .* switch: .*"(in|out|preempted)"', line)
		    if m:
		        at = int(m[1]) * 10**9 + int(m[2])
		        if m[3] == "in" and off:
		            sums += at - off
		        off = at if m[3] == "out" else None
		# CTF has those before the first sample, too
		assert sums >= waits - 1000, (sums, waits)
	EOF
}
