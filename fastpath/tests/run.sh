#!/bin/sh
# Builds each test three times, under AddressSanitizer and UndefinedBehaviorSanitizer, as modules are
# built, and for any x86-64, and one that starts threads under ThreadSanitizer, too; runs all and prints
# the sum. CC names another clang.
set -u
cd "$(dirname "$0")"
CC=${CC:-clang-19}
command -v "$CC" >/dev/null || { echo "skipped: no $CC"; exit 1; }
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
warn="-std=gnu11 -Wall -Wextra -Werror -Wno-invalid-feature-combination"
passed=0 failed=0
for source in ${*:-*.c}; do
    name=${source%.c}
    case $name in bench_*) continue ;; esac
    threads=
    grep -q '<pthread.h>' "$source" && threads="-O1 -g -fsanitize=thread"
    for build in "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" "-O3 -march=native" "-O2" "$threads"; do
        [ -n "$build" ] || continue
        if ! "$CC" $warn $build -o "$out/$name" "$source"; then
            echo "$name ($build): does not compile"
            failed=$((failed + 1))
            continue
        fi
        "$out/$name" >"$out/log" 2>&1
        status=$?
        grep '^skipped: ' "$out/log" | sed "s/^/$name: /"
        last=$(tail -n 1 "$out/log")
        case $last in
        *" passed, "*" failed")
            p=${last%% passed*}
            f=${last##*, }
            f=${f%% *}
            passed=$((passed + p))
            failed=$((failed + f))
            [ "$f" -eq 0 ] && [ $status -eq 0 ] && echo "$name ($build): $last" && continue
            ;;
        *) failed=$((failed + 1)) ;;
        esac
        echo "$name ($build): exit $status"
        sed 's/^/    /' "$out/log" | tail -n 40
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
