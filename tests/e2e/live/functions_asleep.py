#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron ctl probe rm -F, and add -F: functions that the recording traces sleep, and wake again.

Ground truth: the program calls its functions as often as it is told, between one change and the next, and says what
it has computed; so each function's calls in the trace are known.  What sleeps has its file's bytes, read from the
process's memory."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import truth  # noqa: E402
from functions_program import PROGRAM, THREADS, Program, end_python, new_board, start_python, sum_of, text_of  # noqa: E402
from live import info, interrupt, record_pid, text_is_of_files  # noqa: E402
from tap import KRON, Skip, Suite, compile_text, need, rnd, wait_for  # noqa: E402


def exact(attached):
    """All calls but those that were made asleep; and the bytes."""
    p = Program(attached, "-F", "outer", "-F", "inner", "-F", "leaf", "-F", "tiny")
    p.run(100)
    p.rm("inner", "tiny")
    for name in "inner", "tiny":
        now, file = text_of(p.pid, name)
        need(now == file, f"{name} is not as its file has it: {now.hex()}, {file.hex()}")
    now, file = text_of(p.pid, "outer")
    need(now != file, "outer has no probe any more")
    p.run(1000)
    p.add("inner")
    p.run(10)
    p.rm("outer", "leaf")
    p.run(5000)
    p.add("tiny", "outer")
    p.run(20)
    p.rm("outer")
    p.run(3)
    p.add("leaf")
    p.run(1)
    p.end()
    p.need_calls()


def all_of_them(attached):
    """'*', the hooks' functions among them, with everything that the program loads; again and again under load."""
    p = Program(attached, "-L", "*")
    p.run(50)
    p.probe("rm", "-F", "*")
    was = p.asleep
    p.asleep = set(p.calls)
    p.run(3000)
    p.probe("add", "-F", "*")
    p.asleep = was
    p.run(7)
    p.end()
    p.need_calls()


def under_load(attached):
    """Changes come while all threads are in these functions: what they compute stays, and no sample is lost or torn."""
    p = Program(attached, "-F", "outer", "-F", "inner", "-F", "leaf", "-F", "tiny")
    n = 400_000
    p.p.stdin.write(f"{n}\n")
    p.p.stdin.flush()
    end = time.time() + 6
    rounds = 0
    while time.time() < end:
        name = rnd.choice(["outer", "inner", "leaf", "tiny", "*", "[ol]*"])
        for verb in "rm", "add":
            p.probe(verb, "-F", name)
            time.sleep(rnd.random() / 100)
        rounds += 1
    need(int(p.p.stdout.readline()) == sum_of(n), "what it computes has changed")
    need(rounds >= 5, f"{rounds} rounds")
    p.run(10)
    p.end()
    trace = info()
    need(trace["lost"] == 0, trace)


def others_come():
    """A library that is loaded later, a child, a program that is executed: they begin with what sleeps asleep."""
    compile_text("late.so", "long inner_too(long n) { return n + 5; } long late(long n) { return inner_too(n) + 1; }", "-shared", "-fPIC",
                 "-O0")
    p = Program(False, "-L", "*")
    p.probe("rm", "-F", "inner*")
    p.asleep.add("inner")
    need(p.says(os.path.abspath("late.so")) == 7, "what the library computes has changed")
    need(p.says("f") == 0, "what the child computes has changed")
    for name in "outer", "leaf", "tiny":
        p.calls[name] += 10
    p.run(5)
    p.end()
    p.calls.update(late=1, inner_too=0)
    p.need_calls()


