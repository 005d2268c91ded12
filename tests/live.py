# SPDX-License-Identifier: MIT
"""live.py - for tests of processes that run already: kron's presence in them, and the calls in their traces.

    r = record_pid(pid, "-L", "*")           kron record --pid, as soon as it records
    said = interrupt(r)                      ... until Ctrl-C
    need_unbroken(numbers()[thread])         the numbers that the function was called with
    text_is_of_files(pid)                    no byte of the text is kron's
"""

import json
import os
import re
import signal
import subprocess

from tap import KRON, need

# A program whose numbers are not so many that to read them takes long.
STEADY = """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile int over;
static void end(int s) { over = s; }
__attribute__((noinline)) unsigned long counted(unsigned long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
int main(void) {
    unsigned long n = 1;
    signal(SIGTERM, end);
    puts("ready"); fflush(stdout);
    while (!over) { for (int i = 0; i < 10; i++) n = counted(n); usleep(1000); }
    return 0;
}
"""

# ---- the recorder ----


def begin_record_pid(pids, *options, trace="t"):
    """kron record --pid, which has yet to attach."""
    argv = [KRON, "record", "-o", trace, "--pid", str(pids), *options]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def record_pid(pids, *options, trace="t"):
    """kron record --pid, once it records."""
    r = begin_record_pid(pids, *options, trace=trace)
    line = r.stderr.readline()
    need("recording" in line, f"it does not record: {line}")
    return r


def ended(recorder):
    """What it says until its end, which is a good one."""
    recorder.wait(60)
    said = recorder.stderr.read()
    recorder.stderr.close()
    need(recorder.returncode == 0, f"kron ended with {recorder.returncode}: {said}")
    return said


def interrupt(recorder):
    recorder.send_signal(signal.SIGINT)
    return ended(recorder)


def surgeons():
    """Helpers of kron that still run in this folder: those of other tests have other folders."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/comm").read() == "kron-surgeon\n" and os.readlink(f"/proc/{pid}/cwd") == os.getcwd():
                found.append(pid)
        except OSError:
            pass
    return found


# ---- the process ----


def maps(pid):
    with open(f"/proc/{pid}/maps") as f:
        return [line.split(None, 5) for line in f]


def ours(pid):
    """Mappings that kron has made: its code and blocks, the board, and what has no file where they lie."""
    return [m for m in maps(pid) if re.search("memfd:kron|shm/kron", m[-1]) or m[0].startswith(("7e8", "7e9", "7ea"))]


def text_is_of_files(pid, stays=False):
    """Whatever is executable and has a name is as the file of that name has it; stays: but for what is kron's."""
    with open(f"/proc/{pid}/mem", "rb") as mem:
        for m in maps(pid):
            if "x" not in m[1] or len(m) < 6 or not m[5].startswith("/"):
                continue
            if stays and m[5].startswith("/memfd:kron"):
                continue
            start, end = (int(x, 16) for x in m[0].split("-"))
            mem.seek(start)
            have = mem.read(end - start)
            with open(m[5].strip(), "rb") as f:
                f.seek(int(m[2], 16))
                wanted = f.read(end - start)
            need(have[: len(wanted)] == wanted, f"the text of {m[5].strip()} is not that of the file")


# ---- the trace ----


def info(trace="t"):
    r = subprocess.run([KRON, "info", "--json", trace], capture_output=True, text=True, check=True)
    return json.loads(r.stdout)


def numbers(name="counted", trace="t"):
    """By thread, in the order of the trace: n of each event of this name.  A dump may have millions of lines."""
    seen = {}
    dump = subprocess.Popen([KRON, "dump", trace], stdout=subprocess.PIPE, text=True)
    for line in dump.stdout:
        head, event, tail = line.partition(f" event {name} n=0x")
        if event:
            seen.setdefault(head.split()[-2], []).append(int(tail.split()[0], 16))
    dump.stdout.close()
    need(dump.wait() == 0, f"kron dump ended with {dump.returncode}")
    return seen


def need_unbroken(of_thread, whose="a thread"):
    """Each is one more than the one before it: no call is missing, none is there twice."""
    for a, b in zip(of_thread, of_thread[1:]):
        need(b == a + 1, f"{whose}: {a:#x}, and then {b:#x}")
