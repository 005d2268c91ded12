#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mk_expand: every option, to the letter, and what it makes of damaged files."""

import itertools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import BUILD, Suite, need, rnd  # noqa: E402
import mkdat  # noqa: E402

EXPAND = os.path.join(BUILD, "board/toolkit/mk_expand")


def expand(*args, want=0, stdin=b""):
    r = subprocess.run([EXPAND, *args], input=stdin, capture_output=True, timeout=60)
    need(r.returncode == want, f"mk_expand {args}: {r.returncode} {r.stderr[:1000]}")
    return r.stdout.decode(), r.stderr.decode()


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def one_sentence(text, *words):
    need(len(text.splitlines()) == 1, f"not one sentence: {text!r}")
    need(any(w in text for w in words), f"none of {words} in {text!r}")


def random_sample(t, n=None):
    c = [rnd.getrandbits(32) for _ in range(16)] if rnd.random() < 0.3 else None
    return mkdat.pack(rnd.randrange(8), t, rnd.getrandbits(32), rnd.getrandbits(64) if n is None else n, c,
                      rnd.choice((0, 2, 4, 6)))  # fmt: skip


# ---- every option: the numbers of each line, read back in the radix that was asked for ----

BASE = {"d": 10, "o": 8, "x": 16}


def option_set(flags, radices, joined):
    args = [f"-{f}" for f in flags]
    for letter, radix in radices.items():
        if radix:
            args += [f"-{letter}{radix}"] if joined else [f"-{letter}", radix]
    rnd.shuffle(args) if joined else None
    return args


def check_lines(samples, flags, radices):
    joined = rnd.random() < 0.5
    args = option_set(flags, radices, joined)
    out, err = expand(*args)
    need(not err, err)
    lines = out.splitlines()
    base = {k: BASE[r or "x"] for k, r in radices.items()}
    if "h" in flags:
        head, lines = lines[:2], lines[2:]
        need(("ELAPSED" if "e" in flags else "TIMESTAMP") in head[0], head)
        need("SOURCE" in head[0] and "USER DATA" in head[0], head)
        need(("CPU TY SO FO NA" in head[0]) == ("x" in flags), head)
    for header, time, source, data, counters in samples:
        words = lines.pop(0).split()
        if "x" in flags:
            need(words[0] == str(header >> 5), f"CPU {words}")
            need(words[1] == f"{header >> 3 & 3:02b}", f"type {words}")
            need(words[2:5] == [str(header >> i & 1) for i in (2, 1, 0)], f"flags {words}")
            words = words[5:]
        else:
            need(words.pop(0) == f"{header:02x}", f"header {header:02x}")
        want = (time - samples[0][1] + (1 << 55)) % (1 << 56) - (1 << 55) if "e" in flags else time
        need([int(words[0], base["t"]), int(words[1], base["s"]), int(words[2], base["u"])] ==
             [want, source, data], f"{args}: {words}, not {want} {source} {data}")  # fmt: skip
        need(len(words) == 3, words)
        if "c" in flags and counters:
            got = (lines.pop(0) + lines.pop(0)).split()
            need([int(w, base["r"]) for w in got] == list(counters), f"{args}: {got}")
    need(not lines, f"more lines: {lines[:3]}")


def all_options():
    # three runs one after the other, each with its own time: what begins a run stands out from the noise
    t = rnd.randrange(1 << 56)
    data = b""
    for jump in (0, -(1 << 20), 1 << 54):
        t += jump
        for _ in range(12):
            data += random_sample(t % (1 << 56))
            t += rnd.choice((1, 1000, 1 << 33))
    write("mk.dat", data)
    samples = mkdat.unpack(data)
    for n in range(6):
        for flags in itertools.combinations("cehx", n):
            for _ in range(6):
                check_lines(samples, flags, {k: rnd.choice("dox") for k in "rstu"})
            check_lines(samples, flags, dict.fromkeys("rstu"))


