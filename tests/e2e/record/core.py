#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""core.py - kron recover CORE: the last moment before a crash, from the core of the program.

The truth is the program's own count (flight.py), and what kron recover takes from the shared memory itself."""

import contextlib
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from counted_calls import counters, has_begun, ticks
from recordings import Recording, descendant_of, keeper_of
from tap import KRON, SEED, Skip, Suite, compile_c, is_running, need, need_root, wait_for
from truth import samples_of

FLIGHT = ["--flight", "2M"]
HELD = 16 * 3276  # samples that the rings of a process hold at least, beside another's


def build():
    with open("/proc/sys/kernel/core_pattern") as f:
        pattern = f.read()
    if not pattern.startswith("core") or "/" in pattern:
        raise Skip("this system's cores go elsewhere")
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        if 0 <= hard < 100 << 20:
            raise Skip("no cores here")
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    compile_c("counted_calls", "bins/counted_calls.c", "-O1", "-pthread")
    for old in ["stop", "counters", *glob.glob("core*")]:
        with contextlib.suppress(OSError):
            os.unlink(old)


def core_in(folder="."):
    found = glob.glob(f"{folder}/core*")
    need(len(found) == 1, f"cores: {found}")
    return found[0]


def crash(pid):
    """The program is told to crash, and has."""
    open("stop", "w").close()
    wait_for(lambda: not is_running(pid), "the crash")


def flight(threads=1, options=FLIGHT, words=()):
    build()
    r = Recording(*words, "./counted_calls", "counters", str(threads), "0:abort", options=["-p", "tick trace $arg1", *options])
    pid = wait_for(lambda: descendant_of(r.pid, "counted_calls"), "the program")
    wait_for(lambda: has_begun(threads), "the first calls")
    return r, pid


def kill_both(r):
    """The recorder, and who would hold the memory for it."""
    keeper, link = keeper_of(r)
    r.kill()
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not is_running(keeper), "the keeper's end")
    return link


def session(trace="trace"):
    with open(f"{trace}/session") as f:
        return f.read()


def recover(*words, status=0):
    p = subprocess.run([KRON, "recover", *words], capture_output=True, text=True)
    need(p.returncode == status, f"recover {words}: {p}")
    return p.stderr if status else p.stdout


def taken(said):
    """Chunks that were taken while the core was written."""
    found = re.search(r"(\d+) chunks of samples are left out", said)
    return int(found[1]) if found else 0


def whole_ticks(directory):
    return ticks(directory, is_whole=True)


def need_ends(got, last):
    """Each thread without a gap, up to what it had counted.  Who was about to begin a chunk may have lost the others."""
    left = list(last)
    need(got, "no thread")
    for seen in got.values():
        need(seen == list(range(seen[0], seen[-1] + 1)), f"a gap in {seen[0]} .. {seen[-1]}")
        # a thread may have been killed between its count and its call
        mine = [n for n in left if n - 1 <= seen[-1] <= n]
        need(mine, f"ends at {seen[-1]}, counted {last}")
        left.remove(mine[0])


def after_both():
    """Recorder and keeper are gone: the core alone has the last moment, of all threads."""
    r, pid = flight(threads=3)
    link = kill_both(r)
    crash(pid)
    said = recover(core_in(), "trace")
    need("samples recovered" in said and "left out" not in said and "still run" not in said and "cut" not in said, said)
    got = whole_ticks("trace")
    need_ends(got, counters(3))
    need(sum(map(len, got.values())) >= HELD, f"{sum(map(len, got.values()))} samples")
    need("is complete" in recover(core_in(), "trace"), "a second time")
    p = subprocess.run([KRON, "report", "trace"], capture_output=True, text=True)
    need(p.returncode == 0 and "tick arg1 [counted_calls]" in p.stdout, p)
    os.unlink(link)


def info(trace):
    r = subprocess.run([KRON, "info", "--json", trace], capture_output=True, text=True, check=True)
    return json.loads(r.stdout)


