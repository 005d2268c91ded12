#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kron board, ctl and status on boards of their own, without a recorder.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/e2e/board/board.bash"
bats_require_minimum_version 1.5.0

@test "a board is made, listed and removed" {
	"$KRON" board create "$B"
	"$KRON" board create "$B-2" --chip-fifo 2 --board-fifo 64 --drain 9 --cable - --vc --virtual-clock
	[ "$(stat -c '%a %u' "$(board_object "$B")")" = "600 $(id -u)" ]
	"$KRON" board list --json >list
	[ "$(json "[b['permanent'] for b in d if b['name'] == '$B']" <list)" = "[True]" ]
	[ "$(json "[b['recorder_pid'] for b in d if b['name'] == '$B']" <list)" = "[0]" ]
	"$KRON" board list | grep -q "^$B-2  *permanent"
	"$KRON" status --json --board "$B-2" >s
	[ "$(json 'd["geometry"]' <s)" = "{'chip_fifo': 2, 'board_fifo': 64, 'drain_memory': 9, 'drain_cable': 9, 'cable': 131072, 'vc': 1}" ]
	[ "$(json 'd["time"]' <s)" = virtual ]
	[ "$(json 'hex(d["config"]["value"])' <s)" = 0x90003001 ]
	"$KRON" board rm "$B"
	"$KRON" board rm "$B-2"
	[ ! -e "$(board_object "$B")" ]
	[ ! -e "$(board_object "$B-2")" ]
}

@test "what cannot be made or removed is said in one sentence" {
	"$KRON" board create "$B"
	run "$KRON" board create "$B"
	refuses_with "there is a board $B already"
	run "$KRON" board rm "$B-not"
	refuses_with "there is no board $B-not"
	for bad in '' .hidden 'a b' a/b ../x "$(printf 'x%.0s' $(seq 64))" $'new\nline'; do
		run "$KRON" board create "$bad"
		[ "$status" = 1 ]
		[[ $output == *"is not a name for a board"* ]]
	done
	for args in '' 'make x' 'list x' 'create a b' 'rm x --cable -' 'create x --json' \
		'create x --chip-fifo 17' 'create x --board-fifo 2' 'create x --drain 0'; do
		# shellcheck disable=SC2086
		run "$KRON" board $args
		[ "$status" = 2 ]
	done
}

@test "a board starts as the toolkit initialises it" {
	"$KRON" board create "$B"
	"$KRON" status --json --board "$B" >s
	[ "$(json 'hex(d["config"]["value"])' <s)" = 0x90003201 ]
	[ "$(json 'd["config"]["LOCAL"], d["config"]["MK_OE"], d["config"]["WRAPB"], d["config"]["TESTB"]' <s)" = "(True, True, False, True)" ]
	[ "$(json 'd["cpu_id"], d["filter"], d["map"], d["samples"], d["recorder_pid"]' <s)" = "(1, 65535, 0, 0, 0)" ]
	[ "$(json 'd["csr"]["sampling"], d["csr"]["write_wait"], d["csr"]["mode64"]' <s)" = "(True, False, True)" ]
	[ "$(json '{(c["enable"], c["mode"], c["clock"], c["bits"]) for c in d["counters"]}' <s)" = "{('disabled', 'external', 'timestamp', 32)}" ]
	"$KRON" status --board "$B" >text
	grep -q '^Filter  *ffff' text
	grep -q '^   0 sampling  *1 ' text
	grep -q '^  13 MK_OE  *1 ' text
	grep -q '^  15  *0  disabled' text
	# and so it is put back, whatever was done to it
	export KRON_BOARD=$B
	"$KRON" ctl write config 0x1dfc02
	"$KRON" ctl write map 0x123456
	[ "$("$KRON" ctl read config) $("$KRON" ctl read map)" = "901dfc02 ff123456" ]
	"$KRON" ctl reset
	[ "$("$KRON" ctl read config) $("$KRON" ctl read map)" = "90003201 ff000000" ]
}

