#!/usr/bin/env bash
# Puts the command-line client of LibreSpeed where tests look for it: target/peers/librespeed-cli.
#
# It is the program that LINERATE_LIBRESPEED_CLI names, or the installed one, or a new one that Go builds. Nothing on
# this system changes, and root is not needed.
set -euo pipefail

version=${LIBRESPEED_CLI_VERSION:-1.0.11}
module=github.com/librespeed/speedtest-cli
place=$(cd "$(dirname "$0")/.." && pwd)/target/peers
program=$place/librespeed-cli
mkdir -p "$place"

# A link to the peer itself would be one that leads nowhere.
installed=$(readlink -f "${LINERATE_LIBRESPEED_CLI:-$(command -v librespeed-cli || true)}" || true)
if [ -x "$installed" ] && [ -f "$installed" ] && [ "$installed" != "$program" ]; then
    ln -sf "$installed" "$program"
elif command -v go >/dev/null; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    # Within a module of ours: `go install` asks for a list of versions, which not every proxy has.
    printf 'module peers\n\ngo 1.19\n\nrequire %s v%s\n' "$module" "$version" >go.mod
    cp "$(go mod download -json "$module@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/go.sum" .
    chmod u+w go.sum
    go build -mod=mod -o "$program" "$module"
fi
[ -x "$program" ] || {
    echo "no librespeed-cli: install Go, or librespeed-cli $version from https://$module/releases" >&2
    exit 1
}
