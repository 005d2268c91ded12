#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kron pages --by site: who has allocated what lies on a page.

Ground truth: where each block lies and how often it is touched, as the program says itself; nm and objdump for the place of a
call in a program without symbols."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tap import KRON, Skip, Suite, compile_text, need  # noqa: E402

# Each block is larger than what malloc takes from its heap, so its pages are its own.
C = r"""
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define SIZE (600l * 1024)
#define ASKS(name, what) __attribute__((noinline)) char *name(void) \
    { char *p = what; __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
ASKS(by_malloc, malloc(SIZE))
ASKS(by_calloc, calloc(SIZE / 8, 8))
ASKS(by_realloc, realloc(NULL, SIZE))
ASKS(by_reallocarray, reallocarray(NULL, 8, SIZE / 8))
ASKS(by_aligned_alloc, aligned_alloc(4096, SIZE))
ASKS(by_valloc, valloc(SIZE))
ASKS(by_mmap, mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
ASKS(too_much, malloc((size_t)-1 / 2))
__attribute__((noinline)) void touch(char *p, long n) {
    for (long i = 0; i < SIZE; i += 4096)
        for (long k = 0; k < n; k++) *(volatile char *)(p + i) = 1;
}
int main(int argc, char **argv) {
    const struct { const char *name; char *(*ask)(void); } all[] = {
        {"by_malloc", by_malloc}, {"by_calloc", by_calloc}, {"by_realloc", by_realloc},
        {"by_reallocarray", by_reallocarray}, {"by_aligned_alloc", by_aligned_alloc}, {"by_valloc", by_valloc},
        {"by_mmap", by_mmap}};
    char *p[7], said[7][80];
    if (too_much()) return 2;
    for (int i = 0; i < 7; i++) {
        p[i] = all[i].ask();
        snprintf(said[i], sizeof said[i], "%s %p %d\n", all[i].name, (void *)p[i], i + 1);
    }
    if (argc > 1 && !strcmp(argv[1], "fork")) {
        if (fork()) { int status; wait(&status); return status; }
        printf("child %d\n", getpid());
    }
    for (int i = 0; i < 7; i++) {
        touch(p[i], i + 1);
        fputs(said[i], stdout);
    }
    if (argc > 1 && !strcmp(argv[1], "slow")) usleep(500000); /* kron looks at its mappings once more */
    return 0;
}
"""
CC = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>
struct alignas(128) Wide { char x[600 * 1024]; };
static void say(const char *name, const void *p) { std::printf("%s %p 0\n", name, p); }
__attribute__((noinline)) char *by_new() { return new char[600 * 1024]; }
__attribute__((noinline)) Wide *by_aligned_new() { return new Wide; }
__attribute__((noinline)) char *by_nothrow() { return new (std::nothrow) char[600 * 1024]; }
__attribute__((noinline)) char *by_malloc() { char *p = (char *)malloc(600 * 1024); __asm__ volatile("" : "+r"(p)); return p; }
static volatile size_t huge = (size_t)-1 / 4;
__attribute__((noinline)) long refused() {
    try { char *volatile p = new char[huge]; return !p; } catch (const std::bad_alloc &) { return 1; }
}
__attribute__((noinline)) void fill(std::vector<char> &v) { v.resize(600 * 1024); }
int main() {
    std::vector<char> v;
    if (!refused()) return 2;
    char *a = by_malloc(), *b = by_new(), *d = by_nothrow();
    Wide *c = by_aligned_new();
    fill(v);
    for (long i = 0; i < 600 * 1024; i += 64)
        a[i] = b[i] = c->x[i] = d[i] = v[i] = 1;
    say("by_malloc", a); say("by_new", b); say("by_aligned_new", c); say("by_nothrow", d); say("fill", v.data());
    return 0;
}
"""
# What leaves by a jump and is called by a pointer has an end that nobody sees; what throws has none.  Each mapping is the program's own.
MAPS = r"""
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define SIZE (600l * 1024)
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")
static void *(*volatile p_malloc)(size_t) = malloc, *(*volatile p_calloc)(size_t, size_t) = calloc,
    *(*volatile p_realloc)(void *, size_t) = realloc, *(*volatile p_aligned)(size_t, size_t) = aligned_alloc, *(*volatile p_valloc)(size_t) = valloc;
static volatile size_t huge = (size_t)-1 / 4;
static jmp_buf out;
extern "C" __attribute__((noinline)) void *map(long n) {
    void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); KEEP(p); return p;
}
#define AFTER(name, what) extern "C" __attribute__((noinline)) char *name() { what; \
    char *p = (char *)mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); KEEP(p); return p; }
