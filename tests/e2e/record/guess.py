#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""Functions of programs without symbols and frame information: what kron guesses, against the symbols of the same
program before they were taken away, and what it records, against callgrind and what the program says.

Of each kind of program at least 98 of 100 guesses have to be right (RIGHT), and most of the functions that
run have to be found (FOUND); the shares are printed."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import callgrind  # noqa: E402
from tap import KRON, SRC, Skip, Suite, compile_c, need, rnd  # noqa: E402

RIGHT = 0.98
FOUND = 0.95
# of GCC, in every program; kron never shows them by name
CRTSTUFF = {"deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy"}
BINS = os.path.join(SRC, "tests/bins")
FRAMES = [a for s in (".eh_frame", ".eh_frame_hdr", ".gcc_except_table") for a in ("-R", s)]


def make_bare(named, bare):
    subprocess.run(["strip", "-o", bare, named], check=True)
    subprocess.run(["objcopy", *FRAMES, bare], check=True, capture_output=True)


def starts_of(named):
    """Address -> name of the functions that the symbols name."""
    out = subprocess.run(["readelf", "-sW", named], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in out.splitlines())
    return {int(r[1], 16): r[7] for r in rows if len(r) >= 8 and r[3] in ("FUNC", "IFUNC") and r[6] not in ("UND", "ABS")}


def listed(path):
    out = subprocess.run([KRON, "list", "--json", path], capture_output=True, text=True, check=True).stdout
    return json.loads(out)["functions"]


def guesses_of(bare):
    functions = listed(bare)
    for f in functions:
        need(f.get("guessed", False) == ("guess" in f["sources"]), f)
        need("guess" not in f["sources"] or f["sources"] == ["guess"], f)
    return {f["address"] for f in functions if f.get("guessed")}


def measure(kind, pairs, least):
    """All programs of one kind together."""
    made = right = known = 0
    wrong = []
    for named, bare in pairs:
        truth, guesses = starts_of(named), guesses_of(bare)
        made += len(guesses)
        right += len(guesses & truth.keys())
        known += len(truth)
        wrong += [f"{named}+{a:#x}" for a in sorted(guesses - truth.keys())]
    print(f"# {kind}: {right} of {made} guesses are right; {known} functions have symbols")
    need(made >= least, f"{made} guesses only")
    need(right >= RIGHT * made, wrong[:20])


# ---- the programs ----


def make_c():
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        for source in ("calc.c", "switches.c", "containers.cc", "hops.c", "ends.c"):
            for level in rnd.sample(("-O0", "-O1", "-Os"), 1) + ["-O2"]:
                for pie in ("-no-pie", "-pie"):
                    named = "_".join([source, compiler, level, pie])
                    if source.endswith(".cc") and level != "-O2":
                        continue
                    driver = {"gcc": "g++", "clang": "clang++"}[compiler] if source.endswith(".cc") else compiler
                    fpie = ["-fPIE"] if pie == "-pie" else []
                    compile_c(named, "bins/" + source, level, "-w", pie, *fpie, "-lm", "-ldl", compiler=driver)
                    make_bare(named, named + ".bare")
                    yield named, named + ".bare"


def make_kron():
    """The largest program that is at hand."""
    shutil.copy(KRON, "kron")
    make_bare("kron", "kron.bare")
    if not starts_of("kron"):
        raise Skip("kron is stripped")
    yield "kron", "kron.bare"


def make_assembly(*_):
    subprocess.run(["gcc", "-nostartfiles", "-no-pie", "-Wl,--no-as-needed", "-o", "named",
                    os.path.join(BINS, "bare.S")], check=True)
    make_bare("named", "bare")
    yield "named", "bare"


def make_pascal():
    if not shutil.which("fpc"):
        raise Skip("fpc is not installed")
    for level in ("-O-", "-O2", "-O3"):
        named = "shapes" + level
        subprocess.run(["fpc", "-v0", level, "-Xs-", "-FE.", "-o" + named, os.path.join(BINS, "shapes.pas")],
                       check=True, capture_output=True)
        make_bare(named, named + ".bare")
        yield named, named + ".bare"


def make_ocaml():
    if not shutil.which("ocamlopt"):
        raise Skip("ocamlopt is not installed")
    with open("count.ml", "w") as f:
        f.write("let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)\n"
                "module M = Map.Make (String)\n"
                "let m = List.fold_left (fun m i -> M.add (string_of_int i) i m) M.empty [1; 2; 3]\n"
                "let () = M.iter (Printf.printf \"%s %d\\n\") m; Printf.printf \"%d\\n\" (fib 15)\n")
    subprocess.run(["ocamlopt", "-o", "named", "count.ml"], check=True, capture_output=True)
    make_bare("named", "bare")
    # what the linker has to know has names; they are taken from it, for this measurement only
    with open("bare", "r+b") as f:
        data = bytearray(f.read())
        rename_dynamic(data)
        f.seek(0)
        f.write(data)
    yield "named", "bare"


def rename_dynamic(data):
    """Functions of .dynsym become objects."""
    offset, entry, number = (int.from_bytes(data[a:b], "little") for a, b in ((40, 48), (58, 60), (60, 62)))
    for i in range(number):
        h = offset + i * entry
        if int.from_bytes(data[h + 4:h + 8], "little") == 11:  # SHT_DYNSYM
            start, size = (int.from_bytes(data[h + a:h + a + 8], "little") for a in (24, 32))
            for at in range(start, start + size, 24):
                if data[at + 4] & 15 == 2 and data[at + 6:at + 8] != b"\0\0":
                    data[at + 4] = data[at + 4] & 0xF0 | 1


