#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron export to directories, databases and binary formats: their own readers must find the calls
# and times of kron report.  On a synthetic trace with inferred ends and hostile names, on a real
# program, and on a tree of processes with threads.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

traces='small real tree'
home=$HOME

setup() {
	test_setup
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small small
	"$KRON" record -q -o real -- git --version >/dev/null
	"$KRON" record -q -o tree -- sh -c 'xz -c /etc/services | xz -dc | git hash-object --stdin; sort /etc/passwd' >/dev/null
}

# agree FORMAT: export each trace, and let its reader's figures meet those of the report
agree() {
	local trace
	for trace in $traces; do
		"$KRON" export -f "$1" -o "$trace.$1" "$trace"
		"$KRON" report --json "$trace" >report.json
		"$PYTHON" "$KRON_TOP_SRC/tests/e2e/exports/export_agree.py" "$1" "$trace.$1" report.json
	done
}

@test "uftrace report and replay: calls and times of kron report" {
	need uftrace
	agree uftrace
	uftrace graph --no-pager -d real.uftrace >graph
	grep -q 'FUNCTION CALL GRAPH' graph
	uftrace info --no-pager -d tree.uftrace | grep -q 'number of tasks'
	# the day of the recording, not that of the export
	cp -r real dated
	sed -i 's/^start_real_ns=.*/start_real_ns=1000000000000000000/' dated/session
	"$KRON" export -f uftrace -o dated.uftrace dated
	TZ=UTC uftrace info --no-pager -d dated.uftrace | grep -q 'recorded on.* Sep  9 .* 2001'
}

@test "SQLite: calls and times of kron report, every sample" {
	agree sqlite
	need sqlite3
	for trace in $traces; do
		"$KRON" dump --json $trace >dump
		"$PYTHON" - $trace.sqlite dump <<-'EOF'
			import json, sqlite3, sys
			db = sqlite3.connect(sys.argv[1])
			dump = [json.loads(line) for line in open(sys.argv[2])]
			mine = db.execute("SELECT time_ns, event, data, cpu, tid FROM samples ORDER BY sample_id").fetchall()
			assert len(mine) == len(dump), (len(mine), len(dump))
			for (ns, *rest), d in zip(mine, dump):
			    assert abs(ns - d["time_ns"]) <= 1, (ns, d)
			    # of a record about a child, tid is the process that wrote it
			    assert rest == [d["event"], d["payload"], d["cpu"], d["thread"]], (rest, d)
			# an entry is one call, an exit is one call's or an orphan
			one = lambda sql: db.execute(sql).fetchone()[0]
			assert one("SELECT count(*) FROM call") == one("SELECT count(*) FROM sample WHERE type = 0")
			assert one("SELECT count(exit_id) FROM call") + one("SELECT count(*) FROM orphan") == one("SELECT count(*) FROM sample WHERE type = 1")
			assert one("SELECT sum(self) FROM call") == one("SELECT sum(self) FROM node")
		EOF
	done
	# nothing that a terminal would obey
	sqlite3 small.sqlite 'SELECT name FROM function; SELECT name FROM thread' >names
	run ! grep -q "[[:cntrl:]]" names
}

