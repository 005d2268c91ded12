#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""sparse.py - reports of a trace whose samples share readings of the clock say how far their times may be off.

Ground truth: the program reads the clock itself, in work() and around each call of it.  A call begins between its
caller's reading and its own, so for sums, shortest and longest there is a least and a most that are true.  And the
same program with the full clock, which must have no bounds."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

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
    need("total +-" not in text and ")  +-" not in text and "<" not in text and "share" not in text and "_low_ns" not in text, text)


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
    s.case("dump", dump)
    s.case("view", view)