static void refused() { try { char *volatile p = new char[huge]; (void)p; } catch (const std::bad_alloc &) { } }
static void jump() { longjmp(out, 1); }
static void jumped() { std::set_new_handler(jump); if (!setjmp(out)) { char *volatile p = new char[huge]; (void)p; } std::set_new_handler(nullptr); }
static void *nothing(void *p) { p_calloc(1, 9); return p; }
static void *leaves(void *p) { p_calloc(1, 9); pthread_exit(p); }
static void thread(void *(*f)(void *)) { pthread_t t; pthread_create(&t, nullptr, f, nullptr); pthread_join(t, nullptr); }
static void forked() { if (pid_t child = fork()) { int status; waitpid(child, &status, 0); } else _exit(p_calloc(1, 9) == nullptr); }
AFTER(after_malloc, p_malloc(9)) AFTER(after_calloc, p_calloc(3, 5)) AFTER(after_large, p_calloc(3, SIZE)) AFTER(after_realloc, p_realloc(nullptr, 9))
AFTER(after_aligned, p_aligned(64, 64)) AFTER(after_valloc, p_valloc(9)) AFTER(after_free, free(p_realloc(p_calloc(1, 9), 9999)))
AFTER(after_exception, refused()) AFTER(after_longjmp, jumped()) AFTER(after_thread, thread(nothing)) AFTER(after_exit, thread(leaves))
AFTER(after_fork, forked())
extern "C" __attribute__((noinline)) char *by_map() { char *p = (char *)map(SIZE); KEEP(p); return p; }
int main() {
    const struct { const char *name; char *(*ask)(); } all[] = {
#define A(name) {#name, name}
        A(after_malloc), A(after_calloc), A(after_large), A(after_realloc), A(after_aligned), A(after_valloc), A(after_free), A(after_exception),
        A(after_longjmp), A(after_thread), A(after_exit), A(after_fork), A(by_map)};
    for (const auto &a : all) {
        char *p = a.ask();
        for (long i = 0; i < SIZE; i += 4096) *(volatile char *)(p + i) = 1;
        std::printf("%s %p 1\n", a.name, (void *)p);
    }
    return 0;
}
"""
SIZE = 600 * 1024


def kron(*args, status=0):
    r = subprocess.run([KRON, "pages", *args], capture_output=True, text=True, timeout=300)
    need(r.returncode == status, f"{args}: exit {r.returncode}\n{r.stderr}")
    return r


def pages(*argv):
    """Rows, and what the program says."""
    said = kron("--by", "site", "--json", "-o", "rows", *argv).stdout
    with open("rows", encoding="utf-8") as f:
        return json.load(f), said


def blocks(said):
    return [(name, int(at, 16), int(n)) for name, at, n in re.findall(r"(?m)^(\w+) (0x\w+) (\d+)$", said)]


def within(rows, at, pid=None):
    """Those of a block alone: the first and the last page have others' bytes."""
    return [r for r in rows if at <= int(r["address"], 16) and int(r["address"], 16) + 4096 <= at + SIZE and pid in (None, r["pid"])]


