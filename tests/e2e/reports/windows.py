#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""windows.py - no call and no interval reaches from one window of --trigger into another.

Ground truth: the same trace without a trigger.  A call that has an exit there is as long in a window that has both of
its ends.  Else it is still running when the window ends, so it is not longer."""
import csv
import io
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

# handle() is so long that windows around its slow calls have not their beginning, and not the next one's end.
SERVER = r"""
#include <pthread.h>
#include <time.h>
#define NOINLINE __attribute__((noinline))
static void ms(int n) { struct timespec t = {0, n * 1000000L}; nanosleep(&t, 0); }
NOINLINE void leaf(void) { __asm__ volatile(""); }
NOINLINE void idle(void) { ms(40); __asm__ volatile(""); }
NOINLINE void put(void) { __asm__ volatile(""); }
NOINLINE void get(void) { __asm__ volatile(""); }
NOINLINE void handle(int slow)
{
    put();
    for (int i = 0; i < 2000; i++) leaf();
    if (slow) ms(30);
    for (int i = 0; i < 2000; i++) leaf();
    get();
    __asm__ volatile("");
}
NOINLINE void *serve(void *arg)
{
    for (int i = 0; i < 10; i++) { handle(i % 3 == 2); idle(); }
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, serve, 0);
    serve(0);
    return pthread_join(t, 0);
}
"""
TRIGGER = ["--trigger", "handle>20ms"]
ROUNDING = 2  # ns
ENDS = {"call", "running", "inferred"}


def kron(*args):
    r = subprocess.run([KRON, *args], capture_output=True, text=True, timeout=120)
    need(r.returncode == 0, f"{args}: status {r.returncode}: {r.stderr}")
    return r.stdout


def record(trace):
    compile_text("server", SERVER, "-pthread", "-fno-optimize-sibling-calls")
    kron("record", "-q", "-o", trace, "--", "./server")


def calls(trace, *options):
    rows = csv.DictReader(io.StringIO(kron("export", "-f", "csv", *options, trace)))
    return {
        (r["tid"], int(r["time_ns"]), r["function"]): (r["kind"], int(r["duration_ns"]))
        for r in rows
        if r["kind"] in ENDS and r["function"] in ("handle", "leaf", "idle", "put", "get")
    }


def compare(trace, *options):
    """How many calls of handle() were cut by the end of a window."""
    whole, found, cut = calls(trace), calls(trace, *options), 0
    need(found, "no calls")
    for key, (kind, length) in found.items():
        _, true = whole[key]
        need(kind != "call" or abs(length - true) <= ROUNDING, f"{key}: {length} ns, not {true}")
        need(length <= true + ROUNDING, f"{key}: {kind}, {length} ns, more than {true}")
        cut += kind == "running" and key[2] == "handle"
    return cut


def tables():
    record("t")
    need(compare("t", *TRIGGER) > 2, "windows cut nothing")
    # with a time around, and with a condition besides: then the last that passes counts
    compare("t", *TRIGGER, "--pre", "1ms", "--post", "5ms")
    compare("t", *TRIGGER, "--where", "name=handle or name=idle")


def longest(trace, *options):
    return {r["function"]: r["max_ns"] for r in json.loads(kron("report", "--json", *options, trace))}


def reports():
    record("t")
    whole, found = longest("t"), longest("t", *TRIGGER)
    for name in ("handle", "idle", "leaf"):
        need(found[name] <= whole[name] + ROUNDING, f"{name}: {found[name]} ns, more than {whole[name]}")
    text = kron("report", *TRIGGER, "t")
    need(int(re.search(r"(\d+) still running at the end", text)[1]) > 2, text)


def replay():
    record("t")
    most = longest("t")
    for options in ([], ["--no-merge"]):
        lines = kron("replay", *TRIGGER, *options, "t").splitlines()
        lengths = [re.match(r" *([\d.]+) +(us|ms|s) .*(handle|leaf|idle)", line) for line in lines]
        for m in filter(None, lengths):
            ns = float(m[1]) * {"us": 1e3, "ms": 1e6, "s": 1e9}[m[2]]
            need(ns <= most[m[3]] * 1.001 + 1000, m[0])
        need(sum("handle, still running" in line for line in lines) > 2, "no call is cut")


def leaves():
    """Where a window ends with an entry and the next one begins with an exit, that is no call without callees."""
    record("t")
    lines = kron("replay", "--trigger", "entry=idle or exit=idle", "--pre", "0", "--post", "0", "t").splitlines()
    need(not any(re.search(r"idle\(\);", line) for line in lines), "\n".join(lines[:20]))


def intervals():
    record("t")
    with open("info", "w") as f:
        f.write('1 handle handle%return "handling"\n2 put get idle "put get" "put idle"\n')
        f.write('3 put leaf get "a" "b"\n4 put get "queue"\n1 idle idle "idle to idle"\n')
    whole = json.loads(kron("report", "--json", "--intervals", "info", "t"))
    found = json.loads(kron("report", "--json", "--intervals", "info", *TRIGGER, "t"))
    for w, f in zip(whole, found):
        # class 4 pairs any start with any end, and idle comes every 40 ms or later
        limit = w["max_ns"] + ROUNDING
        need(f["max_ns"] <= limit, f"{f['interval']}: {f['max_ns']} ns, more than {limit}")


def nesting():
    """Exports that nest end each call that they begin, thread by thread, in order."""
    record("t")
    events = json.loads(kron("export", "-f", "chrome", *TRIGGER, "t"))
    events = events["traceEvents"] if isinstance(events, dict) else events
    need(any(e.get("args", {}).get("end", "").startswith("still running") for e in events), "nothing is cut")
    kron("export", "-f", "sqlite", "-o", "db", *TRIGGER, "t")
    kron("export", "-f", "speedscope", "-o", "speedscope.json", *TRIGGER, "t")
    for profile in json.load(open("speedscope.json"))["profiles"]:
        stack, at = [], 0
        for e in profile["events"]:
            need(e["at"] >= at, f"{e} comes after {at}")
            at = e["at"]
            if e["type"] == "O":
                stack.append(e["frame"])
            else:
                need(stack and stack.pop() == e["frame"], f"{e} does not nest")
        need(not stack, f"{stack} is left")


with Suite("windows") as s:
    s.case("calls in tables", tables)
    s.case("reports", reports)
    s.case("replay", replay)
    s.case("calls without callees in replay", leaves)
    s.case("intervals", intervals)
    s.case("what nests", nesting)
sys.exit(s.failed > 0)
