#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""Processes under seccomp filters: attached to and left, with not one system call that the filter would see.

The filters are written by hand, in BPF, and kill the process for whatever the program itself does not do; also for
restart_syscall, with which the kernel goes on with a sleep that was interrupted.  Ground truth: they live, what they count
and measure themselves, and their maps and text."""
import contextlib
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import begin_record_pid, info, interrupt, maps, need_unbroken, numbers, record_pid, surgeons, text_is_of_files  # noqa: E402
from tap import KRON, Suite, compile_c, compile_text, need, need_root, wait_for  # noqa: E402

# seccomp WAY: kill, errno, threads (more of them later), late (at the word), strict.  A letter ends it.
PROGRAM = """
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static volatile int wrong;
static int there; /* threads that have made the calls of their start; atomic */
__attribute__((noinline)) unsigned long counted(unsigned long n) { sink += n; return n + 1; }
static void install(int action, int threads) {
    static const int few[] = {SYS_read, SYS_write, SYS_futex, SYS_clock_nanosleep, SYS_poll, SYS_exit, SYS_exit_group};
    static const int many[] = {SYS_clone3, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_rt_sigprocmask, SYS_set_robust_list,
                               SYS_rseq, SYS_madvise};
    struct sock_filter f[64];
    unsigned n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, few[i], 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    for (unsigned i = 0; threads && i < sizeof(many) / sizeof(many[0]); i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, many[i], 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    struct sock_fprog p = {(unsigned short)n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p))
        exit(7);
}
static void pause_ms(int ms) {
    struct timespec ts = {0, ms * 1000000L};
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL)) wrong = 1;
}
static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}
static void *work(void *arg) {
    unsigned long n = (unsigned long)arg << 32;
    __atomic_add_fetch(&there, 1, __ATOMIC_SEQ_CST);
    for (;;) { n = counted(n); if (n % 8 == 0) pause_ms(1); }
    return NULL;
}
/* as long as they were asked to, however often they are stopped */
static void *naps(void *arg) {
    struct timespec ts = {0, 400000000};
    (void)arg;
    __atomic_add_fetch(&there, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        double t = now();
        if (poll(NULL, 0, 400)) wrong = 2;
        if (now() - t < 0.399) wrong = 3;
        t = now();
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL)) wrong = 4;
        if (now() - t < 0.399) wrong = 5;
    }
    return NULL;
}
int main(int argc, char **argv) {
    const char *way = argv[1];
    pthread_t t[4];
    char c;
    (void)argc;
    setbuf(stdout, NULL);
    pthread_create(&t[0], NULL, work, (void *)1);
    pthread_create(&t[1], NULL, work, (void *)2);
    pthread_create(&t[2], NULL, naps, NULL);
    while (__atomic_load_n(&there, __ATOMIC_SEQ_CST) < 3) usleep(1000);
    if (strcmp(way, "late"))
        install(!strcmp(way, "errno") ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS, !strcmp(way, "threads"));
    write(1, "ready\\n", 6);
    while (read(0, &c, 1) == 1 && c != 'q') {
        if (c == 'f') install(SECCOMP_RET_KILL_PROCESS, 0);
        if (c == 't') pthread_create(&t[3], NULL, work, (void *)3);
        write(1, "done\\n", 5);
    }
    _exit(wrong);
}
"""


class Target:
    def __init__(self, way, program="./seccomp", before=None):
        self.p = subprocess.Popen([program, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, preexec_fn=before)
        self.pid = self.p.pid

    def __enter__(self):
        need(self.p.stdout.readline() == b"ready\n", "it did not start")
        return self

    def say(self, letter):
        self.p.stdin.write(letter)
        need(self.p.stdout.readline() == b"done\n", f"it does not answer: {self.p.poll()}")

    def __exit__(self, *exc):
        if exc[0]:
            self.p.kill()
        else:
            self.p.stdin.write(b"q")
        self.p.wait(60)
        self.p.stdin.close(), self.p.stdout.close()
        need(exc[0] or self.p.returncode == 0, f"it ended with {self.p.returncode}")


def ours(pid):
    return [m for m in maps(pid) if re.search("memfd:kron|shm/kron|libkron", m[-1]) or m[0].startswith(("7e8", "7e9", "7ea"))]


def is_left(pid):
    need(not ours(pid), f"something of kron stays: {ours(pid)}")
    text_is_of_files(pid)


def naps(pid):
    """How often each of its threads has gone to sleep."""
    seen = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as f:
            seen[tid] = int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", f.read())[1])
    return seen


def goes_on(pid, threads=2):
    """So many threads count on: they sleep a little after every eight calls."""
    before = naps(pid)
    wait_for(lambda: sum(n > before.get(t, 0) + 4 for t, n in naps(pid).items()) >= threads, "its threads")


def counts(least):
    seen = {t: v for t, v in numbers().items() if len(v) > 16}
    need(len(seen) >= least, f"{len(seen)} threads count")
    for thread, v in seen.items():
        need_unbroken(v, f"thread {thread}")
        need(len({n >> 32 for n in v}) == 1, f"thread {thread} has calls of another")


def recorded(program, way):
    need_root()
    with Target(way, program) as t:
        for _ in range(5):
            r = record_pid(t.pid, "-p", "counted n=$arg1")
            goes_on(t.pid)
            said = interrupt(r)
            need("as before" in said, said)
            is_left(t.pid)
            goes_on(t.pid)
            need(info()["attach"]["detached"], info()["attach"])
            counts(2)
        r = record_pid(t.pid, "-L", "*")
        goes_on(t.pid)
        need("as before" in interrupt(r), "it is not left")
        is_left(t.pid)


def new_threads(program):
    """One that comes under the filter, while it is recorded, has its own number."""
    need_root()
    with Target("threads", program) as t:
        r = record_pid(t.pid, "-p", "counted n=$arg1")
        t.say(b"t")
        goes_on(t.pid, 3)
        interrupt(r)
        is_left(t.pid)
        counts(3)


def killed(program):
    need_root()
    with Target("kill", program) as t:
        for turn in range(10):
            r = record_pid(t.pid, "-F", "counted")
            time.sleep(turn * 0.01)
            r.kill()
            r.wait(), r.stderr.close()
            wait_for(lambda: not surgeons(), "the end of its surgeon")
            is_left(t.pid)


def comes_meanwhile(program):
    """A filter that it installs while it is recorded."""
    need_root()
    with Target("late", program) as t:
        r = record_pid(t.pid, "-p", "counted n=$arg1")
        goes_on(t.pid)
        t.say(b"f")
        goes_on(t.pid)
        need("as before" in interrupt(r), "it is not left")
        is_left(t.pid)
        counts(2)


def comes_at_once(program):
    """Just after they stood still: who has yet to go on with a sleep needs a system call for that, which it forbids."""
    need_root()
    cpu = min(os.sched_getaffinity(0))
    with busy_on(cpu):
        for is_left_first in [False, True] * 2:
            comes_first(program, cpu, is_left_first)


@contextlib.contextmanager
def busy_on(cpu):
    p = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    os.sched_setaffinity(p.pid, {cpu})
    try:
        yield
    finally:
        p.kill(), p.wait()


def comes_first(program, cpu, is_left_first):
    """The thread with the filter gets the processor before those that sleep, which come only when nobody else wants it."""
    with Target("late", program) as t:
        threads = set(map(int, os.listdir(f"/proc/{t.pid}/task")))
        for tid in threads:
            os.sched_setaffinity(tid, {cpu})
        for tid in threads - {t.pid}:
            os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
        r = begin_record_pid(t.pid, "-p", "counted n=$arg1")
        if is_left_first:
            need("recording" in r.stderr.readline(), "it does not record")
            interrupt(r)
        else:
            # they stand still, and the filter is what the first one does when it goes on
            wait_for(lambda: ours(t.pid), "kron in it")
        t.say(b"f")
        for tid in threads - {t.pid}:  # it has come
            os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))
        goes_on(t.pid)
        if not is_left_first:
            interrupt(r)


def for_all_threads(linking):
    """A thread may be in the middle of its first call when another one installs a filter for all of them."""
    compile_c("filter_all", "bins/filter_all.c", *linking)
    for options in [], ["--when-full", "wait"], ["--bus", "exact"]:
        for _ in range(20):
            r = subprocess.run(
                [KRON, "record", "-q", "-o", "t", "-F", "counted", *options, "--", "./filter_all"],
                capture_output=True, text=True, timeout=60,
            )
            need(r.returncode == 0, f"{options}: it ended with {r.returncode}: {r.stderr}")
            i = info()
            need(i["samples"] + i["lost"] == 600_000, f"{options}: {i['samples']} samples, {i['lost']} lost")
            # the chunks that were there at the start have room for 52,000; how many come later is the recorder's luck
            need(i["samples"] > 40_000 or "--bus" in options, f"{options}: {i['lost']} lost")


def drop():
    os.setgroups([]), os.setgid(65534), os.setuid(65534)


def without_rights(program):
    """Who may not lift it does nothing; when it comes meanwhile, the text is given back and nothing is run there."""
    need_root()
    os.chmod(".", 0o777), os.chmod("..", 0o755)
    env = {**os.environ, "XDG_CACHE_HOME": os.getcwd()}
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", KRON, "record", "-o", "t"]
    with Target("kill", program, before=drop) as t:
        r = subprocess.run([*as_nobody, "--pid", str(t.pid)], capture_output=True, text=True, env=env, timeout=60)
        need(r.returncode == 125 and "is under a seccomp filter" in r.stderr and "as root" in r.stderr, r.stderr)
        need(len(r.stderr.strip().splitlines()) == 1, f"more than a sentence: {r.stderr}")
        is_left(t.pid)
    with Target("late", program, before=drop) as t:
        r = subprocess.Popen([*as_nobody, "-F", "counted", "--pid", str(t.pid)], stderr=subprocess.PIPE, text=True, env=env)
        line = r.stderr.readline()
        need("recording" in line, line)
        t.say(b"f")
        r.send_signal(2)
        said = r.communicate(timeout=60)[1]
        need("has come under a seccomp filter" in said and "its code is what it was" in said, said)
        attached = info()["attach"]
        need(not attached["detached"] and "seccomp" in attached["reason"], attached)
        text_is_of_files(t.pid, stays=True)
        goes_on(t.pid)


def strict():
    """No probe could read the clock there."""
    compile_text(
        "s",
        """
        #include <linux/seccomp.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(void) {
            char c;
            if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) || write(1, "r", 1) < 0) return 1;
            read(0, &c, 1);
            syscall(SYS_exit, 0);
        }
        """,
        "-Wno-unused-result",
    )
    p = subprocess.Popen("./s", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    need(p.stdout.read(1) == b"r", "it did not start")
    r = subprocess.run([KRON, "record", "-o", "t", "--pid", str(p.pid)], capture_output=True, text=True, timeout=60)
    need(r.returncode == 125 and "strict mode" in r.stderr, r.stderr)
    p.communicate(b"x", timeout=60)
    need(p.returncode == 0, f"it ended with {p.returncode}")


with Suite("seccomp") as s:
    compile_text("dynamic", PROGRAM, "-pthread", "-Wno-unused-result")
    compile_text("static", PROGRAM, "-pthread", "-static", "-Wno-unused-result")
    for kind in "dynamic", "static":
        at = os.path.join(s.folder, kind)
        s.case(f"{kind}: a filter that kills", recorded, at, "kill")
        s.case(f"{kind}: a filter with errors", recorded, at, "errno")
        s.case(f"{kind}: a new thread", new_threads, at)
        s.case(f"{kind}: a killed recorder", killed, at)
        s.case(f"{kind}: a filter that comes meanwhile", comes_meanwhile, at)
        s.case(f"{kind}: a filter that comes at once", comes_at_once, at)
    s.case("who may not lift it", without_rights, os.path.join(s.folder, "dynamic"))
    s.case("strict mode", strict)
    s.case("a filter for all threads", for_all_threads, [])
    s.case("static: a filter for all threads", for_all_threads, ["-static"])
