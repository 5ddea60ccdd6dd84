#!/usr/bin/env bash
# Packets of two workers that share 65,536 entries, over one worker that shares nothing: sharded, under the lock, as transactions;
# 0, 1, 10 and 100 % of the packets write (bench/transact), and the bridge with uniform and Zipf keys: the modules that `millrace run`
# makes of them. Ways take turns; medians and quartiles of ratios of packets per processor time, and what a packet costs more on one
# worker (docs/transact.md).
#
# Usage: transact.sh MILLRACE [TURNS [MILLISECONDS]]    (21 turns of 30 ms each way: about a minute). WORKERS is how many (2), CC names
# another clang. KEEP names a folder where modules stay.
set -euo pipefail
millrace=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "${KEEP:-}" ] || mkdir -p "$KEEP"
modules=()
for nf in bench/transact/entries.c nfs/bridge/bridge.c; do
    for way in shard lock transact; do
        name=$(basename "$nf" .c)-$way
        # One worker's module is what each has where nothing is shared.
        options=(--cores 1)
        [ $way = shard ] || options=(--cores 2 --strategy "$way")
        # Running it builds the module; the cache has it.
        MILLRACE_CACHE=$work/$name "$millrace" run "$nf" "${options[@]}" --in captures/talk.pcap --split lan=10.0.0.0/24 \
            --control none >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
        found=$(find "$work/$name" -name '*.so' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
        [ -z "${KEEP:-}" ] || cp "$found" "$KEEP/$name.so"
        modules+=("$found")
    done
done
"${CC:-clang-19}" -std=gnu11 -Wall -Wextra -O2 -pthread "-DWORKERS=${WORKERS:-2}" -o "$work/bench" fastpath/tests/bench_transact.c -lm -ldl
"$work/bench" "${modules[@]}" "$@"
