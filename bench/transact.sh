#!/usr/bin/env bash
# Packets of two workers that share 65,536 entries, over one worker that shares nothing: sharded, under the lock, as transactions;
# 0, 1, 10 and 100 % of the packets write, and a bridge with uniform and Zipf keys. Ways take turns; medians and quartiles of ratios
# of packets per processor time, and what a packet costs more on one worker (docs/transact.md).
#
# Usage: transact.sh [TURNS [MILLISECONDS]]    (21 turns of 30 ms each way: about a minute). WORKERS is how many (2), CC names another clang.
set -euo pipefail
cd "$(dirname "$0")/../fastpath/tests"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CC:-clang-19}" -std=gnu11 -Wall -Wextra -O3 -march=native -pthread "-DWORKERS=${WORKERS:-2}" -o "$work/bench" bench_transact.c -lm
"$work/bench" "$@"
