#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""view_sleeps.py - a page of kron view says which functions were out of the program, and for how long.

Ground truth: the clock, before and after each `kron ctl probe rm -F` and `add -F`.  Without Chromium every case is skipped."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pages import check_quiet, need, open_page, tap  # noqa: E402
from live import STEADY, interrupt, record_pid  # noqa: E402
from tap import KRON  # noqa: E402

BADGES = "document.getElementById('badges').textContent"
ABOUT = "document.getElementById('picture-about').textContent"


def turn(verb, board):
    begin = time.monotonic()
    subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", "counted"], check=True, stdout=subprocess.DEVNULL)
    return begin, time.monotonic()


def slept():
    tap.compile_text("p", STEADY)
    board = f"viewsleeps{os.getpid()}"
    with subprocess.Popen(["./p"], stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        begin = time.monotonic()
        recorder = record_pid(p.pid, "--board", board)
        time.sleep(0.3)
        least = most = 0
        for _ in range(2):
            out = turn("rm", board)
            time.sleep(0.2)
            back = turn("add", board)
            least += back[0] - out[1]
            most += back[1] - out[0]
            time.sleep(0.1)
        interrupt(recorder)
        whole = time.monotonic() - begin
        p.terminate()
    with open_page("t") as page:
        page.settle()
        need("1 function recorded for a part of the time" in page.value(BADGES), page.value(BADGES))
        rows = page.value("kronView.data.sleeps")
        need(page.value("kronView.data.all_sleeps") == len(rows) == 1, rows)
        name, _, by_budget, _, out_ns, spells, times = rows[0]
        need(name == "counted" and not by_budget and times == 3 and len(spells) == 6, rows)
        need(least <= out_ns / 1e9 <= most, f"out for {out_ns} ns, of {least} to {most} s")
        watched = sum(b - a for a, b in zip(spells[::2], spells[1::2])) / 1e9
        need(watched <= whole - least, f"watched for {watched} s, of {whole} s less {least} s")
        page.value("kronView.show('about')")
        page.settle()
        need("1 function was out of the program for a part of this time" in page.value(ABOUT), page.value(ABOUT))
        cells = page.value("[...document.querySelectorAll('#sleeps td')].map(c => c.textContent)")
        need(cells[:2] == ["counted", "p"] and "kron ctl probe" in cells and "3" in cells, cells)
        check_quiet(page)


def none():
    tap.compile_text("p", STEADY)
    with subprocess.Popen(["./p"], stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        recorder = record_pid(p.pid)
        time.sleep(0.2)
        interrupt(recorder)
        p.terminate()
    with open_page("t") as page:
        page.value("kronView.show('about')")
        page.settle()
        need("part of the time" not in page.value(BADGES), page.value(BADGES))
        need(page.value("document.getElementById('sleeps')") is None, "a table of nobody")
        check_quiet(page)


def main():
    with tap.Suite("view_sleeps") as s:
        s.case("functions that were out for a time", slept)
        s.case("none was", none)


main()
