#!/usr/bin/env python3
"""checkers_test.py - the checkers of tools/ see what they are there to see.

    checkers_test.py TOOLS

Each case makes a small tree that is good, spoils one thing in it, and wants
that one thing named.
"""
import json
import os
import subprocess
import sys
import tempfile

TOOLS = sys.argv[1]

GOOD = {
    "src/base/fail.h": "/*\n * base/fail.h - failures.\n */\n",
    "src/nd/box.c": '/*\n * nd/box.c - boxes.\n */\n#include "base/fail.h"\n'
                    "#include <pyramid/types.h>\n#include <stdio.h>\n",
    "src/base/hash.c": "/* base/hash.c - sums. */\n#include <xxhash.h>\n",
    "src/engine/engine.h": "/*\n * engine/engine.h - storage.\n */\n",
    "src/tree/lookup.c": "/*\n * tree/lookup.c - down.\n */\n"
                         '#include "engine/engine.h"\n',
    "src/nd/tests/box_test.c": '#include "array/array.h"\n',
    "cli/cmd.h": "",
    "cli/main.c": '#include "cmd.h"\n#include <pyramid/pyramid.h>\n',
    "tests/model/box.c": '#include "api/handle.h"\n',
    "bench/raw.c": "#include <lmdb.h>\n",
}


def run(tool, *args):
    done = subprocess.run([sys.executable, os.path.join(TOOLS, tool), *args],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def layers(spoiled):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**GOOD, **spoiled}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)),
                        exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        return run("check-layers.py", root)


def skips(tests, faults=True):
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(os.path.join(build, "meson-logs"))
        os.mkdir(os.path.join(build, "meson-info"))
        with open(os.path.join(build, "meson-info/intro-buildoptions.json"),
                  "w", encoding="utf-8") as f:
            json.dump([{"name": "faults", "value": faults}], f)
        with open(os.path.join(build, "meson-logs/testlog.json"), "w",
                  encoding="utf-8") as f:
            for name, result, stdout in tests:
                f.write(json.dumps({"name": name, "result": result,
                                    "stdout": stdout}) + "\n")
        return run("check-skips.py", build)


def source(path, *includes):
    """A file of src/ with a proper head and these includes."""
    head = f"/*\n * {path[len('src/'):]} - a file.\n */\n"
    return {path: head + "".join(f"#include {i}\n" for i in includes)}


FINE = ("nd box", "OK", "1..2\nok 1 - a\nok 2 - b\n")

# name of the case, what the checker answers, what it has to say (None: it
# has to be content).
CASES = [
    ("a good tree passes", layers({}), None),
    ("base includes no other layer",
     layers(source("src/base/buf.c", '"nd/nd.h"')),
     "src/base/buf.c:4: base must not include nd/nd.h"),
    ("calls go down, not up",
     layers(source("src/engine/up.c", '"tree/tree.h"')),
     "engine must not include tree/tree.h"),
    ("angle brackets hide nothing",
     layers(source("src/engine/up.c", "<tree/tree.h>")),
     "engine must not include tree/tree.h"),
    ("of a layer only the door is open",
     layers(source("src/tree/side.c", '"engine/local/local.h"')),
     "engine/local/local.h is private to engine"),
    ("paths start at src/",
     layers(source("src/tree/near.c", '"node.h"')), "paths start at src/"),
    ("code does not include the test harness",
     layers(source("src/tree/near.c", '"support/check.h"')),
     '"support/check.h" is in no layer'),
    ("lmdb.h is for the local engine only",
     layers(source("src/engine/mem/mem.c", "<lmdb.h>")),
     "lmdb.h belongs in src/engine/local/ only"),
    ("system calls go through base/sys",
     layers({"src/nd/run.c": "/*\n * nd/run.c - runs.\n */\n"
                             "int f(void) { return open(path, 0); }\n"}),
     "src/nd/run.c:4: open() is called directly: pyri_sys_open()"),
    ("only those",
     layers({"src/nd/run.c": "/*\n * nd/run.c - open() runs.\n */\n"
                             "int f(void) { return e->open(\"read()\"); }\n",
             "src/base/sys.c": "/*\n * base/sys.c - calls.\n */\n"
                               "int g(void) { return open(path, 0); }\n"}),
     None),
    ("the tool sees what a user sees",
     layers({"cli/main.c": '#include "base/fail.h"\n'}),
     "cli must not include base/fail.h"),
    ("an example includes no neighbour",
     layers({"examples/hello.c": '#include "../cli/cmd.h"\n'}),
     "examples must not include ../cli/cmd.h"),
    ("a file begins with its path",
     layers({"src/nd/run.c": "/*\n * run.c - runs.\n */\n"}),
     'src/nd/run.c:1: must begin with a comment "nd/run.c - '),
    ("names are unique", layers(source("src/tree/box.c")),
     "src/tree/box.c: the name is taken by src/nd/box.c"),
    ("a folder is a layer", layers({"src/misc/x.c": ""}),
     "src/misc/x.c: in no layer"),
    ("801 lines are too long, in a test too",
     layers({"tests/model/long.c": "\n" * 801}), "tests/model/long.c: 801"),
    ("tests that pass, pass", skips([FINE]), None),
    ("no tests at all", skips([]), "no test was run"),
    ("a failure is one", skips([FINE, ("x", "FAIL", "")]), "x: FAIL"),
    ("a program that prints nothing", skips([FINE, ("x", "SKIP", "")]),
     "x: skipped, and must not be: it printed no results"),
    ("a reason that is not on the list",
     skips([("x", "SKIP", "1..0 # SKIP feeling tired\n")]), "feeling tired"),
    ("one case among others",
     skips([("x", "OK", "1..2\nok 1\nok 2 - b # SKIP later\n")]), "later"),
    ("a reason that is on the list",
     skips([FINE, ("headers as C++17", "SKIP",
                   "1..0 # SKIP no C++ compiler\n")]), None),
    ("no fault points where there are some",
     skips([("x", "SKIP", "1..0 # SKIP built without fault points")]),
     "built without fault points"),
    ("no fault points where there are none",
     skips([FINE, ("x", "SKIP", "1..0 # SKIP built without fault points")],
           faults=False), None),
]


def main():
    print(f"1..{len(CASES)}")
    bad = 0
    for number, (name, (code, said), wanted) in enumerate(CASES, 1):
        good = code == 0 if wanted is None else code == 1 and wanted in said
        if not good:
            bad += 1
            print(f"# returned {code}, wanted: {wanted}; it said:")
            for line in said.splitlines():
                print("#  ", line)
        print("ok" if good else "not ok", number, "-", name)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
