# SPDX-License-Identifier: MIT
"""tap.py - for tests in Python: TAP, a folder for each case, kept when it fails.

    sys.path.insert(0, ...tests...); import tap
    with tap.Suite("name") as s:
        s.case("what is tested", function, argument...)    function raises tap.Wrong

A case runs in an empty folder.  The seed of tap.rnd is printed; KRON_TEST_SEED gives it back.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
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


def need(condition, text):
    if not condition:
        raise Wrong(str(text))


def compile_c(out, source, *flags, compiler=None):
    """A test program; source is below tests/."""
    subprocess.run(
        [*([compiler] if compiler else CC), "-O2", "-o", out, os.path.join(SRC, "tests", source), "-pthread", *flags], check=True
    )


def is_traced(pid):
    """A child of kron record that is the program: not its keeper, which outlives it, under either of its names."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read() not in ("kron-keeper\n", "kron\n")
    except OSError:
        return False


class Suite:
    def __init__(self, name):
        self.count, self.failed, self.name = 0, 0, name

    def __enter__(self):
        if not os.access(KRON, os.X_OK):
            print(f"Bail out! no {KRON}")
            sys.exit(99)
        self.folder = tempfile.mkdtemp(prefix=f"kron-{self.name}.")
        os.chdir(self.folder)
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
        try:
            fn(*args)
        except Skip as e:
            skip = f" # SKIP {e}"
        except Wrong as e:
            problem = str(e) or "no word of why"
        except Exception:  # the test itself fell over: a failure of this case only
            problem = traceback.format_exc()
        os.chdir(self.folder)
        print(f"{'not ' if problem else ''}ok {self.count} - {name}{skip}", flush=True)
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
