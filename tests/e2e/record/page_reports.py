#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron pages: lines, steps over time, nodes and migration, against what a program's assembly says."""
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

M = 0x300000000000
ALL_CPUS_ARE_NODE_1 = {"KRON_TEST_NODES": "4095/0-4094"}
A_CPU_EACH = {"KRON_TEST_NODES": "0/1-4095"}


def kron(*args, env=None, status=0):
    r = subprocess.run([tap.KRON, *args], capture_output=True, text=True, timeout=300,
                       env={**os.environ, **(env or {})})
    tap.need(status is None or r.returncode == status, f"{args}: exit {r.returncode}\n{r.stderr}")
    return r


def pages(*args, env=None):
    kron("pages", "--json", "-o", "rows", "-L", "program", *args, env=env)
    with open("rows") as f:
        return json.load(f)


def build():
    tap.compile_c("program", "bins/pages_report.c")


def need_two_cpus():
    if not {0, 1} <= os.sched_getaffinity(0):
        raise tap.Skip("processors 0 and 1 are needed")


def ours(row, size=4096):
    """Number of the page or line in the program's memory; None: it is elsewhere."""
    n = int(row["address"], 16) - M
    return n // size if 0 <= n < 80 * 4096 else None


def steps():
    """what each step touched: phases in their order, sums to the last reference"""
    build()
    want = {**{i: (105, 10) for i in range(16)}, **{i: (7, 1000) for i in range(16, 48)}}
    rows = pages("--every", "10ms", "--", "./program", "phases", "150")
    got, looks = {}, {}
    for k, step in enumerate(rows):
        tap.need(step["to_ns"] > step["from_ns"] and (not k or step["from_ns"] == rows[k - 1]["to_ns"]), step)
        tap.need(step["touched"] == len(step["pages"]) >= step["written"], step)
        tap.need(step["reads"] == sum(p["reads"] for p in step["pages"]), step)
        tap.need(step["writes"] == sum(p["writes"] for p in step["pages"]), step)
        new = 0
        for p in step["pages"]:
            new += p["address"] not in looks
            looks.setdefault(p["address"], []).append((k, p))
            if ours(p) is not None:
                r, w = got.get(ours(p), (0, 0))
                got[ours(p)] = (r + p["reads"], w + p["writes"])
        tap.need(step["new"] == new, (step["new"], new))
    tap.need(got == want, got)
    second = min(v[0][0] for v in looks.values() if ours(v[0][1]) in range(16, 48))
    for v in looks.values():
        if ours(v[0][1]) in range(16):
            tap.need(sum(p["writes"] for k, p in v if k <= second) == 10, (second, v))
            tap.need(v[-1][0] >= second, v)
    text = kron("pages", "--every", "10ms", "-L", "program", "--", "./program", "phases", "50").stdout
    tap.need("Working set over time" in text and "References by address and time" in text, text)


LINES = {0: (0, 32), 1: (0, 64), 2: (0, 4), 7: (2, 0), 8: (8, 0), 15: (0, 2), 16: (0, 8), 20: (9, 0), 21: (9, 0),
         50: (5, 0), 51: (0, 5), **{i: (0, 1) for i in range(32, 40)}}


def lines():
    """64 bytes each: strings, what lies across two, what is as long as eight; variables by their names"""
    need_two_cpus()
    build()
    rows = pages("--lines", "--", "./program", "lines")
    tap.need(all(r["size"] == 64 and int(r["address"], 16) % 64 == 0 for r in rows), rows)
    got = {ours(r, 64): (r["reads"], r["writes"]) for r in rows if ours(r, 64) is not None}
    tap.need(got == LINES, got)
    named = sorted((r["variables"], r["reads"], r["writes"]) for r in rows
                   if {"together", "apart"} & set(r["variables"]))
    tap.need(named == [(["apart"], 30, 2000), (["apart"], 60, 5000), (["together"], 3500, 5000)], named)
    shared = [r for r in pages("--lines", "--sharing", "--", "./program", "lines")
              if {"together", "apart"} & set(r["variables"])]
    tap.need(len(shared) == 1 and shared[0]["variables"] == ["together"], shared)
    by = sorted((t["reads"], t["writes"]) for t in shared[0]["threads"])
    tap.need(by == [(500, 4000), (3000, 1000)], by)
    text = kron("pages", "--lines", "--sharing", "-L", "program", "--", "./program", "lines").stdout
    tap.need("Lines that several threads write" in text and ": together\n" in text and "apart" not in text, text)


