#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What readers of each format see of the values that probes take along, against what the program was called with.

A value has its name, its type and its sign; what could not be read, and a half of 64 bits, is no value.
"""
import collections
import csv
import json
import math
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../..")]
from tap import KRON, Skip, Suite, compile_text, need  # noqa: E402
from duck import ask  # noqa: E402

PROGRAM = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline, noclone)) void show(uint64_t s, uint64_t u, const double *d, const char *t, const void *m)
{
	__asm__ volatile(".nops 8" ::"r"(s), "r"(u), "r"(d), "r"(t), "r"(m));
}
/* signed, unsigned, double, text: again and again; no address leads to the text "BAD" and its number */
int main(int argc, char **argv)
{
	for (int i = 1; i + 3 < argc; i += 4) {
		uint64_t s = strtoull(argv[i], NULL, 0);
		double d = strtod(argv[i + 2], NULL);
		int bad = !strcmp(argv[i + 3], "BAD");

		show(s, strtoull(argv[i + 1], NULL, 0), &d, bad ? (char *)16 : argv[i + 3], bad ? (void *)16 : (void *)&s);
	}
	return 0;
}
"""
# the lowest numbers, 2^63 and -0.0 are one and the same 64 bits
ROWS = [(-7, 2**64 - 1, -2.5, 'a "b", c'), (-2**63, 2**63, -0.0, "BAD"), (2**63 - 1, 0, math.inf, "unreadable"),
        (0, 5, math.nan, ""), (0x3fc00000 - 2**40, 0x123456789abcdef0, 1234.5, "t" * 70), (2**31, 7, -math.inf, "null")]
