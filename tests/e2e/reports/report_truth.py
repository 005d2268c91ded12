#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# report_truth.py WHAT DIR: works out from `kron dump --json` what a report of the trace has to
# say, shares no code with it, and compares.  For traces in which calls are nested and all
# threads run their own functions, as `make_trace big` writes them; but calls may be open.
import collections
import json
import math
import os
import subprocess
import sys

KRON = os.environ["KRON"]


def kron(*args):
    return subprocess.run([KRON, *args], check=True, stdout=subprocess.PIPE).stdout


class Call:
    def __init__(self, function, entry, up, samples):
        self.function, self.entry, self.up, self.samples = function, entry, up, samples
        self.children = 0
        self.children_probes = 0
        self.is_open = False  # it has no exit

    def path(self):
        return (self.up.path() if self.up else ()) + (self.function,)


def calls_of(trace):
    """All calls, with time, self, outer (no caller of the same name), probes and so on."""
    stacks, last, samples, done = (collections.defaultdict(list), {}, collections.Counter(), [])
    cpus, migrations = {}, 0

    def close(thread, now):
        c = stacks[thread].pop()
        c.thread, c.time = thread, now - c.entry
        c.self = c.time - c.children
        c.probes = samples[thread] - c.samples
        c.self_probes = c.probes - c.children_probes
        c.outer = c.function not in c.path()[:-1]
        if c.up:
            c.up.children += c.time
            c.up.children_probes += c.probes
        done.append(c)

    for line in kron("dump", "--json", trace).splitlines():
        d = json.loads(line)
        if d["kind"] not in ("entry", "exit"):
            continue
        thread = d["thread"]
        now = last[thread] = d["time_ns"]
        samples[thread] += 1
        migrations += cpus.setdefault(thread, d["cpu"]) != d["cpu"]
        cpus[thread] = d["cpu"]
        stack = stacks[thread]
        if d["kind"] == "entry":
            c = Call(d["function"], now, stack[-1] if stack else None, samples[thread])
            c.cpu = d["cpu"]
            stack.append(c)
        else:
            assert stack[-1].function == d["function"], "not nested"
            close(thread, now)
    info = json.loads(kron("info", "--json", trace))
    assert not info["lost"], "it is not known what else was open"
    end = info["duration_ns"] if info["complete"] else 0
    ends = {t["tid"]: q["end_ns"] or end for q in info["process_list"] for t in q["threads"]}
    for thread in list(stacks):
        while stacks[thread]:  # open until its process ends
            stacks[thread][-1].is_open = True
            close(thread, max(last[thread], ends[thread]))
    return done, samples, migrations


def least(calls, length=lambda c: c.time):
    """Those that have no end lasted longer: they count only if there are no others."""
    return min(map(length, [c for c in calls if not c.is_open] or calls))


def near(got, want, slack, what):
    assert abs(got - want) <= slack, f"{what}: {got}, expected {want} +- {slack}"


def percentile(sorted_times, p):
    return sorted_times[max(0, math.ceil(len(sorted_times) * p / 100) - 1)]


def session(trace, key):
    lines = [l.rstrip("\n").split("=", 1) for l in open(f"{trace}/session")]
    return [float(v) for k, v in lines if k == key][-1]


def check_rows(calls, rows, virtual, cost):
    by = collections.defaultdict(list)
    for c in calls:
        by[c.function].append(c)
    assert sorted(by) == sorted(r["function"] for r in rows)
    for r in rows:
        f, mine = r["function"], by[r["function"]]
        times = sorted(c.time for c in mine)
        slack = len(mine) + 1  # each time is rounded once here
        assert r["calls"] == len(mine), f
        near(r["total_ns"], sum(c.time for c in mine if c.outer), slack, f)
        near(r["self_ns"], sum(c.self for c in mine), 3 * slack, f)
        near(r["min_ns"], least(mine), 1, f)
        near(r["max_ns"], times[-1], 1, f)
        near(r["avg_ns"], sum(times) / len(times), 1.5, f)
        for p in (50, 90, 99):
            want = percentile(times, p)
            near(r[f"p{p}_ns"], want, 2 + want / 64, f"p{p} of {f}")
        if virtual:
            probes = sum(c.probes for c in mine if c.outer)
            want = sum(c.time for c in mine if c.outer) - probes * cost
            near(r["total_virtual_ns"], max(0, want), slack + 1, "virtual " + f)
            want = sum(c.self for c in mine) - sum(c.self_probes for c in mine) * cost
            near(r["self_virtual_ns"], max(0, want), 3 * slack + 1, "virtual self of " + f)
            lengths = sorted(max(0, c.time - c.probes * cost) for c in mine)
            near(r["min_virtual_ns"], least(mine, lambda c: max(0, c.time - c.probes * cost)), 2, "virtual min of " + f)
            near(r["max_virtual_ns"], lengths[-1], 2, "virtual max of " + f)
            want = percentile(lengths, 90)
            near(r["p90_virtual_ns"], want, 2 + want / 64, "virtual p90 of " + f)


