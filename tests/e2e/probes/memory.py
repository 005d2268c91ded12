#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values and texts from memory, against what the program says is there; and pointers that lead nowhere."""
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

PATTERN = 0x5a5aa5a5
FIELDS = {
    "a": "a=*(u32*)$arg1", "b": "b=+4($arg1):u32", "c": "c=+8(%di)", "next": "n=*(u64*)(*(u64*)($rdi+16)+8)",
    "d": "+32($arg1):s8", "e": "e=*(s16*)($arg1+34)", "f": "f=*(float*)($arg1+36)", "g": "g=+0x28($arg1):double",
    "name": "s=+0(+24($arg1)):string", "text": "$arg2:string", "same": "s=*(u64*)($arg1+24):string",
}
PROBES = [x for name, value in FIELDS.items() for x in ("-p", f"{name}=take {value}")]
PROBES += ["-p", "given=give%return s=$retval:string"]


def run(*command, status=0):
    r = subprocess.run([tap.KRON, *command], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stdout[-500:]}\n{r.stderr}")
    return r.stdout, r.stderr


def events(*options):
    lines = run("dump", "--json", *options, "trace")[0].splitlines()
    return [e for e in map(json.loads, lines) if e["kind"] == "event"]


def program(*flags):
    tap.compile_c("memory", "bins/memory.c", *flags)
    return os.path.abspath("memory")


def record(*args):
    shutil.rmtree("trace", ignore_errors=True)
    return run("record", "-o", "trace", *args)


