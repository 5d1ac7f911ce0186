#!/usr/bin/env bash
# Puts programs of others that check what linerate writes and answers into a Python environment of their own,
# target/peers/python: DuckDB and pyarrow read exported tables, schemathesis tries the HTTP interface by its description,
# and prometheus_client reads its metrics. Nothing on this system changes, and root is not needed. What is there already
# stays.
set -euo pipefail

wanted=(duckdb==2.0.1 pyarrow==26.0.1 schemathesis==4.32.5 prometheus-client==0.26.0)
place=$(cd "$(dirname "$0")/.." && pwd)/target/peers/python
if [ "$(cat "$place/installed.txt" 2>/dev/null)" = "${wanted[*]}" ]; then
    exit 0
fi
python=$(command -v python3.11 || command -v python3) || {
    echo "no Python peers: this system has no python3" >&2
    exit 1
}
rm -rf "$place"
mkdir -p "$(dirname "$place")"
"$python" -m venv "$place"
"$place/bin/pip" install --quiet --disable-pip-version-check "${wanted[@]}"
"$place/bin/python" -c 'import duckdb, pyarrow, schemathesis, prometheus_client'
# Written last: the environment is complete.
echo "${wanted[*]}" | tee "$place/installed.txt"
