#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Payloads of 64 bits, how they are shown, and conditions, against what the program says of itself."""
import collections
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

ALL = (1 << 64) - 1


def run(*command, status=0):
    r = subprocess.run([tap.KRON, *command], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stdout[-500:]}\n{r.stderr}")
    return r.stdout, r.stderr


def dump(*options):
    return [json.loads(line) for line in run("dump", "--json", *options, "trace")[0].splitlines()]


def program(*flags):
    tap.compile_c("values", "bins/values.c", *flags)
    return os.path.abspath("values")


def record(*args):
    shutil.rmtree("trace", ignore_errors=True)
    return run("record", "-o", "trace", *args)


def said(out):
    """Where data, stack and heap of the main thread lie; (how often, sum) for each."""
    first, *rows = out.splitlines()
    where = [int(x, 16) for x in re.findall("0x[0-9a-f]+", first)]
    return where, [tuple(map(int, row.split())) for row in rows]


def need_all(out, events, bits=ALL):
    _, rows = said(out)
    tap.need(len(events) == sum(n for n, _ in rows), (len(events), rows))
    total = sum(s for _, s in rows) & ALL
    got = sum(e["payload"] for e in events)
    tap.need((got - total) & bits == 0, (hex(got), hex(total)))


STORES = ["-p", "address=write_to%stores at=$addr"]
NARROW = ["-p", "narrow=narrow n=$arg1"]


def regions(*flags):
    out, _ = record(*STORES, "--", program(*flags), "10")
    (data, stack, heap), _ = said(out)
    events = [e for e in dump() if e["kind"] == "event"]
    need_all(out, events)
    wanted = []
    for i in range(10):
        wanted += [data + i % 32 * 8, stack + i % 16 * 8, heap + i * 5 % 16 * 8]
    tap.need([e["payload"] for e in events] == wanted, ([hex(e["payload"]) for e in events[:6]], out))
    tap.need({(e["payload_name"], e["payload_type"]) for e in events} == {("at", "x64")}, events[0])
    shown = re.findall(r"address at=(0x[0-9a-f]+) \[values\]", run("dump", "trace")[0])
    tap.need([int(x, 16) for x in shown] == wanted, shown)
    shown = re.findall(r"\* address at=(0x[0-9a-f]+)$", run("replay", "trace")[0], re.M)
    tap.need([int(x, 16) for x in shown] == wanted, shown)
    above = [e for e in dump("--where", f"data>={stack} and event=0") if e["kind"] == "event"]
    tap.need([e["payload"] for e in above] == [w for w in wanted if w >= stack], len(above))


def crowd(*options):
    """Wide and narrow samples of nine threads and of handlers: chunks end between the two slots, threads
    are moved, signals come anywhere."""
    out, err = record(*STORES, *NARROW, *options, "--", program(), "6000", "8", "200000")
    tap.need(" 0 lost" in err, err)
    events = [e for e in dump() if e["kind"] == "event"]
    need_all(out, [e for e in events if e["name"] == "address"])
    narrow = [e["payload"] for e in events if e["name"] == "narrow"]
    handlers = sum(1 for p in narrow if p == 7)
    tap.need(len(narrow) - handlers == 9 * len(range(3, 6000, 7)), (len(narrow), handlers))
    tap.need(all("value" in e for e in events if e["name"] == "address"), "")


def lossy():
    """Every sample that is left is whole."""
    out, _ = record(*STORES, "--buffer", "1M", "--when-full", "discard", "--", program(), "30000", "3")
    (data, _, _), rows = said(out)
    info = json.loads(run("info", "--json", "trace")[0])
    events = [e for e in dump() if e["kind"] == "event"]
    tap.need(len(events) + info["lost"] == sum(n for n, _ in rows), (len(events), info["lost"], rows))
    tap.need(all("value" in e and e["payload"] >> 40 in range(0x50, 0x80) for e in events), "")


def low_half(*options):
    out, _ = record(*options, *STORES, "--", program(), "10")
    events = [e for e in dump() if e["kind"] == "event"]
    (data, stack, heap), _ = said(out)
    wanted = {(data + 8 * i) & 0xffffffff for i in range(10)}
    tap.need(events and wanted & {e["payload"] for e in events}, events)
    tap.need(all(e["payload"] < 1 << 32 and "value" not in e and "low_half" in e for e in events), events[0])
    text = run("dump", "trace")[0]
    tap.need(len(re.findall(r"at=0x[0-9a-f]+ \(low half\) ", text)) == len(events), text[-300:])


