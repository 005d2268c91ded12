#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""buses.py - kron record --bus: the same samples by whatever way, each with its own thread.

Truth is the lane bus where two buses are compared, what the programs print of themselves, and
how often they call what.
"""

import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_c, need, truth

CHIP = 0x1000
SOURCE, TRACE = 32, 96
HEAD_TRACE = 2
SPECIAL = 0xFFFFFF00  # from here on events are records of kron's own


def record(bus, *words, trace="trace", status=0):
    """Options end with --.  Returns what the program printed, and kron."""
    r = subprocess.run(
        [KRON, "record", "-o", trace, "--node", "0", "--bus", bus, *words], capture_output=True, text=True
    )
    need(r.returncode == status, f"status {r.returncode}: {r.stderr}")
    return r.stdout, r.stderr


def lanes_of(trace):
    """(uid, tid): [(event, payload, head, source)] in order of the chunks.  A board's exits have
    no kinds."""
    chunks = {}
    event_of = truth.Trace(trace).function_event
    for what, numbers in truth.samples_of(trace, "all"):
        if what == "sample" and numbers[6] < SPECIAL:
            uid, tid, seq, head, source, payload, event = numbers
            chunks.setdefault((uid, tid, seq), []).append((event_of(event), payload, head, source))
    lanes = {}
    for (uid, tid, _), samples in sorted(chunks.items()):
        lanes.setdefault((uid, tid), []).extend(samples)
    return lanes


def sequences(trace):
    """What each thread did: events, and stack pointers against the thread's first."""
    out = []
    for samples in lanes_of(trace).values():
        first = samples[0][1]
        out.append([(e, (p - first) & 0xFFFFFFFF) for e, p, _, _ in samples])
    return sorted(out)


def totals(trace="trace"):
    info = truth.kron_json("info", trace)
    return info["samples"], info["lost"], info


def same_samples(*program):
    """By lane and by the exact board; nothing may be lost."""
    for bus in ("lane", "exact"):
        record(bus, "--when-full", "wait", "--", *program, trace=bus)
        need(totals(bus)[1] == 0, f"{bus}: samples were lost")
        t = truth.Trace(bus)
        need(not t.problems, f"{bus}: {t.problems[:5]}")
    lane, exact = sequences("lane"), sequences("exact")
    need([len(s) for s in lane] == [len(s) for s in exact], "other numbers of samples")
    need(lane == exact, "other samples")
    need(truth.report_calls("lane") == truth.report_calls("exact"), "kron report differs")


def same_samples_with_time_to_spare():
    """Naps between the calls: then no wait is needed, and the FIFO never overruns."""
    record("lane", "--", NAPS, trace="lane")
    record("exact", "--", NAPS, trace="exact")
    _, lost, info = totals("exact")
    need(lost == 0 and info["board_overruns"] == 0, f"{lost} lost")
    need(sequences("lane") == sequences("exact"), "other samples")


