#!/usr/bin/env bash
# What is handed out: static programs, the package, checksums and their signature, in dist/. ARCHITECTURES and BUILDS
# select fewer programs, as in ARCHITECTURES=x86_64 BUILDS=core. Licences of what the programs contain are in THIRD-PARTY.txt.
set -euo pipefail

# A key that cannot be read is said before the long build. The build does not get its path: packages of others run
# programs of their own in it.
key=${LINERATE_SIGNING_KEY:-}
unset LINERATE_SIGNING_KEY
if [ -n "$key" ]; then
    [ -r "$key" ] || { echo "LINERATE_SIGNING_KEY: there is no file $key that can be read" >&2 && exit 1; }
    key=$(realpath "$key")
fi
cd "$(dirname "$0")/.."

read -ra architectures <<<"${ARCHITECTURES:-x86_64 aarch64}"
read -ra builds <<<"${BUILDS:-full core}"
heading() { printf '\n== %s\n' "$1"; }

heading 'what the build needs'
scripts/need.sh node:nodejs npm:npm
zig=$(scripts/dist-tools.sh)
heading 'front end'
scripts/ui.sh build
# Nothing of an earlier version stays.
rm -rf dist
mkdir dist
heading 'licences'
CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc scripts/third-party.py dist/THIRD-PARTY.txt --zig "$(dirname "$zig")"
for arch in "${architectures[@]}"; do
    for build in "${builds[@]}"; do
        name=linerate-$arch-linux-musl
        [ "$build" = full ] || name=linerate-$build-$arch-linux-musl
        heading "$name"
        scripts/dist-build.sh "$arch" "$build" "dist/$name"
    done
done
heading 'Debian package'
if [ -e dist/linerate-x86_64-linux-musl ]; then
    scripts/package-deb.sh
else
    echo 'not made: the full program for x86-64, which it contains, was not selected'
fi
heading 'checksums'
LINERATE_SIGNING_KEY=$key scripts/dist-sums.sh dist
ls -l dist
