#!/usr/bin/env bash
# The first thing a newcomer sees: a stateful firewall over a capture of real programs talking.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "demo: building the millrace command, which takes two processors about four minutes the first time"
cargo build --release -p millrace-cli
mkdir -p out

echo "demo: nfs/firewall over captures/talk.pcap; packets from 10.0.0.0/24 enter at the LAN"
echo
target/release/millrace run firewall \
    --in captures/talk.pcap --split lan=10.0.0.0/24 --out out/firewall.pcapng
echo
echo "demo: how it may use many cores, and whether it does there what it does on one"
echo
target/release/millrace plan firewall --cores 4 | sed -n '1,/^port/p' | sed '$d'
target/release/millrace verify firewall \
    --in captures/talk.pcap --split lan=10.0.0.0/24 --cores 1,2,4
echo
echo "demo: the command is $PWD/target/release/millrace; make install or make deb puts it on the path, with the functions"
echo "demo: what passed is in out/firewall.pcapng, one interface a port: open it in Wireshark"
echo "demo: the function is nfs/firewall/firewall.c; its packet tests run with: target/release/millrace test firewall"
