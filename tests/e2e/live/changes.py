#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron ctl probe: probes come and go while the program runs, and what they record is exact.

Ground truth: each thread of the program writes the number of its call to a file in memory before it makes the
call, and gives it to the function: what the file said around `add` and `rm` says which numbers the trace must
have, and which it must not.  The text of the process, read from its memory, against the files."""
import contextlib
import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import info, interrupt, need_unbroken, numbers, record_pid, text_is_of_files  # noqa: E402
from tap import KRON, Suite, children_of, compile_text, need, rnd, wait_for  # noqa: E402

THREADS = 3
PROGRAM = """
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int over;
static volatile unsigned long *now;
static void end(int s) { (void)s; over = 1; }
__attribute__((noinline)) unsigned long counted(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 3 + 1; }
__attribute__((noinline)) unsigned long other(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 5 + 1; }
static void *run(void *arg)
{
    unsigned long i = (unsigned long)arg, n = 0;
    while (!over) {
        now[i] = ++n;
        if (counted(n) != n * 3 + 1 || other(n) != n * 5 + 1) _exit(3);
        for (volatile int k = 0; k < 50000; k++);
    }
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t t[THREADS];
    int fd = open("now", O_RDWR | O_CREAT, 0600), status = 0;
    if (ftruncate(fd, 4096)) return 2;
    now = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    signal(SIGTERM, end);
    if (argc > 1) { /* a child that counts: as thread THREADS */
        pid_t pid = fork();
        if (!pid) { now[THREADS + 1] = getpid(); run((void *)THREADS); _exit(0); }
        while (!now[THREADS]) usleep(1000);
    }
    for (long i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)i);
    puts("ready"); fflush(stdout);
    while (!over) usleep(1000);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    if (argc > 1) { kill((pid_t)now[THREADS + 1], SIGTERM); wait(&status); }
    return status != 0;
}
"""


def kron(*argv, status=0):
    r = subprocess.run([KRON, *argv], capture_output=True, text=True, timeout=120)
    need(r.returncode == status, f"{argv}: {r.returncode}: {r.stderr}")
    return r.stdout if not status else r.stderr


def probe(*argv, status=0):
    return kron("ctl", "--board", board(), "probe", *argv, status=status)


def board():
    return f"changes-{os.getpid()}"


class Recording:
    """Of a program that ran already, or that is started; ends well, or the case fails."""

    def __init__(self, started, *options, argv=("./p",)):
        how = ["--board", board(), "-b", "512M", *options]
        self.program = None
        if started:
            record = [KRON, "record", "-o", "t", *how, "--", *argv]
            self.kron = subprocess.Popen(record, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            need(self.kron.stdout.readline() == "ready\n", "it did not start")
            self.pid = int(subprocess.run(["pgrep", "-P", str(self.kron.pid), "-x", os.path.basename(argv[0])],
                                          capture_output=True, text=True).stdout)
            wait_for(answers, "an answer to `kron ctl probe`")
        else:
            self.program = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
            need(self.program.stdout.readline() == "ready\n", "it did not start")
            self.pid = self.program.pid
            self.kron = record_pid(self.pid, *how)
            wait_for(answers, "an answer to `kron ctl probe`")
        fd = os.open("now", os.O_RDWR)
        self.memory = mmap.mmap(fd, 4096)
        os.close(fd)

    def now(self, n=THREADS):
        return struct.unpack_from(f"{n}Q", self.memory)

    def detach(self):
        interrupt(self.kron)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.memory.close()
        if exc[0]:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)  # one that was started goes on without kron
            for p in self.kron, self.program:
                if p:
                    p.kill()
                    p.wait()
            subprocess.run([KRON, "board", "rm", board()], capture_output=True)  # the next case wants the name
            return
        os.kill(self.pid, signal.SIGTERM)
        p = self.program or self.kron
        p.communicate(timeout=60)
        need(p.returncode == 0, f"it ended with {p.returncode}")
        if self.kron.poll() is None:
            self.kron.communicate(timeout=60)


def answers():
    return subprocess.run([KRON, "ctl", "--board", board(), "probe", "list"], capture_output=True).returncode == 0


def recorded(name="counted"):
    return list(numbers(name).values())


def run_on(recording, least, n=THREADS):
    """All threads have made so many calls more."""
    start = recording.now(n)
    wait_for(lambda: all(b - a > least for a, b in zip(start, recording.now(n))), "more calls")


def check(seen, rounds, n=THREADS):
    """rounds: what the file said in front of and after each add and rm.  Calls that ran are either."""
    need(len(seen) == n, f"{len(seen)} threads, not {n}")
    for calls in seen:
        owners = [i for i in range(n) if fits(calls, [tuple(x[i] for x in r) for r in rounds])]
        need(owners, f"these are not a thread's numbers: {calls[:5]} ... {calls[-5:]}, {rounds}")


def fits(calls, rounds):
    have = set(calls)
    if len(have) != len(calls):
        return False
    for before_add, after_add, before_rm, after_rm in rounds:
        if not have.issuperset(range(after_add + 1, before_rm)):
            return False
        have -= set(range(before_add, after_rm + 2))
    return not have


def one_round(recording, spec, name, n=THREADS, least=200):
    r = [recording.now(n)]
    probe("add", spec)
    r.append(recording.now(n))
    run_on(recording, least, n)
    r.append(recording.now(n))
    probe("rm", name)
    r.append(recording.now(n))
    run_on(recording, 20, n)
    return r


# ---- cases ----


def exact(started):
    compile_program()
    with Recording(started, "-p", "main") as r:
        rounds = [one_round(r, "counted n=$arg1", "counted n=$arg1") for _ in range(3)]
        if not started:
            text = len(blocks(r.pid))
            r.detach()
            need(text and not blocks(r.pid), f"blocks of kron stay: {blocks(r.pid)}")
            text_is_of_files(r.pid)
    check(recorded(), rounds)


def blocks(pid):
    return [l for l in open(f"/proc/{pid}/maps") if "memfd:kron" in l]


def fifty(started):
    """Under load, while another probe is hit all the time; blocks that nobody needs go."""
    compile_program()
    with Recording(started, "-p", "main") as r:
        probe("add", "always=other n=$arg1")
        rounds = [one_round(r, "counted n=$arg1", "counted n=$arg1", least=rnd.randrange(1, 30)) for _ in range(50)]
        probe("rm", "always")
        need(len(blocks(r.pid)) < 25, f"{len(blocks(r.pid))} blocks are left")
        if not started:
            r.detach()
            text_is_of_files(r.pid)
    check(recorded(), rounds)
    for calls in recorded("always"):
        need_unbroken(calls, "the other one")


def with_child(started):
    """What was forked before it was added has it, too, and loses it."""
    compile_program()
    with Recording(started, "-p", "main", argv=("./p", "child")) as r:
        rounds = [one_round(r, "counted n=$arg1", "counted n=$arg1", THREADS + started) for _ in range(3)]
    check(recorded(), rounds, THREADS + started)


def forked_later():
    """What is forked from a process that has it has it, and loses it with the others."""
    compile_text("f", FORKS, "-Wno-unused-result")
    with Recording(True, "-p", "main", argv=("./f",)) as r:
        probe("add", "counted n=$arg1")
        open("fork", "w").close()
        wait_for(lambda: r.now(2)[1] > 100, "calls of the child")
        probe("rm", "counted n=$arg1")
        after = r.now(2)
        run_on(r, 100, 2)
    seen = recorded()
    need(len(seen) == 2, f"{len(seen)} of two processes")
    need(all(min(abs(n[-1] - a) for a in after) <= 10**6 and n[-1] <= max(after) + 1 for n in seen), (after, seen[0][-1]))


FORKS = PROGRAM[: PROGRAM.index("static void *run")] + """
int main(void)
{
    int fd = open("now", O_RDWR | O_CREAT, 0600), i = 0, status = 0;
    pid_t pid = 0;
    if (ftruncate(fd, 4096)) return 2;
    now = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    signal(SIGTERM, end);
    puts("ready"); fflush(stdout);
    for (unsigned long n = 1; !over; n++) {
        now[i] = n;
        counted(n);
        usleep(100);
        if (!i && !pid && !access("fork", F_OK)) {
            pid = fork();
            if (!pid) { i = 1; n = 0; }
        }
    }
    if (pid) { kill(pid, SIGTERM); wait(&status); }
    return status != 0;
}
"""


def library():
    """Of a library; and a probe that has a name of its own is called so."""
    compile_program()
    with Recording(False, "-p", "main") as r:
        probe("add", "pausing=libc.so.6:usleep")
        listed = json.loads(probe("list", "--json"))
        need([p["name"] for p in listed] == ["main", "pausing"], listed)
        need("libc" in listed[1]["module"] and listed[1]["places"] == 1 and listed[1]["since_s"] > 0, listed)
        probe("rm", "pausing")
        need([p["name"] for p in json.loads(probe("list", "--json"))] == ["main"], "it is still listed")
        r.detach()
        text_is_of_files(r.pid)


HOST = """
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int is(const char *name) { return !access(name, F_OK); }
int main(void)
{
    void *h = 0;
    pid_t pid = 0;
    puts("ready"); fflush(stdout);
    while (!is("end")) {
        if (!h && is("load")) { h = dlopen("./libplug.so", RTLD_NOW); ((void (*)(void))dlsym(h, "plug"))(); }
        if (h && !is("load")) { dlclose(h); h = 0; }
        if (!pid && is("fork") && !(pid = fork())) for (;;) pause();
        if (pid && !is("fork")) { kill(pid, 9); waitpid(pid, 0, 0); pid = 0; }
        usleep(1000);
    }
    return 0;
}
"""


def comes_and_goes():
    """The list says what is there now: of libraries that come and go, and of processes that end."""
    compile_text("host", HOST, "-ldl", "-include", "signal.h")
    compile_text("libplug.so", 'void plug(void) { __asm__ volatile(".nops 8"); }', "-shared", "-fPIC", "-Wl,-soname,libodd.so.4")

    def listed():
        p = [p for p in json.loads(probe("list", "--json")) if p["name"] == "plug"][0]
        return p["places"], p.get("waits_for")

    with open("said", "w") as said:
        r = subprocess.Popen([KRON, "record", "-o", "t", "--board", board(), "-p", "main", "--", "./host"], stderr=said)
    try:
        wait_for(answers, "an answer to `kron ctl probe`")
        probe("add", "plug=libplug*:plug")
        probe("add", "never=libnever*:f")
        need(listed() == (0, "libplug*") and "  waits for libnever*" in probe("list"), listed())
        for name, there, wanted in (("load", True, (1, None)), ("fork", True, (2, None)), ("fork", False, (1, None)),
                                    ("load", False, (0, "libplug*")), ("load", True, (1, None))):
            open(name, "w").close() if there else os.unlink(name)
            wait_for(lambda: listed() == wanted, f"{wanted} of plug, after {name} {there}", 20)
        probe("rm", "plug")
        probe("add", "plug=libodd.so.4:plug")
        need(listed() == (1, None), listed())
        open("end", "w").close()
        need(r.wait(60) == 0, r.returncode)
    finally:
        r.kill()
        r.wait()
    with open("said") as f:
        text = f.read()
    need("libnever*:f: no process has loaded libnever*" in text and "libplug" not in text, text)


def windows_that_share():
    """Each instruction of a function: windows lie close, and landings in one another's rest."""
    compile_program()
    with Recording(False, "-p", "counted") as r:
        for spec in "malloc%insns", "malloc%blocks", "free%insns":
            probe("add", f"many=libc.so.6:{spec}")
            probe("rm", "many")
        r.detach()
        text_is_of_files(r.pid)