def executes():
    """A shell that is recorded executes the program after a function of it was put to sleep."""
    compile_text("program", PROGRAM, "-DTHREADS=%d" % THREADS, "-O2", "-pthread", "-ldl")
    compile_text("first", '#include <stdio.h>\n#include <unistd.h>\n__attribute__((noinline)) void mine(void) { getchar(); }\n'
                          'int main(void) { setvbuf(stdin, 0, _IONBF, 0); puts("first"); fflush(stdout); mine(); '
                          'execl("./program", "program", (char *)0); return 1; }')
    board = new_board()
    env = {**os.environ, "ONE_THREAD": "1"}
    argv = [KRON, "record", "-q", "-o", "t", "--board", board, "--", "./first"]
    p = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "first\n", "it does not start")
    subprocess.run([KRON, "ctl", "--board", board, "probe", "rm", "-F", "m*"], check=True)
    p.stdin.write("\n")
    p.stdin.flush()
    need(p.stdout.readline() == "ready\n", "it does not execute the other")
    p.stdin.write("10\n")
    p.stdin.close()
    need(int(p.stdout.readline()) == sum_of(10, 1) and p.wait(60) == 7, "what it computes has changed")
    got = truth.report_calls("t")
    need(got["inner"] == 30 and got["main"] <= 1, got)  # first's own main had begun


def writes():
    """A program makes its code writable, and changes what has been asleep: it has its own bytes, and no jump of ours."""
    p = Program(False, "-F", "outer", "-F", "inner", "-F", "leaf", one=True)
    p.run(10)
    p.rm("inner")
    p.run(10)
    need(p.says("w") == 5, "it does not see what it has written")
    p.p.stdin.close()
    need(p.p.wait(60) == 7, "its status")


def has_written():
    """Who has made its code writable has had it back for good, whatever sleeps or wakes afterwards."""
    p = Program(False, "-F", "outer", "-F", "inner", "-F", "leaf", one=True)
    p.run(10)
    need(p.says("w") == 5, "it does not see what it has written")
    for verb in "rm", "add":
        p.probe(verb, "-F", "outer")
        now, file = text_of(p.pid, "outer")
        need(now == file, f"after {verb}: {now.hex()}, {file.hex()}")
        need(p.says(10) == sum(1 + 5 * (3 * i + 3) + 1 for i in range(10)), "what it computes has changed")
    p.p.stdin.close()
    need(p.p.wait(60) == 7, "its status")


def python():
    """A real program and all of its libraries, under load, while its functions come and go."""
    p, board = start_python("-L", "*")
    for name in "*", "_Py*", "Py*", "_PyEval_EvalFrameDefault", "*Dict*", "*":
        for verb in "rm", "add":
            r = subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", name], capture_output=True, text=True)
            need(r.returncode == 0 or "is called" in r.stderr, r)
            time.sleep(rnd.random() / 10)
    subprocess.run([KRON, "ctl", "--board", board, "probe", "rm", "-F", "*"], check=True)
    end_python(p)


LIBRARY = """
#define OWN __attribute__((noinline, noclone))
OWN long first(long n) { __asm__ volatile("" : "+r"(n)); return n + ADDS; }
long both(long n) { return first(n) + first(n + 1); }
"""
LOADS = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int over;
static void *load(void *arg)
{
    char name[] = "./adds0.so";
    long i = (long)arg, wrong = 0;
    name[6] += i;
    while (!over) {
        void *lib = dlopen(name, RTLD_NOW);
        long (*both)(long) = (long (*)(long))dlsym(lib, "both");
        for (long n = 0; n < 20; n++) wrong += both(n) != 2 * n + 1 + 2 * i;
        dlclose(lib);
    }
    return (void *)wrong;
}
int main(void)
{
    pthread_t t[3];
    long wrong = 0;
    puts("ready"); fflush(stdout);
    for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, load, (void *)(i + 1));
    while (access("over", F_OK)) ; /* busy, so that a change takes its time */
    over = 1;
    for (int i = 0; i < 3; i++) { void *n; pthread_join(t[i], &n); wrong += (long)n; }
    printf("%ld\\n", wrong);
    return 7;
}
"""


def libraries_take_places():
    """Libraries take each other's places, and their blocks do, while functions of them sleep and wake: each keeps its own code."""
    with contextlib.suppress(OSError):
        os.unlink("over")
    for i in "123":
        compile_text(f"adds{i}.so", LIBRARY, "-shared", "-fPIC", "-O2", f"-DADDS={i}")
    compile_text("loads", LOADS, "-O2", "-pthread", "-ldl")
    board = new_board()
    argv = [KRON, "record", "-q", "-o", "t", "--board", board, "--when-full", "discard", "-L", "adds*", "--", "./loads"]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "ready\n", "it does not start")
    end = time.time() + 15
    done = 0
    while time.time() < end:
        for verb in "rm", "add":
            r = subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", "first"], capture_output=True, text=True)
            done += r.returncode == 0
    open("over", "w").close()
    said = p.stdout.read()
    need(p.wait(60) == 7 and said == "0\n", f"{p.returncode}: {said} calls of another library's function")
    need(done, "nothing has changed")


