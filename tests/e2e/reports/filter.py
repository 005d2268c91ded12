#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--where and --trigger against conditions and sequences worked out here from the whole dump."""
import bisect
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import BUILD, KRON, Suite, compile_c, compile_text, need, rnd  # noqa: E402

HZ = 2e9  # of make_trace's clock


def kron(*args, status=0):
    r = subprocess.run([KRON, *args], capture_output=True, text=True)
    need(r.returncode == status, f"{args}: status {r.returncode}: {r.stderr}")
    return r.stdout, r.stderr


def dump(*args):
    return [json.loads(line) for line in kron("dump", "--json", *args, "t")[0].splitlines()]


def make():
    subprocess.run([BUILD + "/tests/unit/trace/make_trace", "walk", "t", "4000", "4"], check=True)
    everything = dump()
    for s in everything:
        s["tsc"] = int(s["timestamp"], 16)
    return everything


def is_special(s):
    return s["event"] >= 0xFFFFFF00


# ---- random conditions: the text, and what it means ----


def test_of(field, op, value, get):
    how = {
        "=": lambda a, b: a == b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }[op]
    shown = rnd.choice([str(value), hex(value)])
    gap = rnd.choice(["", " "])
    return f"{field}{gap}{op}{gap}{shown}", lambda s: how(get(s), value)


def name_test(samples):
    name = rnd.choice([s["function"] for s in samples if "function" in s])
    glob = rnd.choice([name, name[:-1] + "*", name[:-1] + "?", "*" + name[-1:], "f*", "nothing"])
    match = lambda s: fnmatch.fnmatchcase(s.get("function", ""), glob)  # noqa: E731
    how = rnd.randrange(5)
    if how == 0:
        return f"entry={glob}", lambda s: s["kind"] == "entry" and match(s)
    if how == 1:
        return f'exit = "{glob}"', lambda s: s["kind"] == "exit" and match(s)
    if how == 2:
        return f"name!={glob}", lambda s: not match(s)
    return rnd.choice([glob, f'"{glob}"', f"name={glob}"]), match


def atom(samples):
    one = rnd.choice(samples)
    op = rnd.choice(["=", "==", "!=", "<", "<=", ">", ">="])
    equal = rnd.choice(["=", "!="])
    mask = rnd.randrange(1, 1 << 32)
    return rnd.choice(
        [
            lambda: name_test(samples),
            lambda: name_test(samples),
            lambda: test_of("event", op, one["event"], lambda s: s["event"]),
            lambda: test_of("cpu", op, one["cpu"], lambda s: s["cpu"]),
            lambda: test_of("data", op, one["payload"], lambda s: s["payload"]),
            lambda: test_of(
                f"data&{mask:#x}", op, one["payload"] & mask, lambda s: s["payload"] & mask
            ),
            lambda: test_of("source", op, one["source"], lambda s: s["source"]),
            lambda: test_of("thread", equal, one["tid"], lambda s: s["tid"]),
            lambda: test_of("process", equal, one["process"], lambda s: s["process"]),
            lambda: ("module=big", lambda s: s.get("module", "").endswith("/big")),
        ]
    )()


def condition(samples, depth=0):
    """Loosest last: or, and, not, atom; each level returns text that binds as tightly as asked."""
    kind = rnd.randrange(6) if depth < 3 else 5
    if kind > 2:
        return atom(samples)
    a_text, a = condition(samples, depth + 1)
    if kind == 0:
        return f"not ({a_text})", lambda s: not a(s)
    b_text, b = condition(samples, depth + 1)
    if kind == 1:
        return f"({a_text}) and ({b_text})", lambda s: a(s) and b(s)
    return f"({a_text}) or ({b_text})", lambda s: a(s) or b(s)


def same(found, expected, text):
    key = lambda s: (s["timestamp"], s["source"], s["event"], s["payload"])  # noqa: E731
    found = [key(s) for s in found if not is_special(s)]
    expected = [key(s) for s in expected]
    need(found == expected, f"{text}: {len(found)} samples, not {len(expected)}")


def conditions():
    everything = make()
    samples = [s for s in everything if not is_special(s)]
    kept = 0
    for _ in range(120):
        text, holds = condition(samples)
        expected = [s for s in samples if holds(s)]
        kept += 0 < len(expected) < len(samples)
        same(dump("--where", text), expected, text)
    need(kept > 30, f"only {kept} conditions keep some and not all")


