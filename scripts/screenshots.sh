#!/usr/bin/env bash
# Pictures of the report pages and texts of the terminal, to look at: pages of the tests' fixtures and of short runs,
# and as root of bundled plans in the lab.
#
#   screenshots.sh [OUT]     OUT gets pages/, pictures/, web/ and terminal/; LINERATE names another program than the
#                            release build
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(realpath -m "${1:-${CARGO_TARGET_DIR:-target}/screenshots}")
seconds=${SCREENSHOT_SECONDS:-2}
server_pid=
fleet_server_pid=
flow_pid=
lab=
fleet=
captures=0
tmux=(tmux)

finish() {
    status=$?
    if [ "$captures" -gt 0 ]; then "${tmux[@]}" kill-server 2>/dev/null || true; fi
    for pid in $flow_pid $server_pid $fleet_server_pid; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    [ -z "$lab" ] || "$linerate" lab down "$lab" >/dev/null 2>&1 || true
    [ -z "$fleet" ] || "$linerate" fleet down --dir "$fleet" >/dev/null 2>&1 || true
    [ -z "$fleet" ] || rm -rf "${fleet%/*}"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

heading() { printf '\n== %s\n' "$1"; }

scripts/need.sh node:nodejs npm:npm chromium:chromium tmux:tmux pdftoppm:poppler-utils
heading 'build'
scripts/ui.sh build
if [ -z "${LINERATE:-}" ]; then
    ${CARGO:-cargo} build --release --package linerate
    LINERATE=${CARGO_TARGET_DIR:-target}/release/linerate
fi
linerate=$(realpath "$LINERATE")
rm -rf "$out"
mkdir -p "$out/pages" "$out/pictures" "$out/terminal"
export LINERATE_ARCHIVE=$out/runs.sqlite

heading 'a fleet'
# It measures while the other pictures are taken. Its folder is one that the user of PostgreSQL and NATS may enter.
scripts/nats-server.sh
fleet=$(mktemp -d /tmp/linerate-fleet.XXXXXX)/fleet
chmod 755 "${fleet%/*}"
env -u LINERATE_ARCHIVE "$linerate" fleet up --detach --dir "$fleet" --nats-server target/peers/nats-server

heading 'pages of fixtures'
# What the test finds is to be seen, so it does not end this script.
LINERATE_KEEP_PAGES=$out/pages ${CARGO:-cargo} test --quiet --package linerate-report --lib -- --ignored every_page_draws ||
    echo 'the pages do not pass their test'

heading 'pages of short runs'
"$linerate" serve --bind 127.0.0.1 --port 0 --web 127.0.0.1:0 2>"$out/server.log" &
server_pid=$!
for _ in $(seq 100); do
    grep -q '^listening on' "$out/server.log" && break
    sleep 0.1
done
address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$out/server.log" | head -n 1)
target=("${address%:*}" --port "${address##*:}")
page() { "$linerate" "${@:2}" --report "$out/pages/$1.html" >/dev/null || echo "$1: exit code $?"; }
page run-both test "${target[@]}" -t "$seconds"
page run-udp test "${target[@]}" -t "$seconds" --udp -b 50M --upload
repeats() { for number in 1 2 3 4 5 6; do printf '%s/%s-%s.json,' "$out" "$1" "$number"; done | sed 's/,$//'; }
for number in 1 2 3 4 5 6; do
    for streams in 1 4; do
        "$linerate" test "${target[@]}" --upload -t 0.5 -P "$streams" --json >"$out/$streams-$number.json" ||
            echo "repeat $number of $streams streams: exit code $?"
    done
done
page compare-streams compare "one=$(repeats 1)" "four=$(repeats 4)"
page run-sweep sweep "${target[@]}" --to 64K
if [ "$(id -u)" -eq 0 ]; then
    page plan-window run window-sweep --set test.duration=1s --set test.omit=0s --set repeats=2
    page plan-matrix run switch-matrix --set test.duration=1s --set repeats=1
fi

heading 'pictures'
node ui/e2e/screenshots.mjs "$out/pages" "$out/pictures"
if [ "$(id -u)" -eq 0 ]; then
    # A network for its page, with a flow that overloads one of its links as long as pictures are taken.
    lab=screenshots-$$
    "$linerate" lab up lag-2x1g --name "$lab" --set link.lag.rate=100M >/dev/null
    "$linerate" lab exec --lab "$lab" c -- "$linerate" serve 2>/dev/null &
    # The first attempt may find no server yet.
    "$linerate" lab exec --lab "$lab" a -- sh -c \
        'while :; do "$0" test c -u -b 150M -t 60 --upload --quiet --archive "$1" 2>/dev/null || sleep 1; done' \
        "$linerate" "$out/lab.sqlite" &
    flow_pid=$!
fi
LINERATE_ARCHIVE=$(cat "$fleet/archive") "$linerate" serve --bind 127.0.0.1 --port 0 --web 127.0.0.1:0 \
    2>"$out/fleet-server.log" &
fleet_server_pid=$!
for _ in $(seq 100); do
    grep -q '^pages at' "$out/fleet-server.log" && break
    sleep 0.1
done
pages_of() { sed -n 's/^pages at \(.*\)\/$/\1/p' "$1"; }
node ui/e2e/web-shots.mjs "$(pages_of "$out/server.log")" "$out/web" "$(pages_of "$out/fleet-server.log")"
if [ -n "$lab" ]; then
    "$linerate" lab down "$lab" >/dev/null
    lab=
fi

heading 'terminal'
# The text of a command in a terminal of this size, with everything that was scrolled out of sight.
terminal() {
    local name=$1 size=$2 done="$out/done"
    shift 2
    rm -f "$done"
    # A server of its own: the one before may still be ending.
    captures=$((captures + 1))
    tmux=(tmux -L "linerate-screenshots-$$-$captures" -f /dev/null)
    "${tmux[@]}" new-session -d -x "${size%x*}" -y "${size#*x}" \
        "$(printf '%q ' "$@"); echo \"exit code \$?\"; touch $(printf %q "$done"); sleep 3600"
    for _ in $(seq 600); do
        [ -e "$done" ] && break
        sleep 0.1
    done
    sleep 0.2
    "${tmux[@]}" capture-pane -p -S - >"$out/terminal/$name-$size.txt"
    "${tmux[@]}" kill-server
}
for size in 80x24 120x40; do
    terminal help "$size" "$linerate" --help
    terminal test "$size" "$linerate" test "${target[@]}" -t 1
    terminal show "$size" "$linerate" show
    terminal history "$size" "$linerate" history
    terminal sweep "$size" "$linerate" sweep "${target[@]}" --to 4K
    terminal plan "$size" "$linerate" plan window-sweep
    terminal envelope "$size" "$linerate" envelope --link 1G
    terminal doctor "$size" "$linerate" doctor
    terminal fleet-status "$size" "$linerate" fleet status --dir "$fleet"
    terminal mesh "$size" "$linerate" mesh --dir "$fleet"
    terminal agent-list "$size" "$linerate" agent list --dir "$fleet"
    terminal schedule-list "$size" "$linerate" schedule list --dir "$fleet"
    terminal schedule-why "$size" "$linerate" schedule why all.one.two --dir "$fleet"
done
echo "written: $out"
