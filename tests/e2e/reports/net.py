#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""net.py - the messages of TCP connections: each send with the receives that got its bytes, who is late, what is not known.

Truth: what both programs (tests/e2e/reports/net_talk.c) say that their calls have transferred; what strace sees of curl."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Skip, Suite, compile_c, need  # noqa: E402

FATES = ("unread", "alone", "before", "reused", "lost", "differing", "unordered", "untold", "no_address")


def run(*command, status=0, seconds=120, **options):
    r = subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, **options)
    need(r.returncode == status, f"{command}: {r}")
    return r


def recorded(where, *command):
    return [KRON, "record", "-q", "-o", where, "-P", "net", "--", *command]


def report(*traces):
    return json.loads(run(KRON, "report", "--json", "--messages", *traces).stdout)


def wait_for(path):
    for _ in range(600):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return f.read().strip()
        time.sleep(0.05)
    raise RuntimeError(f"no {path}")


def talk(way, address="127.0.0.1", n=1, server="s", client="c", to=None):
    """Both ends, each with its own trace; `to`: the address, as the client calls it.  By process: sends, their bytes, receives, their bytes."""
    if not os.path.exists("talk"):
        compile_c("talk", "e2e/reports/net_talk.c")
    with contextlib.suppress(FileNotFoundError):
        os.remove("port")
    with subprocess.Popen(recorded(server, "./talk", "serve", "port", address, way, str(n)) if server else ["./talk", "serve", "port", address, way, str(n)],
                          stdout=subprocess.PIPE, text=True) as s:
        call = ["./talk", "call", wait_for("port"), to or address, way, str(n)]
        out = run(*(recorded(client, *call) if client else call)).stdout
        out += s.communicate(timeout=60)[0]
        need(s.returncode == 0, s.returncode)
    return {int(w[1]): tuple(map(int, w[2:])) for w in map(str.split, out.splitlines()) if w[:1] == ["tally"]}


def need_all_matched(got, tally):
    """Of each process: as many sends and bytes as it says, and what they were is what the others have received."""
    sent = {}
    for m in got["messages"]:
        count, size = sent.get(m["from"]["pid"], (0, 0))
        sent[m["from"]["pid"]] = count + m["count"], size + m["bytes"]
    need(sent == {pid: t[:2] for pid, t in tally.items() if t[0]}, f"{sent}\n{tally}")
    tcp, n = got["tcp"], sum(t[0] for t in tally.values())
    need([got["matched"], tcp["sends"]["matched"]] == [n, n] and tcp["receives"]["matched"] == sum(t[2] for t in tally.values()), f"{tcp} {tally}")
    need(sum(t[1] for t in tally.values()) == sum(t[3] for t in tally.values()), tally)
    need(not any(tcp[way][fate] for way in ("sends", "receives") for fate in FATES), tcp)
    need(not any(tcp[k] for k in ("unfinished", "unasked", "unstarted")), tcp)


def every_way(address, n, to=None):
    """Each call that sends and receives, with those between that take nothing out of the stream."""
    if ":" in address and not os.path.exists("/proc/net/if_inet6"):
        raise Skip("no IPv6 here")
    os.mkdir("job")
    tally = talk("every", address, n, "job/s", "job/c", to)
    got = report("job")
    need_all_matched(got, tally)
    need((got["tcp"]["connections"], got["tcp"]["other"]) == (n, 4) and got["tcp"]["peeks"] > 0, got["tcp"])
    need(all(m["negative"] == 0 < m["min_ns"] <= m["max_ns"] for m in got["messages"]), got["messages"])
    need_exports(got, tally)


