#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 300
"""security.py - attackers at the door: other users of the machine against root's recordings.

doc/SECURITY.md says what must hold.  The attackers run as uid 65534; what is expected comes from
them, from the kernel and from programs that count their own calls, never from kron.
"""

import contextlib
import os
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import CC, KRON, SRC, Skip, Suite, Wrong, compile_c, need, rnd, truth

STRANGER = 65534
MAGIC, HELLO_BYTES = 0x4B524F4E, 160  # "what comes is sealed" fails if they are wrong
with open(os.path.join(SRC, "include/kron/wire.h")) as f:
    VERSION = int(re.search(r"KRON_WIRE_VERSION (\d+)", f.read())[1])
PATIENCE = 5  # seconds that a runtime once waited for whoever had the name


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user, too")


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.005)
    raise Wrong(f"waited {seconds} s in vain for {what}")


# ---- recordings ----


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
            p = todo.pop()
            with contextlib.suppress(OSError):
                with open(f"/proc/{p}/task/{p}/children") as f:
                    children = [int(c) for c in f.read().split()]
                for c in children:
                    with open(f"/proc/{c}/comm") as f:
                        if f.read().strip() == name:
                            return c
                todo += children
        return None

    return wait_for(look, f"a process {name}")


# ---- attackers ----


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


def connect(name, kind=0):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | kind)
    s.connect("\0" + name)
    return s


def squat(say, name, backlog, answer):
    """Takes the name as soon as it is free, and says what came over it."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    while True:
        with contextlib.suppress(OSError):
            s.bind("\0" + name)
            break
        time.sleep(0.001)
    s.listen(backlog)
    say("listening")
    if not answer:  # nobody who connects is heard, and the backlog is full
        full = []
        with contextlib.suppress(BlockingIOError):
            while True:
                full.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                full[-1].setblocking(False)
                full[-1].connect("\0" + name)
        say("full")
        signal.pause()
    while True:
        c = s.accept()[0]
        c.settimeout(20)
        with contextlib.suppress(OSError):
            got = c.recv(4096)
            say(f"received {len(got)}" if got else "hung up")


def squatted(recording, name, backlog=16, answer=True):
    stranger = Stranger(squat, name, backlog, answer)
    recording_ends = not os.path.exists(f"/proc/{recording.pid}")
    need(not recording_ends, "the recorder has gone before it was to")
    return stranger


STARTS = 6
DESCENDANT = """
echo started
while [ ! -e go ]; do sleep 0.05; done
for i in %s; do /bin/true || echo wrong; done
echo done >descendant-is-done
""" % " ".join(map(str, range(STARTS)))


def starts_are_quick():
    """Whoever holds the name: it is not he who decides how long a start takes."""
    began = time.monotonic()
    open("go", "w").close()
    wait_for(lambda: os.path.exists("descendant-is-done"), "the descendant", STARTS * PATIENCE * 3)
    took = time.monotonic() - began
    need(took < PATIENCE, f"{STARTS} starts of /bin/true took {took:.1f} s")


def squatter_after_kill(backlog=16, answer=True):
    """The recorder was killed, its descendants start programs, a stranger has taken its name."""
    need_root()
    r = Recording("sh", "-c", DESCENDANT)
    r.wait_for_line("started")
    name = r.socket_name()
    with squatted(r, name, backlog, answer) as stranger:
        r.kill()
        stranger.wait_for("listening" if answer else "full")
        starts_are_quick()
        received = [w for w in stranger.words() if w.startswith(("received", "fell"))]
        need(not received, f"the stranger got something: {received}")
    need("wrong" not in r.said()[0], r.said())
    subprocess.run([KRON, "recover", r.trace], capture_output=True, check=True)


def squatter_after_end():
    """An orderly end; a program that was about to start then comes late."""
    need_root()
    r = Recording("sh", "-c", "echo started; while [ ! -e go ]; do sleep 0.05; done")
    r.wait_for_line("started")
    name = r.socket_name()
    env = {**os.environ, **environment_of(descendant_of(r.pid, "sh"))}
    with squatted(r, name) as stranger:
        open("go", "w").close()
        r.end()
        stranger.wait_for("listening")
        began = time.monotonic()
        for _ in range(STARTS):
            p = subprocess.run(["/bin/sh", "-c", "env"], env=env, capture_output=True, text=True)
            need(p.returncode == 0 and not p.stderr, f"{p}")
            need("KRON_RT" not in p.stdout, "the environment was not cleaned")
            need("libkron-rt" not in p.stdout, "the environment was not cleaned")
        took = time.monotonic() - began
        need(took < PATIENCE, f"{STARTS} starts took {took:.1f} s")
        received = [w for w in stranger.words() if w.startswith(("received", "fell"))]
        need(not received, f"the stranger got something: {received}")


# ---- who the collector believes ----

IDLE = 1200
STARTER = """
echo started
while [ ! -e go ]; do sleep 0.05; done
/bin/true; /bin/true; /bin/true
"""


def raise_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))


def idle(say, name, n):
    """Connects and says nothing, again whenever it is shut out."""
    held = []
    for _ in range(n):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            s.connect("\0" + name)
            held.append(s)
    say("connected")
    while True:
        for i, s in enumerate(held):
            with contextlib.suppress(BlockingIOError):
                if not s.recv(1):
                    held[i] = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    held[i].setblocking(False)
                    held[i].connect("\0" + name)


def starts_of(trace, program):
    """Processes that began by executing the program, from the bytes of the table."""
    return sum(
        1
        for f in truth.fields(f"{trace}/tasks")
        if f[0] == "P" and f[4] == "exec" and os.path.basename(f[7]) == program
    )


def idle_connections():
    """Strangers hold as many connections as they like: every start is traced, and at once."""
    need_root()
    raise_descriptors()
    r = Recording("sh", "-c", STARTER)
    r.wait_for_line("started")
    with Stranger(idle, r.socket_name(), IDLE) as stranger:
        stranger.wait_for("connected")
        began = time.monotonic()
        open("go", "w").close()
        said = r.end()
        took = time.monotonic() - began
        need("fell" not in stranger.text, stranger.text)
    need(took < PATIENCE, f"three starts took {took:.1f} s")
    need(starts_of(r.trace, "true") == 3, f"{starts_of(r.trace, 'true')} of three were traced: {said}")
    need("untraced" not in said[1], said[1])


def backlog_of(name):
    """How many may wait there, as the kernel says."""
    got = subprocess.run(["ss", "-xlH"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[3]) for line in got.splitlines() if f"@{name} " in line][0]


def knock(say, name):
    """Connects and leaves, without end."""
    say("begun")
    while True:
        connect(name).close()


def starts_before_a_flood():
    """While somebody floods the socket few can be in front of a start; afterwards as many as a build has."""
    need_root()
    if not shutil.which("ss"):
        raise Skip("ss is not installed")
    r = Recording("sh", "-c", STARTER)
    r.wait_for_line("started")
    name = r.socket_name()
    usual = backlog_of(name)
    with Stranger(knock, name) as stranger:
        stranger.wait_for("begun")
        wait_for(lambda: backlog_of(name) < usual // 4, "a short backlog")
    wait_for(lambda: backlog_of(name) == usual, "the usual backlog")
    open("go", "w").close()
    err = r.end()[1]
    need(starts_of(r.trace, "true") == 3 and "untraced" not in err, err)


def is_connecting(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/syscall") as f:
        return f.read().startswith("42 ")


@contextlib.contextmanager
def deaf(recording):
    """The recorder hears nobody, and strangers have filled what waits for it."""
    name = recording.socket_name()
    os.kill(recording.pid, signal.SIGSTOP)
    try:
        os.waitpid(recording.pid, os.WUNTRACED)
        with Stranger(idle, name, IDLE) as stranger:
            stranger.wait_for("connected")
            yield
    finally:
        os.kill(recording.pid, signal.SIGCONT)


def starts_wait_for_the_collector():
    """It lives and has no time: who is sure of that waits for it, longer than for a stranger."""
    need_root()
    raise_descriptors()
    os.mkfifo("go")
    r = Recording("sh", "-c", "echo started; read x <go; /bin/true; /bin/true; /bin/true")
    r.wait_for_line("started")
    with deaf(r):
        with open("go", "w") as f:
            f.write("x\n")
        pid = descendant_of(r.pid, "true")
        wait_for(lambda: is_connecting(pid), "it to ask")
        time.sleep(0.5)  # more than a stranger gets
        need(is_connecting(pid), "it gave up")
    said = r.end()
    need(starts_of(r.trace, "true") == 3, f"{starts_of(r.trace, 'true')} of three were traced: {said}")
    need("untraced" not in said[1], said[1])


LOADER = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	puts("started");
	fflush(stdout);
	while (access("go", F_OK))
		usleep(10000);
	if (!dlopen("libm.so.6", RTLD_NOW))
		return 1;
	fclose(fopen("loaded", "w"));
	return 0;
}
"""


