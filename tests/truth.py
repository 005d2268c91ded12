#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""truth.py - checks a trace against what must be in it.

    truth.py check TRACE [--calls F=N...] [--exits F=N...] [--maybe F=N...] [--most F=N...]
                                            maybe: entries N or none; most: exits at most N
    truth.py callgrind FILE OBJECT          calls of each function, from callgrind's output
    truth.py gcov FILE.json.gz...           calls of each function, from gcov --json-format
    truth.py same FILE TRACE MODULE [--balanced]
                                            entries in MODULE equal FILE's lines F=N
    truth.py counts TRACE                   entries, exits and calls of each function

Tables are read here from the bytes, as trace/format.h says, samples by samples_of.c, and neither
by kron; what `kron report`, `kron info` and `kron dump` say is compared with that.  Function names are
compared without blanks, so that "f(int, long)" can be written f(int,long).
"""

import argparse
import collections
import gzip
import json
import os
import re
import subprocess
import sys


def squeeze(name):
    return name.replace(" ", "")


def fields(path):
    """Complete lines of a text table, unescaped."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as f:
        for line in f.read().decode("utf-8", "surrogateescape").split("\n")[:-1]:
            yield [
                c.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")
                for c in line.split("\t")
            ]


def samples_of(directory, *words):
    """Fields of the lines that samples_of.c prints of the trace's samples."""
    reader = os.path.join(os.environ["KRON_TOP_BUILD"], "tests/samples_of")
    argv = [reader, os.path.join(directory, "samples"), *words]
    for line in subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines():
        what, *numbers = line.split()
        yield what, [int(n) for n in numbers]


