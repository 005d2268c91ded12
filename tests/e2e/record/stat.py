#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron stat: calls of functions, against callgrind and against programs that count themselves."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import callgrind  # noqa: E402
import tap  # noqa: E402


def run(*args, status=0, **more):
    r = subprocess.run([tap.KRON, "stat", *args], capture_output=True, text=True, errors="replace", timeout=300,
                       **more)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stderr}")
    return r


def stat(*args, status=0, **more):
    """What it printed, and the rows."""
    r = run("--json", "-o", "rows", *args, status=status, **more)
    with open("rows") as f:
        return r.stdout, json.load(f)


def calls(rows, name):
    return sum(r["calls"] for r in rows if r["function"] == name)


# ---- programs that count ----

def counted(*flags):
    """threads, forks, threads of children, handlers, a kill"""
    tap.compile_c("counted", "bins/counted.c", *flags)
    out, rows = stat("--", "./counted")
    tap.need(calls(rows, "work") == int(out) and calls(rows, "stop") == 1, (out, rows))
    tap.need(calls(rows, "main") == 1, rows)


def none_lost_by_threads():
    """short ones, whose counters others get; and more at once than have counters at first"""
    tap.compile_text("storm", """
#include <pthread.h>
__attribute__((noinline, noclone)) void work(void) { __asm__ volatile(".nops 8"); }
static void *few(void *p) { for (int i = 0; i < 7; i++) work(); return p; }
static pthread_barrier_t all;
static void *many(void *p) { work(); pthread_barrier_wait(&all); work(); return p; }
int main(void)
{
	pthread_t t[300];
	for (int i = 0; i < 3000; i++) {
		pthread_create(&t[0], 0, few, 0);
		pthread_join(t[0], 0);
	}
	pthread_barrier_init(&all, 0, 300);
	for (int i = 0; i < 300; i++)
		pthread_create(&t[i], 0, many, 0);
	for (int i = 0; i < 300; i++)
		pthread_join(t[i], 0);
	return 0;
}
""", "-pthread")
    _, rows = stat("--", "./storm")
    tap.need(calls(rows, "work") == 21600 and calls(rows, "few") == 3000, rows)


def later():
    """a library that comes later, and a program that is executed"""
    with open("plug.c", "w") as f:
        f.write("int plug(int x) { __asm__ volatile(\".nops 8\"); return x + 1; }\n")
    subprocess.run([*tap.CC, "-O2", "-shared", "-fPIC", "-o", "libplug.so", "plug.c"], check=True)
    tap.compile_text("host", """
#include <dlfcn.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void work(void) { __asm__ volatile(".nops 8"); }
int main(int argc, char **argv)
{
	int (*plug)(int) = dlsym(dlopen("./libplug.so", RTLD_NOW), "plug");
	for (int i = 0; i < 1000; i++)
		plug(i), work();
	if (argc > 1)
		return 0;
	execl(argv[0], argv[0], "again", (char *)0);
	return 1;
}
""", "-ldl")
    _, rows = stat("-L", "libplug*", "--", "./host")
    tap.need(calls(rows, "plug") == 2000 and calls(rows, "work") == 2000, rows)
    tap.need({os.path.basename(r["module"]) for r in rows} == {"host", "libplug.so"}, rows)
    _, rows = stat("--no-children", "-F", "work", "--", "./host")
    tap.need([r["function"] for r in rows] == ["work"], rows)
    _, rows = stat("-N", "work", "--", "./host")
    tap.need(calls(rows, "main") == 2 and not calls(rows, "work"), rows)


