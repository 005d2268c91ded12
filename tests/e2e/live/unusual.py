#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron record --pid: programs that do what few do.  They go on as before, or kron refuses in a sentence.

The truth is what each does untraced: it says itself whether all was as it should be."""
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import begin_record_pid, ended, info, interrupt, need_unbroken, numbers, ours, record_pid, surgeons, text_is_of_files  # noqa: E402
from tap import KRON, Skip, Suite, compile_c, compile_text, need, need_root, wait_for  # noqa: E402

WORKS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int over;
static void end(int s) { (void)s; over = 1; }
__attribute__((noinline)) long counted(long x) { __asm__ volatile("" : "+r"(x)); return x * 3 + 1; }
static void ready(void) { signal(SIGTERM, end); puts("ready"); fflush(stdout); }
"""


class Program:
    """Ends with 0 when it is told to, or the case fails."""

    def __init__(self, *argv):
        self.p = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        need(self.p.stdout.readline() == "ready\n", "it did not start")
        self.pid = self.p.pid

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.send_signal(signal.SIGTERM)
        self.said = self.p.communicate(timeout=60)[0]
        if not exc[0]:
            need(self.p.returncode == 0, f"it ended with {self.p.returncode}: {self.said}")


def attach(pid, *options, seconds="0.3s"):
    argv = [KRON, "record", "-o", "t", "--pid", str(pid), "--for", seconds, *options]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    return r.returncode, r.stderr


def untraced():
    return " ".join(f"{u}" for u in info()["untraced"])


def shared_text():
    """A loader of its own maps the code of a file shared: what is written there is written to the file."""
    compile_text("lib.so", "__attribute__((noinline)) long called(long x) { __asm__ volatile(\"\" : \"+r\"(x)); return x * 3 + 1; }",
                 "-shared", "-fPIC")
    shutil.copy("lib.so", "as-it-was")
    compile_text("loader", WORKS + """
        #include <elf.h>
        int main(int argc, char **argv) {
            int fd = open(argv[1], O_RDWR);
            Elf64_Ehdr e; Elf64_Phdr ph[20];
            if (argc != 3 || pread(fd, &e, sizeof e, 0) < 0 || pread(fd, ph, e.e_phnum * sizeof *ph, e.e_phoff) < 0) return 2;
            char *b = mmap(0, 1 << 20, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (int i = 0; i < e.e_phnum; i++)
                if (ph[i].p_type == PT_LOAD)
                    mmap(b + (ph[i].p_vaddr & ~4095ul), (ph[i].p_filesz + (ph[i].p_vaddr & 4095) + 4095) & ~4095ul,
                         (ph[i].p_flags & 1 ? PROT_EXEC : 0) | PROT_READ, MAP_SHARED | MAP_FIXED, fd, ph[i].p_offset & ~4095ul);
            long (*called)(long) = (void *)(b + strtoul(argv[2], 0, 16));
            ready();
            for (long i = 0; !over; i++) { usleep(1000); if (called(i) != i * 3 + 1) return 3; }
            return 0;
        }""")
    symbols = subprocess.run(["nm", "-D", "lib.so"], capture_output=True, text=True, check=True).stdout
    with Program("./loader", "lib.so", re.search(r"(\w+) T called", symbols)[1]) as p:
        code, said = attach(p.pid, "-L", "lib.so")
        need(not code and "mapped shared" in untraced(), f"{said} {untraced()}")
    need(open("lib.so", "rb").read() == open("as-it-was", "rb").read(), "the file has changed")


def writable_text():
    """It writes to its own code while kron comes, and goes."""
    compile_text("writes", WORKS + """
        __attribute__((noinline, aligned(64))) void jumps(void) { __asm__ volatile(".globl cell\\n jmp 1f\\n cell: .quad 0\\n 1:"); }
        extern uint64_t cell;
        int main(void) {
            uintptr_t a = (uintptr_t)&cell & ~4095ul;
            if (mprotect((void *)a, 4096, 7)) return 2;
            ready();
            for (long i = 0; !over; i++) { usleep(1000); counted(i); jumps(); (*(volatile uint64_t *)&cell)++; }
            return 0;
        }""")
    with Program("./writes") as p:
        code, said = attach(p.pid)
        need(not code and "made its code writable" in untraced(), f"{said} {untraced()}")


