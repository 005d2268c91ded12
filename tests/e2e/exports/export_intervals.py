#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 300
"""export_intervals.py - tables of the intervals that kron monitor has saved, as others read them: Python's csv, SQLite, DuckDB.

They are what kron report shows, and their sums what the program says of itself."""

import csv
import json
import math
import os
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../..")]
import tap  # noqa: E402
from tap import BUILD, KRON, need  # noqa: E402
from duck import ask, ask_all  # noqa: E402

MAKE_TRACE = os.path.join(BUILD, "tests/unit/trace/make_trace")
# Values at the edges of what formats can hold.
EDGES = r"""
#include <unistd.h>
unsigned long half = 0x8000000000000000, all = 0xffffffffffffffff;
long least = -0x7fffffffffffffff - 1;
double minus = -0.0, part = 0.1, none = 0.0;
int host = 7;
int main(void) { none = none / none; for (int i = 0; i < 20; i++) usleep(5000); return 0; }
"""
FIXED = ["node", "host", "command", "start_ns", "end_ns", "duration_ns", "stopped", "stood_ns", "skew_ns", "threads", "estimates", "overrun"]


def kron(*args, status=0):
    r = subprocess.run([KRON, *args], capture_output=True, text=True, timeout=120)
    need(r.returncode == status, f"{args}: status {r.returncode}, not {status}: {r.stderr}")
    return r


def watch(trace, *options, program=("./p", "2", "20000"), status=5):
    r = subprocess.run([KRON, "monitor", "-q", "--every", "20ms", "--save", trace, "-o", "lines", *options, "--", *program], capture_output=True, text=True, timeout=120)
    need(r.returncode == status, f"{r.returncode} {r.stderr}")
    return r.stdout


def shown(trace):
    *rows, end = [json.loads(line) for line in kron("report", "--json", trace).stdout.splitlines()]
    return rows, end


def table(*traces, options=()):
    with open("t.csv", "w") as f:
        f.write(kron("export", "-q", "-f", "csv", *options, *traces).stdout)
    with open("t.csv", newline="") as f:
        return list(csv.DictReader(f))


def number(text):
    return None if text == "" else float(text) if "." in text or "n" in text or text == "-0" else int(text)


def same(got, want, what):
    need(len(got) == len(want), f"{what}: {len(got)} rows, not {len(want)}")
    for g, w in zip(got, want):
        for name, value in w["events"].items():
            need(g[name] == value or value is not None and g[name] is not None and abs(g[name] - value) < 1e-9 * abs(value), f"{what}: {name} {g[name]!r}, not {value!r}")


def csv_agrees(*how):
    tap.compile_c("p", "bins/monitored.c")
    said = watch("t", *how, "-e", "page-faults,idle,task-clock,calls:work", "--var", "level:s32", "--var", "share:double", "--var", "turns", "--var", 'no,"name', program=("./p", "2", "20000", ))
    rows, end = shown("t")
    got = table("t")
    need(list(got[0]) == FIXED + list(rows[0]["events"]), list(got[0]))
    same([{k: number(v) for k, v in r.items() if k not in FIXED} for r in got], rows, "csv")
    for g, w in zip(got, rows):
        need(int(g["end_ns"]) == w["time_ns"] and int(g["end_ns"]) - int(g["start_ns"]) == int(g["duration_ns"]) == w["interval_ns"], g)
        need(g["command"] == "./p 2 20000" and g["host"] == os.uname().nodename and g["node"] == "0" and g["estimates"] == g["overrun"] == "", g)
        need([g["stopped"], g["threads"], g["stood_ns"], g["skew_ns"]] == ([str(w["stopped"]).lower(), *(str(w[k]) for k in ("threads", "stood_ns", "skew_ns"))] if how else [""] * 4), g)
    need(sum(int(r["calls:work"]) for r in got) == int(said.split()[1]) == 40000, said)
    need(all(r['no,"name'] == "" for r in got), "what is not known is empty")


