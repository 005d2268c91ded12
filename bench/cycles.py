#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cycles.py - attaches to programs under load and leaves them, again and again, and looks whether anything shows.

usage: cycles.py [-n CYCLES] [-s SEED] [PROGRAM...]       as root, in a build folder's source

The programs are in cycles/programs.py; what is not installed is left out.  Each has clients that check its
answers, or checks itself.  A cycle is a kron record --pid with random options that ends after a random time,
by itself, by Ctrl-C or by SIGKILL; in some of them probes come and go.  After each the program has to be what
it was.  The folder of a cycle that failed is kept.  Ctrl-C ends it after the cycle.
"""
import argparse
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests"))
sys.path.insert(0, os.path.join(HERE, "cycles"))
from live import info, need_unbroken  # noqa: E402
from tap import KRON, Wrong, need, wait_for  # noqa: E402
import programs  # noqa: E402
from state import need_same, ours, state, surgeons  # noqa: E402

MOST_FAILURES = 5
SECONDS = 120  # nothing may take longer
over = []

# ---- exact counts ----


class Counts:
    """The number of the last call of each thread, which the program writes to a file."""

    def __init__(self, path):
        with open(path, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), 0)

    def now(self):
        return struct.unpack(f"{len(self.memory) // 8}Q", self.memory[:])


def recorded(trace):
    seen = {}
    dump = subprocess.Popen([KRON, "dump", trace], stdout=subprocess.PIPE, text=True)
    for line in dump.stdout:
        m = re.search(r" event counted n=0x(\w+)", line)
        if m:
            thread, number = divmod(int(m[1], 16), 1 << 22)
            seen.setdefault(thread, []).append(number)
    dump.stdout.close()
    need(dump.wait() == 0, f"kron dump ended with {dump.returncode}")
    return seen


def check_counts(trace, start, first, last, end):
    """Calls between first and last are there, without a gap; none is from before start, or after the end."""
    seen = recorded(trace)
    for i in range(len(start)):
        numbers = seen.get(i, [])
        need_unbroken(numbers, f"thread {i}")
        if numbers:
            need(start[i] <= numbers[0] and numbers[-1] <= end[i], f"thread {i}: {numbers} not in {start[i]} to {end[i]}")
        missing = set(range(first[i] + 1, last[i])) - set(numbers)
        need(not missing, f"thread {i}: {sorted(missing)} missing of {first[i]} to {last[i]}: {numbers}")


# ---- a cycle ----


class Cycle:
    def __init__(self, program, folder, rnd):
        self.program, self.folder, self.rnd, self.longest_stop = program, folder, rnd, 0
        self.board = os.path.basename(folder) + f"-{os.getpid()}"
        self.said = os.path.join(folder, "said")
        self.trace = os.path.join(folder, "t")

    def begin(self):
        p, rnd = self.program, self.rnd
        self.how = rnd.choices(("for", "interrupt", "early", "changes", "kill", "kill both"), (50, 12, 5, 20, 8, 5))[0]
        self.ms = rnd.randrange(5, 80)
        self.pids = p.some_pids(rnd)
        options = list(rnd.choice(p.options))
        self.counts = p.counts if p.counts and rnd.random() < 0.7 else None
        if self.counts:
            options += ["-p", "counted n=$arg1", "--when-full", "wait"]
        if rnd.random() < 0.2:
            options += ["-g", str(rnd.randrange(16))]
        if self.how == "for":
            options += ["--for", f"{self.ms}ms"]
        self.argv = [KRON, "record", "-o", "t", "--board", self.board, "--pid", ",".join(map(str, self.pids)), *options]
        with open(os.path.join(self.folder, "cycle"), "w") as f:
            print(self.how, f"{self.ms} ms:", *self.argv, file=f)
        self.before = {pid: p.states[pid] for pid in self.pids}
        self.start = self.counts and self.counts.now()
        with open(self.said, "w") as said:
            self.recorder = subprocess.Popen(self.argv, cwd=self.folder, stderr=said)

    def words(self):
        with open(self.said) as f:
            return f.read()

    def records(self):
        return "recording process" in self.words() or self.recorder.poll() is not None

    def sleep(self, most=80):
        time.sleep(self.rnd.random() * most / 1000)

    def refused(self):
        """Where others have the processors for long a thread may not get one to stop on; nothing has been done then."""
        return self.recorder.poll() == 125 and "does not stop" in self.words()

    def run(self):
        self.begin()
        try:
            getattr(self, "end_" + self.how.replace(" ", "_"))()
        finally:
            if self.recorder.poll() is None:
                self.recorder.kill()
                self.recorder.wait()

    def ended(self, first=None, last=None):
        try:
            self.recorder.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise Wrong(f"kron record hangs: {self.words()}") from None
        if self.refused():
            return
        need(self.recorder.returncode == 0, f"kron record ended with {self.recorder.returncode}: {self.words()}")
        need("as before" in self.words(), self.words())
        i = info(self.trace)
        self.longest_stop = i["attach"]["longest_stop_us"]
        if self.counts:
            need(i["lost"] == 0, f"{i['lost']} samples lost")
            end = self.counts.now()
            check_counts(self.trace, self.start, first or end, last or end, end)

    end_for = ended

    def end_interrupt(self, change=lambda: None):
        wait_for(self.records, "the recording to begin", SECONDS)
        if self.recorder.poll() is not None:
            return self.ended()
        first = self.counts and self.counts.now()
        time.sleep(self.ms / 1000)
        change()
        last = self.counts and self.counts.now()
        self.recorder.send_signal(signal.SIGINT)
        self.ended(first, last)

    def end_early(self):
        """Ctrl-C at any moment, perhaps before it records."""
        self.sleep()
        self.recorder.send_signal(signal.SIGINT)
        self.recorder.wait(SECONDS)
        need(self.recorder.returncode in (0, -signal.SIGINT, 130, 125), f"{self.recorder.returncode}: {self.words()}")

    def end_kill(self):
        self.sleep(150)
        self.recorder.kill()
        self.recorder.wait()
        wait_for(lambda: not any(ours(p) for p in self.pids), "the end of all that is kron's", SECONDS)
        wait_for(lambda: not surgeons(self.folder), "the end of all surgeons", SECONDS)
        self.recover()

    def end_kill_both(self):
        """The next one takes out what they have left."""
        wait_for(self.records, "the recording to begin", SECONDS)
        if self.recorder.poll() is not None:
            return self.ended()
        for pid in surgeons(self.folder):
            os.kill(pid, signal.SIGKILL)
        self.recorder.kill()
        self.recorder.wait()
        self.recover()
        r = subprocess.run([KRON, "record", "-o", "next", "--board", self.board, *self.argv[6:8], "--for", "10ms"],
                           cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)
        need(r.returncode == 0, f"the next one: {r.returncode}: {r.stderr}")

    def recover(self):
        """Killed before it had anything it leaves no trace, but may leave a board."""
        self.run_kron("recover", "t")
        self.run_kron("board", "rm", self.board)

    def run_kron(self, *args):
        r = subprocess.run([KRON, *args], cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)
        need(r.returncode in (0, 1), f"kron {' '.join(args)}: {r.returncode}: {r.stderr}")
        with open(os.path.join(self.folder, "cycle"), "a") as f:
            print(*args, r.returncode, r.stderr.strip(), file=f)
        return r

    def end_changes(self):
        self.end_interrupt(self.change)

    def change(self):
        for _ in range(self.rnd.randrange(1, 4)):
            spec, name = self.rnd.choice(self.program.added)
            # functions are put to sleep and woken, probes are added and go again; the last of them may stay
            for verb, what in (("rm", name), ("add", spec)) if spec[0] == "-F" else (("add", spec), ("rm", name)):
                self.sleep(30)
                r = self.run_kron("ctl", "--board", self.board, "probe", verb, *what)
                self.program.need_change(r)
                if r.returncode or self.rnd.random() < 0.1:
                    break

    def check(self):
        for pid, before in self.before.items():
            wait_for(lambda: state(pid)["tracer"] == "0", f"the end of {pid}'s tracer", 10)
            need_same(before, pid, self.program.slack)
        left = [name for name in os.listdir("/dev/shm") if self.board in name]
        need(not left, f"/dev/shm has {left}")
        self.program.check()


# ---- a program ----


class Row:
    def __init__(self, name):
        self.name, self.start = name, time.monotonic()
        self.cycles = self.refused = self.failures = self.longest_stop = 0

    def show(self, note=""):
        print(f"{self.name:10} {self.cycles:6} cycles  {self.failures:3} failures {self.refused:4} refused  longest stop {self.longest_stop / 1000:8.1f} ms"
              f"  {time.monotonic() - self.start:7.0f} s  {note}", flush=True)


def failed(row, what, folder):
    row.failures += 1
    with open(os.path.join(folder, "failure"), "w") as f:
        print(what, file=f)
    print(f"{row.name}: cycle {row.cycles}: {what}\n  in {folder}", flush=True)


def run_cycles(program, row, cycles, rnd, tmp):
    """Until all are done, or one has failed: then the program is started again."""
    while row.cycles < cycles and not over:
        folder = os.path.join(tmp, f"{row.name}-{row.cycles}")
        os.mkdir(folder)
        cycle = Cycle(program, folder, rnd)
        row.cycles += 1
        try:
            cycle.run()
            cycle.check()
        except (Wrong, OSError, subprocess.SubprocessError) as e:
            failed(row, f"{type(e).__name__}: {e}", folder)
            subprocess.run([KRON, "board", "rm", cycle.board], stderr=subprocess.DEVNULL)
            return
        row.refused += cycle.refused()
        row.longest_stop = max(row.longest_stop, cycle.longest_stop)
        shutil.rmtree(folder)
        if row.cycles % 200 == 0:
            row.show("so far")


def torture(name, cycles, seed, tmp):
    row, rnd = Row(name), random.Random(f"{seed} {name}")
    while row.cycles < cycles and row.failures < MOST_FAILURES and not over:
        home = tempfile.mkdtemp(dir=tmp, prefix=f"{name}-home-")
        os.chmod(home, 0o755)
        program = programs.KINDS[name](home)
        failures = row.failures
        try:
            program.start()
            program.counts = Counts(program.counts) if program.counts else None
            time.sleep(1)
            program.states = {pid: state(pid) for pid in program.pids()}
            run_cycles(program, row, cycles, rnd, tmp)
        finally:
            said = program.end()
        if said:
            failed(row, f"at its end: {said}", home)
        elif row.failures == failures:
            shutil.rmtree(home)
    row.show()
    return row.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100, metavar="CYCLES")
    parser.add_argument("-s", type=int, default=random.randrange(1 << 30), metavar="SEED")
    parser.add_argument("program", nargs="*", metavar="PROGRAM", help=", ".join(programs.KINDS))
    args = parser.parse_args()
    tmp = tempfile.mkdtemp(prefix="kron-cycles-")
    os.chmod(tmp, 0o755)
    os.environ["XDG_CACHE_HOME"] = os.path.join(tmp, "cache")
    signal.signal(signal.SIGINT, lambda *_: over.append(1))
    print(f"seed {args.s}, in {tmp}", flush=True)
    failures = 0
    for name in args.program or programs.KINDS:
        lacks = [tool for tool in programs.KINDS[name].tools if not programs.where(tool)]
        if lacks:
            print(f"{name:10} left out: no {', '.join(lacks)}", flush=True)
        else:
            failures += torture(name, args.n, args.s, tmp)
    if not failures:
        shutil.rmtree(tmp)
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
