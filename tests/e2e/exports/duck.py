# SPDX-License-Identifier: MIT
"""duck.py - what DuckDB reads in a file: DuckDB comes by npm, of whoever runs the tests."""

import json
import os
import shutil
import subprocess

from tap import SRC, Skip, need

HOME = os.environ.get("HOME", "")  # as it is before a suite has one of its own


def duckdb():
    """Its folder; it stands beside the cases' own."""
    if os.path.isdir("../duckdb"):
        return "../duckdb"
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("no node and npm here")
    os.mkdir("duckdb")
    try:
        r = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "@duckdb/node-api"],
                           cwd="duckdb", env={**os.environ, "HOME": HOME}, timeout=120, capture_output=True)
    except subprocess.TimeoutExpired as e:
        raise Skip("npm cannot get DuckDB here") from e
    if r.returncode:
        raise Skip("npm cannot get DuckDB here")
    os.rename("duckdb", "../duckdb")
    return "../duckdb"


def asked(*queries):
    return subprocess.run(["node", f"{SRC}/tests/e2e/exports/duckdb.js", duckdb(), *queries], capture_output=True, text=True)


def ask_all(*queries):
    """The rows of each; one process, for to begin takes longer than to answer."""
    r = asked(*queries)
    need(r.returncode == 0, f"{queries}\n{r.stderr}")
    return [json.loads(line) for line in r.stdout.splitlines()]


def ask(query):
    return ask_all(query)[0]
