#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 900
# timeout: 600
"""twins.py - functions found in stripped binaries, against the symbols of unstripped twins.

Each subject is built in many ways and stripped.  What the function finder says about the
stripped copy, from .eh_frame, .dynsym and the code, is compared with readelf's symbols of the
other: no function that is none (a .cold part, a PLT stub, a label), and at least 99.5 % of all;
in a single small file one may be missed (clang gives __clang_call_terminate no frame).  Not in
the ground truth: symbols of GCC's start files that have neither size nor frame information.
The same for Debian's libc, without its dynamic symbols, if its debug symbols are installed.

Then the ways to separate symbols: debug file by build-id, by debug link, .gnu_debugdata.

    twins.py            all, prints TAP
    twins.py NAME...    only these subjects ("gcc-O2-pie shapes"), with details
"""

import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SRC = os.environ.get("KRON_TOP_SRC", os.path.dirname(os.path.abspath(__file__)) + "/../../..")
BUILD = os.environ.get("KRON_TOP_BUILD", SRC)
DUMP = os.environ.get("DUMP_FUNCTIONS", BUILD + "/tests/unit/inject/dump_functions")
COLD = re.compile(r"\.cold(\.\d+)?(@.*)?$")
TWINS = SRC + "/tests/bins/twins/"
SYMTAB, DYNSYM, DEBUG_FILE, DEBUGDATA, EH_FRAME = 1, 2, 4, 8, 16

tests = 0
failed = 0


def report(ok, what, notes=()):
    global tests, failed
    tests += 1
    failed += not ok
    for note in notes:
        print("#", note)
    print("ok" if ok else "not ok", tests, "-", what, flush=True)


def run(*args, **more):
    return subprocess.run(args, check=True, capture_output=True, text=True, **more).stdout


class Truth:
    """What the symbols say."""

    def __init__(self, path):
        self.names = collections.defaultdict(list)
        sized = set()
        for line in run("readelf", "-sW", path).splitlines():
            f = line.split()
            if len(f) < 8 or not f[0][:-1].isdigit() or f[6] in ("UND", "ABS"):
                continue
            if f[3] not in ("FUNC", "IFUNC") or int(f[1], 16) == 0:
                continue
            self.names[int(f[1], 16)].append(f[7])
            if int(f[2], 0):
                sized.add(int(f[1], 16))
        self.cold = {a for a, n in self.names.items() if all(COLD.search(x) for x in n)}
        self.functions = set(self.names) - self.cold
        self.sure = self.functions & sized


class Found:
    def __init__(self, path, sources, *more):
        self.functions, self.parts, self.name = set(), {}, {}
        rows = [line.split() for line in run(DUMP, "-s", str(sources), *more, path).splitlines()]
        for start, _, kind, parent, name in rows:
            self.name[int(start, 16)] = name
            if kind == "f":
                self.functions.add(int(start, 16))
            else:
                self.parts[int(start, 16)] = int(rows[int(parent)][0], 16)


def compare(truth, found, notes):
    """Returns (false functions, functions, not found)."""
    false = found.functions - truth.functions
    missing = truth.sure - found.functions
    for a in sorted(false):
        notes.append("no function: %x %s" % (a, truth.names.get(a)))
    for a in sorted(missing):
        notes.append("not found: %x %s" % (a, truth.names[a]))
    for part, parent in found.parts.items():
        base = COLD.sub("", truth.names[part][0]) if part in truth.cold else None
        if base and base not in truth.names[parent]:
            notes.append("%x %s taken for a part of %s" % (part, base, truth.names[parent]))
    return len(false), len(truth.sure), len(missing)


def drop_section_headers(path, out):
    data = bytearray(open(path, "rb").read())
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HH", data, 60, 0, 0)
    with open(out, "wb") as f:
        f.write(data)


