#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""view_pages.py - pages of kron view in headless Chromium: they open without an error, ask no
network for anything, and show the numbers that kron report and the database say.

Without Chromium every case is skipped."""

import json
import os
import re
import sqlite3
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pages import (KRON, MAKE_TRACE, PICTURES, check_quiet, chromium, make, need, open_page, run,  # noqa: E402
                   see_all, tap)


def close(a, b, what, slack=2):
    need(abs(a - b) <= slack, f"{what}: {a} and {b}")


# ---- numbers ----

def functions_agree(page, trace):
    want = {f["function"]: f for f in json.loads(run("report", "--json", trace))}
    got = page.value("[...kronView.functions.values()].map(f => ({...f, histogram: null}))")
    need(len(got) == len(want), f"{len(got)} functions instead of {len(want)}")
    for f in got:
        w = want.get(f["name"])
        if w is None:  # names that no terminal may see are spelt with \x in pages
            continue
        for mine, theirs in (("calls", "calls"), ("total", "total_ns"), ("self", "self_ns"), ("min", "min_ns"),
                             ("avg", "avg_ns"), ("max", "max_ns")):
            need(f[mine] == w[theirs], f"{f['name']} {mine}: {f[mine]} and {w[theirs]}")


def tree_agrees(page, trace):
    """The flame graph holds all self time, and calls of each function as the report counts them."""
    tree = page.value("kronView.tree.map(n => [n.fn, n.calls, n.self, n.total, n.parent ? n.parent.id : -1])")
    fns = {f["n"]: f for f in page.value("[...kronView.functions.values()].map(f => ({...f, histogram: null}))")}
    for n, f in fns.items():
        mine = [x for x in tree if x[0] == n]
        need(sum(x[1] for x in mine) == f["calls"], f"{f['name']}: calls in the tree")
        close(sum(x[2] for x in mine), f["self"], f"{f['name']}: self in the tree", len(mine) + 1)
    roots = sum(x[3] for x in tree if x[4] == 0)
    close(roots, tree[0][3], "the root's total", 0)
    report = json.loads(run("report", "--json", trace))
    close(sum(x[2] for x in tree[1:]), sum(f["self_ns"] for f in report), "all self time", len(tree) + len(report))
    shown = page.value("kronView.pictures[1].boxes.map(b => [b.node.id, b.w])")
    width = page.value("kronView.pictures[1].surface.width")
    for node, w in shown:  # as wide as its share of all
        close(w, width * tree[node][3] / tree[0][3], f"width of box {node}", 1)


def spans_agree(page, trace):
    """Where no call is left out: begin, duration and depth of each, by the database's word."""
    run("export", "-f", "sqlite", "-o", "t.db", trace)
    db = sqlite3.connect("t.db")
    want = sorted(db.execute("select thread_id, start_ns, duration_ns, function_id from intervals"))
    got = sorted(page.value("kronView.threads.flatMap(t => !t.spans ? [] : Array.from(t.spans.begin).map((b, i) =>"
                            " [t.lane, b, t.spans.end[i] - b, t.spans.fn[i]]))"))
    need(len(want) == len(got), f"{len(got)} calls instead of {len(want)}")
    # thread_id of the database and lane of the page number the threads alike
    for w, g in zip(want, got):
        need(w[0] == g[0] and w[3] == g[3], f"{w} {g}")
        close(w[1], g[1], f"begin of {w}")
        close(w[2], g[2], f"duration of {w}")


def cpus_agree(page, trace):
    """Kiviat diagram and table: the database's view cpu_occupancy."""
    run("export", "-f", "sqlite", "-o", "c.db", trace)
    db = sqlite3.connect("c.db")
    want = {c: (busy, n) for c, busy, n in db.execute("select cpu, busy_ns, stays from cpu_occupancy")}
    page.value("kronView.show('usage')")
    page.settle()
    rows = page.value("[...document.querySelectorAll('#utilisation-table tr[data-cpu]')].map(r =>"
                      " [Number(r.dataset.cpu), Number(r.dataset.busyNs)])")
    need(sorted(c for c, _ in rows) == sorted(want), f"CPUs {rows} and {want}")
    for cpu, busy in rows:
        close(busy, want[cpu][0], f"CPU {cpu} busy", want[cpu][1] + 2)
    kiviat = page.value("[...document.querySelectorAll('#kiviat .axis-value')].map(c =>"
                        " [c.dataset.name, Number(c.dataset.share)])")
    length = page.value("kronView.data.to_ns - kronView.data.from_ns")
    need(len(kiviat) == len(want), f"{len(kiviat)} axes")
    for name, share in kiviat:
        cpu = int(name.split()[1])
        close(share, want[cpu][0] / length, f"Kiviat {name}", 0.005)
    bars = page.value("[...document.querySelectorAll('#utilisation-histogram .bar')].map(b => Number(b.dataset.share))")
    mean = sum(b for b, _ in want.values()) / len(want) / length
    close(sum(bars) / len(bars), mean, "mean of the utilisation histogram", 0.005)
    meter = page.value("Number(document.querySelector('#utilisation-meter svg').dataset.share)")
    close(meter, mean, "utilisation meter", 0.005)


