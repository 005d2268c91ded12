#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron ctl probe add -F: functions that the recording did not choose at its start come, and go again.

Ground truth: the program calls its functions as often as it is told, between one change and the next, and says what it has
computed; so the calls that must be in the trace are known.  What has gone has its file's bytes."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import truth  # noqa: E402
from functions_program import PROGRAM, THREADS, Program, end_python, new_board, start_python, sum_of, text_of  # noqa: E402
from live import info  # noqa: E402
from tap import KRON, Suite, compile_text, need, rnd  # noqa: E402

ALL = {"outer", "inner", "leaf", "tiny"}


def begin(attached, *options, traced=("outer",), one=False):
    p = Program(attached, *options, one=one)
    p.asleep = ALL - set(traced)
    return p


def turn(p, verb, glob, *names, status=0):
    said = p.probe(verb, "-F", glob, status=status)
    for name in names:
        (p.asleep.discard if verb == "add" else p.asleep.add)(name)
    return said


def exact(attached):
    """What comes is counted from then on, and until it goes; globs overlap, and each function is traced once, under one number."""
    p = begin(attached, "-F", "outer")
    p.run(100)
    turn(p, "add", "[il]*", "inner", "leaf")
    p.run(1000)
    turn(p, "add", "*", "tiny")
    p.run(10)
    turn(p, "rm", "[il]*", "inner", "leaf")
    p.run(3000)
    turn(p, "add", "leaf", "leaf")
    p.run(20)
    turn(p, "rm", "*", *ALL)
    for name in ALL:
        now, file = text_of(p.pid, name)
        need(now == file or name == "outer", f"{name} is not as its file has it: {now.hex()}, {file.hex()}")
    p.run(5000)
    turn(p, "add", "*", *ALL)
    p.run(7)
    turn(p, "rm", "outer", "outer")
    p.run(3)
    p.end()
    p.need_calls()
    rows = [line.split() for line in open("t/functions", encoding="utf-8")]
    names = [r[4] for r in rows]
    need(len(names) == len(set(names)), f"a function has two numbers: {rows}")


def under_load(attached):
    """They come and go while all threads are in them: what they compute stays, and no sample is lost or torn."""
    p = begin(attached, "-F", "outer")
    n = 300_000
    p.p.stdin.write(f"{n}\n")
    p.p.stdin.flush()
    end = time.time() + 4
    rounds = 0
    while time.time() < end:
        name = rnd.choice(["inner", "leaf", "tiny", "[ilt]*"])
        for verb in "add", "rm":
            p.probe(verb, "-F", name)
        rounds += 1
    need(int(p.p.stdout.readline()) == sum_of(n), "what it computes has changed")
    need(rounds >= 4, f"{rounds} rounds")
    p.calls["outer"] = THREADS * n
    p.run(10)
    p.end()
    need(truth.report_calls("t")["outer"] == p.calls["outer"], "calls of what was traced all the time")
    need(info()["lost"] == 0, info())


LATE = "long inner_too(long n) { return n + 5; } long late(long n) { return inner_too(n) + 1; }"


def others_come():
    """A library that is loaded later, and a child, have what was added; a library that nobody traces has it by -L."""
    compile_text("late.so", LATE, "-shared", "-fPIC", "-O0")
    p = begin(False, "-F", "outer")
    p.probe("add", "-F", "inner*", "-L", "late.so")
    p.asleep.discard("inner")
    need(p.says(os.path.abspath("late.so")) == 7, "what the library computes has changed")
    need(p.says("f") == 0, "what the child computes has changed")
    p.calls["outer"] += 10
    p.calls["inner"] += 30
    p.run(5)
    p.end()
    p.calls.update(inner_too=1)
    traced = truth.report_calls("t")
    need({k: v for k, v in traced.items() if v} == {k: v for k, v in p.calls.items() if v}, f"{traced}, and it was {p.calls}")


def executes():
    """What is executed later has what was added, if it has such a function."""
    compile_text("program", PROGRAM, "-DTHREADS=%d" % THREADS, "-O2", "-pthread", "-ldl")
    compile_text("first", '#include <stdio.h>\n#include <unistd.h>\n__attribute__((noinline)) void inner(void) { getchar(); }\n'
                          'int main(void) { setvbuf(stdin, 0, _IONBF, 0); puts("first"); fflush(stdout); inner(); '
                          'execl("./program", "program", (char *)0); return 1; }')
    board = new_board()
    env = {**os.environ, "ONE_THREAD": "1"}
    argv = [KRON, "record", "-q", "-o", "t", "--board", board, "-F", "outer", "--", "./first"]
    p = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "first\n", "it does not start")
    subprocess.run([KRON, "ctl", "--board", board, "probe", "add", "-F", "inner"], check=True)
    p.stdin.write("\n")
    p.stdin.flush()
    need(p.stdout.readline() == "ready\n", "it does not execute the other")
    p.stdin.write("10\n")
    p.stdin.close()
    need(int(p.stdout.readline()) == sum_of(10, 1) and p.wait(60) == 7, "what it computes has changed")
    got = truth.report_calls("t")
    need(got["outer"] == 10 and got["inner"] in (30, 31), got)  # first's own had begun


STATIC = """
#include <stdio.h>
__attribute__((noinline, noclone)) long inner(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline, noclone)) long outer(long n) { return inner(n) + inner(n + 1); }
int main(void)
{
    char line[100];
    long n, sum;
    puts("ready"); fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        sscanf(line, "%ld", &n);
        for (sum = 0; n--;) sum += outer(n);
        printf("%ld\\n", sum); fflush(stdout);
    }
    return 7;
}
"""


