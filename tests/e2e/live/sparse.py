#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sparse.py - kron record --clock every:N --pid: samples of a process that runs share readings of the clock.

Ground truth: the program reads the clock itself in the functions that it calls, and counts their calls; the same process
recorded with the full clock, for the order of its events; and that it lives on when kron has left it."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import live  # noqa: E402
import tap  # noqa: E402
from tap import KRON, need, rnd  # noqa: E402

# At each line: calls of told() note the clock at their beginning and end, and some sleep; two threads only count.
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <x86intrin.h>
#define CALLS 1500
static unsigned long in[CALLS], out[CALLS], leaves[3];
static volatile sig_atomic_t over;
__attribute__((noinline)) unsigned long leaf(unsigned long n, int k) { __asm__ volatile("" ::: "memory"); leaves[k]++; return n * 3 + 1; }
__attribute__((noinline)) unsigned long twice(unsigned long n, int k) { return leaf(leaf(n, k), k) + 1; }
__attribute__((noinline)) void told(int i, unsigned long *sum)
{
    in[i] = __rdtsc();
    for (int k = i % 7; k; k--) *sum += i % 3 ? leaf(k, 0) : twice(k, 0);
    if (i % 300 == 299) nanosleep(&(struct timespec){0, 2000000}, 0);
    out[i] = __rdtsc();
}
static void *thread(void *arg) { unsigned long s = 0; for (int i = 0; i < 500; i++) s += twice(i, *(int *)arg); return s ? 0 : arg; }
static void tick(int s) { (void)s; twice(2, 2); }
static void end(int s) { (void)s; over = 1; }
static void *turn(void *arg) { unsigned long s = 0; while (!over) { s += twice(s, *(int *)arg); for (int k = 0; k < 3000; k++) __asm__ volatile("pause"); } return s ? 0 : arg; }
static void spin(void)
{
    struct itimerval it = {{0, 100}, {0, 100}};
    unsigned long sum = 0;
    signal(SIGALRM, tick);
    signal(SIGTERM, end);
    setitimer(ITIMER_REAL, &it, 0);
    while (!over) { sum += twice(sum, 0); for (int k = 0; k < 3000; k++) __asm__ volatile("pause"); }
}
int main(void)
{
    char line[20];
    int one = 1, two = 2;
    puts("ready"), fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        unsigned long sum = 0;
        pthread_t t[2];
        if (!strcmp(line, "spin\n")) {
            pthread_create(&t[0], 0, turn, &one);
            pthread_create(&t[1], 0, turn, &two);
            puts("spins"), fflush(stdout);
            spin();
            for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
            return 4;
        }
        memset(leaves, 0, sizeof(leaves));
        for (int i = 0; i < CALLS; i++) told(i, &sum);
        pthread_create(&t[0], 0, thread, &one);
        pthread_create(&t[1], 0, thread, &two);
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
        for (int i = 0; i < CALLS; i++) printf("%lu %lu\n", in[i], out[i]);
        printf("%lu\n.\n", leaves[0] + leaves[1] + leaves[2]), fflush(stdout);
    }
    return 3;
}
"""
ROUNDING = 3  # ns


class Program:
    def __enter__(self):
        if not os.path.exists("program"):
            tap.compile_text("program", PROGRAM, "-pthread")
        self.p = subprocess.Popen(["./program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        need(self.p.stdout.readline() == "ready\n", "it does not begin")
        return self

    def say(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def recorded(self, name, *options):
        """What it says of its calls meanwhile."""
        r = live.record_pid(self.p.pid, "--when-full", "wait", *options, trace=name)
        self.say("go")
        lines = list(iter(self.p.stdout.readline, ".\n"))
        live.interrupt(r)
        need(not live.ours(self.p.pid), live.ours(self.p.pid))
        live.text_is_of_files(self.p.pid)
        return lines

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()


def dump(name):
    r = subprocess.run([KRON, "dump", "--json", name], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in r.stdout.splitlines()]


def report(name):
    r = subprocess.run([KRON, "report", "--json", name], capture_output=True, text=True, check=True)
    return {f["function"]: f for f in json.loads(r.stdout)}


def by_thread(events):
    threads = {}
    for e in events:
        if e["kind"] in ("entry", "exit"):
            threads.setdefault(e["thread"], []).append((e["kind"], e["function"]))
    return sorted(threads.values(), key=lambda v: (len(v), v))


def times_of(name, lines):
    """The program's own times, on the trace's line."""
    with open(name + "/session") as f:
        session = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
    start, hz = int(session["start_tsc"]), live.info(name)["tsc_hz"]
    return [[(int(x) - start) * 1e9 / hz for x in line.split()] for line in lines[:-1]]


def span(e):
    return e.get("time_low_ns", e["time_ns"]), e.get("time_high_ns", e["time_ns"])


def told_of(name):
    return [e for e in dump(name) if e.get("function") == "told" and e["kind"] in ("entry", "exit")]


def shares():
    """Are readings shared here?  Where the C library registers no rseq area each sample reads the clock."""
    return [int(n) for n in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")] >= [2, 35]


def order_and_counts():
    with Program() as p:
        p.recorded("full")
        full = by_thread(dump("full"))
        for n in ("2", "16"):
            lines = p.recorded("s" + n, "--clock", "every:" + n)
            need(full == by_thread(dump("s" + n)), f"every:{n}: another order")
            calls = report("s" + n)
            need(calls["leaf"]["calls"] == int(lines[-1]) and calls["told"]["calls"] == 1500, calls)
            need(live.info("s" + n)["clock"]["every"] == int(n), "info")


def bounds():
    """The program's own times lie within the bounds, of which most are no readings; who slept reads."""
    with Program() as p:
        for n in (16, 256):
            name = f"b{n}"
            truth = times_of(name, p.recorded(name, "--clock", f"every:{n}"))
            told = told_of(name)
            need(len(told) == 2 * len(truth), f"{len(told)} events of {len(truth)} calls")
            copied, last = 0, 0
            for i, (begin, end) in enumerate(truth):
                entry, leave = span(told[2 * i]), span(told[2 * i + 1])
                need(entry[0] <= begin + ROUNDING and entry[1] >= last - ROUNDING, f"call {i} began between {last} and {begin}, and it says {entry}")
                need(leave[1] >= end - ROUNDING, f"call {i} ended after {end}, and it says {leave}")
                if i + 1 < len(truth):
                    need(leave[0] <= truth[i + 1][0] + ROUNDING, f"call {i}: {leave}, the next one began at {truth[i + 1]}")
                if i % 300 == 299 and shares():
                    need(leave[1] - leave[0] <= ROUNDING, f"every:{n}: call {i} slept, and its end is {leave}")
                copied += (entry[0] != entry[1]) + (leave[0] != leave[1])
                last = end
            need(copied > len(truth) or not shares(), f"every:{n}: {copied} of {2 * len(truth)} times are bounds")