@test "groups and sampling are switched" {
	export KRON_BOARD=$B
	"$KRON" board create "$B"
	[ "$("$KRON" ctl filter)" = ffff ]
	"$KRON" ctl filter 0x0f0F
	[ "$("$KRON" ctl filter)" = 0f0f ]
	"$KRON" ctl off 0 8-10
	[ "$("$KRON" ctl filter)" = 080e ]
	"$KRON" ctl on 4 14-15
	[ "$("$KRON" ctl filter)" = c81e ]
	"$KRON" ctl off all
	[ "$("$KRON" ctl filter)" = 0000 ]
	"$KRON" ctl on all
	[ "$("$KRON" ctl read filter)" = ffffffff ] # unused bits read as 1
	"$KRON" ctl sampling off
	"$KRON" ctl wait
	[ "$("$KRON" status --json | json 'd["csr"]["sampling"], d["csr"]["write_wait"]')" = "(False, True)" ]
	"$KRON" ctl sampling on
	"$KRON" ctl discard
	[ "$("$KRON" status --json | json 'd["csr"]["sampling"], d["csr"]["write_wait"]')" = "(True, False)" ]
	"$KRON" ctl write source3 0x00400007
	"$KRON" ctl off 3
	"$KRON" ctl reset
	[ "$("$KRON" status --json | json 'd["filter"], d["source"][3]')" = "(65535, 0)" ]
	for args in 'filter 10000' 'filter x' 'filter 1 2' 'on' 'on 16' 'on 5-3' 'off -1' 'off 3-' \
		'sampling maybe' 'wait 1' 'read' 'read nothing' 'read 0x1001' 'read 0x2000000' \
		'read source8' 'read csr0' 'write csr' 'write csr 1x' 'write csr 0x100000000' 'frob' ''; do
		# shellcheck disable=SC2086
		run "$KRON" ctl $args
		[ "$status" = 2 ] || { echo "# ctl $args: $status $output"; false; }
	done
	run "$KRON" ctl tick 5
	refuses_with "runs by itself"
}

@test "MultiKron_vc: counters by programs, kron ctl and kron status" {
	export KRON_BOARD=$B
	"$KRON" board create "$B" --vc --virtual-clock
	cat >vc.c <<-'END'
		#include <mk.h>
		int main(void)
		{
			MK_DEFAULT_MAP();
			mk_vc_mode_64 = MK_ALL_FIELDS(MK_MODE_SOFTWARE);
			mk_vc_enable_64 = MK_ALL_FIELDS(MK_ENABLE_ON);
			for (unsigned i = 0; i < 1000; i++)
				mk_vc_count = i * 9 % MK_VC_COUNTERS;
			for (unsigned i = 0; i < 100; i++)
				mk_vc_count = 8191;
			mk_vc_page = 511;
			printf("%u\n", (unsigned)mk_vc_counter[15]);
			return 0;
		}
	END
	gcc -O2 vc.c -o vc -I"$KRON_TOP_SRC/include" "$KRON_TOP_BUILD/board/libmk/libmk.a" -pthread
	[ "$(./vc)" = 100 ]
	"$KRON" ctl write vc-count 27
	"$KRON" status --json >s
	[ "$(json 'd["vc"]["page"]' <s)" = 1 ]
	# 0, 9, 18 ... 8991; 27 once more, and those from 8192 on again from 0
	cat >want.py <<-'END'
		import collections, json, sys
		want = collections.Counter(i * 9 % 8192 for i in range(1000))
		want[8191] += 100
		want[27] += 1
		got = {c["number"]: c["value"] for c in json.load(open("s"))["vc"]["counters"]}
		sys.exit(got != dict(want))
	END
	python3 want.py
	[ "$("$KRON" ctl read vc-counter11)" = 00000002 ]
	[ "$("$KRON" ctl read vc-page)" = fffffe01 ]
	"$KRON" status | grep -q '^  8191  *100$'
	"$KRON" ctl write vc-mode 0x1111111111111111
	[ "$("$KRON" ctl read vc-mode)" = 1111111111111111 ]
	"$KRON" ctl tick 400
	[ "$("$KRON" ctl read vc-timestamp)" = "00$("$KRON" ctl read timestamp)" ]
}

