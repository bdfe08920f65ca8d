"""Programs of bench/ that compare Pyramid with plain C inside one process and
print rows of tables: their lines become records."""
import json
import os
import subprocess

from .players import PEERS, installed
from .turns import say

NAMES = ["commits", "boxes", "open", "stat", "compute", "verify", "chains",
         "reclaim", "scale"]


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def better(column):
    """Which way is good, by the unit in a column's head; None: neither."""
    if column.endswith("/s") or "/s," in column or "times faster" in column \
            or column.startswith("speed"):
        return "more"
    for unit in (" us", " ms", "KiB", "MiB read", "CPU", "max/mean"):
        if unit in column:
            return "less"
    return None


def records(program, line):
    """One record per number of a row, and the row itself for the report."""
    row = json.loads(line)
    out = [{"group": "table", "program": program, **row}]
    if "row" not in row:
        return out
    for column, cell in list(zip(row["columns"], row["row"]))[1:]:
        value = number(cell)
        if value is None or column == "target":
            continue
        out.append({"group": "program", "program": program,
                    "case": f"{row['table']}: {row['row'][0]}",
                    "side": column, "unit": column, "better": better(column),
                    "median": value, "spread": None, "n": 1})
    return out


def surroundings(ctx, python):
    """The environment of a program: where files go, and who has NumPy."""
    env = dict(os.environ, BENCH_DIR=ctx.folder, BENCH_PEERS=PEERS)
    if "numpy" in installed(python):
        env["BENCH_PYTHON"] = python
    return env


def run(ctx, cast, name, *words):
    path = os.path.join(ctx.build, "bench", "bench-" + name)
    if not os.path.exists(path):
        say(f"{name}: not built")
        return []
    say(name)
    flag = {"full": [], "quick": ["--quick"], "check": ["--check"]}[ctx.effort]
    done = subprocess.run([path, *flag, *words], capture_output=True, text=True,
                          timeout=600, check=False,
                          env=surroundings(ctx, cast.python))
    out = []
    for line in done.stdout.splitlines():
        out += records(name, line)
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr.strip()}")
    return out
