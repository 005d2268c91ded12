#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What kron report adds up, against python's word on the same samples (report_truth.py).
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup() {
	test_setup
	make_trace=$KRON_TOP_BUILD/tests/unit/trace/make_trace
}

truth() {
	"$PYTHON" "$KRON_TOP_SRC/tests/e2e/reports/report_truth.py" "$@"
}

# walk DIR SAMPLES THREADS: random calls of few functions on CPUs that change; a probe costs 7.5 ns
walk() {
	"$make_trace" walk "$1" "$2" "$3"
	printf 'probe_ns=7.5\nprobe_ns_limit=5\n' >>"$1/session"
}

@test "profile: all columns, percentiles, virtual times, by CPU and by thread" {
	walk kron.data 30000 3
	truth profile kron.data
}

@test "percentiles and virtual times in text" {
	"$make_trace" small kron.data
	"$KRON" report -p >out
	grep -q ' p50 .* p90 .* p99 ' out
	grep -q 'within 1.6%' out
	# leaf: three calls of 100 ns, one of 250, one across a loss that does not count
	grep -Eq '0\.100 us +0\.100 us +0\.249 us +0\.249 us +0\.250 us  leaf ' out
	"$KRON" report -s p99 -n 1 | grep -q ' p99 '
	# work, outermost: 13 us with 15 probes in it of 9.7 ns
	"$KRON" report -V | grep -A 1 ' work ' | grep -q '^ 12\.85[45] us .* virtual; total +-0\.04[34] us'
	run "$KRON" report --by-cpu --by-thread
	[ "$status" = 2 ]
}

@test "totals: losses, migrations, cost of the probes" {
	"$make_trace" small kron.data
	"$KRON" report --totals >out
	grep -q '123 samples lost in 1 place, 1 cut off by a kill or a longjmp' out
	grep -q '^2 migrations of threads' out
	grep -q '^159 probes of 9.7 ns (+-2.9): 1.542 us, 15% (10 to 21%) of the 10.000 us (+-0.462 us) of processor time' out
	sed -i '/^probe_ns/d' kron.data/session
	"$KRON" report --totals | grep -q 'what a probe costs was not measured'
}

@test "histogram: bars" {
	"$make_trace" small kron.data
	"$KRON" report --histogram >out
	[ "$(grep -c '###' out)" -ge 9 ]
	"$KRON" report --histogram --json | json '[sum(b[2] for b in r["histogram"]) for r in d if r["function"] == "leaf"]' >out
	[ "$(cat out)" = '[4]' ]
}

@test "callers and callees" {
	walk kron.data 20000 2
	truth edges kron.data function_7
	truth edges kron.data function_21
	"$KRON" report --callers function_7 --callees function_7 >out
	grep -q '^callers of function_7 \[big\]:' out
	grep -q '^callees of function_7 \[big\]:' out
	# the share of the callers, who do not call each other through it, is the whole
	"$make_trace" small small
	"$KRON" report --callers leaf small | awk '$3 ~ /%/ { sum += $3 } END { exit !(sum > 99.5 && sum < 100.5) }'
	# a function that calls itself, too: time within its own calls is in theirs already
	"$KRON" report --callers work small | awk '!/itself/ && $3 ~ /%/ { sum += $3 } END { exit !(sum > 99.5 && sum < 100.5) }'
	# all functions' tables are those of each one
	for f in main parse leaf work on_signal; do
		"$KRON" report --callers $f --callees $f small
	done | sort >a
	"$KRON" report --callers '[mplwo][aeon]*[nerkfa_l]' --callees '[mplwo][aeon]*[nerkfa_l]' small | sort | comm -13 - a >left
	[ ! -s left ]
	# C++ functions by the forms that record -F takes
	name='std::vector<int, std::allocator<int>>::push_back'
	"$KRON" report --callers "$name(int&&)" small >a
	"$KRON" report --callers "$name" small | cmp - a
	"$KRON" report --callers '*::push_back' small | cmp - a
	grep -q ' parse \[app\]$' a
	# known, and never called
	"$make_trace" walk one 1 1
	[ "$("$KRON" report --callers function_1 one)" = "no call was recorded of what that names" ]
	run "$KRON" report --callers 'nothing*'
	[ "$status" = 1 ]
	run "$KRON" report --callers a --callees b
	[ "$status" = 2 ]
}