def precedence():
    samples = [s for s in make() if not is_special(s)]
    text = "not cpu=0 and entry=function_1* or cpu=1 and exit=function_2*"
    same(
        dump("--where", text),
        [
            s
            for s in samples
            if (s["cpu"] != 0 and s["kind"] == "entry" and s["function"].startswith("function_1"))
            or (s["cpu"] == 1 and s["kind"] == "exit" and s["function"].startswith("function_2"))
        ],
        text,
    )


# ---- sequences ----


def fires(samples, steps, limits, across):
    """Positions at which the sequence is complete, by looking back from each sample."""
    out, since, known = [], {}, {}
    scope = lambda s: None if across else s["tid"]  # noqa: E731

    def reach(i, k):
        """Can step k be met at sample i, with the earlier steps met before it?"""
        if (i, k) not in known:
            known[i, k] = find(i, k)
        return known[i, k]

    def find(i, k):
        if not steps[k](samples[i]):
            return False
        if k == 0:
            return True
        for j in range(i - 1, since.get(scope(samples[i]), 0) - 1, -1):
            if limits[k] and samples[i]["tsc"] - samples[j]["tsc"] > limits[k] * HZ / 1e9:
                break
            if scope(samples[j]) == scope(samples[i]) and reach(j, k - 1):
                return True
        return False

    for i in range(len(samples)):
        if reach(i, len(steps) - 1):
            out.append(i)
            since[scope(samples[i])] = i + 1
            known.clear()
    return out


def gaps():
    """make_trace gaps: a time that is over where samples were lost decides nothing."""
    subprocess.run([BUILD + "/tests/unit/trace/make_trace", "gaps", "gaps"], check=True)
    for trigger, fires, unsure in (
        ("work>90us", {1000, 1001, 1002}, 0),  # before anything was lost
        ("work>200us", {1001}, 2),
        ("work>450us", {1001}, 2),  # after the gap: the exit may be in it
        ("work>600us", set(), 2),
        ("entry=work without exit=work within 90us", {1000, 1001, 1002}, 0),
        ("entry=work without exit=work within 200us", {1001}, 2),
        ("entry=work without exit=work within 600us", set(), 2),
        ("entry=work without exit=work within 90us across threads", {1000, 1001, 1002}, 0),
        ("entry=work without exit=work within 200us across threads", {1001}, 2),
    ):
        out, err = kron("dump", "--json", "gaps", "--trigger", trigger, "--pre", "0", "--post", "0")
        found = [s for s in map(json.loads, out.splitlines()) if not is_special(s)]
        found = {s["thread"] for s in found if s["kind"] == "entry" and s["function"] == "work"}
        need(found == fires, f"{trigger}: {found}")
        need((f" {unsure} times a sample that was waited for" in err) == (unsure > 0), f"{trigger}: {err}")


def ticks(ns):
    return int(ns * HZ / 1e9)


def absences(samples, first, start, end, limit, first_limit, across, last):
    """[(position of the start, time at which it fires)]: walks through time once."""
    out, waits, ready = [], {}, {}

    def pass_time(now):
        over = [(samples[j]["tsc"] + ticks(limit), k) for k, j in waits.items()]
        for at, k in sorted(over, key=lambda o: o[0]):
            if at < now:
                out.append((waits.pop(k), at))
                ready.pop(k, None)

    for i, s in enumerate(samples):
        scope = None if across else s["tid"]
        pass_time(s["tsc"])
        if end(s):
            waits.pop(scope, None)
        begun = ready.get(scope)
        if first is None or (begun is not None and (not first_limit or s["tsc"] - begun <= ticks(first_limit))):
            if start(s):
                waits.setdefault(scope, i)
        if first is not None and first(s):
            ready[scope] = s["tsc"]
    pass_time(last + 1)
    return out


