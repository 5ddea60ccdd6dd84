#!/usr/bin/env bash
# What a lock costs that workers share, over the share of packets that write: a curve from 0.001 % to 10 %.
#
# Usage: lock.sh [--json] [TURNS] [SECONDS]    (5 turns of 1 s each)
#
# bench/lock/shares.c on the software NIC, on one worker without a lock and on doublings of it with one (`--strategy lock`),
# each a run of `millrace run`, taken in turns so that what else the machine does meets all of them alike. The figure is packets
# a second, the median over turns, and its ratio to one worker's divided by the number of workers: 1 is linear. The NIC's
# thread has a processor of its own, so N workers need N + 1; where there are fewer, workers and NIC share processors: a
# worker that does not run may hold its line, and a writer waits for it. Such figures are marked `shared` and say what
# becomes of the work under the system's scheduler, and little of the lock.
set -euo pipefail

json=0
[ "${1:-}" = --json ] && { json=1; shift; }
turns=${1:-5}
seconds=${2:-1}
cd "$(dirname "$0")/.."
millrace=${MILLRACE:-target/release/millrace}
[ -x "$millrace" ] || cargo build --release --quiet -p millrace-cli --bin millrace

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$millrace" trace gen --flows 20000 --packets 65536 --size 64 --zipf 0 -o "$work/trace.pcap" >/dev/null

processors=$(nproc)
workers=(1)
for ((n = 2; n == 2 || n < processors; n *= 2)); do workers+=("$n"); done
# Packets a write: none, 0.001 %, 0.01 %, 0.1 %, 1 %, 10 %.
shares=(0 100000 10000 1000 100 10)

one() { # ONE_IN WORKERS
    local lock=()
    [ "$2" -gt 1 ] && lock=(--strategy lock)
    "$millrace" run bench/lock/shares.c --set "one_in=$1" --cores "$2" "${lock[@]}" \
        --ports "vnic:$work/trace.pcap?measure=off&split=0=10.0.0.0/16" \
        --seconds "$seconds" --control none --json 2>/dev/null |
        python3 -c 'import json, sys
print(json.load(sys.stdin)["mpps"])'
}

for ((turn = 0; turn < turns; turn++)); do
    for share in "${shares[@]}"; do
        for n in "${workers[@]}"; do
            echo "$share $n $(one "$share" "$n")" >>"$work/figures"
        done
    done
done

python3 - "$work/figures" "$processors" "$json" "$(uname -sr)" "$turns" "$seconds" <<'PY'
import collections, json, os, statistics, sys

path, processors, as_json, system, turns, seconds = sys.argv[1:]
rates = collections.defaultdict(list)
for line in open(path):
    share, workers, mpps = line.split()
    rates[int(share), int(workers)].append(float(mpps))
runs = []
for (share, workers), all in rates.items():
    mpps = statistics.median(all)
    alone = statistics.median(rates[share, 1])
    runs.append({
        "writes_percent": 100 / share if share else 0, "strategy": "lock" if workers > 1 else "alone",
        "cores": workers, "mpps": round(mpps, 3), "lowest": round(min(all), 3), "highest": round(max(all), 3),
        "linear": round(mpps / (alone * workers), 3) if alone else None,
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
        print(f"{r['writes_percent']:>8.3f} % write{r['cores']:>3} workers {r['mpps']:>9.3f} Mpps "
              f"({r['lowest']} to {r['highest']})  linear {r['linear']}{note}")
PY
