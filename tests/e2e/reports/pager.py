#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""pager.py - on a terminal long answers come through a pager; elsewhere they do not.

The terminal is a pseudo-terminal, and the pagers say themselves that they ran."""

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
from tap import BUILD, KRON, need  # noqa: E402

MAKE_TRACE = os.path.join(BUILD, "tests/unit/trace/make_trace")
COMMANDS = [["report", "t"], ["replay", "t"], ["dump", "t"], ["info", "t"], ["diff", "t", "t"], ["list", MAKE_TRACE],
            ["list", "--places", "calls", MAKE_TRACE], ["list", "-p", "entry=main", MAKE_TRACE]]


def on_terminal(*argv, interrupted=None, **env):
    """Status and text of a command whose stdout is a terminal, interrupted when it has shown that word."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PAGER", "KRON_PAGER", "LESS")}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    p = subprocess.Popen([KRON, *argv], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE,
                         env={**environment, "TERM": "dumb", **env})
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # nobody has the other end any more
            break
        if not piece:
            break
        text += piece
        if interrupted and interrupted in text:
            p.send_signal(signal.SIGINT)
            interrupted = None
    os.close(master)
    p.stderr.read()
    return p.wait(), text.decode(errors="replace").replace("\r\n", "\n")


def plain(*argv):
    return subprocess.run([KRON, *argv], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()


def paged():
    for argv in COMMANDS:
        status, text = on_terminal(*argv, PAGER="sed 's/^/paged: /'")
        want = "".join(f"paged: {line}\n" for line in plain(*argv).splitlines())
        need(status == 0 and text == want, f"{argv}: {status} {text[:200]}")


def not_paged():
    for argv in COMMANDS:
        status, text = on_terminal(*argv, "--no-pager", PAGER="sed 's/^/paged: /'")
        need(status == 0 and text == plain(*argv), f"{argv}: {status} {text[:200]}")
    for pager in ("", "cat"):
        status, text = on_terminal("report", "t", PAGER=pager)
        need(status == 0 and text == plain("report", "t"), f"'{pager}': {status} {text[:200]}")
    out = subprocess.run([KRON, "report", "t"], stdout=subprocess.PIPE, check=True,
                         env={**os.environ, "KRON_PAGER": "sed 's/^/paged: /'"}).stdout
    need(b"paged" not in out, "a pipe is paged")


def own_first():
    _, text = on_terminal("report", "t", KRON_PAGER="echo mine; cat", PAGER="echo theirs; cat")
    need(text == "mine\n" + plain("report", "t"), text[:200])
    _, text = on_terminal("report", "t", KRON_PAGER="", PAGER="echo theirs; cat")
    need(text == plain("report", "t"), text[:200])


def waited_for():
    """The command ends after its pager."""
    _, text = on_terminal("report", "t", PAGER="cat; read x </dev/null; sleep 0.3; echo the end")
    need(text.endswith("the end\n"), text[-200:])


def closed():
    """Who leaves his pager early has seen enough, of an answer of any length."""
    need(len(plain("dump", "long")) > 1 << 20, "an answer that fits a pipe")
    for pager in ("true", "head -n 1", "exec <&-; sleep 0.3; echo the end"):
        status, text = on_terminal("dump", "long", PAGER=pager)
        need(status == 0, f"{pager}: {status}")
        need("the end" not in pager or text == "the end\n", f"it is not waited for: {text[-200:]}")


def interrupted():
    """^C ends the command, which waits for its pager all the same."""
    status, text = on_terminal("dump", "long", interrupted=b"begun", PAGER="echo begun; cat >/dev/null; sleep 0.3; echo the end")
    need(status == -signal.SIGINT and text == "begun\nthe end\n", f"{status} {text[:200]}")


def missing():
    for trace in ("t", "long"):
        status, text = on_terminal("dump", trace, PAGER="no-such-pager")
        need(status == 1 and not text, f"{trace}: {status} {text[:200]}")


def less():
    if not shutil.which("less", path="/usr/bin"):
        raise tap.Skip("less is not installed")
    want = plain("report", "t")
    status, text = on_terminal("report", "t", TERM="xterm")  # -F: what fits the screen stays there
    need(status == 0 and all(line in text for line in want.splitlines()), f"{status} {text}")
    status, text = on_terminal("report", "t", TERM="dumb")
    need(status == 0 and text == want, f"{status} {text}")


def with_traces(f):
    subprocess.run([MAKE_TRACE, "small", "t"], check=True)
    subprocess.run([MAKE_TRACE, "walk", "long", "100000", "1"], check=True)
    f()


def main():
    with tap.Suite("pager") as s:
        s.case("report, replay, dump, info, diff and list come through a pager", with_traces, paged)
        s.case("--no-pager, no pager, and no terminal", with_traces, not_paged)
        s.case("KRON_PAGER comes before PAGER", with_traces, own_first)
        s.case("the command ends after its pager", with_traces, waited_for)
        s.case("a pager that is left early is not a failure", with_traces, closed)
        s.case("^C leaves the terminal to the pager until that ends", with_traces, interrupted)
        s.case("a pager that is not there is one", with_traces, missing)
        s.case("without a word it is less, where there is one", with_traces, less)


main()
