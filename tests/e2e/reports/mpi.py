#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 900
"""mpi.py - the messages of MPI programs: each send with its receive, who is late, a directory for each rank.

Truth: what the program (tests/e2e/reports/mpi_talk.c) says that it has sent, rank by rank; which rank it makes slow."""
import contextlib
import functools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, SRC, Skip, Suite, need, rnd  # noqa: E402

os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
ROUNDS = 18


@functools.cache
def works():
    """Untraced: it wants a network, and more."""
    return subprocess.run(mpirun(2, "/bin/true"), stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode == 0


def build():
    if not shutil.which("mpicc.openmpi") or not shutil.which("mpirun.openmpi"):
        raise Skip("no Open MPI here")
    if not works():
        raise Skip("Open MPI cannot start ranks here")
    subprocess.run(["mpicc.openmpi", "-O1", "-g", "-o", "talk", f"{SRC}/tests/e2e/reports/mpi_talk.c"], check=True)


def run(*command, status=0, seconds=120):
    r = subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
    need(r.returncode == status, f"{command}: {r}")
    return r


def mpirun(n, *args):
    return ["mpirun.openmpi", "--oversubscribe", "-n", str(n), *args]


def report(*traces):
    return json.loads(run(KRON, "report", "--json", "--messages", *traces).stdout)


def truth(out):
    lines = [line.split() for line in out.splitlines()]
    sent = {(int(w[0]), int(w[1])): (int(w[2]), int(w[3])) for w in lines if len(w) == 4 and w[0].isdigit()}
    return sent, next(int(w[1]) for w in lines if w[0] == "collectives")


def need_all_matched(got, out):
    sent, collectives = truth(out)
    rows = {(m["from"]["rank"], m["to"]["rank"]): (m["count"], m["bytes"]) for m in got["messages"]}
    need(rows == sent, f"{rows}\n{sent}")
    n = sum(c for c, _ in sent.values())
    keys = ("matched", "sends", "receives", "collectives")
    need([got[k] for k in keys] == [n, n, n, collectives], {k: got[k] for k in got if isinstance(got[k], int)})
    keys = ("differing", "sent_only", "received_only", "from_any", "in_doubt", "unordered", "unknown_communicator", "broken", "collectives_cut", "lost")
    need(not any(got[k] for k in keys), {k: got[k] for k in keys})
    need(all(m["negative"] == 0 < m["min_ns"] <= m["max_ns"] for m in got["messages"]), got["messages"])
    for p in got["processes"]:
        need(p["sent"] == sum(c for (a, _), (c, _) in sent.items() if a == p["rank"]), p)
        need(p["received_bytes"] == sum(b for (_, to), (_, b) in sent.items() if to == p["rank"]), p)


def every_way(n):
    """Blocking and not, persistent, tested, buffered, from any rank, any tag, on communicators that share a number."""
    build()
    r = run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(n, "./talk", str(ROUNDS)))
    need_all_matched(report("t"), r.stdout)
    need_exports(report("t"))
    need(truth(run(*mpirun(n, "./talk", str(ROUNDS))).stdout) == truth(r.stdout), "it talks as it does untraced")
    text = run(KRON, "report", "--messages", "t").stdout
    need(f"{report('t')['matched']:,} messages, " in text and " -> rank 1, " in text, text)


def traps():
    """Calls that make others count once; a number that is used again is another communicator, in archives, too."""
    build()
    r = run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(4, "./talk", "traps"))
    need_all_matched(report("t"), r.stdout)
    need_exports(report("t"))


def untold():
    """When a receive was done that nobody asks for, or that was asked for again after it had been returned, nobody knows."""
    build()
    run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(2, "./talk", "untold"))
    m = report("t")["messages"]
    need([(x["count"], x["negative"]) for x in m] == [(4, 0)] and not m[0].get("max_ns"), m)


def threads(tags):
    """Of two that are in a send at the same time nobody knows which was first, but by its tag."""
    build()
    run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(2, "./talk", "threads", str(tags)))
    need((report("t")["matched"], report("t")["unordered"]) == (2, 2 - tags), report("t"))
    need(("another thread of the rank" in run(KRON, "report", "--messages", "t").stdout) == (tags == 1), tags)


def between_probe_and_receive():
    build()
    run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(2, "./talk", "probes"))
    got = report("t")
    keys = ("matched", "sends", "sent_only", "from_any", "in_doubt")
    need([got[k] for k in keys] == [0, 2, 2, 1, 1], got)


