#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""common_reset.py - kron ctl reset A B: boards that count from one instant.

Truth is CLOCK_MONOTONIC, which two processes read around each of their stores, and the order of these: one
passes the other a byte.
"""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from recordings import Recording
from tap import BUILD, KRON, SRC, Suite, compile_text, need, need_root, wait_for

TOGETHER = ("one", "two", "three")
ROUNDS = 300
TICK = 100  # ns

# A process for each board, in turn: the clock, a store, the clock.
TURNS = r"""
#include <mk.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void play(const char *board, int rounds, int take, int give)
{
	char c;
	if (mk_map(board))
		exit(3);
	while (rounds-- && read(take, &c, 1) == 1) {
		long before = now();
		mk_ts1 = (unsigned)rounds;
		printf("%ld %ld %s\n", before, now(), board);
		fflush(stdout);
		if (rounds % 10 == 0)
			usleep(3000);
		if (write(give, &c, 1) != 1)
			exit(0);
	}
	exit(0);
}
int main(int argc, char **argv)
{
	int p[8][2], n = argc - 2;
	signed char c = 0;
	for (int i = 0; i < n; i++)
		if (pipe(p[i]))
			return 2;
	for (int i = 0; i < n; i++)
		if (!fork())
			play(argv[i + 2], atoi(argv[1]), p[i][0], p[(i + 1) % n][1]);
	if (write(p[0][1], &c, 1) != 1)
		return 2;
	while (wait(NULL) > 0)
		;
	return 0;
}
"""


def name(board):
    return f"reset-{os.getpid()}-{board}"


def kron(*words, status=0):
    r = subprocess.run([KRON, *words], capture_output=True, text=True)
    need(r.returncode == status, f"kron {words}: status {r.returncode}: {r.stdout}{r.stderr}")
    return r


def refused(*words, says):
    r = kron("ctl", *words, status=1)
    need(len(r.stderr.splitlines()) == 1 and says in r.stderr, r.stderr)


def status(board):
    return json.loads(kron("status", "--json", "--board", board).stdout)


class Boards:
    """Made for a case, gone after it."""

    def __init__(self, *boards, options=()):
        self.names, self.options = [name(b) for b in boards], options

    def __enter__(self):
        for n in self.names:
            kron("board", "create", n, *self.options)
            time.sleep(0.02)
        return self.names

    def __exit__(self, *_):
        for n in self.names:
            subprocess.run([KRON, "board", "rm", n], capture_output=True)


def timestamps(board):
    """Of the board's samples, in its memory's order."""
    mkdat = [os.path.join(BUILD, "board/toolkit/mk_rdsample"), "-f", f"{board}.dat"]
    subprocess.run(mkdat, check=True, capture_output=True, env={**os.environ, "KRON_BOARD": board})
    words = struct.iter_unpack("<5I", open(f"{board}.dat", "rb").read())
    return [((w[0] & 0xFFFFFF) << 32 | w[1], w[2]) for w in words]


def one_time():
    library = os.path.join(BUILD, "board/libmk/libmk.a")
    compile_text("turns", TURNS, f"-I{SRC}/include", library, "-pthread")
    with Boards(*TOGETHER) as boards:
        kron("ctl", "write", "config", "0x00083201", "--board", boards[1])  # its clock is divided
        need(not kron("ctl", "reset", *boards).stderr, "")
        out = subprocess.run(["./turns", str(ROUNDS), *boards], capture_output=True, text=True, check=True).stdout
        turns = [line.split() for line in out.splitlines()]
        need(len(turns) == len(boards) * ROUNDS, len(turns))
        turns = sorted((int(before), int(after), board) for before, after, board in turns)
        left = {b: iter(timestamps(b)) for b in boards}
        stamps = [next(left[board])[0] for _, _, board in turns]
        need(all(x <= y for x, y in zip(stamps, stamps[1:])), "samples in another order than the stores")
        # one line leads from the boards' clock to the kernel's, by an early sample and a late one of the first board,
        # and all samples of all boards are on it
        mine = [(before, after, s) for (before, after, board), s in zip(turns, stamps) if board == boards[0]]
        narrow = lambda turn: turn[1] - turn[0]  # noqa: E731
        (b0, a0, s0), (b1, a1, s1) = min(mine[:30], key=narrow), min(mine[-30:], key=narrow)
        rate = (b1 + a1 - b0 - a0) / 2 / (s1 - s0)
        slack = max(a0 - b0, a1 - b1) + 2 * TICK
        for (before, after, board), s in zip(turns, stamps):
            at = (b0 + a0) / 2 + (s - s0) * rate
            need(before - slack <= at <= after + slack, f"{board}: {at} is not from {before} to {after}, +- {slack} ns")
        print(f"# {len(stamps)} samples on {len(boards)} boards in {(b1 - b0) / 1e9:.2f} s, each within its store's time +- {slack} ns")


def registers():
    """As a reset of each alone leaves them: the default configuration, and a source of its node."""
    with Boards("one", options=("--node", "7")) as one, Boards("two", options=("--node", "8")) as two:
        for board in (*one, *two):
            kron("ctl", "--board", board, "filter", "1234")
            kron("ctl", "--board", board, "write", "map", "5")
        kron("ctl", "reset", *one, *two)
        for board, node in ((one[0], 7), (two[0], 8)):
            s = status(board)
            need((s["filter"], s["csr"]["sampling"], s["source"][0]) == (0xFFFF, True, node << 22), s)
            need(kron("ctl", "--board", board, "read", "config").stdout[2:] == "003201\n", s)
            need(int(kron("ctl", "--board", board, "read", "map").stdout, 16) & 0x3FFFFF == 0, board)
        # one alone, by its name or by --board
        for words in (["reset", *one], ["reset", "--board", *one]):
            kron("ctl", "--board", *one, "filter", "1234")
            kron("ctl", *words)
            need(kron("ctl", "--board", *one, "filter").stdout == "ffff\n", words)


def all_or_none():
    with Boards("one", "two") as (one, two), Boards("virtual", options=("--virtual-clock",)) as (virtual,):
        kron("ctl", "--board", one, "filter", "1234")
        kron("ctl", "--board", two, "filter", "1234")
        with open("dev", "wb") as f:
            f.truncate(32 << 20)
        refused("reset", one, two, name("none"), says=f"there is no board {name('none')}")
        refused("reset", name("none"), one, says=f"there is no board {name('none')}")
        refused("reset", one, two, "./dev", says="./dev is hardware")
        refused("reset", one, virtual, says=f"the time of board {virtual} moves by `kron ctl tick` alone")
        refused("reset", virtual, one, says=f"the time of board {virtual} moves by `kron ctl tick` alone")
        refused("reset", one, two, one, says=f"board {one} is there twice")
        need(kron("ctl", "reset", one, "--board", two, status=2).stderr, "")
        for board in (one, two):
            need(kron("ctl", "--board", board, "filter").stdout == "1234\n", "a board was reset")


def another_users():
    need_root()
    with Boards("one") as (one,):
        kron("ctl", "--board", one, "filter", "1234")
        theirs = f"/dev/shm/kron-board.{os.getuid()}.{name('theirs')}"
        with open(theirs, "wb") as f:
            f.truncate(64 << 20)
        try:
            os.chown(theirs, 65534, 65534)
            r = kron("ctl", "reset", one, name("theirs"), status=1)
            need(len(r.stderr.splitlines()) == 1 and name("theirs") in r.stderr, r.stderr)
            need(kron("ctl", "--board", one, "filter").stdout == "1234\n", "a board was reset")
        finally:
            os.unlink(theirs)


def virtual_clocks():
    with Boards("one", "two", options=("--virtual-clock",)) as boards:
        for i, board in enumerate(boards):
            kron("ctl", "--board", board, "tick", str(1000 + 400 * i))
        kron("ctl", "reset", *boards)
        for board in boards:
            kron("ctl", "--board", board, "tick", "4000")
        read = [kron("ctl", "--board", b, "read", "timestamp").stdout for b in boards]
        need(read[0] == read[1] and 1000 <= int(read[0], 16) < 1100, read)


def is_recording(trace, board):
    def found():
        return os.path.exists(f"{trace}/session") and "start_real_ns" in open(f"{trace}/session").read() and status(board)["recorder_pid"]

    wait_for(found, "the recorder")


def while_it_is_recorded():
    """By its clock: refused, for the times before and after would be of two clocks.  By lanes: as ever."""
    with Boards("one", "two") as (one, two):
        kron("ctl", "--board", two, "filter", "1234")
        r = Recording("sleep", "60", options=["--board", one, "--bus", "exact"])
        is_recording("trace", one)
        for words in (["reset", two, one], ["reset", one], ["reset", "--board", one], ["reset", "--board", str(r.pid)]):
            refused(*words, says=f"a kron record (pid {r.pid}) has the times of its samples from board {one} (--bus exact): end it first")
        need(kron("ctl", "--board", two, "filter").stdout == "1234\n", "a board was reset")
        os.kill(r.pid, signal.SIGTERM)
        r.process.wait(60)
        kron("ctl", "reset", two, one)
        need(kron("ctl", "--board", two, "filter").stdout == "ffff\n", "it was not reset")
        r = Recording("sleep", "60", options=["--board", one], trace="lanes")
        is_recording("lanes", one)
        kron("ctl", "reset", one, two)
        os.kill(r.pid, signal.SIGTERM)
        r.process.wait(60)


def after_a_kill():
    """What is on the board is still to be recovered, by its clock."""
    with Boards("one") as (one,):
        r = Recording("sleep", "60", options=["--board", one, "--bus", "exact"])
        is_recording("trace", one)
        r.kill()
        # a child of it that is about to execute the program has the lock for a moment
        wait_for(lambda: any(e["name"] == one and e["orphaned"] for e in json.loads(kron("board", "list", "--json").stdout)), "its end")
        refused("reset", one, says=f"the kron record (pid {r.pid}) on board {one} was killed and has left samples there: `kron recover {os.getcwd()}/trace`")
        kron("recover", "trace")
        kron("ctl", "reset", one)
        with contextlib.suppress(ProcessLookupError):  # the program, if it had come to run
            os.killpg(r.pid, signal.SIGKILL)


with Suite("common_reset") as suite:
    suite.case("three boards, one time", one_time)
    suite.case("what the registers are", registers)
    suite.case("all boards or none", all_or_none)
    suite.case("another user's board", another_users)
    suite.case("virtual clocks", virtual_clocks)
    suite.case("while a recording has its times from a board", while_it_is_recorded)
    suite.case("a board with the samples of a killed recorder", after_a_kill)
