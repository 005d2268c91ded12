#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flight.py - kron record --flight: what a snapshot holds, when it is taken, and what is left of it.

The truth is the program's own count: tick(n) is called with n = 1, 2, 3 and so on, and n stands in a file
before each call."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from counted_calls import counters, events, has_begun, ticks
from recordings import Recording
from tap import KRON, Skip, Suite, compile_c, compile_text, need, need_root, wait_for


HELD = 30 * 3276  # samples that a ring of 2M holds at least: one of 32 chunks is being filled, and one may be cleared


def flight(*words, threads=1, end=None, options=("--flight", "2M")):
    compile_c("counted_calls", "bins/counted_calls.c", "-O1", "-pthread")
    with contextlib.suppress(OSError):
        os.unlink("stop")
    words = ["./counted_calls", "counters", str(threads), *([end] if end else [])]
    return Recording(*words, options=["-p", "tick trace $arg1", *options])


def stop(r):
    open("stop", "w").close()
    return r.end()


def wait_until_it_runs(threads=1):
    wait_for(lambda: has_begun(threads), "the first calls")


def snapshot(r, *words, status=0):
    p = subprocess.run([KRON, "snapshot", *words, str(r.pid)], capture_output=True, text=True)
    need(p.returncode == status, f"snapshot: {p}")
    return p.stderr if status else p.stdout.strip()


def need_suffix(directory, before, after, least=0):
    """Each thread: without a gap, and up to what it had counted between before and after."""
    got = ticks(directory)
    need(len(got) == len(before), f"{directory}: threads {list(got)}")
    for seen in got.values():
        need(seen == list(range(seen[0], seen[-1] + 1)), f"{directory}: a gap in {seen[0]} .. {seen[-1]}")
    # whose counter is whose is not said: in order they are the same
    for last, low, high in zip(sorted(s[-1] for s in got.values()), sorted(before), sorted(after)):
        need(low - 1 <= last <= high, f"{directory}: ends at {last}, not within {low} .. {high}")
    left_out = info(directory)["snapshot"]["left_out_chunks"]
    need(left_out or sum(map(len, got.values())) >= least, f"{directory}: {sum(map(len, got.values()))} samples")
    return got


def info(directory):
    return json.loads(subprocess.run([KRON, "info", "--json", directory], capture_output=True, text=True, check=True).stdout)


def asked_for():
    """kron snapshot: all calls up to now, as many as were wanted, and the totals are right."""
    r = flight()
    wait_until_it_runs()
    before = counters()
    path = snapshot(r, "--why", "it is time")
    after = counters()
    need(path == os.path.realpath("trace/001"), path)
    need(not os.path.getsize("trace/samples"), "samples were written to the recording itself")
    got = need_suffix(path, before, after, HELD)
    i = info(path)
    need(i["complete"] and i["snapshot"]["why"] == "it is time", i)
    need(0 < i["probe_ns_limit"] <= i["probe_ns"] < 1000, f"a probe costs {i['probe_ns']} ns")
    last = next(iter(got.values()))[-1]
    need(i["snapshot"]["left_out_chunks"] or i["samples"] + i["lost"] == last, f"{i['samples']} + {i['lost']} of {last}")
    for command in ["report"], ["replay"], ["export", "--format", "chrome", "-o", "chrome.json"]:
        p = subprocess.run([KRON, *command, path], capture_output=True, text=True)
        need(p.returncode == 0, p.stderr)
    stop(r)
    need_suffix("trace/002", counters(), counters())
    i = info("trace")
    need([(s["name"], s["why"]) for s in i["snapshots"]] == [("001", "it is time"), ("002", "exited 0")], i["snapshots"])
    need(i["samples"] == 0 and i["flight"] == "2M", i)
    p = subprocess.run([KRON, "info", "trace"], capture_output=True, text=True)
    need(re.search(r"^samples: +in the snapshots$", p.stdout, re.M), p.stdout)
    need(re.search(r"^ *\d+ +- +- .*counted_calls", p.stdout, re.M), p.stdout)
    p = subprocess.run([KRON, "report", "trace"], capture_output=True, text=True)
    need("trace/001" in p.stderr, p)


