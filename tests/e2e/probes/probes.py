#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `kron record -p` counts, against callgrind, ltrace, strace and the programs' own words."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402
import callgrind  # noqa: E402
import insns  # noqa: E402
import json  # noqa: E402


def record(*args, status=0):
    """stdout, stderr; the trace is in ./trace"""
    shutil.rmtree("trace", ignore_errors=True)
    r = subprocess.run([tap.KRON, "record", "-o", "trace", "--when-full", "wait", *args],
                       capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == status, f"exit {r.returncode}\n{r.stderr}")
    tap.need("untraced" not in r.stderr, r.stderr)
    return r.stdout, r.stderr


def samples():
    out = subprocess.run([tap.KRON, "dump", "--json", "trace"], capture_output=True, text=True,
                         check=True).stdout
    return [e for e in map(json.loads, out.splitlines()) if e["kind"] == "event"]


def events():
    """name -> payloads, in order"""
    found = {}
    for e in samples():
        found.setdefault(e["name"], []).append(e["payload"])
    return found


def build(name, *flags):
    tap.compile_c(name, f"bins/{name}.c", *flags)
    return os.path.abspath(name)


def need(program):
    if not shutil.which(program):
        raise tap.Skip(f"{program} is not installed")


def places_of(path, *specs):
    out = subprocess.run([tap.KRON, "list", "--json", *(x for s in specs for x in ("-p", s)),
                          path], capture_output=True, text=True).stdout
    return json.loads(out)["places"]


FUNCTIONS = ["main", "sum", "add", "release", "choose"]


def against_callgrind(what, *flags):
    same_as_callgrind("places", [f"{f}%{what}" for f in FUNCTIONS], *flags)