@test "many make, change and remove a board at once" {
	for round in 1 2 3; do
		for i in $(seq 8); do
			("$KRON" board create "$B" 2>err.$i && echo made >>made || true) &
		done
		wait
		[ "$(wc -l <made)" = 1 ]
		[ "$(cat err.* | grep -c "there is a board $B already")" = 7 ]
		"$KRON" ctl --board "$B" off all
		for i in $(seq 0 15); do
			"$KRON" ctl --board "$B" on "$i" &
		done
		wait
		[ "$("$KRON" ctl --board "$B" filter)" = ffff ]
		for i in $(seq 4); do
			("$KRON" board rm "$B" 2>err.$i && echo removed >>removed || true) &
		done
		wait
		[ "$(wc -l <removed)" = 1 ]
		rm made removed err.*
	done
	[ ! -e "$(board_object "$B")" ]
}

@test "a kill while it is made leaves nothing" {
	before=$(ls -A /dev/shm | grep -c "$B" || true)
	for ms in $(seq 1 2 40); do
		timeout -s KILL "0.0$(printf %02d "$ms")" "$KRON" board create "$B" || true
		if [ -e "$(board_object "$B")" ]; then
			"$KRON" status --board "$B" >out
			"$KRON" board rm "$B"
		fi
	done
	[ "$(ls -A /dev/shm | grep -c "$B" || true)" = "$before" ]
}

@test "a chip that does not answer" {
	export KRON_BOARD=$B
	"$KRON" board create "$B"
	"$KRON" ctl write source1 99
	"$KRON" ctl write config 0x1201
	for c in filter 'filter 1' 'on 1' 'sampling off' wait 'read csr' 'write trace0 1' 'read 0x1010'; do
		# shellcheck disable=SC2086
		run "$KRON" ctl $c
		refuses_with "MK_OE is off in the Configuration Register"
	done
	[ "$("$KRON" ctl read config)" = 90001201 ]
	[ "$("$KRON" status --json | json 'd["source"][1], d["config"]["MK_OE"], d["filter"]')" = "(99, False, 65535)" ]
	"$KRON" ctl write config 0x3201
	[ "$("$KRON" ctl read source1)" = 00000063 ]
}

@test "registers are read and written by name and by offset" {
	export KRON_BOARD=$B
	"$KRON" board create "$B"
	"$KRON" ctl write source7 0xdeadbeef
	[ "$("$KRON" ctl read 0x109c)" = deadbeef ] # 0x1000 + 4 * 39
	"$KRON" ctl write 0x1104 123456             # counter 1
	[ "$("$KRON" ctl read counter1)" = 0001e240 ]
	"$KRON" ctl write mode 0x2
	"$KRON" ctl write enable 0x2
	"$KRON" ctl write increment0 0
	"$KRON" ctl write increment0 0
	[ "$("$KRON" ctl read counter0)" = 00000002 ]
	[ "$("$KRON" status --json | json 'd["counters"][0]["mode"], d["counters"][0]["enable"]')" = "('software', 'enabled')" ]
	"$KRON" ctl write memory4194303 0x12345678
	[ "$("$KRON" ctl read 0x1fffffc)" = 12345678 ]
	"$KRON" ctl write csr 0x4000 # 32-bit mode: the upper half goes through the register
	"$KRON" ctl write clock 0x3100000000000001
	[ "$("$KRON" ctl read clock)" = 3144444444444441 ]
	[ "$("$KRON" ctl read high)" = 31444444 ]
}

