#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""security_memory.py - traced processes of another user, and files that others cut off: they spoil
neither the recording nor anybody's samples but their own.

doc/SECURITY.md says what must hold.
"""

import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from recordings import AS_NOBODY, STRANGER, Recording, Stranger, descendant_of
from tap import KRON, SRC, Skip, Suite, compile_c, compile_text, is_running, need, need_root, rnd, truth, wait_for

# ---- traced processes of another user ----

WITH_HOSTILE = """
all=
for i in %s; do %s ./hostile %s did $((%d + i)) & all="$all $!"; done
while [ ! -s did ]; do sleep 0.02; done
for i in %s; do ./triggers 2 20000 || echo wrong $?; done
kill -0 $all && echo hostile lives
kill -9 $all
wait
echo end
"""
RUNS = 10


def build_hostile():
    include = os.path.join(SRC, "include")
    compile_c("hostile", "faults/hostile.c", f"-I{include}")
    compile_c("triggers", "bins/triggers.c")
    os.chmod(".", 0o777)


def with_hostile(what, as_whom, options, hostile_lives=True, runs=RUNS, hostile=1, **more):
    """Traced programs attack the recording, while another one counts its calls."""
    them = " ".join(str(i) for i in range(hostile))
    script = WITH_HOSTILE % (them, as_whom, what, rnd.randrange(1 << 30), " ".join(["x"] * runs))
    r = Recording("sh", "-c", script, options=["-F", "tick", *options], **more)
    out, err = r.end()
    need("wrong" not in out and out.endswith("end\n"), f"{out} {err}")
    need(not hostile_lives or "hostile lives" in out, f"it attacked nobody: {out} {err}")
    return r, err


def memory_cannot_be_cut_off(as_whom):
    """It gets the descriptor that every traced process gets, and can do nothing with it."""
    need_root()
    build_hostile()
    r, err = with_hostile("cut", as_whom, ["--when-full", "wait"])
    need(open("did").read() == "nothing\n", f"it could: {open('did').read()}")
    got = r.calls("tick")
    need(got == RUNS * 40000, f"{got} of {RUNS * 40000} calls: {err}")


def nobody_speaks_for_others(as_whom):
    """Whose a question is, the kernel says: what it says itself gets it nothing in another's name."""
    need_root()
    build_hostile()
    r, err = with_hostile("speak", as_whom, ["--when-full", "wait"])
    did = open("did").read()
    need(did == "heard as itself: yes, as others: 0\n", did)
    need("it asked in the name of another process" in err, err)
    got = r.calls("tick")
    need(got == RUNS * 40000, f"{got} of {RUNS * 40000} calls: {err}")


ONE_PROCESS = 1000  # lines of the table of processes that one can have made for nothing, and one each second


def lines_of(trace, kind):
    return [f for f in truth.fields(f"{trace}/tasks") if f[0] == kind]


def left_out(err):
    """How many lines the recorder says are not in the trace."""
    said = re.search(r"again and again: ([\d,]+) of them are not in the trace", err)
    return int(said[1].replace(",", "")) if said else 0


