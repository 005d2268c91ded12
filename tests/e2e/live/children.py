#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 900
"""Programs in which no dynamic linker brings the runtime, executed by programs that are recorded; and what processes
execute that were attached to.

Ground truth: the same without kron, what the programs see of themselves (arguments, environment, descriptors, signals,
their file, who traces them), and the calls that they count themselves."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import ended, interrupt, record_pid, surgeons  # noqa: E402
from tap import KRON, Skip, Suite, children_of, compile_text, need, need_root, truth, wait_for  # noqa: E402

CHILD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>
extern char **environ;
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long counted(unsigned long n) { sink += n; return n + 1; }
int main(int argc, char **argv) {
    unsigned long n = 0;
    char name[16] = "", line[256], exe[4096] = "";
    for (int i = 0; i < argc; i++) puts(argv[i]);
    if (!getenv("BRIEF")) for (char **e = environ; *e; e++) puts(*e);
    for (int fd = 0; fd < 64; fd++) printf("%d", fcntl(fd, F_GETFD) >= 0);
    prctl(PR_GET_NAME, name);
    printf(" %s %lu\\n", name, getauxval(AT_SECURE));
    if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0) return 3;
    puts(exe);
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if ((!strncmp(line, "Sig", 3) && line[3] != 'Q') || !strncmp(line, "Cap", 3))
            fputs(line, stdout);
        else if (!strncmp(line, "TracerPid:", 10))
            puts(atoi(line + 10) ? "traced" : "not traced");
    while (n < 1000) n = counted(n);
    printf("%lu\\n", n);
    fflush(stdout);
    if (argc > 2 && !strcmp(argv[1], "-")) execv(argv[2], argv + 2);
    return 41;
}
"""

