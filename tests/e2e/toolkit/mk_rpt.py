#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mk_rpt against an implementation of its own in mkdat.py, over generated mk.dat files."""

import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import BUILD, KRON, Suite, compile_c, need, rnd  # noqa: E402
import mkdat  # noqa: E402

RPT = os.path.join(BUILD, "board/toolkit/mk_rpt")


def rpt(*args, want=0, stdin=b""):
    r = subprocess.run([RPT, *args], input=stdin, capture_output=True, timeout=120)
    need(r.returncode == want, f"mk_rpt {args}: {r.returncode} {r.stderr[:2000]}")
    return r.stdout.decode(), r.stderr.decode()


def report(*args):
    return json.loads(rpt("--json", *args)[0])


def write(name, data):
    with open(name, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)


def one_sentence(text, *words):
    need(len(text.splitlines()) == 1, f"not one sentence: {text!r}")
    need(any(w in text for w in words), f"none of {words} in {text!r}")


def info(definitions):
    """interval.info and the names of all rows."""
    lines, rows = [], []
    for i, d in enumerate(definitions):
        names = [f"d{i} {c}" for c in "ab"[: 1 + (d[0] in (2, 3))]]
        lines.append(" ".join(map(str, d)) + "".join(f' "{n}"' for n in names) + "\n")
        rows += [(i, j, n) for j, n in enumerate(names + [" ".join(names)] * (d[0] == 3))]
    write("interval.info", "".join(lines))
    return rows


COUNTERS = list(range(16))


def soup(n, events, start, sources=(7, 8), step=100, flags=0):
    """Samples with events as they come."""
    out, t = [], start
    for _ in range(n):
        t += rnd.randrange(1, step)
        c = [rnd.getrandbits(32) for _ in COUNTERS] if rnd.random() < 0.2 else None
        data = rnd.choice(events) | rnd.getrandbits(32) << 32
        out.append(mkdat.pack(rnd.randrange(8), t, rnd.choice(sources), data, c, flags))
    return out


def check(samples, definitions, rows, j, by="cpu", match="source", bits=32, wide=True):
    for i, d in enumerate(definitions):
        found, left = mkdat.intervals(samples, d, bits, match)
        for _, row, name in (r for r in rows if r[0] == i):
            got = [x for x in j["intervals"] if x["description"] == name]
            need(len(got) == 1, f"{name}: {len(got)} objects")
            got = got[0]
            mine = [(b, to - at if wide else mkdat.narrow(to - at)) for r, b, at, to in found if r == row]
            bad = mkdat.Stats([x for _, x in mine]).differs(got)
            need(not bad, f"{d} {name}: {bad}")
            need([got["not_ended"], got["not_begun"]] == left,
                 f"{d}: left {got['not_ended']}, {got['not_begun']}, not {left}")  # fmt: skip
            key = (lambda b: b[0] >> 5) if by == "cpu" else (lambda b: b[2])
            for g in got.get("groups", ()):
                bad = mkdat.Stats([x for b, x in mine if key(b) == g[by]]).differs(g)
                need(not bad, f"{d} {name} {by} {g[by]}: {bad}")
            if by != "none":
                need({g[by] for g in got["groups"]} == {key(b) for b, _ in mine}, f"{d}: groups")


SOUP = [(1, 10, 20), (1, 10, 10), (2, 1, 2, 3), (2, 1, 1, 2), (3, 8, 17, 12), (3, 8, 17, 8), (4, 27, 36),
        (1, 20, 10), (1, 1, 36), (4, 10, 3)]  # fmt: skip
EVENTS = [1, 2, 3, 8, 10, 12, 17, 20, 27, 36, 99]


