# SPDX-License-Identifier: MIT
"""callgrind.py - how often each instruction of a program is executed, by valgrind's callgrind."""
import os
import re
import shutil
import subprocess

import tap


def executed(path):
    """Address -> how often: instructions of the program's own code, run as it is."""
    if not shutil.which("valgrind"):
        raise tap.Skip("valgrind is not installed")
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no",
                    "--compress-pos=no", "--compress-strings=no", "--callgrind-out-file=out",
                    path], check=True, capture_output=True,
                   env={**os.environ, "LD_BIND_NOW": "1"})
    counts, ours, skip = {}, False, False
    with open("out") as f:
        for line in f:
            if line.startswith("ob="):
                ours = line.strip() == "ob=" + path
            elif line.startswith("calls="):
                skip = True
            elif re.match(r"0x[0-9a-f]+ ", line):
                # the line after calls= is the cost of the callee
                if ours and not skip:
                    at, *rest = line.split()
                    counts[int(at, 16)] = counts.get(int(at, 16), 0) + int(rest[-1])
                skip = False
    return counts
