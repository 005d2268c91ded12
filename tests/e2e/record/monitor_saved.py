#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""monitor_saved.py - intervals of kron monitor in a trace: they are what it has shown, and what the program says of itself."""

import json
import os
import signal
import subprocess
import sys

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402

LIMIT = 120


def kron(*args, status=0, **more):
    r = subprocess.run([KRON, *args], capture_output=True, text=True, timeout=LIMIT, **more)
    need(r.returncode == status, f"status {r.returncode}, not {status}: {r.stderr}")
    return r


def lines_of(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[:-1], lines[-1]


def same_rows(*how):
    """As they were shown, as table and as JSON; sums and getrusage(2) agree."""
    tap.compile_c("p", "bins/monitored.c")
    r = kron("monitor", "-q", "--every", "30ms", *how, "--save", "t", "-o", "rows", "--json", "-e", "page-faults,calls:work,idle",
             "--var", "level:s32", "--var", "share:double", "--var", "turns:x64", "--", "./p", "2", "40000", status=5)
    said = dict(zip(r.stdout.split()[::2], r.stdout.split()[1::2]))
    with open("rows") as f:
        shown = f.read()
    need(kron("report", "--json", "t").stdout == shown, "other rows")
    rows, end = lines_of(shown)
    need(end["totals"]["calls:work"] == int(said["calls"]) == 80000, f"{end} and {said}")
    # the program's own count begins before it is executed
    need(abs(end["totals"]["page-faults"] - int(said["faults"])) <= 100, f"{end} and {said}")
    need(sum(row["events"]["page-faults"] for row in rows) == end["totals"]["page-faults"], "a sum")
    need(end["totals"]["level"] == -7 and end["totals"]["share"] == 0.25, end)
    info = json.loads(kron("info", "--json", "t").stdout)
    need(info["state"] == "complete" and info["exit"] == "exited 5" and info["command"] == "./p 2 40000", info)
    need(abs(info["duration_ns"] - end["real_ns"]) <= 1, f"{info} and {end}")
    m = info["monitor"]
    need(m["intervals"] == len(rows) and m["every_ns"] == 30000000 and m["freezes"] == bool(how) and m["of"] == "program", m)
    need(m["columns"] == list(end["totals"]), m)


def same_table():
    tap.compile_c("p", "bins/monitored.c")
    kron("monitor", "-q", "--every", "30ms", "--freeze", "--save", "t", "-o", "rows", "--", "./p", "1", "20000", status=5)
    with open("rows") as f:
        need(kron("report", "t").stdout == f.read(), "another table")
    # the form of -o that keeps a trace, and prints nothing
    for name in ("u/", "u.data"):
        r = kron("monitor", "--every", "30ms", "-o", name, "-e", "page-faults", "--", "./p", "1", "20000", status=5)
        need(r.stdout.count("\n") == 1 and r.stdout.startswith("calls 20000 "), r.stdout)
        need("page-faults" in kron("report", name).stdout, "no rows")
    # and again: the trace that was there stands aside, as kron record does
    kron("monitor", "-o", "u", "--", "true")
    need(os.path.isdir("u.old") and json.loads(kron("info", "--json", "u").stdout)["command"] == "true", "no u.old")


def turns_of(path):
    """Of the last row that is whole."""
    with open(path) as f:
        values = [line.rstrip("\n").split("\t")[7] for line in f if line.startswith("I\t") and line.endswith("\n")]
    return int(values[-1].split(",")[1].replace("-", "0")) if values else 0


def killed():
    """What it has shown by then is there, and more; the program runs on."""
    tap.compile_c("p", "bins/monitored.c")
    k = subprocess.Popen([KRON, "monitor", "-q", "--json", "--every", "20ms", "--freeze", "-e", "page-faults", "--var", "turns", "-o", "rows",
                          "--save", "t", "--", "./p", "1", "200000"], stdout=subprocess.PIPE, text=True)
    # the lines of -o come at the end: the trace is there at once
    tap.wait_for(lambda: os.path.exists("t/monitor") and turns_of("t/monitor") > 0, "rows with turns")
    info = json.loads(kron("info", "--json", "t").stdout)
    need(info["state"] == "recording", info)
    k.send_signal(signal.SIGKILL)
    k.wait()
    need(k.stdout.read().startswith("calls 200000 "), "it does not go on")
    need(not os.path.exists("rows"), "the lines are there")
    with open("t/monitor") as f:
        written = f.read().count("\nI\t")
    r = kron("report", "--json", "t")
    rows, end = lines_of(r.stdout)
    need(len(rows) == end["intervals"] == written and "was killed" in r.stderr, r.stderr)
    need(end["virtual_ns"] is None and end["totals"]["turns"] == rows[-1]["events"]["turns"] > 0, end)
    info = json.loads(kron("info", "--json", "t").stdout)
    need(info["state"] == "cut off" and info["duration_ns"] == end["real_ns"] > 0, info)
    need("virtual time is not known" in kron("report", "t").stdout, "virtual time")
    # a write that was cut off in the middle
    with open("t/monitor", "a") as f:
        f.write("I\t1\t2")
    need(lines_of(kron("report", "--json", "t").stdout)[1] == end, "a torn line")
    with open("t/monitor", "a") as f:
        f.write("\nI\t5\t9\t0\t0\t0\tran\tx,1\nI\t9\t5\t0\t0\t0\tran\t1,1\nC\tvalue\tu\tlate\n")
    r = kron("report", "--json", "t")
    need(lines_of(r.stdout)[1] == end and "4 lines" in r.stderr, r.stderr)


def without_columns():
    """A file whose beginning is gone, as after the machine's crash: not an empty trace, but one that is damaged."""
    kron("monitor", "-o", "t/", "-e", "page-faults", "--", "true")
    with open("t/monitor") as f:
        text = f.read()
    for left in ("", text[5:], "x\n" + text):
        with open("t/monitor", "w") as f:
            f.write(left)
        for words in (["report"], ["report", "--json"], ["info"], ["view", "-o", "p.html"]):
            r = kron(*words, "t")
            need("make no sense" in r.stderr + r.stdout or words[0] == "view", f"{words} of {left[:9]!r}: {r}")
        need(json.loads(kron("info", "--json", "t").stdout)["monitor"]["damaged"] > 0, left[:9])


def full_disk():
    """One sentence, the documented status, and what was written is readable; the program does not feel it."""
    tap.compile_c("p", "bins/monitored.c")
    with tap.small_disk("disk", "16k"):
        r = kron("monitor", "-q", "--every", "1ms", "-e", "page-faults,task-clock,idle", "--save", "disk/t", "-o", "rows", "--json", "--", "sh", "-c",
                 "sleep 3; echo done; exit 3", status=125)
        need(r.stdout == "done\n" and r.stderr.count("\n") == 1 and "No space left" in r.stderr and "are lost" in r.stderr, r.stderr)
        shown, _ = lines_of(open("rows").read())
        rows, _ = lines_of(kron("report", "--json", "disk/t").stdout)
        need(10 < len(rows) < len(shown) and rows == shown[: len(rows)], f"{len(rows)} of {len(shown)} rows")


def refused():
    """Nothing runs, and nothing that is there is touched."""
    os.mkdir("mine")
    open("mine/letter", "w").close()
    for args in (["--save", "mine"], ["-o", "mine"], ["--save", "no/such/place"], ["--save", "a", "-o", "mine"], ["-o", "mine/", "--json"],
                 ["-o", "mine/", "--draw"], ["--save", ""]):
        r = kron("monitor", *args, "--", "touch", "it_ran", status=125)
        need(r.stderr.count("\n") == 1 and not r.stdout, r.stderr)
    need(os.listdir("mine") == ["letter"] and not os.path.exists("it_ran"), "something was done")
    kron("monitor", "-o", "t/", "-e", "page-faults", "--", "true")
    before = open("t/session").read()
    kron("monitor", "-o", "t/", "--", "/nonexistent", status=127)
    need(open("t/session").read() == before and not os.path.exists("t.old"), "the older trace")
    kron("report", "--monitor", "--callers", "x", "t", status=2)
    r = kron("report", "--by-cpu", "t")
    need("Function" in r.stdout, "a profile of nothing")
    r = kron("report", "--monitor", "--sort", "self", "t", status=2)
    need("--sort does not apply to --monitor" in r.stderr, r.stderr)
    r = kron("dump", "t")
    need("kron report t" in r.stderr, r.stderr)


def beside_a_recording():
    """Of one machine: a page of both, on one line of time."""
    tap.compile_c("p", "bins/monitored.c")
    script = f'"{KRON}" record -q -o r.data -- ./p 1 300 >/dev/null'
    kron("monitor", "-q", "--every", "10ms", "-e", "page-faults,task-clock", "-o", "m.data", "--", "sh", "-c", script, status=5)
    need("no intervals" in kron("report", "--monitor", "r.data", status=1).stderr, "of a recording")
    rows, end = lines_of(kron("report", "--monitor", "--json", "m.data", "r.data").stdout)
    need(end == lines_of(kron("report", "--json", "m.data").stdout)[1], "joined")
    need("work" in kron("report", "m.data", "r.data").stdout, "the profile")
    kron("view", "-o", "x.html", "m.data", "r.data")
    with open("x.html", encoding="utf-8") as f:
        data = json.loads(f.read().split('id="kron-data">')[1].split("</script>")[0])
    got = data["counters"][0]
    need(sum(row[2] for row in got["rows"]) == end["totals"]["page-faults"], "sums of the page")
    # the recording lies within the monitoring: what each says of when it began
    began = [int(s["start_real_ns"]) for s in (session("m.data"), session("r.data"))]
    first = got["rows"][0][0]
    need(abs((0 - first) - (began[1] - began[0])) < 20e6 or abs(first) < 1000, f"{first} and {began}")
    need(first <= data["trace_from_ns"] + 1000 and got["rows"][-1][1] >= data["trace_to_ns"] - 1000, "ends")


def session(folder):
    with open(f"{folder}/session") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f)


