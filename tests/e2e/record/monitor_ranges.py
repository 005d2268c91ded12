#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""monitor_ranges.py - kron monitor --range: loads and stores of a range of addresses, to the last one that the program says it has made."""

import itertools
import json
import os
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests")]
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402

LIMIT = 300


def monitor(*args, status=0):
    r = subprocess.run([KRON, "monitor", "--json", "-o", "rows", *args], capture_output=True, text=True, timeout=LIMIT)
    need(r.returncode == status, f"status {r.returncode}, not {status}: {r.stderr}")
    return r


def totals():
    """Those of all intervals, which are the sums of the rows."""
    with open("rows") as f:
        lines = [json.loads(line) for line in f]
    for name, total in lines[-1]["totals"].items():
        got = [row["events"][name] for row in lines[:-1]]
        need(total == (None if set(got) == {None} else sum(n or 0 for n in got)), f"{name}: {got} is not {total}")
    return lines[-1]["totals"], lines[:-1]


def build(*flags):
    tap.compile_c("ranged", "bins/ranged.c", *flags)


def addresses(out):
    words = out.split()
    return {words[i]: int(words[i + 1], 16) for i in (0, 2, 4)}


WANT = {"word:r": 3, "word:w": 2, "word": 5, "near_it:r": 1, "near_it:w": 2, "space:w": 1000, "space:r": 0, "[heap]:r": 100, "[heap]:w": 0}


def exact(*flags):
    """Neighbours in one line of 64 bytes, an array that begins and ends within one, elements of a string instruction."""
    build("-O1", *flags)
    want, rounds = WANT, 80000  # long enough for the heap to be seen
    if "-static" in flags:  # each access takes the slow part, and the C library's code counts on the heap
        want, rounds = {name: n for name, n in WANT.items() if "heap" not in name}, 200
    monitor("-q", "--every", "50ms", *(a for name in want for a in ("--range", name)), "-L", "ranged", "--", "./ranged", str(rounds))
    got, rows = totals()
    need(got == {name: n * rounds for name, n in want.items()}, got)
    if len(rows) > 2:
        busy = [row["events"]["word"] for row in rows if row["events"]["word"]]
        need(len(busy) > 1 and max(busy) < 5 * rounds, f"all in one interval: {busy}")


def by_address():
    """Of a program at fixed addresses: a load counts where it begins, and once, also where it lies across two lines."""
    build("-O1", "-no-pie")
    at = addresses(subprocess.run(["./ranged", "1"], capture_output=True, text=True).stdout)
    odd, table = at["odd"], at["table"]
    want = {f"{odd:#x}-{odd + 8:#x}:r": 1, f"{odd:#x}-{odd + 1:#x}:rw": 1, f"{odd + 1:#x}-{odd + 8:#x}:r": 0, f"{odd - 4:#x}-{odd:#x}": 0,
            f"{table + 8:#x}-{table + 8 * 999:#x}:w": 998, f"{table + 8 * 500:#x}-{table + 8 * 501:#x}:w": 1, f"{table:#x}-{table + 8000:#x}:r": 0}
    monitor("-q", *(a for name in want for a in ("--range", name)), "-L", "ranged", "--", "./ranged", "700")
    got, _ = totals()
    need(got == {name: 700 * n for name, n in want.items()}, got)


def all_libraries():
    """With the C library, which reads and writes none of it; a mapping by its file's name, by its path, and the stack."""
    build("-O1")
    path = os.path.realpath("ranged")
    r = monitor("--range", "word", "--range", f"{path}:w", "--range", "[stack]", "--range", "libc.so.6:r", "--range", "[nothing]", "--", "./ranged", "50")
    got, _ = totals()
    need(got["word"] == 250 and got["[stack]"] > 100 and got["libc.so.6:r"] > 100, got)
    need("--range [nothing]: the program had no such mapping at the end of an interval" in r.stderr, r.stderr)


def after_exec():
    """Of what CMD executes later; a child's are no business of it."""
    build("-O1")
    monitor("-q", "--range", "word:r", "-L", "ranged", "--", "sh", "-c", "./ranged 40 >/dev/null; exec ./ranged 300")
    got, _ = totals()
    need(got == {"word:r": 900}, got)
    # one whose stack alone lies elsewhere, and one that looks the same from outside
    text = """
#include <unistd.h>
volatile int counted;
int main(int c, char **v)
{
	for (int i = 0; i < 1000; i++)
		counted = i;
	if (!--v[1][0])
		return 0;
	return execv(v[0], v);
}
"""
    tap.compile_text("again", text, "-no-pie")
    for how in ([], ["setarch", "-R"]):
        monitor("-q", "--range", "counted:w", "-L", "again", "--", *how, "./again", "\2")
        got, _ = totals()
        need(got == {"counted:w": 2000}, f"{how}: {got}")
    # more lines, one after the other, than can be watched at once
    tap.compile_text("again", text.replace("--v[1][0]", "*++v[1]"), "-fPIE", "-pie")
    monitor("-q", "--range", "counted:w", "-L", "again", "--", "./again", 300 * "x")
    got, _ = totals()
    need(got == {"counted:w": 300000}, got)