def others_execute():
    """Children come, execute and go all the time: no change is refused because of one."""
    with contextlib.suppress(OSError):
        os.unlink("over")
    board = new_board()
    loop = "n=0; while [ ! -e over ]; do n=$((n + $(echo 1 | cat))); /bin/true; done; exit 7"
    p = subprocess.Popen([KRON, "record", "-q", "-o", "t", "--board", board, "--when-full", "discard", "-L", "*", "--", "bash", "-c", loop])
    wait_for(lambda: not subprocess.run([KRON, "ctl", "--board", board, "probe", "rm", "-F", "*"], capture_output=True).returncode, "a change")
    try:
        for _ in range(15):
            for verb in "add", "rm":
                r = subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", "*"], capture_output=True, text=True)
                need(r.returncode == 0, r)
    finally:
        open("over", "w").close()
    need(p.wait(60) == 7, f"it ended with {p.returncode}")


GO = """
package main
import ("fmt"; "os"; "bufio"; "time")
//go:noinline
func inner(n int) int { n = n*3 + 1; n ^= n >> 3; n = n*5 + 7; n ^= n >> 2; n = n*9 + 1; n ^= n >> 5; n = n*3 + 1; n ^= n >> 3; return n }
func work(over *bool) { for i := 0; !*over; i++ { for k := 0; k < 1000000; k++ { i += inner(k) } } }
func main() {
    over := false
    for g := 0; g < 150; g++ { go work(&over) }
    time.Sleep(4 * time.Second)
    fmt.Println("ready")
    bufio.NewReader(os.Stdin).ReadString('\\n')
    os.Exit(7)
}
"""


