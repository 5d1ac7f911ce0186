#!/usr/bin/env bash
# The C compiler and linker of `make dist`: zig-cc.sh ZIG TARGET ARGUMENT…, where TARGET is zig's, such as
# x86_64-linux-musl. rustc and the build scripts of C libraries call it as they would call gcc; this removes what zig does
# not know, and names its own libraries.
set -euo pipefail

zig=$1 target=$2
shift 2
arguments=()
for argument in "$@"; do
    case $argument in
    # The target in the words of Rust, from the build scripts of C libraries.
    --target=* | -m64) ;;
    # Unwinding for panics that are caught: zig builds LLVM's, under this name.
    -lgcc_eh | -lgcc_s) arguments+=(-lunwind) ;;
    # Zig always adds its own.
    -lgcc | -lcompiler_rt) ;;
    *) arguments+=("$argument") ;;
    esac
done
exec "$zig" cc -target "$target" -g0 "${arguments[@]}"
