#!/usr/bin/env python3
"""tests/cli/cli_test.py - the pyramid tool from outside; prints TAP.

Usage: cli_test.py PYRAMID [TEST]...
Every test is a function that starts with an empty directory of its own.
"""

import errno
import json
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback

TOOL = os.path.abspath(sys.argv[1])
NATIVE = "<" if sys.byteorder == "little" else ">"
OTHER = ">" if NATIVE == "<" else "<"
CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
         "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}
VERBS = ["init", "create", "write", "append", "read", "compute", "reduce",
         "handler", "stat", "ls", "info",
         "log", "diff", "last", "tag", "clone", "resize", "attrs", "wait",
         "forget", "reclaim", "fold", "verify", "repair", "copy", "status"]
tests = []


def test(function):
    tests.append(function)
    return function


# --- helpers ---------------------------------------------------------------

def run(*args, stdin=b"", **more):
    return subprocess.run([TOOL, *map(str, args)], input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, **more)


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)) or "not so")


def equal(got, want):
    check(got == want, "got", repr(got), "not", repr(want))


seen = set()


def once(args, more):
    """Looking for leaks takes the address sanitizer longer than most commands
    take: each verb with each set of options is looked at once when it works.
    (Those that fail, each time.)"""
    sanitizer = os.environ.get("ASAN_OPTIONS")
    kind = (args[0], *sorted(str(a) for a in args if str(a).startswith("--")))
    if sanitizer and kind in seen:
        env = more.get("env") or os.environ
        more["env"] = dict(env, ASAN_OPTIONS=sanitizer + ":detect_leaks=0")
    seen.add(kind)


def good(*args, **more):
    """What a command printed; it must have worked and said nothing else."""
    once(args, more)
    done = run(*args, **more)
    check(done.returncode == 0, args, "gave", done.returncode, done.stderr)
    equal(done.stderr, b"")
    return done.stdout


def text(*args, **more):
    return good(*args, **more).decode()


def parsed(*args, **more):
    def refuse(name):
        raise AssertionError("not JSON: " + name)
    return json.loads(good(*args, "--json", **more), parse_constant=refuse)


def bad(code, *args, says="", **more):
    """A command that must fail with one line on stderr and no output."""
    done = run(*args, **more)
    check(done.returncode == code, args, "gave", done.returncode, done.stderr)
    equal(done.stdout, b"")
    line = done.stderr.decode()
    check(line.startswith("pyramid: "), "odd line", line)
    check(line.count("\n") == 1 and line.endswith("\n"), "not one line", line)
    check(says in line, "no", repr(says), "in", line)
    if code == 2:
        check("--help'" in line, "no hint in", line)
    return line


def size_of(descr):
    return int(descr[2:])


def npy(descr, shape, data, fortran=False, version=1):
    head = "{'descr': %r, 'fortran_order': %s, 'shape': %s, }" % (
        descr, fortran, "(%s)" % "".join("%d," % n for n in shape))
    return raw_npy(head.encode(), data, version)


