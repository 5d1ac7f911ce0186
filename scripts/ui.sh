#!/usr/bin/env bash
# The front end: ui.sh checks, tests and builds it; `ui.sh build` only builds it. Package versions are those of
# the lock file.
set -euo pipefail
cd "$(dirname "$0")/../ui"

for program in node npm; do
    command -v "$program" >/dev/null || { echo "missing: $program; install Node.js 20.19 or newer and try again" >&2; exit 1; }
done
if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
    echo "Node.js $(node --version) is too old: install 20.19 or newer and try again" >&2
    exit 1
fi
# Do not fetch packages again if the lock file is the installed one.
if ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --no-fund --no-audit --loglevel=error
    cp package-lock.json node_modules/.installed
fi
if [ "${1:-}" != build ]; then
    npm run --silent check
    npm test --silent
fi
for page in report web worker; do
    npm exec --silent -- vite build --mode "$page" --logLevel warn --outDir node_modules/.built
done
# Keep the modification time of unchanged files, so that the program is not rebuilt unnecessarily.
for file in report.js report.css web.js web.css worker.js; do
    cmp -s "node_modules/.built/$file" "dist/$file" || cp "node_modules/.built/$file" "dist/$file"
done
