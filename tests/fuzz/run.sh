#!/bin/sh
# tests/fuzz/run.sh - run a fuzz target over its corpus and what it makes of it.
#
#   tests/fuzz/run.sh [-runs=N | -max_total_time=SECONDS] [OPTION...] TARGET
#
# TARGET is the program, .../NAME_fuzz; options are libFuzzer's. The corpus of
# NAME is read, not written: what is found goes to $FUZZ_KEEP/NAME, or away.
# An input that breaks something is left in $FUZZ_KEEP, or beside the program,
# and the command that runs it again is printed.
set -u

options=
for exe in "$@"; do :; done
while [ $# -gt 1 ]; do
    options="$options $1"
    shift
done
name=$(basename "$exe" _fuzz)
here=$(cd "$(dirname "$0")" && pwd)
crashes=${FUZZ_KEEP:-$(dirname "$exe")}
if [ -n "${FUZZ_KEEP:-}" ]; then
    found=$FUZZ_KEEP/$name
    mkdir -p "$found"
else
    found=$(mktemp -d) || exit 1
    trap 'rm -rf "$found"' EXIT
fi
log=$crashes/$name.log

# What comes out is to depend on the seed alone: not on the order in which a
# directory is read, on time, or on where memory is.
inputs=$(printf '%s,' "$here/corpus/$name"/*)
fixed=
if setarch -R true >/dev/null 2>&1; then
    fixed='setarch -R'
fi

# An exit code of 77 would mean to Meson that the test was left out.
# shellcheck disable=SC2086 # a list of words
$fixed "$exe" -error_exitcode=1 -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=600 -reload=0 -print_final_stats=1 \
    -artifact_prefix="$crashes/$name-" -seed_inputs="${inputs%,}" $options \
    "$found" >"$log" 2>&1
code=$?
if [ $code != 0 ]; then
    tail -n 60 "$log"
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    echo "to see it again: $exe $input"
    exit 1
fi
grep 'number_of_executed_units\|DONE' "$log"
