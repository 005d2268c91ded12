#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Go's programs: their functions are known without symbols, and they run and count as ever.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup_file() {
	export BINS=$BATS_FILE_TMPDIR GOFLAGS=-mod=mod GOCACHE=$BATS_FILE_TMPDIR/cache
	local life=$KRON_TOP_SRC/tests/bins/go_life.go
	command -v go >/dev/null || return 0
	CGO_ENABLED=0 timeout 60 go build -o "$BINS/named" "$life" || return 0
	CGO_ENABLED=0 timeout 60 go build -ldflags='-s -w' -o "$BINS/bare" "$life" || return 0
	# the same with a C library
	sed 's|^import (|// static int one(void) { return 1; }\nimport "C"\n\nimport (|
		s|sum\[k\] += hit(i)|sum[k] += hit(i) * int(C.one())|' "$life" >"$BINS/cgo.go"
	CGO_ENABLED=1 timeout 60 go build -ldflags='-s -w' -o "$BINS/cgo" "$BINS/cgo.go" || true
}

# here NAME...: copies of what was built
here() {
	local name
	for name; do
		[ -e "$BINS/$name" ] || skip "go cannot build it here"
		cp "$BINS/$name" .
	done
}

# without_headers IN OUT: the section headers are gone
without_headers() {
	"$PYTHON" - "$1" "$2" <<-'END'
		import struct, sys
		data = bytearray(open(sys.argv[1], "rb").read())
		struct.pack_into("<Q", data, 40, 0)
		struct.pack_into("<HH", data, 60, 0, 0)
		open(sys.argv[2], "wb").write(data)
	END
	chmod +x "$2"
}

calls() {
	"$KRON" report --json t | json "sum(f['calls'] for f in d if f['function'] == '$1')"
}

@test "a stripped program has the functions that the symbols of the other name" {
	here named bare
	without_headers bare headless
	# runtime.text and runtime.etext are the ends of the code
	readelf -sW named | awk '$4 == "FUNC" && $8 !~ /^runtime[.]e?text$/ { print $2 }' |
		sed 's/^0*/0x/' | sort -u >truth
	[ "$(wc -l <truth)" -gt 1000 ]
	for p in named bare headless; do
		"$KRON" list --json $p |
			json '"\n".join(hex(f["address"]) if isinstance(f["address"], int) else f["address"]
				for f in d["functions"])' | sort >found
		[ -z "$(comm -13 truth found)" ]
		missing=$(comm -23 truth found | wc -l)
		[ $((missing * 200)) -le "$(wc -l <truth)" ]
	done
	"$KRON" list bare | grep -q ' main\.hit$'
}

@test "static: patched, it does the same, and its calls are counted" {
	here named bare
	without_headers bare headless
	for p in named bare headless; do
		"$KRON" patch -q -o $p.kron $p
		./$p >want
		./$p.kron >got
		cmp want got
		"$KRON" record -q -o t -- ./$p.kron >got </dev/null
		cmp want got
		[ "$(calls main.hit)" = 8800 ]
		[ "$(calls main.saves)" = 9 ]
		[ "$("$KRON" info --json t | json 'd["lost"]')" = 0 ]
	done
}

@test "with a C library: recorded as it is" {
	here cgo
	./cgo >want
	"$KRON" record -q -o t -- ./cgo >got </dev/null
	cmp want got
	[ "$(calls main.hit)" = 8800 ]
	[ "$(calls main.saves)" = 9 ]
	# its runtime would find the faults of the program at addresses that are none of Go's
	run "$KRON" patch --jumps -o cgo.kron cgo
	[ "$status" = 1 ]
	[[ $output == *"must see faults where they happen"* ]]
}

@test "dynamic, but threads with data of their own: traced from its start, or as a patched copy" {
	cat >prog.S <<-'END'
			.section .note.go.buildid, "a", @note
			.long 4, 4, 4
			.asciz "Go\0"
			.long 1
			.bss
			.balign 4096
		data:	.skip 8192
			.text
			.globl _start
			.type f, @function
		f:	lea 1(%rdi), %rax
			nop
			nop
			ret
			.size f, . - f
			.type _start, @function
		_start:	lea 4096+data(%rip), %rsi
			mov $0x1002, %edi	# ARCH_SET_FS
			mov $158, %eax
			syscall
			xor %edi, %edi
		1:	call f
			mov %rax, %rdi
			cmp $1000, %rdi
			jne 1b
			lea data(%rip), %rdi
			mov $8192, %ecx
			xor %eax, %eax
			repe scasb
			mov $7, %edi
			je 2f
			mov $1, %edi		# somebody wrote there
		2:	mov $60, %eax
			syscall
			.size _start, . - _start
	END
	gcc -nostdlib -pie -Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2 prog.S -o prog
	run ./prog
	[ "$status" = 7 ]
	run "$KRON" record -o t -- ./prog
	[ "$status" = 7 ]
	[[ $output != *untraced* ]]
	[ "$(calls f)" = 1000 ]
	run "$KRON" record -o t -- sh -c 'exec ./prog'
	[ "$status" = 7 ]
	[[ $output == *"is a Go program without a C library: "*"kron patch"* ]]
	"$KRON" patch -q -o prog.kron prog
	for how in ./prog.kron 'sh -c "exec ./prog.kron"'; do
		eval "run '$KRON' record -q -o t -- $how"
		[ "$status" = 7 ]
		[ -z "$output" ]
		[ "$(calls f)" = 1000 ]
	done
}

@test "a table of a version of Go that is not known is refused, and named" {
	here bare
	at=$(readelf -SW bare | awk '{ sub(/^ *\[ */, "") } $2 == ".gopclntab" { print $5 }')
	printf '\xf6' | dd of=bare bs=1 seek=$((0x$at)) conv=notrunc status=none
	run "$KRON" patch -o bare.kron bare
	[ "$status" = 1 ]
	[[ $output == *"version of Go that is not known here: 0xfffffff6"* ]]
	[ ! -e bare.kron ]
}
