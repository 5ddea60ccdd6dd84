#!/usr/bin/env bash
# Formatting and lints, as they must be before a commit.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet
for script in scripts/*.sh packaging/debian/* crates/cli/tests/packaging/*.sh .ci/run; do
    bash -n "$script"
done
echo "lint: clean"
