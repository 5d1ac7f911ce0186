#!/usr/bin/env bash
# Puts a newer iperf3 next to the installed one, for the tests that compare options: target/peers/iperf3.
#
# It is Debian's package (from unstable unless SUITE names another suite), unpacked with the libraries that it
# needs. Nothing on this system changes, and root is not needed. Tests skip what needs it if it is not there.
set -euo pipefail

suite=${SUITE:-sid}
top=$(cd "$(dirname "$0")/.." && pwd)
place=$top/target/peers
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "no newer iperf3: this system has no apt-get" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root" "$work/packages"
touch "$work/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] http://deb.debian.org/debian $suite main" >"$work/sources.list"
apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$work"
    -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
    -o APT::Sandbox::User= -o Acquire::Languages=none)
"${apt[@]}" update >/dev/null
(cd "$work/packages" && "${apt[@]}" download iperf3 libiperf0 libc6 libssl3t64 libsctp1 zlib1g libzstd1 >/dev/null)
for package in "$work"/packages/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done

rm -rf "$place/iperf3.root"
mkdir -p "$place"
mv "$work/root" "$place/iperf3.root"
cat >"$place/iperf3" <<'WRAPPER'
#!/bin/sh
# The program with its own loader and libraries, which are newer than those of this system.
root=$(dirname "$(readlink -f "$0")")/iperf3.root
loader=$(echo "$root"/usr/lib*/ld-linux-*)
exec "$loader" --library-path "$(echo "$root"/usr/lib/*-linux-gnu)" "$root/usr/bin/iperf3" "$@"
WRAPPER
chmod +x "$place/iperf3"
"$place/iperf3" --version | head -1
