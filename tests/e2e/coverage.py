#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How much of Debian's programs the planner can probe, and whether what it says adds up.

Of the programs below at least 99.9 % of the entries and 99.8 % of the exits must be taken.  The
number of functions is compared with what readelf finds in the frame tables: a planner that
found few functions could take them all.
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
            "/usr/bin/perl", "/usr/bin/gdb", "/usr/bin/cmake"]
ENTRIES, EXITS = 0.999, 0.998


def summary(path):
    done = subprocess.run([KRON, "list", "--summary", "--json", path], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def count_fdes(path):
    """Frame descriptions: functions, their cold parts, and some of the PLT"""
    done = subprocess.run(["readelf", "--debug-dump=frames,no-follow-links", path],
                          capture_output=True, text=True, errors="replace")
    return len(re.findall(r" FDE cie=", done.stdout))


def faults(path):
    found = summary(path)
    for kind, least in (("entries", ENTRIES), ("exits", EXITS)):
        c = found[kind]
        share = c["patched"] / max(c["found"], 1)
        print("# %s: %d of %d %s, %.2f %%" % (path, c["patched"], c["found"], kind, 100 * share))
        for reason, n in sorted(c["refused"].items()):
            print("#     %6d  %s" % (n, reason))
        if share < least:
            yield "only %.2f %% of the %s" % (100 * share, kind)
        if c["found"] != c["patched"] + sum(c["refused"].values()):
            yield "%s: found is not patched and refused together" % kind
        if c["patched"] != sum(c["by_tactic"].values()):
            yield "%s: the tactics do not add up" % kind
    fdes = count_fdes(path)
    if not 0.6 * fdes <= found["entries"]["found"] <= 1.1 * fdes:
        yield "%d functions, but %d frame descriptions" % (found["entries"]["found"], fdes)


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