def finds_its_trace():
    """The core alone: it says where its recording was made; else the one that lies here, if it is of that."""
    r, pid = flight()
    link = kill_both(r)
    crash(pid)
    os.unlink(link)
    core = os.path.abspath(core_in())
    os.makedirs("away", exist_ok=True)
    shutil.copytree("trace", "copy")
    p = subprocess.run([KRON, "recover", core], cwd="away", capture_output=True, text=True)
    need(p.returncode == 0 and f"-> {os.path.abspath('trace')}" in p.stdout, p)
    need_ends(whole_ticks("trace"), counters())
    os.rename("trace", "recovered")
    said = recover(core, status=1)
    need(f"is of the recording in {os.path.abspath('trace')}, which is not here" in said and " DIR`" in said, said)
    shutil.copytree("recovered", "kron.data")
    with open("kron.data/session") as f:
        text = f.read()
    with open("kron.data/session", "w") as f:
        f.write(re.sub("segment=/kron-.*", "segment=/kron-0123456789abcdef", text))
    need("which is not here" in recover(core, status=1), "another recording's")
    shutil.rmtree("kron.data")
    os.rename("copy", "kron.data")
    need("-> kron.data" in recover(core), "a copy of its trace that lies here")
    need(list(samples_of("recovered")) == list(samples_of("kron.data")), "they differ")


def like_the_memory():
    """What the core has is what the shared memory has; as long as that is there, it is what to ask."""
    r, pid = flight(threads=2)
    _, link = keeper_of(r)
    r.kill()
    crash(pid)
    shutil.copytree("trace", "elsewhere")
    need("there still" in recover(core_in(), "trace", status=1), "the memory is there")
    need(os.path.lexists(link), "the memory's name is gone")
    recover("trace")
    recover(core_in(), "elsewhere")
    need_ends(whole_ticks("trace"), counters(2))
    need(list(samples_of("trace")) == list(samples_of("elsewhere")), "they differ")


def beside_a_recording():
    """A child crashes, the recording goes on: -o makes a trace of the core's, during the recording and after it."""
    build()
    script = "./counted_calls counters 1 0:abort; ./counted_calls later 1 100000:exit; touch crashed; until [ -e go ]; do sleep 0.1; done"
    r = Recording("sh", "-c", script, options=["-p", "tick trace $arg1", *FLIGHT])
    pid = wait_for(lambda: descendant_of(r.pid, "counted_calls"), "the program")
    wait_for(has_begun, "the first calls")
    crash(pid)
    wait_for(lambda: os.path.exists("crashed"), "the shell")
    need("kron still records" in recover(core_in(), "trace", status=1), "in the middle of a recording")
    gone = taken(recover("-o", "during", core_in(), "trace"))
    need("there already" in recover("-o", "during", core_in(), "trace", status=1), "a second time")
    need("goes with a core" in recover("-o", "other", "trace", status=2), "without a core")
    open("go", "w").close()
    r.end()
    need(taken(recover("-o", "after", core_in(), "trace")) == gone, "what was taken differs")
    for name in "during", "after":
        got = whole_ticks(name)
        need_ends(got, counters())
        said = subprocess.run([KRON, "info", name], capture_output=True, text=True).stdout
        total = len(next(iter(got.values())))
        lost = int(re.search(r"([0-9,]+) lost", said)[1].replace(",", ""))
        # of chunks that the recorder cleared while the core was written it may have counted the samples or not
        need(abs(total + lost - counters()[0]) <= 1 + gone * 3276, f"{name}: {total} + {lost} of {counters()[0]}")
        need(info(name)["probes_run"] == total + lost, f"{name}: {info(name)['probes_run']} of {total} + {lost}")
    need(list(samples_of("during")) == list(samples_of("after")), "they differ")


