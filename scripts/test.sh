#!/usr/bin/env bash
# Every test there is. Prints each suite's result and, at the end, one count: passed, failed, and
# skipped with the reasons.
set -uo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
log=$work/log
# Where runs have their sockets: not where services have theirs, which every command looks into.
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
status=0
shopt -s extglob
IFS=$'\n'
# The line with which a program ends: libtest's, and that of the scripts.
sums='^(test result:|[0-9]+ passed, [0-9]+ failed)'

# Of a suite that failed: its failed tests, what they said, and how it ended. Whatever passed is left out, so that
# the reason is read where only the last lines are kept.
what_failed() {
    grep -E '^test .* FAILED$|^program: .* FAILED |^passed alone: ' "$1"
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

# Runs the programs that were queued in a folder (later.sh), two at a time: each has a test at a time for every processor, but
# waits for packets in between and ends with one long test on one processor. More at a time would spend budgets of time that
# tests hold functions to. A line for each says its result and what it took; what failed comes last.
side_by_side() {
    local at_once=2 file
    local failed=()
    local -A running=()
    await_one() {
        local pid ended file
        wait -n -p pid "${!running[@]}"
        ended=$?
        file=${running[$pid]}
        unset "running[$pid]"
        if [ "$ended" = 0 ]; then
            cat "$file.out"
            echo "program: $(results "$file")"
        else
            failed+=("$file")
            echo "program: $(results "$file"), FAILED with status $ended"
        fi
    }
    results() {
        echo "${1##*/*([0-9]) }: $(grep -E "$sums" "$1.out" | tail -n 1 | sed 's/; 0 measured.*//'), $(cat "$1.time")"
    }
    for file in $(find "$1" -type f | sort -r); do
        [ "${#running[@]}" -lt "$at_once" ] || await_one
        {
            TIMEFORMAT='%R s, of processors %U + %S s'
            time bash "$file" >"$file.out" 2>&1
        } 2>"$file.time" &
        running[$!]=$file
    done
    while [ "${#running[@]}" -gt 0 ]; do await_one; done
    local status=0
    for file in "${failed[@]}"; do
        cat "$file.out"
        alone "$file" || status=1
    done
    return "$status"
}

# A few tests that failed beside others, once more with nothing beside them. A machine that others use, too, keeps no promise of
# time: where they pass now, that is said, and counted at the end, with all that they said before.
alone() {
    local file=$1 names
    mapfile -t names < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$file.out")
    [ "${#names[@]}" -gt 0 ] && [ "${#names[@]}" -le 4 ] || return 1
    {
        head -n -1 "$file"
        tail -n 1 "$file" | tr -d '\n'
        printf ' --test-threads=1 --exact'
        printf ' %q' "${names[@]}"
        echo
    } >"$file.again"
    if ! bash "$file.again" >"$file.alone" 2>&1; then
        sed 's/^/alone: /' "$file.alone"
        return 1
    fi
    printf 'passed alone: %s\n' "${names[@]}"
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
        { grep '^program: ' "$out" || grep -E "$sums" "$out"; } | grep -v ' 0 passed; 0 failed' | sed 's/^/  /'
        if grep -q '^passed alone: ' "$out"; then what_failed "$out" | sed 's/^/  /'; fi
    else
        status=1
        what_failed "$out" | sed 's/^/  /'
        echo "  FAILED: $name"
    fi
    echo "  $((SECONDS - start)) s"
    cat "$out" >>"$log"
    rm -f "$out"
}

# With the ports of DPDK, where it is there, in the one build; what the build says without them comes last.
dpdk=()
if pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null; then
    dpdk=(--features "millrace-dataplane/dpdk,millrace-cli/dpdk,millrace-bench/dpdk")
else
    echo "skipped: ports of DPDK: libdpdk-dev is not installed (scripts/setup.sh dpdk)" | tee -a "$log"
fi
# Examples are built by `make lint`, and those of the library are part of its tests.
suite "build" cargo build --workspace --tests "${dpdk[@]}"
# The command of this build, for tests outside of its crate: none of them builds it once more.
MILLRACE_COMMAND=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/millrace
export MILLRACE_COMMAND MILLRACE_QUEUE

MILLRACE_QUEUE=$work/queue
mkdir "$MILLRACE_QUEUE"
NAME="state objects in C, under sanitizers" scripts/later.sh fastpath/tests/run.sh
NAME="the protocol of transactions for three workers, in spin" scripts/later.sh fastpath/tests/spin.sh
NAME="packet tests of every NF" scripts/later.sh "$MILLRACE_COMMAND" test $(cd nfs && for f in */; do echo "${f%/}"; done)
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
suite "list of test programs" env "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/later.sh" \
    cargo test --workspace --tests --no-fail-fast "${dpdk[@]}" -- --show-output
suite "test programs, side by side" side_by_side "$MILLRACE_QUEUE"
suite "examples in documentation" cargo test --workspace --doc --no-fail-fast "${dpdk[@]}"
if [ "${#dpdk[@]}" -gt 0 ]; then
    # Only this crate names the feature outside of tests. With it alone cargo chooses fewer features of others, so that what it
    # uses is built again: not optimised, as one test runs.
    suite "a build without DPDK" env CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo \
        --config profile.dev.package.millrace-classify.opt-level=0 \
        --config profile.dev.package.millrace-steer.opt-level=0 \
        test -p millrace-dataplane --lib port::dpdk::
fi

passed=$(awk '/^test result:/ { p += $4 } /^[0-9]+ passed, [0-9]+ failed/ { p += $1 } END { print p + 0 }' "$log")
failed=$(awk '/^test result:/ { f += $6 } /^[0-9]+ passed, [0-9]+ failed/ { f += $3 } END { print f + 0 }' "$log")
alone=$(grep -c '^passed alone: ' "$log")
passed=$((passed + alone))
failed=$((failed - alone))
skipped=$(grep -c '^ *skipped: ' "$log")
if [ "$skipped" -gt 0 ]; then
    echo
    grep '^ *skipped: ' "$log" | sed 's/^ *//' | sort | uniq -c | sort -rn
fi
if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
    failed=1 # a suite that did not build or did not start counts too
fi
times >"$work/times"
echo
beside=
[ "$alone" = 0 ] || beside=" ($alone of them only with nothing beside them)"
echo "$passed passed$beside, $failed failed, $skipped skipped; $SECONDS s, of processors $(tail -n 1 "$work/times")"
exit "$status"