def random_events():
    """Any order of events, times that pass 32 and 56 bits."""
    rows = info(SOUP)
    for start in (0, (1 << 32) - 2000, (1 << 56) - 5000, rnd.randrange(1 << 56)):
        for step in (100, 1 << 33):
            data = b"".join(soup(rnd.randrange(1, 600), EVENTS, start, step=step))
            write("mk.dat", data)
            samples = mkdat.unpack(data)
            check(samples, SOUP, rows, report("-d"))
            check(samples, SOUP, rows, report(), wide=False)
            check(samples, SOUP, rows, report("-d", "--by", "source"), by="source")
            check(samples, SOUP, rows, report("-d", "--by", "none"), by="none")
            check(samples, SOUP, rows, report("-d", "--match", "cpu"), match="cpu")
            check(samples, SOUP, rows, report("-d", "--match", "any"), match="any")


def counts_of_samples():
    data = soup(500, EVENTS, 0, flags=6)
    write("mk.dat", b"".join(data))
    info([(1, 10, 20)])
    j = report()
    need(j["trace"] == sum(len(s) == 20 for s in data), j)
    need(j["resource"] == sum(len(s) == 84 for s in data), j)
    need(j["samples"] == 500 and j["damaged_bytes"] == 0 and j["parts"] == 1, j)
    events = [s[3] & 0xFFFFFFFF for s in mkdat.unpack(b"".join(data))]
    need(j["other"] == sum(e not in (10, 20) for e in events), j["other"])


def known_intervals():
    """Nested intervals whose lengths the generator chose."""
    defs = [(1, 100, 101), (2, 200, 201, 202), (3, 300, 301, 302)]
    rows = info(defs)
    want = {name: [] for _, _, name in rows}
    samples, t = [], rnd.randrange(1 << 40)

    def sample(event, source):
        samples.append(mkdat.pack(source % 8, t, source, event))

    def pause():
        nonlocal t
        t += rnd.randrange(1, 50)

    def interval(depth, source):
        kind, begin = rnd.randrange(3), t
        sample(100 * (kind + 1), source)
        pause()
        if depth:
            for _ in range(rnd.randrange(3)):
                interval(depth - 1, source)
        if kind == 0:
            sample(101, source)
            want["d0 a"].append(t - begin)
        elif kind == 1:
            which = rnd.randrange(2)
            sample(201 + which, source)
            want["d1 " + "ab"[which]].append(t - begin)
        else:
            middle = t
            sample(301, source)
            pause()
            sample(302, source)
            want["d2 a"].append(middle - begin)
            want["d2 b"].append(t - middle)
            want["d2 a d2 b"].append(t - begin)
        pause()

    for _ in range(200):
        interval(4, rnd.randrange(20))
    write("mk.dat", b"".join(samples))
    for x in report("-d")["intervals"]:
        bad = mkdat.Stats(want[x["description"]]).differs(x)
        need(not bad, f"{x['description']}: {bad}")
        need(x["not_begun"] == x["not_ended"] == 0, x)


def long_intervals():
    """Without -d lengths count modulo 2^32, and that is said; with it they are whole."""
    info([(1, 1, 2)])
    write("mk.dat", mkdat.pack(0, 5, 0, 1) + mkdat.pack(0, 5 + (3 << 32) + 77, 0, 2))
    out, err = rpt("--json")
    need(json.loads(out)["intervals"][0]["max"] == 77, out)
    one_sentence(err, "-d")
    out, err = rpt("--json", "-d")
    need(json.loads(out)["intervals"][0]["max"] == (3 << 32) + 77 and not err, out + err)


