#!/usr/bin/env bash
# What a person would run in place of replicas (docs/measurements/replication.md): the five programs on shared state with atomic
# additions or a spin lock an entry, and sharded by RSS, or by RSS++; bench/shared/shared.c says how.
#
# Usage: shared.sh [NS]    (100: ns a packet spun in place of dispatch)
#
# Prints Mpps, the median of three turns, for one flow, 60,000 flows alike, and 20,000 by Zipf's law (1.3).
set -euo pipefail

ns=${1:-100}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

processors=$(nproc)
threads=(1)
for n in 2 4 7 8 14; do [ "$n" -le "$processors" ] && threads+=("$n"); done

# NAME ENTRY TCP: 0 UDP, 1 knocks, 2 connections
build() {
    ${CC:-cc} -O3 -march=native -std=gnu11 -Wall -Wno-unused-const-variable -Wno-deprecated-declarations -DTCP="$3" \
        -DENTRY="$2" -DPROGRAM="\"../../nfs/$1/$1.c\"" -Ibench/shared -Iinclude bench/shared/shared.c -o "$work/$1" -lm -lpthread
}
build ddos ddos 0
build portknock portknock 1
build heavyhitter heavyhitter 0
build tokenbucket tokenbucket 0
build conntrack conntrack 2

printf '%-12s %-7s %-22s' program mode traffic
printf ' %7s' "${threads[@]}"
printf '\n'
for nf in ddos portknock heavyhitter tokenbucket conntrack; do
    for mode in atomic lock rss rss++; do
        # Only where one addition is all that is written.
        [ "$mode" = atomic ] && [ "$nf" != ddos ] && [ "$nf" != heavyhitter ] && continue
        for traffic in '1 0' '60000 0' '20000 1.3'; do
            printf '%-12s %-7s %-22s' "$nf" "$mode" "flows, Zipf: $traffic"
            for k in "${threads[@]}"; do
                for _ in 1 2 3; do
                    # shellcheck disable=SC2086
                    "$work/$nf" "$mode" "$k" $traffic "$ns"
                done | sort -n | sed -n 2p | xargs printf ' %7s'
            done
            printf '\n'
        done
    done
done