NODES = {**{i: {0: (300, 100)} for i in range(8)}, **{i: {0: (10, 0), 1: (5000, 2000)} for i in range(8, 16)},
         **{i: {1: (50, 50)} for i in range(16, 20)}}


def nodes():
    """from which node each reference came, of threads that are bound to one"""
    need_two_cpus()
    build()
    got = {}
    for r in pages("--", "./program", "nodes", "0", env=A_CPU_EACH):
        if ours(r) is not None:
            got.setdefault(ours(r), {})[r["node"]] = (r["reads"], r["writes"])
    tap.need(got == NODES, got)
    for r in pages("--width", "11", "--", "./program", "nodes", "0", env=A_CPU_EACH):
        n = r["reads"] + r["writes"]
        tap.need((r["counter"], r["extended"]) == (n % 2047, n - n % 2047), r)
    for bad in ("x", "0/", "0//1", "/"):
        r = kron("pages", "--", "true", env={"KRON_TEST_NODES": bad}, status=125)
        tap.need("KRON_TEST_NODES" in r.stderr, r)


def placement():
    """homes, advice, and a rehearsal of what --migrate would move: no page moves"""
    need_two_cpus()
    build()
    for ms in (100, 1000, 5000):  # until somebody has looked while the threads were there
        r = kron("pages", "--migrate", "1000,500", "-L", "program", "--", "./program", "nodes", str(ms),
                 env=A_CPU_EACH)
        moves = [x.split() for x in r.stdout.splitlines() if "would move" in x]
        if moves and "mbind 0x3" in r.stdout:
            break
    got = sorted(int(m[3].rstrip(":"), 16) if m[3].startswith("0x") else 0 for m in moves)
    tap.need(got == [M + i * 4096 for i in range(8, 16)], r.stdout)
    tap.need(all("from node 0 to node 1" in " ".join(m) for m in moves), moves)
    tap.need(all(7000 - 10 <= int(m[m.index("references") - 1]) <= 7000 for m in moves), moves)
    tap.need(f"mbind {M + 8 * 4096:#x}, 49152 bytes, at home on node 0: MPOL_BIND, node 1" in r.stdout, r.stdout)
    tap.need(f"mbind {M:#x}," not in r.stdout, r.stdout)
    kron("pages", "-q", "--migrate", "1000,500", "-L", "program", "-o", "kept/", "--", "./program", "nodes", str(ms), env=A_CPU_EACH)
    tap.need(kron("pages", "--from", "kept").stdout.count("would move") == 8, "not of a trace that was kept")
    homes = {ours(x): x["home"] for x in pages("--", "./program", "nodes", str(ms), env=A_CPU_EACH)}
    tap.need(all(homes[i] == 0 for i in range(20)), homes)
    r = kron("pages", "--migrate", "1000,10000000", "-L", "program", "--", "./program", "nodes", str(ms),
             env=A_CPU_EACH)
    tap.need("would move" not in r.stdout and "no page came to the thresholds" in r.stdout, r.stdout)


def one_user():
    """a process of one node: numactl, in one line"""
    build()
    for ms in (100, 1000, 5000):
        r = kron("pages", "-L", "program", "--", "./program", "phases", str(ms), env=ALL_CPUS_ARE_NODE_1)
        if "numactl" in r.stdout:
            break
    tap.need(r.stdout.count("numactl --cpunodebind=1 --membind=1") == 1 and "mbind 0x" not in r.stdout, r.stdout)


