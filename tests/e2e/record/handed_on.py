#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a program is handed by who starts it - signals, limits, priority, descriptors, environment - it is handed by
each command of kron as if that were not there."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

PROGRAM = ["./handed_on", "show"]
COMMANDS = [
    ["record", "-o", "trace.data"],
    ["record", "-o", "trace.data", "--flight", "1M"],
    ["record", "-o", "trace.data", "--budget", "1%"],
    ["record", "-o", "trace.data", "--bus", "exact"],
    ["stat"],
    ["stat", "-o", "rows"],
    ["stat", "--json", "-o", "/dev/null"],
    ["monitor"],
    ["monitor", "-o", "rows"],
    ["monitor", "--freeze", "--every", "10ms", "-o", "rows"],
    ["monitor", "--save", "trace.data", "-o", "rows"],
    ["monitor", "-e", "calls", "-o", "rows"],
    ["monitor", "--serve", "0", "-o", "rows"],
    ["monitor", "-o", "trace.data"],
    ["pages"],
    ["pages", "-o", "rows"],
    ["pages", "-o", "trace.data"],
    ["pages", "--by", "function", "-o", "rows"],
    ["pages", "--by", "site", "--json", "-o", "rows"],
    ["pages", "--every", "10ms", "-o", "rows"],
]


def lines_of(command):
    """Of the program; what kron prints has none of these words in front."""
    r = subprocess.run(command, capture_output=True, text=True, timeout=120)
    tap.need(r.returncode == 0, f"{command}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout.splitlines()


def same(static, odd, command):
    tap.compile_c("handed_on", "torture/process/handed_on.c", *static)
    before = ["./handed_on", "odd"] if odd else []
    want = lines_of([*before, *PROGRAM])
    got = lines_of([*before, tap.KRON, *command, "-q", "--", *PROGRAM])
    tap.need(len(want) > 40, want)
    tap.need(got[:len(want)] == want, "\n".join(
        [f"- {w}" for w in want if w not in got] + [f"+ {g}" for g in got[:len(want)] if g not in want]))


def ends_by(signal_of, command):
    """A file size limit of the program's own ends it, and that is what kron's status says."""
    tap.compile_text("large", f"""
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{{
	struct rlimit r = {{4096, 4096}};
	setrlimit(RLIMIT_{signal_of}, &r);
	for (int i = 0; i < 3; i++)
		if (write(1, (char[4096]){{0}}, 4096) < 0)
			return 4;
	return 0;
}}
""")
    with open("out", "wb") as out:
        r = subprocess.run([tap.KRON, *command, "-q", "--", "./large"], stdout=out, stderr=subprocess.PIPE,
                           text=True, timeout=120)
    tap.need(r.returncode in (-25, 153), f"exit {r.returncode}: {r.stderr}")


with tap.Suite("handed_on") as s:
    for command in COMMANDS:
        for odd in False, True:
            s.case(f"{' '.join(command)}{', all unusual' if odd else ''}", same, [], odd, command)
    for command in ["record"], ["record", "-o", "trace.data"], ["stat"], ["stat", "-o", "rows"], ["pages"]:
        s.case(f"{' '.join(command)}, a static program", same, ["-static"], True, command)
    for command in COMMANDS:
        s.case(f"{' '.join(command)}: who writes more than may be", ends_by, "FSIZE", command)
