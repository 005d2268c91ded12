#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Triggers on what takes too long, while recording: they fire at the call that the program itself
says was slow, at its limit, with the call in the window; and not where none was.

The machine may be busy, so a call may be slow that nobody planted: the truth is what the program has
measured, within each call and around it: the probes are between the two.  A run in which only one of
the two is above the limit, or either is near to it, cannot be told and is made again."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_c, need  # noqa: E402

RUNS = int(os.environ.get("KRON_STALL_RUNS") or 20)
LIMIT_NS = 20_000_000
NEAR_NS = 2_000_000
CLOCKS_NS = 100_000


def record(trigger, *program, options=()):
    r = subprocess.run(
        [KRON, "record", "-o", "t", "--trigger", trigger, *options, "--", "./stalls", *map(str, program)],
        capture_output=True, text=True,
    )
    need(r.returncode == 0, r.stderr)
    calls = [tuple(map(int, line.split()[1:])) for line in r.stdout.splitlines() if line.startswith("call ")]
    return calls, json.loads(kron("info", "--json", "t")), r.stderr


def kron(*args):
    r = subprocess.run([KRON, *args], capture_output=True, text=True)
    need(r.returncode == 0, r.stderr)
    return r.stdout


def start_ns():
    return int(dict(l.rstrip("\n").split("=", 1) for l in open("t/session"))["start_mono_ns"])


def slow_calls(calls):
    """Those that took too long, by the time when that was so; None: it cannot be told."""
    slow = []
    for call in calls:
        _, _, begin, end, called, returned = call
        if end - begin > LIMIT_NS + NEAR_NS:
            slow.append(call)
        elif returned - called > LIMIT_NS - NEAR_NS:
            return None
    slow.sort(key=lambda c: c[2])
    if len(slow) > 1 and slow[1][4] <= slow[0][2] + NEAR_NS:
        return None
    return slow


def check_fired(calls, info, err):
    """The first of the slow calls, at the limit after its entry, and the window has the entry."""
    tid, number, begin, _, _, returned = calls[0]
    need(info["trigger_ns"], f"did not fire at {calls[0]}: {err}")
    start = start_ns()
    fired = info["trigger_ns"] + start
    samples = [json.loads(line) for line in kron("dump", "--json", "t").splitlines()]
    entries = [s for s in samples if s.get("function") == "handle" and s["kind"] == "entry" and s["tid"] == tid]
    mine = [s for s in entries if s["time_ns"] + start <= begin + CLOCKS_NS]
    need(mine, f"the window has no entry of the call in thread {tid}: {len(samples)} samples")
    entry = mine[-1]["time_ns"] + start
    need(abs(fired - entry - LIMIT_NS) <= CLOCKS_NS, f"fired {(fired - entry) / 1e6} ms after the entry")
    need(fired <= returned + CLOCKS_NS, f"fired {(fired - returned) / 1e6} ms after the call's end")
    # a busy machine may have made the very first request of all the slow one
    older = sum(s["time_ns"] + start < entry for s in samples)
    need(older or not number, f"nothing in the window of {len(samples)} samples is older than {calls[0]}")


def stalls(trigger, options=(), runs=RUNS):
    compile_c("stalls", "bins/stalls.c")
    done, quiet = 0, 0
    for attempt in range(6 * runs):
        planted = attempt % 4 != 3
        calls, info, err = record(trigger, 3, 160, 60 if planted else 0, options=["-F", "handle", "-F", "tick", *options])
        slow = slow_calls(calls)
        if slow is None:
            continue
        if slow:
            check_fired(slow, info, err)
            done += 1
        else:
            need(not info["trigger_ns"], f"fired after {info['trigger_ns'] / 1e9} s, no call was slow: {calls[-3:]}")
            quiet += 1
        if done >= runs and quiet:
            return
    need(done >= runs, f"only {done} of {runs} runs could be told")


def left():
    """Calls that are left by longjmp() have ended: what is slow is after them."""
    compile_c("stalls", "bins/stalls.c")
    for _ in range(5):
        calls, info, err = record("handle>20ms", 2, 60, 60, "leave", options=["-F", "handle", "-F", "tick"])
        slow = slow_calls(calls)
        if slow == []:
            need(not info["trigger_ns"], f"fired after {info['trigger_ns'] / 1e9} s: {err}")


def same_in_readers():
    """What record fires at, a reader of the whole trace fires at, and shows the same window."""
    compile_c("stalls", "bins/stalls.c")
    for trigger in ("handle>20ms", "entry=handle without exit=handle within 20ms"):
        r = subprocess.run(
            [KRON, "record", "-o", "t", "-F", "handle", "-F", "tick", "--", "./stalls", "3", "100", "60"], capture_output=True, text=True
        )
        calls = [tuple(map(int, line.split()[1:])) for line in r.stdout.splitlines()]
        slow = slow_calls(calls)
        if not slow:
            continue
        samples = [json.loads(l) for l in kron("dump", "--json", "--trigger", trigger, "--pre", "3", "--post", "3", "t").splitlines()]
        tid, _, begin, _, _, _ = slow[0]
        mine = [s for s in samples if s["tid"] == tid and s.get("function") == "handle" and s["kind"] == "entry"]
        need(any(abs(s["time_ns"] + start_ns() - begin) < 1_000_000 for s in mine), f"the reader's window misses {slow[0]}")


def processes():
    """A process that ends in a call has not taken too long for it."""
    compile_c("ends", "bins/ends.c")
    r = subprocess.run(
        [KRON, "record", "-o", "t", "-F", "main", "-F", "live", "--trigger", "main>40ms", "--",
         "sh", "-c", "./ends 1; ./ends 2; sleep 0.1; ./ends 1; sleep 0.06"],
        capture_output=True, text=True,
    )
    times = {}
    for line in open("times"):
        pid, what, ns = line.split()
        times.setdefault(pid, {})[what] = int(ns)
    longest = max(t["ends"] - t["begins"] for t in times.values())
    if longest < 30_000_000:
        # only the shell itself has a main that lasts; it has no symbols here
        need("never fired" in r.stderr, r.stderr)


with Suite("stalls") as s:
    s.case(f"FUNC>20ms fires at that call, {RUNS} of {RUNS}", stalls, "handle>20ms")
    s.case("the long form does", stalls, "entry=handle without exit=handle within 20ms", (), max(2, RUNS // 4))
    s.case("on the emulated board", stalls, "handle>20ms", ("--bus", "exact", "--when-full", "wait"), max(2, RUNS // 4))
    s.case("with a window of time", stalls, "handle>20ms", ("--pre", "5ms", "--post", "5ms"), max(2, RUNS // 4))
    s.case("calls that are left by longjmp", left)
    s.case("readers see the same", same_in_readers)
    s.case("processes that end in a call", processes)
sys.exit(s.failed > 0)
