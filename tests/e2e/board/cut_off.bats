#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A trace whose recorder was killed: no reader shows a part of it as if it were all.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/e2e/board/board.bash"
bats_require_minimum_version 1.5.0

readers=(report "report --json" "report --call-graph" replay dump "dump --json" info "info --json" "diff t"
	"export -f folded" "export -f sqlite -o x.db" "export -f ctf -o x.ctf" "view -o x.html" "read -o x.dat")

# each_reader CHECK...: of each of them on t, with its name in $reader, its stderr in $stderr
each_reader() {
	local reader
	for reader in "${readers[@]}"; do
		rm -rf x.*
		# shellcheck disable=SC2086
		run -0 --separate-stderr "$KRON" $reader t
		"$@" || { echo "# $reader: $stderr"; return 1; }
	done
}

says_nothing() { [ -z "$(grep -v '^kron view: x.html$' <<<"$stderr")" ]; }

notes() { grep -v '^kron view: x.html$' <<<"$stderr"; }

# one line, or one a trace
names_recover() {
	local n=1
	[ "$reader" != "diff t" ] || n=2
	[ "$(notes | wc -l)" = $n ]
	[ "$(notes | grep -c "not complete.*recorder was killed.*\`kron recover t\`")" = $n ]
}

says_lost() {
	local n=1
	[ "$reader" != "diff t" ] || n=2
	[ "$(notes | wc -l)" = $n ]
	[ "$(notes | grep -c "not complete.*recorder was killed.*lost")" = $n ]
	[ "$(notes | grep -c "kron recover")" = 0 ]
}

state() { "$KRON" info --json t 2>/dev/null | json 'd["state"], d["complete"]'; }

@test "a trace that is whole: no word" {
	steps_start 1
	steps 100
	steps_end
	each_reader says_nothing
	[ "$(state)" = "('complete', True)" ]
	run ! grep '^state:' <("$KRON" info t)
}

@test "a recording that goes on is said to" {
	steps_start 1 --board "$B"
	steps 200000
	run -0 --separate-stderr "$KRON" report t
	echo "$stderr"
	[ "$(wc -l <<<"$stderr")" = 1 ]
	[[ $stderr == *"t was still being recorded"* ]]
	[ "$(state)" = "('recording', False)" ]
	"$KRON" info t 2>/dev/null | grep -q '^state: .*recorded'
	# the recorder ends while somebody reads: nothing is lost, and nothing is said to be
	mkfifo slow
	"$KRON" dump t 2>err >slow 3>&- 7>&- 8<&- &
	exec 9<slow
	read -r line <&9
	steps_end
	cat <&9 >rest
	exec 9<&-
	wait $!
	[ "$(wc -l <err)" = 1 ]
	grep -q 'was still being recorded' err
	run -0 --separate-stderr "$KRON" report t
	[ -z "$stderr" ]
}

@test "the recorder was killed: what there is, and how to get the rest" {
	steps_start 1 --board "$B"
	steps 100
	kill_recorder
	each_reader names_recover
	[ "$(state)" = "('recoverable', False)" ]
	"$KRON" info t 2>/dev/null | grep -q '^state: .*`kron recover t`'
	"$KRON" report --json t 2>/dev/null | json 'len(d)' # nothing of it on stdout
	"$KRON" recover t
	each_reader says_nothing
	[ "$(calls_of_step t)" = 100 ]
	[ "$(state)" = "('complete', True)" ]
}

@test "... from a folder that has to be quoted" {
	steps_start 1 --board "$B"
	steps 10
	kill_recorder
	mkdir "a b"
	mv t "a b/t"
	ln -s "a b/t" t
	run -0 --separate-stderr "$KRON" report "a b/t"
	[[ $stderr == *"\`kron recover 'a b/t'\`"* ]]
	rm t
	mv "a b/t" t
	"$KRON" recover t
}

@test "the recorder was killed, and its shared memory is gone" {
	steps_start 1 --board "$B"
	steps 100
	kill_recorder
	"$KRON" board rm "$B"
	each_reader says_lost
	[ "$(state)" = "('cut off', False)" ]
	"$KRON" info t 2>/dev/null | grep -q '^state: .*lost'
	# another recording on a board of the same name has nothing of it
	cp -r t first
	RECORDER=
	exec 7>&- 8<&-
	steps_start 1 --board "$B"
	steps 100
	run -0 --separate-stderr "$KRON" report first
	[[ $stderr == *lost* ]]
	kill_recorder
	run -0 --separate-stderr "$KRON" report first
	[[ $stderr == *lost* ]]
	"$KRON" recover t
}

@test "a board of the recording's own: never a part without a word" {
	steps_start 1
	steps 100
	kill_recorder
	run -0 --separate-stderr "$KRON" report t
	[[ $stderr == *"kron recover t"* ]] || [ "$(calls_of_step t)" = 100 ]
	"$KRON" recover t
	[ "$(calls_of_step t)" = 100 ]
	each_reader says_nothing
}

@test "what was lost before the kill is counted once" {
	steps_start 1 -b 1M
	steps 1 # it runs
	kill -STOP "$RECORDER"
	steps 200000
	kill -CONT "$RECORDER"
	# a chunk that begins with how many were lost has to be in the file
	made=200001
	until [ "$("$KRON" info --json t 2>/dev/null | json 'd["lost"] > 0')" = True ]; do
		steps 10000
		made=$((made + 10000))
	done
	kill_recorder
	steps 1000
	"$KRON" recover t
	[ "$("$KRON" info --json t | json 'd["samples"] + d["lost"]')" = $((2 * (made + 1000))) ]
}

@test "a full disk: the reason stands there, and how to get the rest" {
	[ "$(id -u)" = 0 ] || skip "needs the right to mount"
	mkdir small
	mount -t tmpfs -o size=1m tmpfs small || skip "cannot mount"
	compile triggers bins/triggers.c
	run "$KRON" record -q --board "$B" -o small/t -- ./triggers 2 300000
	run --separate-stderr "$KRON" report small/t
	note=$stderr
	mount -o remount,size=200m small
	"$KRON" recover small/t || true
	run --separate-stderr "$KRON" report small/t
	umount -l small
	[[ $note == *"not complete"*"No space"*"\`kron recover small/t\`"* ]]
	[ -z "$stderr" ]
}
