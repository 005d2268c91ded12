#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron record --pid: what is recorded is exact, and the process is afterwards what it was.

Ground truth: numbers that the program hands to the recorded function, one after the other; its own word of
what its system calls returned; the kernel's of its memory, descriptors, threads and handlers; the files that its
text came from."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import STEADY, ended, info, interrupt, maps, need_unbroken, numbers, ours, record_pid  # noqa: E402
from live import surgeons, text_is_of_files  # noqa: E402
from tap import KRON, Skip, Suite, compile_c, compile_text, need, rnd, wait_for  # noqa: E402


class Program:
    """One that runs, and ends with `with`; what it says at its end is checked then."""

    def __init__(self, *argv, ready=True, status=0, before=None):
        self.status = status
        self.p = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, preexec_fn=before)
        self.pid = self.p.pid
        if ready:
            need(self.p.stdout.readline() == "ready\n", "it did not start")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if exc[0]:
            self.p.kill()
        else:
            self.p.terminate()
        said = self.p.communicate(timeout=60)[0]
        if not exc[0] and self.status is not None:
            need(self.p.returncode == self.status, f"it ended with {self.p.returncode}: {said}")

    def lives(self):
        need(self.p.poll() is None, f"it ended with {self.p.returncode}")


def attach(pid, *options, status=0, seconds="0.2s"):
    argv = [KRON, "record", "-o", "t", "--pid", str(pid), "--for", seconds, *options]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    need(r.returncode == status, f"{r.returncode}: {r.stderr}")
    if not status:
        need("as before" in r.stderr, r.stderr)
    return r.stderr


# ---- what a process is ----


def mappings(pid):
    """Without those that grow and shrink by themselves."""
    own = ("[heap]", "[stack]")
    lines = [(m[0], m[1], m[5].strip() if len(m) > 5 else "") for m in maps(pid)]
    return {m for m in lines if m[2].startswith("/")} | {m for m in lines if "x" in m[1] and m[2] not in own}


def is_traced(pid):
    return not re.search(r"^TracerPid:\s*0$", open(f"/proc/{pid}/status").read(), re.M)


