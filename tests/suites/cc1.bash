# SPDX-License-Identifier: MIT
# cc1: gcc's compiler makes the same assembly of large sources

cc1=/usr/lib/gcc/x86_64-linux-gnu/12/cc1

prepare() { # preprocessed once: cc1 alone is what is tested
	local f
	mkdir -p "$src" && cd "$src" && fetch sqlite3 && fetch zlib || return 1
	for f in "$work"/zlib/*.c; do
		gcc -E -I"$work/zlib" "$f" -o "zlib-$(basename "$f" .c).i"
	done
	[ -e "$work/sqlite3/sqlite3.c" ] ||
		(cd "$work/sqlite3" && { [ -e Makefile ] || ./configure --with-tcl=/usr/lib/tcl8.6; } && make sqlite3.c) &&
		gcc -E "$work/sqlite3/sqlite3.c" -o sqlite3.i && gcc -E "$work/sqlite3/shell.c" -o shell.i
	for f in $(ls -S "$top"/inject/*.c | head -8); do
		gcc -E -I"$top" -I"$top/include" "$f" -o "kron-$(basename "$f" .c).i" || rm -f "kron-$(basename "$f" .c).i"
	done
}

setup() {
	program cc1 $cc1
}

tests() {
	local f o
	for f in "$src"/*.i; do
		for o in O0 O1 O2 O3; do
			echo "$(basename "$f" .i) $o"
		done
	done
}

run() {
	local cc=$cc1
	[ -e "$bin/cc1" ] && cc=$bin/cc1
	cd "$src" || return 1 # the debug information names it
	probed "$cc" -fpreprocessed "${1% *}.i" -quiet -g "-${1#* }" -o "$dir/out.s" &&
		grep -v '"GNU C' "$dir/out.s" | cksum
}

summary() {
	cat "$1"
}