def raw_npy(head, data=b"", version=1):
    start = 10 if version == 1 else 12
    head += b" " * (-(len(head) + 1 + start) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + data


def descr_of(kind, order=NATIVE):
    size = struct.calcsize("<" + CODES[kind])
    return ("|" if size == 1 else order) + kind[0] + str(size)


def cells(kind, values, order=NATIVE):
    return struct.pack("%s%d%s" % (order, len(values), CODES[kind]), *values)


def array_npy(kind, shape, values, order=NATIVE, **more):
    return npy(descr_of(kind, order), shape, cells(kind, values, order),
               **more)


def save(name, data):
    with open(name, "wb") as out:
        out.write(data)
    return name


def load(data):
    """shape, descr, values of .npy bytes."""
    check(data[:8] == b"\x93NUMPY\x01\x00", "no .npy")
    length = struct.unpack("<H", data[8:10])[0]
    check((10 + length) % 64 == 0, "header not aligned")
    head = eval(data[10:10 + length], {"__builtins__": {}})
    check(head["fortran_order"] is False)
    descr, shape = head["descr"], head["shape"]
    kind = descr[1] + str(8 * size_of(descr))
    n = math.prod(shape)
    body = data[10 + length:]
    equal(len(body), n * size_of(descr))
    return shape, descr, list(struct.unpack(
        "%s%d%s" % (NATIVE, n, CODES[kind]), body))


def make(shape="4,6", kind="i32", *more):
    good("create", "s", "t", "--shape", shape, "--type", kind, *more)


def fill_counting():
    """A 4 x 6 array whose cell r,c is 10 r + c, at version 1."""
    make()
    values = [10 * r + c for r in range(4) for c in range(6)]
    save("count.npy", array_npy("i32", (4, 6), values))
    equal(text("write", "s", "t", "count.npy"), "1\n")


def with_kernels():
    """The environment, with the shipped kernels where they can be used."""
    os.mkdir("kernels", 0o755)
    os.chmod("kernels", 0o755)
    for name in ["gain.so", "median3.so"]:
        to = os.path.join("kernels", name)
        shutil.copyfile(os.path.join(os.environ["PYR_TEST_KERNELS"], name), to)
        os.chmod(to, 0o644)
    return dict(os.environ, PYRAMID_KERNELS=os.path.abspath("kernels"))


# --- help ------------------------------------------------------------------

@test
def help_names_every_verb():
    out = text("--help")
    for verb in VERBS:
        check(re.search(r"^  %s " % verb, out, re.M), verb)
    equal(text("-h"), out)
    check(re.match(r"pyramid \d+\.\d+", text("--version")))


@test
def every_verb_has_help_with_options_and_two_examples():
    for verb in VERBS:
        out = text(verb, "--help")
        equal(text("help", verb), out)
        usage = re.search(r"^Usage: pyramid %s (.*)$" % verb, out, re.M)
        check(usage, verb)
        options = out[out.index("Options:"):out.index("Examples:")]
        for option in re.findall(r"--[a-z-]+", usage.group(1)):
            check(option + " " in options, verb, option)
        for option in ["--json", "--quiet", "--help"]:
            check(option in options, verb, option)
        examples = out[out.index("Examples:"):]
        check(examples.count("pyramid " + verb) >= 2, verb, examples)
        check(all(len(line) <= 100 for line in out.split("\n")), verb)


@test
def help_lists_the_promised_options():
    promised = {
        "init": "durability data lease",
        "create": "shape type chunk fill codec level attrs",
        "write": "at message no-wait", "append": "axis",
        "read": "version box output", "compute": "version box message no-wait",
        "reduce": "version box", "stat": "version box bounds",
        "ls": "long", "info": "version", "log": "number reverse digest",
        "diff": "cells", "last": "box version", "tag": "delete",
        "clone": "version", "resize": "shape", "wait": "timeout",
        "copy": "versions",
        "verify": "deep jobs", "repair": "jobs",
        "forget": "keep older-than tagged", "reclaim": "", "fold": "",
    }
    for verb, options in promised.items():
        out = text(verb, "--help")
        for option in options.split():
            check("--%s " % option in out, verb, option)


# --- bad calls -------------------------------------------------------------

@test
def misuse_exits_2():
    bad(2)
    bad(2, "fly", says="fly")
    bad(2, "--fly", says="--fly")
    bad(2, "help", "fly", says="fly")
    for verb in VERBS:
        bad(2, verb, says="pyramid %s" % verb)
        bad(2, verb, "s", "t", "--fly", says="--fly")
    bad(2, "ls", "s", "t", says="'t'")
    bad(2, "create", "s", "t", "--type", "f64", says="--shape")
    bad(2, "create", "s", "t", "--shape", "3", says="--type")
    bad(2, "create", "s", "t", "--shape", says="--shape")
    for shape in ["", "a", "-1", "3,", ",3", "1.5", "3x4",
                  "99999999999999999999999", ",".join(["1"] * 17)]:
        bad(2, "create", "s", "t", "--shape", shape, "--type", "f64",
            says="--shape")
    two = ["create", "s", "t", "--shape", "3,4", "--type"]
    bad(2, *two, "f16", says="f16")
    bad(2, *two, "f64", "--chunk", "3", says="--chunk")
    bad(2, *two, "f64", "--codec", "gzip", says="gzip")
    bad(2, *two, "f64", "--level", "10", says="--level")
    bad(2, *two, "u8", "--fill", "256", says="256")
    bad(2, *two, "u8", "--fill", "x", says="'x'")
    bad(2, "init", "s", "--durability", "never", says="never")
    bad(2, "init", "s", "--lease", "-5", says="--lease")
    bad(2, "ls", "s", "--long=yes", says="--long")
    bad(2, "forget", "s", "t", says="name versions")
    bad(2, "forget", "s", "t", "4", "--older-than", "9", says="--older-than")
    check(not os.path.exists("s"), "a bad call made a store")


@test
def what_is_not_there_exits_1():
    bad(1, "ls", "nowhere", says="nowhere")
    bad(1, "status", "nowhere", says="nowhere")
    for verb, more in [("info", []), ("read", []), ("stat", []), ("log", []),
                       ("diff", ["0", "0"]), ("last", []), ("tag", []),
                       ("clone", ["x"]), ("resize", ["--shape", "3"]),
                       ("attrs", []), ("wait", ["0"]), ("write", ["f.npy"]),
                       ("append", ["f.npy"])]:
        bad(1, verb, "nowhere", "t", *more, says="nowhere")
    make()
    bad(1, "info", "s", "other", says="other")
    bad(1, "write", "s", "t", "no.npy", says="no.npy")
    bad(1, "info", "s", "t", "--version", "7", says="7")
    bad(1, "info", "s", "t", "--version", "-1", says="-1")
    bad(1, "info", "s", "t", "--version", "nobody", says="nobody")
    bad(1, "tag", "s", "t", "--delete", "nobody", says="nobody")
    bad(1, "create", "s", "t", "--shape", "3", "--type", "f64", says="t")
    save("file", b"not a store")
    bad(1, "ls", "file", says="file")


@test
def options_stand_anywhere():
    fill_counting()
    want = text("read", "s", "t", "--box", "0,0:3")
    equal(want.split(), ["0", "1", "2"])
    equal(text("read", "--box=0,0:3", "s", "t"), want)
    equal(text("read", "s", "--box", "0,0:3", "t"), want)
    equal(text("read", "--box", "0,0:3", "--", "s", "t"), want)
    equal(text("read", "s", "t", "--box", "-4,:-3"), want)


@test
def ceph_is_loaded_for_stores_on_it_only():
    make()
    os.mkdir("lib")
    path = os.path.abspath("lib") + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    env = dict(os.environ, LD_LIBRARY_PATH=path.rstrip(":"))
    save("lib/librados.so.2", b"no library")
    equal(text("ls", "s", env=env), "t\n")
    line = bad(1, "ls", "rados://pool", env=env)
    if "this build has no Ceph engine" in line:
        return
    for word in ["librados.so.2 cannot be used: ", os.path.abspath("lib"),
                 "package librados2"]:
        check(word in line, "no", repr(word), "in", line)
    os.remove("lib/librados.so.2")  # and another library of that name
    shutil.copyfile(os.path.join(os.environ["PYR_TEST_KERNELS"], "gain.so"),
                    "lib/librados.so.2")
    bad(1, "ls", "rados://pool", says="rados_aio_create_completion2", env=env)


# --- verbs -----------------------------------------------------------------

@test
def init_makes_a_store():
    equal(good("init", "s"), b"")
    equal(text("ls", "s"), "")
    bad(1, "init", "s", says="already")
    os.mkdir("d1")
    os.mkdir("d2")
    equal(parsed("init", "s2", "--durability", "os", "--data", "d1",
                 "--data=d2", "--lease", "2500")["store"], "s2")
    status = parsed("status", "s2")
    equal(status["durability"], "os")
    equal(status["lease_ms"], 2500)
    equal(len(status["data"]), 2)


@test
def status_is_for_people_and_monitors():
    fill_counting()
    status = parsed("status", "s")
    equal(status["engine"], "file")
    equal(status["durability"], "commit")
    equal(status["arrays"], 1)
    check(status["format"] >= 1)
    check(status["metadata_bytes"] > 0)
    equal(len(status["data"]), 1)
    out = text("status", "s")
    for word in ["engine", "durability", "format", "data", "writers", "free"]:
        check(word in out, word)


@test
def create_tells_what_it_made():
    made = parsed("create", "s", "a/b", "--shape", "100,200", "--type", "f32",
                  "--chunk", "10,20", "--fill", "nan", "--codec", "lz4",
                  "--level", "3", "--attrs", '{"unit": "K"}')
    equal(made["shape"], [100, 200])
    info = parsed("info", "s", "a/b")
    equal(info["name"], "a/b")
    equal(info["type"], "f32")
    equal(info["chunk"], [10, 20])
    equal(info["fill"], "NaN")
    equal(info["codec"], "lz4")
    equal(info["level"], 3)
    equal(info["version"], 0)
    equal(info["attributes"], {"unit": "K"})
    equal(info["tags"], {})
    out = text("info", "s", "a/b")
    for word in ["100,200", "10,20", "f32", "nan", "lz4", "unit"]:
        check(word in out, word)


@test
def ls_lists_names_in_order():
    for name in ["zeta", "a/b", "alpha", "ünï"]:
        good("create", "s", name, "--shape", "5,6", "--type", "u8")
    equal(text("ls", "s").split(), ["a/b", "alpha", "zeta", "ünï"])
    check("u8" in text("ls", "s", "-l") and "5x6" in text("ls", "s", "-l"))
    equal([a["name"] for a in parsed("ls", "s")],
          ["a/b", "alpha", "zeta", "ünï"])
    equal(parsed("ls", "s", "--long")[0]["shape"], [5, 6])


@test
def write_and_read_every_type():
    for kind in CODES:
        bits = int(kind[1:])
        if kind[0] == "u":
            values = [0, 1, 2 ** bits - 1, 7, 100, 42]
        elif kind[0] == "i":
            values = [-2 ** (bits - 1), -1, 0, 1, 2 ** (bits - 1) - 1, 42]
        else:
            values = [0.5, -1.25, math.inf, -math.inf, 1e30 if bits == 64
                      else 2.0 ** 100, -0.0]
        for order in [NATIVE, OTHER]:
            name = "%s-%s" % (kind, "native" if order == NATIVE else "other")
            good("create", "s", name, "--shape", "2,3", "--type", kind)
            save("in.npy", array_npy(kind, (2, 3), values, order))
            equal(text("write", "s", name, "in.npy"), "1\n")
            good("read", "s", name, "-o", "out.npy")
            shape, descr, back = load(open("out.npy", "rb").read())
            equal((shape, descr, back), ((2, 3), descr_of(kind), values))
            got = parsed("read", "s", name)
            equal(got["type"], kind)
            flat = [x for row in got["cells"] for x in row]
            flat = [float(x.replace("Infinity", "inf")) if isinstance(x, str)
                    else x for x in flat]
            equal(cells(kind, flat), cells(kind, [x + 0 for x in values]))


@test
def formats_1_2_and_3_are_read():
    make()
    for version in [1, 2, 3]:
        save("f.npy", array_npy("i32", (1, 2), [version, 9], version=version))
        equal(text("write", "s", "t", "f.npy"), "%d\n" % version)
        equal(text("read", "s", "t", "--box", "0,0"), "%d\n" % version)


@test
def booleans_are_u8():
    make("2,2", "u8")
    save("b.npy", npy("|b1", (2, 2), b"\x01\x00\x00\x01"))
    good("write", "s", "t", "b.npy")
    equal(text("read", "s", "t"), "1 0\n0 1\n")


@test
def fortran_order_is_understood():
    values = list(range(24))
    column_major = [values[(i * 3 + j) * 4 + k] for k in range(4)
                    for j in range(3) for i in range(2)]
    make("2,3,4")
    for order in [NATIVE, OTHER]:
        data = array_npy("i32", (2, 3, 4), column_major, order, fortran=True)
        save("f.npy", data)
        for source, stdin in [("f.npy", b""), ("-", data)]:
            good("write", "s", "t", source, stdin=stdin)
            good("read", "s", "t", "-o", "o.npy")
            equal(load(open("o.npy", "rb").read())[2], values)
    make2 = ["create", "s", "grow", "--shape", "0,3,4", "--type", "i32"]
    good(*make2)
    good("append", "s", "grow", "f.npy")
    good("append", "s", "grow", "-", stdin=data)
    good("read", "s", "grow", "-o", "o.npy")
    equal(load(open("o.npy", "rb").read())[2], values * 2)


@test
def standard_input_and_output():
    make()
    data = array_npy("i32", (4, 6), list(range(24)))
    equal(text("write", "s", "t", "-", stdin=data), "1\n")
    out = good("read", "s", "t", "-o", "-")
    equal(load(out)[0], (4, 6))
    equal(load(out)[2], list(range(24)))
    bad(2, "read", "s", "t", "-o", "-", "--json")
    with open(save("in.npy", data), "rb") as f:
        done = subprocess.run([TOOL, "write", "s", "t", "-"], stdin=f,
                              stdout=subprocess.PIPE)
        equal(done.stdout, b"2\n")


@test
def write_at_a_place():
    make()
    save("p.npy", array_npy("i32", (2, 2), [1, 2, 3, 4]))
    made = parsed("write", "s", "t", "--at", "1,3", "p.npy")
    equal(made, {"version": 1, "offset": [1, 3], "size": [2, 2]})
    equal(text("read", "s", "t", "--box", "1:3,2:6"), "0 1 2 0\n0 3 4 0\n")
    bad(1, "write", "s", "t", "--at", "3,3", "p.npy", says="t")
    bad(1, "write", "s", "t", "--at", "18446744073709551615,0", "p.npy")
    bad(1, "write", "s", "t", "--at", "1", "p.npy", says="--at")
    bad(2, "write", "s", "t", "--at", "1,x", "p.npy", says="--at")
    equal(parsed("info", "s", "t")["latest"], 1)


@test
def fewer_dimensions_get_leading_axes():
    make()
    save("row.npy", array_npy("i32", (6,), [1, 2, 3, 4, 5, 6]))
    good("write", "s", "t", "--at", "2,0", "row.npy")
    equal(text("read", "s", "t", "--box", "2"), "1 2 3 4 5 6\n")
    save("cell.npy", array_npy("i32", (), [77]))
    bad(1, "write", "s", "t", "cell.npy", says="--at")
    good("write", "s", "t", "--at", "3,5", "cell.npy")
    equal(text("read", "s", "t", "--box", "3,5"), "77\n")
    save("cube.npy", array_npy("i32", (1, 1, 1), [1]))
    bad(1, "write", "s", "t", "cube.npy", says="dimensions")


@test
def types_must_agree():
    make()
    save("f.npy", array_npy("f64", (1, 1), [1.0]))
    line = bad(1, "write", "s", "t", "f.npy", says="f64")
    check("i32" in line, line)
    bad(1, "append", "s", "t", "f.npy", says="f64")
    for descr in ["<f2", "<c16", "|S5", "<U3", "|O", "<M8[ns]", "<f16", "|V8"]:
        save("x.npy", raw_npy(("{'descr': '%s', 'fortran_order': False, "
                               "'shape': (1, 1), }" % descr).encode()))
        bad(1, "write", "s", "t", "x.npy", says=descr)


@test
def hostile_npy_files_are_refused():
    make()
    whole = array_npy("i32", (4, 6), list(range(24)))
    dictionary = b"{'descr': '<i4', 'fortran_order': False, 'shape': %s, }"
    hostile = [
        b"", b"\x93NUMPY", b"PK\x03\x04 not npy at all", whole[:9],
        whole[:40], whole[:-1], whole[:128],
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + whole[10:],
        b"\x93NUMPY\x09\x00" + whole[8:], b"\x93NUMPY\x01\x00\x00\x00",
        raw_npy(b""), raw_npy(b"{" * 5000), raw_npy(b"{'descr': " * 100),
        raw_npy(dictionary % b"(4294967296, 4294967296, 4294967296)"),
        raw_npy(dictionary % b"(9223372036854775807,)"),
        raw_npy(dictionary % b"(0, 18446744073709551615, 18446744073709551615)"
                ),
        raw_npy(dictionary % b"(-1, 6)"), raw_npy(dictionary % b"(4, '6')"),
        raw_npy(dictionary % (b"(" + b"1," * 5000 + b")")),
        raw_npy(dictionary % b"(4, 6)" + b"; import os"),
        raw_npy(b"{'descr': '\x1b[31m\n', 'fortran_order': False, "
                b"'shape': (1,)}"),
        raw_npy(b"{'descr': '<i4', 'fortran_order': False, 'shape': "
                b"().__class__}"),
    ]
    for data in hostile:
        bad(1, "write", "s", "t", save("h.npy", data), says="h.npy")
        bad(1, "write", "s", "t", "-", stdin=data, says="standard input")
        bad(1, "append", "s", "t", "-", stdin=data, says="standard input")
    equal(parsed("info", "s", "t")["latest"], 0)


@test
def hostile_names_are_refused_or_shown_harmless():
    make()
    for name in ["", ".", "..", "../x", "a//b", "/a", "a/", "a/../b", "a\nb",
                 "\x1b[31mred", "x" * 300]:
        bad(1, "create", "s", name, "--shape", "3", "--type", "u8")
        bad(1, "info", "s", name)
        if name:
            bad(1, "tag", "s", "t", name)
        bad(1, "clone", "s", "t", name)
    bad(1, "ls", "no\nwhere\x1b[0m", says="no\\x0awhere\\x1b")
    bad(2, "evil\nverb", says="evil\\x0averb")
    equal(text("ls", "s"), "t\n")
    good("create", "--shape", "3", "--type", "u8", "--", "s", "-dash")
    equal(text("ls", "s"), "-dash\nt\n")
    good("create", "s", 'q"\\é', "--shape", "3", "--type", "u8")
    check('q"\\é' in [a["name"] for a in parsed("ls", "s")])


@test
def messages_are_kept_and_shown_on_one_line():
    make()
    save("c.npy", array_npy("i32", (1, 1), [5]))
    message = 'say "hi"\n\t\x1b[31m\\ é ☃'
    good("write", "s", "t", "c.npy", "--message", message)
    equal(parsed("log", "s", "t")[0]["message"], message)
    out = text("log", "s", "t")
    equal(out.count("\n"), 2)
    check("\x1b" not in out and "é ☃" in out)


@test
def boxes_are_those_of_numpy():
    fill_counting()
    rows = [[10 * r + c for c in range(6)] for r in range(4)]

    def box(spec, want, shape):
        got = parsed("read", "s", "t", "--box", spec)
        equal((spec, got["cells"], got["shape"]), (spec, want, shape))
        good("read", "s", "t", "--box", spec, "-o", "o.npy")
        flat = want
        for _ in shape[1:]:
            flat = [x for row in flat for x in row]
        flat = flat if isinstance(flat, list) else [flat]
        equal((spec,) + load(open("o.npy", "rb").read())[::2],
              (spec, tuple(shape), flat))

    box(":", rows, [4, 6])
    box("...", rows, [4, 6])
    box("1", rows[1], [6])
    box("-1,-1", rows[3][5], [])
    box("1:3,2:4", [r[2:4] for r in rows[1:3]], [2, 2])
    box(":,2", [r[2] for r in rows], [4])
    box("...,2", [r[2] for r in rows], [4])
    box("::2", rows[::2], [2, 6])
    box("1::2,::5", [r[::5] for r in rows[1::2]], [2, 2])
    box(":,1:6:2", [r[1:6:2] for r in rows], [4, 3])
    box("2,::3", rows[2][::3], [2])
    box("-2:,:-4", [r[:-4] for r in rows[-2:]], [2, 2])
    box("-100:100,4:100", [r[4:] for r in rows], [4, 2])
    box("9:", [], [0, 6])
    box("3:1,0", [], [0])
    for spec in ["", "x", "1:2:3:4", "::0", "::-1", "...,...", "1,", "1.5"]:
        bad(2, "read", "s", "t", "--box", spec)
    for spec in ["4", "-5", "0,6", "0,0,0"]:
        bad(1, "read", "s", "t", "--box", spec, says="t")
    for verb in ["stat", "last"]:
        bad(2, verb, "s", "t", "--box", "::2", says="steps")
    for verb in ["compute", "reduce"]:
        bad(2, verb, "s", "t", "x", "--box", "::2", says="steps")


@test
def small_results_are_rows_of_text():
    make("2,2,3", "f64", "--fill", "nan")
    save("c.npy", array_npy("f64", (1, 2, 3), [1, 2.5, -3, 1e20, 0.1, 1 / 3]))
    good("write", "s", "t", "c.npy")
    lines = text("read", "s", "t").split("\n")
    equal(len(lines), 6)
    equal(lines[0].split(), ["1", "2.5", "-3"])
    equal(lines[1].split(), ["1e+20", "0.1", repr(1 / 3)])
    equal(lines[2], "")
    equal(lines[3].split(), ["nan"] * 3)
    good("create", "s", "big", "--shape", "1001", "--type", "u8")
    bad(1, "read", "s", "big", says="-o")
    equal(len(text("read", "s", "big", "--box", ":1000").split()), 1000)


@test
def versions_have_many_names():
    make()
    for n in range(1, 5):
        save("c.npy", array_npy("i32", (1, 1), [n]))
        equal(text("write", "s", "t", "c.npy"), "%d\n" % n)
    good("tag", "s", "t", "good", "2")
    for name, want in [("0", 0), ("3", 3), ("latest", 4), ("-1", 3),
                       ("-4", 0), ("good", 2)]:
        got = parsed("read", "s", "t", "--box", "0,0", "--version", name)
        equal((name, got["cells"], got["version"]), (name, want, want))
    bad(1, "read", "s", "t", "--version", "5", says="5")
    bad(1, "read", "s", "t", "--version", "-5", says="-5")
    bad(2, "read", "s", "t", "--version", "99999999999999999999")
    bad(1, "read", "s", "t", "--version", "", says="t")


@test
def stat_agrees_with_the_cells():
    fill_counting()
    values = [10 * r + c for r in range(4) for c in range(6)]
    stat = parsed("stat", "s", "t")
    mean = sum(values) / 24
    equal((stat["count"], stat["min"], stat["max"], stat["sum"], stat["nans"]),
          (24, 0, 35, sum(values), 0))
    equal(stat["not_fill"], 23)
    equal(stat["all_equal"], False)
    check(abs(stat["mean"] - mean) < 1e-12)
    std = math.sqrt(sum((v - mean) ** 2 for v in values) / 24)
    check(abs(stat["std"] - std) < 1e-9)
    check("nodes_read" in stat and "chunks_read" in stat)
    equal(parsed("stat", "s", "t", "--box", "2,1:3")["sum"], 21 + 22)
    empty = parsed("stat", "s", "t", "--version", "0")
    equal((empty["all_equal"], empty["not_fill"], empty["std"]), (True, 0, 0))
    bounds = parsed("stat", "s", "t", "--bounds", "--box", "1:3,1:3")
    check(bounds["min"] <= 11 and bounds["max"] >= 22 and
          bounds["chunks_read"] == 0 and "sum" not in bounds)
    out = text("stat", "s", "t")
    for word in ["count", "min", "max", "sum", "mean", "std", "nans",
                 "not fill", "all equal", "nodes", "chunks"]:
        check(word in out, word)


@test
def compute_makes_a_version_of_another():
    fill_counting()
    good("resize", "s", "t", "--shape", "3,9")
    equal(text("compute", "s", "t", "x*2 + i1", "--version", "1"), "3\n")
    equal(parsed("read", "s", "t", "--box", "2,:7")["cells"],
          [2 * x + i for i, x in enumerate(
              parsed("read", "s", "t", "--version", "1",
                     "--box", "2")["cells"])] + [0])
    made = parsed("compute", "s", "t", "x - x@1", "--box", "0:1,2:4",
                  "-m", "since the first")
    equal(made, {"version": 4, "source": 3, "offset": [0, 2], "size": [1, 2]})
    change = parsed("log", "s", "t")[0]
    equal((change["kind"], change["source"], change["expression"],
           change["message"]), ("compute", 3, "x - x@1", "since the first"))
    check("from version 3  by x - x@1" in text("log", "s", "t"))
    bad(1, "compute", "s", "t", "x@99", says="99")
    bad(1, "compute", "s", "t", "mean(x)", says="reduce")
    done = run("compute", "s", "t", "x + y")
    equal((done.returncode, done.stdout), (2, b""))
    lines = done.stderr.decode().split("\n")
    check(lines[0].startswith("pyramid: compute: column 5: 'y' is unknown"))
    equal(lines[1:], ["    x + y", "        ^", ""])


@test
def kernels_are_called_by_name():
    env = with_kernels()
    fill_counting()
    equal(text("compute", "s", "t", "x - gain(factor=0.5)", env=env), "2\n")
    check("by x - gain(factor=0.5)  # gain 1.0" in text("log", "s", "t"))
    equal(text("compute", "s", "t", "median3()", "--version", "1",
               "--box", "1:3,1:3", env=env), "3\n")
    equal(parsed("read", "s", "t", "--box", "1:3,1:3")["cells"],
          [[11, 12], [21, 22]])
    equal(text("reduce", "s", "t", "max(abs(x - median3()))", "--version", "1",
               env=env), "1\n")
    bad(1, "compute", "s", "t", "gain(faktor=2)", says="'faktor'", env=env)
    bad(1, "compute", "s", "t", "nowhere()", says="'nowhere'", env=env)
    bad(1, "compute", "s", "t", "gain()", says="off",
        env=dict(env, PYRAMID_KERNELS=""))
    bad(1, "compute", "s", "t", "gain()", says="absolute",
        env=dict(env, PYRAMID_KERNELS="kernels"))
    equal(parsed("info", "s", "t")["latest"], 3)


@test
def handlers_are_added_listed_and_removed():
    fill_counting()
    equal(text("handler", "add", "s", "t", "on-write", "where(x>10,10,x)"),
          "1\n")
    equal(parsed("handler", "add", "s", "t", "on-write", "x+1"), {"added": 2})
    listed = parsed("handler", "ls", "s", "t")
    equal([(h["number"], h["event"], h["function"]) for h in listed],
          [(1, "on-write", "where(x > 10, 10, x)"), (2, "on-write", "x + 1")])
    check("1  " in text("handler", "ls", "s", "t"))
    good("write", "s", "t", "count.npy")
    equal(parsed("stat", "s", "t")["max"], 11)
    equal(parsed("log", "s", "t")[0]["handlers"],
          "where(x > 10, 10, x); x + 1")
    check("through where(x > 10, 10, x); x + 1" in text("log", "s", "t"))
    good("handler", "rm", "s", "t", "1")
    bad(1, "handler", "rm", "s", "t", "1", says="handler 1")
    bad(2, "handler", "rm", "s", "t", "one", says="'one'")
    bad(2, "handler", "add", "s", "t", "on-read", "x", says="on-read")
    bad(2, "handler", "fly", "s", "t", says="fly")
    bad(2, "handler", "ls", "s", "t", "u", says="STORE ARRAY")
    bad(1, "handler", "add", "s", "t", "on-write", "x@1", says="forgotten")
    done = run("handler", "add", "s", "t", "on-write", "x + y")
    check(done.returncode == 2 and b"column 5" in done.stderr)
    good("write", "s", "t", "count.npy")
    equal(parsed("stat", "s", "t")["max"], 36)


@test
def compute_over_huge_arrays():
    good("create", "s", "h", "--shape", "31622777,31622777", "--type", "f64",
         "--fill", "1.5")
    equal(text("compute", "s", "h", "x*2"), "1\n")
    equal(parsed("read", "s", "h", "--box", "31622776,4:6")["cells"], [3, 3])
    stat = parsed("stat", "s", "h")
    equal((stat["min"], stat["max"], stat["count"], stat["chunks_read"]),
          (3, 3, 31622777 ** 2, 0))
    equal(parsed("reduce", "s", "h", "mean(x)")["bytes_read"], 0)
    equal(text("compute", "s", "h", "x+1", "--box", "0:30000000"), "2\n")
    equal(parsed("read", "s", "h", "--box", "29999999:30000001,7")["cells"],
          [4, 3])
    bad(1, "compute", "s", "h", "x+i0", says="coordinates")
    good("verify", "s", "--deep")


@test
def reduce_gives_one_value():
    fill_counting()
    cells = [c for row in parsed("read", "s", "t")["cells"] for c in row]
    equal(text("reduce", "s", "t", "sum(x)"), "%d\n" % sum(cells))
    equal(parsed("reduce", "s", "t", "sum(x*x)")["value"],
          sum(c * c for c in cells))
    equal(parsed("reduce", "s", "t", "mean(x)")["bytes_read"], 0)
    equal(text("reduce", "s", "t", "argmax(x)"), "3, 5\n")
    equal(text("reduce", "s", "t", "mean(x / 0.0)", "--box", "0:0"), "none\n")
    equal(parsed("reduce", "s", "t", "mean(x)", "--box", "0:0")["value"], None)
    hist = parsed("reduce", "s", "t", "histogram(x, 10, 20, 2)")
    equal(hist["counts"], [sum(10 <= c < 15 for c in cells),
                           sum(15 <= c <= 20 for c in cells)])
    equal(hist["below"], sum(c < 10 for c in cells))
    equal(len(text("reduce", "s", "t", "histogram(x, 0, 1, 3)").split("\n")),
          4)
    bad(1, "reduce", "s", "t", "x", says="reduction")


@test
def stat_of_nan_and_of_large_integers():
    make("3", "f64", "--fill", "nan")
    stat = parsed("stat", "s", "t")
    equal((stat["nans"], stat["min"], stat["mean"]), (3, "NaN", "NaN"))
    good("create", "s", "u", "--shape", "2", "--type", "u64")
    save("u.npy", array_npy("u64", (2,), [2 ** 64 - 1, 2 ** 53 + 1]))
    good("write", "s", "u", "u.npy")
    stat = parsed("stat", "s", "u")
    equal((stat["min"], stat["max"]), (2 ** 53 + 1, 2 ** 64 - 1))


@test
def log_tells_who_what_and_why():
    make()
    save("p.npy", array_npy("i32", (2, 2), [1, 2, 3, 4]))
    good("write", "s", "t", "p.npy", "-m", "first")
    good("write", "s", "t", "--at", "2,4", "p.npy")
    good("resize", "s", "t", "--shape", "5,6")
    log = parsed("log", "s", "t")
    equal([c["version"] for c in log], [3, 2, 1, 0])
    equal([c["kind"] for c in log], ["resize", "write", "write", "create"])
    equal(log[2]["message"], "first")
    equal(log[1]["parts"], [{"offset": [2, 4], "size": [2, 2]}])
    equal(log[0]["shape"], [5, 6])
    check("@" in log[1]["who"] and abs(log[1]["time_ns"] / 1e9 - time.time())
          < 600)
    lines = text("log", "s", "t").split("\n")
    equal(len(lines), 5)
    check("2:4,4:6" in lines[1] and "first" in lines[2])
    equal([c["version"] for c in parsed("log", "s", "t", "-n", "2")], [3, 2])
    equal([c["version"] for c in parsed("log", "s", "t", "-n2", "--reverse")],
          [2, 3])
    equal(parsed("log", "s", "t", "-n", "0"), [])
    equal(len(parsed("log", "s", "t", "-n", "100", "--reverse")), 4)


@test
def diff_finds_what_changed():
    make("100,100", "i64", "--chunk", "10,10")
    save("p.npy", array_npy("i64", (2, 2), [1, 2, 3, -4]))
    good("write", "s", "t", "--at", "15,25", "p.npy")
    equal(text("diff", "s", "t", "1", "latest"), "")
    diff = parsed("diff", "s", "t", "0", "1", "--cells")
    equal((diff["from"], diff["to"], diff["differing"], diff["largest"]),
          (0, 1, 4, 4))
    cover = set()
    for b in diff["boxes"]:
        for i in range(b["size"][0]):
            for j in range(b["size"][1]):
                cover.add((b["offset"][0] + i, b["offset"][1] + j))
    check({(15, 25), (16, 26)} <= cover and diff["cells_in_boxes"] >= 4)
    check("4 of" in text("diff", "s", "t", "-1", "latest", "--cells"))
    good("resize", "s", "t", "--shape", "100,101")
    after = parsed("diff", "s", "t", "1", "2", "--cells")
    equal((after["from_shape"], after["to_shape"]), ([100, 100], [100, 101]))
    bad(1, "diff", "s", "t", "0", "9", says="9")
    bad(2, "diff", "s", "t", "0")


@test
def last_names_the_version():
    make()
    save("p.npy", array_npy("i32", (2, 2), [1, 2, 3, 4]))
    good("write", "s", "t", "p.npy")
    good("write", "s", "t", "--at", "2,4", "p.npy")
    equal(parsed("last", "s", "t")["version"], 2)
    equal(parsed("last", "s", "t", "--box", "0:2,0:2")["version"], 1)
    equal(parsed("last", "s", "t", "--version", "1")["version"], 1)
    equal(text("last", "s", "t", "--box", "2,4").split()[0], "2")


@test
def fold_makes_no_version_and_changes_no_cell():
    fill_counting()
    save("p.npy", array_npy("i32", (1, 2), [7, 8]))
    for row in range(4):
        good("write", "s", "t", "--at", "%d,%d" % (row, row), "p.npy")
    before = [good("read", "s", "t", "--version", str(v)) for v in range(6)]
    bad(1, "fold", "s", "other", says="other")
    bad(1, "fold", "nowhere", says="nowhere")
    done = parsed("fold", "s", "t")
    equal((done["chunks"], done["fragments"], done["left"]), (1, 5, 0))
    equal(parsed("fold", "s")["chunks"], 0)
    check("0 chunks" in text("fold", "s"))
    equal(text("fold", "s", "--quiet"), "")
    equal(parsed("info", "s", "t")["version"], 5)
    equal(parsed("last", "s", "t", "--box", "0,0")["version"], 2)
    equal(parsed("verify", "s", "--deep")["harms"], 0)
    for v in range(6):
        equal(good("read", "s", "t", "--version", str(v)), before[v])


@test
def tags_are_set_moved_listed_and_deleted():
    fill_counting()
    equal(text("tag", "s", "t"), "")
    good("tag", "s", "t", "a")
    equal(parsed("tag", "s", "t", "b", "0"), {"tag": "b", "version": 0})
    equal(parsed("tag", "s", "t"), {"a": 1, "b": 0})
    good("tag", "s", "t", "b", "-0")
    equal(parsed("tag", "s", "t"), {"a": 1, "b": 1})
    equal(parsed("info", "s", "t")["tags"], {"a": 1, "b": 1})
    equal(text("tag", "s", "t").split(), ["1", "a", "1", "b"])
    good("tag", "s", "t", "--delete", "a")
    equal(parsed("tag", "s", "t"), {"b": 1})
    bad(1, "tag", "s", "t", "c", "9", says="9")
    for name in ["7", "-1", "latest"]:
        bad(2, "tag", "s", "t", name, says=name)
    bad(2, "tag", "s", "t", "x", "--delete", "b")


@test
def clones_start_as_a_snapshot():
    fill_counting()
    equal(parsed("clone", "s", "t", "u"),
          {"array": "u", "clone_of": "t", "clone_version": 1})
    good("clone", "s", "t", "empty", "--version", "0")
    equal(text("read", "s", "u"), text("read", "s", "t"))
    equal(set(text("read", "s", "empty").split()), {"0"})
    info = parsed("info", "s", "u")
    equal((info["clone_of"], info["clone_version"], info["latest"]),
          ("t", 1, 0))
    equal(parsed("log", "s", "u")[0]["kind"], "clone")
    bad(1, "clone", "s", "t", "u", says="u")


def history(store, array):
    return [{k: v for k, v in change.items()}
            for change in parsed("log", store, array)]


@test
def a_copy_is_the_same_array_elsewhere():
    fill_counting()
    for at in ["0,0", "2,3", "1,1"]:
        save("one.npy", array_npy("i32", (1, 1), [77]))
        good("write", "s", "t", "--at", at, "-m", "at " + at, "one.npy")
    good("tag", "s", "t", "best", "2")
    good("attrs", "s", "t", '{"unit": "K"}')
    done = parsed("copy", "s", "t", "backup")
    equal([(x["array"], x["name"], x["versions"]) for x in done],
          [("t", "t", 4)])
    equal(history("backup", "t"), history("s", "t"))
    for version in range(5):
        equal(text("read", "backup", "t", "--version", version),
              text("read", "s", "t", "--version", version))
    equal(text("tag", "backup", "t"), text("tag", "s", "t"))
    equal(text("attrs", "backup", "t"), text("attrs", "s", "t"))
    equal(parsed("copy", "s", "t", "backup")[0]["versions"], 0)
    good("write", "s", "t", "--at", "0,1", "one.npy")
    equal(text("copy", "s", "t", "backup"), "t: 1 version, 4 B\n")
    equal(history("backup", "t"), history("s", "t"))


@test
def some_versions_can_be_copied():
    fill_counting()
    for at in range(6):
        save("one.npy", array_npy("i32", (1, 1), [at]))
        good("write", "s", "t", "--at", "0,0", "one.npy")
    good("tag", "s", "t", "best", "3")
    for name, versions in [("a", "best,5..6"), ("b", "6,3,5"),
                           ("c", "3..3,5..latest,-1,6")]:
        want = [0, 3, 5, 6] + [7] * (name == "c")
        equal(parsed("copy", "s", "t@" + versions, "d", name)[0]["versions"],
              len(want) - 1)
        equal([x["version"] for x in parsed("log", "d", name)][::-1], want)
        for version in want:
            equal(text("read", "d", name, "--version", version),
                  text("read", "s", "t", "--version", version))
    bad(1, "read", "d", "a", "--version", "4", says="4")
    bad(1, "copy", "s", "t", "d", "a", "--versions", "1,7", says="version 1")
    bad(1, "copy", "s", "t@9", "d", says="9")
    bad(1, "copy", "s", "t@nobody", "d", says="nobody")
    for versions in ["5..3", "1,,2", "", "1..x", "..", "1..2..3"]:
        bad(2, "copy", "s", "t", "d", "--versions", versions)
    bad(2, "copy", "s", "d", "--versions", "1", says="--versions")


@test
def a_store_is_copied_with_its_clones():
    fill_counting()
    good("clone", "s", "t", "a-clone")
    save("one.npy", array_npy("i32", (1, 1), [5]))
    good("write", "s", "a-clone", "one.npy")
    good("create", "s", "other", "--shape", "3", "--type", "u8")
    done = parsed("copy", "s", "d")
    equal([x["name"] for x in done], ["other", "t", "a-clone"])
    equal(text("ls", "-l", "d"), text("ls", "-l", "s"))
    for array in ["t", "a-clone", "other"]:
        equal(history("d", array), history("s", array))
        equal(text("read", "d", array), text("read", "s", array))
    good("copy", "s", "a-clone", "alone")
    equal(text("ls", "alone"), "a-clone\na-clone.origin\n")
    equal(history("alone", "a-clone"), history("s", "a-clone"))
    equal(text("read", "alone", "a-clone"), text("read", "s", "a-clone"))


@test
def a_copy_does_not_take_a_name_that_is_taken():
    fill_counting()
    good("create", "d", "t", "--shape", "3", "--type", "u8")
    bad(1, "copy", "s", "t", "d", says="another name")
    bad(1, "copy", "s", "nobody", "d", says="nobody")
    bad(1, "copy", "nowhere", "d", says="nowhere")
    good("copy", "s", "t", "d", "u")
    equal(text("read", "d", "u"), text("read", "s", "t"))


@test
def resize_and_append_change_the_shape():
    fill_counting()
    equal(text("resize", "s", "t", "--shape", "2,6"), "2\n")
    save("row.npy", array_npy("i32", (6,), [1, 2, 3, 4, 5, 6]))
    equal(text("append", "s", "t", "row.npy"), "3 at 2\n")
    save("col.npy", array_npy("i32", (3, 2), [7, 8, 7, 8, 7, 8]))
    equal(parsed("append", "s", "t", "--axis", "1", "-",
                 stdin=open("col.npy", "rb").read()),
          {"version": 4, "axis": 1, "at": 6, "count": 2})
    equal(text("read", "s", "t").split(),
          "0 1 2 3 4 5 7 8 10 11 12 13 14 15 7 8 1 2 3 4 5 6 7 8".split())
    equal(text("read", "s", "t", "--version", "1").count("\n"), 4)
    bad(1, "append", "s", "t", "row.npy", says="axis 1")
    bad(1, "append", "s", "t", "--axis", "2", "row.npy", says="axis 2")
    bad(1, "resize", "s", "t", "--shape", "2", says="--shape")
    bad(2, "resize", "s", "t", says="--shape")


@test
def attributes_are_json():
    make()
    equal(json.loads(text("attrs", "s", "t")), {})
    good("attrs", "s", "t", '{"a": [1, {"b": null}], "é": "☃"}')
    equal(parsed("attrs", "s", "t"), {"a": [1, {"b": None}], "é": "☃"})
    for wrong in ["", "[]", "{", "{} x", "nonsense"]:
        bad(1, "attrs", "s", "t", wrong)
    equal(json.loads(text("attrs", "s", "t"))["é"], "☃")


@test
def waiting():
    make()
    save("c.npy", array_npy("i32", (1, 1), [5]))
    equal(text("write", "s", "t", "--no-wait", "c.npy"), "1\n")
    equal(good("wait", "s", "t", "1"), b"")
    equal(parsed("wait", "s", "t", "latest", "--timeout", "5000"),
          {"version": 1})
    bad(1, "wait", "s", "t", "99", "--timeout", "50", says="99")
    bad(2, "wait", "s", "t", "1", "--timeout", "x", says="--timeout")


def harm_a_segment():
    """Change a byte of cells behind the store's back."""
    make("20000", "f64", "--chunk", "20000")
    save("c.npy", array_npy("f64", (20000,), [float(i) for i in range(20000)]))
    good("write", "s", "t", "c.npy")
    name = [n for n in os.listdir("s/data") if n.endswith(".seg")][0]
    with open(os.path.join("s/data", name), "r+b") as f:
        f.seek(50000)
        byte = f.read(1)[0]
        f.seek(50000)
        f.write(bytes([byte ^ 1]))


@test
def verify_finds_nothing_in_a_good_store():
    fill_counting()
    out = text("verify", "s")
    check(out.startswith("1 arrays, 2 versions"), out)
    deep = parsed("verify", "s", "--deep", "--jobs", "2")
    equal((deep["harm"], deep["harms"]), ([], 0))
    equal((deep["orphan_nodes"], deep["orphan_blobs"]), (0, 0))
    check(deep["fragments"] > 0 and deep["bytes"] > 0)
    fixed = parsed("repair", "s")
    equal((fixed["summaries"], fixed["harms"]), (0, 0))
    bad(2, "verify", "s", "--jobs", "many")
    bad(1, "verify", "nowhere")


@test
def verify_names_what_is_harmed_and_exits_1():
    harm_a_segment()
    good("verify", "s")
    done = run("verify", "s", "--deep")
    equal(done.returncode, 1)
    lines = done.stdout.decode().split("\n")
    check(lines[0].startswith("array 't', version 1, box 0:20000: "), lines)
    equal(done.stderr.decode().count("\n"), 1)
    done = run("verify", "s", "--deep", "--json")
    equal(done.returncode, 1)
    harm = json.loads(done.stdout)["harm"]
    equal([(h["array"], h["version"], h["offset"], h["size"]) for h in harm],
          [("t", 1, [0], [20000])])
    equal(run("repair", "s").returncode, 1)
    bad(1, "stat", "s", "t", "--box", "1:20000", says="version 1")
    good("read", "s", "t", "--version", "0", "--box", "0:3")


@test
def digests_are_equal_where_cells_are():
    fill_counting()
    log = parsed("log", "s", "t", "--digest")
    check(all(re.fullmatch("[0-9a-f]{32}", c["digest"]) for c in log), log)
    check(len({c["digest"] for c in log}) == len(log))
    line = text("log", "s", "t", "--digest", "-n", "1")
    check(line.startswith(log[0]["digest"] + "  "), line)
    check("digest" not in parsed("log", "s", "t")[0])


@test
def every_verb_prints_one_json_document():
    fill_counting()
    for call in [["ls", "s"], ["info", "s", "t"], ["log", "s", "t"],
                 ["diff", "s", "t", "0", "1"], ["last", "s", "t"],
                 ["tag", "s", "t"], ["tag", "s", "t", "x"],
                 ["tag", "s", "t", "--delete", "x"], ["read", "s", "t"],
                 ["read", "s", "t", "-o", "o.npy"], ["stat", "s", "t"],
                 ["clone", "s", "t", "u"], ["attrs", "s", "t"],
                 ["resize", "s", "u", "--shape", "5,6"], ["status", "s"],
                 ["verify", "s"], ["repair", "s"], ["wait", "s", "t", "1"], ["write", "s", "t", "count.npy"],
                 ["append", "s", "t", "count.npy"], ["init", "s3"],
                 ["create", "s", "v", "--shape", "3", "--type", "u8"]]:
        out = good(*call, "--json").decode()
        check(out.endswith("\n") and out.count("\n") == 1, call, out)
        json.loads(out)


# --- files, streams, terminals ---------------------------------------------

@test
def output_files_appear_when_they_are_complete():
    fill_counting()
    save("o.npy", b"old")
    bad(1, "read", "s", "t", "--version", "9", "-o", "o.npy")
    equal(open("o.npy", "rb").read(), b"old")
    good("read", "s", "t", "-o", "o.npy")
    equal(load(open("o.npy", "rb").read())[0], (4, 6))
    bad(1, "read", "s", "t", "-o", "no/such/o.npy", says="no/such/o.npy")
    equal([n for n in os.listdir(".") if "o.npy" in n], ["o.npy"])
    mask = os.umask(0)
    os.umask(mask)
    equal(os.stat("o.npy").st_mode & 0o777, 0o666 & ~mask)
    good("read", "s", "t", "-o", "/dev/null")
    check(not os.path.isfile("/dev/null"))


@test
def output_that_cannot_be_written_is_an_error():
    fill_counting()
    for call in [["read", "s", "t"], ["log", "s", "t"], ["ls", "s"],
                 ["info", "s", "t", "--json"], ["--help"], ["read", "--help"],
                 ["read", "s", "t", "-o", "-"], ["--version"]]:
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, *call], stdout=full,
                                  stderr=subprocess.PIPE)
        equal((call, done.returncode), (call, 1))
        check(os.strerror(errno.ENOSPC) in done.stderr.decode(), done.stderr)
        equal(done.stderr.count(b"\n"), 1)
        done = subprocess.run([TOOL, *call], stderr=subprocess.PIPE,
                              preexec_fn=lambda: os.close(1))
        equal((call, done.returncode), (call, 1))
    equal(parsed("info", "s", "t")["latest"], 1)


