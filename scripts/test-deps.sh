#!/usr/bin/env bash
# Installs what the tests need besides Rust: a linker and C compiler, the real peers, and tools to inspect the
# result.
set -euo pipefail

"$(dirname "$0")/need.sh" \
    cc:gcc,libc6-dev \
    iperf3:iperf3 iperf:iperf nuttcp:nuttcp NPtcp:netpipe-tcp \
    nginx:nginx curl:curl ping:iputils-ping python3:python3 python3-venv:python3-venv script:bsdutils setpriv:util-linux unshare:util-linux chrt:util-linux \
    node:nodejs npm:npm chromium:chromium fish:fish \
    ethtool:ethtool faketime:faketime openssl:openssl pg_lsclusters:postgresql ip:iproute2 tc:iproute2 nft:nftables ps:procps sqlite3:sqlite3 jq:jq ssh-keygen:openssh-client

# Next to the installed one. Tests without it are skipped and counted.
[ -x "$(dirname "$0")/../target/peers/iperf3" ] || "$(dirname "$0")/newer-iperf3.sh" ||
    echo "tests with a newer iperf3 will be skipped" >&2

# Readers of exported tables, and programs that try the HTTP interface. Tests with them are skipped and counted
# otherwise.
"$(dirname "$0")/python-peers.sh" || echo "tests with DuckDB, pyarrow, schemathesis and prometheus_client will be skipped" >&2

# The command-line client of LibreSpeed. Tests without it are skipped and counted.
[ -x "$(dirname "$0")/../target/peers/librespeed-cli" ] || "$(dirname "$0")/librespeed-cli.sh" ||
    echo "tests with the client of LibreSpeed will be skipped" >&2

# What checks metrics and alert rules. Tests without it are skipped and counted.
[ -x "$(dirname "$0")/../target/peers/promtool" ] || "$(dirname "$0")/promtool.sh" ||
    echo "the test with promtool will be skipped" >&2

# What builds, checks and tests the Python package. Its test is skipped and counted otherwise.
"$(dirname "$0")/python-package.sh" tools || echo "the test of the Python package will be skipped" >&2

# The broker of a fleet. Tests with it need it.
[ -x "$(dirname "$0")/../target/peers/nats-server" ] || "$(dirname "$0")/nats-server.sh" ||
    echo "tests with nats-server will fail" >&2

if ! command -v cargo >/dev/null; then
    echo "missing: Rust; install it from https://rustup.rs and try again" >&2
    exit 1
fi
