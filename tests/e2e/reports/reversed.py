#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""reversed.py - messages between nodes whose clocks disagree: each belongs to its own sending, and those that arrive before they are sent are told.

Truth: the number of messages that a program has sent through a pipe, and by how much this test has put a clock wrong."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, compile_text, need  # noqa: E402

N = 300
GAP_MS = 2
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void send_it(long i) { if (write(1, &i, sizeof(i)) != sizeof(i)) _exit(2); }
__attribute__((noinline, noclone)) void got_it(long i) { if (i < 0) _exit(3); }
int main(int argc, char **argv)
{
    long i, n = atol(argv[1]);
    if (argc == 2)
        while (read(0, &i, sizeof(i)) == sizeof(i)) got_it(i);
    else
        for (i = 0; i < n; i++) { send_it(i); usleep(%d000); }
    return 0;
}
""" % GAP_MS


def record():
    compile_text("program", PROGRAM, "-O2")
    ends = os.pipe()
    begun = [subprocess.Popen([KRON, "record", "-q", "-o", t, "--node", n, "-F", "*_it", "--", "./program", str(N), *more], stdin=given, stdout=out)
             for t, n, more, given, out in (("a", "1", ["send"], subprocess.DEVNULL, ends[1]), ("b", "2", [], ends[0], None))]
    for fd in ends:
        os.close(fd)
    need([p.wait(60) for p in begun] == [0, 0], "their status")
    with open("info", "w", encoding="utf-8") as f:
        f.write('4 send_it got_it "message"\n')


def put_wrong(trace, us):
    """Its host was another one, and that one's clock goes wrong by so much."""
    path = os.path.join(trace, "session")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"(?m)^boot_id=.*$", "boot_id=00000000-0000-4000-8000-000000000001", text)
    text = re.sub(r"(?m)^start_real_ns=(\d+)$", lambda m: f"start_real_ns={int(m[1]) + 1000 * us}", text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def messages(*more):
    out = subprocess.run([KRON, "report", "--json", "-i", "info", *more, "a", "b"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)[0]


def one_clock():
    record()
    m = messages()
    need(m["count"] == N and m["negative"] == m["begun"] == m["ended"] == 0 and m["min_ns"] > 0, m)


def early():
    """Each arrives 9 ms before it is sent: four or five others are under way."""
    record()
    truth = messages()
    put_wrong("b", -9000)
    m = messages()
    need(m["count"] == N and m["begun"] == m["ended"] == 0, m)
    # but for those that took longer than the clock is wrong
    need(m["negative"] > N * 9 // 10, m)
    need(abs(m["most_negative_ns"] - (9_000_000 - truth["min_ns"])) < 500_000, f"{m}, in truth {truth}")
    text = subprocess.run([KRON, "report", "-i", "info", "a", "b"], capture_output=True, text=True, check=True).stdout
    need(f"({m['negative']} end before they begin, by " in text and "clocks of the nodes disagree" in text, text)
    html = subprocess.run([KRON, "view", "-i", "info", "-o", "-", "a", "b"], capture_output=True, text=True, check=True).stdout
    data = json.loads(html.split('id="kron-data">')[1].split("</script>")[0])
    need(data["all_messages"] == N and data["intervals"][0]["negative"] == m["negative"], data["intervals"])
    back = {(a, b): r - s for _, s, a, r, b in data["messages"]}
    need(len(back) == 1 and all(d < 0 for d in back.values()), back)


def late():
    """Each arrives 9 ms late: longer messages, and none the wrong way."""
    record()
    truth = messages()
    put_wrong("b", 9000)
    m = messages()
    need(m["count"] == N and m["negative"] == m["begun"] == m["ended"] == 0, m)
    need(abs(m["min_ns"] - truth["min_ns"] - 9_000_000) < 500_000, f"{m}, in truth {truth}")


with Suite("reversed") as s:
    s.case("one clock", one_clock)
    s.case("messages that arrive before they are sent", early)
    s.case("messages that arrive late", late)
