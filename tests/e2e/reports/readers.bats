#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# report, replay, dump and info on a synthetic trace (tests/unit/trace/make_trace.c) whose right answers
# were worked out by hand and stand in tests/golden/trace/, and on things that are not traces.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup() {
	test_setup
	export TZ=UTC
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small kron.data
}

# golden NAME CMD...: stdout is what the file says, and stderr is empty
golden() {
	local name=$KRON_TOP_SRC/tests/golden/trace/$1
	shift
	"$@" >out 2>err
	diff "$name" out
	[ ! -s err ]
}

@test "report" {
	golden report.txt "$KRON" report
	golden report.txt "$KRON" report kron.data
	golden report-thread.txt "$KRON" report --by-thread -s self -n 2
	golden report-process.txt "$KRON" report --by-process -s name
	golden report.json "$KRON" report --json
	golden report-thread.json "$KRON" report --json --by-thread -s calls -n 1
}

@test "report sorts by every column" {
	for key in total self calls avg min max; do
		"$KRON" report --json -s $key | json "all(a['${key}' if '${key}' == 'calls' else '${key}_ns'] \
			>= b['${key}' if '${key}' == 'calls' else '${key}_ns'] for a, b in zip(d, d[1:]))" >out
		[ "$(cat out)" = True ]
	done
	[ "$("$KRON" report --json -s name | json '[r["function"] for r in d] == sorted(r["function"] for r in d)')" = True ]
	[ "$("$KRON" report --json -s module | json '[r["module"] for r in d] == sorted(r["module"] for r in d)')" = True ]
	run "$KRON" report -s colour
	[ "$status" = 2 ]
	run "$KRON" report --by-thread --by-process
	[ "$status" = 2 ]
}

@test "threads and processes add up to the whole" {
	sum='sorted((f, sum(r["calls"] for r in d if r["function"] == f), sum(r["self_ns"] for r in d if r["function"] == f)) for f in {r["function"] for r in d})'
	"$KRON" report --json | json "$sum" >whole
	"$KRON" report --json --by-thread | json "$sum" >threads
	"$KRON" report --json --by-process | json "$sum" >processes
	diff whole threads
	diff whole processes
}

@test "replay" {
	golden replay.txt "$KRON" replay
	golden replay-no-merge.txt "$KRON" replay --no-merge -t 1002
	golden replay-thread.txt "$KRON" replay -t 1001
	golden replay-function.txt "$KRON" replay -F 'on_*' -F work
	"$KRON" replay -F '*::push_back' >out
	grep -q 'push_back(int&&)() {\|push_back(int&&) {' out
	golden replay-depth.txt "$KRON" replay -D 1
	run "$KRON" replay -t 4711
	[ "$status" = 1 ]
	run "$KRON" replay -t x
	[ "$status" = 2 ]
	run "$KRON" replay -F 'nothing*'
	[ "$status" = 1 ]
}

@test "dump" {
	golden dump.txt "$KRON" dump
	golden dump.json "$KRON" dump --json
	"$PYTHON" -c 'import json, sys; assert len([json.loads(l) for l in sys.stdin]) == 36 + 1 + 6' <out
}

@test "info" {
	golden info.txt "$KRON" info
	golden info.json "$KRON" info --json
	[ "$(json '[d[k] for k in ("samples", "lost", "probes", "refused", "processes", "threads")]' <out)" = '[36, 123, 20, 4, 2, 3]' ]
}

@test "no control character of the trace reaches the output" {
	for cmd in report 'report --json' 'report --by-thread' replay dump 'dump --json' info 'info --json'; do
		# shellcheck disable=SC2086
		"$KRON" $cmd >out
		[ "$(tr -d '\n[:print:]\200-\377' <out | wc -c)" = 0 ]
		# nor a C1 control, nor what is not UTF-8
		"$PYTHON" -c 'import sys; t = open("out", encoding="utf-8").read(); sys.exit(any(0x7f <= ord(c) < 0xa0 for c in t))'
	done
}

@test "a trace that was cut short is read as far as it goes" {
	sed -i /end_/d kron.data/session
	size=$(stat -c %s kron.data/samples)
	for cut in 1 20 300 500 "$((size - 4))" "$size"; do
		rm -rf cut
		cp -r kron.data cut
		truncate -s -"$cut" cut/samples
		for cmd in 'report --json' replay dump; do
			# shellcheck disable=SC2086
			"$KRON" $cmd cut >/dev/null
		done
		left=$("$KRON" info --json cut | json 'd["samples"]')
		[ "$left" -lt 36 ]
	done
	# nobody has written how much was lost, but for the records among the samples
	sed -i '/^lost=/d' kron.data/session
	sed -i '/^E/d' kron.data/tasks
	echo '1 main main%return "x"' >info
	[ "$("$KRON" info --json | json 'd["lost"], d["complete"]')" = "(123, False)" ]
	[ "$("$KRON" report --totals --json | json 'd["lost"]')" = 123 ]
	"$KRON" report -i info | grep -q '^123 samples lost'
	"$KRON" diff kron.data kron.data | grep -q '^samples lost: 123 before, 123 after'
}