ENTRIES = """
#include <stdio.h>
__asm__(".text\\n"
	".type loops,@function; .globl loops\\nloops: dec %edi; jnz loops; ret; .size loops,.-loops\\n"
	".type jumps,@function; .globl jumps\\njumps: nop; jmp loops; .size jumps,.-jumps\\n"
	/* the caller's flags and every register count */
	".type flags,@function; .globl flags\\nflags: setc %al; sete %ah; movzwl %ax,%eax; ret; .size flags,.-flags\\n"
	".type all,@function; .globl all\\n"
	"all: lea (%rax,%rbx),%rax; add %rcx,%rax; add %rdx,%rax; add %rsi,%rax; add %rdi,%rax; add %rbp,%rax\\n"
	" add %r8,%rax; add %r9,%rax; add %r10,%rax; add %r11,%rax; add %r12,%rax; add %r13,%rax; add %r14,%rax\\n"
	" add %r15,%rax; add -8(%rsp),%rax; add -128(%rsp),%rax; ret; .size all,.-all\\n");
void loops(int), jumps(int);
__attribute__((noinline)) static unsigned with_flags(void)
{
	unsigned a;
	__asm__ volatile("stc; call flags" : "=a"(a) : : "cc", "memory");
	return a;
}
__attribute__((noinline)) static long with_all(long n)
{
	long a = n;
	__asm__ volatile("push %%rbx; push %%rbp; mov %%rax,%%rbx; lea 1(%%rbx),%%rbp\\n"
		"mov %%rbx,%%rcx; mov %%rbx,%%rdx; mov %%rbx,%%rsi; mov %%rbx,%%rdi; mov %%rbx,%%r8; mov %%rbx,%%r9\\n"
		"mov %%rbx,%%r10; mov %%rbx,%%r11; mov %%rbx,%%r12; mov %%rbx,%%r13; mov %%rbx,%%r14; mov %%rbx,%%r15\\n"
		"mov %%rbx,-16(%%rsp); mov %%rbx,-136(%%rsp); stc; call all; pop %%rbp; pop %%rbx"
		: "+a"(a) : : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc",
		  "memory");
	return a;
}
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 500; i++)
		loops(3), jumps(2), sum += with_flags() + with_all(i);
	printf("%ld\\n", sum);
	return 0;
}
"""


def entries():
    """a loop back to the start is not a call, a jump from elsewhere is one; registers and flags stay"""
    tap.compile_text("entries", ENTRIES, "-mno-red-zone")
    plain = subprocess.run(["./entries"], capture_output=True, text=True, check=True).stdout
    out, rows = stat("--", "./entries")
    tap.need(out == plain, (out, plain))
    for name, n in (("loops", 1000), ("jumps", 500), ("flags", 500), ("all", 500)):
        tap.need(calls(rows, name) == n, (name, n, rows))


WAYS = ("control/registers", "control/redzone", "control/siglongjmp", "threads/foreign_fs",
        "threads/shared_tls", "process/fork_threads")


def behaves(*names):
    """what programs with ways of their own print"""
    for name in names:
        out = os.path.basename(name)
        tap.compile_c(out, f"torture/{name}.c", "-ldl", "-lm", "-rdynamic")
        plain = subprocess.run([f"./{out}"], capture_output=True, text=True)
        r = subprocess.run([tap.KRON, "stat", "-q", "-o", "rows", "--", f"./{out}"], capture_output=True, text=True)
        tap.need((r.returncode, r.stdout) == (plain.returncode, plain.stdout), (name, r, plain))


# ---- many functions ----

def many():
    """more functions than a chunk has counters"""
    n = 9001
    with open("many.c", "w") as f:
        f.writelines(f"__attribute__((noinline)) void f{i}(void) {{ __asm__ volatile(\".nops 8\"); }}\n" for i in range(n))
        f.write("void (*all[])(void) = {" + ",".join(f"f{i}" for i in range(n)) + "};\n")
        f.write(f"int main(void) {{ for (int i = 0; i < {n}; i++) for (int k = 0; k < i % 7; k++) all[i](); }}\n")
    subprocess.run([*tap.CC, "-O1", "-o", "many", "many.c"], check=True)
    _, rows = stat("--", "./many")
    got = {r["function"]: r["calls"] for r in rows}
    wrong = [i for i in range(n) if got.get(f"f{i}", 0) != i % 7]
    tap.need(not wrong, (len(wrong), wrong[:10]))
    tap.need([r["calls"] for r in rows] == sorted((r["calls"] for r in rows), reverse=True), rows[:9])