def long_calls(samples, name, limit, last):
    """The same of calls: a stack for each thread.  One inside a call that waits, less than 4 KiB
    below it, is left to that one."""
    out, stacks = [], {}
    for i, s in enumerate(samples):
        stack = stacks.setdefault(s["tid"], [])
        if s["kind"] == "entry":
            waiting = any(
                samples[j]["waits"]
                and samples[j]["tsc"] + ticks(limit) >= s["tsc"]
                and samples[j]["payload"] - s["payload"] < 4096
                for j in stack
            )
            stack.append(i)
            s["waits"] = s["function"] == name and not waiting
        else:
            j = stack.pop()
            if samples[j]["waits"] and s["tsc"] - samples[j]["tsc"] > ticks(limit):
                out.append((j, samples[j]["tsc"] + ticks(limit)))
    for stack in stacks.values():
        out += [(j, samples[j]["tsc"] + ticks(limit)) for j in stack if samples[j]["waits"] and samples[j]["tsc"] + ticks(limit) <= last]
    return out


def windows(samples, at, pre, post):
    keep = set()
    for i in at:
        lo, hi = samples[max(0, i - pre)]["tsc"], samples[min(len(samples) - 1, i + post)]["tsc"]
        keep.update(k for k in range(len(samples)) if lo <= samples[k]["tsc"] <= hi)
    return [samples[k] for k in sorted(keep)]


def windows_of_time(samples, fired, pre, post):
    """From `pre` samples before the start to `post` samples after the time is over."""
    times = [s["tsc"] for s in samples]
    keep = set()
    for i, at in fired:
        after = bisect.bisect_right(times, at)
        hi = max(at, times[min(len(times), after + post) - 1])
        keep.update(range(bisect.bisect_left(times, times[max(0, i - pre)]), bisect.bisect_right(times, hi)))
    return [samples[k] for k in sorted(keep)]


def triggers():
    samples = [s for s in make() if not is_special(s)][:500]
    last = samples[-1]["tsc"]
    fired = 0
    for _ in range(40):
        n, across = rnd.randrange(1, 5), rnd.random() < 0.5
        parts = [condition(samples, 2) for _ in range(n)]
        limits = [0] + [rnd.choice([0, 20, 100, 1000]) for _ in range(n - 1)]
        text = parts[0][0]
        for (words, _), limit in list(zip(parts, limits))[1:]:
            shown = rnd.choice([f"{limit}ns", f"{limit / 1000:g}us"])
            text += f" then ({words})" + (f" within {shown}" if limit else "")
        text += " across threads" if across and n > 1 else ""
        pre, post = rnd.randrange(20), rnd.randrange(20)
        at = fires(samples, [p[1] for p in parts], limits, across and n > 1)
        fired += len(at) > 0
        found = dump("--trigger", text, "--pre", str(pre), "--post", str(post))
        found = [s for s in found if int(s["timestamp"], 16) <= last]
        expected = windows(samples, at, pre, post)
        # what the first 500 do not decide: windows that end after them
        edge = samples[-25]["tsc"]
        same(
            [s for s in found if int(s["timestamp"], 16) < edge],
            [s for s in expected if s["tsc"] < edge],
            f"{text} --pre {pre} --post {post}",
        )
    need(fired > 10, f"only {fired} triggers fired")


def withouts():
    samples = [s for s in make() if not is_special(s)]
    last, fired = samples[-1]["tsc"], 0
    for _ in range(60):
        across, limit = rnd.random() < 0.5, rnd.choice([20, 100, 400, 1500, 10000])
        (a, start), (b, end) = condition(samples, 2), condition(samples, 2)
        text, first, first_limit = a, None, 0
        if rnd.random() < 0.4:
            (c, first), first_limit = condition(samples, 2), rnd.choice([0, 100])
            text = f"{c} then ({a})" + (f" within {first_limit}ns" if first_limit else "")
        text += f" without {b} within {limit}ns" + (" across threads" if across else "")
        pre, post = rnd.randrange(20), rnd.randrange(20)
        at = absences(samples, first, start, end, limit, first_limit, across, last)
        fired += 0 < len(at)
        found = dump("--trigger", text, "--pre", str(pre), "--post", str(post))
        same(found, windows_of_time(samples, at, pre, post), f"{text} --pre {pre} --post {post}")
    need(fired > 20, f"only {fired} fired")