def unheard_is_said():
    """A program loads a library, and nobody hears it before it goes on."""
    need_root()
    raise_descriptors()
    compile_text("loader", LOADER)
    r = Recording("./loader", options=["--library", "*"])
    r.wait_for_line("started")
    with deaf(r):
        open("go", "w").close()
        wait_for(lambda: os.path.exists("loaded"), "the library")
    err = r.end()[1]
    need("untraced: what a process loaded: kron did not answer" in err, err)


def hello(token, kind=1, pid=0):
    """pid: what libkron-rt.so once said it was; nobody is to believe it."""
    head = struct.pack("<IIIi", MAGIC, VERSION, kind, pid) + bytes.fromhex(token)
    return head.ljust(HELLO_BYTES, b"\0")


def ask(say, name, message):
    """What the collector gives for a message: bytes, and descriptors."""
    s = connect(name)
    s.settimeout(20)
    if message:
        s.send(message)
    try:
        data, fds, _, _ = socket.recv_fds(s, 4096, 8)
        say(f"got {len(data)} bytes and {len(fds)} descriptors")
    except (ConnectionError, TimeoutError) as e:
        say(f"got 0 bytes and 0 descriptors ({e!r})")
    say("asked")


def questions_of_strangers():
    """Half a HELLO, a wrong token, and the true one, which somebody has let out."""
    need_root()
    r = Recording("sh", "-c", STARTER)
    r.wait_for_line("started")
    name = r.socket_name()
    token = environment_of(descendant_of(r.pid, "sh"))["KRON_RT"].split(",")[1]
    messages = {
        "half a HELLO": hello(token)[:60],
        "a HELLO and a half": hello(token) + hello(token)[:60],
        "a wrong token": hello("00" * 16),
        "the true token": hello(token),
        "a question about modules": hello(token, 2),
        "another kind": hello(token, 77),
        "nothing of ours": b"GET / HTTP/1.0\r\n\r\n",
    }
    for what, message in messages.items():
        with Stranger(ask, name, message) as stranger:
            stranger.wait_for("asked")
            need("got 0 bytes and 0 descriptors" in stranger.text, f"{what}: {stranger.text}")
    open("go", "w").close()
    said = r.end()
    need(starts_of(r.trace, "true") == 3, f"the recording suffered: {said}")


