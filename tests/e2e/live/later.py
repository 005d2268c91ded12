#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron ctl probe add: what comes later has the probe, too: libraries, programs, children.

Ground truth: the program writes how often it has called the function, since when it is there."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need, wait_for  # noqa: E402

BOARD = f"later-{os.getpid()}"

# Its constructor counts, too: nothing of a library may run in front of its probes.
PLUG = """
#include <stdio.h>
#include <stdlib.h>
static unsigned long made;
__attribute__((noinline)) unsigned long plugged(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 3 + 1; }
__attribute__((noinline)) unsigned long beside(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 5 + 1; }
void call(unsigned n) { while (n--) { made++; if (plugged(made) != made * 3 + 1 || beside(made) != made * 5 + 1) abort(); } }
static void __attribute__((constructor)) begin(void) { call(7); }
unsigned long calls(void) { return made; }
"""

# Commands on its standard input: l(oad), u(nload), c(all), f(ork), w(ait), e(xecute), s(pawn), q(uit).
MAIN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    char line[64], *child[] = {"./child", "100", 0};
    void *h = 0;
    unsigned long before;
    pid_t pid;
    int status;
    (void)argc; (void)argv;
    puts("ready"); fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        switch (*line) {
        case 'l': h = dlopen("./plug.so", RTLD_NOW); printf("%lu\\n", ((unsigned long (*)(void))dlsym(h, "calls"))()); break;
        case 'c': ((void (*)(unsigned))dlsym(h, "call"))(100); printf("%lu\\n", ((unsigned long (*)(void))dlsym(h, "calls"))()); break;
        case 'u': dlclose(h); h = 0; puts("0"); break;
        case 'f':
            pid = fork();
            if (!pid) {
                before = h ? ((unsigned long (*)(void))dlsym(h, "calls"))() : 0;
                if (!h) h = dlopen("./plug.so", RTLD_NOW);
                ((void (*)(unsigned))dlsym(h, "call"))(50);
                printf("%lu\\n", ((unsigned long (*)(void))dlsym(h, "calls"))() - before);
                fflush(stdout);
                _exit(0);
            }
            waitpid(pid, &status, 0);
            if (status) return 3;
            continue;
        case 's':
            if (posix_spawn(&pid, child[0], 0, 0, child, environ) || waitpid(pid, &status, 0) != pid || status) return 4;
            continue;
        case 'e': execv(child[0], child); return 5;
        case 'q': return 0;
        }
        fflush(stdout);
    }
    return 0;
}
"""

CHILD = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long counted(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 3 + 1; }
static void __attribute__((constructor)) begin(void) { counted(1); }
int main(int argc, char **argv)
{
    unsigned long n = argc > 1 ? strtoul(argv[1], 0, 0) : 1;
    for (unsigned long i = 2; i <= n; i++) if (counted(i) != i * 3 + 1) return 7;
    printf("%lu\\n", n);
    return 0;
}
"""


def kron(*argv, status=0):
    r = subprocess.run([KRON, *argv], capture_output=True, text=True, timeout=120)
    need(r.returncode == status, f"{argv}: {r.returncode}: {r.stderr}")
    return r.stdout if not status else r.stderr


def probe(*argv, status=0):
    return kron("ctl", "--board", BOARD, "probe", *argv, status=status)


def answers():
    return subprocess.run([KRON, "ctl", "--board", BOARD, "probe", "list"], capture_output=True).returncode == 0


