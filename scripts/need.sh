#!/usr/bin/env bash
# Ensures that commands exist: need.sh COMMAND:PACKAGE… If run as root on a system with apt-get, it installs the
# packages of missing ones; otherwise it lists them and fails.
set -euo pipefail

missing=()
for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: install these packages and try again: ${missing[*]}" >&2
    exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
