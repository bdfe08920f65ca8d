#!/usr/bin/env python3
"""check-layers.py - who may include whom, and the shape of files.

    tools/check-layers.py [ROOT]

Prints one line per fault, "path:line: what", and returns 1 if there is any.
Checked:
  - the include table below; of another layer only its door, LAYER/LAYER.h,
    unless that layer is an open shelf;
  - third-party headers are named in one place each;
  - files, memory, clocks and random numbers are asked for through base/sys.h;
  - a file under src/ begins with its own path and a line about it;
  - file names are unique under src/;
  - no file is longer than 800 lines (a word of warning from 600 on).
Tests are held to the length only.
"""
import os
import re
import sys

TABLE = {
    "base": [],
    "nd": ["base"],
    "op": ["base", "nd"],
    "kernel": ["base", "nd", "op"],
    "chunk": ["base", "nd"],
    "cls": ["base", "nd", "op", "chunk"],
    "engine": ["base", "nd", "chunk", "cls"],
    "version": ["base", "nd", "engine"],
    "tree": ["base", "nd", "chunk", "engine", "version"],
    "array": ["base", "nd", "op", "kernel", "chunk", "engine", "version",
              "tree"],
    "api": ["base", "nd", "op", "kernel", "chunk", "engine", "version", "tree",
            "array"],
}
SHELVES = ["base", "nd", "chunk", "cls"]  # every header of theirs is open to all
USERS = ["cli", "bench", "examples"]  # see pyramid/*.h and their own folder
INSIDE = {"bench/scale.c": ["base", "tree"]}  # drives the tree without data

# Benchmarks are free in this: they measure the alternatives too.
THIRD_PARTY = {
    "lmdb.h": "src/engine/local/",
    "blosc.h": "src/chunk/codec_blosc.c",
    "xxhash.h": "src/base/hash",
    "rados/librados.h": "src/engine/rados/rados_lib.h",
    "rados/objclass.h": "src/cls/cls_pyramid.cc",
}

# What libc offers and src/ may say only as pyri_sys_NAME(), so that tests can
# take over; base/sys.h is the place to add one that is missing there.
SYSTEM = """
malloc calloc realloc reallocarray aligned_alloc posix_memalign memalign
valloc strdup strndup asprintf vasprintf getline open_memstream
open openat creat close read pread readv preadv write pwrite writev pwritev
fsync fdatasync sync syncfs sync_file_range msync ftruncate truncate
fallocate posix_fallocate posix_fadvise copy_file_range sendfile splice
rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat
remove mkdir mkdirat rmdir mkstemp mkdtemp opendir fdopendir readdir scandir
stat fstat lstat fstatat statx statvfs fstatvfs statfs fstatfs access
faccessat chmod fchmod chown fchown utimensat realpath readlink readlinkat
lseek flock lockf fcntl dup dup2 dup3 mmap mremap madvise mlock memfd_create
shm_open fopen fdopen freopen clock_gettime gettimeofday time nanosleep
clock_nanosleep usleep sleep dlopen dlmopen getrandom getentropy rand random drand48
""".split()
SYSTEM_PLACE = "src/base/sys"

LONG, TOO_LONG = 600, 800

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DIRECT = re.compile(r"(?<![\w.>])(" + "|".join(SYSTEM) + r")\s*\(")


def c_files(root, folder):
    """Paths from root, with '/', of the C files under a folder."""
    for where, dirs, names in os.walk(os.path.join(root, folder)):
        dirs.sort()
        for name in sorted(names):
            if name.endswith((".c", ".h", ".inc", ".cc", ".cpp")):
                path = os.path.relpath(os.path.join(where, name), root)
                yield path.replace(os.sep, "/")


def is_test(path):
    return path.startswith("tests/") or "/tests/" in path


def layer_fault(layer, header, quoted):
    """What is wrong with a file of src/LAYER/ including header, or None."""
    other = header.split("/")[0]
    if other == "pyramid" or other == layer:
        return None
    if other not in TABLE:
        if not quoted:
            return None  # libc, or third party
        return f'"{header}" is in no layer; paths start at src/'
    if other not in TABLE[layer]:
        return f"{layer} must not include {header}: it may include " + (
            ", ".join(TABLE[layer]) or "no other layer")
    if other not in SHELVES and header != f"{other}/{other}.h":
        return f"{header} is private to {other}: include {other}/{other}.h"
    return None


def user_fault(root, path, header, quoted):
    """The same for a file outside src/, which sees what a user sees."""
    if header.split("/")[0] == "pyramid":
        return None
    folder = path.split("/")[0]
    if header.split("/")[0] in INSIDE.get(path, []):
        return None
    if header.split("/")[0] in TABLE:
        return f"{folder} must not include {header}: only pyramid/*.h"
    if quoted:
        near = os.path.normpath(os.path.join(os.path.dirname(path), header))
        for own in near, header:
            if own.startswith(folder + "/") and os.path.exists(
                    os.path.join(root, own)):
                return None
        return f"{folder} must not include {header}: not in its folder"
    return None


def include_faults(root, path, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, header = match.group(1) == '"', match.group(2)
        place = THIRD_PARTY.get(header)
        if place and not path.startswith(place) and path.split("/")[0] != "bench":
            yield number, f"{header} belongs in {place} only"
        if path.startswith("src/"):
            fault = layer_fault(path.split("/")[1], header, quoted)
        else:
            fault = user_fault(root, path, header, quoted)
        if fault:
            yield number, fault


def system_faults(path, lines):
    """Calls of libc that have to go through base/sys.h."""
    if path.startswith(SYSTEM_PLACE):
        return
    code = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()),
                       "\n".join(lines))
    for number, line in enumerate(code.split("\n"), 1):
        for match in DIRECT.finditer(line):
            name = match.group(1)
            yield number, f"{name}() is called directly: pyri_sys_{name}()"


def head_fault(path, lines):
    """A file under src/ starts "/*", then " * folder/file.c - one line"."""
    own = path[len("src/"):]
    head = " ".join(lines[:2]).strip()
    if not re.match(r"/\*[\s*]*" + re.escape(own) + r" - \S", head):
        return f'must begin with a comment "{own} - one line about it"'
    return None


def check(root):
    """Lists (faults, warnings), each a line for a person."""
    faults, warnings, seen = [], [], {}
    for folder in ["include", "src", "tests"] + USERS:
        for path in c_files(root, folder):
            with open(os.path.join(root, path), encoding="utf-8") as f:
                lines = f.read().splitlines()
            if len(lines) > TOO_LONG:
                faults.append(f"{path}: {len(lines)} lines; over {TOO_LONG} "
                              "it has found a second concept")
            elif len(lines) > LONG:
                warnings.append(f"{path}: {len(lines)} lines; is it still "
                                "one concept?")
            if is_test(path) or folder == "include":
                continue
            if folder == "src":
                layer = path.split("/")[1]
                if layer not in TABLE:
                    faults.append(f"{path}: in no layer of the table")
                    continue
                if (fault := head_fault(path, lines)):
                    faults.append(f"{path}:1: {fault}")
                name = path.split("/")[-1]
                if name in seen:
                    faults.append(f"{path}: the name is taken by {seen[name]}")
                seen.setdefault(name, path)
                faults += [f"{path}:{number}: {fault}" for number, fault
                           in system_faults(path, lines)]
            faults += [f"{path}:{number}: {fault}"
                       for number, fault in include_faults(root, path, lines)]
    if not seen:
        faults.append(f"{root}: there is nothing under src/")
    return faults, warnings


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..")
    faults, warnings = check(root)
    for line in warnings:
        print("warning:", line)
    for line in faults:
        print(line)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
