#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""probed.py - kron monitor counts instructions by probes: as many as a function of known instructions has executed."""

import json
import os
import re
import signal
import subprocess
import sys

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import live  # noqa: E402
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402

# Of each call: 2 loads, 1 store, 1 branch, 1 return; 5 instructions for odd numbers, 7 for even ones.
STEP = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__asm__(".text\\n"
	".globl step, middle\\n"
	".type step, @function\\n"
	"step:	mov table(%rip), %eax\\n"
	"	addl $1, table(%rip)\\n"
	"	test $1, %edi\\n"
	"	jz 1f\\n"
	"	ret\\n"
	"1:	lea 1(%rdi), %rdi\\n"
	"middle: lea 1(%rdi), %rdi\\n"
	"	ret\\n"
	".size step, . - step\\n");
void step(int i);
unsigned table;
static long n;
static void *run(void *arg)
{
	for (int i = 0; i < n; i++) {
		step(i); /* here */
		if (i % 1000 == 0)
			usleep(3000), getppid();
	}
	return arg;
}
static void all(void)
{
	const pid_t child = fork();
	pthread_t t;

	if (!child)
		run(NULL), _exit(0);
	pthread_create(&t, NULL, run, NULL);
	run(NULL);
	pthread_join(t, NULL);
	waitpid(child, NULL, 0);
}
int main(int argc, char **argv)
{
	char line[100];

	if (argc > 1)
		return n = atol(argv[1]), all(), 0;
	puts("ready"), fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		n = atol(line);
		all();
		puts("done"), fflush(stdout);
	}
	return 0;
}
"""
CALLS = 3 * 9001  # two threads and a child; two of three numbers are even where it matters: 4501 of 9001
EVEN = 3 * 4501
TOTALS = {"returns:step": CALLS, "instructions:step": 5 * CALLS + 2 * EVEN, "branches:step": CALLS, "loads:step": 2 * CALLS, "stores:step": CALLS}


def compile_it():
    """Its own events, too: of an offset, an address of the file, a line, a library's function."""
    tap.compile_text("p", STEP, "-g", "-pthread")
    at = {m[2]: int(m[1], 16) for m in re.finditer(r"^(\w+) \w (\w+)$", subprocess.check_output(["nm", "p"], text=True), re.M)}
    line = 1 + STEP[: STEP.index("/* here")].count("\n")
    own = {f"addr:step+{at['middle'] - at['step']}": EVEN, f"addr:{at['middle']:#x}": EVEN, f"addr:p.c:{line}": CALLS, "addr:libc:getppid": 30}
    return dict(TOTALS, **own)


def rows_of(text):
    lines = [json.loads(line) for line in text.splitlines()]
    for name, total in lines[-1]["totals"].items():
        need(sum(r["events"][name] or 0 for r in lines[:-1]) == total, f"{name} is not the sum of its intervals")
    return lines[:-1], lines[-1]


def monitor(*args, status=0):
    r = subprocess.run([KRON, "monitor", *args], capture_output=True, text=True, timeout=60)
    need(r.returncode == status, f"status {r.returncode}, not {status}: {r.stderr}")
    return r


def notes(said):
    """Where others want the processors, threads stand for longer."""
    return [line for line in said.splitlines() if "the program stood for" not in line and "ended without a stop of all" not in line]


def events(names):
    return [w for name in names for w in ("-e", name)]


def started(*how):
    want = compile_it()
    r = monitor("--json", "--every", "10ms", *how, *events(want), "--", "./p", "9001")
    rows, end = rows_of(r.stdout)
    need(end["totals"] == want and not notes(r.stderr), (end, r.stderr))
    need(sum(1 for row in rows if row["events"]["addr:libc:getppid"]) >= 2, "all is in one interval")
    need(end["probes_ns"] is None, end)


