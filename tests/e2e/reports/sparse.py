#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""sparse.py - reports of a trace whose samples share readings of the clock say how far their times may be off.

Ground truth: the program reads the clock itself, in work() and around each call of it.  A call begins between its
caller's reading and its own, so for sums, shortest and longest there is a least and a most that are true.  And the
same program with the full clock, which must have no bounds."""
import bisect
import json
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Skip, Suite, compile_text, need, wait_for  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <x86intrin.h>
#define CALLS 1200
#define NOINLINE __attribute__((noinline))
static unsigned long before[CALLS], in[CALLS], out[CALLS], after[CALLS];
static volatile unsigned long sink;
NOINLINE void leaf(unsigned long n) { sink += n; }
NOINLINE void work(int i)
{
    in[i] = __rdtsc();
    for (int k = i % 7; k; k--) leaf(k);
    for (int k = i % 100 ? 0 : 20000; k; k--) sink++;
    out[i] = __rdtsc();
}
NOINLINE void alpha(int i) { before[i] = __rdtsc(); work(i); after[i] = __rdtsc(); }
NOINLINE void beta(int i) { before[i] = __rdtsc(); work(i); after[i] = __rdtsc(); }
int main(void)
{
    for (int i = 0; i < CALLS; i++) (i % 3 ? alpha : beta)(i);
    for (int i = 0; i < CALLS; i++) printf("%lu %lu %lu %lu\n", before[i], in[i], out[i], after[i]);
    return 0;
}
"""
ROUNDING = 3  # ns