@test "call graph" {
	walk kron.data 6000 2
	truth graph kron.data
	"$make_trace" small small
	"$KRON" report -g --threshold 0 small >out
	# leaf is called by parse, which main calls
	grep -A 1 '  main \[app\]$' out | grep -q '  main '
	grep -q '^ *3.000 us .*    work \[app\]$' out
	grep -q '^ *0.100 us .*      leaf \[app\]$' out
	for bad in x -1 101 nan ''; do
		run "$KRON" report -g --threshold="$bad" small
		[ "$status" = 2 ]
	done
	run "$KRON" report -g --callers leaf
	[ "$status" = 2 ]
}

@test "diff: calls, times, significance" {
	walk before 20000 3
	walk after 3000 2
	truth diff before after >out
	"$KRON" diff before after >text
	grep -q "both sides, $(awk '{ print $5 }' out) of them significantly different" text
	# the same calls at a tenth of the clock's speed take ten times as long, which shows where they are regular enough
	walk slow 20000 3
	sed -i /^end_/d slow/session
	sed -i s/^tsc_hz=.*/tsc_hz=200000000/ slow/session
	truth diff before slow >out
	grep -q '^40 functions, 40 tested' out
	[ "$(awk '{ print $5 }' out)" -ge 1 ]
	"$KRON" diff --json -s avg before slow | json 'all(9.9 < r["after"]["avg_ns"] / r["before"]["avg_ns"] < 10.1 for r in d)' | grep -qx True
	# and a trace does not differ from itself
	"$KRON" diff --json before before | json 'all(r["p"] == 1 and not r["significant"] for r in d)' | grep -qx True
}

@test "diff: functions that are new, gone, or called too rarely" {
	"$make_trace" small a
	cp -r a b
	sed -i 's/\tleaf\t/\ttwig\t/' b/functions
	"$KRON" diff a b >out
	grep -Eq ' gone +leaf \[app\]$' out
	grep -Eq ' new +twig \[app\]$' out
	grep -Eq ' few +work \[app\]$' out
	grep -q 'functions, 1 of them gone and 1 new; 0 with 5 calls' out
	grep -q 'samples lost: 123 before, 123 after' out
	# two functions of one name in a module count as one
	sed -i 's/\tparse\t/\twork\t/' b/functions
	"$KRON" diff --json b b | json '[r["before"]["calls"] for r in d if r["function"] == "work"]' | grep -qx '\[8\]'
	for key in self total calls avg; do
		"$KRON" diff -s $key -n 1 a b >out
	done
}

@test "diff: a program and a library under other names, and what all functions took" {
	"$make_trace" small a
	cp -r a b
	# app is one of the modules, and what the processes execute
	sed -i 's/\/app$/\/app2/' b/modules
	sed -i 's/\/app\t/\/app2\t/' b/tasks
	! cmp a/modules b/modules
	! cmp a/tasks b/tasks
	"$KRON" diff a b >out
	grep -q '^app before is taken for app2 after$' out
	grep -q 'functions, 0 of them gone and 0 new' out
	grep -Eq ' main \[app2\]$' out
	calls=$("$KRON" report --json a | json 'sum(r["calls"] for r in d)')
	self=$("$KRON" report --json a | json '"%.3f ms" % (sum(r["self_ns"] for r in d) / 1e6)')
	grep -Fx "all functions: self time $self before, $self after (ratio 1.00); calls $calls before, $calls after" out
	# a second program that has a new name: nobody knows which is which
	sed -i 's/\/app$/\/libapp.so.1.2/' a/modules
	cp -r a c
	sed -i 's/\/libapp.so.1.2$/\/libapp.so.3/' c/modules
	"$KRON" diff a c | grep -q 'functions, 0 of them gone and 0 new'
}