def database_agrees():
    tap.compile_c("p", "bins/monitored.c")
    said = watch("t", "--freeze", "-e", "page-faults,idle,task-clock,calls:work", "--var", "level:s32", "--var", "share:double", "--var", "turns")
    rows, end = shown("t")
    r = kron("export", "-f", "sqlite", "-o", "t.db", "t")
    need(r.stderr == "", r.stderr)
    with sqlite3.connect("t.db") as db:
        names = [name for name, in db.execute("SELECT name FROM monitor_column ORDER BY column_id")]
        need(names == list(end["totals"]), names)
        got = [{} for _ in rows]
        for i, name, value in db.execute("SELECT interval_id, name, value FROM counters"):
            got[i][name] = value
        same(got, rows, "sqlite")
        times = db.execute("SELECT stop_ns, duration_ns, stopped, stood_ns, skew_ns, threads FROM monitor_intervals ORDER BY interval_id").fetchall()
        need(all(abs(t[0] - w["time_ns"]) <= 2 and list(t[1:]) == [w[k] for k in ("interval_ns", "stopped", "stood_ns", "skew_ns", "threads")] for t, w in zip(times, rows)), times)
        # a percentage of all: of ticks, and not a mean of percentages
        (idle,) = db.execute("SELECT 100.0 * sum(value) / sum(whole) FROM monitor_value JOIN monitor_column USING(trace_id, monitor_id, column_id) WHERE name = 'idle'").fetchone()
        need(idle is None and end["totals"]["idle"] is None or abs(idle - end["totals"]["idle"]) < 1e-9, f"{idle} {end}")
        (calls,) = db.execute("SELECT sum(value) FROM counters WHERE name = 'calls:work'").fetchone()
        need(calls == int(said.split()[1]), calls)
        need(db.execute("SELECT of, command, every_ns, freezes FROM monitor").fetchall() == [("program", "./p 2 20000", 20000000, 1)], "monitor")
        need(not db.execute("PRAGMA foreign_key_check").fetchall(), "keys")


def edges(read):
    """What a format cannot tell from another value, or from none."""
    tap.compile_text("p", EDGES)
    watch("t", *(word for name in ("half", "all:x64", "least:s64", "minus:double", "part:double", "none:double", "host:s32", "absent") for word in ("--var", name)),
          program=("./p",), status=0)
    # nothing is known before the program has begun and when it has ended
    got = [r for r in read() if r["half"] is not None]
    need(got, "no values")
    need(all(r["half"] == 1 << 63 and r["all"] == (1 << 64) - 1 and r["least"] == -(1 << 63) and r["part"] == 0.1 for r in got), got)
    need(all(r["minus"] == 0 and math.copysign(1, r["minus"]) == -1 for r in got), "-0.0")
    need(any(r["none"] is None or math.isnan(r["none"]) for r in got), "not a number")
    need(all(r["absent"] is None for r in got), "what is not known")
    return got


def edges_of_csv():
    got = edges(lambda: [{k: number(v) for k, v in r.items() if k not in FIXED} for r in table("t")])
    # a name that the table has itself
    need(all(r["host:2"] == 7 for r in got), got[0])


def edges_of_database():
    def read():
        kron("export", "-f", "sqlite", "-o", "t.db", "t")
        got = {}
        with sqlite3.connect("t.db") as db:
            for i, name, value in db.execute("SELECT interval_id, name, value FROM counters"):
                got.setdefault(i, {})[name] = int(value) if isinstance(value, str) else value
        return list(got.values())

    edges(read)


def edges_of_parquet():
    def read():
        kron("export", "-f", "parquet", "-o", "t.parquet", "t")
        names = ("half", "all", "least", "minus", "part", "none", "absent")
        # numbers of 64 bits as texts: DuckDB's JavaScript would round them
        words = ", ".join(f'"{n}"::VARCHAR' for n in names)
        rows = ask(f"SELECT {words} FROM 't.parquet'")
        return [{n: None if v is None else float(v) if n in ("minus", "part", "none") else int(v) for n, v in zip(names, r)} for r in rows]

    edges(read)
    types = dict(r[:2] for r in ask("DESCRIBE SELECT * FROM 't.parquet'"))
    need([types[n] for n in ("half", "all", "least", "part", "host:2", "absent")] == ["UBIGINT", "UBIGINT", "BIGINT", "DOUBLE", "BIGINT", "UBIGINT"], types)
    # a reader that skips by limits finds them
    found = ask_all("SELECT count(*)::INT FROM 't.parquet' WHERE half > 9223372036854775807", "SELECT count(*)::INT FROM 't.parquet' WHERE part < 0.2",
                    "SELECT count(half)::INT FROM 't.parquet'")
    need(found[0] == found[1] == found[2], found)


