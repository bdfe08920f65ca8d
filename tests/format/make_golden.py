#!/usr/bin/env python3
"""make_golden.py PYRAMID NAME - make NAME.tar.gz and NAME.json here, once.

A store of the format that this `pyramid` writes, and what it must show for
ever. See README.md.
"""
import json
import os
import random
import shutil
import sys
import tarfile
import tempfile

from golden import describe, npy, run

ARRAYS = [  # name, type, shape, chunk, codec
    ("bytes", "u8", (40, 60), "16,16", "none"),
    ("signed", "i8", (50,), "7", "lz4"),
    ("deep", "i16", (9, 8, 7, 6), "4,4,4,4", "none"),
    ("words", "u16", (30, 30), "8,8", "zstd"),
    ("volume", "i32", (12, 14, 16), "8,8,8", "none"),
    ("counts", "u32", (100, 3), "32,3", "lz4"),
    ("long", "i64", (33, 17), "10,10", "none"),
    ("huge", "u64", (20, 20), "6,20", "none"),
    ("field", "f32", (200, 150), "200,150", "none"),
    ("exact", "f64", (300, 120), "300,120", "zstd"),
]


def write(tool, store, name, kind, rng, shape, folder):
    low = [rng.randrange(n) for n in shape]
    size = [rng.randint(1, n - a) for n, a in zip(shape, low)]
    path = os.path.join(folder, "part.npy")
    with open(path, "wb") as f:
        f.write(npy(kind, size, rng))
    run(tool, "write", store, name, "--at", ",".join(map(str, low)), path,
        "-m", "part of " + name)


def fill(tool, store, folder):
    rng = random.Random(1)
    for name, kind, shape, chunk, codec in ARRAYS:
        run(tool, "create", store, name, "--shape",
            ",".join(map(str, shape)), "--type", kind, "--chunk", chunk,
            "--codec", codec, "--fill", "3")
        for _ in range(6):
            write(tool, store, name, kind, rng, shape, folder)
    for _ in range(40):  # a chain that is folded
        write(tool, store, "field", "f32", rng, (200, 150), folder)
    run(tool, "tag", store, "bytes", "early", "2")
    run(tool, "resize", store, "bytes", "--shape", "25,70")
    run(tool, "resize", store, "bytes", "--shape", "60,70")
    write(tool, store, "bytes", "u8", rng, (60, 70), folder)
    run(tool, "clone", store, "bytes", "twin", "--version", "early")
    write(tool, store, "twin", "u8", rng, (40, 60), folder)
    path = os.path.join(folder, "rows.npy")
    with open(path, "wb") as f:
        f.write(npy("u32", (5, 3), rng))
    run(tool, "append", store, "counts", path)
    run(tool, "forget", store, "field", "--keep", "3")
    run(tool, "forget", store, "bytes", "--keep", "2")
    run(tool, "reclaim", store)
    run(tool, "forget", store, "long", "2")  # and not reclaimed


def fill_flats(tool, store, folder):
    """Nodes with flat children, and what later versions make of them."""
    rng = random.Random(2)
    shape = "230,190"
    run(tool, "create", store, "bytes", "--shape", shape, "--type", "u8",
        "--chunk", "9,7", "--fill", "3")
    run(tool, "compute", store, "bytes", "x * 2")
    write(tool, store, "bytes", "u8", rng, (20, 20), folder)
    run(tool, "compute", store, "bytes", "x + 1", "--box", "5:200,0:150")
    run(tool, "resize", store, "bytes", "--shape", "150,260")
    run(tool, "resize", store, "bytes", "--shape", "300,260")
    run(tool, "compute", store, "bytes", "x * 3", "--box", "40:300,20:250")
    run(tool, "clone", store, "bytes", "twin", "--version", "4")
    run(tool, "compute", store, "twin", "where(x > 6, 1, x)")
    run(tool, "create", store, "line", "--shape", "3000", "--type", "f64",
        "--chunk", "4", "--fill", "0.5")
    run(tool, "compute", store, "line", "x - 2")
    run(tool, "compute", store, "line", "nan", "--box", "100:2000")
    write(tool, store, "line", "f64", rng, (3000,), folder)
    run(tool, "forget", store, "bytes", "--keep", "4")
    run(tool, "reclaim", store)


SCENES = {"v1": fill, "v1-flats": fill_flats}


def main():
    tool, name = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, name)
        SCENES[name](tool, store, folder)
        with open(os.path.join(here, name + ".json"), "w") as f:
            json.dump(describe(tool, store), f, indent=1, sort_keys=True)
            f.write("\n")
        shutil.rmtree(os.path.join(store, "live"))
        os.unlink(os.path.join(store, "meta", "lock.mdb"))
        with tarfile.open(os.path.join(here, name + ".tar.gz"), "w:gz",
                          compresslevel=9) as tar:
            tar.add(store, name)


if __name__ == "__main__":
    main()
