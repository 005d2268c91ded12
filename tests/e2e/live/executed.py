#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""What attached processes execute with --children is left at the end like themselves.

Ground truth: the maps, the text and the status of the processes as the kernel shows them, and the calls that the programs
count themselves."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import info, interrupt, maps, record_pid, surgeons, text_is_of_files  # noqa: E402
from tap import KRON, Suite, compile_text, need, truth, wait_for  # noqa: E402

# Executes each of the programs as a child of its own, when it is told to, and waits for them at the end.
PARENT = """
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sum;
__attribute__((noinline)) int tick(int n) { sum += n; return n + 1; }
int main(int argc, char **argv) {
    volatile int n = 0;
    int status, bad = 0;
    alarm(100);
    puts("ready"); fflush(stdout);
    while (access("go", F_OK)) { n = tick(n); usleep(1000); }
    for (int i = 1; i < argc; i++) {
        char *args[] = {argv[i], (char[]){(char)('0' + i), 0}, 0};
        pid_t pid = vfork();
        if (!pid) { execv(argv[i], args); _exit(9); }
    }
    while (wait(&status) > 0) bad |= status;
    return bad != 0;
}
"""

# Counts in two threads and in a fork of its own, until it is told to end; handles faults that it causes itself.
CHILD = """
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sink;
static sigjmp_buf back;
static volatile int faults;
__attribute__((noinline)) unsigned long counted(unsigned long n) { sink += n; return n + 1; }
__attribute__((noinline)) int poke(volatile int *p) { return *p; }
static void caught(int s) { (void)s; faults++; siglongjmp(back, 1); }
static void *work(void *arg) {
    unsigned long n = 0;
    while (access("end", F_OK)) { for (int i = 0; i < 100; i++) { unsigned long m = counted(n); if (m != n + 1) abort(); n = m; } usleep(200); }
    return arg;
}
static void note(const char *who, const char *which) {
    char name[32], temp[40];
    snprintf(name, sizeof(name), "%s%s", who, which);
    snprintf(temp, sizeof(temp), "%s.new", name);
    FILE *f = fopen(temp, "w");
    fprintf(f, "%d", getpid());
    fclose(f);
    rename(temp, name);
}
int main(int argc, char **argv) {
    pthread_t t;
    int status = 0;
    (void)argc;
    for (int i = 0; i < 1000; i++) counted(i);
    signal(SIGSEGV, caught);
    pid_t pid = fork();
    alarm(100);
    note(pid ? "child" : "grandchild", argv[1]);
    pthread_create(&t, NULL, work, NULL);
    while (access("end", F_OK)) {
        if (!sigsetjmp(back, 1)) poke(NULL);
        usleep(1000);
    }
    pthread_join(t, NULL);
    if (pid && waitpid(pid, &status, 0) != pid) return 3;
    return faults < 1 || status;
}
"""


def ours(pid):
    return [m for m in maps(pid) if re.search("memfd:kron|shm/kron|libkron", m[-1]) or m[0].startswith(("7e8", "7e9", "7ea"))]


def status(pid, key):
    return re.search(rf"{key}:\s*(\w+)", open(f"/proc/{pid}/status").read())[1]