def ring():
    """Workers of io_uring are threads of the kernel's: what they wait for goes on, and probes cost what they cost."""
    compile_text("ring", WORKS + """
        #include <linux/io_uring.h>
        #include <stdatomic.h>
        #include <sys/syscall.h>
        int main(void) {
            struct io_uring_params p = {0};
            int in[2], out[2], fd = syscall(SYS_io_uring_setup, 8, &p);
            if (fd < 0) return 77;
            char *r = mmap(0, p.sq_off.array + p.sq_entries * 4 + 4096, 3, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
            char *c = mmap(0, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), 3, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_CQ_RING);
            struct io_uring_sqe *q = mmap(0, p.sq_entries * sizeof *q, 3, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
            if (pipe(in) || pipe(out)) return 2;
            q[0] = (struct io_uring_sqe){.opcode = IORING_OP_SPLICE, .fd = out[1], .off = -1, .splice_fd_in = in[0], .splice_off_in = -1, .len = 64};
            ((unsigned *)(r + p.sq_off.array))[0] = 0;
            atomic_store((_Atomic unsigned *)(r + p.sq_off.tail), 1);
            if (syscall(SYS_io_uring_enter, fd, 1, 0, 0, 0, 0) != 1) return 77;
            usleep(50000);
            ready();
            for (long i = 0; !over; i++) counted(i);
            return *(unsigned *)(c + p.cq_off.head) != atomic_load((_Atomic unsigned *)(c + p.cq_off.tail)) ? 4 : 0;
        }""")
    probe = subprocess.Popen(["./ring"], stdout=subprocess.PIPE, text=True)
    if probe.stdout.readline() != "ready\n":
        probe.wait()
        raise Skip("no io_uring here")
    has_worker = any("iou-" in open(f"/proc/{probe.pid}/task/{t}/comm").read() for t in os.listdir(f"/proc/{probe.pid}/task"))
    probe.terminate()
    probe.communicate()
    if probe.returncode or not has_worker:
        raise Skip("no worker of io_uring here")
    with Program("./ring") as p:
        code, said = attach(p.pid, "-F", "counted", "-b", "64M")
        need(not code, said)
        seen = info()
    # by a system call a sample it was 77,154 in 700 ms
    need(seen["samples"] + seen["lost"] > 200_000, f"{seen['samples']} samples in 0.3 s")


RSEQ = WORKS + """
#include <sys/rseq.h>
#include <time.h>
struct __attribute__((aligned(32))) cs { uint32_t v, f; uint64_t s, l, a; };
static uint64_t tsc(void) { uint32_t lo, hi; __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)); return (uint64_t)hi << 32 | lo; }
/* Is in a restartable sequence for so long; the largest hole in it.  0: it was aborted. */
__attribute__((noinline)) static int once(uint64_t cycles, uint64_t *hole) {
    struct rseq *r = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    uint64_t last = tsc(), end = last + cycles, max = 0;
    __asm__ volatile goto(
        ".pushsection __rseq_cs,\\"aw\\"\\n .balign 32\\n 3: .long 0,0\\n .quad 1f, 2f-1f, 4f\\n .popsection\\n"
        "lea 3b(%%rip),%%rax\\n mov %%rax,%c[o](%[r])\\n"
        "1:\\n"
        "5: rdtsc\\n shl $32,%%rdx\\n or %%rdx,%%rax\\n mov %%rax,%%rcx\\n sub %[last],%%rcx\\n cmp %[max],%%rcx\\n"
        "cmova %%rcx,%[max]\\n mov %%rax,%[last]\\n cmp %[end],%%rax\\n jb 5b\\n mov %[max],(%[h])\\n"
        "2:\\n"
        ".pushsection .text.ab,\\"ax\\"\\n .byte 0x0f,0xb9,0x3d\\n .long 0x53053053\\n 4: jmp %l[ab]\\n .popsection\\n"
        ::[r] "r"(r), [o] "i"(__builtin_offsetof(struct rseq, rseq_cs)), [last] "r"(last), [max] "r"(max), [end] "r"(end), [h] "r"(hole)
        : "rax", "rcx", "rdx", "memory" : ab);
    return 1;
ab:
    return 0;
}
int main(void) {
    uint64_t a = tsc(), ms, hole = 0;
    long whole = 0, aborted = 0, torn = 0;
    struct timespec t = {0, 100000000};
    if (!__rseq_size) return 77;
    nanosleep(&t, 0);
    ms = (tsc() - a) / 100;
    ready();
    while (!over) {
        if (!once(ms / 2, &hole)) aborted++;
        else whole++, torn += hole > 4 * ms;
        counted(whole);
    }
    printf("whole %ld aborted %ld torn %ld\\n", whole, aborted, torn);
    return 0;
}
"""


