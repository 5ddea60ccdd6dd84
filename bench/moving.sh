#!/usr/bin/env bash
# State that moves between cores (docs/moving.md), two workers on the software NIC, which loses nothing at the highest rate:
#   1. how long packets of a bucket of 1,000 entries wait while it moves;
#   2. packets a second with buckets that may move, and with a balancer that finds nothing to do, over those of the same run without;
#   3. packets a second of a trace whose heavy flows change every second, balanced while it runs, over what each second's part has
#      when it comes alone and the balancer has settled: an oracle's table.
#
# Usage: moving.sh [TURNS] [SECONDS]    (9 turns of 2 s); needs no root; three processors, two for workers and one for the NIC
#
# Turns alternate; figures are medians with quartiles. CACHE keeps modules from call to call.
set -euo pipefail

turns=${1:-9}
seconds=${2:-2}
here=$(cd "$(dirname "$0")" && pwd)
millrace=${MILLRACE:-$here/../target/release/millrace}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
export MILLRACE_CACHE=${CACHE:-$work/cache}
cd "$here/.."
flows=${FLOWS:-524288}

# A run of the firewall over a capture; further words are its own.
run() {
    local capture=$1
    shift
    # In the place of this shell where it is one of its own, so that it gets the signal.
    ${alone:-} "$millrace" run firewall --capacity flows=1048576 --in "vnic:$capture?measure=off&split=lan=10.0.0.0/16${dispatch:-}" --out null: --cores 2 \
        --strategy shard --json "$@"
}

rate() { run "$@" >"$work/account" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
    python3 -c 'import json, sys; print(json.load(sys.stdin)["mpps"])' <"$work/account"; }

"$millrace" trace gen -o "$work/even.pcap" --packets "$((flows * 2))" --flows "$flows" --zipf 0 --every-flow --size 64 --no-connections >/dev/null

# 1. Every fourth bucket to the other worker and back.
alone=exec run "$work/even.pcap" --balance=0 --seconds 600 --control "$work/s.sock" >"$work/account" 2>"$work/said" &
served=$!
until [ -S "$work/s.sock" ]; do
    kill -0 "$served" || { cat "$work/said" >&2; exit 1; }
    sleep 0.05
done
sleep 2
python3 - "$millrace" "$work/s.sock" <<'PY'
import json, statistics, subprocess, sys
millrace, socket = sys.argv[1:]
def ctl(*words):
    return json.loads(subprocess.run([millrace, "ctl", "class", *words, "--control", socket, "--json"], check=True, stdout=subprocess.PIPE).stdout)
waits, entries = [], []
for _ in range(2):
    for bucket in ctl("show")["classes"][::4]:
        answer = ctl("move", str(bucket["class"]), str(1 - bucket["worker"]))
        waits.append(answer["held_us"])
        entries.append(answer.get("entries", 0))
waits.sort()
print(f"moves: {len(waits)}, entries {min(entries)} to {max(entries)}; packets waited {statistics.median(waits):.0f} us (median), "
      f"{waits[len(waits) * 9 // 10]:.0f} us (90 %), {waits[-1]:.0f} us (most)")
PY
kill -TERM "$served"
wait "$served" || true

# 2. What it costs when nothing moves.
python3 - >"$work/order" <<PY
for turn in range($turns):
    for word in (["none", "0", "100"], ["100", "0", "none"])[turn % 2]:
        print(word)
PY
while read -r word; do
    more=()
    [ "$word" = none ] || more=(--balance="$word")
    echo "$word $(rate "$work/even.pcap" --seconds "$seconds" "${more[@]}")"
done <"$work/order" >"$work/figures"
python3 - "$work/figures" <<'PY'
import statistics, sys
lines = [line.split() for line in open(sys.argv[1])]
turns = [dict((word, float(mpps)) for word, mpps in lines[i:i + 3]) for i in range(0, len(lines), 3)]
for word, name in (("0", "buckets may move"), ("100", "balancer, idle")):
    low, middle, high = statistics.quantiles([turn[word] / turn["none"] for turn in turns], n=4)
    print(f"{name}: {middle:.4f} ({low:.4f} to {high:.4f}) of {statistics.median(t['none'] for t in turns):.2f} Mpps, {len(turns)} turns")
PY

# 3. Heavy flows that change. 300 ns a packet are charged, so that a second has few enough packets for a file.
dispatch='&dispatch=300'
parts=4
each=${EACH:-4500000}
for part in $(seq "$parts"); do
    "$millrace" trace gen -o "$work/part$part.pcap" --packets "$each" --flows 1000 --zipf 1.1 --size 64 --no-connections --seed "$part" >/dev/null &
    making[part]=$!
done
for part in $(seq "$parts"); do wait "${making[part]}"; done
cp "$work/part1.pcap" "$work/all.pcap"
for part in $(seq 2 "$parts"); do tail -c +25 "$work/part$part.pcap" >>"$work/all.pcap"; done
for part in $(seq "$parts"); do
    echo "part $(rate "$work/part$part.pcap" --seconds 3 --balance)"
done >"$work/oracle"
for turn in 1 2; do
    echo "balance $(rate "$work/all.pcap" --seconds 7 --balance)"
    echo "still $(rate "$work/all.pcap" --seconds 7)"
done >"$work/figures"
python3 - "$work/oracle" "$work/figures" <<'PY'
import statistics, sys
parts = [float(line.split()[1]) for line in open(sys.argv[1])]
oracle = statistics.harmonic_mean(parts)
of = {}
for line in open(sys.argv[2]):
    word, mpps = line.split()
    of.setdefault(word, []).append(float(mpps))
print(f"heavy flows that change: parts alone {', '.join(f'{p:.2f}' for p in parts)} Mpps, oracle {oracle:.2f}; balanced "
      f"{', '.join(f'{m / oracle:.3f}' for m in of['balance'])} of it, not balanced {', '.join(f'{m / oracle:.3f}' for m in of['still'])}")
PY
