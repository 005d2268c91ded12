#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Commands that write a file are killed at any instant: the old file stays whole, or the new one is."""
import hashlib
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

KILLS = 14  # a command: 200 in all
FILES = ["folded", "callgrind", "chrome", "speedscope", "perfetto", "pprof", "parquet", "csv", "mk.dat", "sqlite"]
DIRECTORIES = ["uftrace", "ctf", "otf2", "parquet"]
LOOP = """
static int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n; }
int work(int n) { return leaf(n) + leaf(n + 1); }
int main(int argc, char **argv) { int s = 0; (void)argv; for (int i = 0; i < 5000 * argc; i++) s += work(i); return s == 1; }
"""
PATIENCE = 300


def run(argv):
    return subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)


def sums(path):
    """Of a file, or of all that a directory holds."""
    if not os.path.isdir(path):
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    return sorted((os.path.relpath(os.path.join(at, name), path), os.path.getsize(os.path.join(at, name)))
                  for at, _, names in os.walk(path) for name in names)


def wrote(argv, out):
    """What a run that is not disturbed leaves there, and how long it takes."""
    if os.path.isdir(out):
        shutil.rmtree(out)
    begin = time.monotonic()
    r = run(argv)
    took = time.monotonic() - begin
    tap.need(r.returncode == 0, r)
    return sums(out), took


def kill_often(argv, out, before):
    """before: makes what lies there before each run.  How many of the runs were killed."""
    old = before()
    new, took = wrote(argv, out)
    tap.need(new != old, "the new output is no other than the old one")
    killed = 0
    for i in range(KILLS):
        before()
        p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            # every other one near the end, where files are renamed
            p.wait(timeout=took * (random.random() if i % 2 else 0.6 + 0.4 * random.random()))
        except subprocess.TimeoutExpired:
            p.kill()
            killed += 1
        p.wait()
        now = sums(out) if os.path.exists(out) else None
        tap.need(now in (old, new), f"{argv}: neither the old output nor the new one: {now}")
    return killed


def over_a_file(*argv):
    """argv without -o FILE; the old file is the small trace's"""
    def before():
        shutil.copy("../small.out", "out")
        return sums("out")
    tap.need(run([tap.KRON, *argv, "-o", "../small.out", "../small"]).returncode == 0, argv)
    tap.need(kill_often([tap.KRON, *argv, "-o", "out", "../large"], "out", before), "no run was killed")


def directory(form):
    """is not there, or whole"""
    def before():
        shutil.rmtree("out", ignore_errors=True)
    to = "--dataset" if form == "parquet" else "-o"
    tap.need(kill_often([tap.KRON, "export", "-f", form, to, "out", "../large"], "out", before), "no run was killed")


def patch():
    """a patched file is the old one or the new one"""
    def before():
        shutil.copy("../loop", "out")
        return sums("out")
    kill_often([tap.KRON, "patch", "../loop", "-o", "out"], "out", before)


def record():
    """two traces of one program, one of them large"""
    tap.compile_text("../loop", LOOP, "-O1", "-fno-inline")
    for name, arguments in (("small", []), ("large", ["2", "3", "4", "5"])):
        tap.need(run([tap.KRON, "record", "-q", "-o", f"../{name}", "--", "../loop", *arguments]).returncode == 0, name)


def has_otf2():
    with open(f"{tap.BUILD}/config.h") as f:
        return "#define HAVE_OTF2 1" in f.read()


with tap.Suite("killed") as s:
    random.seed(tap.SEED)
    s.case("the traces", record)
    for form in FILES:
        s.case(f"kron export -f {form}, killed at any instant", over_a_file, "export", "-f", form)
    for form in DIRECTORIES:
        if form != "otf2" or has_otf2():
            s.case(f"kron export -f {form} to a directory, killed at any instant", directory, form)
    s.case("kron view, killed at any instant", over_a_file, "view", "-q")
    s.case("kron read, killed at any instant", over_a_file, "read")
    s.case("kron patch, killed at any instant", patch)