def build_ways():
    for cc, cxx in (("gcc", "g++"), ("clang", "clang++")):
        if not shutil.which(cc) or not shutil.which(cxx):
            continue
        for level in ("-O1", "-O2", "-O3", "-Os"):
            yield "%s%s-pie" % (cc, level), cc, cxx, [level, "-fPIE", "-pie"]
        yield "%s-O2-nopie" % cc, cc, cxx, ["-O2", "-fno-pie", "-no-pie"]
        yield "%s-Os-nopie" % cc, cc, cxx, ["-Os", "-fno-pie", "-no-pie"]
        yield "%s-O2-frame" % cc, cc, cxx, ["-O2", "-fno-omit-frame-pointer"]
        yield "%s-O2-sections" % cc, cc, cxx, ["-O2", "-ffunction-sections", "-Wl,--gc-sections"]
        yield "%s-O2-cet" % cc, cc, cxx, ["-O2", "-fcf-protection=full"]
    if shutil.which("gcc"):
        yield "gcc-O2-lto", "gcc", "g++", ["-O2", "-flto"]
        yield "gcc-O2-pgo", "gcc", "g++", ["-O2", "PROFILE"]
        yield "gcc-O2-nopie-pgo", "gcc", "g++", ["-O2", "-fno-pie", "-no-pie", "PROFILE"]
        yield "gcc-O2-gold", "gcc", "g++", ["-O2", "-fuse-ld=gold"]
        yield "gcc-O2-lld", "gcc", "g++", ["-O2", "-fuse-ld=lld"]
        yield "gcc-O2-static", "gcc", "g++", ["-O2", "-static"]
        yield "gcc-O2-shared", "gcc", "g++", ["-O2", "-fPIC", "-shared"]


# How they are linked: what is compiled is the same.
LINKED = ("-fuse-ld=gold", "-fuse-ld=lld", "-static")


def compile_one(compiler, flags, sources, out):
    if "PROFILE" in flags:
        flags = [f for f in flags if f != "PROFILE"]
        where = out + ".profile"
        run(compiler, *flags, "-fprofile-generate=" + where, *sources, "-o", out)
        subprocess.run([out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        flags = flags + ["-fprofile-use=" + where, "-Wno-missing-profile",
                         "-Wno-coverage-mismatch"]
    if not set(flags) & set(LINKED):
        run(compiler, *flags, *sources, "-o", out)
        return
    objects = []
    for source in sources:
        objects.append(os.path.join(os.path.dirname(out), os.path.basename(source) + ".o"))
        if not os.path.exists(objects[-1]):
            run(compiler, *(f for f in flags if f not in LINKED), "-c", source, "-o", objects[-1])
    run(compiler, *flags, *objects, "-o", out)


def subjects(wanted):
    programs = {"shapes": ["shapes.c", "shapes_extra.c"], "throws": ["throws.cc"]}
    for way, cc, cxx, flags in build_ways():
        for name, sources in programs.items():
            if not wanted or way + " " + name in wanted:
                yield way, name, cxx if name == "throws" else cc, flags, \
                    [TWINS + s for s in sources]


def test_twins(folder, wanted):
    totals = collections.Counter()
    for way, name, compiler, flags, sources in subjects(wanted):
        twin = "%s/%s-%s" % (folder, name, way)
        notes = []
        try:
            compile_one(compiler, flags, sources, twin)
        except subprocess.CalledProcessError as e:
            print("# %s %s: not built: %s" % (way, name, e.stderr.strip().split("\n")[0]))
            continue
        run("strip", twin, "-o", twin + ".stripped")
        drop_section_headers(twin + ".stripped", twin + ".bare")
        truth = Truth(twin)
        false, n, missing = compare(truth, Found(twin + ".stripped", 0), notes)
        bare = false, n, missing
        if "-static" not in flags: # static programs have no .eh_frame_hdr to find it by
            bare = compare(truth, Found(twin + ".bare", 0), [])
        named = compare(truth, Found(twin, 0), notes)
        totals.update(n=n, missing=missing, cold=len(truth.cold))
        ok = false == 0 and missing <= max(1, 0.005 * n) and bare == (false, n, missing) and \
            named == (0, n, 0)
        report(ok, "%s %s: %d functions, %d cold parts, %d false, %d not found" %
               (way, name, n, len(truth.cold), false, missing), [] if ok else notes[:40])
    if totals["n"]:
        report(totals["missing"] <= 0.005 * totals["n"] and totals["cold"] > 0,
               "%d functions in all, %.3f %% found, %d cold parts" %
               (totals["n"], 100 - 100 * totals["missing"] / totals["n"], totals["cold"]))


def debug_file(path):
    m = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path))
    return m and "/usr/lib/debug/.build-id/%s/%s.debug" % (m[1][:2], m[1][2:])


def test_libc():
    """Real code with much assembly; __restore_rt returns from signals and is not a function."""
    for lib in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libresolv.so.2"):
        path, notes = "/lib/x86_64-linux-gnu/" + lib, []
        debug = os.path.exists(path) and debug_file(path)
        if not debug or not os.path.exists(debug):
            report(True, lib + " # SKIP its debug symbols (libc6-dbg) are not installed")
            continue
        truth = Truth(debug)
        false, n, missing = compare(truth, Found(path, EH_FRAME), notes)
        _, _, missing_named = compare(truth, Found(path, 0), notes)
        ok = not false and missing <= 0.005 * n and not missing_named
        report(ok, "%s: %d functions, %d cold parts, %d false, %d not found" %
               (lib, n, len(truth.cold), false, missing), notes)


