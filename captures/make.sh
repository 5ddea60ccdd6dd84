#!/bin/sh
# Makes captures/talk.pcap: real programs that talk between network namespaces, captured on the uplink
# of a gateway. Nothing leaves the machine. README.md describes the network.
#
# usage: sudo captures/make.sh [OUTPUT]
set -eu

out=${1:-$(dirname "$0")/talk.pcap}
most_bytes=1048576

missing=
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need ip iproute2
need tcpdump tcpdump
need ethtool ethtool
need curl curl
need python3 python3
need iperf3 iperf3
need dnsmasq dnsmasq-base
need dig bind9-dnsutils
need ping iputils-ping
need traceroute traceroute
if [ -n "$missing" ]; then
	echo "make.sh: these are not installed; install them with: apt-get install$missing" >&2
	exit 2
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "make.sh: network namespaces need root; run it with sudo" >&2
	exit 2
fi

# Everything that this script starts runs in these namespaces, and only there.
id=talk$$
client=$id-client
gateway=$id-gateway
router=$id-router
server=$id-server
work=$(mktemp -d)

clean() {
	for ns in "$client" "$gateway" "$router" "$server"; do
		# shellcheck disable=SC2046 # process numbers, one a word
		kill $(ip netns pids "$ns" 2>/dev/null) 2>/dev/null || true
		ip netns del "$ns" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM

in_ns() { ns=$1; shift; ip netns exec "$ns" "$@"; }

# link NS1 DEV1 MAC1 NS2 DEV2 MAC2: a cable. Offloads are off, so that the capture holds the packets and
# checksums that a wire would.
link() {
	ip link add "$2" netns "$1" address "$3" type veth peer name "$5" netns "$4" address "$6"
	for end in "$1 $2" "$4 $5"; do
		in_ns "${end% *}" ethtool -K "${end#* }" tx off rx off tso off gso off gro off >/dev/null
		in_ns "${end% *}" ip link set "${end#* }" up
	done
}

address() { # NS DEV ADDRESS...
	ns=$1 dev=$2
	shift 2
	for a in "$@"; do
		case $a in
		*:*) in_ns "$ns" ip address add "$a" dev "$dev" nodad ;;
		*) in_ns "$ns" ip address add "$a" dev "$dev" ;;
		esac
	done
}

for ns in "$client" "$gateway" "$router" "$server"; do
	ip netns add "$ns"
	in_ns "$ns" ip link set lo up
done
link "$client" eth0 02:00:00:00:01:02 "$gateway" lan 02:00:00:00:01:01
link "$gateway" wan 02:00:00:00:02:01 "$router" inside 02:00:00:00:02:02
link "$router" outside 02:00:00:00:03:01 "$server" eth0 02:00:00:00:03:0a

address "$client" eth0 10.0.0.2/24 10.0.0.3/24 10.0.0.4/24 fd00:1::2/64
address "$gateway" lan 10.0.0.1/24 fd00:1::1/64
address "$gateway" wan 192.0.2.1/25 2001:db8:1::1/64
address "$router" inside 192.0.2.2/25 2001:db8:1::2/64
address "$router" outside 192.0.2.129/25 2001:db8:2::1/64
address "$server" eth0 192.0.2.130/25 192.0.2.153/25 2001:db8:2::130/64

for ns in "$gateway" "$router"; do
	in_ns "$ns" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
done
in_ns "$client" ip route add default via 10.0.0.1
in_ns "$client" ip -6 route add default via fd00:1::1
in_ns "$gateway" ip route add default via 192.0.2.2
in_ns "$gateway" ip -6 route add default via 2001:db8:1::2
in_ns "$router" ip route add 10.0.0.0/24 via 192.0.2.1
in_ns "$router" ip -6 route add fd00:1::/64 via 2001:db8:1::1
in_ns "$server" ip route add default via 192.0.2.129
in_ns "$server" ip -6 route add default via 2001:db8:2::1

# The services.
mkdir "$work/www"
printf '<h1>Hello</h1>\n' >"$work/www/index.html"
for kib in 1 8 64; do
	head -c $((kib * 1024)) /dev/zero | tr '\0' 'x' >"$work/www/$kib.txt"
