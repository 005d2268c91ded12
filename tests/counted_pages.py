# SPDX-License-Identifier: MIT
"""counted_pages.py - bins/pages.c: what its assembly does to which page; what valgrind's lackey sees; programs that must not notice."""

import os
import shutil
import subprocess

from tap import KRON, Skip, compile_c, need

M = 0x300000000000  # where its memory lies
ROUNDS = 500
# page of that -> reads and writes
OTHERS = {64: (0, 4097), 65: (0, 905), 66: (512, 0), 68: (0, 512), 70: (1, 0), 71: (0, 1), 72: (100, 100),
          73: (10, 0), 74: (1, 1), 76: (1, 0)}

# programs below torture/
WAYS = ("control/registers", "control/redzone", "control/siglongjmp", "threads/foreign_fs", "threads/shared_tls",
        "threads/stack_end", "process/fork_threads")


def stride(times=1):
    return {n: (2 * ROUNDS * times, 2 * ROUNDS * times) for n in range(64)}


def need_lackey():
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")


def references(path):
    """What lackey prints: I (an instruction), L, S or M (loads, stores, changes), address, size."""
    r, w = os.pipe()
    p = subprocess.Popen(["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={w}", path],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[w])
    os.close(w)
    with os.fdopen(r) as f:
        for line in f:
            kind, rest = line[:3].strip(), line[3:]
            if kind in ("I", "L", "S", "M"):
                at, size = rest.split(",")
                yield kind, int(at, 16), int(size)
    p.wait()


def behaves(options, programs):
    """what programs with ways of their own print, and how they end, is as without kron"""
    for name in programs:
        out = os.path.basename(name)
        compile_c(out, f"torture/{name}.c")
        plain = subprocess.run(["./" + out], capture_output=True, timeout=300)
        counted = subprocess.run([KRON, "pages", "-q", *options, "-o", "text", "--", "./" + out], capture_output=True,
                                 timeout=300)
        need((plain.returncode, plain.stdout) == (counted.returncode, counted.stdout), (name, plain, counted))
