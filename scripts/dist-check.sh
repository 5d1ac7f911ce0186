#!/usr/bin/env bash
# Checks what `make dist` has left in dist/: programs are static, small enough, name no path of this machine, and measure
# in a root folder with nothing else in it; checksums and signature fit. Then it builds everything a second time in
# another folder, with nothing of what cargo has fetched for the first, and compares. What is too large is said last.
# ARCHITECTURES and BUILDS select fewer programs, as for scripts/dist.sh; with REBUILD=no the second build is left out.
# Needs root, or user namespaces.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"

read -ra architectures <<<"${ARCHITECTURES:-x86_64 aarch64}"
read -ra builds <<<"${BUILDS:-full core}"
# In MB of 10^6 bytes.
declare -A size_limits=([full]=14 [core]=5)
too_large=()
heading() { printf '\n== %s\n' "$1"; }
fail() {
    echo "error: $1" >&2
    exit 1
}

work=$(mktemp -d)
server_pid=
finish() {
    status=$?
    [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

enter=("$(command -v chroot)")
[ "$(id -u)" -eq 0 ] || enter=("$(command -v unshare)" --map-root-user "${enter[@]}")
scripts/need.sh readelf:binutils strings:binutils jq:jq ssh-keygen:openssh-client

check_file() {
    local file=$1 limit=$2 size path
    readelf --program-headers --wide "$file" >"$work/headers"
    ! grep -q INTERP "$work/headers" || fail "$file needs a dynamic loader"
    ! readelf --dynamic "$file" | grep NEEDED || fail "$file needs shared libraries"
    size=$(stat -c %s "$file")
    echo "$size bytes; at most ${limit}000000"
    [ "$size" -le "${limit}000000" ] || too_large+=("$file")
    strings "$file" >"$work/strings"
    for path in "$top" "${CARGO_HOME:-$HOME/.cargo}" /usr/src /usr/lib/rustlib; do
        ! grep -m 3 -F "$path/" "$work/strings" || fail "$file names the path $path of this machine"
    done
    # What is left of a path if dist-build.sh has not replaced the folder of the registry, whose name differs.
    ! grep -m 3 -F /cargo/registry/ "$work/strings" || fail "$file names the registry of the cargo that built it"
}

# Serves and measures over loopback in a root folder that contains the program alone. A program for another processor
# comes with its emulator.
check_run() {
    local file=$1 arch=$2 root=$work/root run=(/linerate) address=
    rm -rf "$root" && mkdir "$root"
    cp "$file" "$root/linerate"
    if [ "$arch" != "$(uname -m)" ]; then
        scripts/need.sh "qemu-$arch-static:qemu-user-static"
        cp "$(command -v "qemu-$arch-static")" "$root/qemu"
        run=(/qemu /linerate)
    fi
    local here=(env -i LINERATE_ARCHIVE=/runs.sqlite "${enter[@]}" "$root" "${run[@]}")
    "${here[@]}" --version
    "${here[@]}" serve --bind 127.0.0.1 --port 0 2>"$work/server" &
    server_pid=$!
    for _ in $(seq 300); do
        address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$work/server" | head -n 1)
        [ -z "$address" ] || break
        sleep 0.1
    done
    [ -n "$address" ] || { cat "$work/server" >&2 && fail "the server of $file did not start"; }
    "${here[@]}" test "$address" -t 1 --json >"$work/result.json"
    jq -e '[.flows[].receiver.bytes] | length == 2 and all(. > 0)' "$work/result.json" >/dev/null ||
        fail "$file did not measure in both directions"
    jq -r '.flows[] | "\(.name): \(.receiver.bytes) bytes received"' "$work/result.json"
    [ "$("${here[@]}" history --json | jq ".runs | length")" -ge 1 ] || fail "$file did not archive the run"
    kill "$server_pid"
    wait "$server_pid" || true
    server_pid=
}

if [[ " ${builds[*]} " == *' core '* ]]; then
    heading 'unit tests of the small build'
    cargo test --quiet --package linerate --no-default-features --lib core_build
fi

names=()
for arch in "${architectures[@]}"; do
    for build in "${builds[@]}"; do
        name=linerate-$arch-linux-musl
        [ "$build" = full ] || name=linerate-$build-$arch-linux-musl
        names+=("$name")
        heading "$name"
        [ -e "dist/$name" ] || fail "there is no dist/$name; run make dist"
        check_file "dist/$name" "${size_limits[$build]}"
        check_run "dist/$name" "$arch"
    done
done

names+=(THIRD-PARTY.txt)
# The package is made with the program that is in it.
if [[ " ${names[*]} " == *' linerate-x86_64-linux-musl '* ]]; then
    deb=$(cd dist && echo linerate_*_amd64.deb)
    [ -e "dist/$deb" ] || fail 'there is no Debian package in dist/; run make dist'
    names+=("$deb")
fi

heading 'licences'
for part in musl SQLite ring preact "Rust's standard library"; do
    grep -q "^$part" dist/THIRD-PARTY.txt || fail "dist/THIRD-PARTY.txt does not name $part"
done
echo "dist/THIRD-PARTY.txt: $(stat -c %s dist/THIRD-PARTY.txt) bytes"

heading 'checksums'
(cd dist && sha256sum --check --quiet SHA256SUMS) || fail 'dist/SHA256SUMS does not fit'
echo 'dist/SHA256SUMS fits'
if [ -e dist/SHA256SUMS.sig ]; then
    ssh-keygen -q -Y check-novalidate -n linerate-release -s dist/SHA256SUMS.sig <dist/SHA256SUMS
else
    echo 'not signed'
fi

# The same files from another folder, whose name has blanks, and from an empty cache of cargo, whose settings stay:
# they may name the registry of a company, and how to log in there.
second_build() {
    local copy="$work/a/folder with/another name" user=${CARGO_HOME:-$HOME/.cargo} own=$work/cargo-home file name
    mkdir -p "$copy" "$own"
    for file in config config.toml credentials credentials.toml; do
        [ ! -e "$user/$file" ] || ln -s "$(realpath "$user/$file")" "$own/$file"
    done
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$copy"
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
    export SOURCE_DATE_EPOCH
    env -u CARGO_TARGET_DIR -u LINERATE_SIGNING_KEY CARGO_HOME="$own" "$copy/scripts/dist.sh"
    for name in "${names[@]}"; do
        cmp "dist/$name" "$copy/dist/$name" || fail "two builds of $name differ"
        echo "same: $(sha256sum "$copy/dist/$name" | cut -d ' ' -f 1)  $name"
    done
}

if [ "${REBUILD:-yes}" = yes ]; then
    heading 'second build, in another folder'
    second_build
fi
[ "${#too_large[@]}" -eq 0 ] || fail "too large: ${too_large[*]}"
