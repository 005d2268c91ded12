#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cable.py - recordings that go to kron collect, over links that break, are slow, or are nobody's.

The program counts its own calls, and the value that each sample takes along is the number of its call: so what
arrived is known to be there once, and in order.
"""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
from cabled import PROBE, arrived, need_all, need_once, program, record, spools  # noqa: E402
from tap import KRON, need, rnd, wait_for  # noqa: E402

class Collector:
    """At a socket of this folder, or a port that the kernel chooses."""

    def __init__(self, where="unix:sock", folder="nodes", *more, under=()):
        self.log = open("collect.log", "a+")
        self.start = self.log.tell()
        self.p = subprocess.Popen([*under, KRON, "collect", "--listen", where, "-o", folder, *more], stderr=self.log)
        wait_for(lambda: "listening at" in self.said() or self.p.poll() is not None, "the collector")
        need(self.p.poll() is None, self.said())
        self.at = self.said().split("listening at ")[1].split(";")[0]

    def said(self):
        with open("collect.log") as f:
            f.seek(self.start)
            return f.read()

    def end(self, sig=signal.SIGINT):
        self.p.send_signal(sig)
        status = self.p.wait(60)
        self.log.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.end()


class Link(threading.Thread):
    """A TCP link to a collector that cuts itself after some bytes, or is slow."""

    def __init__(self, to, cut=None, rate=None):
        super().__init__(daemon=True)
        host, port = to.removeprefix("tcp://").rsplit(":", 1)
        self.to, self.cut, self.rate, self.cuts = (host, int(port)), cut, rate, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            try:
                b = socket.create_connection(self.to)
            except OSError:
                a.close()
                continue
            left = [self.cut() if self.cut else 1 << 60]
            for x, y in ((a, b), (b, a)):
                threading.Thread(target=self.carry, args=(x, y, left), daemon=True).start()

    def carry(self, x, y, left):
        try:
            while left[0] > 0:
                data = x.recv(65536)[: left[0]]
                if not data:
                    break
                y.sendall(data)
                left[0] -= len(data)
                if self.rate:
                    time.sleep(len(data) / self.rate)
        except OSError:
            pass
        self.cuts += left[0] <= 0
        for s in (x, y):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


# ---- cases ----


def whole():
    before = spools()
    for where in ("unix:sock", "127.0.0.1:0", "tcp://[::1]:0"):
        with Collector(where, "nodes" + where[:3]) as c:
            r = record(c.at, 100000)
            need(r.returncode == 7 and r.stdout == "100000\n", r)
            need_all("nodes" + where[:3], 100000)
            need(c.end() == 0, c.said())
    need(spools() == before, spools() - before)


def many(n=24):
    with Collector() as c:
        run = [subprocess.Popen([KRON, "record", "-q", "--node", str(i), "-o", c.at, *PROBE, "--", program(),
                                 str(1000 + i)], stdout=subprocess.DEVNULL) for i in range(n)]
        need(all(p.wait(120) == 7 for p in run), "a recording failed")
        c.end()
    dirs = sorted(os.listdir("nodes"))
    need(len(dirs) == n, dirs)
    for d in dirs:
        need_all("nodes/" + d, 1000 + int(d.rsplit(".", 1)[1]))
    got = arrived("nodes")
    need(got[0] == sum(1000 + i for i in range(n)), got)


def same_name():
    with Collector() as c:
        for _ in range(2):
            need(record(c.at, 500, "--node", "3").returncode == 7, c.said())
        c.end()
    need(len(os.listdir("nodes")) == 2, os.listdir("nodes"))
    need(arrived("nodes")[0] == 1000, arrived("nodes"))


def broken_links():
    with Collector("127.0.0.1:0") as c:
        link = Link(c.at, cut=lambda: rnd.choice([1, 30, 200, 3000, 100000, 400000]))
        r = record(link.at, 600000, env={**os.environ, "KRON_CABLE_SPOOL": "1M"})
        # a link may be cut before the recording has begun: then kron says so, and runs nothing
        while r.returncode == 125:
            need("does not answer" in r.stderr or "cannot connect" in r.stderr, r.stderr)
            r = record(link.at, 600000)
        need(r.returncode == 7, r)
        need(link.cuts > 0, "nothing was cut")
        whole_ones = [d for d in os.listdir("nodes") if os.path.exists(f"nodes/{d}/session")]
        need(len(whole_ones) == 1, os.listdir("nodes"))
        need_all("nodes/" + whole_ones[0], 600000)


def slow(full):
    with Collector("127.0.0.1:0") as c:
        link = Link(c.at, rate=400e3)
        n = 3000000 if full == "wait" else 6000000
        r = record(link.at, n, "-b", "1M", "--when-full", full,
                   env={**os.environ, "KRON_CABLE_SPOOL": "256K"})
        need(r.returncode == 7, r)
        got, distinct, _, most = arrived("nodes")
        lost = int(subprocess.run(f"{KRON} info --json nodes/* | grep -o '\"lost\":[0-9]*' | head -1",
                                  shell=True, capture_output=True, text=True).stdout.split(":")[1])
        need(got == distinct and got + lost == n, (got, distinct, lost, n))
        need((lost == 0) == (full == "wait"), lost)


def collector_killed():
    c = Collector("127.0.0.1:0")
    port = c.at.rsplit(":", 1)[1]
    n = 1000000
    p = subprocess.Popen([KRON, "record", "-q", "-o", c.at, *PROBE, "--", program(), str(n)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "KRON_CABLE_SPOOL": "256K", "KRON_CABLE_PATIENCE": "300"})
    for _ in range(5):
        wait_for(lambda: "begins" in c.said() or "taken up" in c.said() or p.poll() is not None, "the sender")
        if p.poll() is not None:
            break
        wait_for(lambda: any(os.path.exists(f"nodes/{d}/session") for d in os.listdir("nodes")), "a session")
        time.sleep(rnd.random() * 0.1)  # a random instant, not a condition
        c.end(signal.SIGKILL)
        need_once("nodes/" + os.listdir("nodes")[0])
        c = Collector(f"127.0.0.1:{port}")
    with c:
        need(p.wait(120) == 7, p.stderr.read())
        need_all("nodes", n)


def sender_killed():
    """What was sent is there once; what was not is in the spool, and goes after it."""
    with Collector() as c:
        for _ in range(3):
            before, known = spools(), set(os.listdir("nodes"))
            p = subprocess.Popen([KRON, "record", "-q", "-o", c.at, *PROBE, "--", program(), "1000000"],
                                 stdout=subprocess.PIPE)
            wait_for(lambda: any(os.path.exists(f"nodes/{d}/samples") for d in set(os.listdir("nodes")) - known),
                     "samples")
            time.sleep(rnd.random() * 0.1)  # a random instant
            p.kill()
            if p.wait() == 7:  # it had ended
                continue
            p.stdout.read()  # the program has ended, too
            (node,) = set(os.listdir("nodes")) - known
            had = need_once("nodes/" + node)
            left = spools() - before
            if not left:  # all had arrived, and the end was a moment away
                need_all("nodes/" + node, 1000000)
                continue
            (left,) = left
            subprocess.run([KRON, "recover", "/dev/shm/" + left], capture_output=True)
            r = subprocess.run([KRON, "collect", "--send", "/dev/shm/" + left, "-o", c.at], capture_output=True,
                               text=True)
            need(r.returncode == 0 and not spools() - before, (r, spools() - before))
            need(need_once("nodes/" + node, gaps=False) >= had, "less than before")


def dead_at_end(spool):
    """No collector any more: kron says where the rest is, and it can be sent later."""
    c = Collector()
    n = 1500000
    p = subprocess.Popen([KRON, "record", "-o", c.at, *PROBE, "--", "sh", "-c",
                          f"{program()} 1000; touch ran; until [ -e go ]; do sleep 0.01; done; {program()} {n}"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "KRON_CABLE_PATIENCE": "1", "KRON_CABLE_SPOOL": spool})
    wait_for(lambda: os.path.exists("ran"), "the program")
    c.end(signal.SIGKILL)
    open("go", "w").close()
    err = p.communicate()[1]
    need(p.returncode == 125 and "kron collect --send " in err, err)
    left = err.split("--send ")[1].split()[0]
    (node,) = os.listdir("nodes")
    said = subprocess.run([KRON, "report", f"nodes/{node}"], capture_output=True, text=True).stderr
    need("or the collector, was cut; what is missing may wait there: `kron collect --send`" in said and "lost" not in said, said)
    subprocess.run([KRON, "recover", left], capture_output=True)  # what the spool had no room for
    with Collector() as c:
        r = subprocess.run([KRON, "collect", "--send", left, "-o", c.at], capture_output=True, text=True)
        need(r.returncode == 0, r.stderr)
        need(arrived("nodes")[0] == 1000 + n, arrived("nodes"))


HEAD = struct.Struct("<IBBHIIQ")
MAGIC = 0x4C42434B


FILES = 15  # of a trace, as they are sent; the samples are the last but one
SAMPLES = FILES - 2


def hello(version=2, name=b"x", ident=None):
    return HEAD.pack(MAGIC, 2, 0, 0, 152, 0, 0) + struct.pack("<II", version, 0) + (ident or os.urandom(16)) + bytes(
        64) + name.ljust(64, b"\0")


def strangers():
    """Each gets one line, and a recording beside them notices nothing."""
    ours = os.urandom(16)
    data = HEAD.pack(MAGIC, 5, SAMPLES, 0, 4, 0, 0) + b"abcd"
    cases = [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not kron's protocol"),
        (rnd.randbytes(4000), "not kron's protocol"),
        (hello(version=9), "version 9"),
        (hello(name=b"../up"), "none of a directory"),
        (hello(name=b".x"), "none of a directory"),
        (hello(name=b"a" * 64), "none of a directory"),
        (data, "out of turn"),
        (hello()[:60], "cut in the middle"),
        (b"", "said nothing"),
        (HEAD.pack(MAGIC, 2, 0, 0, 0xFFFFFFFF, 0, 0), "length is not"),
        (HEAD.pack(MAGIC, 99, 0, 0, 8, 0, 0), "does not exist"),
        (hello(ident=ours) + HEAD.pack(MAGIC, 5, 200, 0, 4, 0, 0) + b"abcd", "does not exist"),
        (hello(ident=ours) + HEAD.pack(MAGIC, 5, SAMPLES, 0, 4, 0, 1 << 63) + b"abcd", "does not exist"),
        (hello(ident=ours) + HEAD.pack(MAGIC, 5, SAMPLES, 0, 4, 0, 99) + b"abcd", "leaves something out"),
        (hello(ident=ours) + HEAD.pack(MAGIC, 9, 0, 0, 8 * FILES, 0, 0) + b"\1" * 8 * FILES, "it was not"),
        (hello(ident=ours) + hello(), "out of turn"),
    ]
    with Collector() as c:
        p = subprocess.Popen([KRON, "record", "-q", "--node", "1", "-o", c.at, *PROBE, "--", program(), "1000000"],
                             stdout=subprocess.DEVNULL)
        for text, word in cases:
            at = len(c.said())
            with socket.socket(socket.AF_UNIX) as s:
                s.connect("sock")
                s.sendall(text)
                s.shutdown(socket.SHUT_WR)
                s.settimeout(30)
                try:
                    while s.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
            lines = wait_for(lambda: [x for x in c.said()[at:].splitlines() if "connection ended" in x], "a line")
            need(len(lines) == 1 and word in lines[0], (word, lines))
        need(p.wait(60) == 7, "the recording beside them failed")
        (node,) = [d for d in os.listdir("nodes") if not d.startswith("x")]
        need_all("nodes/" + node, 1000000)
        need(sorted(os.listdir(".")) == ["collect.log", "nodes", "sock", "x.db"], os.listdir("."))


def few_descriptors():
    """Who connects and is silent keeps nobody away, and a node that is complete holds no file open."""
    with Collector(under=["prlimit", "--nofile=64:64"]) as c:
        silent = []
        for _ in range(100):
            s = socket.socket(socket.AF_UNIX)
            s.connect("sock")
            silent.append(s)
        for i in range(8):
            r = record(c.at, 100 + i, "--node", str(i))
            need(r.returncode == 7, (r, c.said()))
        for s in silent:
            s.close()
        need(arrived("nodes")[0] == sum(100 + i for i in range(8)), arrived("nodes"))


def no_room():
    """The collector's disk is full: the recorder says so and ends, and the rest can be sent later."""
    n = 300000
    with Collector(under=["prlimit", "--fsize=100000"]) as c:
        r = record(c.at, n, env={**os.environ, "KRON_CABLE_PATIENCE": "1"}, timeout=120)
        need(r.returncode == 125 and "refuses: File too large; what the" in r.stderr, r)
        need(c.p.poll() is None and c.said().count("File too large") < 30, c.said())
    left = r.stderr.split("--send ")[1].split()[0]
    with Collector() as c:
        r = subprocess.run([KRON, "collect", "--send", left, "-o", c.at], capture_output=True, text=True)
        need(r.returncode == 0, r.stderr)
        need_all("nodes", n)


