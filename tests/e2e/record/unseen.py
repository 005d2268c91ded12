#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 1800
"""unseen.py - what a program must not notice of its probes: who gets its signals, how deep its
handlers nest, what it may lock in memory, where %fs points, what its threads share, how its stack
ends.

Truth is the untraced run, or what the program counts itself.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Skip, Suite, compile_c, need, rnd, truth

REPEAT = int(os.environ.get("KRON_TEST_REPEAT", "1"))


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    need(r.returncode == 0, f"{' '.join(command)}: {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def record(*options):
    return [KRON, "record", "-q", "-o", "trace", *options, "--"]


# ---- signals ----


def signals_reach_whom_they_reached(at_most, *options):
    """SIGPROF of 1,000 ticks: main, which sleeps, gets hardly any; but now and then a tick is its own."""
    compile_c("targets", "torture/threads/signal_targets.c")
    plain = "not asked"
    for _ in range(3):  # beside other work, a thread that is off its processor gets no signal either
        traced = [int(run(*record(*options), "./targets", "1000")) for _ in range(REPEAT)]
        if sum(traced) <= at_most * REPEAT:
            return
        plain = [int(run("./targets", "1000")) for _ in range(REPEAT)]
        if sum(traced) <= sum(plain) + at_most * REPEAT:
            return
    need(False, f"main got {traced} of 1000 each, untraced {plain}")


def handlers_do_not_nest(bus):
    """The recorder stands still for a while, again and again; its program waits."""
    compile_c("nested", "torture/threads/nested_wait.c")
    # the board itself takes its time for each sample
    calls, of_handler = ("6000000", "100") if bus == "lane" else ("1000000", "10")
    for _ in range(REPEAT):
        kron = subprocess.Popen(
            [*record("--when-full", "wait", "-b", "1M", "--bus", bus), "./nested", calls, of_handler],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        for _ in range(4):
            time.sleep(0.05)
            kron.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            kron.send_signal(signal.SIGCONT)
        out = kron.communicate()[0]
        need(kron.returncode == 0 and out == b"done\n", f"ended with {kron.returncode}, {out}")
        t = truth.Trace("trace")
        need(t.entries["work"] == int(calls), f"{t.entries['work']} calls of work in the trace")


def fast_handlers_do_not_nest(*options):
    """Signals come again before a sleep of no length would be over (the timer's slack, 50 us)."""
    compile_c("nested", "torture/threads/nested_wait.c")
    for _ in range(REPEAT):
        need(run(*record(*options), "./nested", "3000000", "20", "100") == "done\n", "it was cut short")
        info = truth.kron_json("info", "trace")
        work = truth.Trace("trace").entries["work"]
        need(work == 3000000 or info["lost"], f"{work} calls of work in the trace")


# ---- threads ----

BARE = ("-fno-stack-protector", "-fcf-protection=none")


def shared_thread_data_is_shared_by_nobody(patched, *flags):
    """Eight loops, one of them in a process that shares the memory: what that triggers is lost."""
    compile_c("shared", "torture/threads/shared_tls.c", *BARE, *flags)
    if patched:
        run(KRON, "patch", "-o", "shared.patched", "shared")
        os.rename("shared.patched", "shared")
    calls = 50000
    for _ in range(2 * REPEAT):
        run(*record("--when-full", "wait"), "./shared", str(calls))
        t = truth.Trace("trace")
        lost = truth.kron_json("info", "trace")["lost"]
        got = t.entries["work"] + t.exits["work"]
        need(2 * 7 * calls <= got, f"{got} samples of work")
        # each thread has its own calls and no others
        by_thread = json.loads(run(KRON, "report", "--by-thread", "--json", "trace"))
        each = sorted(f["calls"] for f in by_thread if f["function"] == "work")
        need(len(each) >= 7 and each[-7:] == 7 * [calls], f"calls by thread: {each}")
        # main, the threads' function, and its return in no case; and libc, where it is inside
        if not flags:
            need(t.samples + lost == 2 * 8 * calls + 2 + 7 + 1, f"{t.samples} samples, {lost} lost")


def foreign_base(*options, flags=()):
    compile_c("foreign", "torture/threads/foreign_fs.c", *BARE, *flags)
    plain = run("./foreign")
    need(run(*record("--when-full", "wait", *options), "./foreign") == plain, "other output")
    return truth.Trace("trace"), truth.kron_json("info", "trace")


FOREIGN_CALLS = 12 * 3900


def foreign_base_in_static(flag):
    t, info = foreign_base(flags=(flag,))
    need(info["lost"] == 0 and t.entries["work"] == FOREIGN_CALLS, f"{t.entries['work']} calls, {info['lost']} lost")


def foreign_base_on_bus(bus):
    t, info = foreign_base("--bus", bus)
    need(info["lost"] == 0, f"{info['lost']} lost")
    need(t.entries["work"] == FOREIGN_CALLS, f"{t.entries['work']} calls")


def foreign_base_with_counts(*options):
    """Counts go by %fs, too; of every instruction, so with and without registers to save."""
    probes = [x for p in ("work count:3", "work%return count:5", "many%insns count:4", "main%calls count:6",
                          "work%insns trace $sp") for x in ("-p", p)]
    _, info = foreign_base(*probes, *options)
    need(info["counters"][3] == info["counters"][5] == FOREIGN_CALLS, info["counters"])
    need(info["lost"] == 0, f"{info['lost']} lost")


def foreign_base_on_device():
    """Its samples need an rseq area; without one they are lost."""
    compile_c("foreign", "torture/threads/foreign_fs.c", *BARE)
    plain = run("./foreign")
    need(run(*record("--bus", device()), "./foreign") == plain, "other output")


# ---- memory that is locked ----

LOCK_CURRENT, LOCK_FUTURE, LOCK_ONFAULT = 1, 2, 4
LOCK_FLAGS = (
    LOCK_CURRENT,
    LOCK_FUTURE,
    LOCK_CURRENT | LOCK_FUTURE,
    LOCK_CURRENT | LOCK_ONFAULT,
    LOCK_CURRENT | LOCK_FUTURE | LOCK_ONFAULT,
)
OURS_KIB = 8192


def sizes(*command):
    # there a call takes long, and the samples of all go to the same memory of the board
    calls = ["CALLS=20000"] if "exact" in command else []
    results, line = run("env", "SHOW_SIZES=1", *calls, *command).splitlines()
    return results, *(int(v) for v in line.split())


def locks_what_it_locked(prepare, *options):
    """Under its limit, under the tightest with which the untraced program succeeds, and without one."""
    compile_c("lock", "torture/process/lock_memory.c", *(["-static"] if prepare else []))
    traced = "./lock.patched" if prepare else "./lock"
    if prepare:
        run(KRON, "patch", "-q", "-o", traced, "lock")
    for flags in LOCK_FLAGS:
        space = sizes("./lock", str(flags), "0")[1]
        for limit in (0, 8192, space + 1024, space + 64, space - 64):
            arguments = (str(flags), str(limit), *rnd.choice(((), ("raw",))))
            plain = sizes("./lock", *arguments)
            got = sizes(*record(*options), traced, *arguments)
            need(got[0] == plain[0], f"{arguments}: untraced {plain}, traced {got}")
            need(got[2] <= plain[2] + OURS_KIB, f"{arguments}: untraced {plain}, traced {got}")
            # what the program has is locked, as far as it was
            need(got[2] >= plain[2] - 64, f"{arguments}: untraced {plain}, traced {got}")


# ---- the end of the stack ----


def stack_end(*flags):
    compile_c("stack_end", "torture/threads/stack_end.c", "-fcf-protection=none", *flags)
    need(run("./stack_end") == "done\n", "the untraced run fails")


def calls_in(out):
    deep, leaf = out.splitlines()[0].split()
    return int(deep), int(leaf)


PLACES = {
    "entries and exits": [],
    "every instruction": ["deep%insns", "keep%insns", "leaf%insns"],
    "payloads": ["deep%insns trace $sp", "keep trace $arg1", "leaf%stores trace $addr", "keep%insns trace 7"],
    "Resource samples": ["keep resource", "deep resource", "keep%return resource"],
    "counts": ["deep%insns count:4", "keep%insns count:4", "leaf%insns count:4"],
    "stores": ["deep store:4=0xffff", "keep%insns store:4=0xffff"],
}


def handler_sees_the_end(what, *options):
    """The program itself checks what its handler sees; calls are counted by it and by the probes."""
    stack_end()
    probes = [x for p in PLACES[what] for x in ("-p", p)]
    exact = "exact" in options
    device = any(o.startswith("device") for o in options)
    if what != "entries and exits" and not exact and not device:
        probes += ["-p", "deep count:0", "-p", "leaf count:1"]
    os.environ["SHOW_CALLS"] = "1"
    try:
        deep, leaf = calls_in(run(*record("--when-full", "wait", *probes, *options), "./stack_end"))
    finally:
        del os.environ["SHOW_CALLS"]
    if what == "entries and exits" and not device:
        t = truth.Trace("trace")
        need((t.entries["deep"], t.entries["leaf"]) == (deep, leaf), f"{t.entries}, called {deep}, {leaf}")
    elif not exact and not device:
        counters = truth.kron_json("info", "trace")["counters"]
        need(counters[:2] == [deep, leaf], f"counted {counters[:2]}, called {deep}, {leaf}")


def device():
    with open("device", "wb") as f:
        f.truncate(32 << 20)
    return "device:" + os.path.abspath("device")


def handler_sees_the_end_on_device(what):
    handler_sees_the_end(what, "--bus", device())


def other_handlers_and_none():
    stack_end()
    for options in ((), ("--bus", "exact")):
        run(*record(*options), "./stack_end", "once")
        r = subprocess.run([*record(*options), "./stack_end", "die"], capture_output=True)
        need(r.returncode == -signal.SIGSEGV, f"without a handler it ends with {r.returncode}")


def in_patched_files(*flags):
    """By itself, recorded, on a board of its own; with and without jumps in the text."""
    stack_end(*flags)
    board = f"unseen{os.getpid()}"
    run(KRON, "board", "create", board)
    try:
        for options in ((), ("--jumps",), ("-p", "deep%insns", "-p", "keep%insns count:3")):
            run(KRON, "patch", "-q", "-o", "patched", *options, "stack_end")
            run("./patched")
            run(*record(), "./patched")
            run(*record("--bus", "exact"), "./patched")
            run("env", f"KRON_BOARD={board}", "./patched")
    finally:
        run(KRON, "board", "rm", board)


OCAML = """
let rec deep n = 1 + deep (n + 1)
let caught = ref 0
let () =
  for _ = 1 to int_of_string Sys.argv.(1) do
    try ignore (deep 0) with Stack_overflow -> incr caught
  done;
  Printf.printf "%d\\n" !caught
"""


def ocaml():
    if not shutil.which("ocamlopt"):
        raise Skip("ocamlopt is not installed")
    with open("overflow.ml", "w") as f:
        f.write(OCAML)
    run("ocamlopt", "-o", "overflow", "overflow.ml")
    board = f"unseen{os.getpid()}"
    run(KRON, "patch", "-q", "-o", "patched", "overflow")
    run(KRON, "patch", "-q", "-p", "*deep*%insns", "-o", "insns", "overflow")
    run(KRON, "board", "create", board)
    try:
        for n, command in (
            (20, ["./overflow"]),
            (50, [*record("-b", "64M"), "./overflow"]),
            (50, [*record("-b", "64M", "-F", "*deep*"), "./overflow"]),
            (20, [*record("-b", "64M", "-p", "*deep*%insns"), "./overflow"]),
            (20, [*record("-p", "*deep*%insns count:1"), "./overflow"]),
            (20, [*record("-b", "64M", "-L", "*"), "./overflow"]),
            (5, [*record("--bus", "exact"), "./overflow"]),
            (20, ["./patched"]),
            (20, [*record("-b", "64M"), "./patched"]),
            (3, ["env", f"KRON_BOARD={board}", "./patched"]),
            (1, ["env", f"KRON_BOARD={board}", "./insns"]),
        ):
            need(run(*command, str(n)) == f"{n}\n", f"{command} did not catch {n}")
    finally:
        run(KRON, "board", "rm", board)


with Suite("unseen") as s:
    s.case("SIGPROF reaches the threads that it reached", signals_reach_whom_they_reached, 3)
    full = ("-b", "1M", "--when-full")
    # the books of a wait are kept with signals blocked: half a per cent of the time, where all is waiting
    s.case("… when the pool is full and waited for", signals_reach_whom_they_reached, 20, *full, "wait")
    # signals are blocked for some stores each time that samples go (runtime/core/chunks.c)
    s.case("… when the oldest samples go", signals_reach_whom_they_reached, 15, *full, "wrap")
    s.case("handlers that wait for room do not nest", handlers_do_not_nest, "lane")
    s.case("… on the exact bus", handlers_do_not_nest, "exact")
    s.case("handlers that come at 10 kHz do not, either", fast_handlers_do_not_nest)
    s.case("… when the pool is full and waited for", fast_handlers_do_not_nest, *full, "wait")
    s.case("threads that share their thread data share no lane", shared_thread_data_is_shared_by_nobody, False)
    s.case("… in a file from kron patch", shared_thread_data_is_shared_by_nobody, True)
    s.case("… in a static program", shared_thread_data_is_shared_by_nobody, False, "-static")
    s.case("… in a static file from kron patch", shared_thread_data_is_shared_by_nobody, True, "-static")
    s.case("%fs may be anywhere: a static program", foreign_base_in_static, "-static")
    s.case("… a static-pie", foreign_base_in_static, "-static-pie")
    s.case("… the exact bus", foreign_base_on_bus, "exact")
    s.case("… the device bus", foreign_base_on_device)
    s.case("… constant time", foreign_base, "--constant-time")
    s.case("… counts", foreign_base_with_counts)
    s.case("… counts on the exact bus", foreign_base_with_counts, "--bus", "exact")
    s.case("mlockall() succeeds where it did, and locks no more", locks_what_it_locked, False)
    s.case("… with a large pool", locks_what_it_locked, False, "-b", "256M")
    s.case("… the exact bus", locks_what_it_locked, False, "--bus", "exact")
    s.case("… in a static file from kron patch", locks_what_it_locked, True)
    for what in PLACES:
        s.case(f"the stack's end is seen where it is: {what}", handler_sees_the_end, what)
        s.case(f"… {what}, the exact bus", handler_sees_the_end, what, "--bus", "exact")
    s.case("… constant time", handler_sees_the_end, "entries and exits", "--constant-time")
    s.case("… the device bus", handler_sees_the_end_on_device, "entries and exits")
    s.case("… counts, the device bus", handler_sees_the_end_on_device, "counts")
    s.case("… by handlers for one signal; without one the program dies", other_handlers_and_none)
    s.case("… in files from kron patch", in_patched_files)
    s.case("… in static files from kron patch", in_patched_files, "-static")
    s.case("OCaml catches Stack_overflow", ocaml)