# event -> the name of its value, its type, where it is
VALUES = {
    **{f"s{bits}": ("n", f"s{bits}", "$arg1") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": ("n", f"u{bits}", "$arg2") for bits in (8, 16, 32, 64)},
    **{f"x{bits}": ("bits", f"x{bits}", "$arg2") for bits in (8, 16, 32, 64)},
    "real": ("level", "double", "*(double*)$arg3"), "short": ("payload", "float", "*(float*)$arg5"), "text": ("name", "string", "$arg4"),
    "far": ("value", "s32", "*(s32*)$arg5"), "far64": ("how", "s64", "*(s64*)$arg5"),
    "array": ("string", "s16[2]", "$arg5"), "plain": ("n", "", "$arg1"),
    **{f"more{i}": ("n", "u32", "$arg2") for i in range(12)},  # so many that numbers of CTF's events have more than five bits
}
Value = collections.namedtuple("Value", "name state value")


def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    need(r.returncode == 0, f"{argv}: {r.returncode} {r.stdout[-300:]} {r.stderr[-500:]}")
    need("warning" not in r.stderr, r.stderr)
    return r.stdout


def needs(tool):
    if not shutil.which(tool):
        raise Skip(f"no {tool} here")


def of_type(kind, bits):
    """Bits, as they are meant."""
    n = int(kind[1:] or 32) if kind[:1] in set("sux") else 32
    if kind in ("double", "float"):
        return struct.unpack_from("d" if kind == "double" else "f", struct.pack("<Q", bits))[0]
    bits &= (1 << n) - 1
    return bits - (1 << n) if kind[:1] == "s" and bits >> (n - 1) else bits


def wanted(event):
    name, kind, place = VALUES[event]
    for s, u, d, text in ROWS:
        bits = {"1": s, "2": u, "3": struct.unpack("Q", struct.pack("d", d))[0], "4": 0, "5": s}[place[-1]]
        if place[-1] in "45" and text == "BAD":
            yield Value(name, "unreadable", None)
        elif kind == "string":
            yield Value(name, "cut" if len(text) > 64 else "whole", text[:64])
        elif kind == "s16[2]":
            yield Value(name, "whole", [of_type("s16", bits), of_type("s16", bits >> 16)])
        else:
            yield Value(name, "whole", of_type(kind, bits & (1 << 64) - 1))


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isnan(a) and math.isnan(b) or (a, math.copysign(1, a)) == (b, math.copysign(1, b))
    return type(a) is type(b) and a == b


def need_values(got, knows_cut=True):
    for event in VALUES:
        want = list(wanted(event))
        if not knows_cut:
            want = [v._replace(state="whole") if v.state == "cut" else v for v in want]
        have = got.get(event, [])
        need([v[:2] for v in want] == [v[:2] for v in have] and all(map(same, [v.value for v in want], [v.value for v in have])),
             f"{event}: {have}\nwanted: {want}")


def record(*options):
    compile_text("shown", PROGRAM)
    probes = [x for e, (name, kind, place) in VALUES.items() for x in
              ("-p", f"{e}=show {name}={place}" + (f":{kind}" if kind and "*" not in place else ""))]
    argv = [str(x) for row in ROWS for x in row]
    run(KRON, "record", "-q", "-o", "trace", *options, *probes, "-p", "bare=show", "--", "./shown", *argv)


def halves():
    """Of 64 bits the board has the low half."""
    compile_text("shown", PROGRAM)
    run(KRON, "record", "-q", "--bus", "exact", "-o", "trace", "-p", "half=show n=$arg1:s64", "--", "./shown",
        str(-2**40 - 7), "0", "0", "")


def export(kind):
    run(KRON, "export", "-q", "-f", kind, "-o", f"out.{kind}", "trace")
    return f"out.{kind}"


def number(word, kind):
    return float(word) if kind in ("double", "float") else int(word, 0)


# ---- CTF ----

def ctf_events():
    for line in run("babeltrace2", export("ctf")).splitlines():
        m = re.search(r' (user|text): \{.*?\}, \{ name = \( "(\w+)" : container = \d+ \), (.*) \}$', line)
        if m:
            yield m[2], m[3]


def ctf_value(kind, word):
    if kind == "string":
        return json.loads(word)
    if kind == "s16[2]":
        return [int(x) for x in re.findall(r"\] = (-?\d+)", word)]
    need(word.startswith("0x") == (not kind or kind[0] == "x"), f"{kind or 'no type'}: {word}")
    return number(word, kind)


def of_ctf():
    needs("babeltrace2")
    record()
    got = collections.defaultdict(list)
    for event, fields in ctf_events():
        if event == "bare":
            need("value = {" not in fields, fields)
            continue
        state = (re.search(r'how = \( "(\w+)" : container = \d \), payload', fields) or [0, "whole"])[1]
        m = re.search(r"level = 0, value = \{ (\w+) = (.*) \}$", fields)
        need(bool(m) == (state != "unreadable"), fields)
        name, kind, _ = VALUES[event]
        got[event].append(Value(m[1] if m else name, state, ctf_value(kind, m[2]) if m else None))
    need_values(got)


def half_of_ctf():
    needs("babeltrace2")
    halves()
    got = list(ctf_events())
    need(got == [("half", "payload = 4294967289, level = 0, low_half = { n = 0xFFFFFFF9 }")], got)


# ---- the table ----

def of_table(rows):
    """Rows of the columns function, payload, payload_type, value_state, value_int, value_uint, value_real, text."""
    got = collections.defaultdict(list)
    for event, name, kind, state, *columns in rows:
        if event == "bare":
            need([name, kind, state, *columns] == [None] * 7, (name, state, columns))
            continue
        need(kind == (VALUES[event][1] or None), f"{event}: {kind}")
        value = columns.pop({"s": 0, "d": 2, "f": 2}.get((kind or "x")[0], 1) if kind not in ("string", "s16[2]") else 3)
        need(set(columns) == {None}, f"{event}: {columns} besides")
        if kind == "s16[2]" and value is not None:
            value = [int(x) for x in value.strip("{}").split(",")]
        got[event].append(Value(name, state, value))
    need_values(got)


COLUMNS = ["function", "payload", "payload_type", "value_state", "value_int", "value_uint", "value_real", "text"]
# JavaScript's numbers are not these, and JSON has no infinities
SQL = "SELECT {} FROM {} WHERE kind = 'event' ORDER BY time_ns"


def words(column):
    return f"{column}::VARCHAR" if column in COLUMNS[4:7] else column


def of_duckdb(table):
    types = dict(r[:2] for r in ask(f"DESCRIBE SELECT * FROM {table}"))
    need([types[c] for c in COLUMNS[4:7]] == ["BIGINT", "UBIGINT", "DOUBLE"], types)
    rows = ask(SQL.format(", ".join(map(words, COLUMNS)), table))
    of_table([*r[:4], *(w and int(w) for w in r[4:6]), r[6] and float(r[6]), r[7]] for r in rows)
    low = ask(f"SELECT min(value_int)::VARCHAR, max(value_uint)::VARCHAR FROM {table} WHERE value_int < -9e18 or value_uint > 9e18")
    need(low == [[str(-2**63), str(2**64 - 1)]], low)


def of_parquet():
    record()
    of_duckdb(f"'{export('parquet')}'")


def of_dataset():
    record()
    run(KRON, "export", "-q", "-f", "parquet", "--dataset", "set", "trace")
    of_duckdb("read_parquet('set/*/*/*.parquet', hive_partitioning = true)")


def csv_rows():
    """Python's reader takes an empty text for null, which DuckDB does not."""
    with open(export("csv"), newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if r["kind"] == "event"]
    for r in rows:
        v = [r[c] or None for c in COLUMNS]
        v[4:7] = v[4] and int(v[4]), v[5] and int(v[5]), v[6] and float(v[6])
        if v[2] == "string" and v[3] in ("whole", "cut"):
            v[7] = r["text"]
        yield v


def of_csv():
    record()
    of_table(csv_rows())


def half_of_table():
    halves()
    got = list(csv_rows())
    need(got == [["half", "n", "s64", "half", None, None, None, None]], got)


# ---- texts that are hard to write ----

TEXTS = ["a\nb", "a\\x0ab", "\\", "\\\\", "\t\x7f", "é", b"\xc3", b"\xff\\xff", "\\n", "plain"]


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def told(text):
    """What was there: \\\\ is a backslash, \\xNN a byte."""
    return re.sub(rb"\\\\|\\x(..)", lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", text.encode())


def record_texts():
    compile_text("shown", PROGRAM)
    argv = [x for text in TEXTS for x in (b"0", b"0", b"0", as_bytes(text))]
    r = subprocess.run([KRON, "record", "-q", "-o", "trace", "-p", "text=show name=$arg4:string", "--", "./shown", *argv])
    need(r.returncode == 0, r)


def texts_of_csv():
    record_texts()
    with open(export("csv"), newline="", encoding="utf-8") as f:
        got = [r["text"] for r in csv.DictReader(f) if r["kind"] == "event"]
    need([told(t) for t in got] == [as_bytes(t) for t in TEXTS], got)


def texts_of_ctf():
    needs("babeltrace2")
    record_texts()
    got = [json.loads(re.search(r"value = \{ name = (.*) \}$", fields)[1]) for _, fields in ctf_events()]
    need([told(t) for t in got] == [as_bytes(t) for t in TEXTS], got)


def texts_of_otf2():
    needs("otf2-print")
    record_texts()
    got = [re.fullmatch(r'"(.*)" <\d+>', more[2])[1] for _, _, more in otf2_events()]
    need([told(t) for t in got] == [as_bytes(t) for t in TEXTS], got)


# ---- OTF2 ----

OTF2_TYPES = {"s": "INT", "u": "UINT", "x": "UINT", "": "UINT32", "double": "DOUBLE", "float": "FLOAT"}


def otf2_events():
    """Parameters, and what stands beside them."""
    lines = run("otf2-print", export("otf2") + "/traces.otf2").splitlines()
    for line, after in zip(lines, [*lines[1:], ""]):
        m = re.match(r'PARAMETER_\w+ +\d+ +\d+  Parameter: "(.*?)" <\d+>, Value: (.*)', line)
        more = re.match(r' +ADDITIONAL ATTRIBUTES: \("(.*?)" <\d+>; (\w+); (.*)\)$', after)
        if m and m[1] not in ("cpu", "samples lost"):
            yield m[1], m[2], more and more.groups()


def of_otf2():
    needs("otf2-print")
    record()
    got = collections.defaultdict(list)
    for parameter, shown, more in otf2_events():
        event = parameter.split(":")[0]
        if event == "bare":
            need(not more, more)
            continue
        name, kind, _ = VALUES[event]
        if not more:
            need(parameter.endswith(": unreadable") or shown.startswith('"unreadable" <'), (parameter, shown))
            got[event].append(Value(name, "unreadable", None))
            continue
        is_text = kind in ("string", "s16[2]")
        want = "STRING" if is_text else OTF2_TYPES.get(kind) or OTF2_TYPES[kind[0]] + kind[1:]
        need(more[1] == want, f"{event}: {more}, wanted {want}")
        value = re.fullmatch(r'"(.*)" <\d+>', more[2])[1] if is_text else number(more[2], kind)
        if kind == "s16[2]":
            value = [int(x) for x in value.strip("{}").split(",")]
        got[event].append(Value(more[0], "cut" if re.search(r'"\.\.\." <', shown) else "whole", value))
    need_values(got)


def half_of_otf2():
    needs("otf2-print")
    halves()
    got = list(otf2_events())
    need(got == [("half", str(2**32 - 7), ("n (low half)", "UINT32", str(2**32 - 7)))], got)


# ---- JSON, SQLite, Perfetto ----

def chrome_args():
    with open(export("chrome"), encoding="utf-8") as f:
        # JSON's -0 is an integer to Python
        for e in json.load(f, parse_int=lambda word: -0.0 if word == "-0" else int(word))["traceEvents"]:
            if e["ph"] == "i":
                yield e["name"], e["args"]


def of_chrome():
    """Numbers that JavaScript would round are texts, and so is what is not one to JSON."""
    record()
    got = collections.defaultdict(list)
    for event, args in chrome_args():
        if event == "bare":
            continue
        kind = VALUES[event][1]
        (name, value), = args.items()
        if kind == "s16[2]" and value is not None:
            value = [int(x) for x in value.strip("{}").split(",")]
        elif kind in ("double", "float") and value is not None:
            need(isinstance(value, (int, float)) or value in ("nan", "-nan", "inf", "-inf"), value)
            value = float(value)
        elif kind != "string" and value is not None:
            need(isinstance(value, int) or abs(int(value, 0)) > 2**53, value)
            value = int(str(value), 0)
        got[event].append(Value(name, "unreadable" if value is None else "whole", value))
    need_values(got, knows_cut=False)


def half_of_chrome():
    halves()
    got = list(chrome_args())
    need(got == [("half", {"n": "0xfffffff9 (low half)"})], got)


def of_sqlite():
    """Natural numbers from 2^63 on are texts, x64 from there on negative; SQLite itself has no NaN, but the text."""
    record()
    got = collections.defaultdict(list)
    with sqlite3.connect(export("sqlite")) as db:
        need(db.execute("PRAGMA foreign_key_check").fetchall() == [], "keys")
        need(db.execute("SELECT DISTINCT value_state FROM events WHERE name = 'bare'").fetchall() == [(None,)], "bare")
        rows = db.execute("SELECT name, payload, payload_type, data, value_state FROM events WHERE name <> 'bare'"
                          " ORDER BY sample_id")
        for event, name, kind, value, state in rows.fetchall():
            need((value is None) == (state == "unreadable"), (event, value, state))
            need(kind == VALUES[event][1], kind)
            if kind == "s16[2]" and value is not None:
                value = [int(x) for x in value.strip("{}").split(",")]
            elif value == "nan" and kind in ("double", "float"):
                value = math.nan
            elif kind == "u64":
                need(isinstance(value, int) or int(value) >= 2**63, value)
                value = int(value)
            elif kind == "x64":
                value %= 2**64
            got[event].append(Value(name, state, value))
    need_values(got)


def half_of_sqlite():
    halves()
    with sqlite3.connect(export("sqlite")) as db:
        got = db.execute("SELECT payload, payload_type, data, value_state FROM events").fetchall()
    need(got == [("n", "s64", 2**32 - 7, "half")], got)


def perfetto_events():
    with open(export("perfetto"), "rb") as f:
        text = subprocess.run(["protoc", "--decode=Trace", "-I", os.path.join(HERE, "proto"), "perfetto.proto"], stdin=f,
                              capture_output=True, check=True).stdout.decode()
    for p in text.split("\npacket {"):
        need(not re.search(r"^ *\d+[:{ ]", p, re.M), p)  # a field that the schema does not have
        m = re.search(r"debug_annotations \{\s*(\w+): (.*)\s+name: \"(.*)\"\s*\}", p)
        if "type: INSTANT" in p:
            yield re.search(r'^    name: "(.*)"$', p, re.M)[1], m and m.groups()


def of_perfetto():
    """Its value is in the event's name, too; there a text that is cut has dots."""
    needs("protoc")
    record()
    got = collections.defaultdict(list)
    fields = {"s": "int_value", "u": "uint_value", "": "pointer_value", "x": "pointer_value", "double": "double_value",
              "float": "double_value", "string": "string_value", "s16[2]": "string_value"}
    for shown, more in perfetto_events():
        event = shown.split()[0]
        if event == "bare":
            need(not more, more)
            continue
        name, kind, _ = VALUES[event]
        if not more:
            need(shown.endswith("=unreadable"), shown)
            got[event].append(Value(name, "unreadable", None))
            continue
        need(more[0] == (fields.get(kind) or fields[kind[0]]), (event, more))
        value = json.loads(more[1]) if more[0] == "string_value" else number(more[1], kind)
        if kind == "s16[2]":
            value = [int(x) for x in value.strip("{}").split(",")]
        got[event].append(Value(more[2], "cut" if shown.endswith('\\"...') else "whole", value))
    need_values(got)


def half_of_perfetto():
    needs("protoc")
    halves()
    got = list(perfetto_events())
    need(got == [("half n=0xfffffff9 (low half)", None)], got)


with Suite("export_values") as suite:
    suite.case("CTF: fields of babeltrace2", of_ctf)
    suite.case("... of a low half", half_of_ctf)
    suite.case("Parquet: columns of DuckDB", of_parquet)
    suite.case("... of a data set", of_dataset)
    suite.case("csv: columns of Python's reader", of_csv)
    suite.case("... of a low half", half_of_table)
    suite.case("OTF2: attributes of otf2-print", of_otf2)
    suite.case("... of a low half", half_of_otf2)
    suite.case("Chrome: arguments", of_chrome)
    suite.case("... of a low half", half_of_chrome)
    suite.case("SQLite: data", of_sqlite)
    suite.case("... of a low half", half_of_sqlite)
    suite.case("Perfetto: annotations", of_perfetto)
    suite.case("... of a low half", half_of_perfetto)
    suite.case("csv: texts can be told", texts_of_csv)
    suite.case("CTF: texts can be told", texts_of_ctf)
    suite.case("OTF2: texts can be told", texts_of_otf2)