@test "with a virtual clock a run can be repeated exactly" {
	for i in 1 2; do
		"$KRON" board create "$B" --virtual-clock
		export KRON_BOARD=$B
		"$KRON" ctl reset
		"$KRON" ctl write source0 0x00c00005
		"$KRON" ctl write high 0xabcd
		for k in $(seq 10); do
			"$KRON" ctl write trace2 "$k"
			"$KRON" ctl tick $((40 * k))
		done
		"$KRON" ctl off 2
		"$KRON" ctl write trace2 99
		"$KRON" ctl tick 1000
		"$KRON" status >status.$i
		"$KRON" status --json >json.$i
		"$KRON" read --board "$B" -o mk.$i
		"$KRON" board rm "$B"
	done
	cmp status.1 status.2
	cmp json.1 json.2
	cmp mk.1 mk.2
	# 40, 80, ... NODECLKs between them are 10, 20, ... ticks of the timestamp
	"$PYTHON" - <<-'EOF'
		import struct
		data = open("mk.1", "rb").read()
		assert len(data) == 200, len(data)
		last = None
		for k, w in enumerate(struct.iter_unpack("<5I", data), 1):
		    assert w[0] >> 24 == 0b00010000, hex(w[0])  # CPU 0, Trace, no overflow
		    assert w[2] == 0x00c00005 and w[4] == k, w
		    time = (w[0] & 0xffffff) << 32 | w[1]
		    assert last is None or time == last + 10 * (k - 1), (time, last)
		    last = time
	EOF
	[ "$(json 'd["samples"], d["words"], d["map"]' <json.1)" = "(10, 50, 50)" ]
}

@test "looking changes nothing" {
	"$KRON" board create "$B" --virtual-clock
	export KRON_BOARD=$B
	"$KRON" ctl write mode 0x1111111111111111
	"$KRON" ctl write clock 0x1111111111111111
	"$KRON" ctl write enable 0x2222222222222222
	"$KRON" ctl tick 1000
	"$KRON" ctl write trace0 7
	"$KRON" ctl write high 0x5555
	cp "$(board_object "$B")" before
	stat -c '%y %z %b' "$(board_object "$B")" >times
	"$KRON" status >one
	"$KRON" status --json >two
	"$KRON" status >three
	"$KRON" board list >four
	cmp one three
	stat -c '%y %z %b' "$(board_object "$B")" | diff times -
	# local memory, gates and tables, byte by byte; the machine may have moved to another slot
	cmp -n $((0x2240000)) before "$(board_object "$B")"
	grep -q '^High Order  *00005555' one
}

@test "external counter inputs: edges, gated clocks, the use of a bus" {
	"$KRON" board create "$B" --virtual-clock
	export KRON_BOARD=$B
	# counters 0 and 2: a clock while the signal is high; 4: all clocks; 5: edges
	"$KRON" ctl write mode 0x410303
	"$KRON" ctl write clock 0x111111
	"$KRON" ctl write enable 0x222222
	for _ in 1 2 3; do
		"$KRON" ctl external 0 high
		"$KRON" ctl tick 10
		"$KRON" ctl external 2 high
		"$KRON" ctl external 5 high
		"$KRON" ctl external 5 high # no edge
		"$KRON" ctl tick 20
		"$KRON" ctl external 2 low
		"$KRON" ctl external 5 low
		"$KRON" ctl external 0 low
		"$KRON" ctl tick 70
	done
	counted=$(for n in 0 2 4 5; do "$KRON" ctl read counter$n; done)
	[ "$(echo $counted)" = "$(printf '%08x ' 90 60 300 3 | sed 's/ $//')" ]
	# from low, and from high: every second one is an edge
	for n in 1 2 3; do
		"$KRON" ctl external 5 toggle
	done
	[ "$("$KRON" ctl read counter5)" = 00000005 ]
	"$KRON" ctl input 5 low # the same by another word
	"$KRON" ctl input 5 high
	[ "$("$KRON" ctl read counter5)" = 00000006 ]
	for args in 'external' 'external 0' 'external 16 high' 'external x low' 'external 0 1' 'external 0 toggled'; do
		# shellcheck disable=SC2086
		run "$KRON" ctl $args
		[ "$status" = 2 ] || { echo "# ctl $args: $status $output"; false; }
	done
	truncate -s 32M dev
	run "$KRON" ctl --board ./dev input 0 high
	refuses_with "its counter inputs are on its connector"
}

