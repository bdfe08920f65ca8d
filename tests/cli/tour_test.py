#!/usr/bin/env python3
"""tests/cli/tour_test.py - the tour in the README prints what it says; TAP.

Usage: tour_test.py PYRAMID README

Lines '    $ pyramid ...' are run one after the other in one empty directory that
holds the files which the tour speaks of; the indented lines below each must be
its output. Times, owners and process ids may differ, nothing else.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

PROMPT = "    $ "
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
WHO = re.compile(r"\S+@\S+:\d+ +")


def steps(text):
    """(command, what it prints) for each command of the tour."""
    found = []
    inside = False
    for line in text.splitlines():
        if line.startswith(PROMPT):
            inside = line.startswith(PROMPT + "pyramid ")
            if inside:
                found.append((line[len(PROMPT):], []))
        elif line.startswith("    ") and inside:
            found[-1][1].append(line[4:])
        else:
            inside = False
    return found


def save(path, rows):
    head = ("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }"
            % (len(rows), len(rows[0]))).ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)))
        f.write(head.encode())
        for row in rows:
            f.write(struct.pack("<%dd" % len(row), *row))


def plain(lines):
    return [WHO.sub("WHO  ", TIME.sub("TIME", line)).rstrip()
            for line in lines]


def main(tool, readme):
    with open(readme, encoding="utf-8") as f:
        tour = steps(f.read())
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        save(os.path.join(place, "survey.npy"),
             [[i + j for j in range(1000)] for i in range(1000)])
        save(os.path.join(place, "patch.npy"), [[-1, -1], [-1, -1]])
        path = os.path.dirname(os.path.abspath(tool))
        env = dict(os.environ, PATH=path + ":" + os.environ["PATH"], TZ="UTC")
        print("1..%d" % max(1, len(tour)))
        for number, (command, want) in enumerate(tour, 1):
            done = subprocess.run(["sh", "-c", command], cwd=place, env=env,
                                  stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.STDOUT, timeout=120)
            good = plain(done.stdout.splitlines()) == plain(want)
            if not good:
                bad = 1
                for line in done.stdout.splitlines():
                    print("# got:  " + line)
                for line in want:
                    print("# said: " + line)
            print("%s %d - %s" % ("ok" if good else "not ok", number, command))
    if not tour:
        print("not ok 1 - there is no tour in", readme)
    return bad or not tour


sys.exit(main(*sys.argv[1:]))
