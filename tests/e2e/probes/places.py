#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 900
"""Where `kron list -p` says that probes stand, against objdump, gdb and readelf."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
import insns  # noqa: E402


def kron_list(path, *specs, status=None):
    r = subprocess.run([tap.KRON, "list", "--json", *(x for s in specs for x in ("-p", s)), path],
                       capture_output=True, text=True)
    tap.need(r.returncode == status or (status is None and r.returncode <= 1), f"kron list {specs}: exit {r.returncode}\n{r.stderr}")
    return json.loads(r.stdout)


def places(path, *specs):
    return sorted(p["address"] for p in kron_list(path, *specs)["places"])


def same(what, mine, theirs):
    extra, missing = set(mine) - set(theirs), set(theirs) - set(mine)
    tap.need(not extra and not missing and len(mine) == len(theirs),
             f"{what}: {len(mine)} places, expected {len(theirs)}; only in kron: "
             f"{[hex(x) for x in sorted(extra)[:8]]}, missing: "
             f"{[hex(x) for x in sorted(missing)[:8]]}")


def program(flags=("-g",), compiler=None):
    tap.compile_c("places", "bins/places.c", *flags, compiler=compiler)
    return os.path.abspath("places")


# ---- classes, against objdump ----

CLASSES = {
    "insns": lambda i: True,
    "calls": lambda i: i.is_call(),
    "branches": lambda i: i.is_branch(),
    "loads": lambda i: i.loads(),
    "stores": lambda i: i.stores(),
}


def classes_of(path, functions):
    """Every class of some functions, with their .cold parts."""
    code = insns.disassemble(path, lambda name: name.split(".cold")[0] in functions)
    listed = {}  # in one go: kron and objdump read all of the program each time
    for p in kron_list(path, *(f"{name}%{key}" for name in functions for key in CLASSES))["places"]:
        listed.setdefault(p["spec"], []).append(p["address"])
    for name in functions:
        bodies = [body for f, body in code.items() if f == name or f.startswith(name + ".cold")]
        mine = [i for body in bodies for i in insns.without_filler(body)]
        # a word somewhere that may be a pointer there makes kron take filler for code, and rightly
        filler = {i.address for body in bodies for i in body if i.is_filler()} - {i.address for i in mine}
        for key, belongs in CLASSES.items():
            spec = f"{name}%{key}"
            same(spec, sorted(a for a in listed.get(spec, []) if a not in filler), [i.address for i in mine if belongs(i)])


def classes():
    classes_of(program(), ["sum", "add", "release", "choose", "main"])


def classes_of_kron():
    """A larger program: its own functions, whatever the compiler made of them."""
    path = os.path.join(tap.BUILD, "kron")
    symbols = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    names = sorted(set(re.findall(r" [Tt] ((?:parse_|lex_|probe_|opt_|json_)\w+)$", symbols, re.M)))
    tap.need(len(names) > 40, names)
    classes_of(path, tap.rnd.sample(names, 40))


def returns():
    path = program()
    code = insns.disassemble(path)
    theirs = [i.address for f in ("choose", "sum", "add", "release", "main", "choose.cold")
              for i in code.get(f, []) if i.mnemonic.startswith("ret")]
    mine = places(path, *(f + "%return" for f in ("choose", "sum", "add", "release", "main")))
    tap.need(set(theirs) <= set(mine), "a ret is missing")
    for a in set(mine) - set(theirs):  # a tail call
        i = next(i for body in code.values() for i in body if i.address == a)
        tap.need(i.mnemonic.startswith("jmp"), hex(a))


def blocks():
    """After each branch, at each target of one, and at the start."""
    path = program(("-fcf-protection=none",))
    code = insns.disassemble(path)
    body = insns.without_filler(code["sum"])
    starts = {body[0].address}
    for i, after in zip(body, body[1:] + [None]):
        if i.is_branch() or i.mnemonic.startswith("ret"):
            starts.add(after.address if after else None)
        if i.is_branch() and i.target is not None:
            starts.add(i.target)
    starts &= {i.address for i in body}
    same("sum%blocks", places(path, "sum%blocks"), sorted(starts))


def callers():
    path = program()
    everything = [i for body in insns.disassemble(path).values() for i in body]
    for name in ("malloc", "free", "printf", "add", "sum"):
        theirs = [i.address for i in everything if i.is_call()
                  and re.search(rf"<{name}(@plt)?>", i.comment)]
        same(name + "%callers", places(path, name + "%callers"), theirs)
        after = kron_list(path, name + "%after")["places"]
        tap.need(all(p["where"] == "after" for p in after), after)
        same(name + "%after", sorted(p["address"] for p in after), theirs)


# ---- lines, against gdb ----

def gdb_locations(path, source, lines):
    script = [x for n in lines for x in ("-ex", f"break {source}:{n}")]
    out = subprocess.run(["gdb", "-nx", "-q", "-batch", *script, "-ex", "info breakpoints", path],
                         capture_output=True, text=True).stdout
    found, number = {}, 0
    for line in out.splitlines():
        head = re.match(r"(\d+)(\.\d+)?\s+(breakpoint|y)", line)
        if not head:
            continue
        number = int(head[1])
        at = re.search(r"(0x[0-9a-f]{16}) in .*:(\d+)$", line)
        if at:
            found.setdefault(number, []).append((int(at[1], 16), int(at[2])))
    return {n: [a for a, l in found.get(k + 1, []) if l == n] for k, n in enumerate(lines)}


def lines():
    if not shutil.which("gdb"):
        raise tap.Skip("gdb is not installed")
    path = program(("-g", "-gno-as-loc-support"))
    with open(os.path.join(tap.SRC, "tests/bins/places.c")) as f:
        text = f.read().splitlines()
    # gdb puts a breakpoint at a function's first line after its prologue, and two into a loop
    numbers = [n for n, t in enumerate(text, 1) if t.startswith("\t") and
               not re.search(r"^\s*(case|default|struct|int total|int r |for |abort)", t)]
    theirs = gdb_locations(path, "places.c", numbers)
    checked = inlined = 0
    for n in numbers:
        mine = kron_list(path, f"places.c:{n}", status=0 if theirs[n] else 1)["places"]
        mine = sorted(p["address"] for p in mine)
        same(f"places.c:{n}", mine, sorted(theirs[n]))
        checked += bool(mine)
        inlined += len(mine) > 1
    tap.need(checked > 10 and inlined, f"{checked} lines, {inlined} of them inlined")


def lines_of_functions(compiler=None):
    if compiler and not shutil.which(compiler):
        raise tap.Skip(f"{compiler} is not installed")
    path = program(("-g",), compiler)
    with open(os.path.join(tap.SRC, "tests/bins/places.c")) as f:
        text = f.read().splitlines()
    first = next(n for n, t in enumerate(text, 1) if "static int sum(" in t)
    wanted = next(n for n, t in enumerate(text, 1) if "total += mix" in t)
    both = set(places(path, f"sum:{wanted - first}"))
    tap.need(both and both <= set(places(path, f"places.c:{wanted}")), both)
    same("sum@places.c", places(path, "sum@places.c"), places(path, "sum"))
    r = kron_list(path, "sum@other.c", status=1)
    tap.need("not in other.c" in r["notes"][0]["text"], r)


def debug_file():
    """By build-id, from a separate file; without it everything but lines works."""
    path = program()
    line = places(path, "places.c:16")
    subprocess.run(["objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
    subprocess.run(["objcopy", "-g", "--add-gnu-debuglink=" + path + ".debug", path, "bare"],
                   check=True)
    same("with its debug link", places("bare", "places.c:16"), line)
    os.remove(path + ".debug")
    r = kron_list("bare", "places.c:16", "sum", status=1)
    tap.need(len(r["places"]) == 1 and "no debug information" in r["notes"][0]["text"], r)


# ---- USDT ----

def markers():
    try:
        tap.compile_c("markers", "bins/markers.c")
    except subprocess.CalledProcessError:
        raise tap.Skip("sys/sdt.h is not installed")
    notes = subprocess.run(["readelf", "-n", "markers"], capture_output=True, text=True).stdout
    theirs = dict(zip(re.findall(r"Name: (\w+)", notes),
                      (int(x, 16) for x in re.findall(r"Location: (0x\w+)", notes))))
    for name, address in theirs.items():
        for spec in (f"%demo:{name}", f"sdt_demo:{name}", f"usdt:markers:demo:{name}",
                     f"usdt:markers:{name}"):
            same(spec, places("markers", spec), [address])
    found = kron_list("markers", "%demo:turn i=$arg1", "%demo:turn $arg2")["places"]
    tap.need(found[0]["payload"] == "i=%rdi" and found[1]["payload"] == "arg2=42", found)
    r = kron_list("markers", "%demo:turn $arg3", "%demo:nothing", "%nobody:x", status=1)
    tap.need("no argument 3" in r["notes"][0]["text"], r)
    tap.need("it has turn, guarded, end" in r["notes"][1]["text"], r)
    tap.need("no USDT probe of this provider" in r["notes"][2]["text"], r)


def markers_of_libstdcxx():
    path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
    if not os.path.exists(path):
        raise tap.Skip("no libstdc++.so.6")
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    theirs = [int(x, 16) for x in re.findall(r"Location: (0x\w+)", notes)]
    same("%libstdcxx:*", places(path, "%libstdcxx:*"), sorted(theirs))


# ---- what is not there ----

def mistakes():
    path = program()
    for spec, words in (("realease", "is it release"), ("sum+3000", "bytes only"),
                        ("sum+1", "no instruction begins there"), ("0x10", "no function"),
                        ("places.c:3", "has no code"), ("nothing.c:3", "not made from"),
                        ("/^nothing/", "that matches"), ("nothing%after", "has and calls no"),
                        ("sum%loads%after", None)):
        r = kron_list(path, spec, status=1 if words else 0)
        if words:
            tap.need(words in r["notes"][0]["text"], r["notes"])


def unknown_ends():
    """A jump to what was computed: a way out, or not?"""
    with open("computed.c", "w") as f:
        f.write("""__asm__(".globl odd; .type odd, @function; odd: .cfi_startproc;"
                        "movq (%rdi), %rax; addq %rsi, %rax; testl %edx, %edx; je 1f;"
                        "jmp *%rax; 1: ret; .cfi_endproc; .size odd, .-odd");
            int main(void) { return 0; }""")
    subprocess.run([*tap.CC, "-o", "computed", "computed.c"], check=True)
    r = kron_list("computed", "odd%return")
    tap.need(len(r["places"]) == 1, r)
    tap.need("1 jump is not watched: nobody can tell" in r["notes"][0]["text"], r)


def names():
    libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    table = subprocess.run(["readelf", "-sW", "--dyn-syms", libc], capture_output=True,
                           text=True).stdout
    value = {}
    for m in re.finditer(r"([0-9a-f]{16})\s+\d+ (FUNC|IFUNC)\s+\w+\s+\w+\s+\d+ ([\w.]+)@@", table):
        value.setdefault(m[3], (int(m[1], 16), m[2]))
    for name in ("malloc", "read", "pthread_create", "getpid", "__libc_malloc"):
        if name in value:  # whatever other names stand at the same address
            same(name, places(libc, "libc:" + name), [value[name][0]])
    theirs = sorted({v for n, (v, t) in value.items() if n.startswith("pthread_mutex")})
    same("pthread_mutex*", places(libc, "pthread_mutex*"), theirs)
    same("a regex", places(libc, "/^pthread_mutex/"), theirs)
    if value["memcpy"][1] == "IFUNC":
        r = kron_list(libc, "memcpy")
        tap.need([p["address"] for p in r["places"] if p.get("tactic") == "import"] ==
                 [value["memcpy"][0]], r)
        r = kron_list(libc, "strlen%return", status=1)
        tap.need("IFUNC" in r["notes"][0]["text"], r)


def overloaded():
    """A C++ function with its arguments is one of several; nm tells where."""
    with open("over.cc", "w") as f:
        f.write("""struct thing { int put(int); int put(const char *, long); };
            __attribute__((noinline)) int thing::put(int x) { return x + 1; }
            __attribute__((noinline)) int thing::put(const char *s, long n) { return s[n]; }
            int main(int c, char **v) { thing t; return t.put(c) + t.put(v[0], 0); }""")
    subprocess.run(["g++", "-O1", "-o", "over", "over.cc"], check=True)
    nm = subprocess.run(["nm", "-C", "over"], capture_output=True, text=True, check=True).stdout
    at = {m[2]: int(m[1], 16) for m in re.finditer(r"(\w+) [TtWw] (thing::put.*)", nm)}
    tap.need(len(at) == 2, at)
    for name, vaddr in at.items():
        same(name, places("over", name), [vaddr])
    same("both", places("over", "thing::put"), sorted(at.values()))
    tap.need(len(places("over", "thing::put(int)%callers")) == 1, "one call")
    kron_list("over", "thing::put(long)", status=1)


with tap.Suite("places") as s:
    s.case("instructions, calls, branches, loads, stores as objdump shows them", classes)
    s.case("... of 40 functions of kron", classes_of_kron)
    s.case("returns are the rets, and tail calls", returns)
    s.case("... and what nobody can tell is told", unknown_ends)
    s.case("basic blocks begin where branches lead and after them", blocks)
    s.case("the calls of a function, through the PLT too", callers)
    s.case("lines with inlined copies are where gdb breaks", lines)
    s.case("lines and sources of functions", lines_of_functions)
    s.case("... of units of which no table of addresses tells", lines_of_functions, "clang")
    s.case("a separate debug file, and none", debug_file)
    s.case("USDT probes as readelf shows them", markers)
    s.case("... of libstdc++", markers_of_libstdcxx)
    s.case("what is not there is named, with what may be meant", mistakes)
    s.case("all names of a function count; globs and expressions", names)
    s.case("a C++ name with its arguments", overloaded)
