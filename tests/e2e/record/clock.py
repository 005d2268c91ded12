#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron record --clock every:N: samples that share a reading of the clock.

Ground truth: programs that read the clock themselves inside the functions that they call, and count their calls;
and the same program recorded with the full clock, for the order of its events."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

# Each call of told() notes the clock at its beginning and end; the others only count.
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <x86intrin.h>
#define CALLS 2000
static unsigned long in[CALLS], out[CALLS];
static _Thread_local unsigned long leaves;
static volatile sig_atomic_t ticks;
__attribute__((noinline)) unsigned long leaf(unsigned long n) { __asm__ volatile("" ::: "memory"); leaves++; return n * 3 + 1; }
__attribute__((noinline)) unsigned long twice(unsigned long n) { return leaf(leaf(n)) + 1; }
__attribute__((noinline)) void told(int i, unsigned long *sum)
{
    in[i] = __rdtsc();
    for (int k = i % 7; k; k--) *sum += i % 3 ? leaf(k) : twice(k);
    if (i % 500 == 499) nanosleep(&(struct timespec){0, 2000000}, 0);
    out[i] = __rdtsc();
}
static void tick(int s) { (void)s; ticks++; leaf(1); twice(2); }
static void *thread(void *arg) { unsigned long s = 0; for (int i = 0; i < 3000; i++) s += twice(i); *(unsigned long *)arg = leaves + !s; return 0; }
int main(int argc, char **argv)
{
    unsigned long sum = 0, others[2];
    pthread_t t[2];
    if (argc > 1) {
        struct itimerval it = {{0, 100}, {0, 100}};
        signal(SIGALRM, tick);
        setitimer(ITIMER_REAL, &it, 0);
        for (unsigned long n = 0; ticks < 200; n++) { sum += twice(n); for (int k = 0; k < 300; k++) __asm__ volatile("pause"); }
        it = (struct itimerval){{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &it, 0);
        printf("%lu\n", leaves);
        return sum == 1;
    }
    for (int i = 0; i < CALLS; i++) told(i, &sum);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, thread, &others[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    for (int i = 0; i < CALLS; i++) printf("%lu %lu\n", in[i], out[i]);
    printf("%lu\n", leaves + others[0] + others[1]);
    return sum == 1;
}
"""


def record(name, *options, arg=()):
    r = subprocess.run([KRON, "record", "-q", "-o", name, "--when-full", "wait", *options, "./program", *arg],
                       capture_output=True, text=True, timeout=300)
    need(r.returncode == 0, f"{options} ended with {r.returncode}: {r.stderr}")
    return r.stdout.split("\n")[:-1]


def kron(*argv):
    r = subprocess.run([KRON, *argv], capture_output=True, text=True, timeout=300)
    need(r.returncode == 0, f"kron {argv}: {r.stderr}")
    return r.stdout


def dump(name):
    return [json.loads(line) for line in kron("dump", "--json", name).splitlines()]


def by_thread(events):
    """The threads' events without times, in an order that two runs share."""
    threads = {}
    for e in events:
        if e["kind"] in ("entry", "exit"):
            threads.setdefault(e["thread"], []).append((e["kind"], e["function"]))
    return sorted(threads.values(), key=lambda v: (len(v), v))


def session(name):
    with open(name + "/session") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)


def times_of(name, lines):
    """The program's own times, on the trace's line."""
    start, hz = int(session(name)["start_tsc"]), json.loads(kron("info", "--json", name))["tsc_hz"]
    return [[(int(x) - start) * 1e9 / hz for x in line.split()] for line in lines[:-1]]


def span(e):
    return e.get("time_low_ns", e["time_ns"]), e.get("time_high_ns", e["time_ns"])


ROUNDING = 3  # ns


def prepare():
    compile_text("program", PROGRAM, "-pthread")


def order_and_counts():
    """As with the full clock: the order of each thread's events, and the calls of each function."""
    prepare()
    record("full")
    for n in ("2", "16", "256"):
        lines = record("sparse" + n, "--clock", "every:" + n)
        need(by_thread(dump("full")) == by_thread(dump("sparse" + n)), f"every:{n}: another order")
        calls = {f["function"]: f["calls"] for f in json.loads(kron("report", "--json", "sparse" + n))}
        need(calls["leaf"] == int(lines[-1]), f"every:{n}: {calls}, and the program counted {lines[-1]}")
        need(calls["told"] == 2000, calls)
        need(json.loads(kron("info", "--json", "sparse" + n))["clock"]["every"] == int(n), "info")
    record("default", "--clock", "every")
    need(json.loads(kron("info", "--json", "default"))["clock"]["every"] == 16, "every alone is every:16")
    need(json.loads(kron("info", "--json", "full"))["clock"]["every"] == 1, "the full clock")


def bounds():
    """What the program knows of its calls' times lies within the bounds; and most have no reading of their own."""
    prepare()
    for n in (16, 256):
        name = f"sparse{n}"
        lines = record(name, "--clock", f"every:{n}")
        truth, events = times_of(name, lines), dump(name)
        told = [e for e in events if e.get("function") == "told" and e["kind"] in ("entry", "exit")]
        need(len(told) == 2 * len(truth), f"{len(told)} events of {len(truth)} calls")
        copied, last = 0, 0
        for i, (begin, end) in enumerate(truth):
            entry, leave = span(told[2 * i]), span(told[2 * i + 1])
            need(entry[0] <= begin + ROUNDING and entry[1] >= last - ROUNDING,
                 f"call {i} began between {last} and {begin}, and it says {entry}")
            need(leave[1] >= end - ROUNDING, f"call {i} ended after {end}, and it says {leave}")
            need(entry[0] <= told[2 * i]["time_ns"] <= entry[1], f"call {i}: {told[2 * i]}")
            if i + 1 < len(truth):
                need(leave[0] <= truth[i + 1][0] + ROUNDING, f"call {i}: {leave}, the next one began at {truth[i + 1]}")
            copied += (entry[0] != entry[1]) + (leave[0] != leave[1])
            last = end
        need(copied > len(truth), f"every:{n}: {copied} of {2 * len(truth)} times are bounds")


def waits():
    """Who was off the processor reads the clock: a call that sleeps has its own end, and its length is told well."""
    prepare()
    for n in (16, 256):
        name = f"waits{n}"
        lines = record(name, "--clock", f"every:{n}")
        truth = times_of(name, lines)
        told = [e for e in dump(name) if e.get("function") == "told" and e["kind"] in ("entry", "exit")]
        for i in range(499, 2000, 500):
            begin, end = truth[i]
            entry, leave = told[2 * i], told[2 * i + 1]
            low, high = span(leave)
            need(high - low <= ROUNDING, f"every:{n}: call {i} slept, and its end is {low} to {high}")
            need(low >= end - ROUNDING, f"every:{n}: call {i} ended at {end}, not {low}")
            took, said = end - begin, leave["time_ns"] - entry["time_ns"]
            need(said > took * 3 / 4, f"every:{n}: call {i} took {took} ns, not {said}")


def sums():
    """The sum over all calls is off by no more than it says, and so are minimum and maximum."""
    prepare()
    lines = record("sums", "--clock", "every:16")
    truth = times_of("sums", lines)
    f = {f["function"]: f for f in json.loads(kron("report", "--json", "sums"))}["told"]
    inside = sum(end - begin for begin, end in truth)  # without what lies between probe and clock
    need(f["total_high_ns"] >= inside, f"{inside} ns, and it says {f}")
    need(f["total_low_ns"] <= truth[-1][1] - truth[0][0], f)
    need(f["total_low_ns"] <= f["total_ns"] <= f["total_high_ns"], f)
    need(f["self_low_ns"] <= f["self_ns"] <= f["self_high_ns"], f)
    need(f["max_high_ns"] >= max(end - begin for begin, end in truth) - ROUNDING, f)
    need(f["min_low_ns"] <= min(end - begin for begin, end in truth) + 1000, f)


def timed():
    """Functions of --timed have times of their own, whatever the others have; the order is the same."""
    prepare()
    record("full")
    lines = record("timed", "--clock", "every:256", "--timed", "to?d", "--timed", "nobody")
    need(by_thread(dump("full")) == by_thread(dump("timed")), "another order")
    truth, events = times_of("timed", lines), [e for e in dump("timed") if e["kind"] in ("entry", "exit")]
    told = [e for e in events if e["function"] == "told"]
    need(len(told) == 2 * len(truth), f"{len(told)} events of {len(truth)} calls")
    need(not any("time_low_ns" in e for e in told), [e for e in told if "time_low_ns" in e][:3])
    last = 0
    for i, (begin, end) in enumerate(truth):
        entry, leave = told[2 * i]["time_ns"], told[2 * i + 1]["time_ns"]
        need(last - ROUNDING <= entry <= begin + ROUNDING, f"call {i} began between {last} and {begin}, not at {entry}")
        need(leave >= end - ROUNDING, f"call {i} ended at {end}, not at {leave}")
        last = end
    others = [e for e in events if e["function"] != "told"]
    need(sum("time_low_ns" in e for e in others) > len(others) * 3 / 4, "the others share their readings")
    f = {f["function"]: f for f in json.loads(kron("report", "--json", "timed"))}["told"]
    need(f["total_low_ns"] == f["total_ns"] == f["total_high_ns"], f)
    need(json.loads(kron("info", "--json", "timed"))["clock"] == {"every": 256, "timed": ["to?d", "nobody"]}, "info")
    need("each one of to?d, nobody has its own" in kron("info", "timed"), "info")
    r = subprocess.run([KRON, "record", "-o", "said", "--clock", "every", "--timed", "nobody", "--timed", "leaf", "./program"],
                       capture_output=True, text=True)
    need("matches --timed 'nobody'" in r.stderr and "'leaf'" not in r.stderr, r.stderr)
    r = subprocess.run([KRON, "record", "-o", "said", "--clock", "every", "-F", "leaf", "--timed", "told", "./program"],
                       capture_output=True, text=True)
    need("matches --timed 'told'" in r.stderr, f"told is not recorded: {r.stderr}")


def values():
    """-p reads the clock each time, and its values are whole: 64 bits, texts."""
    compile_text("wide", """
        #include <stdint.h>
        volatile int sink;
        __attribute__((noinline)) void wide(uint64_t x, const char *name) { sink = (int)x + *name; }
        __attribute__((noinline)) void leaf(int i) { sink = i; }
        int main(void) { for (int i = 0; i < 300; i++) { leaf(i); wide(0x123456789abcdef0 + i, i % 2 ? "odd" : "even"); } }
        """)
    os.replace("wide", "program")
    record("values", "--clock", "every:16", "-F", "leaf", "-p", "x=wide n=$arg1:u64", "-p", "name=wide name=$arg2:string")
    events = dump("values")
    got = [e["value"] for e in events if e["kind"] == "event" and e["name"] == "x"]
    need(got == [0x123456789abcdef0 + i for i in range(300)], f"{len(got)} values: {got[:3]}")
    texts = [e["value"] for e in events if e["kind"] == "event" and e["name"] == "name"]
    need(texts == ["even", "odd"] * 150, f"{len(texts)} texts: {texts[:3]}")


def patched_files():
    """A file from kron patch gets the block that the recording wants."""
    prepare()
    kron("patch", "-o", "patched", "./program")
    os.replace("patched", "program")
    record("patched.data", "--clock", "every:256", "--timed", "told")
    told = [e for e in dump("patched.data") if e.get("function") == "told"]
    need(len(told) == 4000 and not any("time_low_ns" in e for e in told), f"{len(told)} events")


def signals():
    """Handlers come anywhere in the probe, and into each other's way: nothing is lost, nothing is out of its bounds."""
    prepare()
    for n in ("2", "16"):
        lines = record("signals" + n, "--clock", "every:" + n, arg=("ticks",))
        f = {f["function"]: f for f in json.loads(kron("report", "--json", "signals" + n))}
        need(f["leaf"]["calls"] == int(lines[-1]), f"every:{n}: {f['leaf']}, and the program counted {lines[-1]}")
        need(f["tick"]["calls"] >= 200, f["tick"])
        events = dump("signals" + n)
        for e in events:
            low, high = span(e)
            need(low <= e["time_ns"] <= high, e)
        need(sum("time_low_ns" in e for e in events) > len(events) / 4, "most share a reading")


def exports():
    """replay shows bounds, and the exports say that their times are interpolated."""
    prepare()
    record("sparse16", "--clock", "every:16")
    lines = kron("replay", "sparse16").splitlines()
    leaves = [line for line in lines if "leaf();" in line]
    need(sum(line.lstrip().startswith("<") for line in leaves) > len(leaves) / 2, leaves[:5])
    for fmt, what in (("chrome", '"clock_every":16'), ("callgrind", "16 samples share a reading"),
                      ("speedscope", "16 samples share a reading")):
        r = subprocess.run([KRON, "export", "-f", fmt, "-o", "out", "sparse16"], capture_output=True, text=True)
        need(r.returncode == 0 and "interpolated" in r.stderr, f"{fmt}: {r.stderr}")
        with open("out") as f:
            need(what in f.read(), f"{fmt} does not say it")
    r = subprocess.run([KRON, "export", "-f", "ctf", "-o", "ctf", "sparse16"], capture_output=True, text=True)
    need(r.returncode == 0, r.stderr)
    with open("ctf/metadata", errors="replace") as f:
        need('clock_every = "16"' in f.read(), "ctf does not say it")


def refused():
    """One sentence each."""
    prepare()
    for options, words in ((["--clock", "every:3"], "power of two"), (["--clock", "every:512"], "power of two"),
                           (["--clock", "never"], "full or every:N"), (["--clock", "every:"], "full or every:N"),
                           (["--clock", "every", "--bus", "exact"], "stamps each sample"),
                           (["--timed", "leaf"], "belongs to --clock every:N"),
                           (["--clock", "every", "--constant-time"], "exclude each other"),
                           (["--clock", "every", "--trigger", "entry=leaf"], "not with --clock"),
                           (["--clock", "every", "--flight", "1M", "--snapshot-on", "leaf>1us"], "not with --clock"),
                           (["--clock", "every", "--flight", "1s", "--worst", "3:leaf"], "not with --clock")):
        r = subprocess.run([KRON, "record", "-o", "no", *options, "./program"], capture_output=True, text=True)
        need(r.returncode == 125 and words in r.stderr and r.stderr.count("\n") == 1, f"{options}: {r}")


with Suite("clock") as s:
    s.case("order and counts", order_and_counts)
    s.case("bounds", bounds)
    s.case("who waits", waits)
    s.case("sums", sums)
    s.case("times of some", timed)
    s.case("times of some, in a patched file", patched_files)
    s.case("values of 64 bits, and texts", values)
    s.case("signals", signals)
    s.case("replay and exports", exports)
    s.case("what cannot be is refused", refused)