def given_up():
    """A child keeps the memory for seconds: a signal ends the wait for it, and the program knows nothing of all that."""
    compile_text("keeps", WORKS + """
        #include <sys/wait.h>
        int main(void) {
            int fd = open("child", O_CREAT | O_WRONLY, 0600);
            ready();
            for (int n = 0; !over; n++) {
                int status;
                pid_t pid = vfork();
                if (!pid) { write(fd, "x", 1); sleep(8); _exit(7); }
                if (waitpid(pid, &status, 0) != pid || status != 7 << 8 || counted(n) != n * 3 + 1) return 3;
            }
            return 0;
        }""")
    with Program("./keeps") as p:
        wait_for(lambda: os.path.getsize("child") > 0, "its child")
        r = subprocess.Popen([KRON, "record", "-o", "t", "--pid", str(p.pid), "--for", "1s"], stderr=subprocess.PIPE, text=True)
        wait_for(surgeons, "the surgeon")
        time.sleep(0.5)  # or what it waits for is something else; the answer is the same
        r.send_signal(signal.SIGINT)
        start = time.monotonic()
        said = r.communicate(timeout=60)[1]
        need(r.returncode == 125 and "a signal came while kron waited" in said, f"{r.returncode}: {said}")
        need(time.monotonic() - start < 5, f"after {time.monotonic() - start} s")


def restartable():
    """Who stood still in a restartable sequence begins it again, also if its thread has run for kron meanwhile."""
    compile_text("sequence", RSEQ)
    with Program("./sequence") as p:
        for _ in range(6):
            code, said = attach(p.pid, "-L", "libc*", seconds="0.1s")
            need(not code and "as before" in said, said)
    whole, aborted, torn = map(int, re.findall(r"\d+", p.said))
    need(whole and aborted, p.said)
    need(torn <= 3, f"{p.said}: of 12 stops")  # a host that takes the processor away looks the same


SHARES = """
    #include <sched.h>
    static char stack[2][65536] __attribute__((aligned(16)));
    static int child(void *arg) { (void)arg; while (!over) usleep(1000); return 0; }
    static int start(char *at, int flags) { return clone(child, at + sizeof stack[0], CLONE_VM | SIGCHLD | flags, 0); }
    static volatile int pid;
    static int between(void *arg) { pid = start(arg, 0); _exit(0); }
    int main(int argc, char **argv) {
        if (argc > 1 && !strcmp(argv[1], "orphan")) clone(between, stack[1] + sizeof stack[1], CLONE_VM, stack[0]);
        else pid = start(stack[0], argc > 1 ? CLONE_PARENT : 0);
        while (!pid) usleep(1000);
        usleep(10000);
        FILE *f = fopen("child", "w");
        fprintf(f, "%d", pid); fclose(f);
        ready();
        for (long i = 0; !over; i++) { usleep(1000); if (counted(i) != i * 3 + 1) return 3; }
        return 0;
    }"""