def too_many():
    """a file that has too many functions is not counted, and that is said"""
    with open("all.s", "w") as f:
        f.write(".text\n")
        for i in range(50000):
            f.write(f".globl g{i}; .type g{i},@function\ng{i}: mov $1,%eax; ret; .size g{i},.-g{i}; .p2align 4\n")
        f.write(".globl main; .type main,@function\nmain: xor %eax,%eax; ret; .size main,.-main\n")
        f.write(".section .note.GNU-stack,\"\",@progbits\n")
    subprocess.run([*tap.CC, "-o", "all", "all.s"], check=True)
    r = run("--json", "-o", "rows", "--", "./all")
    with open("rows") as f:
        tap.need(json.load(f) == [] and "no counters are left" in r.stderr, r.stderr)


# ---- callgrind ----

def differs(path, args, *libraries):
    """Entries of each function of path, as callgrind and as kron count them."""
    path = os.path.realpath(path)
    env = {**os.environ, "LD_BIND_NOW": "1", "PYTHONHASHSEED": "0"}
    object_ = os.path.realpath(libraries[0]) if libraries else path
    want = callgrind.entries([path, *args], object_, env)
    chosen = ["-L", object_] if libraries else []
    _, rows = stat(*chosen, "--", path, *args, env=env)
    got = collections.Counter()
    for r in rows:
        if os.path.realpath(r["module"]) == object_:
            got[r["function"]] += r["calls"]
    return want, got


def as_callgrind(least, path, args, *libraries):
    if not os.path.exists(path):
        raise tap.Skip(f"{path} is not installed")
    want, got = differs(path, args, *libraries)
    wrong = [(f, want[f], got[f]) for f in sorted(want | got) if want[f] != got[f]]
    tap.need(not wrong, (len(wrong), wrong[:9]))
    tap.need(want.total() > least, want.total())


def calc():
    tap.compile_c("calc", "bins/calc.c", "-fno-reorder-blocks-and-partition")
    as_callgrind(1000, "./calc", [])


def gzip():
    with open("/usr/lib/x86_64-linux-gnu/libc.so.6", "rb") as f, open("in", "wb") as to:
        to.write(f.read()[:400000])
    as_callgrind(100000, "/usr/bin/gzip", ["-c", "in"])


def library_of(path, name):
    out = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return next((line.split()[2] for line in out.splitlines() if line.strip().startswith(name)), None)


def sqlite():
    tool = "/usr/bin/sqlite3"
    library = os.path.exists(tool) and library_of(tool, "libsqlite3.so")
    if not library:
        raise tap.Skip("no sqlite3 with a library")
    sql = ("create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<2000) "
           "insert into t select x, x*7%101 from c; create index i on t(b); select b,count(*),sum(a) from t "
           "group by b order by 2 desc limit 5; select count(*) from t x join t y on x.b=y.b where x.a<200;")
    as_callgrind(100000, tool, [":memory:", sql], library)


PYTHON = """
import gc
gc.disable()
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
print(sum(len(str(i)) for i in range(%d)), f(12) if %d else 0)
"""


def python():
    """what work adds: start-up depends on the environment"""
    path = "/usr/bin/python3"
    if not os.path.exists(path):
        raise tap.Skip(f"{path} is not installed")
    want, got = collections.Counter(), collections.Counter()
    for n in (3000, 0):
        w, g = differs(path, ["-I", "-S", "-c", PYTHON % (n, n)])
        for total, part in ((want, w), (got, g)):
            total.subtract(part) if not n else total.update(part)
    # a few look-ups depend on where objects lie
    wrong = {f: (want[f], got[f]) for f in want if want[f] != got[f]}
    much = [f for f in want if want[f] >= 200]
    tap.need(len(much) > 10 and not [f for f in much if f in wrong], wrong)
    tap.need(sum(abs(w - g) for w, g in wrong.values()) < 0.01 * want.total(), wrong)


# ---- the command ----

