#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ssh.py - recordings that go to a directory of another host by ssh.

`ssh` is a script here that runs the command in another folder, as a shell there would, and writes down what it was
asked; where sshd is installed it is the real one, too.  The truth is the program's own count, as in cable.py."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cabled  # noqa: E402
from tap import KRON, Skip, Suite, need, rnd, wait_for  # noqa: E402

SCRIPT = """#!/bin/sh
printf '%s\\n' "$*" >>{here}/said
while [ "$1" != -- ]; do shift; done
shift 2
mkdir -p {here}/home
cd {here}/home
PATH={kron}:$PATH
exec {run}
"""
# A slow link that can be killed: the far end, a process of its own, sees no more of it than that nothing comes any more.
LINK = r"""
import os, subprocess, sys, threading, time
with open(sys.argv[1] + "/links", "a") as f:
    f.write(f"{os.getpid()}\n")
far = subprocess.Popen(["sh", "-c", sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pump(a, b):
    while data := os.read(a, 65536):
        time.sleep(0.005)
        while data:
            data = data[os.write(b, data):]
def go():
    try:
        pump(0, far.stdin.fileno())
    except ConnectionResetError:  # it has gone, and has not read our last words
        pass
    far.stdin.close()
threading.Thread(target=go, daemon=True).start()
pump(far.stdout.fileno(), 1)
os._exit(far.wait())
"""


def fake(run='sh -c "$*"'):
    here = shlex.quote(os.getcwd())
    with open("fake", "w") as f:
        f.write(SCRIPT.format(here=here, kron=os.path.dirname(KRON), run=run.replace("HERE", here)))
    with open("link.py", "w") as f:
        f.write(LINK)
    os.chmod("fake", 0o755)
    for name in "said", "links":
        with contextlib.suppress(OSError):
            os.unlink(name)
    shutil.rmtree("home", ignore_errors=True)
    return {**os.environ, "KRON_SSH": os.path.abspath("fake")}


def nodes(folder):
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder))]


def left():
    """Of what ran for us, in this folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd").startswith(os.path.join(os.getcwd(), "home")):
                found.append(open(f"/proc/{pid}/cmdline").read().replace("\0", " "))
    return found


def arrived_at(folder):
    """How many bytes: none before the far end has answered."""
    with contextlib.suppress(OSError):
        return sum(os.path.getsize(os.path.join(n, f)) for n in nodes(folder) for f in os.listdir(n))
    return 0


def all_arrives():
    """The directory is one word of a shell's there, and in the home or not."""
    env = fake()
    before = cabled.spools()
    p = cabled.record("ssh://me@far:2222/~/it's; here", 300_000, env=env)
    need(p.returncode == 7 and p.stdout == "300000\n", p)
    need(open("said").read() == "-p 2222 -- me@far exec kron collect --stdio -q -o 'it'\\''s; here'\n", open("said").read())
    cabled.need_all(nodes("home/it's; here")[0], 300_000)
    wait_for(lambda: not left(), "the end of the far end")
    there = os.path.abspath("absolute")
    for n in 1, 2:
        p = cabled.record(f"ssh://far{there}", 1000, "--node", str(n), env=env)
        need(p.returncode == 7 and "1,000 samples, 0 lost" in p.stderr, p)
    need(open("said").read().splitlines()[-1] == f"-- far exec kron collect --stdio -q -o '{there}'", open("said").read())
    need(len(nodes(there)) == 2, nodes(there))
    for n in nodes(there):
        cabled.need_all(n, 1000)
    need(cabled.spools() == before, "a spool is left")


def at_once():
    """Several recordings into one directory, each by an ssh of its own."""
    env = fake()
    argv = [[KRON, "record", "-q", "-o", "ssh://far/~/run", "--node", str(n), *cabled.PROBE, "--", cabled.program(), "100000"] for n in range(1, 5)]
    running = [subprocess.Popen(a, env=env, stdout=subprocess.DEVNULL) for a in argv]
    need([p.wait(60) for p in running] == [7] * 4, "their status")
    need(len(nodes("home/run")) == 4, nodes("home/run"))
    for n in nodes("home/run"):
        cabled.need_all(n, 100_000)


def cut_off():
    """ssh dies in the middle, again and again: another one takes it up, and each sample is there once."""
    env = {**fake(f'{sys.executable} HERE/link.py HERE "$*"'), "KRON_CABLE_SPOOL": "1M"}
    argv = [KRON, "record", "-q", "--when-full", "wait", "-o", "ssh://far/~/run", *cabled.PROBE, "--", cabled.program(), "3000000"]
    p = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seen = 0
    had = 100_000  # what ends before it has begun is an error
    while p.poll() is None and seen < 5:
        time.sleep(rnd.random() / 8)
        if arrived_at("home/run") > had:
            links = open("links").read().split()
            if len(links) > seen:
                seen = len(links)
                had = arrived_at("home/run")
                os.kill(int(links[-1]), signal.SIGKILL)
    said = p.communicate()[1]
    need(p.returncode == 7, f"{p.returncode}: {said}")
    need(seen >= 3, f"{seen} links")
    cabled.need_all(nodes("home/run")[0], 3_000_000)
    wait_for(lambda: not left(), "the end of the far end")


