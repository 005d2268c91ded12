# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Help for end-to-end tests, both bats files and plain shell.  At the top of the file:
#
#     source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../..}/tests/lib.sh"
#
# In a bats file that also makes every test start in an empty folder $T of its own, which goes
# when the test passes and stays, named in the output, when it fails.

: "${KRON_TOP_SRC:=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"
: "${KRON_TOP_BUILD:=$KRON_TOP_SRC}"
: "${KRON:=$KRON_TOP_BUILD/kron}"
export KRON_TOP_SRC KRON_TOP_BUILD KRON

# Debian's interpreters, not those of somebody's home.
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
PYTHON=/usr/bin/python3
export PATH PYTHON LC_ALL=C.UTF-8

# ---- a folder for each test ----

test_setup() {
	T=$(mktemp -d "${TMPDIR:-/tmp}/kron-test.XXXXXX")
	export T XDG_CACHE_HOME=$T/.cache HOME=$T
	mkdir "$XDG_CACHE_HOME"
	cd "$T" || exit 99
}

test_teardown() {
	cd / || exit 99
	if [ -n "${BATS_TEST_COMPLETED-}" ] || [ -n "${TEST_PASSED-}" ] ||
		[ -n "${BATS_TEST_SKIPPED-}" ]; then
		rm -rf "$T"
	else
		echo "# the folder of this test: $T"
	fi
}

# bats calls these; a file that needs more defines its own and calls the two above.
setup() { test_setup; }
teardown() { test_teardown; }

# ---- questions and helpers ----

# need PROGRAM...: skip the test when one is not installed (bats)
need() {
	local p
	for p; do
		command -v "$p" >/dev/null || skip "$p is not installed"
	done
}

# need_hardware_breakpoints PROGRAM: some virtual machines take them and never stop there
need_hardware_breakpoints() {
	need gdb
	gdb -batch -ex starti -ex 'hbreak *main' -ex continue "$1" 2>&1 | grep -q '^Breakpoint 1, ' ||
		skip "no hardware breakpoints here"
}

# compile OUT SRC [FLAG]...: a test program, by the compiler that built kron, without its flags.
# SRC is looked for below tests/ too; .cc goes to the C++ compiler.
compile() {
	local out=$1 src=$2 cc=${CC:-gcc}
	shift 2
	[ -e "$src" ] || src=$KRON_TOP_SRC/tests/$src
	case $src in
	*.cc) cc=${CXX:-g++} ;;
	esac
	$cc -g -O2 -o "$out" "$src" -I"$KRON_TOP_SRC/tests/torture" -pthread "$@"
}

# same_behaviour CMD...: output, errors and exit status equal those of the untraced run; the
# trace is left in ./kron.data
same_behaviour() {
	local want=0 got=0
	"$@" >want.out 2>want.err </dev/null || want=$?
	"$KRON" record -q -- "$@" >got.out 2>got.err </dev/null || got=$?
	[ "$want" = "$got" ] || { echo "# exit status $got instead of $want"; return 1; }
	cmp want.out got.out || return 1
	diff want.err got.err
}

# wait_until CMD...: until it succeeds; two minutes, for a machine that has no time
wait_until() {
	local end=$((SECONDS + 120))
	until "$@"; do
		[ $SECONDS -lt $end ] || { echo "# in vain: $*"; return 1; }
		sleep 0.02
	done
}

# json EXPRESSION: python over the JSON document `d` on stdin: kron info --json | json 'd["lost"]'
json() {
	"$PYTHON" -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

# ---- TAP for plain shell scripts ----

tap_count=0
tap_failed=0

# tap NAME CMD...: run CMD; its output becomes comments when it fails
tap() {
	local name=$1 out
	shift
	tap_count=$((tap_count + 1))
	if out=$("$@" 2>&1); then
		echo "ok $tap_count - $name"
	else
		echo "not ok $tap_count - $name"
		printf '%s\n' "$out" | sed 's/^/# /'
		tap_failed=1
	fi
}

tap_skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# the plan and the exit status; the last line of the script
tap_done() {
	echo "1..$tap_count"
	exit $tap_failed
}

# ---- an empty /dev/shm of one's own, which needs root ----

in_own_shm() { # in_own_shm SIZE COMMAND
	unshare -m sh -c "mount -t tmpfs -o size=$1 none /dev/shm && $2"
}

need_own_shm() {
	unshare -m mount -t tmpfs none /dev/shm 2>/dev/null || skip "no mount namespaces here"
}
