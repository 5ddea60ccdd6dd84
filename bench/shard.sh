#!/usr/bin/env bash
# How functions whose state is divided scale over workers, on the software NIC with uniform traffic.
#
# Usage: shard.sh [--json] [TURNS] [SECONDS]    (5 turns of 1 s each)
#
# nop, the policer and the firewall at one worker and at doublings of it, each a run of `millrace run`, taken in
# turns so that what else the machine does meets all of them alike. The figure is packets a second, the median
# over turns, and its ratio to one worker's divided by the number of workers: 1 is linear. The NIC's thread has
# a processor of its own, so N workers need N + 1; where there are fewer, workers and NIC share processors, and
# the figure says what becomes of the work and nothing about scaling: it is marked `shared`. Keys are by hand
# (docs/parallel.md): symmetric, and for the policer over the destination's address alone. Traffic is a capture looped by the device: 20,000 flows, both directions.
set -euo pipefail

json=0
[ "${1:-}" = --json ] && { json=1; shift; }
turns=${1:-5}
seconds=${2:-1}
functions=${MILLRACE_BENCH_NFS:-nop policer firewall}
cd "$(dirname "$0")/.."
millrace=${MILLRACE:-target/release/millrace}
[ -x "$millrace" ] || cargo build --release --quiet -p millrace-cli --bin millrace

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$millrace" trace gen --flows 20000 --packets 65536 --size 64 --zipf 0 -o "$work/trace.pcap" >/dev/null

processors=$(nproc)
workers=(1)
for ((n = 2; n == 2 || n < processors; n *= 2)); do workers+=("$n"); done

# 52 bytes of a key under which both directions of a flow have one hash.
key=$(printf '6d5a%.0s' {1..26})

one() { # NF WORKERS
    local steer=()
    if [ "$2" -gt 1 ]; then
        case $1 in
        nop) ;; # writes no state: any packet anywhere
        policer) steer=(--steer "nic=software&key=$key&fields=destination-address") ;;
        *) steer=(--steer "nic=software&key=$key") ;;
        esac
    fi
    "$millrace" run "$1" --ports "vnic:$work/trace.pcap?measure=off&split=lan=10.0.0.0/16" --cores "$2" "${steer[@]}" \
        --seconds "$seconds" --control none --json 2>/dev/null |
        python3 -c 'import json, sys
account = json.load(sys.stdin)
shares = [w["packets"] for w in account["workers"]]
print(account["mpps"], max(shares) * len(shares) / max(1, sum(shares)))'
}

for ((turn = 0; turn < turns; turn++)); do
    for nf in $functions; do
        for n in "${workers[@]}"; do
            echo "$nf $n $(one "$nf" "$n")" >>"$work/figures"
        done
    done
done

python3 - "$work/figures" "$processors" "$json" "$(uname -sr)" "$turns" "$seconds" <<'PY'
import collections, json, os, statistics, sys

path, processors, as_json, system, turns, seconds = sys.argv[1:]
rates, imbalance = collections.defaultdict(list), {}
for line in open(path):
    nf, workers, mpps, worst = line.split()
    rates[nf, int(workers)].append(float(mpps))
    imbalance[nf, int(workers)] = float(worst)
runs = []
for (nf, workers), all in rates.items():
    mpps = statistics.median(all)
    alone = statistics.median(rates[nf, 1])
    runs.append({
        "nf": nf, "strategy": "spread" if nf == "nop" else "shard", "cores": workers,
        "mpps": round(mpps, 3), "lowest": round(min(all), 3), "highest": round(max(all), 3),
        "linear": round(mpps / (alone * workers), 3) if alone else None,
        "imbalance": round(imbalance[nf, workers], 3),
        "shared": int(processors) < workers + 1,
    })
conditions = {"system": system, "processors": int(processors), "load": os.getloadavg()[0],
              "turns": int(turns), "seconds": float(seconds), "flows": 20000, "frame": 64}
if as_json == "1":
    print(json.dumps({"runs": runs, "conditions": conditions}, indent=2))
else:
    print(", ".join(f"{name} {value}" for name, value in conditions.items()))
    for r in runs:
        note = "  shared: workers and NIC share processors" if r["shared"] else ""
        print(f"{r['nf']:<10}{r['cores']:>3} workers {r['mpps']:>9.3f} Mpps "
              f"({r['lowest']} to {r['highest']})  linear {r['linear']}  imbalance {r['imbalance']}{note}")
PY