def check_profile(trace):
    calls, samples, migrations = calls_of(trace)
    cost = session(trace, "probe_ns")
    rows = json.loads(kron("report", "--json", "--virtual", trace))
    check_rows(calls, rows, True, cost)
    rows = json.loads(kron("report", "--json", "--by-cpu", "--histogram", trace))
    for cpu in {c.cpu for c in calls} | {r["cpu"] for r in rows}:
        check_rows([c for c in calls if c.cpu == cpu], [r for r in rows if r["cpu"] == cpu],
                   False, cost)
    for r in rows:
        times = [c.time for c in calls if c.cpu == r["cpu"] and c.function == r["function"]]
        assert sum(n for a, b, n in r["histogram"]) == len(times)
        for a, b, n in r["histogram"]:
            if b - a > 100:  # bins of some ticks are too fine for nanoseconds
                assert sum(a - 1 <= t <= b + 1 for t in times) >= n
    rows = json.loads(kron("report", "--json", "--by-thread", "--virtual", trace))
    for thread in {c.thread for c in calls}:
        check_rows([c for c in calls if c.thread == thread],
                   [r for r in rows if r["thread"] == thread], True, cost)
    totals = json.loads(kron("report", "--json", "--totals", trace))
    assert totals["calls"] == len(calls)
    assert totals["samples"] == sum(samples.values())
    assert totals["migrations"] == migrations
    near(totals["probes_ns"], cost * sum(samples.values()), 1, "cost of the probes")


def check_edges(trace, function):
    calls = calls_of(trace)[0]
    edges = collections.defaultdict(list)
    for c in calls:
        path = c.path()
        c.edge = path[-2:] if len(path) > 1 else (None, path[0])
        above = list(zip((None,) + path, path))[:-1]
        c.edge_outer = c.edge not in above
        edges[c.edge].append(c)
    for which, mine in (("--callers", {e for e in edges if e[1] == function}),
                        ("--callees", {e for e in edges if e[0] == function})):
        rows = json.loads(kron("report", "--json", which, function, trace))
        assert sorted(map(str, mine)) == sorted(str((r["caller"], r["function"])) for r in rows)
        for r in rows:
            want = edges[(r["caller"], r["function"])]
            assert r["calls"] == len(want)
            near(r["total_ns"], sum(c.time for c in want if c.edge_outer), len(want) + 1, r)
            near(r["self_ns"], sum(c.self for c in want), 3 * len(want) + 1, r)
            near(r["min_ns"], least(want), 1, r)
            near(r["max_ns"], max(c.time for c in want), 1, r)


def check_graph(trace):
    ways = collections.defaultdict(list)
    calls = calls_of(trace)[0]
    for c in calls:
        ways[c.path()].append(c)
    whole = sum(c.time for c in calls if not c.up)
    for threshold in (0, 1, 5):
        rows = json.loads(kron("report", "--json", "-g", "--threshold", str(threshold), trace))
        path_of = {}
        for r in rows:  # a parent comes before its children
            up = path_of[r["parent"]] if r["parent"] is not None else ()
            path_of[r["id"]] = path = up + (r["function"],)
            want = ways[path]
            assert r["depth"] == len(up) and r["calls"] == len(want)
            near(r["total_ns"], sum(c.time for c in want), len(want) + 1, path)
            near(r["self_ns"], sum(c.self for c in want), 3 * len(want) + 1, path)
            near(r["percent"], r["total_ns"] / whole * 100, 0.01, path)
        assert len(set(path_of.values())) == len(rows)
        for path, want in ways.items():
            share = sum(c.time for c in want) / whole * 100
            if share > threshold + 0.001:
                assert path in path_of.values(), path
            if share < threshold - 0.001:
                assert path not in path_of.values(), path


