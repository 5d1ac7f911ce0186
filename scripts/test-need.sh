#!/usr/bin/env bash
# Tests what is installed on a fresh system, with stand-ins for its programs: nothing is installed.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "error: $1" >&2
    exit 1
}
# stub NAME LINE…: a program in front of those of the system.
mkdir -p "$work/bin" "$work/copy/scripts"
stub() {
    local name=$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$work/bin/$name"
    chmod +x "$work/bin/$name"
}
# fresh SCRIPT ARGUMENT…: as on a fresh system; what would be installed is in installed.txt.
fresh() {
    : >"$work/installed.txt"
    PATH=$work/bin:$PATH "$@" &>"$work/output.txt"
}
installed() { grep -qw -- "$1" "$work/installed.txt"; }

stub id 'echo 0'
stub apt-get "echo \"\$*\" >>'$work/installed.txt'"

# A compiler is there: nothing is to be done.
stub cc 'while [ "$1" != -o ]; do shift; done' ': >"$2"'
fresh "$scripts/need.sh" cc:gcc,libc6-dev || fail 'a compiler that links is not accepted'
[ ! -s "$work/installed.txt" ] || fail 'packages of a compiler that works are installed'

# What gcc without recommended packages says.
stub cc 'echo "cannot find Scrt1.o" >&2' 'exit 1'
stub python3 'exit 1'
stub python3.11 'exit 1'
fresh "$scripts/need.sh" cc:gcc,libc6-dev sh:dash python3-venv:python3-venv || fail 'need.sh failed'
for package in gcc libc6-dev python3-venv; do
    installed "$package" || fail "need.sh does not install $package where a compiler cannot link"
done
! installed dash || fail 'the package of a command that is there is installed'

# The lists of the demo and the tests. Other scripts would install more.
cp "$scripts"/{need,demo,test-deps}.sh "$work/copy/scripts"
for name in newer-iperf3 python-peers librespeed-cli promtool python-package nats-server ui; do
    printf '#!/bin/sh\nexit 0\n' >"$work/copy/scripts/$name.sh"
    chmod +x "$work/copy/scripts/$name.sh"
done
stub cargo 'exit 1'
fresh "$work/copy/scripts/test-deps.sh" || fail 'test-deps.sh failed'
installed libc6-dev || fail 'make test installs no C library to compile with'
installed python3-venv || fail 'make test installs nothing that makes environments of Python'
! fresh "$work/copy/scripts/demo.sh" || fail 'the build of the demo did not stop'
installed libc6-dev || fail 'make demo installs no C library to compile with'

# Nobody else may install.
stub id 'echo 1000'
! fresh "$scripts/need.sh" cc:gcc,libc6-dev || fail 'a missing compiler is no error'
grep -q 'gcc libc6-dev' "$work/output.txt" || fail 'the message does not name the packages'
[ ! -s "$work/installed.txt" ] || fail 'a user who is not root installs packages'
echo 'what is installed on a fresh system: passed'