@test "diff: filters hold for both traces" {
	walk a 20000 3
	walk b 30000 3
	for t in a b; do
		"$KRON" report --where 'cpu=1 and function_2' --json $t | json '{r["function"]: r["calls"] for r in d}' >$t.calls
	done
	"$KRON" diff --where 'cpu=1 and function_2' --json a b >out
	json '{r["function"]: r["before"]["calls"] for r in d}' <out | cmp - a.calls
	json '{r["function"]: r["after"]["calls"] for r in d}' <out | cmp - b.calls
	grep -q function_2 a.calls
}

@test "diff: operands" {
	"$make_trace" small kron.data
	run --separate-stderr "$KRON" diff
	[ "$status" = 1 ]
	[[ $stderr == *kron.data.old* ]]
	cp -r kron.data kron.data.old
	"$KRON" diff >a
	"$KRON" diff kron.data.old kron.data >b
	cmp a b
	run --separate-stderr "$KRON" diff kron.data absent
	[ "$status" = 1 ]
	[[ $stderr == *absent* ]]
	run "$KRON" diff a b c
	[ "$status" = 2 ]
	head -c 5000 /dev/urandom >>kron.data.old/samples
	"$KRON" diff 2>err >out
	grep -q 'makes no sense' err
}

@test "intervals: the four classes on any events" {
	walk kron.data 60000 3
	cat >info <<-'END'
	1 14 15 "inside function_7"
	1 14 21 "from 7 to the end of 10"
	2 4 6 9 "2, then 3" "2, then the end of 4"
	3 10 12 16 "5 to 6" "6 to 8"
	4 30 40 "15 to 20"
	4 50 60 "25 to 30"
	1 99990 99991 "never"
	END
	truth intervals kron.data info >out
	# each of them occurred, but the last
	[[ $(cat out) =~ ^[1-9][0-9]*( [1-9][0-9]*){7}\ 0$ ]]
	cat >names <<-'END'
	1 function_7 function_7%return "inside function_7"
	1 big:function_7 'function_10'%return "from 7 to the end of 10"
	2 function_2 'function_3' function_4%return "2, then 3" "2, then the end of 4"
	3 0xa function_6 function_8 "5 to 6" "6 to 8"
	4 function_15 function_20 "15 to 20"
	4 function_25 big:function_30 "25 to 30"
	1 99990 99991 "never"
	END
	for o in '' --json --by-thread '--by-cpu --json' '--by-process --virtual --histogram'; do
		# shellcheck disable=SC2086
		"$KRON" report $o --intervals info >a
		# shellcheck disable=SC2086
		"$KRON" report $o -i names >b
		cmp a b
	done
	"$KRON" report -i info --json | json '[r["count"] for r in d]' >a
	"$KRON" report -i info --json --by-cpu | json '[sum(r["count"] for r in d if r["interval"] == n) for n in ("inside function_7", "15 to 20")]' >b
	[ "$(json '[d[0], d[7]]' <a)" = "$(cat b)" ]
	# what calls take by the profile, recursion apart, is what they take by their events
	[ "$("$KRON" report -i info --json | json 'd[0]["max_ns"]')" = \
		"$("$KRON" report --json | json '[r["max_ns"] for r in d if r["function"] == "function_7"][0]')" ]
}

@test "intervals: threads one by one count what all of them together do" {
	walk kron.data 60000 5
	cat >info <<-'END'
	1 14 15 "inside function_7"
	2 4 6 9 "2, then 3" "2, then the end of 4"
	3 10 12 16 "5 to 6" "6 to 8"
	1 20 20 "from 10 to 10"
	END
	{ cat info && echo '4 99990 99991 "never"'; } >across
	for o in '' --by-thread --by-cpu '--by-process --virtual --histogram'; do
		# shellcheck disable=SC2086
		"$KRON" report $o -i info >a
		# shellcheck disable=SC2086
		"$KRON" report $o -i across | sed '/ never$/d' >b
		# shellcheck disable=SC2086
		diff <("$KRON" report --json $o -i info | json '[r for r in d]') \
			<("$KRON" report --json $o -i across | json '[r for r in d if r["interval"] != "never"]')
		cmp a b
	done
	grep -q '^not in any: [1-9]' a
}

