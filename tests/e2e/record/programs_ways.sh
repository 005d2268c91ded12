#!/bin/bash
# SPDX-License-Identifier: MIT
# programs_ways.sh - ways to start and end programs: through other programs, as other users, in
# namespaces, with somebody else's LD_PRELOAD, under kron twice, by every signal.

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"
source "$KRON_TOP_SRC/tests/e2e/record/programs.bash"

prepare() {
	cp "$SUITE"/{plain,static,killed,seccomp} "$SUITE"/plugins/*.so .
	if [ "$(id -u)" = 0 ]; then
		cp plain setuid && chown 65534 setuid && chmod 4755 setuid
		chmod 777 .
	fi
	seq 20 >numbers
	mkfifo pipe
}

# in_trace "FUNCTION=COUNT ..." CMD...: the trace of CMD has COUNT entries of each FUNCTION
in_trace() {
	local want=$1 d=$SUITE/in-trace
	shift
	one_way "$d" "$KRON" record -q -o "$d/trace" --when-full wait -- "$@"
	# shellcheck disable=SC2086
	"$PYTHON" "$TRUTH" check "$d/trace" --lossless --calls $want || { cat "$d/stderr"; return 1; }
}

# a recording inside a recorded program: both traces are whole
nested() {
	local d=$SUITE/nested
	one_way "$d" "$KRON" record -q -o "$d/outer" -- \
		"$KRON" record -q -o "$d/inner" -- ./plain
	[ "$(cat "$d/outcome")" = "exited 3" ] || { cat "$d/outcome" "$d/stderr"; return 1; }
	[ ! -s "$d/stderr" ] || { cat "$d/stderr"; return 1; }
	"$PYTHON" "$TRUTH" check "$d/inner" --calls work=1000 &&
		"$PYTHON" "$TRUTH" check "$d/outer"
}

# who still runs at the end: those of another pid namespace are asked about by our pids
pidns_notes() { # pidns_notes EXPECTED CMD...
	local want=$1 d=$SUITE/pidns
	shift
	one_way "$d" "$KRON" record -o "$d/trace" --when-full wait -- "$@"
	[ "$(sed -n 's/^kron: \([0-9]*\) traced process.* still run.*/\1/p' "$d/stderr")" = "$want" ] ||
		{ cat "$d/stderr"; return 1; }
	# forked children are of bash as their parent is, and not what has their number here
	"$KRON" info --json "$d/trace" | json 'sorted({(p["exe"].split("/")[-1], t["name"])
		for p in d["process_list"] if p["note"] == "pidns" for t in p["threads"]})' >"$d/names"
	[ "$(cat "$d/names")" = "[('bash', 'bash')]" ] || { cat "$d/names"; return 1; }
}

# two recordings at once do not meet
side_by_side() {
	local d=$SUITE/side i pids=()
	mkdir -p "$d" && cd "$d" || return 1
	for i in 1 2 3 4; do
		clean_env "$KRON" record -q -o "trace$i" -- "$SUITE/plain" >/dev/null 2>"err$i" </dev/null &
		pids+=($!)
	done
	for i in 1 2 3 4; do
		wait "${pids[i - 1]}"
		[ $? = 3 ] || { cat "err$i"; return 1; }
		"$PYTHON" "$TRUTH" check "trace$i" --calls work=1000 main=1 || return 1
	done
}

# the terminal of an interactive program is the program's.  Not through $OUTCOME: that starts
# programs in a group of their own, and a shell in the background of its terminal stops.
in_a_terminal() { # in_a_terminal OUT CMD
	timeout 30 script -q -e -c "$2" "$1" <input >/dev/null 2>&1
	echo "exited $?" >>"$1"
}
# without what the terminal or bash echoes, which comes sooner or later
printed() {
	tr -d '\r' | sed 's/\x1b\[[?0-9]*[a-z]//g' |
		grep -aEx '42|a terminal|[0-9]+ [0-9]+|exited [0-9]+'
}
under_a_terminal() {
	local d=$SUITE/terminal
	mkdir -p "$d" && cd "$d" || return 1
	# what the terminal echoes of these lines is not what they print
	printf 'echo $((6 * 7))\ntty -s && echo a "termi"nal\nstty size\nexit 5\n' >input
	in_a_terminal plain.txt 'bash --norc --noprofile -i'
	in_a_terminal traced.txt "$KRON record -q -o trace -- bash --norc --noprofile -i"
	[ "$(printed <plain.txt | wc -l)" = 4 ] || { cat plain.txt; return 1; }
	diff <(printed <plain.txt) <(printed <traced.txt) &&
		"$PYTHON" "$TRUTH" check trace
}

suite_start
build plain.c O2 "$SUITE/plain" && build plain.c O2,static "$SUITE/static"
build killed.c O2 "$SUITE/killed" && build seccomp_strict.c O2 "$SUITE/seccomp"
build dlopen_late.c O2 "$SUITE/late"

