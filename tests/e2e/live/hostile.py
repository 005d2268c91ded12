#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hostile.py - programs that mean harm, of another user, and that root attaches to.

doc/SECURITY.md says what must hold: such a program harms itself and nobody else.  Beside it another is
recorded that numbers its calls; its numbers, the kernel's word of its memory and kron's exit status are what
is looked at."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import STEADY, info, interrupt, maps, need_unbroken, numbers, record_pid, surgeons  # noqa: E402
from tap import KRON, Suite, compile_c, compile_text, need, need_root, wait_for  # noqa: E402

HOSTILE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;
__attribute__((noinline)) unsigned long counted(unsigned long n) { sink += n; return n + 1; }
static pid_t target;

/* Writes over whatever is mapped there and is not the program's. */
static int scribble(void *arg)
{
    char path[64], line[512];
    int mem;

    (void)arg;
    snprintf(path, sizeof(path), "/proc/%d/mem", target);
    mem = open(path, O_RDWR);
    if (mem < 0) return 3;
    snprintf(path, sizeof(path), "/proc/%d/maps", target);
    for (;;) {
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof(line), f)) {
            unsigned long start, end, word;
            if (sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
            if (!strstr(line, "memfd:kron") && strncmp(line, "7e8", 3)) continue;
            for (int i = 0; i < 20; i++) {
                word = (unsigned long)random() << 16 ^ (unsigned long)random();
                if (i % 3 == 0) word = start + word % (end - start);
                pwrite(mem, &word, sizeof(word), (off_t)(start + (unsigned long)random() % (end - start) / 8 * 8));
            }
        }
        if (f) fclose(f);
    }
}

/* Shares the program's descriptors, and puts a pipe that is full in the place of each new one. */
static int swap(void *arg)
{
    int fds[2], first;
    char page[4096] = "";

    (void)arg;
    if (pipe(fds)) return 3;
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], page, sizeof(page)) > 0) ;
    fcntl(fds[1], F_SETFL, 0);
    first = fds[1] + 1;
    for (;;)
        for (int fd = first; fd < first + 8; fd++)
            if (fcntl(fd, F_GETFD) >= 0) dup2(fds[1], fd);
}

