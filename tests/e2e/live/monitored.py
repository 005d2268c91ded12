#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""monitored.py - kron monitor --pid with probes: as many as the process was told to do, and its text is its own afterwards."""

import json
import os
import signal
import subprocess
import sys

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import live  # noqa: E402
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402

# Each line is a number of calls that two threads and a child make each; vfork: a child that borrows the memory for a while.
TOLD = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static long n;
__attribute__((noinline, noclone)) int work(int i)
{
	__asm__ volatile(".nops 8");
	if (i & 1) {
		__asm__ volatile(".nops 4");
		return 1;
	}
	return 0;
}
static void *run(void *arg)
{
	for (long i = 0; i < n; i++) {
		work((int)i);
		if (i % 2000 == 0)
			usleep(5000);
	}
	return arg;
}
static void all(void)
{
	pthread_t t;
	const pid_t child = fork();

	if (!child)
		run(NULL), _exit(0);
	pthread_create(&t, NULL, run, NULL);
	run(NULL);
	pthread_join(t, NULL);
	waitpid(child, NULL, 0);
}
static void *lend(void *arg)
{
	for (;;) {
		const pid_t child = vfork();

		if (!child)
			usleep(30000), _exit(0);
		waitpid(child, NULL, 0);
	}
	return arg;
}
int main(void)
{
	char line[100];
	pthread_t t;

	puts("ready"), fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "vfork\\n"))
			pthread_create(&t, NULL, lend, NULL);
		n = atol(line);
		all();
		puts("done"), fflush(stdout);
	}
	return 3;
}
"""


class Told:
    def __enter__(self):
        if not os.path.exists("told"):
            tap.compile_text("told", TOLD, "-pthread")
        self.p = subprocess.Popen(["./told"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.p.pid
        need(self.p.stdout.readline() == "ready\n", "it does not begin")
        return self

    def do(self, what):
        self.p.stdin.write(f"{what}\n")
        self.p.stdin.flush()
        need(self.p.stdout.readline() == "done\n", "it has ended")

    def end(self):
        """By itself: its status is its own."""
        self.p.stdin.close()
        need(self.p.wait(60) == 3, self.p.returncode)

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()


class Monitor:
    def __init__(self, pids, *options):
        argv = [KRON, "monitor", "--json", "-o", "rows", "--every", "20ms", "--pid", ",".join(str(p) for p in pids), *options]
        self.k = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        line = self.k.stderr.readline()
        need("counting in process" in line and all(str(p) in line for p in pids), line)

    def end(self, sig=None):
        """Rows, totals, and what it says."""
        if sig:
            self.k.send_signal(sig)
        said = self.k.communicate(timeout=60)[1]
        need(self.k.returncode == 0, f"{self.k.returncode}: {said}")
        with open("rows") as f:
            lines = [json.loads(line) for line in f]
        for name, total in lines[-1]["totals"].items():
            need(sum(r["events"][name] or 0 for r in lines[:-1]) == total, f"{name} is not the sum of its intervals")
        return lines[:-1], lines[-1], said


def untouched(pid):
    need(not live.ours(pid), live.ours(pid))
    live.text_is_of_files(pid)
    with open(f"/proc/{pid}/status") as f:
        need("TracerPid:\t0\n" in f.read(), "it is traced still")


def counted(*how):
    """Threads of all ages and children, in intervals; before and after it nothing counts."""
    with Told() as p:
        p.do(1000)
        k = Monitor([p.pid], *how, "-e", "calls:work,calls,page-faults")
        p.do(20001)
        rows, end, said = k.end(signal.SIGINT)
        need(end["totals"]["calls:work"] == 3 * 20001, end)
        need(end["totals"]["calls"] >= 3 * 20001, end)
        need(sum(1 for r in rows if r["events"]["calls:work"]) >= 2, "all is in one interval")
        need("runs on as before" in said and end["probes_ns"] > 0, said)
        need(end["stops"] > 1 if how else "stops" not in end, end)
        untouched(p.pid)
        p.do(1000)
        p.end()


def several():
    """Two processes; one of them ends by itself."""
    with Told() as p, Told() as q:
        k = Monitor([p.pid, q.pid], "--freeze", "-e", "calls:work")
        p.do(1000), q.do(500)
        p.end()
        q.do(500)
        end, said = k.end(signal.SIGTERM)[1:]
        need(end["totals"]["calls:work"] == 6000, end)
        need(f"process {q.pid} runs on as before; process {p.pid} has ended" in said, said)
        untouched(q.pid)
        q.end()


def ends():
    """By its time, and by the program's end."""
    with Told() as p:
        rows, end, said = Monitor([p.pid], "--for", "200ms", "-e", "calls:work").end()
        need(0.15e9 < rows[-1]["time_ns"] and end["totals"]["calls:work"] == 0 and "runs on" in said, (rows, said))
        untouched(p.pid)
        k = Monitor([p.pid], "-e", "calls:work")
        p.do(3000)
        p.end()
        end, said = k.end()[1:]
        need(end["totals"]["calls:work"] == 9000 and "has ended" in said, (end, said))


def beside_stops():
    """Who stops the process at intervals, and who attaches and leaves meanwhile, wait for one another: none has to give up."""
    with Told() as p:
        stops = [KRON, "monitor", "-q", "--every", "1ms", "--freeze", "-e", "page-faults", "--pid", str(p.pid)]
        s = subprocess.Popen(stops, stdout=subprocess.PIPE)
        try:
            s.stdout.readline()
            for _ in range(3):
                k = Monitor([p.pid], "--every", "2ms", "--freeze", "-e", "calls:work")
                p.do(500)
                end, said = k.end(signal.SIGINT)[1:]
                need(end["totals"]["calls:work"] == 1500 and "runs on as before" in said, (end, said))
                need(not live.ours(p.pid), live.ours(p.pid))
        finally:
            s.terminate()
            s.communicate(timeout=60)
        untouched(p.pid)
        p.end()


def borrowed():
    """A stop waits for who has lent the memory to a child; so does the end, and finds nobody of ours in its way."""
    with Told() as p:
        k = Monitor([p.pid], "--freeze", "-e", "calls:work")
        p.do("vfork")
        p.do(300)
        end, said = k.end(signal.SIGINT)[1:]
        need(end["totals"]["calls:work"] == 900 and "runs on as before" in said, (end, said))
        untouched(p.pid)


def refused():
    """No such function, or process: nothing is left there."""
    with Told() as p:
        k = subprocess.run([KRON, "monitor", "-e", "calls:work", "--pid", f"{p.pid},{os.getpid()}0000"], capture_output=True, text=True, timeout=60)
        need(k.returncode == 125 and k.stderr.count("\n") == 1 and not k.stdout, k)
        end, said = Monitor([p.pid], "--for", "50ms", "-e", "calls:no_such_function").end()[1:]
        need(end["totals"] == {"calls:no_such_function": 0} and "no function was selected" in said, (end, said))
        untouched(p.pid)


with tap.Suite("monitored") as s:
    s.case("calls of a process that runs", counted)
    s.case("and with stops", counted, "--freeze")
    s.case("several processes", several)
    s.case("how it ends", ends)
    s.case("beside another one that stops it", beside_stops)
    s.case("a child that borrows the memory", borrowed)
    s.case("what is not there", refused)
