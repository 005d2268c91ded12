#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long somebody who floods the collector with questions holds up the start of a program.

usage: floods.py --build DIR [--starts N] [--only NAME]       as root; doc/SECURITY.md has the limit

A recorded program starts /bin/true N times while a flood runs, N times while the same flood runs
against a socket that is none of kron's, and N times alone; the three take turns, ten starts each.  What the
flood adds is the difference of the first two at the same place of their distributions: the second has what
two busy processes cost on this machine.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
TURN = 10
LIMIT_MS = 50


def build(tmp):
    src = os.path.dirname(HERE)
    for name, path in (("floods", "bench/floods.c"), ("hostile", "tests/faults/hostile.c")):
        argv = [*os.environ.get("CC", "gcc").split(), "-O2", f"-I{src}/include", "-o", f"{tmp}/{name}", f"{src}/{path}", "-pthread"]
        subprocess.run(argv, check=True)


class Flood:
    """A process that floods while it is let."""

    def __init__(self, pid, process=None):
        self.pid, self.process = pid, process
        self.pause()

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        if self.process:
            self.process.wait()


def flood_socket(tmp, as_whom, name, token):
    """The flood, untraced: it is told the name as a traced program is."""
    env = {"KRON_RT": f"{name},{token},", "PATH": os.environ["PATH"]}
    p = subprocess.Popen([*as_whom, f"{tmp}/hostile", "flood", f"{tmp}/did", "7"], env=env)
    return Flood(p.pid, p)


def environment_of(pid):
    with open(f"/proc/{pid}/environ") as f:
        return re.search(r"KRON_RT=([^,]*),([0-9a-f]*),", f.read()).groups()


class Recording:
    def __init__(self, kron, tmp, traced_flood):
        argv = [kron, "record", "-q", "-o", f"{tmp}/trace", "--", f"{tmp}/floods", "starts", *traced_flood]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, XDG_CACHE_HOME=f"{tmp}/cache"))
        self.traced = Flood(int(self.process.stdout.readline())) if traced_flood else None
        self.starts(1)
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            for pid in f.read().split():
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read() == "floods\n":
                        self.name, self.token = environment_of(pid)

    def starts(self, n):
        """Milliseconds of each."""
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return [int(self.process.stdout.readline()) / 1e3 for _ in range(n)]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(kron, tmp, n, kind, as_whom):
    traced = [*as_whom, f"{tmp}/hostile", "flood", f"{tmp}/did", "7"] if kind == "traced" else []
    r = Recording(kron, tmp, traced)
    unrelated = f"floods-{os.getpid()}"
    listener = subprocess.Popen([f"{tmp}/floods", "listen", unrelated], stdout=subprocess.PIPE)
    listener.stdout.readline()
    token = r.token if kind == "token" else "0" * 32
    floods = {
        "flood": r.traced or flood_socket(tmp, as_whom, r.name, token),
        "elsewhere": flood_socket(tmp, as_whom, unrelated, token),
        "alone": None,
    }
    got = {what: [] for what in floods}
    while len(got["alone"]) < n:
        for what, flood in floods.items():
            if flood:
                flood.go_on()
            time.sleep(0.05)
            got[what] += r.starts(TURN)
            if flood:
                flood.pause()
            time.sleep(0.05)
    for flood in floods.values():
        if flood:
            flood.end()
    r.end()
    listener.kill()
    listener.wait()
    return {what: sorted(ms) for what, ms in got.items()}


def at(ms, part):
    return ms[min(len(ms) - 1, int(part * len(ms)))]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--starts", type=int, default=200)
    p.add_argument("--only", default="")
    args = p.parse_args()
    if os.geteuid():
        sys.exit("floods.py: needs root, to be another user, too")
    tmp = tempfile.mkdtemp(prefix="kron-floods.")
    os.chmod(tmp, 0o777)
    worst = 0
    try:
        build(tmp)
        print(f"{'start of /bin/true, ms':34} {'p50':>8} {'p95':>8} {'max':>8}")
        for name, kind, as_whom in (
            ("another user, no token", "noise", NOBODY),
            ("another user, the token", "token", NOBODY),
            ("traced, another user", "traced", NOBODY),
            ("traced, our own user", "traced", []),
        ):
            if args.only not in name:
                continue
            ms = measure(os.path.join(os.path.abspath(args.build), "kron"), tmp, args.starts, kind, as_whom)
            figures = {what: [at(all_ms, part) for part in (0.5, 0.95, 1)] for what, all_ms in ms.items()}
            figures["added"] = [f - e for f, e in zip(figures["flood"], figures["elsewhere"])]
            print(name)
            for what, of in figures.items():
                print(f"    {what:30} " + " ".join(f"{x:8.2f}" for x in of))
            worst = max(worst, *figures["added"])
    finally:
        shutil.rmtree(tmp)
    print(f"at most {worst:.1f} ms are added; the limit is {LIMIT_MS} ms")


if __name__ == "__main__":
    main()
