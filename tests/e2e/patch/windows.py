#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks every window and stub of real programs with binutils, which kron does not use.

For each displaced instruction, objdump's text of the stub must say the same as its text of the
original: same operation and operands, rip-relative operands that name the same address,
branches that lead to the same place, calls that push the original return address.

For each window, no instruction but the first may be the target of a direct branch, the return
address of a call, the value of a relocation, or a symbol.  For each landing and relay, no byte may.
"""
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("KRON_TOP_BUILD", ".")
SHOW_PLAN = os.environ.get("SHOW_PLAN") or BUILD + "/tests/golden/show_plan"
LIB = "/usr/lib/x86_64-linux-gnu/"
# libcrypto has data in .text, at which objdump's linear sweep stumbles: its windows are not
# checked, its stubs are
PROGRAMS = [("/usr/bin/bash", True), (LIB + "libc.so.6", True), ("/usr/bin/perl", True),
            ("/usr/bin/git", True), (LIB + "libcrypto.so.3", False)]

LINE = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*(?:\t(.*))?$", re.M)
PROBE = re.compile("488d642480 51 0fb60c25.{8} e30c 50 b8.{8} e8.{8} 58 59 488da42480000000")
PROBE_INSNS = 10
HOOK = re.compile("eb19 .*")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          errors="replace").stdout


class Insn:
    def __init__(self, address, code, text):
        self.address, self.code, self.text = address, code, text
        self.end = address + len(code) // 2

    def __getattr__(self, name):
        """What it does is read when it is asked for: most are not."""
        if name not in ("mnemonic", "operands", "target"):
            raise AttributeError(name)
        text, _, comment = self.text.partition("#")
        words = text.split()
        # prefixes that objdump shows and branches lose
        while len(words) > 1 and words[0] in ("bnd", "notrack", "data16", "rex.W", "cs", "ds"):
            words.pop(0)
        self.mnemonic = words[0].split(",")[0] if words else "(none)"
        self.operands = " ".join(w for w in words[1:] if not w.startswith("<"))
        self.target = None
        if "(%rip)" in self.operands:
            self.operands = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "(%rip)", self.operands)
            self.target = int(comment.split()[0], 16)
        elif re.fullmatch("(0x)?[0-9a-f]+", self.operands) and self.mnemonic[0] in "jclx":
            self.target = int(self.operands, 16)
            self.operands = "there"
        return self.__dict__[name]

    def may_branch(self):
        """Whether it begins like one that goes elsewhere, or like a prefix of one."""
        return self.text.startswith(("j", "c", "l", "b", "n", "d", "r"))

    def is_branch(self):
        return self.operands == "there"

    def is_nothing(self):
        return self.mnemonic in ("nop", "nopw", "nopl") or \
            (self.mnemonic == "xchg" and self.operands == "%ax,%ax")

    def same(self, other):
        return (self.mnemonic, self.operands, self.target) == \
            (other.mnemonic, other.operands, other.target)


def disassemble(*options):
    out = {}
    for address, code, text in LINE.findall(run("objdump", "-w", *options)):
        out[int(address, 16)] = Insn(int(address, 16), code.replace(" ", ""), text or "")
    return out


class Mismatch(Exception):
    pass


class Stub:
    """Walks through one stub, instruction by instruction."""

    def __init__(self, insns, start, end, function, block):
        self.insns, self.at, self.end = insns, start, end
        self.function, self.block = function, block

    def next(self):
        insn = self.insns[self.at]
        self.at = insn.end
        return insn

    def bytes_ahead(self, n):
        at, codes = self.at, []
        while len(codes) < n and at < self.end:
            codes.append(self.insns[at].code)
            at = self.insns[at].end
        return " ".join(codes)

    def skip_probes(self):
        while PROBE.fullmatch(self.bytes_ahead(PROBE_INSNS)):
            for _ in range(PROBE_INSNS):
                self.next()
        if HOOK.fullmatch(self.bytes_ahead(2)):  # hooks are not bound: a jump over them
            self.at = self.next().target
            self.skip_probes()

    def leads_to(self, insn, original):
        """To the same place, or, from a loop to the function's start, past its probe"""
        return insn.target == original.target or \
            (original.target == self.function and insn.target >= self.block)

    def need(self, condition, original):
        if not condition:
            raise Mismatch("%#x: %s %s, in the stub before %#x" % (
                original.address, original.mnemonic, original.operands, self.at))

    def return_address(self, original):
        """call over a jmp to the original return address, which then replaces what it pushed"""
        call, jump, low, high = self.next(), self.next(), self.next(), self.next()
        self.need(call.mnemonic == "call" and call.target == low.address and
                  jump.mnemonic == "jmp" and jump.target == original.end, original)
        self.need(low.code.startswith("c70424") and high.code.startswith("c7442404"), original)
        value = int.from_bytes(bytes.fromhex(low.code[6:] + high.code[8:]), "little")
        self.need(value == original.end, original)

    def check(self, original):
        if original.is_nothing():
            return
        if original.mnemonic == "call":
            self.return_address(original)
            jump = self.next()
            self.need(jump.mnemonic == "jmp" and jump.target == original.target and
                      jump.operands == original.operands, original)
            return
        insn = self.next()
        if original.is_branch() and original.mnemonic[0] == "l" or original.mnemonic == "jrcxz":
            hop, jump = self.next(), self.next()
            self.need(insn.mnemonic == original.mnemonic and insn.target == hop.end and
                      hop.target == jump.end and self.leads_to(jump, original), original)
        elif original.is_branch() and insn.mnemonic != original.mnemonic:
            # an exit: jncc over probe and jump
            self.need(int(insn.code[:2], 16) ^ 1 == int(condition_byte(original), 16), original)
            over = insn.target
            self.skip_probes()
            jump = self.next()
            self.need(jump.mnemonic == "jmp" and jump.target == original.target and
                      jump.end == over, original)
        elif original.is_branch():
            self.need(self.leads_to(insn, original), original)
        else:
            self.need(insn.same(original), original)
        if original.mnemonic == "syscall":  # leaves its own address in rcx
            lea = self.next()
            self.need(lea.mnemonic == "lea" and lea.target == original.end and
                      lea.operands.endswith(",%rcx"), original)


