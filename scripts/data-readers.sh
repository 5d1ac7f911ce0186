#!/usr/bin/env bash
# Puts DuckDB and pyarrow into a Python environment of their own, for the test that reads exported tables with them:
# target/peers/data-readers. Nothing on this system changes, and root is not needed.
set -euo pipefail

place=$(cd "$(dirname "$0")/.." && pwd)/target/peers/data-readers
python=$(command -v python3.11 || command -v python3) || {
    echo "no DuckDB and pyarrow: this system has no python3" >&2
    exit 1
}
rm -rf "$place"
mkdir -p "$(dirname "$place")"
"$python" -m venv "$place"
"$place/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1
# Written last: the environment is complete.
"$place/bin/python" -c 'import duckdb, pyarrow; print(f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}")' |
    tee "$place/versions.txt"
