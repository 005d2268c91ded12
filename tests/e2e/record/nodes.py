#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""nodes.py - which node a sample is of: 10 bits of its source address, whatever program made it and on which bus.

Truth is what the programs print, their threads' numbers and events, what the kernel says of the machine,
and the bytes of the trace (truth.py), of a board's file and of mk.dat.
"""

import json
import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from live import interrupt, record_pid
from tap import BUILD, KRON, SRC, Skip, Suite, compile_text, need, truth

TID = 0x3FFFFF
SPECIAL = 0xFFFFFF00
VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_NODEID")

# Threads, a fork and an exec: each prints its number, and calls here() three times.
PEOPLE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int last;
__attribute__((noinline)) void here(int n) { last = n; last += n; }
static void *person(void *unused)
{
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
	for (int i = 0; i < 3; i++)
		here(i);
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t t[2];
	person(NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, person, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (argc > 1)
		return 0;
	if (!fork()) {
		person(NULL);
		execl("/proc/self/exe", argv[0], "again", NULL);
	}
	wait(NULL);
	return 0;
}
"""
# Runs until somebody writes to it: to attach to.
WAITS = r"""
#include <stdio.h>
#include <unistd.h>
static volatile int last;
__attribute__((noinline)) void here(int n) { last = n; last += n; }
int main(void)
{
	char c;
	while (read(0, &c, 1) == 1) {
		here(c);
		puts("done");
		fflush(stdout);
	}
	return 0;
}
"""
# Probes of its own: one before mk_init(), one after.
OWN = r"""
#include <mk.h>
#include <sys/types.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	MK_DEFAULT_MAP();
	if (argc > 1)
		mk_init();
	mk_ts1 = 41;
	printf("%u %d\n", mk_source0, getpid());
	return 0;
}
"""


def environment(**variables):
    """Ours, with none that says a node but these."""
    e = {k: v for k, v in os.environ.items() if k not in VARIABLES and k != "KRON_BOARD"}
    return {**e, **variables}


def kron(*words, status=0, **variables):
    r = subprocess.run([KRON, *words], capture_output=True, text=True, env=environment(**variables))
    need(r.returncode == status, f"kron {words}: status {r.returncode}: {r.stderr}")
    return r


def sources(trace):
    """Of every sample and chunk, by the bytes: source addresses."""
    return [numbers[4] for what, numbers in truth.samples_of(trace, "all") if what == "sample"]


def info(trace="trace"):
    return truth.kron_json("info", trace)


def need_node(node, tids, trace="trace"):
    """All samples are of this node, and of these threads."""
    got = sources(trace)
    need(got and {s >> 22 for s in got} == {node}, f"nodes {({s >> 22 for s in got})}, not {node}")
    need({s & TID for s in got} == set(tids), f"threads {({s & TID for s in got})}, not {tids}")
    for line in kron("dump", "--json", trace).stdout.splitlines():
        d = json.loads(line)
        need(d["node"] == node and d["source"] == node << 22 | d["tid"], d)
    shown = re.compile(rf" +{node} +\d+  [0-9a-f]{{8}}:[0-9a-f]{{8}}  ")
    lines = [line for line in kron("dump", trace).stdout.splitlines() if "switch" not in line]
    need(all(shown.search(line) for line in lines[1:]), lines[:3])
    need(info(trace)["node"] == node, info(trace))


def record(*options, program="./people", **variables):
    """Options and program; its threads' numbers."""
    out = kron("record", "-q", "--switches", "no", "-o", "trace", "-F", "here", "--when-full", "wait",
               *options, "--", program, **variables).stdout  # fmt: skip
    return [int(line) for line in out.split()]


def programs(bus, *flags):
    compile_text("people", PEOPLE, "-pthread", *flags)
    for node in (0, 1, 517, 1023):
        tids = record("--bus", bus, "--node", str(node))
        need(len(set(tids)) >= 6, tids)
        need_node(node, tids)
    need(info()["node_from"] == "--node", info())


def hardware():
    """Each store stays in the file: the Source Address Registers are there."""
    compile_text("people", PEOPLE, "-pthread")
    with open("board", "wb") as f:
        f.truncate(32 << 20)
    tids = record("--bus", f"device:{os.getcwd()}/board", "--node", "700")
    with open("board", "rb") as f:
        f.seek(0x1080)
        registers = [r for r in struct.unpack("<8I", f.read(32)) if r]
    need(registers and all(r >> 22 == 700 and r & TID in tids for r in registers), registers)


