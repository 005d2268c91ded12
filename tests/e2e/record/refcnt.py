#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""librefcnt: counters that programs read while they run, against what their assembly says."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap  # noqa: E402

LIBRARY = f"{tap.BUILD}/board/librefcnt"
INCLUDE = f"-I{tap.SRC}/include"
PAGES = 8
UNKNOWN = 2**64 - 1


def nodes():
    """The machine's nodes with processors, as the kernel writes them."""
    try:
        with open("/sys/devices/system/node/has_cpu") as f:
            return f.read().strip()
    except OSError:
        return "0"


def build(*flags):
    if not nodes().isdigit():
        raise tap.Skip("several nodes: librefcnt refuses them")
    tap.compile_c("refcnt", "bins/refcnt.c", INCLUDE, *flags, f"{LIBRARY}/librefcnt.a")


def lines_of(text):
    return [(words[0], words[1:]) for words in (line.split() for line in text.splitlines())]


def traced(*argv, tool=("pages", "-q", "-o", "counts"), status=0):
    r = subprocess.run([tap.KRON, *tool, "--", *argv], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == status, r)
    return r.stdout


def touched(rounds, pages=range(PAGES - 1)):
    return [f"{(i + 1) * rounds},{rounds}" if i in pages else "0,0" for i in range(PAGES)]


def references(rounds):
    return [(i + 2) * rounds if i < PAGES - 1 else 0 for i in range(PAGES)]


def counter(n, most):
    """What refcnt(5)'s counter and its mirror hold after so many references, one after the other."""
    hardware = mirror = 0
    for _ in range(n):
        hardware += 1
        if hardware == most:
            mirror, hardware = mirror + hardware, 0
    return hardware, mirror


def own(*flags):
    """a program looks at itself: before, after, when a thread of its has ended, and when kron has noticed that"""
    build(*flags)
    said = lines_of(traced("./refcnt"))
    looks = [words for word, words in said if word in ("none", "touched", "thread")]
    tap.need(looks == [touched(0), touched(1000), touched(1500), touched(1500)], looks)
    said = dict(said)
    both = [counter(n, 2047) for n in references(1500)]
    tap.need(said["hardware"] == [str(h) for h, _ in both], said["hardware"])
    tap.need(said["extended"] == [str(m) for _, m in both], said["extended"])
    return said


def itself():
    """each reference that the assembly makes is in the counters at once, and no other"""
    own()


def static():
    """likewise in a static program"""
    own("-static")


def where():
    """size and node of the pages; physical addresses that lead to the node's counters, or are said to be unknown"""
    said = own()
    places = [tuple(w.split(",")) for w in said["hardware-where"]]
    tap.need(said["extended-where"] == said["hardware-where"], said)
    addresses = {int(p[0], 16) for p in places}
    tap.need(all(p[1] == str(os.sysconf("SC_PAGESIZE")) for p in places), places)
    if any(p[2] != "0" for p in places):
        tap.need(all(p[2] == "-1" for p in places), places)  # move_pages(2) is not permitted here
    if UNKNOWN in addresses:
        tap.need(addresses == {UNKNOWN} and said["node"] == ["errno", "1"], said)
        print("# the kernel tells no physical addresses here: the node's counters are refused")
        return
    tap.need(len(addresses) == PAGES and all(a % 4096 == 0 and a for a in addresses), addresses)
    if places[0][2] == "0":
        want = [counter(n, 2047)[1] for n in references(1500)[:-1]]
        tap.need(said["node"] == ["0", "1", "4", "4096", "1", "2047", *map(str, want), "-1"], said["node"])


def unprivileged():
    """without CAP_SYS_ADMIN physical addresses are unknown, and the node's counters refused"""
    tap.need_root()
    build()
    os.chmod(".", 0o755)
    r = subprocess.run(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", tap.KRON, "pages", "-q",
                        "-o", "counts", "--", "./refcnt"], capture_output=True, text=True, timeout=300)
    said = dict(lines_of(r.stdout))
    tap.need(r.returncode == 0 and said["node"] == ["errno", "1"], r)
    tap.need(all(p.startswith(f"{UNKNOWN:x},") for p in said["hardware-where"]), said)


