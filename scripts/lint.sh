#!/usr/bin/env bash
# Formatting and lints, as they must be before a commit.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet
# A crate whose tests all lie beside it is not built once more for those within: there must be none.
for manifest in $(grep -lx 'test = false' crates/*/Cargo.toml tests/*/Cargo.toml); do
    if grep -rn '#\[test\]' "${manifest%/*}/src"; then
        echo "lint: these tests do not run: $manifest says \`test = false\`" >&2
        exit 1
    fi
done
for script in scripts/*.sh packaging/debian/* crates/cli/tests/packaging/*.sh .ci/run; do
    bash -n "$script"
done
echo "lint: clean"
