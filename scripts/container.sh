#!/usr/bin/env bash
# Builds the container image of the server from dist/linerate-ARCHITECTURE-linux-musl, without a network, and tests it:
# container.sh [ARCHITECTURE]. The result is dist/linerate-container-ARCHITECTURE.tar, for `podman load` and
# `docker load`.
set -euo pipefail
cd "$(dirname "$0")/.."

arch=${1:-x86_64}
program=dist/linerate-$arch-linux-musl
image=dist/linerate-container-$arch.tar
limit=15000000
case $arch in
x86_64) platform=linux/amd64 ;;
aarch64) platform=linux/arm64 ;;
*) echo "$arch: the architectures are x86_64 and aarch64" >&2 && exit 2 ;;
esac
for file in "$program" dist/THIRD-PARTY.txt; do
    [ -e "$file" ] || { echo "there is no $file; run make dist" >&2 && exit 1; }
done
scripts/need.sh buildah:buildah jq:jq

# Images of this script alone, in a folder that disappears with it. The driver works on every file system, and within
# containers.
work=$(mktemp -d)
server_pid=
finish() {
    status=$?
    [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null || true
    [ -z "${container:-}" ] || "${buildah[@]}" rm "$container" >/dev/null || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
buildah=(buildah --storage-driver vfs --root "$work/images" --runroot "$work/run")

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)
mkdir "$work/context"
cp "$program" dist/THIRD-PARTY.txt "$work/context/"
# Only the format of Docker has a health check.
"${buildah[@]}" build --quiet --isolation chroot --format docker --platform "$platform" --timestamp "$SOURCE_DATE_EPOCH" \
    --build-arg "PROGRAM=$(basename "$program")" --label "org.opencontainers.image.version=$version" \
    --file packaging/container/Containerfile --tag "linerate:$version" "$work/context" >/dev/null
rm -f "$image"
"${buildah[@]}" push --quiet "linerate:$version" "docker-archive:$image:linerate:$version"
size=$(stat -c %s "$image")
echo "$image: $size bytes; at most $limit"
# Said last: what the image does is worth knowing whatever its size.
check_size() { [ "$size" -le "$limit" ] || { echo "the image is too large: $size bytes" >&2 && exit 1; }; }

# What a runtime gets from the image.
config=$("${buildah[@]}" inspect --type image "linerate:$version")
jq -e '.Docker.config | .User == "65532:65532" and .Entrypoint == ["/linerate"] and .Cmd == ["serve"]' <<<"$config" >/dev/null ||
    { echo "the image runs something else, or as somebody else" >&2 && exit 1; }
container=$("${buildah[@]}" from --pull-never "linerate:$version")
root=$("${buildah[@]}" mount "$container")
files=$(cd "$root" && find . -type f | LC_ALL=C sort)
[ "$files" = ./THIRD-PARTY.txt$'\n'./linerate ] || { printf 'the image contains other files:\n%s\n' "$files" >&2 && exit 1; }

# As docs/guide/install.md says: a root that cannot be written, no capability, no new privileges, the network of the host.
if [ "$(id -u)" -ne 0 ] || [ "$arch" != "$(uname -m)" ]; then
    echo 'not run: a test run needs root and the processor of the image'
    check_size
    exit 0
fi
scripts/need.sh podman:podman runc:runc
# Podman asks for higher limits than it may set without all privileges.
podman=(podman --storage-driver vfs --root "$work/images" --runroot "$work/run" --runtime runc --cgroup-manager cgroupfs)
run=(run --rm --pull never --network host --read-only --cap-drop=all --security-opt=no-new-privileges
    --ulimit "nofile=$(ulimit -Sn):$(ulimit -Hn)" --ulimit nproc=1024:1024)
"${podman[@]}" "${run[@]}" "linerate:$version" serve --bind 127.0.0.1 --port 0 2>"$work/server" &
server_pid=$!
address=
for _ in $(seq 100); do
    address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$work/server" | head -n 1)
    [ -z "$address" ] || break
    sleep 0.1
done
[ -n "$address" ] || { cat "$work/server" >&2 && echo 'the server in the container did not start' >&2 && exit 1; }
"${podman[@]}" "${run[@]}" "linerate:$version" test "$address" -t 1 --json >"$work/result.json"
jq -e '[.flows[].receiver.bytes] | length == 2 and all(. > 0)' "$work/result.json" >/dev/null ||
    { echo 'the container did not measure in both directions' >&2 && exit 1; }
jq -r '.flows[] | "\(.name): \(.receiver.bytes) bytes received"' "$work/result.json"
# Podman passes the signal on, and the server ends by it.
kill "$server_pid"
status=0
wait "$server_pid" || status=$?
server_pid=
[ "$status" -eq 143 ] || { echo "the server in the container ended with $status instead of 143" >&2 && exit 1; }
check_size
