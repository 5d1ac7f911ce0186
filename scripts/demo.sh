#!/usr/bin/env bash
# The main functions on one machine: a server and a client over loopback, both directions, the verdict, the
# archive, a report.
set -euo pipefail
cd "$(dirname "$0")/.."

out=demo-report
seconds=${DEMO_SECONDS:-5}
server_pid=

finish() {
    status=$?
    if [ -n "$server_pid" ]; then
        kill "$server_pid" 2>/dev/null || true
        wait "$server_pid" 2>/dev/null || true
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

heading() { printf '\n== %s\n' "$1"; }

heading 'what the build needs'
scripts/need.sh cc:gcc,libc6-dev node:nodejs npm:npm
if ! command -v cargo >/dev/null; then
    echo "missing: Rust; install it from https://rustup.rs and try again" >&2
    exit 1
fi

heading 'build'
scripts/ui.sh build
# Without what the demo does not show and takes long to build: exports as Parquet, archives in PostgreSQL.
cargo build --profile demo --package linerate --no-default-features --features full
linerate=${CARGO_TARGET_DIR:-target}/demo/linerate
mkdir -p "$out"
export LINERATE_ARCHIVE=$out/runs.sqlite

heading 'server'
"$linerate" serve --bind 127.0.0.1 --port 0 2>"$out/server.log" &
server_pid=$!

# The server prints its address within ten seconds.
address=
for _ in $(seq 100); do
    address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$out/server.log" | head -n 1)
    [ -n "$address" ] && break
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
done
if [ -z "$address" ]; then
    echo "the server did not start:" >&2
    cat "$out/server.log" >&2
    exit 1
fi
echo "listening on $address"

heading "test, $seconds s in each direction"
"$linerate" test "$address" -t "$seconds" --report "$out/report.html"

heading 'archive and report'
"$linerate" history
"$linerate" export --format markdown --output "$out/report.md"
"$linerate" export --format jsonl --output "$out/events.jsonl"
ls -l "$out"
echo "open $out/report.html in a browser; it needs no network"
