# SPDX-License-Identifier: MIT
"""What readers of other formats say about a trace, against kron report.

    export_agree.py FORMAT EXPORT REPORT.json [EDGES.json]

Each reader below returns {(function, module): [calls, total ns, self ns, tolerance ns]}; module
is None where the format does not tell modules apart, a figure None where it is not there.  Its
attribute `edges`, where the format has callers, is {(caller or None, function): calls}.

REPORT.json is from kron report --json, EDGES.json from kron report --json --callers '*'.
tests/e2e/reports/nesting.py imports this file for replay, view and truth beside the exports.
"""
import codecs
import json
import os
import re
import sqlite3
import subprocess
import sys

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


class Found(dict):
    """What a reader found."""

    def __init__(self, *args):
        super().__init__(*args)
        self.edges = None


def count(edges, caller, function, n=1):
    edges[caller, function] = edges.get((caller, function), 0) + n


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=True).stdout.decode()


def own_name(name):
    """Of functions that uftrace knows by their names: kron-export(1)."""
    return re.sub(r"^(exec\w+|\w*longjmp\w*)~$", r"\1", name)


def of_uftrace(path):
    found = Found()
    for line in run("uftrace", "report", "--no-pager", "-d", path).splitlines()[2:]:
        # two times, either empty when it is 0, calls, name
        times, calls, name = line[:24], *line[24:].split(None, 1)
        name = own_name(name)
        total, self_ = ((float(c.split()[0]), UNITS[c.split()[1]]) if c.strip() else (0, 1)
                        for c in (times[:12], times[12:]))
        # three decimals of the unit that it chose
        found[name, None] = [int(calls), total[0] * total[1], self_[0] * self_[1],
                             max(total[1], self_[1]) / 1000]
    # the same once more, from the calls one after another
    calls, stacks, found.edges = {}, {}, {}
    for line in run("uftrace", "replay", "--no-pager", "--no-merge", "-d", path).splitlines():
        m = re.match(r"^[ \d.a-z]* \[ *(\d+)\] \| +(?:(.*?)(?:\(\))? \{|\} /\* .* \*/)$", line)
        if m and m[2]:
            stack, name = stacks.setdefault(m[1], []), own_name(m[2])
            calls[name] = calls.get(name, 0) + 1
            count(found.edges, stack[-1] if stack else None, name)
            stack.append(name)
        elif m:
            stacks[m[1]].pop()
    assert calls == {f: v[0] for (f, _), v in found.items()}, "replay and report differ"
    return found


class Stacks:
    """Calls and times from entries and exits that nest, by thread."""

    def __init__(self):
        self.found, self.stacks = Found(), {}
        self.found.edges = {}

    def entry(self, thread, key, ns):
        stack = self.stacks.setdefault(thread, [])
        count(self.found.edges, stack[-1][0][0] if stack else None, key[0])
        stack.append([key, ns, 0])
        self.found.setdefault(key, [0, 0, 0, 0])[0] += 1

    def exit(self, thread, key, ns):
        stack = self.stacks[thread]
        name, start, children = stack.pop()
        assert name == key and ns >= start, (name, key)
        v = self.found[key]
        if all(f[0] != key for f in stack):
            v[1] += ns - start
        v[2] += ns - start - children
        if stack:
            stack[-1][2] += ns - start
            self.found[stack[-1][0]][3] += 1  # each end of a child is rounded

    def end(self):
        assert not any(self.stacks.values())
        return self.found


def of_ctf(path):
    calls = Stacks()
    event = re.compile(r"\[(\d+)\.(\d{9})\] \([^)]*\) (?:\S+ )?(entry|exit): .*pid = (\d+), tid = (\d+), stack = (\d+) \}, "
                       r'\{ function = \( "(.*?)" : container = \d+ \)')
    for line in run("babeltrace2", "--clock-seconds", path).splitlines():
        if " switch: " in line:  # tests/e2e/exports/export_more.py reads them
            continue
        m = event.match(line)
        assert m, line
        # as babeltrace2 writes a string: with backslashes before quotes and backslashes
        key = re.sub(r'\\(["\\])', r"\1", m[7]), None
        getattr(calls, m[3])((m[4], m[5], m[6]), key, int(m[1] + m[2]))
    return calls.end()


