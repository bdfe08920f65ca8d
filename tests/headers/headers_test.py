#!/usr/bin/env python3
"""headers_test.py - every header compiles alone, and twice in one file.

    headers_test.py ROOT c11|c++17 [COMPILER...]

As C11 all headers; as C++17 the public ones. Public headers also have to do
without _GNU_SOURCE, and please a compiler that is set to be pedantic.
"""
import concurrent.futures
import os
import subprocess
import sys


def headers(root, folder):
    found = []
    for where, _, names in os.walk(os.path.join(root, folder)):
        found += [os.path.relpath(os.path.join(where, name),
                                  os.path.join(root, folder))
                  for name in names if name.endswith(".h")]
    return sorted(found)


def compile_alone(root, compiler, standard, header, public):
    """What the compiler says, or "" if it is content."""
    flags = ["-std=" + standard, "-fsyntax-only", "-Wall", "-Wextra",
             "-Werror", "-I" + os.path.join(root, "include")]
    if public:
        flags += ["-pedantic"]
    else:
        flags += ["-D_GNU_SOURCE", "-Wno-unused-parameter",
                  "-I" + os.path.join(root, "src"),
                  "-I" + os.path.join(root, "tests")]
    language = "c" if standard == "c11" else "c++"
    line = f"#include <{header}>\n" if public else f'#include "{header}"\n'
    done = subprocess.run([*compiler, *flags, "-x", language, "-"],
                          input=line * 2, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return "" if done.returncode == 0 else done.stdout or "failed\n"


def main():
    root, standard, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not compiler:
        print("1..0 # SKIP no C++ compiler")
        return 0
    jobs = [(header, True) for header in headers(root, "include")]
    if standard == "c11":
        jobs += [(header, False) for header in headers(root, "src")]
    print(f"1..{len(jobs)}")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda job: compile_alone(root, compiler, standard,
                                                  *job), jobs)
        for number, ((header, _), text) in enumerate(zip(jobs, said), 1):
            for line in text.splitlines():
                print("#", line)
            print("not ok" if text else "ok", number, "-", header)
            bad += text != ""
    return 1 if bad or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