def mapped_late():
    """Of what lay there before, or comes there afterwards, the counters cannot tell it: such a number is an estimate."""
    tap.compile_text("maps", """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
static void use(int flags, int fd, int n)
{
	volatile char *p = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd, 0);
	while (n--)
		p[n] = 1;
	usleep(200000);
	munmap((void *)p, 4096);
	usleep(100000);
}
int main(int c, char **v)
{
	int fd = open("file.map", O_RDWR | O_CREAT, 0600);
	ftruncate(fd, 4096);
	for (; *++v; )
		use(**v == 'f' ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, **v == 'f' ? fd : -1, 100);
	return 0;
}
""")
    for words, want in ((["f"], [100]), (["f", "a"], [100, 100]), (["a", "f"], [200])):
        monitor("-q", "--every", "20ms", "--range", "file.map", "--range", "[heap]", "-L", "maps", "--save", "t", "--", "./maps", *words)
        got, rows = totals()
        counted = [(row["events"]["file.map"], row.get("estimates")) for row in rows]
        # an interval may end between two of the stores
        together = [sum(n for n, _ in group) for some, group in itertools.groupby(counted, lambda row: bool(row[0])) if some]
        need(together == want and all(estimate for n, estimate in counted if n), f"{words}: {counted}")


def of_one_name():
    """Each column has a name of its own, or who reads JSON sees one of them."""
    tap.compile_text("p", "volatile int idle, word = 7;\nint main(void) { for (int i = 0; i < 10; i++) idle += word; return 0; }\n")
    monitor("-q", "-e", "idle", "--range", "idle", "--range", "word", "--var", "word", "--var", "idle", "-L", "p", "--", "./p")
    got, _ = totals()
    names = [name for name in got if not name.startswith("idle")]
    need(names == ["range:idle", "word", "var:word", "var:idle"] and got["range:idle"] == 20 and got["word"] == 10, got)


def preparation():
    """What kron takes to plan and patch is no time of the program's: its own clock, and the whole run's, say what was whose."""
    tap.compile_text("p", """
#include <stdio.h>
#include <time.h>
volatile long word;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(void)
{
	double start = now();
	for (int i = 0; i < 10; i++) {
		struct timespec ts = {0, 30000000};
		word = i;
		nanosleep(&ts, 0);
	}
	printf("%.9f\\n", now() - start);
	return 0;
}
""")
    for how in ["--range", "word:w"], ["-e", "calls,task-clock", "-L", "libc.so.6"]:
        os.environ["XDG_CACHE_HOME"] = os.path.abspath("cold" + how[0])
        start = time.monotonic()
        r = monitor("--every", "20ms", *how, "--", "./p")
        whole = time.monotonic() - start
        own = float(r.stdout)
        with open("rows") as f:
            lines = [json.loads(line) for line in f]
        real = lines[-1]["real_ns"] / 1e9
        print(f"# {how}: the program {own:.3f} s, real time {real:.3f} s, with kron's preparation {whole:.3f} s")
        need(abs(real - own) < (whole - own) / 2, f"{own} {real} {whole}")
        need(all(None not in row["events"].values() for row in lines[:-1]), lines)
        if "--range" in how:
            need(lines[-1]["totals"]["word:w"] == 10 and lines[-1]["probes_ns"] is None, lines[-1])


def saved():
    build("-O1")
    monitor("-q", "--range", "word:r", "--range", "space", "-L", "ranged", "--save", "t", "--", "./ranged", "100")
    with open("rows") as f:
        need(subprocess.run([KRON, "report", "--json", "t"], capture_output=True, text=True).stdout == f.read(), "other rows")


def refused():
    for args in (["--range", "0x10"], ["--range", "0x10-0x10"], ["--range", "0x20-0x10:r"], ["--range", "0x10-20"], ["--range", ""], ["--range", ":w"],
                 ["--range", "x:q"], ["--range", "x", "--range", "x"], ["--range", "x", "--pid", "1"],
                 ["--range", "x", "--board", "b"]):
        command = [] if "--pid" in args or "--board" in args else ["--", "touch", "it_ran"]
        r = monitor(*args, *command, status=125)
        need(r.stderr.count("\n") == 1 and not r.stdout, f"{args}: {r.stderr}")
    need(not os.path.exists("it_ran"), "it ran")
    r = monitor("--range", "no_such_thing", "--", "true")
    need("--range no_such_thing: the program and its libraries have no such variable" in r.stderr, r.stderr)
    need(totals()[0]["no_such_thing"] is None, "a number of nothing")


with tap.Suite("monitor_ranges") as s:
    s.case("ranges by name, to the last access", exact)
    s.case("of a program at fixed addresses", exact, "-no-pie")
    s.case("of a static program", exact, "-static")
    s.case("by address", by_address)
    s.case("with all libraries; mappings", all_libraries)
    s.case("a program that CMD executes", after_exec)
    s.case("a file that is mapped while it runs", mapped_late)
    s.case("columns of one name", of_one_name)
    s.case("kron's preparation", preparation)
    s.case("in a trace", saved)
    s.case("refusals", refused)