def types():
    specs = ["a:s8", "a:s32", "a:s64", "a:u64", "a:x16", "b:u16", "b:s64", "b:u64", "c:double", "c:x64"]
    where = {"a": "$arg1", "b": "$arg2", "c": "+0($arg3)"}
    wanted = ["-7", "-7", "-7", str(2**64 - 7), "0xfff9", "65535", "-1", str(2**64 - 1), "-2.5",
              "0xc004000000000000"]
    args = []
    for i, s in enumerate(specs):
        name, kind = s.split(":")
        args += ["-p", f"e{i}=show {name}={where[name]}:{kind}"]
    record(*args, "--", program())
    for report in "dump", "replay":
        text = run(report, "trace")[0]
        shown = dict(re.findall(r"(e\d) [abc]=(\S+)", text))
        tap.need([shown.get(f"e{i}") for i in range(len(specs))] == wanted, shown)
    values = {e["name"]: e["value"] for e in dump() if e["kind"] == "event"}
    tap.need(values["e2"] == -7 and values["e3"] == 2**64 - 7 and values["e8"] == -2.5, values)
    run("export", "--format", "sqlite", "-o", "t.db", "trace")
    with sqlite3.connect("t.db") as db:
        rows = {name: (kind, data) for name, kind, data in
                db.execute("SELECT name, payload_type, data FROM events")}
    tap.need(rows["e2"] == ("s64", -7) and rows["e0"] == ("s8", -7) and rows["e5"] == ("u16", 65535), rows)
    tap.need(rows["e7"] == ("u64", str(2**64 - 1)), rows)  # SQLite's integers end at 2^63
    tap.need(rows["e8"] == ("double", -2.5) and rows["e9"] == ("x64", 0xc004000000000000 - 2**64), rows)
    run("export", "--format", "chrome", "-o", "t.json", "trace")
    with open("t.json") as f:
        args = {e["name"]: e["args"] for e in json.load(f)["traceEvents"] if e["ph"] == "i"}
    tap.need(args["e2"]["a"] == -7 and args["e7"]["b"] == str(2**64 - 1) and args["e8"]["c"] == -2.5, args)
    rows = {e["event"]: e for e in json.loads(run("report", "--events", "--json", "trace")[0])}
    tap.need(rows["e2"]["lowest"] == -7 and rows["e8"]["highest"] == -2.5, rows)


def extremes():
    """The numbers that are nobody's to keep for themselves: the lowest one, and the largest double."""
    tap.compile_text("ends", """
__attribute__((noinline, noclone)) void show(unsigned long n, const double *d) { __asm__ volatile(".nops 8" :: "r"(n), "r"(d)); }
int main(void) { static const double most = __DBL_MAX__; show(1ul << 63, &most); return 0; }
""")
    record("-p", "low=show n=$arg1:s64", "-p", "most=show d=*(double*)$arg2", "--", "./ends")
    values = {e["name"]: e["value"] for e in dump() if e["kind"] == "event"}
    tap.need(values == {"low": -2**63, "most": sys.float_info.max}, values)
    run("export", "--format", "sqlite", "-o", "t.db", "trace")
    with sqlite3.connect("t.db") as db:
        rows = dict(db.execute("SELECT name, data FROM events"))
    tap.need(rows == {"low": -2**63, "most": sys.float_info.max}, rows)


def constants():
    """Numbers of the user's, of any width, with and without conditions in front of them."""
    wanted = {"a:u64": 123456789012345678, "b:s64": -9223372036854775808, "c:x64": 0xfedcba9876543210, "d:s64": -1,
              "e:u64": 0xffffffff, "f:u64": 0x80000000, "g": 0xffffffff, "h:s32": -5, "i:s64": 2147483647}
    condition = " if $arg1:s32 == -7 && $arg2 & 0xffffffffffffffff != 5"
    args = []
    for name, value in wanted.items():
        for tail in "", condition, condition + " && $arg1:s64 == -7 && $arg2 > 0x1234567890abcdef":
            args += ["-p", f"show {name.replace(':', '=%d:' % value) if ':' in name else f'{name}={value}'}{tail}"]
    record(*args, "--", program())
    events = [e for e in dump() if e["kind"] == "event"]
    got = collections.Counter((e["payload_name"], e.get("value", e["payload"])) for e in events)
    tap.need(got == {(name.split(":")[0], value): 3 for name, value in wanted.items()}, got)


