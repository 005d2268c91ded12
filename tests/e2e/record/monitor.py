#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""monitor.py - kron monitor: what it sums up is what the program, or getrusage(2), says of itself."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402

LIMIT = 120


def monitor(*args, status=5, **more):
    r = subprocess.run([KRON, "monitor", *args], capture_output=True, text=True, timeout=LIMIT, **more)
    need(r.returncode == status, f"status {r.returncode}, not {status}: {r.stderr}")
    return r


def rows_of(path):
    with open(path) as f:
        lines = [json.loads(line) for line in f]
    return lines[:-1], lines[-1]


def watch(options, command, **more):
    """Rows, totals and what the program says of itself, by name."""
    r = monitor("-q", "--json", "-o", "rows", *options, "--", *command, **more)
    words = r.stdout.split()
    rows, end = rows_of("rows")
    return rows, end, dict(zip(words[::2], words[1::2]))


def check_sums(rows, end):
    for name, total in end["totals"].items():
        got = [row["events"][name] for row in rows]
        if not name.startswith("idle"):
            need(sum(n or 0 for n in got) == total, f"{name}: {got} is not {total}")
    times = [0] + [row["time_ns"] for row in rows]
    need(times == sorted(times), f"times {times}")


def sums(*how):
    tap.compile_c("p", "bins/monitored.c")
    rows, end, said = watch(["--every", "20ms", *how, "-e", "page-faults,context-switches,task-clock"], ["./p", "4", "60000", "apart"])
    check_sums(rows, end)
    total = end["totals"]
    need(len(rows) > 2, f"{len(rows)} intervals")
    need(0 <= total["page-faults"] - int(said["faults"]) <= 60, f"{total} and {said}")
    # its own count begins before the program does, where it waits for kron, and the first process's ends just before it does
    switches = int(said["switches"])
    need(-16 - switches / 50 <= total["context-switches"] - switches <= 12 + len(rows) * bool(how), f"{total} and {said}")
    # the kernel starts its clock before the scheduler starts its own, at each switch: 13 us on a virtual machine under load
    clock_us = total["task-clock"] / 1000
    need(abs(clock_us - int(said["cpu_us"])) < 0.05 * int(said["cpu_us"]) + 5000 + 20 * switches, f"{total} and {said}")


def perfs_names():
    """What perf calls cs, faults and cpu-migrations are the same here."""
    r = monitor("-q", "--every", "1s", "-e", "cs,faults,cpu-migrations", "--", "true", status=0)
    head = (r.stdout + r.stderr).split("\n")[0].split()
    need(head[2:] == ["context-switches", "page-faults", "migrations"], r)


def calls(*how):
    tap.compile_c("p", "bins/monitored.c")
    rows, end, said = watch(["--every", "30ms", *how, "-e", "calls:work,calls:ma?n,calls"], ["./p", "3", "40000"])
    check_sums(rows, end)
    need(end["totals"]["calls:work"] == int(said["calls"]) == 120000, f"{end} and {said}")
    need(end["totals"]["calls:ma?n"] == 1, end)
    need(end["totals"]["calls"] >= 120001, end)
    need(end["probes_ns"] > 0, end)


def signals(*how):
    """As many as its handlers took, of threads and a child: none that is ignored, and none that kron's stops send."""
    tap.compile_c("p", "bins/monitor/signalled.c")
    r = subprocess.run([KRON, "monitor", "-q", "-e", "signals", "--", "true"], capture_output=True, text=True, timeout=LIMIT)
    if r.returncode == 125:
        need("tracepoint" in r.stderr or "perf_event_open" in r.stderr, r.stderr)
        raise tap.Skip(r.stderr.strip())
    rows, end, said = watch(["--every", "10ms", *how, "-e", "signals,traps"], ["./p", "1500"])
    check_sums(rows, end)
    need(int(said["signals"]) == 36000 and int(said["traps"]) == 22500, said)
    need(end["totals"] == {"signals": 36000, "traps": 22500}, end)
    with open("/proc/self/mountinfo") as f:
        mounts = [line for line in f if " - tracefs " in line]
    need(all("/sys/kernel/" in line for line in mounts), f"it is left mounted: {mounts}")


