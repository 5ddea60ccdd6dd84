#!/bin/sh
# Makes the lists of rules here: as `millrace trace acl` draws them after ClassBench's seeds, in the words of IPFilter.
#
# usage: chains/acl/make.sh [MILLRACE]
set -eu

millrace=${1:-millrace}
here=$(dirname "$0")

for rules in 251 713 8550; do
	"$millrace" trace acl --rules "$rules" --like acl --output - | awk '
		# SRC/LEN, DST/LEN, LO : HI, LO : HI, PROTOCOL/MASK, class N
		function port(side, low, high) {
			if (low == 0 && high == 65535) return
			if (low == high) test(side " port " low)
			else { test(side " port >= " low); test(side " port <= " high) }
		}
		function test(text) { out = out (out == "" ? "" : " && ") text }
		{
			sub(/^@/, "", $1); out = ""
			if ($1 !~ /\/0$/) test("src net " $1)
			if ($2 !~ /\/0$/) test("dst net " $2)
			split($9, protocol, "/")
			if (protocol[2] == "0xFF") {
				if (protocol[1] == "0x06") test("tcp")
				else if (protocol[1] == "0x11") test("udp")
				else if (protocol[1] == "0x01") test("icmp")
				else test("ip proto " substr(protocol[1], 3) + 0)
			}
			port("src", $3, $5); port("dst", $6, $8)
			print ($NF == 1 ? "allow " : "deny ") (out == "" ? "all" : out)
		}' >"$here/acl-$rules.rules"
done
