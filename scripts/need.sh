#!/usr/bin/env bash
# Ensures that commands exist: need.sh COMMAND:PACKAGE[,PACKAGE…]… If run as root on a system with apt-get, it installs
# the packages of missing ones; otherwise it lists them and fails. `cc` has to make programs too, and `python3-venv` is
# what Python needs to make environments.
set -euo pipefail

exists() {
    case $1 in
    # Packages of compilers only recommend the headers and start files without which no program links.
    cc) command -v cc >/dev/null && links ;;
    # No command: the module that puts pip into an environment, which Debian has in a package of its own.
    python3-venv) "$(command -v python3.11 || command -v python3)" -c 'import ensurepip' &>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

links() {
    local folder status=0
    folder=$(mktemp -d)
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$folder/program.c"
    cc -o "$folder/program" "$folder/program.c" &>/dev/null || status=1
    rm -rf "$folder"
    return "$status"
}

missing=()
for pair in "$@"; do
    exists "${pair%%:*}" && continue
    IFS=, read -ra packages <<<"${pair##*:}"
    missing+=("${packages[@]}")
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