def signals_refused():
    """With probes, which may be traps themselves; and for who may not read what the kernel has of them."""
    for more in (["-e", "calls"], ["--range", "x"]):
        r = monitor("-e", "traps", *more, "--", "touch", "started", status=125)
        need("-e traps: not with" in r.stderr, r.stderr)
    tap.need_root()
    r = monitor("-e", "signals", "--", "touch", "started", status=125, user=65534, group=65534, extra_groups=[])
    need("signals: " in r.stderr and ("tracepoint" in r.stderr or "perf_event_open" in r.stderr) and r.stderr.count("\n") == 1, r.stderr)
    need(not os.path.exists("started"), "it was started")


def signals_of_running():
    """From when its threads stand on."""
    tap.compile_text("p", """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile long taken;
static void take(int sig) { taken++; }
int main(void)
{
	signal(SIGUSR1, take);
	raise(SIGUSR1);
	puts("ready"), fflush(stdout);
	while (taken < 21) pause();
	printf("%ld\\n", taken);
	return 0;
}
""")
    if subprocess.run([KRON, "monitor", "-q", "-e", "signals", "--", "true"], capture_output=True, timeout=LIMIT).returncode:
        raise tap.Skip("tracepoints cannot be read here")
    p = subprocess.Popen(["./p"], stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "ready\n", "it does not begin")
    k = subprocess.Popen([KRON, "monitor", "-q", "--json", "--every", "10ms", "-e", "signals", "--pid", str(p.pid)], stdout=subprocess.PIPE, text=True)
    k.stdout.readline()
    for i in range(20):
        before = i + 1
        p.send_signal(signal.SIGUSR1)
        # as one that is pending is not sent again
        tap.wait_for(lambda: not int([line for line in open(f"/proc/{p.pid}/status") if line.startswith("ShdPnd")][0].split()[1], 16) if p.poll() is None else True, f"signal {before}")
        time.sleep(0.002)
    p.communicate(timeout=LIMIT)
    end = json.loads(k.communicate(timeout=LIMIT)[0].splitlines()[-1])
    need(end["totals"]["signals"] == 20, end)


def children():
    """Of all processes that it starts, also when they have ended."""
    tap.compile_c("p", "bins/monitored.c")
    rows, end, said = watch(["--every", "20ms", "--freeze", "-e", "page-faults,calls:work"],
                            ["sh", "-c", "./p 1 20000 & ./p 1 20000; wait $!"])
    check_sums(rows, end)
    need(end["totals"]["calls:work"] == 40000, end)
    need(end["totals"]["page-faults"] >= 6000, end)


