# SPDX-License-Identifier: MIT
"""tap.py - for tests in Python: TAP, a folder for each case, kept when it fails.

    sys.path.insert(0, ...tests...); import tap
    with tap.Suite("name") as s:
        s.case("what is tested", function, argument...)    function raises tap.Wrong

A case runs in an empty folder.  The seed of tap.rnd is printed; KRON_TEST_SEED gives it back.
"""

import contextlib
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
SRC = os.environ.get("KRON_TOP_SRC") or os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
BUILD = os.environ.get("KRON_TOP_BUILD", SRC)
KRON = os.environ.setdefault("KRON", os.path.join(BUILD, "kron"))
CC = os.environ.get("CC", "gcc").split()
SEED = int(os.environ.get("KRON_TEST_SEED") or random.randrange(1 << 30))
rnd = random.Random(SEED)
sys.path.insert(0, os.path.join(SRC, "tests"))
import truth  # noqa: E402  reads traces by the bytes


class Wrong(Exception):
    pass


class Skip(Exception):
    pass


def need_fsgsbase():
    """Where the word at %fs:0 is not a base, as in Go, threads are told apart by rdfsbase: some virtual machines have none."""
    with open("/proc/self/auxv", "rb") as f:
        if not any(key == 26 and value & 2 for key, value in struct.iter_unpack("QQ", f.read())):  # AT_HWCAP2
            raise Skip("this processor has no rdfsbase")


def need(condition, text):
    if not condition:
        raise Wrong(str(text))


# What tells a compiler nothing of the case's folder, and has it leave nothing there but the program.
PLAIN_WORD = re.compile(
    r"-(O\w|g\w*|s|w|static|static-pie|shared|pie|no-pie|pthread|rdynamic|std=\w+|Wl,-z,\w+|Wl,--build-id(=\w+)?"
    r"|f(?!profile|test|save|dump|stack-usage)[\w=-]+|[mDlW][\w=+-]*)$"
)
made_in, made = None, {}  # the suite's folder for what its cases have compiled; by command, the program there


def is_plain(words):
    return all(w.startswith((f"{SRC}/", f"-I{SRC}/")) or PLAIN_WORD.match(w) for w in words)


def compile_once(out, *command, same=None):
    """Runs the compiler, or takes what it made in an earlier case; same: so does one that reads files of the case's
    folder, and this is what is in them."""
    key = (os.getcwd(), same, *command) if made_in and (same or is_plain(command[1:])) else None
    if key in made:
        shutil.copy(made[key], out)
        return
    subprocess.run([*command, "-o", out], check=True)
    if key:
        os.makedirs(made_in, exist_ok=True)
        made[key] = os.path.join(made_in, str(len(made)))
        shutil.copy(out, made[key])


def compile_c(out, source, *flags, compiler=None):
    """A test program; source is below tests/."""
    compile_once(
        out, *([compiler] if compiler else CC), "-O2", os.path.join(SRC, "tests", source),
        f"-I{SRC}/tests/torture", "-pthread", *flags
    )


def compile_text(out, text, *flags):
    """A test program from its text."""
    with open(f"{out}.c", "w") as f:
        f.write(text)
    same = text if is_plain(flags) and '#include "' not in text else None
    compile_once(out, *CC, "-O2", f"{out}.c", *flags, same=same)


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user, too")


def wait_for(condition, what, seconds=60):
    """What the condition gives, once that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.005)
    raise Wrong(f"waited {seconds} s in vain for {what}")


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of this size, as long as the block runs."""
    os.makedirs(folder, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True).returncode:
        raise Skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def segments_left():
    """Names of recordings whose keeper has ended: other tests record meanwhile."""
    left = set()
    for name in os.listdir("/dev/shm"):
        with contextlib.suppress(OSError):
            keeper = re.match(r"/proc/\d+", os.readlink(os.path.join("/dev/shm", name)))
            if keeper and not os.path.exists(keeper[0]):
                left.add(name)
    return left


def grow_disk(folder, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


def children_of(pid, tid=None):
    """Those that its first thread has started, or the thread tid."""
    try:
        with open(f"/proc/{pid}/task/{tid or pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def is_traced(pid):
    """A child of kron record that is the program: not its keeper, which outlives it, whatever its name is yet."""
    try:
        return not os.path.samefile(f"/proc/{pid}/exe", KRON)
    except OSError:
        return False


def processor_s():
    """What we and our children that have ended took of it, so far."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Suite:
    def __init__(self, name):
        self.count, self.failed, self.name = 0, 0, name

    def __enter__(self):
        global made_in
        if not os.access(KRON, os.X_OK):
            print(f"Bail out! no {KRON}")
            sys.exit(99)
        self.folder = tempfile.mkdtemp(prefix=f"kron-{self.name}.")
        os.chdir(self.folder)
        made_in = os.path.join(self.folder, "made")
        # one cache for the file, and nothing of the user's
        os.environ["XDG_CACHE_HOME"] = os.path.join(self.folder, "cache")
        os.environ["HOME"] = self.folder
        os.environ["LC_ALL"] = "C.UTF-8"
        print(f"# KRON_TEST_SEED={SEED}")
        return self

    def case(self, name, fn, *args):
        self.count += 1
        os.chdir(self.folder)
        os.makedirs("case")
        os.chdir("case")
        problem, skip = None, ""
        before = time.monotonic(), processor_s()
        try:
            fn(*args)
        except Skip as e:
            skip = f" # SKIP {e}"
        except Wrong as e:
            problem = str(e) or "no word of why"
        except Exception:  # the test itself fell over: a failure of this case only
            problem = traceback.format_exc()
        os.chdir(self.folder)
        print(f"{'not ' if problem else ''}ok {self.count} - {name}{skip}")
        took = time.monotonic() - before[0], processor_s() - before[1]
        if took[0] >= 1:
            print("# %.1f s, %.1f of the processor" % took)
        sys.stdout.flush()
        if problem:
            self.failed += 1
            kept = f"failed{self.count}"
            os.rename("case", kept)
            print(f"# seed {SEED}, folder {os.path.abspath(kept)}")
            for line in problem.splitlines():
                print("# " + line)
        else:
            shutil.rmtree("case", ignore_errors=True)

    def __exit__(self, *exc):
        if exc[0] is None:
            print(f"1..{self.count}")
        os.chdir("/")
        if not self.failed:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif exc[0] is None:
            sys.exit(1)
