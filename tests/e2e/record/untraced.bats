#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# untraced.bats - modules that stay untraced are named, with the reason, at the end and by `kron info`.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

# plugs N FLAG...: plug0.so ... and a program that loads those that it is told, when nothing may become
# executable any more
plugs() {
	local i
	for i in $(seq 0 $(($1 - 1))); do
		gcc -O2 -fPIC -shared -DID="$i" -o "plug$i.so" "$KRON_TOP_SRC/tests/torture/libraries/plug.c" "${@:2}"
	done
	cat >locked.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <sys/prctl.h>
		int main(int argc, char **argv)
		{
			if (prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0))
				return 77;
			for (int i = 1; i < argc; i++) {
				void *lib = dlopen(argv[i], RTLD_NOW);
				int (*work)(int) = lib ? (int (*)(int))dlsym(lib, "plug_work") : NULL;

				printf("%d\n", work ? work(1) : -1);
			}
			return 0;
		}
	END
	gcc -O2 -o locked locked.c -ldl
}

# What its runtime reads as data is untraced, and that is a reason of the file alone.
mono_plugs() {
	echo 'long mono_aot_file_info[4] = {1};' >mono.c
	plugs "$1" mono.c
}

@test "modules with the same reason are named together, three of them at most" {
	mono_plugs 5
	run "$KRON" record -L '*' -- ./locked ./plug0.so ./plug1.so ./plug2.so ./plug3.so ./plug4.so
	[ "$status" != 77 ] || skip "no PR_SET_MDWE here"
	[ "$status" = 0 ]
	[[ $output == *"untraced (5 times): plug0.so, plug1.so, plug2.so and 2 more hold"* ]] ||
		[[ $output == *"untraced (5 times): plug0.so, plug1.so, plug2.so and 2 more: "*"Mono's"* ]]
	for i in 0 1 2 3 4; do
		"$KRON" info | grep -q "/plug$i.so.* holds code of Mono's"
	done
}

@test "one module is named by its path" {
	mono_plugs 1
	run "$KRON" record -L '*' -- ./locked ./plug0.so
	[ "$status" != 77 ] || skip "no PR_SET_MDWE here"
	[[ $output == *"kron: untraced: $T/plug0.so holds code of Mono's"* ]]
}

@test "where no text may become writable and executable again, it is patched past its rights" {
	plugs 2
	./locked ./plug0.so ./plug1.so >plain || [ $? != 77 ] || skip "no PR_SET_MDWE here"
	"$KRON" record -L '*' -- ./locked ./plug0.so ./plug1.so >traced 2>said
	cat said
	cmp plain traced
	! grep untraced said
	"$KRON" report >calls
	grep 'plug_work' calls
	[ "$(grep -cE ' 1 .* plug_work \[plug[01]\.so\]$' calls)" = 2 ]
}

# What Mono's ahead-of-time compiler makes: the runtime reads the code.  This one checks all of it.
@test "code that its runtime reads as data is left alone" {
	cat >image.c <<-'END'
		long mono_aot_file_info[4] = {1};
		__attribute__((noinline)) int method(int x) { return x * 3 + 1; }
		int call(int x) { return method(x) + method(x + 1); }
	END
	cat >reader.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <string.h>
		int main(void)
		{
			void *lib = dlopen("./image.so", RTLD_NOW);
			int (*call)(int) = (int (*)(int))dlsym(lib, "call");
			const unsigned char *code = dlsym(lib, "method");
			unsigned char file[1 << 16];
			FILE *f = fopen("./image.so", "rb");
			size_t n = fread(file, 1, sizeof(file), f);
			Dl_info info;

			dladdr(code, &info);
			printf("%d %s\n", call(1),
			       n > 4096 && !memcmp(code, file + (code - (unsigned char *)info.dli_fbase), 12)
			       ? "as in the file" : "changed");
			return 0;
		}
	END
	gcc -O2 -fPIC -shared -o image.so image.c
	gcc -O2 -D_GNU_SOURCE -o reader reader.c -ldl
	[ "$(./reader)" = "11 as in the file" ]
	run "$KRON" record -L '*' -- ./reader
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"11 as in the file"* ]]
	[[ $output == *"untraced: $T/image.so holds code of Mono's ahead-of-time compiler, which its runtime reads as data"* ]]
	run "$KRON" record -p 'image.so:*%insns count:0' -- ./reader
	[[ $output == *"11 as in the file"* ]]
	run "$KRON" patch -o patched.so image.so
	[ "$status" != 0 ]
	[[ $output == *"image.so holds code of Mono's"* ]]
	"$KRON" list --json image.so | grep -q "\"refused\": *\"read\""
}