def interrupted():
    """Ctrl-C at the terminal: the program ends by it, and ssh goes on until the trace is there."""
    env = fake()
    argv = [KRON, "record", "-q", "-o", "ssh://far/~/run", *cabled.PROBE, "--", cabled.program(), "2000000000"]
    p = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: os.path.isdir("home/run") and nodes("home/run"), "its directory")
    time.sleep(0.3)
    os.killpg(p.pid, signal.SIGINT)
    said = p.communicate(timeout=60)[1]
    need(p.returncode in (130, -signal.SIGINT), f"{p.returncode}: {said}")
    node = nodes("home/run")[0]
    info = subprocess.run([KRON, "info", node], capture_output=True, text=True)
    need("killed by" in info.stdout or "signal" in info.stdout, info)
    need(cabled.need_once(node) > 0, "no samples")


def refusals():
    """One sentence, and the program does not start."""
    for run, sentence in (
        ("exit 255", "does not answer"),
        ("no-such-kron", "does not answer"),
        ("sh -c 'echo Welcome to this machine, whose shell prints a line'", "is not a kron collect"),
        ("head -c 1000000 /dev/zero", "is not a kron collect"),
    ):
        env = fake(run)
        p = subprocess.run([KRON, "record", "-o", "ssh://far/x", "--", "touch", "started"], env=env, capture_output=True, text=True, timeout=60)
        own = [line for line in p.stderr.splitlines() if line.startswith("kron")]
        need(p.returncode == 125 and len(own) == 1 and sentence in own[0], f"{run}: {p}")
    env = fake()
    for address in "ssh://far", "ssh://far/", "ssh:///x", "ssh://-oProxyCommand=x/y", "ssh://a@-b/c", "ssh://far:x/t", "ssh://far/~/", "ssh://far/~", "ssh://far/~other/x":
        p = subprocess.run([KRON, "record", "-o", address, "--", "touch", "started"], env=env, capture_output=True, text=True)
        need(p.returncode == 125 and len(p.stderr.splitlines()) == 1, f"{address}: {p}")
    need(not os.path.exists("said"), "ssh was run for what is no address")
    env["KRON_SSH"] = "/nowhere/ssh"
    p = cabled.record("ssh://far/x", 1, env=env)
    need(p.returncode == 125 and "cannot run /nowhere/ssh: No such file" in p.stderr, p)
    need(not os.path.exists("started"), "the program has started")
    for argv in ["--stdio", "--listen", "unix:x"], ["--stdio", "--send", "x"]:
        p = subprocess.run([KRON, "collect", *argv], capture_output=True, text=True)
        need(p.returncode == 2, p)


def real():
    """The real ones, where both are installed."""
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if os.geteuid() or not os.path.exists(sshd) or not shutil.which("ssh"):
        raise Skip("no sshd, or not root")
    here = os.getcwd()
    for name in "host", "key":
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name], check=True)
    shutil.copy("key.pub", "keys")
    os.makedirs("/run/sshd", exist_ok=True)
    port = 20000 + os.getpid() % 20000
    with open("conf", "w") as f:
        f.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host\nAuthorizedKeysFile {here}/keys\nPidFile none\n"
                f"StrictModes no\nPermitRootLogin yes\nUsePAM no\nSetEnv PATH={os.path.dirname(KRON)}:/usr/bin:/bin\n")
    with open("my-ssh", "w") as f:
        f.write(f"#!/bin/sh\nexec ssh -F none -i {here}/key -o BatchMode=yes -o UserKnownHostsFile={here}/known -o StrictHostKeyChecking=no \"$@\"\n")
    os.chmod("my-ssh", 0o755)
    with subprocess.Popen([sshd, "-D", "-e", "-f", "conf"], stderr=open("sshd.log", "w")) as daemon:
        try:
            wait_for(lambda: "listening" in open("sshd.log").read(), "sshd")
            p = cabled.record(f"ssh://127.0.0.1:{port}{here}/by ssh", 500_000, env={**os.environ, "KRON_SSH": f"{here}/my-ssh"})
            need(p.returncode == 7 and "0 lost" in p.stderr, f"{p} {open('sshd.log').read()}")
            cabled.need_all(nodes("by ssh")[0], 500_000)
        finally:
            daemon.terminate()


def main():
    with Suite("ssh") as s:
        s.case("all arrives, wherever the directory is", all_arrives)
        s.case("several into one directory", at_once)
        s.case("ssh dies again and again", cut_off)
        s.case("Ctrl-C", interrupted)
        s.case("what is refused", refusals)
        s.case("the real ssh", real)


if __name__ == "__main__":
    main()