@test "on a processor: what was off it, and nothing across lost records" {
	"$make_trace" small kron.data
	echo switches=yes >>kron.data/session
	# thread 1000 is in main from tick 2000 to 2000000, in work from 10000 to 14000
	python3 - <<-'P'
		import struct
		IN, OUT, PREEMPTED, LOST = 1, 2, 3, 4
		with open("kron.data/switches", "wb") as f:
		    for tick, tid, kind in ((10100, 1000, OUT), (10300, 1000, IN),  # 100 ns at 2 GHz
		                            (11500, 1000, PREEMPTED), (11520, 1000, IN),  # 10 ns
		                            (13000, 1000, OUT), (13100, 7, LOST), (13500, 1000, IN)):
		        f.write(struct.pack("<QIHH", 10**12 + tick, tid, 1, kind))
	P
	"$KRON" report -c --json | json '{r["function"]: (r["total_ns"] - r["total_on_cpu_ns"],
		r["self_ns"] - r["self_on_cpu_ns"]) for r in d if r["function"] in ("main", "work", "on_signal")}' >out
	[ "$(cat out)" = "{'main': (110, 0), 'work': (110, 100), 'on_signal': (10, 10)}" ]
	# the probes of the handler are not in work's own time, either: 10 are, by hand
	"$KRON" report -V --json | json '[r["self_ns"] - r["self_virtual_ns"] for r in d if r["function"] == "work"]' >out
	[ "$(cat out)" = "[97]" ]
	"$KRON" report -c --totals --json | json '(d["switches"], d["preempted"], d["switches_lost"])' >out
	[ "$(cat out)" = "(3, 1, 7)" ]
}

@test "intervals: across a loss" {
	"$make_trace" small kron.data
	printf '1 leaf leaf%%return "leaf"\n1 work work%%return "work"\n1 main main%%return "main"\n' >info
	[ "$("$KRON" report -i info --json | json '[r["spans_loss"] for r in d]')" = "[1, 1, 0]" ]
}

@test "filters: a name that nothing has is said" {
	"$make_trace" small kron.data
	run --separate-stderr "$KRON" report --where 'nosuch or leaf'
	[ "$status" = 0 ]
	[ "$stderr" = "kron report: nothing in kron.data is called 'nosuch'" ]
	run --separate-stderr "$KRON" diff --where 'thread=worker' kron.data kron.data
	[[ ${stderr_lines[0]} == *"called 'worker'" ]]
	run --separate-stderr "$KRON" dump --where 'leaf and process=app and module=app and thread=1000'
	[ -z "$stderr" ]
}

@test "intervals: what is wrong with the file" {
	"$make_trace" small kron.data
	sed -i 's/\ton_signal\t/\tleaf\t/' kron.data/functions
	says() { # TEXT LINE
		printf '%s\n' "$2" >info
		run --separate-stderr "$KRON" report -i info
		[ "$status" = 1 ]
		[ -z "$output" ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *info*"$1"* ]]
	}
	says "1: nobody is not a function of this trace" '1 nobody work "x"'
	says "leaf is the name of 2 functions" '1 leaf leaf%return "x"'
	says "closing quote" "1 'work work \"x\""
	says "%return" "1 'work'%exit 3 \"x\""
	says "event 2 should be a number" '1 work "x"'
	says "not a class" '5 work work "x"'
	says "no interval" '# nothing'
	printf '1 std::vector\074int,3 5 "x"' >info
	says "is not a function" '1 std::vector 5 "x"'
	# a demangled name, whole, and a module
	echo "1 'std::vector<int, std::allocator<int>>::push_back(int&&)' app:main%return \"x\"" >info
	"$KRON" report -i info >out
	echo "1 'app:std::vector<int, std::allocator<int>>::push_back' 'main'%return \"x\"" >info
	"$KRON" report -i info | cmp - out
	run "$KRON" report -i absent
	[ "$status" = 1 ]
	run "$KRON" report -i info --call-graph
	[ "$status" = 2 ]
}

