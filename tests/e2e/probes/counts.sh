#!/bin/bash
# SPDX-License-Identifier: MIT
# counts.sh - the numbers are right: calls of every function as gcov and callgrind count them,
# samples + lost = triggers in every mode, times as long as they took, selections as asked.

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"

BINS=$KRON_TOP_SRC/tests/bins
GCC=${CC:-gcc}
GXX=${CXX:-g++}
prepare() { :; }

record() { # record FOLDER ARG...: `kron record` with the subjects' environment
	local d=$1
	shift
	mkdir -p "$d" && cd "$d" || return 1
	clean_env timeout 120 "$KRON" record -o trace -q "$@" >stdout 2>stderr </dev/null
}
truth() { "$PYTHON" "$TRUTH" "$@"; }
info() { "$KRON" info --json "$1" | json "$2"; }

# ---- gcov ----

against_gcov() { # against_gcov FLAGS...
	local d=$SUITE/gcov.${1#-}
	mkdir -p "$d/cov" && cd "$d/cov" || return 1
	# As many calls as the source says: no inlining, no call left out because its result is known.
	local as_written=(-fno-inline -fno-ipa-pure-const -fno-ipa-cp -fno-ipa-icf -fno-ipa-sra
		-fno-partial-inlining -fno-ipa-modref -fno-tree-pre -fno-optimize-sibling-calls)
	gcc -O0 --coverage -o calc "$BINS/calc.c" && ./calc >out || return 1
	gcov --json-format calc.gcda >/dev/null 2>&1
	truth gcov ./*.gcov.json.gz >../truth || return 1
	[ -s ../truth ] || { echo "gcov counted nothing"; return 1; }
	gcc "$@" "${as_written[@]}" -o ../calc "$BINS/calc.c" || return 1
	record "$d" --when-full wait -- "$d/calc" || { cat stderr; return 1; }
	cmp stdout cov/out && truth same truth trace /calc --balanced --absent 1
}

# ---- callgrind ----

# callgrind FOLDER OBJECT CMD...: the truth about OBJECT into FOLDER/truth
callgrind() {
	local d=$1 object=$2
	shift 2
	mkdir -p "$d/cg" && cd "$d/cg" || return 1
	clean_env LD_BIND_NOW=1 valgrind --tool=callgrind --demangle=no --callgrind-out-file=out \
		"$@" >stdout 2>stderr </dev/null || { tail -n 5 stderr; return 1; }
	truth callgrind out "$object" >../truth && [ -s ../truth ]
}

against_callgrind() { # NAME COMPILER SOURCE FLAGS...
	local d=$SUITE/callgrind.$1 exe=$SUITE/callgrind.$1/$1 compiler=$2 src=$3
	shift 3
	mkdir -p "$d"
	# parts of functions elsewhere: callgrind takes a jump back from there for a call
	[ "$SUBJECT_CC" = clang ] || set -- "$@" -fno-reorder-blocks-and-partition
	$compiler -o "$exe" "$BINS/$src" "$@" || return 1
	callgrind "$d" "/${exe##*/}" "$exe" || return 1
	record "$d" --when-full wait -- "$exe" || { cat stderr; return 1; }
	cmp stdout cg/stdout && truth same truth trace "/${exe##*/}" --absent 2
}

exported_of_library() { # NAME OBJECT LGLOB [-- CMD...]
	local d=$SUITE/library.$1 object=$2 glob=$3
	shift 3
	callgrind "$d" "$object" "$@" || return 1
	record "$d" --when-full wait -L "$glob" -- "$@" || { cat stderr; return 1; }
	# A function that jumps to its own start loops, says kron; callgrind calls it a call.
	cmp stdout cg/stdout &&
		truth same truth trace "$object" --absent 2 --except sqlite3WhereSplit
}

# ---- triggers ----

# every mode: samples + lost = triggers; MORE is a python condition on info
all_accounted() { # NAME THREADS CALLS CONDITION OPTION...
	local d=$SUITE/triggers.$1 want=$(($2 * $3 * 2)) condition=$4 n=$2 calls=$3
	shift 4
	record "$d" -F tick "$@" -- "$SUITE/triggers" "$n" "$calls" || { cat stderr; return 1; }
	truth check trace --min-samples 0 || return 1
	"$KRON" info --json trace >info.json || return 1
	json '(d["samples"], d["lost"], d["samples"] + d["lost"])' <info.json
	echo "wanted: $want in all, $condition"
	[ "$(json "(lambda samples, lost: samples + lost == $want and ($condition))(
		d['samples'], d['lost'])" <info.json)" = True ]
}

