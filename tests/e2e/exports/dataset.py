#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""dataset.py - kron export -f parquet --dataset: what DuckDB reads in it is what it reads in the one file.

DuckDB comes by npm, of whoever runs the tests; its metadata functions say what the files are like, too.
"""

import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../..")]
from tap import BUILD, KRON, SRC, Skip, Suite, compile_text, need, rnd, small_disk
from duck import ask, ask_all, asked

MAKE_TRACE = os.path.join(BUILD, "tests/unit/trace/make_trace")
TREE = "xz -c /etc/services | xz -dc | git hash-object --stdin; sort /etc/passwd | tail -n 1; exec perl -e 'print 1'"
GROUP = 122880
IN_PATH = ["node", "pid"]


def kron(*argv, **more):
    return subprocess.run([KRON, *argv], capture_output=True, text=True, **more)


def good(*argv, **more):
    r = kron(*argv, **more)
    need(r.returncode == 0, f"{argv}: {r.returncode} {r.stderr}")
    return r


def record(out, *argv, wrap=()):
    r = subprocess.run([*wrap, KRON, "record", "-q", "-o", out, *argv], capture_output=True)
    need(r.returncode == 0, f"{argv}: {r.returncode} {r.stderr}")


def files(at):
    return sorted(glob.glob(f"{at}/node=*/pid=*/*.parquet"))


def rows_in(at):
    """As a table.  Numbers in paths have no type; those of the one file are INTEGER."""
    return (f"read_parquet('{at}/*/*/*.parquet', hive_partitioning = true, "
            "hive_types = {'node': INTEGER, 'pid': INTEGER})")


def both(traces, *options, name="set"):
    """The one file and the data set of the same: all columns, all rows, each row as often."""
    good("export", "-f", "parquet", "-o", f"{name}.parquet", *traces)
    good("export", "-f", "parquet", "--dataset", name, *options, *traces)
    one, many = f"'{name}.parquet'", rows_in(name)
    columns, got = (dict(r[:2] for r in rows) for rows in ask_all(*(f"DESCRIBE SELECT * FROM {t}" for t in (one, many))))
    need(got == columns, f"columns: {got}, of the one file: {columns}")
    words = ", ".join(f'"{c}"' for c in columns)
    # by column: how many are not null, and their content
    sums = "SELECT count(*)::INT, " + ", ".join(f'count("{c}")::INT, sum(hash("{c}"))::VARCHAR' for c in columns)
    less = "SELECT {w} FROM {a} EXCEPT ALL SELECT {w} FROM {b} LIMIT 3"
    want, have, missing, surplus = ask_all(f"{sums} FROM {one}", f"{sums} FROM {many}", less.format(w=words, a=one, b=many),
                                           less.format(w=words, a=many, b=one))
    need(want[0][0] == have[0][0], f"rows: {have[0][0]}, in the one file {want[0][0]}")
    for i, c in enumerate(columns):
        need(want[0][2 * i + 1:2 * i + 3] == have[0][2 * i + 1:2 * i + 3], f"column {c}")
    need(not missing and not surplus, f"missing: {missing}, surplus: {surplus}")
    return want[0][0]


def in_order(at):
    """Files and row groups of a folder follow one another in time, and their limits are what is there."""
    every = f"'{at}/*/*/*.parquet'"
    names, groups, truth, back, notes = ask_all(
        f"SELECT DISTINCT name FROM parquet_schema({every})",
        f"SELECT file_name, row_group_id, stats_min_value::BIGINT, stats_max_value::BIGINT, row_group_num_rows "
        f"FROM parquet_metadata({every}) WHERE path_in_schema = 'time_ns' ORDER BY 1, 2",
        f"SELECT filename, min(time_ns), max(time_ns), count(*)::INT FROM read_parquet({every}, filename = true) "
        "GROUP BY 1 ORDER BY 1",
        f"SELECT filename, file_row_number FROM (SELECT *, time_ns < lag(time_ns) OVER (PARTITION BY filename ORDER BY "
        f"file_row_number) AS b FROM read_parquet({every}, filename = true, file_row_number = true)) WHERE b LIMIT 3",
        f"SELECT file_name, key::VARCHAR, value::VARCHAR FROM parquet_kv_metadata({every})")
    need(not {n for n, in names} & set(IN_PATH), f"columns of the path in the files: {names}")
    need(not back, f"rows that go back in time: {back}")
    ends = {}
    for name, _, low, high, _ in groups:
        folder = os.path.dirname(name)
        need(ends.get(folder, 0) <= low <= high, f"{name}: from {low} to {high}, after {ends.get(folder)}")
        ends[folder] = high
    for name, low, high, n in truth:
        mine = [g for g in groups if g[0] == name]
        need((mine[0][2], mine[-1][3], sum(g[4] for g in mine)) == (low, high, n), f"{name}: {mine}, in it {low} to {high}, {n}")
        said = {key: value for file, key, value in notes if file == name}
        path = dict(re.findall(r"(node|pid)=(\d+)", name))
        need([said["partition_node"], said["partition_pid"]] == [path["node"], path["pid"]], f"{name}: {said}")
    return groups


def pids_in(at):
    return {int(re.search("/pid=([0-9]+)/", f)[1]) for f in files(at)}


def processes(trace):
    """Of its samples, as kron dump has them."""
    return {json.loads(line)["process"] for line in good("dump", "--json", trace).stdout.splitlines()}


# ---- the same rows ----

def real_programs():
    """A tree of processes, with context switches, an exec and values of a probe that are texts."""
    record("tree", "-F", "*", "-p", "opened=libc.so.6:open64 text=+0(%di):string", "--", "sh", "-c", TREE)
    need(both(["tree"]) > 1000, "hardly a row")
    in_order("set")
    need(pids_in("set") == processes("tree"), f"{files('set')}, processes {processes('tree')}")
    texts = ask(f"SELECT DISTINCT text FROM {rows_in('set')} WHERE function = 'opened'")
    need(["/etc/passwd"] in texts, texts)
    # the exec: two programs in one folder
    twice = ask(f"SELECT pid, count(DISTINCT process_id)::INT FROM {rows_in('set')} GROUP BY 1 HAVING count(DISTINCT process) > 1")
    need(any(n > 1 for _, n in twice), twice)


def synthetic(kind, *argv):
    """Losses, orphans, hostile names, texts, vfork children."""
    subprocess.run([MAKE_TRACE, kind, "trace", *argv], check=True)
    both(["trace"])
    in_order("set")


def pid_again():
    """Processes of one pid, one after the other, as a small name space of them gives."""
    # the number that was last is written from within the shell, and the next process has the one after it
    script = "for i in 1 2 3; do /bin/true $i; echo 50 >/proc/sys/kernel/ns_last_pid; /bin/echo $i; echo 50 >/proc/sys/kernel/ns_last_pid; done"
    r = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True)
    if r.returncode:
        raise Skip("needs the right to make a name space")
    record("again", "--", "sh", "-c", script, wrap=["unshare", "--pid", "--fork", "--mount-proc"])
    both(["again"])
    in_order("set")
    got = ask(f"SELECT count(DISTINCT process_id)::INT, count(DISTINCT process)::INT FROM {rows_in('set')} WHERE pid = 51")
    need(got[0][0] >= 5 and got[0][1] >= 2, f"processes that were 51: {got}")


def nodes():
    compile_text("loop", "int work(int n) { return n * 3; } int main(int c, char **v) {"
                 "(void)v; int s = 0; for (int i = 0; i < 1000 * c; i++) s += work(i); return s == 1; }", "-O1", "-fno-inline")
    os.mkdir("run")
    for node, words in ((3, []), (11, ["x"]), (1000, ["x", "y"])):
        record(f"run/n{node}", "--node", str(node), "--", "./loop", *words)
    both(["run"])
    in_order("set")
    calls = ask(f"SELECT node, count(*)::INT FROM {rows_in('set')} WHERE function = 'work' GROUP BY 1 ORDER BY 1")
    need(calls == [[3, 1000], [11, 2000], [1000, 3000]], calls)
    # by pid, as the system has it, on all of them
    want = {(n, p) for n in (3, 11, 1000) for p in processes(f"run/n{n}")}
    got = {tuple(map(int, re.search("node=([0-9]+)/pid=([0-9]+)/", f).groups())) for f in files("set")}
    need(got == want, f"{got}, not {want}")


def nodes_without_numbers():
    """Both are number 0, and have one pid: places in the row tell them apart."""
    for name in ("one", "two"):
        subprocess.run([MAKE_TRACE, "small", name], check=True)
    with open("two/session", "a") as f:
        f.write("hostname=other\n")
    shutil.copytree("one", "three")
    for i, name in enumerate(("one", "two", "three")):
        with open(f"{name}/session", "a") as f:
            f.write(f"node=0\nrecording={i:016x}\n")
    both(["one", "two", "three"])
    in_order("set")
    got = ask(f"SELECT node, count(DISTINCT pid)::INT FROM {rows_in('set')} GROUP BY 1 ORDER BY 1")
    need(got == [[1, 2], [2, 2], [3, 2]], got)


def conditions():
    """--where, --trigger and --tail-calls mean the same in both."""
    record("tree", "--", "sh", "-c", TREE)
    for i, options in enumerate((["--where", "process=xz"], ["--tail-calls", "flat"])):
        both([*options, "tree"], name=f"set{i}")
    subprocess.run([MAKE_TRACE, "walk", "empty", "0", "1"], check=True)
    good("export", "-f", "parquet", "--dataset", "none", "empty")
    need(files("none") == ["none/node=0/pid=0/part-000000-0000.parquet"], files("none"))
    need(ask(f"SELECT count(*)::INT FROM {rows_in('none')} WHERE function = 'x' AND pid = 0") == [[0]], "rows of nothing")


# ---- time ----

def slices():
    subprocess.run([MAKE_TRACE, "walk", "trace", "400000", "3"], check=True)
    both(["trace"], "--slice", "400us")
    in_order("set")
    seen = set()
    for name, low, high in ask("SELECT filename, min(time_ns), max(time_ns) FROM "
                               "read_parquet('set/*/*/*.parquet', filename = true) GROUP BY 1"):
        n = int(re.search(r"/part-(\d+)-\d+\.parquet$", name)[1])
        need(n * 400000 <= low <= high < (n + 1) * 400000, f"{name}: {low} to {high}")
        seen.add(n)
    need(len(seen) > 3, f"slices {seen}")


def prunes():
    """A reader needs nothing of the other row groups and folders: garbage in them does not disturb it."""
    subprocess.run([MAKE_TRACE, "walk", "trace", "2100000", "3"], check=True)
    rows = both(["trace"])
    need(rows > 8 * GROUP, f"{rows} rows are one file")
    groups = in_order("set")
    need(len(files("set")) == (rows + 8 * GROUP - 1) // (8 * GROUP), files("set"))
    need(all(g[4] == GROUP for g in groups[:-1]), groups)
    name, number, low, high, _ = rnd.choice(groups)
    question = (f"SELECT count(*)::INT, sum(hash(tid, time_ns, duration_ns, function))::VARCHAR FROM {rows_in('set')} "
                f"WHERE time_ns > {low} AND time_ns < {high}")
    want = ask(question)
    for file_name, group, first, size in ask(
            "SELECT file_name, row_group_id, min(coalesce(dictionary_page_offset, data_page_offset))::BIGINT, "
            "sum(total_compressed_size)::BIGINT FROM parquet_metadata('set/*/*/*.parquet') GROUP BY ALL"):
        if (file_name, group) != (name, number):
            with open(file_name, "r+b") as f:
                f.seek(first)
                f.write(b"\xaa" * size)
    need(ask(question) == want, "other rows than before")
    r = asked(f"SELECT sum(duration_ns) FROM {rows_in('set')}")
    need(r.returncode != 0, "the garbage was no garbage")


def prunes_folders():
    """What the path rules out is not opened: DuckDB says how many files it read, and files that are none do not disturb."""
    record("tree", "--", "sh", "-c", TREE)
    good("export", "-f", "parquet", "--dataset", "set", "tree")
    pids = sorted(pids_in("set"))
    need(len(pids) > 3, pids)
    pid = rnd.choice(pids)
    want = ask(f"SELECT count(*)::INT FROM {rows_in('set')} WHERE pid = {pid}")
    need(want[0][0] > 0, want)
    keep = glob.glob(f"set/*/pid={pid}/*")
    first = files("set")[0]  # the columns are learnt from it
    for f in set(files("set")) - set(keep) - {first}:
        with open(f, "wb") as broken:
            broken.write(b"no Parquet at all\n")
    need(ask(f"SELECT count(*)::INT FROM {rows_in('set')} WHERE pid = {pid}") == want, "other rows than before")


def queries():
    """Those of the cookbook, and end_ns, which they rest on."""
    record("tree", "--", "sh", "-c", TREE)
    good("export", "-f", "parquet", "--dataset", "set", "tree")
    with open(f"{SRC}/doc/COOKBOOK.md") as f:
        found = re.findall(r"^```sql\n(.*?)^```$", f.read(), re.M | re.S)
    need(len(found) == 5, f"{len(found)} queries")
    pid, at = ask(f"SELECT pid, time_ns FROM {rows_in('set')} WHERE kind = 'call' ORDER BY duration_ns DESC LIMIT 1")[0]
    moved = [q.replace("4711", str(pid)).replace("20_000_000", str(at)).replace("40_000_000", str(at + 20000000))
             .replace("30_000_000", str(at + 1)) for q in found]
    rows = ask_all(*moved)
    need(all(rows), f"no answer: {[q for q, r in zip(moved, rows) if not r]}")
    calls = {f["function"]: f["calls"] for f in json.loads(good("report", "--json", "tree").stdout)}
    for _, _, _, function, n, _ in rows[0]:
        need(n <= calls[function], f"{function}: {n} calls, of {calls[function]}")
    wrong = ask(f"SELECT count(*)::INT FROM {rows_in('set')} WHERE end_ns <> time_ns + coalesce(duration_ns, 0)")
    need(wrong == [[0]], wrong)


# ---- bounds ----

def peak(*argv, **more):
    """Megabytes."""
    p = subprocess.Popen([KRON, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
    err = p.stderr.read()
    _, status, usage = os.wait4(p.pid, 0)
    need(status == 0, f"{argv}: {err}")
    return usage.ru_maxrss / 1024


def memory():
    """Four times the rows, no more memory: they are sorted in the file."""
    most = []
    for i, samples in enumerate((1500000, 6000000)):
        subprocess.run([MAKE_TRACE, "walk", f"trace{i}", str(samples), "3"], check=True)
        most.append(peak("export", "-f", "parquet", "--dataset", f"set{i}", f"trace{i}"))
    print(f"# {most[0]:.0f} and {most[1]:.0f} MB")
    need(most[1] < most[0] + 30 and most[1] < 150, most)


def many_processes():
    """Some hundred folders, with descriptors for a few files and memory for one."""
    record("many", "--", "sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done")

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    most = peak("export", "-f", "parquet", "--dataset", "few", "many", preexec_fn=few)
    need(len(files("few")) >= 300, len(files("few")))
    need(most < 150, f"{most} MB")
    both(["many"])


# ---- what goes wrong ----

def sentence(r, status, *words):
    need(r.returncode == status, f"status {r.returncode}: {r.stderr}")
    need(r.stderr.count("\n") == 1 and all(w in r.stderr for w in words), f"not one sentence with {words}: {r.stderr}")


def refused():
    subprocess.run([MAKE_TRACE, "small", "trace"], check=True)
    export = ["export", "-f", "parquet"]
    os.mkdir("full")
    with open("full/mine", "w") as f:
        f.write("x")
    sentence(kron(*export, "--dataset", "full", "trace"), 1, "full is there already and not empty")
    need(os.listdir("full") == ["mine"], os.listdir("full"))
    sentence(kron(*export, "--dataset", "full/mine", "trace"), 1, "a file is there")
    sentence(kron(*export, "--dataset", "no/such", "trace"), 1, "No such file")
    os.mkdir("empty")
    good(*export, "--dataset", "empty/", "trace")
    need(files("empty"), "nothing in it")
    sentence(kron(*export, "--dataset", "empty", "trace"), 1, "not empty")
    for argv, word in ((["-f", "ctf", "--dataset", "x"], "--dataset is for -f parquet"),
                       (["-f", "parquet", "--dataset", "x", "-o", "y"], "not both"),
                       (["-f", "parquet", "--slice", "1s"], "--dataset"),
                       (["-f", "parquet", "--dataset", "x", "--slice", "0s"], "not a span of time"),
                       (["-f", "parquet", "--dataset", "x", "--slice", "soon"], "not a span of time")):
        r = kron("export", *argv, "trace")
        need(r.returncode == 2 and word in r.stderr, f"{argv}: {r.returncode} {r.stderr}")
    need(not os.path.exists("x") and not os.path.exists("y"), os.listdir("."))


def not_allowed():
    if os.geteuid():
        raise Skip("needs root to become somebody else")
    subprocess.run([MAKE_TRACE, "small", "trace"], check=True)
    subprocess.run(["chmod", "-R", "a+rX", "..", "trace"], check=True)
    os.mkdir("closed", 0o755)
    r = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", KRON, "export", "-f", "parquet",
                        "--dataset", "closed/set", "trace"], capture_output=True, text=True)
    sentence(r, 1, "closed/set", "Permission denied")
    need(not os.listdir("closed"), os.listdir("closed"))


def full_disk():
    """While rows are sorted, while a file is written, and where nothing fits: nothing stays."""
    subprocess.run([MAKE_TRACE, "walk", "trace", "1500000", "2"], check=True)
    for size in ("16k", "300k", "2m", "8m", "18m"):
        with small_disk("tiny", size):
            r = kron("export", "-f", "parquet", "--dataset", "tiny/set", "trace")
            sentence(r, 1, "tiny/set", "No space left")
            need(not os.listdir("tiny"), f"{size}: {os.listdir('tiny')}")


with Suite("dataset") as s:
    s.case("a tree of real processes: the rows of the one file", real_programs)
    for sort in ("small", "naps", "ways", "gaps"):
        s.case(f"the rows of the one file, of a trace with {sort}", synthetic, sort)
    s.case("processes that had the same pid", pid_again)
    s.case("nodes by their numbers", nodes)
    s.case("nodes that have no number of their own", nodes_without_numbers)
    s.case("conditions, and a trace with no rows", conditions)
    s.case("--slice cuts files at multiples of it", slices)
    s.case("row groups that a span of time rules out are not read", prunes)
    s.case("folders that a pid rules out are not read", prunes_folders)
    s.case("the queries of the cookbook", queries)
    s.case("memory does not grow with the rows", memory)
    s.case("nor descriptors with the processes", many_processes)
    s.case("what is there is not written to, and wrong usage is said", refused)
    s.case("a folder that one may not write to", not_allowed)
    s.case("a full disk", full_disk)
