#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""signals.py - signals that come while a process is attached to, and while it is left.

Ground truth: the program's own word, that it stops when it is asked to, and that it goes on."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import ended, info, interrupt, maps, record_pid, text_is_of_files  # noqa: E402
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


# A handler that waits for a byte, and returns to an instruction that kron had moved, or to any other.
WAITS = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void store(int *to, int what);
__asm__(".globl store; .type store, @function; store: mov %esi, (%rdi); mov %rdi, %rax; mov %rax, %rdx; ret;"
        ".size store, .-store; .p2align 4");
static int *page;
static void handle(int signal) {
    char c;
    if (write(1, "in\\n", 3) != 3 || read(0, &c, 1) != 1) _exit(2);
    if (signal == SIGSEGV) mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
int main(int argc, char **argv) {
    struct sigaction act = {.sa_handler = handle, .sa_flags = argc > 2 ? SA_ONSTACK : 0};
    stack_t stack = {.ss_size = 65536, .ss_sp = malloc(65536)};
    char c;
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGFPE, &act, NULL);
    setbuf(stdout, NULL);
    puts("ready");
    while (read(0, &c, 1) == 1) {
        mprotect(page, 4096, PROT_READ);
        if (!strcmp(argv[1], "fault")) store(page, c);
        else raise(SIGFPE);
        printf("out %d\\n", *page);
    }
    return 0;
}
"""


def runs_meanwhile(*how):
    """The handler was entered by way of kron's runtime, and returns when that has gone."""
    compile_text("w", WAITS)
    p = subprocess.Popen(["./w", *how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        need(p.stdout.readline() == b"ready\n", "it did not start")
        for c in b"ab":
            r = record_pid(p.pid, "-L", "*")
            p.stdin.write(bytes([c]))
            need(p.stdout.readline() == b"in\n", "no handler")
            interrupt(r)
            need(info()["attach"]["detached"], "kron has not left it")
            need(not [m for m in maps(p.pid) if "/memfd:kron" in m[-1] or m[0].startswith(("7e8", "7e9", "7ea"))], "something of kron stays")
            text_is_of_files(p.pid)
            p.stdin.write(b"x")
            said = p.stdout.readline()
            need(said == b"out %d\n" % (c if how[0] == "fault" else 0), f"{said}, {p.poll()}")
        p.stdin.close()
        need(p.wait(20) == 0, f"it ended with {p.returncode}")
    finally:
        p.kill()
        p.wait()


RECEIVES = """
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
__attribute__((noinline)) long waits(int s) { char c; return recv(s, &c, 1, 0); }
int main(void) {
    struct timeval limit = {1, 500000};
    struct timespec a, b;
    int s[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, s);
    setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    puts("ready"); fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &a);
    long n = waits(s[0]);
    int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%ld %d %ld\\n", n, error == EAGAIN, (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
    return 0;
}
"""


def timeout_of_a_socket():
    """A stop does not end the call, nor shorten it: it waits for all of the time again, as kron-record(1) says."""
    compile_text("p", RECEIVES)
    p = subprocess.Popen(["./p"], stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == "ready\n", "it did not start")
        time.sleep(0.5)
        ended(record_pid(p.pid, "--for", "300ms"))
        text, _ = p.communicate(timeout=60)
        n, is_timeout, ms = (int(x) for x in text.split())
        need(n == -1 and is_timeout, text)
        need(ms >= 1500 + 500 + 300, f"the call took {ms} ms")
    finally:
        p.kill()
        p.communicate()


with Suite("signals") as s:
    s.case("a signal is always on its way", storm)
    s.case("a handler returns when kron has left", runs_meanwhile, "kill")
    s.case("a handler on a stack of its own does", runs_meanwhile, "kill", "stack")
    s.case("the handler of a fault in a probe does", runs_meanwhile, "fault")
    s.case("a socket's timeout begins anew after each stop, and nobody sees EINTR", timeout_of_a_socket)
    s.case("on a stack of its own, too", runs_meanwhile, "fault", "stack")