def need_exports(got, tally):
    """A third party reads the same."""
    run(KRON, "export", "-f", "sqlite", "-o", "db", "job")
    with contextlib.closing(sqlite3.connect("db")) as db:
        rows = db.execute("SELECT kind, from_process, to_process, messages, bytes, total_ns FROM message_matrix").fetchall()
        bad = db.execute("PRAGMA foreign_key_check").fetchall()
        # the bytes of each direction have no hole: a message begins where the one before has ended
        holes = db.execute("SELECT count(*) FROM (SELECT offset, lag(offset + bytes, 1, 0) OVER (PARTITION BY connection, from_process ORDER BY offset) AS before"
                           " FROM messages) WHERE offset != before").fetchone()[0]
        ranks = db.execute("SELECT count(*) FROM message WHERE from_rank NOTNULL OR communicator NOTNULL OR connection IS NULL").fetchone()[0]
    want = {(m["from"]["process_uid"], m["to"]["process_uid"]): (m["count"], m["bytes"], m["total_ns"]) for m in got["messages"]}
    need({tuple(r[1:3]): tuple(r[3:5]) for r in rows} == {k: v[:2] for k, v in want.items()} and {r[0] for r in rows} == {"TCP"}, f"{rows} {want}")
    need(all(abs(r[5] - want[tuple(r[1:3])][2]) <= 2 * r[3] + 2 for r in rows), f"{rows} {want}")
    need(not bad and not holes and not ranks and len(tally) == 2, f"{bad} {holes} {ranks}")
    run(KRON, "view", "-o", "page.html", "job")
    with open("page.html", encoding="utf-8") as f:
        page = f.read()
    need(f'"all_messages":{got["matched"]},' in page and '"message_names":["TCP"]' in page, page[:200])


def in_one_trace():
    """Server and client are children of one recorded shell: a connection between processes of one trace."""
    compile_c("talk", "e2e/reports/net_talk.c")
    script = "./talk serve port 127.0.0.1 every 2 & while [ ! -e port ]; do sleep 0.05; done; ./talk call $(cat port) 127.0.0.1 every 2; wait"
    out = run(*recorded("t", "/bin/sh", "-c", script)).stdout
    need_all_matched(report("t"), {int(w[1]): tuple(map(int, w[2:])) for w in map(str.split, out.splitlines())})


def inherited():
    """What a child sends on the descriptor of its parent, whose number there is another socket's."""
    tally = talk("child")
    got = report("s", "c")
    need_all_matched(got, tally)
    need(got["tcp"]["connections"] == 1 and len(got["messages"]) == 2, got)


def two_threads():
    """Which bytes are whose nobody knows of those that were sent at the same time; what came before and after them is known."""
    tally = talk("threads")
    got = report("s", "c")["tcp"]
    need([got["sends"][k] for k in ("matched", "unordered")] == [2, 2], got)
    need(got["receives"]["matched"] + got["receives"]["unordered"] == sum(t[2] for t in tally.values()), got)


def not_told(way, want):
    """A call whose bytes nobody knows, and one that nobody sees."""
    tally = talk(way)
    tcp = report("s", "c")["tcp"]
    need({k: v for k, v in tcp["sends"].items() if v} == want, tcp)
    # the receiver may have got the first bytes by themselves
    need(sum(tcp["receives"].values()) == sum(t[2] for t in tally.values()) and bool(tcp["unfinished"]) == (way == "untold"), tcp)


def one_end(server, client):
    tally = talk("every", server=server, client=client)
    got = report(server or client)
    one = [t for t in tally.values() if [got["tcp"]["sends"]["alone"], got["tcp"]["receives"]["alone"]] == [t[0], t[2]]]
    need(one and not got["messages"] and not got["matched"], f"{got['tcp']} {tally}")
    need("other end of their connection in no trace" in run(KRON, "report", "--messages", server or client).stdout, "and says so")


def before_the_recording():
    """The connection was there: nobody knows which bytes have been before."""
    compile_c("talk", "e2e/reports/net_talk.c")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s, contextlib.closing(socket.create_connection(s.getsockname())) as a:
        with contextlib.closing(s.accept()[0]) as b:
            a.sendall(b"x" * 500)
            run(*recorded("t", "./talk", "fds", str(a.fileno()), str(b.fileno())), pass_fds=[a.fileno(), b.fileno()])
    tcp = report("t")["tcp"]
    need(tcp["sends"]["before"] >= 1 <= tcp["receives"]["before"] and not tcp["sends"]["matched"], tcp)


