#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# debugger.bats - breakpoints in programs with probes: somebody else's, and their own.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

# A program that says when it is ready and then waits for a line; with debug information and without
make_program() {
	cat >p.c <<-'END'
		#include <stdio.h>
		__attribute__((noipa)) int leaf(int x) { int y = x * 2; return y + 1; }
		__attribute__((noipa)) int middle(int x) { return leaf(x) + leaf(x + 1); }
		int main(int argc, char **argv)
		{
			int s = 0, c = 0;
			if (argc > 1) { puts("ready"); fflush(stdout); c = getchar(); }
			for (int i = 0; i < 5; i++) s += middle(i);
			printf("%d\n", s);
			return c == EOF;
		}
	END
	gcc -g -O2 -o p p.c
	gcc -g -O0 -o p0 p.c
	# stops: how often the program stops for `break leaf`, and who was called each time
	cat >stops.py <<-'END'
		import gdb
		gdb.execute("set pagination off")
		gdb.execute("set breakpoint pending on")
		gdb.execute("set confirm off")
		START
		callers = []
		while gdb.selected_inferior().pid:
		    frame = gdb.newest_frame()
		    names = []
		    while frame:
		        names.append(frame.name())
		        frame = frame.older()
		    if "leaf" not in names:
		        break
		    callers.append(names[names.index("leaf") + 1])
		    gdb.execute("continue", to_string=True)
		print("STOPS", len(callers), *sorted(set(callers)))
	END
}

@test "break FUNCTION stops at every call, with a probe at every instruction" {
	need gdb gcc
	make_program
	need_hardware_breakpoints ./p
	# when the probes are there: before, the breakpoint's byte would keep them out
	sed 's/START/[gdb.execute(c, to_string=True) for c in ("starti", "hbreak *main", "continue", "break leaf", "continue")]/' \
		stops.py >run.py
	for p in p p0; do
		run gdb -batch -x run.py ./$p
		[[ $output == *"STOPS 10 middle"* ]]
		run "$KRON" record -p "./$p:*%insns count:2" -- gdb -batch -x run.py ./$p
		echo "$output"
		[[ $output == *"STOPS 10 middle"* ]]
		[[ $output != *"untraced: $T/p"* ]]
		[[ $output == *"runs under gdb (pid "*"breakpoints at functions are hit"* ]]
		[ "$("$KRON" info --json | json 'd["counters"][2] > 100')" = True ]
		run "$KRON" record -F leaf -F middle -- gdb -batch -x run.py ./$p
		echo "$output"
		[[ $output == *"STOPS 10 middle"* ]]
		[[ $output != *"untraced: $T/p"* ]]
	done
}

@test "a breakpoint that is there before the probes keeps them out of its module" {
	need gdb gcc
	make_program
	run "$KRON" record -F leaf -- gdb -batch -ex 'break leaf' -ex run ./p
	echo "$output"
	[[ $output == *"Breakpoint 1, leaf"* ]]
	[[ $output == *"untraced: $T/p: code in memory is not what the file says"*": a debugger may have a breakpoint there"* ]]
}

@test "... for a debugger that is attached" {
	need gdb gcc
	make_program
	sed 's/START/gdb.execute("break leaf"), open("in", "w").write("\\n"), gdb.execute("continue", to_string=True)/' \
		stops.py >attach.py
	mkfifo in out
	"$KRON" record -q -p './p0:*%insns count:2' -- ./p0 wait <in >out 3>&- &
	exec 8>in 9<out
	read -r line <&9
	[ "$line" = ready ]
	pid=$(pgrep -P $! -x p0)
	run gdb -batch -p "$pid" -x attach.py
	echo "$output"
	exec 8>&-
	wait
	[[ $output != *"not permitted"* ]] || skip "no process may be attached to here"
	[[ $output == *"STOPS 10 middle"* ]]
}

# Breakpoints of its own: what the program writes to its code is what is there, for the probes go first.
@test "a program that writes to its code gets it back" {
	cc="gcc -w -D_GNU_SOURCE -I$KRON_TOP_SRC/tests/torture"
	for v in O2 O0; do
		$cc -$v -o traps "$KRON_TOP_SRC/tests/torture/control/own_traps.c"
		./traps >want
		for spec in insns blocks calls stores; do
			"$KRON" record -p "*%$spec count:0" -- ./traps >got 2>err
			diff want got
			cat err
			grep -q "untraced: $T/traps: the program makes its code writable: its probes were taken out before" err
		done
	done
}

@test "... if it has one thread, or else a note" {
	cat >threads.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <sys/mman.h>
		static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		static void *wait(void *arg) { pthread_mutex_lock(&lock); return arg; }
		int main(void)
		{
			pthread_t t;
			pthread_mutex_lock(&lock);
			pthread_create(&t, NULL, wait, NULL);
			int failed = mprotect((void *)((unsigned long)wait & -4096ul), 4096,
					      PROT_READ | PROT_WRITE | PROT_EXEC);
			pthread_mutex_unlock(&lock);
			pthread_join(t, NULL);
			printf("%d\n", failed);
			return 0;
		}
	END
	gcc -O2 -pthread -o threads threads.c
	run "$KRON" record -- ./threads
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"untraced: $T/threads: the program makes its code writable while it has several threads"* ]]
}
