#!/usr/bin/env bash
# Builds the book into target/book. Takes mdBook from the PATH, or installs it into target/ from the Rust registry.
# The book's links, commands and lists are tests: cargo test -p millrace-cli --test it book::
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ]; then
    mdbook=target/mdbook/bin/mdbook
    if [ ! -x "$mdbook" ]; then
        echo "docs: installing mdBook $version into target/mdbook, which takes some minutes"
        cargo install mdbook --version "$version" --locked --quiet --root target/mdbook
    fi
fi
"$mdbook" build docs
# What lies beside the pages for the book itself is no part of it.
rm -f target/book/book.toml target/book/SUMMARY.md
echo "docs: target/book/index.html"