def ports_again():
    """Two connections after each other have the same addresses: which socket is of which nobody knows."""
    tally = talk("again", n=2)
    tcp = report("s", "c")["tcp"]
    need(not tcp["sends"]["matched"] and tcp["sends"]["reused"] == sum(t[0] for t in tally.values()) > 0, tcp)
    need(tcp["receives"]["reused"] == sum(t[2] for t in tally.values()) and not tcp["connections"], tcp)


def sealed():
    """Under a seccomp filter nobody asks the kernel: no call is matched, and each is counted."""
    tally = talk("sealed")
    tcp = report("s", "c")["tcp"]
    need(tcp["unasked"] >= max(t[0] for t in tally.values()) and not tcp["sends"]["matched"] and not tcp["connections"], f"{tcp} {tally}")
    need(tcp["receives"]["alone"] == max(t[2] for t in tally.values()), f"{tcp} {tally}")


def who_is_late(way):
    """The one that sleeps before it sends, ten times 30 ms; the other one only waits for it."""
    tally = talk(way)
    got = report("s", "c")
    need_all_matched(got, tally)
    late = got["processes"][0]
    trace = "s" if way == "server" else "c"
    need(late["process"].startswith(f"{trace}.") and late["late_sender_ns"] > 250e6 and late["caused_ns"] > 250e6, got["processes"])
    need(got["processes"][1]["caused_ns"] < 0.5 * late["caused_ns"], got["processes"])


def own_address():
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        with contextlib.suppress(OSError):
            s.connect(("192.0.2.1", 9))
            if not s.getsockname()[0].startswith(("127.", "0.")):
                return s.getsockname()[0]
    raise Skip("this host has no address but that of loopback")


def as_of_another_host(trace, us):
    path = f"{trace}/session"
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"(?m)^boot_id=.*$", "boot_id=00000000-0000-4000-8000-000000000001", f.read())
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?m)^start_real_ns=(\d+)$", lambda m: f"start_real_ns={int(m[1]) + 1000 * us}", text))


def clocks_that_disagree():
    """As if the client had run on a host whose clock is wrong: messages stay the same ones, and can be mended."""
    tally = talk("every", own_address())
    for us in (-20000, 40000):
        as_of_another_host("c", us)
        for options, wrong in ([], True), (["--mend-clocks", "net", "-q"], False):
            got = report(*options, "s", "c")
            need((sum(m["negative"] for m in got["messages"]) > 0) == wrong, f"{us} {options} {got['messages']}")
            need_all_matched(got, tally)


def loopback_of_two_hosts():
    """127.0.0.1 of one host is not that of the other."""
    talk("every")
    as_of_another_host("c", 0)
    tcp = report("s", "c")["tcp"]
    need(not tcp["sends"]["matched"] and tcp["sends"]["alone"] == sum(tcp["sends"].values()) > 0, tcp)


def filtered():
    """A filter leaves messages out, and no bytes of streams."""
    tally = talk("every")
    server = next(m["from"]["pid"] for m in report("s", "c")["messages"] if m["from"]["process"].startswith("s."))
    got = report("--where", f"process == {server}", "s", "c")
    need([(m["from"]["pid"], m["count"], m["bytes"]) for m in got["messages"]] == [(server, *tally[server][:2])], got["messages"])
    need(got["tcp"]["sends"]["matched"] == tally[server][0] and not any(got["tcp"]["sends"][k] for k in FATES), got["tcp"])


def lost_samples():
    """A trace that says that a process has lost some is not trusted."""
    talk("every")
    with open("c/tasks", encoding="utf-8") as f:
        text, n = re.subn(r"(?m)^(E\t\d+\t\d+)\t0\t", r"\1\t3\t", f.read())
    need(n > 0, text)
    with open("c/tasks", "w", encoding="utf-8") as f:
        f.write(text)
    tcp = report("s", "c")["tcp"]
    need(not tcp["sends"]["matched"] and tcp["sends"]["lost"] == sum(tcp["sends"].values()) > 0, tcp)