def unnamed():
    """kron snapshot without a word: the only flight recorder, whatever other boards and recorders there are."""
    need_root()
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no namespaces")
    compile_text("waits", """
        #include <unistd.h>
        int main(void) { while (access("stop", F_OK)) usleep(10000); return 0; }""")
    script = f"""
        mount -t tmpfs none /dev/shm
        for n in default other; do {KRON} board create $n; done >/dev/null
        {KRON} record -q -o plain ./waits &
        until {KRON} ctl probe list --board $!; do sleep 0.1; done >/dev/null 2>&1
        {KRON} snapshot 2>none && exit 3
        {KRON} record -q -o one --flight 1M ./waits &
        until {KRON} snapshot >first 2>/dev/null; do sleep 0.1; done
        {KRON} record -q -o two --flight 1M ./waits &
        while {KRON} snapshot >/dev/null 2>several; do sleep 0.1; done
        touch stop
        wait"""
    p = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=120)
    need(p.returncode == 0, p)
    with open("none") as none, open("first") as first, open("several") as several:
        none, first, several = none.read(), first.read().strip(), several.read()
    need("no `kron record --flight` of yours runs" in none, none)
    need(first == os.path.realpath("one/001"), first)
    pids = re.search(r"as `kron snapshot (\d+)`; there are (\d+), (\d+)$", several)
    need(pids and pids[1] in pids.groups()[1:] and "--board" not in several, several)


def many():
    """25 in a row while two threads store, and one more by SIGUSR2: none is missed."""
    r = flight(threads=2, options=["--flight", "1M"])
    wait_until_it_runs(2)
    for n in range(1, 26):
        before = counters(2)
        path = snapshot(r)
        after = counters(2)
        need(path.endswith(f"/{n:03}"), path)
        if n % 5 == 0:
            got = ticks(path)
            for seen in got.values():
                need(seen[-1] >= min(before) - 1 and seen[-1] <= max(after), f"{path}: {seen[-1]}: {before}, {after}")
                need(seen == list(range(seen[0], seen[-1] + 1)), f"{path}: a gap")
    os.kill(r.pid, signal.SIGUSR2)
    wait_for(lambda: os.path.exists("trace/026"), "the one by SIGUSR2")
    stop(r)
    names = [s["name"] for s in info("trace")["snapshots"]]
    need(names == [f"{n:03}" for n in range(1, 28)], names)
    need(info("trace")["snapshots"][25]["why"] == "SIGUSR2", "why")
    need(not os.path.exists("trace/.snapshot"), "what was written aside is left")