def parquet_agrees():
    tap.compile_c("p", "bins/monitored.c")
    watch("t", "--freeze", "-e", "page-faults,idle,calls:work", "--var", "level:s32", "--var", "share:double")
    kron("export", "-f", "parquet", "-o", "t.parquet", "t")
    rows, _ = shown("t")
    names = list(rows[0]["events"])
    got = ask(f"SELECT end_ns, stopped, threads, command, {', '.join(json.dumps(n) for n in names)} FROM 't.parquet'")
    need([r[:4] for r in got] == [[w["time_ns"], w["stopped"], w["threads"], "./p 2 20000"] for w in rows], got[0])
    same([dict(zip(names, r[4:])) for r in got], rows, "parquet")


def several():
    """Two monitors and a recording, read as one: each has its columns, and the calls are another table."""
    tap.compile_c("p", "bins/monitored.c")
    watch("a", "-e", "page-faults", "--var", "level:s32", "--var", "turns")
    watch("b", "--freeze", "-e", "task-clock,page-faults", "--var", "level:double", "--var", "share:double")
    subprocess.run([KRON, "record", "-q", "-o", "c", "./p", "1", "50"], stdout=subprocess.DEVNULL, check=False)
    got = table("a", "b", "c", options=["--monitor"])
    need(list(got[0])[len(FIXED):] == ["page-faults", "level", "turns", "task-clock", "level:2", "share"], list(got[0]))
    for trace, node, names in (("a", "1", {"page-faults": "page-faults", "level": "level", "turns": "turns"}),
                               ("b", "2", {"task-clock": "task-clock", "page-faults": "page-faults", "level": "level:2", "share": "share"})):
        rows, _ = shown(trace)
        mine = [r for r in got if r["node"] == node]
        same([{k: number(r[v]) for k, v in names.items()} for r in mine], rows, trace)
        others = set(got[0]) - set(FIXED) - set(names.values())
        need(all(r[k] == "" for r in mine for k in others) and all((r["stopped"] == "") == (trace == "a") for r in mine), mine[0])
        need([int(r["duration_ns"]) for r in mine] == [w["interval_ns"] for w in rows], "durations")
        # on the line that they have in common
        need(all(abs(int(r["end_ns"]) - int(r["start_ns"]) - w["interval_ns"]) <= 1000 + w["interval_ns"] / 1000 for r, w in zip(mine, rows)), "the line")
    r = kron("export", "-f", "csv", "a", "b", "c")
    need("--monitor writes them" in r.stderr and r.stdout.startswith("kind,host,node,"), r.stderr)
    kron("export", "-f", "sqlite", "-o", "t.db", "a", "b", "c")
    with sqlite3.connect("t.db") as db:
        need(db.execute("SELECT trace_id, count(*) FROM monitor_interval GROUP BY 1").fetchall() == [(1, len(shown("a")[0])), (2, len(shown("b")[0]))], "each in its trace")


def damaged():
    """Lines that make no sense are left out, and one that is too long for the clock does not stop it."""
    tap.compile_c("p", "bins/monitored.c")
    watch("t", "-e", "page-faults")
    before = table("t")
    with open("t/monitor", "a") as f:
        f.write("I\t1\t2\nI\t5\t9\t0\t0\t0\tran\tx\nI\t18446744073709551600\t18446744073709551615\t0\t0\t0\tran\t1~!\n")
    got = table("t")
    need(got[:-1] == before and got[-1]["estimates"] == got[-1]["overrun"] == "page-faults", got[-1])
    kron("export", "-f", "sqlite", "-o", "t.db", "t")


