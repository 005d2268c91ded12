#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cache.py - the plan cache gives nobody a plan that was made for something else.

What programs print is held against what they print untraced, and the calls in a trace against how
often their argument has them call.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from recordings import STRANGER
from tap import CC, KRON, SRC, Suite, compile_c, need, need_root, truth

SYSTEM = "/usr/lib/x86_64-linux-gnu"


def run(*argv, status=0, **more):
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    need(r.returncode == status, f"{argv}: status {r.returncode}\n{r.stdout}{r.stderr}")
    return r


def same(*argv, calls, function="total", options=(), env=None):
    """A recorded run prints what an untraced one prints, and has the calls."""
    env = dict(os.environ, **(env or {}))
    want = run(*argv, env=env).stdout
    got = run(KRON, "record", "-o", "trace", "-L", "*", *options, "--", *argv, env=env)
    need(got.stdout == want, f"{argv}: {got.stdout!r} instead of {want!r}")
    n = truth.Trace("trace").entries[function]
    need(n == calls, f"{argv}: {n} instead of {calls} calls\n{got.stderr}")
    subprocess.run(["rm", "-r", "trace"], check=True)


# ---- forged files ----


def library(path, *flags, build_id="0x1234567890abcdef1234"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    source = os.path.join(SRC, "tests/bins/forged/total.S")
    run(*CC, "-shared", "-o", path, source, *flags, f"-Wl,--build-id={build_id}")


def libraries(**more):
    library("plain/libtotal.so", **more)
    library("forged/libtotal.so", "-DFORGED", **more)
    compile_c("main", "bins/forged/main.c", "-Lplain", "-ltotal")
    a, b = (open(f"{d}/libtotal.so", "rb").read() for d in ("plain", "forged"))
    need(len(a) == len(b) and sum(x != y for x, y in zip(a, b)) == 1, "they differ in more")


def take_turns(first, second):
    libraries()
    for folder in (first, second, first):
        same("./main", "7", calls=7, env={"LD_LIBRARY_PATH": folder})


def by_a_stranger():
    """root records a program that maps a stranger's library, and then its own."""
    need_root()
    libraries()
    os.chown("forged/libtotal.so", STRANGER, STRANGER)
    for folder in ("forged", "plain", "forged"):
        same("./main", "7", calls=7, env={"LD_LIBRARY_PATH": folder})


def patched():
    """kron patch leaves the build-id what it was."""
    libraries()
    same("./main", "7", calls=7, env={"LD_LIBRARY_PATH": "plain"})
    os.mkdir("done")
    run(KRON, "patch", "-o", "done/libtotal.so", "plain/libtotal.so")
    for folder in ("done", "plain", "forged", "done"):
        same("./main", "7", calls=7, env={"LD_LIBRARY_PATH": folder})


# ---- files that are edited in place ----


def edit(path):
    """The plain one becomes the forged one: the same inode, size and mtime."""
    was = os.stat(path)
    with open("forged/libtotal.so", "rb") as f, open(path, "r+b", buffering=0) as out:
        out.write(f.read())
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    now = os.stat(path)
    need((was.st_ino, was.st_size, was.st_mtime_ns) == (now.st_ino, now.st_size, now.st_mtime_ns),
         "it is another file")


def edited(build_id):
    libraries(build_id=build_id)
    env = {"LD_LIBRARY_PATH": "plain"}
    same("./main", "7", calls=7, env=env)
    edit("plain/libtotal.so")
    same("./main", "7", calls=7, env=env)
    library("plain/libtotal.so", build_id=build_id)
    same("./main", "7", calls=7, env=env)


def edited_meanwhile():
    """Within one recording: the program edits its library, and starts itself again."""
    libraries()
    for order in (("plain", "forged"), ("forged", "plain")):
        script = "\n".join(f"cat {d}/libtotal.so >libtotal.so; ./main 7" for d in order * 2)
        env = dict(os.environ, LD_LIBRARY_PATH=".")
        run("cp", "plain/libtotal.so", "libtotal.so")
        want = run("sh", "-c", script, env=env).stdout
        got = run(KRON, "record", "-o", "trace", "-L", "*", "--", "sh", "-c", script, env=env)
        need(got.stdout == want, f"{got.stdout!r} instead of {want!r}\n{got.stderr}")
        n = truth.Trace("trace").entries["total"]
        need(n == 28, f"{n} calls instead of 28\n{got.stderr}")
        subprocess.run(["rm", "-r", "trace"], check=True)


with Suite("cache") as s:
    s.case("a forged build-id: the forged one first", take_turns, "forged", "plain")
    s.case("a forged build-id: the plain one first", take_turns, "plain", "forged")
    s.case("a stranger's library with root's build-id", by_a_stranger)
    s.case("a patched copy, its original, and a forged one", patched)
    s.case("a library is edited in place, and has a build-id", edited, "0x1234")
    s.case("a library is edited in place, and has none", edited, "none")
    s.case("a library is edited in place while it is recorded", edited_meanwhile)
