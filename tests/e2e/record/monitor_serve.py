#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""monitor_serve.py - intervals of kron monitor in a browser: they are what it has shown, only the user sees them, and nobody who asks
delays the monitor or the program.

Without Chromium the cases of the page itself are skipped."""

import contextlib
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path[:0] = [os.path.join(os.environ.get("KRON_TOP_SRC") or os.path.dirname(__file__) + "/../../..", "tests", *more) for more in ((), ("e2e", "view"))]
import tap  # noqa: E402
from tap import KRON, need  # noqa: E402
import chromium  # noqa: E402

LIMIT = 120
# Runs until it is told to end, does what it counts meanwhile, and says how much.
TOLD = r"""
#include <stdio.h>
#include <unistd.h>
volatile unsigned long turns;
unsigned long mask = 0xfedcba9876543210;
double part = 0.1;
__attribute__((noinline)) void work(void) { turns++; }
int main(void)
{
	char byte;

	while (!read(0, &byte, 0) && access("stop", F_OK)) {
		work();
		usleep(500);
	}
	printf("turns %lu\n", turns);
	return 5;
}
"""


def stat_of(pid):
    """State and parent, or None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else (words[0], int(words[1]))


def children_of(pid):
    return [int(d) for d in os.listdir("/proc") if d.isdigit() and (stat_of(d) or (None, 0))[1] == pid]


