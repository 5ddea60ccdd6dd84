#!/usr/bin/env bash
# Runs every fuzz target for a bounded time, from seeds that the repository's own files make.
# Usage: scripts/fuzz.sh SECONDS
# What `make test` does instead, without a nightly compiler: tests/readers/tests/short.rs.
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}

missing() {
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

# Seeds: real input; a fuzzer that starts from nothing spends its time on magic numbers.
cargo run --quiet -p millrace-readers --example seeds -- fuzz/corpus || exit 1
for source in nfs/*/*.c; do
    for target in elf check; do
        clang-19 -target bpf -mcpu=v4 -O2 -g -I include -I "/usr/include/$(uname -m)-linux-gnu" \
            -c "$source" -o "fuzz/corpus/$target/$(basename "$source" .c).o" 2>/dev/null
    done
done

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
