#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mk_rdsample and mk_status on boards whose local memory the test knows word by word (a file with
a board's 32 MiB), and on emulated ones that go on sampling."""

import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import BUILD, KRON, Skip, Suite, need, rnd  # noqa: E402
import mkdat  # noqa: E402

RDSAMPLE = os.path.join(BUILD, "board/toolkit/mk_rdsample")
STATUS = os.path.join(BUILD, "board/toolkit/mk_status")
DRIVE = os.path.join(BUILD, "tests/bins/drive_board")
MEMORY = 1 << 24  # bytes
CIRCULAR, SIMPLE = 0x3201, 0x7201


def run(*args, want=0, env=None):
    r = subprocess.run(args, capture_output=True, timeout=120, env={**os.environ, **(env or {})})
    need(r.returncode == want, f"{args}: {r.returncode} {r.stderr[:1000]}")
    return r.stdout.decode(), r.stderr.decode()


def one_sentence(text, *words):
    need(len(text.splitlines()) == 1, f"not one sentence: {text!r}")
    need(any(w in text for w in words), f"none of {words} in {text!r}")


def read(name):
    with open(name, "rb") as f:
        return f.read()


def device(memory, pointer, config=CIRCULAR):
    """A file as /dev/mk0 would be: nothing moves while it is read."""
    with open("device", "wb") as f:
        f.truncate(2 * MEMORY)
        for offset, value in ((0x1204, 0x90 << 24 | config), (0x1208, pointer | 0xFF << 24)):
            f.seek(offset)
            f.write(value.to_bytes(4, "little"))
        f.seek(MEMORY)
        f.write(memory)


def rdsample(*args, want=0):
    out, err = run(RDSAMPLE, "--board", "./device", *args, want=want)
    need(not out, out)
    return err


def stream(words, resources=0.1):
    """Samples of at least this many words, with their places."""
    r = random.Random(rnd.random())
    parts, ends, at, t = [], [], 0, r.randrange(1 << 40)
    while at < 4 * words:
        t += r.randrange(1, 3000)
        c = [r.getrandbits(32) for _ in range(16)] if r.random() < resources else None
        parts.append(mkdat.pack(r.randrange(8), t, r.getrandbits(32), r.getrandbits(64), c))
        at += len(parts[-1])
        ends.append(at)
    return b"".join(parts), ends


