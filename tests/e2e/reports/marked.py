#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""marked.py - what a trace does not say exactly is not reported as if it did.

Truth: the calls as the SQLite export has them, one by one; and what the program has stored."""
import json
import os
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

BUSY = """
#include <pthread.h>
#include <stdlib.h>
static volatile long sink;
__attribute__((noinline)) void leaf(long i) { sink = i; }
__attribute__((noinline)) void round_of(long n) { for (long i = 0; i < n; i++) leaf(i); }
int main(int argc, char **argv)
{
    for (int i = 0; i < 5; i++) round_of(atol(argv[1]));
    return argc == 0;
}
"""
VALUES = """
#include <math.h>
#include <stdlib.h>
double value;
__attribute__((noinline)) void stored(long i) { value += (double)i; __asm__ volatile("" ::: "memory"); }
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) { value = atof(argv[i]); stored(0); }
    return 0;
}
"""


def kron(*argv):
    r = subprocess.run([KRON, *argv], capture_output=True, text=True, timeout=120)
    need(r.returncode == 0, r)
    return r


def report(*argv):
    return json.loads(kron("report", "--json", *argv).stdout)


def across_losses():
    """Calls that span a loss are all that there is of a function: they are shown as they are."""
    compile_text("busy", BUSY, "-O1")
    for _ in range(20):  # until the collector was too slow
        kron("record", "-q", "-o", "t", "-b", "1M", "--when-full", "discard", "--", "./busy", "200000")
        rows = {f["function"]: f for f in report("t")}
        if rows["main"]["spans_loss"]:
            break
    need(rows["main"]["spans_loss"] == rows["main"]["calls"] == 1, rows)
    kron("export", "-q", "-f", "sqlite", "-o", "t.db", "t")
    db = sqlite3.connect("t.db")
    hz = json.loads(kron("info", "--json", "t").stdout)["tsc_hz"]
    for name in "main", "round_of", "leaf":
        calls = db.execute("select c.ticks, c.spans_loss from call c join node n using (trace_id, node_id) join function f using (trace_id, function_id) "
                           "where f.name = ?", (name,)).fetchall()
        ticks = [t for t, spans in calls if not spans] or [t for t, spans in calls]
        f = rows[name]
        need(f["spans_loss"] == sum(spans for _, spans in calls), f)
        for key, want in ("min_ns", min(ticks)), ("max_ns", max(ticks)), ("avg_ns", sum(ticks) / len(ticks)):
            need(abs(f[key] - want * 1e9 / hz) < 2 + want * 1e-6, f"{name}: {f}: {key} {want * 1e9 / hz}")
        need(f["min_ns"] <= f["p50_ns"] <= f["p99_ns"] <= f["max_ns"], f)
    db.close()


def estimates():
    """Times between two readings of the clock: they have their bounds, and nothing is significant."""
    compile_text("busy", BUSY, "-O1")
    kron("record", "-q", "-o", "full", "--", "./busy", "20000")
    kron("record", "-q", "-o", "sparse", "--clock", "every:64", "--", "./busy", "20000")
    for argv in ["report", "--virtual"], ["report", "--histogram"], ["diff", "full"]:
        r = kron(*argv, "sparse")
        need("64 samples share a reading" in r.stdout and not r.stderr, argv)
        need("share" not in kron(*argv, "full").stdout, argv)
    r = kron("diff", "--json", "full", "sparse")
    need(not r.stderr, r.stderr)
    need(all(f["p"] is None and not f["significant"] for f in json.loads(r.stdout)), r.stdout)
    many = [f for f in json.loads(r.stdout) if f["before"]["calls"] >= 5]
    need(many and all(f["untested"] == "rough" for f in many), r.stdout)
    need(all(f["untested"] == "few" for f in json.loads(r.stdout) if f not in many), r.stdout)
    text = kron("diff", "full", "sparse").stdout
    need(re.search(r" rough +leaf \[busy\]", text) and re.search(r" few +main \[busy\]", text), text)
    need(all(f["untested"] is None for f in json.loads(kron("diff", "--json", "full", "full").stdout) if f["p"] is not None), "tested")
    need(any(f["p"] is not None for f in json.loads(kron("diff", "--json", "full", "full").stdout)), "nothing is tested")


def not_a_number():
    """Lowest and highest are of the numbers, wherever what is none comes."""
    compile_text("values", VALUES, "-O1", "-g")
    for values in (["nan", "1", "5", "2"], ["1", "nan", "5", "2"], ["5", "2", "1", "nan"]):
        kron("record", "-q", "-o", "t", "-p", "e=stored v=value:double", "--", "./values", *values)
        (e,) = json.loads(kron("report", "--events", "--json", "t").stdout)
        need((e["lowest"], e["highest"], e["nan"], e["count"]) == (1, 5, 1, 4) and abs(e["average"] - 8 / 3) < 1e-9, e)


TYPES = """
long number;
double real;
__attribute__((noinline)) void stored(long i) { number = i; real = (double)i / 4; __asm__ volatile("" ::: "memory"); }
int main(void)
{
    for (long i = -100; i < 100; i++) { number = i; real = (double)i / 4; stored(i); }
    return 0;
}
"""


def by_type():
    """A condition on a value means the value: with its sign and its point, in readers and in what stops a recording."""
    compile_text("types", TYPES, "-O1", "-g")
    kron("record", "-q", "-o", "t", "-p", "s=stored v=$arg1:s32", "-p", "d=stored v=real:double", "-p", "u=stored v=$arg1:u64", "--", "./types")
    for condition, want in (
            ("s and data<0", 100), ("s and data>100", 0), ("s and data=-5", 1), ("s and data!=-5", 199), ("s and data>=-0.5", 100),
            ("d and data<1", 104), ("d and data>=24.75", 1), ("d and data=-0.25", 1), ("d and data>1e50", 0),
            ("u and data>100", 100), ("u and data<0", 0), ("u and data>-1", 200), ("s and data=0xffffffff", 1), ("s and data&1=1", 100)):
        rows = json.loads(kron("report", "--events", "--json", "--where", condition, "t").stdout)
        got = sum(r["count"] for r in rows)
        need(got == want, f"{condition}: {got}, not {want}")
    for wrong in "data=x", "data=1e", "data=nan", "data<", "data=--1":
        r = subprocess.run([KRON, "report", "--where", wrong, "t"], capture_output=True, text=True)
        need(r.returncode == 2 and "number" in r.stderr, f"{wrong}: {r}")
    kron("record", "-q", "-o", "stopped", "--trigger", "s and data>-50", "--post", "0", "-p", "s=stored v=$arg1:s32", "--", "./types")
    lowest = json.loads(kron("report", "--events", "--json", "stopped").stdout)[0]
    need(lowest["lowest"] == -100 and lowest["highest"] == -49, lowest)


def what_is_asked():
    """A profile of a trace that has events alone is empty, and not the list of events."""
    compile_text("values", VALUES, "-O1", "-g")
    kron("record", "-q", "-o", "t", "-p", "e=stored v=value:double", "-p", "o=main", "--", "./values", "1", "2")
    need("Lowest" in kron("report", "t").stdout, "no events")
    for option in "--totals", "--by-thread", "--by-cpu":
        need("Lowest" not in kron("report", option, "t").stdout, option)
    said = kron("report", "--events", "--where", "e", "t").stdout
    need("1  more that never happened where the filter lets them through" in said, said)
    need("never happened" not in kron("report", "--events", "t").stdout, "all happened")


def modules_of(*options):
    """[count, module, modules] of each event, and what else is said."""
    r = kron("report", "--events", "--json", *options, "t")
    return [(x["count"], x["module"] and os.path.basename(x["module"]), len(x.get("modules", []))) for x in json.loads(r.stdout)], r.stderr


def several_modules():
    """One event in two programs, and in two libraries: a process says which program it was, and nothing which library."""
    work = "__attribute__((noinline)) int work(int i) { return i * %d + 1; }"
    main = "int main(void) { volatile int t = 0; for (int i = 0; i < %d; i++) t += work(i); return 0; }"
    compile_text("one", work % 3 + main % 9)
    compile_text("two", work % 5 + main % 4)
    kron("record", "-q", "-o", "t", "-p", "W=work", "sh", "-c", "./one; ./two; ./one")
    need(modules_of() == ([(22, None, 2)], ""), modules_of())
    for options in ("module=one",), ("process=one",), ("not module=two",), ("module!=two",):
        need(modules_of("--where", *options) == ([(18, "one", 0)], ""), (options, modules_of("--where", *options)))
    need(modules_of("--where", "module=two or cpu=999") == ([(4, "two", 0)], ""), "two")
    rows = [line for line in kron("dump", "t").stdout.splitlines() if "event W" in line]
    need([row.endswith("[one]") for row in rows] == [True] * 9 + [False] * 4 + [True] * 9, rows)
    need("W [one and 1 more]" in kron("report", "t").stdout, kron("report", "t").stdout)
    for name, n in ("a", 3), ("b", 5):
        compile_text(f"{name}.so", work % n, "-shared", "-fPIC")
    compile_text("opens", """#include <dlfcn.h>
        int main(int argc, char **argv) { for (int i = 1; i < argc; i++)
            ((int (*)(int))dlsym(dlopen(argv[i], RTLD_NOW), "work"))(i); return 0; }""", "-ldl")
    kron("record", "-q", "-o", "t", "-p", "P=[ab].so:work", "./opens", "./a.so", "./b.so", "./a.so")
    need(modules_of() == ([(3, None, 2)], ""), modules_of())
    rows, said = modules_of("--where", "module=a.so")
    need(rows[0][0] == 0 and "'P' is of several modules" in said, (rows, said))
    need("event P [a.so and 1 more]" in kron("dump", "t").stdout, "dump")


REFUSED = """
__asm__(".text\\n.globl tiny\\n.type tiny,@function\\ntiny: ret\\n.size tiny,.-tiny\\n"
        ".globl tidy\\n.type tidy,@function\\ntidy: mov $1,%eax\\nret\\n.size tidy,.-tidy\\n");