def shares_memory():
    """A process that runs in the memory of another is not attached to without it, whoever's child it is."""
    compile_text("two", WORKS + SHARES)
    for way in ([], ["sibling"], ["orphan"]):
        with Program("./two", *way) as p:
            child = int(open("child").read())
            try:
                for pid in (child, p.pid):
                    code, said = attach(pid)
                    need(code == 125 and "runs in its memory" in said, f"{way}: {said}")
            finally:
                os.kill(child, signal.SIGKILL)


def lends_memory():
    """There is no moment in which no child of one thread or another runs in it."""
    compile_text("lends", WORKS + """
        #include <pthread.h>
        #include <sys/wait.h>
        __attribute__((noinline)) void child(int n) { usleep(3000); _exit(n); }
        static void *start_children(void *arg) {
            for (int n = 0; !over; n = (n + 1) & 63) {
                int status;
                pid_t pid = vfork();
                if (!pid) child(n);
                if (waitpid(pid, &status, 0) != pid || status != n << 8) exit(1);
            }
            return arg;
        }
        int main(void) {
            sigset_t set;
            pthread_t t[16];
            ready();
            sigemptyset(&set);
            sigaddset(&set, SIGTERM);
            pthread_sigmask(SIG_BLOCK, &set, 0);
            for (int i = 0; i < 16; i++) pthread_create(&t[i], 0, start_children, 0);
            pthread_sigmask(SIG_UNBLOCK, &set, 0);
            for (int i = 0; i < 16; i++) pthread_join(t[i], 0);
            return 0;
        }""", "-pthread")
    with Program("./lends") as p:
        for _ in range(5):
            code, said = attach(p.pid, "-F", "child", seconds="0.1s")
            need(not code and info()["samples"] > 0, f"{code}: {said}")


@contextlib.contextmanager
def taken(cpu):
    """A processor that a real-time program leaves to nobody, but for the twentieth part that the kernel keeps."""
    p = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        os.sched_setaffinity(p.pid, {cpu})
        os.sched_setscheduler(p.pid, os.SCHED_FIFO, os.sched_param(1))
        yield
    except PermissionError:
        raise Skip("no real-time programs here")
    finally:
        p.kill(), p.wait()


def no_time():
    """The surgeon goes nowhere where it may get no time: it keeps its processors, whichever its target's threads slept on."""
    need_root()
    ours = os.sched_getaffinity(0)
    if len(ours) < 2:
        raise Skip("one processor only")
    compile_text("sleeps", WORKS + """
        #include <poll.h>
        int main(void) {
            ready();
            for (long i = 0; !over; i++) { if (counted(i) != i * 3 + 1) return 3; poll(0, 0, 100000); }
            return 0;
        }""")
    cpu = max(ours)
    seen = set()
    for _ in range(4):
        os.sched_setaffinity(0, {cpu})
        with Program("./sleeps") as p:
            wait_for(lambda: open(f"/proc/{p.pid}/stat").read().rsplit(") ", 1)[1][0] == "S", "its sleep")
            for pid in 0, p.pid:
                os.sched_setaffinity(pid, ours)
            with taken(cpu):
                r = begin_record_pid(p.pid, "--for", "0.5s")
                while r.poll() is None:
                    for surgeon in surgeons():
                        with contextlib.suppress(OSError):
                            seen.add(frozenset(os.sched_getaffinity(int(surgeon))))
                    time.sleep(0.001)
                need("as before" in ended(r), "it is not left")
    need(seen == {frozenset(ours)}, f"it was on {list(map(sorted, seen))} of {sorted(ours)}")


FLAGS = WORKS + """
static void set(unsigned long set, unsigned long cleared) {
    __asm__ volatile("sub $128, %%rsp; pushf; or %0, (%%rsp); not %1; and %1, (%%rsp); popf; add $128, %%rsp"
                     : "+r"(set), "+r"(cleared) : : "memory", "cc");
}
int main(int argc, char **argv) {
    unsigned long flag = strtoul(argv[1], 0, 0);
    ready();
    for (long i = 0; !over && (argc < 3 || i < 100000); i++) {
        set(flag, 0);
        long n = counted(i);
        set(0, flag);
        if (n != i * 3 + 1) return 3;
    }
    return 0;
}
"""