def attached():
    compile_text("waits", WAITS)
    p = subprocess.Popen(["./waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    r = record_pid(p.pid, "--node", "99", "-F", "here", trace="trace")
    p.stdin.write("x")
    p.stdin.flush()
    p.stdout.readline()
    interrupt(r)
    p.communicate()
    need_node(99, [p.pid])


def mkdat_sources():
    kron_read = [os.path.join(BUILD, "board/toolkit/mk_rdsample"), "-f", "mk.dat"]
    subprocess.run(kron_read, check=True, capture_output=True)
    data = open("mk.dat", "rb").read()
    return [struct.unpack_from("<I", data, at + 8)[0] for at in range(0, len(data), 20)]


def own_probes():
    """A program with mk.h: its board's node, and while there is a recorder on it, that one's."""
    library = os.path.join(BUILD, "board/libmk/libmk.a")
    compile_text("own", OWN, f"-I{SRC}/include", library, "-pthread")
    board = f"node-{os.getpid()}"
    kron("board", "create", board, "--node", "300")
    try:
        os.environ["KRON_BOARD"] = board
        entry = [e for e in truth.kron_json("board", "list") if e["name"] == board][0]
        need(entry["node"] == 300, entry)
        # whoever comes without mk_init() leaves the board as it is: nobody of its node
        said = subprocess.run(["./own"], capture_output=True, text=True, check=True).stdout.split()
        need(int(said[0]) == 300 << 22, said)
        need(mkdat_sources() == [300 << 22], mkdat_sources())
        said = subprocess.run(["./own", "init"], capture_output=True, text=True, check=True).stdout.split()
        need(int(said[0]) == 300 << 22 | int(said[1]), said)
        need(mkdat_sources() == [300 << 22 | int(said[1])], mkdat_sources())
        # with a recorder: without --node the board's, with it the recorder's, and afterwards the board's again
        for options, node in (((), 300), (("--node", "301"), 301), ((), 300)):
            out = kron("record", "-q", "-o", "trace", "--board", board, "--bus", "exact", *options, "--", "./own", KRON_BOARD=board).stdout
            pid = int(out.split()[1])
            need({s >> 22 for s in sources("trace")} == {node}, f"{sources('trace')}")
            need({s & TID for s in sources("trace")} == {pid}, f"{sources('trace')}")
            need(info()["node_from"] == ("--node" if options else "the board"), info())
        subprocess.run(["./own", "init"], check=True, capture_output=True)
        need({s >> 22 for s in mkdat_sources()} == {300}, mkdat_sources())
    finally:
        os.environ.pop("KRON_BOARD", None)
        kron("board", "rm", board)


def own_probes_without_a_board():
    """libmk makes the board: the node is that of whoever did."""
    library = os.path.join(BUILD, "board/libmk/libmk.a")
    compile_text("own", OWN, f"-I{SRC}/include", library, "-pthread")
    board = f"rank-{os.getpid()}"
    try:
        r = subprocess.run(["./own"], capture_output=True, text=True, check=True, env=environment(KRON_BOARD=board, PMI_RANK="44"))
        pid = int(r.stdout.split()[1])
        need(int(r.stdout.split()[0]) == 44 << 22 | pid, r.stdout)
        os.environ["KRON_BOARD"] = board
        need(mkdat_sources() == [44 << 22 | pid], mkdat_sources())
    finally:
        os.environ.pop("KRON_BOARD", None)
        kron("board", "rm", board)
    with open("board", "wb") as f:  # a real one: whoever initialises it says who he is
        f.truncate(32 << 20)
    r = subprocess.run(["./own", "init"], capture_output=True, text=True, check=True, env=environment(KRON_BOARD=f"{os.getcwd()}/board", PMI_RANK="45"))
    need(int(r.stdout.split()[0]) == 45 << 22 | int(r.stdout.split()[1]), r.stdout)


def defaults():
    """The rank, then SLURM's node; what comes first counts, and an option before them all."""
    compile_text("people", PEOPLE, "-pthread")
    for variables, node, by in (
        ({"OMPI_COMM_WORLD_RANK": "63", "SLURM_NODEID": "2"}, 63, "OMPI_COMM_WORLD_RANK"),
        ({"PMIX_RANK": "7"}, 7, "PMIX_RANK"),
        ({"PMI_RANK": "1023"}, 1023, "PMI_RANK"),
        ({"SLURM_NODEID": "0"}, 0, "SLURM_NODEID"),
    ):
        need_node(node, record(**variables))
        need(info()["node_from"] == by, info())
        need(re.search(rf"^node: +{node}, by {by}$", kron("info", "trace").stdout, re.M), kron("info", "trace").stdout)
    need_node(5, record("--node", "5", OMPI_COMM_WORLD_RANK="63"))


def host_names():
    """A machine of another name, in a namespace of its own."""
    for name, node, by in (("node017", 17, "the host's name"), ("c3.cluster7", 3, "the host's name"), ("ip-10-0-0-9", 0, None)):
        script = f"hostname {name} && exec {KRON} record -q -o trace -- /bin/true"
        r = subprocess.run(["unshare", "--user", "--map-root-user", "--uts", "sh", "-c", script], capture_output=True, text=True, env=environment())
        if "unshare" in r.stderr or "hostname" in r.stderr:
            raise Skip("no namespaces here")
        need(r.returncode == 0, r.stderr)
        i = info()
        need((i["hostname"], i["node"], i["node_from"]) == (name, node, by), i)


def ranks_that_do_not_fit():
    """Said once, and never another's number cut off."""
    r = kron("record", "-o", "trace", "--", "/bin/true", OMPI_COMM_WORLD_RANK="1500", SLURM_NODEID="3")
    need("kron: OMPI_COMM_WORLD_RANK is 1500, but a node is a number from 0 to 1023: this is node 3 now" in r.stderr, r.stderr)
    need(info()["node"] == 3 and info()["node_from"] == "SLURM_NODEID", info())
    r = kron("record", "-o", "trace", "--node", "9", "--", "/bin/true", OMPI_COMM_WORLD_RANK="1500")
    need("OMPI" not in r.stderr, r.stderr)


def refusals():
    for wrong in ("1024", "-1", "4294967296", "x", "", "1.5"):
        r = kron("record", "-o", "trace", f"--node={wrong}", "--", "/bin/echo", "ran", status=125)
        need(len(r.stderr.splitlines()) == 1 and "--node" in r.stderr and not r.stdout, r.stderr)
    need("--node: 1024 is out of range (0 to 1023)" in kron("record", "--node", "1024", "true", status=125).stderr, "")
    r = kron("board", "create", "x", "--node", "1024", status=2)
    need("--node: 1024 is out of range (0 to 1023)" in r.stderr, r.stderr)
    need("only create" in kron("board", "rm", "x", "--node", "3", status=2).stderr, "")


def machine():
    """What tells whether two traces have one clock."""
    kron("record", "-q", "-o", "trace", "--", "/bin/true")
    i = info()
    boot = open("/proc/sys/kernel/random/boot_id").read().strip()
    source = open("/sys/devices/system/clocksource/clocksource0/current_clocksource").read().strip()
    need((i["boot_id"], i["clocksource"], i["hostname"]) == (boot, source, os.uname().nodename), i)
    need(f"{boot}, clock source {source}\n" in kron("info", "trace").stdout, kron("info", "trace").stdout)
    # an older trace says nothing of it, and is read all the same
    lines = [line for line in open("trace/session") if line.split("=")[0] not in ("node", "node_from", "boot_id", "clocksource")]
    open("trace/session", "w").writelines(lines)
    i = info()
    need(i["node"] is None and i["boot_id"] is None and i["clocksource"] is None, i)
    need(not re.search("^(node|boot):", kron("info", "trace").stdout, re.M), kron("info", "trace").stdout)


with Suite("nodes") as suite:
    suite.case("threads, forks and executed programs, lane bus", programs, "lane")
    suite.case("threads, forks and executed programs, exact bus", programs, "exact")
    suite.case("a static program", programs, "lane", "-static")
    suite.case("a real board's Source Address Registers", hardware)
    suite.case("a process that runs already", attached)
    suite.case("programs with probes of their own, on a board of a node", own_probes)
    suite.case("programs with probes of their own that make their board", own_probes_without_a_board)
    suite.case("ranks and SLURM's nodes", defaults)
    suite.case("host names", host_names)
    suite.case("ranks that are not nodes", ranks_that_do_not_fit)
    suite.case("numbers that are refused", refusals)
    suite.case("what the trace says of the machine", machine)
