#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""signals.py - signals that come while a process is attached to, and while it is left.

Ground truth: the program's own word, that it stops when it is asked to, and that it goes on."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

# Two threads with a signal each tenth of a millisecond: one is nearly always on its way.
STORM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void handler(int signal) { (void)signal; }
__attribute__((noinline)) unsigned long counted(unsigned long n) { __asm__ volatile(""); return n + 1; }
static void *work(void *arg) {
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    struct itimerspec every = {{0, 100000}, {0, 100000}};
    timer_t timer;
    ev._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL)) abort();
    for (unsigned long n = 0;;) n = counted(n);
    return arg;
}
int main(void) {
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    pthread_t t[2];
    sigaction(SIGRTMIN, &act, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, NULL);
    puts("ready"); fflush(stdout);
    for (;;) pause();
}
"""


def storm():
    """The kernel forgets a stop that was asked for where a signal's own stop had begun."""
    compile_text("p", STORM, "-pthread")
    p = subprocess.Popen(["./p"], stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == "ready\n", "it did not start")
        for i in range(40):
            run = [KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "-F", "counted", "--for", "1ms"]
            r = subprocess.run(run, capture_output=True, text=True, timeout=120)
            need(r.returncode == 0, f"round {i}: {r.returncode}: {r.stderr}")
            need(p.poll() is None, f"round {i}: it ended with {p.returncode}")
    finally:
        p.kill()
        p.communicate()


with Suite("signals") as s:
    s.case("a signal is always on its way", storm)
