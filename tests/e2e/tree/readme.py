#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""readme.py - the sessions of README.md and doc/COOKBOOK.md, each in an empty folder, with an installed
kron and Debian's programs: every command ends with status 0 and says what stands there.

A session is a block in which lines begin with "$ ".  `$ cat FILE` of a file that is not there yet
makes it, from what it shows.  Words are compared as they are.  Of numbers, times and what depends
on them may be anything, zero stays zero, and counts, which change with Debian's programs, must be
of the same size.  Where a line holds names that depend on times, its kind is compared (KINDS).
"..." stands for any lines."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
from tap import BUILD, SRC, need  # noqa: E402

MARK = "--- next command ---"
# bootstrap installs packages and builds kron itself
NEEDED = {"sqlite3": "sqlite3", "/bin/busybox": "busybox-static", "/usr/bin/gron": "gron", "cc ": "gcc",
          "/usr/bin/git": "git", "python3": "python3"}

# ---- the pages ----


def sessions(text):
    """[(line number, [(command, [lines that it prints])])]"""
    found, block, begin = [], None, 0
    for n, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if block is None:
                block, begin = [], n
            else:
                if any(x.startswith("$ ") for x in block):
                    found.append((begin, commands(block)))
                block = None
        elif block is not None:
            block.append(line)
    return found


def commands(block):
    need(block[0].startswith("$ "), f"the session of {block[0]!r} does not begin with a command")
    out = []
    for line in block:
        if line.startswith("$ "):
            out.append((line[2:], []))
        else:
            out[-1][1].append(line)
    for _, shown in out:
        while shown and not shown[-1].strip():  # a blank line for the eye
            shown.pop()
    return out


# ---- what may differ ----

NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?$")
TIME = re.compile(r"(ns|us|ms|s|s;|%|%,|MHz|samples/s)$")
SIZE = re.compile(r"(KiB|MiB|GiB)$")
# words whose number says how long something took, or what Debian's compiler made of a program
FREE = re.compile(r"(pid|ticks|sites|refused;?|migrations|switches)$")
KINDS = [
    # kron report: a row; the functions are those that took the time
    r"^ *[\d.]+ [num]?s +[\d.]+ [num]?s +[\d.]+% +[\d,]+( +[\d.]+ [num]?s){3}  \S.* \[\S+\](  ~[\d,]+ without exit)?$",
    r"^[\d,]+ calls.*; 0 samples lost$",
    r"^ *[\d.]* ?[num]?s? \[ *\d+\] \| +\S.*$",  # kron replay
    r"^[\d,]+ probes of [\d.]+ ns .*: [\d.]+ [num]?s(, .* of processor time that the program took( without them)?)?$",
    r"^kron: the trigger fired after [\d.]+ s; [\d,]+ samples were not near it$",
    r"^\d+ migrations? of threads to another CPU$",
    # kron record: what probes cost is a share of the program's time, where that is known and larger
    r"^kron: (?P<count>[1-9][\d,]*) samples, 0 lost, \d+ sites refused, probes cost (about|at least) ([\d.]+%|[\d.]+ [num]?s) -> (?P<dir>\S+)$",
    # kron record --pid
    r"^kron: (recording )?process \d+(?P<rest>; Ctrl-C ends it sooner| runs on as before; stood still for) ?([\d.]+ [num]?s at most)?$",
    r"^          +\[ *\d+\] \| *\S.*$",
    r"^ +[\d,]+  [a-z-]+$",  # kron list: a tactic
    r"^Trace +/\S*/kron.data$",
    r"^Chunks +\d+ free, \d+ in use, \d+ full, of \d+ \([\d.]+ GiB\)$",
    r"^High Order +[0-9a-f]{8}$",
    r"^10  [0-9a-f]{14}  00000000  (?P<data>[0-9a-f]{16})$",
    r"^[┌├└][─┬┼┴]+[┐┤┘]$",
    r"^│ (?P<name>\w+) +│ \d+ +│ \d+ +│ \d+ +│$",
    # events: their names and levels
    r"^ +(?P<count>[\d,]+) +\d+ +(0x)?[0-9a-f]+ +(0x)?[0-9a-f]+ +(?P<event>\d  .*)$",
]


def near(a, b):
    a, b = (float(x.replace(",", "")) for x in (a, b))
    return a == b or (a > 0 and b > 0 and a <= 2 * b and b <= 2 * a)


def same_words(want, got):
    a, b = want.split(), got.split()
    if len(a) != len(b):
        return False
    for i, (x, y) in enumerate(zip(a, b)):
        after = a[i + 1] if i + 1 < len(a) else ""
        before = a[i - 1] if i else ""
        x, y = x.rstrip(";,"), y.rstrip(";,")
        if x == y or (re.fullmatch(r"0x[0-9a-f]+", x) and re.fullmatch(r"0x[0-9a-f]+", y)):
            continue
        if re.fullmatch(r"[\d.]+%", x) and re.fullmatch(r"[\d.]+%", y):
            continue
        if not (NUMBER.match(x) and NUMBER.match(y)):
            return False
        if TIME.match(after) or FREE.match(after) or FREE.match(before):
            continue
        if SIZE.match(after) or ("." not in x and "." not in y):
            if not near(x, y):
                return False
    return True


