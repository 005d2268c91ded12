# SPDX-License-Identifier: MIT
"""state.py - for cycles.py: what a process is, and what of kron's is in it."""
import os
import re

from live import maps, text_is_of_files
from tap import need


def ours(pid):
    """Mappings that kron has made."""
    return [m for m in maps(pid) if re.search("memfd:kron|shm/kron", m[-1]) or m[0].startswith(("7e8", "7e9", "7ea"))]


def links(pid):
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass  # closed meanwhile
    return found


def state(pid):
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.split(":", 1) for line in f)
    return {
        "handlers": status["SigCgt"].strip(),
        "ignored": status["SigIgn"].strip(),
        "tracer": status["TracerPid"].strip(),
        "threads": int(status["Threads"]),
        "descriptors": len(links(pid)),
    }


def need_same(before, pid, slack):
    """slack: how many threads and descriptors the program itself has at times, and at others not."""
    after = state(pid)
    for key in ("handlers", "ignored", "tracer"):
        need(after[key] == before[key], f"{pid}: {key}: {before[key]} before, {after[key]} after")
    for key in ("threads", "descriptors"):
        need(after[key] <= before[key] + slack, f"{pid}: {key}: {before[key]} before, {after[key]} after: {links(pid)}")
    need(not ours(pid), f"{pid}: mapped: {ours(pid)}")
    need(not [x for x in links(pid) if re.search("memfd:kron|shm/kron", x)], f"{pid}: open: {links(pid)}")
    text_is_of_files(pid)


def surgeons(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read() == "kron-surgeon\n" and os.readlink(f"/proc/{pid}/cwd") == folder:
                    found.append(int(pid))
        except OSError:
            pass
    return found
