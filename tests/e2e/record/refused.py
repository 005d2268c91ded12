#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A recording that is refused, or that cannot start its program, leaves the traces that were there."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

PROGRAM = """
#include <stdlib.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile("nopl 0(%rax)"); return n + 1; }
int main(int c, char **v) { int n = 0; for (int i = atoi(v[1]); i; i--) n = work(n); return n == 0; }
"""


def kron(*args):
    return subprocess.run([KRON, *args], capture_output=True, text=True)


def record(*args, status=0):
    r = kron("record", "-q", *args)
    need(r.returncode == status, f"{args}: exit {r.returncode}, {r.stderr}")
    need(not status or r.stderr.count("\n") == 1, f"{args}: not one sentence: {r.stderr}")


def traces():
    """Calls of work in each folder that is a trace."""
    found = {}
    for name in sorted(os.listdir(".")):
        if name.startswith("kron.data"):
            out = kron("report", "--json", name)
            need(out.returncode == 0, out.stderr)
            found[name] = sum(f["calls"] for f in json.loads(out.stdout) if f["function"] == "work")
    return found


REFUSALS = (["-F", "wrok", "--", "./p", "1"], ["-p", "wrok", "--", "./p", "1"], ["--board", "bad/name", "--", "./p", "1"],
            ["--bus", "device:/no/such", "--", "./p", "1"], ["-p", "work%stores pages", "-p", "main%loads lines", "--", "./p", "1"],
            ["--", "./nobody"], ["--pid", "999999999"])


def stays():
    compile_text("p", PROGRAM)
    for n in (11, 12):
        record("--", "./p", str(n))
    before = traces()
    need(before == {"kron.data": 12, "kron.data.old": 11}, before)
    for args in REFUSALS:
        r = kron("record", "-q", *args)
        need(r.returncode not in (0, 1) and r.stderr.count("\n") == 1, f"{args}: exit {r.returncode}, {r.stderr}")
        need(traces() == before, f"{args}: {traces()}")
    record("--", "./p", "13")
    need(traces() == {"kron.data": 13, "kron.data.old": 12}, traces())


def nothing_stays():
    compile_text("p", PROGRAM)
    record("-F", "wrok", "--", "./p", "1", status=125)
    need(sorted(os.listdir(".")) == ["p", "p.c"], os.listdir("."))
    os.mkdir("kron.data")
    record("-F", "wrok", "--", "./p", "1", status=125)
    need(os.listdir("kron.data") == [], os.listdir("kron.data"))


def killed_between():
    """Whose recorder was killed before it was known whether it is one: the next one takes its leavings away."""
    compile_text("p", PROGRAM)
    for n in (11, 12, 13):
        record("--", "./p", str(n))
        if n == 12:
            os.rename("kron.data.old", "kron.data.old.aside")
    need(traces() == {"kron.data": 13, "kron.data.old": 12}, traces())
    os.mkdir("kron.data.old.aside")
    open("kron.data.old.aside/mine", "w").close()
    record("-F", "wrok", "--", "./p", "1", status=125)
    need(os.listdir("kron.data.old.aside") == ["mine"] and kron("info", "kron.data").returncode == 0, os.listdir("."))


with Suite("refused") as s:
    s.case("the last trace and the one before it are what they were", stays)
    s.case("where none was there, none is", nothing_stays)
    s.case("a folder that a killed recorder, or somebody else, has left", killed_between)
sys.exit(s.failed > 0)
