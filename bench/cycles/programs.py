# SPDX-License-Identifier: MIT
"""programs.py - the programs that cycles.py attaches to, with their clients.

    p = KINDS["redis"](folder)
    p.start()       it runs, under load
    p.check()       raises if it has ended, or if anybody has seen anything
    p.end()         what was seen at its end, or nothing
"""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from tap import CC, SRC, Wrong, children_of, need, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
LIBC = [["-P", "malloc"], ["-P", "io"], ["-L", "libc*"], ["-L", "libc*", "-F", "*al*"], ["-p", "libc.so.6:malloc n=$arg1"],
        ["-L", "*"], ["-F", "*"], []]
ADDED = [(["size=libc.so.6:malloc n=$arg1"], ["size"]), (["libc.so.6:free p=$arg1"], ["free"]),
         (["libc.so.6:read%return n=$retval"], ["read"]), (["libc.so.6:write n=$arg3"], ["write"])]
# Where a probe is already, or its instructions are another's; or nothing is there to put to sleep.
NOT_ADDED = "there is a probe|instructions that|nothing that .* sleeps|no probe|no function|is a jump|has a probe"
POSTGRES = max(glob.glob("/usr/lib/postgresql/*/bin"), default="")


def where(tool):
    return shutil.which(tool) or shutil.which(tool, path=POSTGRES) or shutil.which(tool, path="/usr/sbin")


