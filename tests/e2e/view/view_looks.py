#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 600
"""view_looks.py - pages of kron view as people see them: names, colours, rows and tables.

Without Chromium every case is skipped."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pages import check_quiet, make, need, open_page, run, tap  # noqa: E402

LABELS = {
    "main": [],
    "lib::detail::work<long>(int, std::vector<int>&) const": ["lib::detail::work<long> const", "lib::detail::work const", "work const"],
    "std::map<int, a::b<c> >::operator[](int const&)": ["std::map<int, a::b<c> >::operator[]", "std::map::operator[]", "operator[]"],
    "n::s::operator()(int)": ["n::s::operator()", "operator()"],
    "bool n::operator< <n::t>(n::t const&, n::t)": ["bool n::operator< <n::t>", "bool n::operator< ", "operator< "],
    "n::operator<<(std::ostream&, int)": ["n::operator<<", "operator<<"],
    "n::p<int>::operator->()": ["n::p<int>::operator->", "n::p::operator->", "operator->"],
    "(anonymous namespace)::f(int)": ["(anonymous namespace)::f", "f"],
    "a::f(int)::{lambda(int)#1}::operator()(int) const": ["a::f(int)::{lambda(int)#1}::operator() const", "operator() const"],
    "f(int) [clone .cold]": ["f [clone .cold]"],
    "<alloc::vec::Vec<T> as core::ops::Drop>::drop": ["drop"],
    "core::ptr::drop_in_place<[u8]>": ["core::ptr::drop_in_place", "drop_in_place"],
    "net/http.(*conn).serve": ["http.(*conn).serve"],
    "/": [], "::": [], "": [], "<": [], ">>(": [], "a<b::c": ["c"], "operator": [],
}


def name_functions(trace, name):
    """Gives each function of a trace another name."""
    lines = open(f"{trace}/functions", "rb").read().split(b"\n")
    for i, line in enumerate(lines[:-1]):
        f = line.split(b"\t")
        f[4] = name(i).encode()
        lines[i] = b"\t".join(f)
    open(f"{trace}/functions", "wb").write(b"\n".join(lines))


# what a picture writes on its canvas
WRITTEN = """(async () => { const p = kronView.pictures[%d], g = p.surface.g, words = [];
    g.fillText = function (s, ...more) { words.push(s); return Object.getPrototypeOf(g).fillText.call(g, s, ...more); };
    p.draw(); delete g.fillText; return words; })()"""


def labels():
    """Where a name is too long, it is its end that says which function it is."""
    make("small", "t")
    name_functions("t", lambda i: f"a_very_long_namespace_of_a_library_that_has_more_words_than_room::and_a_class_in_it<of_something>::f{i}")
    with open_page("t") as page:
        for name, shorter in LABELS.items():
            got = page.value(f"kronView.labelsOf({json.dumps(name)})")
            need(got == [name, *shorter], f"{name}: {got}")
        page.value("kronView.show('timeline')")
        page.settle()
        plain = {n.split("::")[-1] for n in page.value("[...kronView.functions.values()].map(f => f.name)")}
        for picture in (0, 1):
            page.value(f"kronView.show(kronView.pictures[{picture}].id)")
            page.settle()
            written = page.value(WRITTEN % picture)
            need(any(w in plain for w in written), f"no short name among {written}")
            cut = [w for w in written if w.startswith("a_very_long") and w.endswith("\u2026")]
            need(not cut, f"the names' beginnings: {cut}")
        need(plain & set(page.value("(kronView.show('timeline'), [...document.querySelectorAll('.legend .name')].map(n => n.textContent))")),
             "long names in the legend")
        check_quiet(page)


def colours():
    """Who calls and who is called have different hues, wherever a tree can have that."""
    make("walk", "t", "40000", "3")
    with open_page("t") as page:
        edges = page.value("kronView.tree.filter(n => n.fn >= 0 && n.parent.fn >= 0 && n.fn !== n.parent.fn).map(n => [n.fn, n.parent.fn, n.total,"
                           " kronView.functionColour(n.fn).hue, kronView.functionColour(n.parent.fn).hue])")
        need(len(edges) > 50, f"{len(edges)} edges")
        partners = {}
        for a, b, *_ in edges:
            partners.setdefault(a, set()).add(b)
            partners.setdefault(b, set()).add(a)
        # where all of them call each other there are not enough hues: the most time is apart
        same = sum(total for _, _, total, x, y in edges if x == y) / sum(e[2] for e in edges)
        need(same < (0.001 if max(map(len, partners.values())) < 7 else 0.05), f"{same:.1%} of the time in one hue with the caller")
        fills = page.value("kronView.threads.map(t => kronView.threadColour(t.lane).fill)")
        need(len(set(fills)) == min(len(fills), 21), f"threads of one colour: {fills}")
        check_quiet(page)


DEEP = """
#include <pthread.h>
__attribute__((noinline)) long deep(int d) { volatile long x = d ? deep(d - 1) : 0; return x + 1; }
__attribute__((noinline)) long work(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s += i; return s; }
void *side(void *arg) { for (int i = 0; i < 10; i++) work(3000000); return arg; }
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, side, 0);
	deep(80);
	side(0);
	pthread_join(t, 0);
	return 0;
}
"""


def shallow():
    """A moment of deep calls takes no room from the rest, until somebody looks at it."""
    tap.compile_text("deep", DEEP, "-O1", "-pthread")
    run("record", "-q", "-o", "t", "--", "./deep")
    heights = "kronView.pictures[0].rows.filter(r => r.thread).map(r => r.edges.map((e, d) => e - (r.edges[d - 1] ?? 0)).slice(1))"
    with open_page("t") as page:
        page.settle()
        main, side = page.value(heights)
        need(len(main) > 80 and sum(h <= 3 for h in main) > 75, f"rows of main: {main}")
        need(min(side) >= 15 and all(h >= 15 for h in main[:3]), f"rows: {main} {side}")
        bottom = page.value("kronView.pictures[0].rows.at(-1).y + kronView.pictures[0].rows.at(-1).height")
        need(bottom <= page.value("kronView.pictures[0].box.clientHeight"), f"the last row ends at {bottom}")
        need("Thin rows" in page.value("document.querySelector('aside').textContent"), "nobody says what thin rows are")
        # every one of the deep calls can be pointed at, thin or not
        deep = page.value("(() => { const s = kronView.threads[0].spans, all = Array.from(s.begin, (b, i) => [b, s.end[i], s.depth[i]]);"
                          " return all.filter(c => c[2] > 10); })()")
        need(len(deep) > 70, f"{len(deep)} deep calls")
        for which in (0, 40, -1):
            begin, end, depth = sorted(deep, key=lambda c: c[2])[which]
            spot = page.value(f"(() => {{ const t = kronView.pictures[0], row = t.rows.find(r => r.thread), y = t.top(row, {depth}) - t.scroll + 1;"
                              f" const p = t.what(t.x({(begin + end) / 2}), y); return p && p.spans.depth[p.i]; }})()")
            need(spot == depth, f"depth {spot} instead of {depth}")
        begin, end = min(c[0] for c in deep), max(c[1] for c in deep)
        page.value(f"kronView.setSpan({begin}, {end})")
        page.settle()
        main, _ = page.value(heights)
        need(min(main[12:60]) >= 15, f"rows of main from near: {main}")
        # few calls: higher rows, not an empty half
        need(page.value("(() => { const f = kronView.pictures[1]; kronView.show('flame'); f.draw(); return f.box.clientHeight - (f.deepest + 2) * f.ROW; })()") <= 30,
             "the flame graph has empty rows")
        check_quiet(page)


def one_line():
    """No number of a table is broken in two, however long the names beside it."""
    make("walk", "t", "40000", "3")
    name_functions("t", lambda i: "a_name_that_has_no_end_" * 12 + str(i))
    for width in (1280, 1400):
        with open_page("t", width=width) as page:
            page.value("kronView.show('flame')")
            page.settle()
            lines = page.value("[...document.querySelectorAll('#functions td:not(.word), #functions th')].map(c => { const r = document.createRange();"
                               " r.selectNodeContents(c); return new Set([...r.getClientRects()].map(b => b.top)).size; })")
            need(lines and max(lines) == 1, f"{width}: {max(lines)} lines")


with tap.Suite("view") as s:
    s.case("long names: the function is what stays of them", labels)
    s.case("callers and callees, and threads, have different colours", colours)
    s.case("deep calls of a moment leave room for the others", shallow)
    s.case("numbers of a table stand in one line", one_line)
