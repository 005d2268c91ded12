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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
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


def ends():
    """Functions of the C library that may be called by a stub: each end is seen."""
    with open("ends.c", "w") as f:
        f.write("""#include <stdlib.h>
            #include <string.h>
            int main(void) {
              char *a = malloc(9000), *b = malloc(9000);
              for (int i = 0; i < 100; i++) {
                memset(a, 'x', 8000 + i); a[8000 + i] = 0;
                memcpy(b, a, 9000);
                if (strlen(b) != 8000 + (unsigned)i) return 1; }
              return 0; }""")
    run(*tap.CC, "-O1", "-fno-builtin", "-o", "caller", "ends.c")
    r = record("-L", "libc.so*", "-F", "memset", "-F", "memcpy", "-F", "strlen")
    tap.need("0 sites refused" in r.stderr, r.stderr)
    events = [(e["kind"], e["function"], e["payload"]) for e in
              map(json.loads, run(tap.KRON, "dump", "--json", "trace").stdout.splitlines())
              if e["kind"] in ("entry", "exit")]
    sp = {e[2] for e in events}
    tap.need(len(sp) == 1, sp)  # all in main's frame
    want = [(kind, f, *sp) for f in ("memset", "memcpy", "strlen") for kind in ("entry", "exit")]
    tap.need(events == want * 100, events[:7])
    tap.need(all(len(i["callers"]) == len(set(i["callers"])) for i in info()["imports"]), "")


def shown():
    path = lib("libcallee.so")
    counts = json.loads(run(tap.KRON, "list", "--summary", "--json", path).stdout)["entries"]
    tap.need(counts["by_tactic"]["import"] == 6 and not counts["refused"], counts)
    functions = json.loads(run(tap.KRON, "list", "--json", path).stdout)["functions"]
    entry = {f["name"]: f["entry"] for f in functions}
    tap.need(entry["add"]["tactic"] == "import" and entry["add"]["refused"] == "undecodable",
             entry)
    tap.need("refused" not in entry["outer"], entry)
    places = json.loads(run(tap.KRON, "list", "--json", "-p", "add", "-p", "outer", path).stdout)
    tactic = {p["place"]: (p["tactic"], p.get("refused")) for p in places["places"]}
    tap.need(tactic["add"] == ("import", "undecodable") and tactic["outer"][1] is None, tactic)
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


# ---- files from kron patch: their own calls of other files' functions ----

def patch(program, *args, status=0):
    return run(tap.KRON, "patch", "-o", program + ".kron", *args, program, status=status)


def imported(program):
    """event -> tactics, of what kron list shows"""
    places = json.loads(run(tap.KRON, "list", "--json", program + ".kron").stdout)["places"]
    by_event = {}
    for p in places:
        by_event.setdefault(p["event"], set()).add(p.get("tactic", p.get("refused")))
    return by_event


def recorded(program, *args):
    shutil.rmtree("trace", ignore_errors=True)
    return run(tap.KRON, "record", "-o", "trace", "./" + program + ".kron", *args).stdout


def agree_all(want, got):
    for event in sorted({name for name, _ in want}):
        w, g = [v for e, v in want if e == event], [v for e, v in got if e == event]
        tap.need(w == g, f"{event}: {w}\n{g}")


def patched_blocks(*flags):
    """What the program says it asked for is what the trace has: no more and no less."""
    tap.compile_c("blocks", "bins/interposed/blocks.c", "-fno-builtin", *flags)
    # no frame information of stubs: they must not call
    results = not {"-fno-plt", "-fuse-ld=lld", "-fuse-ld=mold"} & set(flags)
    for jumps in ("-q", "--jumps"):
        patch("blocks", jumps, "-P", "malloc")
        tap.need(len(run("./blocks.kron").stdout.splitlines()) == 64, "alone")
        want = list(said(recorded("blocks")))
        names = {e for e, _ in want} | {"calloc_count", "free"}
        want = [w for w in want if results or not w[0].endswith("_result")]
        got = [g for g in samples() if g[0] in names]
        agree_all(want, got)
        tap.need(info()["lost"] == 0, info())
    shown = imported("blocks")
    tap.need(all(shown[e] == {"import"} for e, _ in want), shown)


def patched_linker(name):
    if not shutil.which("ld." + name):
        raise tap.Skip(f"ld.{name} is not installed")
    patched_blocks("-fuse-ld=" + name)


