#!/usr/bin/env bash
# AF_XDP on veth: packets/s of `millrace run nop` against DPDK's testpmd on net_af_xdp, on the same pairs
# of interfaces, with the same sender, in turns.
#
# Usage: afxdp.sh [TURNS] [SECONDS]    (5 turns of 4 s each way); needs root; DPDK: apt-get install dpdk-dev
#
# Three network namespaces, which it makes and removes: a sender, the forwarder with an interface to each
# side, and a receiver, whose interface counts what arrives. Sender and forwarder have a processor each.
# Exit status 0 also when it is skipped, with the reason.
set -euo pipefail

turns=${1:-5}
seconds=${2:-4}
here=$(cd "$(dirname "$0")" && pwd)
millrace=${MILLRACE:-$here/../target/release/millrace}
skipped() { echo "skipped: $1"; exit 0; }
command -v dpdk-testpmd >/dev/null || skipped "there is no dpdk-testpmd; apt-get install dpdk-dev"
[ "$(id -u)" = 0 ] || skipped "needs root, for network namespaces and AF_XDP"
[ "$(nproc)" -ge 2 ] || skipped "needs two processors: one for the sender, one for the forwarder"

id=mrx$$
work=$(mktemp -d)
cleanup() {
    kill $(jobs -p) 2>/dev/null || true
    wait 2>/dev/null || true
    # The interfaces go with their namespaces.
    for side in s f r; do ip netns del "$id$side" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
for side in s f r; do
    ip netns add "$id$side" 2>"$work/why" || skipped "no network namespace: $(cat "$work/why")"
done
ip -n "${id}f" link add name f0 type veth peer name s0 netns "${id}s"
ip -n "${id}f" link add name f1 type veth peer name r0 netns "${id}r"
for link in "f f0" "f f1" "s s0" "r r0"; do
    read -r end name <<<"$link"
    ip netns exec "$id$end" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 || true
    ip -n "$id$end" link set "$name" up
done
"$millrace" trace gen -o "$work/t.pcap" --packets 4096 --size 64 --one-way >/dev/null
cd "$here/.."

# Testpmd ends with its standard input, and /dev/null has an end.
mkfifo "$work/silent"
exec 9<>"$work/silent"

arrived() { ip netns exec "${id}r" cat /sys/class/net/r0/statistics/rx_packets; }

# Packets a second that the receiver's interface counts behind a forwarder, given as a command.
rate() {
    ip netns exec "${id}f" "$@" >"$work/forwarder" 2>&1 <&9 &
    local forwarder=$! sender before after begin end
    for _ in $(seq 100); do
        grep -qE 'serving|Press enter to exit|packet forwarding - ports' "$work/forwarder" && break
        sleep 0.1
    done
    sleep 1
    kill -0 "$forwarder" 2>/dev/null || { cat "$work/forwarder" >&2; exit 1; }
    ip netns exec "${id}s" "$millrace" run nop --in "mem:$work/t.pcap" --out "afpacket:s0?bypass" \
        --cpus 0 --seconds $((seconds + 2)) --control none --json >"$work/sent" 2>/dev/null &
    sender=$!
    sleep 1
    before=$(arrived); begin=$(date +%s%N)
    sleep "$seconds"
    after=$(arrived); end=$(date +%s%N)
    wait "$sender"
    kill -INT "$forwarder" 2>/dev/null || true
    wait "$forwarder" || true
    python3 -c "print(round(($after - $before) / ($end - $begin) * 1e3, 4))"
}

with_millrace() {
    rate "$millrace" run nop --ports "afxdp:f0${MILLRACE_AFXDP:-},afxdp:f1${MILLRACE_AFXDP:-}" --cpus 1 --busy --control none
}
# One forwarding core, on processor 1; the other only waits. No huge pages, as Millrace needs none.
with_testpmd() {
    rate dpdk-testpmd -l 0,1 --no-huge --no-shconf --file-prefix="$id" -m 512 --no-pci --no-telemetry \
        --vdev "net_af_xdp0,iface=f0${TESTPMD_AFXDP:-}" --vdev "net_af_xdp1,iface=f1${TESTPMD_AFXDP:-}" \
        -- --forward-mode=io --nb-cores=1 --burst=32 --total-num-mbufs=16384 --auto-start --no-mlockall
}

for turn in $(seq "$turns"); do
    if [ $((turn % 2)) = 0 ]; then
        theirs=$(with_testpmd); ours=$(with_millrace)
    else
        ours=$(with_millrace); theirs=$(with_testpmd)
    fi
    echo "turn $turn: millrace $ours Mpps, testpmd $theirs Mpps" >&2
    echo "$ours $theirs"
done >"$work/figures"
python3 - "$work/figures" <<'PY'
import statistics, sys
turns = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
ratios = sorted(ours / theirs for ours, theirs in turns if theirs)
if not ratios:
    sys.exit("testpmd forwarded nothing")
ours, theirs = (statistics.median(column) for column in zip(*turns))
print(f"millrace over testpmd: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); "
      f"medians {ours:.3f} and {theirs:.3f} Mpps, {len(turns)} turns")
PY