def calls():
    samples = [s for s in make() if not is_special(s)]
    last, fired = samples[-1]["tsc"], 0
    for _ in range(40):
        name, limit = f"function_{rnd.randrange(40)}", rnd.choice([20, 100, 400, 1500, 5000])
        pre, post = rnd.randrange(20), rnd.randrange(20)
        at = long_calls(samples, name, limit, last)
        fired += 0 < len(at)
        found = dump("--trigger", f"{name}>{limit}ns", "--pre", str(pre), "--post", str(post))
        same(found, windows_of_time(samples, at, pre, post), f"{name}>{limit}ns --pre {pre} --post {post}")
    need(fired > 20, f"only {fired} fired")


def reports():
    samples = [s for s in make() if not is_special(s)]
    out = json.loads(kron("report", "--json", "--where", "function_7", "t")[0])
    entries = sum(s["kind"] == "entry" and s["function"] == "function_7" for s in samples)
    need([r["function"] for r in out] == ["function_7"], out)
    need(out[0]["calls"] == entries, f"{out[0]['calls']} calls, not {entries}")
    folded = kron("export", "-f", "folded", "--where", "function_7 or function_8", "t")[0]
    need(all("function_7" in l or "function_8" in l for l in folded.splitlines()), folded)
    replay = kron("replay", "--where", "function_7", "t")[0]
    need("function_7" in replay and "function_8" not in replay, replay[:500])
    _, err = kron("report", "--trigger", "no_such then thing", "t")
    need("never fires in t\n" in err, err)
    # of two traces it is said in which
    shutil.copytree("t", "u")
    for table in "functions", "events":
        with open(os.path.join("u", table), "a+") as f:
            f.seek(0)
            text = f.read()
            f.truncate(0)
            f.write(text.replace("function_7", "another_7"))
    _, err = kron("diff", "--trigger", "function_7", "t", "u")
    need("never fires in u\n" in err and "in t\n" not in err, err)


def wrong(text, column, option="--where"):
    _, err = kron("report", option, text, "t", status=2)
    need(err.startswith(f"kron report: {option}:{column}: "), err)
    need(err.splitlines()[-1].index("^") - 4 == column - 1, err)


def errors():
    make()
    wrong("cpu=", 5)
    wrong("cpu 5", 5)
    wrong("cpu=x", 5)
    wrong("cpu=99999999999999", 5)
    wrong("cpu>=8388608", 6, "--trigger")
    wrong("(a or b", 8)
    wrong("a or", 5)
    wrong("colour=red", 1)
    wrong('"a', 1)
    wrong("thread<5", 8)
    wrong("data&=5", 6)
    wrong("a then b", 3)
    wrong("a then b then c then d then e", 29, "--trigger")
    wrong("a within 5ms", 3, "--trigger")
    wrong("a then b within 5", 17, "--trigger")
    wrong("entry=a then not exit=a within 20ms", 14, "--trigger")
    wrong("a without b", 12, "--trigger")
    wrong("a>20ms then b", 8, "--trigger")
    wrong("a without b within 2ms across", 30, "--trigger")
    wrong("a>20ms", 1)
    kron("report", "--where", "(" * 5000 + "a", "t", status=2)
    kron("report", "--where", " or ".join(["a"] * 5000), "t", status=2)
    kron("report", "--trigger", "a", "--pre", "5 apples", "t", status=2)
    for command in ["report"], ["dump"], ["replay"], ["info"], ["diff", "t"], ["export", "-f", "chrome", "-o", "x"], ["view", "-o", "x"]:
        for option in "--pre", "--post":
            err = kron(*command, option, "5", "t", status=2)[1]
            need("belong to a --trigger" in err or "unknown option" in err and command == ["info"], f"{command}: {err}")
    need(not os.path.exists("x"), "written all the same")


# ---- while recording ----


def record(trace, *options, program=("git", "--version"), status=0):
    _, err = kron("record", "-o", trace, *options, "--", *program, status=status)
    return err


def steps_of(trace, *options):
    """What happened, without times and addresses."""
    out = kron("dump", "--json", *options, trace)[0].splitlines()
    return [(s["event"], s["kind"], s.get("function")) for s in map(json.loads, out) if not is_special(s)]


def info(trace):
    return json.loads(kron("info", "--json", trace)[0])