def running():
    """With --pid, and of a board: what was watched is said."""
    p = subprocess.Popen(["sleep", "60"])
    try:
        kron("monitor", "-q", "--every", "20ms", "--for", "200ms", "-e", "page-faults", "-o", "t/", "--pid", str(p.pid))
    finally:
        p.kill()
        p.wait()
    info = json.loads(kron("info", "--json", "t").stdout)
    need(info["command"] == f"--pid {p.pid}" and info["exit"] == "running" and info["monitor"]["of"] == "processes", info)
    name = f"saved-{os.getpid()}"
    kron("board", "create", name)
    try:
        kron("monitor", "-q", "--every", "20ms", "--for", "100ms", "-o", "b/", "--board", name)
    finally:
        kron("board", "rm", name)
    need(json.loads(kron("info", "--json", "b").stdout)["monitor"]["of"] == "board", "of a board")
    need("words" in kron("report", "b").stdout and "real time" not in kron("report", "b").stdout, "of a board")


with tap.Suite("monitor_saved") as s:
    s.case("rows as they were shown", same_rows)
    s.case("and with stops", same_rows, "--freeze")
    s.case("as a table; -o DIR", same_table)
    s.case("the monitor is killed", killed)
    s.case("without its columns", without_columns)
    s.case("a full disk", full_disk)
    s.case("refusals", refused)
    s.case("beside a recording", beside_a_recording)
    s.case("of what runs already, and of a board", running)
