#!/usr/bin/env bash
# The Python package in bindings/python:
#
#   python-package.sh tools                   install what the other commands need, unless it is there
#   python-package.sh generate                write the files that docs/reference determines
#   python-package.sh check                   check that they are up to date; formatting, lints and types
#   python-package.sh wheel [PROGRAM [DIR]]   build a wheel with this program, into target/wheels or DIR
#   python-package.sh test PROGRAM            check, build a wheel, install it and test it
#
# Tools and the installed package have Python environments of their own below target/peers. Nothing on this system
# changes, and root is not needed.
set -euo pipefail
cd "$(dirname "$0")/.."

# What builds and checks the package, and the versions with which it is tested.
tools=(hatchling==1.33.0 datamodel-code-generator==0.89.0 ruff==0.17.6 mypy==2.4.1 pandas-stubs==3.1.0.261029)
tested=(cattrs==26.2.1 polars==2.1.0 pandas==3.1.1 pytest==9.2.0)
package=bindings/python
peers=$PWD/target/peers
tools_place=$peers/python-package-tools
tested_place=$peers/python-package
# Nothing is left next to the sources.
export PYTHONDONTWRITEBYTECODE=1 RUFF_CACHE_DIR=$tools_place/ruff MYPY_CACHE_DIR=$tools_place/mypy

# environment FOLDER REQUIREMENT…: a Python environment with these packages. What is there already stays.
environment() {
    local place=$1
    shift
    if [ "$(cat "$place/installed.txt" 2>/dev/null)" = "$*" ]; then
        return
    fi
    local python
    python=$(command -v python3.11 || command -v python3) || {
        echo "the Python package is not tested: this system has no python3" >&2
        return 1
    }
    rm -rf "$place"
    mkdir -p "$(dirname "$place")"
    "$python" -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check "$@"
    # Written last: the environment is complete.
    echo "$*" >"$place/installed.txt"
}

tools() {
    environment "$tools_place" "${tools[@]}" "${tested[@]}"
    environment "$tested_place" "${tested[@]}"
}

check() {
    local bin=$tools_place/bin
    (
        cd "$package"
        "$bin/python" generate.py --check
        "$bin/ruff" format --quiet --check .
        "$bin/ruff" check --quiet .
        "$bin/mypy" --no-error-summary
    )
}

# The program that a release contains, or whatever there is.
program() {
    local static=dist/linerate-x86_64-linux-musl
    if [ -x "$static" ]; then
        echo "$static"
    elif [ -x target/release/linerate ]; then
        echo "NOTE: there is no $static (make dist), so the wheel contains target/release/linerate. It only runs on" \
            "systems whose glibc is as new as that of this one." >&2
        echo target/release/linerate
    else
        echo "no program for the wheel: run make dist or cargo build --release first, or name one" >&2
        return 1
    fi
}

# wheel PROGRAM DIR: prints the path of the wheel. The same program and sources make the same file.
wheel() {
    mkdir -p "$2"
    local folder
    folder=$(mktemp -d)
    export LINERATE_PROGRAM SOURCE_DATE_EPOCH
    LINERATE_PROGRAM=$(realpath "$1")
    # `make dist` leaves the licences of what is in a static program next to it.
    local licences
    licences=$(dirname "$LINERATE_PROGRAM")/THIRD-PARTY.txt
    if [ -z "${LINERATE_LICENCES:-}" ] && [ -e "$licences" ]; then
        export LINERATE_LICENCES=$licences
    fi
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1700000000)}
    "$tools_place/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        --wheel-dir "$folder" "$package"
    local name
    name=$(cd "$folder" && echo linerate-*.whl)
    mv "$folder/$name" "$2"
    rmdir "$folder"
    echo "$2/$name"
}

# run_tests PROGRAM: with the installed wheel, not with the sources.
run_tests() {
    local folder built
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$folder'" EXIT
    echo 'licences of others' >"$folder/THIRD-PARTY.txt"
    built=$(LINERATE_LICENCES=$folder/THIRD-PARTY.txt wheel "$1" "$folder")
    "$tested_place/bin/pip" uninstall --quiet --yes linerate 2>/dev/null
    "$tested_place/bin/pip" install --quiet --disable-pip-version-check "$built[polars,pandas]"
    "$tested_place/bin/python" -m pytest -q "$package/tests"
}

case "${1:-}" in
tools) tools ;;
generate)
    tools
    "$tools_place/bin/python" "$package/generate.py"
    ;;
check)
    tools
    check
    ;;
wheel)
    tools
    named=${2:-$(program)}
    wheel "$named" "${3:-target/wheels}"
    ;;
test)
    : "${2:?name the program: python-package.sh test PROGRAM}"
    tools
    check
    run_tests "$2"
    ;;
*)
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
esac
