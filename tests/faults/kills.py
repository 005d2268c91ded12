#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kills.py - kills the traced program, and kron itself, at random moments.

Truth is a counter in a file that the program raises after each of its calls has returned: what
was counted must be in the trace.  The seed is printed; KRON_TEST_SEED gives it back.
"""

import os
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import KRON, Suite, children_of, compile_c, is_running, is_traced, need, rnd, truth, wait_for


def counters(path):
    """The words of the four loops, 64 bytes apart."""
    with open(path, "rb") as f:
        return list(struct.unpack("<512Q", f.read(4096))[0:32:8])


def start(options, *program):
    """kron record in a process group of its own; stderr to a file."""
    return subprocess.Popen(
        [KRON, "record", "-o", "trace", "-q", *options, "--", *program],
        stdin=subprocess.DEVNULL,
        stdout=open("stdout", "w"),
        stderr=open("stderr", "w"),
        start_new_session=True,
    )


def named(pids, name):
    for p in pids:
        try:
            with open(f"/proc/{p}/comm") as f:
                if f.read().strip() == name:
                    return p
        except OSError:
            pass
    return None


def program_of(kron):
    return wait_for(lambda: named(children_of(kron.pid), "counter"), "the program")


def counting(path):
    def started():
        return os.path.exists(path) and os.path.getsize(path) == 4096 and counters(path)[0] > 100

    wait_for(started, "the program's first calls")


def stands_still():
    """The program makes no call for a while."""
    before = counters("count")
    time.sleep(0.2)
    return counters("count") == before


def check_counts(slack_lost=False):
    """Every counted call is in the trace; at most one more for each thread."""
    t = truth.Trace("trace")
    need(not t.problems, t.problems[:5])
    info = truth.kron_json("info", "trace")
    for i, counted in enumerate(counters("count")):
        got = t.entries[f"work_{i}"]
        if counted == 0:
            continue
        if slack_lost and info["lost"]:
            need(got + info["lost"] >= counted, f"work_{i}: {got} entries of {counted} calls")
            continue
        need(got >= counted, f"work_{i}: {got} entries of {counted} calls, {info['lost']} lost")
        need(got <= counted + 1, f"work_{i}: {got} entries, but only {counted} calls")
        exits = t.exits[f"work_{i}"]
        need(exits in (counted, counted + 1), f"work_{i}: {exits} exits of {counted} calls")
    segment_gone()
    for command in ("report", "replay", "dump", "info"):
        r = subprocess.run([KRON, command, "trace"], capture_output=True)
        need(r.returncode == 0, f"kron {command}: {r.returncode} {r.stderr[:200]}")


def segment_gone():
    with open("trace/session") as f:
        name = [x.split("=", 1)[1].strip() for x in f if x.startswith("segment=")]
    need(name, "no segment in the session")
    path = "/dev/shm/" + name[-1].lstrip("/")
    need(not os.path.lexists(path), f"{path} is left")


def stderr_text():
    with open("stderr") as f:
        return f.read()


def program_is_killed(threads, fork, group, bus="lane"):
    kron = start(["--when-full", "wait", "--bus", bus], COUNTER, "count", str(threads), *(["fork"] if fork else []))
    pid = program_of(kron)
    counting("count")
    time.sleep(rnd.uniform(0, 0.25))
    children = children_of(pid)
    if group:
        for c in children:
            os.kill(c, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    status = kron.wait(30)
    need(status == -signal.SIGKILL, f"kron ended with {status}, not by SIGKILL: {stderr_text()}")
    check_counts()


def interrupt(whole_group):
    """SIGINT: the program gets it too, from the terminal or from kron; the trace is whole."""
    kron = start(["--when-full", "wait"], COUNTER, "count", "2")
    pid = program_of(kron)
    counting("count")
    time.sleep(rnd.uniform(0.01, 0.1))
    if whole_group:
        os.killpg(kron.pid, signal.SIGINT)
    else:
        os.kill(kron.pid, signal.SIGINT)
        # kron alone was asked to end: the program may live on, untraced
        wait_for(lambda: not (is_running(pid) and is_running(kron.pid)), "the end of either")
        if is_running(pid):
            os.kill(pid, signal.SIGINT)
    status = kron.wait(20)
    need(status in (-signal.SIGINT, 130, 0), f"kron ended with {status}: {stderr_text()}")
    need(not is_running(pid), "the program is still there")
    t = truth.Trace("trace")
    need(not t.problems and t.samples > 100, f"{t.samples} samples, {t.problems[:3]}")
    info = truth.kron_json("info", "trace")
    need(info["samples"] == t.samples, "info counts otherwise")
    if whole_group:
        check_counts()
    segment_gone()


def kron_is_killed(bus="lane"):
    """SIGKILL of `kron record`: the program goes on; recover makes a trace of what there is."""
    options = ["--bus", bus] if bus == "lane" else ["--bus", bus, "--when-full", "wait"]
    kron = start(options, COUNTER, "count", "1")
    pid = program_of(kron)
    counting("count")
    time.sleep(rnd.uniform(0, 0.2))
    at_kill = counters("count")[0]
    os.kill(kron.pid, signal.SIGKILL)
    kron.wait(10)
    try:
        wait_for(lambda: counters("count")[0] > at_kill or not is_running(pid), "a call after the kill")
        need(is_running(pid), "the program died with its tracer")
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid), "the program's end")
    r = subprocess.run([KRON, "recover", "trace"], capture_output=True, text=True)
    need(r.returncode == 0, f"recover: {r.returncode} {r.stderr}")
    t = truth.Trace("trace")
    need(not t.problems, t.problems[:5])
    need(t.entries["work_0"] >= at_kill, f"{t.entries['work_0']} entries of {at_kill} calls")
    if bus == "exact":  # the board went on without its collector; nothing is there twice
        calls = counters("count")[0]
        lost = truth.kron_json("info", "trace")["lost"]
        got = t.entries["work_0"] + t.exits["work_0"]
        need(2 * calls <= got + lost <= 2 * calls + 2, f"{got} samples, {lost} lost of {calls} calls")
    info = truth.kron_json("info", "trace")
    need(info["samples"] == t.samples, f"info: {info['samples']}, stored: {t.samples}")
    segment_gone()
    r = subprocess.run([KRON, "recover", "trace"], capture_output=True, text=True)
    need(r.stderr.count("\n") <= 1, f"a second recover says {r.stderr}")


def kron_dies_first():
    """kron is killed while the program starts: the program runs all the same."""
    for _ in range(4):
        shutil.rmtree("trace", ignore_errors=True)
        kron = start([], "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done; echo x >end")
        time.sleep(rnd.uniform(0.0, 0.08))
        started = children_of(kron.pid)
        os.kill(kron.pid, signal.SIGKILL)
        kron.wait(10)
        if started:
            wait_for(lambda: os.path.exists("end") or not any(is_running(pid) and is_traced(pid) for pid in started), "its end")
        if started and os.path.exists("end"):
            os.remove("end")
        if os.path.exists("trace/session"):
            subprocess.run([KRON, "recover", "trace"], capture_output=True)
        wait_for(lambda: not any(map(is_running, started)), "the end of the program, and of the keeper")


def stopped_and_continued():
    """SIGSTOP and SIGCONT: nothing lost, nothing hangs."""
    kron = start(["--when-full", "wait", "-b", "1M"], COUNTER, "count", "2")
    pid = program_of(kron)
    counting("count")
    for _ in range(5):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(rnd.uniform(0.005, 0.02))
        os.kill(pid, signal.SIGCONT)
        time.sleep(rnd.uniform(0.005, 0.02))
    # a stopped collector: the program waits for it
    os.kill(kron.pid, signal.SIGSTOP)
    wait_for(stands_still, "the program to wait")
    os.kill(kron.pid, signal.SIGCONT)
    wait_for(lambda: not stands_still(), "the program to go on")
    os.kill(pid, signal.SIGKILL)
    kron.wait(30)
    check_counts()


def collector_naps():
    """Wait mode, exact bus: while the collector is stopped, the board's memory is not overrun."""
    kron = start(["--when-full", "wait", "--bus", "exact"], COUNTER, "count", "1")
    pid = program_of(kron)
    counting("count")
    os.kill(kron.pid, signal.SIGSTOP)
    # it holds 838,860 samples, which are half as many calls
    wait_for(lambda: counters("count")[0] > 300000 and stands_still(), "the program to wait")
    os.kill(kron.pid, signal.SIGCONT)
    wait_for(lambda: not stands_still(), "the program to go on")
    os.kill(pid, signal.SIGKILL)
    kron.wait(30)
    info = truth.kron_json("info", "trace")
    # the kill may meet it waiting again, and then the sample that it waited with is counted as lost
    need(info["lost"] <= 1, f"{info['lost']} samples were lost, {info['overwritten']} of them overwritten")
    check_counts()