def ask_and_write(say, name, message):
    """As one of the recorder's own user, who gets everything: can it be changed?"""
    s = connect(name)
    s.settimeout(60)
    s.send(message)
    fds = []
    while not fds:
        data, fds, _, _ = socket.recv_fds(s, 4096, 8)
        need(data, "no answer")
    for fd in fds:
        what = os.readlink(f"/proc/self/fd/{fd}").split(":")[1][:5]
        for change in ("write", "truncate", "grow"):
            with contextlib.suppress(OSError):
                size = os.fstat(fd).st_size
                if change == "write":
                    os.pwrite(fd, os.pread(fd, 1, 0), 0)
                else:
                    os.ftruncate(fd, size - 4096 if change == "truncate" else size + 4096)
                say(f"{what} {change}")
    say(f"got {len(fds)}")


def what_comes_is_sealed():
    """The samples can be written, of course; the code cannot, and neither can be cut off."""
    need_root()
    r = Recording("sh", "-c", STARTER)
    r.wait_for_line("started")
    token = environment_of(descendant_of(r.pid, "sh"))["KRON_RT"].split(",")[1]
    message = hello(token)[:40] + struct.pack("<Q", 1 << 32) * ((HELLO_BYTES - 40) // 8)
    with Stranger(ask_and_write, r.socket_name(), message, uid=0) as us:
        wait_for(lambda: us.words() and us.words()[-1].startswith(("got", "fell")), "the answer")
        need(us.words() == ["kron- write", "got 2"], us.text)
    open("go", "w").close()
    r.end()


# ---- what the environment carries ----

AS_NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
FILTERED = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {1, all};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 1;
	execl("/bin/true", "true", (char *)0);
	return 2;
}
"""


ORPHAN = """
#define _GNU_SOURCE
#include <grp.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	pid_t parent = getpid();
	if (fork())
		return 0;
	while (getppid() == parent)
		usleep(1000);
	if (setgroups(0, 0) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	execv(argv[1], argv + 1);
	return 2;
}
"""


def compile_text(out, text, *flags):
    with open(f"{out}.c", "w") as f:
        f.write(text)
    subprocess.run([*CC, "-O2", "-o", out, f"{out}.c", *flags], check=True)


def other_users_are_traced():
    """Root's programs that become somebody else: every call is there, and they act as ever."""
    need_root()
    compile_c("triggers", "bins/triggers.c")
    compile_text("orphan", ORPHAN)
    os.chmod(".", 0o777)
    for i, way in enumerate(
        (
            f"{AS_NOBODY} ./triggers 1 1000",
            f"{AS_NOBODY} sh -c './triggers 1 1000; exit 0'",
            # no ancestor is left, and it had no samples: it is known because it said what it would start
            "./orphan ./triggers 1 1000 >out; while [ ! -s out ]; do sleep 0.02; done",
            "unshare -Ur ./triggers 1 1000",
            "unshare -fp --mount-proc ./triggers 1 1000",
            f"unshare -fp --mount-proc {AS_NOBODY} ./triggers 1 1000",
            "unshare -m ./triggers 1 1000",
        )
    ):
        if os.path.exists("out"):
            os.remove("out")
        r = Recording("sh", "-c", way, trace=f"t{i}", options=["-F", "tick"])
        said = r.end()
        got = r.calls("tick")
        need(got == 1000, f"{way}: {got} of 1000 calls, {said}")
        need("untraced" not in said[1], f"{way}: {said[1]}")


def what_is_untraced_is_said():
    """Programs that kron cannot reach run as ever, and a note says that they did."""
    need_root()
    compile_text("plain", "int main(void) { return 7; }")
    compile_text("static", "int main(void) { return 7; }", "-static")
    compile_text("filtered", FILTERED)
    subprocess.run(["cp", "plain", "setid"], check=True)
    os.chown("setid", STRANGER, STRANGER)
    os.chmod("setid", 0o4755)
    os.makedirs("root")
    for lib in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        os.makedirs(f"root{os.path.dirname(lib)}", exist_ok=True)
        subprocess.run(["cp", "-L", lib, f"root{lib}"], check=True)
    subprocess.run(["cp", "plain", "root/plain"], check=True)
    never = "it was started and never reported to kron"
    ways = {
        "./static": (7, 1, "it is static, set-id"),
        "./setid; ./setid": (7, 2, "it is static, set-id"),
        "chroot root /plain": (7, 1, "libkron-rt.so cannot be read"),
        "./filtered": (0, 1, "a process under a seccomp filter"),
        "unshare -n ./plain": (7, 1, never),
        "unshare -n sh -c './plain; ./plain'": (7, 1, never),
        "./plain; ./nothing": (127, 0, ""),
        "PATH=/nowhere:/usr/bin env true": (0, 0, ""),
    }
    for i, (way, (status, times, phrase)) in enumerate(ways.items()):
        r = Recording("sh", "-c", f"{way}; exit $?", trace=f"t{i}")
        err = r.end(status)[1]
        notes = [line for line in err.splitlines() if "untraced" in line]
        need(len(notes) == (times > 0), f"{way}: {err}")
        if times:
            need(phrase in notes[0], f"{way}: {err}")
            need((f"({times} times)" in notes[0]) == (times > 1), f"{way}: {err}")
            info = truth.kron_json("info", r.trace)
            need(any(phrase in u["reason"] for u in info["untraced"]), f"{way}: {info['untraced']}")


