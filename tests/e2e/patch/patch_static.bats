#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron patch of static programs: the copy behaves as the original and traces under kron record.
# And of all programs: with KRON_BOARD the copy stores to a board by itself.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

# life OUT FLAG...: bins/static_life.c; a compiler or library that is not there: skip
life() {
	local out=$1
	shift
	echo 'int main(void) { return 0; }' >trivial.c
	compile trivial ./trivial.c "$@" 2>no || skip "cannot be linked here: $*"
	compile "$out" bins/static_life.c "$@"
}

# by_thread DIR: "TID CALLS" of hit()
by_thread() {
	"$KRON" report --by-thread --json "$1" |
		json '"\n".join("%d %d" % (f["thread"], f["calls"])
			for f in sorted(d, key=lambda f: f["thread"]) if f["function"] == "hit")'
}

# whole DIR: nothing was lost, and no probe cut off
whole() {
	[ "$("$KRON" info --json "$1" | json 'd["samples"] > 0 and d["lost"] == 0')" = True ]
}

# alike OLD NEW ARG...: same output and status
alike() {
	local old=$1 new=$2 want=0 got=0
	shift 2
	"$old" "$@" >want 2>want.err </dev/null || want=$?
	"$new" "$@" >got 2>got.err </dev/null || got=$?
	[ "$want" = "$got" ]
	cmp want got
	cmp want.err got.err
}

# threads FLAG...: what the program says of its threads is what the trace says
threads() {
	[ $# = 0 ] || life prog "$@"
	"$KRON" patch -q -F hit -F work -F on_alarm -o prog.kron prog
	alike ./prog ./prog.kron env a 'b c'
	"$KRON" record -q -o t -- ./prog.kron all 8 >truth </dev/null
	whole t
	[ "$(wc -l <truth)" -gt 40 ]
	diff truth <(by_thread t)
}

@test "glibc, static: threads, handlers, fork, vfork" {
	threads -static
}

@test "glibc, static-pie: likewise" {
	threads -static-pie
}

@test "musl, static: likewise" {
	command -v musl-gcc >/dev/null || skip "musl-gcc is not installed"
	CC=musl-gcc threads -static
}

@test "musl, static-pie: likewise" {
	# musl-gcc would link it with an interpreter
	lib=/usr/lib/x86_64-linux-musl
	[ -e $lib/rcrt1.o ] || skip "musl is not installed"
	compile prog bins/static_life.c -nostdinc -isystem /usr/include/x86_64-linux-musl \
		-fPIE -static-pie -nostdlib $lib/rcrt1.o $lib/crti.o $lib/libc.a $lib/crtn.o
	threads
}

@test "every function of a static program" {
	life prog -static -s
	"$KRON" patch -q -o prog.kron prog
	alike ./prog ./prog.kron env
	"$KRON" record -q -o t -- ./prog.kron env >got </dev/null || [ $? = 3 ]
	whole t
	if command -v eu-elflint >/dev/null; then
		diff <(eu-elflint --gnu-ld prog 2>&1) <(eu-elflint --gnu-ld prog.kron 2>&1)
	fi
}

@test "assembly without any library" {
	cat >prog.S <<-'END'
		.globl _start
		.type f, @function
		f:	lea 1(%rdi), %rax
			nop
			nop
			ret
		.size f, . - f
		.type _start, @function
		_start:	test $15, %spl
			jnz 2f			# aligned
			cmpl $1, (%rsp)
			jne 2f			# argc
			xor %edi, %edi
		1:	call f
			mov %rax, %rdi
			cmp $1000, %rdi
			jne 1b
			mov $60, %eax
			mov $7, %edi
			syscall
		2:	ud2
		.size _start, . - _start
	END
	for flags in -static -static-pie; do
		gcc -nostdlib $flags prog.S -o prog
		"$KRON" patch -q -o prog.kron prog
		run -7 ./prog.kron
		run -7 "$KRON" record -q -o t -- ./prog.kron
		whole t
		[ "$("$KRON" report --json t | json '[f["calls"] for f in d if f["function"] == "f"]')" = '[1000]' ]
	done
}

# as_ever TRUTH ARG...: prog.kron says what prog did, by itself and traced
as_ever() {
	local truth=$1
	shift
	timeout 60 ./prog.kron "$@" >got 2>&1 </dev/null || [ $? = 2 ]
	diff "$truth" got
	timeout 60 "$KRON" record -q -o t -- ./prog.kron "$@" >got 2>&1 </dev/null || [ $? = 2 ]
	diff "$truth" got
	[ "$("$KRON" info --json t | json 'd["lost"]')" = 0 ]
}

# faults FLAG...: handlers of faults are told what they would be told without probes
faults() {
	for source in fault_handlers fault_memory; do
		life prog "$@" # or skip
		compile prog torture/faults/$source.c "$@"
		# without symbols or tables nobody knows where musl's functions are
		[ "${CC-}" = musl-gcc ] || strip prog
		./prog >truth 2>&1 </dev/null
		"$KRON" patch -q --jumps -o prog.kron prog
		as_ever truth
		"$KRON" patch -q --jumps -p '*%insns count:3' -o prog.kron prog
		as_ever truth
	done
}

@test "handlers of faults: glibc, static" {
	faults -static
}

@test "handlers of faults: glibc, static-pie" {
	faults -static-pie
}

@test "handlers of faults: musl" {
	command -v musl-gcc >/dev/null || skip "musl-gcc is not installed"
	CC=musl-gcc faults -static
}

@test "Go: faults are errors that it recovers from, with the same lines" {
	command -v go >/dev/null || skip "go is not installed"
	cat >prog.go <<-'END'
		package main

		import (
			"fmt"
			"os"
			"os/signal"
			"runtime/debug"
			"syscall"
		)

		type node struct {
			pad  [64]byte
			next *node
			v    int
		}

		//go:noinline
		func load(n *node) int { return n.v }

		//go:noinline
		func first(p *int) int { return *p + 1 }

		//go:noinline
		func divide(a, b int) int { return a / b }

		//go:noinline
		func store(n *node, v int) { n.next.v = v }

		func try(f func()) {
			defer func() {
				fmt.Printf("%v\n%s", recover(), debug.Stack())
			}()
			f()
		}

		func main() {
			var n *node
			done := make(chan bool)
			for i := 0; i < 3; i++ {
				try(func() { load(n) })
				try(func() { first(nil) })
				try(func() { divide(i, 0) })
				try(func() { store(&node{}, 1) })
				go func() { try(func() { load(n) }); done <- true }()
				<-done
			}
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGTRAP)
			syscall.Kill(os.Getpid(), syscall.SIGTRAP)
			fmt.Println(<-c)
			load(n)
		}
	END
	CGO_ENABLED=0 GOFLAGS=-mod=mod GOCACHE=$T/go timeout 100 go build -o prog prog.go || skip "go build"
	# goroutines' numbers and arguments that nobody has kept may differ
	same='s/goroutine [0-9]*/goroutine/; s/(0x[^)]*)/()/; s/{0x[^}]*}/{}/g'
	./prog 2>&1 </dev/null | sed "$same" >truth
	grep -q 'main.load' truth
	"$KRON" patch -q --jumps -p '*%insns count:3' -o prog.kron prog
	timeout 60 ./prog.kron 2>&1 </dev/null | sed "$same" | diff truth -
	"$KRON" record -q -o t -- ./prog.kron 2>&1 </dev/null | sed "$same" | diff truth -
}

