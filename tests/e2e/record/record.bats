#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron record and kron recover: statuses, signals, options, what is said and what is not.
# (Bad input is tests/faults/bad_input.py's, kills at random moments are kills.py's.)
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

# triggers THREADS CALLS: each call of tick is an entry and an exit
setup() {
	test_setup
	compile triggers bins/triggers.c
}

total() { # total DIR: samples + lost
	"$KRON" info --json "$1" | json 'd["samples"] + d["lost"]'
}

@test "the exit status is the program's" {
	for want in 0 1 7 77 125 126 127 255; do
		run "-$want" "$KRON" record -q -o t -- sh -c "exit $want"
		[ -z "$output" ]
	done
}

@test "death by a signal is death by that signal" {
	for sig in HUP INT QUIT ILL ABRT FPE KILL SEGV PIPE TERM USR1 BUS; do
		want=$(kill -l $sig)
		# python shows how a child died; a shell would show its own idea of it
		run "$PYTHON" -c 'import subprocess, sys
print(subprocess.run(sys.argv[1:]).returncode)' "$KRON" record -q -o t -- sh -c "kill -$sig \$\$"
		[ "$output" = "-$want" ]
		grep -qx "exit=signal $want" t/session
	done
	[ ! -e core ]
}

@test "a kill of kron is passed on, and the trace is whole" {
	for sig in INT TERM HUP; do
		rm -rf t # the last one would be taken for this one
		"$PYTHON" - "$KRON" $sig <<-'EOF'
			import signal, subprocess, sys, time, os
			sig = getattr(signal, "SIG" + sys.argv[2])
			p = subprocess.Popen([sys.argv[1], "record", "-q", "-o", "t", "--", "sleep", "1000"])
			while not os.path.exists("t/tasks") or not open("t/tasks").read():
			    time.sleep(0.01)
			p.send_signal(sig)
			assert p.wait(120) == -sig, p.returncode
		EOF
		grep -q '^end_tsc=' t/session
		run -0 "$KRON" info t
	done
}

@test "a program that does not heed the signal goes on, untraced" {
	cat >heedless.sh <<-'EOF'
		trap '' TERM
		echo started
		until [ -e go ]; do sleep 0.02; done
		echo ended
	EOF
	"$KRON" record -o t -- sh heedless.sh >out 2>err &
	kron=$!
	wait_until grep -q started out
	kill -TERM $kron
	status=0
	wait $kron || status=$?
	[ $status = 143 ]
	grep -q "still runs" err
	grep -q '^end_tsc=' t/session
	grep -qx 'exit=running' t/session
	touch go
	wait_until grep -q ended out
}

@test "what runs on after the program's end is named and not waited for" {
	mkfifo up
	# it has run, and so is known, before the program ends
	run "$KRON" record -o t -- sh -c \
		'(echo 1 >up; until [ -e go ]; do sleep 0.02; done; echo >over) >/dev/null 2>&1 & read x <up; echo main'
	[ "$status" = 0 ]
	[[ $output == *main* ]]
	echo "$output"
	# with the sleep of that moment, perhaps
	[[ $output =~ [12]\ traced\ process(es)?\ still\ runs? ]]
	touch go
	wait_until test -e over # or it would look for `go` for ever, in a folder that has gone
	grep -q '^end_tsc=' t/session
}

@test "the summary is one line on stderr; -q says nothing" {
	run --separate-stderr "$KRON" record -o t -- ./triggers 1 100
	[ "$output" = "1 threads, 100 calls each" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr =~ ^kron:\ [0-9,]+\ samples,\ 0\ lost,\ [0-9,]+\ sites\ refused,\ probes\ cost\ about\ [0-9.]+%\ -\>\ t$ ]]
	run --separate-stderr "$KRON" record -q -o t -- ./triggers 1 100
	[ -z "$stderr" ]
	run --separate-stderr "$KRON" record -v -o t -- ./triggers 1 100
	[ "${#stderr_lines[@]}" -gt 1 ]
}

