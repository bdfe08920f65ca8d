#!/bin/sh
# tools/demo-ceph.sh BUILD_DIR - what Pyramid does on a Ceph cluster: one
# monitor and three OSDs of its own, of which one is killed in the middle.
#
# The cluster lives in a temporary directory and is gone at the end; exits
# non-zero if anything that is shown turns out not to be so.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: demo-ceph.sh BUILD_DIR}" && pwd)
PATH=$build/cli:$build/examples:$PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/pyramid-demo.XXXXXX")
ceph() { "$here/dev-ceph" "$@" "$work/cluster"; }
finish() {
    ceph stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM
cd "$work"

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    title=$(printf '\033[1;33m') command=$(printf '\033[36m')
    good=$(printf '\033[32m') plain=$(printf '\033[0m')
else
    title= command= good= plain=
fi

say() { printf '\n%s%s%s\n' "$title" "$1" "$plain"; }
ok() { printf '%s%s%s\n' "$good" "$1" "$plain"; }
wrong() { printf 'demo-ceph: %s\n' "$1" >&2; exit 1; }
run() { printf '%s$ %s%s\n' "$command" "$*" "$plain"; "$@"; }
latest() { pyramid info "$url" "$1" | sed -n 's/^version *[0-9]* of //p'; }

# paint N: start N writers at places that overlap; their ids go to $writers.
paint() {
    for i in $(seq "$1"); do
        pyramid-demo paint "$url" world $((i * 97 % 900)) \
            $((i * 331 % 900)) $((200 + i * 53 % 400)) >/dev/null &
        writers="$writers $!"
    done
}
await() {
    for writer in $writers; do
        wait "$writer" || wrong 'a writer failed'
    done
    writers=
}
writers=

say 'A Ceph cluster: one monitor, three OSDs, three copies of everything.'
printf '%s$ tools/dev-ceph start%s\n' "$command" "$plain"
ceph start --class-dir "$build/src/cls" | tee start.out
url=$(tail -n 1 start.out)

say 'An array of 1536 x 1536 floats. Its version manager is one object there.'
run pyramid create "$url" world --shape 1536,1536 --type f32 --chunk 256,256

say 'Six processes write to it at once. Their squares overlap; nobody waits.'
paint 6
await
[ "$(latest world)" = 6 ] || wrong 'six writers did not make six versions'
run pyramid log "$url" world -n 3

say 'Six more; meanwhile an OSD is shot.'
paint 3
printf '%s$ tools/dev-ceph kill 1%s\n' "$command" "$plain"
ceph kill 1
paint 3
await
[ "$(latest world)" = 12 ] || wrong 'twelve writers did not make 12 versions'
checked=$(pyramid-demo check "$url" world) || wrong 'a snapshot is damaged'
ok "$checked, with an OSD dead"

say 'A version computed from another, and a sum; still with two OSDs.'
run pyramid compute "$url" world 'x * 2' --version 12
run pyramid reduce "$url" world 'sum(x)'
pyramid-demo show "$url" world 6 13

say 'The OSD comes back, and the cluster heals.'
printf '%s$ tools/dev-ceph revive 1%s\n' "$command" "$plain"
ceph revive 1
ceph wait
ceph status | sed -n '/^osd\|^pool/p'
run pyramid verify "$url" --deep

say 'A copy in a directory; the same bytes.'
run pyramid copy "$url" world a.pyr world
[ "$(pyramid reduce "$url" world 'sum(x)')" = \
    "$(pyramid reduce a.pyr world 'sum(x)')" ] || wrong 'the copy differs'
run pyramid status "$url"

ok '
All of this was checked as it was shown.'