def stream(shape, rows, make_row):
    """Write a .npy through a pipe, never holding it whole."""
    child = subprocess.Popen([TOOL, "write", "s", "t", "-"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    child.stdin.write(npy(descr_of("i32"), shape, b""))
    for r in range(rows):
        child.stdin.write(make_row(r))
    child.stdin.close()
    out, err = child.stdout.read(), child.stderr.read()
    return child.wait(), out, err


@test
def large_streams_become_one_version():
    width = 1 << 16
    make("400,%d" % width, "i32", "--chunk", "64,4096")
    rows = [struct.pack("%si" % NATIVE, r) * width for r in range(400)]
    code, out, err = stream((400, width), 400, lambda r: rows[r])
    equal((code, out, err), (0, b"1\n", b""))
    stat = parsed("stat", "s", "t")
    equal((stat["min"], stat["max"], stat["sum"]),
          (0, 399, width * 399 * 200))
    equal(text("read", "s", "t", "--box", "::57,::20000").split("\n")[3],
          "171 171 171 171")
    equal(len(parsed("log", "s", "t")), 2)
    child = subprocess.Popen([TOOL, "read", "s", "t", "-o", "-"],
                             stdout=subprocess.PIPE)
    child.stdout.read(128)
    for r in range(400):
        check(child.stdout.read(4 * width) == rows[r], "row", r)
    equal((child.stdout.read(), child.wait()), (b"", 0))
    good("read", "s", "t", "-o", "o.npy")
    equal(os.path.getsize("o.npy"), 128 + 400 * width * 4)
    equal(text("write", "s", "t", "o.npy"), "2\n")
    equal(parsed("diff", "s", "t", "1", "2", "--cells")["differing"], 0)
    log = text("log", "s", "t", "-n", "1")
    check("0:400,0:%d" % width in log, log)


@test
def a_stream_that_ends_early_changes_nothing():
    width = 1 << 16
    make("400,%d" % width, "i32", "--chunk", "64,4096")
    row = b"\1\0\0\0" * width
    code, out, err = stream((400, width), 399, lambda r: row)
    equal((code, out), (1, b""))
    check(b"cut short" in err and err.count(b"\n") == 1, err)
    equal(parsed("info", "s", "t")["latest"], 0)


def on_a_terminal(*args):
    """What a command writes to a stderr that is a terminal."""
    master, slave = pty.openpty()
    child = subprocess.Popen([TOOL, *args], stdout=subprocess.DEVNULL,
                             stderr=slave)
    os.close(slave)
    seen = b""
    try:
        while part := os.read(master, 65536):
            seen += part
    except OSError:
        pass
    os.close(master)
    return child.wait(), seen


@test
def progress_is_for_terminals_and_large_work():
    make("3000,16384", "i32", "--chunk", "256,1024")
    code, seen = on_a_terminal("read", "s", "t", "-o", "o.npy")
    equal(code, 0)
    check(b"%" in seen and b"MB/s" in seen and b"left" in seen, seen)
    equal(on_a_terminal("read", "s", "t", "-o", "o.npy", "--quiet"), (0, b""))
    equal(on_a_terminal("read", "s", "t", "--box", ":10", "-o", "p.npy"),
          (0, b""))
    good("read", "s", "t", "-o", "o.npy")
    code, seen = on_a_terminal("write", "s", "t", "o.npy")
    equal(code, 0)
    check(b"MB/s" in seen, seen)


@test
def many_writers_make_many_versions():
    make("64,64", "i32", "--chunk", "16,16")
    for n in range(8):
        save("w%d.npy" % n, array_npy("i32", (8, 64), [n + 1] * 512))
    children = [subprocess.Popen(
        [TOOL, "write", "s", "t", "--at", "%d,0" % (8 * n), "w%d.npy" % n],
        stdout=subprocess.PIPE) for n in range(8)]
    made = sorted(int(c.communicate()[0]) for c in children)
    equal(made, list(range(1, 9)))
    equal([row[0] for row in parsed("read", "s", "t", "--box", "::8,:1")
           ["cells"]], list(range(1, 9)))


def main():
    wanted = sys.argv[2:]
    chosen = [t for t in tests if not wanted or t.__name__ in wanted]
    print("1..%d" % len(chosen), flush=True)
    failures = 0
    for number, function in enumerate(chosen, 1):
        here = tempfile.mkdtemp(prefix="pyramid-cli.")
        os.chdir(here)
        try:
            function()
            word = "ok"
        except Exception:
            word = "not ok"
            failures += 1
            print("".join("# " + line + "\n" for line in
                          traceback.format_exc().splitlines()[-6:]), end="")
        os.chdir("/")
        shutil.rmtree(here, ignore_errors=True)
        print("%s %d - %s" % (word, number, function.__name__), flush=True)
    return 1 if failures else 0


sys.exit(main())
