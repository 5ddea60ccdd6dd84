#!/usr/bin/env bash
# Builds each test twice, under AddressSanitizer and UndefinedBehaviorSanitizer and as modules are built,
# for any x86-64 where that gives the compiler another text, and under ThreadSanitizer where it starts
# threads; runs all, one on each processor, and prints the sum: a test is a program in one build, and a
# check a condition in it.
# CC names another clang.
set -u
cd "$(dirname "$0")" || exit 1
CC=${CC:-clang-19}
command -v "$CC" >/dev/null || { echo "skipped: no $CC"; exit 1; }
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
warn="-std=gnu11 -Wall -Wextra -Werror -Wno-invalid-feature-combination"

# One source in all its builds. Its last line is the sum of tests and of checks, for the loop at the end.
one() {
    local source=$1 name=${1%.c} passed=0 failed=0 checks=0 build last f status
    local threads= any=
    grep -q '<pthread.h>' "$source" && threads="-O1 -gline-tables-only -fsanitize=thread"
    # shellcheck disable=SC2086  # one word a flag is meant
    cmp -s <("$CC" $warn -E -P -march=native "$source") <("$CC" $warn -E -P "$source") || any="-O2"
    for build in "-O1 -gline-tables-only -fsanitize=address,undefined -fno-sanitize-recover=all" "-O3 -march=native" "$any" "$threads"; do
        [ -n "$build" ] || continue
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
    echo "$passed $failed $checks"
}

sources=()
for source in ${*:-*.c}; do
    case $source in bench_*) ;; *) sources+=("$source") ;; esac
done
for source in "${sources[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    one "$source" >"$out/$source.said" 2>&1 &
done
wait
passed=0 failed=0 checks=0
for source in "${sources[@]}"; do
    last=$(tail -n 1 "$out/$source.said")
    if [[ $last =~ ^([0-9]+)\ ([0-9]+)\ ([0-9]+)$ ]]; then
        sed '$d' "$out/$source.said"
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) checks=$((checks + BASH_REMATCH[3]))
    else
        cat "$out/$source.said"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed; $checks checks"
[ "$failed" -eq 0 ]