@test "samples and losses are all triggers, whatever happens when the buffer is full" {
	for mode in discard wait wrap; do
		run -0 "$KRON" record -q -o t -F tick -b 1M --when-full $mode -- ./triggers 2 200000
		[ "$(total t)" = 800000 ]
	done
	run -0 "$KRON" record -q -o t -F tick -b 1M --when-full wait -- ./triggers 2 200000
	[ "$("$KRON" info --json t | json 'd["lost"]')" = 0 ]
	run -0 "$KRON" record -q -o t -F tick -b 1M --when-full wrap -- ./triggers 2 200000
	[ "$("$KRON" info --json t | json 'd["lost"]')" -gt 0 ]
	grep -q '^overwritten=[1-9]' t/session
}

# Each thread has a chunk that it does not fill, and goes on only when all have come; 1M has 16.
@test "more threads than the buffer has chunks: none waits for one that sleeps, none loses" {
	compile waits bins/waits.c
	run -0 "$KRON" record -q -o t -F step -b 1M --when-full wait -- ./waits 64 200
	[ "$output" = "steps 12800" ]
	[ "$("$KRON" info --json t | json 'd["samples"]')" = 25600 ]
	[ "$("$KRON" info --json t | json 'd["lost"]')" = 0 ]
	run -0 "$KRON" record -o t -F step -b 1M --when-full wait --trigger 'step>100s' -- ./waits 64 200
	[[ "$output" == *"25,600 samples were discarded"*" 0 lost"* ]]
}