def condition_byte(branch):
    code = re.sub("^(2e|3e|f2)*", "", branch.code)
    return code[:2] if code[0] == "7" else "7" + code[3] if code.startswith("0f8") else "00"


def check_site(site, module, stubs, block):
    start, length, stub_at, stub_length, function, *_ = site
    stub = Stub(stubs, stub_at, stub_at + stub_length, function, block)
    at = start
    while stub.at < stub.end or at < start + length:
        stub.skip_probes()
        if at >= start + length:
            break
        original = module[at]
        if at > start and previous_ends(original_before):
            break  # padding
        stub.check(original)
        original_before = original
        at = original.end
    if stub.at < stub.end:
        jump = stub.next()
        stub.need(jump.mnemonic == "jmp" and jump.target == at, original_before)
    stub.need(stub.at == stub.end, original_before)


def previous_ends(insn):
    return insn.mnemonic in ("ret", "repz", "jmp", "call")


def read_plan(path, work):
    sites, block = [], 0
    for line in run(SHOW_PLAN, "--map", path, work).splitlines():
        kind, *numbers = line.split()
        numbers = [int(n, 0) for n in numbers]
        if kind == "block":
            block = numbers[0]
        elif kind == "site":
            sites.append(numbers)
    return sites, block


def forbidden_places(path, module):
    """address -> why no jump may cover it"""
    places = {}
    for insn in filter(Insn.may_branch, module.values()):
        if insn.is_branch() and insn.mnemonic[0] != "x":
            places[insn.target] = "a branch leads there"
        if insn.mnemonic == "call":
            places[insn.end] = "a call returns there"
    for value in re.findall(r"R_X86_64_(?:I?RELATIVE?)\w*\s+([0-9a-f]+)$",
                            run("readelf", "-rW", path), re.M):
        places[int(value, 16)] = "a relocation names it"
    for value in re.findall(r"^\s*\d+: ([0-9a-f]+)\s+\d+ (?:FUNC|NOTYPE|IFUNC)",
                            run("readelf", "-W", "--dyn-syms", path), re.M):
        places[int(value, 16)] = "a symbol names it"
    return places


