#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron patch: the copy behaves as the original, changes nothing else, and under kron record gives
# the counts that the original gives.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
bats_require_minimum_version 1.5.0

calc() { compile calc bins/calc.c "$@"; }

# counts DIR: calls by function; one without a name is called after its file
counts() {
	"$KRON" report --json "$1" |
		json '"\n".join(sorted("%s %d" % (f["function"], f["calls"]) for f in d))' |
		sed 's/^[^ +]*+0x/+0x/' | sort
}

# both PROGRAM COPY ARG...: same output and status, alone and recorded, and the same counts
both() {
	local old=$1 new=$2 want=0 got=0
	shift 2
	"$old" "$@" >want 2>want.err </dev/null || want=$?
	"$new" "$@" >got 2>got.err </dev/null || got=$?
	[ "$want" = "$got" ]
	cmp want got
	diff want.err got.err
	"$KRON" record -q -o old -- "$old" "$@" >got 2>got.err </dev/null || got=$?
	[ "$want" = "$got" ]
	cmp want got
	"$KRON" record -q -o new -- "$new" "$@" >got 2>got.err </dev/null || got=$?
	[ "$want" = "$got" ]
	cmp want got
	[ "$("$KRON" info --json new | json 'd["samples"] > 0 and d["lost"] == 0')" = True ]
	diff <(counts old) <(counts new)
}

# lint OLD NEW: eu-elflint has nothing to say about NEW that it does not say about OLD
lint() {
	command -v eu-elflint >/dev/null || return 0
	diff <(eu-elflint --gnu-ld "$1" 2>&1) <(eu-elflint --gnu-ld "$2" 2>&1)
}

@test "a program compiled every way: same output, same counts" {
	for flags in -O0 -O2 "-O2 -no-pie" "-O3 -fcf-protection=full" "-Os -Wl,-z,noseparate-code"; do
		# shellcheck disable=SC2086
		calc $flags
		for jumps in -q --jumps; do
			"$KRON" patch $jumps -o calc.kron calc
			both ./calc ./calc.kron
			lint calc calc.kron
		done
	done
}

@test "stripped, and without section headers" {
	calc -s
	"$KRON" patch -q -o calc.kron calc
	both ./calc ./calc.kron
	objcopy --help | grep -q strip-section-headers && objcopy --strip-section-headers calc bare
	[ -e bare ] || "$PYTHON" - <<-'END'
		import struct
		b = bytearray(open("calc", "rb").read())
		struct.pack_into("<Q", b, 40, 0)
		struct.pack_into("<HH", b, 60, 0, 0)
		open("bare", "wb").write(b)
	END
	chmod +x bare
	"$KRON" patch -q -o bare.kron bare
	both ./bare ./bare.kron
	lint bare bare.kron
}

@test "section headers that were cut off are not looked for in what kron adds" {
	head -c -1000 /bin/bash >cut
	chmod +x cut
	readelf -h cut | grep -qE 'Start of section headers: +[1-9]'
	"$KRON" patch -q -o cut.kron cut
	readelf -h cut.kron | grep -qE 'Start of section headers: +0 '
	[ "$(./cut.kron -c 'echo $((6 * 7))')" = 42 ]
}

@test "bash, perl, gzip: the counts of the original" {
	local script='f() { local i; for i in {1..50}; do g "$i"; done; }; g() { echo $(($1 * 3)); }; f'
	"$KRON" patch --jumps -o bash.kron /bin/bash
	"$KRON" patch --jumps -o gzip.kron /bin/gzip
	both /bin/gzip ./gzip.kron -c "$KRON_TOP_SRC/doc/HOWTO_TEST.md"
	same_behaviour ./bash.kron -c "$script"
	lint /bin/bash bash.kron
	lint /bin/gzip gzip.kron
}

@test "a library, and the C library itself" {
	mkdir lib
	"$KRON" patch --jumps -o lib/libc.so.6 /lib/x86_64-linux-gnu/libc.so.6
	lint /lib/x86_64-linux-gnu/libc.so.6 lib/libc.so.6
	export LD_LIBRARY_PATH=$PWD/lib
	same_behaviour /bin/sh -c 'echo $(/bin/echo one) | /bin/cat'
	# the hook of execve is in the patched library: the children are in the trace
	[ "$("$KRON" info --json | json 'd["processes"] >= 3')" = True ]
	"$KRON" record -q -L 'libc.so*' -- /bin/echo two >out
	[ "$(cat out)" = two ]
	"$KRON" report | grep -q 'libc.so.6'
}

