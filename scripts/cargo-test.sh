#!/usr/bin/env bash
# cargo test with these arguments. After a failure, what failed and why stands once more at the end of the output: the
# tests of dozens of programs come before and after it.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/tmp"
output=$(mktemp "$target/tmp/test-output.XXXXXX")
trap 'rm -f "$output"' EXIT
if cargo test "$@" 2>&1 | tee "$output"; then
    exit 0
fi
printf '\n== what failed\n'
# Messages of tests, to the next one or to the list of names; and lines of test programs with a form of their own.
awk '
    /^---- .* stdout ----$/ { shown = 1; lines = 0 }
    /^(failures:|test result: )/ { shown = 0 }
    / FAILED: / { shown = 1; lines = 0 }
    /^error(\[|: (could not compile|test failed|[0-9]+ targets? failed))/ { shown = 0; print }
    shown && ++lines <= 40 { print substr($0, 1, 4000) }
    /^    `-p / { print }
' "$output"
exit 1
