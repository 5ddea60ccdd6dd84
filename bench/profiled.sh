#!/usr/bin/env bash
# What looking into a run costs: ns a packet (the median over bursts, which other work on the machine hardly moves) with counters for a
# profile, with a trace of 10 packets that wait, and with samples that are exported, over those of the same run without.
#
# Usage: profiled.sh [TURNS] [SECONDS]    (9 turns of 2 s each way); needs no root
#
# Both ways take turns, in alternating order; the figure is the median of the ratios turn by turn, with the quartiles.
# CACHE keeps modules from call to call.
set -euo pipefail

turns=${1:-9}
seconds=${2:-2}
here=$(cd "$(dirname "$0")" && pwd)
millrace=${MILLRACE:-$here/../target/release/millrace}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
export MILLRACE_CACHE=${CACHE:-$work/cache}
cd "$here/.."
"$millrace" trace gen -o "$work/t.pcapng" --packets 65536 --flows 4096 --size 64 >/dev/null

# ns a packet of a run with these words; `how` is what is done to it.
cost() {
    local how=$1 run
    shift
    rm -f "$work/s.sock"
    local -a more=()
    [ "$how" = profile ] && more=(--profile)
    [ "$how" = sample ] && more=(--sample 1/1000 --export ipfix:127.0.0.1:9)
    "$millrace" run "$@" --in "mem:$work/t.pcapng" --split lan=10.0.0.0/16 --seconds "$seconds" --out null: \
        --control "$work/s.sock" --json "${more[@]}" >"$work/account" 2>"$work/said" &
    run=$!
    if [ "$how" = trace ]; then
        while [ ! -S "$work/s.sock" ]; do
            kill -0 "$run" || { cat "$work/said" >&2; exit 1; }
            sleep 0.01
        done
        "$millrace" ctl trace --control "$work/s.sock" --match 'host 203.0.113.9' --count 10 \
            >/dev/null 2>&1 || true
    fi
    wait "$run" || { cat "$work/said" >&2; exit 1; }
    python3 -c 'import json, sys; print(json.load(sys.stdin)["function"]["p50_ns"])' <"$work/account"
}

compare() {
    local name=$1 how=$2 turn off on
    shift 2
    cost none "$@" >/dev/null
    cost "$how" "$@" >/dev/null
    for turn in $(seq "$turns"); do
        if [ $((turn % 2)) = 0 ]; then
            on=$(cost "$how" "$@"); off=$(cost none "$@")
        else
            off=$(cost none "$@"); on=$(cost "$how" "$@")
        fi
        echo "$off $on"
    done >"$work/figures"
    python3 - "$name" "$work/figures" <<'PY'
import statistics, sys
turns = [tuple(map(float, line.split())) for line in open(sys.argv[2])]
ratios = [on / off for off, on in turns]
low, median, high = statistics.quantiles(ratios, n=4)
off, on = (statistics.median(column) for column in zip(*turns))
print(f"{sys.argv[1]}: {median:.3f} ({low:.3f} to {high:.3f}); {on:.1f} over {off:.1f} ns, {len(turns)} turns")
PY
}

compare "profile on, transact" profile firewall --cores 2 --strategy transact
compare "profile on, shard" profile firewall --cores 2 --strategy shard
compare "trace of 10 waiting, one core" trace firewall
compare "sampled 1/1000, one core" sample firewall
