# SPDX-License-Identifier: MIT
"""functions_program.py - a program whose functions are called as often as it is told, recorded while `kron ctl probe` changes
which of them are traced.  A reader of Program knows how often each must have been called while it was."""
import contextlib
import itertools
import os
import shutil
import subprocess

import truth
from live import interrupt, maps, record_pid, text_is_of_files
from tap import KRON, compile_text, need

THREADS = 3
# n: each thread calls outer n times, which calls inner three times and leaf by a tail call.  With -Os there are
# functions shorter than a jump.
PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
OWN long leaf(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
OWN long inner(long n) { __asm__ volatile("" : "+r"(n)); return n * 3; }
OWN long tiny(void) { __asm__ volatile(""); return 1; }
OWN long outer(long n)
{
    long sum = tiny();
    for (int i = 0; i < 3; i++) sum += inner(n + i);
    return leaf(sum);
}
struct job { pthread_barrier_t begin, end; long n, sum[THREADS]; } job;
static void *run(void *arg)
{
    long me = (long)arg;
    for (;;) {
        pthread_barrier_wait(&job.begin);
        for (long i = 0; i < job.n; i++) job.sum[me] += outer(i);
        pthread_barrier_wait(&job.end);
    }
}
int main(void)
{
    pthread_t t;
    char line[200];
    pthread_barrier_init(&job.begin, 0, THREADS + 1);
    pthread_barrier_init(&job.end, 0, THREADS + 1);
    if (!getenv("ONE_THREAD"))
        for (long i = 0; i < THREADS; i++) pthread_create(&t, 0, run, (void *)i);
    puts("ready"); fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long sum = 0;
        line[strcspn(line, "\\n")] = 0;
        if (line[0] == '/') { /* a library: its `late`, once */
            void *lib = dlopen(line, RTLD_NOW);
            sum = ((long (*)(long))dlsym(lib, "late"))(1);
        } else if (line[0] == 'f') { /* a child calls outer */
            pid_t pid = fork();
            if (!pid) { for (int i = 0; i < 10; i++) sum += outer(i); _exit(sum == 515 ? 0 : 1); }
            int status; waitpid(pid, &status, 0); sum = status;
        } else if (line[0] == 'w') { /* makes its code writable, and changes inner: n * 3 becomes n * 5 */
            char *page = (char *)((unsigned long)inner & -4096);
            if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return 3;
            unsigned char *at = (unsigned char *)inner;
            while (memcmp(at, "\\x48\\x8d\\x04\\x7f", 4)) at++; /* lea (%rdi,%rdi,2),%rax */
            at[3] = 0xbf;
            sum = inner(1);
        } else if (getenv("ONE_THREAD")) {
            for (long i = 0, n = atol(line); i < n; i++) sum += outer(i);
        } else {
            job.n = atol(line);
            memset(job.sum, 0, sizeof(job.sum));
            pthread_barrier_wait(&job.begin);
            pthread_barrier_wait(&job.end);
            for (int i = 0; i < THREADS; i++) sum += job.sum[i];
        }
        printf("%ld\\n", sum); fflush(stdout);
    }
    return 7;
}
"""


def sum_of(n, threads=THREADS):
    return threads * sum(1 + 3 * (3 * i + 3) + 1 for i in range(n))


boards = itertools.count()


def new_board():
    return f"asleep{os.getpid()}x{next(boards)}"


class Program:
    """The program, recorded from its start or attached to; what its functions must have been called, by name."""

    def __init__(self, attached, *options, one=False):
        compile_text("program", PROGRAM, "-DTHREADS=%d" % THREADS, "-O2", "-pthread", "-ldl")
        env = {**os.environ, **({"ONE_THREAD": "1"} if one else {})}
        argv = [os.path.abspath("program")]
        self.threads = 1 if one else THREADS
        self.board = new_board()
        self.recorder = None
        if not attached:
            argv = [KRON, "record", "-q", "-o", "t", "--board", self.board, *options, "--", *argv]
        self.p = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        need(self.p.stdout.readline() == "ready\n", "it does not start")
        if attached:
            self.recorder = record_pid(self.p.pid, "--board", self.board, *options)
        self.calls = dict.fromkeys(("outer", "inner", "leaf", "tiny"), 0)
        self.asleep = set()

    @property
    def pid(self):
        if self.recorder:
            return self.p.pid
        return int(open(f"/proc/{self.p.pid}/task/{self.p.pid}/children").read().split()[0])

    def says(self, line):
        self.p.stdin.write(f"{line}\n")
        self.p.stdin.flush()
        return int(self.p.stdout.readline())

    def run(self, n):
        need(self.says(n) == sum_of(n, self.threads), "what it computes has changed")
        for name, each in (("outer", 1), ("inner", 3), ("leaf", 1), ("tiny", 1)):
            if name not in self.asleep:
                self.calls[name] += n * each * self.threads

    def probe(self, *argv, status=0):
        r = subprocess.run([KRON, "ctl", "--board", self.board, "probe", *argv], capture_output=True, text=True, timeout=60)
        need(r.returncode == status, f"{argv}: {r}")
        return r.stderr

    def rm(self, *names):
        for name in names:
            self.probe("rm", "-F", name)
            self.asleep.add(name)

    def add(self, *names):
        for name in names:
            self.probe("add", "-F", name)
            self.asleep.discard(name)

    def end(self):
        if self.recorder:
            interrupt(self.recorder)
            text_is_of_files(self.p.pid)
        self.p.stdin.close()
        status = self.p.wait(60)
        need(status == 7, f"it ended with {status}")

    def need_calls(self):
        traced = truth.report_calls("t")
        got = {name: traced[name] for name in self.calls}
        need(got == self.calls, f"{got}, and it was {self.calls}")


def text_of(pid, name):
    """The bytes of a function: in the process, and in the file."""
    table = subprocess.run(["nm", "-S", "program"], capture_output=True, text=True, check=True).stdout
    at, size = next((int(w[0], 16), int(w[1], 16)) for w in map(str.split, table.splitlines()) if w[-1] == name)
    base = int(next(m[0] for m in maps(pid) if m[-1].rstrip().endswith("/program")).split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb") as mem, open("program", "rb") as file:
        mem.seek(base + at)
        file.seek(at)  # .text has the same offset in the file, as ld makes it
        return mem.read(size), file.read(size)


# What it computes while functions come and go is what it computes afterwards.
PYTHON = """
import hashlib, json, os, re
def once(i):
    d = {str(k): [k * i, str(k) * 3] for k in range(50)}
    return hashlib.sha256("".join(re.findall(r"[0-9]+", json.dumps(d, sort_keys=True))).encode()).hexdigest()
print("ready", flush=True)
h, g, i = hashlib.sha256(), hashlib.sha256(), 0
while not os.path.exists("over") and i < 100000:
    h.update(once(i % 100).encode())
    i += 1
for k in range(i):
    g.update(once(k % 100).encode())
print("same" if g.digest() == h.digest() else "different", flush=True)
"""


def start_python(*options):
    """(A recorder of python3, which computes; its board's name)"""
    with contextlib.suppress(OSError):
        os.unlink("over")
    board = new_board()
    python3 = shutil.which("python3", path="/usr/bin:/bin")
    argv = [KRON, "record", "-q", "-o", "t", "--board", board, "--when-full", "discard", *options, "--", python3, "-c", PYTHON]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "ready\n", "it does not start")
    return p, board


def end_python(p):
    open("over", "w").close()
    said = p.stdout.read()
    need(p.wait(120) == 0 and said == "same\n", f"{p.returncode}: {said}")