def student_p(t, df):
    """Two-sided: the density of Student's t from 0 to t, by Simpson's rule."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    n, t = 20000, abs(t)
    s = 0
    for i in range(n + 1):
        x = t * i / n
        s += (1 if i in (0, n) else 4 if i % 2 else 2) * (1 + x * x / df) ** (-(df + 1) / 2)
    return 1 - 2 * scale * s * t / n / 3


def welch(a, b):
    def mean_and_error(v):
        m = sum(v) / len(v)
        return m, sum((x - m) ** 2 for x in v) / (len(v) - 1) / len(v)
    (ma, sa), (mb, sb) = mean_and_error(a), mean_and_error(b)
    return ((mb - ma) / math.sqrt(sa + sb),
            (sa + sb) ** 2 / (sa ** 2 / (len(a) - 1) + sb ** 2 / (len(b) - 1)))


def check_diff(before, after):
    by = []
    for trace in (before, after):
        by.append(collections.defaultdict(list))
        for c in calls_of(trace)[0]:
            by[-1][c.function].append(c)
    rows = json.loads(kron("diff", "--json", before, after))
    assert sorted(r["function"] for r in rows) == sorted(set(by[0]) | set(by[1]))
    differences = [abs(r["before"]["self_ns"] - r["after"]["self_ns"]) for r in rows]
    assert differences == sorted(differences, reverse=True)
    tested = sum(r["p"] is not None for r in rows)
    significant = 0
    for r in rows:
        times = []
        for side, calls in ((r["before"], by[0]), (r["after"], by[1])):
            mine = calls[r["function"]]
            times.append([c.time for c in mine])
            assert side["calls"] == len(mine)
            near(side["total_ns"], sum(c.time for c in mine if c.outer), len(mine) + 1, r)
            near(side["self_ns"], sum(c.self for c in mine), 3 * len(mine) + 1, r)
            if mine:
                near(side["avg_ns"], sum(times[-1]) / len(mine), 1, r)
        if min(map(len, times)) < 5:
            assert r["p"] is None and r["significant"] is None
            continue
        t, df = welch(*times)
        near(r["t"], t, 0.01 + abs(t) / 500, r)
        near(r["df"], df, df / 50, r)
        near(r["p"], student_p(r["t"], r["df"]), 1e-6, r)
        assert r["significant"] == (r["p"] * tested < 0.05), r
        significant += r["significant"]
    print(f"{len(rows)} functions, {tested} tested, {significant} significant")


def check_intervals(trace, info):
    """Classes by the text of interval.info(5); events as numbers here."""
    defs = []
    for line in open(info):
        if line.strip() and not line.startswith("#"):
            numbers, names = line.split('"', 1)
            fields = [int(x) for x in numbers.split()]
            names = [n for n in names.rstrip().rstrip('"').split('" "')]
            defs.append((fields[0], fields[1:], names))
    found, open_ = collections.defaultdict(list), collections.defaultdict(list)
    left = collections.Counter()
    for line in kron("dump", "--json", trace).splitlines():
        d = json.loads(line)
        event, now, thread = d["event"], d["time_ns"], d["thread"]
        if d["kind"] in ("lost", "cpu", "special"):
            continue
        for i, (kind, events, names) in enumerate(defs):
            stack = open_[i, 0 if kind == 4 else thread]
            if event == events[0] and event not in events[1:]:
                stack.append([now, None])
            elif kind == 3 and event == events[1] and stack and not stack[-1][1]:
                stack[-1][1] = now
            elif event in events[1:]:
                if not stack or (kind == 3 and event == events[1]):
                    left[i, "ended"] += 1
                    continue
                begin, middle = stack.pop(0 if kind == 4 else -1)
                if kind == 3 and not middle:
                    left[i, "begun"] += 1
                elif kind == 3:
                    found[i, names[0]].append(middle - begin)
                    found[i, names[1]].append(now - middle)
                    found[i, " ".join(names)].append(now - begin)
                else:
                    found[i, names[events.index(event) - 1]].append(now - begin)
    for (i, _), stack in open_.items():
        left[i, "begun"] += len(stack)
    rows = json.loads(kron("report", "--json", "--intervals", info, trace))
    assert len(rows) == sum({1: 1, 2: 2, 3: 3, 4: 1}[kind] for kind, _, _ in defs)
    at = 0
    for i, (kind, events, names) in enumerate(defs):
        for name in names if kind != 3 else [*names, " ".join(names)]:
            r, times = rows[at], sorted(found[i, name])
            at += 1
            assert (r["interval"], r["class"], r["count"]) == (name, kind, len(times)), r
            assert (r["begun"], r["ended"]) == (left[i, "begun"], left[i, "ended"]), (r, left)
            if not times:
                continue
            mean = sum(times) / len(times)
            near(r["total_ns"], sum(times), len(times) + 1, r)
            near(r["avg_ns"], mean, 1.5, r)
            near(r["min_ns"], times[0], 1, r)
            near(r["max_ns"], times[-1], 1, r)
            deviation = math.sqrt(sum((t - mean) ** 2 for t in times) / len(times))
            near(r["stddev_ns"], deviation, 1 + deviation / 1000, r)
            for p in (50, 90, 99):
                want = percentile(times, p)
                near(r[f"p{p}_ns"], want, 2 + want / 64, f"p{p} of {r}")
    print(" ".join(str(len(found[i, n])) for i, d in enumerate(defs) for n in d[2]))


if __name__ == "__main__":
    globals()["check_" + sys.argv[1]](*sys.argv[2:])
