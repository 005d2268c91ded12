#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Time on and off a processor, by the kernel's context switches: what reports say of it against
# what the kernel tells the program itself (CLOCK_THREAD_CPUTIME_ID, getrusage).
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

recorded() {
	"$KRON" record -q -o probe -- true >/dev/null
	[ "$("$KRON" info --json probe | json 'd["switches"]["recorded"]')" = True ]
}

# ns of all processors that went to interrupts and to other guests of the machine
taken() {
	awk -v hz="$(getconf CLK_TCK)" '/^cpu / { printf "%.0f\n", ($7 + $8 + $9) / hz * 1000000000 }' /proc/stat
}

# as_told TRACE LINES TAKEN: each thread's call of work() as the program was told
as_told() {
	"$KRON" report --on-cpu --by-thread --json "$1" >report.json
	"$KRON" dump --switches --json "$1" >dump.json
	"$PYTHON" - "$2" "$3" <<-'EOF'
		import json, sys
		told = {int(l[0]): [int(n) for n in l[1:]] for l in map(str.split, open(sys.argv[1]))}
		rows = {r["thread"]: r for r in json.load(open("report.json")) if r["function"] == "work"}
		events = [json.loads(l) for l in open("dump.json")]
		assert len(told) == 6 and set(told) <= set(rows), (told, list(rows))
		for tid, (cpu, wall, waits, forced) in told.items():
		    r = rows[tid]
		    # what the two clocks may differ by: interrupts and what a hypervisor takes
		    near = 0.05 * wall + 2e6 + int(sys.argv[2])
		    assert abs(r["total_on_cpu_ns"] - cpu) < near, (tid, r, cpu)
		    assert r["total_on_cpu_ns"] < r["total_ns"] - 20e6, r  # eight naps of 3 ms
		    assert r["self_on_cpu_ns"] < 2e6 + near, r  # work() itself does nothing
		    own = [e for e in events if e.get("thread") == tid]
		    start = next(e["time_ns"] for e in own if e["kind"] == "entry" and e.get("function") == "work")
		    end = next(e["time_ns"] for e in own if e["kind"] == "exit" and e.get("function") == "work")
		    kinds = [e["kind"] for e in own if start < e["time_ns"] < end and e["kind"].startswith("switch")]
		    outs = sum(k != "switch-in" for k in kinds)
		    # between the program's own questions; one more may lie before and after them
		    assert waits + forced <= outs <= waits + forced + 2, (tid, waits, forced, kinds)
		    # each time that it goes, it comes back
		    assert kinds == [k for pair in zip([k for k in kinds if k != "switch-in"], ["switch-in"] * outs) for k in pair], kinds
		    assert kinds.count("switch-out") >= 8
		nap = [r for r in json.load(open("report.json")) if r["function"] == "nap"]
		assert sum(r["total_on_cpu_ns"] for r in nap) < 0.3 * sum(r["total_ns"] for r in nap)
	EOF
}

@test "threads and forks: times on a processor are those that the kernel told the program" {
	recorded || skip "context switches are not allowed here"
	compile busy_naps bins/busy_naps.c
	before=$(taken)
	"$KRON" record -q -o trace -- ./busy_naps >told
	as_told trace told "$(($(taken) - before))"
	before=$(taken)
	"$KRON" record -q -o trace -- sh -c './busy_naps exec' >told
	as_told trace told "$(($(taken) - before))"
}

# The collector may have looked a moment before the program woke for the last time.
@test "the last switches are there, however short before the end they come" {
	recorded || skip "context switches are not allowed here"
	compile naps bins/naps.c
	cat >last.py <<-'EOF'
		import json, sys
		last = None
		for e in map(json.loads, sys.stdin):
		    if e["kind"].startswith("switch"):
		        last = e["kind"]
		    elif e["kind"] == "exit" and e.get("function") == "nap_10":
		        assert last == "switch-in", e
	EOF
	for us in $(seq 500 250 16000); do
		"$KRON" record -q -- ./naps "$us" >/dev/null
		"$KRON" dump --switches --json | "$PYTHON" last.py
	done
}

