#!/usr/bin/env bash
# Makes the Debian package dist/linerate_VERSION_amd64.deb from a static binary for x86-64: package-deb.sh [BINARY]. Without
# BINARY, it is dist/linerate-x86_64-linux-musl. The licences of what is in it are in THIRD-PARTY.txt next to it.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${1:-dist/linerate-x86_64-linux-musl}
licences=$(dirname "$binary")/THIRD-PARTY.txt
for file in "$binary" "$licences"; do
    [ -e "$file" ] || { echo "there is no $file; run: make dist" >&2 && exit 1; }
done
scripts/need.sh readelf:binutils dpkg-deb:dpkg
# The package depends on nothing, so that it installs on every release of Debian.
if readelf -l "$binary" | grep -q INTERP; then
    echo "$binary needs libraries of this system; the package is for a static one, as make dist builds it" >&2
    exit 1
fi

tools=target/tools
version='3.8.0'
if ! "$tools/bin/cargo-deb" --version 2>/dev/null | grep -qx "$version"; then
    cargo install cargo-deb --version "=$version" --locked --root "$tools"
fi

# The package is the same for the same sources.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

stage=target/package
rm -rf "$stage"
mkdir -p "$stage/man" "$stage/completions"
install -m 755 "$binary" "$stage/linerate"
# Debian wants long texts compressed, without the time.
gzip -9nc "$licences" >"$stage/THIRD-PARTY.txt.gz"
gzip -9nc CHANGELOG.md >"$stage/changelog.gz"

# What prints its manual pages and completions: on another processor the program for that one, or an emulator.
program=("$stage/linerate")
if [ "$(uname -m)" != x86_64 ]; then
    program=("$(dirname "$binary")/linerate-$(uname -m)-linux-musl")
    if [ ! -x "${program[0]}" ]; then
        scripts/need.sh qemu-x86_64-static:qemu-user-static
        program=(qemu-x86_64-static "$stage/linerate")
    fi
fi

# The commands in the help of the program or of one of its commands.
commands() {
    # Some stand-ins print their own help on standard error.
    LINERATE_ARCHIVE=:memory: "${program[@]}" "$@" --help 2>/dev/null |
        awk '/^Commands:/ { in_list = 1; next } in_list && /^[^ ]/ { exit } in_list && /^  [a-z0-9]/ && $1 != "help" { print $1 }'
}
"${program[@]}" man >"$stage/man/linerate.1"
for command in $(commands); do
    "${program[@]}" man "$command" >"$stage/man/linerate-$command.1"
    for below in $(commands "$command"); do
        "${program[@]}" man "$command" "$below" >"$stage/man/linerate-$command-$below.1"
    done
done
for shell in bash zsh fish; do
    "${program[@]}" completions "$shell" >"$stage/completions/$shell"
done

number=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
{
    printf 'linerate (%s) stable; urgency=medium\n\n' "$number"
    printf '  * Release %s; its changes are in changelog.gz.\n\n' "$number"
    printf ' -- The linerate authors <linerate@users.noreply.github.com>  %s\n' "$(date -uRd "@$SOURCE_DATE_EPOCH")"
} >"$stage/changelog"
# The licence as the package format wants it, with the text that Debian does not have.
{ cat packaging/debian/copyright; sed 's/^$/./; s/^/ /' LICENSE-MIT; } >"$stage/copyright"

mkdir -p dist
rm -f dist/linerate_*_amd64.deb
"$tools/bin/cargo-deb" --no-build --no-strip -p linerate --target x86_64-unknown-linux-gnu \
    --output "dist/linerate_${number}_amd64.deb" --quiet
ls -l "dist/linerate_${number}_amd64.deb"