def on_another_machine():
    """Another pid namespace, where the process's number is somebody else's, and no shared memory."""
    need_root()
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no namespaces")
    r, pid = flight(threads=2)
    wait_for(lambda: "tsc_hz=" in session(), "the clock's rate")
    link = kill_both(r)
    crash(pid)
    os.unlink(link)
    for name in "elsewhere", "younger":
        shutil.copytree("trace", name)
    recover(core_in(), "trace")
    p = subprocess.run([*inside, KRON, "recover", core_in(), "elsewhere"], capture_output=True, text=True)
    need(p.returncode == 0, p)
    need(list(samples_of("trace")) == list(samples_of("elsewhere")), "they differ")
    for name in "session", "tasks":
        need(open(f"trace/{name}").read() == open(f"elsewhere/{name}").read(), f"{name} differs")
    # its clock had not been measured yet: the rate of this machine's is not that one's
    text = session("younger")
    with open("younger/session", "w") as f:
        f.write(re.sub("tsc_hz=.*\n", "", text))
    recover("-o", "same", core_in(), "younger")
    with open("younger/session", "w") as f:
        f.write(re.sub("(tsc_hz|boot_id)=.*\n", "", text))
    need("how fast the clock" in recover("-o", "other", core_in(), "younger", status=1), "another machine's")


def others_run_on():
    """Another process of the recording stores all the while, and takes the oldest chunks: its own count only."""
    build()
    for folder in "one", "two":
        os.makedirs(folder, exist_ok=True)
    # who crashes has less of a processor, and writes its core meanwhile
    script = "(cd one; exec nice ../counted_calls ../counters 2 0:abort) & (cd two; exec ../counted_calls ../others 1 0:exit) & wait"
    gone = []
    for _ in range(6):
        for old in ["counters", "others", "one/stop", "two/stop", *glob.glob("one/core*")]:
            with contextlib.suppress(OSError):
                os.unlink(old)
        shutil.rmtree("trace", ignore_errors=True)
        r = Recording("sh", "-c", script, options=["-p", "tick trace $arg1", "--flight", "8M"])
        wait_for(lambda: has_begun(2) and has_begun(1, "others"), "the first calls")
        link = kill_both(r)
        before = counters(1, "others")[0]
        open("one/stop", "w").close()
        wait_for(lambda: glob.glob("one/core*"), "the core")
        wait_for(lambda: counters(1, "others")[0] > before + 500_000, "the other's calls")
        last = counters(2)
        wait_for(lambda: counters(2) == last and not open_elsewhere("one"), "the core's end")
        open("two/stop", "w").close()
        said = recover(core_in("one"), "trace")
        gone.append(taken(said))
        need_ends(whole_ticks("trace"), last)
        r.leave_nothing()
        with contextlib.suppress(OSError):
            os.unlink(link)
    need(any(gone), "the other never took a chunk while a core was written")


def open_elsewhere(folder):
    """Does a process still have its folder there?"""
    for d in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(f"{d}/cwd") == os.path.realpath(folder):
                return True
    return False


def pool_in(core):
    """Where the chunks begin in the core."""
    with open(core, "rb") as f:
        head = f.read(1 << 20)
    at, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
    loads = [struct.unpack_from("<IIQQQQ", head, at + 56 * i) for i in range(count)]
    return next(offset for kind, _, offset, at, _, _ in loads if kind == 1 and at == 0x7E9001000000)


def whose_is_it():
    """Two processes with one number, in two pid namespaces: a core says no more than the number."""
    need_root()
    if subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no namespaces")
    build()
    os.makedirs("one"), os.makedirs("two")
    inside = "unshare --pid --fork sh -c 'ulimit -c unlimited; cd {}; ../counted_calls ../{} 1 0:{}; true' & "
    r = Recording("sh", "-c", inside.format("one", "counters", "abort") + inside.format("two", "others", "exit") + "wait",
                  options=["-p", "tick trace $arg1", "--flight", "8M"])
    wait_for(lambda: has_begun() and has_begun(1, "others"), "the first calls")
    open("one/stop", "w").close()
    wait_for(lambda: glob.glob("one/core*"), "the core")
    wait_for(lambda: not open_elsewhere("one"), "the core's end")
    open("two/stop", "w").close()
    r.end()
    need("cannot be told" in recover("-o", "out", core_in("one"), "trace", status=1), "whose it is")
    need(not os.path.exists("out"), "something is left")