HANG_UP = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("\\0" + sys.argv[1])
s.close()
sys.stdin.read()
"""


def who_does_not_believe_us_is_noted():
    """In a user namespace without numbers, on a kernel without identities, the runtime hangs up
    without a word (tests/unit/runtime/test_trust.c).  Here a script does; the collector finds out why."""
    need_root()
    r = Recording("sh", "-c", STARTER)
    r.wait_for_line("started")
    argv = ["unshare", "-U", sys.executable, "-c", HANG_UP, r.socket_name()]
    p = subprocess.Popen(argv, stdin=subprocess.PIPE)
    wait_for(lambda: any(f[0] == "U" for f in truth.fields(f"{r.trace}/tasks")), "the note")
    p.stdin.close()
    p.wait()
    open("go", "w").close()
    err = r.end()[1]
    need("untraced: it runs in a user namespace" in err, err)


# ---- traced processes of another user ----

WITH_HOSTILE = """
all=
for i in %s; do %s ./hostile %s did $((%d + i)) & all="$all $!"; done
while [ ! -s did ]; do sleep 0.02; done
for i in %s; do ./triggers 2 20000 || echo wrong $?; done
kill -0 $all && echo hostile lives
kill -9 $all
wait
echo end
"""
RUNS = 10


def build_hostile():
    include = os.path.join(SRC, "include")
    compile_c("hostile", "faults/hostile.c", f"-I{include}")
    compile_c("triggers", "bins/triggers.c")
    os.chmod(".", 0o777)


def with_hostile(what, as_whom, options, hostile_lives=True, runs=RUNS, hostile=1, **more):
    """Traced programs attack the recording, while another one counts its calls."""
    them = " ".join(str(i) for i in range(hostile))
    script = WITH_HOSTILE % (them, as_whom, what, rnd.randrange(1 << 30), " ".join(["x"] * runs))
    r = Recording("sh", "-c", script, options=["-F", "tick", *options], **more)
    out, err = r.end()
    need("wrong" not in out and out.endswith("end\n"), f"{out} {err}")
    need(not hostile_lives or "hostile lives" in out, f"it attacked nobody: {out} {err}")
    return r, err


def memory_cannot_be_cut_off(as_whom):
    """It gets the descriptor that every traced process gets, and can do nothing with it."""
    need_root()
    build_hostile()
    r, err = with_hostile("cut", as_whom, ["--when-full", "wait"])
    need(open("did").read() == "nothing\n", f"it could: {open('did').read()}")
    got = r.calls("tick")
    need(got == RUNS * 40000, f"{got} of {RUNS * 40000} calls: {err}")


def nobody_speaks_for_others(as_whom):
    """Whose a question is, the kernel says: what it says itself gets it nothing in another's name."""
    need_root()
    build_hostile()
    r, err = with_hostile("speak", as_whom, ["--when-full", "wait"])
    did = open("did").read()
    need(did == "heard as itself: yes, as others: 0\n", did)
    need("it asked in the name of another process" in err, err)
    got = r.calls("tick")
    need(got == RUNS * 40000, f"{got} of {RUNS * 40000} calls: {err}")


ONE_PROCESS = 1000  # lines of the table of processes that one can have made for nothing, and one each second


def lines_of(trace, kind):
    return [f for f in truth.fields(f"{trace}/tasks") if f[0] == kind]


def left_out(err):
    """How many lines the recorder says are not in the trace."""
    said = re.search(r"again and again: ([\d,]+) of them are not in the trace", err)
    return int(said[1].replace(",", "")) if said else 0


