#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a board sends over its cable: received by a file, a FIFO, sockets, and by nobody.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/e2e/board/board.bash"
bats_require_minimum_version 1.5.0

RDSAMPLE=$KRON_TOP_BUILD/board/toolkit/mk_rdsample

has_size() { # has_size FILE BYTES
	[ -e "$1" ] && [ "$(stat -c %s "$1")" -ge "$2" ]
}

# The board's lock of its cable is free: nobody is at its far end.
nobody_is_there() {
	"$PYTHON" - "$(board_object "$1")" <<-'EOF'
		import fcntl, os, struct, sys
		fd = os.open(sys.argv[1], os.O_RDWR)
		asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2, 1, 0)
		got = fcntl.fcntl(fd, 36, asked)  # F_OFD_GETLK
		sys.exit(struct.unpack("hhqqi4x", got)[0] != fcntl.F_UNLCK)
	EOF
}

triggers() { # triggers BOARD: always the same, at the same ticks of its virtual clock
	local i
	export KRON_BOARD=$1
	"$KRON" ctl write source0 0x00c00005
	for i in $(seq 12); do
		"$KRON" ctl write counter$i $((i * 1111))
		"$KRON" ctl write high 0xabc$i
		"$KRON" ctl write $([ $((i % 4)) = 0 ] && echo resource || echo trace)3 "$((i * 77))"
		"$KRON" ctl tick $((2000 + i))
	done
	unset KRON_BOARD
}

# n samples, each with its number; prints how many were lost
numbers() {
	cat >numbers.c <<-'EOF'
		#include <mk.h>
		#include <stdio.h>
		#include <stdlib.h>
		int main(int argc, char **argv)
		{
			unsigned i, n = (unsigned)atoi(argv[1]);
			(void)argc;
			MK_DEFAULT_MAP();
			mk_overrun = 0;
			for (i = 0; i < n; i++)
				mk_ts0 = i;
			printf("%u\n", (unsigned)mk_overrun);
			return 0;
		}
	EOF
	[ -x numbers ] || gcc -O2 numbers.c -o numbers -I"$KRON_TOP_SRC/include" \
		"$KRON_TOP_BUILD/board/libmk/libmk.a" -pthread
	KRON_BOARD=$1 ./numbers "$2"
}

@test "the cable carries the bytes that local memory would hold" {
	"$KRON" board create "$B" --virtual-clock
	"$KRON" board create "$B-c" --virtual-clock --cable bytes
	[ "$("$KRON" ctl --board "$B-c" read config)" = 90003001 ]
	triggers "$B"
	triggers "$B-c"
	"$RDSAMPLE" -b "$B" -f memory.dat
	size=$((9 * 20 + 3 * 84))
	[ "$(stat -c %s memory.dat)" = $size ]
	[ "$("$KRON" ctl --board "$B-c" read map)" = ff000000 ] # nothing went to memory
	wait_until has_size bytes $size
	"$KRON" board rm "$B-c"
	# the byte that left the FIFO first is the most significant one of a word
	"$PYTHON" - <<-'EOF'
		import struct
		words = [w for w, in struct.iter_unpack("<I", open("memory.dat", "rb").read())]
		assert open("bytes", "rb").read() == struct.pack(f">{len(words)}I", *words)
	EOF
	"$RDSAMPLE" --cable bytes -f cable.dat
	cmp memory.dat cable.dat
	"$RDSAMPLE" --cable - -f - <bytes | cmp memory.dat
	# a sample that is not whole, and bytes of none
	(printf '\x01\x02'; head -c 90 bytes) >cut
	run "$RDSAMPLE" -v --cable cut -f cut.dat
	[ "$status" = 0 ]
	[[ $output == *"30 bytes left out: the newest sample is not all there"* ]]
	[[ $output == *"2 bytes left out: they are in no sample"* ]]
	[[ $output == *"3 Trace and 0 Resource samples, to cut.dat"* ]]
	head -c 60 memory.dat | cmp - cut.dat
}

@test "two bytes a sequence, as the clock says" {
	# a sequence takes 1000 clocks, and one sample has ten of them
	"$KRON" board create "$B" --virtual-clock --drain 1000 --cable bytes
	export KRON_BOARD=$B
	"$KRON" ctl write trace0 7
	"$KRON" ctl tick 500
	for n in 2 4 6 8; do
		"$KRON" ctl tick 1000
		wait_until has_size bytes $n
	done
	[ "$(stat -c %s bytes)" = 8 ]
	"$KRON" ctl tick 400 # the fifth is not over
	[ "$(stat -c %s bytes)" = 8 ]
	"$KRON" ctl tick 20000
	wait_until has_size bytes 20
	[ "$(od -An -tu1 -j12 bytes | tr -s ' ')" = " 0 0 0 0 0 0 0 7" ]
}