def refusals():
    """One sentence each, and the trace stays as it was."""
    r, pid = flight()
    link = kill_both(r)
    crash(pid)
    os.unlink(link)
    core = core_in()
    need("is not a core file" in recover("/bin/true", "trace", status=1), "a program")
    need("is not a core file" in recover("counters", "trace", status=1), "data")
    need("cannot read nowhere" in recover("nowhere", "trace", status=1), "no file")
    need("is not a core file" in recover("/dev/zero", "trace", status=1), "a device")
    shutil.copytree("trace", "other")
    text = session("other")
    name = text.split("segment=/kron-")[1][:16]
    with open("other/session", "w") as f:
        f.write(text.replace(name, "0123456789abcdef"))
    need("another process, or recorded at another time" in recover(core, "other", status=1), "another recording's")
    with open(core, "rb") as f, open("short", "wb") as g:
        g.write(f.read(300_000))
    need("lacks the samples" in recover("short", "trace", status=1), "cut short before the samples")
    with open(core, "rb") as f, open("shorter", "wb") as g:
        g.write(f.read(pool_in(core) + 1_000_000))
    need("was cut short" in recover("shorter", "trace", status=1), "cut short in the midst of them")
    need("was cut short" in recover("-o", "part", "shorter", "trace"), "a part")
    need(0 < sum(map(len, whole_ticks("part").values())) < 1_000_000 / 20, "a part")
    need("would lie in" in recover("-o", "trace/sub", core, "trace", status=1), "in the trace")
    need("cannot make" in recover("-o", "nowhere/sub", core, "trace", status=1), "nowhere")
    need(sorted(os.listdir("trace")) == sorted(os.listdir("other")), "something is left")
    recover(core, "trace")
    need_ends(whole_ticks("trace"), counters())
    need("-o OUT makes" in recover(core, "trace"), "a complete trace and a core")
    need("cannot read nowhere" in recover("nowhere", "trace", status=1), "a complete trace and no core")


def not_in_the_core():
    """Without rings the core stays small; with a filter the user has said what he wants."""
    for options, words in [["--buffer", "2M"], []], [FLIGHT, ["sh", "-c", 'echo 1 >/proc/self/coredump_filter; exec "$@"', "sh"]]:
        shutil.rmtree("trace", ignore_errors=True)
        r, pid = flight(options=options, words=words)
        link = kill_both(r)
        crash(pid)
        os.unlink(link)
        need("lacks the samples" in recover(core_in(), "trace", status=1), options)


def damaged():
    """Bytes that lie: an answer or a sentence, never a crash."""
    r, pid = flight()
    link = kill_both(r)
    crash(pid)
    os.unlink(link)
    with open(core_in(), "rb") as f:
        core = f.read()
    chance = random.Random(SEED)
    for n in range(40):
        bad = bytearray(core)
        where = [4096, len(core)][n % 2]  # headers and notes, or anywhere
        for _ in range(chance.choice([1, 10, 1000])):
            bad[chance.randrange(where)] = chance.randrange(256)
        if n % 5 == 0:
            del bad[chance.randrange(len(bad)) :]
        with open("bad", "wb") as f:
            f.write(bad)
        shutil.rmtree("again", ignore_errors=True)
        shutil.copytree("trace", "again")
        p = subprocess.run([KRON, "recover", "bad", "again"], capture_output=True, text=True, timeout=60)
        need(p.returncode in (0, 1) and len(p.stderr.splitlines()) == p.returncode, f"{n}: {p}")
        p = subprocess.run([KRON, "info", "again"], capture_output=True, text=True, timeout=60)
        need(p.returncode in (0, 1), f"{n}: {p}")


def main():
    with Suite("core") as s:
        s.case("recorder and keeper are gone", after_both)
        s.case("a core alone", finds_its_trace)
        s.case("core and shared memory say the same", like_the_memory)
        s.case("beside a recording that goes on", beside_a_recording)
        s.case("on another machine", on_another_machine)
        s.case("others run on", others_run_on)
        s.case("refusals", refusals)
        s.case("two of one number", whose_is_it)
        s.case("samples that are not in the core", not_in_the_core)
        s.case("a damaged core", damaged)


if __name__ == "__main__":
    main()