@test "an unfinished copy of a trace that was ended: all say that samples are missing" {
	grep -q '^end_tsc=' kron.data/session
	echo samples=36 >>kron.data/session
	cp -r kron.data/. kept
	for cut in 20 300 all; do
		rm -rf cut
		cp -r kept cut
		if [ $cut = all ]; then rm cut/samples; else truncate -s -$cut cut/samples; fi
		for cmd in 'report --json' replay dump info 'export -f csv' 'report --totals'; do
			# shellcheck disable=SC2086
			"$KRON" $cmd cut >/dev/null 2>err
			grep -q 'samples are missing' err
		done
	done
	"$KRON" report kept 2>&1 >/dev/null | grep -c missing | grep -qx 0
}

@test "tables are missing: events by number" {
	rm kron.data/{modules,functions,refusals,tasks}
	"$KRON" report >out
	grep -q 'event 4 ' out
	"$KRON" replay | grep -q 'event 4()'
	"$KRON" info --json | json 'd["samples"]' | grep -qx 36
}

@test "what is not a trace: one sentence, exit 1" {
	mkdir empty
	echo text >file
	mkfifo pipe
	mkdir garbage
	for f in session modules functions refusals jumps tasks samples; do
		head -c 5000 /dev/urandom >garbage/$f
	done
	for what in empty file pipe garbage absent /dev/null /proc/self/mem "$KRON"; do
		for cmd in report replay dump info; do
			run --separate-stderr timeout 10 "$KRON" $cmd "$what"
			[ "$status" = 1 ]
			[ -z "$output" ]
			[ "${#stderr_lines[@]}" = 1 ]
			[[ $stderr == *"$what"* ]]
		done
	done
	cd empty
	run --separate-stderr "$KRON" report
	[ "$status" = 1 ]
	[[ $stderr == *kron.data* ]]
	run --separate-stderr "$KRON" report a b
	[ "$status" = 1 ]
	[ "${#stderr_lines[@]}" = 1 ]
	run "$KRON" report --nosuch
	[ "$status" = 2 ]
}

@test "garbage in every file but the session" {
	for f in modules functions refusals jumps tasks samples; do
		head -c 50000 /dev/urandom >>kron.data/$f
	done
	for cmd in report replay dump info; do
		timeout 20 "$KRON" $cmd >out 2>err
		grep -q 'makes no sense' err
	done
}

@test "a reader that goes away, and a full disk" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" big big 200000 2
	("$KRON" dump big || echo $? >status) 2>err | head -n 1 >/dev/null
	[ ! -e status ] || [ "$(cat status)" = 141 ]
	[ ! -s err ]
	if [ -w /dev/full ]; then
		run --separate-stderr bash -c '"$KRON" dump big >/dev/full'
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
	fi
}

@test "a merge of many threads is in order, and complete" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" big big 100000 300
	"$KRON" dump --json big | "$PYTHON" -c '
import json, sys
last = 0
n = 0
for line in sys.stdin:
    d = json.loads(line)
    assert d["time_ns"] >= last, line
    last = d["time_ns"]
    n += d["kind"] in ("entry", "exit")
assert n == 100000, n'
}

@test "progress: on a terminal, for what takes long, and not with -q" {
	need script
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" walk walk 600000 3
	# the pipe is full for a second
	script -qec "'$KRON' dump walk | (sleep 1; cat >/dev/null)" /dev/null >out
	tr '\r' '\n' <out | grep -q 'kron dump: *[0-9]*% of [0-9]* MB read'
	# the line is gone at the end
	[ "$(tail -c 4 out)" = $'\r\033[K' ]
	script -qec "'$KRON' dump -q walk | (sleep 1; cat >/dev/null)" /dev/null >out
	[ ! -s out ]
	"$KRON" dump walk 2>err | (sleep 1; cat >/dev/null)
	[ ! -s err ]
	# nor where the output itself is what the terminal shows
	script -qec "'$KRON' dump --no-pager walk | cat" /dev/null >/dev/null
	script -qec "'$KRON' dump --no-pager walk" /dev/null >out
	run ! grep -q 'MB read' out
}

@test "a trace without its table of functions says so" {
	rm kron.data/functions
	for cmd in report replay 'export -f csv' info; do
		# shellcheck disable=SC2086
		"$KRON" $cmd >out 2>err
		grep -q 'the file `functions` is not in the trace: functions have no names' err
	done
}