done
(cd "$work/www" && exec ip netns exec "$server" timeout 60 python3 -m http.server --bind :: 80) >/dev/null 2>&1 &
in_ns "$server" timeout 60 iperf3 -s >/dev/null 2>&1 &
in_ns "$server" timeout 60 dnsmasq --no-daemon --no-resolv --no-hosts --conf-file=/dev/null \
	--user=root --listen-address=192.0.2.153,2001:db8:2::130 --bind-interfaces \
	--host-record=www.example.com,192.0.2.130,2001:db8:2::130 --host-record=mail.example.com,192.0.2.131 \
	--txt-record=example.com,"v=spf1 -all" --local=/example.com/ >/dev/null 2>&1 &

in_ns "$gateway" timeout 60 tcpdump -i wan -n -s 0 -c 4000 -U -Z root \
	--time-stamp-precision=nano -w "$work/talk.pcap" 2>"$work/tcpdump.log" &
tcpdump=$!

# Until all of them listen.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	sleep 0.5
	if grep -q listening "$work/tcpdump.log" && in_ns "$client" curl -sf -m 2 -o /dev/null http://192.0.2.130/ &&
		in_ns "$client" dig +tries=1 +time=1 @192.0.2.153 www.example.com >/dev/null; then
		ready=1
		break
	fi
done
if [ -z "${ready:-}" ]; then
	echo "make.sh: the services in the namespaces do not answer; tcpdump said:" >&2
	cat "$work/tcpdump.log" >&2
	exit 1
fi

quietly() { timeout 30 "$@" >/dev/null 2>&1 || true; }
c() { quietly ip netns exec "$client" "$@"; }
s() { quietly ip netns exec "$server" "$@"; }

browse() {
	for _ in 1 2 3; do
		for from in 10.0.0.2 10.0.0.3 10.0.0.4; do
			for page in "" 1.txt 8.txt absent; do
				c curl -s --interface "$from" "http://192.0.2.130/$page"
			done
		done
		sleep 1
	done
	c curl -s http://192.0.2.130/64.txt
	c curl -s "http://[2001:db8:2::130]/8.txt" "http://[2001:db8:2::130]/1.txt"
	# Nobody listens here, and there is no such host.
	c curl -s -m 2 http://192.0.2.130:8081/
	c curl -s -m 2 http://192.0.2.200/
}
resolve() {
	for from in 10.0.0.2 10.0.0.3 10.0.0.4; do
		for name in www.example.com mail.example.com absent.example.com; do
			c dig -b "$from" @192.0.2.153 "$name"
		done
		c dig -b "$from" @192.0.2.153 example.com TXT
		c dig -b "$from" @192.0.2.153 +tcp www.example.com
	done
	c dig @2001:db8:2::130 www.example.com AAAA
}
probe() {
	c ping -c 5 -i 0.2 192.0.2.130
	c ping -c 3 -i 0.2 2001:db8:2::130
	c ping -c 2 -i 0.2 -s 3000 192.0.2.130
	c traceroute -n -q 2 -w 1 -m 5 192.0.2.130
	c traceroute -n -q 1 -w 1 -m 5 -I 192.0.2.130
}
# What nobody in the LAN asked for: a firewall drops it.
strangers() {
	s ping -c 4 -i 0.3 10.0.0.3
	s ping -c 2 -i 0.3 fd00:1::2
	s python3 - <<'PYTHON'
import socket
for host in ("10.0.0.2", "10.0.0.4"):
    for port in (21, 22, 23, 25, 80, 110, 135, 139, 443, 445, 3306, 3389, 5900, 8080):
        with socket.socket() as s:
            s.settimeout(0.2)
            s.connect_ex((host, port))
    for port in (53, 123, 161, 1900, 5060):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"hello?", (host, port))
PYTHON
}

browse &
a=$!
resolve &
b=$!
probe &
d=$!
strangers &
e=$!
c iperf3 -c 192.0.2.130 -n 240K -l 8K
c iperf3 -c 192.0.2.130 -n 120K -l 8K -R
c iperf3 -c 192.0.2.130 -u -b 1M -l 400 -n 80K
wait "$a" "$b" "$d" "$e"
sleep 0.5

# tcpdump writes what it holds when it is interrupted.
# shellcheck disable=SC2046 # process numbers, one a word
kill -INT $(ip netns pids "$gateway") 2>/dev/null || true
wait "$tcpdump" || true
bytes=$(wc -c <"$work/talk.pcap")
if [ "$bytes" -gt "$most_bytes" ] || [ "$bytes" -lt 10000 ]; then
	echo "make.sh: $bytes bytes were captured, not 10000 to $most_bytes; $out is left as it was" >&2
	cat "$work/tcpdump.log" >&2
	exit 1
fi
cp "$work/talk.pcap" "$out"
echo "$out: $bytes bytes"