def messages():
    """Class 4 from concatenated files of a sender and a receiver, in either order."""
    rows = info([(4, 10, 20)])
    n = 500
    sent = sorted(rnd.randrange(1 << 34) for _ in range(n))
    latency = [rnd.randrange(1, 1000) for _ in range(n)]
    received = sorted(s + d for s, d in zip(sent, latency))
    sender = b"".join(mkdat.pack(0, t, 1, 10) for t in sent)
    receiver = b"".join(mkdat.pack(0, t, 2, 20, COUNTERS) for t in received)
    want = mkdat.Stats([r - s for s, r in zip(sent, received)])
    for parts in ((sender, receiver), (receiver, sender)):
        write("mk.dat", b"".join(parts))
        j = report("-d")
        bad = want.differs(j["intervals"][0])
        need(not bad, bad)
        need(j["parts"] == 2, j["parts"])
        for i, p in enumerate(parts):
            write(f"part{i}", p)
        need(report("-d", "part0", "part1") == j, "as two operands")
    # the senders are two, the receiver's clock is behind
    half = n // 2
    for skew in (0, -5000, 1 << 20):
        parts = [b"".join(mkdat.pack(0, t, 1, 10) for t in sent[i::2]) for i in range(2)]
        parts.append(b"".join(mkdat.pack(0, (t + skew) % (1 << 56), 2, 20) for t in received[:half]))
        rnd.shuffle(parts)
        write("mk.dat", b"".join(parts))
        out, err = rpt("-d", "--json")
        check(mkdat.unpack(b"".join(parts)), [(4, 10, 20)], rows, json.loads(out))
        if skew == -5000:
            one_sentence(err, "earlier")


def many_boards():
    """Concatenation: no interval of class 1 to 3 reaches from one file into the next."""
    rows = info(SOUP)
    parts = [b"".join(soup(200, EVENTS, rnd.randrange(1 << 45), step=1000)) for _ in range(5)]
    write("mk.dat", b"".join(parts))
    check(mkdat.unpack(b"".join(parts)), SOUP, rows, report("-d"))