def histograms_agree(page, trace, intervals):
    page.value("kronView.show('histograms')")
    page.settle()
    want = json.loads(run("report", "--json", "--histogram", "--intervals", intervals, trace))
    got = page.value("kronView.data.intervals")
    need(len(want) == len(got), f"{len(got)} intervals instead of {len(want)}")
    for i, (w, g) in enumerate(zip(want, got)):
        need(w["interval"] == g["name"] and w["class"] == g["class"], f"{w} {g}")
        for mine, theirs in (("count", "count"), ("sum_ns", "total_ns"), ("min_ns", "min_ns"), ("max_ns", "max_ns"),
                             ("p50_ns", "p50_ns"), ("p99_ns", "p99_ns"), ("histogram", "histogram")):
            need(w[theirs] == g[mine], f"{w['interval']} {mine}: {g[mine]} and {w[theirs]}")
        page.value(f"kronView.pictures[3].choose(kronView.pictures[3].items.find(x => x.id === 'i{i}'))")
        bars = page.value("[...document.querySelectorAll('#histogram .bar')].reduce((s, b) => s + Number(b.dataset.count), 0)")
        need(bars == w["count"], f"{w['interval']}: {bars} in the bars instead of {w['count']}")


def known_trace():
    make("small", "t")
    with open("interval.info", "w") as f:
        f.write('1 parse parse%return "parsing"\n2 work work%return leaf "work" "work to leaf"\n4 parse leaf "message"\n')
    with open_page("--intervals", "interval.info", "t") as page:
        see_all(page)
        functions_agree(page, "t")
        page.value("kronView.show('flame')")
        page.settle()
        tree_agrees(page, "t")
        spans_agree(page, "t")
        cpus_agree(page, "t")
        histograms_agree(page, "t", "interval.info")
        need(page.value("kronView.data.lost") == 123, "lost")
        need("123 samples lost" in page.value("document.getElementById('badges').textContent"), "the loss is not told")
        need(page.value("kronView.data.losses.length") == 1, "the loss has no place")