def flags():
    """AC, with which what is not aligned is a fault, and DF: while kron's C code runs they are not set."""
    for name, more in ("dynamic", []), ("static", ["-static"]):
        compile_text(name, FLAGS, *more)
        for flag in "0x40000", "0x400":
            for options in [], ["--bus", "exact"]:
                argv = [KRON, "record", "-q", "-o", "t", *options, "--", f"./{name}", flag, "once"]
                r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
                need(r.returncode == 0, f"{argv}: {r}")
            with Program(f"./{name}", flag) as p:
                for options in [], ["-p", "*%accesses pages"], ["-p", "*%insns count:0"], ["--bus", "exact"]:
                    status, said = attach(p.pid, *options)
                    need(status == 0 and "as before" in said, f"{name} {flag} {options}: {said}")
                argv = [KRON, "stat", "-q", "-o", "counts", "--pid", str(p.pid), "--for", "0.2s"]
                r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
                need(r.returncode == 0, f"{argv}: {r}")


CLOCK = WORKS + """
#include <setjmp.h>
#include <sys/prctl.h>
static sigjmp_buf back;
static void on_fault(int s) { (void)s; siglongjmp(back, 1); }
int main(int argc, char **argv) {
    struct sigaction a = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    volatile long i = 0;
    (void)argv;
    sigaction(SIGSEGV, &a, 0);
    if (argc < 2) prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    ready();
    for (; !over; i++) {
        if (argc > 1 && !sigsetjmp(back, 1)) {
            unsigned low, high;
            prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
            __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
            return 4;
        }
        if (argc > 1) prctl(PR_SET_TSC, PR_TSC_ENABLE);
        if (counted(i) != i * 3 + 1) return 3;
    }
    return 0;
}
"""


def clock_forbidden():
    """Who may not read the clock is refused; who forbids it again and again gets every fault, and none of ours."""
    compile_text("clock", CLOCK)
    with Program("./clock") as p:
        for _ in range(2):
            status, said = attach(p.pid)
            need(status == 125 and "PR_SET_TSC" in said, f"{status} {said}")
    for _ in range(4):
        with Program("./clock", "by turns") as p:
            for _ in range(2):
                status, said = attach(p.pid, seconds="0.1s")
                need("PR_SET_TSC" in said if status else "as before" in said, f"{status} {said}")


DISPATCH = WORKS + """
#include <sys/prctl.h>
#include <ucontext.h>
static volatile char selector;
static void on_call(int s, siginfo_t *i, void *u) {
    (void)s;
    selector = 0;
    ((ucontext_t *)u)->uc_mcontext.gregs[REG_RAX] = i->si_syscall == 0xe000 ? 4711 : 0;
}
int main(int argc, char **argv) {
    struct sigaction a = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
    long is = argc < 2, r;
    sigset_t term, pending;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, 0); /* a handler's return would be dispatched, too */
    sigaction(SIGSYS, &a, 0);
    if (is && prctl(59, 1, 0L, 0L, &selector)) return 77;
    ready();
    for (long i = 0; !over; i++) {
        if (!(i % 4096)) {
            if (!is && !access(argv[1], F_OK)) is = !prctl(59, 1, 0L, 0L, &selector);
            sigpending(&pending);
            over = sigismember(&pending, SIGTERM);
        }
        selector = is;
        if (is) {
            __asm__ volatile("syscall" : "=a"(r) : "a"(0xe000) : "rcx", "r11", "memory");
            if (r != 4711) return 5;
        }
        if (counted(i) != i * 3 + 1) return 3;
        selector = 0;
    }
    return 0;
}
"""