@test "Go: a loop in stubs is stopped for the collector of garbage" {
	command -v go >/dev/null || skip "go is not installed"
	cat >prog.go <<-'END'
		package main

		import (
			"fmt"
			"runtime"
			"time"
		)

		var sink int

		//go:noinline
		func spin() {
			for x := 1; ; x ^= 5 {
				if x = x*3 + 1; x == 0 {
					sink = x
					return
				}
			}
		}

		func main() {
			go spin()
			time.Sleep(20 * time.Millisecond)
			for i := 0; i < 5; i++ {
				runtime.GC()
			}
			fmt.Println("stopped")
		}
	END
	CGO_ENABLED=0 GOFLAGS=-mod=mod GOCACHE=$T/go timeout 100 go build -o prog prog.go || skip "go build"
	"$KRON" patch -q --jumps -p 'main.*%insns count:3' -o prog.kron prog
	timeout 60 ./prog.kron >got
	grep -x stopped got
	timeout 60 "$KRON" record -q -o t -- ./prog.kron >got </dev/null
	grep -x stopped got
}

@test "stacks through stubs, without symbols: gdb, a core, the program, a profiler" {
	for flags in -static '-static-pie -fPIE'; do
		cat >prog.c <<-'END'
			#include <execinfo.h>
			#include <signal.h>
			#include <stdio.h>
			#include <unistd.h>
			#define OPAQUE __attribute__((noinline))
			OPAQUE long load(const long *p) { long v; __asm__ volatile("mov (%1),%0" : "=r"(v) : "r"(p)); return v; }
			OPAQUE long middle(const long *p) { long v = load(p); __asm__ volatile(""); return v + 1; }
			OPAQUE long outer(const long *p) { long v = middle(p); __asm__ volatile(""); return v * 3; }
			extern const char __ehdr_start[];
			static void on_fault(int sig)
			{
				void *frame[40];
				int n = backtrace(frame, 40);
				/* 0 is here, 1 the signal's frame, which is libc's or not */
				for (int i = 2; i < n; i++)
					printf("%lx\n", (unsigned long)((char *)frame[i] - __ehdr_start));
				fflush(stdout);
				_exit(sig);
			}
			int main(int argc, char **argv)
			{
				(void)argv;
				if (argc > 1)
					signal(SIGSEGV, on_fault);
				return (int)outer((const long *)8);
			}
		END
		life prog $flags # or skip
		compile prog ./prog.c $flags
		strip prog
		"$KRON" patch -q --jumps -p '*%insns count:3' -o prog.kron prog
		./prog 1 >truth || [ $? = 11 ]
		[ "$(wc -l <truth)" -ge 6 ]
		./prog.kron 1 >got || [ $? = 11 ]
		diff truth got
		command -v gdb >/dev/null || continue
		# the stub is one frame more, called by the instruction
		frames() { awk '/^#0/ { s = "" } /^#/ { s = s substr($2, length($2) - 2) "\n" } END { printf s }'; }
		gdb -batch -ex run -ex bt ./prog 2>&1 </dev/null | frames | tail -n +2 >truth
		[ "$(wc -l <truth)" -ge 5 ]
		gdb -batch -ex run -ex bt -ex 'gcore core.kron' ./prog.kron 2>&1 </dev/null | frames |
			tail -n +3 | diff truth -
		gdb -batch -ex bt ./prog.kron core.kron 2>&1 </dev/null | frames | tail -n +3 | diff truth -
	done
	compile prog torture/faults/unwind_signal.c -static
	"$KRON" patch -q --jumps -o prog.kron prog
	./prog.kron | grep reach
	"$KRON" record -q -o t -- ./prog.kron | grep reach
	whole t
}

