#!/usr/bin/env bash
# Installs what building and testing Millrace needs and this machine lacks, saying what it does.
# Debian packages come by apt-get (with sudo only when not root); Rust by rustup only if there is none.
# Usage: scripts/setup.sh run|deb|test|dpdk
set -euo pipefail

goal=${1:-run}
minimum_rust=1.88

# package: a file or command that shows it is there
needed() {
    command -v clang-19 >/dev/null || echo clang-19
    command -v cc >/dev/null || echo gcc
    [ -e /usr/include/stdlib.h ] || echo libc6-dev
    [ -e /usr/include/linux/bpf.h ] || echo linux-libc-dev
    [ -e /usr/include/bpf/bpf_helpers.h ] || echo libbpf-dev
    # libelf, zlib and pkg-config for libbpf, the kernel's own loader
    [ -e /usr/include/libelf.h ] || echo libelf-dev
    [ -e /usr/include/zlib.h ] || echo zlib1g-dev
    command -v pkg-config >/dev/null || echo pkg-config
    # authenticated encryption in functions that ask for it
    ls /usr/lib/*/libsodium.so.23 >/dev/null 2>&1 || echo libsodium23
    # the libraries that a package depends on
    if [ "$goal" = deb ] || [ "$goal" = test ]; then
        command -v dpkg-shlibdeps >/dev/null || echo dpkg-dev
    fi
    if [ "$goal" = test ]; then
        # AddressSanitizer for the emitted code
        ls /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.asan-*.a >/dev/null 2>&1 || echo libclang-rt-19-dev
        # its reports with file and line
        command -v llvm-symbolizer-19 >/dev/null || echo llvm-19
        # networks of the tests' own, what is sent through them, and signals
        command -v ip >/dev/null || echo iproute2
        command -v ping >/dev/null || echo iputils-ping
        command -v traceroute >/dev/null || echo traceroute
        command -v iperf3 >/dev/null || echo iperf3
        command -v curl >/dev/null || echo curl ca-certificates
        [ -x /usr/bin/kill ] || [ -x /bin/kill ] || echo procps
        # XDP objects as older compilers write them
        command -v clang-14 >/dev/null || echo clang-14
        command -v clang-16 >/dev/null || echo clang-16
        # a second reader of what is written as captures
        command -v capinfos >/dev/null || echo wireshark-common
        # programs that the tests host in a chain
        command -v tcpdump >/dev/null || [ -x /usr/sbin/tcpdump ] || echo tcpdump
        command -v prads >/dev/null || echo prads
        command -v ndpiReader >/dev/null || echo libndpi-bin
        command -v ngrep >/dev/null || echo ngrep
        command -v tcpflow >/dev/null || echo tcpflow
        command -v p0f >/dev/null || [ -x /usr/sbin/p0f ] || echo p0f
        command -v urlsnarf >/dev/null || [ -x /usr/sbin/urlsnarf ] || echo dsniff
        command -v softflowd >/dev/null || [ -x /usr/sbin/softflowd ] || echo softflowd
        command -v netsniff-ng >/dev/null || [ -x /usr/sbin/netsniff-ng ] || echo netsniff-ng
        command -v nfpcapd >/dev/null || echo nfdump
        [ -d /usr/lib/python3/dist-packages/scapy ] || echo python3-scapy
        perl -MNet::Pcap -e 1 2>/dev/null || echo libnet-pcap-perl
        # a processor with protection keys, and a kernel for it
        command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
        ls /boot/vmlinuz-* >/dev/null 2>&1 || echo linux-image-cloud-amd64
        # DPDK's own program for tests, and the sources of its examples
        command -v dpdk-testpmd >/dev/null || echo dpdk-dev
        [ -d /usr/share/dpdk/examples/l3fwd ] || echo dpdk-doc
        # a switch for rules of chains
        command -v ovs-vswitchd >/dev/null || [ -x /usr/sbin/ovs-vswitchd ] || echo openvswitch-switch
        # simulates the sequencer in Verilog
        command -v iverilog >/dev/null || echo iverilog
        # all interleavings of the protocol of transactions
        command -v spin >/dev/null || echo spin
        # what nodes of a cluster agree in, and certificates for it
        command -v etcd >/dev/null || echo etcd-server
        command -v openssl >/dev/null || echo openssl
        # how routers learn which of them are there
        command -v bird >/dev/null || [ -x /usr/sbin/bird ] || echo bird2
        # the solver of `millrace model`
        command -v z3 >/dev/null || echo z3
    fi
    if [ "$goal" = dpdk ] || [ "$goal" = test ]; then
        # the build's optional feature `dpdk`: 54 MB, and as much again of drivers and what they need
        pkg-config --exists libdpdk 2>/dev/null || echo libdpdk-dev
    fi
    if ! command -v cargo >/dev/null && [ ! -x "$HOME/.cargo/bin/cargo" ]; then
        command -v curl >/dev/null || echo curl ca-certificates
    fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

packages=$(needed | tr '\n' ' ')
if [ -n "$packages" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: this machine lacks: $packages" >&2
        echo "setup: there is no apt-get here; install them by hand and run make again" >&2
        exit 1
    fi
    echo "setup: installing $packages"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # What tests do without, counting what they skip, where the distribution does not have it or it cannot be
    # installed: DPDK, and the machine that has protection keys.
    optional=""
    for package in libdpdk-dev dpdk-doc dpdk-dev wireshark-common qemu-system-x86 linux-image-cloud-amd64; do
        if [ "$goal" = test ] && [[ " $packages " == *" $package "* ]]; then
            packages=" $packages "
            packages=${packages/ $package / }
            optional="$optional $package"
        fi
    done
    install() {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    }
    if [ -n "${packages// /}" ]; then
        # shellcheck disable=SC2086  # one word a package is meant
        install $packages
    fi
    for package in $optional; do
        install "$package" || echo "setup: $package cannot be installed; tests that need it are skipped" >&2
    done
fi

PATH="$HOME/.cargo/bin:$PATH"
if ! command -v cargo >/dev/null; then
    echo "setup: installing Rust by rustup"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy -c rustfmt || {
        echo "setup: rustup cannot be fetched: install Rust $minimum_rust or later by hand and run make again" >&2
        exit 1
    }
fi

have=$(rustc --version | awk '{print $2}')
if [ "$(printf '%s\n%s\n' "$minimum_rust" "$have" | sort -V | head -n 1)" != "$minimum_rust" ]; then
    echo "setup: Rust $have is here, Millrace needs $minimum_rust or later: run 'rustup update stable'" >&2
    exit 1
fi
