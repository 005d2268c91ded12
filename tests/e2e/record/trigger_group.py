#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""trigger_group.py - recordings that stop together: on one host, in three network namespaces, and when strangers speak.

All of them run on one machine, so the processor's counter tells how far apart they stopped.
"""

import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
from tap import KRON, need, wait_for  # noqa: E402

PROGRAM = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile long seen;
__attribute__((noinline)) void step(long i) { seen = i; }
__attribute__((noinline)) void fault(long i) { seen = -i; }
int main(int argc, char **argv)
{
	const struct timespec t = {0, 10000};
	long end = 0;
	for (long i = 0; access("stop", F_OK) && (!end || i < end); i++) {
		step(i);
		nanosleep(&t, 0);
		if (i == 300)
			fclose(fopen(argv[1], "w"));
		if (end || i < 300 || access("go", F_OK))
			continue;
		if (argc > 2)
			fault(i);
		end = i + (argc > 3 ? 1 : 2000);
	}
	return 0;
}
"""
PRE = 200
TOKEN = b"0123456789abcdef0123"


def program():
    if not os.path.exists("../faulty"):
        tap.compile_text("../faulty", PROGRAM)
    return os.path.abspath("../faulty")


class Node:
    """A recording.  Its program runs until there is a file `stop`, or for a moment more once there is one `go`; the
    faulty one calls fault() then."""

    all = []

    def __init__(self, name, group, *more, under=(), faulty=False, ends=False):
        self.name = name
        trigger = ["--trigger", "fault"] if faulty else []
        self.p = subprocess.Popen(
            [*under, KRON, "record", "-o", name, "--node", name.removeprefix("n"), "--trigger-group", group, *trigger,
             "--pre", str(PRE), "--post", str(PRE), "-p", "step i=$arg1", "-p", "fault i=$arg1", *more, "--", program(),
             "ran." + name, *["faulty"] * faulty, *["ends"] * ends], stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        Node.all.append(self)

    def ready(self):
        wait_for(lambda: os.path.exists("ran." + self.name) or self.p.poll() is not None, self.name)
        need(self.p.poll() is None, self.p.poll() is not None and self.p.stderr.read())

    def end(self):
        self.said = self.p.communicate(timeout=60)[1]
        need(self.p.returncode == 0, self.said)
        return self.said

    def stamps(self):
        out = subprocess.run([KRON, "dump", "--json", self.name], capture_output=True, text=True, check=True).stdout
        events = [e for e in map(json.loads, out.splitlines()) if e["kind"] == "event"]
        return [(e["name"], int(e["timestamp"], 16)) for e in events]

    def info(self):
        return json.loads(subprocess.run([KRON, "info", "--json", self.name], capture_output=True, text=True).stdout)


def ending(case):
    """The case, and whatever of it is left when it fails ends, too."""
    def run(*argv):
        try:
            case(*argv)
        finally:
            for n in Node.all:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(n.p.pid, signal.SIGKILL)
                n.p.wait()
            Node.all.clear()
    return run


def stop():
    open("stop", "w").close()


def need_together(first, others, most_us):
    """Each has as much before as after the moment at which the first one's trigger fired."""
    at = [t for name, t in first.stamps() if name == "fault"]
    need(len(at) == 1, at)
    hz, worst = first.info()["tsc_hz"], 0
    for o in others:
        t = [t for _, t in o.stamps()]
        need(len(t) == 2 * PRE + 1 and "the trigger of" in o.said, (o.name, len(t), o.said))
        # it fired between these two
        early, late = ((x - at[0]) * 1e6 / hz for x in (t[PRE], t[PRE + 1]))
        need(late > 0 and early < most_us, (o.name, early, late))
        worst = max(worst, early)
    print(f"# the others' samples go on before theirs for {worst:.0f} us at most")


def need_all_stop(first, others):
    for n in (*others, first):
        n.ready()
    open("go", "w").close()
    for n in (*others, first):
        n.end()
    need_together(first, others, 100000)


def one_host():
    # recordings of another group, and of none, are not touched
    others = [Node("n1", "all"), Node("n2", "all")]
    strangers = [Node("n4", "other")]
    first = Node("n3", "all", faulty=True)
    for n in (*others, *strangers, first):
        n.ready()
    folder = f"/dev/shm/kron-group.{os.getuid()}.all"
    need(len(os.listdir(folder)) == 3, os.listdir(folder))
    need_all_stop(first, others)
    strangers[0].end()
    need("the trigger never fired" in strangers[0].said, strangers[0].said)
    need(not os.path.exists(folder), "the group's folder is left")


def last_moment():
    """The program ends with the trigger: the others hear of it all the same.  A killed member leaves nothing."""
    killed, other, first = Node("n1", "end"), Node("n2", "end"), Node("n3", "end", faulty=True, ends=True)
    for n in (killed, other, first):
        n.ready()
    killed.p.send_signal(signal.SIGKILL)
    killed.p.wait(60)
    open("go", "w").close()
    first.end()
    killed.p.communicate(timeout=60)  # its program has ended, too
    other.end()
    need("the trigger of" in other.said, other.said)
    need(not os.path.exists(f"/dev/shm/kron-group.{os.getuid()}.end"), "the group's folder is left")
    subprocess.run([KRON, "recover", "n1"], capture_output=True)


def one_port():
    """Members on one host that meet by UDP: one of them has the port, and another takes it when that one has ended."""
    group = f"lab@127.0.0.1:{20000 + (os.getpid() + 1) % 10000}"
    token = write_token()
    one = Node("n9", group, "--token", token)
    one.ready()
    others = [Node(f"n{i}", group, "--token", token) for i in range(3)]
    for n in others:
        n.ready()
    one.p.send_signal(signal.SIGINT)
    one.p.wait(60)
    first = Node("n4", group, "--token", token, faulty=True)
    first.ready()
    time.sleep(3)  # the port goes over within a second, and the next HELLO finds it
    need_all_stop(first, others)
    need("has answered" not in first.said and "have not said" not in first.said, first.said)


def alone():
    n = Node("n1", "alone")
    n.ready()
    stop()
    need("no other recording of this group has answered" in n.end(), n.said)


# ---- more hosts ----


def write_token(name="token", text=TOKEN):
    with open(name, "wb") as f:
        f.write(text)
    os.chmod(name, 0o600)
    return name


def ip(*argv):
    subprocess.run(["ip", *argv], check=True, capture_output=True)


@contextlib.contextmanager
def namespaces(n):
    """A network namespace, 192.0.2.1, that n - 1 others, 198.51.100.18 and so on, reach each other through."""
    tap.need_root()
    names = [f"kg{os.getpid()}x{i}" for i in range(n)]
    try:
        for i, name in enumerate(names):
            if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
                raise tap.Skip("no network namespaces here")
            ip("-n", name, "link", "set", "lo", "up")
            if not i:
                ip("-n", name, "addr", "add", "192.0.2.1/32", "dev", "lo")
                continue
            if subprocess.run(["ip", "link", "add", "eth", "netns", name, "type", "veth", "peer", "name", f"eth{i}",
                               "netns", names[0]], capture_output=True).returncode:
                raise tap.Skip("no veth here")
            ip("-n", names[0], "addr", "add", f"198.51.100.{16 * i + 1}/28", "dev", f"eth{i}")
            ip("-n", names[0], "link", "set", f"eth{i}", "up")
            ip("-n", name, "addr", "add", f"198.51.100.{16 * i + 2}/28", "dev", "eth")
            ip("-n", name, "link", "set", "eth", "up")
            ip("-n", name, "route", "add", "default", "via", f"198.51.100.{16 * i + 1}")
        ip("netns", "exec", names[0], "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def hosts(group, n):
    token = write_token()
    with namespaces(n) as names:
        ip("-n", names[0], "route", "add", "239.0.0.0/8", "dev", "eth1")
        nodes = [Node(f"n{i}", group, "--token", token, under=["ip", "netns", "exec", name], faulty=i == n - 1)
                 for i, name in enumerate(names)]
        need_all_stop(nodes[-1], nodes[:-1])


# ---- who may speak ----

MESSAGE = struct.Struct("<II16s16sQ64s")
HELLO, FIRED, HEARD = 1, 2, 3
NOBODY = bytes(16)


class Speaker:
    """A member as kron's are, or who would like to be one."""

    def __init__(self):
        self.id = os.urandom(16)
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind(("127.0.0.1", 0))
        self.s.settimeout(0.3)

    def make(self, kind, to=NOBODY, age=0, token=TOKEN, name=b"lab", me=None):
        body = MESSAGE.pack(0x5247434B, kind, me or self.id, to, age, b"stranger" if kind == FIRED else b"")
        mac = hmac.new(token, b"kron group 1\0" + name.ljust(64, b"\0") + body, hashlib.sha256).digest()
        return body + mac

    def send(self, data, at):
        self.s.sendto(data, at)

    def hear(self, kind):
        """(number, address) of the one that says this to us; None: nobody does."""
        for _ in range(100):
            try:
                data, at = self.s.recvfrom(1000)
            except TimeoutError:
                return None
            _, k, who, to, _, _ = MESSAGE.unpack(data[:-32])
            if k == kind and to == self.id:
                return who, at
        return None


def strangers():
    port = 20000 + os.getpid() % 10000
    at = ("127.0.0.1", port)
    token = write_token()
    n = Node("n1", f"lab@127.0.0.1:{port}", "--token", token)
    n.ready()
    us, other = Speaker(), Speaker()
    # a datagram that was recorded before, of a true member: it is answered, and no more
    us.send(us.make(HELLO), at)
    number, own = us.hear(HELLO)
    wrong = [
        (b"", at), (os.urandom(144), at), (os.urandom(9000), at),
        (other.make(HELLO, token=b"0123456789abcdef0124"), at),
        (other.make(HELLO, name=b"labor"), at),
    ]
    for to in (at, own):
        for me in (us.id, None):
            wrong += [
                (other.make(FIRED, number, token=b"", me=me), to),
                (other.make(FIRED, number, token=TOKEN[:-1], me=me), to),
                (other.make(FIRED, number, name=b"la", me=me), to),
                (other.make(FIRED, number, me=me)[:-1], to),
                (other.make(FIRED, number, me=me) + b"x", to),
                (bytes([b ^ (i == 50) for i, b in enumerate(other.make(FIRED, number, me=me))]), to),
                # true once, to a recording that is over
                (other.make(FIRED, os.urandom(16), me=me), to),
                (other.make(FIRED, NOBODY, me=me), to),
            ]
    for data, to in wrong:
        other.send(data, to)
    need(other.hear(HELLO) is None and other.hear(HEARD) is None, "a stranger was answered")
    stop()
    need("the trigger never fired" in n.end(), n.said)
    os.unlink("stop")

    # and the right one fires; until it is heard it comes again
    first = Node("n2", f"lab@127.0.0.1:{port}", "--token", token, faulty=True)
    first.ready()
    us.send(us.make(HELLO), at)
    number, own = us.hear(HELLO)
    us.send(us.make(HELLO, number), own)
    us.hear(HELLO)
    other.send(us.make(HELLO, number), own)  # repeated from elsewhere: the answers go where they went
    open("go", "w").close()
    for _ in range(3):
        need(us.hear(FIRED), "FIRED came once only")
    us.send(us.make(HEARD, number), own)
    wait_for(lambda: us.hear(FIRED) is None, "its end")
    first.end()
    os.unlink("go")
    last = Node("n3", f"lab@127.0.0.1:{port}", "--token", token)
    last.ready()
    us.send(us.make(HELLO), at)
    number, own = us.hear(HELLO)
    us.send(us.make(FIRED, number, age=1000), own)
    need(us.hear(HEARD), "not heard")
    stop()
    need("the trigger of stranger fired" in last.end(), last.said)


def refusals():
    token = write_token()
    write_token("short", b"abc")
    for more, word in (
        (["--trigger-group", "a@127.0.0.1"], "--token FILE, the same for all"),
        (["--trigger-group", "../a"], "is not a group"),
        (["--trigger-group", "a@"], "is not a group"),
        (["--trigger-group", ""], "is not a group"),
        (["--trigger-group", "a@127.0.0.1:99999", "--token", token], "is not an address"),
        (["--trigger-group", "a@unix:x", "--token", token], "is not a HOST"),
        (["--trigger-group", "a@127.0.0.1:1,127.0.0.1:2", "--token", token], "have one port"),
        (["--trigger-group", "a@127.0.0.1", "--token", "short"], "shorter than"),
        (["--trigger-group", "a", "--token", token], "--token belongs to"),
        (["--trigger-group", "a", "--when-full", "wrap"], "leave out --when-full wrap"),
    ):
        r = subprocess.run([KRON, "record", "-o", "x", *more, "--", "true"], capture_output=True, text=True, timeout=30)
        need(r.returncode == 125 and word in r.stderr and len(r.stderr.splitlines()) == 1, (more, r))
    need(not os.path.exists("x"), "something was recorded")
    if os.getuid() == 0:  # a directory that another user has made
        folder = f"/dev/shm/kron-group.0.kg{os.getpid()}"
        os.mkdir(folder)
        os.chown(folder, 65534, 65534)
        try:  # it stays
            r = subprocess.run([KRON, "record", "-o", "x", "--trigger-group", f"kg{os.getpid()}", "--", "true"],
                               capture_output=True, text=True, timeout=30)
            need(r.returncode == 125 and "is not ours alone" in r.stderr, r)
        finally:
            os.rmdir(folder)


with tap.Suite("trigger_group") as suite:
    suite.case("one host: a trigger stops all of its group, each with what was before and after", ending(one_host))
    suite.case("the program ends with the trigger, and a member is killed", ending(last_moment))
    suite.case("one host by UDP: the members share a port, and one after the other has it", ending(one_port))
    suite.case("a member that nobody answers says so", ending(alone))
    suite.case("three network namespaces, by a list of hosts",
               ending(hosts), "lab@192.0.2.1,198.51.100.18,198.51.100.34", 3)
    suite.case("two network namespaces, by multicast", ending(hosts), "lab@239.9.8.7:7000", 2)
    suite.case("datagrams of strangers, and of earlier recordings, have no effect", ending(strangers))
    suite.case("what is not a group, and what has no token", ending(refusals))
sys.exit(suite.failed > 0)
