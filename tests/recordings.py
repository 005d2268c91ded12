# SPDX-License-Identifier: MIT
"""recordings.py - recordings that run while a test looks at them, and strangers who come near.

    r = Recording("./program", options=["-F", "tick"])     kron record, in the background
    with Stranger(function, argument...) as stranger:      a process of another user
"""

import atexit
import contextlib
import os
import select
import signal
import subprocess

from tap import KRON, Wrong, children_of, need, truth, wait_for

STRANGER = 65534
AS_NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"


class Recording:
    """kron record in a process group of its own, and what it says."""

    def __init__(self, *words, trace="trace", options=()):
        self.trace = trace
        name = trace.replace("/", ".")  # not in its folder, which may be full
        self.out, self.err = f"{name}.out", f"{name}.err"
        argv = [KRON, "record", "-o", trace, *options, "--", *words]
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        self.pid = self.process.pid
        atexit.register(self.leave_nothing)

    def leave_nothing(self):
        """Of a case that failed, too."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def said(self):
        return open(self.out).read(), open(self.err).read()

    def wait_for_line(self, word):
        wait_for(lambda: word in self.said()[0].splitlines(), f"{word!r} in {self.said()}")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def end(self, status=0):
        try:
            got = self.process.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            raise Wrong(f"it hangs: {self.said()}")
        need(got == status, f"kron ended with {got}: {self.said()}")
        return self.said()

    def socket_name(self):
        return wait_for(lambda: socket_of(self.pid), "the collector's socket")

    def calls(self, name):
        t = truth.Trace(self.trace)
        need(not t.problems, t.problems[:5])
        return t.entries[name]


def unix_sockets():
    """Inode and name of each abstract socket of kron's."""
    with open("/proc/net/unix") as f:
        for line in f:
            words = line.split()
            if len(words) == 8 and words[7].startswith("@kron-"):
                yield words[6], words[7][1:]


def socket_of(pid):
    """The name that the recorder listens on: anybody may read it here."""
    inodes = dict(unix_sockets())
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
            if link.startswith("socket:[") and link[8:-1] in inodes:
                return inodes[link[8:-1]]
    return None


def environment_of(pid):
    """KRON_RT and LD_PRELOAD as the process got them: its own user may read that."""
    with open(f"/proc/{pid}/environ", "rb") as f:
        env = dict(e.split("=", 1) for e in f.read().decode().split("\0") if "=" in e)
    return {k: env[k] for k in ("KRON_RT", "LD_PRELOAD")}


def descendant_of(pid, name):
    """A descendant of this name, once it is there."""

    def look():
        todo = [pid]
        while todo:
            children = children_of(todo.pop())
            for c in children:
                with contextlib.suppress(OSError), open(f"/proc/{c}/comm") as f:
                    if f.read().strip() == name:
                        return c
            todo += children
        return None

    return wait_for(look, f"a process {name}")


def keeper_of(recording):
    """Who holds the recording's memory, and the link that leads there."""
    name = truth.Trace(recording.trace).session["segment"]
    link = f"/dev/shm{name}"
    return int(os.readlink(link).split("/")[2]), link


class Stranger:
    """A function in a process of another user; what it prints is kept."""

    def __init__(self, function, *args, uid=STRANGER):
        self.read, write = os.pipe()
        self.text = ""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.read)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                function(lambda word: os.write(write, f"{word}\n".encode()), *args)
            except BaseException as e:
                os.write(write, f"fell over: {e!r}\n".encode())
            os._exit(0)
        os.close(write)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.read)

    def words(self):
        while select.select([self.read], [], [], 0)[0]:
            got = os.read(self.read, 65536)
            if not got:
                break
            self.text += got.decode()
        return self.text.splitlines()

    def wait_for(self, word):
        wait_for(lambda: word in self.words(), f"{word!r} of the stranger, who says {self.text!r}")
