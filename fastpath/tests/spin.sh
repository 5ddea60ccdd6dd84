#!/usr/bin/env bash
# All interleavings of the protocol of transactions for three workers (transact.pml), and that each weakened variant of it is
# found; prints the sum. With MILLRACE_LONG a packet has two attempts before it runs alone. CC names another compiler.
set -u
cd "$(dirname "$0")" || exit 1
CC=${CC:-clang-19}
command -v spin >/dev/null || { echo "skipped: no spin"; echo "0 passed, 0 failed"; exit 0; }
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
cp transact.pml "$out" && cd "$out" || exit 1
attempts=1
[ -n "${MILLRACE_LONG:-}" ] && attempts=2
passed=0 failed=0
for weakened in "" READS UPDATE GRACE LINES MARK; do
    if ! spin "-DATTEMPTS=$attempts" ${weakened:+"-D$weakened"} -a transact.pml ||
        ! "$CC" -O2 -w -DSAFETY -DMEMLIM=2000 -o pan pan.c; then
        echo "transact.pml (${weakened:-whole}): does not compile"
        failed=$((failed + 1))
        continue
    fi
    ./pan -m100000 >log 2>&1
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' log)
    states=$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' log)
    said="transact.pml (${weakened:-whole}): $states states, ${errors:-?} errors"
    # Of the whole protocol none, and nothing that was not looked at; of a weakened one at least one.
    if { [ -z "$weakened" ] && [ "$errors" = 0 ] && ! grep -q 'max search depth too small\|out of memory' log; } ||
        { [ -n "$weakened" ] && [ "${errors:-0}" -gt 0 ]; }; then
        echo "$said"
        passed=$((passed + 1))
    else
        echo "$said: wrong"
        tail -n 20 log
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
