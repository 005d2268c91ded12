# SPDX-License-Identifier: MIT
# kron: patched by itself, it patches itself and others into the same bytes

prepare() {
	:
}

setup() {
	program kron "$kron"
}

tests() {
	local how
	for how in plain jumps; do
		printf "$how %s\\n" kron /usr/bin/bash /usr/bin/git /lib/x86_64-linux-gnu/libc.so.6
		printf "$how insns %s\\n" kron /usr/bin/bash
	done
}

run() {
	local how=() k=$kron file=${1##* }
	[ -e "$bin/kron" ] && k=$bin/kron
	[ "$file" = kron ] && file=$kron
	case $1 in jumps*) how+=(--jumps) ;; esac
	case $1 in *insns*) how+=(-p '*%insns count:1') ;; esac
	probed "$k" patch -q "${how[@]}" -o out "$file" && sha256sum <out
}

summary() {
	cat "$1"
}