def notes_without_end():
    """Whoever asks nonsense without end: the table of processes does not grow with it, and what it lacks
    is said."""
    need_root()
    build_hostile()
    began = time.monotonic()
    r = Recording("sh", "-c", "./hostile flood did 1 & while [ ! -e go ]; do sleep 0.05; done; kill -9 $!")
    wait_for(lambda: len(lines_of(r.trace, "U")) >= ONE_PROCESS // 2, "notes")
    for _ in range(30):
        time.sleep(0.1)
        if len(lines_of(r.trace, "U")) > 4 * ONE_PROCESS:
            break
    open("go", "w").close()
    err = r.end()[1]
    lines = len(lines_of(r.trace, "U"))
    at_most = 2 * (ONE_PROCESS + time.monotonic() - began) + 20  # of it, and of "several"
    need(lines <= at_most, f"{lines} lines")
    need(left_out(err), f"{lines} lines, and not a word: {err}")
    need(truth.kron_json("info", r.trace)["left_out"] == left_out(err), f"not in the trace: {err}")


EXECUTES = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char left[20];
	sprintf(left, "%d", atoi(argv[1]) - 1);
	if (atoi(argv[1]))
		execl(argv[0], argv[0], left, (char *)0);
	return 0;
}
"""


def programs_without_end():
    """One process executes itself again and again.  What has samples is named, all of it; what has none
    is named as long as it is not too much."""
    compile_text("executes", EXECUTES)
    n = 1300
    began = time.monotonic()
    for function in ("main", "none*"):
        r = Recording("./executes", str(n), trace=function[:4], options=["-F", function])
        err = r.end()[1]
        named, ended = len(lines_of(r.trace, "P")), len(lines_of(r.trace, "E"))
        if function == "main":
            need(named == ended == n + 1, f"{named} of {n + 1} are named, {ended} have ended")
            need(r.calls("main") == n + 1, f"{r.calls('main')} of {n + 1} calls: {err}")
            need(not left_out(err), err)
            continue
        need(named < ONE_PROCESS + time.monotonic() - began, f"{named} lines")
        need(named == ended and named + left_out(err) == n + 1, f"{named} lines: {err}")


FORKED_LOADER = """
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
static void load(int forks)
{
	int status = 0;
	if (forks && fork() > 0) {
		wait(&status);
		_exit(status != 0);
	}
	if (forks > 0)
		return load(forks - 1);
	void *lib = dlopen("./late.so", RTLD_NOW);
	if (!lib)
		_exit(1);
	for (int i = 0; i < 100; i++)
		((int (*)(int))dlsym(lib, "tick"))(i);
	_exit(0);
}
int main(int argc, char **argv)
{
	load(argv[1][0] - '0');
}
"""


def whoever_asks_for_itself_is_heard():
    """Programs and their children load a library, also where their pids are not ours."""
    need_root()
    compile_text("loader", FORKED_LOADER)
    compile_text("late.so", "volatile int n; int tick(int i) { n += i; n *= 3; return n; }", "-shared", "-fPIC")
    os.chmod(".", 0o777)
    namespace = "unshare -fp --mount-proc"
    for i, way in enumerate(
        (
            "./loader 0",
            "./loader 2",
            f"{AS_NOBODY} ./loader 2",
            f"{namespace} ./loader 0",
            f"{namespace} sh -c './loader 2; exit $?'",
            f"{namespace} {namespace} ./loader 2",
            f"{namespace} {AS_NOBODY} ./loader 2",
        )
    ):
        r = Recording("sh", "-c", f"{way}; exit $?", trace=f"t{i}", options=["-L", "late*", "-F", "tick"])
        err = r.end()[1]
        need(r.calls("tick") == 100, f"{way}: {r.calls('tick')} of 100 calls: {err}")
        need("untraced" not in err, f"{way}: {err}")


def starts_are_reported_by_themselves():
    """A process that never reported is noted, whatever others report in its name."""
    need_root()
    script = """
    unshare -n sleep 1000 &
    echo started $!
    while [ ! -e go ]; do sleep 0.05; done
    kill $!
    """
    r = Recording("sh", "-c", script)
    wait_for(lambda: "started" in r.said()[0], "the start")
    victim = int(r.said()[0].split()[1])
    wait_for(lambda: open(f"/proc/{victim}/comm").read() == "sleep\n", "the program")
    token = environment_of(descendant_of(r.pid, "sh"))["KRON_RT"].split(",")[1]
    with Stranger(ask, r.socket_name(), hello(token, pid=victim), uid=0) as us:
        us.wait_for("asked")
        need("got 0 bytes" not in us.text, f"it was not heard: {us.text}")
    open("go", "w").close()
    err = r.end()[1]
    need("never reported to kron" in err, f"the note is gone: {err}")


def memory_with_holes(as_whom):
    """It can spoil samples, and that is all: who records and who is recorded go on."""
    need_root()
    build_hostile()
    with_hostile("punch", as_whom, [])


def questions_without_end(as_whom, hostile):
    """Whoever asks and never waits for an answer: all others are heard."""
    need_root()
    build_hostile()
    r, err = with_hostile("flood", as_whom, ["--when-full", "wait"], hostile=hostile)
    got = r.calls("tick")
    need(got == RUNS * 40000, f"{got} of {RUNS * 40000} calls: {err}")
    need("never reported" not in err, err)
    need("untraced" in err, f"nobody asked without end: {err}")
    need(len(err.splitlines()) < 300, "a note for each nonsense")


def tables_are_scribbled_on(bus, what, rounds=4, runs=RUNS):
    """Whatever stands in the tables: nobody crashes, nobody hangs."""
    need_root()
    build_hostile()
    for i in range(rounds):
        if os.path.exists("did"):
            os.remove("did")
        options = ["--bus", bus]
        with_hostile(what, AS_NOBODY, options, hostile_lives=False, runs=runs, trace=f"t{i}")


# ---- the keeper ----

PATIENT = """
./triggers 1 5000
echo started
while [ ! -e go ]; do sleep 0.05; done
echo over >over
"""


def keeper_of(recording):
    """Who holds the recording's memory, and the link that leads there."""
    name = truth.Trace(recording.trace).session["segment"]
    link = f"/dev/shm{name}"
    return int(os.readlink(link).split("/")[2]), link