def slow_to_ask():
    """Who stands still for longer than the recorder waits for his question asks it again."""
    r = flight()
    wait_until_it_runs()
    still = ["strace", "-qq", "-o", "calls", "-e", "trace=sendto", "-e", "inject=sendto:delay_enter=6000000:when=1"]
    if subprocess.run([*still, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no strace that delays calls")
    p = subprocess.run([*still, KRON, "snapshot", str(r.pid)], capture_output=True, text=True)
    need(p.returncode == 0 and p.stdout.strip() == os.path.realpath("trace/001"), p)
    with open("calls") as f:
        need("EPIPE" in f.read(), "it was not let go")
    stop(r)


def no_more_than():
    """--max-snapshots: then an error, and the one at the end all the same."""
    r = flight(options=["--flight", "1M", "--max-snapshots", "1"])
    wait_until_it_runs()
    snapshot(r)
    said = snapshot(r, status=1)
    need("--max-snapshots" in said, said)
    stop(r)
    need([s["why"] for s in info("trace")["snapshots"]] == ["kron snapshot", "exited 0"], "")


def crash():
    """abort() and SIGSEGV: the last call is there."""
    for how, sig in ("abort", signal.SIGABRT), ("segv", signal.SIGSEGV):
        r = flight(end=f"500000:{how}")
        r.process.wait(60)
        need(r.process.returncode == -sig, r.said())
        need_suffix("trace/001", [500_000], [500_000], 100_000)
        need(info("trace")["snapshots"][0]["why"] == f"signal {int(sig)}", "why")


def by_time():
    """The last 20 ms, and hardly more."""
    r = flight(options=["--flight", "20ms"])
    wait_until_it_runs()
    start = counters()[0]
    wait_for(lambda: counters()[0] > start + 5_000_000, "more than is kept")
    span = 0
    for _ in range(20):  # a thread that waits for a processor stores nothing
        before = counters()
        path = snapshot(r)
        after = counters()
        if not ticks(path):
            continue
        need_suffix(path, before, after)
        times = [time for time, _, _ in events(path)]
        span = times[-1] - times[0]
        if span >= 15_000_000:
            break
    stop(r)
    need(ticks(f"trace/{int(path[-3:]) + 1:03}"), "the last 20 ms of a program that has ended are empty")
    need(info(path)["snapshot"]["left_out_chunks"] or span >= 15_000_000, f"{span} ns")
    # of a chunk whose last sample is young enough all is there
    need(span < 1_000_000_000, f"{span} ns")


def by_trigger():
    """--snapshot-on: each time that it matches, what was before is there."""
    r = flight(end="300000:exit", options=["--flight", "2M", "--snapshot-on", "data=100000"])
    r.end()
    found = info("trace")["snapshots"]
    need(len(found) == 2 and found[0]["why"].startswith("data="), found)
    need([s["matches"] for s in found] == [1, None], found)
    got = next(iter(ticks("trace/001").values()))
    need(100_000 in got and got == list(range(got[0], got[-1] + 1)), f"{got[0]} .. {got[-1]}")
    need_suffix("trace/002", [300_000], [300_000])
    shutil.rmtree("trace")
    r = flight(end="300000:exit", options=["--flight", "2M", "--snapshot-on", "data=299990"])
    r.end()
    first, last = (len(next(iter(ticks(f"trace/{n:03}").values()))) for n in (1, 2))
    need(min(first, last) >= HELD, f"{first} calls, then {last}")
    shutil.rmtree("trace")
    r = flight(end="300000:exit", options=["--flight", "2M", "--snapshot-on", "data<=500", "--max-snapshots", "1000000"])
    r.end()
    found = info("trace")["snapshots"]
    matches = [s["matches"] for s in found[:-1]]
    need(sum(matches) == 500 and len(matches) < 500 and found[-1]["matches"] is None, found)
    for s, n in zip(found, matches):
        need(info(s["directory"])["snapshot"]["matches"] == n, f"{s}")
        need(s["why"].endswith(f"({n} times)") == (n > 1), f"{s}")


def calls_of(directory, name):
    """(Nanoseconds, calls) of a function there: the longest call, and how many."""
    p = subprocess.run([KRON, "report", "--json", directory], capture_output=True, text=True, check=True)
    f = [f for f in json.loads(p.stdout) if f["function"] == name]
    return (f[0]["max_ns"], f[0]["calls"]) if f else (0, 0)


def took_of(why):
    """'handle took 2.5 ms'"""
    number, unit = why.split()[2:]
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def ten_slowest(seed, threads, ring):
    """False: samples were lost before the recorder had looked at them, and nobody knows how long their calls took."""
    r = subprocess.run([KRON, "record", "-q", "-o", "w", "--flight", ring, "--worst", "10:handle", "--", "./slow_requests", "20000",
                        seed, threads], capture_output=True, text=True, check=True)
    took = [tuple(map(int, line.split())) for line in r.stdout.splitlines()]
    found = info("w")["snapshots"]
    need(len(found) == 11 and found[-1]["why"] == "exited 0", found)
    need(sorted(d for d in os.listdir("w") if d.isdigit()) == [s["name"] for s in found], os.listdir("w"))
    if info("w")["lost"]:
        return False
    kept = sorted((took_of(s["why"]), s["directory"]) for s in found[:-1])
    least = kept[0][0] * 1.05 + 1_000_000
    for ns, directory in kept:
        want, stall_us = min(took, key=lambda t: abs(t[0] - ns))
        took.remove((want, stall_us))
        need(abs(ns - want) < want / 20 + 1_000_000, f"{directory}: {ns}, and {want}: {kept} and {took}")
        # what came shortly before it may be there, too
        need(calls_of(directory, "handle")[0] > ns - 10_000, f"{directory}: the call is not in it, {ns}")
        need(calls_of(directory, "stall")[0] >= 1000 * stall_us, f"{directory}: no stall of {stall_us}: {kept} and {took}")
        need(calls_of(directory, "work")[1] >= 6, f"{directory}: {calls_of(directory, 'work')} calls of work")
    # a thread that loses the processor between its clock and the probe is slow by the former only
    need(not [t for t in took if t[1] and t[0] > least], f"{kept} and not {took}")
    return True


def worst():
    """--worst: the slowest calls by the program's own clock, each with all that it called; nobody else's."""
    compile_c("slow_requests", "bins/slow_requests.c", "-O1", "-pthread")
    need(ten_slowest("1", "3", "128M"), "samples were lost")
    need(any(ten_slowest(str(n), "1", "4M") for n in range(2, 12)), "samples were lost each time")  # of a ring that goes round


def killed():
    """kill -9 of the recorder: snapshots stay, and `kron recover` fetches what the ring has."""
    r = flight()
    wait_until_it_runs()
    path = snapshot(r)
    kept = ticks(path)
    r.kill()
    before = counters()
    wait_for(lambda: counters()[0] > before[0] + 1_000_000, "the program to run on")
    open("stop", "w").close()
    last = wait_for(lambda: (a := counters()) == counters() and not running(r) and a, "its end")
    subprocess.run([KRON, "recover", "trace"], check=True, capture_output=True)
    need(ticks(path) == kept, "the snapshot has changed")
    got = next(iter(ticks("trace").values()))
    need(got == list(range(got[0], got[-1] + 1)), f"{got[0]} .. {got[-1]}")
    need(got[-1] == last[0], f"{got[-1]} of {last[0]}")


def running(r):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(r.pid, 0)
        return subprocess.run(["pgrep", "-g", str(r.pid), "counted_calls"], stdout=subprocess.DEVNULL).returncode == 0
    return False


def again():
    """A flight recorder's directory becomes DIR.old and goes, as every trace does."""
    for _ in range(3):
        flight(end="1000:exit").end()
    need(sorted(os.listdir("trace.old")) == sorted(os.listdir("trace")), os.listdir("trace.old"))
    open("trace/notes", "w").close()
    p = subprocess.run([KRON, "record", "-o", "trace", "--", "true"], capture_output=True, text=True)
    need(p.returncode == 125 and os.path.exists("trace/001/samples"), p.stderr)


def refused():
    """What does not go together says so."""
    for words, part in (["--flight", "0"], "neither a size"), (["--flight", "64M", "-b", "1M"], "--buffer"), \
            (["--flight", "1s", "--when-full", "wait"], "--when-full"), (["--flight", "1s", "--bus", "exact"], "--bus"), \
            (["--snapshot-on", "a>1ms"], "--flight"), (["--max-snapshots", "3"], "--flight"), \
            (["--flight", "1s", "--trigger", "a>1ms"], "--trigger"), (["--worst", "3:a"], "--flight"), (["--flight", "1s", "--worst", "a"], "N:FUNC"), \
            (["--flight", "1s", "--worst", "0:a"], "N:FUNC"), (["--flight", "1s", "--worst", "3:a", "--snapshot-on", "a>1s"], "use one"), (["--flight", "1s", "--snapshot-on", "a>"], "--snapshot-on"):
        p = subprocess.run([KRON, "record", *words, "--", "true"], capture_output=True, text=True)
        need(p.returncode == 125 and part in p.stderr, f"{words}: {p}")
    for words in ["--worst", "3:nosuch"], ["--snapshot-on", "nosuch>1ms"]:
        said = flight(end="1000:exit", options=["--flight", "1M", *words]).end()[1]
        need(said.count("'nosuch'") == 1, said)
    r = flight(options=[])
    wait_until_it_runs()
    said = snapshot(r, status=1)
    need("--flight" in said, said)
    stop(r)


def main():
    with Suite("flight") as s:
        s.case("kron snapshot: all calls up to now", asked_for)
        s.case("the only one that takes snapshots", unnamed)
        s.case("25 in a row, and one by a signal", many)
        s.case("a question that comes late", slow_to_ask)
        s.case("no more than --max-snapshots", no_more_than)
        s.case("a crash leaves the last call", crash)
        s.case("what is kept by time", by_time)
        s.case("what is kept when something happens", by_trigger)
        s.case("the slowest calls", worst)
        s.case("the recorder is killed", killed)
        s.case("one recording after another", again)
        s.case("what does not go together", refused)


if __name__ == "__main__":
    main()