def exports():
    """Addresses in what others read."""
    out, _ = record(*STORES, "--", program(), "10")
    wanted = [e["payload"] for e in dump() if e["kind"] == "event"]
    run("export", "--format", "perfetto", "-o", "t.perfetto", "trace")
    with open("t.perfetto", "rb") as f:
        shown = re.findall(rb"address at=(0x[0-9a-f]+)", f.read())
    tap.need(sorted({int(x, 16) for x in shown}) == sorted(set(wanted)), len(shown))
    run("export", "--format", "sqlite", "-o", "t.db", "trace")
    with sqlite3.connect("t.db") as db:
        data = [d for d, in db.execute("SELECT data FROM events ORDER BY sample_id")]
    tap.need(data == wanted, data[:5])
    run("export", "--format", "mk.dat", "-o", "mk.dat", "trace")
    with open("mk.dat", "rb") as f:
        raw = f.read()
    low = [int.from_bytes(raw[i + 12:i + 16], "little") for i in range(0, len(raw), 20)
           if int.from_bytes(raw[i + 16:i + 20], "little") < 0xffffff00]
    tap.need(low == [w & 0xffffffff for w in wanted], "mk.dat has the board's samples")
    if shutil.which("babeltrace2"):
        run("export", "--format", "ctf", "-o", "ctf", "trace")
        text = subprocess.run(["babeltrace2", "ctf"], capture_output=True, text=True).stdout
        tap.need([int(x) for x in re.findall(r"payload = (\d+)", text)] == wanted, text[:300])


def on_disk():
    program()
    run("patch", *STORES, "-o", "patched", "values")
    out, _ = record("--", os.path.abspath("patched"), "10")
    need_all(out, [e for e in dump() if e["kind"] == "event"])


def trigger():
    """A recorder's trigger and a reader's know the same 64 bits."""
    args = ["-p", "show=show b=$arg2:u64", "--trigger", f"show and data={ALL}"]
    _, err = record(*args, "--", program())
    tap.need([e["payload"] for e in dump() if e["kind"] == "event"] == [ALL], err)


def refused():
    program()
    for spec, words in [("show resource b=$arg2:x64", "Resource sample has 32 bits"),
                        ("show b=$arg2:s65", "no such type"), ("show b=99999999999", "32 bits without a type"),
                        ("show b=99999999999:u32", "does not fit its type"), ("show b=300:u8", "does not fit its type"),
                        ("show b=18446744073709551616:u64", "a number")]:
        _, err = run("record", "-o", "trace", "-p", spec, "--", "./values", status=125)
        tap.need(words in err, err)
    record("-p", "write_to%stores resource $addr", "--", "./values")
    tap.need(all(e["payload"] < 1 << 32 for e in dump() if e["kind"] == "event"), "")


def filtered(*flags):
    """filtered() as often as the program counted that a condition holds."""
    tap.compile_c("filtered", "bins/filtered.c", *flags)
    plain = subprocess.run(["./filtered"], capture_output=True, text=True).stdout
    return plain, [(int(n), c) for n, c in re.findall(r"^(\d+) (.*)$", plain, re.M)]


def counts():
    return {e["event"]: e["count"] for e in json.loads(run("report", "--events", "--json", "trace")[0])}


def conditions(*options, flags=()):
    plain, wanted = filtered(*flags)
    args = []
    for i, (_, c) in enumerate(wanted):
        args += ["-p", f"e{i}=filtered n=$arg1:s64 if {c}"]
    out, err = record(*options, *args, "--", os.path.abspath("filtered"))
    tap.need(out == plain and " 0 lost" in err, (out, err))
    got = counts()
    for i, (n, c) in enumerate(wanted):
        tap.need(got[f"e{i}"] == n, f"{c}: {got[f'e{i}']} samples instead of {n}")
    tap.need(len(wanted) > 10 and sum(n for n, _ in wanted) > 3000, plain)


def on_board():
    """A board loses what comes too fast: so one that holds once."""
    plain, _ = filtered()
    record("--bus", "exact", "-p", "e=filtered n=$arg1:s32 if $arg3:s32 == -3 && $arg4 != 3", "--", "./filtered")
    tap.need([e["value"] for e in dump() if e["kind"] == "event"] == [3], dump())


