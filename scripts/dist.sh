#!/usr/bin/env bash
# What is handed out: static programs, the package, checksums and their signature, in dist/. ARCHITECTURES and BUILDS
# select fewer programs, as in ARCHITECTURES=x86_64 BUILDS=core.
set -euo pipefail
cd "$(dirname "$0")/.."

read -ra architectures <<<"${ARCHITECTURES:-x86_64 aarch64}"
read -ra builds <<<"${BUILDS:-full core}"
heading() { printf '\n== %s\n' "$1"; }

heading 'what the build needs'
scripts/need.sh node:nodejs npm:npm
scripts/dist-tools.sh
heading 'front end'
scripts/ui.sh build
# Nothing of an earlier version stays.
rm -rf dist
mkdir dist
for arch in "${architectures[@]}"; do
    for build in "${builds[@]}"; do
        name=linerate-$arch-linux-musl
        [ "$build" = full ] || name=linerate-$build-$arch-linux-musl
        heading "$name"
        scripts/dist-build.sh "$arch" "$build" "dist/$name"
    done
done
# The package contains the program for x86_64.
if [ -x scripts/package-deb.sh ]; then
    heading 'Debian package'
    scripts/package-deb.sh
fi
heading 'checksums'
scripts/dist-sums.sh dist
ls -l dist