@test "only what was selected, and less of it when recording" {
	calc
	"$KRON" patch -q -F 'sum*' -F main -o calc.kron calc || "$KRON" list calc
	"$KRON" list --json calc.kron | json 'sorted(f["name"] for f in d["functions"])' >names
	grep -q main names
	[ "$(wc -c <names)" -lt 200 ]
	"$KRON" record -q -F main -- ./calc.kron >out
	[ "$("$KRON" report --json | json '[f["function"] for f in d]')" = "['main']" ]
}

@test "what cannot be patched is refused with a sentence, and OUT stays as it was" {
	calc
	echo old >out
	run "$KRON" patch -o out "$KRON_TOP_SRC/Makefile.am"
	[ "$status" = 1 ]
	[[ $output == *"is not an ELF file"* ]]
	run "$KRON" patch -F nothing_of_that_name -o out calc
	[ "$status" = 1 ]
	[[ $output == *"no function was selected"* ]]
	"$KRON" patch -q -o calc.kron calc
	run "$KRON" patch -o out calc.kron
	[ "$status" = 1 ]
	[[ $output == *"patch the original"* ]]
	run "$KRON" patch calc
	[ "$status" = 2 ]
	[ "$(cat out)" = old ]
	[ -z "$(ls -A | grep '[.]kron-')" ]
}

@test "OUT: mode, links, no half of it, nothing but regular files" {
	calc
	chmod 751 calc
	"$KRON" patch -q -o calc.kron calc
	[ "$(stat -c %a calc.kron)" = 751 ]
	ln -s real link
	run "$KRON" patch -o link calc
	[ "$status" = 1 ]
	touch real
	"$KRON" patch -q -o link calc
	[ -L link ] && [ -f real ]
	cmp real calc.kron
	mkfifo pipe
	run "$KRON" patch -o pipe calc
	[ "$status" = 1 ]
	[ -p pipe ]
	run "$KRON" patch -o no/such/folder calc
	[ "$status" = 1 ]
	cp calc self
	"$KRON" patch -q -o self self
	cmp self calc.kron
	# no room: 64 KiB at most
	run bash -c "ulimit -f 64; trap '' XFSZ; '$KRON' patch -o full /bin/bash"
	[ "$status" = 1 ]
	[ ! -e full ]
	[ -z "$(ls -A | grep '[.]kron-')" ]
}

@test "of the old bytes the header and, with --jumps, jumps change, and nothing else" {
	"$KRON" patch -q -o asleep /bin/bash
	"$KRON" patch --jumps -o bash.kron /bin/bash
	cmp <(head -c "$(stat -c %s /bin/bash)" asleep | tail -c +65) <(tail -c +65 /bin/bash)
	"$PYTHON" - <<-'END'
		old, new = (open(f, "rb").read() for f in ("/bin/bash", "bash.kron"))
		changed = [i for i in range(64, len(old)) if old[i] != new[i]]
		sections = __import__("subprocess").run(["readelf", "-SW", "/bin/bash"],
			capture_output=True, text=True).stdout.splitlines()
		at = lambda name: next(l.split("PROGBITS")[1].split() for l in sections if f" {name} " in l)
		off, size = (int(v, 16) for v in at(".text")[1:3])
		text = [i for i in changed if off <= i < off + size]
		# and the stub by which it calls sigaction()
		off, size = (int(v, 16) for v in at(".plt")[1:3])
		stub = [i for i in changed if off <= i < off + size]
		assert text and 0 < len(stub) <= 6 and stub[-1] - stub[0] < 6
		assert changed == sorted(text + stub)
		# e_entry, e_phoff, e_shoff, e_phnum, e_shnum
		assert all(i in (*range(24, 48), 56, 57, 60, 61)
			for i in range(64) if old[i] != new[i])
	END
}

@test "more than a GiB of data between the program's code and kron's" {
	echo 'char big[1500l << 20]; int main(void) { return big[1400l << 20]; }' >far.c
	"${CC:-gcc}" -O1 -o far far.c
	"$KRON" patch -q -o far.kron far
	both ./far ./far.kron
	"$KRON" list far.kron >list
	grep -q main list
}

