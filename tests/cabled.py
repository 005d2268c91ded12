# SPDX-License-Identifier: MIT
"""cabled.py - recordings of a program that counts its own calls, and takes the number of each along: what arrived is
known to be there once, and in order."""
import os
import sqlite3
import subprocess

import tap
from tap import KRON, need

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static volatile long seen;
__attribute__((noinline)) void step(long i) { seen = i; }
int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	for (long i = 0; i < n; i++)
		step(i);
	printf("%ld\\n", n);
	return 7;
}
"""
PROBE = ["-p", "step i=$arg1"]


def program():
    if not os.path.exists("../count"):
        tap.compile_text("../count", PROGRAM)
    return os.path.abspath("../count")


def record(at, n, *more, **kw):
    return subprocess.run([KRON, "record", "-o", at, *PROBE, *more, "--", program(), str(n)],
                          capture_output=True, text=True, **kw)


def arrived(folder):
    """How many samples, of which values."""
    if os.path.exists("x.db"):
        os.unlink("x.db")
    r = subprocess.run([KRON, "export", "-q", "-f", "sqlite", "-o", "x.db", folder], capture_output=True, text=True)
    need(r.returncode == 0, r.stderr)
    db = sqlite3.connect("x.db")
    n, distinct, least, most = db.execute(
        "select count(*), count(distinct data), min(data), max(data) from sample where type = 5").fetchone()
    db.close()
    return n, distinct, least, most


def need_all(folder, n):
    got = arrived(folder)
    need(got == (n, n, 0, n - 1), f"{got} of {n}")


def need_once(folder, gaps=True):
    """What is there is there once; while it is on its way with gaps, for a thread's chunks go in any order."""
    n, distinct, least, most = arrived(folder)
    need(n == distinct and (gaps or n == 0 or (least, most) == (0, n - 1)), (n, distinct, least, most))
    return n


def spools():
    return {f for f in os.listdir("/dev/shm") if f.startswith("cable-kron.")}
