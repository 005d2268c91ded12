#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 3000
"""nesting.py - one nesting for all readers.

Programs that leave their functions in every way (tests/bins/nesting) count their own calls by caller
and callee.  report, replay, view, dump and every export have to say the same, function by function:
calls, callers, total and self time; and what the program says (truth.h).
"""

import base64
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../.."), os.path.join(HERE, "../exports")]
import tap  # noqa: E402
from tap import BUILD, KRON, SRC, need  # noqa: E402
import export_agree as agree  # noqa: E402

PROGRAMS = "bins/nesting/"
ALL_MEASURED = ("is_left", "goes_on")  # each of their calls
LIBC = ["-L", "libc.so*", "-F", "*"]


def run(*argv):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    need(r.returncode == 0, f"{' '.join(argv)}: {r.returncode} {r.stderr.decode()}")
    return r.stdout.decode(errors="surrogateescape")


def kron_json(*argv):
    return json.loads(run(KRON, *argv))


# ---- readers of our own outputs ----

UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


def of_replay(trace):
    """Each call's line of its begin and its end, by thread and stack."""
    found = agree.Found()
    found.edges, stacks = {}, {}
    left = re.compile(r"^ *(?:([\d.]+) +(us|ms|s|m|h))? \[ *([\d/]+)\] \| +(.*)$")
    for line in run(KRON, "replay", "--no-merge", trace).splitlines()[1:]:
        m = left.match(line)
        if "samples before these were overwritten" in line:
            continue
        need(m, f"replay: {line}")
        stack = stacks.setdefault(m[3], [])
        begin, end = re.match(r"(.*)\(\) \{$", m[4]), re.match(r"\} /\* (.*?)(?:, .*)? \*/$", m[4])
        if "no entry seen" in line or re.match(r"/\* .* lost here \*/$", m[4]):
            continue
        need(begin or end, f"replay: {line}")
        if begin:
            agree.count(found.edges, stack[-1][0] if stack else None, begin[1])
            stack.append([begin[1], 0, 0])
            found.setdefault((begin[1], None), [0, 0, 0, 0])[0] += 1
            continue
        need(stack and stack[-1][0] == end[1], f"replay: an end of what is not on top: {line}")
        name, children, error = stack.pop()
        unit = UNITS[m[2]]
        ns = float(m[1]) * unit
        v = found[name, None]
        if all(f[0] != name for f in stack):
            v[1] += ns
        v[2] += ns - children
        v[3] += unit / 1000 + error
        if stack:
            stack[-1][1] += ns
            stack[-1][2] += unit / 1000
    need(not any(stacks.values()), "replay: calls without an end")
    return found


class Numbers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def next(self):
        v = shift = 0
        while True:
            b = self.data[self.at]
            self.at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def signed(self):
        v = self.next()
        return v >> 1 ^ -(v & 1)


def spans_of(page, data):
    """(lane, begin, end, row, function) of each call that a page draws one by one."""
    for t in data["threads"]:
        n = Numbers(base64.b64decode(t.get("spans", "")))
        begin = data["from_ns"]
        for _ in range(t.get("nspans", 0)):
            begin += n.signed()
            length, row, fn, _ = n.next(), n.next(), n.next(), n.next()
            yield t["lane"], begin, begin + length, row, fn
    text = re.search(r'id="kron-detail">(.*?)</script>', page, re.S)
    if not text:
        return
    index = json.loads(re.search(r'id="kron-detail-index">(.*?)</script>', page, re.S)[1])
    for lane in index["lanes"]:
        for _, _, _, count, at, length in lane["blocks"]:
            block = base64.b64decode(text[1][at:at + length])
            n = Numbers(zlib.decompress(block) if index["packed"] else block)
            ends, end = [], data["from_ns"]
            for _ in range(count):
                end += n.signed()
                ends.append(end)
            columns = [[n.next() for _ in range(count)] for _ in range(4)]
            for end, length, row, fn in zip(ends, *columns[:3]):
                yield lane["lane"], end - length, end, row, fn


