#!/bin/sh
# bench/run.sh BUILD_DIR [--quick] - run all benchmarks, print their tables and
# keep them as BUILD_DIR/benchmarks.md. Files go to a directory of their own
# under $BENCH_DIR, or else under BUILD_DIR.
set -eu

if [ $# -lt 1 ] || [ ! -x "$1/bench/bench-dicing" ]; then
    echo "usage: $0 BUILD_DIR [--quick]   (built with -Dbench=true)" >&2
    exit 2
fi
build=$(cd "$1" && pwd)
shift
BENCH_DIR=$(mktemp -d "${BENCH_DIR:-$build}/run-XXXXXX")
export BENCH_DIR
trap 'rm -rf "$BENCH_DIR"' EXIT
trap 'exit 130' INT TERM

machine() {
    echo "# Benchmarks"
    echo
    echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, $(awk '/MemTotal/ { printf "%.0f", $2 / 1048576 }' \
        /proc/meminfo) GiB, Linux $(uname -r)," \
        "$(df --output=fstype "$BENCH_DIR" | tail -n 1), $(date -u +%Y-%m-%d)," \
        "load at the start $(cut -d ' ' -f 1 /proc/loadavg)" "$@"
}

all() {
    machine "$@"
    for name in dicing commits boxes open stat compute chains reclaim hdf5_peer; do
        program=$build/bench/bench-$name
        if [ -x "$program" ]; then
            start=$(date +%s)
            "$program" "$@" || echo "FAILED: $name"
            echo "($name: $(($(date +%s) - start)) s)" >&2
        else
            printf '\n(%s: not built)\n' "$name"
        fi
    done
}

all "$@" | tee "$build/benchmarks.md"
! grep -q '^FAILED' "$build/benchmarks.md"
