# SPDX-License-Identifier: MIT
"""nodes.py - bench.py's rows about a folder of many nodes: what reading takes, by their number.

Each is the trace of one small program, as if it came from a host of its own."""
import os
import re
import shutil

NODES = 64, 1024

CALLS = """
__attribute__((noinline)) int called(int i) { __asm__ volatile("nopl 0(%rax)"); return i + 1; }
int main(void) { int n = 0; for (int i = 0; i < 20000; i++) n = called(n); return n == 1; }
"""


def as_node(one, folder, n):
    path = "%s/%d" % (folder, n)
    shutil.copytree(one, path)
    with open(path + "/session") as f:
        text = f.read()
    for key, value in (("node", n), ("hostname", "h%d" % n), ("recording", "%016x" % (n + 1)),
                       ("boot_id", "00000000-0000-4000-8000-%012x" % n)):
        text = re.sub(r"(?m)^%s=.*$" % key, "%s=%s" % (key, value), text)
    with open(path + "/session", "w") as f:
        f.write(text)


def rows(b):
    g = "many nodes, 40,000 samples each"
    source, program, one, folder = (b.tmp + "/" + n for n in ("calls.c", "calls", "one", "nodes"))
    with open(source, "w") as f:
        f.write(CALLS)
    b.run(["cc", "-O2", "-o", program, source])
    b.run([b.kron, "record", "-q", "-o", one, program])
    os.mkdir(folder)
    done, seconds = 0, {}
    for n in NODES:
        for i in range(done, n):
            as_node(one, folder, i)
        done = n
        _, seconds[n], mb = b.measured([b.kron, "report", folder])
        least = n * seconds[NODES[0]] / NODES[0]
        b.row(g, "report of %d" % n, seconds[n], "s", None if n == NODES[0] else "< %.1f" % (1.5 * least),
              None if n == NODES[0] else seconds[n] < 1.5 * least, "of processor")
        b.row(g, "report of %d, memory" % n, mb, "MB", "< 500", mb < 500)
    shutil.rmtree(folder)
