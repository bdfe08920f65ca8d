#!/usr/bin/env python3
"""format_test.py PYRAMID - golden stores are read as they were written."""
import glob
import json
import os
import sys
import tarfile
import tempfile

from golden import describe, run


def differences(want, have, path=""):
    if isinstance(want, dict) and isinstance(have, dict):
        for key in sorted(set(want) | set(have)):
            yield from differences(want.get(key), have.get(key),
                                   path + "/" + key)
    elif want != have:
        yield "%s: %r, not %r" % (path, have, want)


def check(tool, archive, folder):
    name = os.path.basename(archive)[:-len(".tar.gz")]
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    store = os.path.join(folder, name)
    with open(archive[:-len(".tar.gz")] + ".json") as f:
        want = json.load(f)
    wrong = list(differences(want, describe(tool, store)))
    run(tool, "verify", store, "--deep")  # fails if anything is harmed
    before = json.loads(run(tool, "info", store, "bytes", "--json"))["latest"]
    run(tool, "resize", store, "bytes", "--shape", "61,70")  # it can go on
    if json.loads(run(tool, "info", store, "bytes", "--json"))["latest"] != \
            before + 1:
        wrong.append("a new version was not made")
    return name, wrong


def main():
    tool = sys.argv[1]
    here = os.path.dirname(os.path.abspath(__file__))
    archives = sorted(glob.glob(os.path.join(here, "*.tar.gz")))
    print("1..%d" % len(archives))
    for i, archive in enumerate(archives, 1):
        with tempfile.TemporaryDirectory() as folder:
            name, wrong = check(tool, archive, folder)
        for line in wrong[:20]:
            print("# " + line)
        print("%s %d - store %s is read as it was written" %
              ("not ok" if wrong else "ok", i, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