# starter WAY ARG...: how it came to be, and its status
STARTER = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char **args;
static int tracer(void) {
    char line[256];
    int pid = -1;
    FILE *f = fopen("/proc/thread-self/status", "r");
    while (f && fgets(line, sizeof(line), f)) sscanf(line, "TracerPid: %d", &pid);
    if (f) fclose(f);
    return pid;
}
static void *in_thread(void *arg) {
    execve(args[0], args, environ);
    return arg;
}
static void execute(const char *way) {
    static char *none[] = {"ONLY=1", NULL};
    pthread_t t;
    if (!strcmp(way, "thread")) {
        pthread_create(&t, NULL, in_thread, NULL);
        pthread_join(t, NULL);
    } else if (!strcmp(way, "fexecve")) {
        fexecve(open(args[0], O_RDONLY | O_CLOEXEC), args, environ);
    } else if (!strcmp(way, "raw")) {
        syscall(SYS_execve, args[0], args, environ);
    } else if (!strcmp(way, "cleared")) {
        execve(args[0], args, none);
    } else if (!strcmp(way, "fails")) {
        /* it is there, it may be executed, and the kernel says no */
        static char long_one[1 << 18];
        char *many[] = {args[0], long_one, NULL};
        memset(long_one, 'x', sizeof(long_one) - 1);
        execve(args[0], many, environ);
        printf("%s, traced by %d\\n", strerror(errno), tracer());
        fflush(stdout);
        execve(args[0], args, environ);
    } else if (!strcmp(way, "traced")) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execve(args[0], args, environ);
    } else {
        execve(args[0], args, environ);
    }
}
int main(int argc, char **argv) {
    const char *way = argv[1];
    int status, stops = 0;
    pid_t pid = 0;
    (void)argc;
    args = argv + 2;
    if (!strcmp(way, "itself")) {
        execute(way);
        return 9;
    } else if (!strcmp(way, "spawn")) {
        if (posix_spawn(&pid, args[0], NULL, NULL, args, environ)) return 8;
    } else if (!strcmp(way, "vfork")) {
        pid = vfork();
        if (!pid) { execve(args[0], args, environ); _exit(9); }
    } else {
        pid = fork();
        if (!pid) { execute(way); _exit(9); }
    }
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        stops++;
        ptrace(PTRACE_CONT, pid, 0, 0);
    }
    printf("%d stops, status %x\\n", stops, status);
    return 0;
}
"""
WAYS = ("fork", "vfork", "spawn", "thread", "fexecve", "raw", "cleared", "fails", "itself")


def run(*argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)


def record(*argv, options=(), **more):
    return run(KRON, "record", "-o", "t", *options, "--", *argv, **more)


def calls(name="counted", trace="t"):
    return truth.report_calls(trace)[name]


def same_but_recorded(argv, times, unsaid=True, name="counted"):
    plain, traced = run(*argv), record(*argv)
    need(traced.stdout == plain.stdout, f"{argv}: {plain.stdout}\n--- traced:\n{traced.stdout}")
    need(traced.returncode == plain.returncode, f"{argv}: {plain.returncode}, traced {traced.returncode}")
    need(not unsaid or "untraced" not in traced.stderr, f"{argv}: {traced.stderr}")
    need(calls(name) == times, f"{argv}: {calls(name)} of {times} calls, {traced.stderr}")
    return traced.stderr


def ways(starter, child):
    for way in WAYS:
        same_but_recorded([starter, way, child, "argument"], 1000)


def script(starter, child):
    with open("script", "w") as f:
        f.write(f"#!{child} option\n")
    os.chmod("script", 0o755)
    same_but_recorded([starter, "vfork", "./script"], 1000)


def chain(*programs):
    """Each executes the next one."""
    same_but_recorded([*(w for p in programs for w in (p, "-")), programs[0]][: 2 * len(programs)], 1000 * len(programs))


def failed_for_good(starter, child):
    """What cannot be executed at all; a folder, a text without an interpreter."""
    os.mkdir("folder")
    with open("text", "w") as f:
        f.write("nothing")
    os.chmod("text", 0o755)
    for target in "./nothing", "./folder", "./text":
        same_but_recorded([starter, "vfork", target], 0)


def other_tracer(starter, child):
    """The debugger that it asked for keeps it."""
    said = same_but_recorded([starter, "traced", child], 0, unsaid=False)
    need("it is static, and another process traces it" in said, said)


def set_id(starter, child):
    need_root()
    shutil.copy(child, "setid")
    os.chown("setid", 65534, 65534)
    os.chmod("setid", 0o4755)
    said = same_but_recorded([starter, "vfork", "./setid"], 0, unsaid=False)
    need("it is set-id" in said, said)


def other_user(starter, child):
    """It has given up being root; and a recorder who is not root, of a program that may be traced."""
    need_root()
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    os.chmod(".", 0o777)
    os.chmod("..", 0o755)
    same_but_recorded([*nobody, starter, "fork", child], 1000)
    r = run(*nobody, KRON, "record", "-o", "t2", "--", starter, "fork", child, env={**os.environ, "XDG_CACHE_HOME": os.getcwd()})
    need("untraced" not in r.stderr and calls(trace="t2") == 1000, r.stderr)


def many(child):
    """Fifty at once; each has its thousand calls."""
    command = f"for i in $(seq 50); do {child} $i >out$i & done; wait"
    r = record("sh", "-c", command, env={**os.environ, "BRIEF": "1"})
    need(r.returncode == 0 and "untraced" not in r.stderr, r.stderr)
    need(calls() == 50000, f"{calls()} calls, {r.stderr}")
    for i in range(1, 51):
        said = open(f"out{i}").read().splitlines()
        need(said[1] == str(i) and said[-1] == "1000", said)


def goes(starter, child):
    """Go executes by system calls of its own, and on its own stacks: more often than there are stacks for our C."""
    if not shutil.which("go"):
        raise Skip("no go here")
    with open("g.go", "w") as f:
        f.write(
            """package main
            import ("os"; "os/exec"; "strconv")
            //go:noinline
            func counted(i int) int { return i * 3 }
            func main() {
                sum := 0
                for i := 0; i < 1000; i++ { sum += counted(i) }
                times, _ := strconv.Atoi(os.Args[1])
                for i := 0; i < times; i++ {
                    c := exec.Command(os.Args[2], os.Args[3:]...)
                    c.Stdout = os.Stdout
                    if c.Run() == nil { os.Exit(4) }
                }
                if sum > 0 { os.Exit(41) }
            }
            """
        )
    cache = {"GOCACHE": os.path.abspath("cache"), "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0", "GO111MODULE": "off"}
    if run("go", "build", "-o", "g", "g.go", env={**os.environ, **cache}).returncode:
        raise Skip("go cannot build it here")
    same_but_recorded(["./g", "80", child], 80000)
    need(calls("main.counted") == 1000, calls("main.counted"))
    same_but_recorded(["./g", "1", "./g", "0"], 2000, name="main.counted")
    same_but_recorded([starter, "spawn", "./g", "0"], 1000, name="main.counted")
    # not there, and not to be had
    same_but_recorded(["./g", "1", "./nothing"], 0)


def stripped(shell, child):
    """A shell without symbols."""
    same_but_recorded([shell, "sh", "-c", f"{child} 1; {child} 2; ./nothing; exit 3"], 2000)


def killed(starter, child):
    """The recorder is killed at any moment: all of them end as ever, and nobody is left who traces."""
    loop = f"for i in 1 2 3 4 5 6 7 8 9 10; do {starter} vfork {child} >>out || echo wrong; done; echo end >>out"
    plain = run("sh", "-c", loop, env={**os.environ, "BRIEF": "1"})
    need(plain.returncode == 0, plain.stderr)
    wanted = open("out").read()
    for turn in range(15):
        os.remove("out")
        r = subprocess.Popen(
            [KRON, "record", "-q", "-o", "t", "--", "sh", "-c", loop], env={**os.environ, "BRIEF": "1"},
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: os.path.exists("out") or r.poll() is not None, "its first program")
        time.sleep(turn * 0.004)
        r.kill()
        r.wait()
        wait_for(lambda: open("out").read().endswith("end\n"), "the end")
        need(open("out").read() == wanted, f"{wanted}\n--- and:\n{open('out').read()}")
    wait_for(lambda: not surgeons(), "the end of all surgeons")


WATCHFUL = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 200; i++) {
        char line[256];
        int pid = 0;
        FILE *f = fopen("/proc/self/status", "r");
        while (f && fgets(line, sizeof(line), f)) sscanf(line, "TracerPid: %d", &pid);
        if (f) fclose(f);
        if (pid) return puts("traced"), fflush(stdout), 1;
        if (!i) puts("runs"), fflush(stdout);
        usleep(1000);
    }
    return puts("was never traced") < 0;
}
"""


