#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# untraced.bats - modules that stay untraced are named, with the reason, at the end and by `kron info`.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../..}/tests/lib.sh"

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