def state(pid):
    """Of a process that stands still, or opens and closes nothing."""
    status = open(f"/proc/{pid}/status").read()
    fds = {f: os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")}
    return {
        "maps": mappings(pid),
        "descriptors": fds,
        "threads": sorted(os.listdir(f"/proc/{pid}/task")),
        "tracer": re.search(r"TracerPid:\s*(\d+)", status)[1],
        "handlers": re.search(r"SigCgt:\s*(\w+)", status)[1],
        "ignored": re.search(r"SigIgn:\s*(\w+)", status)[1],
        "blocked": re.search(r"SigBlk:\s*(\w+)", status)[1],
    }


def same(before, pid):
    after = state(pid)
    for key, value in before.items():
        need(after[key] == value, f"{key}: {value} before, {after[key]} after")
    need(not ours(pid), ours(pid))
    text_is_of_files(pid)


# ---- cases ----


def counts(program):
    """No call between the first and the last is missing, none is there twice."""
    with Program(program, "3") as p:
        attach(p.pid, "-p", "counted n=$arg1", seconds="0.5s")
        seen = {t: v for t, v in numbers().items() if len(v) > 100 and v[0] > 8}
        need(len(seen) >= 3, f"{len(seen)} threads count")
        for thread, v in seen.items():
            need_unbroken(v, f"thread {thread}")


def again_and_again(program, times, *options):
    with Program(program, "2") as p:
        attach(p.pid)  # what is allocated once
        before = state(p.pid)
        for _ in range(times):
            attach(p.pid, *options, seconds=f"{rnd.randrange(1, 50)}ms")
            p.lives()
        # children of its own come and go, and have our descriptors for a moment
        same(before, p.pid)


def killed(program):
    """The recorder is killed at any moment: the process goes on, and is soon what it was."""
    with Program(program, "2") as p:
        before = state(p.pid)
        for _ in range(25):
            argv = [KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "-L", "*"]
            r = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
            time.sleep(rnd.random() / 8)
            r.kill(), r.wait()
            p.lives()
            wait_for(lambda: not ours(p.pid), "the end of all that is kron's in it")
        wait_for(lambda: not is_traced(p.pid), "the end of its tracer")
        same(before, p.pid)
        # the first thread is let go before the others
        wait_for(lambda: not surgeons(), "the end of all surgeons")
        attach(p.pid)
    wait_for(lambda: not surgeons(), "the end of all surgeons")


def killed_both(program):
    """Recorder and surgeon are killed while they record: the next one takes out what they have left, and that only."""
    if os.geteuid():
        raise Skip("to open what kron has mapped there takes root")
    compile_text("steady", STEADY)
    with Program(program, "1") as p, Program("./steady") as other:
        attach(p.pid)
        before = state(p.pid)
        others = record_pid(other.pid, "-p", "counted n=$arg1", trace="other")
        for _ in range(3):
            mine = set(surgeons())
            r = record_pid(p.pid, "-L", "libc*")
            for helper in set(surgeons()) - mine:
                os.kill(int(helper), signal.SIGKILL)
            r.kill(), r.communicate()
            p.lives()
            attach(p.pid, seconds="10ms")
        same(before, p.pid)
        need(ours(other.pid), "it has been taken out of another one")
        interrupt(others)
        (calls,) = numbers(trace="other").values()
        need_unbroken(calls, "the other one")


def stopped(program):
    with Program(program, "1") as p:
        os.kill(p.pid, signal.SIGSTOP)
        wait_for(lambda: " T " in open(f"/proc/{p.pid}/stat").read(), "its stop")
        attach(p.pid)
        need(" T " in open(f"/proc/{p.pid}/stat").read(), "it was stopped, and runs")
        need(info()["samples"] == 0, "a stopped process has samples")
        os.kill(p.pid, signal.SIGCONT)
        attach(p.pid)
        need(info()["samples"] > 0, "it does not go on")


def in_vfork():
    """Nor do those see anything that stand still for a moment, in vain, when it is in one."""
    compile_text(
        "v",
        """
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <sched.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/epoll.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int over;
        static void end(int s) { (void)s; over = 1; }
        static int nap(void *arg) { (void)arg; usleep(3000); return 0; }
        __attribute__((noinline)) int child(void) {
            static char stack[16384];
            int status;
            pid_t pid = clone(nap, stack + sizeof(stack), CLONE_VM | SIGCHLD, 0);
            if (waitpid(pid, &status, 0) != pid || status) return 0;
            usleep(3000);
            pid = vfork();
            if (!pid) { execl("/bin/sleep", "sleep", "0", (char *)0); _exit(127); }
            return waitpid(pid, &status, 0) == pid && status == 0;
        }
        static void *wait_for_ever(void *arg) {
            struct epoll_event e;
            epoll_wait(epoll_create1(0), &e, 1, -1);
            _exit(7);
            return arg;
        }
        int main(void) {
            pthread_t t;
            signal(SIGTERM, end);
            pthread_create(&t, 0, wait_for_ever, 0);
            puts("ready"); fflush(stdout);
            while (!over) if (!child()) return 1;
            return 0;
        }
        """,
        "-pthread",
    )
    with Program("./v") as p:
        for _ in range(40):
            attach(p.pid, "-L", "*", seconds="5ms")
            p.lives()
        need(info()["samples"] > 0, "no samples")
        text_is_of_files(p.pid)


def ended_call():
    """A signal ends a system call that the thread was stopped in; the instructions after it are in a window."""
    compile_text(
        "e",
        """
        #include <errno.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/time.h>
        #include <time.h>
        long nap(const struct timespec *, struct timespec *, long);
        __asm__(".globl nap; .type nap, @function; nap: mov %rdx, %rax; mov %rdx, %rax; mov %rsi, %rsi;"
                "syscall; ret; .size nap, .-nap; .p2align 4");
        static volatile int over;
        static void end(int s) { (void)s; over = 1; }
        static void tick(int s) { (void)s; }
        int main(void) {
            struct sigaction act = {.sa_handler = tick};
            struct itimerval every = {{0, 1500}, {0, 1500}};
            const struct timespec ts = {0, 1000000};
            signal(SIGTERM, end);
            sigaction(SIGALRM, &act, 0);
            setitimer(ITIMER_REAL, &every, 0);
            puts("ready"); fflush(stdout);
            while (!over) { long r = nap(&ts, 0, 35); if (r && r != -EINTR) return 1; }
            return 0;
        }
        """,
    )
    with Program("./e") as p:
        for _ in range(20):
            attach(p.pid, "-L", "nap", seconds=f"{rnd.randrange(1, 20)}ms")
            p.lives()
        text_is_of_files(p.pid)


def awaited_signal():
    """epoll_pwait() that waits for a signal ends when that comes, even while the thread stands still."""
    compile_text(
        "w",
        """
        #include <errno.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/epoll.h>
        #include <unistd.h>
        static volatile int over, seen, taken;
        static void end(int s) { (void)s; over = 1; }
        static void take(int s) { (void)s; taken++; }
        static void *wait_for_it(void *arg) {
            struct epoll_event ev;
            sigset_t none;
            int e = epoll_create1(0);
            sigemptyset(&none);
            while (!over) {
                if (epoll_pwait(e, &ev, 1, -1, &none) != -1 || errno != EINTR) _exit(2);
                seen = taken;
            }
            return arg;
        }
        int main(void) {
            pthread_t t;
            sigset_t set;
            signal(SIGTERM, end);
            signal(SIGUSR1, take);
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigaddset(&set, SIGTERM);
            pthread_sigmask(SIG_BLOCK, &set, 0);
            pthread_create(&t, 0, wait_for_it, 0);
            sigdelset(&set, SIGUSR1);
            pthread_sigmask(SIG_UNBLOCK, &set, 0);
            puts("ready"); fflush(stdout);
            for (int n = 1; !over; n++) {
                pthread_kill(t, SIGUSR1);
                for (int i = 0; seen < n && !over; i++) {
                    if (i == 200000) return 1;
                    usleep(100);
                }
            }
            return 0;
        }
        """,
        "-pthread",
    )
    with Program("./w") as p:
        for _ in range(30):
            attach(p.pid, "-L", "*", seconds="1ms")
            p.lives()
        time.sleep(0.2)
        p.lives()
        before = open(f"/proc/{p.pid}/status").read()
        wait_for(lambda: open(f"/proc/{p.pid}/status").read() != before, "a signal that has come")


def children(*options):
    """What it forks while it is recorded gets its own text back, too."""
    compile_text(
        "c",
        """
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int over;
        static void end(int s) { (void)s; over = 1; }
        __attribute__((noinline)) int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }
        int main(void) {
            int go[2], status;
            char byte;
            signal(SIGTERM, end);
            if (pipe(go)) return 2;
            puts("ready"); fflush(stdout);
            while (access("fork", F_OK)) usleep(1000);
            pid_t pid = fork();
            if (!pid) {
                FILE *f = fopen("child", "w");
                fprintf(f, "%d", getpid()); fclose(f);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                while (!over) { if (work(10) != 55) _exit(4); usleep(1000); }
                _exit(read(go[0], &byte, 1) != 1);
            }
            while (!over) { if (work(10) != 55) return 4; usleep(1000); }
            kill(pid, SIGTERM);
            if (write(go[1], "x", 1) != 1) return 2;
            return waitpid(pid, &status, 0) != pid || status;
        }
        """,
    )
    with Program("./c") as p:
        r = record_pid(p.pid, *options)
        open("fork", "w").close()
        wait_for(lambda: os.path.exists("child") and open("child").read(), "its child")
        child = int(open("child").read())
        time.sleep(0.2)
        interrupt(r)
        for pid in p.pid, child:
            need(not ours(pid), f"something of kron stays in {pid}")
            text_is_of_files(pid)
        need(info()["processes"] >= 2, "the child has no samples")


def goroutines():
    """Some are stopped anywhere in loops that call nothing, for there are more of them than processors."""
    if not shutil.which("go"):
        raise Skip("no Go here")
    open("g.go", "w").write(
        """
        package main
        import ("fmt"; "os"; "os/signal"; "sync/atomic"; "syscall")
        //go:noinline
        func leaf(a, b uint64) uint64 { return a*31 + b }
        func spin(n int) uint64 {
            s := uint64(1)
            for i := 0; i < n; i++ { s = s*6364136223846793005 + 1442695040888963407; s ^= s >> 7 }
            return s
        }
        func main() {
            var bad, over int64
            want := spin(2000000)
            done := make(chan int)
            for i := 0; i < 8; i++ {
                go func() {
                    for atomic.LoadInt64(&over) == 0 {
                        if spin(2000000) != want { atomic.AddInt64(&bad, 1) }
                        x := uint64(0)
                        for k := 0; k < 50000; k++ { x = leaf(x, uint64(k)) }
                        if x == 1 { atomic.AddInt64(&bad, 1) }
                    }
                    done <- 1
                }()
            }
            c := make(chan os.Signal, 1)
            signal.Notify(c, syscall.SIGTERM)
            fmt.Println("ready")
            <-c
            atomic.StoreInt64(&over, 1)
            for i := 0; i < 8; i++ { <-done }
            if bad != 0 { os.Exit(3) }
        }
        """
    )
    env = dict(os.environ, GOCACHE=os.path.join(os.getcwd(), "go"), GOFLAGS="-mod=mod", GO111MODULE="off")
    subprocess.run(["go", "build", "-o", "g", "g.go"], check=True, env=env)
    with Program("./g") as p:
        for _ in range(10):
            attach(p.pid, seconds=f"{rnd.randrange(5, 60)}ms")
            p.lives()
        report = subprocess.run([KRON, "report", "t"], capture_output=True, text=True, check=True).stdout
        need("main.leaf" in report, report)
        need(not ours(p.pid), "something of kron stays")
        text_is_of_files(p.pid)


def ticks(pid):
    """Of processor time."""
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return int(words[11]) + int(words[12])


def ends_meanwhile(program):
    with Program(program, "1", status=-signal.SIGKILL) as p:
        r = record_pid(p.pid)
        before = ticks(p.pid)
        wait_for(lambda: ticks(p.pid) > before + 1, "the program to run on")
        os.kill(p.pid, signal.SIGKILL)
        said = ended(r)
        need(f"process {p.pid} has ended; stood still" in said and "as before" not in said, said)
        need(info()["samples"] > 0, "no samples")
    with Program(program, "1", status=-signal.SIGKILL) as p, Program(program, "1") as stays:
        r = record_pid(f"{p.pid},{stays.pid}")
        os.kill(p.pid, signal.SIGKILL)
        p.p.wait(60)
        said = interrupt(r)
        need(f"process {stays.pid} runs on as before; process {p.pid} has ended; stood still" in said, said)


def dies_while_attached(program):
    for _ in range(20):
        with Program(program, "1", status=None) as p:
            r = subprocess.Popen(
                [KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "--for", "0.1s"], stderr=subprocess.PIPE, text=True
            )
            time.sleep(rnd.random() / 20)
            os.kill(p.pid, signal.SIGKILL)
            r.wait(60)
            said = r.stderr.read()
            r.stderr.close()
            need(r.returncode in (0, 125), f"{r.returncode}: {said}")


def executes():
    """It executes itself all the time, from a thread too: attached or refused, and neither hangs nor dies."""
    compile_text(
        "x",
        """
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static char **v;
        static void *again(void *arg) { execv("/proc/self/exe", v); return arg; }
        int main(int argc, char **argv) {
            pthread_t t;
            v = argv;
            if (argc == 1) { puts("ready"); fflush(stdout); v = (char *[]){argv[0], "x", 0}; }
            usleep(500 + (unsigned)getpid() % 7 * 300);
            if (pthread_create(&t, 0, again, 0)) return 1;
            pause();
            return 2;
        }
        """,
        "-pthread",
    )
    with Program("./x", status=-signal.SIGTERM) as p:
        for _ in range(30):
            r = subprocess.run(
                [KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "--for", "5ms"], capture_output=True, text=True, timeout=60
            )
            need(r.returncode in (0, 125), f"{r.returncode}: {r.stderr}")
            p.lives()
        wait_for(lambda: not is_traced(p.pid), "the end of its tracer")
    wait_for(lambda: not surgeons(), "the end of all surgeons")


def stop_and_go(program):
    """The last that is sent is SIGCONT, whatever we were at.  (Its calls end with EINTR then, by signal(7).)"""
    with Program(program, "1", status=None) as p:
        for _ in range(10):
            r = subprocess.Popen([KRON, "record", "-q", "-o", "t", "--pid", str(p.pid), "--for", "5ms"])
            while r.poll() is None:
                os.kill(p.pid, signal.SIGSTOP)
                time.sleep(rnd.random() / 500)
                os.kill(p.pid, signal.SIGCONT)
                time.sleep(rnd.random() / 500)
            need(r.returncode == 0, r.returncode)
            wait_for(lambda: " T " not in open(f"/proc/{p.pid}/stat").read(), "it to go on")


def other_threads():
    """One has a filter."""
    compile_text(
        "o",
        """
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/prctl.h>
        #include <unistd.h>
        static void *filtered(void *arg) {
            struct sock_filter f = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
            struct sock_fprog p = {1, &f};
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
            puts("ready"); fflush(stdout);
            for (;;) pause();
        }
        int main(void) {
            pthread_t t;
            pthread_create(&t, 0, filtered, 0);
            for (;;) pause();
        }
        """,
        "-pthread",
    )
    with Program("./o", status=-signal.SIGTERM) as p:
        if os.geteuid() == 0:
            attach(p.pid)
        else:
            said = attach(p.pid, status=125)
            need("seccomp filter" in said, said)


def refused(program):
    def says(pid, what):
        said = attach(pid, status=125)
        need(re.search(what, said), f"'{what}' is not in: {said}")
        need(len(said.strip().splitlines()) == 1, f"more than a sentence: {said}")

    says(2**22 - 7, "there is no process")
    with Program(program, "1") as p:
        thread = next(t for t in os.listdir(f"/proc/{p.pid}/task") if int(t) != p.pid)
        says(thread, f"is a thread: .*{p.pid}")
        r = record_pid(p.pid, trace="t1")
        says(p.pid, "is recorded by kron already")
        interrupt(r)
    with Program("sleep", "60", ready=False, status=-signal.SIGTERM) as p:
        tracer = subprocess.Popen(["strace", "-qq", "-f", "-e", "none", "-o", "/dev/null", "-p", str(p.pid)])
        wait_for(lambda: is_traced(p.pid), "strace to trace it")
        says(p.pid, f"is traced by process {tracer.pid}")
        tracer.terminate()
        tracer.wait()
    zombie = subprocess.Popen(["true"])
    wait_for(lambda: " Z " in open(f"/proc/{zombie.pid}/stat").read(), "a zombie")
    says(zombie.pid, "has ended")
    zombie.wait()

    if shutil.which("valgrind"):
        with Program("valgrind", "-q", "sleep", "60", ready=False, status=-signal.SIGTERM) as p:
            wait_for(lambda: "58000000-" in open(f"/proc/{p.pid}/maps").read() and
                     "/sleep" in open(f"/proc/{p.pid}/maps").read(), "valgrind")
            says(p.pid, "runs under valgrind.*start it without")

    def forbid():  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER: all is allowed
        libc = ctypes.CDLL(None)
        code = (ctypes.c_uint64 * 1)(0x7FFF0000_00000006)
        prog = (ctypes.c_uint64 * 2)(1, ctypes.addressof(code))
        libc.prctl(38, 1, 0, 0, 0)
        libc.prctl(22, 2, prog, 0, 0)

    with Program("sleep", "60", ready=False, status=-signal.SIGTERM, before=forbid) as p:
        wait_for(lambda: "sleep" in open(f"/proc/{p.pid}/comm").read(), "sleep")
        if os.geteuid() == 0:  # seccomp.py has those that allow less
            attach(p.pid)
        else:
            says(p.pid, "seccomp filter")
    if os.geteuid() == 0:
        with Program(program, "1") as p:
            r = subprocess.run(
                ["setpriv", "--reuid", "65534", "--clear-groups", KRON, "record", "-o", "/tmp/t", "--pid", str(p.pid)],
                capture_output=True, text=True,
            )
            need(r.returncode == 125 and "belongs to another user" in r.stderr, r.stderr)
    for args, what in (
        (("--pid", "x"), "not a list of process numbers"),
        (("--pid", "1,,2"), "not a list of process numbers"),
        (("--pid", "1,"), "not a list of process numbers"),
        (("--pid", "1", "--", "true"), "takes no command"),
        (("--pid", "--for", "1s"), "'--for' is not a list of process numbers"),
        (("--for", "1s", "--", "true"), "--for belongs to --pid"),
        ((), "no command given"),
    ):
        r = subprocess.run([KRON, "record", *args], capture_output=True, text=True)
        need(r.returncode == 125 and what in r.stderr, r.stderr)


def locked_text(program):
    """What was writable may not become executable: the text is patched all the same, and comes back."""
    with Program(program, "2", before=lambda: ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)) as p:  # PR_SET_MDWE
        attach(p.pid)
        before = state(p.pid)
        for _ in range(5):
            attach(p.pid, "-L", "*", seconds="20ms")
            need(info()["samples"] > 0, "no samples")
            p.lives()
        same(before, p.pid)


