#!/usr/bin/env bash
# A cheap sample of `make dist` for `make test`: the small build passes lints, which compile no code, and contains nothing of
# what it is there to leave out. `make dist-check` runs its unit tests.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --package linerate --no-default-features -- -D warnings

packages=$(cargo tree --locked --package linerate --no-default-features --edges normal --prefix none --format '{p}' | awk '{ print $1 }' | sort -u)
for package in tokio axum hyper postgres parquet linerate-web; do
    if grep -qx "$package" <<<"$packages"; then
        echo "the build without default features contains $package:" >&2
        cargo tree --package linerate --no-default-features --edges normal --invert "$package" >&2
        exit 1
    fi
done
# The same question about the full build, so that a misspelt name above cannot pass.
packages=$(cargo tree --locked --package linerate --edges normal --prefix none --format '{p}' | awk '{ print $1 }' | sort -u)
for package in tokio axum hyper postgres parquet linerate-web; do
    grep -qx "$package" <<<"$packages" || { echo "scripts/core-check.sh names $package, which is no dependency of linerate" >&2 && exit 1; }
done
echo "the small build has none of tokio, axum, hyper, postgres, parquet and the web pages"
