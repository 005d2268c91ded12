#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints kron's benchmark table: medians of interleaved runs, and ratios within the run.

usage: bench.py --build DIR [--programs DIR] [--rounds N] [--only NAME] [--json]

Every comparison is made inside one run: the variants of a row take turns, round after round,
so that a drift of the machine's speed hits all of them.  Peers (uftrace, LTTng-UST, ltrace,
perf) appear when they are installed and work here, else the row says why not.
"""
import argparse
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import live  # noqa: E402
import nodes  # noqa: E402
PARTS = ("probe", "hot", "perl_insns", "patching", "board", "trap", "startup", "live", "programs", "same", "peers",
         "exports", "reading", "nodes")


class Bench:
    def __init__(self, args):
        self.build = os.path.abspath(args.build)
        self.kron = os.path.join(self.build, "kron")
        self.rounds = args.rounds
        self.rows = []
        self.tmp = tempfile.mkdtemp(prefix="kron-bench.")
        self.env = dict(os.environ, LC_ALL="C", XDG_CACHE_HOME=self.tmp + "/cache")
        self.only = args.only
        self.built = os.path.abspath(args.programs) if args.programs else None

    def wanted(self, name):
        return not self.only or self.only in name

    def row(self, group, name, value, unit, target=None, ok=None, note=""):
        self.rows.append(dict(group=group, name=name, value=value, unit=unit, target=target,
                              ok=ok, note=note))

    def run(self, argv, stdin=None, check=True):
        """Wall seconds and output of one run."""
        with open(stdin or os.devnull, "rb") as inp:
            t = time.perf_counter()
            r = subprocess.run(argv, stdin=inp, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=self.env, cwd=self.tmp)
            t = time.perf_counter() - t
        if check and r.returncode:
            raise RuntimeError("%s: status %d: %s" % (" ".join(argv), r.returncode,
                                                      r.stderr.decode("utf8", "replace")[-300:]))
        return t, r.stdout.decode("utf8", "replace"), r.stderr.decode("utf8", "replace")

    def interleave(self, variants, rounds=None):
        """variants: name -> (argv, stdin).  Returns name -> list of seconds, and outputs."""
        times = {n: [] for n in variants}
        outs = {}
        for i in range((rounds or self.rounds) + 1):
            for n, (argv, stdin) in variants.items():
                t, out, err = self.run(argv, stdin)
                outs[n] = (out, err)
                if i:  # the first round warms caches up
                    times[n].append(t)
        return times, outs

    def record(self, argv, *opts):
        out = os.path.join(self.tmp, "trace")
        return [self.kron, "record", "-q", "-o", out, *opts, "--", *argv]

    def samples(self):
        r = self.run([self.kron, "info", "--json", os.path.join(self.tmp, "trace")])
        d = json.loads(r[1])
        return d["samples"], d["lost"]

    @staticmethod
    def paired(a, b):
        """Median of the pairwise differences a - b."""
        return statistics.median(x - y for x, y in zip(a, b))

    # ---- rows ----

    def probe(self):
        prog = os.path.join(self.build, "bench", "probe")
        if not os.path.exists(prog):
            self.row("probe", "microbenchmark", None, "", note="bench/probe is not built")
            return
        d = json.loads(self.run([prog, "--json"])[1])
        g = "probe"
        self.row(g, "empty call", d["empty_ns"], "ns")
        self.row(g, "rdtsc + one store", d["limit_ns"], "ns")
        self.row(g, "probe enabled", d["enabled_ns"], "ns")
        self.row(g, "enabled / (rdtsc + store)", d["enabled_ns"] / d["limit_ns"], "x", "<= 1.15",
                 d["enabled_ns"] / d["limit_ns"] <= 1.15)
        self.row(g, "--clock every:16", d["sparse_ns"], "ns", "<= 2.0", d["sparse_ns"] <= 2.0)
        self.row(g, "--clock every:16 / (rdtsc + store)", d["sparse_ns"] / d["limit_ns"], "x", "<= 0.22",
                 d["sparse_ns"] / d["limit_ns"] <= 0.22)
        off = d["disabled_ns"] - d["empty_ns"]
        self.row(g, "group off, over the unprobed call", off, "ns", "<= 1.0", off <= 1.0)
        ratio = d["taken_ns"] / d["dropped_ns"]
        self.row(g, "--constant-time, sample taken", d["taken_ns"], "ns")
        self.row(g, "--constant-time, sample dropped", d["dropped_ns"], "ns")
        self.row(g, "taken / dropped", ratio, "x", "0.95-1.05", 0.95 <= ratio <= 1.05)
        self.row(g, "on the exact bus", d["exact_ns"], "ns")
        self.row(g, "on the device bus, a file", d["hardware_ns"], "ns")
        self.row(g, "two threads / one thread, rate", d["two_threads_ratio"], "x", ">= 1.9",
                 d["two_threads_ratio"] >= 1.9)

    def hot(self):
        """A probe inside a loop: the same loop with and without, by turns, in one process."""
        g = "a hit in a hot loop"
        prog = os.path.join(self.build, "bench", "hot")
        if not os.path.exists(prog):
            self.row(g, "bench/hot", None, "", note="is not built")
            return
        device = os.path.join(self.tmp, "device")
        with open(device, "wb") as f:
            f.truncate(32 << 20)
        for loop, args in (("", []), (", loop of one cycle", ["tight"])):
            place = ("tight" if args else "hot") + "_probed+"
            place += self.run([prog, *args, "place"])[1].strip()
            for name, opts, most in (
                    ("store to a device", ["--bus", "device:" + device, "-p",
                                           place + " store:96=5"], 0.5),
                    ("count", ["-p", place + " count:0"], None),
                    ("count, its group on", ["-p", "0:=" + place + " count:0"], None),
                    ("sample, its group off", ["--filter", "0", "-p", place + " trace %rax"],
                     None)):
                d = [json.loads(self.run(self.record([prog, *args], *opts))[1])
                     for _ in range(self.rounds)]
                more = statistics.median(x["more_ns"] for x in d)
                self.row(g, name + loop, more, "ns", "<= %.1f" % most if most else None,
                         more <= most if most else None, "the loop itself: %.2f ns" %
                         statistics.median(x["plain_ns"] for x in d))

    def perl_insns(self):
        """Every instruction of perl counted; processor time of perl alone."""
        argv = ["/usr/bin/perl", "-e",
                "my (%h, @a, $s); for my $r (1..12) { for my $i (1..20000) {"
                " my $k = 'k' . ($i * 7919 % 10007); $h{$k} += $i; push @a, length $k;"
                " $s += $1 if $k =~ /(\\d+)$/; } my @k = sort { $h{$a} <=> $h{$b} || $a cmp $b }"
                " keys %h; $s += $h{$k[$r]}; @a = (); } print \"$s\\n\";"]
        g = "perl, every instruction counted"
        if not os.path.exists(argv[0]):
            self.row(g, "perl", None, "", note="is not installed")
            return
        env = dict(PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")
        self.env.update(env)
        script = os.path.join(self.tmp, "insns.py")
        with open(script, "w") as f:
            f.write("import json, resource, subprocess, sys\n"
                    "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n"
                    "r = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                    "print(json.dumps(r.ru_utime + r.ru_stime))\n")
        run = [sys.executable, script, *argv]
        every = self.record(run, "-p", os.path.basename(argv[0]) + ":*%insns count:0")
        t = {"plain": [], "counted": []}
        for i in range(self.rounds + 1):
            for name, command in (("plain", run), ("counted", every)):
                seconds = json.loads(self.run(command)[1])
                if i:  # the first one plans
                    t[name].append(seconds)
        for name in env:
            del self.env[name]
        counted = json.loads(self.run([self.kron, "info", "--json",
                                       os.path.join(self.tmp, "trace")])[1])["counters"][0]
        ratio = statistics.median(a / b for a, b in zip(t["counted"], t["plain"]))
        self.row(g, "processor time, counted / plain", ratio, "x", "<= 8", ratio <= 8,
                 "%.3f s plain, %s instructions" % (statistics.median(t["plain"]),
                                                    format(counted, ",")))

    def patching(self):
        """kron patch beside E9Patch 1.0.1 on the same files of Debian 12: its processor seconds
        and memory for every instruction; the growth of its outputs for entries was 0.7 to 0.9."""
        peer = {"/usr/bin/bash": (1.2, 58), "/usr/bin/gdb": (13.6, 424),
                "/usr/lib/x86_64-linux-gnu/libc.so.6": (2.7, 90)}
        more = ("/usr/bin/git", "/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3")
        out = os.path.join(self.tmp, "patched")
        for path in (*peer, *more):
            g, name = "kron patch", os.path.basename(path)
            if not os.path.exists(path):
                self.row(g, name, None, "", note="is not installed")
                continue
            every = [self.kron, "patch", "-p", "*%insns count:0", "-o", out, path]
            sites = int(re.search(r"([0-9,]+) places", self.run(every)[1]).group(1).replace(",", ""))
            runs = [self.measured(every) for _ in range(self.rounds)]
            cpu, mb = (statistics.median(r[i] for r in runs) for i in (1, 2))
            cpu_most, mb_most = (peer[path][0] / 3, peer[path][1] / 2) if path in peer else (0, 0)
            note = "of processor, %s sites a second" % format(int(sites / cpu), ",")
            if cpu_most:
                note += ", %.1f times E9Patch's" % (3 * cpu_most / cpu)
            self.row(g, name + ", every instruction", cpu, "s",
                     "<= %.2f" % cpu_most if cpu_most else None,
                     cpu <= cpu_most if cpu_most else None, note)
            self.row(g, name + ", every instruction, memory", mb, "MB",
                     "< %d" % mb_most if mb_most else None, mb < mb_most if mb_most else None)
            size = os.path.getsize(path)
            for what, options in (("entries", ["-p", "*"]), ("entries and exits", [])):
                self.run([self.kron, "patch", *options, "-o", out, path])
                growth = os.path.getsize(out) / size - 1
                held = os.stat(out).st_blocks * 512 / size - 1
                self.row(g, "%s, %s: growth" % (name, what), growth, "x",
                         "< 0.45" if what == "entries" else None,
                         growth < 0.45 if what == "entries" else None,
                         "%.2f without holes" % held)

    def board(self):
        prog = os.path.join(self.build, "bench", "board")
        if not os.path.exists(prog):
            self.row("board", "bus cycles", None, "", note="bench/board is not built")
            return
        d = json.loads(self.run([prog, "--json"])[1])
        g = "bus cycle by call, exact bus"
        self.row(g, "trigger, chip FIFO mostly full", d["trigger_ns"], "ns", "< 150",
                 d["trigger_ns"] < 150)
        self.row(g, "trigger, sample taken", d["taken_ns"], "ns", "< 150", d["taken_ns"] < 150)
        self.row(g, "register read", d["read_ns"], "ns", "< 150", d["read_ns"] < 150)
        self.row(g, "local memory read", d["memory_ns"], "ns", "< 150", d["memory_ns"] < 150)
        self.row(g, "trigger, two processes at once", d["two_ns"], "ns")
        self.row(g, "trigger, eight processes at once", d["eight_ns"], "ns")

    def trap(self):
        prog = os.path.join(self.build, "bench", "trap")
        if not os.path.exists(prog):
            self.row("trap", "C stores", None, "", note="bench/trap is not built")
            return
        name = "bench-trap-%d" % os.getpid()
        self.env["KRON_BOARD"] = name
        try:
            d = json.loads(self.run([prog, "--json"])[1])
        finally:
            del self.env["KRON_BOARD"]
            self.run([self.kron, "board", "rm", name], check=False)
        g = "C store to an emulated board"
        self.row(g, "a signal alone", d["signal_ns"], "ns")
        self.row(g, "C store by trap", d["store_ns"], "ns")
        self.row(g, "C load by trap", d["load_ns"], "ns")
        self.row(g, "the store's share over the signal", d["store_ns"] - d["signal_ns"], "ns")

    def startup(self):
        g = "start-up"
        src = os.path.join(self.tmp, "many.c")
        prog = os.path.join(self.tmp, "many")
        with open(src, "w") as f:
            for i in range(20000):
                f.write("__attribute__((noinline)) int f%d(int x)"
                        "{ return x * %d + (x >> %d); }\n" % (i, i + 3, i % 7))
            f.write("int main(int c, char **v) { (void)v; return f0(c) == 12345; }\n")
        self.run(["gcc", "-O1", "-o", prog, src])
        cold, warm, plain = [], [], []
        for i in range(self.rounds + 1):
            shutil.rmtree(self.tmp + "/cache", ignore_errors=True)
            # libc's hooks are planned beforehand: the row is about the 20,000 functions
            self.run(self.record(["/bin/true"]))
            c = self.run(self.record([prog]))[0]
            w = self.run(self.record([prog]))[0]
            p = self.run([prog])[0]
            if i:
                cold.append(c)
                warm.append(w)
                plain.append(p)
        v = self.paired(cold, plain) * 1e3
        self.row(g, "20,000 functions, cold plan cache", v, "ms", "< 300", v < 300)
        v = self.paired(warm, plain) * 1e3
        self.row(g, "20,000 functions, warm plan cache", v, "ms", "< 30", v < 30)
        t, _ = self.interleave({"plain": (["/bin/true"], None),
                                "kron": (self.record(["/bin/true"]), None)}, 4 * self.rounds)
        v = self.paired(t["kron"], t["plain"]) * 1e3
        self.row(g, "kron record /bin/true over /bin/true", v, "ms", "<= 5", v <= 5)
        loop = ["/bin/sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"]
        t, _ = self.interleave({"plain": (loop, None), "kron": (self.record(loop), None)})
        v = self.paired(t["kron"], t["plain"]) * 1e3 / 100
        self.row(g, "each /bin/true of a traced shell loop", v, "ms", "<= 5", v <= 5)

    def workloads(self, part=1):
        """part: a fraction of the work, for those who record it slowly."""
        data = os.path.join(self.tmp, "data")
        with open(data, "wb") as f:
            x = 1
            words = []
            for _ in range(4096):
                x = (x * 6364136223846793005 + 1442695040888963407) & (2 ** 64 - 1)
                words.append(b"%x" % (x >> 40))
            for i in range(1200000 // part):
                x = (x * 6364136223846793005 + 1442695040888963407) & (2 ** 64 - 1)
                f.write(words[(x >> 33) % (1 + (x >> 50) % 4096)] + b" ")
        perl = ("my %h; for my $i (1..REPEAT) { my $k = 'k' . ($i % 977); $h{$k} .= chr(65+$i%26);"
                " $h{$k} = '' if length $h{$k} > 90; } my $n = 0;"
                " $n += length for values %h; print \"$n\\n\";"
                ).replace("REPEAT", str(400000 // part))
        py = ("def f(n):\n"
              "    return n if n < 2 else f(n-1) + f(n-2)\n"
              "d = {}\n"
              "for i in range(REPEAT):\n"
              "    d[str(i % 997)] = d.get(str(i % 991), 0) + i\n"
              "print(f(21), sum(d.values()), len(sorted(d)))\n"
              ).replace("REPEAT", str(120000 // part))
        sh = ("s=0; for ((i = 0; i < REPEAT; i++)); do s=$(( (s * 31 + i) % 65521 ));"
              " a[i % 97]=$s; done; echo $s ${#a[@]}").replace("REPEAT", str(60000 // part))
        sql = ("create table t(a integer primary key, b text, c real);"
               "with recursive n(i) as (select 1 union all select i+1 from n where i < REPEAT)"
               " insert into t select i, 'row ' || (i*7919 % 10007), i/3.0 from n;"
               "create index tb on t(b);"
               "select count(*), sum(c), max(b) from t where b like 'row 1%';"
               "select b, count(*) from t group by b order by 2 desc, 1 limit 3;"
               ).replace("REPEAT", str(40000 // part))
        w = {
            "gzip": (["/bin/gzip", "-c", "-6", data], []),
            "xz": (["/usr/bin/xz", "-c", "-1", "-T1", data], ["-L", "liblzma*"]),
            "perl": (["/usr/bin/perl", "-e", perl], []),
            "python3": (["/usr/bin/python3", "-S", "-c", py], []),
            "bash": (["/bin/bash", "-c", sh], []),
            "sqlite3": (["/usr/bin/sqlite3", ":memory:", sql], ["-L", "libsqlite3*"]),
        }
        return w

    def programs(self):
        g = "programs"
        for name, (argv, opts) in self.workloads().items():
            if not os.path.exists(argv[0]):
                self.row(g, name, None, "", note="is not installed")
                continue
            times, _ = self.interleave({"plain": (argv, None),
                                        "kron": (self.record(argv, *opts), None),
                                        "off": (self.record(argv, "--filter", "0", *opts), None)})
            self.run(self.record(argv, *opts))
            n, lost = self.samples()
            added = self.paired(times["kron"], times["plain"])
            off = self.paired(times["off"], times["plain"])
            if not n + lost:
                self.row(g, name, None, "", note="no samples")
                continue
            per = added * 1e9 / (n + lost)
            # uftrace -P . costs 90-110 ns an event in programs; a sixth of the lower figure
            self.row(g, name + ": added per event", per, "ns", "<= 15", per <= 15,
                     "%.2f s plain, %.2f s traced, %s events, %s lost" %
                     (statistics.median(times["plain"]), statistics.median(times["kron"]),
                      format(n + lost, ","), format(lost, ",")))
            self.row(g, name + ": added per event, groups off", off * 1e9 / (n + lost), "ns")

    def walls_and_cpus(self, variants):
        """As interleave(), and the processor time of all processes, the recorder's included."""
        walls, cpus = {n: [] for n in variants}, {n: [] for n in variants}
        for i in range(self.rounds + 1):
            for n, argv in variants.items():
                a = resource.getrusage(resource.RUSAGE_CHILDREN)
                wall = self.run(argv)[0]
                b = resource.getrusage(resource.RUSAGE_CHILDREN)
                if i:
                    walls[n].append(wall)
                    cpus[n].append(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime)
        return walls, cpus

    def uftrace_events(self, where):
        """Records of 16 bytes, one file a thread."""
        return sum(os.path.getsize(os.path.join(where, f)) for f in os.listdir(where)
                   if f.endswith(".dat")) // 16

    def same(self):
        """Real programs with their library inside (bench/build-programs), by kron and by
        uftrace -P ., which patch the same functions: some 99.9 % of the events are the same."""
        g = "the same functions"
        if not self.built or not shutil.which("uftrace"):
            self.row(g, "uftrace -P . on real programs", None, "",
                     note="uftrace is not installed" if self.built else "no --programs")
            return
        uf = os.path.join(self.tmp, "uf")
        load = os.getloadavg()[0]
        if load > 0.5:
            self.row(g, "load of the machine before this", load, "",
                     note="busy: the recorder has no processor of its own")
        for name, (argv, _) in self.workloads().items():
            prog = [os.path.join(self.built, name), *argv[1:]]
            if not os.path.exists(prog[0]):
                self.row(g, name, None, "", note="is not built")
                continue
            if name == "python3":
                lib = [d for d in os.listdir(self.built + "/src") if d.startswith("Python-")]
                self.env["PYTHONPATH"] = os.path.join(self.built, "src", lib[0], "Lib")
            wall, cpu = self.walls_and_cpus({
                "plain": prog,
                "kron": self.record(prog),
                "uftrace": ["uftrace", "record", "--no-libcall", "-P", ".", "-d", uf, *prog]})
            self.env.pop("PYTHONPATH", None)
            n, lost = self.samples()
            events = {"kron": n + lost, "uftrace": self.uftrace_events(uf)}
            per, work = ({k: self.paired(t[k], t["plain"]) * 1e9 / events[k] for k in events}
                         for t in (wall, cpu))
            ratio = per["uftrace"] / per["kron"]
            self.row(g, name + ": kron, added per event", per["kron"], "ns", None, None,
                     "%.2f s plain, %s events, %s lost" %
                     (statistics.median(wall["plain"]), format(events["kron"], ","), lost))
            self.row(g, name + ": uftrace -P .", per["uftrace"], "ns", "kron at most 1/6",
                     ratio >= 6, "%.1f times kron, %s events" %
                     (ratio, format(events["uftrace"], ",")))
            self.row(g, name + ": processor time, kron", work["kron"], "ns", note="with the recorder")
            self.row(g, name + ": processor time, uftrace -P .", work["uftrace"], "ns",
                     note="%.1f times kron" % (work["uftrace"] / work["kron"]))

    def peers(self):
        g = "peers"
        work = os.path.join(self.tmp, "work")
        workpg = os.path.join(self.tmp, "work-pg")
        workfi = os.path.join(self.tmp, "work-fi")
        src = os.path.join(HERE, "work.c")
        self.run(["gcc", "-O2", "-g", "-o", work, src, "-lpthread"])
        self.run(["gcc", "-O2", "-pg", "-o", workpg, src, "-lpthread"])
        self.run(["gcc", "-O2", "-finstrument-functions", "-o", workfi, src, "-lpthread"])
        uf = os.path.join(self.tmp, "uf")
        for mode, n in (("loop", "6000000"), ("tree", "200000")):
            a = [mode, n]
            v = {"plain": ([work, *a], None), "kron": (self.record([work, *a]), None)}
            notes = {}
            if shutil.which("uftrace"):
                v["uftrace -P ."] = (["uftrace", "record", "--no-libcall", "-P", ".", "-d", uf,
                                      work, *a], None)
                v["plain -pg"] = ([workpg, *a], None)
                v["uftrace -pg"] = (["uftrace", "record", "--no-libcall", "-d", uf, workpg, *a],
                                    None)
            else:
                notes["uftrace"] = "not installed"
            if shutil.which("lttng"):
                pre = self.lttng_preload()
                if pre:
                    v["plain -finstrument-functions"] = ([workfi, *a], None)
                    v["LTTng-UST"] = (["env", "LD_PRELOAD=" + pre, workfi, *a], None)
                else:
                    notes["LTTng-UST"] = "no session could be started"
            else:
                notes["LTTng-UST"] = "not installed"
            for k in list(v):
                try:
                    self.run(*v[k])
                except (RuntimeError, OSError) as e:
                    del v[k]
                    notes[k] = str(e)[:60]
            if "plain" not in v:
                continue
            started = "LTTng-UST" in v and self.lttng_start()
            times, outs = self.interleave(v)
            if started:
                self.lttng_stop()
            calls = int(re.search(r"calls (\d+)", outs["plain"][0]).group(1)) * 2  # entry, exit
            kron = None
            for k in v:
                if k.startswith("plain"):
                    continue
                base = {"uftrace -pg": "plain -pg",
                        "LTTng-UST": "plain -finstrument-functions"}.get(k, "plain")
                per = self.paired(times[k], times[base]) * 1e9 / calls
                if k == "kron":
                    kron = per
                    self.row(g, mode + ": kron, added per event", per, "ns")
                elif kron:
                    ok = per / kron >= 6 if k.startswith("uftrace -P") else None
                    self.row(g, mode + ": " + k, per, "ns",
                             "kron at most 1/6" if ok is not None else None, ok,
                             "%.1f times kron" % (per / kron))
            for k, why in notes.items():
                self.row(g, mode + ": " + k, None, "", note=why)
        self.slow_peers(work)

    def slow_peers(self, work):
        """Peers that trap on every event: a hundredth of the work."""
        a = ["loop", "20000"]
        v = {"plain": ([work, *a], None)}
        if shutil.which("ltrace"):
            v["ltrace -x"] = (["ltrace", "-o", os.devnull, "-L", "-x", "empty", work, *a], None)
        uprobe = self.uprobe_setup(work)
        if uprobe is True:
            v["perf uprobes"] = (["perf", "record", "-q", "-o", self.tmp + "/perf.data",
                                  "-e", "probe_kron:empty", work, *a], None)
        for k in list(v):
            try:
                self.run(*v[k])
            except (RuntimeError, OSError) as e:
                del v[k]
                self.row("peers", "loop: " + k, None, "", note=str(e)[:60])
        times, _ = self.interleave(v, 3)
        for k in v:
            if k != "plain":
                per = self.paired(times[k], times["plain"]) * 1e9 / 20000
                self.row("peers", "loop: " + k, per, "ns", note="entries only")
        if uprobe is True:
            self.run(["perf", "probe", "-q", "-d", "probe_kron:*"], check=False)
        else:
            self.row("peers", "loop: perf uprobes", None, "", note=uprobe)

    def uprobe_setup(self, work):
        if not shutil.which("perf"):
            return "not installed"
        try:
            r = subprocess.run(["perf", "probe", "-q", "-x", work, "--add",
                                "probe_kron:empty=empty"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env)
        except OSError as e:
            return str(e)
        return True if not r.returncode else "not permitted here"

    def lttng_preload(self):
        for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"):
            p = os.path.join(d, "liblttng-ust-cyg-profile-fast.so.1")
            if os.path.exists(p):
                return p
        return None

    def lttng(self, *args):
        return subprocess.run(["lttng", "-n", *args], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              env=dict(self.env, LTTNG_HOME=self.tmp)).returncode == 0

    def lttng_start(self):
        self.env["LTTNG_HOME"] = self.tmp
        subprocess.Popen(["lttng-sessiond", "--no-kernel", "--daemonize",
                          "--pidfile", self.tmp + "/sessiond.pid"], env=self.env,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()
        ok = (self.lttng("create", "kron", "--output", self.tmp + "/lttng") and
              self.lttng("enable-channel", "-u", "c", "--subbuf-size", "4M", "--num-subbuf", "8") and
              self.lttng("enable-event", "-u", "-a", "-c", "c") and self.lttng("start"))
        return ok

    def lttng_stop(self):
        self.lttng("destroy", "kron")
        try:
            with open(self.tmp + "/sessiond.pid") as f:
                os.kill(int(f.read()), signal.SIGTERM)
        except (OSError, ValueError):
            pass

    def exports(self):
        """A full board memory, 838,860 samples, as a database."""
        make = os.path.join(self.build, "tests/unit/trace/make_trace")
        g, db = "exports", self.tmp + "/db"
        if not os.path.exists(make):
            self.row(g, "SQLite", None, "", note="tests/unit/trace/make_trace is not built")
            return
        self.busy(g)
        self.run([make, "big", self.tmp + "/full", "838860", "1"])
        a = [self.kron, "export", "-f", "sqlite", "-o", db, self.tmp + "/full"]
        times = [self.measured(a) for i in range(self.rounds)]
        v = statistics.median(t[0] for t in times)
        self.row(g, "SQLite: import of 838,860 samples", v, "s", "< 2", v < 2,
                 "%.1f s of processor" % statistics.median(t[1] for t in times))
        with open(os.path.join(HERE, "../examples/queries/sample.sql")) as f:
            queries = [q for q in f.read().split(";\n") if "SELECT" in q]
        con, times, work = sqlite3.connect(db), [], []
        for n in range(1, 838860, 4001):
            t, w = time.perf_counter(), time.thread_time()
            for q in queries:
                con.execute(q, {"sample": n}).fetchall()
            times.append(time.perf_counter() - t)
            work.append(time.thread_time() - w)
        v = max(times) * 1e3
        self.row(g, "SQLite: a sample with its context, longest", v, "ms", "< 10", v < 10,
                 "%.1f ms of processor, %.1f in the median" %
                 (max(work) * 1e3, statistics.median(times) * 1e3))

    def busy(self, g):
        load = os.getloadavg()[0]
        if load > 0.5:
            self.row(g, "load of the machine before this", load, "",
                     note="busy: wall times say little, processor times more")

    def measured(self, argv):
        """Wall and processor seconds of one run, and its memory in MB."""
        t = time.perf_counter()
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=self.env, cwd=self.tmp)
        _, status, use = os.wait4(p.pid, 0)
        p.returncode = status
        if status:
            raise RuntimeError("%s: status %d" % (" ".join(argv), status))
        return time.perf_counter() - t, use.ru_utime + use.ru_stime, use.ru_maxrss / 1024

    def reading(self):
        """Reports of a long trace; and kron report beside uftrace report and babeltrace2, each
        on the same events in its own format."""
        make = os.path.join(self.build, "tests/unit/trace/make_trace")
        g = "reading"
        if not os.path.exists(make):
            self.row(g, "long traces", None, "", note="tests/unit/trace/make_trace is not built")
            return
        self.busy(g)
        info = self.tmp + "/interval.info"
        self.run([make, "walk", self.tmp + "/few", "1000000", "8"])
        self.run([self.kron, "read", "-o", self.tmp + "/few.dat", "--intervals", info,
                  self.tmp + "/few"])
        self.beside(g)
        long = self.tmp + "/long"
        self.run([make, "walk", long, "100000000", "8"])
        for name, options in (("profile", []), ("intervals of 40 functions", ["-i", info])):
            wall, cpu, mb = self.measured([self.kron, "report", *options, long])
            g = "report of 100,000,000 samples"
            self.row(g, name, wall, "s", "< 10", wall < 10, "%.1f s of processor" % cpu)
            self.row(g, name + ", memory", mb, "MB", "< 200", mb < 200)
        shutil.rmtree(long)

    def beside(self, g):
        """Each peer's row is compared with the command of kron that does the same work."""
        few = self.tmp + "/few"
        totals = json.loads(self.run([self.kron, "report", "--totals", "--json", few])[1])
        tools = {"kron report": ([self.kron, "report", few], None),
                 "kron replay": ([self.kron, "replay", few], None),
                 "kron dump": ([self.kron, "dump", few], None)}
        if shutil.which("uftrace"):
            self.run([self.kron, "export", "-f", "uftrace", "-o", few + ".uftrace", few])
            report = ["uftrace", "report", "--no-pager", "-d", few + ".uftrace"]
            calls = sum(int(line.split()[4]) for line in self.run(report)[1].splitlines()[2:])
            if calls != totals["calls"]:
                raise ValueError("uftrace counts %d calls of %d" % (calls, totals["calls"]))
            tools["uftrace report"] = (report, "kron report")
            tools["uftrace replay"] = (["uftrace", "replay", "--no-pager", "-d",
                                        few + ".uftrace"], "kron replay")
        else:
            self.row(g, "uftrace", None, "", note="not installed")
        if shutil.which("babeltrace2"):
            self.run([self.kron, "export", "-f", "ctf", "-o", few + ".ctf", few])
            count = ["babeltrace2", few + ".ctf", "--component", "sink.utils.counter"]
            events = int(re.findall(r"(\d+) Event messages", self.run(count)[1])[-1])
            # calls that are open at the end have an exit there
            if events != totals["samples"] + totals["open"]:
                raise ValueError("babeltrace2 counts %d events of %d" %
                                 (events, totals["samples"]))
            tools["babeltrace2, counting"] = (count, "kron report")
            tools["babeltrace2, as text"] = (["babeltrace2", few + ".ctf"], "kron dump")
        else:
            self.row(g, "babeltrace2", None, "", note="not installed")
        times = {n: [] for n in tools}
        for i in range(self.rounds):
            for n, (argv, _) in tools.items():
                times[n].append(self.measured(argv)[1])
        medians = {n: statistics.median(t) for n, t in times.items()}
        for n, (_, own) in tools.items():
            self.row(g, "1,000,000 events: " + n, medians[n] * 1e3, "ms", None, None,
                     "of processor" + (", %.1f times %s" % (medians[n] / medians[own], own)
                                       if own else ""))

    def live(self):
        live.rows(self)

    def nodes(self):
        nodes.rows(self)

    def table(self):
        group = None
        bad = 0
        for r in self.rows:
            if r["group"] != group:
                group = r["group"]
                print("%s%-44s %12s  %-18s" % ("" if group == self.rows[0]["group"] else "\n",
                                               group.upper(), "median", "target"))
            v = "-" if r["value"] is None else "%.2f %s" % (r["value"], r["unit"])
            mark = "" if r["ok"] is None else ("ok" if r["ok"] else "MISSED")
            bad += r["ok"] is False
            print(("  %-42s %12s  %-18s %-7s %s" %
                   (r["name"], v, r["target"] or "", mark, r["note"])).rstrip())
        if bad:
            print("\n%d targets missed" % bad)

    def close(self):
        shutil.rmtree(self.tmp, ignore_errors=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=".", help="build tree, holds kron and bench/probe")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--programs", help="folder that bench/build-programs has filled")
    p.add_argument("--only", help=", ".join(PARTS))
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    b = Bench(args)
    try:
        for part in PARTS:
            if b.wanted(part):
                try:
                    getattr(b, part)()
                except (RuntimeError, OSError, KeyError, ValueError) as e:
                    b.row(part, "failed", None, "", ok=False, note=str(e)[:200])
        if args.json:
            json.dump(b.rows, sys.stdout, indent=1)
            print()
        else:
            b.table()
    finally:
        b.close()


if __name__ == "__main__":
    main()
