#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Golden planner cases.

Each CASE.in.S is assembled, linked, planned and bound at two pairs of addresses; what objdump
makes of the patched windows and the stubs must equal CASE.out.

    tests/golden/golden.py             compare (prints TAP)
    tests/golden/golden.py --update    write the .out files anew: read them before you commit

A case with "Insns: TACTICS" in its head is planned with a store of 7 to word 4 in front of every
instruction (`movl $7,0x...` of eleven bytes), by those tactics.

To keep the files readable, a probe that is byte for byte the sequence of include/kron/wire.h
stands there as one line; the case "plain" shows it in full.  Bytes of a window after the
jump keep their values and are shown as bytes.
"""
import difflib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.environ.get("KRON_TOP_SRC") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("KRON_TOP_BUILD") or TOP
GOLDEN = TOP + "/tests/golden"
SHOW_PLAN = os.environ.get("SHOW_PLAN") or BUILD + "/tests/golden/show_plan"

# wire.h: lea -128; push %rcx; movzbl gate; jrcxz; push %rax; mov $event; call; pop; pop; lea 128
PROBE = re.compile("488d642480 51 0fb60c25(.{8}) e30c 50 b8(.{8}) e8(.{8}) 58 59 "
                   "488da42480000000")
PROBE_INSNS = 10


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def little(digits):
    return int.from_bytes(bytes.fromhex(digits), "little")


def disassemble(path, vma, start, end):
    """[(address, bytes as hex digits, text)] from objdump"""
    text = run("objdump", "-D", "-w", "-b", "binary", "-m", "i386:x86-64",
               "--adjust-vma=%#x" % vma, "--start-address=%#x" % start,
               "--stop-address=%#x" % end, path)
    found = re.findall(r"^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*(?:\t(.*))?$", text, re.M)
    return [(int(a, 16), b.replace(" ", ""), " ".join(t.split())) for a, b, t in found]


def fold_probe(insns):
    """One line for a probe at the start of insns, or None"""
    match = PROBE.fullmatch(" ".join(b for _, b, _ in insns[:PROBE_INSNS]))
    if not match:
        return None
    gate, event = little(match[1]), little(match[2])
    return "probe: event %#x, gate %#x, %s" % (event, gate, insns[6][2])


def show_stub(path, vma, start, end, full):
    insns = disassemble(path, vma, start, end)
    lines = []
    while insns:
        folded = None if full else fold_probe(insns)
        count = PROBE_INSNS if folded else 1
        code = "" if folded else insns[0][1]
        lines.append("    %x:  %-22s  %s" % (insns[0][0], code, folded or insns[0][2]))
        insns = insns[count:]
    return lines


def show_window(path, vma, start, end, written):
    if not written:
        return ["", "%x:  as it was" % start]
    if written == 1:  # the byte after it is its distance: both are shown
        (start, digits, text), *_ = disassemble(path, vma, start, start + 2)
        return ["", "%x:  %-26s  %s" % (start, digits, text)]
    jump = disassemble(path, vma, start, start + written)
    with open(path, "rb") as f:
        rest = f.read()[start + written - vma:end - vma]
    line = "%x:  %-26s  %s" % (start, jump[0][1] + (" " + rest.hex() if rest else ""), jump[0][2])
    return ["", line]


WAYS = ["lane", "constant", "exact", "device"]
KINDS = ["trace", "resource", "count", "store"]
PAYLOADS = ["sp", "zero", "imm", "reg", "address"]
REGS = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()


def find_places(case, work):
    """The request that comments of a case say, as show_plan wants it:

    # way device
    # place 0x1007 before|after trace|count|... [level=N] [word=N] [reg=rdi|imm=N|payload=...]
                                                [value=N] [ungated]
    """
    way, lines = 0, []
    with open(case + ".in.S") as f:
        for line in f:
            words = line.split()
            if words[:2] == ["#", "way"]:
                way = WAYS.index(words[2])
            if words[:2] != ["#", "place"]:
                continue
            o = dict(level=0, word=0, payload=1, reg=0, ungated=0, value=0)
            for word in words[5:]:
                key, _, value = word.partition("=")
                if key == "reg":
                    o.update(payload=PAYLOADS.index("reg"), reg=REGS.index(value))
                elif key == "imm":
                    o.update(payload=PAYLOADS.index("imm"), value=int(value, 0))
                elif key == "payload":
                    o[key] = PAYLOADS.index(value)
                else:
                    o[key] = int(value or "1", 0)
            lines.append([words[2], ["before", "after"].index(words[3]), KINDS.index(words[4]),
                          o["level"], o["word"], o["payload"], o["reg"], o["ungated"],
                          o["value"]])
    if not lines:
        return []
    with open(work + "/places", "w") as f:
        f.write("%d\n" % way + "".join(" ".join(map(str, x)) + "\n" for x in lines))
    return [work + "/places"]


def show(case, work):
    run("as", "-I", GOLDEN, "-o", work + "/case.o", case + ".in.S")
    run("ld", "-shared", "--build-id=none", "-Ttext=0x1000", "-o", work + "/case.so",
        work + "/case.o")
    lines = []
    with open(case + ".in.S") as f:
        tactics = re.search(r"Insns: (\S+)", f.read())
    option = ["--insns", tactics[1]] if tactics else []
    for line in run(SHOW_PLAN, *option, work + "/case.so", work,
                    *find_places(case, work)).splitlines():
        if not line.startswith("@"):
            lines.append(line)
            continue
        name, vma, start, end, *written = line.split()[1:]
        place = (work + "/" + name, int(vma, 16), int(start, 16), int(end, 16))
        if name.startswith("text"):
            lines += show_window(*place, int(written[0]))
        else:
            lines += show_stub(*place, os.path.basename(case) == "plain")
    return "".join(line + "\n" for line in lines)


def compare(case, work, update):
    path = case + ".out"
    got = show(case, work)
    if update:
        with open(path, "w") as f:
            f.write(got)
    with open(path) as f:
        want = f.read()
    return list(difflib.unified_diff(want.splitlines(), got.splitlines(), "expected", "got",
                                     lineterm=""))


def main():
    if not shutil.which("objdump") or not shutil.which("ld"):
        print("1..0 # SKIP binutils are not installed")
        return
    cases = sorted(glob.glob(GOLDEN + "/*/*.in.S"), key=os.path.basename)
    cases = [path[:-len(".in.S")] for path in cases]
    print("1..%d" % len(cases))
    for n, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory(prefix="kron-golden.") as work:
            try:
                diff = compare(case, work, "--update" in sys.argv)
            except (subprocess.CalledProcessError, OSError) as e:
                diff = [str(e)] + (getattr(e, "stderr", None) or "").splitlines()
        print("%sok %d - %s" % ("not " if diff else "", n, os.path.basename(case)))
        for line in diff:
            print("# " + line)


main()