losses_are_shown() { # the trace says where samples are missing
	cd "$SUITE/triggers.discard" || return 1
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$KRON_TOP_SRC/tests "$PYTHON" - <<'END'
import sys
import truth

t = truth.Trace("trace")
lost = truth.kron_json("info", "trace")["lost"]
print(f"{lost} lost, {t.lost_records} of them placed")
# those at the very end have no sample after them
sys.exit(not 0 < t.lost_records <= lost)
END
}

# ---- selection, gates, times ----

functions_in() { "$KRON" report --json "$1" | json '" ".join(sorted({r["function"] for r in d}))'; }

selects() { # selects WANT OPTION...
	local d=$SUITE/select want=$1 got
	shift
	rm -rf "$d"
	record "$d" "$@" -- "$SUITE/calc" || { cat stderr; return 1; }
	got=$(functions_in trace)
	[ "$got" = "$want" ] || { echo "got: $got"; return 1; }
}

selects_library() {
	local got
	rm -rf "$SUITE/select"
	record "$SUITE/select" -F 'gz*' -L 'libz*' -- "$SUITE/deflate" || { cat stderr; return 1; }
	got=$("$KRON" report --json trace | json '" ".join(sorted({r["module"].split("/")[-1][:4] + ":" + r["function"] for r in d if r["calls"]}))')
	echo "$got"
	case $got in *libz:gzopen*) ;; *) return 1 ;; esac
	case $got in *deflate* | *main*) return 1 ;; esac
}

gate_closed() {
	record "$SUITE/gate0" --filter 0 -- "$SUITE/calc" || { cat stderr; return 1; }
	[ "$(info trace 'd["samples"] + d["lost"]')" = 0 ]
}
gate_of_level() { # level 5: open by bit 5 alone
	record "$SUITE/gate5" -g 5 --filter 0x20 -F add -- "$SUITE/calc" || return 1
	[ "$(info trace 'd["samples"] > 1000')" = True ] || return 1
	record "$SUITE/gate6" -g 5 --filter 0xffdf -F add -- "$SUITE/calc" || return 1
	[ "$(info trace 'd["samples"]')" = 0 ]
}

times_are_right() {
	started=$(date +%s%N)
	record "$SUITE/naps" -- "$SUITE/naps-program" || { cat stderr; return 1; }
	"$KRON" report --json trace >report.json || return 1
	"$PYTHON" - $(($(date +%s%N) - started)) <<'END'
import json, sys

r = {x["function"]: x for x in json.load(open("report.json"))}
ms = 1_000_000
outside = int(sys.argv[1]) - 150 * ms  # what the machine took: its own start, and other programs


def near(what, got, want):  # a busy machine may add, nothing takes away
    assert want * 0.99 <= got <= want + outside, (what, got, want, outside)


near("nap_20", r["nap_20"]["min_ns"], 20 * ms)
near("nap_10", r["nap_10"]["min_ns"], 10 * ms)
near("both", r["both"]["total_ns"], 150 * ms)
assert r["both"]["self_ns"] < 10 * ms + outside, r["both"]
parts = r["nap_20"]["total_ns"] + r["nap_10"]["total_ns"] + r["both"]["self_ns"]
assert abs(r["both"]["total_ns"] - parts) < ms, r
for x in r.values():
    assert x["self_ns"] <= x["total_ns"], x
    if x["calls"]:
        assert x["min_ns"] <= x["avg_ns"] <= x["max_ns"], x
        assert abs(x["avg_ns"] * x["calls"] - x["total_ns"]) <= x["calls"] * 2, x
END
}

# replay shows each call once, in order, deeper ones further in
replay_is_a_tree() {
	cd "$SUITE/naps" || return 1
	"$KRON" replay -F 'nap_*' -F both trace >replay.txt || return 1
	cat replay.txt
	"$PYTHON" - <<'END'
lines = [x.split("|")[-1] for x in open("replay.txt") if "()" in x]
names = [x.strip().split("()")[0] for x in lines]
depth = [len(x) - len(x.lstrip()) for x in lines]
assert names == ["both", "nap_20", "nap_10"] * 5, names
assert depth == [depth[0], depth[1], depth[1]] * 5 and depth[1] > depth[0], depth
END
}