def breakpoint_in_a_probe():
    """A debugger puts back the byte that it found: what it leads to must still be there then."""
    compile_text(
        "asked",
        """
        #include <stdio.h>
        __attribute__((noinline)) int answer(int c) { return printf("%c\\n", c + 1); }
        int main(void) {
            setbuf(stdout, NULL);
            printf("%p\\n", (void *)answer);
            for (int c; (c = getchar()) != EOF;)
                answer(c);
            return 0;
        }
        """,
    )
    p = subprocess.Popen("./asked", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    at = int(p.stdout.readline(), 16)
    with open(f"/proc/{p.pid}/mem", "r+b", 0) as mem:
        first = os.pread(mem.fileno(), 1, at)
        r = record_pid(p.pid, "-F", "answer")
        wait_for(lambda: os.pread(mem.fileno(), 1, at) != first, "the probe")
        found = os.pread(mem.fileno(), 1, at)
        os.pwrite(mem.fileno(), b"\xcc", at)
        r.send_signal(signal.SIGINT)
        said = r.communicate(timeout=60)[1]
        need("a debugger has breakpoints on 1 probe in" in said, f"{r.returncode}: {said}")
        a = info()["attach"]
        need(not a["detached"] and "breakpoints on 1 probe in" in a["reason"], a)
        shown = subprocess.run([KRON, "info", "t"], capture_output=True, text=True, check=True).stdout
        need("not left all of them: a debugger has breakpoints" in shown, shown)
        want = "a debugger has breakpoints on 1 probe" if os.geteuid() == 0 else "as root"
        # the recording's keeper goes a moment after its recorder
        wait_for(lambda: want in attach(p.pid, status=125), "the recording to be over")
        os.pwrite(mem.fileno(), found, at)
        if os.geteuid() == 0:  # what stayed is taken out
            attach(p.pid, "-F", "answer")
            need(not ours(p.pid), "something of kron stays")
    p.stdin.write(b"a")
    need(p.stdout.readline() == b"b\n", "it does not answer")
    p.stdin.close()
    need(p.wait(20) == 0, f"it ended with {p.returncode}")


def becomes_another():
    """What it executes is not recorded, and that is said."""
    p = subprocess.Popen(["bash", "-c", "until [ -e go ]; do sleep 0.02; done; exec sleep 60"])
    r = record_pid(p.pid)
    open("go", "w").close()
    wait_for(lambda: open(f"/proc/{p.pid}/comm").read() == "sleep\n", "what it executes")
    said = interrupt(r)
    need(f"process {p.pid} executed another program" in said, said)
    need(not ours(p.pid), "something of kron came along")
    p.kill(), p.wait()


def from_the_start(program):
    """A static program has its first instruction traced, and notices nothing."""
    compile_text(
        "s",
        """
        #include <fcntl.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/prctl.h>
        #include <unistd.h>
        extern char **environ;
        static volatile unsigned long sink;
        __attribute__((noinline)) unsigned long counted(unsigned long n) { sink += n; return n + 1; }
        int main(int argc, char **argv) {
            unsigned long n = 1;
            char name[16], line[256];
            for (int i = 0; i < argc; i++) puts(argv[i]);
            for (char **e = environ; *e; e++) puts(*e);
            for (int fd = 0; fd < 64; fd++) printf("%d", fcntl(fd, F_GETFD) >= 0);
            prctl(PR_GET_NAME, name);
            puts(name);
            FILE *f = fopen("/proc/self/status", "r");
            while (fgets(line, sizeof(line), f)) if (!strncmp(line, "Sig", 3) && line[3] != 'Q') fputs(line, stdout);
            for (int i = 0; i < 5000; i++) n = counted(n);
            printf("%lu\\n", n);
            return 41;
        }
        """,
        "-static",
    )
    argv = ["./s", "one", "two three"]
    plain = subprocess.run(argv, capture_output=True, text=True)
    r = subprocess.run([KRON, "record", "-o", "t", "-p", "counted n=$arg1", "--", *argv], capture_output=True, text=True)
    need(r.returncode == plain.returncode == 41, f"{r.returncode}: {r.stderr}")
    need(r.stdout == plain.stdout, f"{r.stdout} instead of {plain.stdout}")
    need("untraced" not in r.stderr, r.stderr)
    need(list(numbers().values()) == [list(range(1, 5001))], "not each call")
    r = subprocess.run([KRON, "record", "-o", "t", "--", "./s"], capture_output=True, text=True)
    report = subprocess.run([KRON, "report", "t"], capture_output=True, text=True, check=True).stdout
    need("_start [s]" in report and re.search(r" 5,000 .* counted \[s\]", report), report)
    r = subprocess.run([KRON, "record", "-o", "t", "--", "./s.c"], capture_output=True, text=True)
    need(r.returncode == 126, f"{r.returncode}: {r.stderr}")
    r = subprocess.Popen([KRON, "record", "-q", "-o", "t", "--", program, "1"], stdout=subprocess.PIPE, text=True)
    need(r.stdout.readline() == "ready\n", "it did not start")
    pid = int(subprocess.run(["pgrep", "-P", str(r.pid), "-x", "static"], capture_output=True, text=True).stdout)
    r.kill()
    r.wait()
    wait_for(lambda: not ours(pid), "the end of all that is kron's in it")
    text_is_of_files(pid)
    os.kill(pid, signal.SIGTERM)
    need("interrupted 0 early 0 late 0 wrong 0" in r.stdout.read(), "it was disturbed")
    r.stdout.close()


def session(program):
    with Program(program, "1") as p:
        attach(p.pid)
        a = info()["attach"]
        need(a["pids"] == [p.pid] and a["detached"] is True, a)
        need(a["sites"] > 10 and 0 < a["longest_stop_us"] < 60_000_000, a)
        r = subprocess.run([KRON, "record", "-o", "t", "-p", str(p.pid), "--for", "0.1s"], capture_output=True, text=True)
        need(r.returncode == 0 and "as before" in r.stderr, r.stderr)


def cost(program):
    """A probe finds its lane as in a static program: that takes about as long, and what it takes is said."""
    with open("/proc/cpuinfo") as f:
        most = 1.8 if " rdpid" in f.read() else 4  # or the processor's number takes longer than the clock
    tried = []
    while len(tried) < 8:  # others may have the processor while one of the two is measured
        with Program(program, "1") as p:
            attach(p.pid, "-p", "counted n=$arg1")
            running = info()["probe_ns"]
        subprocess.run([KRON, "record", "-q", "-o", "t", "--", "sleep", "0"], check=True)
        started = info()["probe_ns"]
        if started / 1.8 < running < most * started:
            return
        tried.append((running, started))
    need(False, f"attached and started, in ns: {tried}")


with Suite("attach") as s:
    compile_c(os.path.join(s.folder, "dynamic"), "bins/live_life.c")
    compile_c(os.path.join(s.folder, "static"), "bins/live_life.c", "-static")
    dynamic, static = os.path.join(s.folder, "dynamic"), os.path.join(s.folder, "static")
    s.case("what is recorded is exact", counts, dynamic)
    s.case("what is recorded of a static program is exact", counts, static)
    s.case("nothing is left, and no call was disturbed", again_and_again, dynamic, 20, "-L", "*")
    s.case("nothing is left in a static program", again_and_again, static, 20)
    for kind in (dynamic, static):
        s.case("page counters leave nothing", again_and_again, kind, 3, "-p", "*%accesses lines")
    s.case("a killed recorder leaves nothing", killed, dynamic)
    s.case("recorder and surgeon are killed", killed_both, dynamic)
    s.case("what was writable may not become executable", locked_text, dynamic)
    s.case("the same in a static program", locked_text, static)
    s.case("a stopped process stays stopped", stopped, dynamic)
    s.case("between vfork and exec", in_vfork)
    s.case("a signal ends the system call that it was stopped in", ended_call)
    s.case("a signal that it waits for while it stands still", awaited_signal)
    s.case("children that it forks meanwhile", children)
    s.case("likewise, and they have its page counters", children, "-p", "*%accesses lines")
    s.case("goroutines that were stopped anywhere", goroutines)
    s.case("it ends while it is recorded", ends_meanwhile, dynamic)
    s.case("it dies while it is attached to", dies_while_attached, dynamic)
    s.case("it executes itself", executes)
    s.case("SIGSTOP and SIGCONT come meanwhile", stop_and_go, dynamic)
    s.case("a filter of one thread", other_threads)
    s.case("what cannot be is refused in a sentence", refused, dynamic)
    s.case("a debugger's breakpoint in a probe", breakpoint_in_a_probe)
    s.case("what it executes in its place is named", becomes_another)
    s.case("a static program from its start", from_the_start, static)
    s.case("the trace says what was done", session, dynamic)
    s.case("what a probe costs there", cost, dynamic)