@test "seccomp filters are noticed without symbols, and in Go" {
	life prog -static
	hit=0x$(nm prog | awk '$3 == "hit" { print $1 }')
	strip prog
	"$KRON" patch -q -p "$hit" -o prog.kron prog
	"$KRON" record -q -o t -- ./prog.kron filter 6000 >truth </dev/null || {
		[ $? = 77 ] && skip "no seccomp here"
		false
	}
	diff <(sort -n truth) <("$KRON" info --json t |
		json '"\n".join("%d %d" % (t["tid"], t["samples"]) for t in d["process_list"][0]["threads"])')
	command -v go >/dev/null || return 0
	cat >prog.go <<-'END'
		package main

		import (
			"os"
			"runtime"
			"strconv"
			"syscall"
			"unsafe"
		)

		type insn struct {
			code   uint16
			jt, jf uint8
			k      uint32
		}
		type program struct {
			n uint16
			f *insn
		}

		//go:noinline
		func hit(x int) int { return x*3 + 1 }

		// kills for process_vm_readv, which Go never does
		func filter() {
			f := []insn{{0x20, 0, 0, 0}, {0x15, 1, 0, 310}, {0x06, 0, 0, 0x7fff0000}, {0x06, 0, 0, 0x80000000}}
			p := program{uint16(len(f)), &f[0]}
			syscall.RawSyscall6(syscall.SYS_PRCTL, 38, 1, 0, 0, 0, 0)
			if _, _, e := syscall.RawSyscall(317, 1, 1, uintptr(unsafe.Pointer(&p))); e != 0 {
				os.Exit(77)
			}
		}

		func main() {
			runtime.LockOSThread()
			s := hit(0)
			filter()
			for i := 0; i < 20000; i++ {
				s += hit(i)
			}
			os.Stdout.WriteString(strconv.Itoa(s))
		}
	END
	CGO_ENABLED=0 GOFLAGS=-mod=mod GOCACHE=$T/go timeout 100 go build -o prog prog.go || skip "go build"
	"$KRON" patch -q -F main.hit -o prog.kron prog
	./prog >truth
	"$KRON" record -q -o t -- ./prog.kron >got </dev/null
	cmp truth got
	whole t
	[ "$("$KRON" report --json t | json '[f["calls"] for f in d if f["function"] == "main.hit"]')" = '[20001]' ]
}

