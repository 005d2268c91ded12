#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron pages --by function: who touches which page, against what the assembly says and against valgrind's lackey."""
import bisect
import json
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
from counted_pages import M, OTHERS, WAYS, behaves, need_lackey, references, stride  # noqa: E402

STRIDE = stride()
LINES = {0: (0, 32), 1: (0, 64), 2: (0, 4), 7: (2, 0), 8: (8, 0), 15: (0, 2), 16: (0, 8), 20: (9, 0), 21: (9, 0),
         50: (5, 0), 51: (0, 5), **{i: (0, 1) for i in range(32, 40)}}


def kron(*args, status=0):
    r = subprocess.run([tap.KRON, *args], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == status, f"{args}: exit {r.returncode}\n{r.stderr}")
    return r


def check(rows):
    """What functions did to a page is what was done to it."""
    for r in rows:
        of = r["by_function"]
        tap.need(of and all(f["function"] and f["module"] for f in of), r)
        tap.need(len({(f["function"], f["module"]) for f in of}) == len(of) or len(of) > 20, r)
        tap.need((sum(f["reads"] for f in of), sum(f["writes"] for f in of)) == (r["reads"], r["writes"]), r)
        tap.need(all(f["reads"] or f["writes"] for f in of), r)
    return rows


def pages(*args, status=0):
    r = kron("pages", "--by", "function", "--json", "-o", "rows", *args, status=status)
    with open("rows") as f:
        return check(json.load(f)), r.stderr


def add(out, whose, what, reads, writes):
    own = out.setdefault(whose, {})
    before = own.get(what, (0, 0))
    own[what] = (before[0] + reads, before[1] + writes)


