# SPDX-License-Identifier: MIT
"""counted_calls.py - bins/counted_calls.c: what it has counted itself, and what a trace has of its calls."""

import os
import subprocess

from tap import KRON, need


def counters(threads=1, path="counters"):
    """How many calls each of its threads had begun."""
    with open(path, "rb") as f:
        return [int.from_bytes(f.read(4), "little") for _ in range(threads)]


def has_begun(threads=1, path="counters"):
    return os.path.exists(path) and os.path.getsize(path) and min(counters(threads, path)) > 200_000


def events(directory, is_whole=False):
    """Time, thread and number of each tick: lines, for there may be millions.  Of a whole trace nothing is said."""
    p = subprocess.Popen([KRON, "dump", directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in p.stdout:
        if b"  event " in line:
            word = line.split(None, 9)
            yield int(word[0]), int(word[7]), int(word[8].split(b":")[0], 16)
    said = p.stderr.read().decode()
    need(p.wait() == 0 and not (is_whole and said), f"dump {directory}: {said}")


def ticks(directory, is_whole=False):
    """What each thread's tick() got, in order."""
    by_thread = {}
    for _, tid, number in events(directory, is_whole):
        by_thread.setdefault(tid, []).append(number)
    return by_thread
