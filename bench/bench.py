#!/usr/bin/env python3
"""bench.py - measure Pyramid beside the alternatives.

    bench/bench.py run BUILD [--quick | --check] [--only CASE ...] [--out DIR]
    bench/bench.py render RESULTS.jsonl MARKDOWN PLOTS
    bench/bench.py compare OLD.jsonl NEW.jsonl
    bench/bench.py list

`run` starts the programs and players of BUILD/bench in turns and writes
DIR/results.jsonl (one line of numbers per case and side), DIR/benchmarks.md
and plots. A full run also renews docs/benchmarks.md and docs/benchmarks/,
unless --out says otherwise. Files live below $BENCH_DIR, or else below BUILD;
they are removed at the end.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from harness import cluster, compare, crowd, daily, dicing  # noqa: E402
from harness import machine, players, programs, report, turns  # noqa: E402
from harness.turns import say  # noqa: E402

DOCS = os.path.join(os.path.dirname(HERE), "docs")
EFFORTS = ("full", "quick", "check")
MINUTES = {"full": 20, "quick": 6, "check": 1}  # then all have one turn each


class Context:
    """What every case knows."""

    def __init__(self, build, folder, effort):
        self.build, self.folder, self.effort = build, folder, effort
        self.dirty_limit = machine.dirty_limit()

    def pick(self, full, quick, check):
        return (full, quick, check)[EFFORTS.index(self.effort)]


def cases(ctx, cast):
    """{name: a function that returns records}, in the order of a run."""
    out = {"dicing": lambda: dicing.run(ctx)}
    for name in daily.CASES:
        out[name] = lambda n=name: daily.run(ctx, cast, [n])
    out["crowd"] = lambda: crowd.run(ctx, cast)
    for name in programs.NAMES:
        out[name] = lambda n=name: programs.run(ctx, cast, n)
    out["ceph"] = lambda: cluster.run(ctx, cast)
    return out


def line(record):
    """As JSON; six digits are more than any clock here knows."""
    def short(x):
        if isinstance(x, float):
            return float(f"{x:.6g}")
        if isinstance(x, list):
            return [short(y) for y in x]
        if isinstance(x, dict):
            return {k: short(y) for k, y in x.items()}
        return x
    return json.dumps(short(record)) + "\n"


def run(args):
    build = os.path.abspath(args.build)
    effort = "quick" if args.quick else "check" if args.check else "full"
    base = os.environ.get("BENCH_DIR", build)
    folder = tempfile.mkdtemp(prefix="run-", dir=base)
    out = os.path.abspath(args.out or os.path.join(build, "bench-" + effort))
    os.makedirs(out, exist_ok=True)
    cast = players.Cast(build, os.environ.get("BENCH_VENV") or os.path.join(
        os.path.dirname(HERE), "build", "peers"))
    ctx = Context(build, folder, effort)
    turns.deadline = time.monotonic() + 60 * MINUTES[effort]
    head = machine.describe(folder)
    head.update(effort=effort, peers=cast.versions())
    records = [head]
    todo = cases(ctx, cast)
    names = args.only or list(todo)
    for name in names:
        if name not in todo:
            sys.exit(f"no case '{name}': there are {', '.join(todo)}")
    path = os.path.join(out, "results.jsonl")
    try:
        with open(path, "w") as f:
            f.write(line(head))
            for name in names:
                start = time.monotonic()
                more = todo[name]()
                say(f"({name}: {time.monotonic() - start:.0f} s)")
                records += more
                for r in more:
                    f.write(line(r))
                f.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish(args, effort, out, path, records)


def finish(args, effort, out, path, records):
    report.write(records, os.path.join(out, "benchmarks.md"),
                 os.path.join(out, "benchmarks"))
    say(f"tables: {os.path.join(out, 'benchmarks.md')}")
    if effort == "full" and not args.out and not args.only:
        plots = os.path.join(DOCS, "benchmarks")
        report.write(records, os.path.join(DOCS, "benchmarks.md"), plots)
        shutil.copy(path, os.path.join(plots, "results.jsonl"))
        say(f"and {os.path.join(DOCS, 'benchmarks.md')}")


def main():
    parser = argparse.ArgumentParser(
        description="measure Pyramid beside the alternatives")
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("run")
    p.add_argument("build")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true")
    how.add_argument("--check", action="store_true")
    p.add_argument("--only", nargs="+", metavar="CASE")
    p.add_argument("--out")
    p = verbs.add_parser("render")
    p.add_argument("results")
    p.add_argument("markdown")
    p.add_argument("plots")
    p = verbs.add_parser("compare")
    p.add_argument("old")
    p.add_argument("new")
    verbs.add_parser("list")
    args = parser.parse_args()
    if args.verb == "run":
        run(args)
    elif args.verb == "render":
        report.write(compare.load(args.results), args.markdown, args.plots)
    elif args.verb == "compare":
        sys.exit(1 if compare.show(args.old, args.new) else 0)
    else:
        print("\n".join(["dicing", *daily.CASES, "crowd", *programs.NAMES,
                         "ceph"]))


if __name__ == "__main__":
    main()
