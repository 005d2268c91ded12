#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# cgroup.bats - recordings in a memory cgroup: the pool is as large as the group's limit allows, and
# what is killed there leaves nothing that is charged to the group.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

GROUP=

# make_group MIB: a memory cgroup with that limit, v1 or v2, in $GROUP
make_group() {
	local root=/sys/fs/cgroup
	if [ -d $root/memory ]; then
		root=$root/memory
	elif ! grep -qsw memory $root/cgroup.subtree_control; then
		skip "no memory cgroup can be had here"
	fi
	GROUP=$root/kron-test.$$.$BATS_TEST_NUMBER
	mkdir "$GROUP" 2>/dev/null || skip "no memory cgroup can be made here"
	if [ -e "$GROUP/memory.max" ]; then
		echo "$(($1 << 20))" >"$GROUP/memory.max"
		echo 0 >"$GROUP/memory.swap.max" || true
	else
		echo "$(($1 << 20))" >"$GROUP/memory.limit_in_bytes"
		echo "$(($1 << 20))" >"$GROUP/memory.memsw.limit_in_bytes" || true
	fi
}

# in_group CMD...: all on one CPU, so that the drain falls behind and the pool grows
in_group() {
	(
		echo "$BASHPID" >"$GROUP/cgroup.procs"
		exec taskset -c "$CPU" "$@"
	)
}

# Shared memory that is charged to the group; what bats itself writes is among it.
shared() {
	awk '$1 == "shmem" { print $2 }' "$GROUP/memory.stat"
}

# Where traces and plans go: in a tmpfs they were memory of the group themselves.
setup() {
	test_setup
	DISK=$(mktemp -d "$KRON_TOP_BUILD/tests/cgroup.XXXXXX")
	[ "$(stat -f -c %T "$DISK")" != tmpfs ] || skip "the build folder is in memory"
	export XDG_CACHE_HOME=$DISK
	CPU=$(taskset -cp $$ | sed 's/.*[ ,-]//')
}

teardown() {
	[ -z "$GROUP" ] || rmdir "$GROUP"
	rm -rf "$DISK"
	test_teardown
}

# worker MIB CALLS [MIB]: has the first MIB in use, makes CALLS calls in each of four threads, then takes
# the others.
workload() {
	cat >worker.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		static int calls;
		__attribute__((noipa)) int work(int x)
		{
			return x + 1;
		}
		static void take(int mib)
		{
			char *p = malloc((size_t)mib << 20);

			memset(p, 1, (size_t)mib << 20);
			printf("%d MiB at hand\n", mib * p[mib * 1000]);
		}
		static void *thread(void *arg)
		{
			int n = 0;

			while (n < calls)
				n = work(n);
			return arg;
		}
		int main(int argc, char **argv)
		{
			pthread_t t[4];

			take(atoi(argv[1]));
			calls = atoi(argv[2]);
			for (int i = 0; i < 4; i++)
				pthread_create(&t[i], NULL, thread, NULL);
			for (int i = 0; i < 4; i++)
				pthread_join(t[i], NULL);
			printf("%d calls\n", 4 * calls);
			fflush(stdout);
			if (argc > 3)
				take(atoi(argv[3]));
			return 0;
		}
	END
	gcc -O2 -pthread -o worker worker.c
}

@test "a program of 20 MB lives in a cgroup of 100 MB" {
	local limit
	workload
	make_group 100
	in_group ./worker 20 1000
	run in_group "$KRON" record -o "$DISK/trace" -F work -- ./worker 20 10000000
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"40000000 calls"* ]]
	# a quarter of what was left of 100 MiB, of which kron took some
	limit=$(sed -n 's/^buffer=//p' "$DISK/trace/session" | tail -1)
	[ "$limit" -gt 4194304 ]
	[ "$limit" -le $((25 << 20)) ]
	# and again: nothing was left
	run in_group "$KRON" record -o "$DISK/trace" -- ./worker 20 10000000
	echo "$output"
	[ "$status" = 0 ]
	[ "$(shared)" -lt 1048576 ]
	# all of it is there, or counted
	[ "$("$KRON" info --json "$DISK/trace" | json 'd["samples"] + d["lost"] >= 80000000')" = True ]
}

@test "a flight recorder's buffer is as small there" {
	workload
	make_group 100
	run in_group "$KRON" record -o "$DISK/trace" --when-full wrap -F work -- ./worker 40 2000000
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"8000000 calls"* ]]
}

@test "a snapshot takes no more than there is" {
	local pid info
	workload
	make_group 160
	in_group "$KRON" record -o "$DISK/trace" --flight 64M -F work -q -- sh -c './worker 5 2000000; echo filled; sleep 2' >out 2>err &
	pid=$!
	wait_until grep -q filled out
	"$KRON" snapshot "$(pgrep -P "$pid")" || { cat err; false; }
	wait "$pid"
	cat err
	info=$("$KRON" info --json "$DISK/trace/001")
	[ "$(json 'd["snapshot"]["left_out_chunks"] > 0' <<<"$info")" = True ]
	[ "$(json 'd["samples"] > 100000' <<<"$info")" = True ]
	[ "$("$KRON" info --json "$DISK/trace/002" | json 'd["samples"] > 3000000')" = True ]
}

@test "a program that is killed for its own memory leaves its trace and nothing else" {
	local segment
	workload
	make_group 100
	run in_group "$KRON" record -o "$DISK/trace" -F work -- ./worker 20 250000 200
	echo "$output"
	[ "$status" = 137 ]
	# all of it is there, or counted: a busy machine's drain may be late
	[ "$("$KRON" info --json "$DISK/trace" | json 'd["samples"] + d["lost"]')" = 2000000 ]
	[ "$(shared)" -lt 1048576 ]
	segment=$(sed -n 's/^segment=//p' "$DISK/trace/session")
	[ -n "$segment" ]
	[ ! -L "/dev/shm/${segment#/}" ]
	[ ! -e "/dev/shm/${segment#/}" ]
}

@test "a buffer that the group has no room for is said to be one" {
	workload
	make_group 100
	run in_group "$KRON" record -o "$DISK/trace" -b 512M -F work -- ./worker 5 1000
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"the buffer may grow to 512.0 MiB, but the memory cgroup has "* ]]
	run in_group "$KRON" record -o "$DISK/trace" -b 16M -F work -- ./worker 5 1000
	[[ $output != *"memory cgroup"* ]]
	run "$KRON" record -o "$DISK/trace" -b 512M -F work -- ./worker 5 1000
	[[ $output != *"memory cgroup"* ]]
}