def from_record():
    """what kron record has counted with probes of the kinds pages and lines"""
    build()
    kron("record", "-o", "trace", "-p", "program:*%accesses lines", "--", "./program", "phases", "0")
    kron("pages", "--json", "-o", "rows", "--from", "trace")
    with open("rows") as f:
        rows = {ours(r, 64): (r["reads"], r["writes"]) for r in json.load(f)}
    tap.need(rows[0] == (105, 10) and rows[16 * 64] == (7, 1000), rows)
    r = kron("record", "-o", "both", "-p", "program:*%accesses lines", "-p", "program:*%accesses pages", "--",
             "./program", status=125)
    tap.need("pages and lines" in r.stderr, r)
    r = kron("pages", "--from", "nosuch", status=125)
    tap.need("nosuch" in r.stderr, r)


def database(*traces):
    r = kron("export", "-q", "-f", "sqlite", "-o", "db", *traces)
    tap.need(not r.stderr, r.stderr)  # not that the pages are elsewhere
    db = sqlite3.connect("db")
    tap.need(db.execute("PRAGMA integrity_check").fetchall() == [("ok",)] and not db.execute("PRAGMA foreign_key_check").fetchall(), "damaged")
    return db


def tables(traces):
    """of a database, as sqlite3 reads them: pages, and the sum of their steps"""
    db = database(*traces)
    pages = {(pid, int(address, 16)): rest for pid, address, *rest in
             db.execute("SELECT pid, address, mapping, reads, writes, threads, writers FROM pages")}
    steps = {(pid, int(address, 16)): rest for pid, address, *rest in
             db.execute("SELECT pid, address, sum(reads), sum(writes) FROM page_steps GROUP BY pid, address")}
    looks = db.execute("SELECT start_ns, stop_ns FROM page_steps GROUP BY look_id ORDER BY look_id").fetchall()
    db.close()
    return pages, steps, looks


