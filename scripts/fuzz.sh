#!/usr/bin/env bash
# Feeds every wire decoder with arbitrary bytes for a while: fuzz.sh [SECONDS PER TARGET]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "missing: cargo-fuzz; install it with: cargo install cargo-fuzz (it needs a nightly toolchain to run)" >&2
    exit 1
fi
# The search begins with well-formed examples.
(cd fuzz && cargo run --quiet --bin seeds -- corpus)
for target in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "== fuzz: $name, $seconds s"
    cargo +nightly fuzz run "$name" -- -max_total_time="$seconds"
done
