#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron view: options, errors, and what must be true of the bytes of every page.  What the pages
# show is tested in view_pages.py.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

make_trace() { "$KRON_TOP_BUILD/tests/unit/trace/make_trace" "$@"; }

@test "the page is one file that loads and sends nothing" {
	make_trace small kron.data
	run "$KRON" view
	[ "$status" = 0 ]
	[ "$output" = "kron view: kron.html" ]
	# no address of anything, but the name of a namespace
	run ! grep -nE "https?:|['\"(\`]//[a-z]" <(sed 's|http://www.w3.org/2000/svg||g; s|[[:space:]]*// .*||' kron.html)
	run ! grep -nE "<(img|link|iframe|object|embed|base)|@import|url\(|fetch\(|XMLHttp|WebSocket|innerHTML|outerHTML|document\.write|eval\(" \
		<(sed 's|url(#[a-z-]*)||g; s|^[[:space:]]*// .*||' kron.html)
	grep -q "default-src 'none'" kron.html
	run ! grep -n '@[A-Z_]*@' kron.html
}

@test "the policy names the very script and style of the page" {
	make_trace small kron.data
	"$KRON" view -o x.html
	"$PYTHON" - <<-'EOF2'
		import base64, hashlib, re
		page = open("x.html", "rb").read()
		policy = re.search(rb'Content-Security-Policy" content="([^"]*)"', page).group(1).decode()
		for tag in (b"style", b"script"):
		    body = re.search(b"<" + tag + b">(.*?)</" + tag + b">", page, re.S).group(1)
		    want = "'sha256-" + base64.b64encode(hashlib.sha256(body).digest()).decode() + "'"
		    assert want in policy, (tag, want, policy)
		assert "unsafe" not in policy
	EOF2
}

@test "the same trace gives the same page" {
	make_trace walk t 30000 3
	"$KRON" view -o a.html t
	"$KRON" view -o - t >b.html
	cmp a.html b.html
}

@test "its script is what JavaScript allows" {
	need node
	make_trace small kron.data
	"$KRON" view
	"$PYTHON" - <<-'EOF2' >x.js
		import re
		print(re.search(r"<script>(.*?)</script>", open("kron.html").read(), re.S).group(1))
	EOF2
	node --check x.js
}

@test "times: units, and what is not a time" {
	make_trace walk t 30000 3
	"$KRON" view --from 100us --to 0.2ms -o a.html t
	"$KRON" view --from 0.0001 --to 200000ns -o b.html t
	cmp a.html b.html
	run -0 "$KRON" view -o a.html t
	[ "$output" = "kron view: a.html" ]
	run -0 "$KRON" view -q -o a.html t
	[ -z "$output" ]
	for bad in x 1w -1s 1..2s 1e99s ''; do
		run -2 "$KRON" view --from "$bad" t
		[[ $output == *time* ]]
	done
	run -2 "$KRON" view --from 2s --to 1s t
	[[ $output == *"later than"* ]]
	run -1 "$KRON" view --from 100s t
	[[ $output == *"nothing was recorded then"* ]]
	[ ! -e kron.html ]
}

@test "errors: no trace, no such file of intervals, a full disk, a terminal" {
	run -1 "$KRON" view
	[[ $output == *"kron record"* ]]
	make_trace small kron.data
	run -1 "$KRON" view --intervals nowhere
	[[ $output == *nowhere* ]]
	echo '7 1 2 "x"' >bad.info
	run -1 "$KRON" view --intervals bad.info
	[[ $output == *bad.info:1* ]]
	[ ! -e kron.html ]
	run -1 "$KRON" view -o no/such/folder.html
	[[ $output == *"No such file"* ]]
	run -1 "$KRON" view -o /dev/full
	[[ $output == *"No space"* ]]
	run -1 bash -c '"$KRON" view -o - >/dev/full'
	run -2 "$KRON" view --size 1000
	need script
	run script -qec "$KRON view -o -" /dev/null
	[[ $output == *terminal* ]]
}

@test "a damaged trace gives a page or a sentence" {
	make_trace small good
	for i in 1 2 3 4 5 6 7 8; do
		rm -rf t
		cp -r good t
		"$PYTHON" - $i <<-'EOF2'
			import random, sys
			random.seed(int(sys.argv[1]))
			for name in ("samples", "functions", "session", "tasks", "modules"):
			    data = bytearray(open("t/" + name, "rb").read())
			    for _ in range(6):
			        data[random.randrange(len(data))] = random.randrange(256)
			    open("t/" + name, "wb").write(data)
		EOF2
		run "$KRON" view -o x.html t
		[ "$status" -le 1 ]
		[ "$status" = 1 ] || "$PYTHON" - <<-'EOF2'
			import json
			page = open("x.html", "rb").read()
			json.loads(page.split(b'id="kron-data">')[1].split(b"</script>")[0].decode("utf-8"))
		EOF2
	done
}
