#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""security.py - attackers at the door: other users of the machine against root's recordings.

doc/SECURITY.md says what must hold.  The attackers run as uid 65534; what is expected comes from
them, from the kernel and from programs that count their own calls, never from kron.
"""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from recordings import AS_NOBODY, STRANGER, Recording, Stranger, descendant_of, environment_of
from tap import KRON, SRC, Skip, Suite, compile_c, compile_text, need, need_root, truth, wait_for

MAGIC, HELLO_BYTES = 0x4B524F4E, 208  # "what comes is sealed" fails if they are wrong
with open(os.path.join(SRC, "include/kron/wire.h")) as f:
    VERSION = int(re.search(r"KRON_WIRE_VERSION (\d+)", f.read())[1])
PATIENCE = 5  # seconds that a runtime once waited for whoever had the name


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
DELAY_MS = 50  # that a start may have from anybody who is not the collector
DESCENDANT = f"""
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static double now_ms(void)
{{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}}
int main(void)
{{
	char *argv[] = {{"true", NULL}};
	puts("started");
	fflush(stdout);
	while (access("go", F_OK))
		usleep(10000);
	for (int i = 0; i < {STARTS}; i++) {{
		double begin = now_ms();
		int status = 0;
		pid_t pid;
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) || waitpid(pid, &status, 0) != pid || status)
			puts("wrong");
		printf("%f ms\\n", now_ms() - begin);
	}}
	puts("done");
	fflush(stdout);
	return 0;
}}
"""


def fastest(said):
    """What all starts take is in the fastest one; a busy machine is not."""
    times = [float(line.split()[0]) for line in said.splitlines() if line.endswith(" ms")]
    need(len(times) == STARTS and "wrong" not in said, said)
    return min(times)


def starts_are_quick(r):
    """Whoever holds the name: it is not he who decides how long a start takes."""
    open("go", "w").close()
    wait_for(lambda: "done" in r.said()[0].splitlines(), "the descendant", STARTS * PATIENCE * 3)
    alone = subprocess.run("./descendant", capture_output=True, text=True, check=True).stdout
    late = fastest(r.said()[0]) - fastest(alone)
    need(late <= DELAY_MS, f"starts of /bin/true come {late:.1f} ms late: {r.said()[0]}")


def squatter_after_kill(backlog=16, answer=True):
    """The recorder was killed, its descendants start programs, a stranger has taken its name."""
    need_root()
    compile_text("descendant", DESCENDANT)
    r = Recording("./descendant")
    r.wait_for_line("started")
    name = r.socket_name()
    with squatted(r, name, backlog, answer) as stranger:
        r.kill()
        stranger.wait_for("listening" if answer else "full")
        starts_are_quick(r)
        received = [w for w in stranger.words() if w.startswith(("received", "fell"))]
        need(not received, f"the stranger got something: {received}")
    said = subprocess.run([KRON, "recover", r.trace], capture_output=True, text=True, check=True).stdout
    need(f"untraced ({STARTS} times)" in said, said)
    reasons = [u["reason"] for u in truth.kron_json("info", r.trace)["untraced"]]
    need(len(reasons) == 1 and "killed" in reasons[0], reasons)


WAITER = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noipa)) int tick(int n)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
	return n + 1;
}
int main(void)
{
	int n = 0;
	puts("started");
	fflush(stdout);
	while (access("go", F_OK))
		usleep(10000);
	while (n < 400000)
		n = tick(n);
	puts("done");
	fflush(stdout);
	return 0;
}
"""


def squatter_and_who_waits_for_room():
    """The recorder was killed, and will make no room; a stranger who has no time for anybody is not taken for it."""
    need_root()
    compile_text("waiter", WAITER)
    r = Recording("./waiter", options=["--when-full", "wait", "-b", "1M"])
    r.wait_for_line("started")
    with squatted(r, r.socket_name(), 16, False) as stranger:
        r.kill()
        stranger.wait_for("full")
        began = time.monotonic()
        open("go", "w").close()
        wait_for(lambda: "done" in r.said()[0].splitlines(), "the program's end")
        took = time.monotonic() - began
        need(took < PATIENCE, f"a full buffer was waited for: {took:.1f} s")
    subprocess.run([KRON, "recover", r.trace], capture_output=True, check=True)


def squatter_after_end(answer=True):
    """An orderly end; a program that was about to start then comes late."""
    need_root()
    r = Recording("sh", "-c", "echo started; while [ ! -e go ]; do sleep 0.05; done")
    r.wait_for_line("started")
    name = r.socket_name()
    env = {**os.environ, **environment_of(descendant_of(r.pid, "sh"))}
    with squatted(r, name, 16, answer) as stranger:
        open("go", "w").close()
        r.end()
        stranger.wait_for("listening" if answer else "full")
        late, alone = [], []
        for _ in range(STARTS):
            began = time.monotonic()
            subprocess.run(["/usr/bin/env"], capture_output=True, check=True)
            alone.append(time.monotonic() - began)
            began = time.monotonic()
            p = subprocess.run(["/usr/bin/env"], env=env, capture_output=True, text=True)
            need(p.returncode == 0 and not p.stderr, f"{p}")
            # who has no time may be a collector that has some for the next program
            need(not answer or not re.search("KRON_RT|libkron-rt", p.stdout), "the environment was not cleaned")
            late.append(time.monotonic() - began)
        took = 1e3 * (min(late) - min(alone))
        need(took <= DELAY_MS, f"a start comes {took:.1f} ms late")
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
    again = HELLO_BYTES - 32
    message = message[:again] + bytes(8) + message[again + 8 :]  # .again, .more: it is a question of its own
    with Stranger(ask_and_write, r.socket_name(), message, uid=0) as us:
        wait_for(lambda: us.words() and us.words()[-1].startswith(("got", "fell")), "the answer")
        need(us.words() == ["kron- write", "got 2"], us.text)
    open("go", "w").close()
    r.end()


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


# ---- what the environment carries ----

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
        "./static": (7, 0, ""),
        "unshare -n ./static": (7, 1, "it is static, and kron did not answer"),
        "./setid; ./setid": (7, 2, "it is set-id"),
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


# ---- names and folders ----


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
        s.case("killed recorder: a full backlog holds up nobody who waits for room", squatter_and_who_waits_for_room)
        s.case("ended recording: who takes its name gets nothing", squatter_after_end)
        s.case("ended recording: a full backlog holds up no start", squatter_after_end, False)
        s.case("a thousand idle connections of strangers hold up no start", idle_connections)
        s.case("a flood keeps few in front of a start", starts_before_a_flood)
        s.case("a start waits for a collector that has no time", starts_wait_for_the_collector)
        s.case("a question that nobody heard is said", unheard_is_said)
        s.case("no question of a stranger is answered", questions_of_strangers)
        s.case("what comes is sealed", what_comes_is_sealed)
        s.case("programs that become another user are traced", other_users_are_traced)
        s.case("what cannot be traced is said", what_is_untraced_is_said)
        s.case("who does not believe us is noted", who_does_not_believe_us_is_noted)
        s.case("whoever asks for itself is heard", whoever_asks_for_itself_is_heard)
        s.case("a start is reported by nobody else", starts_are_reported_by_themselves)
        s.case("names of boards that others have taken", names_are_taken)
        s.case("folders that others have renamed", folders_are_not_what_they_are_called)
        s.case("boards are one user's", boards_are_one_users)


if __name__ == "__main__":
    main()
