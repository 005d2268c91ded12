#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""outputs.py - what a command writes for its user is under its name whole or not at all.

Every kind of output is written over an older one, and the writer is killed at random instants, or
finds the disk full: afterwards the older one is there, byte by byte, or the newer one.  Whole ones
to compare with come from a run that nobody disturbs.

KRON_KILLS=N kills each kind N times instead of 20.
"""

import contextlib
import fcntl
import glob
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import BUILD, KRON, Skip, Suite, compile_c, need, rnd, small_disk, truth, wait_for

OLD = b"what was there before\n" * 1000
BOARD = f"outputs-{os.getpid()}"
NOBODY = 65534
MAKE_TRACE = os.path.join(BUILD, "tests/unit/trace/make_trace")


def tool(name):
    return os.path.join(BUILD, "board/toolkit", name)


def has_otf2():
    with open(os.path.join(BUILD, "config.h")) as f:
        return "#define HAVE_OTF2 " in f.read()


# ---- every kind of output: a name, and the command that writes OUT ----

STREAMS = ["folded", "callgrind", "chrome", "speedscope", "perfetto", "pprof", "parquet", "csv", "mk.dat"]
FOLDERS = ["uftrace", "ctf"]
if has_otf2():
    FOLDERS.append("otf2")
FILES = {
    **{f: [KRON, "export", "-q", "-f", f, "-o", "OUT", "../trace"] for f in STREAMS + ["sqlite"]},
    "view": [KRON, "view", "-o", "OUT", "../trace"],
    "read": [KRON, "read", "-o", "OUT", "../trace"],
    "read --intervals": [KRON, "read", "-o", "/dev/null", "--intervals", "OUT", "../trace"],
    "read --board": [KRON, "read", "-o", "OUT", "--board", BOARD],
    "patch": [KRON, "patch", "-q", "-o", "OUT", "/bin/sed"],
    "mk_rdsample": [tool("mk_rdsample"), "-b", BOARD, "-f", "OUT"],
}
DIRS = {
    **{f: [KRON, "export", "-q", "-f", f, "-o", "OUT", "../trace"] for f in FOLDERS},
    "dataset": [KRON, "export", "-q", "-f", "parquet", "--dataset", "OUT", "../trace"],
}
KINDS = {**FILES, **DIRS}
NEEDS_FILE = ["sqlite", "patch"]  # nothing but a regular file will do


def line(kind, out):
    return [out if a == "OUT" else a for a in KINDS[kind]]


def run(kind, out="new", before=(), **more):
    return subprocess.run([*before, *line(kind, out)], stdin=subprocess.DEVNULL, capture_output=True, **more)


def start(kind, out="new"):
    return subprocess.Popen(line(kind, out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def good(kind, out="new", **more):
    r = run(kind, out, **more)
    need(r.returncode == 0, f"{kind}: {r.returncode} {r.stderr}")


def contents(path, kind=None):
    """Bytes of a file; of a folder its names and files.  OTF2's has the time in it: sizes do."""
    if not os.path.lexists(path):
        return None
    if not os.path.isdir(path):
        with open(path, "rb") as f:
            return f.read()
    names = sorted(glob.glob("**", root_dir=path, recursive=True, include_hidden=True))
    return [(n, None if os.path.isdir(os.path.join(path, n)) else os.path.getsize(os.path.join(path, n))
             if kind == "otf2" else contents(os.path.join(path, n))) for n in names]


def put_old(kind, out="new"):
    """What the command finds: an older file; of folders an empty one, for others it refuses."""
    if kind in DIRS:
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        return []
    with open(out, "wb") as f:
        f.write(OLD)
    return OLD


def sentence(kind, r, *words):
    err = r.stderr.decode("utf-8", "replace")
    need(r.returncode == 1, f"{kind}: status {r.returncode}: {err}")
    need(err.count("\n") == 1 and err.endswith("\n"), f"{kind}: not one sentence: {err}")
    for w in words:
        need(w.lower() in err.lower(), f"{kind}: no word of '{w}': {err}")


