#!/usr/bin/env bash
# Numbers that two workers lease of one allocator, just enough of them and 4 % more, in transactions and under the lock: ratios of packets
# per processor time, in turns; what ran alone and what was refused (docs/measurements/transactions.md).
#
# Usage: leases.sh [TURNS [MILLISECONDS]]    (21 turns of 40 ms each way). WORKERS is how many (2), CC names another clang.
set -euo pipefail
cd "$(dirname "$0")/../fastpath/tests"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CC:-clang-19}" -std=gnu11 -Wall -Wextra -O3 -march=native -pthread "-DWORKERS=${WORKERS:-2}" -o "$work/bench" bench_leases.c
"$work/bench" "$@"