@contextlib.contextmanager
def monitor(*args, program=("./p",)):
    """It and its URL; what it watches ends with the block, if it has not before."""
    k = subprocess.Popen([KRON, "monitor", "-q", "--serve", "0", *args, "--", *program], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    programs = []
    try:
        line = k.stderr.readline()
        m = re.fullmatch(r"kron: the intervals are shown at (http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/)\n", line)
        need(m, line)
        k.url, k.port, k.token = m[1], int(m[2]), m[3]
        programs = tap.wait_for(lambda: children_of(k.pid), "the program's start")
        yield k
    finally:
        # a killed monitor leaves its program behind
        programs = programs or children_of(k.pid)
        open("stop", "w").close()
        try:
            k.wait(LIMIT)
            tap.wait_for(lambda: not any(map(stat_of, programs)), "the program's end")
        finally:
            k.kill()
            k.wait()
            k.stdout.close()
            k.stderr.close()


def end_of(k):
    open("stop", "w").close()
    out, err = k.communicate(timeout=LIMIT)
    return out, err


def get(url, **headers):
    """The status, the headers, the bytes; none of a stream, which has no end."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=LIMIT) as r:
            return r.status, r.headers, r.read() if r.headers["Content-Length"] else b""
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.headers, e.read()


def stream(url):
    return urllib.request.urlopen(url + "events", timeout=LIMIT)


def events_of(r):
    """Each event's name and what is in it."""
    name = "message"
    for line in r:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, json.loads(line[6:])
            name = "message"


def said(port, request, wait=LIMIT):
    """What is said to these bytes, until the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as s:
        s.sendall(request)
        out = b""
        while True:
            got = s.recv(65536)
            if not got:
                return out
            out += got


def same_rows(*how):
    """As they were shown, from the first to the last, with the totals; the program's own count is their sum."""
    tap.compile_text("p", TOLD)
    with monitor("--every", "30ms", *how, "--json", "-o", "rows", "-e", "page-faults,idle,task-clock,calls:work", "--var", "turns",
                 "--var", "mask:x64", "--var", "part:double") as k:
        got, done = [], []

        def take():
            with stream(k.url) as r:
                got.extend(events_of(r))
            done.append(time.monotonic())

        t = threading.Thread(target=take)
        t.start()
        tap.wait_for(lambda: len(got) > 8, "rows as they come")
        out, err = end_of(k)
        t.join(LIMIT)
        need(done and k.returncode == 5 and not err, f"{k.returncode} {err}")
    turns = int(out.split()[1])
    with open("rows") as f:
        *rows, totals = [json.loads(line) for line in f]
    need([name for name, _ in got] == ["about", *["message"] * len(rows), "end"], [name for name, _ in got])
    about, end = got[0][1], got[-1][1]
    names = [c[0] for c in about["columns"]]
    need(about["command"] == "./p" and about["every_ns"] == 30000000 and about["of"] == "program" and about["freezes"] == bool(how), about)
    need(names == list(totals["totals"]), names)
    for i, ((_, row), shown) in enumerate(zip(got[1:-1], rows)):
        values = {name: int(v) if isinstance(v, str) else v for name, v in zip(names, row["values"])}
        need(row["n"] == i and row["to_ns"] == shown["time_ns"] and row["to_ns"] - row["from_ns"] == shown["interval_ns"], f"{row} {shown}")
        need(values == shown["events"], f"{values} {shown}")
        if how:
            need([row[key] for key in ("stopped", "stood_ns", "skew_ns", "threads")] == [shown[key] for key in ("stopped", "stood_ns", "skew_ns", "threads")], row)
    calls = names.index("calls:work")
    need(sum(row["values"][calls] for name, row in got if name == "message") == turns == end["totals"][calls], f"{turns} {end}")
    need(any(row["values"][names.index("mask")] == "18364758544493064720" for _, row in got[1:-1]), "a number of 64 bits")
    need(end["intervals"] == len(rows) and end["real_ns"] == totals["real_ns"] and end["exit"] == "exited 5", end)


def other_subjects():
    """A process that runs, and one that --for leaves."""
    tap.compile_text("p", TOLD)
    p = subprocess.Popen(["./p"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    k = subprocess.Popen([KRON, "monitor", "-q", "--serve", "0", "--every", "50ms", "--for", "1s", "-e", "task-clock", "--var", "turns", "--pid", str(p.pid)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with stream(k.stderr.readline().split()[-1]) as r:
        got = list(events_of(r))
    k.communicate(timeout=LIMIT)
    need(k.returncode == 0 and p.poll() is None, k.returncode)
    need(got[0][1]["of"] == "processes" and got[-1][0] == "end" and got[-1][1]["exit"] == "running", got)
    need(got[-2][1]["values"][1] > 0, got[-2])
    open("stop", "w").close()
    p.communicate(timeout=LIMIT)


def only_the_user():
    tap.compile_text("p", TOLD)
    with monitor("--every", "50ms", "-o", "rows") as k:
        own = f"127.0.0.1:{k.port}"
        status, headers, page = get(k.url)
        need(status == 200 and headers["Content-Type"].startswith("text/html") and len(page) == int(headers["Content-Length"]), headers)
        for name, word in (("Content-Security-Policy", "default-src 'none'; connect-src 'self'; style-src 'sha256-"), ("Cache-Control", "no-store"),
                           ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY")):
            need(word in headers[name], f"{name}: {headers[name]}")
        need("unsafe" not in headers["Content-Security-Policy"] and "frame-ancestors 'none'" in headers["Content-Security-Policy"], headers)
        need("Access-Control-Allow-Origin" not in headers, headers)
        # who does not know the token learns nothing: the same answer wherever he looks
        wrong = k.token[:-1] + ("0" if k.token[-1] != "0" else "1")
        answers = {get(f"http://{own}{path}")[::2] for path in ("/", "/events", f"/{wrong}/", f"/{wrong}/events", f"/{k.token}", f"/{k.token[:-1]}/", f"/{k.token}/x", f"//{k.token}/")}
        need(len(answers) == 1 and answers.pop()[0] == 404, answers)
        # a name of somebody's that leads here
        for host in ("evil.example", f"evil.example:{k.port}", "127.0.0.1", f"127.0.0.1:{k.port}0", f"127.0.0.1.evil.example:{k.port}", f"localhost:{k.port + 1}"):
            for what in ("", "events"):
                need(get(k.url + what, Host=host)[0] == 403, host)
        for host in (f"localhost:{k.port}", f"LOCALHOST:{k.port}", f"[::1]:{k.port}"):
            need(get(k.url, Host=host)[0] == 200, host)
        head = f"/{k.token}/ HTTP/1.1\r\nHost: {own}\r\n".encode()
        for method in (b"POST", b"HEAD", b"PUT", b"OPTIONS"):
            answer = said(k.port, method + b" " + head + b"\r\n")
            need(answer.startswith(b"HTTP/1.1 405 ") and b"\r\nAllow: GET\r\n" in answer, answer)
        for request in (b"\r\n\r\n", b"GET " + head.replace(b"Host", b"X") + b"\r\n", b"GET " + head + b"Host: x\r\n\r\n", b"GET " + head + b"Content-Length: 3\r\n\r\nabc",
                        b"\x16\x03\x01\x02\x00\x01\r\n\r\n"):
            need(said(k.port, request).startswith(b"HTTP/1.1 400 "), request)
        need(said(k.port, b"GET " + head + b"X: " + b"a" * 9000).startswith(b"HTTP/1.1 431 "), "a long head")
        # in pieces, and more than was asked for
        with socket.create_connection(("127.0.0.1", k.port), timeout=LIMIT) as s:
            for piece in (b"GE", b"T " + head, b"\r", b"\n" + b"x" * 1000):
                s.sendall(piece)
                time.sleep(0.02)
            s.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: s.recv(65536), b""))
            need(answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(page), "in pieces")
        # no other machine reaches it
        listening = {tuple(line.split()[1].split(":")) for name in ("tcp", "tcp6") for line in open(f"/proc/{k.pid}/net/{name}") if line.split()[3] == "0A"}
        at = {address for address, port in listening if port == f"{k.port:04X}"}
        need(at and at <= {"0100007F", "00000000000000000000000001000000"}, at)
        # the program carries nothing of it
        (program,) = [p for p in tap.children_of(k.pid) if tap.is_traced(p)]
        fds = [os.readlink(f"/proc/{program}/fd/{fd}") for fd in os.listdir(f"/proc/{program}/fd")]
        need(len(fds) == 3 and not any("socket" in fd for fd in fds), fds)


def ports():
    """One in use, one that is none: nothing is started.  One of a monitor that was killed is free."""
    tap.compile_text("p", TOLD)
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as s:
            try:
                s.bind((address, 0))
            except OSError:
                continue
            s.listen()
            port = s.getsockname()[1]
            r = subprocess.run([KRON, "monitor", "--serve", str(port), "--save", "t", "--", "touch", "started"], capture_output=True, text=True, timeout=LIMIT)
            need(r.returncode == 125 and f"port {port} of this machine is in use" in r.stderr and r.stderr.count("\n") == 1, r)
    for bad in ("x", "-1", "65536", "80 ", "", "1e3"):
        r = subprocess.run([KRON, "monitor", "--serve", bad, "--save", "t", "--", "touch", "started"], capture_output=True, text=True, timeout=LIMIT)
        need(r.returncode == 125 and "is not a port" in r.stderr and r.stderr.count("\n") == 1, r)
    need(not os.path.exists("started") and not os.path.exists("t"), "it was started")
    with monitor("--every", "50ms", "-o", "rows") as k:
        need(get(k.url)[0] == 200, "a page")
        k.send_signal(signal.SIGKILL)
        k.wait()
        r = subprocess.run([KRON, "monitor", "--serve", str(k.port), "-o", "rows", "--", "true"], capture_output=True, text=True, timeout=LIMIT)
        need(r.returncode == 0 and f":{k.port}/" in r.stderr and k.token not in r.stderr, r)


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def hostile():
    """Many who say nothing, drip, or never read: who listens has all, and the monitor ends when the program does."""
    tap.compile_text("p", TOLD)
    got, socks, stop = [], [], threading.Event()
    with monitor("--every", "5ms", "-o", "rows", "--json", "-e", "page-faults,idle", "--var", "turns") as k:
        def take():
            with stream(k.url) as r:
                got.extend(events_of(r))

        def drip(s):
            with contextlib.suppress(OSError):
                while not stop.wait(0.05):
                    s.sendall(b"G")

        def pester():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    said(k.port, b"GET / HTTP/1.1\r\n\r\n", 5)

        threads = [threading.Thread(target=take)]
        threads[0].start()
        tap.wait_for(lambda: len(got) > 2, "rows")
        before = rss_kb(k.pid)
        for i in range(150):
            s = socket.create_connection(("127.0.0.1", k.port), timeout=LIMIT)
            socks.append(s)
            if i % 3 == 1:
                s.sendall(f"GET /{k.token}/events HTTP/1.1\r\nHost: 127.0.0.1:{k.port}\r\n\r\n".encode())  # and never reads
            elif i % 30 == 2:
                threads.append(threading.Thread(target=drip, args=(s,)))
                threads[-1].start()
        threads.append(threading.Thread(target=pester))
        threads[-1].start()
        have = len(got)
        tap.wait_for(lambda: len(got) > have + 300, "rows in spite of them")
        need(get(k.url)[0] == 200, "no page")
        need(rss_kb(k.pid) < before + 40000, f"{before} and {rss_kb(k.pid)} KiB")
        need(len(os.listdir(f"/proc/{k.pid}/fd")) < 80, "descriptors")
        began = time.monotonic()
        end_of(k)
        need(time.monotonic() - began < 30, "they hold it up")
        stop.set()
        for s in socks:
            s.close()
        for t in threads:
            t.join(LIMIT)
    with open("rows") as f:
        *rows, totals = [json.loads(line) for line in f]
    need(got[-1][0] == "end" and [r["n"] for name, r in got if name == "message"] == list(range(len(rows))), f"{len(got)} of {len(rows)}")
    need([r["to_ns"] for name, r in got if name == "message"] == [r["time_ns"] for r in rows], "other rows")


def late():
    """Who comes late has the last rows, and how many he has missed; who opens too many pages is told."""
    tap.compile_text("p", TOLD)
    with monitor("--every", "1ms", "-o", "rows", "--json", "-e", "page-faults") as k:
        with stream(k.url) as r:
            next(row for name, row in events_of(r) if name == "message" and row["n"] > 4300)
        more = [stream(k.url) for _ in range(16)]
        status, _, words = get(k.url + "events")
        need(status == 503 and b"too many pages" in words, f"{status} {words}")
        for r in more[1:]:
            r.close()
        seen = events_of(more[0])
        need(next(seen)[0] == "about", "no columns")
        name, missed = next(seen)
        need(name == "missed" and missed["intervals"] > 100, f"{name} {missed}")
        open("stop", "w").close()
        rest = list(seen)  # before the monitor's end: it waits only so long for who does not read
        more[0].close()
        end_of(k)
    numbers = [row["n"] for name, row in rest if name == "message"]
    need(numbers == list(range(missed["intervals"], missed["intervals"] + len(numbers))) and rest[-1][0] == "end", numbers[:3])
    need(rest[-1][1]["intervals"] == numbers[-1] + 1, rest[-1])


# ---- the page ----

NOW = "document.querySelector('%s').dataset.now"


def shown(url, **more):
    if not chromium.find():
        raise tap.Skip("chromium is not installed")
    return chromium.Page(url, **more)


def check_quiet(page, *gone):
    errors = [e for e in page.errors if not any(words in e for words in gone)]
    need(not errors, f"errors: {errors}")
    need(set(page.requests) <= {page.url, page.url + "events"}, f"it asked for {page.requests}")


def page_follows():
    tap.compile_text("p", TOLD)
    nasty = "</script><img src=x onerror=alert(1)>&\n\"'`"
    with monitor("--every", "30ms", "-o", "rows", "--json", "-e", "page-faults,task-clock,idle,calls:work", "--var", "turns", "--var", "mask:x64",
                 "--var", "<b>bold", program=("./p", nasty)) as k, shown(k.url) as page:
        page.wait("Number(document.documentElement.dataset.drawn) > 10")
        need(page.value("document.getElementById('state').textContent") == "Running.", "state")
        a = int(page.value(NOW % "[data-counter=turns]"))
        page.wait(f"Number({NOW % '[data-counter=turns]'}) > {a}")
        need(page.value("document.querySelector('[data-counter=mask] small').textContent").startswith("now 0xfedcba9876543210"), "a number of 64 bits")
        title = page.value("document.getElementById('title').textContent")
        need(title.startswith("kron monitor: ./p ") and "<img src=x onerror=alert(1)>" in title, title)
        need(page.value("document.querySelectorAll('img, b, main script').length") == 0, "markup of names")
        need(page.value("[...document.querySelectorAll('figcaption')].some(f => f.textContent.startsWith('<b>bold now not known'))"), "a variable that is not there")
        # held: intervals come, and are not drawn
        page.value("document.getElementById('hold').click()")
        page.settle()
        drawn = page.value("document.documentElement.dataset.drawn")
        time.sleep(0.2)
        need(page.value("document.documentElement.dataset.drawn") == drawn, "not held")
        page.value("document.getElementById('hold').click()")
        page.value("document.getElementById('span').selectedIndex = 3; document.getElementById('span').dispatchEvent(new Event('change'))")
        out, _ = end_of(k)
        page.wait("document.getElementById('state').dataset.state === 'ended'")
        page.settle()
        with open("rows") as f:
            *rows, totals = [json.loads(line) for line in f]
        need(int(page.value("document.documentElement.dataset.drawn")) == len(rows), "not all of them")
        for name in ("page-faults", "calls:work", "task-clock"):
            need(int(page.value(f"document.querySelector('[data-counter=\"{name}\"]').dataset.sum")) == totals["totals"][name], name)
        need(int(page.value("document.querySelector('[data-counter=\"calls:work\"]').dataset.sum")) == int(out.split()[1]), out)
        idle = rows[-1]["events"]["idle"]
        meter = page.value(NOW % "#meter")
        need(meter == "" if idle is None else abs(float(meter) - (100 - idle)) < 1e-6, f"{meter} {idle}")
        need(len(json.loads(page.value(NOW % "#gantt"))) == os.sysconf("SC_NPROCESSORS_CONF"), "processors")
        words = page.value("document.getElementById('state').textContent")
        need("exited 5" in words and f"{len(rows):,} intervals" in words, words)
        check_quiet(page)


def page_says_lost():
    """Of a monitor that was killed it does not say that it runs."""
    tap.compile_text("p", TOLD)
    with monitor("--every", "30ms", "-o", "rows", "-e", "page-faults") as k, shown(k.url) as page:
        page.wait("Number(document.documentElement.dataset.drawn) > 3")
        k.send_signal(signal.SIGKILL)
        k.wait()
        page.wait("document.getElementById('state').dataset.state === 'lost'")
        page.wait("document.getElementById('state').textContent.startsWith('The monitor is gone')")
        check_quiet(page, "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED")


def page_of_others():
    """Pictures of values that are known: of four processors, of numbers that a browser cannot hold, of what is not known."""
    tap.compile_text("p", TOLD)
    with monitor("--every", "50ms", "-o", "rows") as k:
        _, _, page_bytes = get(k.url)
    columns = [["idle", "percent", False], *[[f"idle{i}", "percent", False] for i in range(4)], ["big", "count", False], ["temperature", "value", False], ["late", "bytes", False]]
    rows = [[50, 0, 100, 75, 25, "9007199254740993", -5, None], [25, 100, 0, 0, 0, "9007199254740993", 3, 1000]]
    text = "event: about\ndata: " + json.dumps({"command": "four", "of": "program", "every_ns": 10**9, "freezes": False, "columns": columns}) + "\n\n"
    text += 'event: missed\ndata: {"intervals":7}\n\n'
    for i, values in enumerate(rows):
        text += "data: " + json.dumps({"n": 7 + i, "from_ns": i * 10**9, "to_ns": (i + 1) * 10**9, "values": values, "estimates": [5], "overrun": [7]}) + "\n\n"
    text += 'event: end\ndata: {"exit":"exited 0","intervals":9,"real_ns":9000000000,"virtual_ns":9000000000,"totals":[]}\n\n'

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body, kind = (text.encode(), "text/event-stream") if self.path == "/t/events" else (page_bytes, "text/html")
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        t = threading.Thread(target=server.serve_forever)
        t.start()
        try:
            with shown(f"http://127.0.0.1:{server.server_address[1]}/t/") as page:
                page.wait("document.getElementById('state').dataset.state === 'ended'")
                page.settle()
                need(json.loads(page.value(NOW % "#kiviat")) == [0, 100, 100, 100] == json.loads(page.value(NOW % "#gantt")), "processors")
                # the first axis goes up, and is at the middle: the others at the right, below, at the left
                need(page.value("document.querySelector('#kiviat .area').getAttribute('d')") == "M210.0 165.0L340.0 165.0L210.0 295.0L80.0 165.0Z", "Kiviat")
                need(float(page.value(NOW % "#meter")) == 75, "meter")
                bar = page.value("(b => [b.x, b.width, b.height])(document.querySelector('[data-counter=idle] .bars').getBBox())")
                need(bar[1] > 1000 and abs(bar[2] - 0.75 * 84) < 1, bar)
                need(page.value("document.querySelector('[data-counter=big]').dataset.sum") == "18014398509481986", "a sum")
                words = page.value("document.querySelector('[data-counter=big] small').textContent")
                need(words.startswith("now 9,007,199,254,740,993~, 18,014,398,509,481,986~ in"), words)
                need(page.value("document.querySelector('[data-counter=late] small').textContent").startswith("now 1,000 bytes!, 1,000 bytes! in"), "marks")
                need(page.value("document.querySelector('[data-counter=late] .unknown').getBBox().width") > 400, "not known")
                need("the first 7 are not here any more" in page.value("document.getElementById('facts').textContent"), "missed")
                need([h.strip() for h in page.value("[...document.querySelectorAll('h2')].map(h => h.textContent)")] == ["Utilisation", "Input and output", "Locks and variables", "Profile"], "groups")
                check_quiet(page, "favicon")
        finally:
            server.shutdown()
            t.join()


with tap.Suite("monitor_serve") as s:
    s.case("what comes is what is shown", same_rows)
    s.case("of a program that is stopped at each interval", same_rows, "--freeze")
    s.case("of a process that runs", other_subjects)
    s.case("only this user, from this machine", only_the_user)
    s.case("ports", ports)
    s.case("hostile clients", hostile)
    s.case("late ones, and too many", late)
    s.case("the page follows", page_follows)
    s.case("the page of a monitor that was killed", page_says_lost)
    s.case("pictures of known values", page_of_others)
