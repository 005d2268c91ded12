#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""view_memory.py - references to memory by address and time in a page of kron view, against what a program's assembly says.

Without Chromium every case is skipped."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pages import need, open_page, see_all, tap  # noqa: E402
from tap import KRON  # noqa: E402

M = 0x300000000000
WANT = {**{i: (105, 10) for i in range(16)}, **{i: (7, 1000) for i in range(16, 48)}}


def phases(*options, trace="t"):
    tap.compile_c("program", "bins/pages_report.c")
    r = subprocess.run([KRON, "pages", "-q", *options, "-o", f"{trace}/", "-L", "program", "--", "./program", "phases", "100"], capture_output=True, text=True)
    need(r.returncode == 0 and not r.stdout and not r.stderr, r)


def memory_of(page):
    """The first trace's, as the page has read it."""
    return page.value("""(() => { const m = kronView.pictures.find(p => p.id === 'memory'), p = m.part;
        return {rows: p.rows, columns: p.columns, per: p.per, each: p.each, pages: p.pages, shown: {...m.surface.canvas.dataset}}; })()""")


def ours(m):
    got = {}
    for r in m["rows"]:
        i = (int(r["from"], 16) - M) // 4096
        if 0 <= i < 80:
            need(r["pages"] == 1 and int(r["to"], 16) - int(r["from"], 16) == 4096, r)
            got[i] = (sum(c["reads"] for c in r["cells"]), sum(c["writes"] for c in r["cells"]))
    return got


def sums(rows, columns=None):
    cells = [c for r in rows for c in r["cells"] if columns is None or c["column"] in columns]
    return str(sum(c["reads"] for c in cells)), str(sum(c["writes"] for c in cells))


