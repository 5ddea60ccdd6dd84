#!/usr/bin/env bash
# What scripts/test.sh gives cargo as runner (`later.sh PROGRAM ARGUMENTS…`): writes the program down in $MILLRACE_QUEUE with
# its folder and environment, so that several run side by side once all are built. Without cargo NAME names it.
set -euo pipefail
program=${1##*/}
name=${CARGO_PKG_NAME:+$CARGO_PKG_NAME ${program%-*}}
# The longest first: what is started last should be short. Of the others the largest program has most of the tests.
case ${name:=$NAME} in
    "millrace-tests it" | "millrace-cli it") weight=9999999999 ;;
    "millrace-emit it" | "millrace-verify it") weight=9999999998 ;;
    millrace*) weight=$(stat -c %s "$1") ;;
    *) weight=9999999997 ;;
esac
# The command's tests wait for packets a third of their time, and are the last to end: one more at a time than there are processors.
[ "$name" != "millrace-cli it" ] || export RUST_TEST_THREADS=$(($(nproc) + 1))
# Optimised modules of functions have their turn every third day in these, where clang's optimiser is most of the time.
day=${MILLRACE_DAY:-$(($(date +%s) / 86400))}
skipped=
case $name in
    "millrace it" | "millrace-emit it" | "millrace-tests it" | "packet tests of every NF")
        if [ -z "${MILLRACE_LONG+said}" ] && [ $((day % 3)) != 0 ]; then
            export MILLRACE_UNOPTIMISED=1
            skipped="skipped: optimised modules in $name have their turn on another day than $day (MILLRACE_LONG=1: each day)"
        fi
        ;;
esac
file=$MILLRACE_QUEUE/$(printf '%010d %s' "$weight" "$name")
{
    export -p
    [ -z "$skipped" ] || printf 'echo %q\n' "$skipped"
    printf 'cd %q\nexec' "$PWD"
    printf ' %q' "$@"
    echo
} >"$file"
