#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Functions that kron cannot patch, probed where other modules call them.

bins/interposed/callee.c is a library of such functions, which count their calls themselves:
that is the truth.  caller.cc and plugin.c call them; they are linked in every way that makes
other stubs.
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

BINS = os.path.join(tap.SRC, "tests/bins/interposed")
CXX = os.environ.get("CXX", "g++").split()
NAMES = ["add", "sum", "call", "twice", "inner", "chosen"]
FUNCTIONS = ["-L", "libcallee*", *(x for n in NAMES[:-1] for x in ("-F", n)),
             "-p", "libcallee:chosen n=$arg1"]


def run(*args, env=None, status=0):
    r = subprocess.run(args, capture_output=True, text=True, timeout=100,
                       stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    tap.need(r.returncode == status, f"{args}: exit {r.returncode}\n{r.stderr}")
    return r


def build():
    """The libraries and the objects, once for all cases."""
    lib = os.path.join(os.getcwd(), "..", "lib")
    os.makedirs(lib)
    os.chdir(lib)
    run(*tap.CC, "-O2", "-fPIC", "-shared", "-o", "libcallee.so", f"{BINS}/callee.c",
        f"-Wl,--version-script={BINS}/callee.map,-soname,libcallee.so")
    run(*tap.CC, "-O2", "-fPIC", "-shared", "-o", "plugin.so", f"{BINS}/plugin.c", "-L.",
        "-lcallee", "-Wl,-z,lazy")
    for pie in ("pie", "no-pie"):
        run(*CXX, "-O2", f"-f{pie}", "-c", "-o", f"{pie}.o", f"{BINS}/caller.cc")


def lib(name):
    return os.path.abspath(os.path.join("..", "lib", name))


def link(pie, *flags):
    run(*CXX, f"-{pie}", "-o", "caller", lib(pie + ".o"), "-L" + lib(""), "-lcallee", "-pthread",
        "-Wl,-rpath," + lib(""), *flags)


def record(*args, preload=None, env=None):
    """preload: for the program, not for kron"""
    shutil.rmtree("trace", ignore_errors=True)
    return run(tap.KRON, "record", "-o", "trace", "--when-full", "wait", *args, "--",
               *(["/usr/bin/env", "LD_PRELOAD=" + preload] if preload else []),
               os.path.abspath("caller"), lib("plugin.so"), env=env)


def info():
    return json.loads(run(tap.KRON, "info", "--json", "trace").stdout)


def counted():
    """name -> calls; both versions of twice, by address"""
    calls = {}
    for f in json.loads(run(tap.KRON, "report", "--json", "trace").stdout):
        calls.setdefault(f["function"], []).append(f["calls"])
    events = [json.loads(line) for line in
              run(tap.KRON, "dump", "--json", "trace").stdout.splitlines()]
    calls["chosen"] = [sum(e["kind"] == "event" and e.get("name") == "chosen" for e in events)]
    return calls


def truth(out):
    words = dict(re.findall(r"^(\w+) (\d+)$", out, re.M))
    return {k: int(v) for k, v in words.items()}


def agree(out, by_pointer):
    """by_pointer: calls of add by its address are not seen"""
    want, got = truth(out), counted()
    for name in ("sum", "call", "inner", "chosen"):
        tap.need(got.get(name) == [want[name]], f"{name}: {got.get(name)} of {want}")
    tap.need(got["add"] == [want["add"] - by_pointer], f"add: {got['add']} of {want}")
    tap.need(sorted(got["twice"]) == sorted([want["old"], want["new"]]), f"{got} {want}")


def variant(pie, *flags):
    link(pie, *flags)
    plain = run("./caller", lib("plugin.so")).stdout
    tap.need("one address: 1 1" in plain and "one address: 0" not in plain, plain)
    r = record(*FUNCTIONS)
    tap.need(r.stdout == plain, r.stdout)
    tap.need("untraced" not in r.stderr, r.stderr)
    # the one call by a pointer goes through a stub only where that is the function's address
    agree(plain, int(pie == "pie"))
    shown = {(i["function"], i["why"]): [os.path.basename(c) for c in i["callers"]]
             for i in info()["imports"]}
    tap.need(shown[("chosen", "ifunc")] == ["caller", "plugin.so"], shown)
    tap.need(shown[("inner", "undecodable")] == ["libcallee.so"], shown)
    if pie == "pie":
        tap.need(shown[("add", "undecodable")] == ["caller", "plugin.so"], shown)


def linker(name):
    if not shutil.which("ld." + name):
        raise tap.Skip(f"ld.{name} is not installed")
    variant("pie", "-fuse-ld=" + name)


def no_sections():
    """What strippers leave of some programs."""
    link("pie")
    with open("caller", "r+b") as f:
        f.seek(40)
        f.write(bytes(8))  # e_shoff
        f.seek(58)
        f.write(bytes(6))  # e_shentsize, e_shnum, e_shstrndx
    plain = run("./caller", lib("plugin.so")).stdout
    tap.need(record(*FUNCTIONS).stdout == plain, "")
    agree(plain, 1)


def forced():
    link("pie")
    plain = run("./caller", lib("plugin.so")).stdout
    tap.need(record("--tactics", "import", "-L", "libcallee*").stdout == plain, "")
    want, got = truth(plain), counted()
    tap.need(got["outer"] == [1] and got["report"] == [1], got)
    tap.need(got["add"] == [want["add"] - 1], got)
    tap.need("real_sum" not in got and "main" not in got, got)
    # and without it the functions are refused, as ever
    record("--tactics", "-import", *FUNCTIONS)
    tap.need(counted() == {"chosen": [0]} and not info()["imports"], counted())


def several():
    """Two libraries have the function: nobody is asked which one the linker took."""
    link("pie")
    with open("other.c", "w") as f:
        f.write("long add(long n) { return n + 2; }\n")
    run(*tap.CC, "-O2", "-fPIC", "-shared", "-o", "other.so", "other.c")
    other = os.path.abspath("other.so")
    plain = run("./caller", lib("plugin.so"), env={"LD_PRELOAD": other}).stdout
    r = record(*FUNCTIONS, preload=other)
    tap.need(r.stdout == plain and "add 200" in plain, r.stdout)
    tap.need(re.search("^kron.*: add .*both have one$", r.stderr, re.M), r.stderr)
    tap.need("add" not in counted(), counted())


def forks():
    """Children open, close and open again what their parent never had."""
    with open("forks.c", "w") as f:
        f.write("""#include <dlfcn.h>
            #include <stdio.h>
            #include <sys/wait.h>
            #include <unistd.h>
            int main(int argc, char **argv) {
              for (int i = 0; i < 5 * argc / argc; i++) {
                if (!fork()) { for (int k = 0; k < 2; k++) {
                  void *h = dlopen(argv[1], k ? RTLD_NOW : RTLD_LAZY);
                  printf("%ld\\n", ((long (*)(int))dlsym(h, "plugin"))(7));
                  dlclose(h); } return 0; }
                wait(0); }
              return 0; }""")
    run(*tap.CC, "-O2", "-o", "caller", "forks.c")
    out = record("-p", "libcallee:add", env={"LD_LIBRARY_PATH": lib("")}).stdout
    tap.need(out == "91\n" * 10, out)
    tap.need(len(samples()) == 70, len(samples()))


def kinds():
    """Counts, arguments, levels: as at any place."""
    link("pie")
    r = record("-p", "libcallee:chosen count:3", "-p", "libcallee:add n=$arg1",
               "-p", "7:total=libcallee:sum n=$arg1")
    want = truth(r.stdout)
    tap.need(info()["counters"][3] == want["chosen"], info()["counters"])
    payloads = [e["payload"] for e in
                map(json.loads, run(tap.KRON, "dump", "--json", "trace").stdout.splitlines())
                if e["kind"] == "event" and e["name"] == "add"]
    tap.need(payloads == [*range(100), *range(10), *range(10)], payloads)


def named():
    """-F names an IFUNC: its calls, not those of the code that chooses."""
    link("pie")
    r = record("-L", "libcallee*", "-F", "chosen")
    tap.need(json.loads(run(tap.KRON, "report", "--json", "trace").stdout)[0]["calls"] ==
             truth(r.stdout)["chosen"], r.stdout)


def shown():
    path = lib("libcallee.so")
    counts = json.loads(run(tap.KRON, "list", "--summary", "--json", path).stdout)["entries"]
    tap.need(counts["by_tactic"]["import"] == 6 and not counts["refused"], counts)
    functions = json.loads(run(tap.KRON, "list", "--json", path).stdout)["functions"]
    entry = {f["name"]: f["entry"] for f in functions}
    tap.need(entry["add"]["tactic"] == "import" and entry["add"]["refused"] == "undecodable",
             entry)
    tap.need("refused" not in entry["outer"], entry)
    off = json.loads(run(tap.KRON, "list", "--summary", "--json", "--tactics", "-import",
                         path).stdout)["entries"]
    tap.need(off["refused"] == {"undecodable": 6} and "import" not in off["by_tactic"], off)
    tap.need("calls from other modules only" in run(tap.KRON, "list", "--summary", path).stdout,
             "")


# ---- packs: what functions return ----

def samples():
    """(event, value) in order"""
    out = run(tap.KRON, "dump", "--json", "trace").stdout
    return [(e["name"], e["payload"]) for e in map(json.loads, out.splitlines())
            if e["kind"] == "event"]


def follows(want, got):
    """All of want, in this order; there may be more in between."""
    rest = iter(got)
    for w in want:
        tap.need(any(w == g for g in rest), f"{w} of {want}\nin {got}")


def said(out):
    """What blocks prints, as events of the pack"""
    for line in out.splitlines():
        event, *values = line.split()
        values = [int(v, 0) & 0xffffffff for v in values]
        if event == "realloc":
            yield event, values[1]
            yield "realloc_old", values[0]
            yield "realloc_result", values[2]
            continue
        if event == "posix_memalign":
            yield event + "_result", values[0]
            continue
        yield event, values[0]
        if len(values) > 1:
            yield event + "_result", values[1]


def blocks(library, *flags):
    path = f"/usr/lib/x86_64-linux-gnu/{library}"
    if library and not os.path.exists(path):
        raise tap.Skip(f"{library} is not installed")
    tap.compile_c("blocks", "bins/interposed/blocks.c", *flags)
    shutil.rmtree("trace", ignore_errors=True)
    out = run(tap.KRON, "record", "-o", "trace", "-P", "malloc", "--",
              *(["/usr/bin/env", "LD_PRELOAD=" + path] if library else []), "./blocks")
    tap.need(not re.search("untraced|no function", out.stderr), out.stderr)
    want, got = list(said(out.stdout)), samples()
    tap.need(len(want) == 20 * 2 + 20 * 3 + 1 + 1 + 3 + 20, len(want))
    for event in sorted({name for name, _ in want}):
        follows([v for e, v in want if e == event], [v for e, v in got if e == event])
    if not library:  # glibc's, and ours, do nothing by calls of their own
        follows(want, got)


def locks():
    run(*CXX, "-O2", "-o", "locks", f"{BINS}/locks.cc", "-pthread")
    out = run(tap.KRON, "record", "-o", "trace", "-P", "pthread", "./locks")
    want = [(e, int(v, 16)) for e, v in map(str.split, out.stdout.splitlines())]
    follows(want, samples())
    shown = {i["function"]: i["why"] for i in info()["imports"]}
    tap.need(shown.get("pthread_mutex_lock") == "tail-call", shown)
    plain = run("./locks", "cancel").stdout
    tap.need(plain == "destroyed 10\n", plain)
    shutil.rmtree("trace")
    tap.need(run(tap.KRON, "record", "-o", "trace", "-P", "pthread", "./locks",
                 "cancel").stdout == plain, "")
    names = [e for e, _ in samples()]
    tap.need(names.count("cond_wait") == 10 and "cond_waited" not in names, names)


with tap.Suite("interpose") as s:
    s.case("libraries for these tests", build)
    s.case("lazy binding", variant, "pie", "-Wl,-z,lazy,-z,norelro")
    s.case("all bound at the start, slots read-only", variant, "pie", "-Wl,-z,now,-z,relro")
    s.case("stubs with endbr64", variant, "pie", "-Wl,-z,ibtplt,-z,lazy")
    s.case("a fixed address, whose stubs are functions' addresses", variant, "no-pie",
           "-Wl,-z,lazy")
    s.case("... bound at the start", variant, "no-pie", "-Wl,-z,now")
    s.case("... with endbr64", variant, "no-pie", "-Wl,-z,ibtplt,-z,now")
    for other in ("gold", "lld", "mold"):
        s.case("linked by " + other, linker, other)
    s.case("no section headers", no_sections)
    s.case("--tactics import, -import", forced)
    s.case("two libraries with one name", several)
    s.case("kinds of probes", kinds)
    s.case("children that load the caller", forks)
    s.case("-F with the name of an IFUNC", named)
    s.case("kron list shows it", shown)
    s.case("pack malloc: the C library's", blocks, "")
    s.case("... the program's own", blocks, "", "-DOWN", "-fno-builtin")
    for allocator in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
        s.case("... " + allocator, blocks, allocator)
    s.case("pack pthread: results; cancelling who waits", locks)