def variables():
    tap.compile_c("p", "bins/monitored.c")
    rows, end, said = watch(["--every", "20ms", "--var", "turns", "--var", "level:s32", "--var", "share:double"], ["./p", "1", "400000"])
    seen = [row["events"]["turns"] for row in rows]
    seen = [n for n in seen if n is not None]
    need(len(seen) > 2 and seen == sorted(seen) and 0 < seen[-1] <= 400000, seen)
    need(rows[1]["events"]["level"] == -7 and rows[1]["events"]["share"] == 0.25, rows[1])
    r = monitor("--every", "20ms", "--var", "nothing_of_this_name", "--", "./p", "1", "4000000")
    need("have no such variable" in r.stderr, r.stderr)
    # one that ends at once has been asked, or it was too late
    tap.compile_text("short", "struct s { int a, len; } first, *head = &first; int gv = 3; int main(void) { return gv + 2; }", "-g")
    r = monitor("--every", "60s", "--var", "gv", "--var", "head->len", "--", "./short")
    need([("ended before it could be" in line) for line in r.stderr.splitlines()] == [True, True] and "/proc" not in r.stderr, r.stderr)
    # at the first interval, while it runs, and at the end
    p = subprocess.Popen(
        [KRON, "monitor", "--every", "20ms", "--var", "nothing:s32", "--var", "level:u64", "--", "./p", "1", "2000000000"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    said = [p.stderr.readline(), p.stderr.readline()]
    p.send_signal(signal.SIGTERM)
    rest = p.communicate(timeout=60)[1]
    need(said[0] == "kron: --var nothing: the program and its libraries have no such variable, so far\n", said)
    need(said[1] == "kron: --var level: it has 4 bytes, fewer than its type, so far\n", said)
    need("nothing: the program and its libraries have no such variable\n" in rest, rest)


SAME = """
#include <stdio.h>
#include <unistd.h>
static volatile int twice = %d, everywhere = %d;
int from%s(void) { return ++twice + ++everywhere; }
"""


def of_one_name():
    """Statics of one name in two libraries, or in two files: which one is meant nobody knows.  The program's own hides a library's."""
    for name, n in ("a", 1000), ("b", 2000):
        tap.compile_text(f"lib{name}.so", SAME % (n, n, name), "-g", "-shared", "-fPIC")
    with open("other.c", "w") as f:
        f.write("static volatile int in_two_files = 1;\nint other(void) { return ++in_two_files; }\n")
    # loc2: an obsolete global of the C library, too
    tap.compile_text("p", """
#include <unistd.h>
int froma(void), fromb(void), other(void);
static volatile int everywhere = 7, in_two_files = 2;
static int counts(void) { static volatile long loc2 = 77; return (int)++loc2; }
int main(void)
{
	froma(), fromb(), other(), in_two_files++, everywhere++, counts(), counts(), counts();
	usleep(400000);
	return 0;
}
""", "-g", "other.c", "./liba.so", "./libb.so")
    names = ["twice", "in_two_files", "everywhere", "loc2"]
    r = monitor("--json", "--every", "50ms", *(w for n in names for w in ("--var", n)), "--", "./p", status=0)
    end = json.loads(r.stdout.splitlines()[-1])
    need(end["totals"] == {"twice": None, "in_two_files": None, "everywhere": 8, "loc2": 80}, end)
    for name in names[:2]:
        need(f"--var {name}: there are several static variables of this name\n" in r.stderr, r.stderr)
    r = monitor("--json", "--range", "in_two_files:w", "--range", "loc2:w", "-L", "p", "--", "./p", status=0)
    end = json.loads(r.stdout.splitlines()[-1])
    need(end["totals"] == {"in_two_files:w": None, "loc2:w": 3}, end)
    need("--range in_two_files:w: there are several static variables of this name\n" in r.stderr, r.stderr)


def of_other_types():
    """What a variable is not it is not shown as."""
    tap.compile_text("p", """
#include <unistd.h>
volatile double d = -0.25;
volatile float f = 1.5f;
volatile long double ld = 1.5L;
volatile long l = -7;
volatile struct { int a, b; } s = {1, 2};
int main(void) { usleep(300000); return 0; }
""", "-g")
    shown = {"d:double": -0.25, "f:float": 1.5, "l": 2**64 - 7, "l:x64": 2**64 - 7, "l:u32": 2**32 - 7, "l:s8": -7, "s.b": 2}
    for name, want in shown.items():
        r = monitor("--json", "--every", "50ms", "--var", name, "--", "./p", status=0)
        need(list(json.loads(r.stdout.splitlines()[-1])["totals"].values()) == [want] and not r.stderr, (name, r))
    refused = {"d:float": "it has 8 bytes and is no float", "d": "it is a floating-point number of 8 bytes: say :double, or :x64",
               "f:u32": "it is a floating-point number of 4 bytes: say :float", "ld:double": "it has 16 bytes and is no double",
               "l:double": "it has 8 bytes and is no double", "s": "it is a struct: name one of its members"}
    for name, why in refused.items():
        r = monitor("--json", "--every", "50ms", "--var", name, "--", "./p", status=0)
        need(list(json.loads(r.stdout.splitlines()[-1])["totals"].values()) == [None] and f"--var {name.split(':')[0]}: {why}" in r.stderr, (name, r))


def of_cpp():
    """By the names that the source has."""
    with open("p.cc", "w") as f:
        f.write("""
#include <string>
#include <unistd.h>
namespace app { struct Q { long len = -12; double load = 0.75; } queue; }
std::string text = "hey";
const int konst = 17;
int main() { asm volatile("" : : "r"(&konst)); usleep(300000); return (int)text.size() - 3; }
""")
    if subprocess.run(["g++", "-g", "-o", "p", "p.cc"], capture_output=True).returncode:
        raise tap.Skip("no g++")
    names = ["app::queue.len", "app::queue.load", "konst", "app::queue:x64", "text"]
    r = monitor("--json", "--every", "50ms", *(w for n in names for w in ("--var", n)), "--", "./p", status=0)
    got = json.loads(r.stdout.splitlines()[-1])["totals"]
    need(got == {"app::queue.len": -12, "app::queue.load": 0.75, "konst": 17, "app::queue": 2**64 - 12, "text": None}, got)
    need("--var text: it is a struct: name one of its members" in r.stderr and "konst" not in r.stderr, r.stderr)
    r = monitor("-q", "--json", "--range", "app::queue:r", "-L", "p", "--", "./p", status=0)
    need(json.loads(r.stdout.splitlines()[-1])["totals"] == {"app::queue:r": 0}, r)


def enough():
    """Who reads a few rows and no more does not wait for the process's end."""
    p = subprocess.Popen(["sleep", "1000"])
    try:
        r = subprocess.run(["sh", "-c", '"$0" monitor -q --every 20ms --pid "$1" | head -n 2', KRON, str(p.pid)], capture_output=True, text=True, timeout=60)
        need(r.returncode == 0 and r.stdout.count("\n") == 2, r)
        need(p.poll() is None, "the process has ended")
    finally:
        p.kill(), p.wait()


MEMBERS = """
#include <stdlib.h>
#include <unistd.h>
struct node { struct node *next; long n; };
struct { int len; short least; double load; struct { unsigned char hits; } stats; struct node *head; char name[4]; } queue;
static volatile struct { int id; float f; } table[4];
static struct node *empty;
int main(void)
{
	queue.head = malloc(sizeof(struct node));
	queue.head->next = malloc(sizeof(struct node));
	queue.head->next->n = -7;
	queue.stats.hits = 200;
	table[3].f = 1.5;
	for (int i = 1; i <= 40; i++) {
		queue.len = i, queue.least = -i, queue.load = i / 2.0, queue.head->n = 10 * i, table[3].id = -i;
		usleep(10000);
	}
	return empty != 0;
}
"""


def members():
    """What a variable leads to, by the debug information; pointers are followed anew each time."""
    tap.compile_text("p", MEMBERS, "-g")
    names = ["queue.len", "queue.least", "queue.load", "queue.stats.hits", "queue.head->n", "queue.head->next->n", "table[3].id", "table[3].f",
             "queue.head", "empty->n", "queue.name", "queue.none"]
    rows, _, _ = watch(["--every", "30ms", *(w for n in names for w in ("--var", n))], ["./p"], status=0)
    seen = [r["events"] for r in rows if r["events"]["queue.len"]]
    need(len(seen) > 3, rows)
    for e in seen:
        n = e["queue.len"]
        # what is read a moment later may be of the next turn
        for name, of in (("queue.least", lambda i: -i), ("queue.load", lambda i: i / 2), ("queue.head->n", lambda i: 10 * i), ("table[3].id", lambda i: -i)):
            need(e[name] in (of(n), of(n + 1)), (name, e))
        need((e["queue.stats.hits"], e["queue.head->next->n"], e["table[3].f"]) == (200, -7, 1.5), e)
        need(e["queue.head"] and e["empty->n"] is None and e["queue.name"] is None and e["queue.none"] is None, e)
    for flags, name, words in ((["-g"], "queue.name", "it is an array"), (["-g"], "queue.none", "no member none"), (["-g"], "queue.stats", "it is a struct"),
                               ([], "queue.len", "no debug information"), (["-g"], "nothing.len", "have no such variable")):
        tap.compile_text("p", MEMBERS, *flags)
        r = monitor("--every", "50ms", "--var", name, "--", "./p", status=0)
        need(f"--var {name}: " in r.stderr and words in r.stderr, r.stderr)


def known(rows, name):
    return {row["events"][name] for row in rows} - {None}


def variables_that_go():
    """Another program at the same addresses, another library in the place of one: their values are no values of it."""
    program = "#include <unistd.h>\nvolatile int %s = %d;\nint main(int c, char **v) { usleep(400000); return c > 1 ? execv(v[1], v + 1) : 5; }\n"
    tap.compile_text("first", program % ("alpha", 1), "-no-pie")
    tap.compile_text("second", program % ("beta", 2), "-no-pie")
    rows, end, _ = watch(["--every", "10ms", "--var", "alpha", "--var", "beta"], ["./first", "./second"])
    need((known(rows, "alpha"), known(rows, "beta")) == ({1}, {2}), end)
    for name, n in (("one", 11), ("other", 22)):
        tap.compile_text(f"{name}.so", f"int in_{name} = {n};\n", "-shared", "-fPIC")
    tap.compile_text("loads", """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	const char *files[] = {"./one.so", "./other.so", "./one.so"}, *names[] = {"in_one", "in_other", "in_one"};
	for (int i = 0; i < 3; i++) {
		void *l = dlopen(files[i], RTLD_NOW);
		int *p = dlsym(l, names[i]);
		*p += i;
		printf("%d %p\\n", i, (void *)p);
		usleep(250000);
		dlclose(l);
	}
	return 5;
}
""", "-ldl")
    rows, end, _ = watch(["--every", "10ms", "--var", "in_one", "--var", "in_other"], ["./loads"])
    # what a library is loaded with may be seen, too
    need(known(rows, "in_one") | {11} == {11, 13} and known(rows, "in_other") | {22} == {22, 23}, end)
    need(not any(None not in row["events"].values() for row in rows), "both at once")


def freeze():
    """All eight at once: the skew is small when the machine is not busy; and nobody's turns go on meanwhile."""
    tap.compile_c("p", "bins/monitored.c")
    rows, end, said = watch(["--every", "20ms", "--freeze"], ["./p", "8", "60000"])
    stopped = [row for row in rows if row["stopped"]]
    need(len(stopped) > 2, rows)
    need(max(row["threads"] for row in stopped) == 9, stopped)
    skews = sorted(row["skew_ns"] for row in stopped)
    # a thread needs a processor to stop: beside other work it waits for one
    print(f"# skews in us: {[n // 1000 for n in skews]}")
    need(skews[0] < 5000000, f"skews {skews}")
    need(end["virtual_ns"] < end["real_ns"] and end["stood_ns"] > 0, end)
    need(end["longest_skew_ns"] == skews[-1], end)


def no_eintr():
    """System calls that a stop ends with EINTR, SIGSTOP's too, go on as if there had been none."""
    tap.compile_c("p", "bins/monitored.c")
    rows, end, said = watch(["--every", "7ms", "--freeze"], ["./p", "5", "0"])
    need(said == {"waits": "100", "interrupted": "0", "late": "0"}, said)
    need(sum(row["stopped"] for row in rows) > 5, f"{len(rows)} rows")
    # who waits loses nothing by a stop: it is not taken off
    rows, end, said = watch(["--every", "100ms", "--freeze"], ["sleep", "1"], status=0)
    stood = sum(row["stood_ns"] for row in rows)
    need(end["stood_ns"] < 0.5 * stood and end["stops"] > 5, end)


LEADER_GONE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long got;
static void note(int sig) { (void)sig; got++; }
static void *others(void *arg)
{
	int ok = 0, eintr = 0;
	for (int i = 0; i < 20000; i++)
		raise(SIGUSR1);
	for (int i = 0; i < 200; i++) {
		int status;
		pid_t c = i & 1 ? vfork() : fork();
		if (!c)
			_exit(i & 7);
		while (waitpid(c, &status, 0) < 0)
			eintr++;
		ok += WEXITSTATUS(status) == (i & 7);
	}
	for (int i = 0; i < 10; i++)
		eintr += usleep(20000) != 0;
	printf("signals %ld children %d eintr %d\n", got, ok, eintr);
	fflush(stdout);
	_exit(9);
	return arg;
}
int main(void)
{
	struct sigaction a = {.sa_handler = note};
	pthread_t t;
	sigaction(SIGUSR1, &a, NULL);
	pthread_create(&t, NULL, others, NULL);
	pthread_exit(NULL);
}
"""


def leader_gone():
    """The first thread has ended; the other forks, vforks, and has signals."""
    tap.compile_text("p", LEADER_GONE, "-pthread")
    r = monitor("-q", "--json", "-o", "rows", "--every", "8ms", "--freeze", "--", "./p", status=9)
    need(r.stdout == "signals 20000 children 200 eintr 0\n", r.stdout)
    rows, end = rows_of("rows")
    need(end["stops"] > 5 and end["failed_stops"] < end["stops"] / 4, end)


def order():
    """What two processes say to each other comes in the order in which it came."""
    script = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done | while read n; do echo got $n; done"
    plain = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=LIMIT)
    r = monitor("-q", "-o", "rows", "--every", "5ms", "--freeze", "--", "sh", "-c", script, status=0)
    need(r.stdout == plain.stdout and not r.stderr, r.stderr)


def virtual_time():
    """Within two of a hundred of the untraced run's: of some runs side by side, the best of each."""
    tap.compile_c("p", "bins/monitored.c")
    best = None
    for _ in range(4):
        untraced, virtual = [], []
        for _ in range(6):
            start = time.monotonic()
            subprocess.run(["./p", "1", "150000"], stdout=subprocess.DEVNULL)  # a timeout would look only now and then
            untraced.append(time.monotonic() - start)
            rows, end, said = watch(["--every", "20ms", "--freeze", "-e", "calls:work"], ["./p", "1", "150000"])
            virtual.append(end["virtual_ns"] / 1e9)
        off = min(virtual) / min(untraced) - 1
        best = off if best is None or abs(off) < abs(best) else best
        print(f"# virtual {min(virtual):.4f} s, untraced {min(untraced):.4f} s: {100 * off:.2f} %")
        if abs(best) < 0.02:
            return
    # a program's start with a plan takes its time, and a busy machine has its own
    need(abs(best) < 0.5, f"{100 * best:.1f} %")


def statuses():
    r = monitor("--", "/nonexistent", status=127)
    need("/nonexistent" in r.stderr, r.stderr)
    monitor("-q", "--", "sh", "-c", "exit 7", status=7)
    monitor("-q", "--freeze", "--", "sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
    for bad in (["-e", "nonsense"], ["--every", "0"], ["--every", "soon"], ["--var", "x:u7"], ["-e", "calls:"], ["-L", "x"], ["--var", "a", "--var", "a:x8"], []):
        r = monitor(*bad, *(["--", "true"] if bad else []), status=125)
        need(r.stderr.count("\n") == 1 and not r.stdout, r.stderr)
    for how in [], ["--json"], ["--draw"], ["--save", "s"]:
        r = monitor("-e", "calls:no_such_function_here", *how, "--", "true", status=125)
        need("not run" in r.stderr and not r.stdout and not os.path.exists("s"), f"{how}: {r}")


def no_unit():
    """Where no unit counts them it says so, and runs nothing."""
    r = subprocess.run([KRON, "monitor", "-e", "cycles", "--", "touch", "it_ran"], capture_output=True, text=True, timeout=LIMIT)
    if r.returncode == 0:
        raise tap.Skip("there is a performance monitoring unit")
    need(r.returncode == 125 and "performance monitoring unit" in r.stderr, r.stderr)
    need(not os.path.exists("it_ran"), "it ran")
    tap.compile_c("p", "bins/monitored.c")
    for event in "instructions", "branches":
        r = monitor("-e", event, "--", "touch", "it_ran", status=125)
        need(f"-e '{event}:*'" in r.stderr and r.stderr.count("\n") == 1, r.stderr)
        # and what is said works
        end = watch(["-e", f"{event}:*"], ["./p", "1", "100"])[1]
        need(end["totals"][f"{event}:*"] >= 100, end)
    need(not os.path.exists("it_ran"), "it ran")


def running():
    """A process that runs: its new threads and processes, too; and it runs on."""
    tap.compile_c("p", "bins/monitored.c")
    p = subprocess.Popen(["sh", "-c", "while :; do ./p 2 3000 >/dev/null; done"], start_new_session=True)
    try:
        time.sleep(0.1)
        r = monitor("-q", "--json", "--pid", str(p.pid), "--every", "50ms", "--freeze", "--for", "1500ms", "-e",
                    "page-faults,block,net,idle", status=0)
        lines = [json.loads(line) for line in r.stdout.splitlines()]
        check_sums(lines[:-1], lines[-1])
        need(lines[-1]["totals"]["page-faults"] > 1000, lines[-1])
        need(p.poll() is None, "it has ended")
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    # whoever has started kron: not kron itself
    r = subprocess.run(["sh", "-c", '"$0" monitor -q --pid $$ --for 300ms --every 50ms --freeze; echo went on', KRON],
                       capture_output=True, text=True, timeout=20)
    need(r.stdout.endswith("went on\n"), r)
    r = monitor("--pid", str(p.pid), status=125)
    need("no process" in r.stderr, r.stderr)


def interrupted():
    """Ctrl-C ends it, and it reports; kron killed while all stand: they go on."""
    k = subprocess.Popen([KRON, "monitor", "-q", "--json", "-o", "rows", "--every", "20ms", "--freeze", "--", "sleep", "30"])
    time.sleep(0.4)
    k.send_signal(signal.SIGINT)
    need(k.wait(timeout=LIMIT) == -signal.SIGINT, k.returncode)
    rows, end = rows_of("rows")
    need(len(rows) > 3 and end["intervals"] == len(rows), end)
    tap.compile_c("p", "bins/monitored.c")
    p = subprocess.Popen(["./p", "4", "60000"], stdout=subprocess.PIPE, text=True)
    for _ in range(5):
        k = subprocess.Popen([KRON, "monitor", "-q", "--every", "1ms", "--freeze", "--pid", str(p.pid)], stdout=subprocess.DEVNULL)
        time.sleep(0.05)
        k.kill()
        k.wait()
    need(p.wait(timeout=LIMIT) == 5, p.returncode)
    need(p.stdout.read().startswith("calls 240000 "), "its calls")


FILTERED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
int main(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {4, f};
	struct timespec ts = {0, 700000000};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 1;
	return nanosleep(&ts, 0) ? 2 : 7;
}
"""


def filtered():
    """Asleep under a filter that kills for restart_syscall."""
    tap.compile_text("p", FILTERED)
    rows, end, said = watch(["--every", "20ms", "--freeze"], ["./p"], status=7)
    need(end["stops"] > 5, end)


def killed():
    """By SIGKILL, while it stands or not: its parent hears of it, and kron ends."""
    tap.compile_c("p", "bins/monitored.c")
    for _ in range(8):
        k = subprocess.Popen([KRON, "monitor", "-q", "-o", "rows", "--every", "1ms", "--freeze", "--", "sh", "-c",
                              "./p 3 900000 >/dev/null & sleep 0.3; kill -9 $!; wait $!; exit 6"])
        need(k.wait(timeout=20) == 6, k.returncode)


def refused_thread():
    """A thread's number is not a process's."""
    tap.compile_c("p", "bins/monitored.c")
    p = subprocess.Popen(["./p", "2", "900000"], stdout=subprocess.DEVNULL)
    try:
        threads = f"/proc/{p.pid}/task"
        tap.wait_for(lambda: len(os.listdir(threads)) > 1, "its threads")
        tid = max(int(name) for name in os.listdir(threads))
        r = monitor("--pid", str(tid), status=125)
        need("number of a thread" in r.stderr, r.stderr)
    finally:
        p.kill()
        p.wait()


def ctl(*args, board):
    r = subprocess.run([KRON, "ctl", "--board", board, *args], capture_output=True, text=True, timeout=LIMIT)
    need(r.returncode == 0, r.stderr)
    return r.stdout.strip()


def of_board():
    """A board's counters, and marks where one could have overrun."""
    name = f"monitor-{os.getpid()}"
    subprocess.run([KRON, "board", "create", name, "--virtual-clock"], check=True, timeout=LIMIT)
    try:
        # 0: by software; 2 and 3: one of 64 bits; 5: at its maximum but three
        ctl("write", "mode", hex(0x2222222222222A22), board=name)
        ctl("write", "enable", hex(0x1111111111211212), board=name)
        ctl("write", "counter5", hex(0xFFFFFFFC), board=name)
        with open("rows", "w") as f:
            p = subprocess.Popen([KRON, "monitor", "--json", "--every", "100ms", "--board", name],
                                 stdout=f, stderr=subprocess.PIPE, text=True)

        def seen(of):
            """What its rows say by now of a counter."""
            with open("rows") as f:
                return sum(json.loads(line)["events"][of] or 0 for line in f if line.endswith("\n"))

        tap.wait_for(lambda: os.path.getsize("rows"), "no row")
        for _ in range(7):
            ctl("write", "increment0", "0", board=name)
        ctl("write", "trace0", "1", board=name)
        ctl("write", "trace0", "2", board=name)
        ctl("tick", "1000", board=name)
        tap.wait_for(lambda: seen("counter0") == 7 and seen("words") == 10, "the counts do not come")
        for _ in range(5):
            ctl("write", "increment5", "0", board=name)
        tap.wait_for(lambda: seen("counter5") == 3, "the counter that sticks does not come")
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=LIMIT)[1]
        need(p.returncode == 0, f"status {p.returncode}: {err}")
        rows, end = rows_of("rows")
        check_sums(rows, end)
        need(set(end["totals"]) == {"words", "wait", "overrun", "counter0", "counter2", "counter5"}, end)
        need(end["totals"]["counter0"] == 7 and end["totals"]["words"] == 10 and end["overrun"] == ["counter5"], end)
        need("overrun" not in rows[0] and rows[-1]["overrun"] == ["counter5"], rows)
        # what is proposed is taken, and is enough: 2^24 words at 5 million a second
        better = err.split("--every ")[1].split()[0]
        need(1000 < int(better.removesuffix("ms")) < 3355, err)
        r = monitor("--json", "--board", name, "--every", better, "--for", "50ms", status=0)
        need("words" not in json.loads(r.stdout.splitlines()[-1])["overrun"], r.stdout)
        r = monitor("--board", name, "--freeze", status=125)
        need("belong to programs" in r.stderr, r.stderr)
        r = monitor("--board", name + "-not", status=125)
        need("no board" in r.stderr, r.stderr)
        r = monitor("--board", name, "--for", "50ms", status=0)
        need("words" in r.stdout and "virtual time" not in r.stdout, r.stdout)
    finally:
        subprocess.run([KRON, "board", "rm", name], check=True, timeout=LIMIT)


def drawn():
    """At the end of a file one picture; on a terminal one after each interval, over the one before."""
    tap.compile_c("p", "bins/monitored.c")
    events = ["-q", "--every", "20ms", "--draw", "-e", "task-clock,idle"]
    monitor("-o", "picture", *events, "--", "./p", "2", "240000")
    with open("picture", encoding="utf-8") as f:
        lines = f.read().splitlines()
    processors = os.cpu_count()
    need([line.split()[0] for line in lines[:2 + processors]] == ["task-clock", "busy"] + [f"busy{i}" for i in range(processors)], lines)
    bars = lines[0].split("|")[1]
    need(len(bars) == 60 and "\u2588" in bars, lines[0])
    need(lines[-2].split()[0] == "total", lines)
    master, slave = os.openpty()
    p = subprocess.Popen([KRON, "monitor", *events, "--", "./p", "2", "240000"], stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    got = b""
    try:
        while piece := os.read(master, 65536):
            got += piece
    except OSError:
        pass  # the other end is closed
    os.close(master)
    need(p.wait(timeout=LIMIT) == 5, p.returncode)
    rows = 2 + processors + (14 if processors > 2 else 0)
    pictures = got.count(b"task-clock         |")
    need(pictures >= 3 and got.count(b"\x1b[%dA" % rows) == pictures - 1, f"{pictures} pictures: {got[:500]}")
    r = monitor("--draw", "--json", "--", "true", status=125)
    need("not both" in r.stderr, r.stderr)


with tap.Suite("monitor") as s:
    s.case("sums of the kernel's counters", sums)
    s.case("and with stops", sums, "--freeze")
    s.case("names of perf's", perfs_names)
    s.case("sums of calls", calls)
    s.case("and with stops", calls, "--freeze")
    s.case("signals and traps", signals)
    s.case("and with stops", signals, "--freeze")
    s.case("signals that may not be counted", signals_refused)
    s.case("signals of a process that runs", signals_of_running)
    s.case("children", children)
    s.case("variables by name", variables)
    s.case("variables of one name", of_one_name)
    s.case("variables that are of another type", of_other_types)
    s.case("variables of C++", of_cpp)
    s.case("a reader who has enough", enough)
    s.case("members of variables", members)
    s.case("variables that go", variables_that_go)
    s.case("eight threads stop at once", freeze)
    s.case("no EINTR that the program sees", no_eintr)
    s.case("a program whose first thread has ended", leader_gone)
    s.case("the order of events", order)
    s.case("virtual time", virtual_time)
    s.case("exit statuses and refusals", statuses)
    s.case("diagrams", drawn)
    s.case("a board, and counters that overrun", of_board)
    s.case("hardware counters where there are none", no_unit)
    s.case("a process that runs", running)
    s.case("interrupted and killed", interrupted)
    s.case("asleep under a filter", filtered)
    s.case("killed while it stands", killed)
    s.case("a thread's number", refused_thread)
