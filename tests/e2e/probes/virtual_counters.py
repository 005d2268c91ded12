#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""count:16 to count:8191: the virtual counters of the lane bus.

Ground truth: how often the program makes its calls, by its own loops; and the resource counters, which count
the same places in the same run."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, children_of, compile_text, need, truth, wait_for  # noqa: E402

PROGRAM = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long work(long n) { __asm__ volatile("" ::: "memory"); return n % 3 ? n + 1 : n - 1; }
static long sum;
static void handler(int s) { sum += work(s); }
static void *run(void *arg)
{
    for (long i = 0; i < 100000; i++) work(i);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, run, 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 1000; i++) raise(SIGUSR1);
    if (!fork()) { run(0); _exit(0); }
    wait(0);
    if (argc > 1) { puts("done"); fflush(stdout); getchar(); }
    return 0;
}
"""
CALLS = 4 * 100000 + 1000


def record(*options, program="./p", status=0, trace="t"):
    argv = [KRON, "record", "-o", trace, "-q", *options, "--", *program.split()]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    need(r.returncode == status, f"{options}: {r.returncode}: {r.stderr}")
    return r.stderr


def probes(*specs):
    return [x for s in specs for x in ("-p", s)]


def counted(trace="t"):
    info = truth.kron_json("info", trace)
    numbers = {i: n for i, n in enumerate(info["counters"]) if n}
    return numbers | {int(i): n for i, n in info["virtual_counters"].items()}


def exact(*flags):
    compile_text("p", PROGRAM, "-pthread", *flags)
    record(*probes("work count:16", "work count:3", "work%return count:8191", "handler count:4095"))
    got = counted()
    need(got == {3: CALLS, 16: CALLS, 8191: CALLS, 4095: 1000}, got)


def one_for_many():
    """Probes that name one counter add up in it."""
    compile_text("p", PROGRAM, "-pthread")
    record(*probes("work count:77", "work%return count:77", "handler count:77"))
    need(counted() == {77: 2 * CALLS + 1000}, counted())


def every_block():
    """Of a real program, in the middle of its functions: the same as a resource counter's, and the same output."""
    script = "for ((i = 0; i < 300; i++)); do x=${i//1/a}; case $x in *a*) echo $x;; esac; done"
    plain = subprocess.run(["bash", "-c", script], capture_output=True).stdout
    argv = [KRON, "record", "-o", "t", "-q", *probes("*%blocks count:1000", "*%blocks count:5", "*%branches count:8000")]
    r = subprocess.run([*argv, "--", "bash", "-c", script], capture_output=True)
    need(r.returncode == 0 and r.stdout == plain, r.stderr)
    got = counted()
    need(got[1000] == got[5] > 100000 and got[8000] > 10000, got)


def all_of_them():
    """Thousands of counters at once, each with its own number: as many functions as have it."""
    n = 3000
    text = "".join(f"__attribute__((noinline)) int f{i}(int x) {{ return x * {i + 3} + {i}; }}\n" for i in range(n))
    calls = "".join(f"for (int i = 0; i <= {i}; i += 100) s += f{i}(i);\n" for i in range(n))
    compile_text("many", f"{text}int main(void) {{ volatile int s = 0; {calls} return 0; }}", "-O1")
    with open("probes", "w") as f:
        f.writelines(f"f{i} count:{8191 - i}\n" for i in range(n))
    record("-P", "probes", program="./many")
    need(counted() == {8191 - i: i // 100 + 1 for i in range(n)}, "a function has another number of calls")


def recorder_killed():
    compile_text("p", PROGRAM, "-pthread")
    argv = [KRON, "record", "-o", "t", "-q", *probes("work count:500"), "--", "./p", "wait"]
    r = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    need(r.stdout.readline() == b"done\n", "it did not start")
    child = wait_for(lambda: children_of(r.pid), "the program")
    r.kill()
    r.wait()
    subprocess.run([KRON, "recover", "t"], check=True, capture_output=True)
    for pid in child:
        os.kill(pid, signal.SIGKILL)
    r.stdin.close(), r.stdout.close()
    need(counted() == {500: CALLS}, counted())


def refused():
    compile_text("p", PROGRAM, "-pthread")
    need("on the lane bus only" in record("--bus", "exact", *probes("work count:16"), status=125), "no reason")
    need("0 to 8191" in record(*probes("work count:8192"), status=125), "no reason")
    r = subprocess.run([KRON, "patch", "-p", "work count:16", "-o", "q", "p"], capture_output=True, text=True)
    need(r.returncode == 2 and "for `kron record`" in r.stderr, f"{r.returncode}: {r.stderr}")


with Suite("virtual counters") as s:
    s.case("threads, handlers and a child", exact)
    s.case("a static program", exact, "-static")
    s.case("one counter of several probes", one_for_many)
    s.case("every block of a program", every_block)
    s.case("three thousand counters", all_of_them)
    s.case("the recorder is killed", recorder_killed)
    s.case("where there are none it is refused", refused)