def of_view(trace):
    """The page's calls, by the rows in which they are drawn, and its table of functions."""
    run(KRON, "view", "-q", "-o", "view.html", trace)
    page = open("view.html", encoding="utf-8", errors="surrogateescape").read()
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
    names = {f[0]: f[1] for f in data["functions"]}
    rows = {t["lane"]: t.get("stacks", [0]) for t in data["threads"]}
    threads = {}
    for lane, begin, end, row, fn in spans_of(page, data):
        stack = max(i for i, first in enumerate(rows[lane]) if first <= row)
        threads.setdefault((lane, stack), []).append((begin, row - rows[lane][stack], end, names[fn]))
    calls = agree.Stacks()
    for thread, v in threads.items():
        stack = calls.stacks.setdefault(thread, [])
        ends = []
        for begin, depth, end, name in sorted(v):
            while len(stack) > depth:
                calls.exit(thread, stack[-1][0], ends.pop())
            need(len(stack) == depth, f"view: {name} is drawn in row {depth}, below nothing")
            need(not ends or ends[-1] >= end - 1, f"view: {name} is longer than what it is drawn below")
            calls.entry(thread, (name, None), begin)
            ends.append(end)
        while ends:
            calls.exit(thread, stack[-1][0], ends.pop())
    found = calls.end()
    table = agree.Found({(f[1], None): [f[3], f[4], f[5], 0] for f in data["functions"]})
    return found, table


def of_dump(trace):
    """Entries only."""
    found = agree.Found()
    for line in run(KRON, "dump", "--json", trace).splitlines():
        d = json.loads(line)
        if d["kind"] == "entry":
            found.setdefault((d["function"], d["module"]), [0, None, None, 0])[0] += 1
    return found


# ---- all of them ----

EXPORTS = ["folded", "callgrind", "chrome", "speedscope", "perfetto", "pprof", "uftrace", "sqlite", "ctf", "otf2",
           "parquet"]
NEEDS = {"callgrind": "callgrind_annotate", "perfetto": "protoc", "pprof": "protoc", "uftrace": "uftrace",
         "ctf": "babeltrace2", "otf2": "otf2-print"}


def can_read(kind):
    if kind == "parquet":
        return "DUCKDB" in os.environ
    if kind == "otf2" and not re.search("^#define HAVE_OTF2 ", open(os.path.join(BUILD, "config.h")).read(), re.M):
        return False
    return shutil.which(NEEDS.get(kind, "sh")) is not None


def sum_by_name(report):
    """Functions of one name as one, for outputs that do not tell modules."""
    return [dict(r, module="?") for r in report]


def exports_of(libc):
    """Where libc is traced as well the calls are the others' over again: some of the readers, other ones each time."""
    return tap.rnd.sample(EXPORTS, 4) if libc else EXPORTS


# what these say of a million calls is soon read
SUMS = ["folded", "callgrind", "pprof", "sqlite"]
# their readers have self times from how calls nest
NESTED = ["chrome", "speedscope", "perfetto", "uftrace", "ctf", "otf2", "replay", "view"]


def compare(trace, exports=EXPORTS, stacks=False):
    """
    Every reader against the report; what differs.  With SUMS alone none that tells calls one by one.
    stacks: calls of a thread overlap.
    """
    report = kron_json("report", "--json", trace)
    edges = kron_json("report", "--json", "--callers", "*", trace)
    bad = []

    def look(kind, found):
        n = agree.figures_differ(kind, found, report, stacks and kind in NESTED)
        if found.edges is not None:
            n += agree.edges_differ(kind, found.edges, edges)
        if n:
            bad.append(kind)

    for kind in exports:
        if not can_read(kind):
            continue
        shutil.rmtree("out." + kind, ignore_errors=True)  # a folder of an earlier one
        run(KRON, "export", "-f", kind, "-o", "out." + kind, trace)
        look(kind, agree.READERS[kind]("out." + kind))
    if exports != SUMS:
        look("replay", of_replay(trace))
        spans, table = of_view(trace)
        look("view", spans)
        look("view's table", table)
        look("dump", of_dump(trace))
    graph = agree.Found()
    graph.edges = {}
    nodes = {n["id"]: n for n in kron_json("report", "--call-graph", "--threshold", "0", "--json", trace)}
    for n in nodes.values():
        agree.count(graph.edges, nodes[n["parent"]]["function"] if n["parent"] is not None else None,
                    n["function"], n["calls"])
        v = graph.setdefault((n["function"], n["module"]), [0, None, 0, 0])
        v[0] += n["calls"]
        v[2] += n["self_ns"]
        v[3] += 1
    look("call-graph", graph)
    for r in report:
        alone = [e for e in edges if e["function"] == r["function"]]
        if len(alone) == 1 and sum(o["function"] == r["function"] for o in report) == 1:
            for figure in ("min_ns", "max_ns"):
                need(alone[0][figure] == r[figure], f"{figure} of {r['function']}: {r[figure]}, by its only caller {alone[0]}")
    need(not bad, f"{' '.join(bad)} differ from the report: see above")
    return report, edges