# Calls within calls of the same function; of one the program is killed, or its recorder.
NEST = r"""
#include <stdio.h>
#include <x86intrin.h>
#define NOINLINE __attribute__((noinline))
#define DEPTH 40
static unsigned long in[DEPTH], out[DEPTH], least, most;
static volatile unsigned long sink;
NOINLINE void nest(int n)
{
    in[n] = __rdtsc();
    if (n) { unsigned long t = __rdtsc(); nest(n - 1); most += __rdtsc() - t; }
    sink++;
    out[n] = __rdtsc();
    least += out[n] - in[n];
}
int main(void)
{
    for (int i = 0; i < 100; i++) { unsigned long t = __rdtsc(); nest(DEPTH - 1); most += __rdtsc() - t; }
    printf("%lu %lu\n", least, most);
    return 0;
}
"""
KILL = r"""
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
#define NOINLINE __attribute__((noinline))
static volatile unsigned long sink;
static const struct timespec a_while = {0, 20000000};
NOINLINE void last(int i)
{
    unsigned long t = __rdtsc();
    sink++;
    if (i < 37) return;
    while (__rdtsc() - t < 20000000) ;
    printf("%lu\n", __rdtsc() - t);
    fflush(stdout);
    if (KILLS_RECORDER) { kill(getppid(), 9); nanosleep(&a_while, 0); }
    kill(getpid(), 9);
}
NOINLINE void outer(int i) { last(i); sink++; }
int main(void) { for (int i = 0; i < 100; i++) outer(i); return 0; }
"""
TALK = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <x86intrin.h>
#define NOINLINE __attribute__((noinline))
#define COUNT 2000
static int there[2], back[2];
static unsigned long before[COUNT], in[COUNT], out[COUNT], after[COUNT], least, most;
NOINLINE void send(int i)
{
    in[i] = __rdtsc();
    if (write(there[1], &i, 1) != 1) _exit(1);
}
NOINLINE void receive(int i)
{
    char c;
    if (read(there[0], &c, 1) != 1) _exit(1);
    out[i] = __rdtsc();
}
static void *receiver(void *arg)
{
    for (int i = 0; i < COUNT; i++) {
        receive(i);
        after[i] = __rdtsc();
        if (write(back[1], "", 1) != 1) _exit(1);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    char c;
    if (pipe(there) || pipe(back) || pthread_create(&t, 0, receiver, 0)) return 1;
    for (int i = 0; i < COUNT; i++) {
        before[i] = __rdtsc();
        send(i);
        if (read(back[0], &c, 1) != 1) return 1;
    }
    pthread_join(t, 0);
    for (int i = 0; i < COUNT; i++) { least += out[i] - in[i]; most += after[i] - before[i]; }
    printf("%lu %lu\n", least, most);
    return 0;
}
"""
LOOP = r"""
#include <stdio.h>
#include <unistd.h>
#include <x86intrin.h>
#define NOINLINE __attribute__((noinline))
#define MOST 4000000
static unsigned long in[MOST];
static volatile unsigned long sink;
NOINLINE void work(int i) { in[i] = __rdtsc(); sink++; }
int main(void)
{
    int n = 0;
    fclose(fopen("running", "w"));
    for (; n < MOST && (n % 1000 || access("stop", F_OK)); n++) {
        unsigned long t = __rdtsc();
        while (__rdtsc() - t < 2000) ;
        work(n);
    }
    for (int i = 0; i < n; i++) printf("%lu\n", in[i]);
    return 0;
}
"""
NAP = r"""
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
#define NOINLINE __attribute__((noinline))
#define NAPS 50
static unsigned long before[NAPS], in[NAPS], out[NAPS], after[NAPS];
static volatile unsigned long sink;
NOINLINE void leaf(void) { sink++; }
NOINLINE void nap(int i)
{
    const struct timespec t = {0, 2000000};
    in[i] = __rdtsc();
    leaf();
    nanosleep(&t, 0);
    for (int k = i % 10 ? 100 : 200000; k; k--) sink++;
    out[i] = __rdtsc();
}
int main(void)
{
    for (int i = 0; i < NAPS; i++) {
        before[i] = __rdtsc();
        for (int k = i % 5; k; k--) leaf();
        nap(i);
        after[i] = __rdtsc();
    }
    for (int i = 0; i < NAPS; i++) printf("%lu %lu %lu %lu\n", before[i], in[i], out[i], after[i]);
    return 0;
}
"""


def kron(*argv, said=None):
    """What it prints; said: what it says about estimates, or nothing."""
    r = subprocess.run([KRON, *argv], capture_output=True, text=True, timeout=120)
    need(r.returncode == 0, f"kron {argv}: {r.stderr}")
    need((said in r.stderr) if said else not r.stderr, f"kron {argv} says {r.stderr!r}")
    return r.stdout


def load(*argv):
    return json.loads(kron("report", "--json", *argv))


def record(name, *options):
    """The calls of work() by caller, as the least and the most that each of them took."""
    compile_text("program", PROGRAM, "-O1")
    lines = kron("record", "-q", "-o", name, "--when-full", "wait", *options, "./program").splitlines()
    hz = json.loads(kron("info", "--json", name))["tsc_hz"]
    calls = {"alpha": [], "beta": []}
    for i, line in enumerate(lines):
        before, begin, end, after = (int(x) * 1e9 / hz for x in line.split())
        calls["alpha" if i % 3 else "beta"].append((end - begin, after - before))
    need(sum(map(len, calls.values())) == 1200, lines[:3])
    return calls


def holds(row, key, least, most):
    """The bounds have the truth in them, which is between these, and the estimate."""
    low, high = row[key + "_low_ns"], row[key + "_high_ns"]
    need(high >= least - ROUNDING and low <= most + ROUNDING, f"{key} is {least} to {most}, and it says {row}")
    need(low <= row[key + "_ns"] <= high, f"{key}: {row}")


def is_bound(row, key):
    """Is the estimate so rough that the most is told in its place?  Twice too long or too short is."""
    low, ns, high = (row[key + end] for end in ("_low_ns", "_ns", "_high_ns"))
    return high > 0 and (low == 0 or low < ns // 2 or high // 2 > ns)


def holds_calls(row, truth):
    need(row["calls"] == len(truth), row)
    holds(row, "total", sum(c[0] for c in truth), sum(c[1] for c in truth))
    if "min_ns" in row:
        holds(row, "min", min(c[0] for c in truth), min(c[1] for c in truth))
        holds(row, "max", max(c[0] for c in truth), max(c[1] for c in truth))


def add_up(rows, function):
    """The bounds of a function's parts are no narrower than those of the function, and no wider than that by their number."""
    for key in "total", "self":
        off, whole = (sum(r[key + "_high_ns"] - r[key + "_ns"] for r in v) for v in (rows, [function]))
        need(whole - ROUNDING <= off <= len(rows) * whole + ROUNDING, f"{key}: {rows} of {function}")
    for key, of in ("min_low_ns", min), ("min_high_ns", min), ("max_low_ns", max), ("max_high_ns", max):
        need(key not in rows[0] or of(r[key] for r in rows) == function[key], f"{key}: {rows} of {function}")


def function_of(name, trace):
    (row,) = [r for r in load(trace) if r["function"] == name]
    return row


def no_bounds(text):
    need("total +-" not in text and ")  +-" not in text and "<" not in text and "share" not in text and "_low_ns" not in text and "elsewhere" not in text,
         text)


def callers():
    """Times of a function by caller, and of those that it calls."""
    record("full")
    for argv in ("--callers", "work"), ("--callees", "work"), ("--json", "--callers", "work", "--callees", "work"):
        no_bounds(kron("report", *argv, "full"))
    for n in "2", "16", "256":
        truth = record("sparse" + n, "--clock", "every:" + n)
        rows = {r["caller"]: r for r in load("--callers", "work", "sparse" + n)}
        need(set(rows) == set(truth), rows)
        for name in truth:
            holds_calls(rows[name], truth[name])
            holds(rows[name], "self", 0, sum(c[1] for c in truth[name]))
        add_up(list(rows.values()), function_of("work", "sparse" + n))
        (leaf,) = load("--callees", "work", "sparse" + n)
        need(leaf["function"] == "leaf" and leaf["calls"] == sum(i % 7 for i in range(1200)), leaf)
        holds(leaf, "total", 0, sum(c[1] for v in truth.values() for c in v))
        need(leaf["min_low_ns"] == 0 < leaf["min_high_ns"], "some call of leaf() lies between two readings")
        add_up([leaf], function_of("leaf", "sparse" + n))
        text = kron("report", "--callers", "work", "--callees", "work", "sparse" + n)
        lines = [line for line in text.splitlines() if "[program]" in line and "of" not in line.split()]
        need(len(lines) == 3 and all("  total +-" in line and ", self +-" in line for line in lines), text)
        need("<" in lines[2] and "(its own time)  +-" in text and f"\n{n} samples share" in text, text)


def graph():
    """Times of each way to a function."""
    record("full")
    for argv in ("-g",), ("-g", "--json"):
        no_bounds(kron("report", *argv, "full"))
    for n in "2", "16", "256":
        truth = record("sparse" + n, "--clock", "every:" + n)
        nodes = load("-g", "--threshold", "0", "sparse" + n)
        by_id = {v["id"]: v for v in nodes}
        for name in truth:
            (node,) = [v for v in nodes if v["function"] == "work" and by_id[v["parent"]]["function"] == name]
            holds_calls(node, truth[name])
            (leaf,) = [v for v in nodes if v["parent"] == node["id"]]
            holds(node, "self", 0, sum(c[1] for c in truth[name]))
            holds(leaf, "total", 0, sum(c[1] for c in truth[name]))
        for name in "work", "leaf", "alpha", "main":
            add_up([v for v in nodes if v["function"] == name], function_of(name, "sparse" + n))
        text = kron("report", "-g", "--threshold", "0", "sparse" + n)
        lines = [line for line in text.splitlines() if " work [" in line or " leaf [" in line]
        need(len(lines) == 4 and all("  total +-" in line and ", self +-" in line for line in lines), text)
        need(f"\n{n} samples share" in text, text)


def nth(lengths, percent):
    """The shortest length that so many percent of all do not exceed."""
    return sorted(lengths)[-(-len(lengths) * percent // 100) - 1]


def percentiles():
    """What half of a function's calls did not exceed, and 90% and 99%."""
    record("full")
    for argv in ("-p",), ("-p", "--json"):
        no_bounds(kron("report", *argv, "full"))
    for n in "2", "16", "256":
        calls = [c for v in record("sparse" + n, "--clock", "every:" + n).values() for c in v]
        row = function_of("work", "sparse" + n)
        for percent in 50, 90, 99:
            least, most = (nth([c[i] for c in calls], percent) for i in (0, 1))
            holds(row, f"p{percent}", least, most)
        text = kron("report", "-p", "sparse" + n)
        (line,) = [line for line in text.splitlines() if " leaf [" in line]
        need(line.count("<") >= 2, f"half of all calls of leaf() lie between two readings: {line}")


def run(name, program, *options):
    """What a program prints that need not end well."""
    compile_text("program", program, "-O1")
    r = subprocess.run([KRON, "record", "-q", "-o", name, "--when-full", "wait", *options, "./program"], stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, text=True, timeout=120)
    return [int(x) for x in r.stdout.split()]


def info_of(file, text):
    with open(file, "w") as f:
        f.write(text)


def holds_spread(row, calls):
    """All that the row has of single lengths, and their mean."""
    for key, least, most in (("min", *(min(c[i] for c in calls) for i in (0, 1))),
                             ("max", *(max(c[i] for c in calls) for i in (0, 1))),
                             ("avg", *(sum(c[i] for c in calls) / len(calls) for i in (0, 1))),
                             *((f"p{p}", *(nth([c[i] for c in calls], p) for i in (0, 1))) for p in (50, 90, 99))):
        holds(row, key, least, most)


def intervals():
    """Lengths of intervals, also of those that lie within each other."""
    info_of("i.info", '1 work work%return "work"\n3 alpha work alpha%return "before" "after"\n')
    info_of("nest.info", '1 nest nest%return "nest"\n')
    record("full")
    for argv in ("-i", "i.info"), ("-i", "i.info", "--json", "--virtual", "--histogram"):
        no_bounds(kron("report", *argv, "full"))
    for n in "2", "16", "256":
        calls = [c for v in record("sparse" + n, "--clock", "every:" + n).values() for c in v]
        work, before, after, both = load("-i", "i.info", "--virtual", "sparse" + n)
        holds(work, "total", sum(c[0] for c in calls), sum(c[1] for c in calls))
        holds_spread(work, calls)
        need(work["stddev_low_ns"] <= work["stddev_ns"] <= work["stddev_high_ns"], work)
        need(work["total_virtual_low_ns"] <= work["total_virtual_ns"] <= work["total_virtual_high_ns"], work)
        need(both["count"] == 800 and before["total_low_ns"] + after["total_low_ns"] <= both["total_high_ns"], both)
        (alpha,) = [r for r in load("sparse" + n) if r["function"] == "alpha"]
        for key in "total", "min", "max", "p50":
            for end in "_low_ns", "_ns", "_high_ns":
                need(abs(both[key + end] - alpha[key + end]) <= ROUNDING, f"{key}{end}: {both} of {alpha}")
        text = kron("report", "-i", "i.info", "sparse" + n)
        need("  total +-" in text and "<" in text and f"\n{n} samples share" in text, text)
        least, most = run("nest" + n, NEST, "--clock", "every:" + n)
        (nest,) = load("-i", "nest.info", "nest" + n)
        need(nest["count"] == 4000, nest)
        hz = json.loads(kron("info", "--json", "nest" + n))["tsc_hz"]
        holds(nest, "total", least * 1e9 / hz, most * 1e9 / hz)


def messages():
    """Messages between two threads, one at a time: those of --timed are exact, of the others bounds hold the truth."""
    compile_text("program", TALK, "-O1", "-pthread")
    info_of("m.info", '4 send receive%return "message"\n')
    for options in [], ["--clock", "every:16", "--timed", "send", "--timed", "receive"], ["--clock", "every:16"]:
        lines = kron("record", "-q", "-o", "talk", "--when-full", "wait", *options, "./program")
        least, most = (int(x) * 1e9 / json.loads(kron("info", "--json", "talk"))["tsc_hz"] for x in lines.split())
        (row,) = load("-i", "m.info", "talk")
        (pair,) = load("-i", "m.info", "--messages", "talk")
        text = [kron("report", "-i", "m.info", *argv, "talk") for argv in ([], ["--messages"])]
        if not options:
            need(least - ROUNDING <= row["total_ns"] <= most + ROUNDING, f"{least} to {most}: {row}")
            need("total_low_ns" not in row and "total_low_ns" not in pair, row)
            continue
        for r in row, pair:
            if "--timed" in options or r["count"] == 2000:
                holds(r, "total", least, most)
            for key in "min", "max", "avg":
                need(r[f"{key}_low_ns"] <= r[f"{key}_ns"] <= r[f"{key}_high_ns"], r)
        if "--timed" in options:
            need(row["count"] == 2000 and row["total_low_ns"] == row["total_high_ns"], row)
        need(all(("estimated times" in t) == ("--timed" not in options) for t in text), text)


def killed():
    """A call that the program was killed in, or that its recorder was killed in."""
    for n in "2", "16", "256":
        for kills_recorder in 0, 1:
            name = f"killed{n}.{kills_recorder}"
            (ticks,) = run(name, f"#define KILLS_RECORDER {kills_recorder}\n" + KILL, "--clock", "every:" + n)
            if kills_recorder:
                kron("recover", name)
            least = ticks * 1e9 / json.loads(kron("info", "--json", name))["tsc_hz"]
            rows = {r["function"]: r for r in load(name)}
            ends = [line for line in kron("replay", name).splitlines() if "still running" in line]
            need([line.split("/* ")[1].split(",")[0] for line in ends[:3]] == ["last", "outer", "main"], ends)
            for function, calls in ("last", 38), ("outer", 38), ("main", 1):
                r = rows[function]
                need(r["calls"] == calls and r["total_low_ns"] <= r["total_ns"] and r["max_low_ns"] <= r["max_ns"], r)
                for key in "total_high_ns", "max_high_ns":
                    need(r.get(key, least) >= least - ROUNDING, f"the last call took {least} ns: {r}")
                    need(kills_recorder or key in r, f"it is known when the program ended: {r}")
            need(not any(line.startswith("  0.000 us") for line in ends), ends)


def clock_of(trace):
    """What makes nanoseconds of the trace of a program's readings."""
    hz = json.loads(kron("info", "--json", trace))["tsc_hz"]
    with open(f"{trace}/session") as f:
        start = int(dict(line.rstrip("\n").split("=", 1) for line in f)["start_tsc"])
    return lambda tsc: (tsc - start) * 1e9 / hz


def times_off(trace):
    """When the only thread was off its processor, by the kernel's records."""
    off, since = [], None
    for line in kron("dump", "--switches", "--json", trace).splitlines():
        e = json.loads(line)
        if e["kind"] == "switch-in" and since is not None:
            off.append((since, e["time_ns"]))
        if e["kind"].startswith("switch-"):
            since = None if e["kind"] == "switch-in" else e["time_ns"]
    return off


def on_cpu():
    """A function that sleeps, all times and those on a processor: what it slept makes their bounds no wider."""
    for n in "2", "16", "256":
        ticks = run("nap" + n, NAP, "--clock", "every:" + n)
        if not json.loads(kron("info", "--json", "nap" + n))["switches"]["recorded"]:
            raise Skip("needs the right to record context switches")
        clock, off = clock_of("nap" + n), times_off("nap" + n)
        before, begin, end, after = ([clock(t) for t in ticks[k::4]] for k in range(4))
        least, most = (sum(b - a - sum(max(0, min(b, until) - max(a, since)) for since, until in off) for a, b in zip(*v))
                       for v in ((begin, end), (before, after)))
        row = {r["function"]: r for r in load("--sort", "on-cpu", "nap" + n)}["nap"]
        holds_calls(row, list(zip((b - a for a, b in zip(begin, end)), (b - a for a, b in zip(before, after)))))
        need(row["total_on_cpu_low_ns"] <= most + 50 * ROUNDING and row["total_on_cpu_high_ns"] >= least - 50 * ROUNDING,
             f"{least} to {most}: {row}")
        for key in "total", "self":
            low, high = row[f"{key}_on_cpu_low_ns"], row[f"{key}_on_cpu_high_ns"]
            need(low <= row[f"{key}_on_cpu_ns"] <= high, row)
        width = {key: row[key + "_high_ns"] - row[key + "_low_ns"] for key in ("self", "self_on_cpu")}
        slept = sum(until - since for since, until in off)
        for key in width:
            need(width[key] < slept / 4, f"{key}: of {slept} ns that it slept {width[key]} are in its bounds: {row}")
        need(", total CPU +-" in kron("report", "--sort", "on-cpu", "nap" + n), "the row has them in words")


def virtual():
    """Times without probes lie below those with them, and the cost of a probe is in their bounds."""
    record("full")
    no_bounds(kron("report", "--virtual", "--json", "full"))
    for n in "2", "16", "256":
        truth = [c for v in record("sparse" + n, "--clock", "every:" + n).values() for c in v]
        row = {r["function"]: r for r in load("--virtual", "sparse" + n)}["work"]
        for key in "total", "self", "avg", "min", "max", "p50", "p90", "p99":
            low, high = row[key + "_virtual_low_ns"], row[key + "_virtual_high_ns"]
            need(low <= row[key + "_virtual_ns"] <= high and low <= row[key + "_low_ns"], f"{key}: {row}")
        need(row["min_virtual_low_ns"] <= min(c[1] for c in truth), row)
        need(row["max_virtual_low_ns"] <= max(c[1] for c in truth), row)
        text = kron("report", "--virtual", "-p", "sparse" + n)
        need(any("<" in line and " virtual; total +-" in line for line in text.splitlines()), text)


def elsewhere(n):
    """By how many calls of work() the histogram differs from the true one, and by how many it says that it may."""
    truth = [c for v in record("sparse" + n, "--clock", "every:" + n).values() for c in v]
    row = {r["function"]: r for r in load("--histogram", "sparse" + n)}["work"]
    bins = row["histogram"]
    need(sum(b[2] for b in bins) == 1200, row)
    unsure = far = 0
    for low, high, count in bins:
        certain = sum(low <= c[0] and c[1] <= high for c in truth)
        possible = sum(c[0] <= high + ROUNDING and c[1] >= low - ROUNDING for c in truth)
        far += max(0, count - possible, certain - count)
        unsure += count
    return far, row["histogram_elsewhere"]


def histogram():
    """A histogram says how many of its entries may belong elsewhere."""
    record("full")
    for argv in ("--histogram",), ("--histogram", "--json"):
        no_bounds(kron("report", *argv, "full"))
        need("another line" not in kron("report", *argv, "full"), "each call has its line")
    for n in "2", "16", "256":
        far, may = elsewhere(n)
        need(far <= 2 * may, f"{far} are in the wrong bin, and it says {may}")
        need(0 < may <= 1200, may)
        text = kron("report", "--histogram", "sparse" + n)
        need("% of these may belong in another line" in text, text)


def diff():
    """Two traces: what both say of a function's times, with their bounds."""
    record("full")
    no_bounds(kron("diff", "full", "full"))
    no_bounds(kron("diff", "--json", "full", "full"))
    for n in "2", "256":
        truth = [c for v in record("sparse" + n, "--clock", "every:" + n).values() for c in v]
        row = {r["function"]: r for r in json.loads(kron("diff", "--json", "full", "sparse" + n))}["work"]
        need("total_low_ns" not in row["before"] and row["p"] is None, row)
        holds(row["after"], "total", sum(c[0] for c in truth), sum(c[1] for c in truth))
        holds(row["after"], "self", 0, sum(c[1] for c in truth))
        holds(row["after"], "avg", sum(c[0] for c in truth) / 1200, sum(c[1] for c in truth) / 1200)
        need(row["after"]["stddev_low_ns"] <= row["after"]["stddev_ns"] <= row["after"]["stddev_high_ns"], row)
        whole = function_of("work", "sparse" + n)
        for key in "total_low_ns", "total_high_ns", "self_low_ns", "self_high_ns":
            need(abs(row["after"][key] - whole[key]) <= ROUNDING, f"{row} of {whole}")
        leaf = {r["function"]: r for r in json.loads(kron("diff", "--json", "sparse" + n, "full"))}["leaf"]["before"]
        for sort in "self", "total", "avg":
            text = kron("diff", "--sort", sort, "sparse" + n, "full")
            (line,) = [line for line in text.splitlines() if " leaf [" in line]
            need("  before +-" in line and "after +-" not in line and f"\n{n} samples share" in text, text)
            need(("<" in line) == is_bound(leaf, "avg"), f"{leaf}: {line}")


def snapshot():
    """The last samples of a snapshot may be later than its moment."""
    compile_text("program", LOOP, "-O1")
    with subprocess.Popen([KRON, "record", "-q", "-o", "flight", "--flight", "4M", "--clock", "every:256", "./program"],
                          stdout=subprocess.PIPE, text=True) as r:
        wait_for(lambda: os.path.exists("running"), "the program")
        taken = [kron("snapshot", str(r.pid)).strip() for _ in range(3)]
        open("stop", "w").close()
        truth = [int(x) for x in r.communicate(timeout=120)[0].split()]
    need(r.returncode == 0, r.returncode)
    for trace in taken:
        entered = list(map(clock_of(trace), truth))
        samples = [json.loads(line) for line in kron("dump", "--json", trace).splitlines()[-2000:]]
        last = max(i for i, e in enumerate(samples) if "time_low_ns" not in e and e.get("function") == "work")
        at = bisect.bisect(entered, samples[last]["time_ns"]) - (samples[last]["kind"] == "exit")
        for e in samples[last + 1:]:
            if e["kind"] == "entry":
                at += 1
                least = entered[at - 1]
                need(e.get("time_high_ns", math.inf) >= least - ROUNDING, f"after {least} work() was entered: {e}")
        need(not any(r["total_ns"] > r.get("total_high_ns", math.inf) for r in load(trace)), "an estimate is above its bound")


def dump():
    """A sample that has not read the clock has both ends of its time in words as in JSON (clock.py knows that these are true)."""
    record("full")
    need(" time " not in kron("dump", "full"), "a sample that reads the clock has its own time")
    record("sparse", "--clock", "every:16")
    samples = [json.loads(line) for line in kron("dump", "--json", "sparse").splitlines()]
    lines = kron("dump", "sparse").splitlines()[1:]
    need(len(lines) == len(samples), f"{len(lines)} lines of {len(samples)} samples")
    copied = 0
    for e, line in zip(samples, lines):
        need(line.split()[0] == str(e["time_ns"]), f"{e}: {line}")
        if "time_low_ns" in e:
            need(line.endswith(f"  time {e['time_low_ns']}..{e.get('time_high_ns', '?')}"), f"{e}: {line}")
            copied += 1
        else:
            need(" time " not in line, f"{e}: {line}")
    need(copied > len(samples) / 2, f"{copied} of {len(samples)} share a reading")


def view():
    """The page has no bounds, and says so where it is made."""
    record("full")
    kron("view", "-q", "-o", "page.html", "full")
    record("sparse", "--clock", "every:16")
    kron("view", "-q", "-o", "page.html", "sparse", said="16 samples share a reading of the clock")


with Suite("sparse") as s:
    s.case("callers and callees", callers)
    s.case("call graph", graph)
    s.case("percentiles", percentiles)
    s.case("intervals", intervals)
    s.case("messages", messages)
    s.case("calls that were killed", killed)
    s.case("times on a processor", on_cpu)
    s.case("virtual times", virtual)
    s.case("histograms", histogram)
    s.case("two traces", diff)
    s.case("snapshot", snapshot)
    s.case("dump", dump)
    s.case("view", view)