def command():
    """streams and statuses are the program's"""
    for word in "stat", "pages":
        r = subprocess.run([tap.KRON, word, "-o", "/nonexistent/x", "--", "touch", "ran"], capture_output=True, text=True)
        tap.need(r.returncode == 125 and "/nonexistent/x" in r.stderr and not os.path.exists("ran"), r.stderr)
    tap.compile_text("ends", """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, noclone)) void work(void) { __asm__ volatile(".nops 8"); }
int main(int argc, char **argv)
{
	puts("here");
	for (int i = 0; i < 1234; i++)
		work();
	fflush(stdout);
	if (argc > 1)
		abort();
	return 7;
}
""")
    before = set(os.listdir(os.environ.get("TMPDIR", "/tmp")))
    r = run("--", "./ends", status=7)
    tap.need(r.stdout == "here\n", r.stdout)
    lines = [line.split() for line in r.stderr.splitlines()]
    tap.need(["1,234", "work", "ends"] in lines and lines[0] == ["calls", "function", "module"], r.stderr)
    r = run("--json", "--", "./ends", status=7)
    tap.need(calls(json.loads(r.stderr), "work") == 1234, r.stderr)
    _, rows = stat("--", "./ends", "abort", status=-signal.SIGABRT)
    tap.need(calls(rows, "work") == 1234, rows)
    tap.need("no command given" in run(status=125).stderr, "")
    tap.need("kron stat: " in run("--", "./nothing", status=127).stderr, "")
    tap.need("nowhere" in run("-o", "nowhere/rows", "--", "./ends", status=125).stderr, "")
    left = set(os.listdir(os.environ.get("TMPDIR", "/tmp"))) - before
    tap.need(not [n for n in left if "kron-stat" in n], left)
    tap.need(not os.path.exists("kron.data"), os.listdir("."))


def full_folder():
    """a full $TMPDIR takes nothing away: what was counted is shown, and nothing is left"""
    tap.need_root()
    tap.compile_text("calls", """
__attribute__((noinline, noclone)) void work(void) { __asm__ volatile(".nops 8"); }
int main(void)
{
	for (int i = 0; i < 4242; i++)
		work();
	return 3;
}
""")
    before = tap.segments_left()
    with tap.small_disk("tiny", "24k"):
        env = {**os.environ, "TMPDIR": os.path.abspath("tiny")}
        _, rows = stat("-L", "*", "--", "./calls", status=3, env=env)
        tap.need(calls(rows, "work") == 4242 and calls(rows, "main") == 1, rows)
        tap.need(any("libc.so" in r["module"] for r in rows), rows)
        tap.need(os.listdir("tiny") == [], os.listdir("tiny"))
    tap.wait_for(lambda: tap.segments_left() <= before, "its segment to go", 20)


def no_folder():
    """no folder can be made: a sentence, nothing runs and nothing is left"""
    env = {**os.environ, "TMPDIR": "/nonexistent"}
    for word in "stat", "pages":
        os.mkdir(word)
        r = subprocess.run([tap.KRON, word, "-o", f"{word}/out", "--", "touch", "ran"], capture_output=True, text=True,
                           env=env)
        tap.need(r.returncode == 125 and r.stderr.count("\n") == 1 and "/nonexistent" in r.stderr, r)
        tap.need(os.listdir(word) == [] and not os.path.exists("ran"), os.listdir(word))


def json_alone():
    """JSON on standard error has nothing beside it; with -o the notes are there"""
    tap.compile_c("counted", "bins/counted.c")
    subprocess.run([tap.KRON, "patch", "-q", "-o", "copy", "counted"], check=True)
    r = run("-L", "nosuch*", "--json", "--", "./copy")
    tap.need(json.loads(r.stderr) == [], r.stderr)
    r = run("-L", "nosuch*", "--json", "-o", "rows", "--", "./copy")
    tap.need("nosuch*" in r.stderr and "kron patch" in r.stderr, r.stderr)