class Client(threading.Thread):
    """Asks again and again; ask() raises if the answer is wrong."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.over, self.wrong, self.asked = ask, False, "", 0

    def run(self):
        try:
            while not self.over:
                self.ask(self.asked)
                self.asked += 1
                time.sleep(0.002)
        except Exception as e:  # whatever it is: the client has seen it
            self.wrong = f"a client: question {self.asked}: {e!r}"

    def end(self):
        self.over = True
        self.join(60)
        return self.wrong or ("a client has no answer" if self.is_alive() else "")


class Program:
    tools, options, added, slack, counts = (), LIBC, ADDED, 0, None

    def __init__(self, folder):
        self.folder, self.children, self.clients = folder, {}, []

    def path(self, name):
        return os.path.join(self.folder, name)

    def spawn(self, name, *argv, **how):
        """What it says goes to the file of that name."""
        with open(self.path(name), "w") as f:
            self.children[name] = subprocess.Popen(argv, stdout=f, stderr=f, cwd=self.folder, **how)
        return self.children[name]

    def said(self, name):
        with open(self.path(name), errors="replace") as f:
            return f.read()

    def pids(self):
        return [self.main.pid]

    def some_pids(self, rnd):
        return self.pids()

    def need_change(self, r):
        need(r.returncode == 0 or re.search(NOT_ADDED, r.stderr), f"kron ctl: {r.stderr}")

    def wrong(self):
        return ""

    def check(self):
        for name, child in self.children.items():
            need(child.poll() is None, f"{name} ended with {child.returncode}: {self.said(name)[-500:]}")
        for client in self.clients:
            need(not client.wrong, client.wrong)
        need(not self.wrong(), self.wrong())

    def finish(self):
        """How the load and the program are ended in good order."""
        return ""

    def end(self):
        try:
            said = "\n".join(filter(None, (c.end() for c in self.clients)))
            said = said or self.finish() or self.wrong()
        except (Wrong, OSError, subprocess.SubprocessError) as e:
            said = f"{e!r}"
        for child in self.children.values():
            if child.poll() is None:
                child.kill()
            child.wait()
        return said

    def terminate(self, name, how=signal.SIGTERM, statuses=(0,)):
        child = self.children[name]
        child.send_signal(how)
        child.wait(60)
        need(child.returncode in statuses, f"{name} ended with {child.returncode}: {self.said(name)[-500:]}")


# ---- servers ----


class Redis(Program):
    tools, slack = ("redis-server", "redis-benchmark"), 20
    options = LIBC + [["-F", "process*"], ["-F", "*Command"], ["-F", "dict*", "-L", "libc*"], ["-p", "processCommand c=$arg1"]]
    added = ADDED + [(["-F", "dict*"], ["-F", "dict*"]), (["-F", "*Command"], ["-F", "*Command"]), (["call c=$arg1"], ["call"])]

    def start(self):
        sock = self.path("sock")
        self.main = self.spawn("server", "redis-server", "--port", "0", "--unixsocket", sock, "--save", "1 1", "--dir", self.folder)
        wait_for(lambda: os.path.exists(sock), "redis")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(sock)
        self.socket.settimeout(60)
        self.answers = self.socket.makefile("rb")
        self.spawn("benchmark", "nice", "redis-benchmark", "-s", sock, "-q", "-l", "-c", "4", "-t", "set,get,incr,lpush,lpop,hset")
        self.clients = [Client(self.ask)]
        self.clients[0].start()

    def command(self, *words):
        line = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        self.socket.sendall(line)
        return self.answers.readline().strip()

    def ask(self, n):
        value = b"%d" % (n * 7919) * 20
        need(self.command(b"SET", b"ours", value) == b"+OK", "SET")
        need(self.command(b"GET", b"ours") == b"$%d" % len(value), "GET")
        need(self.answers.readline().strip() == value, "the value is another")
        need(self.command(b"INCR", b"our-number") == b":%d" % (n + 1), "INCR")

    def wrong(self):
        bad = [line for line in self.said("server").splitlines() if re.search("crash|Interrupted|Bad file|rror", line)]
        return "\n".join(bad)

    def finish(self):
        self.terminate("benchmark", signal.SIGINT, (0, -signal.SIGINT))
        self.terminate("server")


class Nginx(Program):
    tools, slack = ("nginx", "wrk"), 30
    CONF = """
    daemon off; master_process on; worker_processes 2; pid {0}/pid; error_log {0}/error.log notice; user root;
    events {{ worker_connections 200; }}
    http {{ access_log {0}/access.log; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;
      uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
      server {{ listen 127.0.0.1:{1}; root {0}/www; keepalive_requests 100; }} }}
    """

    def start(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        os.mkdir(self.path("www"))
        self.body = os.urandom(100000)
        with open(self.path("www/file"), "wb") as f:
            f.write(self.body)
        with open(self.path("conf"), "w") as f:
            f.write(self.CONF.format(self.folder, self.port))
        self.main = self.spawn("server", where("nginx"), "-c", self.path("conf"), "-e", self.path("error.log"))
        wait_for(lambda: len(children_of(self.main.pid)) == 2, "nginx")
        self.workers = children_of(self.main.pid)
        url = f"http://127.0.0.1:{self.port}/file"
        self.spawn("load", "nice", "wrk", "-t", "1", "-c", "8", "-d", "9h", "--timeout", "60s", url)
        self.clients = [Client(self.ask)]
        self.clients[0].start()

    def pids(self):
        return [self.main.pid, *self.workers]

    def some_pids(self, rnd):
        return rnd.choice(([self.workers[0]], self.workers, self.pids()))

    def ask(self, n):
        with socket.create_connection(("127.0.0.1", self.port), 60) as s:
            s.sendall(b"GET /file HTTP/1.0\r\n\r\n")
            said = b"".join(iter(lambda: s.recv(65536), b""))
        need(said.partition(b"\r\n\r\n")[2] == self.body, "the file is another")

    def check(self):
        need(children_of(self.main.pid) == self.workers, "its workers are others")
        if os.path.getsize(self.path("access.log")) > 1 << 26:
            os.truncate(self.path("access.log"), 0)
        super().check()

    def wrong(self):
        return "\n".join(x for x in self.said("error.log").splitlines() if re.search(r"\[(warn|error|crit|alert|emerg)\]", x))

    def finish(self):
        self.terminate("load", signal.SIGINT)
        bad = re.findall("Socket errors.*|Non-2xx.*", self.said("load"))
        self.terminate("server", signal.SIGQUIT)
        return "\n".join(bad)


class Postgres(Program):
    tools, slack = ("initdb", "postgres", "pgbench", "psql"), 20
    options = LIBC + [["-F", "Exec*"], ["-F", "heap_*", "-L", "libc*"], ["-p", "exec_simple_query q=$arg1:string"]]
    added = ADDED + [(["-F", "heap_*"], ["-F", "heap_*"]), (["palloc n=$arg1"], ["palloc"])]

    def tool(self, name, *argv):
        where_to = (f"PGHOST={self.folder}", "PGDATABASE=postgres")
        return ["env", *where_to, "setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", where(name), *argv]

    def start(self):
        os.chmod(self.folder, 0o777)
        data, null = self.path("data"), subprocess.DEVNULL
        subprocess.run(self.tool("initdb", "-A", "trust", "-D", data), check=True, stdout=null)
        self.main = self.spawn("server", *self.tool("postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"))
        wait_for(lambda: "ready to accept" in self.said("server"), "postgres")
        subprocess.run(self.tool("pgbench", "-i", "-q"), check=True, stderr=null)
        self.own = children_of(self.main.pid)
        self.spawn("load", "nice", *self.tool("pgbench", "-n", "-c", "3", "-T", "99999"))
        wait_for(lambda: len(self.backends()) == 3, "pgbench")
        self.fixed = self.backends()
        self.spawn("load2", *self.tool("pgbench", "-n", "-C", "-S", "-R", "50", "-T", "99999"))

    def backends(self):
        return [p for p in children_of(self.main.pid) if p not in self.own]

    def pids(self):
        return [self.main.pid, *self.fixed]

    def some_pids(self, rnd):
        return rnd.choice(([self.fixed[0]], self.fixed, self.pids(), [self.main.pid]))

    def wrong(self):
        words = "ERROR|FATAL|PANIC|Interrupted|signal|aborted"
        return "\n".join(x for n in ("server", "load", "load2") for x in self.said(n).splitlines() if re.search(words, x))

    def finish(self):
        self.check()
        # a session that is ended by force would look like a failure
        for name in ("load", "load2"):
            self.children[name].kill()
            self.children[name].wait()
        sums = "select (select sum(delta) from pgbench_history), (select sum(abalance) from pgbench_accounts), " \
               "(select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers)"
        said = subprocess.run(self.tool("psql", "-Atc", sums), check=True, capture_output=True, text=True, timeout=60).stdout
        need(len(set(said.split("|"))) == 1 or len(set(said.strip().split("|"))) == 1, f"the sums differ: {said}")
        wait_for(lambda: not self.backends(), "the end of its sessions")
        self.terminate("server", signal.SIGINT)


# ---- those that check themselves ----


class Own(Program):
    """Says "ready", then what goes wrong; ends with standard input."""

    def start(self):
        self.main = self.spawn("own", *self.argv(), stdin=subprocess.PIPE)
        wait_for(lambda: self.said("own"), "its start")

    def wrong(self):
        return self.said("own").replace("ready\n", "", 1)

    def finish(self):
        self.main.stdin.close()
        self.main.wait(120)
        return "" if self.main.returncode == 0 else f"it ended with {self.main.returncode}"


class Python(Own):
    tools, slack = ("python3",), 8
    options = LIBC + [["-P", "python3"], ["-F", "Py*"], ["-F", "_PyEval*", "-L", "libc*"]]
    added = ADDED + [(["-F", "PyLong*"], ["-F", "PyLong*"]), (["PyObject_Malloc n=$arg1"], ["PyObject_Malloc"])]

    def argv(self):
        return where("python3"), os.path.join(HERE, "life.py")


class Jvm(Own):
    tools, slack = ("java", "javac"), 30
    options = LIBC + [["-L", "libjvm*", "-F", "*Thread*"], ["-L", "libjava*"], ["-L", "libnio*", "-L", "libnet*"]]

    def argv(self):
        subprocess.run(["javac", "-d", self.folder, os.path.join(HERE, "Life.java")], check=True)
        return "java", "-Xmx200m", "-cp", self.folder, "Life"


class Go(Own):
    tools, slack = ("go",), 30
    options = [[], ["-F", "main.*"], ["-F", "net/http.*"], ["-F", "runtime.*"], ["-F", "*"], ["-p", "main.deep n=$arg1"]]
    added = [(["main.leaf n=$arg1"], ["main.leaf"]), (["-F", "net/http.*"], ["-F", "net/http.*"]), (["main.deep"], ["main.deep"])]

    def argv(self):
        env = dict(os.environ, GOCACHE=self.path("cache"), GO111MODULE="off")
        subprocess.run(["go", "build", "-o", self.path("server"), os.path.join(HERE, "server.go")], check=True, env=env)
        return (self.path("server"),)


class Threads(Own):
    options = LIBC + [["-F", "other"], ["-F", "*", "-L", "libc*"]]
    added = ADDED + [(["other n=$arg1"], ["other"]), (["-F", "other"], ["-F", "other"])]

    def argv(self):
        path = self.path("threads")
        subprocess.run([*CC, "-O2", "-pthread", "-o", path, os.path.join(HERE, "threads.c")], check=True)
        self.counts = self.path("now")
        return path, "1000", self.counts


class Waits(Own):
    """Handlers on stacks of their own, longjmp, forks, and waiting of all kinds; it ends with SIGTERM."""

    def argv(self):
        path = self.path("life")
        subprocess.run([*CC, "-O2", "-pthread", "-o", path, os.path.join(SRC, "tests/bins/live_life.c")], check=True)
        return path, "4"

    def finish(self):
        self.terminate("own")

    def wrong(self):
        return re.sub(r"ready\n|interrupted 0 early 0 late 0 wrong 0 handled some\n", "", self.said("own"))


KINDS = {"redis": Redis, "nginx": Nginx, "postgres": Postgres, "python": Python, "jvm": Jvm, "go": Go, "threads": Threads,
         "waits": Waits}
