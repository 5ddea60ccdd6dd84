#!/bin/sh
# A program on a live interface: live.sh SENDER CAPTURE SECONDS SENDER'S-PROCESSOR PROGRAM ARGUMENTS…, in a network
# namespace of its own (unshare --net), which takes all this makes with it. The program receives
# at mr1, and says on standard error how many packets it has captured. Prints what the sender prints.
set -eu
sender=$1 capture=$2 seconds=$3 processor=$4
shift 4
ip link add mr0 type veth peer name mr1
ip link set mr0 up
ip link set mr1 up
"$@" >/dev/null &
program=$!
trap 'kill -KILL $program 2>/dev/null || true' EXIT
tries=0
# It listens once there is a packet socket.
while [ "$(wc -l </proc/net/packet)" -lt 2 ]; do
    tries=$((tries + 1))
    if [ $tries -gt 100 ]; then
        echo "the program does not listen" >&2
        exit 1
    fi
    sleep 0.05
done
taskset -c "$processor" "$sender" mr0 "$capture" "$seconds"
# What is in its buffer counts too.
sleep 0.2
kill -INT $program
wait $program
