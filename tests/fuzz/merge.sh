#!/bin/sh
# tests/fuzz/merge.sh - make the corpora small again.
#
#   tests/fuzz/merge.sh BUILD [FOUND]
#
# For each target: the smallest inputs that together reach what the corpus, new
# seeds and FOUND/TARGET (as tests/fuzz/run.sh leaves it) reach. Inputs of more
# than 1500 bytes are left out.
set -eu
build=$1/tests/fuzz
found=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/seeds"
"$build/seeds" "$work/seeds"
for exe in "$build"/*_fuzz; do
    name=$(basename "$exe" _fuzz)
    mkdir -p "$here/corpus/$name" "$work/new/$name" "$work/seeds/$name"
    set -- "$here/corpus/$name" "$work/seeds/$name"
    [ ! -d "$found/$name" ] || set -- "$@" "$found/$name"
    "$exe" -set_cover_merge=1 -use_counters=0 \
        -max_len=1500 "$work/new/$name" "$@" 2>"$work/log" || {
        tail -n 20 "$work/log"
        exit 1
    }
    rm -f "$here/corpus/$name"/*
    for file in "$work/new/$name"/*; do # short names
        mv "$file" "$here/corpus/$name/$(basename "$file" | cut -c 1-12)"
    done
    echo "$name: $(ls "$here/corpus/$name" | wc -l) inputs," \
        "$(cat "$here/corpus/$name"/* | wc -c) bytes"
done
