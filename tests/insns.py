# SPDX-License-Identifier: MIT
"""insns.py - objdump's view of a program's instructions, for tests of places.

What touches memory is told from the text alone: in AT&T's order the last operand is written, but
for what only compares.  Stack operations without a written operand count as nothing.
"""
import re
import subprocess

LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$")
PREFIXES = ("bnd", "notrack", "data16", "rex.W", "cs", "ds", "lock", "rep", "repz", "repnz", "addr32")
READ_ONLY = ("cmp", "test", "bt", "ucomis", "comis", "vucomis", "vcomis", "ptest", "vptest",
             "push", "call", "jmp", "div", "idiv", "mul", "nop", "fld", "fild", "fadd", "fmul",
             "fsub", "fdiv", "fcom", "fucom", "fiadd", "ldmxcsr", "vldmxcsr", "fldcw")
# the last operand is written and not read
WRITE_ONLY = ("mov", "vmov", "set", "pop", "cvt", "fst", "fist", "stmxcsr", "vstmxcsr", "fnst",
              "pextr", "vpextr", "vextract", "fistt", "extract")
NEITHER = ("lea", "nop", "prefetch", "endbr", "clflush")


class Insn:
    def __init__(self, address, size, text):
        self.address, self.end = address, address + size
        text, _, note = text.partition("#")
        words = text.split()
        while len(words) > 1 and words[0] in PREFIXES:
            words.pop(0)
        self.mnemonic = words[0] if words else "(none)"
        self.text = text
        operands = " ".join(words[1:])
        self.comment = operands + " " + note
        operands = re.sub(r"<.*", "", operands).strip()
        self.operands = self.split(operands)
        self.target = None
        if self.is_branch() or self.is_call():
            if re.fullmatch(r"[0-9a-f]+", operands):
                self.target = int(operands, 16)

    @staticmethod
    def split(text):
        """At commas outside of parentheses."""
        out, depth, word = [], 0, ""
        for c in text:
            depth += (c == "(") - (c == ")")
            if c == "," and depth == 0:
                out.append(word)
                word = ""
            else:
                word += c
        return [w.strip() for w in out + [word] if w.strip()]

    def is_call(self):
        return self.mnemonic.startswith("call")

    def is_branch(self):
        return self.mnemonic.startswith(("j", "loop"))

    def is_filler(self):
        return self.mnemonic.startswith("nop") or self.mnemonic == "int3" or \
            re.fullmatch(r"xchg\s+%ax,%ax", " ".join(self.text.split())) is not None

    def memory(self):
        """Indices of the operands in memory."""
        if self.mnemonic.startswith(NEITHER):
            return []
        if self.target is not None:
            return []
        return [i for i, o in enumerate(self.operands) if "(" in o.replace("%st(", "") or
                re.fullmatch(r"%[a-z]s:(0x)?[0-9a-f]+", o) or
                re.fullmatch(r"\*?(0x)[0-9a-f]+", o)]

    def is_string(self):
        return re.match(r"(movs[bwlq]|stos|lods|scas|cmps[bwlq])\b", self.mnemonic) is not None \
            and any("%es:" in o or "%ds:" in o for o in self.operands)

    def loads(self):
        at = self.memory()
        if self.is_string():
            return not self.mnemonic.startswith("stos")
        if not at:
            return False
        if any(i < len(self.operands) - 1 for i in at):
            return True
        if len(self.operands) == 1 and self.mnemonic.startswith(READ_ONLY):
            return True
        return not self.mnemonic.startswith(WRITE_ONLY)

    def stores(self):
        at = self.memory()
        if self.is_string():
            return self.mnemonic.startswith(("movs", "stos"))
        if self.mnemonic.startswith("xchg"):
            return bool(at)
        return len(self.operands) - 1 in at and not self.mnemonic.startswith(READ_ONLY)


def disassemble(path, wanted=lambda name: True):
    """By function, in order of address."""
    text = subprocess.run(["objdump", "-dw", path], check=True, capture_output=True,
                          text=True, errors="replace").stdout
    functions, body = {}, None
    for line in text.splitlines():
        head = re.match(r"^([0-9a-f]+) <(.*)>:$", line)
        if head:
            body = functions.setdefault(head[2], []) if wanted(head[2]) else None
            continue
        if body is None:
            continue
        m = LINE.match(line)
        if m and m[3]:
            body.append(Insn(int(m[1], 16), len(m[2].split()), m[3]))
    return functions


def without_filler(body):
    """Without what follows an unconditional transfer and nobody jumps to."""
    targets = {i.target for i in body if i.target is not None}
    out, reached = [], True
    for i in body:
        if not reached and i.is_filler() and i.address not in targets:
            continue
        out.append(i)
        reached = not re.match(r"(jmp|ret|ud2|hlt)", i.mnemonic)
    return out