@test "data past the end: found from the start, from the end and after the section headers" {
	cat >unpack.c <<-'END'
		#include <elf.h>
		#include <stdio.h>
		#include <stdlib.h>
		static void show(FILE *f, long at, int from)
		{
			char text[8];
			if (fseek(f, at, from) || fread(text, 8, 1, f) != 1)
				exit(1);
			printf("%.8s\n", text);
		}
		int main(int argc, char **argv)
		{
			FILE *f = fopen("/proc/self/exe", "rb");
			Elf64_Ehdr eh;
			if (fread(&eh, sizeof(eh), 1, f) != 1)
				exit(1);
			show(f, atol(argv[argc - 1]), SEEK_SET);
			show(f, -8, SEEK_END);
			show(f, eh.e_shoff + eh.e_shnum * eh.e_shentsize, SEEK_SET);
		}
	END
	compile unpack ./unpack.c
	local end
	end=$(stat -c %s unpack)
	printf 'archive.' >>unpack
	[ "$(./unpack "$end" | sort -u)" = archive. ]
	"$KRON" patch -q -o unpack.kron unpack
	both ./unpack ./unpack.kron "$end"
}

@test "a patched kron patches kron into the same bytes" {
	"$KRON" patch --jumps -o kron.1 "$KRON"
	./kron.1 patch --jumps -o kron.2 "$KRON"
	cmp kron.1 kron.2
	"$KRON" record -q -- ./kron.1 patch --jumps -o kron.3 "$KRON"
	cmp kron.1 kron.3
}

@test "debuggers and addr2line still know the program" {
	need gdb addr2line
	calc
	"$KRON" patch --jumps -o calc.kron calc
	at=$(nm calc | awk '$3 == "main" { print $1 }')
	[ "$(addr2line -e calc "$at")" = "$(addr2line -e calc.kron "$at")" ]
	run gdb -q -batch -ex 'break main' -ex run -ex bt -ex finish ./calc.kron
	[[ $output == *"#0  main"* ]]
	[ "$(readelf -n calc | grep 'Build ID')" = "$(readelf -n calc.kron | grep 'Build ID')" ]
}

@test "the user's probes: same samples and counts as without the file" {
	calc
	for jumps in -q --jumps; do
		"$KRON" patch $jumps -F main -p '7:work=ackermann' -p 'factor%return $retval' \
			-p 'ackermann%insns count:3' -o calc.kron calc
		./calc >want
		./calc.kron >got
		cmp want got
		"$KRON" record -q -o old -F main -p '7:work=ackermann' -p 'factor%return $retval' \
			-p 'ackermann%insns count:3' -- ./calc >got || cat got
		cmp want got
		"$KRON" record -q -o new -- ./calc.kron >got
		cmp want got
		for t in old new; do
			"$KRON" dump $t | awk '/event/ { sub(/.*event /, ""); sub(/ \[.*/, ""); print }' |
				sort | uniq -c >events.$t
			"$KRON" info --json $t | json 'd["counters"] if "counters" in d else 0' >counted.$t
		done
		[ -s events.new ]
		diff events.old events.new
		diff counted.old counted.new
	done
}

@test "every instruction of a program" {
	local script='my %h; $h{$_ % 7} .= $_ for 1..2000; print join ",", map { length $h{$_} } sort keys %h'
	"$KRON" patch --jumps -p '*%insns count:3' -o perl.kron /usr/bin/perl
	/usr/bin/perl -e "$script" >want
	./perl.kron -e "$script" >got
	cmp want got
	"$KRON" record -q -o new -- ./perl.kron -e "$script" >got
	cmp want got
}

@test "Go: goroutines come to their end" {
	need go
	cat >h.go <<-'END'
		package main
		import ("fmt"; "sync")
		func main() {
			var wg sync.WaitGroup
			r := make([]int, 8)
			for i := range r { wg.Add(1); go func(i int) { defer wg.Done(); r[i] = i * i }(i) }
			wg.Wait()
			fmt.Println(r)
		}
	END
	GOCACHE=$PWD/.cache GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o h h.go
	./h >want
	"$KRON" patch -o h.kron h
	for i in 1 2 3; do
		./h.kron >got
		cmp want got
		"$KRON" record -q -- ./h.kron >got
		cmp want got
	done
}