def nothing_else(kind, *expected):
    left = sorted(set(os.listdir(".")) - set(expected))
    need(not left, f"{kind}: left behind: {left}")


# ---- the instants ----

KILLS = int(os.environ.get("KRON_KILLS", 0)) or 20


def killed(kind):
    """SIGKILL: old or new, and what else lies there goes with the next run."""
    good(kind, "whole")
    want = contents("whole", kind)
    good(kind, "again")
    need(contents("again", kind) == want, "two runs differ: nothing to compare with")
    shutil.rmtree("again") if kind in DIRS else os.unlink("again")
    began = time.monotonic()
    good(kind, "timed")
    span = time.monotonic() - began
    shutil.rmtree("timed") if kind in DIRS else os.unlink("timed")
    outcomes = {"old": 0, "new": 0}
    most = 0
    for _ in range(KILLS):
        old = put_old(kind)
        p = start(kind)
        time.sleep(rnd.uniform(0, span * 1.1))
        p.kill()
        p.wait()
        got = contents("new", kind)
        need(got in (old, want), f"neither old nor new: {len(got) if got is not None else got} of {len(want)}")
        outcomes["new" if got == want else "old"] += 1
        rest = [f for f in os.listdir(".") if f not in ("new", "whole")]
        need(all(f.startswith(".new.kron-") for f in rest), f"{rest} do not say whose they are")
        most = max(most, len(rest))
    need(most <= 1, f"{most} files of runs that were killed: nobody takes them away")
    put_old(kind)
    good(kind)
    need(contents("new", kind) == want, "another one after the kills")
    nothing_else(kind, "new", "whole")
    print(f"# {kind}: killed {KILLS} times: {outcomes}, {1000 * span:.0f} ms undisturbed")


