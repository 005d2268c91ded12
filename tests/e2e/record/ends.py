#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""When processes end: what the trace says, against what they and their successors say themselves.

Whoever ends says so right before; who comes next begins only after that.  The end in the trace lies
between the two.  No figure is compared with a limit, but for the clocks: the trace's times are ticks
of the samples' clock, its rate is known to some millionths."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import CC, KRON, Skip, Suite, compile_c, need  # noqa: E402

CLOCKS_NS = 100_000


def times():
    """[(pid, begins, ends)] as the processes wrote them, in the order in which they began."""
    said = {}
    for line in open("times"):
        pid, what, ns = line.split()
        said.setdefault(int(pid), {})[what] = int(ns)
    return sorted(((p, t["begins"], t["ends"]) for p, t in said.items()), key=lambda x: x[1])


def session(key):
    lines = dict(l.rstrip("\n").split("=", 1) for l in open("t/session"))
    return lines.get(key)


def record(*args, options=()):
    r = subprocess.run([KRON, "record", "-o", "t", *options, "--", *args], capture_output=True, text=True)
    need(r.returncode == 0, r.stderr)
    return json.loads(subprocess.run([KRON, "info", "--json", "t"], capture_output=True, text=True).stdout)


def check(info, least):
    base = int(session("start_mono_ns"))
    known = {p["pid"]: p for p in info["process_list"]}
    said = times()
    need(len(said) >= least, f"{len(said)} processes only")
    for i, (pid, _, ends) in enumerate(said):
        need(pid in known, f"process {pid} is not in the trace")
        need(known[pid]["end_ns"] is not None, f"process {pid} has no end")
        end = known[pid]["end_ns"] + base
        need(end >= ends - CLOCKS_NS, f"process {pid} ended {(ends - end) / 1e6} ms after its end in the trace")
        if i + 1 < len(said):
            begins = said[i + 1][1]
            need(end <= begins + CLOCKS_NS, f"process {pid} ends {(end - begins) / 1e6} ms after the next one began")


def database(info):
    """The same ends in another reader."""
    subprocess.run([KRON, "export", "-f", "sqlite", "-o", "t.db", "t"], check=True, capture_output=True)
    rows = sqlite3.connect("t.db").execute("select process_id, stop from process").fetchall()
    known = {p["uid"]: p["end_ns"] for p in info["process_list"]}
    for uid, stop in rows:
        need((stop is None) == (known[uid] is None), f"{uid}: stop {stop} in the database, not {known[uid]}")
        if stop is not None:
            wanted = known[uid] * info["tsc_hz"] / 1e9
            need(abs(stop - wanted) <= info["tsc_hz"] / 1e6 + 1, f"{uid}: stop {stop}, not {wanted}")


def commands(*options):
    compile_c("ends", "bins/ends.c")
    script = "./ends 50; ./ends; ./ends 3; ./ends; ./ends; (./ends; ./ends 20); ./ends & wait; ./ends; ./ends 1"
    info = record("sh", "-c", script, options=options)
    check(info, 10)
    database(info)


def threads():
    """The last thread's end is the end, whoever it is."""
    open("p.c", "w").write(
        """
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void *last(void *arg) { usleep(30000); if (system("./ends 1")) return arg; return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, last, 0); pthread_exit(0); }
        """
    )
    subprocess.run(["gcc", "-O1", "-o", "p", "p.c", "-pthread"], check=True)
    compile_c("ends", "bins/ends.c")
    info = record("./p")
    (pid, _, ends) = times()[0]
    p = next(p for p in info["process_list"] if p["command"] == "./p")
    need(p["end_ns"] is None or p["end_ns"] + int(session("start_mono_ns")) >= ends - CLOCKS_NS, "it ended with its first thread")


def forks():
    compile_c("ends", "bins/ends.c")
    info = record("./ends", "fork", "12", options=["-F", "live", "-F", "main"])
    if not info["switches"]["recorded"]:
        raise Skip("the kernel tells nobody when forked children end: " + info["switches"]["why_not"])
    check(info, 12)


def many():
    """More at once than there are descriptors for them."""
    compile_c("ends", "bins/ends.c")
    script = "i=0; while [ $i -lt 60 ]; do ./ends 100 & i=$((i+1)); done; wait; ./ends"
    r = subprocess.run(
        ["sh", "-c", 'ulimit -n 300; exec "$0" "$@"', KRON, "record", "-o", "t", "--switches", "no", "-F", "main", "--", "sh", "-c", script],
        capture_output=True, text=True,
    )
    need(r.returncode == 0, r.stderr)
    info = json.loads(subprocess.run([KRON, "info", "--json", "t"], capture_output=True, text=True).stdout)
    ends = [p for p in info["process_list"] if p["command"].startswith("./ends")]
    need(len(ends) == 61, f"{len(ends)} processes, {r.stderr}")
    need(sum(p["end_ns"] is None for p in ends) <= 1, "a process without an end")