@test "a device is a file, too" {
	truncate -s 32M dev
	run "$KRON" ctl --board ./dev read 0x1204
	[ "$output" = 00000000 ]
	"$KRON" ctl --board ./dev write 0x1204 0x00003201
	"$KRON" ctl --board ./dev write trace5 0x01020304
	"$KRON" ctl --board ./dev write memory2 77
	[ "$(od -An -tx4 -j $((0x1204)) -N4 dev)" = " 00003201" ]
	[ "$(od -An -tx8 -j $((0x1000 + 4 * 101)) -N8 dev)" = " 0000000001020304" ]
	[ "$(od -An -tu4 -j $((0x1000008)) -N4 dev)" = "         77" ]
	"$KRON" status --board ./dev | grep -q '^Access  *device'
	[ "$(KRON_BOARD=./dev "$KRON" status --json | json 'd["access"], d["cpu_id"]')" = "('device', 1)" ]
	truncate -s 33554431 short
	run "$KRON" status --board ./short
	refuses_with "./short has 33554431 bytes; a board's address space has 33554432 (32 MiB): no board"
	run "$KRON" status --board ./none
	refuses_with "cannot open ./none: No such file"
	run "$KRON" status --board /tmp
	[ "$status" = 1 ]
	run "$KRON" status --board /dev/null
	[ "$status" = 1 ]
	mkfifo pipe
	run timeout 10 "$KRON" status --board ./pipe
	refuses_with "no board"
	run "$KRON" ctl --board ./dev tick 1
	refuses_with "is hardware: its clock runs by itself"
}

@test "which board is meant" {
	need_own_shm
	run in_own_shm 128M "$KRON status"
	refuses_with "there is no board: \`kron board create\` makes one"
	run in_own_shm 128M "$KRON board create one && $KRON status --board two"
	refuses_with "there is no board two; there are: one"
	run -0 in_own_shm 128M "$KRON board create one && $KRON status"
	[[ $output == *"one"* ]]
	run in_own_shm 128M "$KRON board create one && $KRON board create two && $KRON status"
	refuses_with "which board? --board or KRON_BOARD names one of: one, two"
	run -0 in_own_shm 128M "$KRON board create one && $KRON board create && $KRON status"
	[[ $output == *"Board  "*"default"* ]]
	run -0 in_own_shm 128M "$KRON board create one && $KRON board create && KRON_BOARD=one $KRON status"
	[[ $output == *"Board  "*"one"* ]]
	run in_own_shm 128M "KRON_BOARD=nope $KRON status"
	refuses_with "there is no board nope"
	for bad in '' 'a b'; do
		run "$KRON" status --board "$bad"
		refuses_with "is not a name of a board"
	done
}

@test "a full /dev/shm is an error" {
	need_own_shm
	run in_own_shm 16M "$KRON board create; ls -A /dev/shm | wc -l"
	[[ $output == *"a board needs 33 MiB of shared memory; /dev/shm has room for 1"*" MiB: No space left on device"* ]]
	[[ $output == *$'\n0' ]]
	# files on disk are limited, boards are not
	(ulimit -S -f 100 && "$KRON" board create "$B")
	"$KRON" status --board "$B" >/dev/null
	run bash -c "ulimit -H -f 100; $KRON board create $B-2"
	[ "$status" = 0 ] || refuses_with "File too large"
}

# ---- what others may have put there ----

hostile() { # hostile: make the board that is spoiled next
	"$KRON" board create "$B"
	O=$(board_object "$B")
}

