#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values by their names in the source, against what the program says they are, and where gdb says they are."""
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

NAMES = ("n c l s seventh eighth counter hidden ratio queue.len calls r->id r->headers.count r->headers.raw "
         "r->headers.first r->name r->full r->weight r->part r->color r->shape r->is_good r->letter r->tiny r->bytes "
         "r->words r->grid[1] r->big[7] table[2].id r->nodes[1].value r->list->next->value").split()
TYPES = {"n": "s32", "c": "s8", "l": "s64", "s": "u16", "eighth": "s64", "hidden": "s64", "ratio": "double",
         "r->headers.count": "s16", "r->headers.first": "u8", "r->name": "string", "r->full": "string",
         "r->part": "float", "r->color": "s32", "r->shape": "u32", "r->is_good": "u8", "r->letter": "s8",
         "r->bytes": "u8[8]", "r->words": "u64[3]", "r->grid[1]": "s32[3]"}
SOURCE = os.path.join(tap.SRC, "tests/bins/variables.c")


def run(*command, status=0):
    r = subprocess.run([tap.KRON, *command], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stdout[-500:]}\n{r.stderr}")
    return r.stdout, r.stderr


def record(*args):
    shutil.rmtree("trace", ignore_errors=True)
    return run("record", "-o", "trace", *args)


def events():
    lines = run("dump", "--json", "trace")[0].splitlines()
    return [e for e in map(json.loads, lines) if e["kind"] == "event"]


def values():
    got = {}
    for e in events():
        got.setdefault(e["payload_name"], []).append(e["value"])
    return got


def program(*flags, path="variables"):
    compiler = ["clang"] if "clang" in flags else tap.CC
    if not shutil.which(compiler[0]):
        raise tap.Skip(f"{compiler[0]} is missing")
    subprocess.run([*compiler, "-g", "-o", path, SOURCE, *(f for f in flags if f != "clang")], check=True)
    return os.path.abspath(path)


