#!/usr/bin/env bash
# install_test.sh - an installed tree is whole, and a program can be built
# against it with nothing but pkg-config.
#
#   tests/install/install_test.sh TREE PREFIX    after
#   make install DESTDIR=TREE PREFIX=PREFIX
set -u
tree=$(cd "$1" && pwd) || exit 1
prefix=$2
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
number=0
bad=0

# check NAME COMMAND...
check() {
    local name=$1
    shift
    number=$((number + 1))
    if "$@" >"$scratch/log" 2>&1; then
        echo "ok $number - $name"
    else
        sed 's/^/# /' "$scratch/log"
        echo "not ok $number - $name"
        bad=1
    fi
}

installed() { # PATH under the prefix, may be a pattern
    compgen -G "$tree$prefix/$1" || {
        echo "nothing is at $prefix/$1"
        return 1
    }
}

same_headers() {
    diff -r "$source/include/pyramid" "$tree$prefix/include/pyramid"
}

# Every page of docs/man/ is where man looks for it.
pages_installed() {
    local page section
    for page in "$source"/docs/man/*.[1-9]; do
        section=${page##*.}
        cmp "$page" "$tree$prefix/share/man/man$section/${page##*/}" || return
    done
}

exports_only_its_own() {
    local names
    names=$(nm -D --defined-only "$libdir"/libpyramid.so | awk '{ print $3 }' |
        grep -v '^pyr_')
    [ -z "$names" ] || {
        echo "also exported:" $names
        return 1
    }
}

# A process whose store is a directory does not pay for Ceph's libraries.
without_ceph() {
    local needed
    needed=$(readelf -d "$libdir"/libpyramid.so) || return
    ! grep -E 'NEEDED.*(rados|ceph)' <<<"$needed"
}

# Neither points nor shims: its system calls are libc's own.
without_faults() {
    ! grep -q PYRAMID_FAULT "$libdir"/libpyramid.so &&
        nm "$libdir"/libpyramid.so | grep -q ' pyri_read_snapshot$' &&
        ! nm "$libdir"/libpyramid.so | grep -q ' pyri_\(sys\|fault\)_'
}

compile() { # COMPILER STANDARD FILE
    local flags
    flags=$(pkg-config --cflags --libs pyramid) || return
    # shellcheck disable=SC2086 # a list of words
    "$1" "-std=$2" -Wall -Werror "$3" -o "$scratch/hello" $flags
}

run_hello() {
    (cd "$scratch" && ./hello "$scratch/hello.pyr")
}

# With the header alone, as an administrator would.
compile_kernel() {
    "${CC:-gcc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC \
        -I"$tree$prefix/include" "$source/examples/kernels/$1.c" \
        -o "$scratch/$1.so"
}

libso=$(compgen -G "$tree$prefix/lib*/libpyramid.so" ||
    compgen -G "$tree$prefix/lib/*/libpyramid.so")
libdir=$(dirname "${libso:-$tree$prefix/lib/libpyramid.so}")
export PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_SYSROOT_DIR=$tree
export LD_LIBRARY_PATH=$libdir

check "the library" test -e "$libdir/libpyramid.so"
check "its pkg-config file" pkg-config --exists --print-errors pyramid
check "the headers, all of them" same_headers
check "the tool" installed bin/pyramid
check "the tool runs" "$tree$prefix/bin/pyramid" --help
check "a manual page of the tool" installed 'share/man/man1/pyramid.1*'
check "all manual pages" pages_installed
check "the library exports pyr_ names only" exports_only_its_own
check "the library is not linked with Ceph's" without_ceph
check "no fault points and shims in what is installed" without_faults
check "examples/hello.c compiles" \
    compile "${CC:-gcc}" c11 "$source/examples/hello.c"
check "hello runs" run_hello
for kernel in gain median3 laplacian; do
    check "kernel $kernel" test -f "$libdir/pyramid/kernels/$kernel.so"
    check "and it compiles" compile_kernel "$kernel"
done
if command -v g++ >/dev/null; then
    echo '#include <pyramid/pyramid.h>
          int main() { return pyr_strerror(0)[0] == 0; }' >"$scratch/hello.cc"
    check "a C++ program compiles" compile g++ c++17 "$scratch/hello.cc"
    check "and runs" run_hello
fi
echo "1..$number"
exit $bad