@test "mono with all libraries" {
	need mono mcs
	cat >hello.cs <<-'END'
		using System;
		using System.Collections.Generic;
		class Program {
			static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
			static void Main() {
				var d = new Dictionary<string, int>();
				for (int i = 0; i < 1000; i++) d["k" + i % 97] = i;
				try { throw new Exception("thrown"); }
				catch (Exception e) { Console.WriteLine(e.Message); }
				Console.WriteLine(Fib(20) + d.Count);
			}
		}
	END
	mcs hello.cs
	[ "$(mono hello.exe)" = "thrown
6862" ]
	run "$KRON" record -q -L '*' -- mono hello.exe
	[ "$status" = 0 ]
	[ "$output" = "thrown
6862" ]
}

@test "a recording that could not begin leaves no trace" {
	sleep 60 &
	run "$KRON" record --pid $! --tactics relay -L '*'
	kill $!
	[ "$status" = 125 ]
	[[ $output == *"nothing in process $! can be traced"* ]]
	[ ! -e kron.data ]
}

# counting N FLAG...: calls `counted` N times, and malloc as often, ten milliseconds apart
counting() {
	cat >counting.c <<-'END'
		#include <stdlib.h>
		#include <unistd.h>
		__attribute__((noinline)) int counted(int n) { __asm__ volatile("" ::: "memory"); return n + 1; }
		int main(void)
		{
			for (int i = 0; i < CALLS; i++) {
				void *p = malloc((size_t)counted(i));
				__asm__ volatile("" ::"r"(p) : "memory");
				free(p);
				usleep(10000);
			}
			return 0;
		}
	END
	gcc -O1 -DCALLS="$1" -o counting counting.c "${@:2}"
}

calls() {
	"$KRON" report --json t | json "sum(f['calls'] for f in d if f['function'] == '$1')"
}

@test "who attaches and can place no probe says so, and where the reasons are" {
	counting 3000
	./counting &
	run "$KRON" record --pid $! --tactics relay -F counted --for 100ms
	kill $!
	[ "$status" = 0 ]
	[[ $output == *"no probe could be placed: \`kron info kron.data\` says why"* ]]
	run "$KRON" info
	[[ $output == *"the tactics for it are switched off"* ]]
}

@test "traps alone record everything" {
	counting 20
	"$KRON" record -q -o t --tactics int3 -F counted ./counting
	[ "$(calls counted)" = 20 ]
}

@test "a static-pie's malloc is found by its name, though ld has made it local" {
	counting 20 -static-pie
	"$KRON" record -q -o t -F malloc ./counting
	[ "$(calls malloc)" -ge 20 ]
	[ "$(calls malloc)" -lt 60 ]
}

@test "a process that was killed a moment ago has ended, and is not a thread of the kernel" {
	local i
	for i in $(seq 30); do
		sleep 60 &
		kill -9 $!
		run "$KRON" record --pid $! --for 10ms
		[ "$status" = 125 ]
		[[ $output == *"process "*" has ended"* || $output == *"there is no process "* ]]
	done
}

@test "memcheck, whose code runs as the program's, is left alone" {
	command -v valgrind >/dev/null || skip "valgrind is not installed"
	run "$KRON" record -o t -- valgrind -q ls -d /
	[ "$status" = 0 ]
	[[ $output == *"is a tool of valgrind"* ]]
	[ "${lines[0]}" = / ]
}

@test "a static loader that is none of Go's is not called one" {
	proot true || skip "no proot"
	run -0 "$KRON" record -L '*' -- proot true
	[[ $output == *"untraced: /tmp/prooted-"*" is a static program that has loaded a dynamic one"* ]]
	[[ $output != *" Go "* ]]
}

@test "a program that no answer reaches runs untraced, and kron info says so" {
	local recorder
	need perl
	XDG_CACHE_HOME=$T/cold "$KRON" record -q -p '*%insns count:3' -o data -- perl -e 'print "ran\n"' >out 2>err &
	recorder=$!
	# from before its first question on; the plan of every instruction takes longer than that
	until pgrep -x -P $recorder perl >pid; do :; done
	kill -STOP $recorder
	# it gives up, runs, and is a zombie then
	until grep -q '^State:.Z' "/proc/$(cat pid)/status"; do sleep 0.1; done
	kill -CONT $recorder
	wait $recorder
	[ "$(cat out)" = ran ]
	"$KRON" info data >info
	cat info
	grep -Eq '^ +[0-9]+  (it never loaded|it ended before|it did not wait|its plan was still being made)' info
}

# Whatever a program's limits leave it, kron takes nothing that it needs to start.
@test "under small limits a program runs as it does without kron, untraced" {
	local limit kib said
	printf '#include <stdio.h>\nint main(void) { return puts("it ran") < 0; }\n' >small.c
	gcc -O1 -o small small.c
	for limit in v d; do
		for kib in 200 400 800 1200 2000 2400 2800 3200 3600 4000 5000 6000 7000 8000 9000 10000 12000; do
			bash -c "ulimit -$limit $kib; exec ./small" >want 2>&1 || continue
			said=$(timeout 60 "$KRON" record -- bash -c "ulimit -$limit $kib; exec ./small" 2>&1 >got) ||
				{ echo "ulimit -$limit $kib: $said"; false; }
			cmp want got
		done
	done
	bash -c 'ulimit -v 5000; exec env' | grep -v '^_=' | sort >want
	"$KRON" record -- bash -c 'ulimit -v 5000; exec env' 2>said | grep -v '^_=' | sort >got
	diff want got
	grep -q "untraced: .* leave no room for libkron-rt.so" said
	run "$KRON" record -- bash -c 'ulimit -d 1200; exec ./small'
	[ "$status" = 0 ]
	[[ $output == *"untraced: "*"leave no room for libkron-rt.so"* ]]
}

@test "a program that may have few files open runs, and the reason may be just that" {
	printf '#include <stdio.h>\nint main(void) { return puts("it ran") < 0; }\n' >small.c
	gcc -O1 -o small small.c
	run "$KRON" record -- bash -c 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4; exec ./small'
	[ "$status" = 0 ]
	[[ $output == *"it ran"* && $output == *"untraced: it was started and never reported to kron: "*"too few file descriptors (ulimit -n)"* ]]
}

# memory.c: "run FILE": FILE, copied to a file without a name, is executed; "load FILE": it is loaded as a library.
# What runs says how often it has called work().
from_memory() {
	cat >memory.c <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <fcntl.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		extern char **environ;
		int main(int argc, char **argv)
		{
			int from = open(argv[2], O_RDONLY), to = memfd_create("made", MFD_CLOEXEC);
			char part[65536], path[64];
			int (*work)(int);
			ssize_t n;

			while ((n = read(from, part, sizeof(part))) > 0)
				if (write(to, part, (size_t)n) != n)
					return 3;
			sprintf(path, "/proc/self/fd/%d", to);
			if (!strcmp(argv[1], "run"))
				return fexecve(to, argv + 2, environ);
			work = (int (*)(int))dlsym(dlopen(path, RTLD_NOW), "plug_work");
			return work ? 0 * work(1) : 4;
		}
	END
	gcc -O2 -o memory memory.c -ldl
	cat >worker.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		static int n;
		__attribute__((noipa)) void work(void) { n++; }
		int main(int argc, char **argv)
		{
			for (int i = 0; i < 1234; i++)
				work();
			while (argc > 1 && getppid() == atoi(argv[1]))
				work();
			printf("%d\n", n);
			return 0;
		}
	END
	gcc -O2 -include stdlib.h -o worker worker.c
	gcc -O2 -static -include stdlib.h -o worker.static worker.c
}

# calls of FUNCTION [MODULE] in what kron stat has written
calls_of() {
	awk -v f="$1" -v m="$2" '$2 == f && $3 == m { gsub(",", "", $1); print $1 }' rows
}

@test "programs that are executed from memory are recorded: fexecve() of a memfd" {
	from_memory
	for worker in ./worker ./worker.static; do
		"$KRON" stat -q -o rows -- ./memory run $worker >out
		[ "$(cat out)" = 1234 ]
		[ "$(calls_of work memfd:made)" = 1234 ]
		"$KRON" record -q -o "trace.${worker#./}" -- ./memory run $worker >out
		[ "$(cat out)" = 1234 ]
		"$KRON" report "trace.${worker#./}" | grep -q '  1,234 .* work \[memfd:made\]$'
	done
}

@test "what is executed from memory is recorded while it runs, too" {
	from_memory
	./memory run ./worker $$ &
	program=$!
	for _ in {1..1000}; do
		! grep -q memfd:made /proc/$program/maps || break
		sleep 0.01
	done
	"$KRON" record -q -o trace --pid $program --for 200ms
	kill $program
	"$KRON" report trace | grep -q ' work \[memfd:made\]$'
}

@test "a library that is loaded from memory is recorded, or untraced with the reason" {
	from_memory
	plugs 1
	"$KRON" stat -q -L 'memfd:made' -o rows -- ./memory load ./plug0.so
	[ "$(calls_of plug_work memfd:made)" = 1 ]
	[ "$(id -u)" = 0 ] || skip "needs root, to be another user"
	chmod 777 .
	run setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_CACHE_HOME="$T/none" \
		"$KRON" record -L 'memfd:made' -o other -- ./memory load ./plug0.so
	[[ $output == *"untraced: /memfd:made: only root may read"* ]]
}

@test "programs in /dev/shm are recorded" {
	from_memory
	here=$(mktemp -p /dev/shm kron-test.XXXXXX)
	cp worker "$here"
	chmod 700 "$here"
	"$here" >out && [ "$(cat out)" = 1234 ] || { rm "$here"; skip "nothing in /dev/shm may be executed"; }
	"$KRON" stat -q -o rows -- "$here" || true
	rm "$here"
	[ "$(calls_of work "${here##*/}")" = 1234 ]
}

@test "below 2 GiB are four MiB of kron's at 0x6d000000, as kron-record(1) says" {
	cat >low.c <<-'END'
		#define _GNU_SOURCE
		#include <stdio.h>
		#include <sys/mman.h>
		int main(void)
		{
			const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

			for (unsigned long at = 0x6c000000; at < 0x6f000000; at += 1 << 20)
				if (mmap((void *)at, 1 << 20, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
					printf("%lx ", at);
				else
					munmap((void *)at, 1 << 20);
			puts(mmap(0, 640 << 20, PROT_NONE, flags | MAP_32BIT, -1, 0) == MAP_FAILED ? "no room" : "room");
			return 0;
		}
	END
	gcc -O2 -o low low.c
	[ "$(./low)" = room ]
	"$KRON" record -q -- ./low >out
	[ "$(cat out)" = "6d000000 6d100000 6d200000 6d300000 room" ]
}
