#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 900
"""mk_nite.py - several mk_nite_test on one board, one of them killed at random every second.

KRON_NITE_SECONDS says how long (default 20).  Zero errors is what must be: a kill, whatever the
process was doing just then, harms nobody else and nothing on the board.
"""

import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import BUILD, KRON, SEED, Suite, need, rnd, wait_for

SECONDS = float(os.environ.get("KRON_NITE_SECONDS") or 20)
TOOLS = os.path.join(BUILD, "board/toolkit")
BOARD = f"nite.{os.getpid()}"


class Nite:
    """One mk_nite_test; its output goes to a file, for a kill may come in the middle of it."""

    count = 0

    def __init__(self):
        Nite.count += 1
        self.path = f"nite{Nite.count}"
        self.process = subprocess.Popen(
            [os.path.join(TOOLS, "mk_nite_test"), "--board", BOARD, "-s", str(SEED + Nite.count)],
            stdin=subprocess.DEVNULL,
            stdout=open(self.path, "w"),
            stderr=subprocess.STDOUT,
        )

    def output(self):
        with open(self.path) as f:
            return f.read()

    def check_killed(self):
        """Nothing but the line that it begins with, if it came that far."""
        lines = self.output().splitlines()
        need(len(lines) <= 1, f"{self.path} before it was killed:\n{self.output()}")

    def kill(self):
        need(self.process.poll() is None, f"{self.path} ended by itself:\n{self.output()}")
        self.process.kill()
        self.process.wait()
        self.check_killed()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(60)
        out = self.output()
        need(status == 0, f"{self.path} ended with {status}:\n{out}")
        need(out.endswith(": no errors\n"), out)
        return {l.split()[0]: int(l.split()[1]) for l in out.splitlines() if l.startswith("    ")}


def one_night(n):
    subprocess.run([KRON, "board", "create", BOARD], check=True, stdout=subprocess.DEVNULL)
    processes = []
    try:
        processes = [Nite() for _ in range(n)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(rnd.uniform(0.7, 1.3))
            i = rnd.randrange(n)
            processes[i].kill()
            processes[i] = Nite()
        for p in processes:
            wait_for(p.output, f"the beginning of {p.path}")
        time.sleep(1)
        for p in processes:
            done = p.interrupt()
            need(all(done[k] for k in ("memory", "sampling", "registers", "counters")), done)
            print("# " + p.output().strip().replace("\n", "\n# "))
        print(f"# {Nite.count - n} were killed and replaced")
        # and nothing is left of them: the board can be had alone
        subprocess.run(
            [os.path.join(TOOLS, "mk_nite_test"), "--board", BOARD, "-x", "-t", "1"], check=True,
            stdout=subprocess.DEVNULL,
        )
    finally:
        for p in processes:
            if p.process.poll() is None:
                p.process.kill()
                p.process.wait()
        subprocess.run([KRON, "board", "rm", BOARD], stdout=subprocess.DEVNULL)


with Suite("nite") as s:
    s.case(f"three share a board for {SECONDS:g} s, one is killed every second", one_night, 3)
