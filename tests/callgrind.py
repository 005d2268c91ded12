# SPDX-License-Identifier: MIT
"""callgrind.py - how often each instruction of a program is executed, by valgrind's callgrind."""
import collections
import json
import os
import re
import shutil
import subprocess

import tap


def profile(command, env, *flags):
    """The lines of what callgrind says."""
    if not shutil.which("valgrind"):
        raise tap.Skip("valgrind is not installed")
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no",
                    "--compress-pos=no", "--compress-strings=no", "--callgrind-out-file=out",
                    *flags, *command], check=True, capture_output=True, env=env)
    with open("out") as f:
        yield from f


def executed(path):
    """Address -> how often: instructions of the program's own code, run as it is."""
    return counted([path], path, {**os.environ, "LD_BIND_NOW": "1"})[0]


def counted(command, path, env, *flags):
    """Of the file at path, address -> how often; and (from, to) -> how often a jump was taken."""
    counts, jumps = collections.Counter(), collections.Counter()
    ours, skip, jump = False, False, None
    for line in profile(command, env, *flags):
        if line.startswith("ob="):
            ours = line.strip() == "ob=" + path
        elif line.startswith("calls="):
            skip = True
        elif re.match(r"(jump|jcnd)=", line):
            n, to = line[5:].split()
            jump = int(n.split("/")[0]), int(to, 16)
        elif re.match(r"0x[0-9a-f]+ ", line):
            at, *rest = line.split()
            if jump and ours:
                jumps[int(at, 16), jump[1]] += jump[0]
            # the line after calls= is the cost of the callee
            elif not jump and ours and not skip:
                counts[int(at, 16)] += int(rest[-1])
            skip, jump = False, None
    return counts, jumps


def entries(command, path, env):
    """Function -> how often it is entered: its first instruction is executed, and not by its own jumps."""
    counts, jumps = counted(command, path, env, "--collect-jumps=yes",
                            "--skip-plt=no")
    listed = json.loads(subprocess.run([tap.KRON, "list", "--json", path], capture_output=True, text=True,
                                       check=True).stdout)["functions"]
    end_of = {f["address"]: f["address"] + f["size"] for f in listed}
    for (at, to), n in jumps.items():
        if to <= at < end_of.get(to, 0):
            counts[to] -= n
    wanted = collections.Counter()
    for f in listed:
        if counts[f["address"]] and "refused" not in f["entry"]:
            wanted[f["name"]] += counts[f["address"]]
    return wanted