int tiny(void), tidy(void);
__attribute__((noinline)) int never(int i) { return i * 3; }
int main(int argc, char **argv) { if (argc > 1) return never(argc); for (int i = 0; i < 7; i++) { tiny(); tidy(); } return 0; }
"""


def not_placed():
    """A probe that found no room, of a function that was called seven times: that it never happened would be wrong."""
    compile_text("refused", REFUSED)
    kron("record", "-q", "-o", "t", "-p", "tiny", "-p", "T=ti[nd]y", "-p", "never", "--", "./refused")
    said = kron("report", "--events", "t").stdout
    need("\ntiny could not be placed: no five bytes" in said, said)
    need("\nT: 1 of 2 places could not be had, the first: no five bytes" in said, said)
    need("1  more that never happened\n" in said, said)
    events = {x["event"]: x for x in json.loads(kron("report", "--events", "--json", "t").stdout)}
    need([(events[n]["count"], events[n].get("places"), events[n].get("refused_places")) for n in ("tiny", "T", "never")]
         == [(0, 1, 1), (7, 2, 1), (0, None, None)], events)
    need("no five bytes" in events["T"]["refused"], events)
    os.rename("t", "u")
    kron("record", "-q", "-o", "t", "-p", "tiny", "-p", "T=ti[nd]y", "--", "./refused")
    said = kron("report", "--events", "t", "u").stdout
    need(said.count("\nT: 1 of 2 places") == 1 and "  14 " in said, said)


def main():
    with Suite("marked") as s:
        s.case("calls across losses", across_losses)
        s.case("times that are estimates", estimates)
        s.case("values that are no numbers", not_a_number)
        s.case("conditions on values with a type", by_type)
        s.case("reports of events, and of no functions", what_is_asked)
        s.case("an event of several modules", several_modules)
        s.case("probes that found no room", not_placed)


if __name__ == "__main__":
    main()