def make_rust():
    rustc = next((p for p in ("/usr/bin/rustc", "/usr/local/bin/rustc") if os.path.exists(p)), None)
    if not rustc:
        raise Skip("rustc is not installed")
    with open("sort.rs", "w") as f:
        f.write("use std::collections::BTreeMap;\n"
                "fn main() { let mut m = BTreeMap::new();\n"
                "for i in 0..100u32 { *m.entry(format!(\"{}\", i % 7)).or_insert(0u32) += i; }\n"
                "let mut v: Vec<_> = m.iter().collect(); v.sort(); println!(\"{:?}\", v); }\n")
    for level in ("0", "3"):
        subprocess.run([rustc, "-C", "opt-level=" + level, "-o", "named" + level, "sort.rs"], check=True, capture_output=True)
        make_bare("named" + level, "bare" + level)
        yield "named" + level, "bare" + level


def precision(kind, make, least):
    measure(kind, list(make()), least)


# ---- what is recorded ----


def said_by(path, options=()):
    r = subprocess.run([*options, path], capture_output=True, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


def recorded(path, trace):
    need(said_by(path) == said_by(path, [KRON, "record", "-q", "-o", trace, "--"]), "it did something else")
    rows = json.loads(subprocess.run([KRON, "report", "--json", trace], capture_output=True, text=True, check=True).stdout)
    rows = [r for r in rows if r["module"] == path]
    need(rows and all(r.get("guessed") for r in rows), rows[:3])
    calls = {int(re.search(r"[+]0x([0-9a-f]+)$", r["function"]).group(1), 16): r["calls"] for r in rows}
    with open(os.path.join(trace, "functions")) as f:
        marked = [line.rstrip("\n").split("\t") for line in f]
    for row in marked:
        if int(row[2], 16) in calls and row[4] == "":
            need("g" in row[6], row)
    return calls


def is_loop(path, at):
    """Does a jump of the function lead back to its first instruction?  Then callgrind counts its turns, too."""
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    return bool(re.search(rf"\tj\w+ +{at:x} ", out))


def counts(make, known):
    """Each function that runs was called as often as its first instruction was executed."""
    named, bare = list(make())[-1]
    bare = os.path.abspath(bare)
    calls, truth = recorded(bare, "t"), starts_of(named)
    for address, name in truth.items():
        if name in known:
            need(calls.get(address) == known[name], f"{name}: {calls.get(address)}")
    executed = callgrind.executed(bare)
    entries = {f["address"]: f["entry"] for f in listed(bare)}
    for address, n in calls.items():
        need(executed.get(address) == n or is_loop(named, address), f"{address:#x}: {n}, not {executed.get(address)}")
    ran = [a for a in truth if executed.get(a) and truth[a] not in CRTSTUFF]
    found = [a for a in ran if a in entries]
    print(f"# {len(found)} of the {len(ran)} functions that ran were found")
    need(len(found) >= FOUND * len(ran), [truth[a] for a in ran if a not in entries])
    missing = [truth[a] for a in found if a not in calls and "refused" not in entries[a]]
    need(not missing, missing)


def one_c():
    compile_c("named", "bins/calc.c", "-no-pie", "-lm")
    make_bare("named", "bare")
    yield "named", "bare"


def data_in_code(_):
    """No guess lies in what is data, and bytes that look like a function are as they were."""
    list(make_assembly())
    out = subprocess.run(["readelf", "-sW", "named"], capture_output=True, text=True, check=True).stdout
    objects = [int(r[1], 16) for r in map(str.split, out.splitlines()) if len(r) >= 8 and r[3] == "OBJECT"]
    starts = sorted(starts_of("named"))
    text = [a for a in objects if starts[0] - 64 < a < starts[-1] + 64]
    need(len(text) >= 4, text)
    need(len(guesses_of("bare")) >= 8, "there are no guesses")
    for f in listed("bare"):
        if f.get("guessed"):
            need(not [a for a in text if f["address"] <= a < f["address"] + f["size"]], f)


def half_named():
    """Who has symbols, or frame information for most of its code, gets no guesses."""
    compile_c("named", "bins/calc.c", "-lm")
    subprocess.run(["strip", "-o", "framed", "named"], check=True)
    subprocess.run(["objcopy", *FRAMES, "named", "symbols"], check=True)
    for path in ("named", "framed", "symbols"):
        need(not guesses_of(path), path)


with Suite("guess") as s:
    s.case("C and C++: nearly every guess is right", precision, "C", make_c, 500)
    s.case("a large program: nearly every guess is right", precision, "kron", make_kron, 500)
    s.case("assembly: nearly every guess is right", precision, "assembly", make_assembly, 8)
    s.case("FreePascal: nearly every guess is right", precision, "FreePascal", make_pascal, 1000)
    s.case("OCaml: nearly every guess is right", precision, "OCaml", make_ocaml, 500)
    s.case("Rust: nearly every guess is right", precision, "Rust", make_rust, 500)
    s.case("data among code is not a function", data_in_code, None)
    s.case("assembly runs as ever, and calls are counted", counts, make_assembly,
           {"work": 55, "check": 10, "twice": 4, "callback": 1, "apply": 1, "show": 1, "print": 2})
    s.case("C runs as ever, and calls are counted", counts, one_c, {})
    s.case("FreePascal runs as ever, and calls are counted", counts, make_pascal, {"P$SHAPES_$$_FIB$LONGINT$$LONGINT": 21891})
    s.case("where symbols or frames say what there is, nothing is guessed", half_named)