def sums():
    """What is stored before a sleep lies before it, by the kernel's context switches, also of threads that ran before."""
    with Program() as p:
        truth = times_of("sums", p.recorded("sums", "--clock", "every:16"))
        f = report("sums")["told"]
        inside = sum(end - begin for begin, end in truth)
        need(f["total_high_ns"] >= inside and f["total_low_ns"] <= f["total_ns"] <= f["total_high_ns"], (inside, f))
        need(f["total_low_ns"] <= truth[-1][1] - truth[0][0], f)
        i = live.info("sums")["switches"]
        if not i["recorded"]:
            raise tap.Skip(str(i))
        slept = sum(end - begin for begin, end in truth[299::300])
        need(f["total_high_ns"] - f["total_low_ns"] < slept, (slept, f))
        p.recorded("timed", "--clock", "every:256", "--timed", "told", "--switches", "no")
        need(all("time_low_ns" not in e for e in told_of("timed")), "--timed has bounds")


def switches():
    """With the full clock, too, where they are asked for: each sleep of a thread that ran before is one."""
    with Program() as p:
        p.recorded("none")
        need(not live.info("none")["switches"]["recorded"], "nobody has asked for them")
        if subprocess.run([KRON, "record", "-q", "-o", "x", "--switches", "yes", "true"], capture_output=True).returncode == 125:
            raise tap.Skip("they are not allowed here")
        p.recorded("full", "--switches", "yes")
        s = live.info("full")["switches"]
        need(s["recorded"] and s["outs"] >= 5 and not s["lost"], s)


def left():
    """Under signals and switches at any instant, again and again: it lives on, and the kernel finds nothing of ours."""
    with Program() as p:
        p.say("spin")
        need(p.p.stdout.readline() == "spins\n", "it does not spin")
        for _ in range(10):
            k = subprocess.run([KRON, "record", "-q", "-o", "t", "--clock", "every:16", "--for", f"{rnd.randrange(5, 40)}ms", "--pid", str(p.p.pid)],
                               capture_output=True, text=True, timeout=60)
            need(k.returncode == 0 and p.p.poll() is None, (k, p.p.returncode))
        need(not live.ours(p.p.pid), live.ours(p.p.pid))
        time.sleep(0.02)  # signals and switches go on
        p.p.send_signal(signal.SIGTERM)
        need(p.p.wait(60) == 4, p.p.returncode)


with tap.Suite("sparse") as s:
    s.case("order and counts", order_and_counts)
    s.case("bounds", bounds)
    s.case("sums, and times of some", sums)
    s.case("context switches", switches)
    s.case("nothing is left", left)
