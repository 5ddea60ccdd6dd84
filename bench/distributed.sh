#!/usr/bin/env bash
# antiddos with its numbers in one copy (staleness 0) and in parts (staleness 0.1 ms), two workers of two processors: the emitted modules
# over the same packets, in turns; medians and quartiles of ratios of packets per processor time (docs/packet-sets.md).
# Flows end after 2 ms instead of 60 s, so that tables do not fill while four of five packets open one, and none counts as an attack.
#
# Usage: distributed.sh MILLRACE [TURNS [MILLISECONDS]]    (21 turns of 40 ms each way). WORKERS is how many (2), CC names another clang.
set -euo pipefail
millrace=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for way in 0:lock 100000:shard; do
    ns=${way%:*}
    sed -e 's/SECONDS(60)/MILLISECONDS(2)/' -e 's/MICROSECONDS(100)/'$ns'/' \
        -e 's/^PARAM(__u64, percent.*/enum { percent = 100, least = 1000 };/' -e '/^PARAM(__u64, least/d' \
        nfs/antiddos/antiddos.c >"$work/antiddos$ns.c"
    # Running it builds the module for two workers; the cache has it.
    MILLRACE_CACHE=$work/cache$ns "$millrace" run "$work/antiddos$ns.c" --cores 2 --strategy "${way#*:}" --in captures/talk.pcap \
        --split lan=10.0.0.0/24 >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
    find "$work/cache$ns" -name '*.so' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2 >"$work/module$ns"
done
"${CC:-clang-19}" -std=gnu11 -Wall -Wextra -O2 -pthread "-DWORKERS=${WORKERS:-2}" -o "$work/bench" fastpath/tests/bench_distributed.c -ldl
"$work/bench" "$(cat "$work/module0")" "$(cat "$work/module100000")" "$@"