def patched_locks(*flags):
    run(*CXX, "-O2", "-o", "locks", f"{BINS}/locks.cc", "-pthread", *flags)
    for jumps in ("-q", "--jumps"):
        patch("locks", jumps, "-P", "pthread")
        plain = run("./locks.kron", "cancel").stdout
        tap.need(plain == "destroyed 10\n", plain)
        want = [(e, int(v, 16)) for e, v in map(str.split, recorded("locks").splitlines())]
        tap.need(len(want) == 23, want)
        agree_all(want, samples())
        tap.need(recorded("locks", "cancel") == plain, "")
        names = [e for e, _ in samples()]
        tap.need(names.count("cond_wait") == 10 and "cond_waited" not in names, names)


def patched_kinds():
    """Counts, numbers, levels, the program's own functions beside, IFUNCs, exceptions."""
    link("pie")
    plain = run("./caller", lib("plugin.so")).stdout
    patch("caller", "-p", "chosen count:3", "-p", "libcallee:add n=$arg1", "-p",
          "7:total=sum sp=$sp", "-p", "main", "-F", "*throws*", "-p", "libcallee:call",
          "-p", "5:1234=libcallee.so:twice")
    tap.need(run("./caller.kron", lib("plugin.so")).stdout == plain, "alone")
    tap.need(recorded("caller", lib("plugin.so")) == plain, "recorded")
    got = samples()
    # what main and its threads call, and not what the plugin does
    tap.need(info()["counters"][3] == 1 + 4 * 1000, info()["counters"])
    tap.need([v for e, v in got if e == "add"] == [*range(100)], got)
    names = [e for e, _ in got if e != "add"]
    tap.need(sorted(names) == [*["call"] * 9, *["libcallee.so:twice"] * 3, "main", "total"],
             names)
    calls = json.loads(run(tap.KRON, "report", "--json", "trace").stdout)
    tap.need([f["calls"] for f in calls] == [5] and "throws" in calls[0]["function"], calls)


def patched_library():
    """A library's calls, too."""
    os.makedirs("sub")
    shutil.copy(lib("libcallee.so"), "libcallee.so")
    link("pie")
    plain = run("./caller", lib("plugin.so")).stdout
    run(tap.KRON, "patch", "-q", "-o", "sub/libcallee.so", "-p", "libc:printf", "libcallee.so")
    shutil.rmtree("trace", ignore_errors=True)
    env = {"LD_LIBRARY_PATH": os.path.abspath("sub")}
    out = run(tap.KRON, "record", "-o", "trace", "-L", "libcallee*", "-F", "none", "./caller",
              lib("plugin.so"), env=env).stdout
    tap.need(out == plain, out)
    tap.need([e for e, _ in samples()] == ["printf"], samples())  # report()'s
    # a function of its own that takes no probe, where it calls that itself
    run(tap.KRON, "patch", "-q", "-o", "sub/libcallee.so", "-p", "inner n=$arg1", "libcallee.so")
    shutil.rmtree("trace", ignore_errors=True)
    out = run(tap.KRON, "record", "-o", "trace", "-L", "libcallee*", "-F", "none", "./caller",
              lib("plugin.so"), env=env).stdout
    tap.need(samples() == [("inner", 1), ("inner", 2)] and truth(out)["inner"] == 2, samples())


def patched_refusals():
    tap.compile_c("blocks", "bins/interposed/blocks.c", "-fno-builtin")
    r = patch("blocks", "-p", "libc:pthread_mutex_lock", status=1)
    tap.need("does not call it" in r.stderr and "calls none of the functions" in r.stderr,
             r.stderr)
    r = patch("blocks", "-p", "fwrite%return n=$retval", status=1)
    tap.need("cannot be seen in a linker's stub" in r.stderr, r.stderr)
    r = patch("blocks", "-p", "mallok", status=1)
    tap.need("no function of this name" in r.stderr, r.stderr)
    r = patch("blocks", "-p", "malloc", "--tactics", "-import", status=1)
    tap.need("no function of this name" in r.stderr, r.stderr)
    tap.need("(import: 1 " in patch("blocks", "-p", "malloc", "--tactics", "import").stdout, "")
    tap.need(not os.path.exists("no"), "")


def patched_twice():
    """Who records a patched file for the same functions: asleep its probes do not mind."""
    with open("twice.c", "w") as f:
        f.write("""#include <string.h>
            #include <stdio.h>
            int main(int argc, char **argv) {
              char v[64] = "";
              for (int i = 0; i < 30; i++) {
                memset(v + i, 'a' + i % 9, 2);
                if (i < 10) memmove(v + i + 1, argv[0], 1); }
              return printf("%d\\n", v[3]) < argc; }""")
    run(*tap.CC, "-O2", "-fno-builtin", "-o", "twice", "twice.c")
    patch("twice", "-p", "own=memset")
    for functions in ([], ["-F", "main"]):
        shutil.rmtree("trace", ignore_errors=True)
        r = run(tap.KRON, "record", "-o", "trace", "-p", "theirs=libc:memset", "-p",
                "libc:memmove", *functions, "./twice.kron")
        tap.need(r.stdout == "100\n", r.stderr)
        got = [e for e, _ in samples()]
        tap.need([got.count(e) for e in ("own", "theirs", "memmove")] ==
                 ([30, 0, 10] if functions else [0, 30, 10]), got)
        tap.need(("1 of its calls or stubs" in r.stderr) == bool(functions), r.stderr)


