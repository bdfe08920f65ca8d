#!/bin/sh
# bench/peers/install.sh DIR - the peers that are not in Debian, from PyPI, into
# a virtual environment. What cannot be had is left out: its column will say so.
set -eu

dir=$1
# zarr-python 3 needs Python 3.11.
python=${BENCH_PYTHON:-}
for candidate in python3.13 python3.12 python3.11 python3; do
    [ -n "$python" ] && break
    if "$candidate" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$candidate
    fi
done
if [ -z "$python" ]; then
    echo "No Python 3.11 with venv: the peers in Python are left out." >&2
    exit 0
fi
if [ ! -x "$dir/bin/python" ]; then
    "$python" -m venv "$dir" || exit 0
fi
for package in numpy h5py zarr zarrs tensorstore tiledb icechunk; do
    if ! "$dir/bin/python" -c "import importlib.metadata as m
m.version('$package')" >/dev/null 2>&1; then
        echo "Installing from PyPI, into $dir: $package"
        "$dir/bin/python" -m pip install -q --disable-pip-version-check \
            --only-binary :all: --timeout 30 "$package" ||
            echo "$package cannot be had: its column will say so." >&2
    fi
done