def notes_without_end():
    """Whoever asks nonsense without end: the table of processes does not grow with it, and what it lacks
    is said."""
    need_root()
    build_hostile()
    began = time.monotonic()
    r = Recording("sh", "-c", "./hostile flood did 1 & while [ ! -e go ]; do sleep 0.05; done; kill -9 $!")
    wait_for(lambda: len(lines_of(r.trace, "U")) >= ONE_PROCESS // 2, "notes")
    for _ in range(30):
        time.sleep(0.1)
        if len(lines_of(r.trace, "U")) > 4 * ONE_PROCESS:
            break
    open("go", "w").close()
    err = r.end()[1]
    lines = len(lines_of(r.trace, "U"))
    at_most = 2 * (ONE_PROCESS + time.monotonic() - began) + 20  # of it, and of "several"
    need(lines <= at_most, f"{lines} lines")
    need(left_out(err), f"{lines} lines, and not a word: {err}")
    need(truth.kron_json("info", r.trace)["left_out"] == left_out(err), f"not in the trace: {err}")


EXECUTES = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char left[20];
	sprintf(left, "%d", atoi(argv[1]) - 1);
	if (atoi(argv[1]))
		execl(argv[0], argv[0], left, (char *)0);
	return 0;
}
"""


def programs_without_end():
    """One process executes itself again and again.  What has samples is named, all of it; what has none
    is named as long as it is not too much."""
    compile_text("executes", EXECUTES)
    n = 1300
    began = time.monotonic()
    for function in ("main", "none*"):
        r = Recording("./executes", str(n), trace=function[:4], options=["-F", function])
        err = r.end()[1]
        named, ended = len(lines_of(r.trace, "P")), len(lines_of(r.trace, "E"))
        if function == "main":
            need(named == ended == n + 1, f"{named} of {n + 1} are named, {ended} have ended")
            need(r.calls("main") == n + 1, f"{r.calls('main')} of {n + 1} calls: {err}")
            need(not left_out(err), err)
            continue
        need(named < ONE_PROCESS + time.monotonic() - began, f"{named} lines")
        need(named == ended and named + left_out(err) == n + 1, f"{named} lines: {err}")


def memory_with_holes(as_whom):
    """It can spoil samples, and that is all: who records and who is recorded go on."""
    need_root()
    build_hostile()
    with_hostile("punch", as_whom, [])


def questions_without_end(as_whom, hostile):
    """Whoever asks and never waits for an answer: all others are heard."""
    need_root()
    build_hostile()
    r, err = with_hostile("flood", as_whom, ["--when-full", "wait"], hostile=hostile)
    got = r.calls("tick")
    need(got == RUNS * 40000, f"{got} of {RUNS * 40000} calls: {err}")
    need("never reported" not in err, err)
    need("untraced" in err, f"nobody asked without end: {err}")
    need(len(err.splitlines()) < 300, "a note for each nonsense")


def tables_are_scribbled_on(bus, what, rounds=4, runs=RUNS):
    """Whatever stands in the tables: nobody crashes, nobody hangs."""
    need_root()
    build_hostile()
    for i in range(rounds):
        if os.path.exists("did"):
            os.remove("did")
        options = ["--bus", bus]
        with_hostile(what, AS_NOBODY, options, hostile_lives=False, runs=runs, trace=f"t{i}")


# ---- files that others can change ----


def cut_again_and_again(say, path, seed):
    """A file of one's own: now it is whole, now it is not."""
    import random

    rnd = random.Random(seed)
    with open(path, "r+b", buffering=0) as f:
        whole = f.read()
        say("begun")
        while True:
            f.truncate(rnd.choice((0, 4096, len(whole) // 2)))
            time.sleep(rnd.random() / 500)
            f.seek(0)
            f.write(whole)
            time.sleep(rnd.random() / 30)


def libraries_are_cut_off():
    """Root records a program with a user's library, who shortens it meanwhile.  What the program makes of
    that is its own affair; the recording ends in order."""
    need_root()
    os.mkdir("lib", 0o755)
    path = "lib/libcrypto.so.3"
    found = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"
    if not os.path.exists(found) or not os.path.exists("/usr/bin/openssl"):
        raise Skip("openssl is not installed")
    subprocess.run(["cp", "-L", found, path], check=True)
    os.chown(path, STRANGER, STRANGER)
    ended = 0
    with Stranger(cut_again_and_again, path, rnd.randrange(1 << 30)) as stranger:
        stranger.wait_for("begun")
        for i in range(12):
            env = {**os.environ, "LD_LIBRARY_PATH": "lib", "XDG_CACHE_HOME": f"{os.getcwd()}/cache{i}"}
            argv = [KRON, "record", "-q", "-o", "trace", "-L", "libcrypto*", "--", "openssl", "version"]
            subprocess.run(argv, env=env, capture_output=True, timeout=120)
            ended += truth.Trace("trace").session.get("end_tsc") is not None
    need(ended == 12, f"{12 - ended} of 12 recordings were cut off with the library")


def trace_is_cut_off():
    """A trace that is cut off while it is read is an error and a sentence."""
    compile_c("triggers", "bins/triggers.c")
    Recording("./triggers", "1", "200000", options=["-F", "tick"]).end()
    read = subprocess.Popen(
        [KRON, "dump", "--no-pager", "trace"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    read.stdout.read(1000)  # it has begun, and now waits for the pipe
    os.truncate("trace/samples", 0)
    err = read.communicate()[1]
    need(read.returncode == 1 and "was cut off while it was read" in err, f"{read.returncode}: {err}")


def board_is_cut_off(bus):
    """A board with a name is a file of one user.  Whoever cuts it off ends the recording; the recorder
    says so, and leaves a trace that can be read.  The program goes on."""
    compile_c("counter", "faults/counter.c")
    name = f"cut-{os.getpid()}"
    path = f"/dev/shm/kron-board.{os.getuid()}.{name}"
    pool = (0x2400000,) if bus == "lane" else ()
    for i, size in enumerate((0, 4096, 0x2000000, 0x2001000) + pool):
        subprocess.run([KRON, "board", "create", name], check=True)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.remove("count")
            options = ["--board", name, "--bus", bus]
            r = Recording("./counter", "count", "1", trace=f"t{i}", options=options)
            wait_for(lambda: os.path.exists("count") and os.path.getsize("count") == 4096, "calls")
            wait_for(lambda: struct.unpack("<Q", open("count", "rb").read(8))[0] > 10000, "calls")
            program = descendant_of(r.pid, "counter")
            calls = lambda: struct.unpack("<Q", open("count", "rb").read(8))[0]
            os.truncate(path, size)
            before = calls()
            wait_for(lambda: calls() > before + 100000 or not is_running(program), "calls")
            need(is_running(program), f"it died with the board, cut at {size:#x}")
            os.kill(program, signal.SIGKILL)
            err = r.end(125)[1]
            need(f"cut off the shared memory of board {name}" in err, err)
            truth.kron_json("info", r.trace)
            need(subprocess.run([KRON, "report", r.trace], capture_output=True).returncode == 0, "report")
        finally:
            subprocess.run([KRON, "board", "rm", name], check=True)


OWN_BUS = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char *at;
static void handler(int signal, siginfo_t *info, void *context)
{
	dprintf(1, "handled: %d, %d, %td\\n", signal, info->si_code, info->si_code > 0 ? (char *)info->si_addr - at : 0);
	_exit(7);
}
int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, old;
	int fd = open("own", O_RDWR | O_CREAT | O_TRUNC, 0600);
	sigaction(SIGBUS, NULL, &old);
	dprintf(1, "was: %p %x\\n", (void *)old.sa_handler, old.sa_flags);
	if (strchr(argv[1], 'h'))
		sigaction(SIGBUS, &sa, NULL);
	if (strchr(argv[1], 'i') || strchr(argv[1], 'd'))
		signal(SIGBUS, strchr(argv[1], 'i') ? SIG_IGN : SIG_DFL);
	sigaction(SIGBUS, NULL, &old);
	dprintf(1, "is: %d %x\\n", old.sa_handler == (void *)handler ? 2 : (int)(long)old.sa_handler, old.sa_flags);
	at = ftruncate(fd, 8192) ? NULL : mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ftruncate(fd, 4096))
		return 1;
	if (strchr(argv[1], 'k'))
		kill(getpid(), SIGBUS);
	else
		at[5000] = 1;
	dprintf(1, "still there\\n");
	return 3;
}
"""


def bus_errors_are_the_programs():
    """What a program does with SIGBUS of its own is what it does untraced, also on a board that may be cut."""
    compile_text("own_bus", OWN_BUS)
    name = f"bus-{os.getpid()}"
    subprocess.run([KRON, "board", "create", name], check=True)
    try:
        for way in ("n", "h", "hd", "i", "nk", "hk", "ik", "dk"):
            for shell in ("", "trap '' BUS; "):
                words = ["sh", "-c", f"{shell}./own_bus {way}; echo ended: $?"]
                alone = subprocess.run(words, capture_output=True, text=True)
                r = Recording(*words, options=["--board", name], trace=f"t{way}{len(shell)}")
                out = r.end(alone.returncode)[0]
                need(out == alone.stdout, f"{words}: {out!r}, alone {alone.stdout!r}")
    finally:
        subprocess.run([KRON, "board", "rm", name], check=True)


def main():
    with Suite("security_memory") as s:
        os.chmod(s.folder, 0o755)  # for those who become somebody else
        s.case("another user's process cannot cut off the memory", memory_cannot_be_cut_off, AS_NOBODY)
        s.case("nor can one of our own", memory_cannot_be_cut_off, "")
        s.case("holes in the memory hurt samples only", memory_with_holes, AS_NOBODY)
        s.case("questions without end hold up nobody", questions_without_end, AS_NOBODY, 1)
        s.case("nor do those of several processes", questions_without_end, AS_NOBODY, 4)
        s.case("nor those of one of our own", questions_without_end, "", 1)
        s.case("nobody speaks for others", nobody_speaks_for_others, AS_NOBODY)
        s.case("nor does one of our own", nobody_speaks_for_others, "")
        s.case("notes without end are few lines", notes_without_end)
        s.case("nor are programs without end many", programs_without_end)
        s.case("scribbled tables, lanes", tables_are_scribbled_on, "lane", "scribble")
        s.case("scribbled tables, exact bus", tables_are_scribbled_on, "exact", "scribble")
        s.case("a scribbled machine, lanes", tables_are_scribbled_on, "lane", "machine")
        s.case("a scribbled machine, exact bus", tables_are_scribbled_on, "exact", "machine")
        s.case("all room is taken", tables_are_scribbled_on, "lane", "hold", 1, 3)
        s.case("a user's library is cut off while root plans it", libraries_are_cut_off)
        s.case("a trace is cut off while it is read", trace_is_cut_off)
        s.case("a board is cut off, lanes", board_is_cut_off, "lane")
        s.case("a board is cut off, exact bus", board_is_cut_off, "exact")
        s.case("a program's own SIGBUS", bus_errors_are_the_programs)


if __name__ == "__main__":
    main()
