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
BEHIND_MS = 40  # more than a message takes on a busy machine
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


def put_wrong(trace, us, host=1):
    """Its host was another one, and that one's clock goes wrong by so much."""
    path = os.path.join(trace, "session")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"(?m)^boot_id=.*$", f"boot_id=00000000-0000-4000-8000-00000000000{host}", text)
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
    """Each arrives long before it is sent: some twenty others are under way."""
    record()
    truth = messages()
    put_wrong("b", -1000 * BEHIND_MS)
    m = messages()
    need(m["count"] == N and m["begun"] == m["ended"] == 0, m)
    # but for those that took longer than the clock is wrong
    need(m["negative"] > N * 9 // 10, m)
    need(abs(m["most_negative_ns"] - (BEHIND_MS * 1_000_000 - truth["min_ns"])) < 500_000, f"{m}, in truth {truth}")
    text = subprocess.run([KRON, "report", "-i", "info", "a", "b"], capture_output=True, text=True, check=True).stdout
    need(f"({m['negative']} end before they begin, by " in text and "clocks of the nodes disagree" in text, text)
    html = subprocess.run([KRON, "view", "-i", "info", "-o", "-", "a", "b"], capture_output=True, text=True, check=True).stdout
    data = json.loads(html.split('id="kron-data">')[1].split("</script>")[0])
    need(data["all_messages"] == N and data["intervals"][0]["negative"] == m["negative"], data["intervals"])
    back = {(a, b): r - s for _, s, a, r, b in data["messages"]}
    need(len(back) == 1 and all(d < 0 for d in back.values()), back)


def messages_of(traces, *more):
    r = subprocess.run([KRON, "report", "--json", "-i", "info", *more, *traces], capture_output=True, text=True, check=True)
    return json.loads(r.stdout), r.stderr


def mended():
    return messages_of(["a", "b"], "--mend-clocks", "info")


def times(*more):
    """of each thread, in order"""
    r = subprocess.run([KRON, "dump", "--json", "-q", *more, "a", "b"], capture_output=True, text=True, check=True)
    out = {}
    for line in r.stdout.splitlines():
        s = json.loads(line)
        if s.get("function"):
            out.setdefault(s["tid"], []).append(s["time_ns"])
    return out


def moved():
    """Mended: each message arrives after it was sent, the sender's times are its own, the receiver's keep order and lengths."""
    record()
    put_wrong("b", -1000 * BEHIND_MS)
    rows, said = mended()
    need(rows[0]["count"] == N and rows[0]["negative"] == rows[0]["begun"] == rows[0]["ended"] == 0, rows)
    far = re.search(r"times of node 2 are moved, by ([0-9.]+) ms", said)
    need(f"of {N} messages between the nodes were received before they were sent" in said and far and BEHIND_MS / 2 < float(far[1]) < BEHIND_MS, said)
    need("node 1" not in said, said)
    before, after = times(), times("--mend-clocks", "info")
    need(sorted(len(v) for v in before.values()) == [2 * N] * 2, {k: len(v) for k, v in before.items()})
    shifts = {k: [y - x for x, y in zip(v, after[k])] for k, v in before.items()}
    same = [k for k, v in shifts.items() if max(v) - min(v) <= 2]
    need(len(same) == 1, {k: (min(v), max(v)) for k, v in shifts.items()})
    (other,) = set(before) - set(same)
    own = shifts[same[0]][0]
    need(after[other] == sorted(after[other]), "order")
    need(all(0 <= s - own <= BEHIND_MS * 1_000_000 for s in shifts[other]), (min(shifts[other]), max(shifts[other])))
    # most calls are a hundredth shorter at most: what is stretched is the wait for a message
    calls = zip(zip(before[other][::2], before[other][1::2]), zip(after[other][::2], after[other][1::2]))
    grown = sorted((abs((a[1] - a[0]) - (b[1] - b[0])) - 2) / (b[1] - b[0] + 1) for b, a in calls)  # times are whole ns
    need(grown[len(grown) // 2] <= 0.011, grown[len(grown) // 2:])


RING = """
#include <stdlib.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
static long word;
#define ROLE(k) OWN void send_##k(void) { word += k + 1; if (write(1, &word, 8) != 8) _exit(2); } OWN void take_##k(void) { word -= k + 1; }
ROLE(0) ROLE(1) ROLE(2) ROLE(3)
static void (*const sends[])(void) = {send_0, send_1, send_2, send_3}, (*const takes[])(void) = {take_0, take_1, take_2, take_3};
int main(int argc, char **argv)
{
    int role = atoi(argv[1]), n = atoi(argv[2]);
    if (role)
        while (read(0, &word, 8) == 8) { takes[role](); sends[role](); }
    else
        for (int i = 0; i < n; i++) { sends[0](); if (read(0, &word, 8) != 8) return 3; takes[0](); usleep(i % 40 * 50); }
    return argc != 3;
}
"""


def ring():
    """Four hosts in a ring, each with a clock of its own: no message is the wrong way."""
    compile_text("program", RING, "-O2")
    pipes, names = [os.pipe() for _ in range(4)], [f"n{k}" for k in range(4)]
    begun = [subprocess.Popen([KRON, "record", "-q", "-o", names[k], "--node", str(k + 1), "-F", "send_*", "-F", "take_*", "--", "./program", str(k), str(N)],
                              stdin=pipes[k][0], stdout=pipes[(k + 1) % 4][1]) for k in range(4)]
    for fd in sum(pipes, ()):
        os.close(fd)
    need([p.wait(60) for p in begun] == [0] * 4, "their status")
    with open("info", "w", encoding="utf-8") as f:
        f.writelines(f'4 send_{k} take_{(k + 1) % 4} "{k}"\n' for k in range(4))
    who_sends_to_whom(names)
    was = (0, 0, 0)
    for us in ((-700, -20000, 300), (40, -35, 20000), (-3, 5, -8)):
        for k in range(3):
            put_wrong(names[k + 1], us[k] - was[k], k + 1)
        was = us
        plain = messages_of(names)
        rows, said = messages_of(names, "--mend-clocks", "info")
        need([r["count"] for r in plain[0]] == [r["count"] for r in rows] == [N] * 4, f"{plain} {rows}")
        need(sum(r["negative"] for r in rows) == 0 < sum(r["negative"] for r in plain[0]) or max(us) < 100, f"{us}: {rows}\n{said}")
        # a message lasts no longer than it did by more than all clocks are wrong
        need(all(r["max_ns"] <= p["max_ns"] + 2000 * sum(map(abs, us)) for r, p in zip(rows, plain[0])), f"{us}: {rows}")


def who_sends_to_whom(names):
    """The ring, as --messages has it."""
    rows = json.loads(subprocess.run([KRON, "report", "-q", "--json", "--messages", "-i", "info", *names], capture_output=True, text=True, check=True).stdout)
    need([r["count"] for r in rows] == [N] * 4, rows)
    got = {r["message"]: (r["from"]["process"].split(".")[0], r["to"]["process"].split(".")[0]) for r in rows}
    need(got == {str(k): (str(k + 1), str((k + 1) % 4 + 1)) for k in range(4)}, got)
    plain = {r["interval"]: r for r in messages_of(names)[0]}
    need(all(r[k] == plain[r["message"]][k] for r in rows for k in ("total_ns", "min_ns", "max_ns", "negative")), rows)
    text = subprocess.run([KRON, "report", "-q", "--messages", "-i", "info", *names], capture_output=True, text=True, check=True).stdout
    need(len(text.splitlines()) == 5 and " program -> " in text, text)


def refusals():
    record()
    for args, word, status in ((["a"], "one trace", 2), (["--mend-clocks", "nosuch", "a", "b"], "nosuch", 1)):
        r = subprocess.run([KRON, "report", *(["--mend-clocks", "info"] if len(args) == 1 else []), *args], capture_output=True, text=True)
        need(r.returncode == status and r.stderr.count("\n") == 1 and word in r.stderr, r)
    with open("info", "w", encoding="utf-8") as f:
        f.write('1 send_it send_it%return "call"\n')
    r = subprocess.run([KRON, "report", "--mend-clocks", "info", "a", "b"], capture_output=True, text=True)
    need(r.returncode == 1 and "describes no message" in r.stderr, r)
    for args in (["--messages"], ["--messages", "-i", "info", "--by-thread"], ["--messages", "-i", "info"]):
        r = subprocess.run([KRON, "report", *args, "a", "b"], capture_output=True, text=True)
        need(r.returncode in (1, 2) and r.stderr.count("\n") == 1 and "message" in r.stderr, r)


def hostile():
    """The name of a node is what somebody has called a directory: nothing of it reaches a terminal."""
    record()
    put_wrong("b", -1000 * BEHIND_MS)
    for t in "a", "b":
        with open(os.path.join(t, "session"), encoding="utf-8") as f:
            lines = [line for line in f if not line.startswith(("node=", "node_from="))]
        with open(os.path.join(t, "session"), "w", encoding="utf-8") as f:
            f.writelines(lines)
    os.rename("b", "b\x1b[31m")
    for more in ["-i", "info"], ["-i", "info", "--messages"]:
        r = subprocess.run([KRON, "report", *more, "--mend-clocks", "info", "a", "b\x1b[31m"], capture_output=True, text=True, check=True)
        need("are moved" in r.stderr and "\x1b" not in r.stderr + r.stdout, r)


def missing():
    """Sendings that no reception takes: that pairs may be wrong is told."""
    record()
    put_wrong("b", -1000 * BEHIND_MS)
    need("in no message" not in mended()[1], "none is missing")
    with open("info", "w", encoding="utf-8") as f:
        f.write('4 send_it got_it "message"\n4 send_it 99999 "no end"\n')
    rows, said = mended()
    need("sendings and receptions are in no message" in said, f"{rows} {said}")


def late():
    """Each arrives 9 ms late: longer messages, and none the wrong way."""
    record()
    truth = messages()
    put_wrong("b", 9000)
    m = messages()
    need(m["count"] == N and m["negative"] == m["begun"] == m["ended"] == 0, m)
    need(abs(m["min_ns"] - truth["min_ns"] - 9_000_000) < 500_000, f"{m}, in truth {truth}")
    rows, said = mended()
    need(rows[0] == m and "0 of" in said and "moved" not in said, said)


with Suite("reversed") as s:
    s.case("one clock", one_clock)
    s.case("messages that arrive before they are sent", early)
    s.case("messages that arrive late", late)
    s.case("clocks that are mended", moved)
    s.case("a ring of four", ring)
    s.case("what cannot be mended", refusals)
    s.case("a node of a hostile name", hostile)
    s.case("sendings without a reception", missing)