def plain(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def said(out):
    """What the program says: {name: [value of each call]}"""
    rows = [dict(re.findall(r"(\S+?)=(.*?)(?= [a-z]\S*=|$)", line)) for line in out.splitlines()]
    return {name: [row[name] for row in rows] for name in rows[0]}


def same(name, value, text):
    if value is None or text == "unreadable":
        return value is None and text == "unreadable"
    if isinstance(value, str):
        return value == text
    if isinstance(value, list):
        return value == [int(x) for x in text.split(",")]
    if name == "r->part":
        return single(value) == single(float(text))
    return value == (float(text) if "." in text else int(text))


def need_said(out, names, got=None):
    wanted, got = said(out), got or values()
    for name in names:
        tap.need(len(got.get(name, [])) == 4 and all(same(name, v, t) for v, t in zip(got[name], wanted[name])),
                 (name, got.get(name), wanted[name]))


def probes(place="work", names=NAMES):
    return [x for name in names for x in ("-p", f"{place} {name}")]


def at_entry(*flags):
    path = program(*flags)
    # of arguments that are passed on the stack clang says where they are once it has read them
    names = [n for n in NAMES if "clang" not in flags or "-O2" not in flags or n not in ("seventh", "eighth")]
    out, err = record(*probes(names=names), "-p", "work queue.text:string", "-p", "work text=text:string", "--", path)
    tap.need(out == plain(path) and " 0 lost" in err, err)
    need_said(out, [*names, "text"])
    tap.need(set(values()["queue.text"]) == {'queued "text"'}, "text")
    text = run("dump", "trace")[0]
    tap.need("r->bytes={1,2,255,3,0,0,0,0} " in text and "r->list->next->value=unreadable " in text, text[-2000:])
    tap.need("r->grid[1]={-3,-4,-5} " in text and "r->bytes={1,2,255,2,0,0,0,0}" in run("replay", "trace")[0], "arrays")
    listed = run("list", *probes(names=names), path)[0]
    for name, kind in ((n, t) for n, t in TYPES.items() if n in names):
        tap.need(re.search(re.escape(name) + "=.*:" + re.escape(kind) + "$", listed, re.M), (name, kind, listed))


def by_argument():
    """Members of what $arg1 points to; arrays by the probe's own type."""
    path = program("-O2")
    specs = ["id=$arg1->id", "raw=$arg1->headers.raw", "bytes=r->bytes:u8[4]", "whole=r->grid:s32[6]", "first=$arg1:s32[1]",
             "there=+36($arg1):x8[2]", "low=l:u32", "head=r->headers:u8[2]", "half=r->name:u8[12]"]
    out, _ = record(*[x for s in specs for x in ("-p", f"work {s}")], "--", path)
    got, wanted = values(), said(out)
    need_said(out, ["r->id"], {"r->id": got["id"]})
    need_said(out, ["r->headers.raw"], {"r->headers.raw": got["raw"]})
    tap.need(got["bytes"] == [[1, 2, 255, i] for i in range(4)], got["bytes"])
    tap.need(got["whole"] == [[k * (i - 1) for k in range(6)] for i in range(4)], got["whole"])
    tap.need(got["first"] == [[-i] for i in range(4)] and got["low"] == [0] * 4, got)
    tap.need([v[0] | v[1] << 8 for v in got["head"]] == [int(x) & 0xffff for x in wanted["r->headers.count"]], got["head"])
    tap.need(bytes(got["half"][2]).decode() == "twelve bytes", got["half"])


def line_of(text):
    with open(SOURCE) as f:
        return next(i for i, line in enumerate(f, 1) if text in line)


def at_line(*flags):
    """At a line, locals too; the value is the program's, or there is none and a sentence says why."""
    path = program(*flags)
    names = [*NAMES, "local", "d"]
    place = f"variables.c:{line_of('counter=%d hidden')}"
    out, err = record(*probes(place, names), "--", path)
    got = values()
    missing = [n for n in names if n not in got]
    tap.need(out == plain(path) and ("-O0" not in flags or not missing), (missing, err))
    tap.need(all(re.search(f": {re.escape(n)} (is|has) ", err) for n in missing), (missing, err))
    tap.need({"n", "local", "counter", "calls"} <= set(got), missing)
    tap.need(got.get("d", [1.5] * 4) == [1.5] * 4, got.get("d"))
    need_said(out, [n for n in names if n in got and n != "d"])


def gdb_says(path, place, names):
    script = ["set confirm off", "set width 0", "set max-value-size unlimited", f"break {place}", "run"]
    for _ in range(4):
        script += [f"printf \"{n} %ld\\n\", (long)({n})" for n in names] + ["continue"]
    args = [x for line in script for x in ("-ex", line)]
    r = subprocess.run(["gdb", "-q", "-batch", "-nx", *args, path], capture_output=True, text=True, timeout=120,
                       stdin=subprocess.DEVNULL)
    got = {n: [] for n in names}
    for name, value in re.findall(r"^(\S+) (-?\d+)$", r.stdout, re.M):
        if name in got:
            got[name].append(int(value))
    return got


def as_gdb(*flags):
    if not shutil.which("gdb"):
        raise tap.Skip("gdb is missing")
    path = program(*flags)
    start = int(subprocess.run(["nm", path], capture_output=True, text=True).stdout.split(" T work")[0].split()[-1], 16)
    asm = subprocess.run(["objdump", "-d", "--disassemble=work", "--insn-width=16", path], capture_output=True, text=True).stdout
    at = [int(a, 16) - start for a in re.findall(r"^ +([0-9a-f]+):\t", asm, re.M)]
    names = ["n", "l", "local", "calls", "cells"]
    tap.need(len(at) > 100, "code")
    compared = 0
    for offset in at[10:-8:len(at) // 8]:
        record(*probes(f"work+{offset}", ["n", "l", "calls", "local", "r->id"]), "--", path)
        theirs = gdb_says(path, f"*(char*)work+{offset}", ["n", "l", "calls", "local", "r->id"])
        for name, ours in values().items():
            if len(theirs[name]) == 4 and len(ours) == 4:
                first = name == "local"  # before it is set the stack holds anything
                tap.need(ours[first:] == theirs[name][first:], (flags, offset, name, ours, theirs[name]))
                compared += 1
    tap.need(compared >= 10, (compared, names))


LIBRARY = """
int shared = 11; struct { int a; const char *s; } state = {1, "lib"}; static long hidden = 1000; int unused = 5;
__attribute__((visibility("hidden"))) int inner = 70; __thread int local_one = 3;
int call(int n) { shared += n; state.a++; hidden++; inner++; local_one++; return shared; }
"""
USER = """
#include <stdio.h>
extern int shared, unused; extern struct { int a; const char *s; } state; int call(int n);
int main(void) { for (int i = 0; i < 3; i++) { shared *= 2; unused++; printf("%d %d\\n", shared, state.a); call(i); } return 0; }
"""


def library(*flags):
    """A library's variable may be the program's (a copy relocation): what the library's own code reads counts."""
    for name, text in (("lib.c", LIBRARY), ("user.c", USER)):
        with open(name, "w") as f:
            f.write(text)
    subprocess.run([*tap.CC, "-g", "-O1", "-shared", "-fPIC", "-o", "libvars.so", "lib.c"], check=True)
    subprocess.run([*tap.CC, "-g", "-O1", *flags, "-o", "user", "user.c", "-L.", "-lvars", "-Wl,-rpath," + os.getcwd()], check=True)
    names = ["shared", "state.a", "state.s:string", "hidden", "inner", "n", "unused", "local_one"]
    out, err = record(*probes("libvars:call", names), "--", "./user")
    got = values()
    pairs = [tuple(map(int, line.split())) for line in out.splitlines()]
    tap.need(got["shared"] == [p[0] for p in pairs] and got["state.a"] == [p[1] for p in pairs], (got, out))
    tap.need(got["state.s"] == ["lib"] * 3 and got["n"] == [0, 1, 2], got)
    tap.need(got["hidden"] == [1000, 1001, 1002] and got["inner"] == [70, 71, 72], got)
    tap.need("unused may be in another module" in err and "local_one is of each thread" in err and len(got) == 6, err)


CLASSES = """
#include <stdio.h>
namespace space { int count = 40; static short shift = -2; }
struct Base { virtual ~Base() {} int base = 7; };
class Derived : public Base { public: int own = 9; static long made; int &link; Derived(int &x) : link(x) {}
	__attribute__((noinline, noipa)) int work(const int &by, int n) { printf("%d %d %d %d\\n", base, own, link, by); own += n; return own; } };
long Derived::made = 4;
int main() { int x = 5; Derived d(x); for (int i = 0; i < 3; i++) { x += i; d.work(i * 3, i); space::count++; Derived::made++; space::shift--; } return space::shift; }
"""


def classes(flag):
    if not shutil.which("g++"):
        raise tap.Skip("g++ is missing")
    with open("classes.cc", "w") as f:
        f.write(CLASSES)
    subprocess.run(["g++", "-g", flag, "-o", "classes", "classes.cc"], check=True)
    r = subprocess.run(["./classes"], capture_output=True, text=True)
    names = ["this->base", "this->own", "this->link", "by", "n", "space::count", "@count", "space::shift:s16",
             "Derived::made"]
    shutil.rmtree("trace", ignore_errors=True)
    run("record", "-o", "trace", *probes("Derived::work", names), "--", "./classes", status=r.returncode)
    got, rows = values(), [list(map(int, line.split())) for line in r.stdout.splitlines()]
    tap.need([got["this->base"], got["this->own"], got["this->link"], got["by"]] == [list(c) for c in zip(*rows)], (got, rows))
    tap.need(got["n"] == [0, 1, 2] and got["space::count"] == got["@count"] == [40, 41, 42], got)
    tap.need(got["space::shift"] == [-2, -3, -4] and got["Derived::made"] == [4, 5, 6], got)


NAMED = """
#include <stdio.h>
static const int K = 200; static const unsigned M = 40000; static const long N = 3000000000; int n = 1000, width = 9000, total = 1;
volatile int sink; char names[3][4] = {"ab", "cd", "ef"}; struct hidden; struct hidden *make(void); extern int outside; int limit(void);
__attribute__((noinline, noipa)) int use(int q, struct hidden *h) { sink = M + N; return q + K; }
static inline __attribute__((always_inline)) int twice(int v) {
	sink = v; /* copy */
	return v * n; }
__attribute__((noinline, noipa)) int caller(int n) {
	sink = n;
	return twice(n + 1) + n; }
int nest(int n) { int total = n * 2;
	int inner(int width) {
		sink = width; /* nested */
		return width + n + total; }
	return inner(n + 1); }
__attribute__((noinline, noipa)) int late(int n) {
	int x = 4;
	if (n) {
		sink = x; /* outer */
		int x = n * 9;
		sink = x; }
	return x; }
int main(void) { return (use(1, make()) + caller(2) + nest(1) + late(1) + outside + limit()) < 0; }
"""
OTHERS = ["struct hidden { long pad; int b; }; static struct hidden y; void *make(void) { return &y; }\n"
          "static const int LIM = 3; static int outside = 7; int limit(void) { return LIM + outside; } int more(void);\n"
          "int limits(void) { return limit() + more(); }",
          "struct hidden { int b; }; static struct hidden y; static const int LIM = 9;\n"
          "int more(void) { return y.b + LIM; }"]


def refuses(path, cases):
    for place, name, words in cases:
        _, err = run("record", "-o", "trace", "-p", f"{place} {name}", "--", path, status=125)
        tap.need(words in err, (place, name, err))


def shows(path, cases, status=0):
    for place, name, value in cases:
        shutil.rmtree("trace", ignore_errors=True)
        run("record", "-o", "trace", "-p", f"{place} {name}", "--", path, status=status)
        tap.need(values() == {name: [value]}, (place, name, values()))


def named(flag):
    """A name that the unit, the function or an inlined copy means as another one would not."""
    for path, text in (("named.c", NAMED), ("one.c", OTHERS[0]), ("two.c", OTHERS[1]), ("out.c", "int outside = 5;")):
        with open(path, "w") as f:
            f.write(text)
    subprocess.run([*tap.CC, "-g0", "-shared", "-fPIC", "-o", "libout.so", "out.c"], check=True)
    subprocess.run([*tap.CC, "-g", flag, "-o", "named", "named.c", "one.c", "two.c", "-L.", "-lout", "-Wl,-rpath," + os.getcwd()],
                   check=True)
    at = {w: f"named.c:{1 + NAMED[:NAMED.index('/* ' + w)].count(chr(10))}" for w in ("copy", "nested", "outer")}
    shows("./named", [("use", "K", 200), ("use", "M", 40000), ("use", "N", 3000000000), (at["copy"], "n", 1000)])
    if flag == "-O0":
        shows("./named", [(at["nested"], "width", 2), (at["outer"], "x", 4)])
        refuses("./named", [(at["nested"], "total", "function around")])
    refuses("./named", [("use", "names", "one of its rows"), ("use", "h->b", "there are several"), ("use", "LIM", "2 variables"),
                        ("use", "outside", "defined by another module")])


SCOPES = """
#include <stdio.h>
int limit = 80; static int counter = 11; int z = 500;
namespace other { int level = 77; int limit = 8; __attribute__((noinline, noipa)) int in(int n) { return n + limit; } }
int level = 5;
struct B { int x; int y; }; struct D : B { int x; };
struct Acc { int counter = 0; __attribute__((noinline, noipa)) void add(int k) { counter += k; } };
__attribute__((noinline, noipa)) int use(D *d) { return d->x + level + limit + other::level + counter; }
int main() { D d; d.B::x = 1; d.y = 2; d.x = 3; Acc a; a.add(5); use(&d); other::in(1);
	auto l = [](int z) {
		printf("%d\\n", z); /* lambda */
		return z; };
	return l(6) - 6; }
"""


def scopes():
    if not shutil.which("g++"):
        raise tap.Skip("g++ is missing")
    with open("scopes.cc", "w") as f:
        f.write(SCOPES)
    subprocess.run(["g++", "-g", "-O0", "-o", "scopes", "scopes.cc"], check=True)
    line = 1 + SCOPES[:SCOPES.index("/* lambda")].count("\n")
    shows("./scopes", [("use", "d->x", 3), ("use", "d->y", 2), ("use", "level", 5), ("use", "limit", 80), ("use", "other::level", 77),
                       ("/other::in/", "limit", 8), ("Acc::add", "@counter", 11), ("Acc::add", "this->counter", 0),
                       (f"scopes.cc:{line}", "z", 6)])
    refuses("./scopes", [("Acc::add", "counter", "is a member")])


def on_disk():
    path = program("-O2")
    run("patch", *probes(), "-o", "patched", path)
    tap.need(plain("./patched") == plain(path), "asleep")
    out, _ = record("--", os.path.abspath("patched"))
    tap.need(out == plain(path), "awake")
    need_said(out, NAMES)


def attached():
    path = program("-O2")
    p = subprocess.Popen([path, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    k = subprocess.Popen([tap.KRON, "record", "-o", "trace", "--pid", str(p.pid), *probes()], stderr=subprocess.PIPE, text=True)
    try:
        line = k.stderr.readline()
        tap.need(str(p.pid) in line, line)
        out = p.communicate("x\n", timeout=60)[0]
        tap.need(k.wait(60) == 0 and out == plain(path), k.stderr.read())
    finally:
        for child in (p, k):
            child.kill()
            child.wait()
        k.stderr.close()
    need_said(out, NAMES)


def separate():
    """In a debug file, by debug link; and without any."""
    path = program("-O2")
    wanted = plain(path)
    subprocess.run(["objcopy", "--only-keep-debug", path, "variables.debug"], check=True)
    subprocess.run(["strip", path], check=True)
    subprocess.run(["objcopy", "--add-gnu-debuglink=variables.debug", path], check=True)
    out, _ = record(*probes(), "--", path)
    need_said(out, NAMES)
    os.remove("variables.debug")
    program("-O2", "-g0")
    _, err = run("record", "-o", "t", "-p", "work n", "--", path, status=125)
    tap.need("no debug information" in err and plain(path) == wanted, err)


def conditions():
    path = program("-O2")
    out, _ = record("-p", "a=work r->headers.count if data < -301", "-p", "b=work queue.len:s32 if data >= 5",
                    "-p", "c=work c if data < 0", "-p", "e=work r->headers.first if data & 0xf == 5", "--", path)
    got = {}
    for e in events():
        got.setdefault(e["name"], []).append(e["value"])
    wanted = said(out)
    tap.need(got["a"] == [-302, -303] and got["b"] == [5, 6], got)
    tap.need(got["c"] == [int(x) for x in wanted["c"] if int(x) < 0], got)
    tap.need(got["e"] == [int(x) for x in wanted["r->headers.first"] if int(x) & 15 == 5], got)


def one_type():
    """An event's values are of one type: which has another is refused, and shown as no other."""
    path = program("-O0")
    _, err = record("-v", "-p", "e=work x=n", "-p", "e=work x=ratio", "-p", "e=main y=counter", "--", path)
    tap.need("has another type there" in err and [e["value"] for e in events()] == [5, -5, 5, 15, 25], (err, events()))


def exports():
    path = program("-O2")
    record("-p", "work bytes=r->bytes", "--", path)
    run("export", "--format", "chrome", "-o", "t.json", "trace")
    with open("t.json") as f:
        args = [e["args"]["bytes"] for e in json.load(f)["traceEvents"] if e["ph"] == "i" and "bytes" in e["args"]]
    tap.need(args == ["{1,2,255,%d,0,0,0,0}" % i for i in range(4)], args)
    run("export", "--format", "sqlite", "-o", "t.db", "trace")
    with sqlite3.connect("t.db") as db:
        rows = [r[0] for r in db.execute("SELECT data FROM events WHERE name = 'work'")]
    tap.need(sorted(rows) == sorted(args), rows)


def refused():
    path = program("-O0")
    for spec, words in [("n=r->", "a name is needed"), ("n=r->id+", "after a name"), ("n=r[x]", "a number of 31 bits"),
                        ("n=$arg1:u8[65]", "64 bytes at most"), ("n=$arg1:u8[0]", "no such type"), ("n=%rdi->a", "register"),
                        ("n=$sp.a", "nobody knows"), ("resource n=r->id", "no value from memory"),
                        ("a=r->bytes:u8[8] if data == 1", "not compared"), ("n=n if queue.len == 1", "compare data")]:
        _, err = run("record", "-o", "trace", "-p", f"work {spec}", "--", path, status=125)
        tap.need(words in err, (spec, err))
    cases = [("r->flag", "is a bit-field"), ("r->big", "160 bytes"), ("r->nope", "has no member nope in struct request"),
             ("nope", "is not a variable"), ("local", "it is a local variable"), ("queue", "is a struct"),
             ("r.id", "write ->id"), ("queue->len", "write .len"), ("r->big[40]", "[40] of 40 elements"), ("n:u64", "has 4 bytes"),
             ("r->nodes", "name one of its elements"), ("n->x", "is not a pointer"), ("n:string", "so it is not a string"),
             ("d", "not yet in its place"), ("$arg2->x", "is not a pointer"), ("r->list->next->next->next->next", "4 steps"),
             ("r->bytes:u8[9]", "has 8 bytes"), ("r->full:u32", "is an array"), ("r->headers.first if data > 300", "never holds"),
             ("r->headers.first if data > -1", "always holds"), ("r->headers.first if data < 256", "always holds"), ("n if data == 18446744073709551615", "never holds"),
             ("n if data < 18446744073709551615", "always holds"), ("l if data & -1 < 0", "with this mask the comparison never holds")]
    cases += [("n:float", "is an integer of 4 bytes, and the probe says float"), ("l:double", "is an integer of 8 bytes"),
              ("ratio:float", "is a double of 8 bytes"), ("r->part:double", "is a float of 4 bytes"), ("r->list:double", "is a pointer of 8 bytes")]
    for spec, words in cases:
        _, err = run("record", "-o", "trace", "-p", f"work v={spec}", "--", path, status=125)
        tap.need(words in err, (spec, err))
    tap.compile_text("long", "struct s { long double ld; };\n__attribute__((noipa)) long use(struct s *p) { return (long)p->ld; }\n"
                     "int main(void) { struct s s = {3.5L}; return (int)use(&s) - 3; }\n", "-g")
    _, err = run("record", "-o", "trace", "-p", "use p->ld:double", "--", "./long", status=125)
    tap.need("is a number of 16 bytes, and the probe says double" in err, err)
    _, err = run("patch", "-p", "work nope", "-o", "patched", path, status=1)
    tap.need("is not a variable" in err, err)


with tap.Suite("variables") as s:
    s.case("at a function's entry, not optimised", at_entry, "-O0")
    s.case("... optimised", at_entry, "-O2")
    s.case("... not position independent", at_entry, "-O2", "-no-pie")
    s.case("... static", at_entry, "-O1", "-static")
    s.case("... DWARF 4", at_entry, "-O2", "-gdwarf-4")
    s.case("... by clang", at_entry, "-O0", "clang")
    s.case("... by clang, optimised", at_entry, "-O2", "clang")
    s.case("members of arguments, and arrays", by_argument)
    s.case("at a line, not optimised", at_line, "-O0")
    s.case("... optimised", at_line, "-O2")
    s.case("... by clang", at_line, "-O0", "clang")
    s.case("... by clang, optimised", at_line, "-O2", "clang")
    s.case("as gdb has them, not optimised", as_gdb, "-O0")
    s.case("... optimised", as_gdb, "-O2")
    s.case("a library's, which the program has a copy of", library, "-no-pie", "-fno-pie")
    s.case("... and has none of", library, "-fPIE", "-pie")
    s.case("classes", classes, "-O0")
    s.case("... optimised", classes, "-O2")
    s.case("what a name means, not optimised", named, "-O0")
    s.case("... optimised", named, "-O2")
    s.case("... in C++", scopes)
    s.case("in a file from kron patch", on_disk)
    s.case("in a process that is attached to", attached)
    s.case("a debug file, and none", separate)
    s.case("conditions", conditions)
    s.case("an event has one type", one_type)
    s.case("exports", exports)
    s.case("what cannot be is refused", refused)
