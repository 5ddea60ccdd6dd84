#!/usr/bin/env bash
# Every test there is. Prints each suite's result and, at the end, one count: passed, failed, and
# skipped with the reasons.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

suite() {
    local name=$1
    shift
    echo "test: $name"
    local start=$SECONDS out
    out=$(mktemp)
    if "$@" >"$out" 2>&1; then
        grep -E '^(test result:|[0-9]+ passed, [0-9]+ failed)' "$out" | grep -v ' 0 passed; 0 failed' | sed 's/^/  /'
    else
        status=1
        sed 's/^/  /' "$out"
        echo "  FAILED: $name"
    fi
    echo "  $((SECONDS - start)) s"
    cat "$out" >>"$log"
    rm -f "$out"
}

suite "fastpath: state objects in C, under AddressSanitizer and UndefinedBehaviorSanitizer" fastpath/tests/run.sh
suite "build" cargo build --workspace --all-targets --quiet
suite "crates and end to end" cargo test --workspace --quiet --no-fail-fast -- --show-output
suite "packet tests of every NF" cargo run --quiet -p millrace-cli -- test $(cd nfs && for f in */; do echo "${f%/}"; done)
if pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null; then
    suite "ports of DPDK: the feature dpdk, inside" cargo test -p millrace-dataplane --features dpdk --quiet --lib -- --show-output port::dpdk
    suite "ports of DPDK, end to end" cargo test -p millrace-cli --features dpdk --quiet --test live -- --show-output dpdk::
else
    echo "skipped: ports of DPDK: libdpdk-dev is not installed (scripts/setup.sh dpdk)" | tee -a "$log"
fi
suite "fuzz targets, a few seconds each" scripts/fuzz.sh 5 --short

passed=$(awk '/^test result:/ { p += $4 } /^[0-9]+ passed, [0-9]+ failed/ { p += $1 } END { print p + 0 }' "$log")
failed=$(awk '/^test result:/ { f += $6 } /^[0-9]+ passed, [0-9]+ failed/ { f += $3 } END { print f + 0 }' "$log")
skipped=$(grep -c '^ *skipped: ' "$log")
if [ "$skipped" -gt 0 ]; then
    echo
    grep '^ *skipped: ' "$log" | sed 's/^ *//' | sort | uniq -c | sort -rn
fi
if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
    failed=1 # a suite that did not build or did not start counts too
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