def goroutines():
    """150 goroutines that were preempted anywhere in a function that sleeps: it wakes where none of them is in a window."""
    if not shutil.which("go"):
        raise Skip("go is not installed")
    with open("spins.go", "w") as f:
        f.write(GO)
    env = {**os.environ, "CGO_ENABLED": "0", "HOME": os.getcwd(), "GO111MODULE": "off"}
    subprocess.run(["go", "build", "-o", "spins", "spins.go"], check=True, env=env)
    board = new_board()
    argv = [KRON, "record", "-q", "-o", "t", "--board", board, "--when-full", "discard", "-b", "16M", "-F", "main.inner", "--", "./spins"]
    p = subprocess.Popen(argv, env={**os.environ, "GOMAXPROCS": "2"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    ctl = [KRON, "ctl", "--board", board, "probe"]
    for wait in 1, 2, 2:
        time.sleep(wait)
        subprocess.run([*ctl, "rm", "-F", "main.inner"], capture_output=True)
        time.sleep(2)
        need(p.poll() is None, f"it has ended: {p.returncode}")
        r = subprocess.run([*ctl, "add", "-F", "main.inner"], capture_output=True, text=True)
        need(r.returncode == 0 or "goroutine" in r.stderr, r)
    need(p.stdout.readline() == "ready\n", "it does not come to its end")
    p.stdin.close()
    need(p.wait(60) == 7, f"it ended with {p.returncode}")


def refusals():
    p = Program(False, "-F", "outer", "-F", "inner")
    p.asleep = {"leaf", "tiny"}
    need("no function that is traced is called leaf\n" in p.probe("rm", "-F", "leaf", status=1), "leaf")
    need("lost is no function of the program" in p.probe("add", "-F", "lost", status=1), "lost")
    need("`kron ctl probe rm -F inner` takes out functions" in p.probe("rm", "inner", status=1), "a function")
    need("all that inner means is traced already" in p.probe("add", "-F", "inner", status=1), "inner")
    p.rm("inner")
    need("all that inner means sleeps already" in p.probe("rm", "-F", "inner", status=1), "inner again")
    for argv in ["rm", "-F", "inner", "outer"], ["list", "-F", "x"], ["rm"]:
        p.probe(*argv, status=2)
    p.probe("rm", "-F", "", status=1)
    r = subprocess.run([KRON, "ctl", "--board", p.board, "filter", "-F", "x"], capture_output=True, text=True)
    need(r.returncode == 2, r)
    p.run(3)
    p.end()
    p.need_calls()
    changes = subprocess.run([KRON, "info", "t"], capture_output=True, text=True, check=True).stdout
    need("removed  -F inner" in changes, changes)


def waited_for():
    """A trigger on a call's time would take one for long whose end was not to be seen."""
    for trigger, stays in ("outer>20ms", "outer"), ("outer without inner within 20ms", "inner"):
        p = Program(False, "-F", "outer", "-F", "inner", "-F", "tiny", "--flight", "16M", "--snapshot-on", trigger)
        p.asleep = {"leaf"}
        for glob in stays, "*":
            said = p.probe("rm", "-F", glob, status=1)
            need("a trigger of this recording waits for calls of what %s means" % glob in said, said)
        p.rm("tiny")
        p.run(3)
        time.sleep(0.1)
        p.end()
        got = {name: n for name, n in truth.report_calls("t/001").items() if n} if os.path.exists("t/001") else {}
        need(got == {name: n for name, n in p.calls.items() if n}, f"{got}, and it was {p.calls}")
        shutil.rmtree("t")


def waited_for_by_readers():
    """What a trigger that is asked of the trace waits for may have come while it slept: then it does not fire."""
    p = Program(False, "-F", "outer", "-F", "inner", one=True)
    for change in p.rm, p.add:
        p.run(1)
        time.sleep(0.1)
        change("inner")
        for _ in range(3):
            p.run(1)
            time.sleep(0.1)
    p.end()
    r = subprocess.run([KRON, "report", "--callers", "inner", "t"], capture_output=True, text=True, check=True)
    need("1 function was traced for part of the time only (kron ctl probe)" in r.stderr, r)
    for trigger, unsure in ("entry=outer without inner within 20ms", True), ("exit=outer without inner within 20ms", False):
        r = subprocess.run([KRON, "report", "--trigger", trigger, "t"], capture_output=True, text=True, check=True)
        need(("the trigger never fires" in r.stderr) == unsure, f"{trigger}: {r}")
        need(not unsure or "4 times a sample that was waited for" in r.stderr, f"{trigger}: {r}")


STEPS = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline, noclone)) long step(long n) { usleep(50000); return n + 1; }
int main(void)
{
    long n = 0;
    puts("ready"); fflush(stdout);
    while (access("over", F_OK)) n = step(n);
    return n > 0 ? 7 : 1;
}
"""


def intervals():
    """Nobody knows how long an interval is whose end is that of a later one."""
    compile_text("steps", STEPS, "-O2")
    with contextlib.suppress(OSError):
        os.unlink("over")
    board = new_board()
    p = subprocess.Popen([KRON, "record", "-q", "-o", "t", "--board", board, "--", "./steps"], stdout=subprocess.PIPE, text=True)
    need(p.stdout.readline() == "ready\n", "it does not start")
    for verb in "rm", "add":
        time.sleep(0.5)
        subprocess.run([KRON, "ctl", "--board", board, "probe", verb, "-F", "step"], check=True)
    time.sleep(0.5)
    open("over", "w").close()
    need(p.wait(60) == 7, "its status")
    with open("i.info", "w") as f:
        f.write('1 step step%return "steps"\n1 step step "pace"\n1 main main%return "whole"\n')
    out = subprocess.run([KRON, "report", "--json", "-i", "i.info", "t"], capture_output=True, text=True, check=True).stdout
    got = {r["interval"]: r for r in json.loads(out)}
    for name in "steps", "pace":
        # one may have ended while the process was being stopped
        need(got[name]["spans_loss"] in ((1, 2) if got[name]["max_ns"] > 400_000_000 else (0, 1)), got[name])
    need(got["pace"]["spans_loss"] > 0 and got["whole"]["spans_loss"] == 0, got)


def later_and_waited_for():
    """A library comes whose function a glob of before puts to sleep: a trigger that waits for it keeps it awake; else the trace says so."""
    compile_text("late.so", "long inner_too(long n) { return n + 5; } long late(long n) { return inner_too(n) + 1; }", "-shared", "-fPIC",
                 "-O0")
    trigger = "entry=late without entry=inner_too within 20ms"
    for options in ("--flight", "16M", "--snapshot-on", trigger), ():
        p = Program(False, "-L", "*late.so", *options, one=True)
        p.rm("inner*")
        need(p.says(os.path.abspath("late.so")) == 7, "what the library computes has changed")
        p.run(5)
        time.sleep(0.1)
        p.run(5)
        p.end()
        trace = "t/001" if options else "t"
        need(truth.report_calls(trace).get("inner_too", 0) == (1 if options else 0), truth.report_calls(trace))
        r = subprocess.run([KRON, "report", "--trigger", trigger, trace], capture_output=True, text=True, check=True)
        need("the trigger never fires" in r.stderr and ("1 times a sample" in r.stderr) == (not options), r)
        need(not options or os.listdir("t").count("002") == 0, os.listdir("t"))
        need(info(trace)["damaged"] == 0, info(trace))
        shutil.rmtree("t")


def killed(attached):
    """The recorder is killed while functions are asleep: the program goes on, and can be recorded again."""
    p = Program(attached, "-F", "outer", "-F", "inner")
    p.rm("inner")
    os.kill(p.recorder.pid if attached else p.p.pid, signal.SIGKILL)
    if not attached:
        return
    p.recorder.wait()
    p.recorder.stderr.close()
    subprocess.run([KRON, "board", "rm", p.board], check=True)
    need(p.says(10) == sum_of(10), "what it computes has changed")
    again = record_pid(p.p.pid, "-F", "inner", trace="t2")
    need(p.says(10) == sum_of(10), "what it computes has changed")
    interrupt(again)
    text_is_of_files(p.p.pid)
    p.p.stdin.close()
    need(p.p.wait(60) == 7, "its status")
    need(truth.report_calls("t2") == {"inner": 90}, truth.report_calls("t2"))


def main():
    with Suite("functions_asleep") as s:
        for attached in False, True:
            how = "that is attached to" if attached else "from its start"
            s.case(f"all calls but those that were made asleep: a program {how}", exact, attached)
            s.case(f"all functions: a program {how}", all_of_them, attached)
            s.case(f"under load: a program {how}", under_load, attached)
        s.case("a library and a child that come later", others_come)
        s.case("a program that is executed later", executes)
        s.case("a program that changes its code", writes)
        s.case("a program that has changed its code", has_written)
        s.case("libraries that take each other's places", libraries_take_places)
        s.case("children that execute programs", others_execute)
        s.case("goroutines", goroutines)
        s.case("python3 and its libraries", python)
        s.case("what cannot be is refused in a sentence", refusals)
        s.case("what a trigger waits for stays", waited_for)
        s.case("what a trigger waits for that is asked of the trace", waited_for_by_readers)
        s.case("what a trigger waits for, in a library that comes later", later_and_waited_for)
        s.case("intervals", intervals)
        s.case("the recorder is killed", killed, True)


if __name__ == "__main__":
    main()