def on_data():
    plain, _ = filtered()
    out, _ = record("-p", "a=filtered n=$arg1:s32 if data < -990", "-p", "b=filtered if %rdi:s64 < -990 # why",
                    "-p", "c=filtered n=$arg4 if data & 0xf == 3", "-p", "d=filtered resource if $arg1 == 5",
                    "-p", "e=filtered d=$arg4:x64 if data >= 0x1234567800000010 && data < 0x1234567800000020",
                    "-p", "f=filtered%return $retval if data & 2 == 2", "--", "./filtered")
    tap.need(out == plain, out)
    got = counts()
    tap.need([got[x] for x in "abcde"] == [10, 10, 125, 1, 16], got)
    odd = sum(e["payload"] >> 1 & 1 for e in dump() if e.get("name") == "f")
    tap.need(got["f"] == odd == 500, (got, odd))


def on_addresses():
    """Those of the data alone, by the full address: it is not PIE, so it is known before."""
    path = program("-no-pie", "-fno-pie")
    out = subprocess.run([path, "10"], capture_output=True, text=True).stdout
    (data, _, _), rows = said(out)
    low = f"write_to%stores $addr if data >= {data} && data < {data + 512}"
    out, _ = record("-p", f"e={low}", "-p", "all=write_to%stores $addr if data != 1", "--", path, "10")
    got = counts()
    tap.need(got["e"] == rows[0][0] and got["all"] == sum(n for n, _ in rows), (got, rows))


def patched_with_conditions():
    plain, wanted = filtered()
    args = [x for i, (_, c) in enumerate(wanted) for x in ("-p", f"e{i}=filtered if {c}")]
    run("patch", *args, "-o", "patched", "filtered")
    tap.need(subprocess.run(["./patched"], capture_output=True, text=True).stdout == plain, "asleep")
    out, _ = record("--", os.path.abspath("patched"))
    got = counts()
    tap.need(out == plain and [got[f"e{i}"] for i in range(len(wanted))] == [n for n, _ in wanted], got)


def bad_conditions():
    filtered()
    for spec, words in [("if $arg1 > 1 || $arg2 == 3", "joined by && only"), ("if $arg1", "a comparison"),
                        ("if data == 1", "it has none"), ("if $arg1 > -1", "has no sign"),
                        ("if $arg1:u8 > 256", "8 bits"), ("if $retval == 1", "compare data"),
                        ("count:1 if $arg1 == 1", "for samples"), ("if $arg1 == x", "a number"),
                        ("if $arg9 == 1", "in registers"), ("if %rsp > 1", "stack pointer"),
                        ("if " + " && ".join(["$arg1 != 1"] * 5), "4 conditions"),
                        ("if $arg1:double > 1", "doubles"), ("if $arg1 & -1 == 0x100000000", "31 bits"),
                        ("if $arg1:s64 < 18446744073709551615", "always holds"), ("if $arg1:s32 == 0xffffffffffffffff", "never holds")]:
        _, err = run("record", "-o", "trace", "-p", f"filtered {spec}", "--", "./filtered", status=125)
        tap.need(words in err, (spec, err))
    _, err = record("--constant-time", "-p", "filtered if $arg1 == 1", "--", "./filtered")
    tap.need("no conditions with --constant-time" in err, err)


with tap.Suite("values") as s:
    s.case("data, stack and heap of a PIE", regions, "-pie", "-fPIE")
    s.case("... of a program at a fixed address", regions, "-no-pie")
    s.case("... of a static program", regions, "-static")
    s.case("nine threads, handlers", crowd)
    s.case("... with a small pool that is waited for", crowd, "--buffer", "1M", "--when-full", "wait")
    s.case("what is left after losses is whole", lossy)
    s.case("a board's samples have the low half", low_half, "--bus", "exact")
    s.case("... those of constant time, too", low_half, "--constant-time")
    s.case("types", types)
    s.case("the ends of what fits", extremes)
    s.case("constants", constants)
    s.case("exports", exports)
    s.case("a file from kron patch", on_disk)
    s.case("a recorder's trigger", trigger)
    s.case("what cannot be is refused", refused)
    s.case("conditions hold as often as the program counts", conditions)
    s.case("... in a static program", lambda: conditions(flags=("-static",)))
    s.case("... on the exact bus", on_board)
    s.case("conditions on the value", on_data)
    s.case("... on addresses", on_addresses)
    s.case("... in a file from kron patch", patched_with_conditions)
    s.case("conditions that cannot be", bad_conditions)