def sections():
    """a section that is enabled begins at 0, the rest stays 0; ranges that make no sense are refused"""
    build()
    said = dict(lines_of(traced("./refcnt")))
    tap.need(said["enabled"] == touched(0), said)
    tap.need(said["section"] == touched(7, (1, 2)), said)
    tap.need(said["errors"] == ["-17", "-22", "-2", "-22"], said)
    tap.need(said["disabled"] == touched(0), said)


def large():
    """a range with more counted pages than a message has room for"""
    build()
    tap.need(traced("./refcnt", "large") == "large 0\n", "pages with wrong counts")


def other_numbers():
    """a process is not asked for by a number that is another one's to the recorder"""
    tap.need_root()
    build()
    p = subprocess.Popen(["unshare", "-pf", "--mount-proc", tap.KRON, "pages", "-q", "-o", "counts", "--", "./refcnt", "wait"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = [""]
    while line[0] != "wait":
        line = p.stdout.readline().split()
        if not line:
            raise tap.Skip("no pid namespaces here")
    (pid,) = [c for c in descendants(p.pid) if os.path.basename(os.readlink(f"/proc/{c}/exe")) == "refcnt"]
    r = subprocess.run(["./refcnt", str(pid), line[2]], capture_output=True, text=True, timeout=60)
    p.communicate("\n", timeout=60)
    tap.need(r.returncode == 1 and "another pid namespace" in r.stdout and r.stdout.endswith("(95)\n"), r)


def descendants(pid):
    found = [pid]
    for p in found:
        found += tap.children_of(p)
    return found[1:]


def others():
    """another process looks, traced or not; one that nobody traces is refused"""
    build()
    tap.need("kron does not trace the process (3)" in subprocess.run(["./refcnt"], capture_output=True, text=True).stdout,
             "untraced")
    p = subprocess.Popen([tap.KRON, "pages", "-q", "-o", "counts", "--", "./refcnt", "wait"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    line = [""]
    while line[0] != "wait":
        line = p.stdout.readline().split()
        tap.need(line, "it has ended")
    r = subprocess.run(["./refcnt", *line[1:]], capture_output=True, text=True, timeout=60)
    tap.need(lines_of(r.stdout) == [("other", touched(1500))], r)
    if not os.geteuid():
        r = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "./refcnt", *line[1:]],
                           capture_output=True, text=True, timeout=60)
        tap.need(r.returncode == 1 and r.stdout.startswith("refcnt_open: "), r)
    p.communicate("\n", timeout=60)
    tap.need(p.returncode == 0, p.returncode)


def no_pages():
    """a recording that counts none says so"""
    build()
    said = traced("./refcnt", tool=("record", "-q", "-o", "trace"), status=1)
    tap.need("counts no pages" in said and said.endswith("(95)\n"), said)


LIAR = r"""
/* A program that writes into kron's memory: another recording's number, and, with an argument, somebody who listens. */
#define _GNU_SOURCE
#include <errno.h>
#include <refcnt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(int argc, char **argv)
{
	uint64_t number = 0x1234567890abcdef;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	(void)argv;
	snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "kron-ctl-%016lx", (unsigned long)number);
	if (argc > 1 && (bind(fd, (void *)&a, (socklen_t)(sizeof(sa_family_t) + 1 + strlen(a.sun_path + 1))) ||
			 listen(fd, 4)))
		return 2;
	memcpy((void *)(uintptr_t)(0x6b000000 + 0x2000000 + 2048), &number, sizeof(number));
	struct refcnt *r = refcnt_open(0);
	printf("%s %d\n", r ? "open" : "refused", errno);
	return 0;
}
"""


TURNCOAT = r"""
/* A process that root started becomes another user, gives itself out for the recorder of its board, and answers what
 * another one asks. */
#define _GNU_SOURCE
#include <errno.h>
#include <kron/segment.h>
#include <refcnt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	uint64_t number = 0x234567890abcdef1;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct kron_ctl *ctl = (void *)(uintptr_t)(KRON_WINDOW_ADDR + KRON_CTL_OFFSET);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), ready[2], done[2];
	char c = 0;
	(void)argv;
	snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "kron-ctl-%016lx", (unsigned long)number);
	if (pipe(ready) || pipe(done))
		return 2;
	if (!fork()) {
		if ((argc > 1 && setuid(65534)) || bind(fd, (void *)&a, (socklen_t)(sizeof(sa_family_t) + 1 + strlen(a.sun_path + 1))) ||
		    listen(fd, 4))
			return 2;
		memcpy((char *)ctl + 2048, &number, sizeof(number));
		ctl->collector_pid = (uint32_t)getpid();
		close(done[1]);
		return write(ready[1], &c, 1) != 1 || read(done[0], &c, 1) != 0;
	}
	close(fd);
	close(done[0]);
	if (read(ready[0], &c, 1) != 1)
		return 3;
	errno = 0;
	struct refcnt *r = refcnt_open(0);
	printf("%s %d\n", r ? "open" : "refused", r ? 0 : errno);
	refcnt_close(r);
	return 0;
}
"""


def turncoat():
    """on a named board, who became another user is not taken for its recorder"""
    if os.geteuid():
        raise tap.Skip("wants root, who may become another user")
    tap.compile_text("turncoat", TURNCOAT, INCLUDE, f"{LIBRARY}/librefcnt.a")
    board = f"turncoat{os.getpid()}"
    kron = [tap.KRON, "board"]
    subprocess.run([*kron, "create", board], check=True, capture_output=True)
    try:
        tool = ("record", "-q", "--board", board, "-o", "trace")
        tap.need(traced("./turncoat", "user", tool=tool).startswith("refused 13\n"), "another user")
    finally:
        subprocess.run([*kron, "rm", board], check=True, capture_output=True)


def lies():
    """what a traced program writes into kron's memory leads to no answer but the recorder's"""
    tap.compile_text("liar", LIAR, INCLUDE, f"{LIBRARY}/librefcnt.a")
    tap.need(traced("./liar") == "refused 111\n", "nobody listens")
    tap.need(traced("./liar", "listen") == "refused 13\n", "somebody listens")


STORM = r"""
/* Threads that come and go count, while two look: what they see may only grow.  Then a forked child counts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <refcnt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define PAGES 8
static char *m;
static int stop;
static void *count(void *arg)
{
	for (long r = 0; r < 100; r++)
		for (int i = 0; i < PAGES; i++)
			__asm__ volatile("incq (%0)" : : "r"(m + i * 4096) : "memory", "cc");
	return arg;
}
static void *make(void *arg)
{
	pthread_t t;
	for (int i = 0; i < 300; i++)
		if (pthread_create(&t, NULL, count, NULL) || pthread_join(t, NULL))
			exit(3);
	return arg;
}
static void *look(void *arg)
{
	struct refcnt *r = refcnt_open(0);
	struct refcnt_use last[PAGES] = {{0, 0}}, use[PAGES];
	while (r && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		if (refcnt_uses(r, m, PAGES * 4096, use) != PAGES)
			printf("%s\n", refcnt_error());
		for (int i = 0; i < PAGES; i++) {
			if (use[i].reads < last[i].reads)
				printf("less: %lu after %lu\n", (long)use[i].reads, (long)last[i].reads);
			last[i] = use[i];
		}
	}
	refcnt_close(r);
	return arg;
}
static void show(struct refcnt *r, const char *what)
{
	struct refcnt_use use[PAGES] = {{0, 0}};
	if (!r || refcnt_uses(r, m, PAGES * 4096, use) != PAGES)
		printf("%s\n", refcnt_error());
	printf("%s %lu %lu\n", what, (long)use[0].reads, (long)use[PAGES - 1].writes);
	fflush(stdout);
}
int main(void)
{
	pthread_t lookers[2], makers[4];
	struct refcnt *r = refcnt_open(0);
	m = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&lookers[i], NULL, look, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&makers[i], NULL, make, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(makers[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(lookers[i], NULL);
	show(r, "threads");
	if (!fork()) {
		count(NULL);
		show(refcnt_open(0), "child");
		show(r, "inherited");
		exit(0);
	}
	wait(NULL);
	show(r, "parent");
	return 0;
}
"""


def storm():
    """nothing is seen twice or nowhere while threads come and go; a forked child has counters of its own"""
    tap.compile_text("storm", STORM, INCLUDE, "-pthread", f"{LIBRARY}/librefcnt.a")
    want = "threads 120000 120000\nchild 100 100\ninherited 100 100\nparent 120000 120000\n"
    said = traced("./storm")
    tap.need(said == want, said)


def example():
    """the example's matrix: half of it by rows, then a column"""
    r = subprocess.run([f"{tap.SRC}/examples/refcnt/run", tap.BUILD], capture_output=True, text=True, timeout=300)
    tap.need(r.returncode == 0, r)
    rows = {line[:10].strip(): line[10:].split() for line in r.stdout.splitlines()}
    tap.need(rows["by rows"] == ["512"] * 8 + ["0"] * 8 and rows["by column"] == ["1"] * 16, r.stdout)


def installed():
    """pkg-config, the shared library, its names, C++"""
    names = subprocess.run(["nm", "-D", "--defined-only", f"{LIBRARY}/librefcnt.so.0"], capture_output=True, text=True)
    seen = {line.split()[2].split("@")[0] for line in names.stdout.splitlines()}
    with open(f"{tap.SRC}/board/librefcnt/keep.sym") as f:
        tap.need(seen - {"LIBREFCNT_0"} == set(f.read().split()), seen)
    r = subprocess.run(["make", "-s", "-C", tap.BUILD, "install-includeHEADERS", "install-mklibDATA", "install-pkgconfigDATA",
                        "install-librefcnt-link", f"DESTDIR={os.getcwd()}/root"], capture_output=True, text=True)
    tap.need(r.returncode == 0, r)
    (pc,) = subprocess.run(["find", "root", "-name", "librefcnt.pc"], capture_output=True, text=True).stdout.split()
    if not shutil.which("pkg-config"):
        print("# no pkg-config")
        return
    env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(pc), "PKG_CONFIG_SYSROOT_DIR": f"{os.getcwd()}/root"}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "librefcnt"], capture_output=True, text=True, env=env,
                           check=True).stdout.split()
    library = os.path.dirname(os.path.dirname(os.path.abspath(pc)))
    with open("plus.cc", "w") as f:
        f.write('#include <refcnt.h>\n#include <cstdio>\n'
                'int main() { struct refcnt *r = refcnt_open(0); std::puts(r ? "open" : refcnt_error());\n'
                'refcnt_close(r); return !r; }\n')
    subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "plus", "plus.cc", *flags,
                    f"-Wl,-rpath,{library}"], check=True)
    tap.need(traced("./plus") == "open\n", "C++")


with tap.Suite("refcnt") as s:
    s.case("a program's own counters", itself)
    s.case("a static program's", static)
    s.case("where pages lie, and the counters of a node", where)
    s.case("without privileges", unprivileged)
    s.case("sections of the address space", sections)
    s.case("another process", others)
    s.case("a large range", large)
    s.case("a recorder in another pid namespace", other_numbers)
    s.case("a recording without counts", no_pages)
    s.case("programs that lie", lies)
    s.case("a process that became another user", turncoat)
    s.case("threads that come and go", storm)
    s.case("the example", example)
    s.case("installed", installed)
