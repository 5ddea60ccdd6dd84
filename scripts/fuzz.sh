#!/usr/bin/env bash
# Runs every fuzz target for a bounded time, from seeds that the repository's own files make.
# Usage: scripts/fuzz.sh SECONDS [--short]
# A short run (as in make test) does not install anything; it says what it skipped and why.
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
short=${2:-}

missing() {
    if [ "$short" = --short ]; then
        echo "skipped: fuzzing, $1"
        exit 0
    fi
    echo "fuzz: $1" >&2
    exit 1
}

if ! cargo +nightly --version >/dev/null 2>&1; then
    missing "no nightly Rust, which cargo-fuzz needs: rustup toolchain install nightly"
fi
if ! command -v c++ >/dev/null; then
    missing "no C++ compiler, which libFuzzer is built with: apt-get install g++"
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: installing cargo-fuzz"
    cargo install --quiet --locked cargo-fuzz || missing "cargo-fuzz does not install"
fi

# Seeds: real objects, captures and packet tests; a fuzzer that starts from nothing spends its time on magic numbers.
seed() {
    local target=$1
    mkdir -p "fuzz/corpus/$target"
    case $target in
    elf | check)
        for source in nfs/*/*.c; do
            clang-19 -target bpf -mcpu=v4 -O2 -g -I include -I "/usr/include/$(uname -m)-linux-gnu" \
                -c "$source" -o "fuzz/corpus/$target/$(basename "$source" .c).o" 2>/dev/null
        done
        ;;
    # A program that is not large, as this machine has it.
    guest) head -c 16384 /bin/true >"fuzz/corpus/$target/true" ;;
    pcap) head -c 20000 captures/talk.pcap >"fuzz/corpus/$target/talk.pcap" ;;
    map_file)
        printf '[{"key": {"source": "10.0.0.1", "port": 80}, "value": -1}, {"key": [1, "0x02"], "value": "be16:80 zeros:6"}]' \
            >"fuzz/corpus/$target/entries.json"
        printf '[{"key": 1, "value": [{"key": 2, "value": 7}]}, {"key": 3, "value": "inner"}]' \
            >"fuzz/corpus/$target/nested.json"
        printf 'key,value\n192.0.2.0/24,10.0.0.1 be16:80 02:00:00:00:00:0a u32:1 zeros:8\n1,second\n' \
            >"fuzz/corpus/$target/entries.csv"
        ;;
    control)
        printf '%s\n' '{"v":1,"id":7,"do":"hello"}' '{"v":1,"do":"get","object":"routes","key":"192.0.2.0/24"}' \
            '{"v":1,"do":"edit","more":true,"edits":[{"object":"next","op":"set","key":1,"value":"second"}]}' \
            '{"v":1,"do":"edit","edits":[{"object":"flows","op":"clear"},{"object":"next","op":"delete","key":0}]}' \
            '{"v":1,"do":"entries","object":"flows","cursor":3,"limit":9}' '{"v":1,"do":"set","setting":"a=1"}' \
            '{"v":1,"do":"stop"}' >"fuzz/corpus/$target/requests"
        ;;
    chain)
        printf '%s\n' 'name = "edge"' 'connect = [["fw.1", "tap.0"], ["tap.1", "nat.0"]]' 'entry = ["fw.0", "nat.1"]' \
            '[[element]]' 'nf = "fw"' 'capacity = { flows = 100_000 }' 'set = { timeout = 60 }' \
            '[[element]]' 'nf = "nat"' 'map = { pool = "pool.csv" }' \
            '[[element]]' 'name = "tap"' 'guest = ["tcpdump", "-i", "@"]' 'memory = 64' 'jit = true' \
            'environment = { TZ = "UTC0" }' >"fuzz/corpus/$target/edge.toml"
        ;;
    sequenced) cp tests/sequencer/*.pcap "fuzz/corpus/$target/" ;;
    routes) cp crates/routes/tests/seeds/*.json "fuzz/corpus/$target/" ;;
    packet_language)
        # Functions name their cases alike, and cp refuses to put two files in one place.
        for case in nfs/*/tests/*.pkt; do
            cp "$case" "fuzz/corpus/$target/${case//\//-}"
        done
        ;;
    esac
}

if ! out=$(cargo +nightly fuzz build 2>&1); then
    tail -n 60 <<<"$out"
    echo "0 passed, 1 failed"
    exit 1
fi

# One target on each processor; what each says is kept, and told in order.
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
one() {
    local target=$1 out
    seed "$target"
    if out=$(cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 2>&1); then
        grep -E '^Done|stat::number_of_executed_units' <<<"$out" | tail -n 1
        return 0
    fi
    tail -n 60 <<<"$out"
    return 1
}
targets=()
for file in fuzz/fuzz_targets/*.rs; do
    targets+=("$(basename "$file" .rs)")
done
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    { one "$target" >"$said/$target" 2>&1 && touch "$said/$target.passed"; } &
done
wait

passed=0
failed=0
for target in "${targets[@]}"; do
    echo "fuzz: $target for $seconds s"
    cat "$said/$target"
    if [ -e "$said/$target.passed" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
