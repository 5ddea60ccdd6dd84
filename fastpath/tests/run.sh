#!/usr/bin/env bash
# Builds each test twice, under AddressSanitizer and UndefinedBehaviorSanitizer and as modules are built,
# for any x86-64 where that gives the compiler another text, and under ThreadSanitizer where it starts
# threads; runs all, one on each processor, and prints the sum: a test is a program in one build, and a
# check a condition in it. Each day half of the programs have the two sanitizers' build and the others the rest, in turn;
# MILLRACE_LONG=1 has all builds of all, as do programs that are named, and MILLRACE_DAY=N is another day.
# CC names another clang.
set -u
cd "$(dirname "$0")" || exit 1
CC=${CC:-clang-19}
command -v "$CC" >/dev/null || { echo "skipped: no $CC"; exit 1; }
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
warn="-std=gnu11 -Wall -Wextra -Werror -Wno-invalid-feature-combination"

day=${MILLRACE_DAY:-$(($(date +%s) / 86400))}
all=
[ -z "${MILLRACE_LONG+said}" ] && [ $# -eq 0 ] || all=said

# One source, the NUMBER-th, in the builds that have their turn. Its last line is the sum of tests, of checks and of builds left out, for the
# loop at the end.
one() {
    local source=$1 number=$2 name=${1%.c} passed=0 failed=0 checks=0 left=0 build turn last f status
    local threads= any= memory="-O1 -gline-tables-only -fsanitize=address,undefined -fno-sanitize-recover=all" native="-O3 -march=native"
    grep -q '<pthread.h>' "$source" && threads="-O1 -gline-tables-only -fsanitize=thread"
    # shellcheck disable=SC2086  # one word a flag is meant
    cmp -s <("$CC" $warn -E -P -march=native "$source") <("$CC" $warn -E -P "$source") || any="-O2"
    for build in "$memory" "$native" "$any" "$threads"; do
        [ -n "$build" ] || continue
        turn=1
        [ "$build" != "$memory" ] || turn=0
        if [ -z "$all" ] && [ $(((number + day) % 2)) != "$turn" ]; then
            left=$((left + 1))
            continue
        fi
        # shellcheck disable=SC2086  # one word a flag is meant
        if ! "$CC" $warn $build -o "$out/$name" "$source"; then
            echo "$name ($build): does not compile"
            failed=$((failed + 1))
            continue
        fi
        "$out/$name" >"$out/$name.log" 2>&1
        status=$?
        grep '^skipped: ' "$out/$name.log" | sed "s/^/$name: /"
        last=$(tail -n 1 "$out/$name.log")
        if [[ $last =~ ^([0-9]+)" checks, "([0-9]+)" failed"$ ]]; then
            checks=$((checks + BASH_REMATCH[1]))
            f=${BASH_REMATCH[2]}
            if [ "$f" -eq 0 ] && [ $status -eq 0 ]; then
                echo "$name ($build): $last"
                # A build in which there is nothing to check is no test.
                [ "${BASH_REMATCH[1]}" -eq 0 ] || passed=$((passed + 1))
                continue
            fi
        fi
        failed=$((failed + 1))
        echo "$name ($build): exit $status"
        sed 's/^/    /' "$out/$name.log" | tail -n 40
    done
    echo "$passed $failed $checks $left"
}

sources=()
for source in ${*:-*.c}; do
    case $source in bench_*) ;; *) sources+=("$source") ;; esac
done
number=0
for source in "${sources[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    one "$source" "$number" >"$out/$source.said" 2>&1 &
    number=$((number + 1))
done
wait
passed=0 failed=0 checks=0 left=0
for source in "${sources[@]}"; do
    last=$(tail -n 1 "$out/$source.said")
    if [[ $last =~ ^([0-9]+)\ ([0-9]+)\ ([0-9]+)\ ([0-9]+)$ ]]; then
        sed '$d' "$out/$source.said"
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) checks=$((checks + BASH_REMATCH[3]))
        left=$((left + BASH_REMATCH[4]))
    else
        cat "$out/$source.said"
        failed=$((failed + 1))
    fi
done
[ "$left" = 0 ] ||
    echo "skipped: $left builds of state objects have their turn on another day than $day (MILLRACE_LONG=1: all)"
echo "$passed passed, $failed failed; $checks checks"
[ "$failed" -eq 0 ]
