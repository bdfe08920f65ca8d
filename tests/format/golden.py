"""golden.py - what a store shows, asked of the `pyramid` tool."""
import hashlib
import json
import os
import struct
import subprocess

CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
         "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}


seen = set()


def run(tool, *words):
    env = dict(os.environ)
    if words[0] in seen and "ASAN_OPTIONS" in env:
        env["ASAN_OPTIONS"] += ":detect_leaks=0"  # once for each verb will do
    seen.add(words[0])
    done = subprocess.run([tool] + list(words), capture_output=True,
                          check=False, env=env)
    if done.returncode != 0:
        raise RuntimeError(" ".join(words) + ": " + done.stderr.decode())
    return done.stdout


def npy(kind, shape, rng):
    """A .npy file of random cells."""
    code = CODES[kind]
    cells = 1
    for n in shape:
        cells *= n
    if kind[0] == "f":
        values = [rng.randrange(-1000, 1000) / 8 for _ in range(cells)]
    else:
        low = 0 if kind[0] == "u" else -100
        values = [rng.randrange(low, 100) for _ in range(cells)]
    descr = {"i": "i", "u": "u", "f": "f"}[kind[0]]
    size = struct.calcsize("<" + code)
    head = "{'descr': '%s%s%d', 'fortran_order': False, 'shape': (%s,), }" % (
        "|" if size == 1 else "<", descr, size, ", ".join(map(str, shape)))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
            head.encode() + struct.pack("<%d%s" % (cells, code), *values))


def describe(tool, store):
    """Everything that must stay as it is, of every array."""
    shown = {}
    for array in json.loads(run(tool, "ls", store, "--json")):
        name = array if isinstance(array, str) else array["name"]
        info = json.loads(run(tool, "info", store, name, "--json"))
        versions = {}
        for change in json.loads(run(tool, "log", store, name, "--json")):
            v = str(change["version"])
            cells = run(tool, "read", store, name, "--version", v, "-o", "-")
            stat = json.loads(run(tool, "stat", store, name, "--version", v,
                                  "--json"))
            versions[v] = {
                "kind": change["kind"], "message": change.get("message", ""),
                "cells": hashlib.sha256(cells).hexdigest(),
                "not_fill": stat["not_fill"], "min": stat["min"],
                "max": stat["max"]}
        shown[name] = {key: info[key] for key in
                       ("type", "shape", "chunk", "fill", "codec", "latest",
                        "tags")}
        shown[name]["versions"] = versions
    return shown