MANY_COPIES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char a[4096], b[4096];
static long copies;
static void *(*volatile by_pointer)(void *, const void *, size_t) = memcpy;
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < n; i++, copies++)
		memcpy(a, b, (size_t)(argc * 100 + i % 1000));
	for (int i = 0; i < 5; i++)
		memmove(a, b, (size_t)(argc * 100 + i));
	by_pointer(a, b, 10);
	printf("%ld\\n", copies);
	return 0;
}
"""


def copies_seen(program, n, *more):
    """By kron stat, kron monitor and kron record -F memcpy; the program itself says how often it calls it."""
    chosen = ["-L", "libc.so*", "-F", "memcpy", *more]
    out, rows = stat(*chosen, "--", program, str(n))
    tap.need(int(out) == n, out)
    tap.need(all(row["function"] == "memcpy" and row["import"] and "resolver" not in row for row in rows), rows)
    r = subprocess.run([tap.KRON, "monitor", "--json", "-o", "intervals", "-L", "libc.so*", "-e", "calls:memcpy", "--", program, str(n)],
                       capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == 0 and "IFUNC" not in r.stderr, r.stderr)
    with open("intervals", encoding="utf-8") as f:
        monitored = json.loads(f.readlines()[-1])["totals"]["calls:memcpy"]
    shutil.rmtree("trace", ignore_errors=True)
    r = subprocess.run([tap.KRON, "record", "-o", "trace", "--when-full", "wait", *chosen, "--", program, str(n)], capture_output=True, text=True,
                       timeout=300)
    tap.need(r.returncode == 0 and "IFUNC" not in r.stderr, r.stderr)
    reported = json.loads(subprocess.run([tap.KRON, "report", "--json", "trace"], capture_output=True, text=True, check=True).stdout)
    tap.need(all("resolver" not in row for row in reported), reported)
    return calls(rows, "memcpy"), monitored, calls(reported, "memcpy")


def chosen(*flags):
    """-F with the name of a function that is chosen among several (IFUNC) counts its calls, as it records them."""
    tap.compile_text("copies", MANY_COPIES, "-O1", "-fno-builtin", *flags)
    few, many = copies_seen("./copies", 37), copies_seen("./copies", 1037)
    tap.need(len(set(few)) == 1 and len(set(many)) == 1, (few, many))
    # what is linked statically has all of libc's own calls beside them
    tap.need(many[0] - few[0] == 1000 and (few[0] == 37 or "-static" in flags), (few, many))


def compile_callee():
    bins = os.path.join(tap.SRC, "tests/bins/interposed")
    subprocess.run([*tap.CC, "-O2", "-fPIC", "-shared", "-o", "libcallee.so", f"{bins}/callee.c",
                    f"-Wl,--version-script={bins}/callee.map,-soname,libcallee.so"], check=True)
    return bins


def choosers():
    """Who chooses is marked where it is counted or recorded; where nobody sees the calls a note says so."""
    tap.compile_text("copies", MANY_COPIES, "-O1", "-fno-builtin")
    _, rows = stat("-L", "libc.so*", "-F", "*memcpy*", "--", "./copies", "37")
    tap.need([r["calls"] for r in rows if r["function"] == "memcpy" and r.get("resolver")] == [1], rows)
    tap.need(any(r["calls"] >= 43 and "resolver" not in r for r in rows), rows)
    for how, what in (["--no-wait"], "only its resolver, which chooses, is recorded"), (["--tactics", "-import"], "only its resolver, which chooses, is recorded"):
        shutil.rmtree("trace", ignore_errors=True)
        r = subprocess.run([tap.KRON, "record", "-o", "trace", "-L", "libc.so*", "-F", "memcpy", *how, "--", "./copies", "37"],
                           capture_output=True, text=True, timeout=300)
        tap.need(re.search(rf"^kron: memcpy \[libc\.so\.6\] is chosen .*{what}; .*: -F '\*memcpy\*'$", r.stderr, re.M), r.stderr)
        rows = json.loads(subprocess.run([tap.KRON, "report", "--json", "trace"], capture_output=True, text=True, check=True).stdout)
        tap.need(all(row["resolver"] for row in rows), rows)
    compile_callee()
    tap.compile_text("none", "int main(void) { return 0; }", "-O1", "-Wl,--no-as-needed", "-L.", "-lcallee", "-Wl,-rpath," + os.getcwd())
    r = run("-L", "libcallee*", "-F", "chosen", "--", "./none")
    tap.need(re.search(r"^kron: chosen \[libcallee.so\] is chosen .*, and no call of it was found that can be counted;", r.stderr, re.M), r.stderr)


def refused():
    """A function whose entry cannot be probed is counted where another module calls it."""
    bins = compile_callee()
    subprocess.run([*tap.CC, "-O2", "-fPIC", "-shared", "-o", "plugin.so", f"{bins}/plugin.c", "-L.", "-lcallee"], check=True)
    subprocess.run([*os.environ.get("CXX", "g++").split(), "-O2", "-o", "caller", f"{bins}/caller.cc", "-L.", "-lcallee", "-pthread",
                    "-Wl,-rpath," + os.getcwd()], check=True)
    out, rows = stat("-L", "libcallee*", *(w for f in ("sum", "call", "inner", "chosen") for w in ("-F", f)), "--", "./caller", os.path.abspath("plugin.so"))
    want = dict(re.findall(r"^(sum|call|inner|chosen) (\d+)$", out, re.M))
    tap.need({r["function"]: str(r["calls"]) for r in rows} == want and all(r["import"] for r in rows), (want, rows))


def patched():
    """a file from kron patch has probes of its own"""
    tap.compile_c("counted", "bins/counted.c")
    subprocess.run([tap.KRON, "patch", "-q", "-o", "copy", "counted"], check=True)
    r = run("--json", "-o", "rows", "--", "./copy")
    with open("rows") as f:
        tap.need(json.load(f) == [] and "kron patch" in r.stderr, r.stderr)


def attached():
    """a process that runs already"""
    tap.compile_text("waits", """
