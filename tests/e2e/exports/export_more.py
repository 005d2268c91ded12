# SPDX-License-Identifier: MIT
"""What readers of other formats find in an export of `make_trace naps` besides calls.

    export_more.py FORMAT EXPORT

Context switches, filter levels and events of users' probes, against what make_trace.c writes
there.  A reader returns what its format has: of the keys of WANT, those that it can know.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys

SWITCHES = [(1500, 1, 1000, "out"), (2000, 1, 1001, "in"), (2500, 5, 1005, "in"),
            (3000, 5, 1005, "out"), (6500, 9, 1000, "in"), (7000, 1, 1001, "out"),
            (10000, 9, 1000, "preempted"), (13000, 9, 1000, "in")]
WANT = {
    "switches": SWITCHES,
    "lost": 7,
    # start, duration, thread, kind, from which CPU to which: between its samples
    "off": [(1500, 5000, 1000, "out", 1, 9), (10000, 3000, 1000, "preempted", 9, 9)],
    "levels": {("main", 0), ("nap", 3)},
    "event levels": {("mine", 2), ("an; other: one", 0)},
    "events": [(1300, "mine", 4096), (7050, "mine", 17), (8000, "an; other: one", 0),
               (15500, "an; other: one", 0)],
    "event times": [1300, 7050, 8000, 15500],
    # by way
    "stacks": {("main", "nap", "mine"): 2, ("main", "an; other: one"): 1, ("an; other: one",): 1},
}


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=True).stdout.decode()


def of_ctf(path):
    got = {"switches": [], "levels": set(), "event levels": set(), "events": [], "lost": 0}
    start = None
    for line in run("babeltrace2", "--clock-seconds", path).splitlines():
        m = re.match(r"\[(\d+)\.(\d{9})\] \([^)]*\) \S+ (\w+): \{ cpu_id = (\d+)[^}]*\}, \{ (.*) \}$", line)
        if not m:
            got["lost"] += int(re.search(r"discarded (\d+) events", line)[1])
            continue
        # as the trace says it: START is 1000 ns before the first sample
        ns = int(m[1]) * 10**9 + int(m[2])
        start = start or ns - 1000
        f = dict(re.findall(r'(\w+) = (?:\( "(?:.*?)" : container = )?(\d+)', m[5]))
        word = re.search(r'"(.*?)"', m[5])[1]
        if m[3] == "switch":
            got["switches"].append((ns - start, int(m[4]), int(f["tid"]), word))
            assert f["pid"] == ("0" if f["tid"] == "1005" else "1000"), line
        elif m[3] == "entry":
            got["levels"].add((word, int(f["level"])))
        elif m[3] == "user":
            got["events"].append((ns - start, word, int(f["payload"])))
            got["event levels"].add((word, int(f["level"])))
    return got


def of_otf2(path):
    cpus, got, last = {}, {"switches": [], "levels": set(), "events": []}, {}
    anchor = os.path.join(path, "traces.otf2")
    for line in run("otf2-print", "-G", anchor).splitlines():
        m = re.match(r'LOCATION +(\d+)  Name: "CPU (\d+)" <\d+>, Type: METRIC, # Events: (\d+), Group: "processors"', line)
        if m:
            cpus[m[1]] = int(m[2])
        m = re.match(r'GROUP +\d+  Name: "filter level (\d+)" .*Type: REGIONS.* Members?: (.*)$', line)
        if m:
            got["levels"] |= {(name, int(m[1])) for name in re.findall(r'"(.*?)"', m[2])}
        assert "warning" not in line, line
    for line in run("otf2-print", anchor).splitlines():
        m = re.match(r'METRIC +(\d+) +(\d+) .*"thread on the CPU" <0>; UINT64; (\d+)\), \("preempted" <1>; UINT64; (\d)\)', line)
        if m:
            cpu, tid = cpus[m[1]], int(m[3])
            kind = "in" if tid else "preempted" if m[4] == "1" else "out"
            got["switches"].append((int(m[2]), cpu, tid or last.get(cpu), kind))
            last[cpu] = tid
        m = re.match(r'PARAMETER_UINT64 +\d+ +(\d+)  Parameter: "(.*)" <(\d+)>, Value: (\d+)$', line)
        if m and m[2] not in ("cpu", "samples lost"):
            got["events"].append((int(m[1]), m[2], int(m[4])))
    # whom the first switch takes from CPU 1 nobody saw come there
    assert got["switches"][0] == (1500, 1, None, "out")
    got["switches"][0] = WANT["switches"][0]
    return got


def of_sqlite(path):
    db = sqlite3.connect(path)
    all_of = lambda sql: db.execute(sql).fetchall()
    assert all_of("PRAGMA foreign_key_check") == []
    times = all_of("SELECT tid, wall_ns, on_cpu_ns, waiting_ns, preempted_ns, waits, preemptions FROM thread_times")
    assert times == [(1000, 14500, 6500, 5000, 3000, 1, 1), (1001, 4400, 4400, 0, 0, 0, 0)], times
    return {
        "switches": all_of("SELECT time_ns, cpu, tid, kind FROM switches WHERE kind <> 'lost' ORDER BY switch_id"),
        "lost": all_of("SELECT sum(lost) FROM switches")[0][0],
        "off": all_of("SELECT start_ns, duration_ns, tid, iif(preempted, 'preempted', 'out'), from_cpu, to_cpu FROM off_cpu ORDER BY 1"),
        "levels": set(all_of("SELECT function, level FROM functions")),
        "event levels": set(all_of("SELECT name, level FROM events")),
        "events": all_of("SELECT time_ns, name, data FROM events ORDER BY 1"),
    }


def of_chrome(path):
    events = json.load(open(path))["traceEvents"]
    ns = lambda e: round(e["ts"] * 1000)
    ends = {e["id"]: e for e in events if e["ph"] == "e"}
    marks = sorted((e for e in events if e["ph"] == "i"), key=ns)
    return {
        "off": [(ns(e), ns(ends[e["id"]]) - ns(e), e["tid"], {"waiting": "out"}.get(e["name"], e["name"]),
                 e["args"]["cpu"], ends[e["id"]]["args"]["cpu"]) for e in events if e["ph"] == "b"],
        "levels": {(e["name"], e.get("args", {}).get("level", 0)) for e in events if e["ph"] == "X"},
        "event levels": {(e["name"], e["args"].get("level", 0)) for e in marks},
        "events": [(ns(e), e["name"], e["args"].get("size", 0)) for e in marks],
    }


def of_perfetto(path):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "proto")
    with open(path, "rb") as f:
        text = subprocess.run(["protoc", "--decode=Trace", "-I", here, "perfetto.proto"], stdin=f,
                              stdout=subprocess.PIPE, check=True).stdout.decode()
    got, now, names = {"switches": [], "levels": set(), "event levels": set()}, {}, {}
    for p in text.split("\npacket {"):
        level = int((re.search(r"uint_value: (\d+)\s+name: \"level\"", p) or [0, 0])[1])
        p = re.sub(r"debug_annotations \{[^}]*\}", "", p)
        field = lambda key: re.search(r"\b%s: (?:\"(.*)\"|(\S+))" % key, p)
        value = lambda key: field(key)[1] or field(key)[2]
        sequence = value("trusted_packet_sequence_id")
        assert not re.search(r"^ *\d+[:{ ]", p, re.M), p  # a field that the schema does not have
        if "clock_snapshot" in p:
            now[sequence] = int(value("timestamp"))
            continue
        if not field("timestamp"):
            continue
        now[sequence] += int(value("timestamp"))
        if "event_names" in p:
            names[sequence, value("iid")] = value("event_names {\\s+iid: \\d+\\s+name")
        if "task_state_event" in p:
            kind = {"TASK_STATE_RUNNING": "in", "TASK_STATE_INTERRUPTIBLE_SLEEP": "out",
                    "TASK_STATE_RUNNABLE": "preempted"}[value("state")]
            tid = int(value("tid"))
            assert value("comm") == {1000: "naps", 1001: "second"}.get(tid, "?")
            got["switches"].append((now[sequence] - 5 * 10**9, int(value("cpu")), tid, kind))
        elif "SLICE_BEGIN" in p:
            got["levels"].add((names[sequence, value("name_iid")], level))
        elif "INSTANT" in p:
            got["event levels"].add((re.sub(" size=.*", "", value("name")), level))
    return got


def of_parquet(path):
    ask = lambda sql: [tuple(r) for r in json.loads(run(
        "node", os.path.join(os.path.dirname(os.path.abspath(__file__)), "duckdb.js"),
        os.environ["DUCKDB"], sql % path))]
    return {
        "off": ask("SELECT time_ns, duration_ns, tid, if(kind = 'waiting', 'out', kind), cpu, value"
                   " FROM '%s' WHERE kind IN ('waiting', 'preempted') ORDER BY 1"),
        "levels": set(ask("SELECT DISTINCT function, level FROM '%s' WHERE kind = 'call'")),
        "event levels": set(ask("SELECT DISTINCT function, level FROM '%s' WHERE kind = 'event'")),
        "events": ask("SELECT time_ns, function, value FROM '%s' WHERE kind = 'event' ORDER BY 1"),
    }


def of_callgrind(path):
    text = run("callgrind_annotate", "--show-percs=no", "--threshold=100", "--inclusive=yes", path)
    rows = {m[3]: (m[1], m[2]) for m in re.finditer(r"^ *(\S+) +(\S+) +\?\?\?:(.*) \[", text, re.M)}
    assert rows == {"(root)": ("18,400", "4"), "main": ("14,000", "3"), "nap": ("10,700", "2"),
                    "event mine": ("0", "2"), "event an; other: one": ("0", "2")}, rows
    calls = dict(re.findall(r"cfn=\(\d+\)(?: event (.*))?\ncalls=(\d+)", open(path).read()))
    assert calls["mine"] == "2"
    return {}


def of_speedscope(path):
    d = json.load(open(path))
    p = next(p for p in d["profiles"] if p["type"] == "sampled")
    frames = [re.sub("^event ", "", f["name"]) for f in d["shared"]["frames"]]
    assert p["endValue"] == sum(p["weights"]) and p["unit"] == "none"
    return {"stacks": {tuple(frames[f] for f in s): n for s, n in zip(p["samples"], p["weights"])}}


def of_pprof(path):
    """By go's own reader: blocks of a value and labels, then the way from the inside."""
    stacks, levels = {}, set()
    for block in run("go", "tool", "pprof", "-traces", "-sample_index=events", path).split("\n-----------+")[1:]:
        lines = [l for l in block.splitlines()[1:] if l.strip()]
        level = 0
        if lines and lines[0].strip().startswith("level:"):
            level = int(lines.pop(0).split(":")[1])
        if not lines or lines[0].split()[0] == "0":
            continue
        way = [re.sub(r"^ *(\d+)?   ", "", l).replace("event ", "") for l in lines][::-1]
        stacks[tuple(way)] = int(lines[0].split()[0])
        levels.add((way[-1], level))
    assert levels == WANT["event levels"], levels
    return {"stacks": stacks}


def of_uftrace(path):
    events = re.findall(r"^ *\d+\.(\d+) +\d+: \[event\] kron:(\S+?)\(", run("uftrace", "dump", "--no-pager", "-d", path), re.M)
    assert [n for _, n in events] == ["mine", "mine", "an;_other__one", "an;_other__one"], events
    shown = re.findall(r"/\* (kron:\S+) \*/", run("uftrace", "replay", "--no-pager", "-d", path))
    assert sorted(shown) == ["kron:an;_other__one"] + ["kron:mine"] * 2, shown
    return {"event times": [int(t) for t, _ in events]}


def main():
    kind, path = sys.argv[1:3]
    got = {n[3:]: f for n, f in globals().items() if n.startswith("of_")}[kind](path)
    for key, value in got.items():
        want = WANT[key]
        if isinstance(want, list):
            value = [tuple(v) if isinstance(v, (list, tuple)) else v for v in value]
        assert value == want, (key, value, want)
    print(kind, "has", ", ".join(got) or "all")


main()
