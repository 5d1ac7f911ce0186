#!/usr/bin/env bash
# Builds one static program: dist-build.sh ARCHITECTURE BUILD FILE, where ARCHITECTURE is x86_64 or aarch64, BUILD is
# full or core, and FILE is where it goes. The front end has to be built before (scripts/ui.sh build).
#
# The same source is meant to give the same file everywhere, which `make dist-check` compares: the tools have fixed versions,
# and neither the folder of the source nor any other path of this machine is in the result.
set -euo pipefail

arch=$1 build=$2 file=$(realpath -m "$3")
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
case $arch in x86_64 | aarch64) ;; *) echo "$arch: the architectures are x86_64 and aarch64" >&2 && exit 2 ;; esac
case $build in
full) features=() ;;
core) features=(--no-default-features) ;;
*) echo "$build: the builds are full and core" >&2 && exit 2 ;;
esac

zig=$(scripts/dist-tools.sh)
work=$top/target/dist
target=$arch-unknown-linux-musl
mkdir -p "$work"

export ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache

# Flags of the user are for other builds.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET CARGO_BUILD_RUSTFLAGS CFLAGS CXXFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
for variable in $(compgen -e CARGO_PROFILE_ || true); do unset "$variable"; done
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# The standard library is built along. That is a feature of cargo's nightly releases, hence the variable.
export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
standard_library=-Zbuild-std=std,panic_unwind

# The sources of packages are in folders whose names only cargo knows, so they have to be there before the paths are
# replaced: otherwise the program would depend on what was fetched for another build.
/usr/bin/cargo fetch --locked "$standard_library" --target "$target"
cargo_home=${CARGO_HOME:-$HOME/.cargo}
shopt -s nullglob
registries=("$cargo_home"/registry/src/*/)
[ "${#registries[@]}" -ne 0 ] || {
    echo "there are no sources of packages in $cargo_home/registry/src, where cargo should have put them" >&2
    exit 1
}

# The last rule that fits wins.
paths=("$HOME=/user" "$cargo_home=/cargo" "$top=/linerate" /usr/lib/rustlib/src/rust=/rust /usr/src=/rust-src)
for path in "${registries[@]}"; do paths+=("${path%/}=/crates"); done
rust_flags=(-C link-self-contained=no) c_flags=()
for path in "${paths[@]}"; do
    rust_flags+=("--remap-path-prefix=$path")
    c_flags+=("-ffile-prefix-map=$path")
done
separator=$(printf '\037')
CARGO_ENCODED_RUSTFLAGS=$(IFS=$separator && echo "${rust_flags[*]}")
export CARGO_ENCODED_RUSTFLAGS

# Build scripts call their compiler by one name, without arguments. Its flags are here too, as build scripts split a
# variable with flags at each blank, of which paths may have some.
compiler=$work/cc-$arch archiver=$work/ar
{
    printf '#!/usr/bin/env bash\nexec'
    printf ' %q' "$top/scripts/zig-cc.sh" "$zig" "$arch-linux-musl" "${c_flags[@]}"
    printf ' "$@"\n'
} >"$compiler"
printf '#!/usr/bin/env bash\nexec %q ar "$@"\n' "$zig" >"$archiver"
chmod +x "$compiler" "$archiver"
variable=${target//-/_}
export "CC_$variable=$compiler" "AR_$variable=$archiver" "CFLAGS_$variable="
export "CARGO_TARGET_${variable^^}_LINKER=$compiler"

/usr/bin/cargo build --locked --profile dist "$standard_library" --target "$target" --target-dir "$work/cargo" \
    --package linerate "${features[@]}"
mkdir -p "$(dirname "$file")"
cp "$work/cargo/$target/dist/linerate" "$file"