class Recording:
    """Of ./main, which is told what to do and says what it has done."""

    def __init__(self, attached=False, argv=("./main",)):
        compile_text("plug.so", PLUG, "-shared", "-fPIC")
        compile_text("main", MAIN, "-ldl")
        compile_text("child", CHILD)
        record = [KRON, "record", "-o", "t", "--board", BOARD, "-b", "256M", "-p", "main"]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.kron = None
        if attached:
            self.program = subprocess.Popen(argv, **pipes)
        else:
            self.program = subprocess.Popen([*record, "--", *argv], stderr=subprocess.PIPE, **pipes)
        need(self.program.stdout.readline() == "ready\n", "it did not start")
        if attached:
            self.kron = subprocess.Popen([*record, "--children", "--pid", str(self.program.pid)], stderr=subprocess.PIPE, text=True)
            said = self.kron.stderr.readline()
            need("recording" in said, f"it does not record: {said}")
        wait_for(answers, "an answer to `kron ctl probe`")

    def do(self, what):
        self.program.stdin.write(what + "\n")
        self.program.stdin.flush()
        return int(self.program.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if exc[0]:
            for p in filter(None, (self.program, self.kron)):
                p.kill()
                p.communicate()
            return
        _, said = self.program.communicate("q\n", timeout=120)
        need(self.program.returncode == 0, f"it ended with {self.program.returncode}: {said}")
        if self.kron:
            _, said = self.kron.communicate(timeout=60)
        need("untraced" not in (said or ""), said)


def recorded(name):
    """The numbers that the function was called with, by process, in the order of time."""
    seen = {}
    for line in kron("dump", "t").splitlines():
        head, event, tail = line.partition(f" event {name} n=0x")
        if event:
            seen.setdefault(head.split()[-2], []).append(int(tail.split()[0], 16))
    return list(seen.values())


# ---- cases ----


def library(attached):
    """Added before it is loaded, loaded twice; taken out in between; loaded without it."""
    with Recording(attached) as r:
        said = probe("add", "E=plug.so:plugged n=$arg1")
        need("no process has loaded plug.so yet" in said, f"it does not say that it waits: {said}")
        first = [r.do("l"), r.do("c")]
        r.do("u")
        second = [r.do("l"), r.do("c"), r.do("c")]
        probe("rm", "E")
        r.do("c")
        r.do("u")
        r.do("l")
        probe("add", "E=plug.so:plugged n=$arg1")
        last = r.do("c")
        need(first == [7, 107] and second == [7, 107, 207] and last == 107, (first, second, last))
    wanted = [*range(1, 108), *range(1, 208), *range(8, 108)]
    need(recorded("E") == [wanted], f"not its calls: {[len(n) for n in recorded('E')]}")


def two_probes():
    """Each is taken out by itself; places that two want stay the first one's."""
    with Recording() as r:
        probe("add", "A=plug.so:plugged n=$arg1")
        probe("add", "B=plug.so:beside n=$arg1")
        r.do("l")
        probe("rm", "A")
        r.do("c")
        probe("add", "A=plug.so:plugged n=$arg1")
        need(r.do("c") == 207, "its calls")
    need(recorded("A") == [[*range(1, 8), *range(108, 208)]], "A")
    need(recorded("B") == [[*range(1, 208)]], "B")


def children(attached):
    """What is forked before the library is loaded, and after."""
    with Recording(attached) as r:
        probe("add", "E=plug.so:plugged n=$arg1")
        need(r.do("f") == 57, "its calls")
        r.do("l")
        need(r.do("f") == 50, "its calls")
    seen = sorted(recorded("E"), key=len)
    need(seen == [[*range(1, 8)], [*range(8, 58)], [*range(1, 58)]], [len(n) for n in seen])


def programs(attached):
    """What is executed later has it from its first instruction; and not any more when it is gone."""
    with Recording(attached) as r:
        probe("add", "E=child:counted n=$arg1")
        need(r.do("s") == 100, "its calls")
        need(r.do("s") == 100, "its calls")
        probe("rm", "E")
        need(r.do("s") == 100, "its calls")
        probe("add", "E=child:counted n=$arg1")
        need(r.do("e") == 100, "its calls")
    need(recorded("E") == [[*range(1, 101)]] * 3, [len(n) for n in recorded("E")])


# Numbers its calls until it is told to end, and says how many they were.
LASTING = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long counted(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 3 + 1; }
int main(void)
{
    unsigned long n = 0;
    while (access("stop", F_OK)) { n++; if (counted(n) != n * 3 + 1) return 7; usleep(1000); }
    printf("%lu\\n", n);
    return 0;
}
"""


def places(name):
    return sum(p["places"] for p in json.loads(probe("list", "--json")) if p["name"] == name)


def static(flag):
    """Nobody in it asks: it is stopped for it once more, just after its start."""
    with Recording() as r:
        compile_text("child", LASTING, flag)
        probe("add", "E=child:counted n=$arg1")
        r.program.stdin.write("s\n")
        r.program.stdin.flush()
        wait_for(lambda: places("E") == 1, "a probe in the static program")
        time.sleep(0.05)
        open("stop", "w").close()
        n = int(r.program.stdout.readline())
    (numbers,) = recorded("E")
    need(numbers == [*range(numbers[0], n + 1)], f"calls are missing: {numbers[0]}, {len(numbers)} of {n}")


def churn():
    """Probes come and go while libraries do, and children: nothing is hurt, nothing is left behind."""
    with Recording() as r:
        changer = subprocess.Popen(
            ["sh", "-c", 'while "$0" ctl --board "$1" probe add E=plug.so:plugged && "$0" ctl --board "$1" probe rm E; do :; done >said 2>&1',
             KRON, BOARD])
        for _ in range(25):
            r.do("l")
            r.do("c")
            r.do("f")
            r.do("u")
            r.do("f")
        need(changer.poll() is None, open("said").read())
        changer.terminate()
        changer.wait()
        subprocess.run([KRON, "ctl", "--board", BOARD, "probe", "rm", "E"], capture_output=True)
        r.do("l")
        probe("add", "F=plug.so:plugged n=$arg1")
        need(r.do("c") == 107, "its calls")
    need(recorded("F") == [[*range(8, 108)]], "what was added last")


with Suite("later") as s:
    for attached in False, True:
        how = "that ran already" if attached else "that was started"
        s.case(f"a library is loaded later by a program {how}", library, attached)
        s.case(f"children that are forked later by a program {how}", children, attached)
        s.case(f"programs that are executed later by a program {how}", programs, attached)
    s.case("two probes", two_probes)
    s.case("a static program", static, "-static")
    s.case("a static-pie", static, "-static-pie")
    s.case("all at once", churn)