all_refuse() { # all_refuse TEXT
	for c in status "ctl filter" "ctl write csr 1" "read --board $B -o mk.dat"; do
		# shellcheck disable=SC2086
		KRON_BOARD=$B run "$KRON" $c
		refuses_with "$1"
	done
	run "$KRON" record --board "$B" -q -o t -- true
	[ "$status" = 125 ]
	[[ $output == *"$1"* ]]
	[ "$("$KRON" board list --json | json "[b['damaged'] for b in d if b['name'] == '$B']")" = "[True]" ]
	"$KRON" board list | grep "^$B  *damaged"
}

@test "an object that is too short" {
	hostile
	for size in 0 1 4096 33554432 35651583; do
		truncate -s $size "$O"
		all_refuse "is damaged: its shared memory has $size of"
	done
	"$KRON" board rm "$B"
}

@test "an object without a board, or with one of another version" {
	hostile
	printf '\x2a' | dd of="$O" bs=1 seek=$((0x2000008)) conv=notrunc 2>/dev/null
	all_refuse "was made by another version of kron (its layout is 42"
	printf 'KROM' | dd of="$O" bs=1 seek=$((0x2000000)) conv=notrunc 2>/dev/null
	all_refuse "there is no board in the shared memory of $B"
	"$KRON" board rm "$B"
	truncate -s 64M "$O"
	chmod 600 "$O"
	all_refuse "there is no board in the shared memory of $B"
	"$KRON" board rm "$B"
	[ ! -e "$O" ]
}

@test "a machine of garbage" {
	hostile
	for seed in 1 2 3; do
		"$PYTHON" - "$O" $seed <<-'EOF'
			import random, sys
			random.seed(int(sys.argv[2]))
			with open(sys.argv[1], "r+b") as f:
			    f.seek(0x2240000)
			    f.write(random.randbytes(0x80000))
		EOF
		all_refuse "is damaged: its state makes no sense"
	done
	"$KRON" board rm "$B"
}

@test "garbage after a header that is right" {
	for seed in $(seq 20); do
		hostile
		"$PYTHON" - "$O" "$seed" <<-'EOF'
			import random, sys
			random.seed(int(sys.argv[2]))
			with open(sys.argv[1], "r+b") as f:
			    for start, size, n in (0x2000010, 0xff0, 40), (0x2240000, 0x4000, 8), (0x2001000, 0x23f000, 2000), (0, 0x2000000, 2000):
			        for i in range(n):
			            f.seek(start + random.randrange(size))
			            f.write(random.randbytes(4))
		EOF
		for c in status "status --json" "ctl filter 1234" "ctl write trace3 4" "read --board $B -o mk.dat" "board list"; do
			# shellcheck disable=SC2086
			KRON_BOARD=$B run timeout 20 "$KRON" $c
			[ "$status" -le 1 ] || { echo "# seed $seed, $c: $status $output"; false; }
		done
		"$KRON" board rm "$B"
	done
}

@test "another user's board" {
	[ "$(id -u)" = 0 ] || skip "only root can give files away"
	hostile
	chown 12345 "$O"
	all_refuse "belongs to another user (uid 12345)"
	all_refuse "\`kron board rm $B\` removes it"
	run "$KRON" board create "$B"
	refuses_with "the name of board $B is taken: $O belongs to another user (uid 12345); \`kron board rm $B\` removes it"
	# which is true
	"$KRON" board rm "$B"
	[ ! -e "$O" ]
	mkdir -m 700 "$O"
	chown 12345 "$O"
	run "$KRON" board create "$B"
	refuses_with "belongs to another user (uid 12345); \`kron board rm $B\` removes it"
	"$KRON" board rm "$B"
	hostile
	chmod 666 "$O"
	all_refuse "other users may write to board $B (mode 666)"
	"$KRON" board rm "$B"
}

@test "things that are not objects" {
	hostile
	mv "$O" "$O-real"
	ln -s "$O-real" "$O"
	all_refuse "is not a board"
	rm "$O"
	mkfifo -m 600 "$O"
	all_refuse "is not a board"
	"$KRON" board rm "$B"
	[ ! -e "$O" ]
	rm -f "$O-real"
}
