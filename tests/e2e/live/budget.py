#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 900
"""kron record --budget: functions with many short calls are taken out while the program runs.

Ground truth: the program counts its own calls, and says how many there were of each function."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import info, interrupt, record_pid, text_is_of_files  # noqa: E402
from tap import KRON, Suite, compile_text, need  # noqa: E402

# beat: a call that is long, of many short ones, until there is a file "over", or for so many beats; then it says how many
# calls there were, in `beat` and in `tiny`.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
OWN long tiny(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
OWN long beat(long n)
{
    long sum = 0;
    for (long i = 0; i < 20000; i++) sum = tiny(sum + n) - n;
    return sum;
}
int main(int argc, char **argv)
{
    long beats = 0, sum = 0, most = argc > 1 ? atol(argv[1]) : 1L << 60;
    while (beats < most && access("over", F_OK)) { sum += beat(beats & 7); beats++; }
    printf("%ld %ld\\n", beats, sum);
    return sum == beats * 20000 ? 7 : 1;
}
"""
SHORT = 20000


def build():
    compile_text("program", PROGRAM, "-O2")


def begin(*options, command=("./program",), by=()):
    with contextlib.suppress(OSError):
        os.unlink("over")
    return subprocess.Popen([*by, KRON, "record", "-o", "t", *options, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def windows():
    """How often functions have been woken for a moment so far."""
    with contextlib.suppress(OSError):
        return open("t/sleeps", encoding="ascii").read().count("\twake\tbudget\t")
    return 0


def wait_for(what, seconds=90):
    until = time.time() + seconds
    while not what():
        need(time.time() < until, f"not within {seconds} s")
        time.sleep(0.1)


def has_gone():
    with contextlib.suppress(OSError):
        return "\tsleep\tbudget\t" in open("t/sleeps", encoding="ascii").read()
    return False


def end(p):
    open("over", "w", encoding="ascii").close()
    out, said = p.communicate(timeout=60)
    need(p.returncode == 7, f"{p.returncode}: {said}")
    return int(out.split()[0]), said


def rows(*traces):
    out = subprocess.run([KRON, "report", "--json", *(traces or ["t"])], capture_output=True, text=True, check=True).stdout
    return {r["function"]: r for r in json.loads(out)}


def need_estimate(row, truth):
    got = row["suppressed"]
    need(row["calls"] <= truth, f"{row}, and there were {truth}")
    # what is stated holds in 19 of 20 runs; this is a test, so it allows for twice as much
    need(abs(got["calls"] - truth) <= 2 * got["calls_error"] + 0.02 * truth, f"{got}, and there were {truth}")


def started():
    build()
    p = begin("--budget", "20%")
    wait_for(lambda: windows() >= 3, 180)
    beats, said = end(p)
    need("--budget: 1 function has been taken out" in said, said)
    got = rows()
    need(got["beat"]["calls"] == beats and got["main"]["calls"] == 1, f"{got['beat']}, {beats}")
    need("suppressed" not in got["beat"] and "suppressed" not in got["main"], got)
    need_estimate(got["tiny"], beats * SHORT)
    need(got["tiny"]["calls"] < beats * SHORT / 2, f"{got['tiny']}: it was watched all the time")
    trace = info()
    listed = trace["suppressed"]
    need(trace["budget"] == "20%" and [f["function"] for f in listed] == ["tiny"], trace["suppressed"])
    need(listed[0]["asleep"] and listed[0]["windows"] >= 3 and listed[0]["watched_ns"] > 0, listed)
    need(abs(listed[0]["watched_ns"] - got["tiny"]["suppressed"]["watched_ns"]) < 1000, f"{listed}, {got['tiny']}")
    need(trace["lost"] == 0 and trace["damaged"] == 0, trace)
    text = subprocess.run([KRON, "report", "t"], capture_output=True, text=True, check=True).stdout
    need("Taken out to stay within --budget 20%" in text and "Calls, about" in text, text)
    text = subprocess.run([KRON, "info", "t"], capture_output=True, text=True, check=True).stdout
    need("1 function taken out to stay within --budget 20%:" in text, text)


def kept():
    build()
    p = begin("--budget", "1%", "--keep", "tin*", command=("./program", "500"))
    out, said = p.communicate(timeout=120)
    need(p.returncode == 7, said)
    got = rows()
    need(got["tiny"]["calls"] == int(out.split()[0]) * SHORT, f"{got['tiny']}, {out}")
    need("suppressed" not in got["tiny"], got["tiny"])
    need("or are kept, took" in said, said)
    r = subprocess.run([KRON, "record", "-o", "t", "--budget", "1%", "--keep", "nothing*", "--", "./program", "1"], capture_output=True,
                       text=True)
    need("nothing*" in r.stderr and r.returncode == 7, r)


def attached():
    build()
    with contextlib.suppress(OSError):
        os.unlink("over")
    p = subprocess.Popen([os.path.abspath("program")], stdout=subprocess.PIPE, text=True)
    recorder = record_pid(p.pid, "--budget", "20%")
    wait_for(lambda: windows() >= 1)
    interrupt(recorder)
    text_is_of_files(p.pid)
    open("over", "w", encoding="ascii").close()
    out, _ = p.communicate(timeout=60)
    need(p.returncode == 7, f"{p.returncode} {out}")
    need([f["function"] for f in info()["suppressed"]] == ["tiny"], info()["suppressed"])


def next_program():
    """What is executed later begins with what has been taken out."""
    build()
    p = begin("--budget", "5%", command=("sh", "-c", "./program; exec ./program 2000"))
    wait_for(has_gone)
    open("over", "w", encoding="ascii").close()
    first = int(p.stdout.readline().split()[0])
    os.unlink("over")
    out, said = p.communicate(timeout=120)
    need(p.returncode == 7, said)
    beats = int(out.split()[0])
    got = json.loads(subprocess.run([KRON, "report", "--json", "--by-process", "t"], capture_output=True, text=True, check=True).stdout)
    tiny = {r["process"]: r["calls"] for r in got if r["function"] == "tiny"}
    by = {r["calls"]: r["process"] for r in got if r["function"] == "beat"}
    need(set(by) == {first, beats}, f"{by}, {first} {beats}")
    need(tiny.get(by[beats], 0) < beats * SHORT / 2, f"{tiny}, {beats} beats of the second")


OPEN = """
#include <unistd.h>
__attribute__((noinline, noclone)) long inner(long n) { usleep(1000); return n + 1; }
__attribute__((noinline, noclone)) long outer(long n) { while (access("over", F_OK)) n = inner(n); return n; }
int main(void) { return outer(1) > 1 ? 7 : 1; }
"""


def record_open(trace, before, after, text=OPEN):
    """A program whose outer() runs from beginning to end, and is put to sleep on the way."""
    compile_text("program", text, "-O2")
    p = begin("-o", trace, "--board", f"open{os.getpid()}")
    time.sleep(before)
    r = subprocess.run([KRON, "ctl", "--board", f"open{os.getpid()}", "probe", "rm", "-F", "outer"], capture_output=True, text=True)
    need(r.returncode == 0, r)
    time.sleep(after)
    open("over", "w", encoding="ascii").close()
    _, said = p.communicate(timeout=60)
    need(p.returncode == 7, said)


def open_calls():
    """A call that is open when its function goes to sleep is not said to run until its caller goes on."""
    record_open("t", 1, 3)
    got = rows()
    whole, seen = got["main"]["total_ns"], got["outer"]["total_ns"]
    need(seen < whole - 2_500_000_000, f"outer was watched for {seen} of {whole} ns")
    need(got["outer"]["calls"] == 1 and got["outer"]["inferred"] == 1 and got["outer"]["spans_loss"] == 1, got["outer"])
    need(got["inner"]["total_ns"] > 0.6 * whole, f"{got['inner']} of {whole}")
    need([c["spec"] for c in info()["probe_changes"]] == ["-F outer"] and info()["suppressed"] == [], info())


LEAVES = """
#include <unistd.h>
__attribute__((noinline, noclone)) void outer(void) { while (access("over", F_OK)) usleep(1000); _exit(7); }
int main(void) { outer(); return 1; }
"""


def last_calls():
    """Nor until its thread's end, where nothing more is seen of that."""
    record_open("t", 1, 2, LEAVES)
    got = rows()
    whole, seen = got["main"]["total_ns"], got["outer"]["total_ns"]
    need(seen < whole - 1_500_000_000, f"outer was watched for {seen} of {whole} ns")
    need(got["outer"]["calls"] == 1 and got["outer"]["inferred"] == 1 and got["outer"]["spans_loss"] == 1, got["outer"])


def open_calls_of_two():
    """The same in two traces that are read as one, in whatever order."""
    record_open("t1", 0.5, 1)
    record_open("t2", 0.5, 1)
    want = sum(rows(t)["outer"]["total_ns"] for t in ("t1", "t2"))
    for traces in ("t1", "t2"), ("t2", "t1"):
        got = rows(*traces)["outer"]
        need(got["calls"] == 2 and abs(got["total_ns"] - want) < 1_000_000, f"{traces}: {got}, alone {want}")


def elsewhere():
    """Over a cable, and together with another trace: what was taken out in one of them."""
    build()
    socket = os.path.abspath("socket")
    collector = subprocess.Popen([KRON, "collect", "--listen", f"unix:{socket}", "-o", "nodes"], stderr=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists(socket))
    p = subprocess.Popen([KRON, "record", "-o", f"unix:{socket}", "--node", "3", "--budget", "5%", "--", "./program", "4000"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, said = p.communicate(timeout=200)
    need(p.returncode == 7, said)
    collector.send_signal(signal.SIGINT)
    collector.wait(60)
    plain = begin("--node", "4", command=("./program", "3"))
    plain.communicate(timeout=60)
    need(plain.returncode == 7, "its status")
    node = os.path.join("nodes", os.listdir("nodes")[0])
    alone, both = rows(node), rows(node, "t")
    need("suppressed" in alone["tiny"], f"{alone['tiny']}, {said}")
    need(both["tiny"]["calls"] == alone["tiny"]["calls"] + 3 * SHORT, f"{alone['tiny']}, {both['tiny']}")
    # in the other one it was watched all the time
    more = {k: both["tiny"]["suppressed"][k] - alone["tiny"]["suppressed"][k] for k in ("watched_ns", "of_ns")}
    need(more["watched_ns"] > 0 and abs(more["watched_ns"] - more["of_ns"]) < 1000, f"{alone['tiny']}, {both['tiny']}")
    if "calls" in alone["tiny"]["suppressed"]:
        more = both["tiny"]["suppressed"]["calls"] - alone["tiny"]["suppressed"]["calls"]
        need(abs(more - 3 * SHORT) < 1, f"{alone['tiny']}, {both['tiny']}")
    need(both["beat"]["calls"] == int(out.split()[0]) + 3 and "suppressed" not in both["beat"], both["beat"])


PHASES = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OWN __attribute__((noinline, noclone))
OWN long tiny(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
OWN long beat(long n)
{
    long sum = 0;
    for (long i = 0; i < 20000; i++) sum = tiny(sum + n) - n;
    return sum;
}
OWN long other(long n) { volatile long sum = 0; for (long i = 0; i < 40000; i++) sum += n; return sum; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(int argc, char **argv)
{
    double end = now() + atof(argv[1]);
    long beats = 0, sum = 0;
    while (now() < end) {
        for (double t = now() + .5; now() < t; beats++) sum += beat(sum & 7);
        for (double t = now() + .5; now() < t;) sum += other(sum & 7);
    }
    printf("%ld\\n", beats);
    return sum ? 7 : 1;
}
"""


def need_beats(text, seconds, *flags):
    """Of a program that says its beats: they are exact, and what they call is estimated or not known."""
    compile_text("program", text, "-O2", *flags)
    p = begin("--budget", "5%", command=("./program", seconds))
    out, said = p.communicate(timeout=120)
    need(p.returncode == 7, said)
    got = rows()
    need(got["beat"]["calls"] == int(out), f"{got['beat']}, {out}")
    if "calls" in got["tiny"]["suppressed"]:
        need_estimate(got["tiny"], int(out) * SHORT)


def phases():
    """Two windows in one phase agree, and say nothing of the other."""
    need_beats(PHASES, "6")


TURNS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OWN __attribute__((noinline, noclone))
#define THREADS 12
OWN long tiny(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
OWN long beat(long n)
{
    long sum = 0;
    for (long i = 0; i < 20000; i++) sum = tiny(sum + n) - n;
    return sum;
}
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;
static double end;
static long beats, turn;
static void *run(void *arg)
{
    long me = (long)arg, sum = 0;
    while (now() < end) {
        pthread_mutex_lock(&lock);
        while (turn != me) pthread_cond_wait(&next, &lock);
        for (double t = now() + .25; now() < t; beats++) sum += beat(sum & 7);
        turn = (turn + 1) % THREADS;
        pthread_cond_broadcast(&next);
        pthread_mutex_unlock(&lock);
    }
    return (void *)sum;
}
int main(int argc, char **argv)
{
    pthread_t t[THREADS];
    end = now() + atof(argv[1]);
    for (long i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    printf("%ld\\n", beats);
    return 7;
}
"""


def turns():
    """Threads that take turns: most of them wait while there is a window."""
    need_beats(TURNS, "12", "-pthread")


CLOCKED = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OWN __attribute__((noinline, noclone))
OWN long tick(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
OWN long tiny(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(int argc, char **argv)
{
    double t = now(), end = t + atof(argv[1]), next = t;
    long calls = 0, n = 0;
    while ((t = now()) < end) {
        for (; t >= next; next += .001) n = tick(n);
        for (int i = 0; i < 1000; i++) calls = tiny(calls);
    }
    printf("%ld\\n", calls);
    return n < 0;
}
"""


def clocked():
    """What it calls now and then goes by the clock: of how far it has come that tells nothing."""
    compile_text("program", CLOCKED, "-O2")
    p = begin("--budget", "5%", command=("./program", "12"))
    out, said = p.communicate(timeout=120)
    need(p.returncode == 0, said)
    got = rows()["tiny"]["suppressed"]
    truth = int(out)
    need("calls" not in got or abs(got["calls"] - truth) <= 2 * got["calls_error"], f"{got}, and there were {truth}")


BUSY = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
OWN long tiny(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
static volatile int over;
static long sum[200];
static int rest, calls;
static void *run(void *arg)
{
    long *n = arg;
    while (!over) {
        if (rest) usleep((unsigned)rest);
        for (int i = 0; i < calls; i++) *n = tiny(*n);
    }
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t t[200];
    int n = atoi(argv[1]);
    long all = 0;
    rest = atoi(argv[2]);
    calls = atoi(argv[3]);
    setpriority(PRIO_PROCESS, 0, 0); /* before the recorder, which is nice */
    for (int i = 0; i < n; i++) pthread_create(&t[i], 0, run, &sum[i]);
    sleep((unsigned)atoi(argv[4]));
    over = 1;
    for (int i = 0; i < n; i++) { pthread_join(t[i], 0); all += sum[i]; }
    printf("%ld\\n", all);
    return 0;
}
"""


def seen_late(*argv):
    """More than the recorder can take, or chunks that are full long after their first sample: the budget holds all the same."""
    compile_text("program", BUSY, "-O2", "-pthread")
    p = begin("--budget", "5%", "--buffer", "64M", command=("./program", *argv), by=("nice", "-n", "10"))
    out, said = p.communicate(timeout=120)
    need(p.returncode == 0 and "1 function has been taken out" in said, said)
    got = rows()["tiny"]
    need(got["calls"] < int(out), f"{got}, and there were {out}")


NO_STOP = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog f = {1, all};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f)) return 1;
    while (access("over", F_OK)) usleep(10000);
    return 0;
}
"""


def fails():
    """A process that may not be stopped: what others did between a change and its end is not said to be all."""
    build()
    compile_text("filtered", NO_STOP, "-O2")
    p = begin("--budget", "1%", command=("sh", "-c", "./filtered & sleep 0.2; ./program 400; s=$?; touch over; wait; exit $s"))
    out, said = p.communicate(timeout=120)
    need(p.returncode == 7 and "is under a seccomp filter" in said, said)
    got = rows()["tiny"]
    truth = int(out.split()[0]) * SHORT
    need(got["calls"] == truth or (got["calls"] < truth and "suppressed" in got), f"{got}, and there were {truth}")


def asked():
    """What is asked for by hand holds, whatever the budget has taken out already."""
    build()
    board = f"budget{os.getpid()}"
    p = begin("--budget", "20%", "--board", board)
    wait_for(has_gone)

    def probe(verb, status=0):
        r = subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", "tiny"], capture_output=True, text=True)
        need(r.returncode == status, r)
        return r.stderr

    said = probe("rm")
    need("1 of 1 functions are out for --budget already" in said or not said, said)
    need("all that tiny means sleeps already" in probe("rm", 1), "again")
    before = windows()
    time.sleep(4)
    need(windows() == before, "a window has woken it")
    said = probe("add")
    need("come back when it says so" in said or not said, said)
    wait_for(lambda: windows() > before, 60)
    end(p)


def patched():
    """A file of `kron patch` keeps its probes, and that is said."""
    build()
    subprocess.run([KRON, "patch", "-q", "-o", "patched", "program"], check=True)
    p = begin("--budget", "1%", command=("./patched", "1000"))
    said = p.communicate(timeout=120)[1]
    need(p.returncode == 7 and "probes that cannot be taken out, or are kept, took" in said, said)


def perl():
    """A real program and all of its libraries: what it prints stays, and most of what it calls is not recorded."""
    work = """
my (%d, $s);
for my $r (1 .. 400) {
    for my $i (0 .. 4000) { my $k = ($i % 97) . "x"; $d{$k} += length($k); }
    $s += length(join(",", sort map { "$_=$d{$_}" } keys %d));
}
print "$s\\n";
"""
    path = shutil.which("perl", path="/usr/bin:/bin")
    plain = subprocess.run([path, "-e", work], capture_output=True, text=True, check=True)
    p = begin("-L", "*", "--budget", "1%", command=(path, "-e", work))
    out, said = p.communicate(timeout=300)
    need(p.returncode == 0 and out == plain.stdout, f"{p.returncode} {out}")
    subprocess.run([KRON, "stat", "--json", "-o", "counts", "-L", "*", "--", path, "-e", work], stdout=subprocess.DEVNULL, check=True)
    with open("counts", encoding="utf-8") as f:
        calls = sum(each["calls"] for each in json.load(f))
    need(info()["samples"] < calls, f"{info()['samples']} samples of {calls} calls: {said}")
    got = rows()
    need(got["main"]["calls"] == 1 and "suppressed" not in got["main"], got["main"])
    need(got["Perl_pp_sort"]["calls"] == 400, got["Perl_pp_sort"])


def refusals():
    build()
    for options, said in (
        (["--budget", "1"], "no share of processor time"),
        (["--budget", "0%"], "no share of processor time"),
        (["--budget", "101%"], "no share of processor time"),
        (["--budget", "nan%"], "no share of processor time"),
        (["--budget", ""], "no share of processor time"),
        (["--keep", "x"], "--keep belongs to --budget"),
        (["--budget", "1%", "--bus", "exact"], "--budget is for lanes"),
        (["--budget", "1%", "--flight", "1M"], "--budget counts samples as they are written"),
        (["--budget", "1%", "--trigger", "entry=main"], "--budget counts samples as they are written"),
        (["--budget", "1%", "--when-full", "wrap"], "--budget counts samples as they are written"),
        (["--budget", "1%", "--clock", "every:16"], "not with --clock every:N"),
        (["--budget", "1%", "--constant-time"], "exclude each other"),
        (["--budget", "1%", "-p", "entry=main"], "-p alone records none"),
    ):  # fmt: skip
        r = subprocess.run([KRON, "record", "-o", "t", *options, "--", "./program", "1"], capture_output=True, text=True)
        need(r.returncode == 125 and said in r.stderr and len(r.stderr.splitlines()) == 1, f"{options}: {r}")


def main():
    with Suite("budget") as s:
        s.case("a program from its start: what is taken out, and how many calls it had", started)
        s.case("what is kept stays whole", kept)
        s.case("a program that is attached to", attached)
        s.case("a program that is executed later", next_program)
        s.case("calls that are open when their function goes", open_calls)
        s.case("calls of which nothing more is seen", last_calls)
        s.case("the same in two traces together", open_calls_of_two)
        s.case("over a cable, and beside another trace", elsewhere)
        s.case("a program that goes by the clock", clocked)
        s.case("a program whose phases are longer than windows", phases)
        s.case("threads that take turns", turns)
        s.case("more samples than can be taken", seen_late, "8", "0", "100000", "4")
        s.case("chunks that are seldom full", seen_late, "200", "20000", "80", "6")
        s.case("a process that may not be stopped", fails)
        s.case("functions that are asked for by hand", asked)
        s.case("a file of kron patch", patched)
        s.case("perl and its libraries", perl)
        s.case("what cannot be is refused in a sentence", refusals)


if __name__ == "__main__":
    main()
