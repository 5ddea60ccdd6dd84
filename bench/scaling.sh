#!/usr/bin/env bash
# How functions scale over the cores of this machine: one run, one folder of results.
#
# Usage: scaling.sh [FOLDER]            measures here; results in FOLDER (out/scaling)
#        scaling.sh --pack FILE.run     makes one file of this script, the command and the functions,
#                                       for a machine without compilers or network: sh FILE.run [FOLDER]
#
# It needs no network, no DPDK, no huge pages and no root, and ends within ten minutes: what does not
# fit into the time is left out and named. Functions that write state run on one core.
set -euo pipefail

# Seconds for everything; a trial of 0.1 s, some 12 of them a configuration, three repetitions.
limit=${MILLRACE_BENCH_SECONDS:-540}
functions=${MILLRACE_BENCH_NFS:-nop ddos sbridge firewall policer}
here=$(cd "$(dirname "$0")" && pwd)

pack() {
    local file=$1
    # Not local: the trap reads it after the function has returned.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/bundle"
    cp "$here/../target/release/millrace" "$0" "$work/bundle/"
    for nf in $functions; do
        (cd "$here/.." && target/release/millrace build "$nf" -o "$work/bundle/$nf" >/dev/null)
    done
    {
        cat <<'HEAD'
#!/bin/sh
# Millrace's scaling run, packed: sh THIS [FOLDER]
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed '1,/^ARCHIVE$/d' "$0" | tar -xz -C "$work"
target=${1:-scaling}
mkdir -p "$target"
MILLRACE=$work/bundle/millrace bash "$work/bundle/scaling.sh" "$(cd "$target" && pwd)"
exit 0
ARCHIVE
HEAD
        tar -cz -C "$work" bundle
    } >"$file"
    chmod +x "$file"
    echo "packed $file: $(du -h "$file" | cut -f1)"
}

if [ "${1:-}" = --pack ]; then
    [ $# = 2 ] || { echo "usage: scaling.sh --pack FILE.run" >&2; exit 2; }
    pack "$2"
    exit 0
fi

out=${1:-out/scaling}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -n "${MILLRACE:-}" ]; then
    # Packed: the functions are bundles beside the command.
    millrace=$MILLRACE
    cd "$(dirname "$MILLRACE")"
    words=()
    for nf in $functions; do [ -d "$nf" ] && words+=("./$nf"); done
    limit_flag=(--no-limit)
else
    cd "$here/.."
    millrace=$PWD/target/release/millrace
    [ -x "$millrace" ] || cargo build --release -p millrace-cli
    read -ra words <<<"$functions"
    limit_flag=()
fi

begin=$SECONDS
cpus=$(nproc)
"$millrace" doctor >"$out/doctor.txt" || true
# Every flow alike, and many: RSS can spread them evenly.
"$millrace" trace gen --flows 20000 --packets 65536 --size 64 --zipf 0 -o "$out/trace.pcap" >/dev/null

# Doublings up to half of the processors, which leaves each worker a thread of the NIC; then what is left.
cores=1
for ((n = 2; n < cpus; n *= 2)); do cores+=",$n"; done
top=$((cpus * 3 / 4))
[ "$top" -gt 2 ] && [[ ",$cores," != *",$top,"* ]] && cores+=",$top"
echo "processors: $cpus; workers: $cores; functions: ${words[*]}"

# What one configuration takes, in seconds, from above: searching, latency, starting.
counts=$(tr ',' '\n' <<<"$cores" | wc -l)
each=4
repeat=$(((limit - (SECONDS - begin)) / (each * counts * (${#words[@]} + 1))))
repeat=$((repeat > 5 ? 5 : repeat < 1 ? 1 : repeat))

# A command that hangs is ended; the time is its bound too.
timeout "$((limit - (SECONDS - begin)))" "$millrace" bench "${words[@]}" "${limit_flag[@]}" \
    --in "$out/trace.pcap" --cores "$cores" --repeat "$repeat" --trial 0.1 \
    --html "$out/scaling.html" --csv "$out/scaling.csv" --json >"$out/scaling.json" 2>"$out/scaling.txt" ||
    { tail -5 "$out/scaling.txt" >&2; exit 1; }
grep -v '^turn' "$out/scaling.txt" || true
echo "in $((SECONDS - begin)) s: $out/scaling.html, .csv, .json, .txt"