def ended(kind):
    """SIGTERM, SIGINT, SIGHUP: nothing is left, and who waits sees the signal."""
    good(kind, "whole")
    want = contents("whole", kind)
    began = time.monotonic()
    good(kind, "timed")
    span = time.monotonic() - began
    shutil.rmtree("timed") if kind in DIRS else os.unlink("timed")
    for i in range(max(6, KILLS // 4)):
        sig = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[i % 3]
        old = put_old(kind)
        p = start(kind)
        time.sleep(rnd.uniform(0, span))
        p.send_signal(sig)
        need(p.wait() in (0, -sig), f"status {p.returncode} after {sig}")
        need(contents("new", kind) in (old, want), "neither old nor new")
        nothing_else(f"{kind} after {sig}", "new", "whole")


def no_room(kind):
    """Files may not grow: one sentence, status 1, and the old one is there."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (12, 12))
    old = put_old(kind)
    r = run(kind, preexec_fn=limit)
    sentence(kind, r, "cannot write", "too large" if kind != "sqlite" else "")
    need(contents("new", kind) == old, f"{kind}: the old one has changed")
    nothing_else(kind, "new")


def full_disk(kind):
    with small_disk("tiny", "64k"):
        old = put_old(kind, "tiny/new")
        with open("tiny/rest", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass
        for spare in (0, 4096):  # not even a beginning, or that
            os.truncate("tiny/rest", max(0, os.path.getsize("tiny/rest") - spare))
            r = run(kind, "tiny/new")
            if r.returncode == 0:  # it fits: no test of this
                continue
            sentence(kind, r, "cannot write")
            need(contents("tiny/new", kind) == old, f"{kind}: the old one has changed")
            need(sorted(os.listdir("tiny")) == ["new", "rest"], f"{kind}: {os.listdir('tiny')}")


def full_disk_midway(kind):
    """The same where the first thread's events are more than the library's buffer holds."""
    if not os.path.exists("../trace-one"):
        subprocess.run([MAKE_TRACE, "big", "../trace-one", "500000", "1"], check=True)
    for size in ("16k", "256k", "1200k"):
        with small_disk("tiny", size):
            r = subprocess.run([KRON, "export", "-q", "-f", kind, "-o", "tiny/new", "../trace-one"], capture_output=True)
            sentence(kind, r, "cannot write", "no space")
            need(not os.listdir("tiny"), f"{kind}, {size}: {os.listdir('tiny')}")


# ---- where it goes ----

def links(kind):
    """A link to a file stays one, and what it names is replaced; a link to nothing is refused."""
    good(kind, "whole")
    os.mkdir("far")
    put_old(kind, "far/real")
    os.symlink("far/real", "link")
    good(kind, "link")
    need(os.path.islink("link"), f"{kind}: the link is gone")
    need(contents("far/real", kind) == contents("whole", kind), f"{kind}: the link's file")
    need(os.listdir("far") == ["real"], f"{kind}: {os.listdir('far')}")
    os.unlink("link")
    os.symlink("far/nothing", "link")
    sentence(kind, run(kind, "link"), "link")
    need(os.listdir("far") == ["real"], f"{kind}: {os.listdir('far')}")


def foreign_link(kind):
    """A link that somebody has laid in a folder for all is not followed where the kernel would not."""
    with open("/proc/sys/fs/protected_symlinks") as f:
        if f.read().strip() != "1":
            raise Skip("fs.protected_symlinks is off")
    if os.geteuid():
        raise Skip("needs another user")
    os.mkdir("all")
    os.chmod("all", 0o1777)
    os.chown("all", NOBODY, NOBODY)
    put_old(kind, "real")
    os.symlink(os.path.abspath("real"), "all/link")
    os.lchown("all/link", 12345, 12345)
    sentence(kind, run(kind, "all/link"), "permission")
    need(contents("real", kind) == (OLD if kind not in DIRS else []), "it was written")


def foreign_file(kind):
    """Nor is a file written that somebody has left there for us to write to."""
    with open("/proc/sys/fs/protected_regular") as f:
        if f.read().strip() == "0":
            raise Skip("fs.protected_regular is off")
    if os.geteuid():
        raise Skip("needs another user")
    os.mkdir("all")
    os.chmod("all", 0o1777)
    put_old(kind, "all/file")
    os.chown("all/file", 12345, 12345)
    os.chmod("all/file", 0o666)
    sentence(kind, run(kind, "all/file"), "permission")
    need(contents("all/file", kind) == OLD, "it was written")


def not_replaced(kind):
    """Devices, pipes and descriptors are written as they are."""
    good(kind, "whole")
    want = contents("whole", kind)
    if kind in NEEDS_FILE:
        for place in ("/dev/null", "/dev/stdout"):
            sentence(kind, run(kind, place))
        need(stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null is not a device any more")
        return
    good(kind, "/dev/null")
    need(stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null is not a device any more")
    sentence(kind, run(kind, "/dev/full"), "space")
    os.mkfifo("pipe")
    reader = subprocess.Popen(["sh", "-c", "cat pipe >came"])
    good(kind, "pipe")
    reader.wait()
    need(contents("came") == want, "through a pipe")
    need(stat.S_ISFIFO(os.stat("pipe").st_mode), "the pipe is gone")
    # what the shell has opened is its own: not replaced, not cut, written where it stands
    for place in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        with open("mine", "wb") as f:
            f.write(b"head\n")
            f.flush()
            before = os.fstat(f.fileno()).st_ino
            r = subprocess.run(line(kind, place), stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.PIPE)
            need(r.returncode == 0, r.stderr)
        need(os.stat("mine").st_ino == before, f"{place} was replaced")
        with open("mine", "rb") as f:
            got = f.read()
        need(got.startswith(b"head\n" + want), f"{place}: {got[:40]}")


def modes(kind):
    """The old file's mode and owner; of a new one what the umask leaves."""
    if kind == "patch":  # that of the file it is made of: patch.bats
        raise Skip("a program keeps its own mode")
    subprocess.run(["sh", "-c", 'umask 027; exec "$@"', "-", *line(kind, "fresh")], check=True,
                   capture_output=True, stdin=subprocess.DEVNULL)
    want = 0o750 if kind in DIRS else 0o640
    need(stat.S_IMODE(os.stat("fresh").st_mode) == want, f"{os.stat('fresh').st_mode:o} of a new one")
    if kind in DIRS:
        return
    put_old(kind)
    os.chmod("new", 0o604)
    if not os.geteuid():
        os.chown("new", NOBODY, NOBODY)
    good(kind)
    st = os.stat("new")
    need(stat.S_IMODE(st.st_mode) == 0o604, f"{st.st_mode:o} of an old one")
    need(os.geteuid() or (st.st_uid, st.st_gid) == (NOBODY, NOBODY), f"owner {st.st_uid}:{st.st_gid}")


def as_nobody(kind):
    """What one may not write: the file, or the folder in which the new one is to be made."""
    if os.geteuid():
        raise Skip("needs root to become somebody else")
    if "board" in " ".join(KINDS[kind]) or kind == "mk_rdsample":
        raise Skip("a board has one owner")
    shutil.copytree("../trace", "trace")
    os.chmod("trace", 0o755)  # its owner shares it
    os.mkdir("mine")
    os.chown("mine", NOBODY, NOBODY)
    become = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    command = [a.replace("../trace", "trace") for a in line(kind, "OUT")]

    def write(out):
        return subprocess.run([*become, *[out if a == "OUT" else a for a in command]],
                              stdin=subprocess.DEVNULL, capture_output=True)
    if kind not in DIRS:
        put_old(kind, "mine/only-read")
        os.chown("mine/only-read", NOBODY, NOBODY)
        os.chmod("mine/only-read", 0o444)
        if kind != "patch":  # programs often may not be written; compilers replace them as well
            sentence(kind, write("mine/only-read"), "permission")
            need(contents("mine/only-read") == OLD, "a file without the right to write was written")
        put_old(kind, "file")
        os.chown("file", NOBODY, NOBODY)
        sentence(kind, write("file"), "permission", "folder")
        need(contents("file") == OLD, "written in place")
    r = write("mine/new")
    need(r.returncode == 0, r.stderr)
    need(set(os.listdir("mine")) <= {"new", "only-read"}, os.listdir("mine"))


def temporary():
    return {f for f in os.listdir(".") if re.fullmatch(r"\.new\.kron-[a-z2-7]{6}", f)}


def is_locked(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def neighbours(kind):
    """What a killed run has left goes; what a living one writes, and what only looks like it, stays."""
    subprocess.run([MAKE_TRACE, "walk", "../trace-long", "300000", "3"], check=True)
    keep = [".new.kron-abc", ".new.kron-abcdefg", ".other.kron-abcdef", "new.kron-abcdef"]
    for f in keep:
        open(f, "w").close()
    p = subprocess.Popen([a.replace("../trace", "../trace-long") for a in line(kind, "new")],
                         stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not any(is_locked(f) for f in temporary()):
        need(p.poll() is None, "it ended, and never had a temporary file")
    p.send_signal(signal.SIGSTOP)
    mine = temporary()
    good(kind)
    need(temporary() == mine, "what another run writes is gone")
    if kind in DIRS:
        shutil.rmtree("new")
    p.send_signal(signal.SIGCONT)
    p.kill()
    p.wait()
    need(temporary() == mine, "the killed one took its file away?")
    good(kind)
    nothing_else(kind, "new", *keep)
    good(kind, "n" * 255)  # as long as names may be
    nothing_else(kind, "n" * 255, "new", *keep)


# ---- what a program is measured by: it runs while the file is made, and no two are the same ----

MEASURES = ["stat", "monitor", "pages"]


def measure(kind, out):
    os.makedirs("tmp", exist_ok=True)
    return {"args": [KRON, kind, "--json", "-o", out, "--", "true"], "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "env": {**os.environ, "TMPDIR": os.path.abspath("tmp")}}


def is_whole(kind, text):
    try:
        if kind != "monitor":
            return bool(json.loads(text))
        return text.endswith(b"\n") and "totals" in json.loads(text.splitlines()[-1])
    except ValueError:
        return False


def measure_killed(kind):
    began = time.monotonic()
    need(subprocess.run(**measure(kind, "new")).returncode == 0, kind)
    span = time.monotonic() - began
    with open("new", "rb") as f:
        need(is_whole(kind, f.read()), "it is not what a whole one is taken for here")
    for _ in range(KILLS):
        old = put_old(kind)
        p = subprocess.Popen(**measure(kind, "new"))
        time.sleep(rnd.uniform(0, span * 1.1))
        p.kill()
        p.wait()
        p.stderr.close()
        got = contents("new")
        need(got == old or is_whole(kind, got), f"neither old nor new: {got[:200]}")
    # who was killed before its keeper was there leaves a folder, which the next one removes
    need(subprocess.run(**measure(kind, "new")).returncode == 0, kind)
    wait_for(lambda: not os.listdir("tmp"), f"the end of what a killed kron {kind} leaves", 30)
    need(subprocess.run(**measure(kind, "new")).returncode == 0, kind)
    nothing_else(kind, "new", "tmp")


def measure_full_disk(kind):
    with small_disk("tiny", "64k"):
        put_old(kind, "tiny/new")
        with open("tiny/rest", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(b"x" * 4096)
        r = subprocess.run(**measure(kind, "tiny/new"))
        need(r.returncode == 125 and b"cannot write tiny/new" in r.stderr, f"{kind}: {r}")
        need(contents("tiny/new") == OLD, f"{kind}: the old one has changed")
        need(sorted(os.listdir("tiny")) == ["new", "rest"], f"{kind}: {os.listdir('tiny')}")


# ---- kron record ----

def traces(path):
    return contents(path) if os.path.isdir(path) else None


def forget_segment(trace):
    """Of a recorder that was killed before the trace could say where its samples are."""
    subprocess.run([KRON, "recover", trace], capture_output=True)
    boards = json.loads(subprocess.run([KRON, "board", "list", "--json"], capture_output=True, check=True).stdout)
    for b in boards:
        if b["orphaned"] and b["trace"] == os.path.abspath(trace):
            r = subprocess.run([KRON, "board", "rm", b["name"]], capture_output=True, text=True)
            # its keeper may have been quicker
            need(r.returncode == 0 or "there is no board" in r.stderr, r.stderr)


def record_killed():
    """The last whole trace is in DIR or in DIR.old, and the next recording finds its way."""
    subprocess.run([KRON, "record", "-q", "-o", "whole", "true"], check=True)
    want = [c for c in contents("whole") if c[0] != "lock"]
    span = 0.05
    n = max(10, KILLS * 2)
    kept = {"DIR": 0, "DIR.old": 0}
    for _ in range(n):
        for d in ("t", "t.old"):
            shutil.rmtree(d, ignore_errors=True)
        shutil.copytree("whole", "t")
        shutil.copytree("whole", "t.old")
        p = subprocess.Popen([KRON, "record", "-q", "-o", "t", "true"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rnd.uniform(0, span) * rnd.random())  # early instants more often
        p.kill()
        p.wait()
        have = [d for d in ("t", "t.old") if [c for c in traces(d) or [] if c[0] != "lock"] == want]
        forget_segment("t")
        need(have, "the last trace is gone")
        kept["DIR" if have[0] == "t" else "DIR.old"] += 1
        r = subprocess.run([KRON, "record", "-q", "-o", "t", "true"], capture_output=True)
        need(r.returncode == 0, f"the next recording: {r.stderr}")
        nothing_else("record", "t", "t.old", "whole")
    print(f"# kron record: killed {n} times: the last trace was in {kept}")


def record_half_removed():
    """A removal of DIR.old that was cut off anywhere is gone on with."""
    subprocess.run([KRON, "record", "-q", "-o", "whole", "true"], check=True)
    removed = []
    subprocess.run([KRON, "record", "-q", "-o", "t", "true"], check=True)
    shutil.copytree("whole", "t.old")
    r = subprocess.run(["strace", "-f", "-qq", "-e", "trace=unlinkat,unlink", "-o", "log", KRON, "record", "-q", "-o", "t",
                        "true"], capture_output=True)
    if r.returncode:
        raise Skip("no strace here")
    with open("log") as f:
        for entry in f:
            name = entry.split('"')[1] if '"' in entry else ""
            if name in os.listdir("whole"):
                removed.append(name)
    need(len(removed) >= 5, f"removed: {removed}")
    for cut in range(len(removed) + 1):
        for d in ("t", "t.old"):
            shutil.rmtree(d, ignore_errors=True)
            shutil.copytree("whole", d)
        for name in removed[:cut]:
            os.unlink(os.path.join("t.old", name))
        r = subprocess.run([KRON, "record", "-q", "-o", "t", "true"], capture_output=True)
        need(r.returncode == 0, f"after {removed[:cut]}: {r.stderr}")
        if cut:
            for d in ("t", "t.old"):
                shutil.rmtree(d, ignore_errors=True)
                shutil.copytree("whole", d)
            for name in removed[:cut]:
                os.unlink(os.path.join("t.old", name))
            r = subprocess.run([KRON, "report", "t.old"], capture_output=True)
            need(r.returncode == 1 and r.stderr.count(b"\n") == 1, f"a half trace is shown: {removed[:cut]} {r}")


with Suite("outputs") as s:
    os.chmod(s.folder, 0o755)  # somebody else writes below it, too
    subprocess.run([MAKE_TRACE, "walk", "trace", "20000", "3"], check=True)
    subprocess.run([KRON, "board", "create", BOARD], check=True)
    try:
        subprocess.run([tool("mk_sample_test"), "-b", BOARD], check=True, stdout=subprocess.DEVNULL)
        for k in KINDS:
            s.case(f"{k}: killed at random instants", killed, k)
        for k in KINDS:
            s.case(f"{k}: SIGTERM, SIGINT and SIGHUP leave nothing", ended, k)
        for k in KINDS:
            s.case(f"{k}: files may not grow", no_room, k)
            s.case(f"{k}: a full disk", full_disk, k)
        for k in FOLDERS:
            s.case(f"{k}: a disk that is full midway", full_disk_midway, k)
        for k in KINDS:
            s.case(f"{k}: links", links, k)
        for k in ("view", "sqlite", "patch", "ctf"):
            s.case(f"{k}: a link of somebody else's", foreign_link, k)
        for k in ("view", "sqlite"):
            s.case(f"{k}: a file of somebody else's", foreign_file, k)
        for k in FILES:
            s.case(f"{k}: devices, pipes, descriptors", not_replaced, k)
        for k in KINDS:
            s.case(f"{k}: mode and owner", modes, k)
            s.case(f"{k}: without the right to write", as_nobody, k)
        for k in ["sqlite", *DIRS]:
            s.case(f"{k}: what lies beside it", neighbours, k)
        for k in MEASURES:
            s.case(f"{k}: killed at random instants", measure_killed, k)
            s.case(f"{k}: a full disk", measure_full_disk, k)
        s.case("record: killed at random instants", record_killed)
        s.case("record: a removal that was cut off", record_half_removed)
    finally:
        subprocess.run([KRON, "board", "rm", BOARD], check=True)