dump_is_complete() {
	cd "$SUITE/naps" || return 1
	"$KRON" dump --json trace >dump.json || return 1
	"$PYTHON" - "$(info trace 'd["samples"]')" <<'END'
import json, sys

records = [json.loads(x) for x in open("dump.json")]
samples = [r for r in records if r["event"] < 0xFFFFFF00]
assert len(samples) == int(sys.argv[1]), (len(samples), sys.argv[1])
END
}

children_or_not() {
	local with without
	record "$SUITE/children" -F child_work -- "$SUITE/spawn" || { cat stderr; return 1; }
	with=$(info trace 'd["samples"]')
	record "$SUITE/no-children" --no-children -F child_work -- "$SUITE/spawn" || return 1
	without=$(info trace 'd["samples"]')
	echo "$with with, $without without children"
	[ "$with" -ge 900 ] && [ "$without" = 0 ]
}

suite_start
$GCC -O1 -fno-inline -o "$SUITE/calc" "$BINS/calc.c"
$GCC -O2 -pthread -o "$SUITE/triggers" "$BINS/triggers.c"
$GCC -O2 -o "$SUITE/naps-program" "$BINS/naps.c"
$GCC -O2 -o "$SUITE/deflate" "$BINS/deflate.c" -l:libz.so.1
build spawn.c O2 "$SUITE/spawn"

if command -v gcov gcc >/dev/null; then
	tap "gcov's counts, -O0" against_gcov -O0
	tap "gcov's counts, -O2" against_gcov -O2
else
	tap_skip "gcov's counts" "gcov is not installed"
fi
if command -v valgrind >/dev/null; then
	tap "callgrind's counts, C" against_callgrind calc "$GCC" calc.c -O2
	tap "callgrind's counts, C, non-PIE" against_callgrind calc-fixed "$GCC" calc.c -O3 -no-pie -fno-pie
	tap "callgrind's counts, C++" against_callgrind containers "$GXX" containers.cc -O2
	tap "callgrind's counts, C++, not optimised" against_callgrind containers0 "$GXX" containers.cc -O0
	tap "callgrind's counts, Debian's libz" exported_of_library libz libz.so 'libz*' "$SUITE/deflate"
	if command -v sqlite3 >/dev/null; then
		tap "callgrind's counts, Debian's libsqlite3" exported_of_library sqlite libsqlite3.so \
			'libsqlite3*' sqlite3 :memory: "create table t(a, b); with recursive n(i) as (select 1
			union all select i+1 from n where i < 300) insert into t select i, i*i%71 from n;
			create index x on t(b); select b, count(*), sum(a) from t group by b order by 2, 1 limit 5;"
	else
		tap_skip "callgrind's counts, libsqlite3" "sqlite3 is not installed"
	fi
else
	tap_skip "callgrind's counts" "valgrind is not installed"
fi
tap "discard: samples + lost = triggers" all_accounted discard 4 600000 "lost > 0" -b 1M
tap "discard: losses stand where they happened" losses_are_shown
tap "wait: nothing lost" all_accounted wait 4 300000 "lost == 0" -b 1M --when-full wait
tap "wrap: samples + lost = triggers" all_accounted wrap 4 600000 "samples > 0" -b 1M --when-full wrap
tap "a large buffer: nothing lost" all_accounted large 2 100000 "lost == 0" -b 64M
tap "more threads than chunks: all accounted" all_accounted crowded 40 2000 "samples > 0" -b 1M
tap "selects by -F" selects "factor number term" -F factor -F 'nu*' -F term
tap "selects by -F and -N" selects "find" -F 'f[ai]*' -N 'fac*'
tap "selects in a library" selects_library
tap "all gates closed: no sample" gate_closed
tap "a gate for each level" gate_of_level
tap "times are right" times_are_right
tap "replay is a tree" replay_is_a_tree
tap "dump is complete" dump_is_complete
tap "children, or not" children_or_not
suite_end