@test "damage: every kind of report ends, and says what it left out" {
	walk kron.data 20000 3
	head -c 50000 /dev/urandom >>kron.data/samples
	printf '1 14 15 "x"\n4 function_1 function_2 "y"\n' >info
	printf 'probe_ns_limit=1e400\n' >>kron.data/session
	for o in --percentiles --virtual --histogram --by-cpu '--by-cpu -V -p' --totals \
		--call-graph '--intervals info' '--intervals info --by-cpu -V --histogram' '--callers function_1?' '--callees function_?'; do
		# shellcheck disable=SC2086
		timeout 20 "$KRON" report $o >out 2>err
		grep -q 'makes no sense' err
		[ -s out ]
	done
	printf 'probe_ns=nan\n' >>kron.data/session
	for o in --virtual '-V --json' '-i info -V'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$KRON" report $o
		[ "$status" = 1 ]
		[ -z "$output" ]
		[[ $stderr == *"what a probe costs was not measured"* ]]
	done
}

@test "an option that would change nothing is refused" {
	"$make_trace" small kron.data
	echo '1 main main%return "x"' >info
	refused() { # WHAT OPTION...
		run --separate-stderr "$KRON" report "${@:2}"
		[ "$status" = 2 ]
		[ -z "$output" ]
		[[ $stderr == "kron report: $1"* ]]
	}
	refused '--by-thread does not apply to --call-graph' -g --by-thread
	refused '--limit does not apply to --callers and --callees' --callers leaf -n 3
	refused '--sort does not apply to --intervals' -i info -s calls
	refused '--histogram does not apply to --events' --events --histogram
	refused '--threshold needs --call-graph' --threshold 3
	refused '--by-group does not apply to --intervals' -i info --by-group
	"$KRON" report -i info -p --by-thread -V --histogram >out
	"$KRON" report -p -V --histogram --by-cpu -s p99 -n 2 >out
	"$KRON" report -g --threshold 3 >out
	"$KRON" report --events -n 2 >out
	grep -q '^no probes of events' out
}

@test "one of something is not a plural, nothing is said, and an average is not a whole tick" {
	"$make_trace" walk kron.data 1 1
	"$KRON" report >out
	grep -q '^1 call, 1 still running at the end; 0 samples lost$' out
	"$make_trace" walk kron.data 0 1
	"$KRON" report --call-graph | grep -qx 'no calls'
	"$make_trace" walk kron.data 1 1
	"$KRON" report --call-graph --threshold 100 | grep -q ' function_[0-9]* \[big\]$' # all there is
	walk kron.data 50000 2
	# 2 GHz: a half of all ticks are halves of nanoseconds
	"$KRON" report --json | json 'all(0 <= r["total_ns"] / r["calls"] - r["avg_ns"] < 1 for r in d
		if not r["inferred"] and r["total_ns"] == r["self_ns"])' | grep -qx True
	# and diff says the same
	diff <("$KRON" report | awk '/\[big\]/ { print $(NF - 1), $(NF - 7), $(NF - 6) }' | sort) \
		<("$KRON" diff kron.data kron.data | awk '/\[big\]/ { print $(NF - 1), $(NF - 6), $(NF - 5) }' | sort)
	"$KRON" report --json -s avg | json '[r["avg_ns"] for r in d] == sorted((r["avg_ns"] for r in d), reverse=True)' | grep -qx True
}

@test "by filter level: the functions that -g put there" {
	compile naps bins/naps.c
	"$KRON" record -q -o levels -g 3=nap_20 -g 5=both -- ./naps >/dev/null
	"$KRON" report --by-group levels >out
	[ "$(grep -c '^filter level [035]:$' out)" = 3 ]
	sed -n '/^filter level 3:/,/^$/p' out | grep -q ' nap_20 \['
	"$KRON" report --by-group --json levels >out
	[ "$(json '{r["level"] for r in d if r["function"] == "both"}' <out)" = '{5}' ]
	[ "$(json '{r["level"] for r in d if r["function"] == "main"}' <out)" = '{0}' ]
	# the same rows, in other tables
	"$KRON" report --json levels >all
	"$PYTHON" -c '
import json
key = lambda r: (r["function"], r["calls"], r["total_ns"], r["self_ns"])
assert sorted(map(key, json.load(open("out")))) == sorted(map(key, json.load(open("all"))))'
	run "$KRON" report --by-group --by-cpu levels
	[ "$status" = 2 ]
}