for s in 1 2 3 4 6 8 9 11 13 14 15 31; do
	tap "death by signal $s" behaves "signal$s" exe ./killed $s
done
both "seccomp by syscall()" ./seccomp syscall
both "seccomp strict mode" ./seccomp strict
tap "to ask about seccomp is not to use it" in_trace after=20000 ./seccomp ask
both "env -i" env -i ./plain
both "env with variables" env LD_LIBRARY_PATH=. A=1 sh -c 'env | sort | grep -v PWD; ./plain'
both "another LD_PRELOAD" env LD_PRELOAD=./libplug0.so sh -c 'echo "$LD_PRELOAD"; ./plain; env | grep LD_'
both "an LD_PRELOAD that does not exist" env LD_PRELOAD=./nothing.so ./plain
both "LD_PRELOAD set and unset" sh -c 'LD_PRELOAD=./libplug0.so ./plain; LD_PRELOAD= ./plain; env | grep -c KRON'
both "xargs -P" sh -c 'xargs -P 4 -n 1 sh -c "exit 0" <numbers && xargs -n 7 echo <numbers'
both "find -exec" find . -name 'numbers' -exec wc -l {} ';' -exec grep -c 1 {} +
both "timeout" sh -c 'timeout 0.2 sleep 5; echo $?; timeout -s KILL 0.1 sleep 5; echo $?'
both "nohup, nice, setsid" sh -c 'nohup nice -n 1 setsid -w ./plain; echo $?'
both "a static program on the way" sh -c './static; ./plain; echo $?'
both "through ld.so" /lib64/ld-linux-x86-64.so.2 ./plain
both "a closed stdout" sh -c 'exec ./plain >&-'
both "closed descriptors" sh -c 'exec ./plain <&- 2>&-'
both "a broken pipe" bash -c 'set -o pipefail; ./plain | true; seq 100000 | head -n 1; echo ${PIPESTATUS[0]}'
both "limits" sh -c 'ulimit -n 8; ulimit -v 4000000; ulimit -s 512; ./plain; ulimit -n; ls numbers'
both "another folder and umask" sh -c 'cd / && umask 077 && "$OLDPWD/plain" && umask'
if have strace; then
	both "strace" sh -c 'strace -f -qq -e trace=none -o /dev/null ./plain; echo $?'
fi
if [ "$(id -u)" = 0 ]; then
	both "a setuid program on the way" sh -c './setuid; echo $?; id -u'
	both "another user" setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'id -u; ./plain'
	rt=$(dirname "$KRON")/runtime/libkron-rt.so
	if setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$rt"; then
		tap "another user is traced" in_trace work=1000 \
			setpriv --reuid=65534 --regid=65534 --clear-groups ./plain
	else
		tap_skip "another user is traced" "this folder is closed to others"
	fi
	# what the new user cannot open must not make ld.so complain
	mkdir -m 700 closed && cp "$rt" closed/libkron-rt.so
	export KRON_RUNTIME=$PWD/closed/libkron-rt.so
	both "another user, runtime out of reach" \
		setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'id -u; ./plain'
	unset KRON_RUNTIME
	if unshare -fp true 2>/dev/null; then
		both "a pid namespace" unshare -fp sh -c './plain; echo $$; (exit 3) & wait $!; echo $?'
		tap "a pid namespace is traced" in_trace work=2000 unshare -fp sh -c './plain; ./plain; true'
		tap "forked in a pid namespace, and ended" pidns_notes '' \
			unshare -fp bash -c 'for i in 1 2 3; do (:) & done; wait; (:); exit 3'
		tap "forked in a pid namespace, and still there" pidns_notes 3 bash -c \
			'unshare -fp bash -c "(read <>pipe) & echo >ready; read <>pipe" &
			until [ -s ready ]; do read -t 0.05 <>pipe; done'
		both "a mount namespace" unshare -m sh -c 'mount -t tmpfs tmpfs /mnt && ls /mnt; ./plain'
		both "a network namespace" unshare -n ./plain
		both "a user namespace" unshare -Ur sh -c 'id -u; ./plain'
	else
		tap_skip "namespaces" "unshare is not permitted"
	fi
else
	tap_skip "other users and namespaces" "needs root"
fi
both "no environment at all" perl -e 'exec {"./plain"} "" or die'
tap "every program of a shell is traced" in_trace "work=3000 main=3" \
	sh -c './plain; (./plain); sh -c "./plain; true"; true'
tap "kron under kron" nested
tap "four recordings at once" side_by_side
if command -v script >/dev/null; then
	tap "a terminal" under_a_terminal
else
	tap_skip "a terminal" "script is not installed"
fi
suite_end
