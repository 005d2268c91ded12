#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the probes cost: one definition, the same figure wherever it stands.

The program knows how many probes it runs into and what processor time it has taken.  How many
nanoseconds a probe costs is kron's own measurement; everything else is checked."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Suite, need  # noqa: E402

SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
static long calls;
__attribute__((noinline)) static unsigned long tick(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2862933555777941757ul + 3037000493ul;
}
static void *work(void *arg)
{
	unsigned long x = (unsigned long)arg;
	for (long i = 0; i < calls; i++) {
		x = tick(x);
		for (int k = 0; k < 60; k++) /* something to be compared with */
			x = x * 2862933555777941757ul + 3037000493ul;
	}
	return (void *)(x | 1);
}
int main(int argc, char **argv)
{
	struct rusage u;
	pthread_t t[8];
	int n = atoi(argv[1]);
	calls = atol(argv[2]);
	for (long i = 1; i < n; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	work(0);
	for (int i = 1; i < n; i++)
		pthread_join(t[i], 0);
	getrusage(RUSAGE_SELF, &u);
	printf("%ld\\n", (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000L + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000L);
	return argc < 2;
}
"""


def build():
    open("p.c", "w").write(SOURCE)
    subprocess.run(["gcc", "-O2", "-o", "p", "p.c", "-pthread"], check=True)


def record(*args, options=()):
    r = subprocess.run([KRON, "record", "-o", "t", "-F", "tick", *options, "--", *args], capture_output=True, text=True)
    need(r.returncode == 0, r.stderr)
    return r.stdout, r.stderr


def read(*args):
    r = subprocess.run([KRON, *args, "t"], capture_output=True, text=True)
    need(r.returncode == 0, r.stderr)
    return r.stdout


def near(a, b, relative, what):
    need(abs(a - b) <= relative * abs(b), f"{what}: {a}, not {b}")


def shown(text, where):
    m = re.search(r"probes cost(?: about|:.*?,) ([0-9.]+)%", text) or re.search(
        r"([0-9.]+)%(?: \([0-9.]+ to [0-9.]+%\))? of the .* processor time", text)
    need(m, f"{where} shows no percentage: {text}")
    return m[1]


def check_shown(percent, *texts):
    wanted = f"{percent:.1f}" if percent < 10 else f"{percent:.0f}"
    for where, text in texts:
        need(shown(text, where) == wanted, f"{where} shows {shown(text, where)}%, not {wanted}%")


def check(err, events, least_cpu):
    info, totals = json.loads(read("info", "--json")), json.loads(read("report", "--totals", "--json"))
    for d in info, totals:
        need(d["probes_run"] == events, f"{d['probes_run']} probes, not {events}")
        near(d["probes_ns"], events * d["probe_ns"], 1e-3, "what the probes took")
        near(d["probes_percent"], 100 * d["probes_ns"] / (d["cpu_ns"] - d["probes_ns"]), 1e-3, "the percentage")
    near(info["probes_percent"], totals["probes_percent"], 1e-6, "report's percentage, against info's")
    need(info["cpu_ns"] == totals["cpu_ns"], "two processor times")
    need(info["cpu_ns"] >= least_cpu, f"{info['cpu_ns']} ns of processor time, the program alone says {least_cpu}")
    need(info["cpu_ns"] <= os.cpu_count() * info["duration_ns"], "more processor time than there was")
    check_shown(info["probes_percent"], ("record", err), ("info", read("info")), ("report", read("report", "--totals")))


def share_of(probes_ns, cpu_ns):
    return 100 * probes_ns / (cpu_ns - probes_ns)


def range_of(d):
    """The share and its least and most, from what a probe costs and may be off by."""
    near(d["probes_ns_error"], d["probes_run"] * d["probe_error_ns"], 1e-3, "the error")
    low, high = d["probes_ns"] - d["probes_ns_error"], d["probes_ns"] + d["probes_ns_error"]
    near(d["probes_percent_min"], share_of(low, d["cpu_ns"]), 1e-3, "the least")
    if high > 0.95 * d["cpu_ns"]:
        need(d["probes_percent_max"] is None and d["probes_percent"] is None, d)
    else:
        near(d["probes_percent_max"], share_of(high, d["cpu_ns"]), 1e-3, "the most")
        wide = d["probes_percent_max"] > 4 * d["probes_percent_min"]
        need((d["probes_percent"] is None) == wide, d)


def range_is_said():
    build()
    record("./p", "1", "400000")
    d = json.loads(read("report", "--totals", "--json"))
    range_of(d)
    m = re.search(r", (\S+)% \((\S+) to (\S+)%\) of the \S+ \S+ \(\+-\S+ \S+\) of", read("report", "--totals"))
    need(m, read("report", "--totals"))
    wanted = [d["probes_percent"], d["probes_percent_min"], d["probes_percent_max"]]
    need([*m.groups()] == [f"{w:.1f}" if w < 10 else f"{w:.0f}" for w in wanted], (m.groups(), wanted))


def mostly_probes():
    """A program that takes next to no time itself: what the probes took is known to a third, and what is left is not.
    What is said of it holds."""
    with open("p.c", "w") as f:
        f.write("""
#include <sys/resource.h>
#include <stdio.h>
__attribute__((noinline)) static void tick(long i) { __asm__ volatile("" : : "r"(i)); }
int main(void)
{
	struct rusage u;
	for (long i = 0; i < 9000000; i++)
		tick(i);
	getrusage(RUSAGE_SELF, &u);
	printf("%ld\\n", (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000L + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000L);
	return 0;
}
""")
    subprocess.run(["gcc", "-O2", "-o", "p", "p.c"], check=True)
    plain = min(int(subprocess.run(["./p"], capture_output=True, check=True).stdout) for _ in range(5))
    _, err = record("./p")
    d = json.loads(read("report", "--totals", "--json"))
    range_of(d)
    if d["probes_percent"] is None and d["probes_percent_min"] is not None:
        least = f"at least {d['probes_percent_min']:.0f}%"
        m = re.search(rf", {least} of the processor time that the program took without them \((\S+) ms at most\)", read("report", "--totals"))
        need(f"probes cost {least} " in err and m and least in read("info"), (err, read("report", "--totals")))
        need(float(m[1]) * 1e6 >= plain, f"{m[1]} ms at most, but the program takes {plain} ns without probes")
        true = 100 * (d["cpu_ns"] - plain) / plain
        need(true >= d["probes_percent_min"], f"{least}, and in truth {true}")


def one(threads):
    build()
    out, err = record("./p", str(threads), "400000")
    check(err, 2 * threads * 400000, int(out))


def children():
    build()
    out, err = record("sh", "-c", "./p 1 200000 & wait; ./p 2 100000")
    check(err, 2 * 400000, sum(int(n) for n in out.split()))


def lost():
    """Probes whose samples found no room have run, too."""
    build()
    out, err = record("./p", "2", "3000000", options=["-b", "1M"])
    check(err, 2 * 2 * 3000000, int(out))


def let_go():
    """And those whose samples a trigger does not want."""
    build()
    out, err = record("./p", "1", "300000", options=["--trigger", "cpu=7777"])
    need("never fired" in err, err)
    check(err, 600000, int(out))


def flight():
    """A flight recorder's samples are in its snapshots, if anywhere: once for each probe, although two snapshots have them."""
    build()
    often = ["--snapshot-on", "tick>1ns", "--max-snapshots", "3"]
    for calls, options in (40000, []), (3000000, []), (40000, often), (3000000, often):
        out, err = record("./p", "1", str(calls), options=["--flight", "4M", *options])
        if options:
            need(os.path.exists("t/002"), err)
        info = json.loads(read("info", "--json"))
        need(info["probes_run"] == 2 * calls, f"{options}: {info['probes_run']} probes, not {2 * calls}")
        need(info["cpu_ns"] >= int(out), f"{options}: {info['cpu_ns']} ns of processor time, the program alone says {out}")
        check_shown(info["probes_percent"], ("record", err), ("info", read("info")))


def view():
    """Of a part of the samples there is no share: who knows what the program took for it."""
    build()
    record("./p", "1", "100000")
    text = read("report", "--totals", "--where", "entry=tick")
    need("100,000 probes of" in text and "%" not in text, text)
    totals = json.loads(read("report", "--totals", "--json", "--where", "entry=tick"))
    need(totals["probes_run"] == 100000 and totals["probes_percent"] is None, totals)


def unknown():
    """A recording without an end does not know what the program took."""
    build()
    record("./p", "1", "1000")
    lines = [l for l in open("t/session") if not l.startswith(("cpu_ns", "end_", "samples=", "lost="))]
    open("t/session", "w").writelines(lines)
    for what in (["info"], ["report", "--totals"]):
        text = read(*what)
        need("%" not in "".join(l for l in text.splitlines() if "probes" in l and "ns" in l), text)
    need(json.loads(read("info", "--json"))["probes_percent"] is None, "a percentage from nowhere")


with Suite("cost") as s:
    s.case("one thread", one, 1)
    s.case("three threads", one, 3)
    s.case("the share has a range", range_is_said)
    s.case("a program that the probes are nearly all of", mostly_probes)
    s.case("a shell and its children", children)
    s.case("a buffer that is too small", lost)
    s.case("a trigger that never fires", let_go)
    s.case("a flight recorder", flight)
    s.case("a part of the samples", view)
    s.case("a trace that does not know the processor time", unknown)
sys.exit(s.failed > 0)