def is_running(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def patient(**more):
    compile_c("triggers", "bins/triggers.c")
    r = Recording("sh", "-c", PATIENT, options=["-F", "tick"], **more)
    r.wait_for_line("started")
    keeper, link = keeper_of(r)
    wait_for(lambda: open(f"/proc/{keeper}/comm").read() == "kron-keeper\n", "its name")
    return r, keeper, link


def go_on_to_the_end():
    open("go", "w").close()
    wait_for(lambda: os.path.exists("over"), "the program's end")


def recover(r, status=0):
    p = subprocess.run([KRON, "recover", r.trace], capture_output=True, text=True)
    need(p.returncode == status, f"recover: {p}")
    return p.stdout + p.stderr


def keeper_until_recover():
    """It holds nothing of the recorder's but the samples, and ends with `kron recover`."""
    read, write = os.pipe()
    compile_c("triggers", "bins/triggers.c")
    with open("err", "w") as err:
        p = subprocess.Popen(
            [KRON, "record", "-o", "trace", "-F", "tick", "--", "sh", "-c", PATIENT],
            stdin=subprocess.DEVNULL, stdout=write, stderr=err, start_new_session=True,
        )  # fmt: skip
    os.close(write)
    said = b""
    while b"started" not in said:
        said += os.read(read, 100)
    name = truth.Trace("trace").session["segment"]
    keeper = int(os.readlink(f"/dev/shm{name}").split("/")[2])
    os.killpg(p.pid, signal.SIGKILL)  # the program, too: only the keeper is left
    p.wait()
    need(os.read(read, 100) == b"", "what read from the recorder hangs")
    os.close(read)
    need(is_running(keeper), "the keeper went with its recorder")
    listed = subprocess.run([KRON, "board", "list"], capture_output=True, text=True).stdout
    need(f"killed: `kron recover {os.path.realpath('trace')}`" in listed, listed)
    subprocess.run([KRON, "recover", "trace"], capture_output=True, check=True)
    got = truth.Trace("trace").entries["tick"]
    need(got == 5000, f"{got} of 5000 calls")
    wait_for(lambda: not is_running(keeper), "the keeper's end")
    need(not os.path.lexists(f"/dev/shm{name}"), "the name is left")


def recovery_into_a_strangers_trace():
    """Another user's trace names root's memory: what is in that is not for him."""
    need_root()
    r, keeper, link = patient()
    r.kill()
    go_on_to_the_end()
    subprocess.run(["cp", "-r", "trace", "his"], check=True)
    subprocess.run(["chown", "-R", f"{STRANGER}:{STRANGER}", "his"], check=True)
    p = subprocess.run([KRON, "recover", "his"], capture_output=True, text=True)
    need(p.returncode == 1 and "is another user's" in p.stderr, p)
    need(is_running(keeper) and os.path.lexists(link), "the samples are gone")
    recover(r)
    need(r.calls("tick") == 5000, f"{r.calls('tick')} of 5000 calls")


def keeper_alone():
    """Nobody runs `kron recover`: half a minute after the last traced process it is done all the same,
    in the folder that the recorder wrote to, whatever that is called by now."""
    r, keeper, link = patient()
    r.kill()
    go_on_to_the_end()
    os.rename("trace", "moved")
    os.mkdir("trace")
    wait_for(lambda: not is_running(keeper), "the keeper", 120)
    need(not os.path.lexists(link), "the name is left")
    r.trace = "moved"
    need(r.calls("tick") == 5000, f"{r.calls('tick')} of 5000 calls")
    need(not os.listdir("trace"), "it wrote into another folder")
    need("complete" in recover(r), "the trace is not complete")


def keeper_and_shutdown():
    """SIGTERM, as from a machine that goes down: what is there is written, now."""
    r, keeper, link = patient()
    r.kill()
    go_on_to_the_end()
    os.kill(keeper, signal.SIGTERM)
    wait_for(lambda: not is_running(keeper), "the keeper")
    need(r.calls("tick") == 5000, f"{r.calls('tick')} of 5000 calls")
    need(not os.path.lexists(link), "the name is left")


def keeper_without_folder():
    """The trace was removed: nobody can ask for what belongs to it."""
    r, keeper, link = patient()
    r.kill()
    subprocess.run(["rm", "-r", "trace"], check=True)
    go_on_to_the_end()
    with contextlib.suppress(ProcessLookupError):  # it may have noticed that already
        os.kill(keeper, signal.SIGTERM)
    wait_for(lambda: not is_running(keeper), "the keeper")
    need(not os.path.exists("trace") and not os.path.lexists(link), "something is left")


def keeper_without_trace():
    """The recorder was killed before its trace said where the samples are: nobody can ask for them."""
    r, keeper, link = patient()
    with open("trace/session") as f:
        lines = [line for line in f if not line.startswith("segment=")]
    with open("trace/session", "w") as f:
        f.writelines(lines)
    r.kill()
    go_on_to_the_end()
    wait_for(lambda: not is_running(keeper), "the keeper")
    need(not os.path.lexists(link), "the name is left")


def keeper_is_killed():
    """While the recorder lives there is another one; after both, a sentence."""
    r, keeper, link = patient()
    for _ in range(2):
        os.kill(keeper, signal.SIGKILL)
        wait_for(lambda: os.readlink(link).split("/")[2] != str(keeper), "another keeper")
        keeper = int(os.readlink(link).split("/")[2])
    r.kill()
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not is_running(keeper), "the keeper's end")
    name = os.path.basename(link)
    listed = subprocess.run([KRON, "board", "list"], capture_output=True, text=True).stdout
    need(name in listed and f"is gone with process {keeper}" in listed, listed)
    go_on_to_the_end()
    text = recover(r, 1)
    need("is gone: the process that kept it was killed, too" in text, text)
    need(not os.path.lexists(link), "the name is left")
    need(truth.kron_json("info", r.trace)["samples"] >= 0, "the trace cannot be read")


def keeper_and_a_full_disk():
    """The recorder has ended, and not all of it could be written: a keeper holds the rest."""
    need_root()
    compile_c("triggers", "bins/triggers.c")
    os.mkdir("small")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "small"]
    if subprocess.run(mount, capture_output=True).returncode:
        raise Skip("cannot mount")
    try:
        r = Recording("./triggers", "2", "300000", trace="small/trace")
        err = r.end(125)[1]
        link = f"/dev/shm{truth.Trace(r.trace).session['segment']}"
        keeper = int(os.readlink(link).split("/")[2])
        need("kron recover" in err and is_running(keeper), f"{err}")
        subprocess.run(["mount", "-o", "remount,size=200m", "small"], check=True)
        os.kill(keeper, signal.SIGTERM)  # instead of half a minute
        wait_for(lambda: not is_running(keeper), "the keeper")
        promised = re.search(r"([\d,]+) samples are in .*, ([\d,]+) more in", err)
        wanted = sum(int(n.replace(",", "")) for n in promised.groups())
        got = truth.Trace(r.trace).samples
        need(got == wanted, f"{got} samples, promised were {promised.groups()}")
    finally:
        subprocess.run(["umount", "-l", "small"], check=True)


# ---- files that others can change ----


