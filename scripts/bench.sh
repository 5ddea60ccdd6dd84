#!/usr/bin/env bash
# Every figure of docs/measurements/bench.md. Arguments go to the benchmark: --only SECTION, --function NF, --turns N, --json.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet -p millrace-cli
exec cargo run --release --quiet -p millrace-bench -- "$@"