def check_windows(sites, module, places):
    for start, length, _, _, _, written, *_ in sites:
        at = start
        while at < start + length:
            inside = range(max(at, start + 1), min(module[at].end, start + written))
            covered = list(inside) + ([at] if at > start else [])
            for place in covered:
                if place in places:
                    yield "window %#x: at %#x %s" % (start, place, places[place])
            at = module[at].end


def covering(module, place):
    """The instruction that holds the byte"""
    return next((module[at] for at in range(place, place - 16, -1)
                 if at in module and module[at].end > place), None)


def check_landings(sites, module, places):
    """Five bytes, or two of a relay, that nobody reaches: padding, or what is left of a window
    after its jump"""
    dead = {at for start, length, _, _, _, written, *_ in sites
            for at in range(start + written, start + length)}
    written = {at for start, _, _, _, _, n, *_ in sites for at in range(start, start + n)}
    spots = [(site[6], 5) for site in sites if site[6]] + \
        [(relay, 2) for site in sites for relay in site[7:]]
    for landing, size in spots:
        for at in range(landing, landing + size):
            insn = covering(module, at)
            if at in written:
                yield "landing %#x: something else is written at %#x" % (landing, at)
            if at in places:
                yield "landing %#x: at %#x %s" % (landing, at, places[at])
            if at not in dead and not insn.is_nothing() and insn.mnemonic != "int3":
                yield "landing %#x: at %#x is %s" % (landing, at, insn.mnemonic)
            written.add(at)


def faults(path, with_windows, work):
    sites, block = read_plan(path, work)
    module = disassemble("-d", path)
    stubs = disassemble("-D", "-b", "binary", "-m", "i386:x86-64", "--adjust-vma=%#x" % block,
                        "--start-address=%#x" % (block + 64), work + "/block0")
    print("# %s: %d windows" % (path, len(sites)))
    for site in sites:
        if site[0] not in module:  # the sweep went astray in data
            module.update(disassemble("-d", "--start-address=%#x" % site[0],
                                      "--stop-address=%#x" % (site[0] + site[1]), path))
        try:
            check_site(site, module, stubs, block)
        except (Mismatch, KeyError) as e:
            yield "stub of %#x: %r" % (site[0], e)
    if with_windows:
        places = forbidden_places(path, module)
        yield from check_windows(sites, module, places)
        yield from check_landings(sites, module, places)


def main():
    if not shutil.which("objdump") or not shutil.which("readelf"):
        print("1..0 # SKIP binutils are not installed")
        return
    gc.disable()  # a million objects, none of them in a cycle
    programs = [(a, True) for a in sys.argv[1:]] or PROGRAMS
    print("1..%d" % len(programs))
    for n, (path, with_windows) in enumerate(programs, 1):
        if not os.path.exists(path):
            print("ok %d - %s # SKIP not installed" % (n, path))
            continue
        with tempfile.TemporaryDirectory(prefix="kron-windows.") as work:
            wrong = list(faults(path, with_windows, work))
        for fault in wrong[:20]:
            print("# " + fault)
        if len(wrong) > 20:
            print("# and %d more" % (len(wrong) - 20))
        print("%sok %d - %s" % ("not " if wrong else "", n, path))


sys.stdout.reconfigure(line_buffering=True)
main()