def event_sizes():
    for bits in (1, 4, 8, 16, 33, 63, 64):
        top = 1 << bits
        defs = [(1, 0, 1)]
        if bits > 1:
            defs += [(2, top - 1, top // 2, 1), (4, top - 2, 0)]
        rows = info(defs)
        events = sorted({e for d in defs for e in d[1:]})
        samples = []
        for i in range(400):
            data = rnd.choice(events) | (rnd.getrandbits(64) << bits & (1 << 64) - 1)
            samples.append(mkdat.pack(0, 10 * i, 1, data))
        write("mk.dat", b"".join(samples))
        check(mkdat.unpack(b"".join(samples)), defs, rows, report("-e", str(bits)), bits=bits)
    write("interval.info", '1 255 256 "x"\n')
    one_sentence(rpt("-e", "8", want=1)[1], "interval.info:1: event 2, 256, does not fit into 8 bits")
    for bad in ("0", "65", "x"):
        one_sentence(rpt("-e", bad, want=2)[1], "--event-size")


def histograms():
    rows = info([(1, 1, 2), (3, 3, 4, 5)])
    data = b"".join(soup(3000, [1, 2, 3, 4, 5], 1000, step=8))
    write("mk.dat", data)
    defs = [(1, 1, 2), (3, 3, 4, 5)]
    lengths = {}
    for i, row, name in rows:
        found, _ = mkdat.intervals(mkdat.unpack(data), defs[i])
        lengths[name] = [(at, to - at, b[0] >> 5) for r, b, at, to in found if r == row]

    def counted(xs):
        return [[x, x, xs.count(x)] for x in sorted(set(xs))]

    for x in report("-h", "-s")["intervals"]:
        mine = lengths[x["description"]]
        need(x["histogram"] == counted([l for _, l, _ in mine]), x["description"])
        for g in x["groups"]:
            need(g["histogram"] == counted([l for _, l, c in mine if c == g["cpu"]]), g["cpu"])
    for x in report("-h")["intervals"]:
        need("histogram" not in x and all("histogram" in g for g in x["groups"]), "-h alone")
    for x in report("-s")["intervals"]:
        need("histogram" in x and not any("histogram" in g for g in x["groups"]), "-s alone")
    for x in report("-s", "-n")["intervals"]:
        need(x["chronological"] == sorted([a, l] for a, l, _ in lengths[x["description"]]), "-s -n")
    for x in report("-n")["intervals"]:
        mine = lengths[x["description"]]
        for g in x["groups"]:
            need(g["chronological"] == sorted([a, l] for a, l, c in mine if c == g["cpu"]), "-n")
    for x in report("-s", "--bins", "7")["intervals"]:
        mine = [l for _, l, _ in lengths[x["description"]]]
        bins = x["histogram"]
        need(len(bins) <= 7 and sum(c for _, _, c in bins) == len(mine), bins)
        for low, high, c in bins:
            need(sum(low <= l <= high for l in mine) == c, bins)


def text():
    """The table says in microseconds what JSON says in ticks."""
    rows = info([(1, 1, 2), (1, 77, 78)])
    data = b"".join(soup(1000, [1, 2], 1000, step=1000))
    write("mk.dat", data)
    for hz in (10000000, 40000000, 1000):
        out, err = rpt("--hz", str(hz))
        j = report("--hz", str(hz))["intervals"][0]
        need(not err, err)
        line = re.compile(r"^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)  +(\d|all)  d0 a$", re.M)
        found = line.findall(out)
        need(len(found) == len(j["groups"]) + 1, out)
        for f, g in zip(found, j["groups"] + [j]):
            want = [g["total"], g["avg"], g["min"], g["max"], g["stddev"]]
            need(int(f[0]) == g["count"], f)
            need(f[6] == str(g.get("cpu", "all")), f)
            for got, w in zip(f[1:6], want):
                need(abs(float(got) - w * 1e6 / hz) < 0.0006 + w * 1e-9, f"{got} {w} at {hz}")
    need("1 interval did not occur:\n    d1 a\n" in out, out)
    del rows


def descriptions():
    """Quotes, backslashes, C++ names, control characters, thousands of lines."""
    names = ['say "hi"', "back\\slash", 'both \\" ', "std::vector<int>::operator[](unsigned long) const",
             "# no comment", "", "\u00fcml\u00e4ut", "odd \\n"]  # fmt: skip
    quoted = ['"' + n.replace("\\", "\\\\").replace('"', '\\"') + '"' for n in names]
    write("interval.info", "# head\n\n" + "".join(f"1\t{2*i} 0x{2*i+1:x} {q}  # {i}\r\n" for i, q in enumerate(quoted)))
    write("mk.dat", b"".join(mkdat.pack(0, i, 0, i) for i in range(2 * len(names))))
    j = report()
    need([x["description"] for x in j["intervals"]] == names, [x["description"] for x in j["intervals"]])
    need(all(x["count"] == 1 for x in j["intervals"]), j)
    write("interval.info", '1 0 1 "a\x1b[31mb"\n')
    need("\x1b" not in rpt()[0], "an escape sequence came through")
    with open("interval.info", "w") as f:
        for i in range(20000):
            f.write(f'1 {2*i} {2*i+1} "ns::function_{i}(char const*, \\"q\\")"\n')
    write("mk.dat", b"".join(mkdat.pack(0, i, i % 3, 2 * (i // 2) + i % 2) for i in range(0, 40000)))
    j = report("--match", "any")
    need(len(j["intervals"]) == 20000 and all(x["count"] == 1 for x in j["intervals"]), "20000 functions")


WRONG = {
    '1 10 "x"': "event 2 should be a number",
    '1 10 20 30 "x"': "a description should stand here in double quotes, not '30'",
    "1 10 20": "a description in double quotes is missing",
    '1 10 20 "x': "no closing quote",
    '1 10 20 "x\\"': "no closing quote",
    '1 10 20 "x" "y"': "class 1 has one description",
    '2 1 2 3 "x"': "a description in double quotes is missing",
    '3 1 2 "x" "y"': "event 3 should be a number",
    '3 1 1 2 "x" "y"': "event 2 has to differ",
    '2 1 2 2 "x" "y"': "events 2 and 3, have to differ",
    '4 5 5 "x"': "have to differ",
    '0 1 2 "x"': "0 is not a class",
    '5 1 2 "x"': "5 is not a class",
    '-1 1 2 "x"': "the class, 1 to 4, should stand first",
    'one 1 2 "x"': "the class, 1 to 4, should stand first",
    '1 -5 2 "x"': "should be a number, not '-5'",
    '1 5x 2 "x"': "should be a number, not '5x'",
    '1 0x 2 "x"': "should be a number, not '0x'",
    '1 4294967296 2 "x"': "does not fit into 32 bits",
    '1 99999999999999999999 2 "x"': "too large",
    "1 10 20 'x'": "in double quotes, not ''x''",
    '1 10 20 "x"\0': "NUL",
}


def wrong_lines():
    write("mk.dat", mkdat.pack(0, 1, 1, 1))
    for line, says in WRONG.items():
        write("interval.info", f'# comment\n1 1 2 "good"\n{line}\n1 1 2 "good"\n')
        out, err = rpt(want=1)
        need(not out, out)
        one_sentence(err, says)
        need(err.startswith("interval.info:3: "), err)
    write("other", '1 2 "x"\n' * 25)
    out, err = rpt("-f", "other", want=1)
    need(err.splitlines()[0].startswith("other:1: ") and len(err.splitlines()) == 11, err)
    need("15 more errors" in err, err)
    for empty in ("", "# nothing\n\n"):
        write("interval.info", empty)
        one_sentence(rpt(want=1)[1], "describes no interval")
    os.remove("interval.info")
    one_sentence(rpt(want=1)[1], "cannot open interval.info: No such file")
    os.mkdir("interval.info")
    one_sentence(rpt(want=1)[1], "interval.info: cannot be read")


def bad_files():
    info([(1, 1, 2)])
    one_sentence(rpt(want=1)[1], "cannot open mk.dat: No such file")
    write("mk.dat", b"")
    one_sentence(rpt(want=1)[1], "mk.dat is empty")
    write("mk.dat", bytes(1000))
    one_sentence(rpt(want=1)[1], "no sample")
    write("mk.dat", b"\xff" * 1000)
    one_sentence(rpt(want=1)[1], "no sample")
    write("mk.dat", b"abc")
    one_sentence(rpt(want=1)[1], "no sample")
    write("mk.dat", mkdat.pack(0, 1, 1, 1) + mkdat.pack(0, 2, 1, 2)[:13])
    one_sentence(rpt()[1], "the last sample is cut off: 13 bytes")
    os.remove("mk.dat")
    os.mkdir("mk.dat")
    one_sentence(rpt(want=1)[1], "mk.dat: cannot be read: Is a directory")
    good = mkdat.pack(0, 1, 1, 1) + mkdat.pack(0, 2, 1, 2)
    write("good", good)
    need(rpt("-", stdin=good) == rpt("good"), "standard input")
    out, err = rpt("good", "nosuch", want=1)
    one_sentence(err, "nosuch")
    need("d0 a" in out, "the other file is reported all the same")
    with open("/dev/full", "w") as full:
        for more in ([], ["--json"], ["-h"]):
            r = subprocess.run([RPT, "good", *more], stdout=full, stderr=subprocess.PIPE)
            need(r.returncode == 1, f"full disk: {r.returncode}")
            one_sentence(r.stderr.decode(), "cannot write the output: No space left on device")


def functions_of_a_trace():
    """kron record, kron read, mk_rpt: as many calls as the program made."""
    compile_c("triggers", "bins/triggers.c")
    subprocess.run([KRON, "record", "-q", "--", "./triggers", "2", "5000"], check=True, capture_output=True)
    subprocess.run([KRON, "read", "--intervals", "interval.info"], check=True, capture_output=True)
    out, err = rpt("-d", "--json")
    need(not err, err)
    got = {x["description"]: x for x in json.loads(out)["intervals"]}
    calls = {"main": 1, "thread_main": 2, "tick": 10000}
    need({n: got[n]["count"] for n in calls} == calls, {n: x["count"] for n, x in got.items()})
    r = subprocess.run([KRON, "report", "--json"], check=True, capture_output=True)
    for x in json.loads(r.stdout):
        if x["function"] in calls:
            ns, n = got[x["function"]]["total"] * 100, x["calls"]
            need(abs(ns - x["total_ns"]) <= 200 * n, f"{x['function']}: {ns} ns, not {x['total_ns']}")


def verbose():
    """What did not occur: ten of it are named, and with -v all of it."""
    rows = info([(1, 1, 2), *((1 + i % 3, *range(100 * i, 100 * i + 4)[: 2 + (i % 3 > 0)]) for i in range(1, 16))])
    write("mk.dat", mkdat.pack(0, 1, 1, 1) + mkdat.pack(0, 5, 1, 2))
    unseen = {name for i, _, name in rows if i}
    for options, names in ((), 10), (("-v",), len(unseen)):
        out, err = rpt(*options)
        said, *lines = out[out.index(f"{len(unseen)} intervals did not occur:"):].splitlines()
        named = [l.strip() for l in lines if l.strip() in unseen]
        need(len(named) == len(set(named)) == names, f"{options}: {len(named)} are named: {out}")
        need(("which -v names" in out) == (not options), out)
        need(("interval.info: 16 intervals" in err) == bool(options), err)


def wall_clock():
    """Nobody computes between the two samples: they lie as far apart as the clock on the wall says."""
    board = f"rpt-{os.getpid()}"
    write("interval.info", '1 1 2 "asleep"\n')

    def sample(event):
        before = time.monotonic()
        subprocess.run([KRON, "ctl", "--board", board, "write", "trace0", str(event)], check=True)
        return before, time.monotonic()

    subprocess.run([KRON, "board", "create", board], check=True)
    try:
        first, least = sample(1)
        time.sleep(0.3)
        most, last = sample(2)
        subprocess.run([os.path.join(BUILD, "board/toolkit/mk_rdsample"), "--board", board], check=True)
    finally:
        subprocess.run([KRON, "board", "rm", board], check=True)
    (row,) = report()["intervals"]
    seconds = row["total"] / 1e7
    need(row["count"] == 1 and 0.99 * (most - least) < seconds < 1.01 * (last - first), f"{seconds} s: {row}")


def usage():
    for args in (["-q"], ["--nonsense"], ["-f"], ["--by", "x"], ["--hz", "0"], ["--bins", "0"], ["-e"]):
        one_sentence(rpt(*args, want=2)[1], "mk_rpt: ")
    out, err = rpt("--help")
    need(out.startswith("Usage: mk_rpt ") and not err, out)
    need(rpt("--version")[0].startswith("mk_rpt (kron) "), "--version")
    info([(1, 1, 2)])
    write("mk.dat", mkdat.pack(0, 1, 1, 1))
    need("interval.info: 1 interval" in rpt("-v")[1], "-v")


with Suite("mk-rpt") as s:
    s.case("classes 1 to 4 on random events, wraps of 32 and 56 bits", random_events)
    s.case("Resource samples count as Trace samples", counts_of_samples)
    s.case("nested intervals of known lengths", known_intervals)
    s.case("-d: lengths beyond 32 bits", long_intervals)
    s.case("class 4 from concatenated files of several machines", messages)
    s.case("classes 1 to 3 end with their file", many_boards)
    s.case("-e: the event is the low bits of the user data", event_sizes)
    s.case("-h, -s, -n and --bins", histograms)
    s.case("the table in microseconds", text)
    s.case("descriptions", descriptions)
    s.case("interval.info: wrong lines are named", wrong_lines)
    s.case("missing, empty, cut and foreign files, a full disk", bad_files)
    s.case("the functions of a trace", functions_of_a_trace)
    s.case("-v: what did not occur", verbose)
    s.case("times are wall clock times", wall_clock)
    s.case("usage", usage)