def kept():
    """-o DIR/ keeps the counts: reports of them, and tables of a database"""
    build()
    r = kron("pages", "--every", "10ms", "-L", "program", "-o", "kept/", "--", "./program", "phases", "50")
    tap.need(not r.stdout and "kron pages --from kept/" in r.stderr, r)
    text = kron("pages", "--from", "kept").stdout
    tap.need("Working set over time" in text and "Ranges" in text, text)
    kron("pages", "--json", "-o", "rows", "--from", "kept")
    with open("rows") as f:
        rows = {(r["pid"], int(r["address"], 16)): r for r in json.load(f)}
    pages, steps, looks = tables(["kept"])
    tap.need({k: [r["mapping"] or "(anonymous memory)", r["reads"], r["writes"]] for k, r in rows.items()} == {k: v[:3] for k, v in pages.items()}, pages)
    tap.need({k: v[1:3] for k, v in pages.items()} == steps, steps)
    tap.need(all(v[3:] == [1, int(v[2] > 0)] for v in pages.values()), pages)
    tap.need(all(a < b for a, b in looks) and all(x[1] <= y[0] for x, y in zip(looks, looks[1:])), looks)
    mine = {(k[1] - M) // 4096: v[1:3] for k, v in pages.items() if 0 <= k[1] - M < 80 * 4096}
    tap.need(mine == {**{i: [105, 10] for i in range(16)}, **{i: [7, 1000] for i in range(16, 48)}}, mine)
    # of two nodes in one: each has processes and steps of its own
    for n in "1", "2":
        kron("record", "-q", "-o", f"node{n}", "--node", n, "-p", "program:*%accesses pages", "--", "./program", "phases", "0")
    both, _, _ = tables(["node1", "node2"])
    one, _, _ = tables(["node1"])
    tap.need(len({k[0] for k in both}) == 2 and one.items() <= both.items(), (one, both))
    for args in (["--json"], ["-n", "3"], ["--sharing"], ["--width", "11"]):
        r = kron("pages", *args, "-o", "kept/", "--", "./program", status=125)
        tap.need(r.stderr.count("\n") == 1 and "--from DIR" in r.stderr, r.stderr)
    r = kron("pages", "--from", "kept", "-o", "kept/", status=125)
    tap.need(r.stderr.count("\n") == 1, r.stderr)


LIBRARY = """
#define SIZE 65536
static volatile char data[SIZE];
__attribute__((noinline)) void writes(int n) { for (int i = 0; i < n; i++) data[SIZE / 2] = (char)i; }
"""
ONE_AFTER_ANOTHER = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        void *h = dlopen(argv[i], RTLD_NOW);
        void (*writes)(int) = (void (*)(int))dlsym(h, "writes");
        writes(atoi(argv[i + 1]));
        dlclose(h);
    }
    return 0;
}
"""


def of_written_page(rows, n):
    (row,) = [r for r in rows if r["writes"] == n and not r["reads"]]
    return row


def one_address():
    """A library that comes where another one was: what was counted there is of both, and is said to be."""
    tap.compile_text("user", ONE_AFTER_ANOTHER)
    for name in "first", "second":
        # a file of its own for the data, not memory that has no name
        tap.compile_text(f"{name}.so", LIBRARY.replace("data[SIZE]", "data[SIZE] = {1}"), "-shared", "-fPIC")
    alone = of_written_page(pages("-L", "first.so", "--", "./user", "./first.so", "3000"), 3000)
    tap.need(alone["mapping"].endswith("first.so") and alone["variables"] and "mixed" not in alone, alone)
    argv = ["./user", "./first.so", "3000", "./second.so", "500"]
    both = of_written_page(pages("-L", "first.so", "-L", "second.so", "--", *argv), 3500)
    tap.need(both["mixed"] and not both["variables"], both)
    kron("pages", "-q", "-o", "kept/", "-L", "first.so", "-L", "second.so", "--", *argv)
    with contextlib.closing(database("kept")) as db:
        mixed = {int(a, 16): m for a, m in db.execute("SELECT address, mixed FROM pages")}
    marked = {int(r["address"], 16) for r in json.loads(kron("pages", "--from", "kept", "--json").stdout) if "mixed" in r}
    tap.need(marked and marked == {a for a, m in mixed.items() if m} and set(mixed.values()) <= {0, 1}, mixed)
    text = kron("pages", "-L", "first.so", "-L", "second.so", "--", *argv).stdout
    tap.need("second.so ~" in text and "\n~: other mappings" in text, text)


def damaged():
    """counts of which a part is missing, or not what was written, are not shown as if they were all"""
    build()
    kron("pages", "-q", "-L", "program", "-o", "whole/", "--", "./program", "phases", "0")
    tap.need(not kron("pages", "--from", "whole").stderr, "of a whole one")
    with open("whole/pages", "rb") as f:
        whole = f.read()
    page = whole.index(b"\nP\t") + 1
    for name, text in (("cut", whole[:len(whole) // 2]), ("short", whole[:whole.rindex(b"\n", 0, -1) + 1]), ("empty", b""),
                       ("changed", whole[:page] + whole[page:].replace(b"\t105\t", b"\t107\t", 1))):
        tap.need(text != whole, name)
        with open("whole/pages", "wb") as f:
            f.write(text)
        for args in (["pages", "--from", "whole"], ["export", "-f", "sqlite", "-o", "db", "whole"], ["view", "-o", "x.html", "whole"], ["info", "whole"]):
            if os.path.exists("db"):
                os.unlink("db")
            r = kron(*args, status=None)
            tap.need("counts of pages are damaged" in r.stderr and "no function" not in r.stderr, (name, args, r.stderr))
    os.unlink("whole/pages")
    r = kron("pages", "--from", "whole", status=125)
    tap.need("whole has no counts of pages" in r.stderr, r.stderr)


def killed():
    """a recorder that is killed: its counts are lost, which is said, and its trace is not hundreds of hours long"""
    build()
    with subprocess.Popen([tap.KRON, "pages", "-q", "--every", "10ms", "-L", "program", "-o", "t/", "--", "./program", "phases", "1000"],
                          stderr=subprocess.DEVNULL) as p:
        time.sleep(1)
        p.kill()
    r = kron("pages", "--from", "t", status=125)
    tap.need("t is not complete" in r.stderr and "t has no counts of pages" in r.stderr, r.stderr)
    kron("recover", "t")
    r = kron("pages", "--from", "t", status=125)
    tap.need("t has no counts of pages" in r.stderr and r.stderr.count("\n") == 1, r.stderr)
    with open("t/session") as f:
        ends = dict(line.rstrip("\n").split("=", 1) for line in f)
    tap.need(0 <= int(ends["end_tsc"]) - int(ends["start_tsc"]) < 60 * int(ends["tsc_hz"]), ends)


def many_mappings():
    """60000 mappings, two pages in each: what is found of each page is right, and does not take minutes"""
    build()
    kron("pages", "-q", "-L", "program", "-o", "t/", "--", "./program", "phases", "0")
    with open("t/tasks") as f:
        uid, pid = next(line.split("\t")[1:3] for line in f if line.startswith("P\t"))
    for old in (False, True):  # those know the pid only
        with open("t/pages", "w") as f:
            f.write("U\t4096\t1\t0\t0\n")
            for i in range(60000):
                f.write(f"M\t{pid}\t{M + i * 0x3000:x}\t{M + i * 0x3000 + 0x2000:x}\t/x{i}\t0" + ("\n" if old else f"\t{uid}\n"))
            f.write(f"M\t{pid}\t{M - 0x1000:x}\t{M + 0x1000:x}\tlast\t0" + ("\n" if old else f"\t{uid}\n"))
            for i in range(120000):
                f.write(f"P\t{uid}\t{M + i // 2 * 0x3000 + i % 2 * 0x1000:x}\t1\t1\t{pid}\t0\n")
        for args in (["pages", "--from", "t", "-n", "3"], ["view", "-o", "x.html", "t"], ["export", "-f", "sqlite", "-o", "db", "t"]):
            if os.path.exists("db"):
                os.unlink("db")
            before = time.monotonic()
            kron(*args)
            tap.need(time.monotonic() - before < 15, args)
        with sqlite3.connect("db") as db:
            got = {int(a, 16): name for a, name in db.execute("SELECT address, mapping FROM pages")}
        want = {M + i // 2 * 0x3000 + i % 2 * 0x1000: f"/x{i // 2}" for i in range(120000)}
        tap.need(got == {**want, M: "last"}, "names")


def no_room():
    """a full disk: what is there of the counts is not shown as if it were all"""
    tap.need_root()
    build()
    with tap.small_disk("tiny", "16k"):
        r = kron("pages", "--every", "2ms", "-o", "tiny/t/", "--", "./program", "phases", "300", status=125)
        tap.need("No space left" in r.stderr, r.stderr)
        r = kron("pages", "--from", "tiny/t", status=None)
        tap.need("is not complete" in r.stderr and "damaged" in r.stderr, r.stderr)
        r = kron("view", "-o", "x.html", "tiny/t")
        tap.need("is not complete" in r.stderr, r.stderr)


def options():
    """what cannot be, in one sentence"""
    for args in (["--every", "1us"], ["--every", "x"], ["--migrate", "0"], ["--migrate", "1,"], ["--migrate", "-1"],
                 ["--width", "11", "--lines"], ["--by", "site", "--by", "function"], ["--from", "x", "--lines"], ["--json", "--every", "1s", "--sharing"],
                 ["--json", "--every", "1s", "--width", "64"], ["--json", "--every", "1s", "-n", "3"]):
        r = kron("pages", *args, "--", "true", status=125)
        tap.need(r.stderr.count("\n") == 1 and args[0] in r.stderr, (args, r.stderr))
    build()
    r = kron("pages", "--migrate", "5", "-L", "program", "--", "./program", "phases", "0")
    tap.need("a rehearsal" in r.stdout or os.path.exists("/sys/devices/system/node/node1"), r.stdout)


with tap.Suite("page_reports") as s:
    s.case("steps", steps)
    s.case("lines", lines)
    s.case("nodes", nodes)
    s.case("placement and migration", placement)
    s.case("one user", one_user)
    s.case("what kron record has counted", from_record)
    s.case("counts that are kept", kept)
    s.case("one library after another", one_address)
    s.case("counts that are damaged", damaged)
    s.case("a recorder that is killed", killed)
    s.case("many mappings", many_mappings)
    s.case("counts for which there was no room", no_room)
    s.case("options", options)