def context_switches():
    """Where they are recorded, they say how busy a CPU was; the clock is 2 GHz from 10^12 on."""
    make("small", "t")
    start = 10**12
    with open("t/switches", "wb") as f:
        for at, tid, cpu, kind in ((1500, 1000, 1, 1), (8500, 1000, 1, 2), (8900, 1000, 9, 1), (1000000, 1000, 9, 3),
                                   (1200000, 1000, 5, 1), (1300000, 1000, 5, 3), (1900000, 1000, 9, 1)):
            f.write(struct.pack("<QIHH", start + at, tid, cpu, kind))
    with open("t/session", "a") as f:
        f.write("switches=yes\n")
    with open_page("t") as page:
        need(page.value("kronView.data.switches_known"), "not known")
        busy = dict(page.value("kronView.cpus.map(c => [c.cpu, c.busy_ns])"))
        # thread 1000 by its switches, from its first sample at 2000 to its process' end at 2100000;
        # the other two have none: from sample to sample
        want = {0: (10000 + 2000) // 2, 1: (8500 - 2000) // 2, 5: (40000 - 31000 + 1300000 - 1200000) // 2,
                9: (1000000 - 8900 + 2100000 - 1900000) // 2}
        need(busy == want, f"{busy} instead of {want}")
        off = [o for o in page.value("kronView.data.off") if o[2]]
        need(len(off) == 1 and off[0][1] == 200 + 400000, f"off: {off}")
        need(off[0][3] == [4250, 4450, 0, 500000, 600000, 1, 650000, 950000, 1], f"off: {off}")
        see_all(page)


def larger_trace():
    make("walk", "t", "400000", "4")
    with open_page("t") as page:
        see_all(page)
        functions_agree(page, "t")
        page.value("kronView.show('flame')")
        page.settle()
        cpus_agree(page, "t")
        spans = page.value("kronView.threads.map(t => [t.nspans, t.left_out, t.calls])")
        need(all(n + out == calls for n, out, calls in spans), f"calls kept and left out: {spans}")
        # the strip's bins hold all of the time that a function was on the stack, at each level
        sums = page.value("kronView.threads.map(t => [0, 1, 2].map(i => t.track.level(i).busy.reduce((s, b) => s + b, 0)))")
        for a, b, c in sums:
            close(a, b, "level 1", 10)
            close(a, c, "level 2", 10)
        self = page.value("[...kronView.functions.values()].reduce((s, f) => s + f.self, 0)")
        close(sum(s[0] for s in sums), self, "time in the strips", len(sums) * 100)


def samples_agree():
    make("small", "t")
    want = [json.loads(line) for line in run("dump", "--json", "t").splitlines()]
    with open_page("t") as page:
        page.value("kronView.show('samples')")
        got = page.value("Array.from(kronView.samples.ns).map((t, i) => [t, kronView.samples.low[i],"
                         " kronView.samples.high[i], kronView.samples.cpu[i], kronView.samples.head[i]])")
        need(len(got) == len(want), f"{len(got)} samples instead of {len(want)}")
        for w, g in zip(want, got):
            need(g[1] == int(w["data"][8:], 16) and g[2] == w["payload"] and g[3] == w["cpu"], f"{w} {g}")
        # search
        page.value("document.getElementById('sample-search').focus()")
        for c in "leaf":
            page.key(c)
        leaf = [w for w in want if "leaf" in w.get("function", "")]
        found = page.value("document.getElementById('sample-found').textContent")
        need(found == f"{len(leaf)} found", f"{found}: {len(leaf)}")
        page.key("Enter", "\r")
        need("leaf" in page.value("document.getElementById('sample-detail').textContent"), "the found one is not shown")
        check_quiet(page)


# ---- causality ----

def levels_of(messages):
    """Lamport's logical steps, by the definition: until nothing changes."""
    events = []
    for k, (_, sent, a, received, b) in enumerate(messages):
        events += [(a, sent, 0, k), (b, received, 1, k)]
    lines = {}
    for e in sorted(events, key=lambda e: (e[1], -e[2] if False else e[2] == 0)):
        lines.setdefault(e[0], []).append(e)
    before = {e: [] for e in events}
    for line in lines.values():
        for x, y in zip(line, line[1:]):
            before[y].append(x)
    for k, (_, sent, a, received, b) in enumerate(messages):
        before[(b, received, 1, k)].append((a, sent, 0, k))
    level = dict.fromkeys(events, 0)
    changed = True
    while changed:
        changed = False
        for e in events:
            n = max((level[x] + 1 for x in before[e]), default=0)
            if n != level[e]:
                level[e], changed = n, True
    return sorted(level.values())


def hasse():
    make("walk", "t", "2000", "5")
    with open("interval.info", "w") as f:
        f.write('4 2 8 "ping"\n4 21 30 "pong"\n')
    with open_page("--intervals", "interval.info", "t") as page:
        page.value("kronView.show('causality')")
        page.settle()
        messages = page.value("kronView.data.messages")
        rows = json.loads(run("report", "--json", "--intervals", "interval.info", "t"))
        need(len(messages) == sum(r["count"] for r in rows) > 20, f"{len(messages)} messages, {rows}")
        drawn = page.value("[Number(document.querySelector('#hasse svg').dataset.messages), Number(document.querySelector('#hasse svg').dataset.events)]")
        need(drawn == [len(messages), 2 * len(messages)], f"drawn {drawn}")
        want = levels_of(messages)
        got = sorted(page.value("[...document.querySelectorAll('#hasse .event')].map(e => Number(e.dataset.level))"))
        need(got == want, f"logical steps {got} instead of {want}")
        page.key("o")
        need(page.value("document.getElementById('causality-order').value") == "logical", "order by key")
        # each edge goes one step right at least
        right = page.value("kronView.pictures[4].edges.every(e => e.to.level > e.from.level)")
        need(right, "an edge does not go forward")
        # an implied edge is one that a longer way also gives
        page.key("ArrowRight")
        need("concurrent" in page.value("document.getElementById('hasse-words').textContent"), "nothing is told of the event")
        check_quiet(page)


# ---- keys, printing ----

def keys():
    make("walk", "t", "20000", "3")
    with open_page("t") as page:
        width = "kronView.span.b - kronView.span.a"
        whole = page.value(width)
        page.key("+")
        close(page.value(width), whole / 2, "zoom by key", 1)
        begin = page.value("kronView.span.a")
        page.key("ArrowRight")
        need(page.value("kronView.span.a") > begin, "moving by key")
        page.key("-")
        page.key("-")
        close(page.value(width), whole, "zoom out", 1)
        page.key("+")
        page.key("0")
        close(page.value(width), whole, "the whole by key", 1)
        page.mouse("mouseWheel", 600, 500, deltaX=0, deltaY=-300, modifiers=2)
        page.settle()
        need(page.value(width) < whole / 2, "zoom by wheel")
        page.key("0")
        # a click on a call tells about it
        page.value("kronView.setSpan(kronView.threads[0].spans.begin[0], kronView.threads[0].spans.end[0])")
        page.settle()
        box = page.value("(() => { const t = kronView.pictures[0], r = t.surface.canvas.getBoundingClientRect(),"
                         " row = t.rows.find(x => x.thread); return [r.left + t.LABEL + 300, r.top + row.y + t.STRIP + 8]; })()")
        page.click(*box)
        aside = page.value("document.querySelector('aside').textContent")
        name = page.value("kronView.functions.get(kronView.threads[0].spans.fn[0]).name")
        need("Selected" in aside and name in aside, f"nothing about {name} in {aside[:200]}")
        for i, p in enumerate(PICTURES):
            page.key(str(i + 1))
            need(page.value("document.querySelector('section:not([hidden])').id") == f"picture-{p}", f"key {i + 1}")
        page.key("?")
        need(page.value("document.getElementById('help').open"), "no help")
        page.key("Escape")
        need(not page.value("document.getElementById('help').open"), "help stays")
        # the table sorts by keyboard
        page.key("2")
        first = "document.querySelector('#functions tbody tr td:nth-child(4)').textContent"
        page.value("document.querySelectorAll('#functions th')[3].focus()")
        page.key("Enter", "\r")
        most = page.value("Math.max(...[...kronView.functions.values()].map(f => f.calls))")
        need(int(page.value(first).replace(",", "")) == most, "sorted by calls")
        page.pdf("x.pdf")
        pages = len(re.findall(rb"/Type\s*/Page\b", open("x.pdf", "rb").read()))
        need(pages >= 6, f"{pages} printed pages")
        check_quiet(page)


# ---- whose time it is: clicks and searches in the flame graph ----

FOUND = "document.querySelector('#picture-flame .found').textContent"
WHERE = "document.getElementById('flame-where').textContent"
ROOT = "kronView.pictures[1].root"


def stacks():
    """What flame graphs are made of elsewhere: [(frames, ns)]"""
    lines = [line.rsplit(" ", 1) for line in run("export", "-f", "folded", "t").splitlines()]
    return [([re.sub(r" \[.*", "", f) for f in s.split(";")], int(ns)) for s, ns in lines]


def share_of(all_stacks, wanted):
    """Of the stacks with a frame that is wanted, each once: percent as the page writes it."""
    return 100 * sum(ns for s, ns in all_stacks if any(map(wanted, s))) / sum(ns for _, ns in all_stacks)


def says_share(text, percent, what):
    got = re.search(r"([0-9.]+)%", text)
    need(got and abs(float(got[1]) - percent) < 0.11, f"{what}: {text!r}, expected {percent:.2f}%")


def click_row(page, name):
    spot = page.value(f"""(() => {{
        const row = [...document.querySelectorAll('#functions tbody tr')].find(r => r.cells[8].textContent === {json.dumps(name)});
        row.scrollIntoView({{block: "center"}});
        const b = row.cells[8].getBoundingClientRect();
        return [b.left + 5, b.top + b.height / 2]; }})()""")
    page.click(*spot)


def click_box(page, way):
    """The box of the stack `way`, wherever it is drawn."""
    spot = page.value(f"""(() => {{
        const f = kronView.pictures[1], way = {json.dumps(way)}, name = n => kronView.functions.get(n.fn)?.name;
        const is = (n, i) => i < 0 ? !n || n.fn < 0 : n && name(n) === way[i] && is(n.parent, i - 1);
        const b = f.boxes.find(b => is(b.node, way.length - 1)), r = f.surface.canvas.getBoundingClientRect();
        return b && [r.left + b.x + b.w / 2, r.top + b.y - f.scroll + f.ROW / 2]; }})()""")
    need(spot, f"no box of {way}")
    page.click(*spot)


def flame_clicks():
    tap.compile_c("shares", "bins/shares.c", "-fno-optimize-sibling-calls")
    subprocess.run([KRON, "record", "-q", "-N", "spin", "-o", "t", "./shares"], check=True)
    every = stacks()
    main, domain = ["main"], ["main", "domain"]
    if any(s[0] == "_start" for s, _ in every):
        main, domain = ["_start", *main], ["_start", *domain]
    with open_page("t") as page:
        page.key("2")
        # a row of the table: that function, and nothing that is only spelt with it
        click_row(page, "main")
        need(page.value(f"kronView.functions.get({ROOT}.fn).name") == "main", "no zoom to main")
        says_share(page.value(WHERE), share_of(every, lambda f: f == "main"), "main")
        need(page.value("document.querySelector('#picture-flame input').value") == "" and page.value(FOUND) == "",
             "a click is not a search")
        need(share_of(every, lambda f: f == "main") < 90, "main has it all: no test of this")
        # one with several ways: all of them, and what they have in common
        click_row(page, "leaf")
        says_share(page.value(WHERE), share_of(every, lambda f: f == "leaf"), "leaf")
        ways = len({tuple(s[: i + 1]) for s, _ in every for i, f in enumerate(s) if f == "leaf"})
        need(f"{ways} ways" in page.value(WHERE), f"{ways} ways of leaf: {page.value(WHERE)}")
        need(page.value(f"{ROOT}.fn") == -1, "only some ways of leaf are shown")
        # one that calls itself: from its first call
        click_row(page, "domain")
        says_share(page.value(WHERE), share_of(every, lambda f: f == "domain"), "domain")
        need(page.value(f"{ROOT}.parent && kronView.functions.get({ROOT}.parent.fn)?.name") == "main", "not the outer domain")
        page.key("0")
        need(page.value(f"{ROOT}.fn") == -1 and page.value(WHERE) == "", "key 0")
        # a box: this way alone
        click_box(page, [*main, "remain"])
        need(page.value(f"kronView.functions.get({ROOT}.fn).name") == "remain", "no zoom to the box")
        below = sum(ns for s, ns in every if s[: len(main) + 1] == [*main, "remain"])
        says_share(page.value(WHERE), 100 * below / sum(ns for _, ns in every), "remain below main")
        click_box(page, main)  # its caller, drawn above it
        says_share(page.value(WHERE), share_of(every, lambda f: f == "main"), "main's box")
        click_box(page, domain)
        says_share(page.value(WHERE), share_of(every, lambda f: f == "domain"), "the outer box of domain")
        # the search: all that is spelt so, nested or not, once
        page.call("Input.dispatchKeyEvent", type="rawKeyDown", key="f", modifiers=2)
        need(page.value("document.activeElement === document.querySelector('#picture-flame input')"), "Ctrl-F")
        for c in "main":
            page.key(c)
        says_share(page.value(FOUND), share_of(every, lambda f: "main" in f), "search for main")
        need(share_of(every, lambda f: "main" in f) > 99, "no names that contain it: no test of this")
        page.key("Escape")
        page.value("document.querySelector('#picture-flame input').value = ''")
        for c in "/":
            page.key(c)
        for c in "domai":
            page.key(c)
        says_share(page.value(FOUND), share_of(every, lambda f: "domai" in f), "search for domai")
        check_quiet(page)


# ---- odd traces ----

def text_of(page, picture):
    page.value(f"kronView.show('{picture}')")
    page.settle()
    return page.value(f"document.getElementById('picture-{picture}').textContent")


def no_samples():
    make("small", "t")
    open("t/samples", "w").close()
    with open_page("t") as page:
        see_all(page)
        for p in ("timeline", "flame", "usage", "histograms", "samples"):
            need("no " in text_of(page, p).lower(), f"{p} says nothing")
        check_quiet(page)


def one_sample():
    make("small", "t")
    tsc, source = 10**12 + 2000, 3 << 22 | 1000
    sample = lambda event, data: struct.pack("<5I", 0x30 << 24 | tsc >> 32, tsc & 0xffffffff, source, data, event)  # noqa: E731
    with open("t/samples", "wb") as f:  # a chunk that is not packed: a CPU record and one sample
        f.write(struct.pack("<2IQ4I", 0x4b43484b, 40, 1, 1, 1000, source, 0))
        f.write(sample(0xffffff02, 1) + sample(0, 0xffffe000))
    with open_page("t") as page:
        see_all(page)
        need(page.value("kronView.samples.count") == 2, "samples")


def stacks_and_jumps():
    """A stack whose calls interleave with others has rows of its own; an exit by a jump is named."""
    make("small", "t")
    events = [  # ns, event, stack pointer: main waits for two coroutines, and jumps to somewhere at last
        (2000, 0, 0xffffe000), (3000, 2, 0x70000f00), (4000, 4, 0x60000f00), (5000, 6, 0x70000e00),
        (6000, 7, 0x70000e00), (7000, 6, 0x60000e00), (8000, 7, 0x60000e00), (9000, 3, 0x70000f00),
        (10000, 5, 0x60000f00), (11000, 0x80000003, 0xffffe000), (12000, 8, 0xffffe100), (13000, 9, 0xffffe100)]
    with open("t/jumps", "w") as f:
        f.write("0\t2\tunknown\t\n1\t0\timport\tsomewhere\n")
    source = 3 << 22 | 1000
    with open("t/samples", "wb") as f:
        f.write(struct.pack("<2IQ4I", 0x4b43484b, 20 * len(events), 1, 1, 1000, source, 0))
        for ns, event, sp in events:
            tsc = 10**12 + 2 * ns
            f.write(struct.pack("<5I", 0x30 << 24 | tsc >> 32, tsc & 0xffffffff, source, sp, event))
    with open_page("t") as page:
        see_all(page)
        stacks = page.value("kronView.threads[0].stacks")
        need(stacks == [0, 4], f"stacks: {stacks}")
        calls = page.value("(() => { const s = kronView.threads[0].spans; return Array.from(s.begin).map((b, i) =>"
                           " [kronView.functions.get(s.fn[i]).name, b, s.end[i], s.depth[i], s.flags[i]]); })()")
        name = {n: page.value(f"kronView.functions.get({n}).name") for n in range(5)}
        need(sorted(calls) == sorted([
            [name[0], 2000, 11000, 0, 9], [name[1], 3000, 9000, 1, 0], [name[3], 5000, 6000, 2, 0],
            [name[2], 4000, 10000, 4, 0], [name[3], 7000, 8000, 5, 0], [name[4], 12000, 13000, 0, 0]]), f"calls: {calls}")
        page.value("kronView.show('timeline')")
        page.value("kronView.setSpan(7000, 8000)")
        page.settle()
        row_of = lambda depth: page.value(  # noqa: E731
            "(() => { const t = kronView.pictures[0], r = t.surface.canvas.getBoundingClientRect(), row = t.rows.find(x => x.thread);"
            f" return [r.left + t.LABEL + 100, r.top + t.top(row, {depth}) - t.scroll + 5]; }})()")
        page.click(*row_of(5))
        aside = page.value("document.querySelector('aside').textContent")
        need("1 of stack 2" in aside, f"which stack? {aside[:200]}")
        page.value("kronView.setSpan(2000, 12000)")
        page.settle()
        page.click(*row_of(0))
        aside = page.value("document.querySelector('aside').textContent")
        need("left by a jump" in aside and "0 of stack 1" in aside, f"how did it end? {aside[:200]}")
        shown = text_of(page, "samples")
        need(f"{name[0]} exit by a jump to somewhere" in shown, "the jump has no words")


def no_functions():
    make("small", "t")
    open("t/functions", "w").close()
    open("t/modules", "w").close()
    with open_page("t") as page:
        see_all(page)
        need("event" in text_of(page, "flame"), "events have no numbers for names")


def events_only():
    """Probes of the user: no call at all, but marks, and words in the sample viewer."""
    make("small", "t")
    with open("t/events", "w") as f:
        for n in [*range(8), 4711]:
            f.write(f"{n}\t{n % 16}\ttrace\tvalue\t0\t{n:x}\tmark {n}\n")
    open("t/functions", "w").close()
    with open_page("t") as page:
        see_all(page)
        need(page.value("kronView.functions.size") == 0, "events became functions")
        marks = page.value("kronView.data.marks")
        want = [json.loads(line) for line in run("dump", "--json", "t").splitlines()]
        want = [w for w in want if w["kind"] == "event"]
        need(len(want) > 10 and [m[2] for m in marks] == [w["event"] for w in want], f"{marks} {want}")
        need("mark 3" in text_of(page, "samples"), "no word of the event")
        need("no " in text_of(page, "flame").lower(), "flame graph says nothing")


def part_of_a_trace():
    make("walk", "t", "200000", "2")
    whole = json.loads(run("report", "--json", "t"))
    with open_page("--from", "200us", "--to", "900us", "t") as page:
        see_all(page)
        a, b = page.value("[kronView.data.from_ns, kronView.data.to_ns]")
        need(200000 <= a < 201000 and 899000 < b <= 900000, f"{a} {b}")
        total = page.value("kronView.tree[0].total")
        threads = page.value("kronView.threads.length")
        need(0 < total <= (b - a) * threads, f"{total} ns of calls in {b - a}")
        # each thread is in a function nearly all of the time, and that is what is left of it
        close(sum(page.value("[...kronView.functions.values()].map(f => f.self)")), total, "self times", 100)
        need("part of the trace" in page.value("document.getElementById('badges').textContent"), "does not say so")
        need(sum(f["calls"] for f in whole) > 3 * page.value("kronView.tree[0].children.reduce((s, c) => s + c.calls, 0)"), "calls")


def filtered():
    make("small", "t")
    with open_page("--where", 'thread=1001 and not "</script>"', "t") as page:
        see_all(page)
        badges = page.value("document.getElementById('badges').textContent")
        need("filtered: where thread=1001" in badges, f"the filter is not told: {badges}")
        want = len(run("dump", "--json", "--where", "thread=1001", "t").splitlines())
        need(0 < page.value("kronView.samples.count") == want, f"{want} samples")


def bounded():
    make("big", "t", "3000000", "64")
    for size in (1, 4):
        if not chromium.find():
            raise tap.Skip("chromium is not installed")
        with open_page("--size", f"{size}M", "--detail", "0", "t") as page:
            see_all(page)
            n = os.path.getsize("x.html")
            need(n <= size * 1.1 * 2**20, f"{n} bytes of {size} MiB")
            need("summed up" in page.value("document.getElementById('badges').textContent"), "does not say so")
            functions = page.value("[kronView.functions.size, kronView.data.functions_left_out.functions]")
            need(sum(functions) == 5000, f"functions {functions}")
            report = json.loads(run("report", "--json", "t"))
            # nothing is lost on the way to the sums
            self = page.value("[...kronView.functions.values()].reduce((s, f) => s + f.self, 0) + kronView.data.functions_left_out.self_ns")
            close(self, sum(f["self_ns"] for f in report), "self time", 6000)


# ---- short calls ----

def unpacked(page):
    """Until all blocks that the last picture asked for are there, and it is drawn again."""
    page.settle()
    for _ in range(1000):
        if not page.value("kronView.detail.pending"):
            break
        page.value("new Promise(done => setTimeout(done, 10))")
    need(not page.value("kronView.detail.pending"), "blocks do not come")
    page.settle()


SEEN = """kronView.threads.flatMap(t => !t.spans ? [] : kronView.pictures[0].callsOf(t).flatMap(s => Array.from(s.begin)
    .map((b, i) => [t.lane, b, s.end[i] - b, s.depth[i], s.fn[i]])
    .filter(c => c[1] <= kronView.span.b && c[1] + c[2] >= kronView.span.a)))"""


def seen_calls(page, db, a, b, least=0):
    """In a piece of the view: every call of it that the database has, and no other."""
    page.value("kronView.show('timeline')")
    page.value(f"kronView.setSpan({a}, {b})")
    unpacked(page)
    page.value(SEEN)  # rows that are not on the screen ask for nothing themselves
    unpacked(page)
    got = sorted(page.value(SEEN))
    a, b = page.value("[kronView.span.a, kronView.span.b]")
    rows = "select thread_id, start_ns, duration_ns, depth, function_id from intervals"
    want = sorted(map(list, db.execute(f"{rows} where start_ns <= {b} + 2 and start_ns + duration_ns >= {a} - 2"
                                       f" and duration_ns >= {least}")))
    edge = lambda c: min(abs(c[1] - b), abs(c[1] + c[2] - a)) <= 2  # noqa: E731
    got, want = ([c for c in calls if not edge(c) and c[2] >= least + 2] for calls in (got, want))
    need(len(want) == len(got) > 10, f"{len(got)} calls instead of {len(want)} from {a} to {b}")
    for w, g in zip(want, got):
        need(w[0] == g[0] and w[3:] == g[3:] and abs(w[1] - g[1]) <= 2 and abs(w[2] - g[2]) <= 2, f"{w} {g}")
    return len(want)


def detail():
    make("walk", "t", "240000", "3")
    run("export", "-f", "sqlite", "-o", "t.db", "t")
    db = sqlite3.connect("t.db")
    with open_page("--size", "1M", "t") as page:
        need(not page.value("kronView.threads.some(t => t.missing)"), "calls are missing")
        need(page.value("kronView.threads.every(t => t.nspans + t.inDetail === t.calls)"), "calls there and made")
        whole = page.value("[kronView.span.a, kronView.span.b]")
        unpacked(page)
        count, all_of = page.value("[kronView.detail.loaded.length, kronView.threads.reduce((n, t) => n + t.levels.reduce((m, l) => m + l.blocks.length, 0), 0)]")
        need(count < all_of / 2, f"the whole view unpacks what cannot be seen: {count} of {all_of}")
        length = whole[1] - whole[0]
        for share in (0.001, 0.5):
            n = seen_calls(page, db, whole[0] + share * length, whole[0] + (share + 0.0005) * length)
            need(n > 50, f"{n} calls")
        count = page.value("kronView.detail.loaded.length")
        need(count < all_of, f"all blocks for a few pieces: {count} of {all_of}")
        # the strip is exact then: all of the time has the function on top, as the samples say
        states = page.value("kronView.detail.statesIn(kronView.threads[0], kronView.span.a, kronView.span.b)")
        a, b = page.value("[kronView.span.a, kronView.span.b]")
        lane = page.value("kronView.threads[0].lane")
        top = db.execute("select start_ns, duration_ns, function_id from intervals where thread_id = ? and start_ns <= ?"
                         " and start_ns + duration_ns >= ? order by depth desc", (lane, b, a)).fetchall()
        for s in states:
            middle = (s[0] + s[1]) / 2
            if s[1] - s[0] < 4 or not a < middle < b:
                continue
            over = next(f for start, took, f in top if start <= middle <= start + took)
            need(over == s[2], f"{s}: {over} was on top")
        # a short call can be pointed at
        spot = page.value("(() => { const t = kronView.pictures[0], r = t.surface.canvas.getBoundingClientRect(), thread = kronView.threads[0],"
                          " s = t.callsOf(thread)[1];"
                          " const i = Array.from(s.begin).findIndex(b => b > kronView.span.a); kronView.setSpan(s.begin[i] - 50, s.end[i] + 50);"
                          " t.layOut(); const y = t.top(t.rows.find(x => x.thread === thread), s.depth[i]); t.box.scrollTop = y - 100;"
                          " return [r.left + t.x((s.begin[i] + s.end[i]) / 2), r.top + y - t.box.scrollTop + 5,"
                          " kronView.functions.get(s.fn[i]).name]; })()")
        unpacked(page)
        page.click(*spot[:2])
        aside = page.value("document.querySelector('aside').textContent")
        need("Selected" in aside and spot[2] in aside, f"nothing about {spot[2]} in {aside[:200]}")
        see_all(page)
    # no room for all: the longer ones, everywhere
    with open_page("--size", "1M", "--detail", "200K", "t") as page:
        least, missing, kept = page.value("[kronView.detail.least, kronView.threads.reduce((n, t) => n + t.missing, 0),"
                                          " kronView.threads.reduce((n, t) => n + t.inDetail, 0)]")
        need(least > 0 and missing > 1000 and kept > 10000, f"least {least}, missing {missing}, kept {kept}")
        need(not page.value("kronView.threads.some(t => t.dropped)"), "some were dropped")
        need(os.path.getsize("x.html") <= 1.1 * 2**20 + 200 * 2**10, "too large")
        seen_calls(page, db, whole[0] + 0.7 * length, whole[0] + 0.7005 * length, least)
        need("summed up" in page.value("document.getElementById('badges').textContent"), "does not say so")
        need("below" in text_of(page, "about"), "does not say from where on")
    # no more than it may take, however little can be packed: names of functions are many here
    make("big", "b", "300000", "7")
    run("view", "-o", "x.html", "--size", "1M", "--detail", "64K", "b")
    need(os.path.getsize("x.html") <= 1.1 * 2**20 + 64 * 2**10, "too large")
    run("view", "-o", "x.html", "--size", "1M", "--detail", "0", "t")
    need("kron-detail" not in open("x.html").read().split("<script>")[0], "an empty detail")


def off_detail():
    """Thousands of switches of one thread: those that are short come when they can be seen."""
    make("walk", "t", "30000", "2")
    start, want, at = 10**12, [], 2000
    with open("t/switches", "wb") as f:
        for i in range(3000):
            length, kind = 20 + i * 7919 % 211, 2 + i % 2  # out, preempted
            f.write(struct.pack("<QIHH", start + at, 1000, 1, kind) + struct.pack("<QIHH", start + at + length, 1000, 1, 1))
            want.append([at / 2, (at + length) / 2, kind == 3])
            at += length + 31
    with open("t/session", "a") as f:
        f.write("switches=yes\n")
    with open_page("--size", "1M", "t") as page:
        kept = page.value("kronView.data.off.find(o => o[0] === kronView.threads.find(t => t.tid === 1000).lane)")
        need(kept[2] == 3000 and 3 * 10 < len(kept[3]) < 3 * 1000, f"{kept[2]} stretches, {len(kept[3]) / 3} kept")
        a, b = want[1000][0], want[1100][1]
        page.value(f"kronView.setSpan({a}, {b})")
        unpacked(page)
        got = page.value("(() => { const t = kronView.threads.find(t => t.tid === 1000), { a, b } = kronView.span; return [a, b,"
                         " kronView.detail.off(t, a, b, 1), kronView.data.off.find(o => o[0] === t.lane)[3]]; })()")
        a, b, short, long = got
        inside = lambda o: o[1] > a + 1 and o[0] < b - 1  # noqa: E731
        found = [[o["a"], o["b"], o["preempted"]] for o in short]
        found += [[x, y, p != 0] for x, y, p in zip(long[::3], long[1::3], long[2::3])]
        found, wanted = sorted(filter(inside, found)), sorted(filter(inside, want))
        need(len(found) == len(wanted) > 90, f"{len(found)} stretches instead of {len(wanted)}")
        for f, w in zip(found, wanted):
            need(abs(f[0] - w[0]) <= 1 and abs(f[1] - w[1]) <= 1 and f[2] == w[2], f"{f} {w}")
        check_quiet(page)


# ---- hostile names ----

EVIL = ['</script><script>kronOwned=1</script>', '<!--', '<!--<script>', '-->', ']]>', '\u2028\u2029', '"', "'", '`${kronOwned=1}`',
        '<img src=x onerror=kronOwned=1>', '\\u003cscript>', '&lt;b&gt;', '</title><svg onload=kronOwned=1>', '\u202etxt.exe',
        '\xff', '__proto__', 'constructor', '</ScRiPt >']


def hostile():
    make("small", "t")
    enc = lambda s: s.encode("latin-1" if s == '\xff' else "utf-8").replace(b"\\", b"\\\\")  # noqa: E731
    lines = open("t/functions", "rb").read().split(b"\n")
    for i, line in enumerate(lines[:-1]):
        f = line.split(b"\t")
        f[4] = enc(EVIL[i % len(EVIL)]) + enc(EVIL[(i + 8) % len(EVIL)])
        lines[i] = b"\t".join(f)
    open("t/functions", "wb").write(b"\n".join(lines))
    everything = b"".join(enc(e) for e in EVIL)
    with open("t/session", "ab") as f:
        f.write(b"command=" + everything + b"\nhostname=" + everything + b"\n")
    tasks = open("t/tasks", "rb").read()
    tasks = tasks.replace(b"/opt/app/bin/app", b"/opt/" + everything.replace(b"/", b"|")).replace(b"\tapp\n", b"\t" + everything + b"\n")
    open("t/tasks", "wb").write(tasks)
    with open("interval.info", "w") as f:
        f.write('1 0 1 "' + EVIL[0].replace('"', "") + '<!--"\n4 2 6 "</script>\u2028"\n')
    with open_page("--intervals", "interval.info", "t") as page:
        see_all(page)
        need(page.value("typeof kronOwned") == "undefined", "a name was run")
        need(page.value("document.querySelectorAll('script').length") == 2, "a name became a script")
        need(page.value("document.querySelectorAll('img, iframe, object, link, embed').length") == 0, "a name became an element")
        names = page.value("[...kronView.functions.values()].map(f => f.name)")
        need(any("</script><script>kronOwned=1</script>" in n for n in names), f"names were changed: {names}")
        need(all(ord(c) >= 32 and c not in "\u2028\u2029\u202e" for n in names for c in n), f"names: {names}")
        need(EVIL[0] in page.value("document.title"), "title")
    text = open("x.html", "rb").read()
    need(text.count(b"</script") == 2, "a name ends the script")
    data = text.split(b'id="kron-data">')[1].split(b"</script>")[0]
    need(b"<" not in data and b">" not in data and b"&" not in data, "markup among the data")
    json.loads(data.decode("utf-8"))


with tap.Suite("view") as s:
    s.case("a known trace: functions, flame graph, calls, CPUs, histograms agree", known_trace)
    s.case("context switches: busy CPUs and threads that are off them", context_switches)
    s.case("a larger trace: sums, CPUs, levels agree", larger_trace)
    s.case("the sample viewer has what kron dump says, and finds it", samples_agree)
    s.case("causality: messages, logical steps, order", hasse)
    s.case("flame graph: clicks zoom to a function, searches add up", flame_clicks)
    s.case("keys, mouse and printing", keys)
    s.case("a trace without samples: every picture says so", no_samples)
    s.case("a trace of one sample", one_sample)
    s.case("stacks of a thread, and exits by a jump", stacks_and_jumps)
    s.case("a trace without names", no_functions)
    s.case("events of the user's probes alone", events_only)
    s.case("a part of a trace", part_of_a_trace)
    s.case("a filtered trace says so", filtered)
    s.case("the size is bounded, the sums are whole", bounded)
    s.case("short calls are unpacked where they can be seen, all of them", detail)
    s.case("short stretches off the CPUs, too", off_detail)
    s.case("hostile names stay words", hostile)
