#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What probes of the kinds count, store and resource do, against callgrind and the program's
own count of what it did."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
import callgrind  # noqa: E402


def record(*args, status=0):
    shutil.rmtree("trace", ignore_errors=True)
    r = subprocess.run([tap.KRON, "record", "-o", "trace", *args], capture_output=True,
                       text=True, timeout=300)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stderr}")
    return r.stdout, r.stderr


def info():
    return json.loads(subprocess.run([tap.KRON, "info", "--json", "trace"], capture_output=True,
                                     text=True, check=True).stdout)


def dump():
    out = subprocess.run([tap.KRON, "dump", "--json", "trace"], capture_output=True, text=True,
                         check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def counted():
    tap.compile_c("counted", "bins/counted.c")
    return os.path.abspath("counted")


# ---- counts ----

def every_instruction(bus, *flags):
    tap.compile_c("places", "bins/places.c", "-no-pie", "-fno-plt", *flags)
    path = os.path.abspath("places")
    truth = callgrind.executed(path)
    names = ["main", "sum", "add", "release", "choose"]
    specs = [x for i, n in enumerate(names) for x in ("-p", f"{n}%insns count:{i}")]
    listed = subprocess.run([tap.KRON, "list", "--json", *specs, path], capture_output=True,
                            text=True).stdout
    wanted = [0] * 16
    for p in json.loads(listed)["places"]:
        if "refused" not in p:
            function = re.match(r"[a-z]+", p["place"])[0]
            wanted[names.index(function)] += truth.get(p["address"], 0)
    plain = subprocess.run([path], capture_output=True, text=True).stdout
    out, _ = record("--bus", bus, *specs, "--", path)
    tap.need(out == plain, out)
    tap.need(sum(wanted) > 100 and info()["counters"] == wanted, (info()["counters"], wanted))


def none_lost(bus, group):
    """threads, forks, threads of children, handlers, a kill"""
    path = counted()
    out, _ = record("--bus", bus, "-p", f"{group}work count:3", "-p", f"{group}work%return count:15",
                    "--", path)
    n = int(out)
    counters = info()["counters"]
    tap.need(counters[3] == n and counters[15] == n, (n, counters))
    tap.need(sum(counters) == 2 * n, counters)


def level_off():
    record("--filter", "1", "-p", "5:=work count:0", "-p", "0:=work count:1", "--", counted())
    counters = info()["counters"]
    tap.need(counters[0] == 0 and counters[1] > 1000, counters)


# ---- stores ----

def stops_sampling(bus):
    """a probe as a trigger: the Filter Register is a chip word"""
    record("--bus", bus, "--when-full", "wait", "-p", "work trace $arg1", "-p", "stop store:4=0", "--", counted())
    payloads = [e["payload"] for e in dump() if e["kind"] == "event"]
    tap.need(payloads == list(range(10)), payloads[:20])


def arms_a_group(bus):
    record("--bus", bus, "--when-full", "wait", "--filter", "1", "-p", "6:armed=work trace $arg1",
           "-p", "stop store:4=0x40", "--", counted())
    n = len([e for e in dump() if e["kind"] == "event"])
    tap.need(n > 100000, n)


def store_is_a_sample():
    record("-p", "stop store:96=0x1234", "--", counted())
    events = [e["event"] for e in dump() if "event" in e and e["event"] < 0xffffff00]
    tap.need(events == [0x1234], events)


def into_a_device():
    path = counted()
    with open("device", "wb") as f:
        f.truncate(32 << 20)
    record("--bus", "device:" + os.path.abspath("device"), "-p", "stop store:12=0x11223344",
           "-p", "stop store:33=7", "-p", "work count:9", "--", path)
    with open("device", "rb") as f:
        chip = struct.unpack("<128I", f.read()[0x1000:0x1200])
    tap.need(chip[12] == 0x11223344 and chip[13] == 0, chip[12:14])
    tap.need(chip[33] == 7 and chip[80 + 9] == 1, (chip[33], chip[89]))


# ---- resource samples ----

def resource():
    """a sample with the counters: how often work() has been called when stop() is"""
    record("--bus", "exact", "-p", "work count:2", "-p", "seen=stop resource", "--", counted())
    found = [e for e in dump() if e.get("name") == "seen"]
    tap.need(len(found) == 1 and found[0]["counters"][2] == 10, found)
    _, err = record("--constant-time", "-p", "stop resource", "--", "./counted", status=125)
    tap.need("--constant-time" in err, err)


LOOKS = ["-p", "work count:2", "-p", "look resource i=$arg1", "-p", "look_inside resource"]


def looks(*flags):
    tap.compile_c("looks", "bins/looks.c", *flags)


def looked(n):
    """All of n looks are there, each after two works."""
    seen = [(e["payload"], e["counters"][2]) for e in dump() if e["kind"] == "event"]
    tap.need(seen == [(i, 2 * i + 2) for i in range(n)], (len(seen), seen[:3], seen[-3:]))
    tap.need(info()["lost"] == 0 and info()["samples"] == n, info())


def lane_steps():
    """in lanes: beside Trace samples, through many chunks, as the program counts itself"""
    looks()
    out, _ = record(*LOOKS, "-p", "plain=look i=$arg1", "--", "./looks", "1500", "steps")
    works = [int(n) for n in out.split()[:-1]]
    events = [e for e in dump() if e["kind"] == "event"]
    seen = [(e["payload"], e["counters"][2]) for e in events if e["name"] == "look"]
    tap.need(seen == list(enumerate(works)), (seen[:9], works[:9]))
    tap.need([e["payload"] for e in events if e["name"] == "plain"] == [*range(1500)], "")
    # the board's own format: 84 bytes, and 20
    subprocess.run([tap.KRON, "export", "-f", "mk.dat", "-o", "mk.dat", "trace"], check=True)
    with open("mk.dat", "rb") as f:
        words = struct.unpack("<%dI" % (os.path.getsize("mk.dat") // 4), f.read())
    at, got = 0, []
    while at < len(words):
        is_resource = words[at] >> 27 & 3 == 3
        if is_resource:
            got.append((words[at + 3], words[at + 5 + 2]))
        at += 21 if is_resource else 5
    tap.need(at == len(words) and got == seen, (at, len(words), got[:3]))


def lane_storm(*how):
    looks()
    out, _ = record(*how, *LOOKS, "--", "./looks", "2000", "storm")
    n = sum(map(int, out.split()))
    last = {}
    for e in dump():
        if e["kind"] == "event":
            tap.need(e["counters"][2] >= last.get(e["tid"], 0), e)
            last[e["tid"]] = e["counters"][2]
    i = info()
    tap.need(i["samples"] + i["lost"] == n and not i["cut_off"] and not i["damaged"], (n, i))
    tap.need(i["counters"][2] == n and max(last.values()) <= n, (n, i))
    if "wait" in how:
        tap.need(i["lost"] == 0, i)


def lane_killed():
    looks()
    record(*LOOKS, "--", "./looks", "4321", "killed", status=-9)
    looked(4321)


def lane_recovered():
    looks()
    p = subprocess.Popen([tap.KRON, "record", "-o", "trace", *LOOKS, "--", "./looks", "1234", "waits"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tap.need(p.stdout.readline() == "there\n", "")
    with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
        children = [int(pid) for pid in f.read().split()]
    p.kill()
    p.wait()
    for pid in filter(tap.is_traced, children):  # the keeper keeps what was stored, until it is recovered
        os.kill(pid, 9)
    p.stdout.close()
    subprocess.run([tap.KRON, "recover", "trace"], check=True, capture_output=True)
    looked(1234)


def lane_patched(*flags):
    looks(*flags)
    subprocess.run([tap.KRON, "patch", "-q", "-o", "looks", *LOOKS, "looks"], check=True)
    record("--", "./looks", "2345", "")
    looked(2345)


def lane_trigger():
    """the window takes samples with their counters"""
    looks()
    record(*LOOKS, "--trigger", "name=look", "--post", "100us", "--", "./looks", "5000", "")
    seen = [(e["payload"], e["counters"][2]) for e in dump() if e["kind"] == "event"]
    tap.need(seen and seen == [(i, 2 * i + 2) for i in range(len(seen))], seen)


def lane_store():
    looks()
    record("-p", "work count:2", "-p", "look store:112=0x1234", "--", "./looks", "3", "")
    seen = [(e["event"], e["counters"][2]) for e in dump() if e.get("event") == 0x1234]
    tap.need(seen == [(0x1234, 2), (0x1234, 4), (0x1234, 6)], seen)


with tap.Suite("actions") as s:
    for bus in ("lane", "exact"):
        s.case(f"every instruction counted as often as callgrind says, bus {bus}",
               every_instruction, bus)
        s.case("... without optimisation", every_instruction, bus, "-O0")
        s.case(f"no count is lost, bus {bus}", none_lost, bus, "")
        s.case("... with a gate", none_lost, bus, "0:=")
        s.case("a store stops all samples", stops_sampling, bus)
        s.case("a store arms a group", arms_a_group, bus)
    s.case("a level that is off counts nothing", level_off)
    s.case("a store to a trigger word is a sample", store_is_a_sample)
    s.case("stores and counts on a device", into_a_device)
    s.case("resource samples", resource)
    s.case("resource samples in lanes", lane_steps)
    s.case("... threads, a fork, handlers", lane_storm)
    s.case("... too little room", lane_storm, "-b", "1M")
    s.case("... waiting for it", lane_storm, "-b", "1M", "--when-full", "wait")
    s.case("... the newest only", lane_storm, "-b", "1M", "--when-full", "wrap")
    s.case("... the program is killed", lane_killed)
    s.case("... the recorder is killed", lane_recovered)
    s.case("... a patched file", lane_patched)
    s.case("... a static one", lane_patched, "-static")
    s.case("... a trigger", lane_trigger)
    s.case("... by a store", lane_store)
