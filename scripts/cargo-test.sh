#!/usr/bin/env bash
# cargo test with these arguments. After a failure, what failed and why is repeated at the end of the output: the
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
# What a test has printed, up to the next one or to the list of names: its beginning, and its end with the message. Lines of
# test programs with a form of their own, errors of the compiler, and programs that a signal has ended.
awk '
    function flush(  line) {
        for (line = 1; line <= count; line++) {
            if (line == 6 && count > 50) { print "…"; line = count - 40 }
            print substr(block[line], 1, 4000)
        }
        count = 0
        kept = 0
    }
    /^---- .* stdout ----$/ { flush(); kept = 1 }
    /^(failures:|test result: )/ { flush() }
    / FAILED: / { flush(); kept = 1 }
    /^error(\[|: (could not compile|test failed|[0-9]+ targets? failed))/ { flush(); kept = 2 }
    kept == 2 && /^$/ { flush() }
    kept { block[++count] = $0 }
    !kept && /process didn.t exit successfully|^    `-p / { print }
    END { flush() }
' "$output"
exit 1
