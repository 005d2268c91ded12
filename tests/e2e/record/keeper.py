#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""keeper.py - a recorder is killed: a process of its own keeps the samples until they are fetched."""

import contextlib
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from recordings import STRANGER, Recording, keeper_of
from tap import KRON, Skip, Suite, compile_c, grow_disk, is_running, need, need_root, small_disk, truth, wait_for

PATIENT = """
./triggers 1 5000
echo started
while [ ! -e go ]; do sleep 0.05; done
echo over >over
"""


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


def nothing_to_keep():
    """kron stat and kron pages are killed: their folder goes at once, for nobody will ask for it."""
    compile_c("triggers", "bins/triggers.c")
    shown = set(os.listdir("/dev/shm"))
    os.mkdir("tmp")
    for word in "stat", "pages":
        p = subprocess.Popen([KRON, word, "--", "sh", "-c", PATIENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, env={**os.environ, "TMPDIR": os.path.abspath("tmp")})
        while p.stdout.readline() != "started\n":
            pass
        need(len(os.listdir("tmp")) == 1, os.listdir("tmp"))
        p.kill()
        p.wait()
        wait_for(lambda: not os.listdir("tmp") and not set(os.listdir("/dev/shm")) - shown, f"the end of kron {word}'s", 20)
        need(not os.path.exists("over"), "the program ended")
        go_on_to_the_end()
        p.stdout.close()
        os.unlink("go")
        os.unlink("over")


def another_namespace():
    """A container that shares /dev/shm: the keeper's number means nothing there, and nothing is removed."""
    need_root()
    r, keeper, link = patient()
    name = os.path.basename(link)
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*inside, "true"]).returncode:
        raise Skip("no pid namespaces")
    for words in ["board", "rm", name], ["ctl", "filter", "0", "--board", name]:
        p = subprocess.run([*inside, KRON, *words], capture_output=True, text=True)
        need(p.returncode and "in another pid namespace" in p.stderr, f"{words}: {p}")
    listed = subprocess.run([*inside, KRON, "board", "list"], capture_output=True, text=True).stdout
    need(name[5:] in listed and "board rm" not in listed, listed)
    need(os.path.lexists(link), "the name is gone")
    go_on_to_the_end()
    r.end()
    need(r.calls("tick") == 5000, f"{r.calls('tick')} of 5000 calls")
    need(not os.path.lexists(link), "the name is left")


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
    with small_disk("small", "1m"):
        r = Recording("./triggers", "2", "300000", trace="small/trace")
        err = r.end(125)[1]
        link = f"/dev/shm{truth.Trace(r.trace).session['segment']}"
        keeper = int(os.readlink(link).split("/")[2])
        need("kron recover" in err and is_running(keeper), f"{err}")
        grow_disk("small", "200m")
        os.kill(keeper, signal.SIGTERM)  # instead of half a minute
        wait_for(lambda: not is_running(keeper), "the keeper")
        promised = re.search(r"([\d,]+) samples are in .*, ([\d,]+) more in", err)
        wanted = sum(int(n.replace(",", "")) for n in promised.groups())
        got = truth.Trace(r.trace).samples
        need(got == wanted, f"{got} samples, promised were {promised.groups()}")


def main():
    with Suite("keeper") as s:
        os.chmod(s.folder, 0o755)  # for those who become somebody else
        s.case("a keeper holds the samples until they are fetched", keeper_until_recover)
        s.case("a recorder that only shows something leaves nothing", nothing_to_keep)
        s.case("a keeper fetches them when nobody else does", keeper_alone)
        s.case("seen from another pid namespace", another_namespace)
        s.case("a recovery into a stranger's trace", recovery_into_a_strangers_trace)
        s.case("a keeper is asked to end", keeper_and_shutdown)
        s.case("a keeper without a folder", keeper_without_folder)
        s.case("a keeper whose trace does not know it", keeper_without_trace)
        s.case("a keeper is killed, and both", keeper_is_killed)
        s.case("a keeper after a full disk", keeper_and_a_full_disk)


if __name__ == "__main__":
    main()