@test "report, replay, dump and info show them" {
	recorded || skip "context switches are not allowed here"
	compile naps bins/naps.c
	"$KRON" record -q -- ./naps >/dev/null
	"$KRON" report --on-cpu >out
	grep -q 'Total CPU    Self CPU' out
	grep -q 'threads were on a processor for .* context switches' out
	"$KRON" report -s self-on-cpu --json | json 'all(a["self_on_cpu_ns"] >= b["self_on_cpu_ns"] for a, b in zip(d, d[1:]))' | grep -qx True
	"$KRON" report --on-cpu --totals --json | json '0 < d["on_cpu_ns"] < d["threads_ns"] and d["switches"] >= 10' | grep -qx True
	# ten naps, each of them a stretch inside its function
	"$KRON" replay --switches >out
	[ "$(grep -A1 'nap_[12]0() {' out | grep -c 'off the processor')" = 10 ]
	run ! grep 'off the processor' <("$KRON" replay)
	[ "$("$KRON" dump --switches | grep -c 'off the processor, waiting')" -ge 10 ]
	run ! grep -q switch <("$KRON" dump)
	"$KRON" info | grep -q '^switches: .* times off a processor'
}

# The kernel makes no record of a thread's end.  Between two recordings nobody was on a processor.
@test "who ends on a processor leaves it: SQL, and the page of two recordings" {
	recorded || skip "context switches are not allowed here"
	compile naps bins/naps.c
	for i in 1 2; do # the same thread before an exec and after it
		"$KRON" record -q -o trace$i -- taskset -c 0 ./naps >/dev/null
		"$KRON" view -q -o page$i.html trace$i
	done
	"$KRON" view -q -o pages.html trace1 trace2
	"$KRON" export -q -f sqlite -o switches.db trace1 trace2
	"$PYTHON" - <<-'EOF'
		import re, sqlite3
		for kind, in sqlite3.connect("switches.db").execute(
		        "SELECT kind FROM switches WHERE thread_id IS NOT NULL GROUP BY trace_id, tid HAVING time_ns = max(time_ns)"):
		    assert kind == "out", kind
		def busy(name):
		    page = open(name).read()
		    return sum(map(int, re.findall(r'"cpu":\d+,"busy_ns":(\d+)', page))), int(re.search(r'"to_ns":(\d+)', page)[1])
		(a, long_a), (b, long_b), (both, length) = map(busy, ("page1.html", "page2.html", "pages.html"))
		assert length > long_a + long_b, (length, long_a, long_b)
		# its end may come after the last sample, where its own page ends
		assert a and b and a + b <= both + 1000 and both <= long_a + long_b, (a, b, both, long_a, long_b)
	EOF
}

@test "not wanted, or not allowed: the recording says why, and reports do" {
	"$KRON" record -q --switches no -- true
	"$KRON" info | grep -q 'because: .*--switches no'
	run --separate-stderr "$KRON" report --on-cpu
	[ "$status" = 1 ]
	[[ $stderr == *"no context switches: not wanted"* ]]
	"$KRON" report >/dev/null
	"$KRON" replay --switches >/dev/null
	# perf_event_open(2) gives EPERM
	cat >forbid.py <<-'EOF'
		import ctypes, os, struct, sys
		libc = ctypes.CDLL(None, use_errno=True)
		code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
		filters = b"".join(struct.pack("<HBBI", *c) for c in code)
		text = ctypes.create_string_buffer(filters)
		prog = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(text)))
		assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0
		os.execv(sys.argv[1], sys.argv[1:])
	EOF
	"$PYTHON" forbid.py "$KRON" record -q -- sh -c 'exit 3' && false
	[ "$("$KRON" info --json | json 'd["exit"], d["switches"]["recorded"]')" = "('exited 3', False)" ]
	"$KRON" info | grep -q 'because: .*perf_event_open(2) is not allowed here'
	run --separate-stderr "$PYTHON" forbid.py "$KRON" record --switches yes -o none -- touch started
	[ "$status" = 125 ]
	[[ $stderr == *"perf_event_open(2) is not allowed here: Operation not permitted"* ]]
	[ ! -e started ]
}

@test "a damaged file of switches: reports go on" {
	recorded || skip "context switches are not allowed here"
	compile naps bins/naps.c
	"$KRON" record -q -- ./naps >/dev/null
	head -c 1001 /dev/urandom >>kron.data/switches
	for cmd in 'report --on-cpu' 'replay --switches' 'dump --switches' info; do
		# shellcheck disable=SC2086
		"$KRON" $cmd >/dev/null
	done
	rm kron.data/switches
	mkfifo kron.data/switches
	timeout 10 "$KRON" report --on-cpu >/dev/null
}
