# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Debian's programs, each untraced and traced, executable alone and with all libraries.
# Source it after subjects.bash.

have() {
	command -v "$1" >/dev/null && return 0
	tap_skip "$1" "not installed"
	return 1
}

# both NAME CMD...: in both modes
both() {
	local name=$1
	shift
	tap "$name, exe" behaves "${name//[ \/]/_}" exe "$@"
	tap "$name, lib" behaves "${name//[ \/]/_}" lib "$@"
}

# What run numbers and clocks leave in the output.
hide_times() {
	hide() {
		[ ! -e "$1/stderr" ] || sed -i -E 's/[0-9]+\.[0-9]+ ?(s|ms|sec)/TIME/g' "$1/stderr"
	}
}

# a small tree of C files with a Makefile
small_tree() {
	local i
	mkdir -p tree
	for i in 1 2 3 4 5 6; do
		printf 'int part%d(int x)\n{\n\tint s = 0;\n\tfor (int i = 0; i < x; i++)\n\t\ts += i %% %d;\n\treturn s;\n}\n' \
			"$i" "$((i + 1))" >"tree/part$i.c"
	done
	cat >tree/main.c <<-'END'
		#include <stdio.h>
		int part1(int), part2(int), part3(int), part4(int), part5(int), part6(int);
		int main(void)
		{
			printf("%d\n", part1(100) + part2(90) + part3(80) + part4(70) + part5(60) + part6(50));
			return 0;
		}
	END
	cat >tree/Makefile <<-'END'
		objects = main.o part1.o part2.o part3.o part4.o part5.o part6.o
		all: program
			@./program
		program: $(objects)
			@gcc -o $@ $(objects)
		%.o: %.c
			@gcc -O1 -c -o $@ $<
	END
}

# text that compresses: words by a fixed rule
text() { # text BYTES
	LC_ALL=C awk -v n="$1" 'BEGIN { x = 42; while (s < n) { x = (x * 1103515245 + 12345) % 2147483648;
		w = sprintf("w%x ", x % 5000); printf "%s", w; s += length(w); if (x % 13 == 0) print "" } }'
}