def are_untraced(pids):
    """There are some, and nobody traces them."""
    try:
        return bool(pids) and all("TracerPid:\t0\n" in open(f"/proc/{pid}/status").read() for pid in pids)
    except OSError:
        return False


def surgeon_of(recorder):
    """Its third child: a helper and the program come first."""
    return sorted(c for t in os.listdir(f"/proc/{recorder.pid}/task") for c in children_of(recorder.pid, t))[2:][:1]


def killed_before_its_surgeon(starter):
    """A surgeon that begins when its recorder has gone leaves the program alone, which runs by then."""
    compile_text("watchful", WATCHFUL, "-static")
    early = turns = 0
    while early < 2 and turns < 40:
        turns += 1
        with open("out", "w") as out:
            r = subprocess.Popen(
                [KRON, "record", "-q", "-o", "t", "--", starter, "vfork", "./watchful"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
            )
        wait_for(lambda: surgeon_of(r) or r.poll() is not None, "a surgeon")
        try:
            (surgeon,) = surgeon_of(r)
            os.kill(surgeon, signal.SIGSTOP)
            program = children_of(r.pid)[1]
        except (ValueError, OSError, IndexError):  # it was quicker than this loop
            r.kill()
            r.wait()
            continue
        is_early = are_untraced(children_of(program))
        r.kill()
        r.wait()
        if is_early:
            wait_for(lambda: "runs" in open("out").read(), "its program")
        os.kill(surgeon, signal.SIGCONT)
        wait_for(lambda: "status" in open("out").read(), "its end")
        need(not is_early or "never traced" in open("out").read(), open("out").read())
        early += is_early
    need(early, f"none of {turns} surgeons was stopped before it began")
    wait_for(lambda: not surgeons(), "the end of all surgeons")


def stopped_recorder(starter, child):
    """Kron is stopped when a program is to be planned: that runs all the same."""
    subprocess.run(["cp", child, "big"], check=True)
    for turn in range(8):
        # a file that was never planned: that takes a while
        with open("big", "ab") as f:
            f.write(b"x")
        for name in "out", "go":
            if os.path.exists(name):
                os.remove(name)
        r = subprocess.Popen(
            [KRON, "record", "-o", "t", "--", "sh", "-c", f": >out; until [ -e go ]; do :; done; {starter} vfork ./big >out"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        wait_for(lambda: os.path.exists("out"), "its first program")
        open("go", "w").close()
        time.sleep(turn * 0.005)
        r.send_signal(signal.SIGSTOP)
        wait_for(lambda: open("out").read().endswith("status 2900\n"), "the end", 30)
        r.send_signal(signal.SIGCONT)
        said = r.communicate(timeout=60)[1]
        need(r.returncode == 0, said)


# ---- kron record --pid ----

ATTACHED = """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
extern char **environ;
static volatile int sum;
__attribute__((noinline)) int tick(int n) { sum += n; return n + 1; }
int main(int argc, char **argv) {
    volatile int n = 0;
    (void)argc;
    puts("ready"); fflush(stdout);
    while (access("go", F_OK)) { n = tick(n); usleep(1000); }
    for (char **target = argv + 1; *target; target++) {
        char *args[] = {*target, "argument", NULL};
        int status;
        n = tick(n);
        pid_t pid = vfork();
        if (!pid) { execve(*target, args, environ); _exit(9); }
        if (waitpid(pid, &status, 0) != pid) return 1;
        printf("status %x\\n", status); fflush(stdout);
    }
    puts("done"); fflush(stdout);
    while (access("end", F_OK)) { n = tick(n); usleep(1000); }
    return 0;
}
"""


def attach(attached, targets, *options):
    """What it has said, without kron; likewise with; and what kron has said."""
    plain, traced, said = [], [], ""
    for lines in plain, traced:
        for name in "go", "end":
            if os.path.exists(name):
                os.remove(name)
        p = subprocess.Popen([attached, *targets], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        need(p.stdout.readline() == "ready\n", "it did not start")
        if lines is traced:
            r = record_pid(p.pid, *options)
        open("go", "w").close()
        while not lines or lines[-1] != "done\n":
            lines.append(p.stdout.readline())
            need(lines[-1], lines)
        if lines is traced:
            said = interrupt(r)
            need("as before" in said, said)
        open("end", "w").close()
        need(not p.stdout.read() and p.wait(60) == 0, f"it ended with {p.returncode}")
        p.stdout.close()
    need(plain == traced, f"{''.join(plain)}--- traced:\n{''.join(traced)}")
    return said


def children_of_attached(attached, dynamic, *static):
    said = attach(attached, [dynamic, *static], "--children")
    need("untraced" not in said, said)
    need(calls() == 1000 * (1 + len(static)), f"{calls()} calls, {said}")
    need(calls("tick") > 0, "the process itself has no calls")


def unasked(attached, dynamic, static):
    said = attach(attached, [dynamic, static, "./nothing"])
    need("--children" in said and "(2 times)" in said, said)
    need(calls() == 0, f"{calls()} calls")


def becomes_another(static):
    """With --children it is recorded as what it executes in its place."""
    p = subprocess.Popen(
        ["bash", "-c", f"until [ -e go ]; do sleep 0.02; done; exec {static} 7"], stdout=subprocess.PIPE, text=True
    )
    r = record_pid(p.pid, "--children")
    open("go", "w").close()
    p.communicate()
    said = ended(r)
    need(p.returncode == 41, said)
    need("untraced" not in said and calls() == 1000, f"{calls()} calls, {said}")


def musl_libraries():
    """One that it is linked with and one that it opens later; threads; its own end."""
    for name in "one", "two":
        with open(f"lib{name}.c", "w") as f:
            f.write(f"static volatile int s; __attribute__((noinline)) int {name}_counted(int n) {{ s += n; return n + 1; }}")
        subprocess.run(["musl-gcc", "-O2", "-shared", "-fPIC", "-o", f"lib{name}.so", f"lib{name}.c"], check=True)
    with open("m.c", "w") as f:
        f.write(
            """
            #include <dlfcn.h>
            #include <pthread.h>
            #include <stdio.h>
            int one_counted(int);
            static volatile int s;
            __attribute__((noinline)) int counted(int n) { s += n; return n + 1; }
            static void *work(void *arg) { for (int n = 0; n < 500;) n = counted(n); return arg; }
            int main(void) {
                pthread_t t[2];
                int n = 0;
                for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
                for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
                while (n < 300) n = one_counted(n);
                void *l = dlopen("./libtwo.so", RTLD_NOW);
                int (*two)(int) = l ? (int (*)(int))dlsym(l, "two_counted") : 0;
                for (n = 0; two && n < 200;) n = two(n);
                printf("%d\\n", n);
                return two ? 3 : 4;
            }
            """
        )
    subprocess.run(["musl-gcc", "-O2", "-o", "m", "m.c", "-L.", "-lone", "-Wl,-rpath,$ORIGIN"], check=True)
    plain, traced = run("./m"), record("./m", options=("-L", "lib*.so"))
    need(plain.returncode == 3 and traced.returncode == 3, f"{plain.returncode}, {traced.returncode}: {traced.stderr}")
    need(plain.stdout == traced.stdout and "untraced" not in traced.stderr, f"{traced.stdout}{traced.stderr}")
    for name, times in ("counted", 1000), ("one_counted", 300), ("two_counted", 200):
        need(calls(name) == times, f"{name}: {calls(name)} calls, not {times}")


def belongs_to_pid():
    r = run(KRON, "record", "--children", "--", "true")
    need(r.returncode == 125 and "--children belongs to --pid" in r.stderr, r.stderr)


with Suite("children") as s:
    for name in set(os.environ) - {"PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "KRON"}:
        del os.environ[name]
    for name, flags in ("dynamic", []), ("static", ["-static"]), ("pie", ["-static-pie"]):
        compile_text(f"child_{name}", CHILD, *flags)
    compile_text("starter_dynamic", STARTER, "-pthread", "-Wno-unused-result")
    compile_text("starter_static", STARTER, "-pthread", "-static", "-Wno-unused-result")
    compile_text("attached_dynamic", ATTACHED)
    compile_text("attached_static", ATTACHED, "-static")
    at = {n: os.path.join(s.folder, n) for n in os.listdir(s.folder)}
    starters, static, pie = ("starter_dynamic", "starter_static"), at["child_static"], at["child_pie"]
    for starter in starters:
        s.case(f"{starter}: a static program, in every way", ways, at[starter], static)
        s.case(f"{starter}: a position-independent one", ways, at[starter], pie)
        s.case(f"{starter}: the interpreter of a script", script, at[starter], static)
        s.case(f"{starter}: what cannot be executed", failed_for_good, at[starter], static)
        s.case(f"{starter}: who is traced already", other_tracer, at[starter], static)
        s.case(f"{starter}: set-id", set_id, at[starter], static)
        s.case(f"{starter}: another user", other_user, at[starter], static)
    s.case("a static program executes a dynamic one", ways, at["starter_static"], at["child_dynamic"])
    s.case("a chain", chain, static, pie, at["child_dynamic"], static, at["child_dynamic"], pie)
    s.case("fifty at once", many, static)
    s.case("Go", goes, at["starter_dynamic"], static)
    if shutil.which("musl-gcc"):
        subprocess.run(["musl-gcc", "-O2", "-static", "-o", "child_musl", "child_static.c"], check=True)
        subprocess.run(["strip", "-o", "child_bare", "child_musl"], check=True)
        subprocess.run(["musl-gcc", "-O2", "-o", "child_musl_dynamic", "child_static.c"], check=True)
        dynamic_musl = os.path.join(s.folder, "child_musl_dynamic")
        s.case("musl's dynamic linker", ways, at["starter_dynamic"], dynamic_musl)
        s.case("musl's dynamic linker, executing", chain, dynamic_musl, static, dynamic_musl, at["child_dynamic"])
        s.case("musl's dynamic linker, --children", children_of_attached, at["attached_dynamic"], dynamic_musl, static)
        s.case("musl, and libraries", musl_libraries)
        s.case("musl", ways, at["starter_dynamic"], os.path.join(s.folder, "child_musl"))
        s.case("musl executes", chain, os.path.join(s.folder, "child_musl"), static, at["child_dynamic"])
    busybox = shutil.which("busybox")
    if busybox and "statically" in run("file", "-L", busybox).stdout:
        s.case("busybox", stripped, busybox, static)
    s.case("a killed recorder", killed, at["starter_dynamic"], static)
    s.case("a recorder that is killed before its surgeon begins", killed_before_its_surgeon, at["starter_dynamic"])
    s.case("a stopped recorder", stopped_recorder, at["starter_dynamic"], static)
    for kind in "attached_dynamic", "attached_static":
        s.case(f"{kind}, --children", children_of_attached, at[kind], at["child_dynamic"], static, pie)
        s.case(f"{kind}, without", unasked, at[kind], at["child_dynamic"], static)
    s.case("an attached program becomes another", becomes_another, static)
    s.case("--children without --pid", belongs_to_pid)
