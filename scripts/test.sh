#!/usr/bin/env bash
# Every test there is. Prints each suite's result and, at the end, one count: passed, failed, and
# skipped with the reasons.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

# Of a suite that failed: its failed tests, what they said, and how it ended. Whatever passed is left out, so that
# the reason is read where only the last lines are kept.
what_failed() {
    grep '^test .* FAILED$' "$1"
    awk '/^failures:$/ { shown = 1 } shown { print } /^test result:/ { shown = 0 }' "$1" | head -n 400
    echo "..."
    tail -n 40 "$1"
}

# Shows what a suite is doing until it ends: on a terminal in one line, elsewhere the last line of each minute.
show() {
    local out=$1 pid=$2 start=$SECONDS said=$SECONDS line
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        line=$(tail -c 400 "$out" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | cut -c -90)
        if [ -t 1 ]; then
            printf '\r\033[K  %s s: %s' $((SECONDS - start)) "$line"
        elif [ $((SECONDS - said)) -ge 60 ]; then
            said=$SECONDS
            printf '  %s s: %s\n' $((SECONDS - start)) "$line"
        fi
    done
    if [ -t 1 ]; then printf '\r\033[K'; fi
}

suite() {
    local name=$1
    shift
    echo "test: $name"
    local start=$SECONDS out pid
    out=$(mktemp)
    "$@" >"$out" 2>&1 &
    pid=$!
    show "$out" "$pid"
    if wait "$pid"; then
        grep -E '^(test result:|[0-9]+ passed, [0-9]+ failed)' "$out" | grep -v ' 0 passed; 0 failed' | sed 's/^/  /'
    else
        status=1
        what_failed "$out" | sed 's/^/  /'
        echo "  FAILED: $name"
    fi
    echo "  $((SECONDS - start)) s"
    cat "$out" >>"$log"
    rm -f "$out"
}

suite "fastpath: state objects in C, under AddressSanitizer and UndefinedBehaviorSanitizer" fastpath/tests/run.sh
suite "fastpath: the protocol of transactions for three workers, in spin" fastpath/tests/spin.sh
# With the ports of DPDK, where it is there, in the one build; what the build says without them comes last.
dpdk=()
if pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null; then
    dpdk=(--features "millrace-dataplane/dpdk,millrace-cli/dpdk,millrace-bench/dpdk")
else
    echo "skipped: ports of DPDK: libdpdk-dev is not installed (scripts/setup.sh dpdk)" | tee -a "$log"
fi
suite "build" cargo build --workspace --all-targets "${dpdk[@]}"
# The command of this build, for tests outside of its crate: none of them builds it once more.
MILLRACE_COMMAND=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/millrace
export MILLRACE_COMMAND
suite "crates and end to end" cargo test --workspace --no-fail-fast "${dpdk[@]}" -- --show-output
suite "packet tests of every NF" "$MILLRACE_COMMAND" test $(cd nfs && for f in */; do echo "${f%/}"; done)
if [ "${#dpdk[@]}" -gt 0 ]; then
    # Only this crate names the feature outside of tests, so no other is built again.
    suite "a build without DPDK" cargo test -p millrace-dataplane --lib port::dpdk::
fi

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
