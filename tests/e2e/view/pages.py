# SPDX-License-Identifier: MIT
"""pages.py - for tests of kron view: traces, pages of them in headless Chromium, what each has to be."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../..")]
import tap  # noqa: E402
from tap import BUILD, KRON, need  # noqa: E402
import chromium  # noqa: E402

MAKE_TRACE = os.path.join(BUILD, "tests/unit/trace/make_trace")


def run(*args):
    r = subprocess.run([KRON, *args], capture_output=True, text=True)
    need(r.returncode == 0, f"kron {' '.join(args)}: {r.returncode} {r.stderr}")
    return r.stdout


def make(*args):
    subprocess.run([MAKE_TRACE, *args], check=True)


def open_page(*args, **more):
    if not chromium.find():
        raise tap.Skip("chromium is not installed")
    run("view", "-o", "x.html", *args)
    return chromium.Page("x.html", **more)


def check_quiet(page):
    need(not page.errors, f"errors: {page.errors}")
    others = [u for u in page.requests if u.split("#")[0] != page.url]
    need(not others, f"it asked for {others}")


PICTURES = ["timeline", "flame", "usage", "histograms", "causality", "samples", "about"]


def see_all(page):
    for p in PICTURES:
        page.value(f"kronView.show('{p}')")
        page.settle()
    check_quiet(page)