def collector_frozen(bus="lane"):
    """Wait mode, the collector stopped and then killed: the program must come free."""
    kron = start(["--when-full", "wait", "-b", "1M", "--bus", bus], COUNTER, "count", "1")
    pid = program_of(kron)
    counting("count")
    os.kill(kron.pid, signal.SIGSTOP)
    wait_for(stands_still, "the program to wait")
    os.kill(kron.pid, signal.SIGKILL)
    kron.wait(10)
    try:
        before = counters("count")[0]
        wait_for(lambda: counters("count")[0] > before + 1000, "the waiting program")
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid), "the program's end")
    r = subprocess.run([KRON, "recover", "trace"], capture_output=True, text=True)
    need(r.returncode == 0, f"recover: {r.returncode} {r.stderr}")
    segment_gone()


def main():
    global COUNTER
    with Suite("kills") as s:
        COUNTER = os.path.abspath("counter")
        compile_c(COUNTER, "faults/counter.c")
        for i in range(6):
            s.case(f"program killed, one thread, round {i}", program_is_killed, 1, False, False)
        for i in range(4):
            s.case(f"program killed, two threads, round {i}", program_is_killed, 2, False, False)
        for i in range(4):
            s.case(f"program and child killed, round {i}", program_is_killed, 2, True, True)
        for i in range(4):
            s.case(f"program killed, exact bus, round {i}", program_is_killed, 2, False, False, "exact")
        for i in range(2):
            s.case(f"program and child killed, exact, round {i}", program_is_killed, 2, True, True, "exact")
        s.case("SIGINT to both", interrupt, True)
        s.case("SIGINT to kron alone", interrupt, False)
        s.case("stopped and continued", stopped_and_continued)
        for i in range(3):
            s.case(f"kron killed, recovered, round {i}", kron_is_killed)
        for i in range(4):
            s.case(f"kron killed, exact bus, recovered, round {i}", kron_is_killed, "exact")
        s.case("kron killed while programs start", kron_dies_first)
        s.case("collector frozen and killed under wait", collector_frozen)
        s.case("collector frozen and killed under wait, exact bus", collector_frozen, "exact")
        s.case("collector frozen for a while, exact bus", collector_naps)


if __name__ == "__main__":
    main()
