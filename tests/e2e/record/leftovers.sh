#!/bin/bash
# SPDX-License-Identifier: MIT
# leftovers.sh - whatever happens, no process, shared memory or file of ours stays behind.

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"

# Everything may only go into these: nothing else of the run is writable knowledge of ours.
places() {
	local d=$1
	rm -rf "$d"
	mkdir -p "$d"/{tmp,home,cache,run} "$d/work" && cd "$d/work" || return 1
}
ours() { # ours FOLDER CMD...: instead of this shell, so use it in ( ) or with &
	local d=$1
	shift
	exec env -i PATH=/usr/bin:/bin HOME="$d/home" TMPDIR="$d/tmp" XDG_CACHE_HOME="$d/cache" \
		XDG_RUNTIME_DIR="$d/run" LC_ALL=C.UTF-8 "$@"
}

# running FOLDER: ids of the processes that `ours FOLDER` started
running() {
	local p
	for p in /proc/[0-9]*; do
		tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qx "XDG_CACHE_HOME=$1/cache" && echo "${p#/proc/}"
	done 2>/dev/null
	return 0
}

# What is left of the trace in FOLDER/work/trace, once its programs are gone
clean() { # clean FOLDER
	local d=$1 segment left p
	left=$(cd "$d" && find tmp home run work -mindepth 1 ! -path 'work/trace*' ! -path 'work/subject*')
	[ -z "$left" ] || { echo "files: $left"; return 1; }
	left=$(cd "$d/cache" && find . -mindepth 1 ! -path './kron' ! -path './kron/*')
	[ -z "$left" ] || { echo "cache: $left"; return 1; }
	left=$(find "$d/cache" -name '*tmp*' -o -name '*.new' -o -name '*.XXXXXX')
	[ -z "$left" ] || { echo "unfinished plans: $left"; return 1; }
	segment=$(sed -n 's/^segment=//p' "$d/work/trace/session" | tail -n 1)
	segment=${segment#/}
	[ -n "$segment" ] || { echo "no segment in the session"; return 1; }
	[ ! -L "/dev/shm/$segment" ] || { echo "/dev/shm/$segment is left"; return 1; }
	for p in /proc/[0-9]*; do
		if grep -qs -- "$segment" "$p/maps"; then
			echo "still mapped by ${p#/proc/}: $(tr '\0' ' ' <"$p/cmdline")"
			return 1
		fi
	done
	for p in /proc/[0-9]*; do # the keeper has none of the environment
		if [ "$(cat "$p/comm" 2>/dev/null)" = kron-keeper ] && ls -l "$p/fd" 2>/dev/null | grep -q -- "$segment"; then
			echo "still kept by ${p#/proc/}"
			return 1
		fi
	done
	left=$(running "$d")
	[ -z "$left" ] || { echo "still running: $left"; return 1; }
}

after_a_run() { # after_a_run NAME CMD...
	local d=$SUITE/$1
	places "$d" || return 1
	shift
	(ours "$d" timeout 60 "$KRON" record -q -o trace -- "$@") >../out 2>&1 </dev/null
	clean "$d"
}

after_signal() { # after_signal SIGNAL: to kron, while a program runs
	local d=$SUITE/signal.$1 pid
	places "$d" || return 1
	ours "$d" "$KRON" record -q -o trace -- sleep 1000 >../out 2>&1 </dev/null &
	pid=$!
	wait_until test -s trace/tasks || { echo "it did not start"; return 1; }
	kill -"$1" "$pid"
	wait_until eval "! kill -0 $pid 2>/dev/null" || { echo "kron goes on"; kill -KILL "$pid"; return 1; }
	wait "$pid" 2>/dev/null
	# a program that kron left to itself is not a leftover: the signal was for kron alone
	for pid in $(running "$d"); do
		kill "$pid"
	done
	wait_until eval "[ -z \"\$(running $d)\" ]"
	clean "$d"
}

# A daemon outlives the program: it is neither killed nor held, and leaves nothing either.
after_a_daemon() {
	local d=$SUITE/daemon
	places "$d" || return 1
	(ours "$d" timeout 60 "$KRON" record -q -o trace -- sh -c \
		'(sleep 0.7; echo late >subject-was-here) >/dev/null 2>&1 & exit 3') >../out 2>&1 </dev/null
	[ $? = 3 ] || return 1
	wait_until test -s subject-was-here || { echo "the daemon was killed"; return 1; }
	wait_until eval "[ -z \"\$(running $d)\" ]"
	clean "$d"
}

# As another user: the segment is theirs alone.
nobody() {
	local d=$SUITE/nobody
	places "$d" || return 1
	chmod 777 "$d" "$d"/*
	chmod 755 "$SUITE"
	setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH=/usr/bin:/bin HOME="$d/home" \
		TMPDIR="$d/tmp" XDG_CACHE_HOME="$d/cache" "$KRON" record -q -o trace -- \
		sh -c 'for l in /dev/shm/kron-*; do memory=$(readlink "$l") && stat -L -c "%a %u" "${memory%#*}"; done 2>/dev/null | sort -u' \
		>../out 2>../err </dev/null ||
		{ cat ../err; return 1; }
	grep -qx '600 65534' ../out || { cat ../out; return 1; }
	clean "$d"
}

suite_start
tap "after a good end" after_a_run good /bin/echo hello
tap "after a failure" after_a_run failure sh -c 'exit 9'
tap "after death by signal" after_a_run signal sh -c 'kill -KILL $$'
tap "after a program that does not exist" after_a_run children sh -c './nonexistent; true'
tap "after many processes" after_a_run many sh -c 'for i in 1 2 3 4 5 6 7 8 9; do /bin/true & done; wait'
tap "after SIGINT" after_signal INT
tap "after SIGTERM" after_signal TERM
tap "after SIGHUP" after_signal HUP
tap "after a daemon" after_a_daemon
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$KRON"; then
		tap "as nobody, the segment is private" nobody
	else
		tap_skip "as nobody, the segment is private" "this folder is closed to others"
	fi
else
	tap_skip "as nobody" "needs root and setpriv"
fi
suite_end