def of_otf2(path):
    path = os.path.join(path, "traces.otf2")
    calls, regions, counts = Stacks(), {}, {}
    for line in run("otf2-print", "-G", path).splitlines():
        m = re.match(r'REGION +(\d+)  Name: "(.*)" <\d+> \(Aka\. .*, File: "(.*)" <\d+>, Begin: 0, End: 0$', line)
        if m:
            regions[m[1]] = m[2], m[3]
        m = re.match(r"LOCATION +(\d+)  .*, # Events: (\d+), Group: ", line)
        if m:
            counts[m[1]] = int(m[2])
    for line in run("otf2-print", path).splitlines():
        m = re.match(r"(ENTER|LEAVE|PARAMETER_UINT64|METRIC) +(\d+) +(\d+)  (?:Region: .* <(\d+)>$)?", line)
        if m:
            counts[m[2]] -= 1
        if m and m[4]:
            what = calls.entry if m[1] == "ENTER" else calls.exit
            what(m[2], regions[m[4]], int(m[3]))
    assert not any(counts.values()), counts
    return calls.end()


def duckdb(sql):
    here = os.path.dirname(os.path.abspath(__file__))
    return json.loads(run("node", os.path.join(here, "duckdb.js"), os.environ["DUCKDB"], sql))


def of_parquet(path):
    calls = "FROM '%s' WHERE kind IN ('call', 'inferred', 'running') GROUP BY ALL" % path
    found = Found({(f, m): [calls, total, self_, calls] for f, m, calls, total, self_ in duckdb(
        "SELECT function, module, count(*), coalesce(sum(duration_ns) FILTER (NOT recursive), 0)::BIGINT,"
        " sum(self_ns)::BIGINT " + calls)})
    found.edges = {(c, f): n for c, f, n in duckdb("SELECT caller, function, count(*) " + calls)}
    return found


