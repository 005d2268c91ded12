# SPDX-License-Identifier: MIT
"""mkdat.py - mk.dat and interval statistics, written again for the tests: bytes by struct, times
as whole numbers without end, and nothing of kron's."""

import math
import struct
from collections import defaultdict

TIME = 1 << 56


def pack(cpu, time, source, data, counters=None, flags=0):
    """One sample's bytes; flags: 4 shadow overflow, 2 FIFO overflow."""
    header = cpu << 5 | (3 if counters else 2) << 3 | flags
    time %= TIME
    b = struct.pack("<5I", header << 24 | time >> 32, time & 0xFFFFFFFF, source,
                    data >> 32, data & 0xFFFFFFFF)  # fmt: skip
    return b + struct.pack("<16I", *counters) if counters else b


def unpack(b):
    """All samples of undamaged bytes, as (header, time, source, data, counters or None)."""
    at, out = 0, []
    while at < len(b):
        a, lo, source, high, low = struct.unpack_from("<5I", b, at)
        header = a >> 24
        at += 20
        counters = None
        if header >> 3 & 3 == 3:
            counters = struct.unpack_from("<16I", b, at)
            at += 64
        else:
            assert header >> 3 & 3 == 2
        out.append((header, (a & 0xFFFFFF) << 32 | lo, source, high << 32 | low, counters))
    return out


def unwrapped(samples):
    """The same with times that go on where 56 bits wrap."""
    now, out = None, []
    for header, time, source, data, counters in samples:
        if now is None:
            now = time
        else:
            step = (time - now) % TIME
            now += step if step < TIME // 2 else step - TIME
        out.append((header, now, source, data, counters))
    return out


class Stats:
    def __init__(self, lengths):
        self.n = len(lengths)
        self.total = sum(lengths)
        self.min = min(lengths, default=None)
        self.max = max(lengths, default=None)
        self.avg = self.total / self.n if self.n else None
        self.dev = None
        if self.n:
            # whole numbers until the root: n * sum of squares - square of the sum
            square = self.n * sum(x * x for x in lengths) - self.total**2
            self.dev = math.sqrt(square) / self.n

    def differs(self, j):
        """What of a JSON object is otherwise."""
        bad = []
        for key, want in (("count", self.n), ("total", self.total), ("min", self.min), ("max", self.max)):
            if j[key] != want:
                bad.append(f"{key} {j[key]}, not {want}")
        for key, want in (("avg", self.avg), ("stddev", self.dev)):
            near = want is None or math.isclose(j[key], want, rel_tol=1e-9, abs_tol=1e-6)
            if not near or (want is None) != (j[key] is None):
                bad.append(f"{key} {j[key]}, not {want}")
        return bad


def narrow(length):
    return length % (1 << 32) if length >= 0 else -(-length % (1 << 32))


def runs(samples):
    """Cut one source's samples where its time goes back."""
    out, last = [[]], None
    for s in samples:
        if last is not None and s[1] < last:
            out.append([])
        last = s[1]
        out[-1].append(s)
    return out


def nested(events, name, first, middle, ends):
    """Class 1 to 3 in one run: yields (row, begin sample, from time, to time); counts the rest."""
    opened, left = [], [0, 0]
    found = []
    for s in events:
        e = name(s)
        if middle is not None and e == middle:
            if opened and opened[-1][1] is None:
                opened[-1][1] = s[1]
            else:
                left[1] += 1
        if e in ends:
            if not opened:
                left[1] += e != first
            else:
                begin, mid = opened.pop()
                if middle is None:
                    found.append((ends.index(e), begin, begin[1], s[1]))
                elif mid is None:
                    left[0] += 1
                else:
                    found.append((0, begin, begin[1], mid))
                    found.append((1, begin, mid, s[1]))
                    found.append((2, begin, begin[1], s[1]))
        if e == first:
            opened.append([s, None])
    if first not in ends:
        left[0] += len(opened)
    return found, left


def fifo(samples, name, start, end):
    """Class 4 over everything."""
    starts = [s for s in samples if name(s) == start]
    ends = [s for s in samples if name(s) == end]
    times = [s[1] for s in samples]
    pairs, waiting, early = [], [], 0
    if times == sorted(times):
        for s in samples:
            if name(s) == start:
                waiting.append(s)
            elif name(s) == end:
                if waiting:
                    b = waiting.pop(0)
                    pairs.append((0, b, b[1], s[1]))
                else:
                    early += 1
        return pairs, [len(waiting), early]
    starts.sort(key=lambda s: s[1])
    ends.sort(key=lambda s: s[1])
    for b, s in zip(starts, ends):
        pairs.append((0, b, b[1], s[1]))
    return pairs, [len(starts) - len(pairs), len(ends) - len(pairs)]


def intervals(samples, definition, bits=32, match="source"):
    """[(row, begin sample, from, to)] of one line of interval.info, and what is left over."""
    cls, *events = definition
    samples = unwrapped(samples)
    mask = (1 << bits) - 1
    name = lambda s: s[3] & mask  # noqa: E731
    if cls == 4:
        return fifo(samples, name, *events)
    by = defaultdict(list)
    for s in samples:
        by[{"source": s[2], "cpu": s[0] >> 5, "any": 0}[match]].append(s)
    found, left = [], [0, 0]
    for one in by.values():
        for run in runs(one):
            if cls == 3:
                f, n = nested(run, name, events[0], events[1], [events[2]])
            else:
                f, n = nested(run, name, events[0], None, events[1:])
            found += f
            left = [left[0] + n[0], left[1] + n[1]]
    return found, left