def sources(bus, *options):
    """Threads that move: each function's samples carry the number of its thread."""
    out, _ = record(bus, *options, "--", HOPS, "400")
    tid = {int(n): int(t) for n, t in (line.split() for line in out.splitlines())}
    need(len(tid) == 10, out)
    t = truth.Trace("trace")
    need(not t.problems, t.problems[:5])
    names = {n: f[1] for n, f in t.functions.items()}
    seen, cpus = {}, set()
    for (_, lane_tid), samples in lanes_of("trace").items():
        for event, _, head, source in samples:
            m = re.match(r"(?:hop|inner|run)_(\d)(?:\.|$)", names[event // 2])
            if not m:
                continue
            n = int(m[1])
            need(source == tid[n] == lane_tid, f"a sample of thread {n} says {source}")
            need(head >> 27 & 3 == HEAD_TRACE, f"head {head:#x}")
            cpus.add(head >> 29)
            seen[n] = seen.get(n, 0) + 1
    _, lost, _ = totals()
    expected = 2 * (1 + 400 + sum(i % 4 for i in range(400)))
    if not lost:
        need(all(seen[n] == expected for n in range(10)), f"{expected} each, not {seen}")
    need(len(cpus) == min(8, len(os.sched_getaffinity(0))), f"CPUs {cpus}")


def nothing_is_forgotten(when_full, calls):
    """samples + lost = triggers, whatever is lost."""
    record("lane", "-F", "tick", "--when-full", "wait", "--", TRIGGERS, "2", str(calls))
    triggers = totals()[0]
    need(triggers == 4 * calls, f"{triggers} triggers by lane")
    record("exact", "-F", "tick", "--when-full", when_full, "--", TRIGGERS, "2", str(calls))
    samples, lost, info = totals()
    need(samples + lost == triggers, f"{samples} samples + {lost} lost != {triggers}")
    need(info["board_overruns"] + info["overwritten"] == lost, str(info))
    if when_full == "wait":
        need(lost == 0 and info["board_waits"] > 0, f"{lost} lost")
    if when_full == "discard":
        need(lost > 0 and samples >= 51, f"{samples} samples, {lost} lost")
    if when_full == "wrap":
        need(info["overwritten"] > 0, "the memory did not come round")
        need(838000 <= samples <= 838860, f"{samples} samples")
    t = truth.Trace("trace")
    need(not t.problems, t.problems[:5])
    need(t.samples == samples, f"{t.samples} samples in the file")


def slow_collector():
    """What goes round in memory while nobody fetches it is counted, too."""
    calls = 5000000
    kron = subprocess.Popen(
        [KRON, "record", "-q", "-o", "trace", "--bus", "exact", "-F", "tick", "--", TRIGGERS, "2", str(calls)],
        stdout=subprocess.DEVNULL,
    )
    time.sleep(0.3)
    os.kill(kron.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(kron.pid, signal.SIGCONT)
    need(kron.wait(60) == 0, "kron failed")
    samples, lost, info = totals()
    need(samples + lost == 4 * calls, f"{samples} samples + {lost} lost != {4 * calls}")
    need(info["board_overruns"] + info["overwritten"] == lost, str(info))
    t = truth.Trace("trace")
    need(not t.problems and t.samples == samples, t.problems[:5])


def processes():
    """Forked children and programs that are started have what they did on the lane bus."""
    script = f"{CALC} >/dev/null & {CALC} >/dev/null; wait; ({CALC} >/dev/null; exit 3); {CALC} >/dev/null"
    counts = {}
    for bus in ("lane", "exact"):
        record(bus, "--when-full", "wait", "-F", "*", "--", "/bin/bash", "-c", script, trace=bus)
        t = truth.Trace(bus)
        need(not t.problems, f"{bus}: {t.problems[:5]}")
        need(totals(bus)[1] == 0, f"{bus}: samples were lost")
        info = totals(bus)[2]
        for p in info["process_list"]:
            need(p["end_ns"] is not None, f"{bus}: process {p['pid']} has no end")
        counts[bus] = sorted(
            sum(th["samples"] for th in p["threads"])
            for p in info["process_list"]
            if p["exe"].endswith("calc")
        )
    need(len(counts["lane"]) == 4, counts)
    need(counts["lane"] == counts["exact"], counts)


def constant_time(bus):
    """A level that is off gives no sample and no loss, and one that is on gives all."""
    n = {}
    for mask in ("ffff", "fffe"):
        record(bus, "--constant-time", "--filter", mask, "--when-full", "wait", "--", CALC)
        n[mask], lost, info = totals()
        need(lost == 0, f"{lost} lost")
    record(bus, "--when-full", "wait", "--", CALC)
    need(n == {"ffff": totals()[0], "fffe": 0}, n)


def device():
    """A file in place of a board: it holds the last stores."""
    cpu = min(os.sched_getaffinity(0))
    with open("device", "wb") as f:
        f.truncate(32 << 20)
    out, err = record("device:device", "-g", "5", "--", "taskset", "-c", str(cpu), HOPS, "50")
    need("no board" in err and "no samples" in err, err)
    tids = [int(line.split()[1]) for line in out.splitlines()]
    with open("device", "rb") as f:
        data = f.read(0x2000)
    word = lambda n: struct.unpack_from("<I", data, CHIP + 4 * n)[0]
    t = truth.Trace("trace")
    names = {n: f[1] for n, f in t.functions.items()}
    event = word(TRACE + 5)
    need(names.get(event // 2), f"event {event} is of no function")
    need(all(word(TRACE + n) == 0 for n in range(16) if n != 5), "stores to other levels")
    need(word(SOURCE + cpu % 8) > 0, "no source address")
    last = [p for p in truth.kron_json("info", "trace")["process_list"]]
    need(last and t.samples == 0, "samples from a file")
    with open("trace/tasks") as f:
        named = {int(x.split("\t")[2]) for x in f if x.startswith("T\t")}
    need(set(tids) <= named, "threads without a name")


def refusals():
    for bus, text in (
        ("lan", "choose one of lane, exact, device:PATH"),
        ("device:", "choose one of lane, exact, device:PATH"),
        ("device:/nonexistent", "/nonexistent"),
        ("device:/etc/hostname", "32 MiB"),
    ):
        _, err = record(bus, "--", "/bin/true", status=125)
        need(text in err and err.count("\n") == 1, err)


def info_tells():
    record("exact", "--when-full", "wait", "--", CALC)
    text = subprocess.run([KRON, "info", "trace"], capture_output=True, text=True).stdout
    need(re.search(r"^bus: +exact", text, re.M), text)
    need(re.search(r"^board: .*clocks? of waiting", text, re.M), text)
    need(re.search(r"^clock: +(9\.9|10\.0)\d\d MHz", text, re.M), text)
    need(totals()[2]["bus"] == "exact", "kron info --json does not say")


with Suite("buses") as s:
    here = os.getcwd()
    HOPS, CALC, NAPS, TRIGGERS = (os.path.join(here, n) for n in ("hops", "calc", "naps", "triggers"))
    for path in (HOPS, CALC, NAPS, TRIGGERS):
        compile_c(path, f"bins/{os.path.basename(path)}.c")
    s.case("one thread: the same samples on lane and exact", same_samples, CALC)
    s.case("one thread that sleeps, without waiting", same_samples_with_time_to_spare)
    s.case("many threads: the same samples on lane and exact", same_samples, HOPS, "200")
    s.case("moving threads keep their sources: lane", sources, "lane")
    s.case("moving threads keep their sources: exact", sources, "exact")
    s.case("moving threads keep their sources: exact, waiting", sources, "exact", "--when-full", "wait")
    s.case("samples + lost = triggers: discard", nothing_is_forgotten, "discard", 100000)
    s.case("samples + lost = triggers: wait", nothing_is_forgotten, "wait", 50000)
    s.case("samples + lost = triggers: wrap", nothing_is_forgotten, "wrap", 2500000)
    s.case("samples + lost = triggers: a collector that is stopped for a while", slow_collector)
    s.case("processes", processes)
    s.case("constant time: lane", constant_time, "lane")
    s.case("constant time: exact", constant_time, "exact")
    s.case("a file as device", device)
    s.case("what is refused", refusals)
    s.case("kron info tells the bus", info_tells)
