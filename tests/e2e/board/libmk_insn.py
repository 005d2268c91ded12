#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""libmk's emulation of instructions against the processor's own execution of them.

Makes a table of instructions in all their sizes, directions and ways to name an address, has
the assembler encode them, and lets tests/bins/libmk/insn.c execute each of them on ordinary
memory and on the board's, with random registers, flags and memory.
"""
import os
import random
import subprocess
import sys
import tempfile

TOP = os.environ.get("KRON_TOP_SRC") or os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                     "..", "..", "..")
BUILD = os.environ.get("KRON_TOP_BUILD", TOP)
CC = os.environ.get("CC", "gcc").split()

# registers that a test may fill with anything, by size; no pointers (rsi, rdi, rbp, r9, r12, r13)
REGS = {1: ["al", "bl", "cl", "dl", "ah", "bh", "ch", "dh", "r8b", "r11b", "r14b", "r15b"],
        2: ["ax", "bx", "cx", "dx", "r8w", "r11w", "r14w", "r15w"],
        4: ["eax", "ebx", "ecx", "edx", "r8d", "r11d", "r14d", "r15d"],
        8: ["rax", "rbx", "rcx", "rdx", "r8", "r11", "r14", "r15"]}
SUFFIX = {1: "b", 2: "w", 4: "l", 8: "q"}
# %d: further displacement; what they name lies in [A - 0x80, A + 0x180]
ADDRESSES = ["%d(%%rdi)", "%d(%%rsi,%%r10)", "%d(%%r13)", "%d(%%r12)", "%d(%%rbp,%%r10,4)",
             "%d(%%r9,%%r10,2)", "%d(%%r12,%%r10,8)", "%d(,%%r9)", "%d(%%edi)", "%d(%%r13,%%r10)"]
HIGH = ("ah", "bh", "ch", "dh")


def cpu_has(*flags):
    with open("/proc/cpuinfo") as f:
        have = next((line for line in f if line.startswith("flags")), "").split()
    return all(flag in have for flag in flags)


class Table:
    def __init__(self):
        self.cases = []
        self.random = random.Random(5993)

    def address(self, needs_rex=True, displacement=None):
        """A way to name the operand; ah and its like go with the old registers alone."""
        ways = ADDRESSES if needs_rex else ["%d(%%rdi)", "%d(%%rsi)", "%d(%%rbp)", "%d(%%edi)"]
        d = self.random.choice([0, 0, 8, 16, 64, 128, -64, 3, 5, 0x104])
        return self.random.choice(ways) % (d if displacement is None else displacement)

    def add(self, text, kind=0):
        self.cases.append((text, kind))

    def each(self, template, size, times=6, **more):
        """{m}: memory, {r}: register of this size, {s}: suffix, {i}: immediate."""
        for _ in range(times):
            r = self.random.choice(REGS[size])
            bits = 8 * min(size, 4)
            imm = self.random.choice([0, 1, -1, 127, -128, self.random.getrandbits(bits - 1)])
            if size == 1:
                imm = max(-128, min(127, imm))
            self.add(template.format(m=self.address(r not in HIGH and "{r}" in template or
                                                    "{r}" not in template),
                                     r="%" + r, s=SUFFIX[size], i="$%d" % imm, **more))

    def integers(self):
        for size in (1, 2, 4, 8):
            for op in ("add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"):
                self.each(op + "{s} {r}, {m}", size)
                self.each(op + "{s} {m}, {r}", size)
                self.each(op + "{s} {i}, {m}", size)
            for op in ("mov", "xchg"):
                self.each(op + "{s} {r}, {m}", size, 12)
            self.each("mov{s} {m}, {r}", size, 12)
            self.each("mov{s} {i}, {m}", size)
            self.each("test{s} {r}, {m}", size)
            self.each("test{s} {i}, {m}", size)
            for op in ("xadd", "cmpxchg"):
                self.each(op + "{s} {r}, {m}", size)
                self.each("lock " + op + "{s} {r}, {m}", size)
            # cmpxchg that finds what it looks for
            acc = {1: "%al", 2: "%ax", 4: "%eax", 8: "%rax"}[size]
            for _ in range(4):
                m = self.address(displacement=8)
                self.add("mov %s, %s; lock cmpxchg%s %s, %s" %
                         (m, acc, SUFFIX[size], "%" + REGS[size][-1], m))
            for op in ("inc", "dec", "not", "neg"):
                self.each(op + "{s} {m}", size)
                self.each("lock " + op + "{s} {m}", size, 2)
            for op in ("add", "or", "adc", "sbb", "and", "sub", "xor"):
                self.each("lock " + op + "{s} {r}, {m}", size, 2)
            for op in ("rol", "ror", "rcl", "rcr", "shl", "shr", "sar"):
                self.each(op + "{s} {m}", size, 2)
                self.each(op + "{s} %cl, {m}", size, 4)
                for n in (1, 3, 7, 31, 33):
                    self.each(op + "{s} ${n}, {m}", size, 1, n=n)
            for op in ("mul", "imul"):
                self.each(op + "{s} {m}", size)

    def wide(self):
        conditions = "o no b ae e ne be a s ns p np l ge le g".split()
        for size in (2, 4, 8):
            self.each("imul{s} {m}, {r}", size)
            self.each("imul{s} {i}, {m}, {r}", size)
            for op in ("bt", "bts", "btr", "btc"):
                self.each(op + "{s} ${n}, {m}", size, 2, n=5)
                self.each(op + "{s} ${n}, {m}", size, 2, n=200)
                # the bit's number in a register: near, so that it stays in the area
                for _ in range(6):
                    r = self.random.choice(REGS[size])
                    n = self.random.randrange(-500, 500)
                    self.add("mov $%d, %%%s; %s%s %%%s, %s" %
                             (n, r, op, SUFFIX[size], r, self.address(displacement=0)))
            scans = ["bsf", "bsr", "popcnt"] + ["tzcnt", "lzcnt"] * cpu_has("bmi1", "abm")
            for op in scans:
                self.each(op + "{s} {m}, {r}", size)
            for cc in conditions:
                self.each("cmov" + cc + "{s} {m}, {r}", size, 3)
            if cpu_has("movbe"):
                self.each("movbe{s} {m}, {r}", size)
                self.each("movbe{s} {r}, {m}", size)
        if cpu_has("bmi1", "bmi2"):
            for size in (4, 8):
                for _ in range(4):
                    w = self.random.choice(REGS[size])
                    for op in ("bextr", "bzhi", "shlx", "sarx", "shrx"):
                        self.each(op + "{s} %{w}, {m}, {r}", size, 2, w=w)
                    self.each("andn{s} {m}, %{w}, {r}", size, 2, w=w)
        for cc in conditions:
            self.add("set%s %s" % (cc, self.address()))
        for to in (2, 4, 8):
            self.each("movzb{s} {m}, {r}", to)
            self.each("movsb{s} {m}, {r}", to)
        for to in (4, 8):
            self.each("movzw{s} {m}, {r}", to)
            self.each("movsw{s} {m}, {r}", to)
            self.each("movnti {r}, {m}", to)
        self.each("movslq {m}, {r}", 8)
        for _ in range(6):
            self.add("pushq %s; pop %%rax" % self.address())
            self.add("pushw %s; pop %%ax" % self.address())
            self.add("push %%rbx; popq %s" % self.address())
            self.add("push %%bx; popw %s" % self.address())

    def strings(self):
        for size in "bwlq":
            for kind in (1, 2, 3):
                for rep in ("", "rep "):
                    self.add(rep + "movs" + size, kind)
                    self.add("std; %smovs%s; cld" % (rep, size), kind)
            for rep in ("", "rep "):
                self.add(rep + "stos" + size, 1)
                self.add("std; %sstos%s; cld" % (rep, size), 1)
                self.add(rep + "lods" + size, 2)
        # overlapping, inside the window
        for size in "bwlq":
            for d in (-9, -3, 1, 4, 9):
                self.add("lea %d(%%rsi), %%rdi; rep movs%s" % (d, size), 3)
        self.add("movl %ecx, %ecx; rep movsb (%esi), (%edi)", 3)

    def vector(self, template, registers, aligned=0, times=3):
        for _ in range(times):
            d = self.random.choice([0, 64, 128]) if aligned else None
            way = self.address(displacement=d)
            while aligned and "r10" in way:
                way = self.address(displacement=d)
            x = self.random.choice(registers)
            y = self.random.choice(registers)
            self.add(template.format(m=way, x="%" + x, y="%" + y))

    def moves(self, names, registers, prefix="", aligned=0):
        for op in names:
            self.vector(prefix + op + " {m}, {x}", registers, aligned)
            self.vector(prefix + op + " {x}, {m}", registers, aligned)

    def vectors(self):
        xmm = ["xmm%d" % i for i in range(16)]
        ymm = ["ymm%d" % i for i in range(16)]
        self.moves(["movups", "movupd", "movdqu", "movss", "movsd", "movd", "movq"], xmm)
        self.moves(["movlps", "movlpd", "movhps", "movhpd"], xmm)
        self.moves(["movaps", "movapd", "movdqa"], xmm, aligned=16)
        for op in ("movntps", "movntpd", "movntdq"):
            self.vector(op + " {x}, {m}", xmm, 16)
        self.vector("lddqu {m}, {x}", xmm)
        self.vector("movntdqa {m}, {x}", xmm, 16)
        if not cpu_has("avx", "avx2"):
            return
        self.moves(["movups", "movupd", "movdqu"], xmm + ymm, "v")
        self.moves(["movss", "movsd", "movd", "movq"], xmm, "v")
        self.moves(["movaps", "movapd", "movdqa"], xmm + ymm, "v", 32)
        for op in ("vmovntps", "vmovntpd", "vmovntdq"):
            self.vector(op + " {x}, {m}", xmm + ymm, 32)
        self.vector("vlddqu {m}, {x}", xmm + ymm)
        self.vector("vmovntdqa {m}, {x}", xmm + ymm, 32)
        for op in ("vmovlps", "vmovlpd", "vmovhps", "vmovhpd"):
            self.vector(op + " {m}, {y}, {x}", xmm)
            self.vector(op + " {x}, {m}", xmm)
        if not cpu_has("avx512f", "avx512vl", "avx512bw"):
            return
        every = ["%smm%d" % (k, i) for k in "xyz" for i in range(32)]
        high = ["xmm%d" % i for i in range(16, 32)]
        self.moves(["vmovdqu8", "vmovdqu16", "vmovdqu32", "vmovdqu64", "vmovups", "vmovupd"],
                   every)
        self.moves(["vmovdqa32", "vmovdqa64", "vmovaps", "vmovapd"], every, aligned=64)
        self.moves(["vmovss", "vmovsd", "vmovd", "vmovq"], high)
        for op in ("vmovlps", "vmovhpd"):
            self.vector(op + " {m}, {y}, {x}", high)
            self.vector(op + " {x}, {m}", high)
        for op in ("vmovntps", "vmovntdq"):
            self.vector(op + " {x}, {m}", every, 64)

    def assembly(self, out):
        out.write("\t.text\n")
        for i, (text, _) in enumerate(self.cases):
            out.write("c%d: %s\n\tjmp *resume_at(%%rip)\n" % (i, text))
        out.write('\t.section .rodata\ninsn_texts:\n')
        for i, (text, _) in enumerate(self.cases):
            out.write('t%d: .asciz "%s"\n' % (i, text))
        out.write("\t.section .data.rel.ro,\"aw\"\n\t.p2align 4\n\t.globl insn_table\ninsn_table:\n")
        for i, (_, kind) in enumerate(self.cases):
            out.write("\t.quad c%d, t%d, %d\n" % (i, i, kind))
        out.write("\t.globl insn_count\ninsn_count: .quad %d\n" % len(self.cases))


ORDER = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
FLAGS_AT, VECTORS_AT = 128, 256


def write_runner(out, move, kind, count):
    """insn_run(code, state): all registers in, the code, all registers out."""
    others = [r for r in ORDER if r not in ("rsp", "rsi")]
    out.write("\t.text\n\t.globl insn_run\ninsn_run:\n")
    for r in ("rbx", "rbp", "r12", "r13", "r14", "r15"):
        out.write("\tpush %%%s\n" % r)
    out.write("\tmov %rdi, code_at(%rip)\n\tmov %rsi, state_at(%rip)\n")
    out.write("\tlea resume(%rip), %rax\n\tmov %rax, resume_at(%rip)\n")
    for i in range(count):
        out.write("\t%s %d(%%rsi), %%%s%d\n" % (move, VECTORS_AT + 64 * i, kind, i))
    out.write("\tpushq %d(%%rsi)\n\tpopfq\n" % FLAGS_AT)
    for r in others + ["rsi"]:
        out.write("\tmov %d(%%rsi), %%%s\n" % (8 * ORDER.index(r), r))
    out.write("\tjmp *code_at(%rip)\nresume:\n\tmov %rsi, rsi_is(%rip)\n"
              "\tmov state_at(%rip), %rsi\n")
    for r in others:
        out.write("\tmov %%%s, %d(%%rsi)\n" % (r, 8 * ORDER.index(r)))
    out.write("\tmov rsi_is(%%rip), %%rax\n\tmov %%rax, %d(%%rsi)\n" % (8 * ORDER.index("rsi")))
    out.write("\tpushfq\n\tpopq %d(%%rsi)\n\tcld\n" % FLAGS_AT)
    for i in range(count):
        out.write("\t%s %%%s%d, %d(%%rsi)\n" % (move, kind, i, VECTORS_AT + 64 * i))
    for r in ("r15", "r14", "r13", "r12", "rbp", "rbx"):
        out.write("\tpop %%%s\n" % r)
    out.write("\tret\n\t.local code_at, state_at, resume_at, rsi_is\n")
    for name in ("code_at", "state_at", "resume_at", "rsi_is"):
        out.write("\t.comm %s, 8, 8\n" % name)
    out.write('\t.section .note.GNU-stack,"",@progbits\n')


def main():
    table = Table()
    table.integers()
    table.wide()
    table.strings()
    table.vectors()
    name = "libmk-insn-%d" % os.getpid()
    env = dict(os.environ, KRON_BOARD=name, LC_ALL="C")
    rounds = sys.argv[1] if len(sys.argv) > 1 else "20"
    seed = sys.argv[2] if len(sys.argv) > 2 else str(random.getrandbits(48))
    with tempfile.TemporaryDirectory(prefix="kron-test.") as tmp:
        source = os.path.join(tmp, "table.S")
        with open(source, "w") as out:
            table.assembly(out)
            if cpu_has("avx512f"):
                vectors = 32
                write_runner(out, "vmovdqu64", "zmm", 32)
            elif cpu_has("avx"):
                vectors = 16
                write_runner(out, "vmovdqu", "ymm", 16)
            else:
                vectors = 16
                write_runner(out, "movdqu", "xmm", 16)
        prog = os.path.join(tmp, "insn")
        subprocess.run(CC + ["-O1", "-g", "-no-pie", "-o", prog,
                             os.path.join(TOP, "tests/bins/libmk/insn.c"), source,
                             "-I" + os.path.join(TOP, "include"),
                             os.path.join(BUILD, "board/libmk/libmk.a"), "-pthread"], check=True)
        try:
            r = subprocess.run([prog, seed, rounds, str(vectors)], env=env, timeout=280,
                               stdout=subprocess.PIPE, universal_newlines=True)
        finally:
            subprocess.run([os.path.join(BUILD, "kron"), "board", "rm", name],
                           stderr=subprocess.DEVNULL)
    print(r.stdout, end="")
    print("# again: tests/e2e/board/libmk_insn.py %s %s" % (rounds, seed))
    print("%sok 1 - instructions do on the board what they do in memory" %
          ("not " if r.returncode else ""))
    print("1..1")
    sys.exit(r.returncode != 0)


main()
