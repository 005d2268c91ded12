#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Names in a trace may hold anything: what a symbol, a thread, a command line or a path says must
# not become markup, SQL, JSON or a terminal's command in any output.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup() {
	test_setup
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small kron.data
	"$PYTHON" - <<-'EOF'
		evil = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "x'); DROP TABLE sample;--",
		        '","ph":"X","name":"forged', "\x1b]0;owned\x07\x1b[2J", "\u202egnp.exe", "\ud834", "%s%n%999999d",
		        "a\x00b", "</text></svg><svg onload=alert(1)>", "${jndi:x}`id`$(id)", "\\", '"', "&lt;&amp;", "] } ; main"]
		enc = lambda s: s.encode("utf-8", "surrogatepass").replace(b"\0", b"").replace(b"\\", b"\\\\")
		lines = open("kron.data/functions", "rb").read().split(b"\n")
		for i, line in enumerate(lines):
		    f = line.split(b"\t")
		    if len(f) >= 5:
		        f[4] = enc(evil[i % len(evil)])
		        lines[i] = b"\t".join(f)
		# functions that were called and had no name before
		open("kron.data/functions", "wb").write(b"\n".join(lines))
		for name, key in (("session", b"command="), ("session", b"hostname=")):
		    with open("kron.data/" + name, "ab") as out:
		        out.write(key + enc("".join(evil)) + b"\n")
		tasks = open("kron.data/tasks", "rb").read()
		tasks = tasks.replace(b"/opt/app/bin/app", b"/opt/" + enc(evil[0] + evil[2] + evil[4]))
		open("kron.data/tasks", "wb").write(tasks)
	EOF
}

# plain FILE: nothing that a terminal obeys or that turns text round
plain() {
	"$PYTHON" - "$1" <<-'EOF'
		import sys
		text = open(sys.argv[1], encoding="utf-8").read()
		bad = {c for c in text if c not in "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u2028\u2066")}
		sys.exit("in the output: %r" % bad if bad else 0)
	EOF
}

@test "reports and text formats: nothing that a terminal obeys" {
	for cmd in report 'report --by-thread --virtual --percentiles' 'report --histogram' 'report --by-cpu' \
		'report --call-graph' "report --callers *" "report --callees *" replay dump info 'export -f folded' \
		'export -f callgrind' 'diff kron.data'; do
		set -f
		# shellcheck disable=SC2086
		"$KRON" $cmd kron.data >out
		set +f
		[ -s out ]
		plain out
	done
	# one stack a line, one number at its end
	"$KRON" export -f folded kron.data >folded
	run ! grep -vE '^[^ ]+ [0-9]+$' folded
}

@test "JSON stays JSON, with the names as they are" {
	for cmd in 'report --json' 'report --json --call-graph' 'dump --json' 'info --json' 'export -f chrome' 'export -f speedscope'; do
		# shellcheck disable=SC2086
		"$KRON" $cmd kron.data >out
		plain out
		"$PYTHON" - "$cmd" <<-'EOF'
			import json, sys
			lines = open("out").read()
			docs = [json.loads(l) for l in lines.splitlines()] if "dump" in sys.argv[1] else [json.loads(lines)]
			def walk(d):
			    if isinstance(d, dict):
			        assert "forged" not in d.values(), d
			        for v in d.values(): walk(v)
			    elif isinstance(d, list):
			        for v in d: walk(v)
			walk(docs)
			if sys.argv[1] == "export -f chrome":
			    calls = [e for e in docs[0]["traceEvents"] if e["ph"] == "X"]
			    assert any(e["name"].startswith("</script>") for e in calls)
		EOF
	done
}

@test "SQL: names are data, in the database and in what shells print of it" {
	need sqlite3
	"$KRON" export -f sqlite -o db kron.data
	[ "$(sqlite3 db 'SELECT count(*) FROM sample')" -gt 20 ]
	sqlite3 db "SELECT name FROM function" >names
	grep -qF "x'); DROP TABLE sample;--" names
	plain names
	sqlite3 db "SELECT * FROM session; SELECT exe, cmdline FROM process" >words
	plain words
}

@test "babeltrace2, otf2-print, uftrace and protoc read what is left" {
	if command -v babeltrace2 >/dev/null; then
		"$KRON" export -f ctf -o out.ctf kron.data
		babeltrace2 out.ctf >out 2>/dev/null
		plain out
	fi
	if command -v otf2-print >/dev/null && grep -q '^#define HAVE_OTF2 ' "$KRON_TOP_BUILD/config.h"; then
		"$KRON" export -f otf2 -o out.otf2 kron.data
		otf2-print -G out.otf2/traces.otf2 >out
		plain out
	fi
	if command -v uftrace >/dev/null; then
		"$KRON" export -f uftrace -o out.uftrace kron.data
		uftrace report --no-pager -d out.uftrace >out
		grep -q 'DROP TABLE' out
	fi
	if command -v protoc >/dev/null; then
		for format in perfetto pprof; do
			"$KRON" export -f $format -o out.$format kron.data
			protoc --decode_raw <out.$format >out
		done
	fi
}

@test "HTML: names are text" {
	"$KRON" --help-words | cut -f1 | grep -qx view || skip "this kron has no view"
	"$KRON" view -o out.html kron.data
	"$PYTHON" - <<-'EOF'
		import html.parser
		class P(html.parser.HTMLParser):
		    def handle_starttag(self, tag, attrs):
		        names = [k for k, v in attrs]
		        assert not any(n.startswith("on") and "alert" in (dict(attrs)[n] or "") for n in names), (tag, attrs)
		        assert not (tag == "img" and "x" in dict(attrs).get("src", "")), (tag, attrs)
		    def handle_endtag(self, tag):
		        pass
		text = open("out.html", encoding="utf-8").read()
		P().feed(text)
		assert "<script>alert(1)" not in text
	EOF
}
