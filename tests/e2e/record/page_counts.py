#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron pages: references by page, against what the assembly says and against valgrind's lackey."""
import json
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
from counted_pages import M, OTHERS, ROUNDS, WAYS, behaves, need_lackey, references, stride  # noqa: E402


def pages(*args, status=0):
    """The rows, and what the program said on standard error."""
    r = subprocess.run([tap.KRON, "pages", "--json", "-o", "rows", *args], capture_output=True, text=True,
                       timeout=300)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stderr}")
    with open("rows") as f:
        return json.load(f), r.stderr


def by_pid(rows):
    """Process -> page of our memory -> reads and writes, of all that were touched."""
    out = {}
    for r in rows:
        n = int(r["address"], 16) - M
        tap.need(r["size"] == 4096 and int(r["address"], 16) % 4096 == 0, r)
        if 0 <= n < 80 * 4096:
            own = out.setdefault(r["pid"], {})
            tap.need(n // 4096 not in own, f"{r} twice")
            own[n // 4096] = (r["reads"], r["writes"])
    return out


def build(*flags):
    tap.compile_c("touch", "bins/pages.c", *flags)


def last_reference():
    """a strided kernel, strings, two pages at once: to the last reference"""
    build()
    rows, _ = pages("--", "./touch", "kernel")
    tap.need(list(by_pid(rows).values()) == [{**stride(1), **OTHERS}], by_pid(rows))


def all_in_use(*flags):
    """several look-ups that share what is saved: registers and flags are as they were, and the counts are right"""
    build(*flags)
    rows, _ = pages("-L", "touch", "--", "./touch", "live")
    want = {64: (512, 0), 65: (1, 0), 66: (512, 0), 67: (512, 0), 68: (512, 0)}
    tap.need(list(by_pid(rows).values()) == [want], by_pid(rows))


def static():
    """a program without a dynamic linker: what its trampolines do not count the thunk does"""
    build("-static")
    rows, _ = pages("-L", "touch", "-F", "stride", "-F", "others", "--", "./touch", "kernel")
    tap.need(list(by_pid(rows).values()) == [{**stride(1), **OTHERS}], by_pid(rows))


BUSY = """
#include <stdio.h>
volatile int data[65536];
int main(void)
{
	puts("begins");
	fflush(stdout);
	for (;;)
		for (int i = 0; i < 65536; i++)
			data[i] += data[i * 7 & 65535];
}
"""


def without_the_kernel(*flags):
    """where no trampoline counts, no reference asks the kernel whose it is"""
    tap.compile_text("busy", BUSY, *flags)
    p = subprocess.Popen([tap.KRON, "pages", "-q", "-F", "main", "-o", "rows", "--", "./busy"],
                         stdout=subprocess.PIPE, text=True)
    try:
        tap.need(p.stdout.readline() == "begins\n", "it does not begin")
        (pid,) = [c for c in tap.children_of(p.pid) if tap.is_traced(c)]
        r = subprocess.run(["timeout", "-s", "INT", "0.5", "strace", "-e", "trace=all", "-p", str(pid)],
                           capture_output=True, text=True)
        calls = [line for line in r.stderr.splitlines() if "(" in line]
        tap.need("attached" in r.stderr and len(calls) < 50, f"{len(calls)} system calls\n{r.stderr[:1000]}")
    finally:
        p.terminate()
        p.wait()


def several_threads(*flags):
    """four threads count the same pages, and none gets in another's way"""
    build(*flags)
    rows, _ = pages("--", "./touch", "threads")
    tap.need(list(by_pid(rows).values()) == [stride(4)], by_pid(rows))


def shared():
    """what each of four threads did to the pages that they share; nothing of a program with one thread"""
    build()
    rows, _ = pages("--sharing", "--", "./touch", "threads")
    tap.need(list(by_pid(rows).values()) == [stride(4)], by_pid(rows))
    tids = set()
    for r in rows:
        tap.need(len({t["tid"] for t in r["threads"]}) == len(r["threads"]), r)
        tap.need(sum(t["writes"] > 0 for t in r["threads"]) > 1, r)
        tap.need(sum(t["reads"] for t in r["threads"]) == r["reads"], r)
        if 0 <= int(r["address"], 16) - M < 80 * 4096:
            tap.need([(t["reads"], t["writes"]) for t in r["threads"]] == [(2 * ROUNDS, 2 * ROUNDS)] * 4, r)
            tids.add(tuple(sorted(t["tid"] for t in r["threads"])))
    tap.need(len(tids) == 1, tids)
    rows, _ = pages("--sharing", "--", "./touch", "kernel")
    tap.need(rows == [], rows)
    r = subprocess.run([tap.KRON, "pages", "--sharing", "-n", "1000", "-L", "touch", "-F", "stride", "--", "./touch",
                        "threads"], capture_output=True, text=True, timeout=300)
    tap.need(r.stdout.count("  by thread ") == 4 * 64 and "Ranges" not in r.stdout, r)


def counter(n, most):
    """What refcnt(5)'s counter and its mirror hold after so many references, one after the other."""
    hardware = mirror = 0
    for _ in range(n):
        hardware += 1
        if hardware == most:
            mirror, hardware = mirror + hardware, 0
    return hardware, mirror


def widths():
    """counters of 11 and 19 bits, which are added to their mirrors when they are full"""
    build()
    for width, mode in ((11, "kernel"), (11, "threads"), (19, "threads")):
        rows, _ = pages("--width", str(width), "--", "./touch", mode)
        most, seen = (1 << width) - 1, 0
        want = stride(4) if mode == "threads" else {**stride(1), **OTHERS}
        for r in rows:
            page = (int(r["address"], 16) - M) // 4096
            if page in want:
                seen += 1
                tap.need((r["counter"], r["extended"]) == counter(sum(want[page]), most), r)
            tap.need(r["counter"] + r["extended"] == r["reads"] + r["writes"] and r["counter"] < most, r)
        tap.need(seen == len(want), rows)
    rows, _ = pages("--width", "64", "-L", "touch", "--", "./touch", "kernel")
    tap.need("counter" not in rows[0], rows[0])
    r = subprocess.run([tap.KRON, "pages", "--width", "11", "-L", "touch", "--", "./touch", "kernel"],
                       capture_output=True, text=True, timeout=300)
    tap.need(" Counter   Extended" in r.stdout and f" {4097 % 2047:7} {4094:10} " in r.stdout, r)
    r = subprocess.run([tap.KRON, "pages", "--width", "12", "--", "./touch"], capture_output=True, text=True,
                       timeout=300)
    tap.need(r.returncode == 125 and "--width" in r.stderr, r)


def ends(*flags):
    """a kill, an exec, a forked child that is killed: nothing is lost, nothing counted twice"""
    build(*flags)
    rows, _ = pages("--", "./touch", "kill", status=-9)
    tap.need(list(by_pid(rows).values()) == [stride(1)], by_pid(rows))
    rows, _ = pages("--", "./touch", "fork")
    mine = sorted(by_pid(rows).values(), key=lambda p: p[0])
    tap.need(mine == [stride(1), stride(2)], mine)
    tap.need(len(by_pid(rows)) == 2, by_pid(rows))


def two_programs():
    """the second program of a process has counts of its own"""
    build()
    r = subprocess.run([tap.KRON, "pages", "--json", "-o", "rows", "--", "./touch", "exec"], timeout=300)
    tap.need(r.returncode == 0, r)
    with open("rows") as f:
        rows = [x for x in json.load(f) if 0 <= int(x["address"], 16) - M < 80 * 4096]
    for n, (reads, writes) in {**stride(2), **OTHERS}.items():
        got = [(x["reads"], x["writes"]) for x in rows if int(x["address"], 16) == M + n * 4096]
        tap.need((sum(g[0] for g in got), sum(g[1] for g in got)) == (reads, writes), (n, got))


def names_of_each():
    """Variables of a program that lies elsewhere each time, and of two that lie at the same place."""
    text = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((aligned(4096))) volatile int %s[4096];
int main(int c, char **v)
{
	for (int i = 0; i < 1000; i++)
		%s[2000] = i;
	return c > 2 ? execv(v[1], v + 1) : 0;
}
"""
    for name in ("alpha", "beta"):
        tap.compile_text(name, text % (name, name), "-fPIE", "-pie")
        tap.compile_text(f"fixed_{name}", text % (name, name), "-no-pie")

    def names(*words):
        rows, _ = pages("-F", "main", "--", *words)
        return [row["variables"] for row in rows if row["writes"] == 1000]

    got = sorted(names("./alpha", "./alpha", "./beta", "./alpha", "x"))
    tap.need(got == [["alpha"], ["alpha"], ["alpha"], ["beta"]], got)
    got = names("./fixed_alpha", "./fixed_beta", "x")
    tap.need(sorted(got) == [["alpha"], ["beta"]], got)


def mappings_of_each():
    """a program that a process executes lies where the one before it lay: each page has its own mapping"""
    text = """
#include <unistd.h>
__attribute__((aligned(4096))) volatile int data[4096] = {1};
int main(int c, char **v)
{
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < 1000; i++)
			data[2000] = i;
	return c > 1 ? execv(v[1], v + 1) : 0;
}
"""
    for how, rounds, flags in (("fixed", 2000, ["-no-pie"]), ("static", 2000, ["-static"])):
        writes = rounds * 1000
        for i in range(3):
            tap.compile_text(f"{how}{i}", text, f"-DROUNDS={rounds}", *flags)
        programs = [f"./{how}{i}" for i in (0, 1, 2, 0)]
        want = sorted(os.path.basename(p) for p in programs)
        rows, _ = pages("-F", "main", "--", *programs)
        got = sorted(os.path.basename(r["mapping"] or "") for r in rows if r["writes"] == writes)
        tap.need(got == want, (how, got))
        # looks come between a program and the next one
        subprocess.run([tap.KRON, "pages", "-q", "--every", "1ms", "-F", "main", "-o", f"{how}/", "--", *programs], check=True, timeout=300)
        rows, _ = pages("--from", how)
        got = sorted(os.path.basename(r["mapping"] or "") for r in rows if r["writes"] == writes)
        tap.need(got == want, (how, got))
        subprocess.run([tap.KRON, "export", "-q", "-f", "sqlite", "-o", f"{how}.db", how], check=True, timeout=300)
        db = sqlite3.connect(f"{how}.db")
        got = sorted(os.path.basename(x[0]) for x in db.execute("SELECT mapping FROM pages WHERE writes = ?", (writes,)))
        tap.need(got == want, (how, got))
        tap.need(not db.execute("SELECT 1 FROM page JOIN mapping USING(trace_id, mapping_id) WHERE page.process_id IS NOT mapping.process_id").fetchall(), "another's")
        db.close()


def in_handlers(*flags):
    """a handler that counts between any two instructions of the counting"""
    build(*flags)
    rows, said = pages("-q", "--", "./touch", "handlers")
    (mine,) = by_pid(rows).values()
    n = int(said)
    tap.need(n > 0 and mine.pop(77) == (n + 1, n), (n, rows[:5]))
    tap.need(mine == stride(20), mine)


WORK = """
#include <stdio.h>
#include <string.h>
static int data[2000];
static char text[20000];
struct node { struct node *left, *right; int key; } nodes[700], *root;
static struct node *insert(struct node *at, struct node *n)
{
	if (!at)
		return n;
	if (n->key < at->key)
		at->left = insert(at->left, n);
	else
		at->right = insert(at->right, n);
	return at;
}
static void sort(int *v, int n)
{
	int i = 0, k = n - 1, pivot = v[n / 2];
	if (n < 2)
		return;
	for (;; i++, k--) {
		while (v[i] < pivot)
			i++;
		while (v[k] > pivot)
			k--;
		if (i >= k)
			break;
		int x = v[i]; v[i] = v[k]; v[k] = x;
	}
	sort(v, i);
	sort(v + i, n - i);
}
double mean(const int *v, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		s += v[i] * 0.5;
	return s / n;
}
int main(void)
{
	unsigned seed = 1;
	for (int i = 0; i < 2000; i++)
		data[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
	for (int i = 0; i < 700; i++) {
		nodes[i].key = data[i];
		root = insert(root, &nodes[i]);
	}
	sort(data, 2000);
	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (char)(data[i % 2000] >> (i % 5));
	__builtin_memset(text + 1000, 3, 3000);
	return mean(data, 2000) > 1e9;
}
"""


def lackey(path, lo, hi, shift):
    """Page or line -> reads and writes of the instructions in [lo, hi), in no library; the stack is one."""
    counts, ours = {}, False
    for kind, at, size in references(path):
        if kind == "I":
            ours = lo <= at < hi
            continue
        if not ours:
            continue
        for page in range(at >> shift, ((at + size - 1) >> shift) + 1):
            page = page if page < 1 << 36 - shift else 0
            r, w = counts.get(page, (0, 0))
            counts[page] = (r + (kind in "LM"), w + (kind in "SM"))
    return counts


def as_lackey(shift, *flags):
    """a program as valgrind's lackey sees it, page by page, or line by line"""
    need_lackey()
    tap.compile_text("work", WORK, "-no-pie", *flags)
    sections = subprocess.run(["readelf", "-SW", "work"], capture_output=True, text=True, check=True).stdout
    text = [s.split("]")[1].split() for s in sections.splitlines() if "] .text " in s][0]
    lo, hi = int(text[2], 16), int(text[2], 16) + int(text[4], 16)
    want = lackey("./work", lo, hi, shift)
    rows, _ = pages(*(["--lines"] if shift == 6 else []), "-L", "work", "--", "./work")
    got = {}
    for row in rows:
        page = int(row["address"], 16) >> shift
        page = page if page < 1 << 36 - shift else 0
        r, w = got.get(page, (0, 0))
        got[page] = (r + row["reads"], w + row["writes"])
    tap.need(sum(x[0] for x in want.values()) > 50000, want)
    wrong = {hex(p): (want.get(p), got.get(p)) for p in {*want, *got} if want.get(p) != got.get(p)}
    # lackey says nothing of what _start and those like it do before kron is there
    far = {p: v for p, v in wrong.items() if any(abs(a - b) > 8 for a, b in zip(*(x or (0, 0) for x in v)))}
    tap.need(not far, wrong)


def options():
    """globs, no command, a program that is not there, an output that cannot be written"""
    build()
    rows, _ = pages("-F", "others", "--", "./touch", "kernel")
    tap.need(list(by_pid(rows).values()) == [OTHERS], by_pid(rows))
    for args, status, says in (([], 125, "no command"), (["--", "./nosuch"], 127, "no such program"),
                               (["-o", "/nosuch/x", "--", "true"], 125, "cannot write"),
                               (["-F", "nosuch", "--", "./touch"], 0, "nothing was counted")):
        r = subprocess.run([tap.KRON, "pages", *args], capture_output=True, text=True, timeout=300)
        tap.need(r.returncode == status and says in r.stderr, (args, r))
    os.mkdir("own")
    r = subprocess.run([tap.KRON, "pages", "-L", "touch", "--", "./touch"], capture_output=True, text=True,
                       timeout=300, env={**os.environ, "TMPDIR": os.path.abspath("own")})
    tap.need("pages of 4096 bytes" in r.stdout and "[stack]" in r.stdout, r)
    r = subprocess.run([tap.KRON, "patch", "-p", "stride%accesses pages", "-o", "copy", "touch"], capture_output=True,
                       text=True, timeout=300)
    tap.need(r.returncode == 2 and "kron pages" in r.stderr and not os.path.exists("copy"), r)
    tap.need(not os.listdir("own"), os.listdir("own"))
    subprocess.run([tap.KRON, "record", "-q", "-o", "t", "-p", "others%accesses pages", "--", "./touch", "kernel"],
                   check=True, stdout=subprocess.DEVNULL, timeout=300)
    r = subprocess.run([tap.KRON, "report", "t"], capture_output=True, text=True, timeout=300)
    tap.need("kron pages --from t" in r.stderr, r)


def nothing_matches():
    """what matches nothing is said before the program runs, as kron record says it"""
    build()
    for args, says in ((["-F", "nosuch"], "matches 'nosuch'"),
                       (["-L", "nolib", "-F", "main", "-F", "stride"], "no library that"),
                       (["-F", "nosuch", "-F", "stride"], "matches 'nosuch'")):
        r = subprocess.run([tap.KRON, "pages", "-o", "text", *args, "--", "sh", "-c", "echo ran >&2"],
                           capture_output=True, text=True, timeout=300)
        first = r.stderr.splitlines()[0]
        tap.need(r.returncode == 0 and says in first and "ran" in r.stderr, (args, r))
    r = subprocess.run([tap.KRON, "pages", "-L", "nolib", "--", "true"], capture_output=True, text=True, timeout=300)
    tap.need(r.stderr.count("matches") == 1, r)
    r = subprocess.run([tap.KRON, "pages", "-o", "text", "-F", "others", "-F", "stride", "-L", "touch", "-L", "libc*",
                        "--", "./touch", "kernel"], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == 0 and "matches" not in r.stderr, r)


def full_folder():
    """a full $TMPDIR: the program runs as ever, what is lost is said, and nothing is left"""
    tap.need_root()
    build()
    before = tap.segments_left()
    with tap.small_disk("tiny", "16k"):
        env = {**os.environ, "TMPDIR": os.path.abspath("tiny")}
        r = subprocess.run([tap.KRON, "pages", "-o", "text", "--", "./touch", "kernel"], capture_output=True, text=True,
                           timeout=300, env=env)
        tap.need(r.returncode == 125 and r.stderr.count("\n") == 1, r)
        tap.need("counts are lost" in r.stderr and "No space left" in r.stderr and "TMPDIR" in r.stderr, r)
        tap.need(os.listdir("tiny") == [] and not os.path.exists("text"), os.listdir("tiny"))
    tap.wait_for(lambda: tap.segments_left() <= before, "its segment to go", 20)


with tap.Suite("page_counts") as s:
    s.case("to the last reference", last_reference)
    s.case("all registers and flags in use", all_in_use)
    s.case("threads", several_threads)
    s.case("what threads share", shared)
    s.case("counters of 11 and 19 bits", widths)
    s.case("kills and forks", ends)
    s.case("two programs in one process", two_programs)
    s.case("variables of each program in one process", names_of_each)
    s.case("mappings of each program in one process", mappings_of_each)
    s.case("handlers", in_handlers)
    s.case("as lackey counts: -O0", as_lackey, 12, "-O0")
    s.case("... -O2", as_lackey, 12, "-O2")
    s.case("... lines", as_lackey, 6, "-O2")
    s.case("... -O3, vectors", as_lackey, 12, "-O3", "-mavx2")
    s.case("programs with ways of their own", behaves, [], WAYS)
    s.case("a static program", static)
    s.case("... all registers and flags in use", all_in_use, "-static")
    s.case("... threads", several_threads, "-static")
    s.case("... kills and forks", ends, "-static")
    s.case("... handlers", in_handlers, "-static")
    s.case("... asks the kernel for nothing", without_the_kernel, "-static")
    s.case("options and status", options)
    s.case("what matches nothing", nothing_matches)
    s.case("a full folder", full_folder)
