#!/bin/sh
# soak.sh [HOURS] - run the random tests with new seeds for a long time.
#
#   BUILD=build-faults tests/soak.sh 8
#
# BUILD is a build directory made with -Dfaults=true (without it the crash
# tests are left out), FUZZ one made with -Dfuzz=true, whose targets get a
# minute each in every round; what they find is kept in $BUILD/soak/fuzz. What
# fails goes to $BUILD/soak/failures.txt, one command that runs it again per
# line, its output beside it. A program that is not done when the time is over
# is cut short, which is no failure; so that each comes to its turn, they are
# told to be small if there is less than an hour. Ends with 1 if any failed.
#
# Of a small store each byte is flipped, one after the other, which takes hours:
# every round does some, and where to go on is kept in $BUILD/soak/bytes, also
# for the next time. When all are done it begins anew with another seed.
set -u

hours=${1:-1}
build=${BUILD:-build}
fuzz=${FUZZ:-}
here=$(dirname "$0")
case $hours in
'' | *[!0-9.]*) echo "usage: $0 [HOURS]" >&2; exit 2 ;;
esac
if [ ! -x "$build/tests/model/model_test" ]; then
    echo "$0: no tests in $build; set BUILD to a build directory" >&2
    exit 2
fi

kept=$build/soak
mkdir -p "$kept"
end=$(awk -v h="$hours" -v now="$(date +%s)" 'BEGIN { print int(now + h * 3600) }')
round=0
failed=0
cut=0

scale=large
[ $((end - $(date +%s))) -ge 3600 ] || scale=small
PYR_TEST_SCALE=$scale
export PYR_TEST_SCALE

run() { # run PROGRAM SEED [SETTING]
    log=$kept/run.log
    env PYR_TEST_SEED="$2" ${3:+"$3"} \
        timeout $((end - $(date +%s) + 1)) "$1" >"$log" 2>&1
    code=$?
    [ $code != 0 ] || return
    if [ $code = 124 ] && ! grep -q '^not ok' "$log"; then
        cut=$((cut + 1))
        return
    fi
    failed=$((failed + 1))
    echo "PYR_TEST_SCALE=$scale PYR_TEST_SEED=$2 ${3:+$3 }$1" \
        >>"$kept/failures.txt"
    mv "$log" "$kept/$(basename "$1")-$2${3:+-$3}.log"
    log=$kept/$(basename "$1")-$2${3:+-$3}.log
    echo "failed: $(basename "$1"), seed $2${3:+, $3}"
    grep -h '^not ok' "$log"
}

run_bytes() { # run_bytes PROGRAM SEED: the next bytes of a store, seed and all
    some=20000
    [ $scale = large ] || some=1000
    bytes_seed=$2 from=0
    [ ! -s "$kept/bytes" ] || read -r bytes_seed from <"$kept/bytes"
    run "$1" "$bytes_seed" "PYR_TEST_BYTES=$from+$some"
    if grep -q '^# all .* bytes are done' "$log"; then
        rm -f "$kept/bytes"
    elif grep -q '^# .* bytes are done' "$log"; then
        echo "$bytes_seed $((from + some))" >"$kept/bytes"
    fi
    sed -n 's/^# \(.* bytes are done\).*/\1/p' "$log"
}

run_fuzz() { # run_fuzz PROGRAM SECONDS
    log=$kept/run.log
    if FUZZ_KEEP=$kept/fuzz "$here/fuzz/run.sh" "-max_total_time=$2" "$1" \
        >"$log" 2>&1; then
        return
    fi
    failed=$((failed + 1))
    sed -n 's/^to see it again: //p' "$log" >>"$kept/failures.txt"
    echo "failed: $(basename "$1")"
    grep -h 'broken:\|ERROR:\|runtime error:' "$log" | head -n 3
}

while [ "$(date +%s)" -lt "$end" ]; do
    round=$((round + 1))
    for program in model/model_test concurrency/concurrency_test \
        concurrency/sharing_test concurrency/mixed_test keep/keep_crowd_test \
        crash/kill_test keep/keep_order_test power/power_test \
        verify/verify_bytes_test verify/verify_flip_test \
        ../src/engine/local/tests/local_search_test \
        verify/verify_digest_test verify/verify_busy_test crash/stop_test \
        crash/operations_test crash/compute_test compute/active_replay_test \
        copy/copy_copy_test copy/copy_interrupt_test keep/keep_rules_test \
        keep/keep_races_test keep/keep_space_test keep/keep_boot_test \
        lessons/lessons_test; do
        [ -x "$build/tests/$program" ] || continue
        [ "$(date +%s)" -lt "$end" ] || break
        seed=0x$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')
        left=$(((end - $(date +%s)) / 60))
        echo "round $round: $(basename $program) $seed; $left minutes left, $failed failed"
        case $program in
        */verify_bytes_test) run_bytes "$build/tests/$program" "$seed" ;;
        *) run "$build/tests/$program" "$seed" ;;
        esac
    done
    for program in ${fuzz:+"$fuzz"/tests/fuzz/*_fuzz}; do
        left=$((end - $(date +%s)))
        [ -x "$program" ] && [ "$left" -gt 0 ] || break
        echo "round $round: $(basename "$program"); $((left / 60)) minutes left, $failed failed"
        run_fuzz "$program" $((left < 60 ? left : 60))
    done
done
echo "$round rounds, $failed failed, $cut cut short by the end of time"
[ "$failed" -eq 0 ]
