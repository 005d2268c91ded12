#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Patched libraries that wake by KRON_BOARD, in programs that are patched and that are not.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	compile liba.so bins/board_lib.c -shared -fPIC -DNAME=a -DHIT=hit_a
	# no _init: the first function of DT_INIT_ARRAY
	compile libb.so bins/board_lib.c -shared -fPIC -nostartfiles -fcf-protection=full \
		-DNAME=b -DHIT=hit_b -DCONSTRUCTOR
	compile plug.so bins/board_lib.c -shared -fPIC -DNAME=p -DHIT=hit_p
	compile prog bins/board_main.c -L. -la -lb -Wl,-rpath,'$ORIGIN' -ldl
	./prog ./plug.so 3 >want
}

setup() {
	test_setup
	cp "$BATS_FILE_TMPDIR"/{liba.so,libb.so,plug.so,prog,want} .
	BOARD=patch-library-$$-$BATS_TEST_NUMBER
	"$KRON" board create "$BOARD" >no
	"$KRON" ctl --board "$BOARD" filter 0xffff
	"$KRON" ctl --board "$BOARD" wait
	"$KRON" ctl --board "$BOARD" sampling on
}

teardown() {
	"$KRON" board rm "$BOARD"
	test_teardown
}

# patched: the libraries become their patched copies, each with numbers of its own
patched() {
	local name first=100
	for name in liba libb plug; do
		cp $name.so $name.orig
		"$KRON" patch -q -F 'hit*' --first-number $first -o $name.so $name.so
		first=$((first + 100))
	done
}

# on_board: "EVENT COUNT" of what the board's memory holds
on_board() {
	"$KRON" read --board "$BOARD" -o mk.dat >no 2>&1
	"$PYTHON" -c '
import collections, struct
n = collections.Counter(s[4] for s in struct.iter_unpack("<5I", open("mk.dat", "rb").read()))
print("\n".join("%d %d" % i for i in sorted(n.items())))'
}

# truth [FIRST]: the same, by what the program says; its own events count if FIRST is 0
truth() {
	awk -v first="${1-1}" '
		$1 == "hit" && first == 0 { print 0, $2; print 1, $2 }
		$1 == "hit_a" { print 200, $2; print 201, $2 }
		$1 == "hit_b" { print 400, $2; print 401, $2 }
		$1 == "hit_p" { print 600, $2; print 601, $2 }' want | sort -n
}

@test "libraries, loaded at the start and later, in a program that knows nothing" {
	patched
	KRON_BOARD=$BOARD ./prog ./plug.so 3 >got
	cmp want got
	diff <(truth) <(on_board)
}

@test "with a patched program: one board for all" {
	patched
	"$KRON" patch -q -F hit -o prog prog
	KRON_BOARD=$BOARD ./prog ./plug.so 3 >got
	cmp want got
	diff <(truth 0) <(on_board)
}

@test "libc, in every process of a script" {
	mkdir lib
	"$KRON" patch -F 'gete*id' -F getpid -o lib/libc.so.6 /lib/x86_64-linux-gnu/libc.so.6 >no
	echo 'true; echo $(id -u); sh -c "exit 3" || echo $?; (true)' >script
	bash script >want
	LD_LIBRARY_PATH=$T/lib KRON_BOARD=$BOARD bash script >got
	cmp want got
	# bash's geteuid() alone is called more often than once
	[ "$(on_board | awk '$1 % 2 == 0 { n += $2 } END { print n + 0 }')" -gt 4 ]
	[ "$(on_board | awk '{ n += $1 % 2 ? -$2 : $2 } END { print n + 0 }')" = 0 ]
}

@test "nothing stays mapped of a library that comes and goes" {
	patched
	./prog ./plug.so 300 >want
	KRON_BOARD=$BOARD bash -c 'ulimit -v 2000000; ./prog ./plug.so 300' >got
	cmp want got
	[ "$("$KRON" status --json --board "$BOARD" | json 'len(d)')" -gt 0 ]
}

@test "without KRON_BOARD, and under kron record, it does not wake by itself" {
	patched
	./prog ./plug.so 3 >got
	cmp want got
	KRON_BOARD=no-such-board ./prog ./plug.so 3 >got
	cmp want got
	# the recorder's samples, and none on the board
	KRON_BOARD=$BOARD "$KRON" record -q -F 'hit*' -L '*' -o t -- ./prog ./plug.so 3 >got </dev/null
	cmp want got
	diff want <("$KRON" report --json t | json '"\n".join("%s %d" % (f["function"], f["calls"])
		for f in sorted(d, key=lambda f: f["function"]))')
	[ -z "$(on_board)" ]
}

@test "of the original one jump is changed; eu-elflint finds nothing new" {
	patched
	for name in liba libb plug; do
		"$PYTHON" - $name.orig $name.so <<-'END'
			import sys
			old, new = (open(p, "rb").read() for p in sys.argv[1:])
			diff = [i for i in range(64, len(old)) if old[i] != new[i]]
			assert diff and diff[-1] - diff[0] < 5, diff
			at = diff[0] - (new[diff[0]] != 0xe9)
			assert new[at] == 0xe9
			# an endbr64 stays where it is
			assert ("libb" in sys.argv[2]) == (old[at - 4:at] == b"\xf3\x0f\x1e\xfa")
		END
		! command -v eu-elflint >no || diff <(eu-elflint --gnu-ld $name.orig 2>&1) \
			<(eu-elflint --gnu-ld $name.so 2>&1)
	done
}

@test "--no-board: smaller, and asleep without a recorder" {
	"$KRON" patch -q -F hit_a --no-board -o liba.so liba.so
	"$KRON" patch -q -F hit --no-board -o prog prog
	! readelf -SW prog liba.so | grep -q kron.start
	KRON_BOARD=$BOARD ./prog ./plug.so 3 >got
	cmp want got
	[ -z "$(on_board)" ]
	"$KRON" record -q -L 'liba*' -o t -- ./prog ./plug.so 3 >got </dev/null
	cmp want got
	[ "$("$KRON" report --json t | json 'sorted(f["calls"] for f in d)')" = '[100, 100]' ]
}

@test "a library that nobody initialises: said" {
	compile libn.so bins/board_lib.c -shared -fPIC -nostartfiles -DNAME=n -DHIT=hit_n
	run -0 "$KRON" patch -o libn.kron libn.so
	[[ $output == *"not by KRON_BOARD"* ]]
	# its only such function has a probe in that place, or gives way
	run -0 "$KRON" patch -F '*' -o libb.kron libb.so
	[[ $output == *"not by KRON_BOARD"* ]]
	run -0 "$KRON" patch -o libb.kron libb.so
	[[ $output == *"set_up initialises it and has no probes"* ]]
	[ "$("$KRON" list --json libb.kron | json '[f["name"] for f in d["functions"]]')" = "['hit_b']" ]
	run -0 "$KRON" patch -N set_up -o libb.kron libb.so
	[[ $output != *"KRON_BOARD"* ]]
	run -0 "$KRON" patch --no-board -o libb.kron libb.so
	[[ $output == *"2 entries"* ]]
	[[ $output != *"KRON_BOARD"* ]]
}
