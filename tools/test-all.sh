#!/usr/bin/env bash
# tools/test-all.sh - every test, in every way of building that matters.
#
#   build/test   fault points, asserts: all suites
#   build/test   again, with the stores in a small Ceph cluster
#   build        the release build: what is installed, and a program using it
#   build/asan   address and undefined-behaviour sanitizers
#   build/tsan   thread sanitizer
#   build/fuzz   clang: hostile bytes for every decoder
#
# Goes on after a test that fails, so that one run shows all, but not after
# code that does not compile; returns 1 if anything failed. Under the
# sanitizers the big tests are told to be small, through PYR_TEST_SCALE.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD
python=${PYTHON:-/usr/bin/python3}
failed=()
notes=()

say() {
    printf '[%2d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
}

# quietly LOG COMMAND...: show the end of the output only if it fails.
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 && return
    echo "failed: $*"
    echo "the end of $log:"
    tail -n 60 "$log"
    return 1
}

# How each is built. No cluster is used under the address sanitizer, so that is
# the build without Ceph.
declare -A options=(
    [build/test]="-Dbuildtype=debugoptimized -Dfaults=true \
-Drados=enabled -Dobjclass=enabled"
    [build]="-Dbuildtype=release -Dfaults=false -Dwerror=true \
--prefix=/usr/local"
    [build/asan]="-Dbuildtype=debugoptimized -Dfaults=true \
-Db_sanitize=address,undefined -Drados=disabled -Dobjclass=disabled"
    [build/tsan]="-Dbuildtype=debugoptimized -Dfaults=true \
-Db_sanitize=thread"
    [build/fuzz]="-Dbuildtype=debugoptimized -Dfuzz=true \
-Db_sanitize=address,undefined -Db_lundef=false"
)

# compile DIR: configure, or configure anew, and compile; in a subshell.
compile() (
    dir=$1
    read -ra words <<<"${options[$dir]}"
    targets=()
    if [ "$dir" = build/fuzz ]; then
        export CC=clang
        targets=(fuzzers)
    fi
    [ ! -f "$dir/build.ninja" ] || words=(--reconfigure "${words[@]}")
    quietly "$dir/configure.log" meson setup "${words[@]}" "$dir" &&
        quietly "$dir/compile.log" meson compile -C "$dir" "${targets[@]}"
)

# build DIR: or exit.
build() {
    say "$1: building (${options[$1]})"
    compile "$1" || {
        say "FAILED: $1 does not build"
        exit 1
    }
}

# run DIR TIMEOUT-FACTOR SUITE...: no suite named means all of them.
run() {
    local dir=$1 factor=$2 suites=()
    shift 2
    for suite in "$@"; do
        suites+=(--suite "$suite")
    done
    say "$dir: testing (${*:-all suites})"
    rm -f "$dir/meson-logs/$logbase.json"
    "${wrapper[@]}" meson test -C "$dir" --no-rebuild --logbase "$logbase" \
        --timeout-multiplier "$factor" "${jobs[@]}" "${suites[@]}" && return
    "$python" tools/check-skips.py --tail "$dir:$logbase"
    return 1
}

# stage DIR COMMAND...: note in `failed` if the command fails.
stage() {
    local dir=$1
    shift
    "$@" && return
    say "$dir: FAILED"
    failed+=("$dir")
}

# probe SANITIZER: does a program that does nothing run under it here?
probe() {
    local exe=build/probe-$1
    mkdir -p build
    echo 'int main(void) { return 0; }' |
        gcc -fsanitize="$1" -x c - -o "$exe" || return
    for _ in 1 2 3 4 5 6 7 8; do # where memory lands is up to chance
        "${wrapper[@]}" "$exe" >/dev/null 2>&1 || return
    done
}

with_faults() {
    build build/test
    run build/test 3
}

# The cluster is gone when this returns, or when the run is interrupted. Its
# daemons are what is slow, so the tests are told to be small.
with_ceph() {
    local logbase=ceph jobs=(--num-processes 2) failed=0
    cluster=$(mktemp -d "${TMPDIR:-/tmp}/pyramid-ceph.XXXXXX")
    say "build/test: starting a Ceph cluster in $cluster"
    quietly build/test/ceph.log tools/dev-ceph start "$cluster/c" \
        --class-dir build/test/src/cls || return
    PYR_TEST_STORE=$(tail -n 1 build/test/ceph.log) PYR_TEST_SCALE=small \
        run build/test 6 stores elsewhere || failed=1
    logbase=patient
    PYR_TEST_STORE=$(tail -n 1 build/test/ceph.log) PYR_TEST_SCALE=tiny \
        run build/test 6 patient || failed=1
    jobs=(--num-processes 1)
    logbase=cluster
    PYR_TEST_CEPH=$cluster/c PYR_TEST_SCALE=small \
        PYR_TEST_STORE=$(tail -n 1 build/test/ceph.log) \
        run build/test 6 cluster || failed=1
    end_cluster
    return $failed
}

end_cluster() {
    [ -z "$cluster" ] || {
        tools/dev-ceph stop "$cluster/c" >/dev/null 2>&1
        rm -rf "$cluster"
    }
    cluster=
}
cluster=
trap end_cluster EXIT
trap 'exit 130' INT TERM HUP

release() {
    build build
    run build 3 unit cli || return
    say "build: installing, and using what is installed"
    rm -rf build/installed
    quietly build/install.log \
        make --no-print-directory install BUILD=build PREFIX=/usr/local \
        DESTDIR=build/installed &&
        tests/install/install_test.sh build/installed /usr/local
}

with_asan() {
    if probe address; then
        leaks=1
    else
        leaks=0
        notes+=("leaks were not looked for: LeakSanitizer may not trace here")
        say "${notes[-1]}"
    fi
    export ASAN_OPTIONS=detect_leaks=$leaks:halt_on_error=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    build build/asan
    run build/asan 6 unit engine concurrency model crash sweep keep verify copy api compute cli
}

with_tsan() {
    if ! probe thread; then
        echo "A program that does nothing fails under the thread sanitizer."
        echo "Allow setarch -R here, or set vm.mmap_rnd_bits to 28 or less."
        return 1
    fi
    # A forked child of the tests starts threads of its own.
    export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
    TSAN_OPTIONS+=":die_after_fork=0:suppressions=$root/tools/tsan.supp"
    build build/tsan
    run build/tsan 12 unit engine concurrency api
}

with_fuzz() {
    build build/fuzz
    run build/fuzz 6 fuzz
}

wrapper=(env)
jobs=()
logbase=testlog
stage build/test with_faults
stage ceph with_ceph
stage build release

# The sanitizers of gcc 12 need memory to lie where they expect it, which some
# kernels' address randomisation does not respect.
if setarch -R true >/dev/null 2>&1; then
    wrapper=(setarch -R)
fi
export PYR_TEST_SCALE=small
stage build/asan with_asan
stage build/tsan with_tsan
stage build/fuzz with_fuzz

say "checking that nothing was left out"
totals=$("$python" tools/check-skips.py build/test build/test:ceph \
    build/test:patient build/test:cluster build build/asan build/tsan \
    build/fuzz)
skips=$?
echo "$totals" | sed '$d'
[ $skips = 0 ] || failed+=(check-skips)
for note in "${notes[@]}"; do
    say "note: $note"
done
totals=$(echo "$totals" | tail -n 1)
if [ ${#failed[@]} != 0 ]; then
    say "FAILED (${failed[*]}): $totals"
    exit 1
fi
say "all passed: $totals"
