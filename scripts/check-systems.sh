#!/usr/bin/env bash
# Checks that the client side compiles for macOS and Windows: check-systems.sh [TARGET…]. Nothing is linked or run.
#
# rustup has the standard library of this system only. Debian's packages for web browsers have a compiler with the
# source of the standard library, so cargo compiles that first. The toolchain of the
# project stays the default.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without web, lab and app: see docs/design/2026-11-26-other-systems.md.
packages=(units model config proto compat theory plan emu sock engine control archive report runner)
targets=("$@")
[ $# -gt 0 ] || targets=(aarch64-apple-darwin x86_64-pc-windows-gnu)

compiler=/usr/bin/rustc
source=/usr/lib/rustlib/src/rust/library/std/Cargo.toml
# The library of Windows' system calls is made from a list of names, by dlltool.
"scripts/need.sh" "$compiler:rustc-web" x86_64-w64-mingw32-dlltool:binutils-mingw-w64-x86-64
if [ ! -e "$source" ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing: install this package and try again: rust-web-src" >&2
        exit 1
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rust-web-src
fi

# A check links nothing, so the C code of SQLite, zstd and ring is not compiled either: their build scripts get a
# compiler and an archiver that write empty files.
folder=${CARGO_TARGET_DIR:-$PWD/target}/systems
mkdir -p "$folder"
cat >"$folder/no-cc" <<'END'
#!/bin/sh
out= previous=
for word in "$@"; do
    [ "$previous" = -o ] && out=$word
    case $word in
    -E) echo clang && exit ;;
    -o?*) out=${word#-o} ;;
    *.a) out=${out:-$word} ;;
    esac
    previous=$word
done
[ -z "$out" ] || : >"$out"
END
chmod +x "$folder/no-cc"

# In a folder of its own, so that the other builds of the project are not repeated for another compiler. Warnings of
# our packages are errors.
export RUSTC=$compiler RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$folder CARGO_PROFILE_DEV_DEBUG=0 CARGO_BUILD_WARNINGS=deny
for target in "${targets[@]}"; do
    name=${target//-/_}
    export "CC_$name=$folder/no-cc" "AR_$name=$folder/no-cc"
    echo "checking ${#packages[@]} packages for $target"
    cargo check --quiet -Zwarnings -Zbuild-std=std,panic_unwind --target "$target" "${packages[@]/#/-plinerate-}"
done
