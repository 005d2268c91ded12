#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whose sample it is, where a thread is told by what its C library keeps near %fs: in static programs, and
in processes that run already.

Ground truth: each call's argument says which thread it is of, and which of its calls."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import info, need_unbroken, numbers  # noqa: E402
from tap import KRON, Skip, Suite, compile_c, need, need_fsgsbase  # noqa: E402

ROUNDS = 20
PROBE = ("-p", "counted n=$arg1", "--when-full", "wait")


def each_has_its_own():
    """Each thread has calls of one number, and none of them is missing, or twice."""
    seen = numbers()
    need(len(seen) == 3, f"{len(seen)} threads called")
    need({v[0] >> 24 for v in seen.values()} == {1, 2, 3}, "not the threads that there are")
    for v in seen.values():
        need_unbroken(v)
    lost = info()["lost"]
    need(lost == 0, f"{lost} lost")
    return seen


def from_the_start(program, kind):
    run = [KRON, "record", "-q", "-o", "t", *PROBE, "--", program, kind, str(ROUNDS)]
    r = subprocess.run(run, capture_output=True, text=True)
    need(r.returncode == 0 and r.stdout == "ready\n", f"{r.returncode}: {r.stdout}{r.stderr}")
    for v in each_has_its_own().values():
        need(len(v) == ROUNDS * 500, f"{len(v)} calls")


def patched(program, kind):
    subprocess.run([KRON, "patch", "-q", *PROBE[:2], "-o", "patched", program], check=True)
    from_the_start("./patched", kind)


def times_asked(program, *options):
    """How often the kernel was asked for a thread's number, by the kernel's word."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    subprocess.run([KRON, "patch", "-q", *options, "-o", "patched", program], check=True)
    run = ["strace", "-f", "-qq", "-e", "trace=gettid", "-o", "calls"]
    record = [KRON, "record", "-q", "--when-full", "wait", "-o", "t", "--", "./patched", "own", str(ROUNDS)]
    subprocess.run([*run, *record], check=True, stdout=subprocess.DEVNULL)
    return len(re.findall(r"gettid\(\)", open("calls").read()))


def is_asked_seldom(program):
    """Once for each thread, and not at each call."""
    asked = times_asked(program, *PROBE[:2])
    need(len(each_has_its_own()) and 0 < asked < ROUNDS * 50, f"gettid {asked} times")


GO = """
package main

import "runtime"

//go:noinline
func counted(n int) int { return n*3 + 1 }

func main() {
	all := make(chan int)
	for i := 0; i < 30; i++ {
		go func() {
			runtime.LockOSThread()
			n := i
			for k := 0; k < 5000; k++ {
				n = counted(n)
			}
			all <- n
		}()
	}
	for i := 0; i < 30; i++ {
		<-all
	}
}
"""


def go_is_asked_seldom():
    """Its threads run traced code of the runtime's before they have a number of their own."""
    if not shutil.which("go"):
        raise Skip("go is not installed")
    need_fsgsbase()
    with open("threads.go", "w") as f:
        f.write(GO)
    env = {**os.environ, "CGO_ENABLED": "0", "HOME": os.getcwd(), "GO111MODULE": "off"}
    subprocess.run(["go", "build", "-o", "threads", "threads.go"], check=True, env=env)
    asked = times_asked("./threads", "-F", "main.*", "-F", "runtime.m*")
    report = json.loads(subprocess.run([KRON, "report", "--json", "t"], capture_output=True, text=True, check=True).stdout)
    calls = next(f["calls"] for f in report if f["function"] == "main.counted")
    need(calls == 150000 and 0 < asked < 30000, f"{calls} calls, gettid {asked} times")


def while_it_runs(program, kind):
    p = subprocess.Popen([program, kind, "0"], stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == "ready\n", "it did not start")
        for _ in range(2):
            run = [KRON, "record", "-o", "t", "--pid", str(p.pid), "--for", "0.2s", *PROBE]
            r = subprocess.run(run, capture_output=True, text=True)
            need(r.returncode == 0 and "as before" in r.stderr, f"{r.returncode}: {r.stderr}")
            each_has_its_own()
        need(p.poll() is None, f"it ended with {p.returncode}")
    finally:
        p.kill()
        p.communicate()


with Suite("thread_data") as s:
    flags = ("-fno-stack-protector", "-fcf-protection=none")
    programs = {"dynamic": (), "static": ("-static",)}
    for name, how in programs.items():
        compile_c(os.path.join(s.folder, name), "bins/thread_data.c", *flags, *how)
    what = {
        "own": "threads of the C library's",
        "shared": "a thread with its maker's data",
        "small": "a thread with next to no data",
        "copy": "a thread with a copy of its maker's data",
        "gs": "%gs is the program's own",
        "gs0": "%gs is nobody's",
    }
    for name in programs:
        for kind, text in what.items():
            program = os.path.join(s.folder, name)
            s.case(f"{name}, {text}: from the start", from_the_start, program, kind)
            s.case(f"{name}, {text}: while it runs", while_it_runs, program, kind)
            if name == "static":
                s.case(f"{name}, {text}: in a file from kron patch", patched, program, kind)
    s.case("a thread is asked for its number seldom", is_asked_seldom, os.path.join(s.folder, "static"))
    s.case("… one of Go's, either", go_is_asked_seldom)
