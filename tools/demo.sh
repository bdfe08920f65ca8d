#!/bin/sh
# tools/demo.sh BUILD_DIR - what Pyramid does, in a few seconds.
#
# Everything happens in a temporary directory; exits non-zero if anything that
# is shown turns out not to be so.
set -eu

build=$(cd "${1:?usage: demo.sh BUILD_DIR}" && pwd)
PATH=$build/cli:$build/examples:$PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/pyramid-demo.XXXXXX")
doomed=
trap '[ -z "$doomed" ] || kill -9 $doomed 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    title=$(printf '\033[1;33m') command=$(printf '\033[36m')
    good=$(printf '\033[32m') plain=$(printf '\033[0m')
else
    title= command= good= plain=
fi

say() { printf '\n%s%s%s\n' "$title" "$1" "$plain"; }
ok() { printf '%s%s%s\n' "$good" "$1" "$plain"; }
wrong() { printf 'demo: %s\n' "$1" >&2; exit 1; }
run() { printf '%s$ %s%s\n' "$command" "$*" "$plain"; "$@"; }
latest() { pyramid info a.pyr "$1" | sed -n 's/^version *[0-9]* of //p'; }

say 'An array of 4096 x 4096 floats. No server; no cost until it is written.'
run pyramid create a.pyr world --shape 4096,4096 --type f32 --chunk 256,256
printf 'on disk: %s KiB\n' "$(du -sk a.pyr | cut -f1)"

say 'Six processes write to it at once. Their squares overlap; nobody waits.'
writers=
for square in '200 300 2000' '1400 1500 1800' '2300 200 1500' \
    '300 2100 1500' '1000 900 1300' '2500 2300 1400'; do
    # shellcheck disable=SC2086
    pyramid-demo paint a.pyr world $square &
    writers="$writers $!"
done
for writer in $writers; do
    wait "$writer" || wrong 'a writer failed'
done
[ "$(latest world)" = 6 ] || wrong 'six writers did not make six versions'

say 'Each write is a version: who, when, which box.'
run pyramid log a.pyr world

say 'All versions stay readable, whole, for ever. Two of them:'
pyramid-demo show a.pyr world 3 6

say 'What did the last write change? The tree knows; no cells are compared.'
diff=$(pyramid diff a.pyr world -1 latest | wc -l)
printf '%s$ pyramid diff a.pyr world -1 latest%s\n' "$command" "$plain"
pyramid diff a.pyr world -1 latest | head -3
[ "$diff" -le 3 ] || printf '... %s boxes in all\n' "$diff"
[ "$diff" -gt 0 ] || wrong 'diff found nothing'
run pyramid last a.pyr world --box 2000,2000

say 'Statistics of 16 million cells; see the last line for what was read:'
run pyramid stat a.pyr world

say 'A writer is shot in the middle of a write.'
tries=0
until [ "$(tail -c 1 hammer.out 2>/dev/null)" = '<' ]; do
    tries=$((tries + 1))
    [ "$tries" -le 20 ] || wrong 'no writer could be caught in a write'
    pyramid-demo hammer a.pyr world >hammer.out & # '<' begins, '>' ends one
    doomed=$!
    sleep 0.3
    kill -9 "$doomed"
    wait "$doomed" 2>/dev/null || true
    doomed=
done
printf 'kill -9 in its write number %s\n' "$(tr -cd '<' <hammer.out | wc -c)"
run pyramid-demo paint a.pyr world 1200 1200 1600
run pyramid log a.pyr world -n 3
checked=$(pyramid-demo check a.pyr world) || wrong 'a snapshot is damaged'
ok "$checked"

say 'Name a snapshot; branch from it for the price of one record.'
before=$(du -sk a.pyr | cut -f1)
run pyramid tag a.pyr world before-the-accident 6
run pyramid clone a.pyr world what-if --version before-the-accident
after=$(du -sk a.pyr | cut -f1)
printf 'the clone took %s KiB\n' "$((after - before))"
run pyramid-demo paint a.pyr what-if 600 600 2900
pyramid-demo show a.pyr what-if 0 1
run pyramid ls a.pyr -l

say 'And the cost?'
versions=$(latest world)
full=$((versions * 64))
used=$(du -sm a.pyr | cut -f1)
printf '%s snapshots of 64 MiB as full copies: %s MiB. Here: %s MiB.\n' \
    "$versions" "$full" "$used"
[ "$used" -lt "$full" ] || wrong 'snapshots take more room than copies'
run pyramid status a.pyr

ok '
All of this was checked as it was shown.'