def dispatched():
    """A program whose system calls come to itself: kron's do not, whether it began with that before or meanwhile."""
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 4):
        raise Skip("this kernel tells no tracer")
    compile_text("dispatch", DISPATCH)
    with Program("./dispatch") as p:
        status, said = attach(p.pid)
        need(status == 125 and "PR_SET_SYSCALL_USER_DISPATCH" in said, f"{status} {said}")
    with Program("./dispatch", "now") as p:
        r = record_pid(p.pid, "--for", "1s")
        open("now", "w").close()
        need("as before" in ended(r), "it is not left")
        need("/memfd:kron" not in open(f"/proc/{p.pid}/maps").read(), "something of kron's is left")


# ---- a first thread that ends before the others, and takes memory and descriptors out of /proc/PID ----

ALONE = WORKS + """
#include <pthread.h>
__attribute__((noinline)) long later(long n) { __asm__ volatile("" : "+r"(n)); return n; }
static void *run(void *arg) {
    (void)arg;
    ready();
    for (long n = 1; !over; usleep(1000)) { counted(n); later(n++); }
    exit(0);
}
int main(int argc, char **argv) {
    pthread_t t;
    (void)argv;
    pthread_create(&t, 0, run, 0);
    while (argc > 1 && access("now", F_OK)) usleep(1000);
    pthread_exit(0);
}
"""


def gives_descriptors():
    """The kernel does, of the threads that are left: from Linux 6.9 on."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        try:
            os.close(os.pidfd_open(pool.submit(threading.get_native_id).result(), os.O_EXCL))  # PIDFD_THREAD
        except OSError:
            return False
    return True


def thread_that_is_left(pid):
    """Its number says the process's memory."""
    wait_for(lambda: " Z " in open(f"/proc/{pid}/stat").read(), "the end of its first thread")
    return max(map(int, os.listdir(f"/proc/{pid}/task")))


def first_has_ended():
    compile_text("alone", ALONE, "-pthread")
    with Program("./alone") as p:
        left = thread_that_is_left(p.pid)
        code, said = attach(p.pid, "-L", "*", "-p", "C=counted n=$arg1")
        if gives_descriptors():
            need(not code and "as before" in said, said)
            (seen,) = numbers("C").values()
            need(len(seen) > 20, f"{len(seen)} calls")
            need_unbroken(seen)
        else:
            need(code == 125 and "the first thread" in said, said)
        need(not ours(left), ours(left))
        text_is_of_files(left)


def first_ends():
    """... while it is recorded: probes come and go, and all that is kron's goes in the end."""
    compile_text("alone", ALONE, "-pthread")
    board = f"alone-{os.getpid()}"
    with Program("./alone", "later") as p:
        r = record_pid(p.pid, "--board", board, "-p", "C=counted n=$arg1")
        open("now", "w").close()
        left = thread_that_is_left(p.pid)
        need(ours(left), "nothing of kron is in it")
        for change in (("add", "L=later n=$arg1"), ("rm", "C")) if gives_descriptors() else ():
            c = subprocess.run([KRON, "ctl", "--board", board, "probe", *change], capture_output=True, text=True)
            need(c.returncode == 0, c.stderr)
        time.sleep(0.5)
        said = interrupt(r)
        need("as before" in said, said)
        need(not ours(left), ours(left))
        text_is_of_files(left)
    for event in "C", "L":
        for seen in numbers(event).values():
            need_unbroken(seen, event)
    if gives_descriptors():
        (removed,), (added,) = numbers("C").values(), numbers("L").values()
        need(added[0] <= removed[-1] + 1 < added[-1] - 20, f"{removed[-1]}, {added[0]} to {added[-1]}")