def recording(rounds=5, *how):
    """The same program twice: all of it, looked at by trigger, and recorded by trigger."""
    record("all", *how)
    everything = steps_of("all")
    names = [f for _, _, f in everything]
    for _ in range(rounds):
        first = rnd.randrange(len(everything) // 2)
        later = rnd.randrange(first + 1, len(everything))
        text = f"entry={names[first]} then {names[later]}"
        pre, post = str(rnd.randrange(300)), str(rnd.randrange(300))
        span = ["--trigger", text, "--pre", pre, "--post", post]
        record("some", *how, *span)
        i = info("some")
        found, wanted = steps_of("some"), steps_of("all", *span)
        seen = i["samples"] + i["outside"]  # when it has fired, the gates are closed
        need(seen <= len(everything) if i["trigger_ns"] else seen == len(everything), seen)
        if i["trigger_ns"]:  # the first time only; several windows may follow it in `all`
            need(found == wanted[: len(found)], f"{text} {pre} {post}: other samples")
            need(len(found) >= min(int(post), len(everything) - later), f"{len(found)} samples")
        else:
            need(not wanted, f"{text}: did not fire")
    err = record("never", *how, "--trigger", "no_such_function")
    need("never fired" in err and info("never")["samples"] == 0, err)


def threads():
    """All samples of all threads are accounted for; the program goes on when it has fired."""
    compile_c("threads", "bins/triggers.c")
    alone = subprocess.run(["./threads", "3", "20000"], capture_output=True, text=True)
    record("all", program=["./threads", "3", "20000"])
    total = info("all")["samples"]
    names = sorted({f for _, _, f in steps_of("all", "--trigger", "cpu<9", "--pre", "0")})
    _, err = kron("record", "-o", "some", "--trigger", "not cpu=77", "--post", "2000", "--", "./threads", "3", "20000")
    i = info("some")
    need(i["samples"] >= 2000 or i["samples"] == total, i["samples"])
    need(i["samples"] + i["outside"] + i["lost"] <= total, f"{i} of {total}")
    late = kron("record", "-o", "never", "--trigger", "cpu=77", "--", "./threads", "3", "20000")
    n = info("never")
    need(n["samples"] + n["outside"] + n["lost"] == total, f"{n['outside']} of {total}")
    need(late[0] == alone.stdout, "other output")
    need(names, "no names")


def thread_names():
    """What a thread is called while it runs: it fires at a sample of that thread, and of no other."""
    compile_c("named", "bins/named.c")
    for bus in ("lane", "exact"):
        out, _ = kron("record", "-o", "some", "-F", "work", "--bus", bus, "--trigger", "entry=work and thread=sec*",
                      "--pre", "0", "--post", "0", "--", "./named")
        tids = dict(line.split() for line in out.splitlines())
        found = [s for s in map(json.loads, kron("dump", "--json", "some")[0].splitlines()) if not is_special(s)]
        need([(s["kind"], s["thread"]) for s in found] == [("entry", int(tids["second"]))], f"{bus}: {found} of {tids}")
    err = kron("record", "-o", "never", "-F", "work", "--trigger", "thread=fourth", "--", "./named")[1]
    need("never fired" in err and info("never")["outside"] == 900, err)


def exact_bus():
    recording(2, "--bus", "exact", "--when-full", "wait")
    compile_c("threads", "bins/triggers.c")
    how = ["--bus", "exact", "--when-full", "wait", "--", "./threads", "2", "3000"]
    _, err = kron("record", "-o", "never", "--trigger", "no_such_thing", *how)
    kron("record", "-o", "all", *how)
    n, total = info("never"), info("all")["samples"]
    need("never fired" in err and n["samples"] == 0, err)
    need(n["outside"] + n["lost"] == total, f"{n['outside']} and {n['lost']} of {total}")


def unknown_names():
    """A name in a trigger that nothing has is told, and one that something has is not."""
    compile_c("named", "bins/named.c")
    for trigger, unknown in (
        ("nosuch>20ms", True),
        ("work without nosuch within 10s", True),
        ("entry=work then nosuch", True),
        ("work>10s", False),
        ("entry=work and thread=fourth", False),  # what threads were called is not kept
    ):
        _, err = kron("record", "-o", "named.trace", "-F", "work", "--trigger", trigger, "--", "./named")
        need(("'nosuch'" in err) == unknown, f"record, {trigger}: {err}")
        for when in ("has a probe so far", "got a probe"):  # when it starts, and when it is certain
            n = err.count(f"nothing that {when} is called 'nosuch'")
            need(n == unknown, f"record, {trigger}: '{when}' {n} times: {err}")
    kron("record", "-o", "all", "-F", "work", "--", "./named")
    for trigger, unknown in (("nosuch>20ms", True), ("work without nosuch within 10s", True), ("work>10s", False)):
        _, err = kron("report", "all", "--trigger", trigger)
        need(("called 'nosuch'" in err) == unknown, f"report, {trigger}: {err}")


def running():
    """record --pid --trigger ends when it has fired and what comes after is there; the program goes on."""
    text = """
            #include <stdio.h>
            #include <unistd.h>
            static volatile long sink;
            __attribute__((noinline)) long step(long n) { sink += n; return sink * 3; }
            __attribute__((noinline)) long use(long n) { sink -= n; return sink * 5; }
            int main(void) { puts("ready"); fflush(stdout); for (;;) { use(step(1)); usleep(1000); } }"""
    compile_text("p", text)
    p = subprocess.Popen(["./p"], stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        for span in ["--post", "10"], ["--post", "20ms"], ["--post", "0", "--for", "100s"]:
            r = subprocess.run([KRON, "record", "-o", "t", "--pid", str(p.pid), "--trigger", "step then use", *span],
                               capture_output=True, text=True, timeout=60)
            need(r.returncode == 0 and "the trigger fired after" in r.stderr and "runs on as before" in r.stderr, r)
            need(info("t")["trigger_ns"] and p.poll() is None, r)
            need("memfd:kron" not in open(f"/proc/{p.pid}/maps").read(), "something of kron's is left")
        r = subprocess.run([KRON, "record", "-o", "t", "--pid", str(p.pid), "--trigger", "step>100s", "--for", "200ms"],
                           capture_output=True, text=True, timeout=60)
        need(r.returncode == 0 and "never fired" in r.stderr, r)
    finally:
        p.kill()
        p.wait()


def anonymous_memory(pid):
    """In KiB; 0: it has ended.  The buffer is shared memory and not in it."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def memory():
    """What is held is bounded by the window, not by what the program makes: 600 MB of samples."""
    compile_c("threads", "bins/triggers.c")
    calls = 7_500_000
    for options in ([], ["--pre", "20ms", "--post", "20ms"], ["--bus", "exact", "--when-full", "wait"]):
        n = calls // 75 if "exact" in options else calls
        p = subprocess.Popen(
            [KRON, "record", "-o", "t", "--trigger", "tick then cpu=7777", *options, "--", "./threads", "2", str(n)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        most = 0
        while p.poll() is None:
            most = max(most, anonymous_memory(p.pid))
            time.sleep(0.01)
        err = p.stderr.read()
        i = info("t")
        need(p.returncode == 0 and "never fired" in err, err)
        need(i["outside"] + i["lost"] >= 4 * n, f"{i['outside']} and {i['lost']} of {4 * n}")
        need(0 < most < 100_000, f"{options}: {most} KiB")


def refusals():
    for options in (
        ["--trigger", "a", "--bus", "device:/dev/null"],
        ["--trigger", "a", "--when-full", "wrap"],
        ["--trigger", "a then"],
        ["--trigger", "a", "--pre", "99999999999"],
        ["--pre", "5"],
    ):
        err = record("t", *options, status=125)
        need("trigger" in err or "--pre" in err, err)
        need(not os.path.exists("t"), "made a trace all the same")


with Suite("filter") as s:
    s.case("conditions hold as they read", conditions)
    s.case("not binds before and, and before or", precedence)
    s.case("triggers fire where they should", triggers)
    s.case("and where something does not come", withouts)
    s.case("and where a call takes longer", calls)
    s.case("and not where samples were lost", gaps)
    s.case("every report obeys", reports)
    s.case("what is wrong is pointed at", errors)
    s.case("record --trigger keeps what the reader would", recording)
    s.case("record --trigger with threads", threads)
    s.case("record --trigger by names of threads", thread_names)
    s.case("record --trigger on the emulated board", exact_bus)
    s.case("record --pid --trigger ends by itself", running)
    s.case("names in a trigger that nothing has", unknown_names)
    s.case("record --trigger holds no more than the window", memory)
    s.case("record --trigger refuses", refusals)
sys.exit(s.failed > 0)