def steps():
    phases("--every", "5ms")
    with open_page("t") as page:
        page.settle()
        need(page.value("location.hash") == "#memory", "not shown first")
        m = memory_of(page)
        need(ours(m) == WANT, ours(m))
        need((m["shown"]["reads"], m["shown"]["writes"]) == sums(m["rows"]), m["shown"])
        # the first phase comes before the second one
        first, second = (next(r for r in m["rows"] if int(r["from"], 16) == M + 4096 * i)["cells"] for i in (0, 20))
        need(sum(c["writes"] for c in first if c["column"] <= second[0]["column"]) == 10, (first, second))
        # a piece of time: its columns
        a, b = m["columns"][second[0]["column"]][0], m["columns"][-1][1]
        page.value(f"kronView.setSpan({a}, {b})")
        page.settle()
        part = memory_of(page)
        within = [i for i, c in enumerate(m["columns"]) if c[1] > a and c[0] < b]
        need((part["shown"]["reads"], part["shown"]["writes"]) == sums(m["rows"], within), part["shown"])
        need(part["shown"]["writes"] < m["shown"]["writes"], "all of it")
        page.value(f"kronView.setSpan({m['columns'][0][0]}, {b})")
        # one mapping alone, by a click, and writes alone
        page.settle()
        row = m["rows"].index(next(r for r in m["rows"] if int(r["from"], 16) == M + 4096 * 20))
        x, y = page.value(f"(() => {{ const m = kronView.pictures.find(p => p.id === 'memory'), c = m.surface.canvas.getBoundingClientRect(), p = m.place;"
                          f"return [c.left + p.x(m.part.columns[{second[0]['column']}][0]) + 1, c.top + p.y({row}) + 1]; }})()")
        page.mouse("mouseMoved", x, y)
        page.settle()
        words = page.value("document.getElementById('tip').textContent")
        need(words.startswith(f"{hex(M + 4096 * 20)} to {hex(M + 4096 * 21)}: 1 page touched") and f"{second[0]['writes']:,} write" in words, (words, second[0]))
        page.click(x, y)
        page.settle()
        chosen = [r for r in m["rows"] if r["mapping"] == m["rows"][row]["mapping"]]
        alone = memory_of(page)["shown"]
        need((alone["reads"], alone["writes"]) == sums(chosen) != sums(m["rows"]), alone)
        table = page.value("[...document.querySelectorAll('#memory-table tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        need(sum(int(r[3].replace(",", "")) for r in table) == int(m["shown"]["writes"]), table)
        see_all(page)


HOSTILE = "</script><img src=x onerror=document.title=1>\x1b[31m"


def hostile():
    """A mapping's name is the traced program's word: it stays text."""
    phases()
    with open("t/pages", encoding="utf-8") as f:
        lines = f.read().splitlines()
    for i, line in enumerate(lines):
        f = line.split("\t")
        if f[0] == "M" and f[4] == "[stack]":
            lines[i] = "\t".join(f[:4] + [HOSTILE] + f[5:])
    with open("t/pages", "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in lines)
    with open_page("t") as page:
        page.settle()
        need(ours(memory_of(page)) == WANT, "counts")
        names = page.value("[...document.querySelectorAll('#memory-table tbody tr')].map(r => r.cells[0].textContent)")
        need(any("</script><img" in n for n in names) and not any("\x1b" in n for n in names), names)
        need(page.value("document.querySelectorAll('img').length") == 0 and page.value("document.title") != "1", "markup")
        see_all(page)


def one_step():
    """Nobody looked: all of the recording is one step."""
    phases()
    with open_page("t") as page:
        page.settle()
        m = memory_of(page)
        need(ours(m) == WANT and len(m["columns"]) == 1, m["columns"])
        need("nobody looked" in page.value("document.querySelector('#picture-memory .note:not(span)').textContent"), "its note")


def small():
    """More than there is room for: rows and columns become one, sums stay."""
    phases("--every", "1ms")
    with open_page("t") as page:
        page.settle()
        whole = memory_of(page)
    with open_page("--size", "1M", "t") as page:
        page.settle()
        m = memory_of(page)
    need(m["each"] > whole["each"] and len(m["columns"]) < len(whole["columns"]), (m["each"], len(m["columns"])))
    need(m["pages"] == whole["pages"] == sum(r["pages"] for r in m["rows"]), m["pages"])
    need(sums(m["rows"]) == sums(whole["rows"]), "sums")


CROWD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#define PAGES 3000L
static __attribute__((noinline)) void touch(char *p)
{
	__asm__ volatile("movl $1, 512(%0)" : : "r"(p) : "memory");
}
int main(int argc, char **argv)
{
	char *m = mmap((void *)0x300000000000, PAGES * 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	int fd = open(argv[0], O_RDONLY);

	for (long i = 0; i < PAGES; i += 2)
		if (argc > 1)
			mmap(m + i * 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
		else
			mprotect(m + i * 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	for (int r = 0; r < 100; r++)
		for (long i = 0; i < PAGES; i++)
			touch(m + i * 4096);
	return 0;
}
"""


def crowd():
    """More mappings than rows: those of one name are one, and what has several in a row has the name of none."""
    tap.compile_text("crowd", CROWD)
    for args in ([], ["files"]):
        subprocess.run([KRON, "pages", "-q", "--every", "1ms", "-o", "t/", "-L", "crowd", "--", "./crowd", *args], check=True)
        with open_page("t") as page:
            page.settle()
            m = memory_of(page)
            names = page.value("kronView.pictures.find(p => p.id === 'memory').part.mappings")
        mine = [r for r in m["rows"] if M <= int(r["from"], 16) < M + 3000 * 4096]
        need(len(m["rows"]) <= 2048 and sums(mine) == ("0", "300000"), (len(m["rows"]), sums(mine)))
        got = {names[r["mapping"]] for r in mine if r["pages"] > 1}
        need(got == {"(several mappings)" if args else "(anonymous memory)"}, got)
        if not args:
            stack = [r for r in m["rows"] if names[r["mapping"]] == "[stack]"]
            need(len(stack) == 1 and stack[0]["pages"] < 4, stack)


def two_traces():
    """Of each recording its own; and calls beside them."""
    phases("--every", "5ms", trace="a")
    subprocess.run([KRON, "record", "-q", "-o", "b", "-p", "program:*%accesses pages", "-F", "*", "--node", "2", "--", "./program", "phases", "20"], check=True)
    with open_page("a", "b") as page:
        page.settle()
        need(page.value("kronView.data.memory.length") == 2 and page.value("location.hash") == "#timeline", "both")
        for i in (0, 1):
            page.value(f"kronView.show('memory'); (() => {{ const s = document.querySelector('#picture-memory select'); s.value = {i}; s.dispatchEvent(new Event('change')); }})()")
            page.settle()
            need(ours(memory_of(page)) == WANT, i)
        see_all(page)


with tap.Suite("view_memory") as s:
    s.case("phases of a program: pages, steps, pieces", steps)
    s.case("without looks", one_step)
    s.case("a name that is markup", hostile)
    s.case("more than there is room for", small)
    s.case("more mappings than rows", crowd)
    s.case("two recordings", two_traces)