def read_truth(path):
    with open(path, "rb") as f:
        return {n.split(b"\0")[0].decode(): (count, most)
                for n, count, most in struct.iter_unpack("64sQQ", f.read()) if count or most}


def check_truth(report, edges, truth, lost=0):
    """What the program counted; lost: so many samples may be missing."""
    calls, called = {}, {}
    for r in report:
        calls[r["function"]] = calls.get(r["function"], 0) + r["calls"]
    for r in edges:
        key = r["caller"], r["function"]
        called[key] = called.get(key, 0) + r["calls"]
    want = {}
    for name, (n, most) in truth.items():
        if name[0] == "=":
            f = name[1:]
            total = sum(r["total_ns"] for r in report if r["function"] == f)
            # others call it, too: no less than what was measured
            times = sum(c for e, (c, _) in truth.items() if e.endswith(">" + f))
            need(total >= n * 1e6, f"{f} took {total} ns, not {n} ms")
            need((times > 1 and f not in ALL_MEASURED) or total <= most, f"{f} took {total} ns, more than {most}")
            continue
        caller, f = name.split(">")
        want[f] = want.get(f, 0) + n
        got = called.get((caller, f), 0)
        if caller != "nobody":
            need(n - lost <= got <= n + lost, f"{caller} called {f} {n} times, not {got}")
    for f, n in want.items():
        need(n - lost <= calls.get(f, 0) <= n + lost, f"{f} was called {n} times, not {calls.get(f, 0)}")


def build(name, source, *flags):
    if not os.path.exists(name):
        cc = [os.environ.get("CXX", "g++")] if source.endswith(".cc") else tap.CC
        # the libraries that they are linked with are the same each time
        tap.compile_once(name, *cc, "-O2", "-g", os.path.join(SRC, "tests", PROGRAMS + source),
                         "-I" + os.path.join(SRC, "tests", PROGRAMS), "-pthread", *flags, same=name)
    return "./" + name