def stands_still():
    """The collector is there and takes nothing: the recorder ends all the same."""
    n = 300000
    with Collector() as c:
        p = subprocess.Popen([KRON, "record", "-o", c.at, *PROBE, "--", "sh", "-c",
                              f"touch ran; until [ -e go ]; do sleep 0.01; done; {program()} {n}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "KRON_CABLE_PATIENCE": "1"})
        wait_for(lambda: os.path.exists("ran"), "the program")
        c.p.send_signal(signal.SIGSTOP)
        open("go", "w").close()
        err = p.communicate(timeout=120)[1]
        c.p.send_signal(signal.SIGCONT)
        need(p.returncode == 125 and "kron collect --send " in err, err)
        left = err.split("--send ")[1].split()[0]
        r = subprocess.run([KRON, "collect", "--send", left, "-o", c.at], capture_output=True, text=True)
        need(r.returncode == 0, r.stderr)
        need_all("nodes", n)


def frame(kind, text):
    return HEAD.pack(MAGIC, kind, 0, 0, len(text), 0, 0) + text


class Impostor(threading.Thread):
    """Listens, and answers HELLO with these bytes; then it takes all and answers nothing."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer, self.listener = answer, socket.socket(socket.AF_UNIX)
        if os.path.exists("sock"):
            os.unlink("sock")
        self.listener.bind("sock")
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            a, _ = self.listener.accept()
            threading.Thread(target=self.talk, args=(a,), daemon=True).start()

    def talk(self, a):
        try:
            a.sendall(frame(1, struct.pack("<II", 2, 0) + bytes(32)))
            a.recv(176, socket.MSG_WAITALL)
            a.sendall(self.answer)
            while a.recv(65536):
                pass
        except OSError:
            pass


def impostors():
    """What the other end says reaches neither the terminal nor the table of clocks, and holds nobody up."""
    sizes = bytes(8 * FILES)
    run = [KRON, "record", "-o", "unix:sock", "--", "true"]
    for answer, word in (
        (frame(4, b"\x1b]0;owned\x07\nall is well"), "refuses: ?]0;owned??all is well\n"),
        (frame(3, bytes(32) + b"x\n1\t2\t3\t4\n".ljust(64, b"\0") + sizes), "is not a kron collect"),
        (frame(3, bytes(32) + b"a" * 64 + sizes), "is not a kron collect"),
        (frame(5, b"abcd"), "is not a kron collect"),
    ):
        Impostor(answer)
        r = subprocess.run(run, capture_output=True, text=True, timeout=60)
        need(r.returncode == 125 and word in r.stderr and len(r.stderr.splitlines()) == 1, (word, r))
    Impostor(frame(3, bytes(32) + b"0-0".ljust(64, b"\0") + sizes))
    r = subprocess.run(run, capture_output=True, text=True, timeout=120,
                       env={**os.environ, "KRON_CABLE_PATIENCE": "1"})
    need(r.returncode == 125 and "takes nothing" in r.stderr, r)
    shutil.rmtree(r.stderr.split("--send ")[1].split()[0])


def links_in_folder():
    """A directory in the folder that is a link to another place is none of ours."""
    ours = os.urandom(16)
    os.makedirs("nodes")
    os.makedirs("elsewhere")
    with open("elsewhere/cable", "w") as f:
        f.write(ours.hex() + "\n")
    os.symlink("../elsewhere", "nodes/x")
    with Collector() as c, socket.socket(socket.AF_UNIX) as s:
        s.connect("sock")
        s.sendall(hello(ident=ours) + HEAD.pack(MAGIC, 5, SAMPLES, 0, 4, 0, 0) + b"abcd")
        wait_for(lambda: os.path.exists("nodes/x-2/samples"), "a directory of its own")
    need(os.listdir("elsewhere") == ["cable"], os.listdir("elsewhere"))


def others_socket():
    """Another user listens at the path: nothing goes there without a token."""
    tap.need_root()
    other = subprocess.Popen(
        [sys.executable, "-c", "import os, socket, sys\n"
         "s = socket.socket(socket.AF_UNIX); s.bind('sock'); os.chmod('sock', 0o777); os.setuid(65534)\n"
         "s.listen(); print(flush=True); a, _ = s.accept(); print(len(a.recv(1)))"],
        stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    r = subprocess.run([KRON, "record", "-o", "unix:sock", "--", "true"], capture_output=True, text=True, timeout=60)
    need(r.returncode == 125 and "another user's: without --token" in r.stderr, r)
    need(other.communicate(timeout=60)[0] == "0\n", "something was sent")


def tokens():
    for name, text in (("good", "0123456789abcdef0123\n"), ("other", "fedcba98765432100123\n"), ("short", "abc\n")):
        with open(name, "w") as f:
            f.write(text)
        os.chmod(name, 0o600)
    with open("open", "w") as f:
        f.write("0123456789abcdef0123\n")
    os.chmod("open", 0o644)

    def refused(argv, word):
        r = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        need(r.returncode in (1, 2, 125) and word in r.stderr and len(r.stderr.splitlines()) == 1, (word, r))

    refused([KRON, "collect", "--listen", "127.0.0.1:99999", "-o", "n"], "is not an address")  # not port 34463
    refused([KRON, "collect", "--listen", "0.0.0.0:0", "-o", "n"], "without --token")
    refused([KRON, "collect", "--listen", "[::]:0", "-o", "n"], "without --token")
    refused([KRON, "collect", "--listen", "unix:no/where", "-o", "n"], "")
    need(not os.path.exists("n"), "a folder is left of who was refused")
    os.mkdir("n")
    refused([KRON, "collect", "--listen", "0.0.0.0:0", "-o", "n"], "without --token")
    need(os.path.exists("n"), "a folder that was there is gone")
    os.rmdir("n")
    refused([KRON, "collect", "--listen", "0.0.0.0:0", "-o", "n", "--token", "open"], "chmod 600")
    refused([KRON, "collect", "--listen", "0.0.0.0:0", "-o", "n", "--token", "short"], "shorter than")
    with Collector("0.0.0.0:0", "nodes", "--token", "good") as c:
        at = "tcp://127.0.0.1:" + c.at.rsplit(":", 1)[1]
        run = [KRON, "record", "-o", at]
        refused([*run, "--", "true"], "wants a token")
        refused([*run, "--token", "other", "--", "true"], "does not have the collector's token")
        need(record(at, 1000, "--token", "good").returncode == 7, c.said())
        need_all("nodes", 1000)
    # who listens there must have it, too
    with Collector("127.0.0.1:0", "nodes2") as c:
        refused([KRON, "record", "-o", c.at, "--token", "good", "--", "true"], "does not have the token")
    refused([KRON, "record", "-o", "unix:nobody", "--", "true"], "cannot connect")


def no_addresses():
    """A port that is none is not taken for another one."""
    for argv, status in ((["collect", "--listen", "127.0.0.1:65536"], 2), (["collect", "--listen", ":99999"], 2),
                         (["record", "-o", "tcp://127.0.0.1:71529", "--", "true"], 125)):
        r = subprocess.run([KRON, *argv], capture_output=True, text=True, timeout=30)
        need(r.returncode == status and "is not an address" in r.stderr and len(r.stderr.splitlines()) == 1, r)


def elsewhere():
    """What one folder has is not sent to another one, where it would be missing: the rest stays for the first."""
    c = Collector("unix:sock", "first")
    p = subprocess.Popen([KRON, "record", "-o", c.at, *PROBE, "--", "sh", "-c",
                          f"{program()} 3000000; touch ran; until [ -e go ]; do sleep 0.01; done; {program()} 1000"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "KRON_CABLE_PATIENCE": "1"})
    wait_for(lambda: os.path.exists("ran"), "the program")
    c.end(signal.SIGKILL)
    open("go", "w").close()
    err = p.communicate()[1]
    need(p.returncode == 125, err)
    left = err.split("--send ")[1].split()[0]
    send = [KRON, "collect", "--send", left, "-o", "unix:sock"]
    with Collector("unix:sock", "second"):
        r = subprocess.run(send, capture_output=True, text=True)
        need(r.returncode == 1 and "does not have what was taken before" in r.stderr and os.path.exists(left), r)
    with Collector("unix:sock", "first"):
        r = subprocess.run(send, capture_output=True, text=True)
        need(r.returncode == 0 and not os.path.exists(left), r)
    need(arrived("first")[0] == 3001000, arrived("first"))
    for no_spool in ("first", "nowhere"):
        r = subprocess.run([KRON, "collect", "--send", no_spool, "-o", "unix:sock"], capture_output=True, text=True)
        need(r.returncode == 1 and "not a directory that kron record left" in r.stderr, r)


def stamps(*dirs):
    """Of each node the time stamps of its samples: the counter of the processor, as the reader has it."""
    out = subprocess.run([KRON, "dump", "--json", *dirs], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in out.splitlines():
        e = json.loads(line)
        if e["kind"] == "event":
            found.setdefault(e.get("node_name", ""), []).append(int(e["timestamp"], 16))
    return found


def clocks():
    """Two nodes of which the reader is told that they are no one host: it has the collector's clock alone to put them
    on one line.  They are one host, so the counter says how wrong that is."""
    link = None
    with Collector("127.0.0.1:0") as c:
        link = Link(c.at)
        for node in ("1", "2"):
            need(record(link.at, 2000, "--node", node).returncode == 7, c.said())
        c.end()
    dirs = [f"nodes/{d}" for d in sorted(os.listdir("nodes"))]
    alone = [stamps(d)[""] for d in dirs]
    for i, d in enumerate(dirs):
        with open(f"{d}/session") as f:
            text = f.read()
        with open(f"{d}/session", "w") as f:
            f.write(re.sub("^boot_id=.*", f"boot_id=host{i}", text, flags=re.M))
    info = json.loads(subprocess.run([KRON, "info", "--json", "nodes"], capture_output=True, text=True).stdout)
    joined, hz = stamps("nodes"), info["tsc_hz"]
    need(info["nodes"][1]["clock"] == "by readings of the collector's clock, a straight line", info["nodes"])
    stated = info["nodes"][1]["clock_error_ns"]
    # the first node's clock is the line; the second's samples lie on it as far off as the fit is wrong
    off = [abs(a - b) * 1e9 / hz for a, b in zip(joined["2"], alone[1])]
    need(len(off) == 2000 and max(off) <= stated, (max(off), stated))
    need(joined["1"] == alone[0], "the first node's own times have moved")
    print(f"# {max(off) / 1e3:.1f} us off, {stated / 1e3:.1f} us stated")


with tap.Suite("cable") as suite:
    suite.case("over a Unix socket and TCP all samples arrive, once, and nothing is left behind", whole)
    suite.case("24 senders at once, a directory each, read as one trace", many)
    suite.case("two recordings of one name have a directory each", same_name)
    suite.case("a link that is cut again and again: nothing is lost, nothing is there twice", broken_links)
    suite.case("a slow link: --when-full wait loses nothing", slow, "wait")
    suite.case("a slow link: --when-full discard counts what it loses", slow, "discard")
    suite.case("the collector is killed at random instants: what it had is there once, and the rest follows",
               collector_killed)
    suite.case("the recorder is killed at random instants: likewise, and its spool can be sent", sender_killed)
    suite.case("the collector is gone at the end: the rest stays, and can be sent", dead_at_end, "64M")
    suite.case("likewise, and the spool is full", dead_at_end, "256K")
    suite.case("strangers, garbage, other versions, lengths that lie: one line each", strangers)
    suite.case("many who connect and say nothing, and few descriptors: recordings arrive", few_descriptors)
    suite.case("the collector's disk is full: the recorder says so and ends, and the rest can be sent", no_room)
    suite.case("the collector stands still: likewise", stands_still)
    suite.case("what is not a collector is told so, and cannot write to the terminal or hold a recorder", impostors)
    suite.case("a link in the collector's folder is not followed", links_in_folder)
    suite.case("another user listens at the path: nothing is sent there", others_socket)
    suite.case("tokens", tokens)
    suite.case("no addresses", no_addresses)
    suite.case("what was left goes to the folder that has its beginning", elsewhere)
    suite.case("times of two nodes, by the collector's clock, are no further off than is said", clocks)
sys.exit(suite.failed > 0)