def goes_on():
    """Nobody reads the messages any more; somebody asks for a snapshot, and there is no flight recorder."""
    compile_c("ends", "bins/ends.c")
    wait = "echo began >&3; read line; ./ends; grep Sig[BI] /proc/self/status"
    plain = subprocess.run(["sh", "-c", wait], stdin=subprocess.DEVNULL, capture_output=True, text=True, pass_fds=[],
                           preexec_fn=lambda: os.dup2(1, 3)).stdout.splitlines()[-3:]
    r, w = os.pipe()
    p = subprocess.Popen(["sh", "-c", 'exec 3>&1; exec "$@"', "-", KRON, "record", "-v", "-o", "t", "-F", "live", "--", "sh", "-c", wait],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=w, text=True)
    os.close(w)
    need(p.stdout.readline() == "began\n", "it does not begin")
    os.close(r)
    p.send_signal(signal.SIGUSR2)
    out = p.communicate("go\n", timeout=60)[0]
    need(p.returncode == 0, f"exit {p.returncode}")
    need(out.splitlines()[-3:] == plain, f"the program has other signals: {out} {plain}")
    need(session("end_tsc"), "the trace was not ended")


RECVMSG = "47"


def asking_child(parent, name):
    """The pid of its child of this name, once that has asked for its plan and waits for it."""
    while True:
        for pid in open(f"/proc/{parent}/task/{parent}/children").read().split():
            with contextlib.suppress(OSError):
                is_it = open(f"/proc/{pid}/comm").read() == f"{name}\n"
                if is_it and open(f"/proc/{pid}/syscall").read().split()[0] == RECVMSG:
                    return int(pid)
        time.sleep(0.01)


def while_planning():
    """Planning takes a while where nothing fits."""
    loop = "call f; 1: test %eax, %eax; jz 1b; inc %eax; jz 1b"
    open("crowd.c", "w").write(
        f'void crowd(void); int main(void) {{ crowd(); return 0; }}\n'
        f'__asm__(".type crowd, @function; crowd: .rept 150000; {loop}; .endr; ret; .size crowd, . - crowd; f: ret");\n'
    )
    subprocess.run(["gcc", "-O1", "-o", "crowd", "crowd.c"], check=True)
    p = subprocess.Popen([KRON, "record", "-o", "t", "-p", "crowd%insns count:3", "--", "./crowd"], stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "XDG_CACHE_HOME": os.getcwd()})
    pid = asking_child(p.pid, "crowd")
    os.kill(pid, signal.SIGKILL)
    err = p.communicate(timeout=120)[1]
    need("never loaded" not in err, err)
    need(" plan " in err, err)


def has_called_nothing(*command):
    """A forked child that has called no function when the program ends: it is said to run, and is in the table.  Threads are
    not."""
    with open("quiet.c", "w") as f:
        f.write("""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *thread(void *p) { pthread_barrier_wait(&all); return p; }
int main(void)
{
	pthread_t t[8];
	int child;
	pthread_barrier_init(&all, 0, 9);
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], 0, thread, 0);
	pthread_barrier_wait(&all);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], 0);
	if (!(child = fork()))
		for (;;)
			pause();
	printf("%d\\n", child);
	return 0;
}
""")
    subprocess.run([*CC, "-O2", "-pthread", "-o", "quiet", "quiet.c"], check=True)
    with open("out", "w") as out, open("notes", "w") as notes:  # they go on: no pipes
        subprocess.run([KRON, *command, "--", "./quiet"], stdout=out, stderr=notes, timeout=60)
    with open("out") as out, open("notes") as notes:
        child = int(out.read().split()[0])
        notes = notes.read()
    try:
        need("kron: 1 traced process still runs, untraced from here" in notes, notes)
        if command[0] == "record":
            info = json.loads(subprocess.run([KRON, "info", "--json", "t"], capture_output=True, text=True).stdout)
            rows = [p for p in info["process_list"] if p["pid"] == child]
            need(len(rows) == 1 and rows[0]["end_ns"] is None, info["process_list"])
            need(len(info["process_list"]) == 2, info["process_list"])
    finally:
        os.kill(child, signal.SIGKILL)


with Suite("ends") as s:
    s.case("commands of a shell, with the kernel's context switches", commands)
    s.case("commands of a shell, without them", commands, "--switches", "no")
    s.case("commands of a shell, on the emulated board", commands, "--bus", "exact", "--when-full", "wait")
    s.case("a process ends with its last thread", threads)
    s.case("forked children that execute nothing", forks)
    s.case("few descriptors, many processes", many)
    s.case("signals that are none of the recorder's end", goes_on)
    s.case("a child that has called nothing yet runs on, and is listed", has_called_nothing, "record", "-o", "t")
    s.case("a child that has called nothing yet runs on, and is counted", has_called_nothing, "stat", "-o", "rows")
    s.case("a program that is killed while its plan is being made: that is said", while_planning)
sys.exit(s.failed > 0)