def ours(rows, size=4096):
    """Process -> function -> page of the program's memory -> reads and writes."""
    out = {}
    for r in rows:
        n = int(r["address"], 16) - M
        if not 0 <= n < 1 << 32:
            continue
        for f in r["by_function"]:
            add(out.setdefault(r["pid"], {}), f["function"], n // size, f["reads"], f["writes"])
    return out


def times(counts, n):
    return {page: (r * n, w * n) for page, (r, w) in counts.items()}


def build(*flags):
    tap.compile_c("touch", "bins/pages.c", *flags)


def last_reference():
    """two kernels: whose each reference is; and the same sums as without --by"""
    build()
    rows, _ = pages("--", "./touch", "kernel")
    tap.need(list(ours(rows).values()) == [{"stride": STRIDE, "others": OTHERS}], ours(rows))
    libraries = {os.path.basename(f["module"]) for r in rows for f in r["by_function"]}
    tap.need("touch" in libraries and any(n.startswith("libc") for n in libraries), libraries)
    kron("pages", "--json", "-o", "plain", "--", "./touch", "kernel")
    with open("plain") as f:
        plain = json.load(f)
    sums = [{r["address"]: (r["reads"], r["writes"]) for r in v if r["address"].startswith("0x30000")}
            for v in (rows, plain)]
    tap.need(sums[0] == sums[1] and "by_function" not in plain[0], sums)


def chosen():
    """-F: functions that are not counted have no references"""
    build()
    rows, _ = pages("-F", "others", "--", "./touch", "kernel")
    tap.need(list(ours(rows).values()) == [{"others": OTHERS}], ours(rows))
    tap.need({f["function"] for r in rows for f in r["by_function"]} == {"others"}, rows)


def several_threads():
    """four threads, and what each page's threads and functions are, side by side"""
    build()
    rows, _ = pages("--", "./touch", "threads")
    tap.need(list(ours(rows).values()) == [{"stride": times(STRIDE, 4)}], ours(rows))
    rows, _ = pages("--sharing", "-F", "stride", "--", "./touch", "threads")
    tap.need(all(len(r["threads"]) == 4 and len(r["by_function"]) == 1 for r in rows) and len(rows) == 64, rows)


def ends():
    """a kill, a forked child that is killed, two programs in one process"""
    build()
    rows, _ = pages("--", "./touch", "kill", status=-9)
    tap.need(list(ours(rows).values()) == [{"stride": STRIDE}], ours(rows))
    rows, _ = pages("--", "./touch", "fork")
    mine = sorted(ours(rows).values(), key=lambda p: p["stride"][0])
    tap.need(mine == [{"stride": STRIDE}, {"stride": times(STRIDE, 2)}], mine)
    rows, _ = pages("--", "./touch", "exec")
    tap.need(list(ours(rows).values()) == [{"stride": times(STRIDE, 2), "others": OTHERS}], ours(rows))


def in_handlers():
    """a handler that counts between any two instructions of the counting"""
    build()
    rows, said = pages("-q", "--", "./touch", "handlers")
    (mine,) = ours(rows).values()
    n = int(said)
    tap.need(n and mine.pop("on_timer") == {77: (n, n)} and mine.pop("stride") == times(STRIDE, 20), (n, mine))
    tap.need(list(mine.values()) == [{77: (1, 0)}], mine)


def static():
    """a program without a dynamic linker"""
    build("-static")
    rows, _ = pages("-L", "touch", "-F", "stride", "-F", "others", "--", "./touch", "kernel")
    tap.need(list(ours(rows).values()) == [{"stride": STRIDE, "others": OTHERS}], ours(rows))


def lines():
    """lines of 64 bytes"""
    tap.compile_c("program", "bins/pages_report.c")
    rows, _ = pages("--lines", "-L", "program", "--", "./program", "lines")
    tap.need(list(ours(rows, 64).values()) == [{"strings": LINES}], ours(rows, 64))
    together = [{f["function"]: f for f in r["by_function"]} for r in rows if r["variables"] == ["together"]]
    tap.need([(f["touch"]["reads"], f["touch"]["writes"]) for f in together] == [(3500, 5000)], together)


FUNCTIONS, PAGES, TIMES = 500, 150, 3
MANY = """
#include <sys/mman.h>
static char *m;
#define TOUCH(p, reads, writes) \\
	for (long n = 0; n < (reads); n++) \\
		__asm__ volatile("movq (%0), %%rax" : : "r"(p) : "rax"); \\
	for (long n = 0; n < (writes); n++) \\
		__asm__ volatile("movl %%eax, 4092(%0)" : : "r"(p) : "memory")
#define F(i, reads, writes) \\
	static __attribute__((noinline)) void f##i(void) \\
	{ \\
		for (long k = 0; k < PAGES; k++) { \\
			TOUCH(m + (k * 129 + i) % 20000 * 4096, reads, writes); \\
		} \\
	}
"""


def many():
    """more functions and pages than the table has room for"""
    text = f"#define PAGES {PAGES}\n{MANY}"
    text += "".join(f"F({i}, {i % 4}, {1 + i % 3})\n" for i in range(FUNCTIONS))
    text += f"""int main(void)
{{
	m = mmap((void *){M:#x}, 20000 * 4096L, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	for (int i = 0; i < {TIMES}; i++) {{
		{" ".join(f"f{i}();" for i in range(FUNCTIONS))}
	}}
	return m == MAP_FAILED;
}}
"""
    tap.compile_text("many", text)
    rows, _ = pages("-L", "many", "--", "./many")
    want = {f"f{i}": {(k * 129 + i) % 20000: (TIMES * (i % 4), TIMES * (1 + i % 3)) for k in range(PAGES)}
            for i in range(FUNCTIONS)}
    (mine,) = ours(rows).values()
    tap.need(mine == want, [(n, mine.get(n), want[n]) for n in want if mine.get(n) != want[n]][:2])


LOADED = """
long at_%s[8192];
__attribute__((noinline)) void run(long *p, long n)
{
	for (long i = 0; i < n; i++)
		__asm__ volatile("movq (%%0), %%%%rax\\n movq %%%%rax, 8(%%0)" : : "r"(p) : "rax", "memory");
}
void go(long *p) { run(p, %s); }
"""
LOADER = """
#include <dlfcn.h>
#include <sys/mman.h>
int main(int n, char **v)
{
	long *m = mmap((void *)0x300000000000, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	for (int i = 0; i < 6; i++) {
		void *h = dlopen(v[1 + i % (n - 1)], RTLD_NOW);
		((void (*)(long *))dlsym(h, "go"))(m);
		dlclose(h);
	}
	return 0;
}
"""


def loaded():
    """functions of one name in two libraries that come and go"""
    for name, n in (("a", 1000), ("b", 70)):
        tap.compile_text(f"lib{name}.so", LOADED % (name, n), "-shared", "-fPIC", "-fno-semantic-interposition")
    tap.compile_text("loader", LOADER, "-ldl")
    rows, _ = pages("--", "./loader", "./liba.so", "./libb.so")
    (row,) = [r for r in rows if int(r["address"], 16) == M]
    got = {(f["function"], os.path.basename(f["module"])): (f["reads"], f["writes"]) for f in row["by_function"]}
    tap.need(set(got) <= {(f, lib) for f in ("run", "go") for lib in ("liba.so", "libb.so")}, got)
    for lib, n in (("liba.so", 3000), ("libb.so", 210)):
        of = [v for (_, module), v in got.items() if module == lib]
        tap.need((sum(v[0] for v in of), sum(v[1] for v in of)) == (n, n), got)


WORK = """
#include <stdlib.h>
#include <string.h>
static int data[5000];
static char text[20000];
struct node { struct node *left, *right; int key; } nodes[1500], *root;
__attribute__((noinline)) static struct node *insert(struct node *at, struct node *n)
{
	if (!at)
		return n;
	if (n->key < at->key)
		at->left = insert(at->left, n);
	else
		at->right = insert(at->right, n);
	return at;
}
__attribute__((noinline)) static void sort(int *v, int n)
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
__attribute__((noinline)) static void fill(int n)
{
	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (char)(data[i % 5000] >> (i % 5));
	__builtin_memset(text + n, 3, 3000);
	if (__builtin_expect(n > 1000, 0)) {
		for (int i = 0; i < n; i++)
			data[i] ^= text[i * 3];
		if (data[n] == 12345678)
			abort();
	}
}
__attribute__((noinline)) double mean(const int *v, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		s += v[i] * 0.5;
	return s / n;
}
__attribute__((noinline)) long both(int n, const int *v)
{
	switch (n % 5) {
	case 0: return v[n] + mean(v, 10) > 3;
	case 1: return v[2 * n];
	case 2: sort((int *)v, 9); return 3;
	case 3: return text[n] + v[0];
	}
	return mean(v, 20);
}
int main(void)
{
	unsigned seed = 1;
	long sum = 0;
	for (int i = 0; i < 5000; i++)
		data[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
	for (int i = 0; i < 1500; i++) {
		nodes[i].key = data[i];
		root = insert(root, &nodes[i]);
	}
	sort(data, 5000);
	fill(1000);
	fill(1500);
	for (int i = 0; i < 2000; i++)
		sum += both(i, data);
	return sum == 1 || mean(data, 5000) > 1e9;
}
"""
STACK = -1


def place(at, shift):
    """The stack is elsewhere under valgrind: it is one."""
    return at >> shift if at < 1 << 36 else STACK


def functions_of(path):
    """Addresses of the functions, and their names; what the compiler has moved out is the function's."""
    v = {}
    for line in subprocess.run(["nm", "-n", path], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwW":
            v[int(words[0], 16)] = words[2].replace(".cold", "")
    return sorted(v), v


def lackey(path, shift):
    """Function -> page or line -> reads and writes."""
    starts, names = functions_of(path)
    counts, own = {}, None
    for kind, at, size in references(path):
        if kind == "I":
            i = bisect.bisect(starts, at)
            own = counts.setdefault(names[starts[i - 1]], {}) if i and at < 1 << 24 else None
            continue
        if own is None:
            continue
        for unit in {place(at, shift), place(at + size - 1, shift)}:
            reads, writes = own.get(unit, (0, 0))
            own[unit] = (reads + (kind in "LM"), writes + (kind in "SM"))
    return counts


def as_lackey(shift, *flags):
    """a program as valgrind's lackey sees it, function by function"""
    need_lackey()
    tap.compile_text("work", WORK, "-no-pie", *flags)
    want = lackey("./work", shift)
    rows, _ = pages(*(["--lines"] if shift == 6 else []), "-L", "work", "--", "./work")
    got = {}
    for row in rows:
        unit = place(int(row["address"], 16), shift)
        for f in row["by_function"]:
            add(got, f["function"], unit, f["reads"], f["writes"])
    busy = [name for name in want if sum(sum(v) for v in want[name].values()) > 1000]
    tap.need(len(busy) >= 5 and "main" in busy, want)
    for name in busy:
        # two pages of the stack are one, so what lies across them is counted once there
        for unit, (reads, writes) in want[name].items():
            there = got.get(name, {}).get(unit, (0, 0))
            tap.need(there == (reads, writes), (name, unit, there, (reads, writes)))
        tap.need(set(got[name]) == set(want[name]), (name, set(got[name]) ^ set(want[name])))


def kept():
    """a trace keeps it; text, JSON, and what was not counted so"""
    build()
    kron("pages", "-q", "--by", "function", "-o", "kept/", "--", "./touch", "kernel")
    kron("pages", "--from", "kept", "--by", "function", "--json", "-o", "rows")
    with open("rows") as f:
        tap.need(list(ours(check(json.load(f))).values()) == [{"stride": STRIDE, "others": OTHERS}], "rows")
    r = kron("pages", "--from", "kept", "--by", "function")
    for part in ("\nFunctions\n", " stride of touch\n", "         64,000          64,000  by stride of touch\n",
                 "              0           4,097  by others of touch\n"):
        tap.need(part in r.stdout, (part, r.stdout))
    tap.need("  by " not in kron("pages", "--from", "kept").stdout, "not asked for")
    kron("pages", "-q", "-o", "plain/", "-L", "touch", "--", "./touch", "kernel")
    r = kron("pages", "--from", "plain", "--by", "function")
    tap.need("nothing was counted by function" in r.stderr and "Functions" not in r.stdout, r)
    # what the trace has lost is nobody's, and not another's
    with open("kept/pages") as f:
        text = [x for x in f if not x.startswith("F") or "\t300000040000\t" not in x]
    with open("kept/pages", "w") as f:
        f.writelines(text)
    r = kron("pages", "--from", "kept", "--by", "function", "--json")
    (row,) = [x for x in json.loads(r.stdout) if int(x["address"], 16) == M + 64 * 4096]
    tap.need(row["by_function"] == [{"function": None, "module": None, "reads": 0, "writes": 4097}], row)
    tap.need("by functions that are not known" in kron("pages", "--from", "kept", "--by", "function").stdout, "rest")


def in_sql(*traces):
    """What a database has of all traces: (pid, address) -> (function, module) -> reads and writes"""
    r = kron("export", "-q", "-f", "sqlite", "-o", "db", *traces)
    tap.need(not r.stderr, r.stderr)
    db = sqlite3.connect("db")
    tap.need(not db.execute("PRAGMA foreign_key_check").fetchall(), "it points to nothing")
    out = {}
    for pid, address, function, module, reads, writes in db.execute("SELECT pid, address, function, module, reads, writes FROM page_functions"):
        add(out, (pid, address), (function, module), reads, writes)
    sums = db.execute("SELECT (SELECT sum(reads) FROM page), (SELECT sum(reads) FROM page_function)").fetchone()
    db.close()
    return out, sums


def database():
    """the tables of a database say the same, of one trace and of a folder whose functions have other numbers there"""
    build()
    tap.compile_text("libb.so", LOADED % ("b", 70), "-shared", "-fPIC", "-fno-semantic-interposition")
    tap.compile_text("loader", LOADER, "-ldl")
    os.mkdir("host")
    kron("pages", "-q", "--by", "function", "-o", "host/one/", "--", "./touch", "kernel")
    kron("pages", "-q", "--by", "function", "-o", "host/two/", "--", "./loader", "./libb.so")
    want = {}
    for name in "one", "two":
        own = {}
        for r in json.loads(kron("pages", "--from", f"host/{name}", "--by", "function", "--json").stdout):
            for f in r["by_function"]:
                add(own, (r["pid"], r["address"]), (f["function"], f["module"]), f["reads"], f["writes"])
        got, sums = in_sql(f"host/{name}")
        tap.need(got == own and sums[0] == sums[1] > 0, f"{name}: {set(got) ^ set(own)} {sums}")
        want.update(own)
    got, sums = in_sql("host")
    tap.need(got == want and sums[0] == sums[1], f"both: {set(got) ^ set(want)} {sums}")
    kron("pages", "-q", "-o", "plain/", "-L", "touch", "--", "./touch", "kernel")
    tap.need(in_sql("plain")[0] == {}, "nothing was counted by function")


def over_time():
    """with steps: both are right"""
    tap.compile_c("program", "bins/pages_report.c")
    kron("pages", "-q", "--by", "function", "--every", "5ms", "-o", "kept/", "-L", "program", "--", "./program", "phases",
         "50")
    r = kron("pages", "--from", "kept", "--by", "function", "--json")
    want = {**{i: (105, 10) for i in range(16)}, **{i: (7, 1000) for i in range(16, 48)}}
    tap.need(list(ours(check(json.loads(r.stdout))).values()) == [{"touch": want}], r.stdout)
    r = kron("pages", "--from", "kept", "--by", "function")
    tap.need("Working set over time" in r.stdout and "  by touch of program" in r.stdout, r)


def recorded():
    """kron record, and what does not go together"""
    build()
    kron("record", "-q", "-o", "t", "-p", "others%accesses pages:function", "--", "./touch", "kernel")
    r = kron("pages", "--from", "t", "--by", "function", "--json")
    tap.need(list(ours(check(json.loads(r.stdout))).values()) == [{"others": OTHERS}], r.stdout)
    r = subprocess.run([tap.KRON, "record", "-q", "-o", "u", "-p", "others%accesses pages:function", "-p",
                        "stride%accesses pages", "--", "./touch"], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode and "one recording" in r.stderr, r)
    r = kron("pages", "--by", "function", "--every", "1s", "--json", "--", "./touch", status=125)
    tap.need("--by" in r.stderr, r)
    r = subprocess.run([tap.KRON, "pages", "--by", "nobody", "--", "./touch"], capture_output=True, text=True)
    tap.need(r.returncode == 125 and "--by" in r.stderr, r)


def live():
    """registers and flags are as they were"""
    build()
    rows, _ = pages("-L", "touch", "--", "./touch", "live")
    want = {64: (512, 0), 65: (1, 0), 66: (512, 0), 67: (512, 0), 68: (512, 0)}
    tap.need(list(ours(rows).values()) == [{"load_live": want}], ours(rows))


with tap.Suite("page_functions") as s:
    s.case("to the last reference", last_reference)
    s.case("chosen functions", chosen)
    s.case("threads", several_threads)
    s.case("kills, forks, two programs in one process", ends)
    s.case("handlers", in_handlers)
    s.case("all registers and flags in use", live)
    s.case("a static program", static)
    s.case("lines", lines)
    s.case("more than the table holds", many)
    s.case("libraries that come and go", loaded)
    s.case("as lackey counts: -O0", as_lackey, 12, "-O0")
    s.case("... -O2", as_lackey, 12, "-O2")
    s.case("... lines", as_lackey, 6, "-O2")
    s.case("... -O3, vectors", as_lackey, 12, "-O3", "-mavx2")
    s.case("kept in a trace", kept)
    s.case("tables of a database", database)
    s.case("over time", over_time)
    s.case("kron record, and what does not go together", recorded)
    s.case("programs with ways of their own", behaves, ["--by", "function"], WAYS)