def plain(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def shown(text):
    """As C writes it, cut."""
    names = {10: "\\n", 9: "\\t", 13: "\\r", 34: '\\"', 92: "\\\\"}
    out = "".join(names.get(c) or (chr(c) if 32 <= c < 127 else f"\\x{c:02x}") for c in text[:64])
    return f'"{out}"' + ("..." if len(text) > 64 else "")


def need_said(out, names=(*FIELDS, "given")):
    """Every value and text is what the program has said."""
    rows = [line.split() for line in out.splitlines()]
    got = {name: [e for e in events() if e["name"] == name] for name in names}
    texts = [bytes.fromhex(r[8][1:]) for r in rows]
    tap.need(len(rows) >= 20 and any(len(t) > 64 for t in texts), len(rows))
    for i, name in enumerate(("a", "b", "c", "next", "d", "e", "f", "g")):
        if name not in names:
            continue
        wanted = [float(r[i]) if name in "fg" else int(r[i]) for r in rows]
        wanted = [single(x) for x in wanted] if name == "f" else wanted
        values = [single(e["value"]) if name == "f" else e["value"] for e in got[name]]
        tap.need(values == wanted, (name, values[:4], wanted[:4]))
    for name in {"text", "given"} & set(names):
        tap.need([bool(e.get("cut")) for e in got[name]] == [len(t) > 64 for t in texts], name)
        ascii_only = [i for i, t in enumerate(texts) if max(t, default=0) < 128]
        tap.need(len(ascii_only) > 5, "too few")
        for i in ascii_only:
            tap.need(got[name][i]["value"].encode() == texts[i][:64], (name, got[name][i], texts[i]))
    if "text" in names:
        for report in "dump", "replay":
            lines = re.findall(r'\btext arg2=(".*"(?:\.\.\.)?)', run(report, "trace")[0])
            tap.need(lines == [shown(t) for t in texts], (report, lines[:3], [shown(t) for t in texts[:3]]))
    if "same" in names:
        tap.need([e["value"] for e in got["same"]] == [e["value"] for e in got["name"]], "both manners")


def said(*flags):
    path = program(*flags)
    out, err = record(*PROBES, "--", path)
    tap.need(out == plain(path) and " 0 lost" in err, err)
    need_said(out)


def on_disk():
    path = program()
    run("patch", *PROBES, "-o", "patched", path)
    tap.need(plain("./patched") == plain(path), "asleep")
    out, _ = record("--", os.path.abspath("patched"))
    tap.need(out == plain(path), "awake")
    need_said(out)


def attached(*flags):
    path = program(*flags)
    p = subprocess.Popen([path, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    k = subprocess.Popen([tap.KRON, "record", "-o", "trace", "--pid", str(p.pid), *PROBES], stderr=subprocess.PIPE,
                         text=True)
    try:
        line = k.stderr.readline()
        tap.need(str(p.pid) in line, line)
        out = p.communicate("x\n", timeout=60)[0]
        tap.need(k.wait(60) == 0 and out == plain(path), k.stderr.read())
    finally:
        for child in (p, k):
            child.kill()
            child.wait()
        k.stderr.close()
    need_said(out)


def sealed():
    """The kernel may not be asked: a value is the right one, or there is none, and the program lives."""
    path = program()
    out, err = record(*PROBES, "--", path, "sealed", "300")
    tap.need(out == plain(path, "show", "300"), err)
    rows = [line.split() for line in out.splitlines()]
    b = [e["value"] for e in events() if e["name"] == "b"]
    tap.need(len(b) == 300 and all(v in (None, int(r[1])) for v, r in zip(b, rows)), b[:5])


WHERE = ["-p", "b=take b=*(u32*)($arg1+4)", "-p", "s=take s=$arg2:string", "-p",
         "deep=take x=+4(+16($arg1)):u32", "-p", "good=take b=+4($arg1):u32 if data == 77",
         "-p", "some=take b=+4($arg1):u32 if data != 12345"]


def bad(n, *args):
    path = program()
    wanted = plain(path, "bad", str(n), *args)
    out, err = record("--when-full", "wait", *WHERE, "--", path, "bad", str(n), *args)
    tap.need(out == wanted and " 0 faults 0 wrong mask kept" in out and " 0 lost" in err, (out, wanted, err))
    rows = {e["event"]: e for e in json.loads(run("report", "--events", "--json", "trace")[0])}
    good = (n + 15) // 16
    # a text that runs out of its page, and nothing else, is a number's good place: none is here
    tap.need([rows[x]["count"] for x in ("b", "s", "deep", "good")] == [n, n, n, good], rows)
    tap.need(rows["b"]["unreadable"] + good <= n and rows["deep"]["unreadable"] == n - good, rows)
    tap.need(rows["s"]["unreadable"] == n - good, rows["s"])
    tap.need(rows["good"]["lowest"] == rows["good"]["highest"] == 77 and "unreadable" not in rows["good"], rows)
    tap.need(rows["some"]["count"] == n - rows["b"]["unreadable"], "what cannot be read meets no condition")


def edge():
    """A text may fill its page to the last byte; without a zero it is none, or cut where no more is taken."""
    n = 70
    record("-p", "take s=$arg2:string", "--", program(), "edge", str(n))
    got = [(e["value"], bool(e.get("cut"))) for e in events()]
    ended = [("e" * min(i - 1, 64), i - 1 > 64) for i in range(1, n + 1)]
    endless = [("e" * 64, True) if i >= 64 else (None, False) for i in range(1, n + 1)]
    tap.need(got == ended + endless, [x for x in zip(got, ended + endless) if x[0] != x[1]])


def farthest():
    """The longest distances are distances, and nothing else."""
    tap.compile_text("far", """
        __attribute__((noinline)) unsigned take(const char *low, const char *high) {
            __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" : "+r"(low), "+r"(high) : : "memory");
            return (unsigned)(long)low;
        }
        int main(void) {
            static unsigned x = 123456789;
            const char *volatile at = (const char *)&x;
            return take(at + 0x7fffffff, at - 0x7fffffff) == 1;
        }""")
    record("-p", "low=take n=-0x7fffffff($arg1):u32", "-p", "high=take n=+0x7fffffff($arg2):u32", "--", "./far")
    got = [e["value"] for e in events()]
    tap.need(got == [123456789] * 2, got)


def bad_ones_shown():
    """What cannot be read is not a number anywhere: dump, filters, exports."""
    path = program()
    record(*WHERE, "--", path, "bad", "64")
    all_b = [e for e in events() if e["name"] == "b"]
    none = [e for e in all_b if e["value"] is None]
    tap.need(len(all_b) == 64 and len(none) > 40, len(none))
    text = run("dump", "trace")[0]
    tap.need(len(re.findall(r"event b b=unreadable ", text)) == len(none), text[-300:])
    tap.need(text.count('event s s="good" ') == 4 and len(re.findall(r"event s s=unreadable ", text)) == 60, "s")
    tap.need(not events("--where", "event=0 and data=0") and not events("--where", "event=0 and data<5"), "data=0")
    run("export", "--format", "sqlite", "-o", "t.db", "trace")
    with sqlite3.connect("t.db") as db:
        rows = db.execute("SELECT typeof(data), count(*) FROM events WHERE name = 'b' GROUP BY 1").fetchall()
        tap.need(dict(rows) == {"null": len(none), "integer": 64 - len(none)}, rows)
        rows = db.execute("SELECT data, count(*) FROM events WHERE name = 's' GROUP BY 1").fetchall()
        tap.need(dict(rows) == {None: 60, "good": 4}, rows)
    run("export", "--format", "chrome", "-o", "t.json", "trace")
    with open("t.json") as f:
        args = [e["args"] for e in json.load(f)["traceEvents"] if e["ph"] == "i" and e["name"] in ("b", "s")]
    tap.need(sum(a.get("b", 1) is None for a in args) == len(none), args[:5])
    tap.need(sum(a.get("s") == "good" for a in args) == 4, args[:5])


def torn():
    path = program()
    out, err = record("--when-full", "wait", "-p", "b=take b=*(u32*)$arg1", "--", path, "torn", "200000")
    tap.need(out == plain(path, "torn", "200000"), (out, err))
    values = [e["value"] for e in events()]
    tap.need(len(values) == 200000 and set(values) == {None, PATTERN}, set(values))


def crowd(*options):
    """Texts of threads and handlers: chunks end inside of them, threads are moved."""
    out, err = record("-p", "s=take s=$arg2:string", "-p", "n=take n=$arg3", *options, "--", program(), "crowd",
                      "20000", "4")
    tap.need(" 0 lost" in err, err)
    texts, numbers = {}, {}
    for e in events():
        key = e["value"] if e["name"] == "s" else e["payload"]
        which = texts if e["name"] == "s" else numbers
        which[key] = which.get(key, 0) + 1
    handlers = texts.pop("from the handler, which is a text of some more bytes", 0)
    tap.need(sum(texts.values()) == int(out), (sum(texts.values()), out))
    numbers[1] = numbers.get(1, 0) - handlers
    tap.need({chr(97 + n % 26) * n: c for n, c in numbers.items()} == texts, "other texts than were passed")


def lossy():
    """Every text that is left is whole."""
    record("-p", "s=take s=$arg2:string", "--buffer", "1M", "--when-full", "discard", "--", program(), "crowd",
           "60000", "3")
    left = events()
    tap.need(left and all(re.fullmatch(r"((.)\2*)?|from the handler.*bytes", e["value"]) for e in left), len(left))


def exports():
    path = program()
    record("-p", "text=take $arg2:string", "--", path)
    values = [e["value"] for e in events()]
    run("export", "--format", "perfetto", "-o", "t.perfetto", "trace")
    with open("t.perfetto", "rb") as f:
        data = f.read()
    plain_ones = [v for v in values if re.fullmatch(r"[ a-z]{3,}", v)] or [v for v in values if v.isalnum()]
    tap.need(plain_ones and all(f'text arg2="{v}"'.encode() in data for v in plain_ones), plain_ones)
    if shutil.which("babeltrace2"):
        run("export", "--format", "ctf", "-o", "ctf", "trace")
        text = subprocess.run(["babeltrace2", "ctf"], capture_output=True, text=True, errors="replace").stdout
        tap.need(len(re.findall(r'payload = ".*", level', text)) == len(values), text[:300])
        tap.need(all(f'payload = "{v}"' in text for v in plain_ones), text[:300])
    if shutil.which("otf2-print"):
        run("export", "--format", "otf2", "-o", "otf2", "trace")
        text = subprocess.run(["otf2-print", "otf2/traces.otf2"], capture_output=True, text=True, errors="replace").stdout
        tap.need(all(f'"{v}"' in text for v in plain_ones), text[-800:])


def trigger():
    """A recorder's trigger knows numbers from memory, and takes no unreadable one for zero."""
    path = program()
    _, err = record("-p", "b=take b=*(u32*)($arg1+4)", "--trigger", "b and data=77", "--", path, "bad", "17")
    tap.need(77 in [e["value"] for e in events()], err)
    _, err = record("-p", "b=take b=*(u32*)($arg1+4)", "--trigger", "b and data=0", "--", path, "bad", "64")
    tap.need(not events(), err)


def refused():
    program()
    for spec, words in [("n=*(u32*)5", "a number is not an address"), ("n=*(u33*)$arg1", "a type is needed"),
                        ("n=*(u32*)(*(u32*)$arg1+4)", "an address has 64 bits"),
                        ("n=*(u32*)$arg1:u16", "the type is in front"), ("n=+8($arg1", ") is needed"),
                        ("n=+8($arg1))", "the value ends here"),
                        ("n=+0(+0(+0(+0(+0($arg1)))))", "4 steps at most"),
                        ("n=*(u64*)(+0(+0(+0(+0($arg1)))))", "4 steps at most"), ("n=+99999999999($arg1)", "31 bits"),
                        ("resource n=+8($arg1):u32", "no value from memory"), ("s=$arg1:string if data == 1", "not compared"),
                        ("n=*(u32*)($arg1+8) if *(u32*)$arg1 == 1", "compare data"), ("n=5:string", "not an address"),
                        ("n=+0($arg7)", "in registers"), ("n=*(float*)$arg1 if data > 1", "not compared")]:
        _, err = run("record", "-o", "trace", "-p", f"take {spec}", "--", "./memory", status=125)
        tap.need(words in err, (spec, err))
    for options in ("--bus", "exact"), ("--constant-time",):
        _, err = record(*options, "-p", "take n=*(u32*)$arg1", "--", "./memory")
        tap.need("record it on the lanes" in err, err)


with tap.Suite("memory") as s:
    s.case("values and texts", said)
    s.case("... of a static program", said, "-static")
    s.case("... in a file from kron patch", on_disk)
    s.case("... in a process that is attached to", attached)
    s.case("... in a static one", attached, "-static")
    s.case("... under a seccomp filter", sealed)
    s.case("pointers that lead nowhere", bad, 1000000)
    s.case("... with all signals blocked", bad, 100000, "mask")
    s.case("... in reports and exports", bad_ones_shown)
    s.case("the longest distances", farthest)
    s.case("texts at the end of what there is", edge)
    s.case("a page that comes and goes", torn)
    s.case("threads and handlers", crowd)
    s.case("... with a small pool that is waited for", crowd, "--buffer", "1M", "--when-full", "wait")
    s.case("what is left after losses is whole", lossy)
    s.case("exports", exports)
    s.case("a recorder's trigger", trigger)
    s.case("what cannot be is refused", refused)