def attached():
    """Of a process that runs, while it is watched; its text is its own again."""
    want = compile_it()
    p = subprocess.Popen(["./p"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(n):
        p.stdin.write(f"{n}\n")
        p.stdin.flush()
        need(p.stdout.readline() == "done\n", "it has ended")

    try:
        p.stdout.readline()
        do(100)
        for how in [], ["--freeze"]:
            argv = [KRON, "monitor", "--json", "-o", "rows", "--every", "10ms", *how, *events(want), "-e", "calls:st?p", "--pid", str(p.pid)]
            k = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
            need("counting in process" in k.stderr.readline(), "it does not count")
            do(9001)
            k.send_signal(signal.SIGINT)
            said = k.communicate(timeout=60)[1]
            need(k.returncode == 0 and len(notes(said)) == 1 and "runs on as before" in said, said)
            with open("rows") as f:
                rows, end = rows_of(f.read())
            need(end["totals"] == dict(want, **{"calls:st?p": CALLS}), end)
            live.text_is_of_files(p.pid)
            do(100)
        p.stdin.close()
        need(p.wait(60) == 0, p.returncode)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def together():
    """Calls, places, loads and stores of a range, and the kernel's, in one run; of what has one probe each the cost is known."""
    compile_it()
    names = ["calls:step", "addr:libc:getppid", "returns", "page-faults", "stores:step"]
    r = monitor("--json", "--every", "10ms", "--range", "table:w", "-L", "p", *events(names), "--", "./p", "9001")
    end = rows_of(r.stdout)[1]
    got = end["totals"]
    # the range is the first process's, whose child has other memory
    need((got["calls:step"], got["addr:libc:getppid"], got["stores:step"], got["table:w"]) == (CALLS, 30, CALLS, 2 * 9001), end)
    need(got["returns"] >= CALLS + 3 and got["page-faults"] > 0, end)
    r = monitor("--json", *events(["addr:step", "returns:step", "calls:step"]), "--", "./p", "9001")
    end = rows_of(r.stdout)[1]
    need(set(end["totals"].values()) == {CALLS} and end["probes_ns"] > 0, end)


def saved():
    compile_it()
    monitor("-q", "--every", "10ms", *events(["addr:step", "returns:step"]), "--save", "s", "-o", "rows", "--", "./p", "9001")
    r = subprocess.run([KRON, "report", "--json", "s"], capture_output=True, text=True, timeout=60)
    need(rows_of(r.stdout)[1]["totals"] == {"addr:step": CALLS, "returns:step": CALLS}, r)


def refused():
    """A sentence each, and the program is not run."""
    compile_it()
    words = {
        "addr:": "no name", "addr:step+1": "no instruction begins there", "addr:nothing": "no function of this name",
        "addr:step trace": "one kind", "addr:step %rdi": "", "addr:x=step": "no event", "addr:step if $arg1 > 2": "", "addr:3:=step": "a place",
        "returns:nothing": "no function of this name", "instructions:": "no name", "returned:step": "addr:PLACE",
    }
    for name, what in words.items():
        r = monitor("-e", name, "--", "./p", "1", status=125)
        need(r.stderr.count("\n") == 1 and what in r.stderr and name in r.stderr or "there is no event" in r.stderr, (name, r.stderr))
        need(not r.stdout, (name, r))
    r = monitor(*events(f"addr:step+{i}" for i in range(17)), "--", "./p", "1", status=125)
    need("16 events" in r.stderr, r.stderr)
    r = monitor(*events(["addr:step", "calls"]), "-L", "libc*", "--", "./p", "1", status=125)
    need("-L belongs to" in r.stderr, r.stderr)
    # one of several is not there: the others count
    r = monitor("--json", *events(["addr:step", "addr:nothing"]), "--", "./p", "9001")
    need(rows_of(r.stdout)[1]["totals"] == {"addr:step": CALLS, "addr:nothing": 0} and "-e addr:nothing: " in r.stderr, r)


with tap.Suite("probed") as s:
    s.case("what a function has executed", started)
    s.case("and with stops", started, "--freeze")
    s.case("a process that runs", attached)
    s.case("several kinds of probes at once", together)
    s.case("intervals that are kept", saved)
    s.case("what cannot be counted", refused)
