#!/usr/bin/env bash
# Searches for new cases: every property with random input, then every decoder with arbitrary bytes for a while:
# fuzz.sh [SECONDS PER TARGET]. Seeded noise comes first and runs on any toolchain; the coverage-guided search
# needs cargo-fuzz and nightly.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-20}

echo '== properties, cases that nobody has seen'
(cd .. && env -u PROPTEST_RNG_SEED PROPTEST_CASES="${PROPTEST_CASES:-2000}" cargo test --quiet --workspace --exclude linerate-fuzz --lib)

echo '== seeded noise'
cargo test --quiet

missing=()
cargo fuzz --version >/dev/null 2>&1 || missing+=('cargo-fuzz (cargo install cargo-fuzz)')
cargo +nightly --version >/dev/null 2>&1 || missing+=('a nightly toolchain (rustup toolchain install nightly --profile minimal)')
command -v c++ >/dev/null || missing+=('a C++ compiler (Debian: g++)')
if [ "${#missing[@]}" -ne 0 ]; then
    printf 'the search was not run; missing: %s\n' "${missing[@]}" >&2
    exit 1
fi

# The search starts from well-formed examples.
cargo run --quiet --bin seeds -- corpus
for file in fuzz_targets/*.rs; do
    target=$(basename "$file" .rs)
    echo "== $target, $seconds s"
    cargo +nightly fuzz run --fuzz-dir . "$target" -- -max_total_time="$seconds" -max_len=4096
done
