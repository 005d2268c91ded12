#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""view_counters.py - intervals of kron monitor in a page of kron view: sums, pieces, values that numbers of a browser cannot hold.

Without Chromium every case is skipped."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pages import check_quiet, need, open_page, run, see_all, tap  # noqa: E402
from tap import KRON  # noqa: E402

BIG = r"""
#include <unistd.h>
unsigned long mask = 0xfedcba9876543210;
long below = -9007199254740995;
double part = 0.1;
int main(void) { for (int i = 0; i < 30; i++) usleep(10000); return 0; }
"""
SUM = "[...document.querySelectorAll('[data-counter=\"%s\"] rect[data-n]')].reduce((n, r) => n + Number(r.dataset.n), 0)"


def end_of(trace):
    return json.loads(run("report", "--json", trace).splitlines()[-1])


def graphs():
    tap.compile_c("p", "bins/monitored.c")
    subprocess.run([KRON, "monitor", "-q", "--every", "5ms", "-o", "t/", "-e", "page-faults,task-clock", "--", "./p", "2", "20000"], stdout=subprocess.DEVNULL)
    end = end_of("t")
    with open_page("t") as page:
        page.settle()
        need(page.value("location.hash") == "#counters", "not shown first")
        for name in ("page-faults", "task-clock"):
            need(page.value(SUM % name) == end["totals"][name], name)
        # a piece: whole intervals that overlap it
        rows = page.value("kronView.data.counters[0].rows")
        a, b = rows[2][0], rows[4][1]
        page.value(f"kronView.setSpan({a}, {b})")
        page.settle()
        want = sum(r[2] for r in rows if r[1] > a and r[0] < b)
        need(page.value(SUM % "page-faults") == want < end["totals"]["page-faults"], "a piece")
        for picture in ("timeline", "flame", "usage", "histograms", "causality", "samples"):
            page.value(f"kronView.show('{picture}')")
            page.settle()
        see_all(page)
        page.key("4")
        need(page.value("location.hash") == "#counters", "key 4")


def exact():
    """What JSON's numbers cannot hold is shown whole all the same."""
    tap.compile_text("p", BIG)
    run("monitor", "-q", "--every", "50ms", "-o", "t/", "--var", "mask:x64", "--var", "below:s64", "--var", "part:double", "--", "./p")
    with open_page("t") as page:
        page.settle()
        titles = page.value("[...document.querySelectorAll('[data-counter] title')].map(t => t.textContent)")
        for words in ("0xfedcba9876543210", "-9007199254740995", ": 0.1"):
            need(any(t.endswith(words) for t in titles), f"{words}: {titles}")
        check_quiet(page)


def many():
    """More intervals than can be seen: sums are whole."""
    run("monitor", "-q", "--every", "1ms", "-o", "t/", "-e", "page-faults,task-clock", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.2; ls >/dev/null; done")
    end = end_of("t")
    need(end["intervals"] > 700, end)
    with open_page("t") as page:
        page.settle()
        need(page.value(SUM % "page-faults") == end["totals"]["page-faults"], "sums of steps")
        need(page.value("document.querySelectorAll('[data-counter=\"page-faults\"] rect').length") <= 600, "steps")
    # and more than there is room for in the file
    with open("t/monitor") as f:
        columns = [line for line in f if line.startswith("C")]
    with open("t/monitor", "w") as f:
        f.writelines(columns)
        f.writelines(f"I\t{i}000000\t{i + 1}000000\t0\t0\t0\tran\t{i},{i % 7}\n" for i in range(20000))
    end = end_of("t")
    need(end["totals"]["page-faults"] == 20000 * 19999 // 2, end)
    run("view", "--size", "1M", "-o", "y.html", "t")
    with open("y.html", encoding="utf-8") as f:
        m = json.loads(f.read().split('id="kron-data">')[1].split("</script>")[0])["counters"][0]
    need(m["each"] > 1 and m["intervals"] == end["intervals"], m["each"])
    need(sum(r[2] for r in m["rows"]) == end["totals"]["page-faults"], "sums of the file")


with tap.Suite("view_counters") as s:
    s.case("graphs of counters: sums and pieces", graphs)
    s.case("values of 64 bits", exact)
    s.case("many intervals", many)