def same_as_callgrind(program, specs, *flags):
    # callgrind's addresses are those of the process: link at a fixed one; it counts what a stub
    # of the linker executes as the call's
    path = build(program, "-no-pie", "-fno-plt", *flags)
    plain = subprocess.run([path], capture_output=True, text=True).stdout
    truth = callgrind.executed(path)
    places = places_of(path, *specs)
    out, _ = record(*(x for s in specs for x in ("-p", s)), "--", path)
    tap.need(out == plain, out)
    got = {name: len(v) for name, v in events().items()}
    refused = [p for p in places if p.get("refused", "not-reached") != "not-reached"]
    checked = 0
    for p in places:
        wanted = truth.get(p["address"], 0)
        if "refused" not in p:
            tap.need(got.get(p["event"], 0) == wanted,
                     f"{p['event']} at {p['address']:#x} ({p['tactic']}): "
                     f"{got.get(p['event'], 0)}, executed {wanted} times")
            checked += 1
    tap.need(checked and len(refused) <= len(places) // 50, f"{len(refused)} of {len(places)}")


def behind_calls():
    """As often as the call is executed, though other ways lead to where it returns."""
    # but for what _start calls
    same_as_callgrind("calc", ["/^[a-z]/%calls%after"], "-O2")


# ---- arguments and results ----

def own_calls():
    """What the program asks malloc for, and what it gets, by its own source."""
    path = build("places")
    record("-p", "malloc%callers size=$arg1", "-p", "malloc%after p=$retval",
           "-p", "free%callers p=$arg1", "-p", "chosen=choose n=$arg1",
           "-p", "result=choose%return $retval", "--", path)
    found = events()
    sizes = next(v for k, v in found.items() if k.endswith("%call") and "add" in k)
    tap.need(sizes == [16 + 8 * (i % 5) for i in range(40)], sizes)
    got = next(v for k, v in found.items() if k.endswith("%after"))
    given = next(v for k, v in found.items() if k.endswith("%call") and "release" in k)
    tap.need(got == given[::-1] and len(set(got)) == 40, (got, given))
    tap.need(found["chosen"] == list(range(50)), found["chosen"])

    def choose(n):
        return {0: n + 3, 1: n * 5, 2: n ^ 0x55, 3: n >> 1, 4: -n & 0xffffffff}.get(n % 7, 1)
    tap.need(found["result"] == [choose(n) for n in range(50)], found["result"])


def conditional_returns():
    """The source says how often each way out is taken."""
    path = build("leaves")
    plain = subprocess.run([path], capture_output=True, text=True).stdout
    out, _ = record("-p", "leave%return", "-p", "leave%return count:3", "--", path)
    tap.need(out == plain, out)
    got = sorted(len(v) for v in events().values())
    tap.need(got == [400, 600], got)
    info = subprocess.run([tap.KRON, "info", "--json", "trace"], capture_output=True, text=True,
                          check=True).stdout
    tap.need(json.loads(info)["counters"][3] == 1000, info)


def addresses():
    """Effective addresses of a walk over memory that the program prints."""
    with open("walk.c", "w") as f:
        f.write("""#include <stdio.h>
            int table[64];
            __attribute__((noinline)) void walk(int *t, long n)
            { for (long i = 0; i < n; i++) __asm__ volatile("movl $1, (%0,%1,4)"
                : : "r"(t), "r"(i) : "memory"); }
            int main(void) { walk(table, 64); printf("%p\\n", (void *)table); return 0; }""")
    subprocess.run([*tap.CC, "-O2", "-no-pie", "-o", "walk", "walk.c"], check=True)
    out, _ = record("-p", "at=walk%stores $addr", "-p", "after=walk%stores%after $addr", "--",
                    "./walk")
    first = int(out, 16)
    tap.need(events()["at"] == [first + 4 * i for i in range(64)], events()["at"])
    tap.need(events()["after"] == events()["at"], events()["after"])


def against_ltrace():
    need("ltrace")
    path = build("places")
    r = subprocess.run(["ltrace", "-o", "log", "-e", "malloc+free", path], capture_output=True)
    with open("log") as f:
        text = f.read()
    if r.returncode or "malloc" not in text:
        raise tap.Skip("ltrace does not work here")
    theirs = [int(x) for x in re.findall(r"malloc\((\d+)\)", text)]
    record("-p", "m=malloc%callers $arg1", "-p", "f=free%callers", "--", path)
    found = events()
    tap.need(found["m"] == theirs, (found["m"], theirs))
    tap.need(len(found["f"]) == len(re.findall(r"free\(", text)), found["f"])


# ---- groups, numbers, counters ----

def levels():
    path = build("places")
    with open("my.probe", "w") as f:
        f.write("# mine\nlevel hot = 3\nlevel cold = 9\n"
                "hot:choose_in=choose $arg1\ncold:77=sum\n")
    record("-P", "my.probe", "-p", "hot:=release", "--", path)
    got = samples()
    tap.need({(e["name"], e["level"]) for e in got} ==
             {("choose_in", 3), ("sum", 9), ("release", 3)}, got[:3])
    tap.need({e["event"] for e in got if e["name"] == "sum"} == {2 * 77}, "the number")
    record("--filter", "208", "-P", "my.probe", "--", path)  # 9 and 3
    tap.need({e["name"] for e in samples()} == {"choose_in", "sum"}, "both")
    record("--filter", "200", "-P", "my.probe", "--", path)
    tap.need({e["name"] for e in samples()} == {"sum"}, "level 9 only")


def functions_too():
    path = build("places")
    record("-F", "sum", "-p", "inner=mix_is_inlined_so:1", "-p", "c=choose", "--", path)
    out = subprocess.run([tap.KRON, "report", "--json", "trace"], capture_output=True, text=True,
                         check=True).stdout
    tap.need([(r["function"], r["calls"]) for r in json.loads(out)] == [("sum", 50)], out)
    tap.need(len(events()["c"]) == 50, events())
    out = subprocess.run([tap.KRON, "replay", "trace"], capture_output=True, text=True).stdout
    tap.need(len(re.findall(r"^.*\* c$", out, re.M)) == 50, out[:500])


def mistakes():
    path = build("places")
    r = subprocess.run([tap.KRON, "record", "-p", "main $foo", path], capture_output=True,
                       text=True)
    tap.need(r.returncode == 125 and "<-p 1>:1:6: there is no $foo" in r.stderr and
             "\n  main $foo\n       ^\n" in r.stderr, r.stderr)
    _, err = record("-p", "mian", "-p", "nolib:f", "--", path)
    tap.need("<-p 1>:1: mian: " in err and "is it main" in err, err)
    tap.need("<-p 2>:1: nolib:f: the program loaded no module that this means" in err, err)
    with open("two.probe", "w") as f:
        f.write("nolib:f\nother:g\n")
    with open("three.probe", "w") as f:
        f.write("nolib:f\nother:g\nmain\n")
    _, err = record("-P", "mpi", "-P", "two.probe", "-P", "three.probe", "--", path)
    tap.need("pack mpi: the program loaded no module that it is about: it knows Open MPI 4 only" in err, err)
    tap.need("two.probe: the program loaded no module that its probes mean" in err, err)
    tap.need("three.probe: nolib:f and 1 more: the program loaded no module that they mean" in err, err)
    tap.need(err.count("loaded no module") == 3, err)


def reported():
    """report --events says what the samples are."""
    path = build("places")
    record("-p", "n=choose $arg1", "-p", "add size=$arg3", "-p", "abort", "-p", "release", "--",
           path)
    out = subprocess.run([tap.KRON, "report", "--events", "--json", "trace"], capture_output=True,
                         text=True, check=True).stdout
    rows = {r["event"]: r for r in json.loads(out)}
    tap.need((rows["n"]["count"], rows["n"]["lowest"], rows["n"]["highest"],
              rows["n"]["average"]) == (50, 0, 49, 24.5), rows["n"])
    tap.need((rows["add"]["count"], rows["add"]["lowest"], rows["add"]["highest"]) ==
             (40, 16, 48), rows["add"])
    tap.need(rows["release"]["count"] == 1 and rows["release"]["payload"] is None, rows)
    out = subprocess.run([tap.KRON, "report", "trace"], capture_output=True, text=True,
                         check=True).stdout
    tap.need(re.search(r"^ +50 .* n arg1 \[places\]$", out, re.M), out)


def large(name, *command):
    """All blocks of a large program, every instruction counted: the same output."""
    need(name)
    plain = subprocess.run(command, capture_output=True, text=True)
    for spec in ("*%blocks count:1", "*%insns count:2"):
        out, err = record("-p", spec, "--", *command, status=plain.returncode)
        tap.need(out == plain.stdout, f"{spec}: {out[:300]}\n{err}")
        tap.need("loaded no module" not in err, err)


# ---- USDT ----

def markers():
    try:
        path = build("markers")
    except subprocess.CalledProcessError:
        raise tap.Skip("sys/sdt.h is not installed")
    out, _ = record("-p", "%demo:turn i=$arg1", "-p", "k=%demo:turn $arg2", "-p",
                    "g=%demo:guarded $arg1", "-p", "%demo:end", "--", path)
    found = events()
    tap.need(out == "25 1\n", f"the semaphore was not raised: {out}")
    tap.need(found["demo:turn"] == list(range(25)), found)
    tap.need(found["k"] == [42] * 25, found)
    tap.need(found["g"] == [2 * i for i in range(25)], found)
    tap.need(len(found["demo:end"]) == 1, found)


# ---- packs ----

def pack_malloc():
    need("ltrace")
    path = build("places")
    record("-P", "malloc", "--", path)
    found = events()
    sizes = [16 + 8 * (i % 5) for i in range(40)]
    tap.need(found["malloc"][:40] == sizes, found["malloc"])
    tap.need(found["malloc_result"][:40] == found["free"][:40][::-1], "blocks")


def pack_pthread():
    with open("threads.c", "w") as f:
        f.write("""#include <pthread.h>
            #include <stdio.h>
            static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
            static void *work(void *p)
            { for (int i = 0; i < 100; i++) { pthread_mutex_lock(&m); (*(int *)p)++;
                pthread_mutex_unlock(&m); } return p; }
            int main(void) { pthread_t t[4]; int n = 0;
              for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, &n);
              for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
              printf("%d %p\\n", n, (void *)&m); return 0; }""")
    subprocess.run([*tap.CC, "-O2", "-o", "threads", "threads.c", "-pthread"], check=True)
    out, _ = record("-P", "pthread", "--", "./threads")
    found = events()
    count, mutex = out.split()
    tap.need(count == "400", out)
    mutex = int(mutex, 16) & 0xffffffff
    tap.need(found["mutex_lock"].count(mutex) == 400, found["mutex_lock"][:5])
    tap.need(found["mutex_unlock"].count(mutex) == 400, "unlock")
    tap.need(len(found["pthread_create"]) == 4 and len(found["pthread_join"]) == 4, found.keys())


def strace_counts(*command):
    need("strace")
    r = subprocess.run(["strace", "-f", "-qq", "-o", "log", *command], capture_output=True)
    if r.returncode:
        raise tap.Skip("strace does not work here")
    with open("log") as f:
        return f.read()


def pack_io():
    with open("io.c", "w") as f:
        f.write("""#include <fcntl.h>
            #include <sys/uio.h>
            #include <unistd.h>
            int main(void) { char b[300]; int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
              for (int i = 1; i < 30; i++) if (write(fd, b, i * 10) != i * 10) return 1;
              lseek(fd, 0, SEEK_SET);
              while (read(fd, b, 300) > 0) ;
              struct iovec v[3] = {{b, 7}, {b, 8}, {b, 9}};
              if (pwrite(fd, b, 250, 0) != 250 || pread(fd, b, 200, 4300) < 0) return 2;
              if (writev(fd, v, 3) != 24 || lseek(fd, -5, SEEK_CUR) < 0 || readv(fd, v, 2) != 5) return 3;
              return close(fd); }""")
    subprocess.run([*tap.CC, "-O2", "-w", "-o", "io", "io.c"], check=True)
    log = strace_counts("./io")
    record("-P", "io", "--", "./io")
    found = events()
    writes = [int(x) for x in re.findall(r"write\(3, .*, (\d+)\)", log)]
    tap.need(found["write"] == writes and len(writes) == 29, found["write"])
    at = log.index('"file"')  # after what the dynamic linker reads
    results = [int(x) for x in re.findall(r"\bread\(3.* = (\d+)", log[at:])]
    tap.need(found["read_result"] == results and len(results) > 10, (found, results))
    for name, asked in ("pread", 200), ("pwrite", 250), ("readv", 2), ("writev", 3):
        results = [int(x) for x in re.findall(rf"\b{name}(?:64)?\(3.* = (\d+)", log[at:])]
        tap.need((found[name], found[name + "_result"]) == ([asked], results) and len(results) == 1, (name, found, results))
    tap.need(len(found["lseek"]) == 2 and len(found["close"]) == 1, found.keys())


def pack_process():
    record("-P", "process", "--", "/bin/sh", "-c", "/bin/true; /bin/true; (exit 3); exit 0")
    found = events()
    log = strace_counts("/bin/sh", "-c", "/bin/true; /bin/true; (exit 3); exit 0")
    children = len(re.findall(r"(?:clone3?|v?fork)(?:\(| resumed>).* = \d+", log))
    mine = len(found.get("fork", [])) + len(found.get("vfork", []))
    tap.need(mine == children == 3, (mine, children))
    tap.need(3 in found["_exit"], found["_exit"])
    begun = len(re.findall(r"execve\(", log)) - 1  # the shell itself is strace's
    tap.need(len(found["execve"]) == begun == 2, (len(found["execve"]), log))


EXECUTES = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    extern char **environ;
    /* One that becomes another program, after the same has failed; both say so. */
    int main(int argc, char **argv) {
      char *to[] = {argv[0], "child", 0};
      int at = atoi(argv[1]), fd;
      if (argc == 2) { puts("/was"); return 0; }
      puts("/nonexist"); fflush(stdout);
      if (execve("/nonexist", to, environ) != -1) return 1;
      if (at == 0 && !vfork()) { execve(argv[0], to, environ); _exit(9); }
      if (at == 1 && !fork()) { execl(argv[0], argv[0], "child", (char *)0); _exit(9); }
      if (at == 2 && !vfork()) { execvp(argv[0], to); _exit(9); }
      if (at == 3) execv(argv[0], to);
      if (at == 4 && (fd = open(argv[0], O_RDONLY)) >= 0) fexecve(fd, to, environ);
      wait(0);
      return 0; }"""


def executed(*flags):
    """A hook stands where the program executes another one, and does not come back: the probe there is earlier."""
    tap.compile_text("executes", EXECUTES, *flags)
    module = "" if "-static" in flags else "libc:"
    for way in range(5):
        probe = "fexecve" if way == 4 else "execve"
        out, _ = record("-p", f"E={module}{probe} f=$arg1", "-p", f"{module}{probe} count:2", "--", "./executes", str(way), "go")
        lines = [line for line in out.splitlines() if way < 4 or line != "/nonexist"]
        counters = json.loads(subprocess.run([tap.KRON, "info", "--json", "trace"], capture_output=True, text=True).stdout)["counters"]
        tap.need((len(events().get("E", [])), counters[2]) == (len(lines), len(lines)), f"way {way}: {events()}, {counters}, {out}")


def pack_libstdcxx():
    with open("throw.cc", "w") as f:
        f.write("""#include <cstdio>
            int main() { int n = 0; for (int i = 0; i < 33; i++)
              try { if (i % 3 == 0) throw i; try { throw 1.5; } catch (double) { n++; throw; } }
              catch (...) { n++; } std::printf("%d\\n", n); }""")
    subprocess.run([os.environ.get("CXX", "g++"), "-O2", "-o", "throw", "throw.cc"], check=True)
    out, _ = record("-P", "libstdcxx", "--", "./throw")
    found = {k: len(v) for k, v in events().items()}
    tap.need(out == "55\n" and found == {"throw": 33, "catch": 55, "rethrow": 22}, found)


def pack_python3():
    """Debian's python3 has none: a program with such notes, and a plain word for python3."""
    with open("python.c", "w") as f:
        f.write("""#define _SDT_HAS_SEMAPHORES 1
            #include <sys/sdt.h>
            #define S(n) unsigned short n __attribute__((section(".probes")))
            S(python_gc__start_semaphore); S(python_gc__done_semaphore);
            int main(void) { for (int i = 0; i < 3; i++) {
              if (python_gc__start_semaphore) DTRACE_PROBE1(python, gc__start, i);
              if (python_gc__done_semaphore) DTRACE_PROBE1(python, gc__done, i * 7L); } }""")
    if subprocess.run([*tap.CC, "-O2", "-o", "python", "python.c"],
                      capture_output=True).returncode:
        raise tap.Skip("sys/sdt.h is not installed")
    record("-P", "python3", "--", "./python")
    tap.need(events() == {"gc__start": [0, 1, 2], "gc__done": [0, 7, 14]}, events())


def by_soname():
    """A library is meant by the name that others are linked with, too: here the file's is quite another one."""
    with open("lib.c", "w") as f:
        f.write("int twice(int n) { return 2 * n; }\n")
    with open("p.c", "w") as f:
        f.write("int twice(int); int main(void) { return twice(3) + twice(4) != 14; }\n")
    subprocess.run([*tap.CC, "-O2", "-shared", "-fPIC", "-Wl,-soname,libodd.so.4", "-o", "libsums-2.7.so", "lib.c"], check=True)
    os.symlink("libsums-2.7.so", "libodd.so.4")
    subprocess.run([*tap.CC, "-O2", "-o", "p", "p.c", "libsums-2.7.so", "-Wl,-rpath," + os.getcwd()], check=True)
    for name in "libodd.so.4", "libodd*", "libodd", "/^libodd/", "libsums-2.7.so", "libsums", os.path.abspath("libodd.so.4"):
        record("-p", f"{name}:twice n=$arg1", "--", "./p")
        tap.need(events() == {"twice": [3, 4]}, f"{name}: {events()}")
    for glob in "libodd.so.4", "*odd*", "libsums*":
        record("-L", glob, "-F", "twice", "--", "./p")
        out = subprocess.run([tap.KRON, "report", "--json", "trace"], capture_output=True, text=True, check=True).stdout
        tap.need([f["calls"] for f in json.loads(out) if f["function"] == "twice"] == [2], f"-L {glob}: {out}")


with tap.Suite("probes") as s:
    for what in ("blocks", "calls", "branches", "loads", "stores", "insns"):
        s.case(f"%{what} are executed as often as callgrind says", against_callgrind, what)
    s.case("... without optimisation", against_callgrind, "insns", "-O0")
    s.case("after calls as often as they are executed", behind_calls)
    s.case("arguments, results, values after calls", own_calls)
    s.case("the ways out of a function, a conditional jump among them", conditional_returns)
    s.case("effective addresses", addresses)
    s.case("calls of a library's function as ltrace sees them", against_ltrace)
    s.case("levels by name, event numbers, the filter", levels)
    s.case("functions beside probes", functions_too)
    s.case("a library by its soname", by_soname)
    s.case("report --events", reported)
    s.case("every block and every instruction of bash", large, "bash", "bash", "-c",
           "for i in {1..200}; do a[$((i % 7))]+=$i; done; printf '%s\\n' \"${a[@]}\"; (exit 3); echo $?")
    s.case("... of perl", large, "perl", "perl", "-e",
           'my %h; $h{$_ % 10} .= sprintf("%x,", $_) for 1..3000; print "$_ $h{$_}\\n" for sort keys %h')
    s.case("what is wrong is said", mistakes)
    s.case("USDT probes, their arguments and semaphores", markers)
    s.case("pack malloc", pack_malloc)
    s.case("pack pthread", pack_pthread)
    s.case("pack io", pack_io)
    s.case("pack process", pack_process)
    s.case("a program that executes another one", executed)
    s.case("... a static one", executed, "-static")
    s.case("pack libstdcxx", pack_libstdcxx)
    s.case("pack python3", pack_python3)
