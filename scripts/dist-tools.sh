#!/usr/bin/env bash
# Installs what `make dist` needs besides the requirements of the tests, and prints the path of zig.
#
# The compiler is Debian's rustc-web with the sources of its standard library: rustup has no standard library for musl
# without its own downloads, and a released compiler is the same on every machine. It is called by its path, so that a
# toolchain of rustup stays the default. Zig is the C compiler, linker and musl; it comes from PyPI into target/dist/zig.
set -euo pipefail

zig_version=0.15.2
work=$(cd "$(dirname "$0")/.." && pwd)/target/dist

missing=()
[ -x /usr/bin/rustc ] && [ -e /usr/lib/rustlib/src/rust/library/std/Cargo.toml ] || missing+=(rustc-web rust-web-src)
[ -x /usr/bin/cargo ] || missing+=(cargo-web)
command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
command -v ssh-keygen >/dev/null || missing+=(openssh-client)
command -v readelf >/dev/null || missing+=(binutils)
if [ "${#missing[@]}" -ne 0 ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing: install these Debian packages and try again: ${missing[*]}" >&2
        exit 1
    fi
    echo "installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi
/usr/bin/rustc --version | awk '{ split($2, v, "."); exit !(v[1] > 1 || v[2] >= 95) }' || {
    echo "$(/usr/bin/rustc --version) at /usr/bin/rustc is too old: install rustc-web, cargo-web and rust-web-src, 1.95 or newer" >&2
    exit 1
}

if [ "$(cat "$work/zig/installed.txt" 2>/dev/null)" != "$zig_version" ]; then
    rm -rf "$work/zig"
    mkdir -p "$work"
    python3 -m venv "$work/zig"
    "$work/zig/bin/pip" install --quiet --disable-pip-version-check "ziglang==$zig_version" >&2
    # Written last: the environment is complete.
    echo "$zig_version" >"$work/zig/installed.txt"
fi
echo "$work"/zig/lib/python3*/site-packages/ziglang/zig