def partly_filled():
    data, ends = stream(3000)
    for config in (CIRCULAR, SIMPLE):
        for n in (0, 1, 2, len(ends) - 1):
            size = ends[n - 1] if n else 0
            device(data[:size], size // 4, config)
            err = rdsample()
            need(read("mk.dat") == data[:size], f"{n} samples")
            if n:
                need(not err, err)
            else:
                one_sentence(err, "no sample in local memory")
            # one more is on its way: it is left out, and that is said
            device(data[: size + 12], size // 4 + 3, config)
            one_sentence(rdsample(), "3 words left out: the newest sample is not all there") if n else rdsample()
            need(read("mk.dat") == data[:size], f"{n} samples and a part")
    device(data, len(data) // 4)
    err = rdsample("-v", "-f", "out")
    resource = sum(len(s) == 84 for s in (data[a:b] for a, b in zip([0] + ends, ends)))
    need(f"{len(ends) - resource} Trace and {resource} Resource samples" in err, err)
    need(read("out") == data, "-f")
    need(run(KRON, "read", "--board", "./device", "-o", "same")[0] and read("same") == data, "kron read")


def wrapped():
    """Any pointer, any number of wraps, also four, which look like none."""
    words = MEMORY // 4
    data, ends = stream(words + 100)
    for wraps, resources in ((1, 0.1), (2, 0.1), (3, 0.1), (0, 0.1), (0, 0), (1, 1)):
        if resources != 0.1:
            data, ends = stream(words + 100, resources)
        for more in (0, rnd.randrange(1, 21)):
            # the board stored this many words of the stream, the last `words` of them are there
            total = words + 60 + more
            last = data[4 * (total - words) : 4 * total]
            pointer = rnd.randrange(100, words) if wraps != 2 else rnd.choice((0, 1, 2, words - 1))
            pointer = max(pointer, 3000) if not wraps else pointer
            at = 4 * (words - pointer)
            device(last[at:] + last[:at], wraps << 22 | pointer)
            rdsample()
            begin = min(e for e in ends if e >= 4 * (total - words))
            end = max(e for e in ends if e <= 4 * total)
            got, want = read("mk.dat"), data[begin:end]
            need(got == want, f"{wraps} wraps, pointer {pointer:x}, {more} more: {len(got)} bytes, not {len(want)}, "
                 f"{got[:8].hex()} {want[:8].hex()}")  # fmt: skip
    err = rdsample("-v")
    need("has wrapped" in err, err)


def old_samples_behind_the_pointer():
    """Memory that an earlier run filled: only what lies before the pointer is of this one."""
    old, ends = stream(MEMORY // 4 + 100, 0)
    new, _ = stream(50, 0)
    for shift in (0, 2, 3, 4):  # (1: the old ones end just where the memory does)
        memory = new + old[4 * shift + len(new) :]
        device(memory[:MEMORY], len(new) // 4)
        rdsample()
        need(read("mk.dat") == new, f"shift {shift}: {os.path.getsize('mk.dat')} bytes, not {len(new)}")


def simple_and_full():
    data, ends = stream(MEMORY // 4 + 30)
    device(data[:MEMORY], 0x3FFFFF, SIMPLE)
    rdsample()
    need(read("mk.dat") == data[: max(e for e in ends if e <= MEMORY)], "not all whole samples")


def ranges():
    data, ends = stream(1000)
    n = len(data) // 4
    device(data, n)
    for s, e in ((0, n), (5, 17), (n - 3, n), (0, 0), (7, 7), (3, n + 10), (0, 0x400000), (0x3FFFFF, 0x400000)):
        rdsample("-s", str(s), "-e", hex(e))
        need(read("mk.dat") == (data + bytes(MEMORY))[4 * s : 4 * e][: MEMORY - 4 * s], f"{s} to {e}")
    rdsample("-s", str(ends[3] // 4))
    need(read("mk.dat") == data[ends[3] :], "from a start to the pointer")
    rdsample("-e", str(ends[3] // 4))
    need(read("mk.dat") == data[: ends[3]], "from 0 to an end")
    one_sentence(rdsample("-s", str(n + 1), want=1), "past the last sample")
    one_sentence(rdsample("-s", "9", "-e", "8", want=1), "past end")
    for bad in ("-1", "x", "0x", "1x", "4194304", "99999999999999999999", ""):
        one_sentence(rdsample("-s", bad, want=2), "is not a word of local memory")
    one_sentence(rdsample("-e", "4194305", want=2), "is not a word of local memory")
    words = MEMORY // 4
    data, _ = stream(words + 100)
    device(data[:MEMORY], 1 << 22 | 500)
    rdsample("-s", str(words - 7), "-e", "11")
    need(read("mk.dat") == data[MEMORY - 28 : MEMORY] + data[:44], "round the end")


def not_written_by_the_board():
    """Words that the CPU stored are not samples: they stay in the file, the tool says so."""
    a, _ = stream(1000)
    b, _ = stream(1000)
    device(a + bytes(400) + b, (len(a) + 400 + len(b)) // 4)
    one_sentence(rdsample(), "100 words are in no sample")
    need(read("mk.dat") == a + bytes(400) + b, "as it is")
    for junk in (bytes(MEMORY), b"\xff" * MEMORY, rnd.randbytes(MEMORY)):
        device(junk, rnd.getrandbits(24), rnd.choice((CIRCULAR, SIMPLE)))
        rdsample()


def outputs():
    data, _ = stream(100)
    device(data, len(data) // 4)
    one_sentence(rdsample("-f", "nosuch/mk.dat", want=1), "cannot write nosuch/mk.dat: No such file")
    one_sentence(rdsample("-f", ".", want=1), "cannot write .: Is a directory")
    one_sentence(rdsample("-f", "/dev/full", want=1), "cannot write /dev/full: No space left on device")
    r = subprocess.run([RDSAMPLE, "--board", "./device", "-f", "-"], capture_output=True)
    need(r.stdout == data and not r.stderr, r.stderr)
    with open("precious", "w") as f:
        f.write("x")
    one_sentence(run(RDSAMPLE, "--board", "./nosuch", "-f", "precious", want=1)[1], "./nosuch")
    need(read("precious") == b"x", "the file was touched although there is no board")


def no_board():
    for tool in (RDSAMPLE, STATUS):
        name = f"none-{os.getpid()}"
        one_sentence(run(tool, "--board", name, want=1)[1], "there is no board " + name)
        one_sentence(run(tool, want=1, env={"KRON_BOARD": name})[1], "there is no board " + name)
        with open("short", "wb") as f:
            f.truncate(4096)
        one_sentence(run(tool, "--board", "./short", want=1)[1], "no board")
        one_sentence(run(tool, "--board", "a b", want=1)[1], "no name")
        one_sentence(run(tool, "-q", want=2)[1], "unknown option")
        one_sentence(run(tool, "operand", want=2)[1], "one argument too many")
        need(run(tool, "--help")[0].startswith("Usage: mk_") and "(kron)" in run(tool, "--version")[0], "help")
    need(not os.path.exists("mk.dat"), "mk.dat without a board")


def status_of_a_device():
    device(b"", 0xC00123, 0x3201 | 1 << 18)
    with open("device", "r+b") as f:
        for word, value in ((1, 0x4105), (2, 0x12345678), (4, 0xFFFF8001), (5, 17), (6, 4711), (35, 0x00C0002A)):
            f.seek(0x1000 + 4 * word)
            f.write(value.to_bytes(4, "little"))
    out, err = run(STATUS, "--board", "./device")
    need(not err, err)
    for wanted in ("version 90", r"Configuration Register +043201", r"Memory Address Pointer +c00123", "wrapped 3 times",
                   r"TS_RATIO +1", r"WRAPB +0", r"Control and Status Register +4105", r"sampling +1", r"fifo_overrun +1",
                   r"shadow_overrun +0", r"Filter Register +8001", r"levels on: 0 15$", r"Wait Error Counter +00000011  17",
                   r"Overrun Error Counter +00001267  4711", r"3  00c0002a  node 3, process 42", "13.333 MHz"):  # fmt: skip
        need(re.search(wanted, out, re.M), f"no {wanted!r} in\n{out}")
    with open("/dev/full", "w") as full:
        r = subprocess.run([STATUS, "--board", "./device"], stdout=full, stderr=subprocess.PIPE)
    need(r.returncode == 1, r.returncode)
    one_sentence(r.stderr.decode(), "cannot write the output")


# NISTIR 5993, Table 2, and NISTIR 5571, Table B1; those of a pair's second bit read as zero
CONFIG_BITS = {8: "TEST", 9: "LOCAL", 10: "EXT_CPU", 11: "WAIT_CPU", 12: "TESTB", 13: "MK_OE", 14: "WRAPB", 15: "EN_EXT",
               16: "DIS_STATE", 18: "TS_RATIO", 19: "DIV2", 20: "WAIT_MEM"}  # fmt: skip
CSR_BITS = {0: "sampling", 2: "write_wait", 4: "read_wait", 6: "fifo_full", 7: "shadow_full", 8: "fifo_overrun",
            9: "shadow_overrun", 10: "bit161", 12: "wait_states", 14: "mode32", 15: "mode64"}  # fmt: skip


def check_bits(out, config, csr):
    """Each bit that is shown, by its name; what the CPU lines say; what the clock makes of it."""
    shown = dict(re.findall(r"^    (\w+) +([01])   \S", out, re.M))
    wanted = {n: str(config >> b & 1) for b, n in CONFIG_BITS.items()} | {n: str(csr >> b & 1) for b, n in CSR_BITS.items()}
    need(shown == wanted, f"{config:06x} {csr:04x}: {shown}")
    need(re.search(rf"^  Configuration Register +{config:06x}$", out, re.M), f"{config:06x} in {out}")
    need(re.search(rf"^    CPU_ID +{config & 0xFF:02x}  ", out, re.M), f"CPU lines of {config:06x} in {out}")
    # DIV2 has no effect on an external clock
    hz = 40e6 / (2 if config >> 19 & 1 and not config >> 15 & 1 else 1) / (3 if config >> 18 & 1 else 4)
    need(f"at {hz / 1e6:.3f} MHz" in out, f"not {hz} Hz: {config:06x}, {out}")


def every_bit():
    """One at a time, and any of them together; of a device, and of an emulated board, which stays what it was."""
    for config in (0, *(1 << b for b in range(24)), 0xFFFFFF, *(rnd.getrandbits(24) for _ in range(20))):
        csr = rnd.getrandbits(16) & sum(1 << b for b in CSR_BITS)
        device(b"", 0, config)
        with open("device", "r+b") as f:
            f.seek(0x1004)
            f.write(csr.to_bytes(4, "little"))
        before = read("device")
        check_bits(run(STATUS, "--board", "./device")[0], config, csr)
        need(read("device") == before, f"looking changed the device: {config:06x}")
    for bit in CSR_BITS:
        device(b"", 0)
        with open("device", "r+b") as f:
            f.seek(0x1004)
            f.write((1 << bit).to_bytes(4, "little"))
        check_bits(run(STATUS, "--board", "./device")[0], CIRCULAR, 1 << bit)
    with Board("--virtual-clock") as name:
        for config in (0, *(1 << b for b in range(24)), 0xFFFFFF):
            run(KRON, "ctl", "--board", name, "write", "config", f"{config:#x}")
            # sampling and 64-bit mode, as kron board create leaves them
            out = run(STATUS, "--board", name)[0]
            check_bits(out, config, 0x8001)
            need(run(STATUS, "--board", name)[0] == out, "looking changed something")


class Board:
    """A named board of this test's own."""

    def __init__(self, *options):
        self.name, self.options = f"rdsample-{os.getpid()}", options

    def __enter__(self):
        run(KRON, "board", "create", self.name, *self.options)
        return self.name

    def __exit__(self, *exc):
        run(KRON, "board", "rm", self.name)


def check_numbers(data):
    # 32-bit stores: the upper half of the data is nobody's
    samples = [(h, t, source, n & 0xFFFFFFFF, c) for h, t, source, n, c in mkdat.unpack(data)]
    need(len(samples) > 0, "no samples")
    first = samples[0][3]
    for i, s in enumerate(samples):
        need(s[3] == first + i, f"sample {i}: number {s[3]}, not {first + i}")
        need((s[4] is not None) == (s[3] % 7 == 6), f"number {s[3]}: wrong type")
    times = [s[1] for s in samples]
    need(times == sorted(times), "time runs back")
    return first, len(samples)


def emulated():
    with Board() as name:
        one_sentence(run(RDSAMPLE, "--board", name)[1], "no sample in local memory")
        run(DRIVE, name, "5000")
        err = run(RDSAMPLE, "--board", name)[1]
        need(not err, err)
        need(check_numbers(read("mk.dat")) == (0, 5000), "not 5000 samples")
        need(run(RDSAMPLE, "-f", "b", env={"KRON_BOARD": name}) and read("b") == read("mk.dat"), "$KRON_BOARD")
        need(run(KRON, "read", "--board", name, "-o", "c") and read("c") == read("mk.dat"), "kron read")
        out = run(STATUS, "--board", name)[0]
        used = len(read("mk.dat")) // 4
        need(f"{used} of 4194304 words used, wrapped 0 times" in out, out)
        need("emulated" in out and re.search(r"write_wait +1", out), out)
        need(run(STATUS, "--board", name)[0].splitlines()[:17] == out.splitlines()[:17], "looking changed something")


def while_it_goes_on():
    """Read again and again from a board that samples, before and after its memory wraps."""
    with Board() as name:
        p = subprocess.Popen([DRIVE, name, "0"])
        try:
            wrapped, end = 0, time.monotonic() + 300
            while wrapped < 3 and time.monotonic() < end:
                out, err = run(RDSAMPLE, "-v", "--board", name)
                if not os.path.getsize("mk.dat"):
                    continue
                first, _ = check_numbers(read("mk.dat"))
                # (it may also fill up while it is read)
                gone = "has wrapped" in err or "stored newer samples" in err
                need(gone == (first > 0), f"first number {first}: {err}")
                wrapped += first > 0
                time.sleep(0.3)
            need(wrapped, "the memory did not wrap in five minutes")
        finally:
            p.send_signal(signal.SIGKILL)
            p.wait()
        run(RDSAMPLE, "--board", name)
        check_numbers(read("mk.dat"))


def damaged_boards():
    """Whatever stands in the shared memory: an answer or one sentence, never a crash."""
    path = f"/dev/shm/kron-board.{os.getuid()}.rdsample-{os.getpid()}"
    with Board() as name:
        run(DRIVE, name, "300")
        good = read(path)[: 1 << 20]
        for n in range(60):
            data = bytearray(good)
            if n < 8:  # the header: magic, version, sizes
                data[4 * n : 4 * n + 4] = rnd.randbytes(4)
            elif n < 20:
                at = rnd.randrange(len(data))
                data[at:] = rnd.randbytes(len(data) - at)
            else:
                used = [i for i in range(0, len(data), 64) if any(data[i : i + 64])]
                for _ in range(rnd.choice((1, 5, 50))):
                    at = rnd.choice(used) + rnd.randrange(64)
                    data[at] = rnd.randrange(256)
            with open(path, "r+b") as f:
                f.write(data)
            for tool in ((STATUS,), (RDSAMPLE, "-f", "out")):
                r = subprocess.run([*tool, "--board", name], capture_output=True, timeout=60)
                need(r.returncode in (0, 1), f"{tool[0]}, round {n}: {r.returncode} {r.stderr}")
                if r.returncode:
                    one_sentence(r.stderr.decode(), name)
        with open(path, "r+b") as f:
            f.write(good)
            f.truncate(5000)
        for tool in (STATUS, RDSAMPLE):
            one_sentence(run(tool, "--board", name, want=1)[1], name)


def of_another_user():
    if os.getuid():
        raise Skip("needs root")
    with Board() as name:
        path = f"/dev/shm/kron-board.0.{name}"
        os.chown(path, 65534, 65534)
        try:
            for tool in (STATUS, RDSAMPLE):
                one_sentence(run(tool, "--board", name, want=1)[1], "user")
        finally:
            os.chown(path, 0, 0)


with Suite("mk-rdsample") as s:
    s.case("a memory that is partly filled", partly_filled)
    s.case("a circular memory that has wrapped", wrapped)
    s.case("samples of an earlier run stay out", old_samples_behind_the_pointer)
    s.case("a simple buffer that is full", simple_and_full)
    s.case("-s and -e", ranges)
    s.case("what is not a sample", not_written_by_the_board)
    s.case("-f, unwritable files, a full disk", outputs)
    s.case("no board", no_board)
    s.case("mk_status of a device", status_of_a_device)
    s.case("mk_status: every bit", every_bit)
    s.case("an emulated board", emulated)
    s.case("damaged boards", damaged_boards)
    s.case("a board of another user", of_another_user)
    s.case("an emulated board that goes on sampling", while_it_goes_on)
