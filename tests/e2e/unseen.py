#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""unseen.py - what a program must not notice of its probes: who gets its signals, how deep its
handlers nest, what it may lock in memory, where %fs points, what its threads share, how its stack
ends.

Truth is the untraced run, or what the program counts itself.
"""

import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import KRON, Suite, Wrong, compile_c, need, truth

REPEAT = int(os.environ.get("KRON_TEST_REPEAT", "1"))


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    need(r.returncode == 0, f"{' '.join(command)}: {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def record(*options):
    return [KRON, "record", "-q", "-o", "trace", *options, "--"]


# ---- signals ----


def signals_reach_whom_they_reached(at_most, *options):
    """SIGPROF of 1,000 ticks: main, which sleeps, gets hardly any; but now and then a tick is its own."""
    compile_c("targets", "torture/signal_targets.c")
    plain = [int(run("./targets", "1000")) for _ in range(2 * REPEAT)]
    traced = [int(run(*record(*options), "./targets", "1000")) for _ in range(2 * REPEAT)]
    need(sum(traced) <= sum(plain) + at_most * REPEAT, f"main got {traced} of 1000 each, untraced {plain}")


def handlers_do_not_nest(bus):
    """The recorder stands still for a while, again and again; its program waits."""
    compile_c("nested", "torture/nested_wait.c")
    calls = "6000000" if bus == "lane" else "2000000"
    for _ in range(2 * REPEAT):
        kron = subprocess.Popen(
            [*record("--when-full", "wait", "-b", "1M", "--bus", bus), "./nested", calls],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        for _ in range(4):
            time.sleep(0.05)
            kron.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            kron.send_signal(signal.SIGCONT)
        out = kron.communicate()[0]
        need(kron.returncode == 0 and out == b"done\n", f"ended with {kron.returncode}, {out}")
        t = truth.Trace("trace")
        need(t.entries["work"] == int(calls), f"{t.entries['work']} calls of work in the trace")


with Suite("unseen") as s:
    s.case("SIGPROF reaches the threads that it reached", signals_reach_whom_they_reached, 3)
    full = ("-b", "1M", "--when-full")
    s.case("… when the pool is full and waited for", signals_reach_whom_they_reached, 3, *full, "wait")
    # signals are blocked for some stores each time that samples go (runtime/chunks.c)
    s.case("… when the oldest samples go", signals_reach_whom_they_reached, 15, *full, "wrap")
    s.case("handlers that wait for room do not nest", handlers_do_not_nest, "lane")
    s.case("… on the exact bus", handlers_do_not_nest, "exact")