/* Speaks on each new socket. */
static int babble(void *arg)
{
    char junk[400];
    int first = dup(0);

    (void)arg;
    for (;;)
        for (int fd = first + 1; fd < first + 8; fd++) {
            for (unsigned i = 0; i < sizeof(junk); i++) junk[i] = (char)random();
            if (random() % 2) memcpy(junk, "NORK", 4);
            send(fd, junk, 1 + (unsigned)random() % sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (random() % 4 == 0) recv(fd, junk, sizeof(junk), MSG_DONTWAIT);
        }
}

int main(int argc, char **argv)
{
    static char stack[65536];
    int (*what)(void *) = argv[1][0] == 's' ? scribble : argv[1][0] == 'f' ? swap : babble;
    unsigned long n = 1;

    (void)argc;
    target = getpid();
    srandom((unsigned)target);
    prctl(PR_SET_DUMPABLE, 1);
    if (what == scribble) {
        if (!fork()) { prctl(PR_SET_PDEATHSIG, SIGKILL); _exit(scribble(0)); }
    } else if (clone(what, stack + sizeof(stack), CLONE_FILES | SIGCHLD, 0) < 0) {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    for (;;) { n = counted(n); usleep(200); }
}
"""


class Pair:
    """One that means harm, as another user, and one that does not."""

    def __init__(self, way, honest):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        self.bad = subprocess.Popen([*nobody, "./hostile", way], stdout=subprocess.PIPE, text=True, process_group=0)
        self.good = subprocess.Popen([honest, "1"], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        for p in self.bad, self.good:
            need(p.stdout.readline() == "ready\n", "it did not start")
        return self

    def __exit__(self, *exc):
        os.killpg(self.bad.pid, 9)
        self.bad.wait()
        self.bad.stdout.close()
        self.good.terminate()
        said = self.good.communicate(timeout=60)[0]
        if not exc[0]:
            need(self.good.returncode == 0, f"the other ended with {self.good.returncode}: {said}")


def attacked(way, honest, times):
    for _ in range(times):
        with Pair(way, honest) as p:
            threads = os.listdir(f"/proc/{p.good.pid}/task")
            start = time.monotonic()
            r = subprocess.run(
                [KRON, "record", "-o", "t", "-p", "counted n=$arg1", "--pid", f"{p.good.pid},{p.bad.pid}", "--for", "0.2s"],
                capture_output=True, text=True, timeout=120,
            )
            need(r.returncode in (0, 125), f"{r.returncode}: {r.stderr}")
            need(time.monotonic() - start < 60, "it was held up for a minute")
            need(p.good.poll() is None, "the other one has ended")
            # what could not be had of the one takes the surgeon its time
            wait_for(lambda: "memfd:kron" not in open(f"/proc/{p.good.pid}/maps").read(), "the other one without kron")
            report = subprocess.run([KRON, "report", "t"], capture_output=True, text=True)
            need(report.returncode in (0, 1), f"report: {report.returncode} {report.stderr}")
            need("executed another program" not in r.stderr, r.stderr)
            if r.returncode or way == SCRIBBLE:
                continue  # all processes of a recording share the memory that samples are in
            # the other numbers are timers' handlers, and small ones
            seen = [v for t, v in numbers().items() if t in threads and v[0] > 8]
            need(seen, "the other one has no samples")
            for v in seen:
                need_unbroken(v)
    wait_for(lambda: not surgeons(), "the surgeons' end")


SCRIBBLE, SWAP, BABBLE = "s", "f", "b"

STRANGER = """
import os, re, socket, sys
names = [l.split()[-1][1:] for l in open("/proc/net/unix") if re.search("@kron-[0-9a-f]+-[0-9a-f]*%08x$" % int(sys.argv[1]), l)]
for _ in range(2):
    os.fork()
held = []
while os.path.exists("/proc/" + sys.argv[1]):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(0.2)
    try:
        s.connect(chr(0) + names[0])
    except OSError:
        continue
    held.append(s)
    if len(held) == 40:
        for s in held[:20]:
            try:
                s.send(b"x" * 200)
            except OSError:
                pass
            s.close()
        del held[:20]
"""


def strangers_while_programs_start():
    """Connections end while surgeons are started, which have them open for a moment."""
    compile_text("short", "int main(void) { return 0; }", "-static")
    with open("stranger.py", "w") as f:
        f.write(STRANGER)
    os.chmod(".", 0o755)
    r = subprocess.Popen([KRON, "record", "-o", "t", "--", "sh", "-c", "for i in $(seq 300); do ./short; done"],
                         stderr=subprocess.PIPE, text=True)
    wait_for(lambda: re.search("@kron-[0-9a-f]+-[0-9a-f]*%08x$" % r.pid, open("/proc/net/unix").read(), re.M), "its socket")
    p = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                          "/usr/bin/python3", "stranger.py", str(r.pid)], stderr=subprocess.DEVNULL)
    said = r.communicate(timeout=300)[1]
    p.wait(60)
    need(r.returncode == 0, f"{r.returncode}: {said}")
    whole = info()
    need(whole["complete"] and whole["processes"] >= 301, f"{whole['processes']} processes: {said}")


FORGER = """
import ctypes, fcntl, os, signal, struct, sys
kind, name, at = sys.argv[1], sys.argv[2], int(sys.argv[3], 16)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

def show(name, data, address, seals):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data.ljust(1 << 20, bytes(1)))
    if seals:
        fcntl.fcntl(fd, 1033, 15)  # F_ADD_SEALS: all of them
    assert libc.mmap(address, 1 << 20, 5, 2 | (0x100000 if address else 0), fd, 0) != 2**64 - 1

def command(kind, count, off):
    return struct.pack("<IIQQQII", kind, count, at, 1 << 20, off, 0, 0)

commands = {
    "unsealed": [],
    "commands": [],
    "patches": [command(2, 0x6000, 4096), command(2, 0x6000, 4096)],
    "far": [command(2, 1, 1 << 63)],
    "code": [],
}[kind]
head = struct.pack("<IIQ", 0, 0xffffffff if kind == "commands" else len(commands), 1 << 20)
show("kron", b"\\xcc" * (1 << 20), at, False)
show(name, head + b"".join(commands), 0, kind != "unsealed")
print("ready", flush=True)
signal.pause()
"""


def forged_remains():
    """A process that shows what a recording has left: it is refused, and another's recording goes on."""
    with open("forger.py", "w") as f:
        f.write(FORGER)
    os.chmod(".", 0o755)
    compile_text("steady", STEADY)
    good = subprocess.Popen(["./steady"], stdout=subprocess.PIPE, text=True)
    need(good.stdout.readline() == "ready\n", "it did not start")
    r = record_pid(good.pid, "-p", "counted n=$arg1", trace="good")
    names = [(m[0].split("-")[0], m[-1].split(":", 1)[-1].split()[0]) for m in maps(good.pid) if "/memfd:kron" in m[-1]]
    block = next(name for at, name in names if re.fullmatch("kron:[0-9a-f]+:[0-9a-f]+", name))
    code = next(at for at, name in names if name == "kron")
    for kind in ("unsealed", "commands", "patches", "far", "code"):
        bad = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3",
                                "forger.py", kind, block, code], stdout=subprocess.PIPE, text=True)
        need(bad.stdout.readline() == "ready\n", "the forger did not start")
        said = subprocess.run([KRON, "record", "-o", "t", "--pid", str(bad.pid), "--for", "0.1s"],
                              capture_output=True, text=True, timeout=60)
        wanted = "the runtime of another kron" if kind == "code" else "cannot be read"
        need(said.returncode == 125 and wanted in said.stderr, f"{kind}: {said.returncode}: {said.stderr}")
        need(bad.poll() is None, f"{kind}: it has ended with {bad.returncode}")
        bad.kill(), bad.communicate()
    need(any("/memfd:kron" in m[-1] for m in maps(good.pid)), "kron has left the other one")
    interrupt(r)
    seen = [v for v in numbers(trace="good").values() if v[0] > 8]
    need(seen, "the other one has no samples")
    for v in seen:
        need_unbroken(v)
    good.terminate()
    said = good.communicate(timeout=60)[0]
    need(good.returncode == 0, f"the other ended with {good.returncode}: {said}")


with Suite("hostile") as s:
    need_root()
    honest = os.path.join(s.folder, "honest")
    compile_c(honest, "bins/live_life.c")

    def case(name, way, times):
        def run():
            compile_text("hostile", HOSTILE)
            os.chmod(".", 0o755)
            os.chmod("hostile", 0o755)
            attacked(way, honest, times)

        s.case(name, run)

    os.chmod(s.folder, 0o755)
    case("its runtime is written over all the time", SCRIBBLE, 12)
    case("descriptors that it shares are swapped for a full pipe", SWAP, 8)
    case("another one speaks on the runtime's socket", BABBLE, 8)
    s.case("it shows what an ended recording might have left", forged_remains)
    s.case("strangers connect while programs start", strangers_while_programs_start)
