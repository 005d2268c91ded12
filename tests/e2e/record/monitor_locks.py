#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""monitor_locks.py - kron monitor --lock: who holds a lock and how many wait is what the program has arranged."""

import json
import os
import subprocess
import sys

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402

LIMIT = 120
LOCKS = ["mutex", "pi", "robust", "recursive", "queue+8:mutex", "of_this_file", "rwlock:rwlock", "pool:sem"]
MUTEXES = ["mutex", "pi", "robust", "recursive", "queue+8", "of_this_file"]
NONE = {**{f"{m}.{what}": 0 for m in MUTEXES for what in ("holder", "waiters")}, "rwlock.holder": 0, "rwlock.readers": 0, "rwlock.waiters": 0, "pool.value": 3, "pool.waiters": 0}


def state(number, holder):
    """What there is in a phase: tests/bins/monitor/locked.c."""
    if number == 2:
        return {**NONE, **{f"{m}.holder": holder for m in MUTEXES}, "mutex.waiters": 2, "pi.waiters": 1}
    return {**NONE, **{1: {}, 3: {"rwlock.holder": holder, "rwlock.waiters": 2}, 4: {"rwlock.readers": 2, "rwlock.waiters": 1}, 5: {},
                       6: {"pool.value": 0, "pool.waiters": 2}}[number]}


def locks(*how):
    """Phase after phase, as long as it takes: all rows in it say the same."""
    tap.compile_c("p", "bins/monitor/locked.c")
    k = subprocess.Popen([KRON, "monitor", "-q", "--json", "--every", "10ms", *how, *(word for lock in LOCKS for word in ("--lock", lock)), "--var", "phase:s32", "--", "./p"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    number, seen, rows, said = 1, 0, [], {}
    for line in k.stdout:
        if not line.startswith("{"):
            said[int(line.split()[0])] = int(line.split()[1])
            continue
        row = json.loads(line)
        if "events" not in row:
            break
        rows.append(row)
        seen += row["events"]["phase"] == number
        if seen == 3 and number <= 6:
            k.stdin.write("x")
            k.stdin.flush()
            number, seen = number + 1, 0
    out, err = k.communicate(timeout=LIMIT)
    need(k.returncode == 5 and number == 7 and not err, f"{k.returncode} {number} {err}")
    for line in out.splitlines():
        if not line.startswith("{"):
            said[int(line.split()[0])] = int(line.split()[1])
    # what a phase begins with, and ends with, is between two readings of a line where nobody stands still
    for n in range(1, 7):
        mine = [row["events"] for row in rows if row["events"]["phase"] == n and (not how or row["stopped"])]
        want = {**state(n, said.get(n)), "phase": n}
        right = [e for e in mine if e == want]
        need(len(right) >= (len(mine) if how else len(mine) - 2) and (right or how), f"phase {n}: {mine} is not {want}")
    need(any(row["events"]["phase"] == 2 and row["events"]["mutex.holder"] for row in rows), "no holder")


def troubles():
    tap.compile_c("p", "bins/monitor/locked.c")
    for lock, words in (("rwlock", "its size is not that of a mutex"), ("absent", "no such variable"), ("queue", "its size is not that of a mutex"),
                        ("queue+16:mutex", "too short"),
                        ("pool:rwlock", "too short")):
        p = subprocess.Popen([KRON, "monitor", "--json", "--every", "5ms", "--lock", lock, "--", "./p"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not p.stdout.readline().startswith("{"):  # it has been looked for
            need(p.poll() is None, "no row")
        out, err = p.communicate("xxxxxx", timeout=LIMIT)
        end = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
        need(p.returncode == 5 and words in err, f"{lock}: {err}")
        need(all(v is None for v in end["totals"].values()), f"{lock}: {end}")
    # one interval, which ends with the program: it is looked for early, or it is said that it was too late
    tap.compile_text("short", "long table[100]; int main(int c, char **v) { return c > 1 ? table[c] : 5; }")
    for lock in "table", "table:mutex":
        r = subprocess.run([KRON, "monitor", "--every", "60s", "--lock", lock, "--", "./short"], capture_output=True, text=True, timeout=LIMIT)
        need(r.stderr.count("\n") == 1 and ("ended before it could be" in r.stderr or "not that of a mutex" in r.stderr), r)
    for lock, words in (("x:lock", "is no lock"), (":mutex", "no name"), ("x+y", "not where a lock can be"), ("x+3", "not where a lock can be")):
        r = subprocess.run([KRON, "monitor", "--lock", lock, "--", "touch", "started"], capture_output=True, text=True, timeout=LIMIT)
        need(r.returncode == 125 and words in r.stderr and r.stderr.count("\n") == 1, r)
    r = subprocess.run([KRON, "monitor", "--lock", "x", "--lock", "x", "--", "touch", "started"], capture_output=True, text=True, timeout=LIMIT)
    need(r.returncode == 125 and "there already" in r.stderr and not os.path.exists("started"), r)


def nothing_amiss():
    """What is known is not said to be unknown."""
    tap.compile_c("p", "bins/monitor/locked.c")
    how = [word for lock in LOCKS for word in ("--lock", lock)]
    r = subprocess.run([KRON, "monitor", "--json", "--every", "5ms", *how, "--", "./p"], input="xxxxxx", capture_output=True, text=True, timeout=LIMIT)
    need(r.returncode == 5 and not r.stderr, r.stderr)


def other_library():
    """One whose locks nobody knows: nothing is said of them, and why."""
    tap.compile_c("p", "bins/monitor/locked.c", "-static")
    r = subprocess.run([KRON, "monitor", "--json", "--every", "5ms", "--lock", "mutex", "--", "./p"], input="xxxxxx", capture_output=True, text=True, timeout=LIMIT)
    need(r.returncode == 5 and "how its locks are laid out is not known" in r.stderr, r.stderr)
    rows = [json.loads(line) for line in r.stdout.splitlines() if line.startswith("{")][:-1]
    need(all(v is None for row in rows for v in row["events"].values()), rows)


with tap.Suite("monitor_locks") as s:
    s.case("locks of a program that stands", locks, "--freeze")
    s.case("locks of a program that runs", locks)
    s.case("what is no lock", troubles)
    s.case("nothing amiss", nothing_amiss)
    s.case("another C library", other_library)