def record(trace, argv, *options, status=0):
    env = dict(os.environ, TRUTH="truth." + trace)
    r = subprocess.run([KRON, "record", "-q", "-o", trace, *options, "--", *argv], env=env,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    need(r.returncode == status, f"record {argv}: {r.returncode} {r.stderr.decode()}")
    return read_truth("truth." + trace)


def total_calls(report, f):
    return sum(r["calls"] for r in report if r["function"] == f)


# ---- programs ----

def only_children():
    """A thread whose first sample would be that of a child with its memory."""
    tap.compile_text("borrow", """
        #include <sys/wait.h>
        #include <unistd.h>
        __attribute__((noinline)) int counted(int n) { __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" : "+r"(n)); return n * 3 + 1; }
        int main(void) {
            for (int i = 0; i < 50; i++) {
                pid_t pid = vfork();
                if (!pid) _exit(counted(i) & 64);
                waitpid(pid, 0, 0);
            }
            return 0;
        }""")
    subprocess.run([KRON, "record", "-q", "-o", "t", "-F", "counted", "--", "./borrow"], check=True)
    said = kron_json("info", "--json", "t")
    need(said["samples"] == 100 and said["lost"] == 0, f"{said['samples']} samples, {said['lost']} lost")


def children(how, libc, **calls):
    truth = record("t", [build("children", "children.c"), how], *(LIBC if libc else []))
    report, edges = compare("t", exports_of(libc))
    if not libc:  # it calls libc's functions
        truth = {e: n for e, n in truth.items() if not e.endswith(">execv")}
    check_truth(report, edges, truth)
    for f, n in calls.items():
        need(total_calls(report, f) == n, f"{f} was called {n} times, not {total_calls(report, f)}")


def shows_jumps(program, *functions):
    """The compiler has made jumps of their last calls."""
    text = run("objdump", "-d", "--no-show-raw-insn", program)
    for f in functions:
        body = re.search(r"<%s>:\n(.*?)\n\n" % f, text, re.S)[1]
        need(re.search(r"\bjmp|\bj[a-z]+ .*<(?!%s)" % f, body), f"{f} has no tail jump here")


def tails(libc, turns="1000", exports=None):
    build("libtails.so", "tails_lib.c", "-shared", "-fPIC")
    program = build("tails", "tails.c", "./libtails.so", "-Wl,-rpath,$ORIGIN")
    shows_jumps(program, "direct", "chain", "wait_sleep", "pointer", "conditional", "even", "odd", "works", "over")
    shows_jumps("libtails.so", "lib_over", "lib_wait", "lib_pointer")
    truth = record("t", [program, turns], "-L", "libtails.so", *(LIBC if libc else []))
    report, edges = compare("t", exports or exports_of(libc))
    check_truth(report, edges, truth)
    if libc:
        need(("wait_sleep", "usleep") in {(r["caller"], r["function"]) for r in edges}, "usleep's caller")


def tails_flat():
    """As the machine has it: a function is left with its jump."""
    build("libtails.so", "tails_lib.c", "-shared", "-fPIC")
    truth = record("t", [build("tails", "tails.c", "./libtails.so", "-Wl,-rpath,$ORIGIN"), "10"], "-L", "libtails.so")
    flat = ["--tail-calls", "flat"]
    report = kron_json("report", "--json", *flat, "t")
    edges = {(r["caller"], r["function"]) for r in kron_json("report", "--json", "--callers", "*", *flat, "t")}
    need(("main", "leaf") in edges and ("direct", "leaf") not in edges, "flat: main calls leaf")
    sleep = next(r for r in report if r["function"] == "wait_sleep")
    need(sleep["total_ns"] < 1e6 * truth["=wait_sleep"][0], f"flat: {sleep}")
    run(KRON, "export", "-f", "callgrind", *flat, "-o", "flat", "t")
    found = agree.of_callgrind("flat")
    need(not agree.figures_differ("callgrind", found, report), "flat: callgrind")
    need(run(KRON, "replay", *flat, "t").count("left by a jump") == 0, "flat: replay")


AWAY = """
    #include <stdio.h>
    #include <time.h>
    #define APART __attribute__((noinline, noclone))
    static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return 1e9 * (double)t.tv_sec + (double)t.tv_nsec; }
    static int rest(long ms) { struct timespec t = {0, 1000000 * ms}; return nanosleep(&t, 0); }
    APART int leaf(int n) { __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" : "+r"(n)); return n; }
    APART int inner(int n) { rest(2); n += leaf(n); __asm__ volatile("" : "+r"(n)); return n + 1; }
    APART int only(int n) { __asm__ volatile("" : "+r"(n)); return inner(n); }
    APART int some(int n) { return n & 1 ? rest(3) : inner(n); }
    int main(void) {
        double in = 0;
        int n = 0;
        for (int i = 0; i < 10; i++) {
            double t = now();
            n += only(i);
            in += now() - t;
            rest(20);
            n += some(i);
            rest(20);
        }
        printf("%.0f\\n", in);
        return n < 0;
    }"""


def tails_away():
    """Nobody else is recorded: what the program does until its next call is none of the function's time."""
    tap.compile_text("away", AWAY, "-O2")
    shows_jumps("away", "only", "some")
    for functions, least in ((["only"], 0), (["only", "leaf"], 0), (["some"], 14e6)):
        chosen = [x for f in functions for x in ("-F", f)]
        took = float(run(KRON, "record", "-q", "-o", "t", *chosen, "--", "./away"))
        report, _ = compare("t", exports_of(False))
        f = next(r for r in report if r["function"] == functions[0])
        need(f["calls"] == 10 and f["at_least"] in (5, 10) and f["at_least"] == f["inferred"], f"{f}")
        if functions[0] == "only":
            need(least <= f["total_ns"] <= took, f"only took {took} ns at most, not {f['total_ns']}")
        else:
            need(f["at_least"] == 5 and least <= f["total_ns"] < 100e6, f"five calls of 3 ms: {f}")
        text = run(KRON, "report", "t")
        need(f"{f['at_least']} calls left by a jump to a function that was not recorded (inner):" in text, text)
        exits = [d for d in map(json.loads, run(KRON, "dump", "--json", "t").splitlines()) if "jump_to" in d]
        need(exits and {d["jump_to"] for d in exits} == {"inner"}, f"{exits[:1]}")
        need(run(KRON, "replay", "t").count("not recorded: at least") == f["at_least"], "replay")


def takes_longer(trace, chosen, words):
    """Whether the trigger fires: on the trace, and while the same is recorded once more."""
    shown = run(KRON, "dump", "--json", "--trigger", words, "--pre", "0", "--post", "0", trace)
    run(KRON, "record", "-q", "-o", "w", *chosen, "--trigger", words, "--", "./away")
    live = bool(kron_json("info", "--json", "w").get("trigger_ns"))
    need(live == ('"kind":"entry"' in shown.replace(" ", "") or '"kind":"exit"' in shown.replace(" ", "")), f"{words}: live {live}, {shown}")
    return live


def tails_away_triggers():
    """To FUNC>TIME such a call lasts as long as the report says: until its jump, or, where who waits is recorded, to the next sample."""
    tap.compile_text("away", AWAY, "-O2")
    for functions, words, fires in (
            (["only"], "only>10ms", False),      # its calls are 20 ms apart, and take 2
            (["only", "leaf"], "only>10ms", False),
            (["some"], "some>10ms", False),
            (["some"], "some>2ms", True),        # half of them wait for 3 ms and return
            (["only", "main"], "only>10ms", True)):
        chosen = [x for f in functions for x in ("-F", f)]
        run(KRON, "record", "-q", "-o", "t", *chosen, "--", "./away")
        f = next(r for r in kron_json("report", "--json", "t") if r["function"] == words.split(">")[0])
        limit = 1e6 * float(re.search(r">(\d+)ms", words)[1])
        need((f["max_ns"] > limit) == fires, f"{words}: the report says {f}")
        need(takes_longer("t", chosen, words) == fires, f"{words} with {functions}: {not fires}")


def static(name, source, *argv):
    """Programs without a dynamic linker: probes and hooks are in the file."""
    program = build(name, source, "-static")
    if not os.path.exists(name + ".patched"):
        run(KRON, "patch", "-o", name + ".patched", program)
    truth = record("t", ["./" + name + ".patched", *argv])
    check_truth(*compare("t"), truth)


def tails_static():
    library = os.path.join(SRC, "tests", PROGRAMS, "tails_lib.c")
    build("static_tails", "tails.c", "-static", library)
    shows_jumps("static_tails", "direct", "wait_sleep", "lib_over")
    static("static_tails", "tails.c", "1000")


def tails_found():
    """To conditions and triggers an exit by a jump is an exit of its function, live and later."""
    build("libtails.so", "tails_lib.c", "-shared", "-fPIC")
    program = build("tails", "tails.c", "./libtails.so", "-Wl,-rpath,$ORIGIN")
    truth = record("t", [program, "10"], "-L", "libtails.so")
    shown = [json.loads(x) for x in run(KRON, "dump", "--json", "--where", "exit=lib_over", "t").splitlines()]
    exits = [d for d in shown if d["kind"] == "exit"]
    need(len(exits) == truth["main>lib_over"][0], f"{len(exits)} exits of lib_over")
    need(all(d["jump_to"] == "lib_leaf" and d["function"] == "lib_over" for d in exits), f"{exits[0]}")
    record("w", [program, "10"], "-L", "libtails.so", "--trigger", "exit=lib_over", "--pre", "3", "--post", "2")
    window = [json.loads(x) for x in run(KRON, "dump", "--json", "w").splitlines()]
    window = [(d["kind"], d.get("function")) for d in window if d["kind"] in ("entry", "exit")]
    need(window[3:] == [("exit", "lib_over"), ("entry", "lib_leaf"), ("exit", "lib_leaf")], f"the window: {window}")
    need(window[2] == ("entry", "lib_over") and len(window) == 6, f"the window: {window}")


def tails_last():
    """To FUNC>TIME a call lasts as long as the report says, live and later: until what it jumped to is over."""
    build("libtails.so", "tails_lib.c", "-shared", "-fPIC")
    program = build("tails", "tails.c", "./libtails.so", "-Wl,-rpath,$ORIGIN")
    for libc in ([], LIBC):
        record("t", [program, "10"], "-L", "libtails.so", *libc)
        for f in ("wait_sleep", "wait_chain", "lib_wait"):
            long = [r for r in kron_json("report", "--json", "t") if r["function"] == f]
            need(long and long[0]["max_ns"] >= 3e6, f"the report: {long}")
            shown = run(KRON, "dump", "--json", "--trigger", f + ">2ms", "--pre", "0", "--post", "0", "t")
            need(f'"{f}"' in shown, f"{f}>2ms of the trace: {shown}")
            record("w", [program, "10"], "-L", "libtails.so", *libc, "--trigger", f + ">2ms")
            need(kron_json("info", "--json", "w")["trigger_ns"], f"{f}>2ms did not fire")


def tails_bound():
    """Whether the linker binds a function at the start or between a jump and what that leads to."""
    build("libtails.so", "tails_lib.c", "-shared", "-fPIC", "-fplt", "-Wl,-z,lazy")
    program = build("lazy_tails", "tails.c", "./libtails.so", "-Wl,-rpath,$ORIGIN", "-fplt", "-Wl,-z,lazy")
    shows_jumps(program, "wait_sleep", "over")
    calls = {}
    for trace, bind_now in (("now", "1"), ("lazy", "")):
        os.environ["LD_BIND_NOW"] = bind_now
        truth = record(trace, [program, "10"], "-L", "*", "-F", "*")
        report, edges = compare(trace)
        check_truth(report, edges, truth)
        for caller, f in (("wait_sleep", "usleep"), ("over", "lib_leaf"), ("lib_over", "lib_leaf")):
            n = sum(r["calls"] for r in edges if (r["caller"], r["function"]) == (caller, f))
            need(n == total_calls(report, caller), f"{caller} called {f} {n} times")
        resolved = [r for r in report if r["function"].startswith("_dl_runtime_resolve")]
        need(bool(resolved) == (trace == "lazy"), f"{trace}: {resolved}")
        need(not re.search(r"_dl_runtime_resolve\w*, no (entry|exit)", run(KRON, "replay", trace)), "it is not paired")
        calls[trace] = {(r["function"], r["calls"]) for r in report if "tails" in r["module"]}
    del os.environ["LD_BIND_NOW"]
    need(calls["now"] == calls["lazy"], f"{calls['now'] ^ calls['lazy']}")


def pointers():
    """What a jump through a pointer leads to is one that pointers name."""
    program = build("pointers", "pointers.c")
    shows_jumps(program, "away", "relay")
    truth = record("t", [program])
    report, edges = compare("t")
    check_truth(report, edges, truth)
    total = {r["function"]: r["total_ns"] for r in report}
    need(total["away"] < total["heavy"] / 5, f"away took {total['away']} ns, heavy {total['heavy']}")
    away, = (r for r in report if r["function"] == "away")
    need(away["inferred"] == away["calls"], f"nobody knows when away ended: {away}")
    need("50 calls are taken for what a jump through a pointer led to" in run(KRON, "report", "t"), "nothing is said")
    shown = run(KRON, "dump", "--json", "--trigger", "away>0.2ms", "--pre", "0", "--post", "0", "t")
    need('"away"' not in shown, f"away>0.2ms: {shown}")


def unwound(alternate, libc):
    truth = record("t", [build("unwound", "unwound.cc"), *(["x"] if alternate else [])], *(LIBC if libc else []))
    check_truth(*compare("t", exports_of(libc), alternate), truth)


def unwound_static():
    """The unwinder and longjmp are in the program; only who is left is recorded, or only who goes on, too."""
    program = build("static_unwound", "unwound.cc", "-static")
    for functions in (["is_left"], ["is_left", "goes_on"]):
        run(KRON, "patch", "-o", "unwound.patched", *(x for f in functions for x in ("-F", f)), program)
        trace = "-".join(functions)
        truth = record(trace, ["./unwound.patched"])
        report = kron_json("report", "--json", trace)
        need([r["calls"] for r in report] == [6] * len(functions), f"the report: {report}")
        for r in report:
            least, most = truth["=" + r["function"]]
            need(least * 1e6 <= r["total_ns"] <= most, f"{r['function']} took {r['total_ns']}, not {least} ms to {most}")


def coroutines(libc, *how):
    truth = record("t", [build("coroutines", "coroutines.c"), *how], *(LIBC if libc else []))
    report, edges = compare("t", exports_of(libc), True)
    check_truth(report, edges, truth)
    if not libc:  # all of the time is somebody's, and nobody's twice
        total, = (r["total_ns"] for r in report if r["function"] == "_start")
        own = sum(r["self_ns"] for r in report)
        need(abs(own - total) <= len(report), f"self times add up to {own} ns, the program took {total}")
    # no call is cut in pieces: of n stacks besides main's, n tracks
    run(KRON, "export", "-f", "chrome", "-o", "c.json", "t")
    names = {e["args"]["name"] for e in json.load(open("c.json"))["traceEvents"] if e["name"] == "thread_name"}
    need(len(names) == 1 + int(how[0]), f"tracks {names}")


def threads(libc):
    truth = record("t", [build("threads", "threads.c")], *(LIBC if libc else []))
    check_truth(*compare("t", exports_of(libc)), truth)


def start(argv, *options):
    """A recorder, and its program when it has said that it runs."""
    env = dict(os.environ, TRUTH="truth.t")
    p = subprocess.Popen([KRON, "record", "-q", "-o", "t", *options, "--", *argv], env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    children = list(filter(tap.is_traced, tap.children_of(p.pid)))
    need(len(children) == 1, f"the recorder has the children {children}")
    return p, children[0]


def losses(when_full):
    """The recorder sleeps while the program fills its buffer."""
    p, child = start([build("endless", "endless.c"), "40000"], "--when-full", when_full, "--buffer", "1M")
    p.send_signal(signal.SIGSTOP)
    p.stdin.write(b"x")
    p.stdin.flush()
    tap.wait_for(lambda: not tap.is_running(child), "the program's end")
    p.send_signal(signal.SIGCONT)
    need(p.wait() == 0, "the recorder failed")
    need(kron_json("info", "--json", "t")["lost"], "nothing was lost")
    report, _ = compare("t", ["folded", "callgrind", "chrome", "perfetto", "sqlite", "ctf", "otf2"])
    truth = read_truth("truth.t")
    for f in ("turn", "tails", "leaf", "tail_away"):
        n = sum(c for e, (c, _) in truth.items() if e.endswith(">" + f))
        need(0 < total_calls(report, f) < n, f"{f}: {total_calls(report, f)} of {n} calls")


def killed(who):
    """Exact up to the moment; each thread's last call may be between its entry and its count."""
    p, child = start([build("endless", "endless.c")])
    if who == "recorder":
        p.kill()
        p.wait()
    os.kill(child, signal.SIGKILL)
    p.wait()
    if who == "recorder":
        tap.wait_for(lambda: not tap.is_running(child), "the program's end")
        run(KRON, "recover", "t")
    report, edges = compare("t", ["folded", "callgrind", "speedscope", "sqlite", "ctf"])
    if kron_json("info", "--json", "t")["lost"] == 0:
        check_truth(report, edges, read_truth("truth.t"), lost=1)


def hangs(how, end):
    """What does not return lasts until its thread ends, or the recording."""
    begun = time.monotonic()
    p, child = start([build("hangs", "hangs.c"), how])
    ready = time.monotonic()
    time.sleep(0.5)
    least = time.monotonic() - ready
    if end == "killed":
        os.kill(child, signal.SIGKILL)
    elif end == "recorder ended":
        os.kill(p.pid, signal.SIGINT)
    else:
        p.stdin.write(b"x")
        p.stdin.flush()
    p.wait()
    most = time.monotonic() - begun
    report, edges = compare("t")
    truth = read_truth("truth.t")
    check_truth(report, edges, truth)
    total = {r["function"]: r["total_ns"] / 1e9 for r in report}
    need(most > total["main"] >= least, f"main took {total['main']} s, of {least} to {most}")
    outer = ("works", "stuck") if how == "main" else ("runs", "works", "stuck")
    for f in outer:
        if how == "leaves":  # and was noticed before main's end
            need(total[f] < total["main"] - 0.2, f"{f} took {total[f]} s, main {total['main']}")
        else:
            need(most > total[f] >= least, f"{f} took {total[f]} s, of {least} to {most}")
    text = run(KRON, "replay", "t")
    for f in outer:
        need(re.search(r"\} /\* %s, still running" % f, text), f"replay of {f}: {text}")


def main():
    with tap.Suite("nesting") as s:
        for libc in (False, True):
            words = ", libc traced" if libc else ""
            for how in ("vfork", "failing", "killed", "inside", "spawn", "thread", "shell", "place", "forked"):
                more = {"execve": 5} if libc and how == "spawn" else {}
                s.case(f"children: {how}{words}", lambda h=how, m=more: children(h, libc, **m))
            s.case(f"tail calls{words}", tails, libc)
            for alternate in (False, True):
                s.case(f"exceptions and jumps out of handlers{' on another stack' if alternate else ''}{words}",
                       unwound, alternate, libc)
            for how in (["2"], ["3"], ["3", "near"], ["3", "left"]):
                s.case(f"coroutines {' '.join(how)}{words}", coroutines, libc, *how)
            s.case(f"threads that end in every way{words}", threads, libc)
        s.case("coroutines that pass control", coroutines, False, "3", "pass")
        for how in ("vfork", "failing", "spawn"):
            s.case(f"children: {how}, of a static program", static, "static_children", "children.c", how)
        s.case("exceptions and longjmp of a static program", unwound_static)
        s.case("tail calls of a static program", tails_static)
        s.case("a tail recursion of thirty thousand turns", tails, False, "30000")
        s.case("... of a million turns", tails, False, "1000000", SUMS)
        s.case("--tail-calls flat", tails_flat)
        s.case("jumps to what is not recorded, from what nobody who is has called", tails_away)
        s.case("... and triggers", tails_away_triggers)
        s.case("conditions and triggers on an exit by a jump", tails_found)
        s.case("triggers on calls that go on by a jump", tails_last)
        s.case("jumps through pointers", pointers)
        s.case("tail calls that are bound lazily", tails_bound)
        s.case("children: the first sample of a thread", only_children)
        s.case("losses", losses, "discard")
        s.case("the last samples only", losses, "wrap")
        s.case("a program that is killed", killed, "program")
        s.case("a recorder that is killed", killed, "recorder")
        s.case("a program hangs and is killed", hangs, "main", "killed")
        s.case("a program hangs and the recorder is told to end", hangs, "main", "recorder ended")
        s.case("a thread hangs while main returns", hangs, "thread", "returned")
        s.case("a thread hangs and the program is killed", hangs, "thread", "killed")
        s.case("a thread ends in a call", hangs, "leaves", "returned")


main()