@test "SQLite: the queries of examples/queries give the answers that stand in them" {
	need sqlite3
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" naps naps
	"$KRON" export -f sqlite -o small.db small
	"$KRON" export -f sqlite -o naps.db naps
	for query in "$KRON_TOP_SRC"/examples/queries/*.sql; do
		db=$(sed -n 's/^-- Answer for the trace of `make_trace \(.*\)`:$/\1.db/p' "$query")
		sed '1,/^-- Answer for/d; s/^-- //' "$query" >want
		[ -s want ]
		sqlite3 -batch -markdown "$db" <"$query" >got
		diff want got
	done
}

@test "SQLite: a database that is not an export stays" {
	need sqlite3
	sqlite3 app.db 'CREATE TABLE trace(customer); INSERT INTO trace VALUES(1)'
	cp app.db before.db
	ln -s app.db link.db
	for to in app.db link.db; do
		for traces in small 'small real'; do
			# shellcheck disable=SC2086
			run --separate-stderr "$KRON" export -f sqlite -o $to $traces
			[ "$status" = 1 ]
			[ "$stderr" = "kron export: $to is a database that kron export has not made: remove it, or name another file" ]
			cmp app.db before.db
		done
	done
	# a view of the user's in an export makes it no other; and what is no database goes, as always
	"$KRON" export -f sqlite -o mine.db small
	sqlite3 mine.db 'CREATE VIEW mine AS SELECT 1'
	echo words >words.db
	for to in mine.db words.db; do
		"$KRON" export -f sqlite -o $to small
		[ "$(sqlite3 $to "SELECT count(*) FROM trace; SELECT count(*) FROM sqlite_schema WHERE name = 'mine'")" = $'1\n0' ]
	done
}

@test "SQLite: several traces in one database" {
	need sqlite3
	"$KRON" export -f sqlite -o all small real tree
	[ "$(sqlite3 all 'PRAGMA integrity_check; SELECT group_concat(trace_id) FROM trace')" = $'ok\n1,2,3' ]
	[ -z "$(sqlite3 all 'PRAGMA foreign_key_check')" ]
	for id in 1 2 3; do
		trace=$(sqlite3 all "SELECT value FROM session WHERE trace_id = $id AND key = 'directory'")
		"$KRON" export -f sqlite -o one "$trace"
		for view in functions intervals call_tree cpu_occupancy samples losses migrations switches off_cpu thread_times; do
			# all columns but the first, which is the trace
			columns=$(sqlite3 one "SELECT group_concat(name) FROM pragma_table_info('$view') WHERE cid > 0")
			sqlite3 one "SELECT $columns FROM $view ORDER BY $columns" >want
			sqlite3 all "SELECT $columns FROM $view WHERE trace_id = $id ORDER BY $columns" >got
			cmp want got
		done
	done
	# other formats take them as one trace
	"$KRON" export -f ctf -o x small real
	[ -e x/metadata ]
	run --separate-stderr "$KRON" export -f sqlite -o none small absent real
	[ "$status" = 1 ]
	[ ! -e none ]
	[ "${#stderr_lines[@]}" = 1 ]
}

@test "SQLite: a database is replaced when the new one is whole, and only a file" {
	need sqlite3
	"$KRON" export -f sqlite -o db small
	cp db before
	run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 20; exec "$@"' - \
		"$KRON" export -f sqlite -o db tree
	[ "$status" = 1 ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *"cannot write db"* ]]
	cmp db before
	"$KRON" export -f sqlite -o db real
	[ "$(sqlite3 db "SELECT value FROM session WHERE key = 'command'")" = "git --version" ]
	[ -z "$(ls -A | grep '[.]kron-')" ]
	for place in /dev/full . none/db; do
		run --separate-stderr "$KRON" export -f sqlite -o $place small
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
	done
	run "$KRON" export -f sqlite small
	[ "$status" = 2 ]
}

@test "CTF: babeltrace2 finds calls, times and losses of kron report" {
	need babeltrace2
	agree ctf
	# 123 samples lost, in the thread that lost them
	babeltrace2 small.ctf 2>&1 >/dev/null | grep -q 'discarded 123 events'
	# more than 2^27 ns without an event
	"$KRON" record -q -o slow -- sh -c 'sleep 0.3' >/dev/null
	traces=slow agree ctf
}

# duckdb: have it in $DUCKDB, by the npm of whoever runs the tests
duckdb() {
	need node npm
	mkdir duckdb
	(cd duckdb && HOME=$home timeout 120 npm install --no-audit --no-fund --loglevel=error \
		@duckdb/node-api) >npm.log 2>&1 || skip "npm cannot get DuckDB here"
	export DUCKDB=$T/duckdb
}

ask() { node "$KRON_TOP_SRC/tests/e2e/exports/duckdb.js" "$DUCKDB" "$1"; }

@test "Parquet: DuckDB finds calls, times, losses and statistics" {
	duckdb
	agree parquet
	[ "$(ask "SELECT sum(value)::INT, count(*)::INT FROM 'small.parquet' WHERE kind = 'lost'")" = "[[123,1]]" ]
	# orphans are in the trace's dump, and in no call
	[ "$(ask "SELECT time_ns::INT, function FROM 'small.parquet' WHERE kind = 'orphan'")" = '[[30500,"work"],[31500,"main"]]' ]
	ask "SELECT DISTINCT tid FROM 'tree.parquet'" >got
	"$KRON" dump --json tree | "$PYTHON" -c '
import json, sys
tids = {json.loads(l)["tid"] for l in sys.stdin}
assert {t for t, in json.load(open("got"))} == tids'
	# what is not a call
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" naps naps
	"$KRON" export -f parquet -o naps.parquet naps
	"$PYTHON" "$KRON_TOP_SRC/tests/e2e/exports/export_more.py" parquet naps.parquet
	# many row groups, which the statistics tell apart: what they say must be what is there
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" walk walk 600000 3
	traces=walk agree parquet
	[ "$(ask "SELECT count(*)::INT FROM (SELECT m.row_group_id FROM parquet_metadata('walk.parquet') m
		WHERE path_in_schema = 'time_ns' GROUP BY ALL)")" = "[[3]]" ]
	[ "$(ask "SELECT (min(stats_min_value::BIGINT) = (SELECT min(time_ns) FROM 'walk.parquet'))::INT,
		(max(stats_max_value::BIGINT) = (SELECT max(time_ns) FROM 'walk.parquet'))::INT
		FROM parquet_metadata('walk.parquet') WHERE path_in_schema = 'time_ns'")" = "[[1,1]]" ]
	# one table from several files
	"$KRON" export -f parquet real | cat >again.parquet
	cmp again.parquet real.parquet
	ask "SELECT count(*)::INT FROM read_parquet(['real.parquet', 'tree.parquet', 'small.parquet'])" >all
	[ "$(cat all)" != "[[0]]" ]
}

@test "events of a user's probes stand in every format that has a place for them" {
	compile naps bins/naps.c
	"$KRON" record -q -o events -F '*' -p '2:mine=nap_20' -- ./naps >/dev/null
	for format in chrome perfetto sqlite ctf otf2 parquet; do
		[ $format != otf2 ] || grep -q "^#define HAVE_OTF2 " "$KRON_TOP_BUILD/config.h" || continue
		"$KRON" export -f $format -o events.$format events
	done
	[ "$(grep -c '"ph":"i".*"name":"mine"' events.chrome)" = 5 ]
	if command -v babeltrace2 >/dev/null; then
		[ "$(babeltrace2 events.ctf | grep -c ' user: .*"mine"')" = 5 ]
	fi
	if command -v otf2-print >/dev/null && [ -d events.otf2 ]; then
		[ "$(otf2-print events.otf2/traces.otf2 | grep -c 'Parameter: "mine"')" = 5 ]
	fi
	if command -v sqlite3 >/dev/null; then
		[ "$(sqlite3 events.sqlite "SELECT count(*), min(level) FROM events WHERE name = 'mine'")" = '5|2' ]
		[ "$(sqlite3 events.sqlite "SELECT count(*) FROM sample WHERE type = 0")" = "$(sqlite3 events.sqlite 'SELECT count(*) FROM call')" ]
	fi
	if command -v protoc >/dev/null; then
		[ "$(protoc --decode=Trace -I "$KRON_TOP_SRC/tests/e2e/exports/proto" perfetto.proto <events.perfetto | grep -c 'name: "mine"')" = 5 ]
	fi
	duckdb
	[ "$(ask "SELECT count(*)::INT FROM 'events.parquet' WHERE kind = 'event' AND function = 'mine'")" = "[[5]]" ]
}

@test "mk.dat: what kron read writes, and mk_expand reads" {
	for trace in $traces; do
		"$KRON" export -f mk.dat -o $trace.mkdat $trace
		"$KRON" read -o want $trace
		cmp want $trace.mkdat
		"$KRON_TOP_BUILD/board/toolkit/mk_expand" $trace.mkdat >text
		[ "$(stat -c %s $trace.mkdat)" = $((20 * $("$KRON" info --json $trace | json 'd["samples"]'))) ]
	done
}

@test "OTF2: otf2-print finds calls, times and losses of kron report" {
	need otf2-print
	[ "$(grep -c '^#define HAVE_OTF2 ' "$KRON_TOP_BUILD/config.h")" = 1 ] || skip "built without OTF2"
	agree otf2
	otf2-print small.otf2/traces.otf2 | grep -q 'Parameter: "samples lost" <0>, Value: 123$'
	otf2-print -G tree.otf2/traces.otf2 >definitions
	[ "$(grep '^LOCATION_GROUP' definitions | grep -vc '"processors"')" = "$("$KRON" info --json tree | json 'd["processes"]')" ]
	run ! grep -q "[[:cntrl:]]" <(otf2-print -G small.otf2/traces.otf2)
}

@test "OTF2 is built in, or its package is named" {
	! grep -q '^#define HAVE_OTF2 ' "$KRON_TOP_BUILD/config.h" || skip "built with OTF2"
	run "$KRON" export -f otf2 -o out small
	[ "$status" = 1 ]
	[[ $output == *libopen-trace-format2-dev* ]]
}

@test "Perfetto and pprof: protoc finds calls and times of kron report" {
	need protoc
	agree perfetto
	agree pprof
}

@test "Chrome, folded stacks, speedscope: calls and times of kron report" {
	agree chrome
	agree folded
	traces='real tree' agree speedscope # small has calls that only splitting makes nest
}

@test "callgrind_annotate: self and inclusive time of each function of kron report" {
	need callgrind_annotate
	agree callgrind
}

@test "callgrind_annotate: functions of one name in a program and its library are apart" {
	need callgrind_annotate
	cat >plug.c <<-'EOF'
		static __attribute__((noinline)) int twin(int n) { for (volatile int i = 0; i < 9; i++) n++; return n; }
		int plug(int n) { return twin(n) + twin(n); }
	EOF
	cat >twins.c <<-'EOF'
		int plug(int);
		static __attribute__((noinline)) int twin(int n) { for (volatile int i = 0; i < 99999; i++) n++; return n; }
		int main(void) { return !(twin(1) + plug(2)); }
	EOF
	"${CC:-cc}" -O1 -shared -fPIC -o libplug.so plug.c
	"${CC:-cc}" -O1 -o twins twins.c -L. -lplug -Wl,-rpath,"$PWD"
	"$KRON" record -q -o twins.t -L 'libplug*' -- ./twins
	traces=twins.t agree callgrind
	callgrind_annotate --threshold=100 twins.t.callgrind >text
	[ "$(grep -c ':twin \[' text)" -eq 2 ]
	grep -q '???:main \[' text
}

@test "Chrome: a warning when the file is too much for viewers" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" walk walk 2600000 3
	"$KRON" export -f chrome -o out walk 2>err
	[ "$(stat -c %s out)" -gt $((100 << 20)) ]
	grep -q 'out has 1[0-9][0-9] MB; viewers of this format choke' err
	"$KRON" export -f chrome -o out small 2>err
	run ! grep -q choke err
}

@test "a file: half of one goes" {
	for format in chrome pprof parquet; do
		run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' - \
			"$KRON" export -f $format -o out tree
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *"cannot write out: File too large"* ]]
		[ ! -e out ]
	done
	need script
	run script -qec "'$KRON' export -f pprof small" /dev/null
	[ "$status" = 2 ]
}

@test "uftrace: modules of hostile names stay inside the directory" {
	mkdir -p in/evil
	cp -r small evil
	# "/evil/.sym" would be a file beside the directory
	sed -i 's|/opt/app/bin/app|../evil/|; s|/opt/app/lib/libevil.so.1|a b/.. /x"y[|' evil/modules
	"$KRON" export -f uftrace -o in/out evil
	[ -z "$(ls -A in/evil)" ]
	[ "$(ls -A in)" = "evil"$'\n'"out" ]
	if command -v uftrace >/dev/null; then
		uftrace report --no-pager -d in/out | grep -q push_back
	fi
}

@test "directories: never half of one, never over another" {
	local format
	for format in uftrace ctf otf2; do
		[ $format != otf2 ] || grep -q "^#define HAVE_OTF2 " "$KRON_TOP_BUILD/config.h" || continue
		mkdir full
		echo mine >full/file
		run --separate-stderr "$KRON" export -f $format -o full small
		[ "$status" = 1 ]
		[[ $stderr == *"full is there already and not empty"* ]]
		[ "$(ls full)" = file ]
		rm -r full
		# a name in a directory that is not there
		run --separate-stderr "$KRON" export -f $format -o none/x small
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
		# files may not grow beyond some blocks: nothing is left, under no name
		mkdir room
		run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' - \
			"$KRON" export -f $format -o room/x tree
		[ "$status" = 1 ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *"room/x"* ]]
		[ -z "$(ls -A room)" ]
		# an empty one may be there, and a slash after the name
		mkdir room/x
		"$KRON" export -f $format -o room/x/ small
		[ "$(ls -A room)" = x ]
		rm -r room
		run "$KRON" export -f $format small
		[ "$status" = 2 ]
	done
}