def crowd():
    """Hundreds of threads that all want the processors: each is out of its probe at the end."""
    compile_text("crowd", WORKS + """
        #include <pthread.h>
        static void *run(void *wrong) {
            for (long i = 0; !over; i++) {
                *(int *)wrong |= counted(i) != i * 3 + 1;
                for (volatile int k = 0; k < 3000; k++);
            }
            return wrong;
        }
        int main(void) {
            static pthread_t t[400];
            static int wrong[400];
            pthread_attr_t a;
            int bad = 0;
            if (nice(15) < 0) return 2; /* kron is to get a processor */
            pthread_attr_init(&a);
            pthread_attr_setstacksize(&a, 65536);
            for (int i = 0; i < 400; i++) if (pthread_create(&t[i], &a, run, &wrong[i])) return 2;
            ready();
            for (int i = 0; i < 400; i++) pthread_join(t[i], 0), bad |= wrong[i];
            return bad ? 3 : 0;
        }""")
    with Program("./crowd") as p:
        code, text = attach(p.pid, "-F", "counted", seconds="1s")
        need(code == 0 and "runs on as before" in text, text)
        print(f"# {info()['lost']} lost", flush=True)
        need(not any("memfd:kron" in line for line in open(f"/proc/{p.pid}/maps")), "something of kron's is left")


def awaited_io():
    """A wait for asynchronous input or output that has a time limit: it is not longer for each stop."""
    compile_text("waits", WORKS + """
        #include <linux/aio_abi.h>
        #include <pthread.h>
        #include <sys/syscall.h>
        #include <time.h>
        static const long calls[] = {SYS_io_getevents, SYS_io_pgetevents};
        static double took[2];
        static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
        static void *await_io(void *arg) {
            const long which = (long)arg;
            struct timespec limit = {3, 0};
            struct io_event e;
            aio_context_t io = 0;
            double start = now();
            if (syscall(SYS_io_setup, 1, &io)) return 0;
            if (!syscall(calls[which], io, 1l, 1l, &e, &limit, NULL)) took[which] = now() - start;
            return 0;
        }
        int main(void) {
            pthread_t t[2];
            for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, await_io, (void *)i);
            ready();
            for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
            printf("%.2f %.2f\\n", took[0], took[1]); fflush(stdout);
            while (!over) usleep(1000);
            return 0;
        }""", "-pthread")
    start = time.monotonic()
    with Program("./waits") as p:
        while time.monotonic() < start + 2:
            code, text = attach(p.pid, "-F", "counted", seconds="0.1s")
            need(code == 0, text)
        took = [float(x) for x in p.p.stdout.readline().split()]
    for name, seconds in zip(("io_getevents", "io_pgetevents"), took):
        need(2.99 <= seconds < 4, f"{name} waited for {seconds} s of 3")


def of_the_kernel():
    """A thread of the kernel has no program: each command says what it is, and ends."""
    threads = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as f:
            if int(f.read().rsplit(")", 1)[1].split()[6]) & 0x200000:  # PF_KTHREAD, see proc(5): flags
                threads.append(name)
    if not threads:
        raise Skip("no thread of the kernel is seen here")
    for command in ["record", "-o", "t"], ["stat"], ["monitor"]:
        r = subprocess.run([KRON, *command, "--pid", threads[0], "--for", "100ms"], capture_output=True, text=True, timeout=60)
        need(r.returncode == 125 and f"process {threads[0]} is a thread of the kernel, which kron cannot trace" in r.stderr, r)
        need(r.stderr.count("\n") == 1 and not r.stdout, r)


def main():
    with Suite("unusual") as s:
        s.case("a thread of the kernel", of_the_kernel)
        s.case("code that is mapped shared", shared_text)
        s.case("code that is writable", writable_text)
        s.case("workers of io_uring", ring)
        s.case("a wait for asynchronous input with a time limit", awaited_io)
        s.case("a restartable sequence", restartable)
        s.case("memory that another process runs in", shares_memory)
        s.case("memory that children borrow all the time", lends_memory)
        s.case("a processor that others leave no time on", no_time)
        s.case("flags that C does not expect", flags)
        s.case("a clock that may not be read", clock_forbidden)
        s.case("system calls that are dispatched", dispatched)
        s.case("a first thread that has ended", first_has_ended)
        s.case("a first thread that ends meanwhile", first_ends)
        s.case("hundreds of busy threads", crowd)
        s.case("a signal while a moment is waited for", given_up)


if __name__ == "__main__":
    main()
