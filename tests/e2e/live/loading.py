#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""loading.py - a program that loads and unloads libraries all the time, or has its libraries' locks, while it is
attached to and left.

Ground truth: the program's own results, that it goes on, and the kernel's list of what is mapped."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import info, interrupt, record_pid, text_is_of_files  # noqa: E402
from tap import KRON, Suite, compile_text, need, wait_for  # noqa: E402

LIBRARIES, FUNCTIONS = 6, 20
PROGRAM = """
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
static volatile int over;
static void end(int signal) { (void)signal; over = 1; }
int main(void) {
    signal(SIGTERM, end);
    puts("ready"); fflush(stdout);
    for (unsigned n = 0; !over; n++) {
        char name[32];
        void *library;
        int (*go)(int), sum = 0;
        sprintf(name, "./l%u.so", n % 6);
        library = dlopen(name, RTLD_NOW);
        if (!library) return 3;
        go = (int (*)(int))dlsym(library, "go");
        for (int i = 0; i < 50; i++) sum += go(i);
        if (sum != 20 * 50 + 190 * 49 * 25) return 4;
        dlclose(library);
    }
    return 0;
}
"""


def library(i):
    """All of them have the same code, and come to the same address: only the file tells them apart."""
    functions = [f"static __attribute__((noinline)) int f{k}(int x) {{ return x * {k} + 1; }}" for k in range(FUNCTIONS)]
    functions.append(f"int go(int x) {{ return {' + '.join(f'f{k}(x)' for k in range(FUNCTIONS))}; }}")
    compile_text(f"l{i}.so", "\n".join(functions), "-shared", "-fPIC", "-O0")


def come_and_go():
    for i in range(LIBRARIES):
        library(i)
    compile_text("p", PROGRAM, "-ldl")
    p = subprocess.Popen(["./p"], stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == "ready\n", "it did not start")
        for i in range(40):
            run = [KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "-L", "l*", "--for", f"{random.randrange(1, 6)}ms"]
            r = subprocess.run(run, capture_output=True, text=True, timeout=120)
            need(p.poll() is None, f"round {i}: it ended with {p.returncode}")
            need(r.returncode == 0, f"round {i}: {r.returncode}: {r.stderr}")
            with open(f"/proc/{p.pid}/maps") as f:
                left = [line for line in f if "kron" in line and os.getcwd() not in line]
            need(not left, f"round {i}: left in it: {left}")
    finally:
        p.terminate()
        p.communicate(timeout=60)
    need(p.returncode == 0, f"it ended with {p.returncode}")


LOCKS = """
#define _GNU_SOURCE
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile int over, held;
static int hold(struct dl_phdr_info *i, size_t n, void *arg) {
    (void)i, (void)n, (void)arg;
    held = 1;
    while (!over) usleep(1000);
    return 1;
}
static void *loader(void *arg) { dl_iterate_phdr(hold, 0); return arg; }
static void *allocate(void *arg) { /* too large for what a thread keeps for itself */
    while (!over) {
        char *p = malloc(3000);
        memset(p, 7, 3000);
        if (p[2999] != 7) _exit(3);
        free(p);
    }
    return arg;
}
int main(void) {
    pthread_t t[4];
    sigset_t set;
    int signal;
    mallopt(M_ARENA_MAX, 1);
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    pthread_create(&t[0], 0, loader, 0);
    for (int i = 1; i < 4; i++) pthread_create(&t[i], 0, allocate, 0);
    while (!held) usleep(1000);
    puts("ready"); fflush(stdout);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (sigwait(&set, &signal)) return 4;
    over = 1;
    for (int i = 0; i < 4; i++) if (pthread_join(t[i], 0)) return 5;
    return 0;
}
"""


def locks():
    """A thread has the loader's lock from beginning to end, another one malloc's at nearly every moment; all signals are blocked."""
    compile_text("locks", LOCKS, "-pthread")
    p = subprocess.Popen(["./locks"], stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == "ready\n", "it did not start")
        for _ in range(6):
            r = subprocess.run([KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "-L", "*", "--for", "30ms"],
                               capture_output=True, text=True, timeout=120)
            need(p.poll() is None, f"it ended with {p.returncode}")
            need(r.returncode == 0, f"{r.returncode}: {r.stderr}")
            need(info()["samples"] > 0, "no samples")
        text_is_of_files(p.pid)
    finally:
        p.terminate()
        p.communicate(timeout=60)
    need(p.returncode == 0, f"it ended with {p.returncode}")


LATE = """
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile int over;
static void end(int s) { (void)s; over = 1; }
int main(void) {
    signal(SIGTERM, end);
    puts("ready"); fflush(stdout);
    while (access("load", F_OK)) usleep(1000);
    void *h = dlopen("./late.so", RTLD_NOW);
    int (*f)(int) = h ? (int (*)(int))dlsym(h, "late") : 0;
    if (!f) return 3;
    while (!over) { if (f(3) != 4) return 4; fclose(fopen("called", "w")); usleep(1000); }
    return 0;
}
"""


def late_library():
    """A library that comes while the process is recorded is recorded, too."""
    compile_text("late", LATE, "-O1")
    compile_text("late.so", "int late(int n) { volatile int k = n; return k + 1; }", "-O1", "-shared", "-fPIC")
    p = subprocess.Popen(["./late"], stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == "ready\n", "it did not start")
        r = record_pid(p.pid, "-L", "late*")
        open("load", "w").close()
        wait_for(lambda: os.path.exists("called"), "the library to be called")
        interrupt(r)
        text_is_of_files(p.pid)
        report = subprocess.run([KRON, "report", "t"], capture_output=True, text=True, check=True).stdout
        need("late [late.so]" in report, report)
    finally:
        p.terminate()
        p.communicate(timeout=60)
    need(p.returncode == 0, f"it ended with {p.returncode}")


with Suite("loading") as s:
    s.case("the locks of loader and malloc are held, all signals blocked", locks)
    s.case("libraries come and go", come_and_go)
    s.case("a library that is loaded meanwhile", late_library)