@test "a trigger knows what a library is called by that comes while it waits" {
	cat >late.c <<-'END'
		__attribute__((noipa)) void late(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
	END
	cat >loads.c <<-'END'
		#include <dlfcn.h>
		__attribute__((noipa)) void early(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
		int main(void)
		{
			void (*late)(void);
			void *lib;

			for (int i = 0; i < 1000; i++)
				early();
			lib = dlopen("./liblate.so", RTLD_NOW);
			late = lib ? (void (*)(void))dlsym(lib, "late") : 0;
			for (int i = 0; late && i < 10; i++)
				late();
			return !late;
		}
	END
	gcc -O1 -shared -fPIC -o liblate.so late.c
	gcc -O1 -o loads loads.c -ldl
	"$KRON" record -q -o t -L 'liblate*' -F early -F late --trigger 'entry=late' --pre 3 --post 2 -- \
		./loads
	run -0 "$KRON" dump t
	[ "$(grep -oE '(entry|exit) +(early|late)' <<<"$output" | tr -s ' ' | paste -sd,)" = \
		"exit early,entry early,exit early,entry late,exit late,entry late" ] ||
		{ echo "$output"; return 1; }
}

@test "-F and -N select functions" {
	"$KRON" record -q -o t -F 't*' -N 'thread_*' -- ./triggers 2 10
	run -0 "$KRON" report --json t
	[ "$(json '" ".join(sorted(f["function"] for f in d))' <<<"$output")" = tick ]
	run -0 "$KRON" record -o t -N '*' -- ./triggers 1 10
	[[ $output == *"no function was selected"* ]]
}

@test "-L records libraries, by name or by path" {
	compile lib.so bins/calc.c -shared -fPIC || skip "no shared library"
	libc=$(ldd /bin/true | sed -n 's/.*=> \(.*libc.so.6\) .*/\1/p')
	for glob in 'libc.so*' "$(readlink -f "$libc")"; do
		"$KRON" record -q -o t -L "$glob" -- /bin/true
		grep -q 'libc.so' t/modules
	done
	"$KRON" record -q -o t -- /bin/true
	run ! grep -q 'libc.so' t/modules
}

@test "levels and the Filter Register" {
	"$KRON" record -q -o t -g 3 --filter 8 -- ./triggers 1 10
	[ "$(total t)" -gt 20 ]
	"$KRON" record -q -o t -g 3 --filter 0xfff7 -- ./triggers 1 10
	[ "$(total t)" = 0 ]
}

@test "levels for some functions, or for a library" {
	"$KRON" record -q -o t -g 3 -g 5=tick --filter 20 -- ./triggers 1 10
	[ "$(total t)" = 20 ]
	"$KRON" record -q -o t -g 3 -g 5=tick --filter 8 -- ./triggers 1 10
	run "$KRON" report t
	[[ $output = *thread_main* ]]
	[[ $output != *tick* ]]
	# the last one that matches, and a module's file name
	"$KRON" record -q -o t -g 5=tick -g 6='t*' -g 7=tick --filter 80 -- ./triggers 1 10
	[ "$(total t)" = 20 ]
	"$KRON" record -q -o t -g 7=triggers --filter 80 -- ./triggers 1 10
	[ "$(total t)" -gt 20 ]
	for bad in 16 16=x -1 1x 5= =x ''; do
		run "$KRON" record -q -o t -g "$bad" -- ./triggers 1 10
		[ "$status" = 125 ]
		[[ $output = "kron record: -g $bad: LEVEL or LEVEL=GLOB is needed"* ]]
	done
}

@test "--no-children leaves what the program starts alone" {
	"$KRON" record -q -o t -- sh -c './triggers 1 10; true'
	grep -q triggers t/modules
	"$KRON" record -q -o t --no-children -- sh -c './triggers 1 10; true'
	run ! grep -q triggers t/modules
}

@test "the program sees its own environment and descriptors" {
	# "_" is the shell's: what it started
	env -0 | grep -zv '^_=' | sort -z >want
	"$KRON" record -q -o t -- env -0 | grep -zv '^_=' | sort -z >got
	cmp want got
	LD_PRELOAD=libz.so.1 "$KRON" record -q -o t -- env -0 | tr '\0' '\n' >got
	grep -qx 'LD_PRELOAD=libz.so.1' got
	run ! grep -q KRON_RT got
	ls /proc/self/fd >want
	"$KRON" record -q -o t -- ls /proc/self/fd >got
	diff want got
}

@test "a list of a program's libraries has none of ours" {
	local list='LD_TRACE_LOADED_OBJECTS=1 /bin/true; ldd /bin/true'
	sh -c "$list" | sed 's/ (0x.*//' >want
	"$KRON" record -q -- sh -c "$list" | sed 's/ (0x.*//' >got
	cmp want got
}

@test "scripts, programs in PATH, and text without #!" {
	printf '#!/bin/sh\nexit 9\n' >script
	printf 'exit 8\n' >text
	chmod +x script text
	run "$KRON" record -q -o t -- ./script
	[ "$status" = 9 ]
	run "$KRON" record -q -o t -- ./text
	[ "$status" = 8 ]
	mkdir bin
	cp script bin/in-path
	PATH=$T/bin:$PATH run "$KRON" record -q -o t -- in-path
	[ "$status" = 9 ]
	printf '#!/no/such/interpreter\n' >broken
	chmod +x broken
	run "$KRON" record -o t2 -- ./broken
	[ "$status" = 126 ]
	[[ $output == *"/no/such/interpreter"* ]]
	[ ! -e t2 ]
}

@test "the cache is used, and a damaged, foreign or missing one does no harm" {
	"$KRON" record -q -o t -- ./triggers 1 10
	[ "$(find "$XDG_CACHE_HOME/kron" -name '*-full.plan' | wc -l)" = 1 ]
	for f in "$XDG_CACHE_HOME"/kron/*.plan; do
		head -c 100 "$f" >cut
		cat cut >"$f"
	done
	run -0 "$KRON" record -q -o t -- ./triggers 1 10
	[ "$(total t)" -gt 20 ]
	XDG_CACHE_HOME=/dev/null/nowhere run -0 "$KRON" record -q -o t -- ./triggers 1 10
	run -0 env -u XDG_CACHE_HOME -u HOME "$KRON" record -q -o t -- ./triggers 1 10
	[ "$(total t)" -gt 20 ]
}

@test "recover after SIGKILL of kron: the program goes on, and all it stored is there" {
	"$KRON" record -q -o t -- sh -c './triggers 1 1000; echo ready; until [ -e go ]; do sleep 0.02; done; echo done' >out &
	kron=$!
	wait_until grep -q ready out
	kill -KILL $kron
	wait $kron || true
	run "$KRON" recover t
	[ "$status" = 0 ]
	[[ $output == *recovered* ]]
	[[ $output == *"still run"* ]]
	calls=$("$KRON" report --json t | json '[f["calls"] for f in d if f["function"] == "tick"][0]')
	[ "$calls" = 1000 ]
	run "$KRON" recover t
	[[ $output == *complete* ]]
	touch go
	wait_until grep -q done out
}

@test "recover says why it cannot" {
	run "$KRON" recover nowhere
	[ "$status" = 1 ]
	mkdir empty
	run "$KRON" recover empty
	[ "$status" = 1 ]
	"$KRON" record -q -o t -- sleep 1000 &
	wait_until [ -s t/session ]
	run "$KRON" recover t
	[ "$status" = 1 ]
	[[ $output == *"still records"* ]]
	kill %1
	wait || true
}

@test "a trace is its owner's" {
	umask 022
	"$KRON" record -o trace -- /bin/true
	[ "$(stat -c %a trace)" = 700 ]
}

@test "no segment is left behind" {
	"$KRON" record -q -o t -- ./triggers 1 10
	segment=$(sed -n 's/^segment=//p' t/session)
	[ -n "$segment" ]
	[ ! -L "/dev/shm$segment" ]
}

@test "why a program runs untraced is said once, in one sentence" {
	head -c 3000 /bin/ls >cut && chmod +x cut
	run ./cut
	plain=$status
	run "$KRON" record -o t -- ./cut
	[ "$status" = "$plain" ]
	[ "$(grep -c untraced <<<"$output")" = 1 ]
	[[ $output == *"./cut is truncated: a segment lies past the end of the file"* ]]
	cp /bin/true setuid && chown 1 setuid && chmod 4755 setuid || skip "not as root: no file of another user"
	run "$KRON" record -o t -- ./setuid
	[ "$status" = 0 ]
	[ "$(grep -c untraced <<<"$output")" = 1 ]
	[[ $output == *"changes its user, group or capabilities when it starts"* ]]
}

@test "the first patch leads to a landing on the next page" {
	cat >page.S <<-'END'
			.text
			.balign 4096
			.skip 4088, 0xcc
			.globl f, g, main
			.type f, @function
		f:	xor %eax, %eax
			ret
			.size f, . - f
			.type g, @function
		g:	mov %edi, %eax
			imul %eax, %eax
			add $3, %eax
			ret
			.size g, . - g
			.skip 21, 0xcc
			.type main, @function
		main:	push %rbx
			mov $100, %ebx
		1:	call f
			call g
			dec %ebx
			jnz 1b
			xor %eax, %eax
			pop %rbx
			ret
			.size main, . - main
			.section .note.GNU-stack, "", @progbits
	END
	compile page ./page.S
	"$KRON" list -p f page | grep -q 'ff8 before *jump-short'
	"$KRON" record -q -p f -- ./page
	[ "$("$KRON" info --json | json 'd["samples"]')" = 100 ]
}

@test "the cost of a probe is measured, with the runtime's own thunk" {
	"$KRON" record -q -o t -- true
	[ "$("$KRON" info --json t | json 'min(d["probe_ns_off"], d["probe_ns"]) > 0')" = True ]
	nm "$KRON" | grep -q ' kron_rt_probe$'
}

@test "kron info says why sites were refused, in sentences" {
	# the jump that goes to a register is not a known switch, and its function has a ret
	cat >odd.s <<-'E'
		.globl main
		.type main, @function
	main:	.cfi_startproc
		lea 1f(%rip), %rax
		jmp *%rax
	1:	xor %eax, %eax
		ret
		.cfi_endproc
		.size main, . - main
	E
	${CC:-cc} -o odd odd.s
	"$KRON" record -q -o t -- ./odd
	[ "$("$KRON" info --json t | json 'len(d["refusals"]) > 0 and all(" " in r["reason"] for r in d["refusals"])')" = True ]
	"$KRON" info t | grep -Eq '^ +[0-9]+  (exits|entries) +[a-z-]+: .+ '
}

# The kernel names a program's first thread after the name by which it was executed.
@test "threads have the names that the kernel gave them, in short processes, too" {
	ln -s "$(command -v cat)" pussycat
	ln -s "$(command -v dash)" shell
	for i in 1 2 3 4 5; do
		[ "$("$KRON" record -q -- ./pussycat /proc/self/comm)" = pussycat ]
		[ "$("$KRON" info --json | json '[t["name"] for p in d["process_list"] for t in p["threads"]]')" = "['pussycat']" ]
		"$KRON" record -q -- ./shell -c '(:); (:)'
		[ "$("$KRON" info --json | json '{t["name"] for p in d["process_list"] for t in p["threads"]}')" = "{'shell'}" ]
	done
}

@test "a pack whose library is not there has one line, whatever it holds" {
	run --separate-stderr "$KRON" record -P libstdcxx -- true
	[ "$status" = 0 ]
	[ "${#stderr_lines[@]}" = 2 ]
	[[ ${stderr_lines[0]} == *"pack libstdcxx: the program loaded no module that it is about" ]]
	# also where some of them are elsewhere, and others between them are not
	run --separate-stderr "$KRON" record -P blocks -- true
	[ "$(grep -c "the program loaded no module" <<<"$stderr")" = 1 ]
	# each of the command line's has its own
	run --separate-stderr "$KRON" record -p libnone:f -p libnil:g -- true
	[ "${#stderr_lines[@]}" = 3 ]
	[[ ${stderr_lines[0]} == *"libnone:f: the program loaded no module that this means" ]]
	[[ ${stderr_lines[1]} == *"libnil:g: the program loaded no module that this means" ]]
	# those of a file have one, also where others of it stand somewhere
	printf 'libnone:a\nlibnone:b\nmain\nlibnone:c\n' >my.probe
	"$KRON" record -P ./my.probe -- "$KRON" --version 2>err >/dev/null
	[ "$(grep -c 'no module' err)" = 1 ]
	grep -q 'my.probe: libnone:a and 2 more: ' err
}

# It can neither wait for chunks nor ask for them, so there must be some.
@test "a program with a seccomp filter loses nothing of its first 160,000 samples" {
	cat >filtered.c <<-'EOF'
		#include <linux/filter.h>
		#include <linux/seccomp.h>
		#include <sys/prctl.h>
		__attribute__((noipa)) int leaf(int x) { __asm__ volatile("nop; nop; nop; nop; nop"); return x + 1; }
		int main(void)
		{
			struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
			struct sock_fprog p = {1, all};
			int n = 0;

			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
				return 77;
			while (n < 80000)
				n = leaf(n);
			return 0;
		}
	EOF
	compile filtered filtered.c
	[ "$(cat /proc/sys/vm/overcommit_memory)" != 2 ] || skip "chunks come when they are asked for"
	for _ in 1 2 3 4 5 6; do
		run "$KRON" record -q -o t -- ./filtered
		[ "$status" != 77 ] || skip "no seccomp filters here"
		[ "$status" = 0 ]
		[ "$("$KRON" info --json t | json 'd["lost"], d["samples"] > 160000')" = "(0, True)" ]
	done
}