def layout():
    """Exactly these bytes."""
    write("mk.dat", mkdat.pack(0, 0x3D09, 1, 10) + mkdat.pack(3, 1 << 40, 0xFFFFFFFF, 2**64 - 1, range(16), 6))
    rows = "{:02x}  {:014x}  {:08x}  {:016x}\n"
    want = rows.format(0x10, 0x3D09, 1, 10) + rows.format(0x7E, 1 << 40, 0xFFFFFFFF, 2**64 - 1)
    need(expand()[0] == want, expand()[0])
    out = expand("-cx", "-td", "-uo", "-sd", "-rd")[0]
    want = (f"  0 10  0  0  0  {0x3D09:17}  {1:10}  {10:022o}\n"
            f"  3 11  1  1  0  {1 << 40:17}  {0xFFFFFFFF:10}  {2**64 - 1:022o}\n")  # fmt: skip
    want += "".join("    " + " ".join(f"{i:10}" for i in range(r, r + 8)) + "\n" for r in (0, 8))
    need(out == want, out)
    need(expand("-h")[0].splitlines()[0] == "HD  TIMESTAMP       SOURCE    USER DATA", expand("-h")[0])


def radix_is_needed():
    """As the report says: the user must also specify x, d or o."""
    write("mk.dat", mkdat.pack(0, 1, 1, 1))
    for letter in "rstu":
        one_sentence(expand(f"-{letter}", want=2)[1], "needs an argument")
        for bad in ("b", "dx", "", "-e", "10"):
            one_sentence(expand(f"-{letter}", bad, want=2)[1], "choose one of d|o|x")


# ---- damage ----


def numbers(text):
    return [int(line.split()[3], 16) for line in text.splitlines()]


def pieces(n, start, first):
    """n samples numbered from `first`; their times go on."""
    out = []
    for i in range(n):
        start += rnd.randrange(10, 5000)
        out.append(random_sample(start, first + i))
    return out, start