@test "a killed program leaves what it had stored" {
	life prog -static
	"$KRON" patch -q -F hit -o prog.kron prog
	for n in 1 777 5000; do
		run -137 "$KRON" record -q -o t -- ./prog.kron die $n truth
		"$PYTHON" - <<-'END' "$("$KRON" dump --json t | grep '"function":"hit"' | grep -c '"kind":"entry"')"
			import struct, sys
			called = sum(struct.unpack("2I", open("truth", "rb").read(8)))
			stored = int(sys.argv[1])
			# entered, and killed before it counted: one a thread
			assert called <= stored <= called + 2, (called, stored)
		END
	done
}

@test "static programs in a traced tree, patched and not" {
	life prog -static
	"$KRON" patch -q -F hit -o prog.kron prog
	"$KRON" record -q -o t -- sh -c './prog.kron all 1 >truth; ./prog env >other; env ./prog.kron env' \
		>got </dev/null || [ $? = 3 ]
	whole t
	! grep -q KRON other
	diff truth <(by_thread t)
}

@test "hooks: its environment, what it executes, seccomp filters" {
	life prog -static
	compile dynamic bins/static_life.c
	"$KRON" patch -q -F hit -o prog.kron prog
	same_behaviour ./prog.kron env a
	same_behaviour ./prog.kron exec ./prog env
	same_behaviour ./prog.kron exec ./dynamic env
	"$KRON" record -q --when-full wait -F hit -o t -- ./prog.kron exec ./prog.kron all 1 >truth </dev/null
	whole t
	diff truth <(by_thread t)
	"$KRON" record -q --when-full wait -F hit -o t -- ./prog.kron exec ./dynamic all 1 >truth </dev/null
	whole t
	diff truth <(by_thread t)
	# four chunks each, without a system call
	"$KRON" record -q -o t -- ./prog.kron filter 6000 >truth </dev/null || {
		[ $? = 77 ] && skip "no seccomp here"
		false
	}
	[ "$(wc -l <truth)" = 2 ]
	whole t
	diff <(sort -n truth) <(by_thread t)
	# what is there for a hook only is not shown
	[ "$("$KRON" list --json prog.kron | json '[f["name"] for f in d["functions"]]')" = "['hit']" ]
	[ "$("$KRON" list prog.kron | wc -l)" = 2 ]
}