def cut_again_and_again(say, path, seed):
    """A file of one's own: now it is whole, now it is not."""
    import random

    rnd = random.Random(seed)
    with open(path, "r+b", buffering=0) as f:
        whole = f.read()
        say("begun")
        while True:
            f.truncate(rnd.choice((0, 4096, len(whole) // 2)))
            time.sleep(rnd.random() / 500)
            f.seek(0)
            f.write(whole)
            time.sleep(rnd.random() / 30)


def libraries_are_cut_off():
    """Root records a program with a user's library, who shortens it meanwhile.  What the program makes of
    that is its own affair; the recording ends in order."""
    need_root()
    os.mkdir("lib", 0o755)
    path = "lib/libcrypto.so.3"
    found = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"
    if not os.path.exists(found) or not os.path.exists("/usr/bin/openssl"):
        raise Skip("openssl is not installed")
    subprocess.run(["cp", "-L", found, path], check=True)
    os.chown(path, STRANGER, STRANGER)
    ended = 0
    with Stranger(cut_again_and_again, path, rnd.randrange(1 << 30)) as stranger:
        stranger.wait_for("begun")
        for i in range(12):
            env = {**os.environ, "LD_LIBRARY_PATH": "lib", "XDG_CACHE_HOME": f"{os.getcwd()}/cache{i}"}
            argv = [KRON, "record", "-q", "-o", "trace", "-L", "libcrypto*", "--", "openssl", "version"]
            subprocess.run(argv, env=env, capture_output=True, timeout=120)
            ended += truth.Trace("trace").session.get("end_tsc") is not None
    need(ended == 12, f"{12 - ended} of 12 recordings were cut off with the library")


def trace_is_cut_off():
    """A trace that is cut off while it is read is an error and a sentence."""
    compile_c("triggers", "bins/triggers.c")
    Recording("./triggers", "1", "200000", options=["-F", "tick"]).end()
    read = subprocess.Popen(
        [KRON, "dump", "--no-pager", "trace"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    read.stdout.read(1000)  # it has begun, and now waits for the pipe
    os.truncate("trace/samples", 0)
    err = read.communicate()[1]
    need(read.returncode == 1 and "was cut off while it was read" in err, f"{read.returncode}: {err}")


def board_is_cut_off(bus):
    """A board with a name is a file of one user.  Whoever cuts it off ends the recording; the recorder
    says so, and leaves a trace that can be read.  The program goes on."""
    compile_c("counter", "faults/counter.c")
    name = f"cut-{os.getpid()}"
    path = f"/dev/shm/kron-board.{os.getuid()}.{name}"
    pool = (0x2400000,) if bus == "lane" else ()
    for i, size in enumerate((0, 4096, 0x2000000, 0x2001000) + pool):
        subprocess.run([KRON, "board", "create", name], check=True)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.remove("count")
            options = ["--board", name, "--bus", bus]
            r = Recording("./counter", "count", "1", trace=f"t{i}", options=options)
            wait_for(lambda: os.path.exists("count") and os.path.getsize("count") == 4096, "calls")
            wait_for(lambda: struct.unpack("<Q", open("count", "rb").read(8))[0] > 10000, "calls")
            program = descendant_of(r.pid, "counter")
            calls = lambda: struct.unpack("<Q", open("count", "rb").read(8))[0]
            os.truncate(path, size)
            before = calls()
            wait_for(lambda: calls() > before + 100000 or not is_running(program), "calls")
            need(is_running(program), f"it died with the board, cut at {size:#x}")
            os.kill(program, signal.SIGKILL)
            err = r.end(125)[1]
            need(f"cut off the shared memory of board {name}" in err, err)
            truth.kron_json("info", r.trace)
            need(subprocess.run([KRON, "report", r.trace], capture_output=True).returncode == 0, "report")
        finally:
            subprocess.run([KRON, "board", "rm", name], check=True)


OWN_BUS = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char *at;
static void handler(int signal, siginfo_t *info, void *context)
{
	dprintf(1, "handled: %d, %d, %td\\n", signal, info->si_code, info->si_code > 0 ? (char *)info->si_addr - at : 0);
	_exit(7);
}
int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, old;
	int fd = open("own", O_RDWR | O_CREAT | O_TRUNC, 0600);
	sigaction(SIGBUS, NULL, &old);
	dprintf(1, "was: %p %x\\n", (void *)old.sa_handler, old.sa_flags);
	if (strchr(argv[1], 'h'))
		sigaction(SIGBUS, &sa, NULL);
	if (strchr(argv[1], 'i') || strchr(argv[1], 'd'))
		signal(SIGBUS, strchr(argv[1], 'i') ? SIG_IGN : SIG_DFL);
	sigaction(SIGBUS, NULL, &old);
	dprintf(1, "is: %d %x\\n", old.sa_handler == (void *)handler ? 2 : (int)(long)old.sa_handler, old.sa_flags);
	at = ftruncate(fd, 8192) ? NULL : mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ftruncate(fd, 4096))
		return 1;
	if (strchr(argv[1], 'k'))
		kill(getpid(), SIGBUS);
	else
		at[5000] = 1;
	dprintf(1, "still there\\n");
	return 3;
}
"""


def bus_errors_are_the_programs():
    """What a program does with SIGBUS of its own is what it does untraced, also on a board that may be cut."""
    compile_text("own_bus", OWN_BUS)
    name = f"bus-{os.getpid()}"
    subprocess.run([KRON, "board", "create", name], check=True)
    try:
        for way in ("n", "h", "hd", "i", "nk", "hk", "ik", "dk"):
            for shell in ("", "trap '' BUS; "):
                words = ["sh", "-c", f"{shell}./own_bus {way}; echo ended: $?"]
                alone = subprocess.run(words, capture_output=True, text=True)
                r = Recording(*words, options=["--board", name], trace=f"t{way}{len(shell)}")
                out = r.end(alone.returncode)[0]
                need(out == alone.stdout, f"{words}: {out!r}, alone {alone.stdout!r}")
    finally:
        subprocess.run([KRON, "board", "rm", name], check=True)


def names_are_taken():
    """Another user has put something under a name of ours."""
    need_root()
    name = f"taken-{os.getpid()}"
    path = f"/dev/shm/kron-board.{STRANGER}.{name}"
    open(path, "w").close()
    os.chown(path, 4321, 4321)
    try:
        kron = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups", KRON]
        for words in (["board", "create", name], ["status", "--board", name], ["board", "rm", name]):
            p = subprocess.run(kron + words, capture_output=True, text=True)
            need(p.returncode == 1 and p.stderr.count("\n") == 1, f"{words}: {p}")
            for part in ("uid 4321", "only that one, or root, can remove it", "choose another name"):
                need(part in p.stderr, f"{words}: {p.stderr}")
        other = subprocess.run(kron + ["board", "create", name + "-2"], capture_output=True, text=True)
        need(other.returncode == 0, f"the advice is wrong: {other}")
        subprocess.run(kron + ["board", "rm", name + "-2"], check=True)
    finally:
        os.remove(path)


def folders_are_not_what_they_are_called():
    """In a folder of his, another user calls one of root's as if a killed kron had left it."""
    need_root()
    Recording("true").end()
    os.makedirs("his/precious", 0o755)
    open("his/precious/file", "w").close()
    os.chown("his", STRANGER, STRANGER)
    rename = lambda say: (os.rename("his/precious", "his/.out.kron-aaaaaa"), say("renamed"))
    with Stranger(rename) as stranger:
        stranger.wait_for("renamed")
    subprocess.run([KRON, "export", "-f", "chrome", "-o", "his/out", "trace"], check=True)
    need(os.path.exists("his/.out.kron-aaaaaa/file"), "root's own file was removed")
    # where nobody else could have done that, it is taken away
    os.makedirs("ours/.out.kron-aaaaaa/folder")
    subprocess.run([KRON, "export", "-f", "chrome", "-o", "ours/out", "trace"], check=True)
    need(os.listdir("ours") == ["out"], os.listdir("ours"))


def boards_are_one_users():
    """Of a board with a name, which is a file, another user's process gets nothing."""
    need_root()
    compile_c("triggers", "bins/triggers.c")
    os.chmod(".", 0o777)
    name = f"mine-{os.getpid()}"
    r = Recording("sh", "-c", f"{AS_NOBODY} ./triggers 1 100; ./triggers 1 10", options=["--board", name])
    out, err = r.end()
    need(out.count("calls each") == 2, out)
    need(r.calls("tick") == 10, f"{r.calls('tick')} calls, not those 10 of root's process")
    need("a board with a name is one user's" in err, err)


def main():
    with Suite("security") as s:
        os.chmod(s.folder, 0o755)  # for those who become somebody else
        s.case("killed recorder: who takes its name gets nothing", squatter_after_kill)
        s.case("killed recorder: a full backlog holds up no start", squatter_after_kill, 0, False)
        s.case("ended recording: who takes its name gets nothing", squatter_after_end)
        s.case("a thousand idle connections of strangers hold up no start", idle_connections)
        s.case("a flood keeps few in front of a start", starts_before_a_flood)
        s.case("a start waits for a collector that has no time", starts_wait_for_the_collector)
        s.case("a question that nobody heard is said", unheard_is_said)
        s.case("no question of a stranger is answered", questions_of_strangers)
        s.case("what comes is sealed", what_comes_is_sealed)
        s.case("programs that become another user are traced", other_users_are_traced)
        s.case("what cannot be traced is said", what_is_untraced_is_said)
        s.case("who does not believe us is noted", who_does_not_believe_us_is_noted)
        s.case("another user's process cannot cut off the memory", memory_cannot_be_cut_off, AS_NOBODY)
        s.case("nor can one of our own", memory_cannot_be_cut_off, "")
        s.case("holes in the memory hurt samples only", memory_with_holes, AS_NOBODY)
        s.case("questions without end hold up nobody", questions_without_end, AS_NOBODY, 1)
        s.case("nor do those of several processes", questions_without_end, AS_NOBODY, 4)
        s.case("nor those of one of our own", questions_without_end, "", 1)
        s.case("nobody speaks for others", nobody_speaks_for_others, AS_NOBODY)
        s.case("nor does one of our own", nobody_speaks_for_others, "")
        s.case("notes without end are few lines", notes_without_end)
        s.case("nor are programs without end many", programs_without_end)
        s.case("whoever asks for itself is heard", whoever_asks_for_itself_is_heard)
        s.case("a start is reported by nobody else", starts_are_reported_by_themselves)
        s.case("scribbled tables, lanes", tables_are_scribbled_on, "lane", "scribble")
        s.case("scribbled tables, exact bus", tables_are_scribbled_on, "exact", "scribble")
        s.case("a scribbled machine, lanes", tables_are_scribbled_on, "lane", "machine")
        s.case("a scribbled machine, exact bus", tables_are_scribbled_on, "exact", "machine")
        s.case("all room is taken", tables_are_scribbled_on, "lane", "hold", 1, 3)
        s.case("a user's library is cut off while root plans it", libraries_are_cut_off)
        s.case("a trace is cut off while it is read", trace_is_cut_off)
        s.case("a board is cut off, lanes", board_is_cut_off, "lane")
        s.case("a board is cut off, exact bus", board_is_cut_off, "exact")
        s.case("a program's own SIGBUS", bus_errors_are_the_programs)
        s.case("names of boards that others have taken", names_are_taken)
        s.case("folders that others have renamed", folders_are_not_what_they_are_called)
        s.case("boards are one user's", boards_are_one_users)
        s.case("a keeper holds the samples until they are fetched", keeper_until_recover)
        s.case("a keeper fetches them when nobody else does", keeper_alone)
        s.case("a recovery into a stranger's trace", recovery_into_a_strangers_trace)
        s.case("a keeper is asked to end", keeper_and_shutdown)
        s.case("a keeper without a folder", keeper_without_folder)
        s.case("a keeper whose trace does not know it", keeper_without_trace)
        s.case("a keeper is killed, and both", keeper_is_killed)
        s.case("a keeper after a full disk", keeper_and_a_full_disk)


if __name__ == "__main__":
    main()
