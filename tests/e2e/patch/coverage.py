#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""How much of Debian's programs the planner can probe, and whether what it says adds up.

Of the programs below all entries, exits, branches, stores and instructions must be taken but for a
few that doc/RESULTS.md lists, each by an honest tactic: no int3.  With int3 allowed, nothing
may be left.  The number of functions is
compared with what readelf finds in the frame tables, that of instructions with what objdump
finds in the code: a planner that found few could take them all.

A program that is not position independent gets more room: any word of its file that has an
address's value may be a pointer, so letters keep some windows closed, other ones in each build of
Debian's python3.11.
"""
import json
import os
import re
import shutil
import subprocess
import sys

KRON = os.environ.get("KRON") or os.environ.get("KRON_TOP_BUILD", ".") + "/kron"
LIB = "/usr/lib/x86_64-linux-gnu/"
PROGRAMS = ["/usr/bin/bash", "/usr/bin/git", LIB + "libc.so.6", LIB + "libcrypto.so.3",
            "/usr/bin/perl", "/usr/bin/gdb", "/usr/bin/cmake", "/usr/bin/python3.11",
            LIB + "libstdc++.so.6"]
CLASSES = ("branches", "stores", "insns")
LEAST = {"entries": 0.9999, "exits": 0.9999, "branches": 0.9999, "stores": 1.0, "insns": 0.99997}
LEAST_FIXED = {"entries": 0.9995, "exits": 0.9995, "branches": 0.9999, "stores": 0.9999, "insns": 0.99995}
AMBIGUOUS_FIXED = 0.0005  # of its exits: jumps whose table leads into another part of the function
AFTER = 0.999  # of the calls that return, in the first three


def is_fixed(path):
    """ET_EXEC: not position independent"""
    with open(path, "rb") as f:
        return f.read(18)[16:] == b"\x02\x00"


def least_of(path, kind):
    return (LEAST_FIXED if is_fixed(path) else LEAST)[kind]


def after_faults(path):
    """After every call that returns."""
    done = subprocess.run([KRON, "list", "--json", "-p", "0:x=*%calls%after", path], check=True,
                          capture_output=True, text=True)
    found = [p.get("refused") for p in json.loads(done.stdout)["places"]]
    left = {r: found.count(r) for r in set(found) - {None}}
    ends = left.pop("not-reached", 0)
    print("# %s: %d calls, %d of them never return, left %s" % (path, len(found), ends, left))
    if sum(left.values()) > (1 - AFTER) * (len(found) - ends) or ends > len(found) / 10:
        yield "%s of %d places after calls are left" % (left, len(found))


def summary(path, *options):
    done = subprocess.run([KRON, "list", "--summary", "--json", *options, path], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def count_fdes(path):
    """Frame descriptions: functions, their cold parts, and some of the PLT"""
    done = subprocess.run(["readelf", "--debug-dump=frames,no-follow-links", path],
                          capture_output=True, text=True, errors="replace")
    return len(re.findall(r" FDE cie=", done.stdout))


def count_insns(path):
    """Lines of objdump's reading of .text that are instructions."""
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", "-w", "-j", ".text", path],
                          stdout=subprocess.PIPE, errors="replace", text=True) as dump:
        return sum(line.startswith(" ") and "(bad)" not in line for line in dump.stdout)


def is_sum(c):
    return c["found"] == c["patched"] + sum(c["refused"].values()) and \
        c["patched"] == sum(c["by_tactic"].values())


def place_faults(path):
    for name in CLASSES:
        found = summary(path, "--places", name)
        c = found[name]
        print("# %s: %d of %d %s, %.3f %%" % (path, c["patched"], c["found"], name,
                                              100 * c["patched"] / max(c["found"], 1)))
        print("#     by", ", ".join("%s %d" % t for t in sorted(c["by_tactic"].items())))
        for reason, n in sorted(c["refused"].items()):
            print("#     %6d  %s" % (n, reason))
        if c["patched"] < least_of(path, name) * c["found"]:
            yield "only %d of %d %s" % (c["patched"], c["found"], name)
        if not is_sum(c):
            yield "%s: the numbers do not add up" % name
        if c["by_tactic"].get("int3"):
            yield "int3 although nobody asked for it"
    lines = count_insns(path)
    print("# objdump reads %d instructions in .text; %d and %d of filler" % (
        lines, c["found"], found["filler"]))
    if not 0.85 * lines <= c["found"] + found["filler"] <= 1.1 * lines:
        yield "objdump reads %d instructions in .text" % lines
    with_traps = summary(path, "--places", "insns", "--tactics", "+int3")["insns"]
    print("#     with int3: %d, left %s" % (with_traps["patched"], with_traps["refused"]))
    if with_traps["refused"]:
        yield "left although int3 is allowed: %s" % with_traps["refused"]


def faults(path):
    found = summary(path, "--tactics", "-import")  # of the code itself
    for kind in ("entries", "exits"):
        c = found[kind]
        share = c["patched"] / max(c["found"], 1)
        print("# %s: %d of %d %s, %.2f %%" % (path, c["patched"], c["found"], kind, 100 * share))
        for reason, n in sorted(c["refused"].items()):
            print("#     %6d  %s" % (n, reason))
        if share < least_of(path, kind):
            yield "only %.2f %% of the %s" % (100 * share, kind)
        if not is_sum(c):
            yield "%s: the numbers do not add up" % kind
    with_traps = summary(path, "--tactics", "+int3,-import")
    exits = with_traps["exits"]
    if is_fixed(path) and exits["refused"].get("ambiguous-jump", 0) <= AMBIGUOUS_FIXED * exits["found"]:
        exits["refused"].pop("ambiguous-jump", None)
    if with_traps["entries"]["refused"] or exits["refused"]:
        yield "left although int3 is allowed: %s" % with_traps
    fdes = count_fdes(path)
    if not 0.6 * fdes <= found["entries"]["found"] <= 1.1 * fdes:
        yield "%d functions, but %d frame descriptions" % (found["entries"]["found"], fdes)
    yield from place_faults(path)
    if path in PROGRAMS[:3]:
        yield from after_faults(path)


def main():
    print("1..%d" % len(PROGRAMS))
    for n, path in enumerate(PROGRAMS, 1):
        if not os.path.exists(path) or not shutil.which("readelf"):
            print("ok %d - %s # SKIP not installed" % (n, path))
            continue
        wrong = list(faults(path))
        for fault in wrong:
            print("# " + fault)
        print("%sok %d - %s" % ("not " if wrong else "", n, path))


sys.stdout.reconfigure(line_buffering=True)
main()
