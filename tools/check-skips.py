#!/usr/bin/env python3
"""check-skips.py - no test may be left out without anyone noticing.

    tools/check-skips.py [--tail] BUILD...

Reads what "meson test" noted in each build folder; BUILD:BASE reads the run
that was told --logbase BASE: one with stores elsewhere than in files. Meson counts a program
that prints no results as skipped, and stays green; here that is a failure,
as is any skip that is not on the list below, and a run of no tests at all.
The last line is the totals. --tail shows the end of what the failed tests
printed, which Meson keeps to itself for tests that print TAP.
"""
import json
import os
import re
import sys

# (name of the test, reason that it gives), both as regular expressions.
ALLOWED = [
    (r"headers as C\+\+17", r"no C\+\+ compiler"),
]
# Allowed where the build has no fault points.
ALLOWED_WITHOUT_FAULTS = [
    (r".*", r"built without fault points"),
]

# Allowed where stores are not in files.
ALLOWED_ELSEWHERE = [
    (r".*", r"looks into files"),
    (r"ceph cut", r"no network namespaces here"),  # not root: see tests/README
]

CASE = re.compile(r"^(not )?ok\b[^#\n]*(#\s*skip\S*\s*(?P<reason>.*))?$",
                  re.IGNORECASE | re.MULTILINE)
SEED = re.compile(r"^# PYR_TEST_SEED=.*$", re.MULTILINE)
NO_PLAN = re.compile(r"^1\.\.0\s*(#\s*skip\S*\s*(?P<reason>.*))?$",
                     re.IGNORECASE | re.MULTILINE)


def has_faults(build):
    build = build.partition(":")[0]
    path = os.path.join(build, "meson-info", "intro-buildoptions.json")
    if not os.path.exists(path):
        return True
    with open(path, encoding="utf-8") as f:
        return any(o["name"] == "faults" and o["value"] for o in json.load(f))


def read_log(build):
    """The tests of the last run, one dictionary each."""
    build, _, base = build.partition(":")
    path = os.path.join(build, "meson-logs", (base or "testlog") + ".json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def skips_of(test):
    """Reasons for all that this test left out."""
    text = test.get("stdout") or ""
    reasons = [m["reason"] for m in CASE.finditer(text) if m.group(2)]
    if test["result"] == "SKIP" and not reasons:
        plan = NO_PLAN.search(text)
        reasons = [plan["reason"] if plan and plan["reason"]
                   else "it printed no results"]
    return [r.strip() for r in reasons]


def may_skip(name, reason, faults, elsewhere):
    allowed = list(ALLOWED)
    if not faults:
        allowed += ALLOWED_WITHOUT_FAULTS
    if elsewhere:
        allowed += ALLOWED_ELSEWHERE
    return any(re.search(n, name) and re.match(r, reason, re.IGNORECASE)
               for n, r in allowed)


def show_tail(test, lines=60):
    """The seed, wherever it stands, and the end of both streams."""
    for stream in "stdout", "stderr":
        text = test.get(stream) or ""
        end = text.splitlines()[-lines:]
        end[:0] = [s for s in SEED.findall(text) if s not in end]
        for line in end:
            print("    " + line)


def check(build, tail=False):
    """Prints what is wrong; gives (faults, programs, cases, skips)."""
    tests, faults, cases, skips = read_log(build), 0, 0, 0
    fault_points = has_faults(build)
    if not tests:
        print(f"{build}: no test was run")
        faults += 1
    for test in tests:
        name = test["name"]
        cases += max(1, len(CASE.findall(test.get("stdout") or "")))
        if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
            print(f"{build}: {name}: {test['result']}")
            faults += 1
            if tail:
                show_tail(test)
        for reason in skips_of(test):
            skips += 1
            if not may_skip(name, reason, fault_points, ":" in build):
                print(f"{build}: {name}: skipped, and must not be: {reason}")
                faults += 1
    return faults, len(tests), cases, skips


def main():
    builds = [arg for arg in sys.argv[1:] if arg != "--tail"]
    if not builds:
        print("usage: tools/check-skips.py [--tail] BUILD...", file=sys.stderr)
        return 2
    results = [check(build, "--tail" in sys.argv) for build in builds]
    faults, programs, cases, skips = (sum(column) for column in zip(*results))
    print(f"{programs} test programs, {cases} cases, {skips} skipped, "
          f"{faults} faults, in {len(builds)} builds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
