#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command line: names, help, versions, mistakes.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

bats_require_minimum_version 1.5.0

@test "kron is an ELF executable" {
	[ "$(head -c 4 "$KRON" | od -An -tx1 | tr -d ' ')" = 7f454c46 ]
}

@test "--version and --help succeed and write to stdout only" {
	run --separate-stderr "$KRON" --version
	[ "$status" = 0 ]
	[[ $output =~ ^kron\ [0-9]+\.[0-9]+ ]]
	[ -z "$stderr" ]
	run --separate-stderr "$KRON" --help
	[ "$status" = 0 ]
	[[ $output == *Usage* ]]
	[ -z "$stderr" ]
}

@test "no command, or one that is none: one sentence, exit 2" {
	run --separate-stderr "$KRON"
	[ "$status" = 2 ]
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" = 1 ]
	run --separate-stderr "$KRON" frobnicate
	[ "$status" = 2 ]
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *frobnicate* ]]
}

@test "help COMMAND is COMMAND --help" {
	"$KRON" --help >want
	"$KRON" help >got
	diff want got
	for c in $("$KRON" --help-words | cut -f1); do
		"$KRON" "$c" --help >want
		"$KRON" help "$c" >got
		diff want got
	done
	run --separate-stderr "$KRON" help frobnicate
	[ "$status" = 2 ]
	[ "${#stderr_lines[@]}" = 1 ]
}

@test "a command or an option that is mistyped: what was meant" {
	run --separate-stderr "$KRON" recrod true
	[ "$status" = 2 ]
	[[ $stderr == *"did you mean record?" ]]
	run --separate-stderr "$KRON" record --outptu x true
	[ "$status" = 125 ]
	[[ $stderr == *"unknown option '--outptu'; did you mean --output?"* ]]
	run --separate-stderr "$KRON" export --formt=ctf
	[[ $stderr == *"'--formt=ctf'; did you mean --format?"* ]]
	# near nothing, and near two
	run --separate-stderr "$KRON" report --zzzzzzzz
	[[ $stderr == *"unknown option '--zzzzzzzz' ("* ]]
	run --separate-stderr "$KRON" report --by=x
	[[ $stderr == *"ambiguous option '--by=x'"* ]]
	run --separate-stderr "$KRON"
	[[ $stderr == "kron: no command given"* ]]
}

@test "every command has --help, and --help has an unknown option's name in its mistake" {
	for c in $("$KRON" --help-words | cut -f1); do
		run --separate-stderr "$KRON" "$c" --help
		[ "$status" = 0 ]
		[[ $output == "Usage: kron $c "* ]]
		[ -z "$stderr" ]
		run --separate-stderr "$KRON" "$c" --no-such-option
		want=2
		case $c in record | stat | monitor | pages) want=125 ;; esac
		[ "$status" = $want ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *--no-such-option* ]]
	done
}

@test "--help fits 80 columns" {
	for c in "" $("$KRON" --help-words | cut -f1); do
		run "$KRON" $c --help
		for line in "${lines[@]}"; do
			[ "${#line}" -le 80 ] || { echo "kron $c: $line"; false; }
		done
	done
}

@test "help that cannot be written is an error" {
	[ -c /dev/full ] || skip "no /dev/full"
	run sh -c '"$KRON" --help >/dev/full'
	[ "$status" = 1 ]
}

@test "a program inherits which signals are ignored, glibc's own one too" {
	cat >ignore.py <<-'PY'
	import ctypes, os, struct, sys
	ignore = struct.pack("QQQQ", 1, 0, 0, 0)  # the kernel's struct sigaction
	for sig in (15, 33, 40):
	    assert ctypes.CDLL(None).syscall(13, sig, ignore, None, 8) == 0
	os.execvp(sys.argv[1], sys.argv[1:])
	PY
	"$PYTHON" ignore.py grep SigIgn /proc/self/status >want
	"$PYTHON" ignore.py "$KRON" record -q -- grep SigIgn /proc/self/status >got
	grep -q '1........$' want # 33 is among them
	diff want got
}
