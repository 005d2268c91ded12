# SPDX-License-Identifier: MIT
"""live.py - bench.py's rows about processes that run already: what attaching and detaching takes, how long
the process stands still, and what a client of redis sees of it."""
import json
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import time

MANY = """
#include <stdio.h>
#include <time.h>
int main(void) {
    struct timespec ts = {0, 1000000};
    puts("ready"); fflush(stdout);
    for (int i = 0;; i++) { functions[i % 20000](i); nanosleep(&ts, 0); }
}
"""


# Two functions take turns: one whose entry is a probe, and the least that a time stamp can cost.
CALLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define CALLS 5000
#define ROUNDS 1000
__attribute__((noinline)) void called(void) { __asm__ volatile("nopl 0(%rax)\n\tnopl 0(%rax)"); }
__attribute__((noinline)) void limit(void) {
    static volatile unsigned low;
    unsigned a, d;
    __asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
    low = a;
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double ns[2][ROUNDS];
int main(void) {
    for (int n = 0; n < 3; n++) { /* the last one counts: by then it is attached to */
        for (int r = 0; r < ROUNDS; r++)
            for (int k = 0; k < 2; k++) {
                void (*f)(void) = k ? limit : called;
                double t = now();
                for (int i = 0; i < CALLS; i++) f();
                ns[k][r] = (now() - t) / CALLS;
            }
        puts("round"); fflush(stdout);
        if (!n) getchar();
    }
    for (int k = 0; k < 2; k++) qsort(ns[k], ROUNDS, sizeof(double), compare);
    printf("%f %f\n", ns[0][ROUNDS / 50], ns[1][ROUNDS / 50]);
}
"""


def many(b):
    """A program of 20,000 functions."""
    path = os.path.join(b.tmp, "many-live")
    with open(path + ".c", "w") as f:
        for i in range(20000):
            f.write("__attribute__((noinline)) int f%d(int x) { volatile int y = x + %d; return y; }\n" % (i, i))
        f.write("static int (*const functions[])(int) = {%s};\n" % ", ".join("f%d" % i for i in range(20000)))
        f.write(MANY)
    b.run(["gcc", "-O1", "-o", path, path + ".c"])
    return path


def has_code(pid):
    return "memfd:kron" in open("/proc/%d/maps" % pid).read()


def trace_of(b):
    return os.path.join(b.tmp, "live")


def record_pid(b, pid, *options, **env):
    """kron record --pid as soon as it records, and when that was."""
    argv = [b.kron, "record", "-o", trace_of(b), "--pid", str(pid), *options]
    r = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=dict(b.env, **env))
    line = r.stderr.readline()
    attached = time.monotonic_ns()
    if "recording" not in line:
        raise RuntimeError(line.strip())
    return r, attached


def ended(recorder):
    recorder.stderr.read()
    recorder.stderr.close()
    if recorder.wait():
        raise RuntimeError("kron record ended with %d" % recorder.returncode)


def attach_once(b, pid, cache, *options):
    """ms until it is recorded, ms until it is what it was, ms that it stood still."""
    start = time.monotonic_ns()
    r, attached = record_pid(b, pid, *options, XDG_CACHE_HOME=cache)
    time.sleep(0.2)
    stop = time.monotonic_ns()
    r.send_signal(signal.SIGINT)
    while has_code(pid):
        time.sleep(0.0005)
    left = time.monotonic_ns()
    ended(r)
    info = json.loads(b.run([b.kron, "info", "--json", trace_of(b)])[1])
    return (attached - start) / 1e6, (left - stop) / 1e6, info["attach"]["longest_stop_us"] / 1e3


def calls(b, *options):
    path = os.path.join(b.tmp, "calls" + "".join(options))
    with open(path + ".c", "w") as f:
        f.write(CALLS)
    b.run(["gcc", "-O2", *options, "-o", path, path + ".c"])
    return path


def sample_once(b, program, attach):
    """A sample's time in times of the clock and a store.  Both are of the best fiftieth of the rounds: what
    disturbs them (the collector, on the same processors) is not the probe's."""
    record = [] if attach else [b.kron, "record", "-q", "-o", trace_of(b), "-p", "called", "--"]
    p = subprocess.Popen(record + [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=b.env)
    try:
        p.stdout.readline()
        r = record_pid(b, p.pid, "-p", "called")[0] if attach else None
        out = p.communicate("\n")[0]
        if r:
            ended(r)
        probe, limit = map(float, out.split("\n")[-2].split())
        return probe / limit
    finally:
        p.kill()
        p.wait()


def sample_rows(b, g):
    """The dynamic program's from the start is the one to compare with."""
    ways = {"a dynamic program": ((), False), "a static program": (("-static",), False),
            "attached": ((), True), "attached, static": (("-static",), True)}
    ratios = {name: [] for name in ways}
    programs = {options: calls(b, *options) for options, _ in ways.values()}
    for _ in range(b.rounds):
        for name, (options, attach) in ways.items():
            ratios[name].append(sample_once(b, programs[options], attach))
    for name, v in ratios.items():
        v = statistics.median(v)
        b.row(g, "a sample / (rdtsc + store), " + name, v, "x", "<= 1.2", v <= 1.2)


def attach_rows(b, g):
    p = subprocess.Popen([many(b)], stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        warm = os.path.join(b.tmp, "live-cache")
        cold = []
        attach_once(b, p.pid, warm)
        rows = [attach_once(b, p.pid, warm) for _ in range(b.rounds)]
        for i in range(b.rounds):
            cold.append(attach_once(b, p.pid, os.path.join(b.tmp, "live-cold%d" % i))[0])
        for name, values, limit in (("attach, cold plan cache", cold, 200), ("attach, warm plan cache", [r[0] for r in rows], 40),
                                    ("detach", [r[1] for r in rows], 50), ("stands still", [r[2] for r in rows], 5)):
            v = statistics.median(values)
            b.row(g, "20,000 functions, " + name, v, "ms", "<= %d" % limit, v <= limit)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


# ---- redis ----


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0


def redis_once(b, client, names):
    """us: p99.9 before, while it is recorded; the longest wait before, around attaching, around detaching."""
    sock, data = os.path.join(b.tmp, "redis.sock"), os.path.join(b.tmp, "redis.lat")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", sock, "--save", "", "--dir", b.tmp],
                              stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(sock):
            time.sleep(0.01)
        c = subprocess.Popen([client, sock, "7", data])
        time.sleep(2.5)
        start = time.monotonic_ns()
        r, attached = record_pid(b, server.pid, *[x for n in names for x in ("-F", n)])
        time.sleep(2)
        stop = time.monotonic_ns()
        r.send_signal(signal.SIGINT)
        ended(r)
        left = time.monotonic_ns()
        if c.wait():
            raise RuntimeError("redis' client ended with %d" % c.returncode)
    finally:
        server.terminate()
        server.wait()
    pairs = list(struct.iter_unpack("QQ", open(data, "rb").read()))
    ms = 1000000

    def between(a, z):
        return [d / 1e3 for t, d in pairs if a <= t < z]

    before, on = between(0, start), between(attached + 50 * ms, stop)
    return (percentile(before, 0.999), percentile(on, 0.999), percentile(before, 0.5), percentile(on, 0.5),
            max(between(start, attached + 50 * ms)), max(between(stop, left + 50 * ms)))


def redis_rows(b, g):
    if not shutil.which("redis-server"):
        b.row(g, "redis", None, "", note="redis-server is not installed")
        return
    client = os.path.join(b.tmp, "latency")
    b.run(["gcc", "-O2", "-o", client, os.path.join(os.path.dirname(os.path.abspath(__file__)), "latency.c")])
    functions = json.loads(b.run([b.kron, "list", "--json", shutil.which("redis-server")])[1])["functions"]
    # those that a question goes through, and others: every n-th
    names = [f["name"] for f in functions if re.fullmatch(r"[a-z]\w+", f["name"])]
    names = names[:: max(1, len(names) // 200)][:200]
    redis_once(b, client, names)  # plans are cached now
    runs = [redis_once(b, client, names) for _ in range(max(3, b.rounds // 2))]
    p, q, half, half_on, at, out = (statistics.median(r[i] for r in runs) for i in range(6))
    b.row(g, "redis p50, 200 functions recorded", half_on, "us", note="%.1f before" % half)
    b.row(g, "redis p99.9, 200 functions recorded", q, "us", "<= 1.1 x before", q <= 1.1 * p, "%.1f before" % p)
    b.row(g, "redis, longest wait around attaching", at / 1e3, "ms", "<= 5 more", at <= p + 5000)
    b.row(g, "redis, longest wait around detaching", out / 1e3, "ms", "<= 5 more", out <= p + 5000)


def rows(b):
    sample_rows(b, "live")
    attach_rows(b, "live")
    redis_rows(b, "live")
