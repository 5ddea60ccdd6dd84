#!/usr/bin/env bash
# What ports cost a worker, ns a packet: the software NIC against DPDK's net_ring and net_af_packet, and
# against Millrace's own ports of the same interfaces. Receiving and sending back, nothing in between.
#
# Usage: dispatch.sh [TURNS] [SECONDS]    (9 turns of 0.5 s each); needs root and libdpdk-dev
#
# Interfaces are veth pairs in a network namespace that it makes and removes; both ends are served by the
# processor that is measured (1), so a packet's way through the kernel is in its figure. The software NIC's
# thread has processor 0. Exit status 0 also when it is skipped, with the reason.
set -euo pipefail

turns=${1:-9}
seconds=${2:-0.5}
cd "$(dirname "$0")/.."
skipped() { echo "skipped: $1"; exit 0; }
pkg-config --exists 'libdpdk >= 22.11' || skipped "libdpdk-dev is not installed (scripts/setup.sh dpdk)"
[ "$(id -u)" = 0 ] || skipped "needs root, for network namespaces"
[ "$(nproc)" -ge 2 ] || skipped "needs two processors: one for the worker, one for the software NIC"
cargo build --release --quiet -p millrace-bench -p millrace-cli --features millrace-bench/dpdk,millrace-cli/dpdk \
    --bin millrace-bench --bin millrace

space=mrd$$
work=$(mktemp -d)
trap 'ip netns del "$space" 2>/dev/null || true; rm -rf "$work"' EXIT
ip netns add "$space" 2>"$work/why" || skipped "no network namespace: $(cat "$work/why")"
ip netns exec "$space" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 || true
for pair in a b c; do
    ip -n "$space" link add "${pair}0" type veth peer name "${pair}1"
    ip -n "$space" link set "${pair}0" up
    ip -n "$space" link set "${pair}1" up
done
target/release/millrace trace gen -o "$work/t.pcap" --packets 4096 --size 64 >/dev/null

echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d ' ' -f 1 /proc/loadavg)," \
    "DPDK $(pkg-config --modversion libdpdk), $turns turns of $seconds s"
ip netns exec "$space" target/release/millrace-bench dispatch --turns "$turns" --seconds "$seconds" --cpu 1 \
    "vnic=vnic:$work/t.pcap?measure=off&cores=0" \
    "dpdk net_ring=dpdk:net_ring0" \
    "dpdk net_ring, RSS in software for two workers*2=dpdk:net_ring0?steer=software" \
    "dpdk net_af_packet, veth=dpdk:net_af_packet0,iface=a0|dpdk:net_af_packet1,iface=a1" \
    "afpacket, veth=afpacket:b0|afpacket:b1" \
    "afxdp, veth=afxdp:c0|afxdp:c1"
