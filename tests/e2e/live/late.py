#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron record --no-wait: the program starts at once, and what has no plan yet is recorded as soon as it has one.

Ground truth: the program knows how often it calls what, and does so when it is told; whether its code has probes
is read from its memory."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need, wait_for  # noqa: E402

THREADS = 3
PLUG = """
__attribute__((noinline)) unsigned long plugged(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 3 + 1; }
"""
PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define FUNCTION(name, k) \\
    __attribute__((noinline)) unsigned long name(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * k + 1; }
FUNCTION(before, 3)
FUNCTION(counted, 5)
FUNCTION(after, 7)
static unsigned long (*plugged)(unsigned long);
/* Runs in it all the time, while it gets its probes. */
static void *run(void *arg)
{
    for (unsigned long n = 0; access("go", F_OK); n++)
        for (int i = 0; i < 1000; i++) if (counted(n) != n * 5 + 1) abort();
    for (unsigned long n = 0; n < 1000; n++) if (after(n) != n * 7 + 1 || plugged(n) != n * 3 + 1) abort();
    return arg;
}
int main(void)
{
    pthread_t t[THREADS];
    int status;
    pid_t pid;
    before(1);
    plugged = (unsigned long (*)(unsigned long))dlsym(dlopen("./plug.so", RTLD_NOW), "plugged");
    pid = fork();
    for (long i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, 0);
    printf("%d\\n", (int)getpid()); fflush(stdout);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    if (!pid) _exit(0);
    return waitpid(pid, &status, 0) != pid || status;
}
"""


def record(*argv):
    return subprocess.Popen([KRON, "record", "-o", "t", "-L", "plug.so", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "XDG_CACHE_HOME": os.path.abspath("cache")})


def patched(pid, name):
    """Is the text of this file another one in its memory?"""
    with open(f"/proc/{pid}/mem", "rb") as mem, open(f"/proc/{pid}/maps") as maps:
        for m in (line.split() for line in maps):
            if "x" not in m[1] or not m[-1].endswith("/" + name):
                continue
            start, end = (int(x, 16) for x in m[0].split("-"))
            mem.seek(start)
            have = mem.read(end - start)
            with open(m[-1], "rb") as f:
                f.seek(int(m[2], 16))
                wanted = f.read(end - start)
            return have[: len(wanted)] != wanted
    return False


def calls():
    r = subprocess.run([KRON, "report", "--json", "t"], capture_output=True, text=True, check=True)
    return {f["function"]: f["calls"] for f in json.loads(r.stdout)}


def late():
    r = subprocess.run([KRON, "info", "--json", "t"], capture_output=True, text=True, check=True)
    return {os.path.basename(m["path"]): m["at_s"] for m in json.loads(r.stdout)["late_modules"]}


def run(*options):
    """What kron said."""
    for name in ("go", "stopped"):
        if os.path.exists(name):
            os.unlink(name)
    r = record(*options, "./program")
    pids = [int(r.stdout.readline()), int(r.stdout.readline())]
    for pid in pids:
        for name in "program", "plug.so":
            wait_for(lambda p=pid, n=name: patched(p, n), f"probes in {name} of a running process")
    open("go", "w").close()
    _, said = r.communicate(timeout=120)
    need(r.returncode == 0, f"it ended with {r.returncode}: {said}")
    need("untraced" not in said, said)
    return said


def prepare():
    os.mkdir("cache")
    compile_text("plug.so", PLUG, "-shared", "-fPIC")
    compile_text("program", PROGRAM, "-pthread", "-ldl", f"-DTHREADS={THREADS}")


def cold():
    """It has run before its plans were there; what was called when it had its probes is all there."""
    prepare()
    run("--no-wait")
    seen, since = calls(), late()
    need("before" not in seen, f"its first call is there: who waited for whom? {seen}")
    need(seen["after"] == seen["plugged"] == 2 * THREADS * 1000, seen)
    need(set(since) == {"program", "plug.so"} and all(s > 0 for s in since.values()), since)


def warm():
    """With plans in the cache nothing is late, and nothing is missing; without the option neither."""
    prepare()
    for options in [], ["--no-wait"]:
        run(*options)
        seen = calls()
        need(seen["before"] == 1 and seen["after"] == seen["plugged"] == 2 * THREADS * 1000, seen)
        need(not late(), late())


def refused():
    prepare()
    for options, sentence in ((["--pid", "1"], "with --pid nothing waits"), (["--tactics", "+int3", "./program"], "cannot place traps")):
        r = record("--no-wait", *options)
        _, said = r.communicate(timeout=60)
        need(r.returncode == 125 and sentence in said, f"{r.returncode}: {said}")


def short():
    """It ends when it likes: what never got its probes is named."""
    os.mkdir("cache")
    compile_text("program", "int main(void) { return 7; }")
    r = record("--no-wait", "./program")
    _, said = r.communicate(timeout=60)
    need(r.returncode == 7, f"{r.returncode}: {said}")
    need("program" in late() or "before its plan was ready (--no-wait)" in said, said)


with Suite("late") as s:
    s.case("a cold cache", cold)
    s.case("a warm one", warm)
    s.case("a program that ends at once", short)
    s.case("what cannot be is refused", refused)