#include <stdio.h>
__attribute__((noinline, noclone)) void work(void) { __asm__ volatile(".nops 8"); }
int main(void)
{
	getchar();
	for (int i = 0; i < 4321; i++)
		work();
	return 0;
}
""")
    p = subprocess.Popen(["./waits"], stdin=subprocess.PIPE)
    k = subprocess.Popen([tap.KRON, "stat", "--json", "-o", "rows", "-p", str(p.pid)], stderr=subprocess.PIPE,
                         text=True)
    try:
        line = k.stderr.readline()
        tap.need(str(p.pid) in line, line)
        p.stdin.write(b"x")
        p.stdin.close()
        tap.need(p.wait(60) == 0 and k.wait(60) == 0, k.stderr.read())
    finally:
        for child in (p, k):
            child.kill()
            child.wait()
        k.stderr.close()
    with open("rows") as f:
        rows = json.load(f)
    tap.need(calls(rows, "work") == 4321, rows)


with tap.Suite("stat") as s:
    s.case("threads, forks, handlers, a kill", counted)
    s.case("... a static program", counted, "-static")
    s.case("short threads and many threads", none_lost_by_threads)
    s.case("libraries and programs that come later", later)
    s.case("what a call is; registers and flags", entries)
    s.case("programs with ways of their own", behaves, *WAYS)
    s.case("9,001 functions", many)
    s.case("50,001 functions", too_many)
    s.case("as callgrind counts: a program", calc)
    s.case("... gzip", gzip)
    s.case("... the sqlite3 library", sqlite)
    s.case("... python3", python)
    s.case("output and status", command)
    s.case("a full folder", full_folder)
    s.case("no folder", no_folder)
    s.case("JSON alone", json_alone)
    for flags in (), ("-fno-plt",), ("-no-pie",), ("-static",):
        s.case(f"functions that are chosen when the program starts {' '.join(flags)}", chosen, *flags)
    s.case("who chooses them", choosers)
    s.case("functions whose entries take no probe", refused)
    s.case("a patched file", patched)
    s.case("a process that runs", attached)