@test "probes at places, with payloads and counts" {
	life prog -static
	"$KRON" patch -q -p '7:who=hit $arg1' -p 'work count:3' -o prog.kron prog
	"$KRON" record -q -o t -- ./prog.kron all 1 >truth </dev/null
	whole t
	# the payload is hit()'s argument: the thread that calls, by the program's own word
	diff truth <("$KRON" dump --json t | "$PYTHON" -c '
import collections, json, sys
n = collections.Counter(s["payload"] for s in map(json.loads, sys.stdin) if s.get("name") == "who")
print("\n".join("%d %d" % i for i in sorted(n.items())))')
	# work(): once in each of eight threads and in the child
	[ "$("$KRON" info --json t | json 'd["counters"][3] if "counters" in d else 9')" = 9 ]
}

@test "the exact bus; buses that cannot be had: said" {
	life prog -static
	"$KRON" patch -q -F hit -o prog.kron prog
	run -0 --separate-stderr "$KRON" record -o t --bus exact -- ./prog.kron all 1
	[ "$("$KRON" info --json t | json 'd["samples"] > 0')" = True ]
	head -c 33554432 /dev/zero >device
	run --separate-stderr "$KRON" record -o t --bus "device:$PWD/device" -- ./prog.kron env
	[ "$status" = 3 ]
	[[ $stderr == *"is static"* ]]
}

@test "constant time" {
	life prog -static
	"$KRON" patch -q -F hit -o prog.kron prog
	"$KRON" record -q -o t --constant-time -- ./prog.kron all 8 >truth </dev/null
	whole t
	diff truth <(by_thread t)
	# what is dropped leaves nothing, and takes no room
	"$KRON" record -q -o t --constant-time --filter 0 -- ./prog.kron all 8 >truth </dev/null
	[ "$("$KRON" info --json t | json '(d["samples"], d["lost"])')" = '(0, 0)' ]
}

# ---- KRON_BOARD ----

# board: one for this test alone, that takes every sample and lets nobody lose one
board() {
	BOARD=patch-static-$$-$BATS_TEST_NUMBER
	"$KRON" board create -q "$BOARD" 2>/dev/null || "$KRON" board create "$BOARD" >no
	"$KRON" ctl --board "$BOARD" filter 0xffff
	"$KRON" ctl --board "$BOARD" write config 0x3601 # its CPU ID from the lines: see kron-patch(1)
	"$KRON" ctl --board "$BOARD" wait
	"$KRON" ctl --board "$BOARD" sampling on
}

teardown() {
	[ -z "${BOARD-}" ] || "$KRON" board rm "$BOARD"
	test_teardown
}

# on_board: "EVENT SOURCE COUNT" of what the board's memory holds
on_board() {
	"$KRON" read --board "$BOARD" -o mk.dat >no 2>&1
	"$PYTHON" - <<-END
		import collections, sys
		n, data = collections.Counter(), open("mk.dat", "rb").read()
		for at in range(0, len(data), 20):
		    import struct
		    head, low, source, high, event = struct.unpack_from("<5I", data, at)
		    n[event, source] += 1
		for (event, source), k in sorted(n.items()):
		    print(event, source, k)
	END
}

@test "KRON_BOARD: samples on a board, nobody else there" {
	for flags in -static -static-pie -pie -no-pie; do
		life prog $flags
		"$KRON" patch -q -F hit -F work -o prog.kron prog
		board
		KRON_BOARD=$BOARD ./prog.kron all 3 >truth
		on_board >got
		n=$("$KRON" list --json prog.kron |
			json '[f["number"] for f in d["functions"] if f["name"] == "hit"][0]')
		diff truth <(awk -v n="$n" '$1 == 2 * n { print $2, $3 }' got | sort -n |
			# vfork children have their own number here, and three calls are theirs
			"$PYTHON" -c '
import sys
truth = dict(map(int, l.split()) for l in open("truth"))
got = dict(map(int, l.split()) for l in sys.stdin)
others = [t for t in got if t not in truth]
assert len(others) == 3 and all(got.pop(t) == 1 for t in others), others
got[min(truth)] += 3
print("\n".join("%d %d" % i for i in sorted(got.items())))')
		diff <(awk -v n="$n" '$1 == 2 * n { print $2, $3 }' got) \
			<(awk -v n="$n" '$1 == 2 * n + 1 { print $2, $3 }' got)
		"$KRON" board rm "$BOARD"
	done
	BOARD=
}

@test "KRON_BOARD: closed gates, no such board, bad names: as if it were not set" {
	life prog -static
	"$KRON" patch -q -F hit -o prog.kron prog
	board
	"$KRON" ctl --board "$BOARD" sampling off
	for name in "$BOARD" no-such-board ../kron-board.0.x .x '' "$(printf '%0200d' 1)"; do
		KRON_BOARD=$name ./prog env a >want || [ $? = 3 ]
		KRON_BOARD=$name ./prog.kron env a >got || [ $? = 3 ]
		cmp want got
	done
	[ -z "$(on_board)" ]
	head -c 100 /dev/zero >/dev/shm/kron-board.$(id -u).$BOARD-cut
	run -3 env "KRON_BOARD=$BOARD-cut" ./prog.kron env a
	rm /dev/shm/kron-board.$(id -u).$BOARD-cut
}

@test "KRON_BOARD: places, counts, numbers of the user's, and jumps in the text" {
	life prog -static
	board
	for jumps in -q --jumps; do
		"$KRON" patch $jumps -p '7:40=hit $arg1' -p 'work count:3' -o prog.kron prog >no
		./prog env >want || true
		./prog.kron env >got || true
		cmp want got
	done
	KRON_BOARD=$BOARD ./prog.kron all 1 >truth
	diff truth <("$PYTHON" -c '
import collections, struct, subprocess, os
subprocess.run([os.environ["KRON"], "read", "--board", "'"$BOARD"'", "-o", "mk.dat"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
n = collections.Counter(s[3] for s in struct.iter_unpack("<5I", open("mk.dat", "rb").read()) if s[4] == 80)
print("\n".join("%d %d" % i for i in sorted(n.items())))')
}

@test "KRON_BOARD: a program with more rights than its caller never wakes" {
	[ "$(id -u)" = 0 ] || skip "only root can make one"
	need setpriv
	life prog -static
	"$KRON" patch -q -F hit -o prog.kron prog
	BOARD=
	chmod 755 . && cp prog.kron /tmp/kron-suid.$$ && chown 65534 /tmp/kron-suid.$$
	chmod 4755 /tmp/kron-suid.$$
	name=patch-static-$$
	setpriv --reuid=65534 --clear-groups "$KRON" board create $name >no || skip "no board for others"
	for v in 'filter 0xffff' 'sampling on'; do
		setpriv --reuid=65534 --clear-groups "$KRON" ctl --board $name $v
	done
	KRON_BOARD=$name /tmp/kron-suid.$$ all 1 >truth
	setpriv --reuid=65534 --clear-groups "$KRON" status --board $name >status
	setpriv --reuid=65534 --clear-groups "$KRON" board rm $name
	rm /tmp/kron-suid.$$
	[ -s truth ]
	grep -q 'Memory Pointer 000000' status
}