def garbage_between():
    """Each stretch of samples comes out again, but for those next to the damage."""
    lost = extra = 0
    for _ in range(60):
        data, t, first, places = b"", rnd.randrange(1 << 50), 1 << 40, rnd.randrange(1, 6)
        truth = []
        for _ in range(places):
            good, t = pieces(rnd.randrange(60, 200), t, first + len(truth))
            truth += range(first + len(truth), first + len(truth) + len(good))
            data += b"".join(good)
            kind, n = rnd.randrange(4), rnd.randrange(1, 300)
            data += (rnd.randbytes(n), bytes(n), b"\xff" * n, data[-n // 2 :])[kind]
        write("mk.dat", data)
        got = numbers(expand()[0])
        lost += len(set(truth) - set(got))
        extra += len([g for g in got if g not in set(truth)])
        need([g for g in got if g in set(truth)] == sorted(set(got) & set(truth))
             or any(got.count(g) > 1 for g in got), "order")  # fmt: skip
        need(len(set(truth) - set(got)) <= 4 * places, f"{len(truth)} samples, {len(set(truth) - set(got))} lost")
    print(f"# next to 60 damaged files' places {lost} samples lost, {extra} that were none")


def cut_anywhere():
    """A file without its first bytes: everything from the next whole sample on."""
    for _ in range(150):
        good, _ = pieces(50, rnd.randrange(1 << 40), 1 << 40)
        cut = rnd.randrange(len(b"".join(good[:3])))
        at, whole = 0, []
        for i, g in enumerate(good):
            if at >= cut:
                whole.append((1 << 40) + i)
            at += len(g)
        write("mk.dat", b"".join(good)[cut:])
        out, err = expand()
        got = numbers(out)
        need(got[-len(whole) :] == whole, f"cut {cut}: {len(got)} of {len(whole)}")
        need(len(got) <= len(whole) + 4, f"cut {cut}: {len(got)} samples of {len(whole)}")
    # the same for the regular kind that is easy to read out of step
    for source in (7, 64 << 22, 0x10000000, 0xF0000000):
        for high in (0, 1, 0x7FFDE348, 0xFFFFFFFF):
            good = [mkdat.pack(0, (0x10 << 24) + 300 * i, source, high << 32 | i) for i in range(100)]
            for cut in range(0, 40, 4):
                write("mk.dat", b"".join(good)[cut:])
                got = [n & 0xFFFFFFFF for n in numbers(expand()[0])]
                first = (cut + 19) // 20
                # (data that count up below a constant that looks like a header would be ambiguous)
                need(got == list(range(first, 100)), f"source {source:x} data {high:x} cut {cut}: {got[:5]}")


def byte_account():
    """Every byte is in a sample or is counted."""
    for _ in range(200):
        data = bytearray(b"".join(pieces(30, 0, 0)[0]))
        for _ in range(rnd.randrange(8)):
            at = rnd.randrange(len(data))
            how = rnd.randrange(3)
            if how == 0:
                data[at] = rnd.randrange(256)
            elif how == 1:
                del data[at : at + rnd.randrange(50)]
            else:
                data[at:at] = rnd.randbytes(rnd.randrange(50))
        write("mk.dat", data)
        r = subprocess.run([EXPAND, "-x"], capture_output=True, timeout=60)
        need(r.returncode in (0, 1), r)
        types = [line.split()[1] for line in r.stdout.decode().splitlines()]
        used = sum(84 if t == "11" else 20 for t in types)
        text = r.stderr.decode()
        if r.returncode == 0:
            left = sum(int(w) for w, u in zip(text.split(), text.split()[1:]) if u in ("byte", "bytes"))
            need(used + left == len(data), f"{used} used, {left} left out, {len(data)} there: {text}")


def many_at_once():
    """More than the reader's buffer, by operands and by standard input."""
    a, t = pieces(30000, 0, 0)
    b, _ = pieces(20000, t, 30000)
    write("a", b"".join(a))
    write("b", b"".join(b) + b"tail")
    out, err = expand("a", "b")
    need(numbers(out) == list(range(50000)), "two files")
    one_sentence(err, "b: the last sample is cut off: 4 bytes", "b: 4 bytes")
    need(expand("-", stdin=b"".join(a))[0] == expand("a")[0], "standard input")


def bad_files():
    one_sentence(expand(want=1)[1], "cannot open mk.dat: No such file")
    write("mk.dat", b"")
    one_sentence(expand(want=1)[1], "mk.dat is empty")
    for junk in (bytes(999), b"\xff" * 999, b"x", b"hello, world\n" * 100):
        write("mk.dat", junk)
        one_sentence(expand(want=1)[1], "no sample")
    one_sentence(expand(".", want=1)[1], "Is a directory")
    write("mk.dat", b"".join(pieces(2000, 0, 0)[0]))
    with open("/dev/full", "w") as full:
        r = subprocess.run([EXPAND], stdout=full, stderr=subprocess.PIPE)
        need(r.returncode == 1, r.returncode)
        one_sentence(r.stderr.decode(), "cannot write the output: No space left on device")
    p = subprocess.run(f"{EXPAND} | head -n 1", shell=True, capture_output=True)
    need(p.returncode == 0 and not p.stderr, p.stderr)
    one_sentence(expand("-q", want=2)[1], "unknown option '-q'")
    need(expand("--help")[0].startswith("Usage: mk_expand ") and "--version" not in expand("--version")[0], "help")


with Suite("mk-expand") as s:
    s.case("every option, every radix", all_options)
    s.case("the layout, byte by byte", layout)
    s.case("a radix is needed", radix_is_needed)
    s.case("garbage between samples", garbage_between)
    s.case("a file that begins inside a sample", cut_anywhere)
    s.case("every byte is accounted for", byte_account)
    s.case("large files, several files, standard input", many_at_once)
    s.case("missing, empty and foreign files, a full disk, usage", bad_files)
