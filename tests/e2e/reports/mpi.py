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
from tap import KRON, SRC, Skip, Suite, compile_once, need, rnd  # noqa: E402

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
    compile_once("talk", "mpicc.openmpi", "-O1", "-g", f"{SRC}/tests/e2e/reports/mpi_talk.c")


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
        waits = db.execute("SELECT sum(CAST(w.stop * t.tick_ns AS INT) - CAST(w.start * t.tick_ns AS INT)) FROM message_wait w JOIN trace t USING(trace_id)").fetchone()[0]
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
    need_collectives(got, *(run("otf2-print", *option, "archive/traces.otf2").stdout for option in ([], ["-G"])))
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
    run(KRON, "record", "-q", "-o", "t", "-P", "mpi" if knows_library else pack_without("MPI_arrival"), "--", *mpirun(3, "./talk", "wildcard"))
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


def late_at_a_scan():
    """Ranks above the slow one wait for it, and not those below, which need nothing of it.  Rank 0 waits for all in the end.
    On a busy machine any may wait for any: then it is made again."""
    build()
    which = rnd.randrange(2, 4)
    tried = []
    for _ in range(5):
        run(KRON, "record", "-q", "-o", "t", "-P", "mpi", "--", *mpirun(5, "./talk", "scan", str(which)))
        got = report("t")
        waited = {**dict.fromkeys(range(5), 0), **{p["rank"]: p["waited_ns"] for p in got["processes"]}}
        tried.append((got["collectives"], got["collectives_cut"], waited))
        if tried[-1][:2] == (9, 0) and min(waited[r] for r in range(which + 1, 5)) > 2 * max(waited[r] for r in range(1, which)) + 50e6:
            return
    need(False, f"{which} {tried}")


def two_ranks(way, first, second):
    """Two ranks, each recorded with probes of its own."""
    record = [KRON, "record", "-q", "-o", "ranks"]
    shutil.rmtree("ranks", ignore_errors=True)
    run("mpirun.openmpi", "--oversubscribe", "-n", "1", *record, "-P", first, "./talk", *way, ":",
        "-n", "1", *record, "-P", second, "./talk", *way)
    got = report("ranks")
    run(KRON, "export", "-f", "otf2", "-o", "archive", "ranks")
    archive = run("otf2-print", "archive/traces.otf2").stdout if shutil.which("otf2-print") else None
    shutil.rmtree("archive")
    return got, archive


def pack_without(word):
    with open(f"{SRC}/probes/packs/mpi.probe", encoding="utf-8") as f, open("less.probe", "w", encoding="utf-8") as out:
        out.writelines(line for line in f if word not in line)
    return "./less.probe"


def a_rank_of_which_some_are_missing():
    """From the first that is not the same in all ranks on nothing is told of them: not who waited, and not in archives."""
    build()
    got, archive = two_ranks(["scan", "0"], "mpi", pack_without("MPI_Exscan"))
    need((got["collectives"], got["collectives_cut"]) == (1, 8), got)
    need(archive is None or archive.count("MPI_COLLECTIVE_END") == 2, archive)


def roots():
    """Whose root it is all of its ranks know, or some; what the library refuses is none; what did not end is not half told."""
    build()
    for probes in "mpi", pack_without("MPI_root"):
        got, archive = two_ranks(["roots"], probes, "mpi")
        need((got["collectives"], got["collectives_cut"]) == (6, 0), got)
        waited = {p["rank"]: p["waited_ns"] for p in got["processes"]}
        need(all(waited[r] > 20e6 for r in (0, 1)), f"three times 20 ms: {waited}")
        seen = re.findall(r"MPI_COLLECTIVE_END .*Root: (\d+)", archive or "")
        need(archive is None or sorted(seen) == ["0"] * 6 + ["1"] * 6, archive)
    got, archive = two_ranks(["roots"], "mpi", pack_without("PMPI_Bcast%return"))
    need(archive is None or "MPI_COLLECTIVE" not in archive, archive)


def sizes(n, probes="mpi"):
    """What each rank has given and got is what the program says: also in place, of types with gaps, of a number for each rank."""
    build()
    r = run(KRON, "record", "-q", "-o", "t", "-P", probes, "--", *mpirun(n, "./talk", "sizes"))
    need(report("t")["collectives_cut"] == 0, "some were cut")
    run(KRON, "export", "-f", "otf2", "-o", "archive", "t")
    if not shutil.which("otf2-print"):
        raise Skip("no otf2-print")
    want, seen = {}, {}
    for operation, rank, sent, received in re.findall(r"(?m)^([A-Z_]+) (\d+) (\d+) (\d+)$", r.stdout):
        want.setdefault(rank, []).append((operation, sent, received))
    text = run("otf2-print", "archive/traces.otf2").stdout
    for location, *of_one in re.findall(r"(?m)^MPI_COLLECTIVE_END +(\d+) .*Operation: (\w+), .*Sent: (\d+), Received: (\d+)$", text):
        seen.setdefault(location, []).append(tuple(of_one))
    shutil.rmtree("archive")
    return sorted(want.values()), sorted(seen.values())


def sizes_are_known():
    for n in 2, 18:
        want, seen = sizes(n)
        need(want == seen and len(want) == n, [(a, b) for x, y in zip(want, seen) for a, b in zip(x, y) if a != b][:5])


def sizes_are_not_known():
    """Where a rank's part is not known nothing is said of all: the archive has 0."""
    want, seen = sizes(4, pack_without("PMPI_Scan bytes"))
    need(seen == [[(o, *(("0", "0") if o == "SCAN" else rest)) for o, *rest in v] for v in want], seen)


def need_collectives(got, text, definitions):
    """What otf2-print shows of them: in each communicator all ranks have the same ones, in the same order."""
    by_comm, is_open, begun = {}, {}, 0
    for line in text.splitlines():
        w = line.split()
        if w and w[0] == "MPI_COLLECTIVE_BEGIN":
            need(not is_open.get(w[1]), line)
            is_open[w[1]] = True
            begun += 1
        elif w and w[0] == "MPI_COLLECTIVE_END":
            need(is_open.pop(w[1], False), line)
            m = re.search(r'Operation: (\w+), Communicator: ".*?" <(\d+)>, Root: (.*), Sent: (\w+), Received: (\w+)$', line)
            need(m, line)
            need((m[3] != "NONE") == (m[1] in ("BCAST", "REDUCE", "GATHER", "SCATTER")), line)
            by_comm.setdefault(m[2], {}).setdefault(w[1], []).append((m[1], m[3].split()[0]))
    need(not is_open and begun, f"{begun} have begun, open: {is_open}")
    sizes = {m[1]: int(m[2]) for m in re.finditer(r'(?m)^GROUP .*Name: "communicator (\d+)" .* (\d+) Members?:', definitions)}
    for comm, ranks in by_comm.items():
        first = next(iter(ranks.values()))
        need(len(ranks) == sizes[comm] and all(v == first for v in ranks.values()), f"{comm}: {sizes} {ranks}")
    need(sum(len(next(iter(r.values()))) for r in by_comm.values()) == got["collectives"], f"{got['collectives']}: {by_comm}")


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
    s.case("late at a prefix sum", late_at_a_scan)
    s.case("collectives of which a rank lacks some", a_rank_of_which_some_are_missing)
    s.case("roots of collectives", roots)
    s.case("sizes of collectives", sizes_are_known)
    s.case("... that are not known", sizes_are_not_known)
    s.case("hosts whose clocks disagree", clocks_that_disagree)
    s.case("a trace without MPI", nothing_there)