def other_kinds(how, flags, *options):
    """Static programs; recordings that began with probes alone; another clock; a board's bus."""
    compile_text("other", STATIC, "-O2", *flags)
    board = new_board()
    p = subprocess.Popen([KRON, "record", "-q", "-o", "t", "--board", board, *options, "--", "./other"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "ready\n", "it does not start")
    for verb, n in (None, 10), ("add", 100), ("rm", 1000), ("add", 1):
        if verb:
            subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", "inner"], check=True, timeout=60)
        p.stdin.write(f"{n}\n")
        p.stdin.flush()
        need(int(p.stdout.readline()) == n * (n - 1) + 3 * n, "what it computes has changed")
    p.stdin.close()
    need(p.wait(60) == 7, "its status")
    got = truth.report_calls("t")
    need(got["inner"] == 202 and got.get("outer", 1111) == 1111, f"{how}: {got}")


def waited_for():
    """What a trigger of the trace waits for has not failed to come while nobody would have seen it."""
    p = begin(False, "-F", "outer", one=True)
    for glob in None, "inner":
        if glob:
            turn(p, "add", glob, glob)
        for _ in range(3):
            p.run(1)
            time.sleep(0.05)
    p.end()
    p.need_calls()
    r = subprocess.run([KRON, "report", "--trigger", "entry=outer without inner within 20ms", "t"], capture_output=True, text=True, check=True)
    need("the trigger never fires" in r.stderr, r)
    said = subprocess.run([KRON, "report", "t"], capture_output=True, text=True, check=True).stderr
    need("1 function was traced for part of the time only" in said, said)


def whole_library():
    """All of the C library after two of its functions, whose short jumps may land in others; what cannot be added is said."""
    p = begin(False, "-F", "outer", one=True)
    for glob, rest in ("memcpy", True), ("qsort*", False), ("*", True):
        r = subprocess.run([KRON, "ctl", "--board", p.board, "probe", "add", "-F", glob, "-L", "libc.so*"], capture_output=True, text=True,
                           timeout=60)
        need(r.returncode == 0 and ("functions are not added" in r.stdout) == rest, f"{glob}: {r}")
        p.asleep -= ALL if glob == "*" else set()
        p.run(10)
    p.run(100)
    p.probe("rm", "-F", "*")
    p.asleep = set(ALL)
    p.run(1000)
    p.end()
    p.need_calls()
    r = truth.report_calls("t")
    need(r.get("fgets", 0) >= 1 and "memcpy" not in {k for k, v in r.items() if v}, r)


def refusals():
    p = begin(False, "-F", "outer")
    need("lost is no function of the program, nor of the libraries that are traced" in turn(p, "add", "lost", status=1), "lost")
    need("all that outer means is traced already" in turn(p, "add", "outer", status=1), "outer")
    turn(p, "add", "inner", "inner")
    need("-F inner was added already" in turn(p, "add", "inner", status=1), "twice")
    need("all that in* means is traced already" in turn(p, "add", "in*", status=1), "by another glob")
    turn(p, "add", "[lt]*", "leaf", "tiny")
    need("`kron ctl probe rm -F '[lt]*'`" in turn(p, "rm", "leaf", status=1), "some of them")
    p.probe("rm", "-F", "leaf", "-L", "x", status=2)
    p.probe("add", "inner", "-L", "x", status=2)
    listed = subprocess.run([KRON, "ctl", "--board", p.board, "probe", "list"], capture_output=True, text=True, check=True).stdout
    need("-F inner" in listed and "-F [lt]*" in listed, listed)
    p.run(3)
    p.end()
    p.need_calls()
    changes = subprocess.run([KRON, "info", "t"], capture_output=True, text=True, check=True).stdout
    need("added    -F inner" in changes, changes)


def python():
    """A real program and its libraries, under load, while all of their functions come and go."""
    p, board = start_python("-F", "main")
    for glob in "PyDict_*", "*", "_PyEval_EvalFrameDefault", "*":
        for argv in ("add", "-F", glob, "-L", "lib*"), ("rm", "-F", glob):
            r = subprocess.run([KRON, "ctl", "--board", board, "probe", *argv], capture_output=True, text=True, timeout=60)
            need(r.returncode == 0, f"{argv}: {r}")
    end_python(p)
    need(truth.report_calls("t")["PyDict_SetItem"] > 0, "nothing of it was traced")


def main():
    with Suite("functions_added") as s:
        for attached in False, True:
            how = "that is attached to" if attached else "from its start"
            s.case(f"calls from then on, and until it goes: a program {how}", exact, attached)
            s.case(f"under load: a program {how}", under_load, attached)
        s.case("a library and a child that come later", others_come)
        s.case("a program that is executed later", executes)
        s.case("a static program", other_kinds, "static", ["-static"], "-F", "outer")
        s.case("a recording that began with probes alone", other_kinds, "probes", [], "-p", "other:outer")
        s.case("readings of the clock that are shared", other_kinds, "sparse", [], "--clock", "every:16", "-F", "outer")
        s.case("a board's bus", other_kinds, "exact", [], "--bus", "exact", "--when-full", "wait", "-F", "outer")
        s.case("what a trigger waits for that is asked of the trace", waited_for)
        s.case("a library after some of its functions", whole_library)
        s.case("what cannot be is refused in a sentence", refusals)
        s.case("python3 and its libraries", python)


if __name__ == "__main__":
    main()