@test "samples are read as they come, by FIFO, socket and from the board" {
	mkfifo fifo
	"$KRON" board create "$B-1" --cable fifo
	"$RDSAMPLE" -f - --follow --cable fifo >1.dat &
	p1=$!
	"$RDSAMPLE" -f - --follow --cable unix:sock >2.dat &
	p2=$!
	wait_until test -S sock
	"$KRON" board create "$B-2" --cable sock
	"$KRON" board create "$B-3" --cable -
	"$RDSAMPLE" -f - --follow -b "$B-3" >3.dat &
	p3=$!
	for i in 1 2 3; do
		lost=$(numbers "$B-$i" 3000)
		echo $((3000 - lost)) >taken.$i
		wait_until has_size $i.dat $((20 * (3000 - lost)))
	done
	# they have come although nothing has ended; and now it does
	"$KRON" board rm "$B-1"
	"$KRON" board rm "$B-2"
	kill -INT $p3
	wait $p1 $p2 $p3
	"$PYTHON" - <<-'EOF'
		import struct
		for i in "123":
		    got = [s[4] for s in struct.iter_unpack("<5I", open(i + ".dat", "rb").read())]
		    assert len(got) == int(open("taken." + i).read()), len(got)
		    assert got == sorted(set(got)) and got[0] == 0, got[:10]
		    assert len(got) < 3000 or got == list(range(3000))
	EOF
}

@test "what the far end does not take fills the FIFOs, and is then counted" {
	"$KRON" board create "$B" --cable -
	"$KRON" ctl --board "$B" discard
	lost=$(numbers "$B" 20000)
	# 131072 values of 16 bits, 1024 bytes, 4 samples, and one that has begun to go
	taken=$((20000 - lost))
	[ $taken -ge 13162 ] && [ $taken -le 13163 ]
	"$RDSAMPLE" -f - --follow -b "$B" >all.dat &
	p=$!
	wait_until has_size all.dat $((20 * taken))
	run "$RDSAMPLE" -f - --follow -b "$B"
	refuses_with "another process takes what board $B sends"
	[ "$(numbers "$B" 10)" = 0 ] # there is room again
	wait_until has_size all.dat $((20 * (taken + 10)))
	kill -TERM $p
	wait $p
	"$PYTHON" - $taken <<-'EOF'
		import struct, sys
		taken = int(sys.argv[1])
		s = list(struct.iter_unpack("<5I", open("all.dat", "rb").read()))
		assert [x[4] for x in s] == list(range(taken)) + list(range(10))
		# the first one after the loss says so: FIFO overflow, bit 1 of the header
		assert [x[0] >> 25 & 1 for x in s] == [0] * taken + [1] + [0] * 9
	EOF
}

@test "a reader that goes loses nothing of what comes after" {
	mkfifo fifo
	"$KRON" board create "$B" --cable fifo
	"$RDSAMPLE" -f - --follow --cable fifo >1.dat &
	p=$!
	[ "$(numbers "$B" 100)" = 0 ]
	wait_until has_size 1.dat 2000
	kill -INT $p
	wait $p
	[ "$(numbers "$B" 50)" = 0 ]
	wait_until nobody_is_there "$B"
	"$KRON" board connect "$B" --cable rest
	wait_until has_size rest 1000
	"$RDSAMPLE" --cable rest -f 2.dat
	"$PYTHON" - <<-'EOF'
		import struct
		assert [s[4] for s in struct.iter_unpack("<5I", open("2.dat", "rb").read())] == list(range(50))
	EOF
	run "$KRON" board connect "$B" --cable other
	refuses_with "another process takes what board $B sends over its cable"
}

@test "what is not a far end is said in one sentence" {
	run "$KRON" board create "$B" --cable no/such/folder
	refuses_with "cannot write no/such/folder"
	[ ! -e "$(board_object "$B")" ]
	run "$KRON" board create "$B" --cable unix:nobody
	[ "$status" = 1 ]
	[ ! -e "$(board_object "$B")" ]
	"$KRON" board create "$B"
	run "$KRON" board connect "$B" --cable file
	refuses_with "kron board create --cable"
	run "$RDSAMPLE" -f - --follow -b "$B"
	refuses_with "kron board create --cable"
	run "$KRON" board connect "$B"
	[ "$status" = 2 ]
	run "$RDSAMPLE" -f - --follow -s 0
	[ "$status" = 2 ]
	run "$RDSAMPLE" --cable none
	refuses_with "cannot read none: No such file"
}
