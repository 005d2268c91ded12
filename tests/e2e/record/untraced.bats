#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# untraced.bats - modules that stay untraced are named, with the reason, at the end and by `kron info`.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

# plugs N: plug0.so ... and a program that loads those that it is told, when nothing may become
# executable any more
plugs() {
	local i
	for i in $(seq 0 $(($1 - 1))); do
		gcc -O2 -fPIC -shared -DID="$i" -o "plug$i.so" "$KRON_TOP_SRC/tests/torture/plug.c"
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

@test "modules with the same reason are named together, three of them at most" {
	plugs 5
	run "$KRON" record -L '*' -- ./locked ./plug0.so ./plug1.so ./plug2.so ./plug3.so ./plug4.so
	[ "$status" != 77 ] || skip "no PR_SET_MDWE here"
	[ "$status" = 0 ]
	[[ $output == *"untraced (5 times): plug0.so, plug1.so, plug2.so and 2 more: trampolines could not be mapped: Permission denied"* ]]
	for i in 0 1 2 3 4; do
		"$KRON" info | grep -q "/plug$i.so: trampolines could not be mapped: Permission denied"
	done
}

@test "one module is named by its path" {
	plugs 1
	run "$KRON" record -L '*' -- ./locked ./plug0.so
	[ "$status" != 77 ] || skip "no PR_SET_MDWE here"
	[[ $output == *"kron: untraced: $T/plug0.so: trampolines could not be mapped: Permission denied"* ]]
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