def decode(path, message, schema):
    """What protoc says, as {field: [values]}, messages likewise; a field unknown to it fails."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "proto")
    with open(path, "rb") as f:
        text = subprocess.run(["protoc", "--decode=" + message, "-I", here, schema], stdin=f,
                              stdout=subprocess.PIPE, check=True).stdout.decode()
    top = {}
    stack = [top]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            stack.append({})
            stack[-2].setdefault(line[:-2], []).append(stack[-1])
        else:
            key, value = line.split(": ", 1)
            assert not key.isdigit(), line
            if value[0] == '"':
                value = codecs.escape_decode(value[1:-1].encode())[0].decode()
            elif value.isdigit():
                value = int(value)
            stack[-1].setdefault(key, []).append(value)
    return top


def of_perfetto(path):
    calls, now, names, threads, current = Stacks(), {}, {}, {}, {}
    for p in decode(path, "Trace", "perfetto.proto")["packet"]:
        sequence = p["trusted_packet_sequence_id"][0]
        for d in p.get("track_descriptor", []):
            for t in d.get("thread", []):
                threads[d["uuid"][0]] = (t["pid"][0], t["tid"][0])
            if d.get("name"):  # a stack of a thread
                threads[d["uuid"][0]] = *threads[d["parent_uuid"][0]], d["name"][0]
        for c in p.get("clock_snapshot", []):
            mine = c["clocks"][1]
            assert mine["is_incremental"] == ["true"] and p["sequence_flags"] == [1]
            now[sequence], names[sequence] = mine["timestamp"][0], {}
            of_events = p["trace_packet_defaults"][0].get("track_event_defaults")
            if of_events:  # the sequence of context switches has no track
                current[sequence] = of_events[0]["track_uuid"][0]
        for i in p.get("interned_data", []):
            for n in i["event_names"]:
                names[sequence][n["iid"][0]] = n["name"][0]
        for e in p.get("track_event", []):
            now[sequence] += p["timestamp"][0]
            track = current[sequence]
            assert track in threads
            if e["type"] == ["SLICE_BEGIN"]:
                calls.entry(track, (names[sequence][e["name_iid"][0]], None), now[sequence])
            elif e["type"] == ["SLICE_END"]:
                calls.exit(track, calls.stacks[track][-1][0], now[sequence])
            else:
                assert e["name"][0].endswith(" samples lost")
    return calls.end()


def of_pprof(path):
    p = decode(path, "Profile", "pprof.proto")
    word = p["string_table"]
    assert word[0] == ""
    assert [(word[t["type"][0]], word[t["unit"][0]]) for t in p["sample_type"]] == [
        ("calls", "count"), ("self", "nanoseconds")]
    assert word[p["default_sample_type"][0]] == "self"
    functions = {f["id"][0]: (word[f["name"][0]], word[f["filename"][0]] if "filename" in f else "?")
                 for f in p["function"]}
    mappings = {m["id"][0] for m in p["mapping"]}
    assert all(l.get("mapping_id", [1])[0] in mappings for l in p["location"])
    where = {l["id"][0]: functions[l["line"][0]["function_id"][0]] for l in p["location"]}
    found = Found()
    found.edges = {}
    for s in p["sample"]:
        v = found.setdefault(where[s["location_id"][0]], [0, None, 0, 0])
        v[0] += s["value"][0]
        v[2] += s["value"][1]
        way = [where[l][0] for l in s["location_id"][:2]]
        count(found.edges, way[1] if len(way) > 1 else None, way[0], s["value"][0])
    return found


def of_callgrind(path):
    def figures(*options):
        text = run("callgrind_annotate", "--show-percs=no", "--threshold=100", *options, path)
        return {(m[2], m[3]): int(m[1].replace(",", "")) for m in
                re.finditer(r"^ *([\d,]+) +\?\?\?\d*:(.*) \[(.*)\]$", text, re.M)}

    totals, selfs = figures("--inclusive=yes"), figures("--inclusive=no")
    module, names, caller, callee, edges = None, {}, None, None, {}
    for line in open(path, errors="surrogateescape"):
        m = re.match(r"calls=(\d+) ", line)
        if m:
            count(edges, None if caller[0] == "(root)" else caller[0], callee[0], int(m[1]))
        m = re.match(r"(c?fn|c?ob)=(\(\d+\))?(?: ?(.*))?$", line)
        if not m:
            continue
        if m[1] in ("ob", "cob"):
            module = m[3]
            continue
        name = names.setdefault(m[2], (m[3], module))
        if m[1] == "fn":
            caller = name
        else:
            callee = name
    totals = {f: ns for f, ns in totals.items() if f[0] != "(root)"}
    found = Found({f: [None, totals[f], selfs.get(f, 0), 2 * len(totals)]
                   for f in totals})
    found.edges = edges
    return found


def of_chrome(path):
    """Complete events, the inner ones of what ends together first."""
    threads = {}
    for e in json.load(open(path))["traceEvents"]:
        if e["ph"] == "X":
            calls = threads.setdefault((e["pid"], e["tid"]), [])
            start = round(e["ts"] * 1000)
            calls.append((start, -round(e["dur"] * 1000), -len(calls), shown(e["name"])))
    return nested(threads)


def nested(threads):
    """Calls and times from (begin, -length, order, name): what lies in a call is called by it."""
    calls = Stacks()
    for thread, v in threads.items():
        stack = calls.stacks.setdefault(thread, [])
        ends = []
        for start, length, _, name in sorted(v):
            while ends and (ends[-1] < start or ends[-1] < start - length):
                calls.exit(thread, stack[-1][0], ends.pop())
            calls.entry(thread, (name, None), start)
            ends.append(start - length)
        while ends:
            calls.exit(thread, stack[-1][0], ends.pop())
    return calls.end()


def of_folded(path):
    found = Found()
    for line in open(path):
        way, ns = line.rsplit(" ", 1)
        v = found.setdefault((way.split(";")[-1], None), [None, None, 0, 0])
        v[2] += int(ns)
        v[3] += 1
    return found


def of_speedscope(path):
    d = json.load(open(path))
    frames = [(shown(f["name"]), shown(f["file"])) for f in d["shared"]["frames"]]
    calls = Stacks()
    for i, p in enumerate(d["profiles"]):
        for e in p["events"]:
            (calls.entry if e["type"] == "O" else calls.exit)(i, frames[e["frame"]], round(e["at"]))
    return calls.end()


def of_sqlite(path):
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    found = Found()
    found.edges = {(c, f): n for c, f, n in db.execute(
        "SELECT g.name, f.name, count(*) FROM call c JOIN node n USING(trace_id, node_id)"
        " JOIN function f USING(trace_id, function_id)"
        " LEFT JOIN call p ON p.trace_id = c.trace_id AND p.sample_id = c.parent_id"
        " LEFT JOIN node m ON m.trace_id = p.trace_id AND m.node_id = p.node_id"
        " LEFT JOIN function g ON g.trace_id = m.trace_id AND g.function_id = m.function_id"
        " GROUP BY 1, 2")}
    for f, m, *figures in db.execute("SELECT function, module, calls, total_ns, self_ns FROM functions"):
        v = found.setdefault((f, m or "?"), [0, 0, 0, 0])
        for i, n in enumerate(figures):
            v[i] += n
        v[3] -= figures[0]  # sums of ticks, as in the report: exact to a nanosecond
    return found


def shown(name):
    """As kron shows a name to people: control characters and bad bytes as \\xNN.

    JSON has U+FFFD where the bytes were bad, so these match anything there.
    """
    return "".join(c if c.isprintable() else "\\x%02x" % ord(c) for c in name)


READERS = {n[3:]: f for n, f in list(globals().items()) if n.startswith("of_")}


def figures_differ(kind, found, report, others=False):
    """
    Prints where calls, total or self time differ; the number of such functions.
    others: self times have that in which other stacks ran, too, for found's are by nesting.
    """
    has_modules = any(m is not None for _, m in found)
    want = {}
    for r in report:
        name = shown(r["function"])
        if kind == "folded":  # where they separate
            name = name.replace(";", ":").replace(" ", "_")
        key = (name, shown(r["module"]) if has_modules else None)
        w = want.setdefault(key, [0, 0, 0])
        for i, k in enumerate(("calls", "total_ns", "self_ns")):
            w[i] += r[k]
    bad, callees = 0, {}  # each of them is rounded, too
    for (caller, _), n in (found.edges or {}).items():
        callees[caller] = callees.get(caller, 0) + n
    found = dict(found)
    for key in sorted(set(want) | set(found), key=str):
        w = want.pop(key, None)
        f = found.pop(key, None)
        if f is None and "\ufffd" in key[0]:  # bytes that JSON cannot hold
            shape = re.compile(r"(\\x[0-9a-f]{2})+".join(map(re.escape, re.split("\ufffd+", key[0]))))
            other = next((k for k in found if shape.fullmatch(k[0])), None)
            f = found.pop(other, None)
            want.pop(other, None)
        elif w is None and re.search(r"\\x[89a-f]", key[0]):
            found[key] = f  # taken by the line above, later
            continue
        if kind in ("callgrind", "folded") and f is None and w[2] == 0:
            continue  # callgrind_annotate and folded stacks leave out what took no time
        if w is None or f is None:
            print(kind, "only in", "the report" if f is None else kind, key, w or f)
            bad += 1
            continue
        near = w[0] * 1 + 2 + f[3]  # each time is rounded to a nanosecond
        for what, a, b, tolerance in zip(("calls", "total", "self"), w, f,
                                        (0, near, 2 * near + callees.get(key[0], 0))):
            if b is not None and abs(a - b) > tolerance and not (others and what == "self" and b > a):
                print(kind, key, what, "report", a, "here", b)
                bad += 1
    return bad + len(found)


# what has a caller there because it lies in a call, though nobody called it: handlers
BY_PLACE = {"uftrace", "ctf", "otf2", "perfetto", "chrome", "speedscope", "replay", "view"}


def edges_differ(kind, edges, report):
    """Likewise callers; the number of edges that differ."""
    want, bad = {}, 0
    for r in report:
        count(want, r["caller"] and shown(r["caller"]), shown(r["function"]), r["calls"])
    more = {}  # calls by function that have a caller here and none in the report
    for caller, f in sorted(set(want) | set(edges), key=str):
        n, w = edges.get((caller, f), 0), want.get((caller, f), 0)
        if kind in BY_PLACE and (n > w if caller else n < w):
            more[f] = more.get(f, 0) + n - w
        elif n != w:
            print(kind, "calls of", f, "by", caller, "report", w, "here", n)
            bad += 1
    for f, n in more.items():
        if n:
            print(kind, "calls of", f, "by others than in the report:", n)
            bad += 1
    return bad


def main():
    kind, path = sys.argv[1:3]
    report = json.load(open(sys.argv[3]))
    found = READERS[kind](path)
    bad = figures_differ(kind, found, report)
    if len(sys.argv) > 4 and found.edges is not None:
        bad += edges_differ(kind, found.edges, json.load(open(sys.argv[4])))
    print("functions differ:", bad)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