def direct():
    """Calls through the table itself, and tail calls."""
    with open("direct.c", "w") as f:
        f.write("""#include <string.h>
            #include <stdio.h>
            #include <stdlib.h>
            static int n;
            __attribute__((noinline)) void *tail(char *a) { return n++, memset(a, 1, 3); }
            __attribute__((noinline)) static int leaf(char *a) { memset(a, 2, 4); return n++; }
            int main(void) {
              char v[64];
              for (int i = 0; i < 30; i++) tail(v);
              for (int i = 0; i < 50; i++) { memset(v, 3, 5); n++; leaf(v); }
              return printf("%d\\n", n) < 0; }""")
    run(*tap.CC, "-O2", "-fno-builtin", "-fno-plt", "-o", "direct", "direct.c")
    for args in ([], ["-F", "tail", "-F", "leaf", "-F", "main"]):
        shutil.rmtree("trace", ignore_errors=True)
        r = run(tap.KRON, "record", "-o", "trace", "-p", "libc:memset n=$arg3", *args, "./direct")
        tap.need(r.stdout == "130\n", r.stdout)
        seen = [v for e, v in samples()]
        missed = re.search(r"direct: (\d+) of its calls", r.stderr)
        tap.need(missed or seen == [3] * 30 + [5, 4] * 50, (seen, r.stderr))
        tap.need(args or not missed, r.stderr)
    # as functions: what -F names is paired with what calls it
    shutil.rmtree("trace", ignore_errors=True)
    run(tap.KRON, "record", "-o", "trace", "-L", "libc.so*", "-F", "memset", "-F", "main",
        "./direct")
    calls = {f["function"]: f["calls"] for f in
             json.loads(run(tap.KRON, "report", "--json", "trace").stdout)}
    tap.need(calls == {"main": 1, "memset": 130}, calls)


def text_relocations():
    """A module that nobody can patch is named, and does not keep the others from it."""
    for name, text in {"odd.c": """#include <string.h>
            __asm__(".text; .globl word; word: .quad puts; .previous");
            void odd(char *v);
            void odd(char *v) { for (int i = 0; i < 5; i++) memset(v, i, 7); }""",
                       "main.c": """#include <string.h>
            #include <stdio.h>
            void odd(char *v);
            int main(void) {
              char v[64];
              for (int i = 0; i < 30; i++) memset(v, i, 8);
              odd(v);
              return printf("%d\\n", v[0]) < 0; }"""}.items():
        with open(name, "w") as f:
            f.write(text)
    run(*tap.CC, "-O2", "-fPIC", "-fno-builtin", "-shared", "-o", "libodd.so", "odd.c",
        "-Wl,-z,notext")
    run(*tap.CC, "-O2", "-fno-builtin", "-o", "caller", "main.c", "-L.", "-lodd",
        "-Wl,-rpath," + os.getcwd())
    r = record("-p", "libc:memset n=$arg3")
    tap.need(r.stdout == "4\n" and [v for _, v in samples()] == [8] * 30, samples())
    tap.need("functions are not probed where it calls them" in r.stderr and
             "libodd.so has text relocations" in r.stderr, r.stderr)


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
    s.case("... its ends, too, where it may be called", ends)
    s.case("kron list shows it", shown)
    s.case("pack malloc: the C library's", blocks, "")
    s.case("... the program's own", blocks, "", "-DOWN", "-fno-builtin")
    for allocator in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
        s.case("... " + allocator, blocks, allocator)
    s.case("pack pthread: results; cancelling who waits", locks)
    s.case("calls by no stub", direct)
    s.case("a module that cannot be patched", text_relocations)
    s.case("kron patch: pack malloc", patched_blocks, "-Wl,-z,lazy,-z,norelro")
    s.case("... stubs with endbr64, slots read-only", patched_blocks, "-Wl,-z,ibtplt,-z,now")
    s.case("... no-pie", patched_blocks, "-no-pie")
    s.case("... calls without stubs", patched_blocks, "-fno-plt")
    for other in ("gold", "lld", "mold"):
        s.case("... linked by " + other, patched_linker, other)
    s.case("... pack pthread: results; cancelling who waits", patched_locks)
    s.case("... kinds of probes", patched_kinds)
    s.case("... a library", patched_library)
    s.case("... what cannot be", patched_refusals)
    s.case("... recorded for the same functions", patched_twice)