def same_names(found, truth):
    """Is every function known by one of its own names, but for those without a symbol?"""
    return all(found.name[a] in [n.split("@")[0] for n in truth.names[a]]
               for a in found.functions)


def test_separate_symbols(folder):
    twin = folder + "/separate"
    run("gcc", "-O2", "-g", "-Wl,--build-id=0x0123456789abcdef", TWINS + "shapes.c",
        TWINS + "shapes_extra.c", "-o", twin)
    truth = Truth(twin)
    stripped, debug = folder + "/stripped", folder + "/separate.debug"
    run("strip", twin, "-o", stripped)
    run("objcopy", "--only-keep-debug", twin, debug)
    report(not same_names(Found(stripped, 0), truth), "a stripped file has no names")

    store = folder + "/debug"
    os.makedirs(store + "/.build-id/01")
    shutil.copy(debug, store + "/.build-id/01/23456789abcdef.debug")
    report(same_names(Found(stripped, DEBUG_FILE | EH_FRAME, "-d", store), truth),
           "debug file by build-id")
    run("gcc", "-O2", "-g", "-Wl,--build-id=0x0123456789abcd00", TWINS + "shapes.c",
        TWINS + "shapes_extra.c", "-o", folder + "/other")
    shutil.copy(folder + "/other", store + "/.build-id/01/23456789abcdef.debug")
    report(not same_names(Found(stripped, DEBUG_FILE | EH_FRAME, "-d", store), truth),
           "another build's debug file is not used")
    shutil.rmtree(store)

    linked = folder + "/linked"
    run("objcopy", "--add-gnu-debuglink=" + debug, stripped, linked)
    report(same_names(Found(linked, DEBUG_FILE | EH_FRAME, "-d", store), truth),
           "debug link, beside the file")
    os.mkdir(folder + "/.debug")
    os.rename(debug, folder + "/.debug/separate.debug")
    report(same_names(Found(linked, DEBUG_FILE | EH_FRAME, "-d", store), truth),
           "debug link, in .debug")
    os.makedirs(store + os.path.realpath(folder))
    os.rename(folder + "/.debug/separate.debug",
              store + os.path.realpath(folder) + "/separate.debug")
    report(same_names(Found(linked, DEBUG_FILE | EH_FRAME, "-d", store), truth),
           "debug link, in the debug folder")

    mini, data = folder + "/mini", folder + "/mini.xz"
    run("objcopy", "--only-keep-debug", twin, mini)
    run("objcopy", "--strip-debug", mini)
    with open(data, "wb") as f:
        subprocess.run(["xz", "-c", mini], check=True, stdout=f)
    run("objcopy", "--add-section=.gnu_debugdata=" + data, stripped, folder + "/with-data")
    report(same_names(Found(folder + "/with-data", DEBUGDATA | EH_FRAME), truth),
           ".gnu_debugdata")
    broken = bytearray(open(data, "rb").read())
    broken[len(broken) // 2] ^= 0x55
    with open(data, "wb") as f:
        f.write(broken)
    run("objcopy", "--add-section=.gnu_debugdata=" + data, stripped, folder + "/with-broken")
    found = Found(folder + "/with-broken", DEBUGDATA | EH_FRAME)
    report(truth.sure <= found.functions, "damaged .gnu_debugdata gives no names, no harm")


def test_speed():
    """Discovery of large programs; the limit is far above what an idle machine needs."""
    for path, limit_ms in (("/usr/bin/gdb", 60), ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 30)):
        if not os.path.exists(path):
            continue
        best = min(int(run(DUMP, "-t", path)) for _ in range(7)) / 1000
        report(best < 3 * limit_ms, "%s: %.1f ms (aim: %d ms)" % (path, best, limit_ms))


def main():
    wanted = sys.argv[1:]
    if not os.path.exists(DUMP) or not shutil.which("gcc") or not shutil.which("readelf"):
        print("1..0 # SKIP needs gcc, binutils and tests/unit/inject/dump_functions")
        return 0
    folder = tempfile.mkdtemp(prefix="kron-twins.")
    test_twins(folder, wanted)
    if not wanted:
        test_libc()
        test_separate_symbols(folder)
        test_speed()
    print("1..%d" % tests)
    if failed:
        print("# the files are in", folder)
    else:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
