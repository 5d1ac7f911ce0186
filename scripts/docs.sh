#!/usr/bin/env bash
# The documentation as web pages, target/book: the pages of docs/ and those at the top of the sources, which they link
# to. `cargo xtask tidy` checks the links between pages; this checks that the built pages need no other host.
#
# If `make screenshots` was run before, a page has its pictures.
#
#   docs.sh [OUT]    OUT gets the pages instead
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$(realpath -m "${1:-$target/book}")
mdbook=$target/tools/bin/mdbook

if [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
    echo "building mdbook $version, once"
    CARGO_PROFILE_RELEASE_LTO=off nice -n 10 cargo install --quiet mdbook --version "$version" --locked --force \
        --no-default-features --features search --root "$target/tools"
fi

# Links go from docs/ to the pages next to it, so the book has the layout of the sources.
work=$target/book-work
rm -rf "$work" "$out"
mkdir -p "$work/src"
cp docs/book.toml docs/site.css "$work"
cp ./*.md "$work/src"
cp -r docs "$work/src/docs"
rm "$work/src/docs/"{book.toml,site.css,SUMMARY.md}

# Pictures are of this version, or there are none: `make screenshots` takes them.
shots=$target/screenshots
pictures() {
    while IFS='|' read -r file title; do
        [ -e "$shots/$file" ] || continue
        cp "$shots/$file" "$work/src/docs/pictures"
        printf '\n## %s\n\n![%s](%s)\n' "$title" "$title" "$(basename "$file")"
    done <<'LIST'
pictures/run-both-1280-light-first.png|The report of a run
pictures/run-sweep-1280-light-first.png|The report of a series over message sizes
pictures/plan-window-1280-light-first.png|The report of a plan
pictures/compare-streams-1280-light-first.png|A comparison
web/laptop-start-light.png|Web pages: start a test
web/laptop-live-light.png|Web pages: a test as it runs
web/laptop-history-light.png|Web pages: the archive
web/kiosk-result-dark.png|Web pages: the screen that nobody touches
LIST
}
if [ -d "$shots/pictures" ]; then
    mkdir "$work/src/docs/pictures"
    {
        printf '# Pictures\n\nReports ([guide](../guide/report.md)) and web pages ([guide](../guide/web.md)) of this version.\n'
        pictures
    } >"$work/src/docs/pictures/README.md"
fi

# Design notes are listed by their names, which begin with their dates.
{
    sed 's#](#](docs/#; s#(docs/\.\./#(#' docs/SUMMARY.md
    [ ! -e "$work/src/docs/pictures" ] || printf -- '- [Pictures](docs/pictures/README.md)\n'
    printf -- '- [Design notes](docs/design/README.md)\n'
    for note in docs/design/*.md; do
        printf -- '  - [%s](%s)\n' "$(sed -n 's/^# //p; /^# /q' "$note")" "$note"
    done
} >"$work/src/SUMMARY.md"
{
    printf '# Design notes\n\nWhy linerate is built as it is: what was decided, and what was rejected.\n\n'
    for note in docs/design/*.md; do
        printf -- '- %s: [%s](%s)\n' "$(basename "$note" | cut -c 1-10)" \
            "$(sed -n 's/^# //p; /^# /q' "$note")" "$(basename "$note")"
    done
} >"$work/src/docs/design/README.md"

"$mdbook" build --dest-dir "$out" "$work"

# Links to other sites are for readers; pages must not load anything from them.
loads='<(script|img|link|iframe|source|video|audio)[^>]*(src|href)="(https?:)?//|@import|url\(["'\'']?(https?:)?//'
if grep -rnoE --include='*.html' --include='*.css' "$loads" "$out"; then
    echo "pages of the book load something from another host, see above" >&2
    exit 1
fi
echo "written: $out/index.html"