def traced_by_strace(*command):
    """Bytes that it has sent and received on sockets of TCP, as strace sees them."""
    run("strace", "-f", "-y", "-y", "-e", "trace=network,read,write,readv,writev", "-o", "calls", *command)
    totals = {"out": 0, "in": 0}
    with open("calls", encoding="utf-8", errors="replace") as f:
        for line in f:
            m = re.match(r"\d+ +(send\w*|write\w*|recv\w*|read\w*)\(\d+<TCP.*\) = (\d+)$", line)
            if m:
                totals["out" if m[1][0] in "sw" else "in"] += int(m[2])
    return totals["out"], totals["in"]


def a_real_pair():
    """python3 -m http.server and curl: as many bytes both ways as strace sees, and as curl says."""
    if not shutil.which("curl") or not shutil.which("strace") or not os.path.exists("/usr/bin/python3"):
        raise Skip("no curl, strace or /usr/bin/python3 here")
    with open("blob", "wb") as f:
        f.write(os.urandom(300000))
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
        port = s.getsockname()[1]
    with subprocess.Popen(recorded("s", "/usr/bin/python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"), stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, start_new_session=True) as server:
        for _ in range(200):
            with contextlib.suppress(OSError), contextlib.closing(socket.create_connection(("127.0.0.1", port))):
                break
            time.sleep(0.05)
        get = ["curl", "-s", "-o", "out", "-w", "%{size_request} %{size_header} %{size_download}", f"http://127.0.0.1:{port}/blob"]
        said = [int(x) for x in run(*recorded("c", *get)).stdout.split()]
        want = traced_by_strace(*get)
        os.killpg(server.pid, signal.SIGINT)
        server.wait(timeout=60)
    got = report("s", "c")
    sizes = {m["from"]["exe"]: m["bytes"] for m in got["messages"]}
    need(sizes["curl"] == want[0] == said[0], f"{sizes} {want} {said}")
    need([v for k, v in sizes.items() if k != "curl"] == [want[1]] == [said[1] + said[2]], f"{sizes} {want} {said}")
    # the connections of strace's run and of the probe have their other ends in no trace
    tcp = got["tcp"]
    need(tcp["connections"] == 1 and all(not tcp[w][k] for w in ("sends", "receives") for k in FATES if k != "alone"), tcp)


def nothing_there():
    run(KRON, "record", "-q", "-o", "t", "/bin/true")
    r = run(KRON, "report", "--messages", "t", status=1)
    need(r.stderr.count("\n") == 1 and "-P net" in r.stderr, r.stderr)
    run(KRON, "record", "-q", "-o", "u", "/bin/true")
    r = run(KRON, "report", "--messages", "--mend-clocks", "net", "t", "u", status=1)
    need("record -P net" in r.stderr, r)


with Suite("net") as suite:
    suite.case("each send has its receives: three connections", every_way, "127.0.0.1", 3)
    suite.case("... of IPv6", every_way, "::1", 1)
    suite.case("... of both", every_way, "::", 1, "127.0.0.1")
    suite.case("... between two processes of one trace", in_one_trace)
    suite.case("a child sends on its parent's connection", inherited)
    suite.case("two threads that send at the same time", two_threads)
    suite.case("a call that does not say how much it sends", not_told, "untold", {"matched": 1, "untold": 1})
    suite.case("a call that is not seen", not_told, "unseen", {"differing": 2})
    suite.case("the server alone", one_end, "s", None)
    suite.case("the client alone", one_end, None, "c")
    suite.case("a connection that was there before", before_the_recording)
    suite.case("the same ports again", ports_again)
    suite.case("a seccomp filter", sealed)
    suite.case("a late server is named first", who_is_late, "server")
    suite.case("a late client is named first", who_is_late, "client")
    suite.case("... to one that waits in poll", who_is_late, "poll")
    suite.case("hosts whose clocks disagree", clocks_that_disagree)
    suite.case("loopback of two hosts", loopback_of_two_hosts)
    suite.case("a filter", filtered)
    suite.case("samples that are missing", lost_samples)
    suite.case("http.server and curl", a_real_pair)
    suite.case("a trace without sockets", nothing_there)