def same(want, got, timed=False):
    """timed: for how long it recorded was said, or that a call that takes long ends it: how many calls that are
    is not the program's to say."""
    if want == got:
        return True
    for kind in KINDS:
        a, b = re.match(kind, want), re.match(kind, got)
        if a and b:
            count = a.groupdict().get("count")
            return (not count or timed or near(count, b["count"])) and \
                all(v == b[k] for k, v in a.groupdict().items() if k != "count")
    return same_words(want, got)


def differ(want, got, timed=False):
    """None, or the first line of want that is not there."""
    if not want:
        return None
    if want[0].strip() == "...":
        return next((None for k in range(len(got) + 1) if differ(want[1:], got[k:], timed) is None), f"after '...': {want[1:2]}")
    if not got:
        return f"missing: {want[0]!r}"
    if not same(want[0], got[0], timed):
        return f"the page: {want[0]!r}\n  here: {got[0]!r}"
    if len(want) == 1 and len(got) > 1:
        return f"more than the page has: {got[1]!r}"
    return differ(want[1:], got[1:], timed)


# ---- a session ----


def script_of(session):
    lines = ["exec 2>&1"]
    for command, shown in session:
        name = command[4:] if re.fullmatch(r"cat [\w.]+", command) else None
        if name and shown and not any(c != command and re.search(r">\s*" + re.escape(name), c) for c, _ in session):
            with open(name, "w") as f:
                f.write("\n".join(shown) + "\n")
        lines += [command, f"printf '%s %s\\n' '{MARK}' $?"]
    return "\n".join(lines) + "\n"


def run(session, env):
    """[(status, lines)]"""
    command = ["bash", "-c", script_of(session)]
    if os.geteuid() == 0:  # nobody else's boards
        command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "-", *command]
    elif any("board create" in c for c, _ in session):
        raise tap.Skip("makes boards that may be somebody's")
    r = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300)
    out, done = [], []
    for line in r.stdout.decode("utf-8", "replace").splitlines():
        head, mark, status = line.partition(MARK)
        if not mark:
            out.append(line.rstrip())
            continue
        if head:  # of a last line that did not end
            out.append(head)
        done.append((int(status), out))
        out = []
    return done


def try_session(session, env):
    text = "\n".join(c for c, _ in session)
    for word, package in NEEDED.items():
        if word in text and not shutil.which(word.strip()):
            raise tap.Skip(f"{package} is not installed")
    done = run(session, env)
    wrong = []
    for i, (command, want) in enumerate(session):
        if i >= len(done):
            wrong.append(f"$ {command}\n  never ended")
            continue
        status, got = done[i]
        if status:
            wrong.append(f"$ {command}\n  status {status}: {got}")
        difference = differ([w.rstrip() for w in want], got, bool(re.search(r" --for |--trigger '[^']*>\d+ms", text)))
        if difference:
            wrong.append(f"$ {command}\n  {difference}")
    need(not wrong, "\n".join(wrong))


def install(prefix):
    subprocess.run(["make", "-C", BUILD, "-s", "install", f"prefix={prefix}"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KRON", "MAKE", "MFLAGS"))}
    return {**env, "PATH": f"{prefix}/bin:/usr/bin:/bin", "C_INCLUDE_PATH": f"{prefix}/include",
            "LIBRARY_PATH": f"{prefix}/lib", "LD_LIBRARY_PATH": f"{prefix}/lib"}


def the_comparison():
    """What it must not let through."""
    for a, b in (("kron: 10 samples, 0 lost", "kron: 10 samples, 1 lost"), ("12 places, 0 refused", "30 places, 0 refused"),
                 ("  2  realloc [libc.so.6] tail-call: sort", "  2  realloc [libc.so.6] tail-call: ls"),
                 ("10  00000000066fb0  00000000  000000000000000a", "10  00000000066fb0  00000000  000000000000000b"),
                 ("│ sh   │ 82 │ 0   │ 3     │", "│ dash │ 82 │ 0   │ 3     │"), ("fffe", "ffff"), ("a b", "a b c"),
                 ("         220        454276         0x4     0x8d260      0  allocated size [libc.so.6]",
                  "         220        454276         0x4     0x8d260      1  allocated size [libc.so.6]")):
        need(not same(a, b), f"{a!r} and {b!r} pass for the same")
    summary = "kron: %s samples, 0 lost, 2 sites refused, probes cost about %s -> out"
    need(same(summary % ("1,000", "2%"), summary % ("1,100", "3.2 us")), "a cost in percent and in time")
    need(not same(summary % ("1,000", "2%"), summary % ("4,100", "2%")), "four times as many samples pass")
    need(differ(["a", "b"], ["a"]) and differ(["a"], ["a", "b"]) and differ(["a", "...", "c"], ["a", "b"]), "lines that lack")
    need(not differ(["a", "...", "c"], ["a", "b", "c"]) and not differ(["...", "c", "..."], ["b", "c", "d"]), "the dots")


with tap.Suite("readme") as s:
    s.case("the comparison tells one from another", the_comparison)
    environment = install(os.path.join(s.folder, "usr"))
    for page in ("README.md", "doc/COOKBOOK.md"):
        with open(os.path.join(SRC, page)) as f:
            text = f.read()
        for number, session in sessions(text):
            s.case(f"{page}:{number}: {session[-1][0][:60]}".replace("#", "no."), try_session, session, environment)
