#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""bad_input.py - corrupt files, impossible programs, unwritable and full outputs.

Each must give one clear sentence on stderr, the documented exit status, and no crash; and the
program runs untraced whenever tracing it is impossible.
"""

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
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import KRON, Skip, Suite, children_of, compile_c, grow_disk, is_traced, need, rnd, small_disk, truth, wait_for

READERS = ("report", "replay", "dump", "info", "recover")
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def kron(*args, timeout=60, **kw):
    r = subprocess.run(
        [KRON, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, **kw
    )
    r.stdout, r.stderr = r.stdout.decode("utf-8", "replace"), r.stderr.decode("utf-8", "replace")
    return r


def no_crash(r, what):
    need(r.returncode >= 0 and r.returncode not in [128 + s for s in CRASHES],
         f"{what} died: {r.returncode} {r.stderr[-500:]}")  # fmt: skip
    for word in ("AddressSanitizer", "runtime error:", "assert"):
        need(word not in r.stderr, f"{what}: {r.stderr[-2000:]}")


def one_sentence(r, status, what, contains=()):
    no_crash(r, what)
    statuses = status if isinstance(status, tuple) else (status,)
    need(r.returncode in statuses, f"{what}: status {r.returncode}, not {status}: {r.stderr}")
    lines = r.stderr.splitlines()
    need(len(lines) == 1, f"{what}: {len(lines)} lines, not one sentence: {r.stderr!r}")
    need(lines[0].startswith("kron"), f"{what}: says not who speaks: {lines[0]!r}")
    need(len(lines[0]) > 15, f"{what}: {lines[0]!r} is not a sentence")
    for words in contains:
        need(any(w in lines[0].lower() for w in words.split("|")), f"{what}: no {words}: {lines[0]}")


# ---- ELF files ----

PROGRAM = b""  # bytes of a good program, with symbols


def put(data, offset, fmt, *values):
    b = bytearray(data)
    struct.pack_into(fmt, b, offset, *values)
    return bytes(b)


def header(cls=2, machine=62, kind=2, version=1):
    ident = b"\x7fELF" + bytes([cls, 1, version, 0]) + bytes(8)
    if cls == 1:
        return ident + struct.pack("<HHIIIIIHHHHHH", kind, machine, 1, 0x1000, 52, 0, 0, 52, 32, 0, 40, 0, 0)
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0x401000, 64, 0, 0, 64, 56, 0, 64, 0, 0)


def write(name, data, mode=0o755):
    with open(name, "wb") as f:
        f.write(data)
    os.chmod(name, mode)
    return "./" + name


def not_an_elf():
    os.mkdir("dir")
    write("empty", b"")
    write("text", b"hello, I am text\n" * 10)
    write("magic", b"\x7fELF")
    write("i386", header(cls=1, machine=3))
    write("aarch64", header(machine=183))
    write("big-endian", b"\x7fELF\x02\x02\x01" + header()[7:])
    cases = {
        "dir": "directory|regular", "empty": "elf|empty", "text": "elf", "magic": "elf|short|trunc",
        "i386": "32", "aarch64": "machine|aarch64|x86-64", "big-endian": "endian|order|elf",
        "missing": "no such|exist", "/dev/zero": "elf|regular|device", "/dev/null": "elf|regular|empty|device",
    }  # fmt: skip
    for name, words in cases.items():
        for summary in ((), ("--summary", "--json")):
            r = kron("list", *summary, name)
            one_sentence(r, 1, f"list {name}", [words])
            need(r.stdout == "", f"list {name} prints {r.stdout[:100]}")


def truncated():
    """list of every kind of truncation: an error or a result, never a crash."""
    sizes = [0, 1, 4, 15, 16, 17, 52, 63, 64, 65, 100, len(PROGRAM) - 1]
    sizes += [rnd.randrange(len(PROGRAM)) for _ in range(40)]
    for n in sizes:
        f = write("cut", PROGRAM[:n])
        r = kron("list", f)
        no_crash(r, f"list of {n} bytes")
        need(r.returncode in (0, 1), f"list of {n} bytes: {r.returncode} {r.stderr}")
        if r.returncode:
            one_sentence(r, 1, f"list of {n} bytes")


def lying_headers():
    shoff, = struct.unpack_from("<Q", PROGRAM, 0x28)
    phnum, shentsize, shnum = struct.unpack_from("<HHH", PROGRAM, 0x38)
    files = [put(PROGRAM, at, "<Q", v)
             for at in (0x18, 0x20, 0x28) for v in (0, 1, 2**63, 2**64 - 1, len(PROGRAM) - 8)]
    files += [put(PROGRAM, at, "<H", v)
              for at in (0x34, 0x36, 0x38, 0x3A, 0x3C, 0x3E) for v in (0, 1, 0xFFFF, 0xFF00)]
    for i in range(shnum):  # offset, size, link, entsize of each section
        at = shoff + i * shentsize
        files += [put(PROGRAM, at + 24, "<Q", 2**64 - 16), put(PROGRAM, at + 32, "<Q", 2**63),
                  put(PROGRAM, at + 40, "<I", 0xFFFFFFF0), put(PROGRAM, at + 56, "<Q", 0),
                  put(PROGRAM, at + 56, "<Q", 2**62), put(PROGRAM, at, "<I", 0xFFFFFFFF)]
    for i in range(phnum):
        at = 64 + 56 * i
        files += [put(PROGRAM, at + 8, "<Q", 2**64 - 4096), put(PROGRAM, at + 16, "<Q", 2**64 - 1),
                  put(PROGRAM, at + 32, "<Q", 2**63), put(PROGRAM, at + 40, "<Q", 2**64 - 1)]
    rnd.shuffle(files)
    for n, data in enumerate(files[:150]):
        write("lying", data)
        r = kron("list", "--summary", "./lying", timeout=20)
        no_crash(r, f"list of a lying header (kept as {os.getcwd()}/lying)")
        need(r.returncode in (0, 1), f"{r.returncode} {r.stderr}")
        need(len(r.stderr.splitlines()) <= 1, r.stderr)


def flipped():
    """Random bytes changed, anywhere."""
    for _ in range(60):
        data = bytearray(PROGRAM)
        for _ in range(rnd.choice((1, 5, 50, 500))):
            data[rnd.randrange(64, len(data))] = rnd.randrange(256)
        write("flipped", bytes(data))
        r = kron("list", "./flipped", timeout=20)
        no_crash(r, "list of flipped bytes")


def kernel_outcome(f):
    """Status and output of the program, or 126 when the kernel refuses it."""
    try:
        return outcome([os.path.abspath(f)])
    except OSError:
        return 126, b""


def outcome(cmd):
    r = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    return r.returncode, r.stdout


def hostile_but_runnable():
    """Symbols and unwind tables are garbage, the code is not: behaves as untraced."""
    shoff, = struct.unpack_from("<Q", PROGRAM, 0x28)
    _, shentsize, shnum = struct.unpack_from("<HHH", PROGRAM, 0x38)
    want = outcome([write("good", PROGRAM)])
    need(want[0] == 3, want)
    for i in range(shnum):
        kind, = struct.unpack_from("<I", PROGRAM, shoff + i * shentsize + 4)
        off, size = struct.unpack_from("<QQ", PROGRAM, shoff + i * shentsize + 24)
        link, = struct.unpack_from("<I", PROGRAM, shoff + i * shentsize + 40)
        flags, = struct.unpack_from("<Q", PROGRAM, shoff + i * shentsize + 8)
        if kind in (0, 8) or flags & 2 and kind != 0x70000001:
            continue  # only what the loader does not need: symbols, strings, .eh_frame
        for _ in range(2):
            junk = bytes(rnd.randrange(256) for _ in range(size))
            f = write("hostile", PROGRAM[:off] + junk + PROGRAM[off + size :])
            r = subprocess.run([KRON, "record", "-q", "-o", "trace", "--", f],
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            need((r.returncode, r.stdout) == want,
                 f"section {i}: {r.returncode} {r.stdout} {r.stderr}, not {want}")  # fmt: skip


def instructions(name):
    """Where they start in .text, as objdump has it."""
    lines = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", name],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(l.split(":")[0], 16) for l in lines if l.startswith(" ") and ":" in l]


def lie(program, starts, chance):
    """The program with functions' symbols moved, made global, and given other sizes."""
    data = bytearray(program)
    shoff, = struct.unpack_from("<Q", data, 0x28)
    shnum, = struct.unpack_from("<H", data, 0x3C)
    way, share = chance.choice(("near", "start", "anywhere", "size", "each", "one")), chance.choice((0.1, 0.3, 0.5, 0.9))
    for i in range(shnum):
        kind, = struct.unpack_from("<I", data, shoff + i * 64 + 4)
        off, size = struct.unpack_from("<QQ", data, shoff + i * 64 + 24)
        if kind != 2:
            continue
        symbols = [s for s in range(off + 24, off + size, 24)
                   if data[s + 4] & 15 == 2 and struct.unpack_from("<Q", data, s + 8)[0]]
        for s in [chance.choice(symbols)] if way == "one" else symbols:
            value, length = struct.unpack_from("<QQ", data, s + 8)
            how = way if way not in ("each", "one") else chance.choice(("near", "start", "anywhere", "size"))
            if way != "one" and chance.random() > share:
                continue
            value = {"near": value + chance.randrange(-9, 40), "start": chance.choice(starts),
                     "anywhere": chance.randrange(starts[0], starts[-1]), "size": value}[how]
            if chance.random() < 0.7:
                data[s + 4] = 0x12
            length = chance.choice((0, 1, 3, length, length // 2, length + 20, 2**40, 2**64 - 1))
            struct.pack_into("<QQ", data, s + 8, value % 2**64, length)
    return bytes(data)


def lying_symbols(*flags):
    """Functions that start inside of instructions, or of other functions: refused, or traced as they are."""
    chance = random.Random(20) if flags else rnd  # nobody can know all without .eh_frame
    compile_c("truth", "bins/lied_about.c", "-g0", *flags)
    with open("truth", "rb") as f:
        program = f.read()
    starts, want, refused = instructions("truth"), outcome(["./truth"]), 0
    for n in range(60):
        if os.path.exists("lies"):
            os.remove("lies")
        f = write("lies", lie(program, starts, chance))
        r = subprocess.run([KRON, "record", "-q", "-o", "trace", "--", f],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        need((r.returncode, r.stdout) == want, f"file {n}: {r.returncode} {r.stdout} {r.stderr}, not {want}")
        with open("trace/tasks") as t:
            refused += "start inside of instructions" in t.read()
    need(refused > 5, f"{refused} of 60 have a note")
    need("inside of an instruction" not in kron("list", "truth").stdout, "it finds lies where none are")


def corrupt_programs():
    """What the kernel refuses is 126 with one sentence; what it starts ends as untraced."""
    for n in (0, 64, 200, len(PROGRAM) // 2):
        f = write("cut", PROGRAM[:n])
        want = kernel_outcome(f)
        r = kron("record", "-o", "trace", "-q", "--", f)
        if n and want[0] == 126:  # an empty file is a script without a line
            one_sentence(r, 126, f"record of {n} bytes")
        else:
            want = want if n else (0, b"")
            need(r.returncode == want[0], f"record of {n} bytes: {r.returncode}, not {want[0]}")
    for name, data in (("i386", header(cls=1, machine=3)), ("aarch64", header(machine=183))):
        f = write(name, data)
        want = kernel_outcome(f)[0]
        r = kron("record", "-o", "trace", "-q", "--", f)
        need(r.returncode == want,
             f"record {name}: {r.returncode}, not {want}: {r.stderr}")  # fmt: skip


# ---- files to be patched ----


def no_rest():
    left = [f for f in os.listdir(".") if ".kron-" in f]
    need(not left, f"left behind: {left}")


def patch_refuses():
    """One sentence, status 1, and OUT is as it was."""
    write("program", PROGRAM)
    write("out", b"as it was")
    for name, data in (("text", b"hello\n"), ("cut", PROGRAM[:3000]), ("i386", header(cls=1, machine=3)),
                       ("empty", b""), ("relocatable", header(kind=1))):  # fmt: skip
        f = write(name, data)
        one_sentence(kron("patch", "-o", "out", f), 1, f"patch of {name}")
    # the last segment lies 22 bytes further on than its place in the file has it
    phoff, phnum = struct.unpack_from("<Q", PROGRAM, 0x20)[0], struct.unpack_from("<H", PROGRAM, 0x38)[0]
    at = [p for p in range(phoff, phoff + 56 * phnum, 56) if PROGRAM[p : p + 4] == b"\1\0\0\0"][-1]
    moved = bytearray(PROGRAM)
    struct.pack_into("<Q", moved, at + 16, struct.unpack_from("<Q", moved, at + 16)[0] + 22)
    one_sentence(kron("patch", "-o", "out", write("moved", bytes(moved))), 1, "patch of moved", ["mapped"])
    one_sentence(kron("patch", "-o", "out", "./none"), 1, "patch of nothing", ["no such file"])
    one_sentence(kron("patch", "-o", "dir/none/out", "./program"), 1, "no folder")
    one_sentence(kron("patch", "-o", "/dev/null", "./program"), 1, "a device", ["regular"])
    need(open("out", "rb").read() == b"as it was", "OUT has changed")
    no_rest()


def patch_flipped():
    """A damaged file is refused or becomes one that kron list understands."""
    for i in range(40):
        data = bytearray(PROGRAM)
        for _ in range(rnd.choice((1, 5, 50))):
            data[rnd.randrange(64, len(data))] = rnd.randrange(256)
        f = write("flipped", bytes(data))
        r = kron("patch", "-q", "-o", "out", f, *(["--jumps"] if i & 1 else []), timeout=20)
        if r.returncode:
            one_sentence(r, 1, "patch of flipped bytes")
        else:
            r = kron("list", "--summary", "./out")
            need(r.returncode == 0, f"list of what was patched: {r.stderr}")
    no_rest()


def offset_of(data, vaddr):
    """Where an address lies in an ELF file."""
    phoff, = struct.unpack_from("<Q", data, 0x20)
    phnum, = struct.unpack_from("<H", data, 0x38)
    for i in range(phnum):
        kind, _, off, at, _, size = struct.unpack_from("<IIQQQQ", data, phoff + 56 * i)
        if kind == 1 and at <= vaddr < at + size:
            return vaddr - at + off
    raise ValueError(f"{vaddr:#x} is not in the file")


def patched_damaged():
    """What a patched file says about its probes is wrong: it runs as it would have, and a note says
    why it is untraced."""
    write("program", PROGRAM)
    r = kron("patch", "-q", "-o", "patched", "./program")
    need(r.returncode == 0, r.stderr)
    good = open("patched", "rb").read()
    want = kernel_outcome("./program")
    at = good.index(b"kron\0\0\0\0") + 8
    block, block_len, info, info_len = struct.unpack_from("<QQQQ", good, at + 8)
    block = offset_of(good, block)
    for i in range(30):
        data = bytearray(good)
        # not the offset of the description (24 to 31): the section table has it, too
        note = rnd.choice([k for k in range(8, 64) if not 24 <= k < 32])
        place = rnd.choice((at + note, info + rnd.randrange(info_len),
                            block + rnd.randrange(block_len)))
        data[place] ^= 1 << rnd.randrange(8)
        f = write("damaged", bytes(data))
        r = kron("record", "-o", "trace", "--", f, timeout=30)
        no_crash(r, "record of a damaged patched file")
        need(r.returncode == want[0], f"status {r.returncode}, not {want[0]}: {r.stderr}")
        need("damaged" in r.stderr or "another version" in r.stderr or "is damaged" in r.stderr
             or "probes sleep" in r.stderr, f"{block:#x} {place:#x}: {r.stderr}")  # fmt: skip
        one_sentence(kron("list", f), 1, "list of it")


def patch_full_disk():
    with small_disk("tiny", "64k"):
        write("tiny/out", b"as it was")
        one_sentence(kron("patch", "-o", "tiny/out", "/bin/bash"), 1, "a full disk", ["space"])
        need(os.listdir("tiny") == ["out"], f"{os.listdir('tiny')}")
        need(open("tiny/out", "rb").read() == b"as it was", "OUT has changed")


def patch_killed():
    """Whenever it is killed, OUT is not there, or whole."""
    r = kron("patch", "-q", "-o", "whole", "/bin/bash")
    need(r.returncode == 0, r.stderr)
    want = open("whole", "rb").read()
    for i in range(25):
        if os.path.exists("out"):
            os.remove("out")
        p = subprocess.Popen([KRON, "patch", "-q", "-o", "out", "/bin/bash"])
        time.sleep(rnd.random() * 0.3)
        p.send_signal(rnd.choice((signal.SIGKILL, signal.SIGTERM)))
        p.wait()
        if os.path.exists("out"):
            need(open("out", "rb").read() == want, "half of OUT")


# ---- programs that cannot be traced ----


def no_program():
    one_sentence(kron("record", "-o", "t", "--", "./missing"), 127, "missing", ["no such|not found"])
    one_sentence(kron("record", "-o", "t", "--", "no-such-program-in-path"), 127, "missing in PATH",
                 ["no such|not found"])
    write("locked", PROGRAM, 0o644)
    one_sentence(kron("record", "-o", "t", "--", "./locked"), 126, "locked", ["permission|executable"])
    os.mkdir("dir")
    one_sentence(kron("record", "-o", "t", "--", "./dir"), 126, "directory", ["permission|directory"])
    r = kron("record")
    no_crash(r, "record without a program")
    need(r.returncode in (2, 125) and r.stderr, f"{r.returncode} {r.stderr}")
    need(not os.path.exists("kron.data"), "a trace of nothing")


def runs_untraced(path, words):
    want = outcome([path])
    r = kron("record", "-o", "trace", "--", path)
    need((r.returncode, r.stdout.encode()) == want, f"{r.returncode} {r.stdout!r}, not {want}")
    need(any(w in r.stderr.lower() for w in words.split("|")), f"no word of {words}: {r.stderr!r}")
    no_crash(r, path)
    info = truth.kron_json("info", "trace")
    need(info["samples"] == 0, f"{info['samples']} samples")


def static_program():
    for path, flag in ("./static", "-static"), ("./static-pie", "-static-pie"):
        compile_c(path, "torture/process/plain.c", flag, "-w")
        want = outcome([path])
        r = kron("record", "-o", "trace", "--", path)
        need((r.returncode, r.stdout.encode()) == want, f"{r.returncode} {r.stdout!r}, not {want}")
        need("untraced" not in r.stderr, r.stderr)
        no_crash(r, path)
        need(truth.kron_json("info", "trace")["samples"] > 0, "no samples")


def setuid_program():
    if os.getuid() != 0:
        raise Skip("needs root")
    compile_c("setuid", "torture/process/plain.c", "-w")
    os.chown("setuid", 65534, 65534)
    os.chmod("setuid", 0o6755)
    os.chmod(".", 0o755)
    if os.statvfs(".").f_flag & os.ST_NOSUID:
        raise Skip("mounted nosuid")
    runs_untraced("./setuid", "setuid|set-user|privilege|secure")


def through_the_loader():
    """Started as an argument of ld.so, the program is traced or not, but runs."""
    compile_c("plain", "torture/process/plain.c", "-w")
    want = outcome(["./plain"])
    r = kron("record", "-o", "trace", "-q", "--", "/lib64/ld-linux-x86-64.so.2", "./plain")
    need((r.returncode, r.stdout.encode()) == want, f"{r.returncode} {r.stdout} {r.stderr}")


# ---- outputs ----


def unwritable_output():
    write("file", b"precious")
    os.mkdir("precious")
    write("precious/data", b"data")
    for o in ("/proc/kron.data", "/nonexistent/kron.data", "file/kron.data", "file", "precious", "/dev/null", ""):
        r = kron("record", "-o", o, "--", "/bin/true")
        one_sentence(r, 125, f"-o {o!r}")
    need(open("file", "rb").read() == b"precious", "the file is gone")
    need(os.listdir("precious") == ["data"], "the folder was used")


def second_record():
    p = subprocess.Popen([KRON, "record", "-q", "-o", "trace", "--", "sleep", "1000"])
    traced = []
    try:
        traced = wait_for(lambda: list(filter(is_traced, children_of(p.pid))), "the program")
        wait_for(lambda: os.path.exists("trace/session"), "the first trace")
        r = kron("record", "-o", "trace", "--", "/bin/true")
        one_sentence(r, 125, "a second record", ["already|another|in use|lock|records|busy"])
        need(os.path.exists("trace/session"), "the first trace is gone")
    finally:
        for c in traced:
            os.kill(c, signal.SIGTERM)
        p.wait(60)
    need(kron("info", "trace").returncode == 0, "the first trace cannot be read")


def replaced_output():
    """The previous trace becomes DIR.old; an older one goes."""
    for word in ("first", "second", "third"):
        need(kron("record", "-q", "-o", "trace", "--", "/bin/echo", word).returncode == 0, word)
    need("third" in open("trace/session").read(), "trace is not the last one")
    need("second" in open("trace.old/session").read(), "trace.old is not the one before")
    need(sorted(os.listdir(".")) == ["trace", "trace.old"], os.listdir("."))


def lost_and_more(trace, is_cut):
    """Where a number of lost samples stands, it says whether there are others that the trace has not got."""
    note = " lost so far, and others may be missing: the trace is not complete"
    for reader in ["report"], ["report", "--totals"], ["info"]:
        x = kron(*reader, trace).stdout
        need(" lost" in x and (note in x) == is_cut, f"{reader}: {x}")
    totals = json.loads(kron("report", "--totals", "--json", trace).stdout)
    need(totals["complete"] == (not is_cut), totals)


def full_disk():
    """The program ends as ever, what fitted can be read, and nothing that was captured is lost:
    with room again, recover adds the rest."""
    compile_c("triggers", "bins/triggers.c")
    with small_disk("small", "1m"):
        try:
            r = kron("record", "-o", "small/trace", "--", "./triggers", "2", "300000")
            no_crash(r, "record")
            need(r.stdout == "2 threads, 300000 calls each\n", f"{r.stdout} {r.stderr}")
            need(r.returncode in (0, 125), f"{r.returncode} {r.stderr}")
            about = [x for x in r.stderr.splitlines() if "space" in x.lower()]
            need(len(about) == 1, f"not one sentence about it: {r.stderr!r}")
            for reader in ("info", "report", "dump", "replay"):
                x = kron(reader, "small/trace")
                need(x.returncode == 0, f"{reader}: {x.returncode} {x.stderr}")
            t = truth.Trace("small/trace")
            need(t.samples > 1000, f"only {t.samples} samples")
            before = truth.kron_json("info", "small/trace")
            need(before["samples"] == t.samples, f"info {before['samples']}, stored {t.samples}")
            lost_and_more("small/trace", r.returncode != 0)
            grow_disk("small", "200m")
            x = kron("recover", "small/trace")
            need(x.returncode == 0, f"recover: {x.returncode} {x.stderr}")
            lost_and_more("small/trace", False)
            t = truth.Trace("small/trace")
            info = truth.kron_json("info", "small/trace")
            need(not t.problems, t.problems[:3])
            need(info["samples"] == t.samples, f"info {info['samples']}, stored {t.samples}")
            # what the sentence promised: so many in the trace, so many more in shared memory
            promised = re.search(r"([\d,]+) samples are in .*, ([\d,]+) more in", about[0])
            need(promised, f"no numbers in {about[0]!r}")
            wanted = sum(int(n.replace(",", "")) for n in promised.groups())
            need(t.samples == wanted, f"{t.samples} after recover, {promised.groups()} promised")
            segment = t.session["segment"].lstrip("/")
            need(not os.path.lexists("/dev/shm/" + segment), f"/dev/shm/{segment} is left")
        finally:
            for line in open("small/trace/session") if os.path.exists("small/trace/session") else ():
                if line.startswith("segment=") and os.path.lexists("/dev/shm" + line[8:].strip()):
                    os.remove("/dev/shm" + line[8:].strip())


def limited(what, soft, hard=None):
    return lambda: resource.setrlimit(what, (soft, soft if hard is None else hard))


def small_files():
    """A limit on the size of files, which shared memory has, too: less buffer, or one sentence
    before the program starts."""
    for size in (0, 1, 100, 1 << 20, 30 << 20):
        r = kron("record", "-o", "trace", "--", "/bin/echo", "ran", preexec_fn=limited(resource.RLIMIT_FSIZE, size))
        one_sentence(r, 125, f"ulimit -f, {size} bytes", ["ulimit -f"])
        need("ran" not in r.stdout and not os.path.exists("trace"), f"{r.stdout} {os.listdir('.')}")
    r = kron("record", "-o", "trace", "--", "/bin/sh", "-c", "echo ran; ulimit -f",
             preexec_fn=limited(resource.RLIMIT_FSIZE, 100 << 20))
    need((r.returncode, r.stdout) == (0, f"ran\n{200 << 10}\n"), f"{r.returncode} {r.stdout} {r.stderr}")
    need(truth.kron_json("info", "trace")["samples"] > 100, "nothing was recorded")
    r = kron("record", "-b", "200M", "-o", "trace", "--", "/bin/true", preexec_fn=limited(resource.RLIMIT_FSIZE, 100 << 20))
    one_sentence(r, 125, "-b above ulimit -f", ["ulimit -f"])
    need("64 mib" in r.stderr.lower(), f"not the number that fits: {r.stderr}")


def small_address_space():
    """The buffer is mapped by kron and by each traced process."""
    limit = 500000 << 10
    r = kron("record", "-o", "trace", "--", "/bin/sh", "-c", "echo ran; ulimit -v", preexec_fn=limited(resource.RLIMIT_AS, limit))
    need((r.returncode, r.stdout) == (0, "ran\n500000\n"), f"{r.returncode} {r.stdout} {r.stderr}")
    need(truth.kron_json("info", "trace")["samples"] > 100, "nothing was recorded")
    need(int(truth.Trace("trace").session["buffer"]) <= limit // 4, "most of it is the buffer")
    r = kron("record", "-b", "1G", "-o", "trace", "--", "/bin/echo", "ran", preexec_fn=limited(resource.RLIMIT_AS, limit))
    one_sentence(r, 125, "-b above ulimit -v", ["ulimit -v"])
    fits = re.search(r": (\d+) MiB do", r.stderr)
    need(fits, f"not the number that fits: {r.stderr}")
    for mib, want in ((int(fits[1]), 0), (int(fits[1]) + 1, 125)):
        r = kron("record", "-b", f"{mib}M", "-o", "trace", "--", "/bin/echo", "ran", preexec_fn=limited(resource.RLIMIT_AS, limit))
        need(r.returncode == want, f"-b {mib}M: {r.returncode} {r.stderr}")
    r = kron("record", "-o", "trace", "--", "/bin/echo", "ran", preexec_fn=limited(resource.RLIMIT_AS, 60 << 20))
    one_sentence(r, 125, "ulimit -v, 60 MB", ["ulimit -v"])


def small_data():
    """Tables, the threads' stacks and plans are data: less than that is one sentence before the program
    starts, and what is said to be enough is enough."""
    echo = ["record", "-o", "trace", "--", "/bin/echo", "ran"]
    least = None
    for kib in (3000, 6000, 10000, 15000):
        r = kron(*echo, preexec_fn=limited(resource.RLIMIT_DATA, kib << 10))
        one_sentence(r, 125, f"ulimit -d {kib}", ["ulimit -d"])
        need("ran" not in r.stdout and not os.path.exists("trace"), f"{r.stdout} {os.listdir('.')}")
        least = int(re.search(r"needs (\d+)", r.stderr)[1])
    need(least <= 32000, f"it asks for {least} KiB")
    r = kron("record", "-L", "*", *echo[1:], preexec_fn=limited(resource.RLIMIT_DATA, (least + 200) << 10))
    need((r.returncode, r.stdout) == (0, "ran\n") and "untraced" not in r.stderr, f"{r}")
    need(truth.kron_json("info", "trace")["samples"] > 0, "nothing was recorded")
    r = kron("record", "-o", "trace", "-L", "*", "--", "/usr/bin/perl", "-e", "print `/bin/sh -c 'ulimit -d'`",
             preexec_fn=limited(resource.RLIMIT_DATA, 50000 << 10))
    need((r.returncode, r.stdout) == (0, "50000\n") and "untraced" not in r.stderr, f"{r}")
    need(truth.kron_json("info", "trace")["samples"] > 100, "nothing was recorded")


# Threads of kron's that have nothing to do end after a while: their room is taken, too.
NO_THREADS = """
import os, time
pids, in_vain = [], 0
while in_vain < 80:
    try:
        pid = os.fork()
    except BlockingIOError:
        in_vain += 1
        time.sleep(0.05)
        continue
    if not pid:
        os.closerange(0, 3)
        time.sleep(1000)
    pids.append(pid)
    in_vain = 0
os.execv("/bin/echo", ["echo", "ran", *map(str, pids)])
"""


def no_threads():
    """All processes that a user may have are there, so kron makes no thread: the program starts all the
    same, untraced, and that is said."""
    if os.geteuid():
        raise Skip("needs root, to be a user without processes")
    os.chmod("..", 0o755)
    os.chmod(".", 0o777)

    def become():
        resource.setrlimit(resource.RLIMIT_NPROC, (40, 40))
        os.setgroups([])
        os.setresgid(64321, 64321, 64321)
        os.setresuid(64321, 64321, 64321)
    argv = ["record", "-o", "trace", "--", "/usr/bin/python3", "-c", NO_THREADS]
    r = kron(*argv, preexec_fn=become)
    try:
        need(r.returncode == 0 and r.stdout.startswith("ran"), f"{r}")
        need("kron could not make a thread to answer it" in r.stderr, r.stderr)
    finally:
        for pid in map(int, r.stdout.split()[1:]):
            os.kill(pid, 9)


def few_descriptors():
    """What the hard limit allows is kron's; the program has its own."""
    r = kron("record", "-o", "trace", "--", "/bin/sh", "-c", "echo ran; ulimit -Sn; ulimit -Hn; git --version; seq 3 | xz | xz -d",
             preexec_fn=limited(resource.RLIMIT_NOFILE, 8, 256))
    need(r.returncode == 0 and r.stdout.startswith("ran\n8\n256\ngit") and r.stdout.endswith("1\n2\n3\n"),
         f"{r.returncode} {r.stdout} {r.stderr}")
    need("Too many open files" not in r.stderr and "untraced" not in r.stderr, r.stderr)
    for n in (4, 5, 8, 12, 17, 31):
        r = kron("record", "-o", "few", "--", "/bin/echo", "ran", preexec_fn=limited(resource.RLIMIT_NOFILE, n))
        one_sentence(r, 125, f"ulimit -n {n}", ["ulimit -n"])
        need(not os.path.exists("few"), "half a trace")
    r = kron("record", "-o", "trace", "--", "/bin/echo", "ran", preexec_fn=limited(resource.RLIMIT_NOFILE, 32))
    need((r.returncode, r.stdout) == (0, "ran\n") and "untraced" not in r.stderr, f"{r.returncode} {r.stdout} {r.stderr}")


def bad_options():
    for args in (("-b", "nonsense"), ("-b", "0"), ("-b", "-5"), ("-b", "99999999999T"),
                 ("--when-full", "explode"), ("--filter", "zz"), ("-g", "16"), ("-g", "-1"),
                 ("--no-such-option",)):  # fmt: skip
        r = kron("record", *args, "-o", "trace", "--", "/bin/echo", "ran")
        no_crash(r, str(args))
        need(r.returncode in (2, 125), f"{args}: {r.returncode} {r.stderr}")
        need("ran" not in r.stdout, f"{args}: the program ran")
        need(1 <= len(r.stderr.splitlines()) <= 2, f"{args}: {r.stderr!r}")
    for command in ("", "no-such-command", *READERS, "list"):
        r = kron(*([command] if command else []), "--no-such-option")
        need(r.returncode == 2, f"{command} --no-such-option: {r.returncode} {r.stderr}")


# ---- traces ----


def readers_on(path, what, statuses=(1,), timeout=30):
    for reader in READERS:
        variants = ((), ("--json",)) if reader in ("report", "dump", "info") else ((),)
        for options in variants:
            r = kron(reader, *options, path, timeout=timeout)
            name = f"{reader} {' '.join(options)} on {what}"
            no_crash(r, name)
            need(r.returncode in statuses, f"{name}: {r.returncode} {r.stderr}")
            if r.returncode:
                one_sentence(r, 1, name)


def no_trace():
    os.mkdir("empty")
    write("file", b"x" * 100)
    os.mkdir("junk")
    for name in ("session", "modules", "functions", "tasks", "refusals", "samples"):
        write(f"junk/{name}", bytes(rnd.randrange(256) for _ in range(3000)))
    os.mkdir("dirs")
    for name in ("session", "samples"):
        os.mkdir(f"dirs/{name}")
    readers_on("missing", "nothing")
    readers_on("file", "a file")
    readers_on("empty", "an empty folder")
    readers_on("junk", "random bytes", (0, 1))
    readers_on("dirs", "folders for files")
    readers_on("/dev/null", "a device")
    for reader in READERS:  # the default folder
        one_sentence(kron(reader), 1, reader, ["kron.data"])


def good_trace(calls="2000"):
    compile_c("triggers", "bins/triggers.c")
    r = kron("record", "-q", "-o", "good", "--", "./triggers", "2", calls)
    need(r.returncode == 0, r.stderr)


def damaged_traces():
    good_trace()
    names = [n for n in os.listdir("good") if os.path.isfile(f"good/{n}")]
    for n in range(40):
        shutil.rmtree("bad", ignore_errors=True)
        shutil.copytree("good", "bad")
        name = rnd.choice(names)
        with open(f"good/{name}", "rb") as f:
            data = bytearray(f.read())
        how = rnd.choice(("cut", "flip", "swap", "gone", "huge"))
        if how == "cut":
            data = data[: rnd.randrange(len(data) + 1)]
        elif how == "flip" and data:
            for _ in range(rnd.choice((1, 8, 64))):
                data[rnd.randrange(len(data))] = rnd.randrange(256)
        elif how == "swap" and data:
            at = rnd.randrange(len(data))
            data = data[at:] + data[:at]
        elif how == "huge":
            data = bytearray(bytes(data).replace(b"1", b"18446744073709551615"))
        if how == "gone":
            os.remove(f"bad/{name}")
        else:
            write(f"bad/{name}", bytes(data), 0o644)
        for reader in ("report", "replay", "dump", "info"):
            r = kron(reader, "bad", timeout=30)
            no_crash(r, f"{reader}, {name} {how}")
            need(r.returncode in (0, 1), f"{reader}, {name} {how}: {r.returncode}")
            need(len(r.stderr.splitlines()) <= 2, f"{reader}, {name} {how}: {r.stderr}")
        r = kron("recover", "bad", timeout=30)
        no_crash(r, f"recover, {name} {how}")


def torn_samples():
    """A torn last chunk costs its own samples and no others."""
    good_trace("20000")
    whole = truth.Trace("good").samples
    size = os.path.getsize("good/samples")
    for cut in (1, 19, 31, 32, 500, size // 2):
        shutil.rmtree("torn", ignore_errors=True)
        shutil.copytree("good", "torn")
        os.truncate("torn/samples", size - cut)
        # a collector that is killed writes no totals
        with open("torn/session") as f:
            lines = [l for l in f if l.split("=")[0] not in ("samples", "lost", "end_tsc", "end_mono_ns")]
        with open("torn/session", "w") as f:
            f.writelines(lines)
        info = truth.kron_json("info", "torn")
        t = truth.Trace("torn")
        least = t.samples
        need(least <= info["samples"] <= whole, f"cut {cut}: {info['samples']} of {whole}, at least {least}")
        # a byte is one sample at most
        need(info["samples"] >= whole - cut - 3276, f"cut {cut}: {info['samples']} of {whole}")


def main():
    global PROGRAM
    with Suite("bad-input") as s:
        compile_c("program", "torture/process/plain.c", "-w")
        with open("program", "rb") as f:
            PROGRAM = f.read()
        s.case("list: what is not an x86-64 ELF file", not_an_elf)
        s.case("list: truncated", truncated)
        s.case("list: lying headers", lying_headers)
        s.case("list: flipped bytes", flipped)
        s.case("record: hostile tables, good code", hostile_but_runnable)
        s.case("record: lying symbols", lying_symbols)
        s.case("record: lying symbols, without unwind tables", lying_symbols,
               "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
        s.case("record: corrupt programs", corrupt_programs)
        s.case("patch: what cannot be patched", patch_refuses)
        s.case("patch: flipped bytes", patch_flipped)
        s.case("patch: damaged afterwards", patched_damaged)
        s.case("patch: a full disk", patch_full_disk)
        s.case("patch: killed", patch_killed)
        s.case("record: no program", no_program)
        s.case("record: static programs", static_program)
        s.case("record: setuid programs run untraced", setuid_program)
        s.case("record: a program started through ld.so", through_the_loader)
        s.case("record: unwritable outputs", unwritable_output)
        s.case("record: a second one on the same output", second_record)
        s.case("record: the previous trace is kept as .old", replaced_output)
        s.case("record: a full disk, then recover", full_disk)
        s.case("record: a limit on file sizes", small_files)
        s.case("record: a limit on address space", small_address_space)
        s.case("record: a limit on data", small_data)
        s.case("record: no thread can be made", no_threads)
        s.case("record: a limit on descriptors", few_descriptors)
        s.case("bad options", bad_options)
        s.case("readers: no trace", no_trace)
        s.case("readers: damaged traces", damaged_traces)
        s.case("readers: a torn last chunk", torn_samples)


if __name__ == "__main__":
    main()