def refusals():
    tap.compile_c("p", "bins/monitored.c")
    watch("t", "-e", "page-faults")
    subprocess.run([MAKE_TRACE, "walk", "calls", "100", "1"], check=True)
    for words, status, sentence in ((["-f", "folded", "--monitor", "t"], 2, "--monitor is for"), (["-f", "csv", "--monitor", "calls"], 1, "no intervals"),
                                    (["-f", "csv", "--monitor", "--where", "cpu=0", "t"], 2, "choose samples"),
                                    (["-f", "parquet", "--monitor", "--dataset", "d", "t"], 2, "--dataset")):
        r = kron("export", *words, status=status)
        need(sentence in r.stderr and not r.stdout, r)
    for form in ("folded", "callgrind", "chrome", "speedscope"):
        r = kron("export", "-f", form, "t")
        need("csv, parquet and sqlite" in r.stderr, r.stderr)
    need(kron("export", "-f", "csv", "t").stderr == "", "a note")


def csv_of_calls():
    """The rows of a trace of calls are those of the database."""
    subprocess.run([MAKE_TRACE, "walk", "t", "3000", "3"], check=True)
    got = table("t")
    kron("export", "-f", "sqlite", "-o", "t.db", "t")
    with sqlite3.connect("t.db") as db:
        want = db.execute("SELECT tid, start_ns, duration_ns, self_ns, depth, function, cpu, recursive, end FROM intervals").fetchall()
        longest = {f: (length, between) for f, length, between in db.execute(
            "SELECT function, cast(max(c.ticks) * t.tick_ns AS INT), max(i.duration_ns) FROM intervals i JOIN call c USING(trace_id, sample_id)"
            " JOIN trace t USING(trace_id) WHERE NOT i.spans_loss GROUP BY function")}
    calls = [r for r in got if r["kind"] in ("call", "inferred", "running")]
    need(len(calls) > 1000, len(calls))
    mine = sorted((int(r["tid"]), int(r["time_ns"]), int(r["duration_ns"]), int(r["self_ns"]), int(r["depth"]), r["function"], int(r["cpu"]),
                   int(r["recursive"] == "true"), {"call": "exit"}.get(r["kind"], r["kind"])) for r in calls)
    # a tick is not a whole nanosecond
    for g, w in zip(mine, sorted(want)):
        need(g[0] == w[0] and g[5:] == w[5:] and all(abs(a - b) <= 1 for a, b in zip(g[1:5], w[1:5])), f"{g} {w}")
    need(len(mine) == len(want), f"{len(mine)} {len(want)}")
    # what is cut off at a nanosecond's end is cut off at its begin, too: sums are those of the clock's ticks
    report = json.loads(kron("report", "--json", "t").stdout)
    for r in report:  # as kron-export(1) says it
        length, between = longest[r["function"]]
        need(length == r["max_ns"] and abs(between - length) <= 1, f"{r['function']}: {r['max_ns']} {length} {between}")
    self_ns = sum(r["self_ns"] for r in report)
    for name, rows in ("csv", [m[3] for m in mine]), ("sqlite", [w[3] for w in want]):
        off = sum(rows) - self_ns
        need(abs(off) <= 2 * len(rows) ** 0.5 + 10, f"{name}: {off} ns too much of {self_ns} in {len(rows)} calls")
    need(all(int(r["end_ns"]) == int(r["time_ns"]) + int(r["duration_ns"]) >= int(r["time_ns"]) for r in calls), "an end")
    need(all(0 <= int(r["self_ns"]) <= int(r["duration_ns"]) for r in calls), "more of its own than it has")


with tap.Suite("export_intervals") as s:
    s.case("csv: what the report shows, and the program says", csv_agrees)
    s.case("csv: of a program that is stopped", csv_agrees, "--freeze")
    s.case("csv: values at the edges", edges_of_csv)
    s.case("csv: calls", csv_of_calls)
    s.case("sqlite: what the report shows, and the program says", database_agrees)
    s.case("sqlite: values at the edges", edges_of_database)
    s.case("parquet: what the report shows", parquet_agrees)
    s.case("parquet: values at the edges", edges_of_parquet)
    s.case("several monitors, and a recording", several)
    s.case("damaged lines", damaged)
    s.case("refusals and notes", refusals)
