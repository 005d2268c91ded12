#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What -F, -N, -L and -p mean, and what is said of those that mean nothing.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

bats_require_minimum_version 1.5.0

setup() {
	test_setup
	cat >heap.c <<-'EOF'
	#include <stdio.h>
	#include <stdlib.h>
	__attribute__((noinline)) void drop(void *p) { free(p); __asm__(""); }
	int main(void)
	{
		for (int i = 0; i < 100; i++)
			drop(malloc(10));
		return puts("done") < 0;
	}
	EOF
	compile heap heap.c -O1
}

# called FUNCTION TRACE: how often, 0 if no row has this name
called() {
	"$KRON" report --json "$2" | json "sum(r['calls'] for r in d if r['function'] == '$1')"
}

@test "a function's aliases: the name that the user gave is shown, all of them match" {
	# what glibc calls by several names
	readelf -sW --dyn-syms /lib/x86_64-linux-gnu/libc.so.6 >symbols
	at=$(awk '$8 ~ /^free@/ { print $2 }' symbols)
	[ "$(awk -v at="$at" '$2 == at' symbols | grep -cwE 'free|cfree|__libc_free')" -ge 2 ]
	for name in free __libc_free; do
		"$KRON" record -q -o "$name" -L 'libc.so*' -F "$name" -F drop -- ./heap >/dev/null
		[ "$(called "$name" "$name")" -ge 100 ]
		for alias in free __libc_free; do
			echo "1 $alias $alias%return \"in it\"" >info
			"$KRON" report --json -i info "$name" | json 'd[0]["count"] >= 100' | grep -q True
		done
		for alias in free __libc_free '*libc_fr*'; do
			"$KRON" report --callers "$alias" "$name" | grep -E "^ .* 100 .* drop "
			"$KRON" replay -F "$alias" "$name" >out
			[ "$(grep -cwE "$name\(\)" out)" -ge 100 ]
			"$KRON" dump --where "entry=$alias" "$name" >out
			[ "$(grep -cw "$name" out)" -ge 100 ]
		done
	done
	# not named: the name that programs are linked with, and not one for old programs
	"$KRON" record -q -o all -L 'libc.so*' -- ./heap >/dev/null
	[ "$(called free all)" -ge 100 ]
	[ "$(called cfree all)" = 0 ]
	# who leaves __* out does not mean free; who leaves __libc_free out does
	"$KRON" record -q -o most -L 'libc.so*' -N '__*' -- ./heap >/dev/null
	[ "$(called free most)" -ge 100 ]
	"$KRON" record -q -o most -L 'libc.so*' -N __libc_free -- ./heap >/dev/null
	[ "$(called free most)" = 0 ]
	[ "$(called malloc most)" -ge 100 ]
}

@test "what matches nothing and never will ends the command before the program runs" {
	for o in '-F nosuch*' '-F nosuch -F nosuch2' '-p nothere' '-p nothere -p nothere2' '-p nothere -F nosuch' '-p n=nothere'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$KRON" record -o t $o -- ./heap
		[ "$status" = 125 ]
		[ -z "$output" ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == "kron record: "*nothere*": the program was not run" ||
			$stderr == "kron record: no function of "*/heap" matches -F 'nosuch"*"': the program was not run" ]]
	done
	# if something is left to record, it is said, and no more
	for o in '-F drop -F nosuch' '-p drop -p nosuch' '-p drop -p n=nosuch' '-p nosuch -F drop'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$KRON" record -o t $o -- ./heap
		[ "$status" = 0 ]
		[ "$output" = "done" ]
		[[ ${stderr_lines[0]} == "kron: "*nosuch* ]]
		[[ ${stderr_lines[0]} != *later* ]]
		[ "$(grep -c . t/functions t/events | awk -F: '{ n += $2 } END { print n }')" -ge 1 ]
	done
	# what the user meant
	run --separate-stderr "$KRON" record -o t -p dorp -- ./heap
	[[ $stderr == *"no function of this name; is it drop: the program was not run" ]]
	# -q keeps nothing of that back
	run --separate-stderr "$KRON" record -q -o t -F nosuch -- ./heap
	[ "$status" = 125 ]
	[[ $stderr == *"the program was not run" ]]
	# a shell executes others; if they are not traced, it is alone
	run --separate-stderr "$KRON" record --no-children -o t -F nosuch -- sh -c 'echo ran'
	[ "$status" = 125 ]
	[ -z "$output" ]
}

@test "what matches nothing yet is said at the start, and not again when it came" {
	cat >say.c <<-'EOF'
	#include <stdio.h>
	#include <unistd.h>
	int main(void)
	{
		dprintf(2, "the program begins\n");
		return 0;
	}
	EOF
	compile say say.c -O1
	run --separate-stderr "$KRON" record -o t -L 'libnosuch*' -- ./say
	[ "$status" = 0 ]
	[[ ${stderr_lines[0]} == "kron: no library that "*"/say has loaded so far matches -L 'libnosuch*'"* ]]
	[ "${stderr_lines[1]}" = "the program begins" ]
	[[ ${stderr_lines[2]} == "kron: no library was loaded that -L 'libnosuch*' matches" ]]
	# libraries may have it
	run --separate-stderr "$KRON" record -o t -L 'libc.so*' -F 'nosuch*' -F main -- ./say
	[ "$status" = 0 ]
	[[ ${stderr_lines[0]} == "kron: no function of "*", or of the libraries"*"matches -F 'nosuch*'"* ]]
	[ "${stderr_lines[1]}" = "the program begins" ]
	# and programs that are executed
	run --separate-stderr "$KRON" record -o t -F drop -p main -- sh -c './heap; true'
	[ "$status" = 0 ]
	[ "$output" = "done" ]
	[[ $stderr == *"no function of "*" matches -F 'drop'; what comes later may"* ]]
	[ "$(called drop t)" = 100 ]
	# what matches is not spoken of
	run --separate-stderr "$KRON" record -o t -L 'libc.so*' -L '*' -F main -F 'd*' -- ./heap
	[ "$status" = 0 ]
	[[ $stderr != *match* ]]
	run --separate-stderr "$KRON" record -o t -N 'dr?p' -N main -g 1=drop -g '2=*' -g 3='*/heap' -F '*' -- ./heap
	[ "$status" = 0 ]
	[[ $stderr != *match* ]]
	# and what is left out or has a level of its own, too
	run --separate-stderr "$KRON" record -o t -F main -N drop -N nosuch -g 3=nosuch2 -g 1 -- ./heap
	[ "$status" = 0 ]
	[[ ${stderr_lines[0]} == "kron: no function of "*"/heap matches -N 'nosuch'" ]]
	[[ ${stderr_lines[1]} == "kron: nothing of "*"/heap matches -g '3=nosuch2'" ]]
	[[ $stderr != *drop* ]]
	"$KRON" record -q -o t -L 'libnosuch*' -- ./say 2>&1 | cmp - <(echo 'the program begins')
}