def a_directory_a_rank():
    """One run after another, more and fewer ranks, and a plain recording after them."""
    build()
    for n in (4, 3):
        r = run(*mpirun(n, KRON, "record", "-q", "-P", "mpi", "--", "./talk", str(ROUNDS)))
        need(sorted(os.listdir("kron.data")) == [".job", *map(str, range(n))], os.listdir("kron.data"))
        need_all_matched(report(), r.stdout)
    need(sorted(os.listdir("kron.data.old")) == [".job", *map(str, range(4))], os.listdir("kron.data.old"))
    for _ in range(2):
        run(KRON, "record", "-q", "/bin/true")
        need("session" in os.listdir("kron.data"), os.listdir("kron.data"))
    run(*mpirun(2, KRON, "record", "-q", "/bin/true"))
    need(sorted(os.listdir("kron.data")) == [".job", "0", "1"] and "session" in os.listdir("kron.data.old"), os.listdir("."))
    os.mkdir("mine")
    with open("mine/letter", "w", encoding="utf-8") as f:
        f.write("dear")
    r = subprocess.run(mpirun(2, KRON, "record", "-q", "-o", "mine", "/bin/true"), capture_output=True, text=True, timeout=60)
    need(r.returncode and "mine is not a trace directory (it holds letter)" in r.stderr and os.listdir("mine") == ["letter"], r)


