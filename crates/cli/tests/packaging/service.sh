#!/usr/bin/env bash
# What an operator does with the service, in the system that boot.sh boots.
set -uo pipefail
wrong() {
    echo "WRONG: $*"
    systemctl status --no-pager -l millrace@edge | tail -n 30
    journalctl --no-pager -u millrace@edge | tail -n 40
    exit 1
}
# LAN a0 = a1 — the function — b1 = b0 WAN
for end in a b; do
    ip link add "${end}0" type veth peer name "${end}1"
    ip link set "${end}0" up
    ip link set "${end}1" up
done
echo "user: $(getent passwd millrace | cut -d: -f1,6)"
systemctl start millrace@edge 2>/dev/null && wrong "it starts without a chain file"
sed -e 's/"eth0", "eth1"/"a1", "b1"/; s/^state-every = .*/state-every = 0.1/' /etc/millrace/edge.toml.example \
    >/etc/millrace/edge.toml
mkdir -p /run/systemd/system/millrace@edge.service.d
printf '[Service]\nWatchdogSec=2\n' >/run/systemd/system/millrace@edge.service.d/watchdog.conf
systemctl daemon-reload
systemctl start millrace@edge || wrong "it does not start"
systemctl is-active --quiet millrace@edge || wrong "it is not active"
pid=$(systemctl show -P MainPID millrace@edge)
echo "runs as $(stat -c %U "/proc/$pid")"
# Every thread: no capability is permitted, none is in effect.
grep -h -E '^Cap(Prm|Eff|Amb)' /proc/"$pid"/task/*/status | sort -u
echo "status: $(systemctl show -P StatusText millrace@edge)"
# A packet from the LAN opens a flow.
ip link set a0 address 02:00:00:00:00:01
ip addr add 10.0.0.1/24 dev a0
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev a0
ping -c 2 -i 0.2 -W 1 10.0.0.2 >/dev/null
read=$(millrace ctl stats --run edge --json | tr ',{' '\n\n' | sed -n 's/^ *"read": *//p' | head -n 1)
[ "${read:-0}" -ge 2 ] || wrong "ctl stats: read ${read:-nothing}"
echo "read: at least 2"
# A restart keeps the flow that the LAN has opened.
flows() {
    # With several functions an object is named behind its element.
    { millrace map export flows --run edge 2>/dev/null || millrace map export fw:flows --run edge; } | grep -c 10.0.0.2
}
[ "$(flows)" -ge 1 ] || wrong "no flow: $(millrace map export flows --run edge 2>&1)"
systemctl restart millrace@edge || wrong "it does not restart"
[ "$(flows)" -ge 1 ] || wrong "the flow is gone: $(millrace map export flows --run edge 2>&1)"
echo "kept: the flow"
# The file gets one more function: what is there stays as it is.
printf '\n[[element]]\nname = "more"\nnf = "nop"\n' >>/etc/millrace/edge.toml
systemctl reload millrace@edge || wrong "it does not reload"
millrace ctl chain show --run edge | grep -q more || wrong "the chain is not what the file says"
[ "$(flows)" -ge 1 ] || wrong "the flow is gone after a reload"
echo "reloaded: fw, more, and the flow is there"
# A new package has the service started again.
dpkg --force-depends -i /mnt/package.deb >/dev/null 2>&1 || wrong "the package cannot be upgraded"
for _ in $(seq 50); do
    systemctl is-active --quiet millrace@edge && [ "$(flows 2>/dev/null)" -ge 1 ] && break
    sleep 0.2
done
[ "$(flows)" -ge 1 ] || wrong "the flow is gone after an upgrade: $(millrace map export flows --run edge 2>&1)"
echo "upgraded: the flow is there"
# The state is saved ten times a second; a kill ends the process without another word.
sleep 0.5
pid=$(systemctl show -P MainPID millrace@edge)
kill -KILL "$pid"
for _ in $(seq 100); do
    again=$(systemctl show -P MainPID millrace@edge)
    [ "$again" != 0 ] && [ "$again" != "$pid" ] && systemctl is-active --quiet millrace@edge && break
    sleep 0.2
done
[ "$(flows)" -ge 1 ] || wrong "the flow is gone after a kill: $(millrace map export flows --run edge 2>&1)"
echo "killed: the flow is there"
pid=$(systemctl show -P MainPID millrace@edge)
# A process that hangs is noticed and started again.
kill -STOP "$pid"
for _ in $(seq 150); do
    again=$(systemctl show -P MainPID millrace@edge)
    [ "$again" != 0 ] && [ "$again" != "$pid" ] && systemctl is-active --quiet millrace@edge && break
    sleep 0.2
done
[ "$again" != "$pid" ] || wrong "the watchdog does not act"
echo "restarts: $(systemctl show -P NRestarts millrace@edge)"
systemctl stop millrace@edge || wrong "it does not stop"
echo "result: $(systemctl show -P Result millrace@edge)"
journalctl --no-pager -u millrace@edge -o cat | grep -m1 'each with one fate' || wrong "no account in the journal"
journalctl --no-pager -u millrace@edge -o cat | grep -m1 'is served as'
dpkg --purge millrace >/dev/null 2>&1 || wrong "it cannot be removed"
ls -d /var/lib/millrace /var/cache/millrace /usr/bin/millrace 2>/dev/null && wrong "files stay"
echo done
