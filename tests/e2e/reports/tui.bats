#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron tui in a terminal of tmux: what stands on the screen against what kron report says.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

setup() {
	need tmux
	test_setup
	"$KRON" tui --help >/dev/null
}

teardown() {
	[ -z "${screen-}" ] || tmux -L "$screen" kill-server 2>/dev/null || true
	test_teardown
}

# tui ARG...: on a screen of 120 by 30
tui() {
	screen=kron-$$-$BATS_TEST_NUMBER
	tmux -L "$screen" -f /dev/null new-session -d -x 120 -y 30 "'$KRON' tui $* 2>err; echo \$? >status"
}

keys() { tmux -L "$screen" send-keys "$@"; }

is_shown() {
	tmux -L "$screen" capture-pane -p >shot 2>/dev/null || true
	grep -qF -- "$1" shot
}

# shows TEXT: before long
shows() { wait_until is_shown "$1" || { cat shot err; return 1; }; }

# row N: its function, as on the screen
row() { sed -n "$(($1 + 2))p" shot | sed 's/.* \([^ ]* \[[^]]*\]\).*/\1/'; }

expected() { # SORT N
	"$KRON" report --json -s "$1" t | json "d[$2 - 1]['function'] + ' [' + d[$2 - 1]['module'].split('/')[-1] + ']'"
}

ended() {
	wait_until [ -s status ]
	[ "$(cat status)" = "$1" ]
}

@test "functions, sorted by any column, callers and callees, and out" {
	"$KRON" record -q -o t -- git --version
	tui t
	shows "git --version"
	[ "$(row 1)" = "$(expected total 1)" ]
	keys s
	shows "sorted by self"
	[ "$(row 1)" = "$(expected self 1)" ]
	[ "$(row 3)" = "$(expected self 3)" ]
	keys s
	shows "sorted by calls"
	[ "$(row 1)" = "$(expected calls 1)" ]
	keys Enter
	shows "callers of $(expected calls 1)"
	"$KRON" report --callers "$(expected calls 1 | sed 's/ .*//')" t | sed -n 3p >caller
	shows "$(sed 's/  *$//' caller)"
	keys q
	shows "Function [Module]"
	keys g
	shows "call graph"
	shows "Of all"
	keys BSpace i
	shows "recorded by"
	keys q '?'
	shows "callers and callees of the function"
	keys q q
	ended 0
	[ ! -s err ]
}

@test "search, and names that would write to the terminal" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small t
	tui t
	shows "Function [Module]"
	keys / l e a f Enter
	keys Enter
	shows "callers and callees of leaf"
	keys q / x y z z y Enter
	shows 'nothing has "xyzzy" in it'
	tmux -L "$screen" capture-pane -p -e >raw
	! grep -qP '\x07|\x1b\]' raw
	keys q
	ended 0
}

@test "a recording is watched, then its trace" {
	cat >work.pl <<-'P'
		sub f { $_[0] + 1 } until (-e "stop") { f($_) for 1 .. 1000; select undef, undef, undef, 0.01 }
	P
	"$KRON" record -q -o t -- perl work.pl 3>&- &
	wait_until [ -s t/functions ]
	tui -d 200 t
	shows "recording: about"
	shows "Perl_pp_entersub [perl]"
	shows "Samples/s"
	touch stop
	wait $!
	shows "perl work.pl"
	shows "Maximum"
	keys q
	ended 0
}

@test "without a terminal, and without a trace" {
	"$KRON_TOP_BUILD/tests/unit/trace/make_trace" small t
	run "$KRON" tui t </dev/null
	[ "$status" = 1 ]
	[[ $output == *"needs a terminal"* ]]
	run "$KRON" tui nothing
	[ "$status" = 1 ]
	[[ $output == *"no trace directory nothing"* ]]
}