def nothing_of_the_users_goes():
    """What stands in the folder of an older job, behind links, or under a name with a slash at its end."""
    def record(where, status=0):
        r = subprocess.run(mpirun(2, KRON, "record", "-q", "-o", where, "/bin/true"), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        need(bool(r.returncode) == bool(status), r)
        return r.stderr
    for name in ("letter", "baseline"):
        record("a")
        if name == "baseline":
            shutil.copytree("a/0", "a/baseline")
        else:
            with open("a/letter", "w", encoding="utf-8") as f:
                f.write("dear")
        record("a")
        before = sorted(os.listdir("a.old"))
        told = record("a", 1)
        need(f"a.old, of an older MPI job: it holds {name}, which is no trace of a rank" in told, told)
        need(before == sorted(os.listdir("a.old")) == sorted([".job", "0", "1", name]) and "session" in os.listdir("a.old/1"), os.listdir("a.old"))
        shutil.rmtree("a")
        shutil.rmtree("a.old")
    os.mkdir("disk")
    os.symlink("disk", "b")
    for _ in range(4):
        record("b")
    need("session" in os.listdir("disk/1") and sorted(os.listdir("b.old")) == [".job", "0", "1"], os.listdir("."))
    for _ in range(3):
        run(*mpirun(2, KRON, "record", "-q", "-o", "c/", "/bin/true"))
        run(*mpirun(3, KRON, "record", "-q", "-o", "c//", "/bin/true"))
    need((len(os.listdir("c")), len(os.listdir("c.old"))) == (4, 3), os.listdir("."))


def a_mark_that_nobody_writes():
    """A pipe in place of the mark does not hold up a recording."""
    os.mkdir("kron.data")
    os.mkfifo("kron.data/.job")
    r = subprocess.run([KRON, "record", "-q", "/bin/true"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    need(r.returncode == 1 or "session" in os.listdir("kron.data"), r)


def need_exports(got):
    """A third party reads the same: SQLite, and otf2-print, which looks the receiver up in the communicator's group."""
    run(KRON, "export", "-f", "sqlite", "-o", "db", "t")
    with contextlib.closing(sqlite3.connect("db")) as db:
        rows = db.execute("SELECT from_process, to_process, messages, bytes, total_ns, min_ns, max_ns FROM message_matrix").fetchall()
        bad = db.execute("PRAGMA foreign_key_check").fetchall()
        waits = db.execute("SELECT sum(CAST(w.stop * t.tick_ns AS INT) - CAST(w.start * t.tick_ns AS INT)) FROM mpi_wait w JOIN trace t USING(trace_id)").fetchone()[0]
    want = {(m["from"]["process_uid"], m["to"]["process_uid"]): [m[k] for k in ("count", "bytes", "total_ns", "min_ns", "max_ns")] for m in got["messages"]}
    db_rows = {tuple(r[:2]): list(r[2:]) for r in rows}
    near = all(abs(a - b) <= 2 * w[0] + 2 for k, w in want.items() for a, b in zip(w, db_rows[k]))
    need(not bad and db_rows.keys() == want.keys() and near and all(db_rows[k][:2] == w[:2] for k, w in want.items()), f"{bad} {db_rows} {want}")
    waited = sum(p["waited_ns"] for p in got["processes"])
    need(abs(waits - waited) < 1e-4 * waited + 1e4, f"{waits} {waited}")
    need(abs(waited - sum(p["caused_ns"] for p in got["processes"])) < 1e-4 * waited + 1e4, got["processes"])
    run(KRON, "view", "-o", "page.html", "t")
    with open("page.html", encoding="utf-8") as f:
        page = f.read()
    drawn = json.loads(re.search(r'"messages":(\[\[.*?\]\])', page)[1])
    n = sum(m["count"] for m in got["messages"])
    need(f'"all_messages":{n},' in page and len(drawn) == n and '"message_names":["MPI"]' in page, page[:200])
    need(abs(sum(m[3] - m[1] for m in drawn) - sum(m["total_ns"] for m in got["messages"])) <= 2 * n, drawn[:5])
    run(KRON, "export", "-f", "otf2", "-o", "archive", "t")
    if not shutil.which("otf2-print"):
        return
    seen = {}
    for kind, way in (("SEND", "Receiver"), ("RECV", "Sender")):
        for a, b, size in re.findall(rf"(?m)^MPI_{kind} +(\d+) +\d+ +{way}: \d+ \(\".*?\" <(\d+)>\), .*Length: (\d+)$", run("otf2-print", "archive/traces.otf2").stdout):
            key = kind, *((a, b) if kind == "SEND" else (b, a))
            seen[key] = (seen.get(key, (0, 0))[0] + 1, seen.get(key, (0, 0))[1] + int(size))
    for kind in ("SEND", "RECV"):
        pairs = sorted(v for k, v in seen.items() if k[0] == kind)
        need(pairs == sorted((m["count"], m["bytes"]) for m in got["messages"]), f"{kind} {seen}")


def from_any_rank(knows_library):
    """What it has received says what arrives at the library; where that is not seen, what it may have been is not matched by luck."""
    build()
    with open(f"{SRC}/probes/packs/mpi.probe", encoding="utf-8") as f, open("less.probe", "w", encoding="utf-8") as out:
        out.writelines(line for line in f if "MPI_arrival" not in line)
    run(KRON, "record", "-q", "-o", "t", "-P", "mpi" if knows_library else "./less.probe", "--", *mpirun(3, "./talk", "wildcard"))
    got = report("t")
    want = [5, 5, 5, 1, 0, 0, 0, 0] if knows_library else [3, 5, 5, 1, 1, 1, 2, 0]
    need([got[k] for k in ("matched", "sends", "receives", "cancelled", "from_any", "in_doubt", "sent_only", "differing")] == want, got)


def who_is_slow(way, n):
    """The rank that is, and not those that it makes wait: that which was busy for longest, as the ranks have measured it."""
    build()
    which = rnd.randrange(1, n)
    r = run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(n, "./talk", way, str(which)))
    busy = {int(rank): float(ms) for rank, ms in re.findall(r"(?m)^busy (\d+) ([\d.]+)$", r.stdout)}
    got = report("t")["processes"]
    # where other work of the machine has made another one nearly as busy, it may be that one
    need(busy[got[0]["rank"]] >= 0.7 * max(busy.values()) and got[0]["caused_ns"] > 100e6, f"{which} {busy} {got}")


def clocks_that_disagree():
    """As if each rank had run on a host of its own, whose clock is wrong: messages stay the same ones, and can be mended."""
    build()
    r = run(*mpirun(4, KRON, "record", "-q", "-P", "mpi", "--", "./talk", str(ROUNDS)))
    for rank, us in enumerate((0, -20000, 700, 300000)):
        path = f"kron.data/{rank}/session"
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"(?m)^boot_id=.*$", f"boot_id=00000000-0000-4000-8000-00000000000{rank}", f.read())
        with open(path, "w", encoding="utf-8") as f:
            f.write(re.sub(r"(?m)^start_real_ns=(\d+)$", lambda m, us=us: f"start_real_ns={int(m[1]) + 1000 * us}", text))
    for options, wrong in ([], True), (["--mend-clocks", "mpi", "-q"], False):
        got = report(*options, "kron.data")
        negative = sum(m["negative"] for m in got["messages"])
        need((negative > 0) == wrong, f"{options} {negative}")
        for m in got["messages"]:
            m["negative"], m["min_ns"], m["max_ns"] = 0, m["min_ns"] or 1, m["max_ns"] or 1
        need_all_matched(got, r.stdout)


def nothing_there():
    run(KRON, "record", "-q", "-o", "t", "/bin/true")
    r = run(KRON, "report", "--messages", "t", status=1)
    need(r.stderr.count("\n") == 1 and "record -P mpi" in r.stderr, r.stderr)


with Suite("mpi") as s:
    s.case("each send has its receive: 4 ranks, in one trace", every_way, 4)
    s.case("calls that make others, numbers that are used again", traps)
    s.case("receives of which nobody knows when they are done", untold)
    s.case("threads that send under one tag", threads, 1)
    s.case("... and under two", threads, 2)
    s.case("a receive between a matched probe and its receive", between_probe_and_receive)
    s.case("a directory for each rank", a_directory_a_rank)
    s.case("nothing of the user's goes with an older job", nothing_of_the_users_goes)
    s.case("a mark that is a pipe", a_mark_that_nobody_writes)
    s.case("a receive from any rank that says nothing", from_any_rank, True)
    s.case("... where the library has not been seen", from_any_rank, False)
    s.case("a slow rank is named first", who_is_slow, "slow", 5)
    s.case("a late sender is named first", who_is_slow, "late", 4)
    s.case("hosts whose clocks disagree", clocks_that_disagree)
    s.case("a trace without MPI", nothing_there)
