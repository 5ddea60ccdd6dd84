#!/usr/bin/env bash
# Curves over cores: nine functions by two strategies each, the share of packets that write, churn of flows.
#
# Usage: shard.sh [--record] [FOLDER] [TURNS]    (out/shard, 3 turns); results: shard.json and shard.html in FOLDER,
# and with --record the figures of docs/measurements/scaling.md, and its plots
#
# Measured on the cores that there are: by `millrace bench --memory`, where each worker has a processor and its
# packets in its own memory, and, where processors are left for a NIC, by `millrace bench` on the software NIC with
# latencies. Beyond these cores the curves are continued with the cost model, from what `millrace plan --in` measured
# here, and marked as simulated (docs/scaling.md). Functions and strategies that do not run on several workers are
# named with the reason. It takes two to four minutes on two cores; MILLRACE_BENCH_NFS names other functions,
# MILLRACE_BENCH_PACKETS the packets of a trace.
set -euo pipefail

page=()
[ "${1:-}" = --record ] && { page=(docs/measurements/scaling.md); shift; }
out=${1:-out/shard}
turns=${2:-3}
functions=${MILLRACE_BENCH_NFS:-nop policer sbridge bridge firewall psd nat cl lb}
packets=${MILLRACE_BENCH_PACKETS:-400000}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."
millrace=${MILLRACE:-target/release/millrace}
[ -x "$millrace" ] || cargo build --release --quiet -p millrace-cli --bin millrace

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
processors=$(nproc)
cores=1
for ((n = 2; n <= processors && n <= 16; n *= 2)); do cores+=",$n"; done
split=lan=10.0.0.0/16
lines=$work/lines
: >"$lines"

traffic() { # NAME OPTIONS…: a capture of 64-byte packets, both directions
    local name=$1
    shift
    "$millrace" trace gen --packets "$packets" --size 64 --no-connections "$@" -o "$work/$name.pcap" >/dev/null
}

# One document of the command a line, with what it is about; a command that says no gives a line with the reason.
keep() { # CURVE NF TRAFFIC X VERB WORDS…
    local curve=$1 nf=$2 traffic=$3 x=$4 verb=$5
    shift 5
    if ! "$millrace" "$verb" "$nf" --in "$work/$traffic.pcap" --split "$split" "$@" --json >"$work/document" 2>"$work/said"; then
        grep -m 1 '^error' "$work/said" >"$work/why" || tail -n 1 "$work/said" >"$work/why"
    else
        : >"$work/why"
    fi
    python3 - "$curve" "$nf" "$traffic" "$x" "$verb" "$work/document" "$work/why" >>"$lines" <<'PY'
import json, sys
curve, nf, traffic, x, verb, document, why = sys.argv[1:]
try:
    content = json.load(open(document))
except ValueError:
    content = None
print(json.dumps({"curve": curve, "nf": nf, "traffic": traffic, "x": float(x), "verb": verb,
                  "document": content, "why": open(why).read().strip()}))
PY
    echo "$curve $nf $traffic $x: $verb $*" >&2
}

measured() { # CURVE NF TRAFFIC X STRATEGY WORDS…
    local curve=$1 nf=$2 traffic=$3 x=$4 strategy=$5
    shift 5
    keep "$curve" "$nf" "$traffic" "$x" bench --memory --no-limit --repeat "$turns" --cores "$cores" --strategy "$strategy" "$@"
}

traffic uniform --every-flow --flows 20000 --zipf 0
traffic zipf --every-flow --flows 20000 --zipf 1.1
for nf in $functions; do
    for shape in uniform zipf; do
        keep cores "$nf" "$shape" 0 plan --time 120 --cores 16
        measured cores "$nf" "$shape" 0 best
        measured cores "$nf" "$shape" 0 lock
    done
    if [ "$processors" -gt 1 ]; then
        keep latency "$nf" uniform 0 bench --no-limit --repeat 1 --cores "$cores"
    fi
done

# A packet of a flow that nobody has seen writes; so many flows end and are replaced that they are this share of
# the packets. For ten per cent there are so many flows that in the second half one packet of ten is its flow's
# first: with a packets a flow, drawn alike, that is (exp(-a/2) - exp(-a)) / (a/2), 0.1 at a = 3.2.
rate=1000000
for percent in 0.001 0.01 0.1 1 10; do
    if [ "$percent" = 10 ]; then
        traffic writes --flows $((packets * 10 / 32)) --zipf 0 --rate "$rate"
    else
        churn=$(python3 -c "print($percent / 100 * $rate * 60)")
        traffic writes --every-flow --flows 20000 --zipf 0 --rate "$rate" --churn "$churn"
    fi
    keep writes firewall writes "$percent" plan --time 120 --cores 16 --capacity flows=1048576
    measured writes firewall writes "$percent" best --capacity flows=1048576
    measured writes firewall writes "$percent" lock --capacity flows=1048576
done

# 64K flows live, in the time of a 40 Gbit/s link of 64-byte frames: at the highest churn one packet of 36 opens a
# flow. A function that takes fewer packets a second has the same share of new flows, and fewer of them a minute:
# both are in the document.
for churn in 0 10000 100000 1000000 10000000 100000000; do
    traffic churn --every-flow --flows 65536 --zipf 0 --rate 60000000 --churn "$churn"
    keep churn firewall churn "$churn" plan --time 120 --cores 16 --capacity flows=1048576
    measured churn firewall churn "$churn" best --capacity flows=1048576
    measured churn firewall churn "$churn" lock --capacity flows=1048576
done

python3 bench/curves.py "$lines" "$out" "$processors" "$turns" "$packets" "${page[@]}"