def descriptors(pid):
    return {f: os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")}


def number(name):
    wait_for(lambda: os.path.exists(name), name)
    return int(open(name).read())


def begin(parent, targets, options, traced=True):
    for name in os.listdir("."):
        if re.match("go|end|(grand)?child", name):
            os.remove(name)
    p = subprocess.Popen([parent, *targets], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    need(p.stdout.readline() == "ready\n", "it did not start")
    r = record_pid(p.pid, *options) if traced else None
    if traced:
        time.sleep(0.1)  # it has calls of its own until then
    open("go", "w").close()
    pids = [number(f"{who}{i + 1}") for i in range(len(targets)) for who in ("child", "grandchild")]
    return p, r, pids


def finish(p):
    open("end", "w").close()
    need(p.wait(60) == 0, f"it ended with {p.returncode}")
    p.stdout.close()


def need_left(pids, handlers, files):
    for i, pid in enumerate(pids):
        need(not ours(pid), f"something of kron stays in {pid}: {ours(pid)}")
        text_is_of_files(pid)
        need(status(pid, "SigCgt") == handlers[i], f"handlers: {status(pid, 'SigCgt')}, {handlers[i]} without kron")
        need(status(pid, "TracerPid") == "0", "it is traced")
        need(descriptors(pid) == files[i], f"{descriptors(pid)}, {files[i]} without kron")


def without(parent, targets):
    """What their children have of handlers and descriptors."""
    p, _, pids = begin(parent, targets, (), traced=False)
    time.sleep(0.2)
    seen = [status(pid, "SigCgt") for pid in pids], [descriptors(pid) for pid in pids]
    finish(p)
    return seen


def left(parent, *targets):
    handlers, files = without(parent, targets)
    p, r, pids = begin(parent, targets, ("--children",))
    time.sleep(0.3)
    said = interrupt(r)
    need("as before" in said and "untraced" not in said, said)
    need(info()["attach"]["detached"], info()["attach"])
    for pid, f in zip(pids, files):  # its pipe has another number
        f["1"] = descriptors(pid)["1"]
    need_left([p.pid], [status(p.pid, "SigCgt")], [descriptors(p.pid)])
    need_left(pids, handlers, files)
    finish(p)
    calls = truth.report_calls("t")
    need(calls["counted"] >= 2000 * len(targets), f"{calls['counted']} calls")
    need(calls["tick"] > 0, "the process itself has no calls")
    wait_for(lambda: not surgeons(), "the end of all surgeons")


def killed(parent, *targets):
    handlers, files = without(parent, targets)
    for turn in range(6):
        p, r, pids = begin(parent, targets, ("--children",))
        time.sleep(turn * 0.02)
        r.kill()
        r.wait()
        r.stderr.close()
        wait_for(lambda: not surgeons(), "the end of all surgeons")
        for i, pid in enumerate(pids):
            files[i]["1"] = descriptors(pid)["1"]
        need_left(pids, handlers, files)
        finish(p)


def again(parent, *targets):
    """Recorded once more, by its own number."""
    p, r, pids = begin(parent, targets, ("--children",))
    interrupt(r)
    for pid in pids:
        second = record_pid(pid, trace="t2")
        time.sleep(0.1)
        said = interrupt(second)
        need("as before" in said, said)
        need(truth.report_calls("t2")["counted"] > 0, "no calls")
        need(not ours(pid), ours(pid))
        text_is_of_files(pid)
    finish(p)


def two_at_once(parent):
    """One that is recorded still is nothing that stays in the other."""
    both = [subprocess.Popen([parent], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) for _ in range(2)]
    for p in both:
        need(p.stdout.readline() == "ready\n", "it did not start")
    said = interrupt(record_pid(",".join(str(p.pid) for p in both), "--children"))
    need("as before" in said and info()["attach"]["detached"], said)
    open("go", "w").close()
    for p in both:
        need(not ours(p.pid), ours(p.pid))
        finish(p)


def with_added(parent, child):
    """It has the probe from its first instruction, by its dynamic linker: the runtime stays, and that is said."""
    board = f"executed.{os.getpid()}"
    p = subprocess.Popen([parent, child], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    need(p.stdout.readline() == "ready\n", "it did not start")
    r = record_pid(p.pid, "--children", "--board", board, "-p", "main")
    ctl = [KRON, "ctl", "--board", board, "probe"]
    wait_for(lambda: not subprocess.run([*ctl, "list"], capture_output=True).returncode, "an answer")
    subprocess.run([*ctl, "add", f"E={os.path.basename(child)}:counted"], check=True, capture_output=True)
    open("go", "w").close()
    pid = number("child1")
    said = interrupt(r)
    need("had probes of `kron ctl`" in said and "as before" not in said, said)
    attached = info()["attach"]
    need(not attached["detached"] and "kron ctl" in attached["reason"], attached)
    need(ours(pid) and not ours(p.pid), (ours(pid), ours(p.pid)))
    finish(p)


def by_script(parent, shell):
    """A shell that is attached to, and what it starts: each of them is left."""
    with open("s.sh", "w") as f:
        f.write("until [ -e go ]; do sleep 0.02; done\n./child_dynamic 1 & ./child_static 2 & (exec ./child_pie 3) & wait\n")
    for name in "dynamic", "static", "pie":
        shutil.copy(os.path.join(os.path.dirname(parent), f"child_{name}"), f"child_{name}")
    p = subprocess.Popen([shell, "s.sh"], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    r = record_pid(p.pid, "--children", "-F", "counted")
    open("go", "w").close()
    pids = [number(f"{who}{i}") for i in (1, 2, 3) for who in ("child", "grandchild")]
    said = interrupt(r)
    need("untraced" not in said and "as before" in said, said)
    for pid in pids:
        need(not ours(pid), f"something of kron stays in {pid}: {ours(pid)}")
        text_is_of_files(pid)
    open("end", "w").close()
    need(p.wait(60) == 0, f"it ended with {p.returncode}")
    p.stdout.close()
    need(truth.report_calls("t")["counted"] >= 6000, truth.report_calls("t"))


with Suite("executed") as s:
    compile_text("parent_dynamic", PARENT)
    compile_text("parent_static", PARENT, "-static")
    for name, flags in ("dynamic", []), ("static", ["-static"]), ("pie", ["-static-pie"]):
        compile_text(f"child_{name}", CHILD, "-pthread", *flags)
    at = {n: os.path.join(s.folder, n) for n in os.listdir(s.folder)}
    three = [at[f"child_{n}"] for n in ("dynamic", "static", "pie")]
    for parent in "parent_dynamic", "parent_static":
        s.case(f"{parent}: all of them are left", left, at[parent], *three)
        s.case(f"{parent}: when kron is killed", killed, at[parent], *three)
    s.case("they can be attached to again", again, at["parent_dynamic"], *three)
    s.case("two processes at once", two_at_once, at["parent_dynamic"])
    s.case("under a probe that was added", with_added, at["parent_dynamic"], at["child_dynamic"])
    for shell in "bash", "dash":
        if shutil.which(shell):
            s.case(f"a script in {shell}", by_script, at["parent_dynamic"], shell)