def refusals():
    compile_program()
    with Recording(False, "-p", "main", "-p", "mine=other", "-p", "marker=libc.so.6:sdt_libc:setjmp") as r:
        for argv, sentence in (
            (("add", "counted("), "SPEC:1:8"),
            (("add", "level x = 3"), "is not one probe"),
            (("add", "counted\nother"), "is not one probe"),
            (("add", "nosuch"), "has no function of this name"),
            (("add", "mine=counted"), "there is a probe mine already"),
            (("add", "other n=$arg1"), "there is a probe already"),
            (("rm", "nosuch"), "no probe nosuch was added"),
            (("rm", "marker"), "was given at the start"),
        ):
            said = probe(*argv, status=1)
            need(sentence in said and said.count("\n") <= 4, f"{argv}: {said}")
        for argv in ("add",), ("rm",), ("list", "x"), ("other",):
            need("probe takes" in probe(*argv, status=2), argv)
            need("probe takes" in kron("ctl", "--board", "no-such-board", "probe", *argv, status=2), argv)
        tracer = subprocess.Popen([sys.executable, "-c", TRACER, str(r.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        tracer.stdout.readline()
        need("is traced by process" in probe("add", "counted", status=1), "a tracer is no reason")
        tracer.communicate(b"\n")
        probe("add", "counted n=$arg1")
        run_on(r, 20)
        r.detach()
        text_is_of_files(r.pid)
    need("no board" in probe("list", status=1), "its board is there still")
    need("it has ended, or is another user's" in kron("ctl", "--board", str(r.kron.pid), "probe", "list", status=1), "no reason")
    kron("board", "create", board())
    said = probe("list", status=1)
    kron("board", "rm", board())
    need("no kron record runs" in said, said)


TRACER = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0  # PTRACE_SEIZE
print("ready", flush=True)
sys.stdin.readline()
"""


def early():
    """As soon as the board is there: the recorder may not listen yet, the program not have started."""
    compile_program()
    for _ in range(3):
        argv = [KRON, "record", "-o", "t", "-F", "main", "--board", board(), "--", "./p"]
        r = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        link = f"/dev/shm/kron-board.{os.geteuid()}.{board()}"
        wait_for(lambda: os.path.lexists(link), "the board", 10)
        probe("add", "counted")
        need(r.stdout.readline() == "ready\n", "it does not start")
        os.kill(wait_for(lambda: children_of(r.pid), "the program")[0], signal.SIGTERM)
        said = r.communicate(timeout=60)[1]
        need(r.returncode == 0, f"{r.returncode}: {said}")
        for seen in recorded():
            need_unbroken(seen)


def told():
    """The trace says from when until when it was there."""
    compile_program()
    with Recording(True, "-p", "main") as r:
        one_round(r, "E=counted n=$arg1", "E")
    changes = info()["probe_changes"]
    need([(c["name"], c["what"], c["places"]) for c in changes] == [("E", "added", 1), ("E", "removed", 1)], changes)
    need(0 < changes[0]["at_s"] < changes[1]["at_s"], changes)
    text = kron("info", "t")
    need(re.search(r"\+ *[\d.]+ s  added +E=counted", text), text)
    modules = [m["path"] for m in json.loads(kron("info", "--json", "t"))["modules"]]
    need(len(set(modules)) == len(modules), f"a module is listed more than once: {modules}")


GO = """
package main
import ("fmt"; "os"; "os/signal"; "runtime"; "sync/atomic"; "syscall"; "unsafe")
//go:noinline
func counted(n uint64) uint64 { return n*3 + 1 }
func run(i uint64, now *[8]uint64, over *uint32) {
	sum := uint64(0)
	for n := uint64(1); atomic.LoadUint32(over) == 0; n++ {
		atomic.StoreUint64(&now[i], n)
		if counted(i<<28|n) != (i<<28|n)*3+1 { os.Exit(3) }
		for k := uint64(0); k < 20000; k++ { sum += k * n } // is stopped in the middle
	}
	now[7] = sum
}
func main() {
	runtime.GOMAXPROCS(2)
	f, _ := os.OpenFile("now", os.O_RDWR|os.O_CREATE, 0600)
	f.Truncate(4096)
	m, _ := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	now := (*[8]uint64)(unsafe.Pointer(&m[0]))
	var over uint32
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	for i := uint64(0); i < 3; i++ { go run(i, now, &over) }
	fmt.Println("ready")
	<-end
	atomic.StoreUint32(&over, 1)
}
"""


def goroutines(started, *options):
    """They may have been stopped at any instruction: these are found, and moved."""
    with open("g.go", "w") as f:
        f.write(GO)
    if not shutil.which("go") or subprocess.run(["go", "build", "-o", "g", "g.go"], env={**os.environ, "CGO_ENABLED": "0"}).returncode:
        print("# no Go compiler")
        return
    with Recording(started, "-p", "main.main", *options, argv=("./g",)) as r:
        rounds = [one_round(r, "E=main.counted n=%rax", "E") for _ in range(4)]
        if not started:
            r.detach()
            text_is_of_files(r.pid)
    numbers = [n for thread in recorded("E") for n in thread]
    check([[n & (1 << 28) - 1 for n in numbers if n >> 28 == i] for i in range(3)], rounds)


SPINS = """
package main
import ("fmt"; "os"; "os/signal"; "runtime"; "sync/atomic"; "syscall"; "time")
//go:noinline
func spin(n uint64) uint64 {
	s := uint64(1)
	for i := uint64(0); i < n; i++ { s = s*6364136223846793005 + 1442695040888963407; s ^= s >> 7; s += i * 77; s ^= s << 3 }
	return s
}
func main() {
	runtime.GOMAXPROCS(2)
	var over, wrong uint32
	want := spin(20000000)
	done := make(chan int)
	for i := 0; i < 6; i++ {
		go func() {
			for atomic.LoadUint32(&over) == 0 { if spin(20000000) != want { atomic.StoreUint32(&wrong, 1) } }
			done <- 1
		}()
	}
	go func() { runtime.LockOSThread(); for { runtime.GC(); time.Sleep(time.Microsecond) } }()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	os.OpenFile("now", os.O_RDWR|os.O_CREATE, 0600)
	os.Truncate("now", 4096)
	fmt.Println("ready")
	<-end
	atomic.StoreUint32(&over, 1)
	for i := 0; i < 6; i++ { <-done }
	if wrong != 0 { os.Exit(3) }
}
"""


def garbage_collector(started):
    """It walks the stacks of goroutines that were stopped in a loop: Go ends where one of them stands in a stub."""
    with open("spins.go", "w") as f:
        f.write(SPINS)
    if not shutil.which("go") or subprocess.run(["go", "build", "-o", "spins", "spins.go"], env={**os.environ, "CGO_ENABLED": "0"}).returncode:
        print("# no Go compiler")
        return
    code = subprocess.run(["objdump", "-d", "--disassemble=main.spin", "spins"], capture_output=True, text=True, check=True).stdout
    at = [int(line.split(":")[0], 16) for line in code.splitlines() if re.match(r" +[0-9a-f]+:\t.*\t", line)]
    with Recording(started, "-p", "main.main", argv=("./spins",)) as r:
        for _ in range(8):
            spec = f"E=main.spin+{rnd.choice(at[3:-2]) - at[0]}"
            p = subprocess.run([KRON, "ctl", "--board", board(), "probe", "add", spec], capture_output=True, text=True, timeout=60)
            if p.returncode:
                need("a goroutine is always in the middle" in p.stderr, f"{spec}: {p}")
                continue
            time.sleep(rnd.random() / 10)
            probe("rm", "E")
        if not started:
            r.detach()
            text_is_of_files(r.pid)


def first(started):
    """What was given at the start goes, and comes again by the same words; others at the same places stay."""
    compile_program()
    given = ["main", "C=counted n=$arg1", "O=other n=$arg1", "T=counted n=$arg1 if data & 1 == 1", "R=counted%return n=$retval", "counted count:2"]
    options = [w for g in given for w in ("-p", g)]
    with Recording(started, *options, "-F", "counted") as r:
        before = sum(r.now())
        rounds = {"C": [], "R": []}
        for name, spec in ("C", given[1]), ("R", given[4]):
            begun = [(0,) * THREADS, r.now()]
            run_on(r, 200)
            rounds[name] = [begun + [r.now(), probe("rm", name) or r.now()]]
            need(name not in [p["name"] for p in json.loads(probe("list", "--json"))], "it is listed")
            need("no probe" in probe("rm", name, status=1), "it can be removed twice")
            run_on(r, 20)
            rounds[name] += [one_round(r, spec, name) for _ in range(2)]
        run_on(r, 20)
        counts = [sum(r.now())]
        probe("rm", "counted count:2")
        counts.append(sum(r.now()))
        run_on(r, 100)
        need("there is a probe already" in probe("add", "C=counted n=$arg2", status=1), "other words")
        if not started:
            r.detach()
            text_is_of_files(r.pid)
            need(not blocks(r.pid), "blocks of kron stay")
    check(recorded("C"), rounds["C"])
    values = recorded("R")
    need(all(v % 3 == 1 for thread in values for v in thread), "no result of counted()")
    check([[v // 3 for v in thread] for thread in values], rounds["R"])
    for calls in recorded("O"):
        need_unbroken(calls, "the other one")
    for odd in recorded("T"):
        need(odd == list(range(odd[0], odd[-1] + 2, 2)) and odd[0] % 2, "the one with a condition")
    total = info()["counters"][2]
    need(counts[0] - (0 if started else before) - THREADS <= total <= counts[1], f"{total} counted, {counts} calls, {before} before")
    changes = [(c["name"], c["what"], c["spec"]) for c in info()["probe_changes"]]
    need(changes[:2] == [("C", "removed", given[1]), ("C", "added", given[1])], changes)


def of_one_name():
    """All probes of an event go with it; who shares a count with another stays; and another number is another probe."""
    compile_program()
    given = ["E=counted n=$arg1", "E=other n=$arg1", "count*d count:3", "*ounted count:3", "900=other n=$arg1"]
    with Recording(True, *(w for g in given for w in ("-p", g))) as r:
        run_on(r, 20)
        for shared in given[2:4]:
            need("counted together with others" in probe("rm", shared, status=1), shared)
        probe("rm", "E")
        last = r.now()
        probe("rm", given[4])
        need("there is a probe already" in probe("add", "901=other n=$arg1", status=1), "another number")
        probe("add", given[4])
        run_on(r, 100)
        counts = sum(r.now())
    for calls, most in zip(sorted(max(calls) for calls in recorded("E")), sorted(last)):
        need(calls <= most + 1, f"E goes on: {calls}, and was removed at {most}")
    total = info()["counters"][3]
    need(total >= 2 * (counts - THREADS), f"{total} counted by two, {counts} calls")


def executed_meanwhile():
    """Programs are executed all the time while probes come and go: none of the two is in the other's way."""
    compile_text("e", "__attribute__((noinline)) int counted(int n) { return n; } int main(void) { return counted(0); }")
    compile_text("h", """
        #include <signal.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int over;
        static void end(int s) { over = s; }
        __attribute__((noinline)) int counted(int n) { __asm__ volatile("" ::: "memory"); return n; }
        int main(void)
        {
            int status = 0, bad = 0;
            FILE *f = fopen("now", "w");
            for (int i = 0; i < 4096; i++) putc(0, f);
            fclose(f);
            signal(SIGTERM, end);
            puts("ready"); fflush(stdout);
            while (!over) {
                pid_t pid = fork();
                counted(1);
                if (!pid) { execl("./e", "e", (char *)0); _exit(9); }
                if (waitpid(pid, &status, 0) == pid) bad |= status;
            }
            return bad != 0;
        }""")
    with Recording(False, "--children", "-p", "C=counted", argv=("./h",)):
        end = time.time() + 8
        while time.time() < end:
            probe("rm", "C")
            probe("add", "C=counted")
    need(not info()["untraced"], info()["untraced"])


def starts_asleep():
    """What starts while a first probe is out of the others starts without it."""
    compile_text("q", """
        #include <stdio.h>
        __attribute__((noinline)) unsigned long counted(unsigned long n) { __asm__ volatile("" ::: "memory"); return n * 3 + 1; }
        int main(void) { unsigned long n = 0; for (int i = 1; i <= 10; i++) n += counted(i); return n != 175; }
    """)
    script = "echo ready; for i in 1 2 3 4; do until [ -e go$i ]; do sleep 0.02; done; ./q || exit 1; touch done$i; done; until [ -e over ]; do sleep 0.02; done"
    record = [KRON, "record", "-o", "t", "--board", board(), "-p", "q:main", "-p", "C=q:counted n=$arg1", "--", "sh", "-c", script]
    with subprocess.Popen(record, stdout=subprocess.PIPE, text=True) as p:
        need(p.stdout.readline() == "ready\n", "it did not start")
        wait_for(answers, "an answer to `kron ctl probe`")
        for i, change in enumerate(((), ("rm", "C"), (), ("add", "C=q:counted n=$arg1")), 1):
            if change:
                probe(*change)
            open(f"go{i}", "w").close()
            wait_for(lambda: os.path.exists(f"done{i}"), "its end")
        open("over", "w").close()
        need(p.wait(60) == 0, "it ended with an error")
    seen = recorded("C")
    need(seen == [list(range(1, 11))] * 2, seen)


def killed():
    """The recorder is killed while probes come and go: the process goes on, with its own text."""
    compile_program()
    for _ in range(8):
        with Recording(False, "-p", "main") as r:
            changer = subprocess.Popen(
                ["sh", "-c", 'while "$0" ctl --board "$1" probe add counted && "$0" ctl --board "$1" probe rm counted; do :; done',
                 KRON, board()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rnd.random() / 2)
            r.kron.kill()
            r.kron.communicate()
            changer.wait()
            wait_for(lambda: not blocks(r.pid), "the end of kron's blocks")
            text_is_of_files(r.pid)
            run_on(r, 10)
        subprocess.run([KRON, "recover", "t"], capture_output=True)


def compile_program():
    compile_text("p", PROGRAM, "-pthread", f"-DTHREADS={THREADS}")


with Suite("changes") as s:
    for started in False, True:
        how = "that was started" if started else "that ran already"
        s.case(f"what is recorded is exact: a program {how}", exact, started)
        s.case(f"fifty rounds under load: a program {how}", fifty, started)
        s.case(f"children: a program {how}", with_child, started)
        s.case(f"goroutines: a program {how}", goroutines, started)
        s.case(f"goroutines, by code that was selected: a program {how}", goroutines, started, "-F", "runtime.async*")
        s.case(f"goroutines whose stacks are walked: a program {how}", garbage_collector, started)
        s.case(f"those of the start: a program {how}", first, started)
    s.case("those of one event, and of one place", of_one_name)
    s.case("programs that are executed meanwhile", executed_meanwhile)
    s.case("a program that starts while one of them is out", starts_asleep)
    s.case("a child that comes later", forked_later)
    s.case("a library, a name, the list", library)
    s.case("what the list says of libraries and processes that go", comes_and_goes)
    s.case("each instruction of a function, and out again", windows_that_share)
    s.case("what cannot be is refused in a sentence", refusals)
    s.case("a recording that still starts", early)
    s.case("the trace says when", told)
    s.case("the recorder is killed", killed)
