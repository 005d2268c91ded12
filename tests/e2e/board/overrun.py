#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""overrun.py - the table of examples/overrun against a chip that is simulated here.

The simulation shares nothing with board/: a queue in front of one server, stepped trigger by
trigger.  Numbers from the reports: a sample leaves the chip in 40 or 168 NODECLKs (one byte in
two), the shadow registers are busy until the Resource sample has gone, the board's FIFO holds
1024 bytes.  The depth of the chip's FIFO is a parameter.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import BUILD, Suite, need, rnd

OVERRUN = os.path.join(BUILD, "examples/overrun/overrun")


def simulate(resource, n, gap, depth, wait, board_bytes=None):
    """taken, overruns, NODECLKs waited.  board_bytes: what the board's FIFO takes before it is
    full; None: it never is."""
    size = 84 if resource else 20
    gone = []  # when each accepted sample has left the chip
    room = float("inf") if board_bytes is None else board_bytes
    clock = overruns = waited = 0

    def leaves(now):
        nonlocal room
        begin = max(now, gone[-1]) if gone else now
        room -= size
        return begin + 2 * size if room >= 0 else float("inf")

    for i in range(n):
        clock += gap if i else 0
        inside = [t for t in gone if t > clock]
        must = []
        if len(inside) >= depth:
            must.append(inside[-depth])
        if resource and inside:
            must.append(inside[-1])
        if must and not wait:
            overruns += 1
            continue
        if must:
            waited += max(must) - clock
            clock = max(must)
        gone.append(leaves(clock))
    return len(gone), overruns, waited


def table(*options):
    """Rows of numbers, and which kind of sample they are about."""
    out = subprocess.run([OVERRUN, *options], check=True, capture_output=True, text=True).stdout
    rows = [l for l in out.splitlines() if re.match("(Trace|Resource) ", l)]
    need(rows, out)
    rates = [r for r in rows if len(r.split("|")) == 2 and len(r.split()) > 7]
    buffers = [r for r in rows if r not in rates]
    return out, rates, buffers


def check_rates(rates, n, depth):
    for row in rates:
        kind, gap, _, taken, lost, want, _, gap2, _, taken2, waited, want2 = row.split()
        need(gap == gap2, row)
        resource = kind == "Resource"
        truth = simulate(resource, n, int(gap), depth, False)
        need((int(taken), int(lost)) == truth[:2], f"{row}\nsimulated, discard: {truth}")
        need(taken == want, f"{row}\nthe program's own arithmetic")
        truth = simulate(resource, n, int(gap), depth, True)
        need((int(taken2), int(waited)) == (truth[0], truth[2]), f"{row}\nsimulated, wait: {truth}")
        need(waited == want2, f"{row}\nthe program's own arithmetic")


def check_buffers(buffers, depth):
    for row in buffers:
        _, n, _, taken, lost, want = row.split()
        truth = simulate(False, int(n), 40, depth, False, 1024)
        need((int(taken), int(lost)) == truth[:2], f"{row}\nsimulated: {truth}")
        need(taken == want, f"{row}\nthe program's own arithmetic")


def usual():
    _, rates, buffers = table()
    need(len(rates) == 28 and len(buffers) == 11, (len(rates), len(buffers)))
    check_rates(rates, 100, 4)
    check_buffers(buffers, 4)


def numbers_of_the_reports():
    """51 samples, 40 NODECLKs, 168 NODECLKs: where losses begin."""
    _, rates, buffers = table("-n", "1000", "-g", "39", "-g", "40", "-g", "167", "-g", "168")
    lost = {(r.split()[0], int(r.split()[1])): int(r.split()[4]) for r in rates}
    need(lost["Trace", 39] > 0 and lost["Trace", 40] == 0, lost)
    need(lost["Resource", 167] > 0 and lost["Resource", 168] == 0, lost)
    taken = max(int(r.split()[3]) for r in buffers)
    need(taken == 51 + 4, taken)


def any_burst():
    for _ in range(12):
        n, depth = rnd.randrange(1, 400), rnd.randrange(1, 17)
        gaps = sorted({rnd.randrange(0, 60), rnd.randrange(0, 200), rnd.randrange(150, 180)})
        options = [f"--gap={g}" for g in gaps]
        _, rates, buffers = table("-n", str(n), "-d", str(depth), *options)
        check_rates(rates, n, depth)
        check_buffers(buffers, depth)


def same_again():
    first, second = table()[0], table()[0]
    need(first == second, "two runs differ")


def machine_clock():
    """No numbers can be foretold, but none may go missing."""
    _, rates, _ = table("--real", "-n", "50", "-g", "0", "-g", "100")
    for row in rates:
        _, _, _, taken, lost, _, _, _, _, taken2, _, _ = row.split()
        need(int(taken) + int(lost) == 50, row)
        need(int(taken2) == 50, row)


def usage():
    for options in (["-g", "x"], ["-g", "-1"], ["-n", "0"], ["-d", "17"], ["-g", "1e3"], ["more"]):
        p = subprocess.run([OVERRUN, *options], capture_output=True, text=True)
        need(p.returncode == 2 and p.stderr.startswith("overrun: "), (options, p))
        need(p.stderr.count("\n") == 1 and not p.stdout, (options, p))


with Suite("overrun") as s:
    s.case("the usual table is that of a simulated chip", usual)
    s.case("losses begin where the reports say", numbers_of_the_reports)
    s.case("bursts of any length, depth and gap", any_burst)
    s.case("two runs print the same", same_again)
    s.case("with the machine's clock nothing goes missing", machine_clock)
    s.case("wrong usage", usage)