def need_sites(rows, said, n, pid=None):
    found = blocks(said)
    need(len(found) == n, said)
    for name, at, times in found:
        own = within(rows, at, pid)
        need(len(own) >= SIZE // 4096 - 2, f"{name}: {len(own)} pages")
        for r in own:
            need([s["function"] for s in r["allocated_by"]] == [name], f"{name}: {r}")
            need(not times or r["writes"] == times, f"{name}: {r}")
    return found


def each_way(*options):
    compile_text("a", C)
    rows, said = pages("./a", *options)
    need_sites(rows, said, 7)
    asked = {(s["function"], s["blocks"], s["bytes"]) for r in rows for s in r["allocated_by"] if s["function"].startswith("by_")}
    need(asked == {(name, 1, SIZE) for name, _, _ in blocks(said)}, asked)
    need(not any(s["function"] == "too_much" for r in rows for s in r["allocated_by"]), "what was refused lies somewhere")
    need(any(not r["allocated_by"] for r in rows if r["mapping"] == "[stack]"), "the stack was allocated")


def new(*before):
    with open("b.cc", "w", encoding="utf-8") as f:
        f.write(CC)
    subprocess.run(["g++", "-O1", "-g", "-o", "b", "b.cc"], check=True)
    rows, said = pages(*before, "./b")
    found = dict((name, at) for name, at, _ in blocks(said))
    for name in ("by_malloc", "by_new", "by_aligned_new", "by_nothrow"):
        for r in within(rows, found[name]):
            need([s["function"] for s in r["allocated_by"]] == [name], f"{name}: {r}")
    for r in within(rows, found["fill"]):
        need([s["function"].startswith("std::") or s["function"] == "fill" for s in r["allocated_by"]] == [True], r)


def another_allocator():
    """It has an operator new of its own, which calls no malloc."""
    found = glob.glob("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
    if not found:
        raise Skip("no jemalloc")
    new("env", "LD_PRELOAD=" + found[0])


def mapped(allocator=None, *options):
    """What a thread maps is its own, whatever it has asked the allocator for before."""
    before = ["env", "LD_PRELOAD=" + allocator] if allocator else []
    if allocator and not os.path.exists(allocator):
        raise Skip("no " + allocator)
    with open("m.cc", "w", encoding="utf-8") as f:
        f.write(MAPS)
    subprocess.run(["g++", "-O1", "-pthread", "-fno-builtin", *options, "-o", "m", "m.cc"], check=True)
    rows, said = pages("--alloc-fn", "map", *before, "./m")
    for _, at, _ in need_sites(rows, said, 13):
        for r in within(rows, at):
            need([(s["blocks"], s["bytes"]) for s in r["allocated_by"]] == [(1, SIZE)], r)


def counted_once():
    """Allocators that call each other ask once; who is called by the program is the one that is meant."""
    compile_text("once", r"""
        #include <stdlib.h>
        extern void *__libc_malloc(size_t);
        void *malloc(size_t n) { void *p = __libc_malloc(n); __asm__ volatile("" : "+r"(p)); return p; }
        __attribute__((noinline)) char *one(void) { char *p = malloc(100); __asm__ volatile("" : "+r"(p)); return p; }
        __attribute__((noinline)) char *arrays(char *p, size_t n) { p = reallocarray(p, n, 10); __asm__ volatile("" : "+r"(p)); return p; }
        int main(void) {
            for (int i = 0; i < 1000; i++) { one()[1] = 1; char *p = arrays(NULL, 10); p = arrays(p, 1000); p[1] = 1; }
            return 0;
        }""")
    out = kron("--by", "site", "-q", "-n", "1000", "./once").stdout
    of = {name: (n, size) for n, size, name in re.findall(r"(?m) ([\d,]+) +([\d,]+)  (\w+)\+0x\w+ of \S+$", out)}
    need(of["one"] == ("1,000", "100,000") and of["arrays"] == ("2,000", "10,100,000") and "malloc" not in of, out)


def forked():
    """A child touches what its parent has allocated."""
    compile_text("a", C)
    rows, said = pages("./a", "fork")
    child = int(re.search(r"child (\d+)", said)[1])
    need_sites(rows, said, 7, child)


def no_symbols():
    """The place of the call, after which objdump shows the next instruction."""
    compile_text("a", C)
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "a"], capture_output=True, text=True, check=True).stdout
    after = dict(re.findall(r"<(by_\w+)>:\n(?:.*\n)*?.*call .*<(?:malloc|calloc|realloc|reallocarray|aligned_alloc|valloc|mmap)@plt>\n +(\w+):", code))
    subprocess.run(["strip", "a"], check=True)
    rows, said = pages("./a")
    for name, at, _ in blocks(said):
        for r in within(rows, at):
            s, = r["allocated_by"]
            need(s["function"] is None and s["module"] == os.path.realpath("a") and s["offset"] == int(after[name], 16), f"{after[name]} {s}")


def table():
    """Rows add up to all; what several have allocated is nobody's."""
    compile_text("two", r"""
        #include <stdlib.h>
        __attribute__((noinline)) char *one(void) { char *p = malloc(100); __asm__ volatile("" : "+r"(p)); return p; }
        __attribute__((noinline)) char *other(void) { char *p = malloc(100); __asm__ volatile("" : "+r"(p)); return p; }
        __attribute__((noinline)) char *large(void) { char *p = malloc(1 << 20); __asm__ volatile("" : "+r"(p)); return p; }
        int main(void) {
            volatile char *a = one(), *b = other(), *c = large();
            for (int i = 0; i < 1000; i++) a[i % 100] = b[i % 100] = c[i * 1024] = 1;
            return 0;
        }""")
    out = kron("--by", "site", "-q", "-o", "t/", "./two").stdout + kron("--from", "t", "--by", "site", "-n", "1000").stdout
    head = [int(n.replace(",", "")) for n in re.match(r"([\d,]+) reads and ([\d,]+) writes", out).groups()]
    part = out[out.index("Allocation sites"):out.index("\nMappings")]
    rows = re.findall(r"(?m)^ *([\d,]+) +([\d,]+) .*  (\S.*)$", part)
    need([sum(int(r[k].replace(",", "")) for r in rows) for k in (0, 1)] == head, f"{head} {part}")
    of = {r[2].split("+")[0]: int(r[1].replace(",", "")) for r in rows}
    need(of["large"] >= 1000 and of["one"] == of["other"] == 0 and of["(several sites)"] >= 2000, part)
    lines = kron("--by", "site", "--lines", "-n", "1000", "./two").stdout
    of = dict((name, int(n.replace(",", ""))) for n, name in re.findall(r"(?m)^ *[\d,]+ +([\d,]+) .* (one|other)\+0x\w+ of two$", lines))
    need(all(100 <= of[name] <= 1000 for name in ("one", "other")), f"{of} {lines}")


