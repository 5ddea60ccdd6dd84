#!/usr/bin/env bash
# What watching costs: packets/s of a run that is scraped once a second and shown by `millrace top` four
# times a second, over those of the same run that nobody watches.
#
# Usage: watched.sh [TURNS] [SECONDS]    (9 turns of 3 s each way); needs no root
#
# Both ways take turns, in alternating order; the figure is the median of the ratios turn by turn.
# MILLRACE_PORT names another port than the software NIC: mem:FILE has no thread of its own.
set -euo pipefail

turns=${1:-9}
seconds=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
millrace=${MILLRACE:-$here/../target/release/millrace}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
"$millrace" trace gen -o "$work/t.pcap" --packets 4096 --size 64 >/dev/null
port=${MILLRACE_PORT:-vnic:$work/t.pcap?measure=off}
cd "$here/.."

# Nobody types: a terminal whose input neither says anything nor ends.
mkfifo "$work/silent"
exec 9<>"$work/silent"

# Packets a second of a run; `watched` says by whom.
rate() {
    local watched=$1 run top scrape
    local -a more=()
    [ "$watched" = yes ] && more=(--metrics 127.0.0.1:0)
    local -a ports=(--ports "$port")
    case $port in mem:*) ports=(--in "$port" --out null:) ;; esac
    rm -f "$work/s.sock"
    "$millrace" run nop nop "${ports[@]}" --seconds "$seconds" --control "$work/s.sock" --json \
        "${more[@]}" >"$work/account" 2>"$work/said" &
    run=$!
    if [ "$watched" = yes ]; then
        while [ ! -S "$work/s.sock" ] || ! grep -q '^metrics at' "$work/said"; do
            kill -0 "$run" || { cat "$work/said" >&2; exit 1; }
            sleep 0.01
        done
        # A terminal of its own, so that top draws: 4 Hz is its default.
        script -qfc "stty rows 40 cols 120; '$millrace' top --control '$work/s.sock'" /dev/null \
            <&9 >"$work/screen" 2>&1 &
        top=$!
        (url=$(sed -n 's/^metrics at //p' "$work/said")
         while kill -0 "$run" 2>/dev/null; do
             curl -s -o "$work/scrape" "$url" || true
             sleep 1
         done) &
        scrape=$!
        wait "$run"
        wait "$top" "$scrape" || true
        grep -q millrace_ "$work/scrape" || { echo "watched: nothing was scraped" >&2; exit 1; }
        grep -q Functions "$work/screen" || { echo "watched: nothing was drawn" >&2; exit 1; }
    else
        wait "$run"
    fi
    python3 -c 'import json, sys; print(json.load(sys.stdin)["mpps"])' <"$work/account"
}

for turn in $(seq "$turns"); do
    if [ $((turn % 2)) = 0 ]; then
        watched=$(rate yes); alone=$(rate no)
    else
        alone=$(rate no); watched=$(rate yes)
    fi
    echo "turn $turn: alone $alone Mpps, watched $watched Mpps" >&2
    echo "$alone $watched"
done >"$work/figures"
python3 - "$work/figures" <<'PY'
import statistics, sys
turns = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
ratios = sorted(watched / alone for alone, watched in turns)
alone, watched = (statistics.median(column) for column in zip(*turns))
print(f"watched over alone: {statistics.median(ratios):.4f} ({ratios[0]:.4f} to {ratios[-1]:.4f}); "
      f"medians {watched:.3f} and {alone:.3f} Mpps, {len(turns)} turns")
PY
