#!/bin/sh
# tools/install-deps.sh - install the Debian packages that are not there yet.
#
#   tools/install-deps.sh [--check] build|test|bench|ceph
#
# Nothing is asked of the network, and nothing printed, if nothing is missing.
# --check installs nothing: it says what is missing, and how to get it.
set -eu

check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
what=${1:-build}

missing=

need_command() { # PACKAGE COMMAND
    command -v "$2" >/dev/null 2>&1 || missing="$missing $1"
}

need_header() { # PACKAGE HEADER
    for dir in /usr/include /usr/include/*-linux-gnu /usr/local/include; do
        [ ! -f "$dir/$2" ] || return 0
    done
    # CPATH or a compiler of one's own may know another place.
    if command -v "${CC:-gcc}" >/dev/null 2>&1 &&
        echo "#include <$2>" | "${CC:-gcc}" -E - >/dev/null 2>&1; then
        return 0
    fi
    missing="$missing $1"
}

need_package() { # PACKAGE whose header is in no usual place
    dpkg -s "$1" >/dev/null 2>&1 || missing="$missing $1"
}

need_module() { # PACKAGE MODULE of ${PYTHON}
    "${PYTHON:-/usr/bin/python3}" -c "import $2" >/dev/null 2>&1 ||
        missing="$missing $1"
}

need_build() {
    need_command gcc "${CC:-gcc}"
    need_header libc6-dev stdlib.h
    need_command meson meson
    need_command ninja-build ninja
    need_command pkg-config pkg-config
    need_command python3 "${PYTHON:-/usr/bin/python3}"
    need_header liblmdb-dev lmdb.h
    need_header libxxhash-dev xxhash.h
    need_header libblosc-dev blosc.h
}

# clang, and the fuzzer that it links to programs.
need_fuzzer() {
    need_command clang clang
    if ! find "$(clang -print-resource-dir 2>/dev/null)/lib" \
        -name 'libclang_rt.fuzzer*' 2>/dev/null | grep -q .; then
        missing="$missing libclang-rt-14-dev"
    fi
}

# Daemons, client library, and what an object class is built with.
need_ceph() {
    need_command ceph-mon ceph-mon
    need_command ceph-osd ceph-osd
    need_header librados-dev rados/librados.h
    need_header libradospp-dev rados/buffer.h
    need_header rados-objclass-dev rados/objclass.h
    PYTHON=/usr/bin/python3 need_module python3-rados rados
}

case $what in
build)
    need_build
    ;;
test) # gcc has sanitizers, clang a fuzzer; g++ tries the headers as C++
    need_build
    need_command g++ g++
    need_fuzzer
    need_ceph
    ;;
ceph)
    need_build
    need_command g++ g++
    need_ceph
    ;;
bench) # the peers: HDF5, MPI-IO, parallel HDF5, PnetCDF (on Open MPI); Ceph
    need_build
    need_command g++ g++
    need_ceph
    need_header libhdf5-dev hdf5/serial/hdf5.h
    need_command mpich mpiexec.mpich
    need_header libmpich-dev mpich/mpi.h
    need_header libhdf5-mpich-dev hdf5/mpich/hdf5.h
    need_command openmpi-bin mpiexec.openmpi
    need_package libopenmpi-dev
    need_header libpnetcdf-dev pnetcdf.h
    need_module python3-venv ensurepip
    ;;
*)
    echo "usage: tools/install-deps.sh [--check] build|test|bench|ceph" >&2
    exit 2
    ;;
esac

[ -n "$missing" ] || exit 0
missing=${missing# }

if [ "$check" = yes ]; then
    echo "Missing to build Pyramid: $missing" >&2
    echo "On Debian: apt-get install $missing   (make test does it too)" >&2
    exit 1
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing: $missing (these are the names in Debian)." >&2
    echo "There is no apt-get here: install them in your system's way." >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    echo "Missing: $missing" >&2
    echo "Installing them needs root, and there is no sudo. As root, run:" >&2
    echo "    apt-get install $missing" >&2
    exit 1
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"
}

# Services of the packages, Ceph's among them, are not started here: tests
# start their own daemons.
services_off() {
    policy=/usr/sbin/policy-rc.d
    [ ! -e "$policy" ] || return 0
    trap services_on EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
}

services_on() {
    $as_root rm -f /usr/sbin/policy-rc.d
}

install() {
    # shellcheck disable=SC2086 # a list of words
    apt install --no-install-recommends $missing
}

known() {
    for package in $missing; do
        apt-cache show "$package" >/dev/null 2>&1 || return 1
    done
}

services_off
echo "Installing from Debian, with apt-get: $missing"
if ! known; then
    echo "The list of packages is missing or old: apt-get update"
    apt update
    install
elif ! install; then
    echo "That failed; trying once more with a fresh list of packages."
    apt update
    install
fi