def for_others():
    """Functions that allocate for their callers, by names of C and of C++: the callers are the sites, and only of such calls."""
    with open("w.cc", "w", encoding="utf-8") as f:
        f.write(r"""
            #include <cstdio>
            #include <cstdlib>
            #define KEEP(p) __asm__ volatile("" : "+r"(p))
            extern "C" __attribute__((noinline)) char *get(long n) { char *p = (char *)malloc(n); KEEP(p); return p; }
            namespace pool {
            struct Pool { __attribute__((noinline)) char *get_more(long n); };
            char *Pool::get_more(long n) { char *p = ::get(n); KEEP(p); return p; }
            }
            __attribute__((noinline)) char *by_get() { char *p = get(600 * 1024); KEEP(p); return p; }
            __attribute__((noinline)) char *by_pool() { pool::Pool x; char *p = x.get_more(600 * 1024); KEEP(p); return p; }
            __attribute__((noinline)) char *by_malloc() { char *p = (char *)malloc(600 * 1024); KEEP(p); return p; }
            int main() {
                char *p[] = {by_get(), by_pool(), by_malloc()};
                const char *names[] = {"by_get", "by_pool", "by_malloc"};
                for (int i = 0; i < 3; i++) {
                    for (long k = 0; k < 600 * 1024; k += 4096) p[i][k] = 1;
                    std::printf("%s %p 1\n", names[i], p[i]);
                }
                return 0;
            }""")
    subprocess.run(["g++", "-O1", "-o", "w", "w.cc"], check=True)
    for options, want in (((), ["get", "get", "by_malloc"]), (("get",), ["by_get", "pool::Pool::get_more", "by_malloc"]),
                          (("get", "pool::Pool::get_more"), ["by_get", "by_pool", "by_malloc"]),
                          (("get", "pool::Pool::get_more(long)"), ["by_get", "by_pool", "by_malloc"]),
                          (("get", "_ZN4pool4Pool8get_moreEl"), ["by_get", "by_pool", "by_malloc"])):
        rows, said = pages(*(o for f in options for o in ("--alloc-fn", f)), "./w")
        for (_, at, _), name in zip(blocks(said), want):
            need([[s["function"] for s in r["allocated_by"]] for r in within(rows, at)] == [[name]] * len(within(rows, at)), (options, name))
    r = kron("--by", "site", "--alloc-fn", "no::such", "./w")
    need("no file of the program has a function no::such" in r.stderr, r.stderr)
    r = kron("--alloc-fn", "get", "./w", status=125)
    need("belongs to --by site" in r.stderr, r.stderr)


def names_of_any_kind():
    """One that is no word stands in the trace in another way.  valgrind looks on; it lacks a system call that a recording needs."""
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    for name in "word", "a::b", "operator()(int)", "x" * 300 + "<>":
        r = subprocess.run(["valgrind", "-q", "--error-exitcode=9", "--child-silent-after-fork=yes", KRON, "pages", "-q", "--by", "site",
                            "--alloc-fn", name, "-o", "v", "/bin/true"], capture_output=True, text=True, timeout=300)
        need(r.returncode in (0, 125) and "Invalid" not in r.stderr, f"{name}: {r.returncode} {r.stderr}")


def without():
    """A recording without allocations says so, and the report is as it was."""
    kron("-q", "-o", "u/", "/bin/true")
    plain, by = kron("--from", "u"), kron("--from", "u", "--by", "site")
    need("no allocations were recorded" in by.stderr and by.stdout == plain.stdout, by.stderr)


with Suite("page_sites") as s:
    s.case("malloc and its kin", each_way)
    s.case("... where kron has looked at itself", each_way, "slow")
    s.case("C++'s new, and what was refused", new)
    s.case("an allocator that is brought along", another_allocator)
    s.case("what a thread maps itself, after calls that were not seen to end", mapped)
    s.case("... in a static program", mapped, None, "-static")
    for library in "libjemalloc.so.2", "libtcmalloc_minimal.so.4":  # mimalloc ends a program that new cannot serve
        s.case("... with " + library, mapped, "/usr/lib/x86_64-linux-gnu/" + library)
    s.case("allocators that call each other", counted_once)
    s.case("what a forked process has got", forked)
    s.case("a program without symbols", no_symbols)
    s.case("the table, and lines", table)
    s.case("functions that allocate for others", for_others)
    s.case("names of any kind", names_of_any_kind)
    s.case("a recording without allocations", without)
