#!/usr/bin/env bash
# Puts promtool of Prometheus where tests look for it: target/peers/promtool.
#
# It is the program that LINERATE_PROMTOOL names, or the installed one, or that of Debian's package, which is unpacked
# and not installed: no service starts. Nothing on this system changes, and root is not needed.
set -euo pipefail

place=$(cd "$(dirname "$0")/.." && pwd)/target/peers
program=$place/promtool
mkdir -p "$place"

# A link to the peer itself would be one that leads nowhere.
installed=$(readlink -f "${LINERATE_PROMTOOL:-$(command -v promtool || true)}" || true)
if [ -x "$installed" ] && [ -f "$installed" ] && [ "$installed" != "$program" ]; then
    ln -sf "$installed" "$program"
elif command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    # A user who may not read this folder would fetch it otherwise, with a warning.
    apt-get -q -o APT::Sandbox::User=root download prometheus >/dev/null
    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
    mv usr/bin/promtool "$program"
fi
[ -x "$program" ] || {
    echo "no promtool: install Prometheus, or name its promtool in LINERATE_PROMTOOL" >&2
    exit 1
}