class Trace:
    def __init__(self, directory):
        self.directory = directory
        self.session = {}
        for f in fields(os.path.join(directory, "session")):
            key, _, value = "\t".join(f).partition("=")
            self.session[key] = value
        self.functions = {}  # number: module id, name
        for f in fields(os.path.join(directory, "functions")):
            self.functions[int(f[0])] = (int(f[1]), f[4], int(f[2], 16))
        self.jumps = {}  # number of an exit by a jump: of which function
        for f in fields(os.path.join(directory, "jumps")):
            self.jumps[int(f[0])] = int(f[1])
        self.modules = {}  # id: path, refused exits
        for f in fields(os.path.join(directory, "modules")):
            self.modules[int(f[0])] = (f[8], int(f[6]))
        self.events = collections.Counter()
        self.entries = collections.Counter()
        self.exits = collections.Counter()
        self.samples = self.holes = self.lost_records = 0
        self.lanes = set()
        self.seqs = set()  # of chunks
        self.problems = []
        self.read_samples()

    def read_samples(self):
        for what, numbers in samples_of(self.directory):
            if what == "chunk":
                self.take_chunk(*numbers)
            elif what == "event":
                self.events[numbers[0]] = numbers[1]
            elif what == "lost":
                self.lost_records = numbers[0]
            else:
                self.problems.append(f"no whole chunk at byte {numbers[0]} of samples")
        for event, n in self.events.items():
            self.samples += n
            event = self.function_event(event)
            if event // 2 not in self.functions:
                self.problems.append(f"event {event} is of no function")
                continue
            name = squeeze(self.functions[event // 2][1])
            (self.exits if event & 1 else self.entries)[name] += n

    def function_event(self, event):
        """An exit by a jump is its function's exit."""
        jump = (event - 0x80000000) // 2
        return 2 * self.jumps[jump] + 1 if event & 1 and jump in self.jumps else event

    def take_chunk(self, seq, uid, tid, source, holes, one_source):
        if seq in self.seqs:
            self.problems.append(f"chunk {seq} is there twice")
        self.seqs.add(seq)
        self.lanes.add((uid, tid))
        self.holes += holes
        if source & 0x3FFFFF != tid:
            self.problems.append(f"chunk {seq} is of thread {tid}, its source {source:#x}")
        if not one_source:
            self.problems.append(f"samples of other sources in chunk {seq}")


def kron_json(command, directory):
    kron = os.environ.get("KRON", "./kron")
    r = subprocess.run([kron, command, "--json", directory], capture_output=True)
    if r.returncode:
        raise SystemExit(f"kron {command} --json: status {r.returncode}: {r.stderr.decode()}")
    return json.loads(r.stdout)


def report_calls(directory):
    calls = collections.Counter()
    for row in kron_json("report", directory):
        calls[squeeze(row["function"])] += row["calls"]
    return calls


def expectations(words):
    for w in words:
        name, _, n = w.rpartition("=")
        yield squeeze(name), int(n)


def check(args):
    t = Trace(args.trace)
    problems = t.problems
    info = kron_json("info", args.trace)
    for key in ("samples", "lost", "probes", "refused", "processes", "threads"):
        if not isinstance(info.get(key), int):
            problems.append(f"info has no number {key}")
    if info["samples"] != t.samples:
        problems.append(f"info says {info['samples']} samples, {t.samples} are there")
    if info["threads"] != len(t.lanes) and info["threads"] < len(t.lanes):
        problems.append(f"info says {info['threads']} threads, {len(t.lanes)} have samples")
    if t.samples < args.min_samples:
        problems.append(f"only {t.samples} samples: was it traced?")
    exact = info["lost"] == 0
    if args.lossless and not exact:
        problems.append(f"{info['lost']} lost")
    segment = t.session.get("segment", "")
    if segment and os.path.lexists("/dev/shm/" + segment.lstrip("/")):
        problems.append(f"/dev/shm/{segment} is left")
    calls = report_calls(args.trace)
    # A call that is reported without an entry sample would be an invention.
    for name, n in calls.items():
        if n != t.entries[name] and t.entries[name] and exact and t.holes == 0:
            problems.append(f"{name}: {n} calls reported, {t.entries[name]} entries stored")
    if exact:
        for name, n in expectations(args.calls):
            if t.entries[name] != n:
                problems.append(f"{name}: {t.entries[name]} entries, not {n}")
        for name, n in expectations(args.maybe):
            if t.entries[name] not in (0, n):
                problems.append(f"{name}: {t.entries[name]} entries, neither {n} nor none")
        for name, n in expectations(args.exits):
            if t.exits[name] != n:
                problems.append(f"{name}: {t.exits[name]} exits, not {n}")
        for name, n in expectations(args.most):
            if t.exits[name] > n:
                problems.append(f"{name}: {t.exits[name]} exits, more than {n}")
    for p in problems[:20]:
        print(p)
    return 1 if problems else 0


# What runs around main, by other names or not at all in gcov's and callgrind's eyes.
STARTUP = {
    "_start", "_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones",
    "__do_global_dtors_aux", "__libc_csu_init", "__libc_csu_fini", "(belowmain)", "main",
    "_dl_relocate_static_pie",
}  # fmt: skip


def same(args):
    """Every function of the module: as often as the truth says, or refused, never else."""
    t = Trace(args.trace)
    with open(args.file) as f:
        truth = dict(expectations(line.strip() for line in f))
    modules = {m for m, (path, _) in t.modules.items() if args.module in path}
    all_exits = all(t.modules[m][1] == 0 for m in modules)
    entries, exits = collections.Counter(), collections.Counter()
    for n, (module, name, vaddr) in t.functions.items():
        if module not in modules:
            continue
        # callgrind's way to name the nameless
        name = squeeze(name) or f"0x{vaddr:016x}"
        entries[name] += t.events[2 * n]
        exits[name] += t.events[2 * n + 1]
    if not modules:
        print(f"no module {args.module} in the trace")
        return 1
    wrong, absent, right = [], [], 0
    for name, n in truth.items():
        if name in STARTUP or name in args.excepted or name.startswith("0x") and not args.nameless or "[clone.cold]" in name:
            continue
        if entries[name] == n:
            right += 1
            if exits[name] > n or args.balanced and all_exits and exits[name] != n:
                wrong.append(f"{name}: {n} entries, {exits[name]} exits")
        elif entries[name] == 0:
            absent.append(name)
        else:
            wrong.append(f"{name}: {entries[name]} entries, not {n}")
    for name, n in entries.items():
        if n and name not in truth and name not in STARTUP and not name.startswith("0x"):
            wrong.append(f"{name}: {n} entries, none in truth")
    for w in wrong[:20]:
        print(w)
    print(f"{right} functions right, {len(wrong)} wrong, not recorded: {' '.join(absent[:9])}")
    return 1 if wrong or right == 0 or len(absent) > args.absent else 0


def callgrind_calls(path, wanted):
    """{function: calls} of the functions of objects whose name contains `wanted`."""
    names, objects = {}, {}
    calls = collections.Counter()
    obj = called_obj = called = None

    def resolve(table, text):
        m = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if not m:
            return text
        if m.group(2) is not None:
            table[m.group(1)] = m.group(2)
        return table[m.group(1)]

    with open(path) as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("ob="):
                obj = resolve(objects, line[3:])
            elif line.startswith("fn="):
                resolve(names, line[3:])
                called_obj = None
            elif line.startswith("cob="):
                called_obj = resolve(objects, line[4:])
            elif line.startswith("cfn="):
                called = resolve(names, line[4:])
            elif line.startswith("calls="):
                n = int(line[6:].split()[0])
                if wanted in (called_obj or obj or ""):
                    # recursion levels and versions: f'2, f@@V
                    calls[squeeze(re.sub(r"'\d+$", "", called).split("@@")[0])] += n
                called_obj = None
    return demangled(calls)


def demangled(calls):
    """Names without parameters, as kron shows them."""
    names = list(calls)
    r = subprocess.run(["c++filt", "-p"], input="\n".join(names), capture_output=True, text=True)
    out = collections.Counter()
    for name, shown in zip(names, r.stdout.split("\n")):
        out[squeeze(shown)] += calls[name]
    return out


def gcov_calls(paths):
    calls = collections.Counter()
    for path in paths:
        with gzip.open(path) as f:
            for unit in json.load(f)["files"]:
                for fn in unit["functions"]:
                    calls[squeeze(fn["demangled_name"])] += fn["execution_count"]
    return calls


def main():
    p = argparse.ArgumentParser()
    sub = p.add_subparsers(dest="command", required=True)
    c = sub.add_parser("check")
    c.add_argument("trace")
    for name in ("calls", "maybe", "exits", "most"):
        c.add_argument("--" + name, nargs="*", default=[])
    c.add_argument("--min-samples", type=int, default=1)
    c.add_argument("--lossless", action="store_true")
    c = sub.add_parser("callgrind")
    c.add_argument("file")
    c.add_argument("object")
    c = sub.add_parser("gcov")
    c.add_argument("files", nargs="+")
    c = sub.add_parser("same")
    c.add_argument("file")
    c.add_argument("trace")
    c.add_argument("module")
    c.add_argument("--balanced", action="store_true")
    c.add_argument("--nameless", action="store_true")
    c.add_argument("--except", dest="excepted", nargs="*", default=[])
    c.add_argument("--absent", type=int, default=0, help="functions that may be refused")
    c = sub.add_parser("counts")
    c.add_argument("trace")
    args = p.parse_args()
    if args.command == "check":
        return check(args)
    if args.command == "same":
        return same(args)
    if args.command == "counts":
        t = Trace(args.trace)
        calls = report_calls(args.trace)
        for name in sorted(set(t.entries) | set(t.exits) | set(calls)):
            print(t.entries[name], t.exits[name], calls[name], name)
        return 0
    if args.command == "callgrind":
        table = callgrind_calls(args.file, args.object)
    else:
        table = gcov_calls(args.files)
    for name, n in sorted(table.items()):
        print(f"{name}={n}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
