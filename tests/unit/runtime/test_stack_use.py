#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_stack_use.py - what the thunks' C needs of the stack, from the disassembly: no more than the
thunks touch before they call it (runtime/core/thunk.inc: RT_STACK_*).

A function needs what it pushes and subtracts, and the most that one of those needs which it calls.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
SRC = os.environ.get("KRON_TOP_SRC", ".")
BUILD = os.environ.get("KRON_TOP_BUILD", ".")
CALL_C = 96  # what the macro itself pushes, and aligns
ROUNDS = 3  # the board's state is repaired by bus cycles, which may find it in need of repair
# what is called by a pointer
POINTERS = {"rt_wait_while": ["is_memory_nearly_full"]}


def constants():
    with open(os.path.join(SRC, "runtime/core/lane.h")) as f:
        return {n: int(v) for n, v in re.findall(r"#define (RT_STACK_\w+) (\d+)", f.read())}


def thunks():
    """Which C functions are called, and what is touched for each."""
    found = {}
    for name in ("core/thunk", "dynamic/thunk_constant", "dynamic/thunk_sparse", "bus/thunk_bus", "memory/thunk_memory", "static/thunk_static"):
        with open(os.path.join(SRC, "runtime", name + ".S")) as f:
            for function, need in re.findall(r"^\s+CALL_C\s+(\w+), \d+(?:, (\w+))?", f.read(), re.M):
                found[function] = need or "RT_STACK_LANE"
    return found


class Program:
    def __init__(self, path):
        self.frame, self.calls, self.seen = {}, {}, {}
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True,
                              check=True).stdout
        function = None
        for line in text.splitlines():
            head = re.match(r"[0-9a-f]+ <(.+)>:", line)
            if head:
                function = head[1]
                self.frame[function], self.calls[function] = 0, []
            code = re.match(r"\s+[0-9a-f]+:\s+(?:(?:bnd|notrack) )?(\S+)\s*(.*)", line)
            if code and function:
                self.instruction(function, code[1], code[2])

    def instruction(self, function, op, operands):
        moved = re.match(r"\$0x([0-9a-f]+),%rsp", operands)
        lea = re.match(r"-0x([0-9a-f]+)\(%rsp\),%rsp", operands)
        if op.startswith("push"):
            self.frame[function] += 8
        elif moved and op in ("sub", "add"):
            n = int(moved[1], 16)
            n = n - (1 << 64) if n >> 63 else n
            self.frame[function] += max(0, n if op == "sub" else -n)
        elif op == "lea" and lea:
            self.frame[function] += int(lea[1], 16)
        elif op == "call" or op.startswith("j"):
            target = re.search(r"<([^>+]+)(?:\+0x[0-9a-f]+)?>", operands)
            for to in [target[1]] if target else POINTERS.get(function, []) if op == "call" else []:
                if to != function:
                    self.calls[function].append((to, op == "call"))

    def need(self, function, path=()):
        """(bytes, the way there)"""
        if path.count(function) >= ROUNDS or function not in self.frame:
            return 0, ()
        if function in self.seen:
            return self.seen[function]
        most, way = 0, ()
        for to, is_call in self.calls[function]:
            n, rest = self.need(to, path + (function,))
            n = n + 8 if is_call else n - self.frame[function]  # a tail jump leaves the frame
            if n > most:
                most, way = n, rest
        answer = most + self.frame[function], (f"{function} {self.frame[function]}",) + way
        if len(set(path)) == len(path):  # else it may depend on the way
            self.seen[function] = answer
        return answer


def main():
    need, count, failed = constants(), 0, 0
    for path in ("runtime/libkron-rt.so", "runtime/kron-start"):
        program = Program(os.path.join(BUILD, path))
        for function, touched in sorted(thunks().items()):
            if function not in program.frame:
                continue
            count += 1
            bytes_, way = program.need(function)
            ok = 0 < bytes_ + CALL_C <= need[touched]
            failed += not ok
            print(f"{'ok' if ok else 'not ok'} {count} - {path}: {function}, {bytes_} of {need[touched]} bytes")
            if not ok:
                print("#", " > ".join(way))
    print(f"1..{count}")
    return failed or count < 10


sys.exit(1 if main() else 0)
