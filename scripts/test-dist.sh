#!/usr/bin/env bash
# Tests what `make dist`, `make dist-check` and `make container` do around the builds, with stand-ins for what takes long:
# compilers, programs and images. All paths have blanks.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)

users_cargo_home=${CARGO_HOME:-$HOME/.cargo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SEEN=$work/seen.txt SOURCE_DATE_EPOCH=1700000000 CARGO_HOME="$work/cargo home"
unset LINERATE_SIGNING_KEY ARCHITECTURES BUILDS REBUILD
mkdir "$CARGO_HOME"
fail() {
    echo "error: $1" >&2
    [ ! -e "$work/output.txt" ] || sed 's/^/  /' "$work/output.txt" >&2
    exit 1
}
# stub FILE LINE…: a program.
stub() {
    local file=$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' '#!/bin/sh' "$@" >"$file"
    chmod +x "$file"
}
# run COMMAND…: with programs of "$bin" in front of those of the system, started elsewhere. What it says is in output.txt.
run() { (cd "$work" && : >"$SEEN" && PATH=$bin:$PATH "$@" &>output.txt); }
said() { grep -qF -- "$1" "$work/output.txt"; }

# sources NAME: a copy of the scripts in a folder of this name, in which compiling takes no time. Sets $copy and $bin.
sources() {
    copy="$work/$1" bin="$work/$1/stand ins"
    mkdir -p "$copy"
    cp -r "$top"/{scripts,packaging,Cargo.toml,CHANGELOG.md,LICENSE-MIT,.gitignore} "$copy"
    stub "$copy/scripts/need.sh" 'exit 0'
    stub "$copy/scripts/ui.sh" 'exit 0'
    stub "$copy/scripts/dist-tools.sh" "echo '$bin/zig'"
    stub "$copy/scripts/third-party.py" "printf '%s\\n' musl SQLite ring preact \"Rust's standard library\" >\"\$1\""
    stub "$copy/scripts/package-deb.sh" '[ -x dist/linerate-x86_64-linux-musl ] && echo deb >dist/linerate_0_amd64.deb'
    stub "$copy/scripts/dist-build.sh" \
        'echo "built in: $PWD, cargo: $CARGO_HOME, key: ${LINERATE_SIGNING_KEY-none}" >>"$SEEN"' \
        '[ ! -e "$CARGO_HOME/config.toml" ] || cat "$CARGO_HOME/config.toml" >>"$SEEN"' \
        'echo "$1 $2" >"$3"' 'chmod +x "$3"'
    mkdir "$bin"
}
sums() { (cd "$copy/dist" && sha256sum --check --strict --quiet SHA256SUMS && cut -d ' ' -f 3 SHA256SUMS | xargs); }

dist_of_some_programs() {
    sources 'some programs'
    BUILDS=core run "$copy/scripts/dist.sh" || fail 'make dist needs the full programs'
    [ "$(sums)" = 'THIRD-PARTY.txt linerate-core-aarch64-linux-musl linerate-core-x86_64-linux-musl' ] ||
        fail 'make dist has not the checksums of the small programs alone'
    ARCHITECTURES=aarch64 run "$copy/scripts/dist.sh" || fail 'make dist needs the programs for x86-64'
    [ "$(sums)" = 'THIRD-PARTY.txt linerate-aarch64-linux-musl linerate-core-aarch64-linux-musl' ] ||
        fail 'make dist has not the checksums of the programs for aarch64 alone'
    ARCHITECTURES=x86_64 BUILDS=full run "$copy/scripts/dist.sh" || fail 'make dist fails for one program'
    [ "$(sums)" = 'THIRD-PARTY.txt linerate-x86_64-linux-musl linerate_0_amd64.deb' ] ||
        fail 'make dist has not made the package'
}

dist_with_a_key() {
    sources 'with a key'
    ssh-keygen -q -t ed25519 -N '' -f "$work/ours"
    ! LINERATE_SIGNING_KEY=absent run "$copy/scripts/dist.sh" || fail 'a key that is not there is no error'
    [ ! -s "$SEEN" ] || fail 'make dist builds before it looks for the key'
    # Relative to the folder in which `run` starts it.
    LINERATE_SIGNING_KEY=ours run "$copy/scripts/dist.sh" || fail 'a key in the folder of the caller is not found'
    [ -s "$copy/dist/SHA256SUMS.sig" ] || fail 'make dist has not signed'
    grep -q 'key: none' "$SEEN" && ! grep -q 'key: .*ours' "$SEEN" || fail 'the builds get the path of the key'
}

package_on_another_processor() {
    sources 'another processor'
    cp "$top/scripts/package-deb.sh" "$copy/scripts"
    stub "$bin/uname" 'echo aarch64'
    stub "$bin/readelf" 'exit 0'
    stub "$copy/target/tools/bin/cargo-deb" '[ "$1" != --version ] || echo 3.8.0'
    stub "$copy/dist/linerate-x86_64-linux-musl" 'exit 126'
    stub "$copy/dist/linerate-aarch64-linux-musl" 'echo "$@"'
    echo licences >"$copy/dist/THIRD-PARTY.txt"
    # Its last command lists the package, which the stand-in does not make.
    ! run "$copy/scripts/package-deb.sh" || fail 'there is a package'
    said 'linerate_' || fail 'package-deb.sh did not come to its end'
    [ "$(cat "$copy/target/package/man/linerate.1")" = man ] || fail 'manual pages are not those of the program that runs here'
    cmp -s "$copy/target/package/linerate" "$copy/dist/linerate-x86_64-linux-musl" || fail 'another program is packaged'
    [ "$(zcat "$copy/target/package/THIRD-PARTY.txt.gz")" = licences ] || fail 'the package has no licences of others'
    zcat "$copy/target/package/changelog.gz" | cmp -s - "$copy/CHANGELOG.md" || fail 'the package has no CHANGELOG.md'
}

paths_of_a_build() {
    sources 'paths of a build'
    sed "s#/usr/bin/cargo#'$bin/cargo'#" "$top/scripts/dist-build.sh" >"$copy/scripts/dist-build.sh"
    stub "$bin/zig" "printf '%s\\n' \"\$@\" >'$work/zig.txt'"
    # As with an empty cache: the folder is there after the sources were fetched.
    stub "$bin/cargo" \
        'case $1 in' \
        'fetch) [ -n "${FETCHES_NOTHING:-}" ] || mkdir -p "$CARGO_HOME/registry/src/registry-1234" ;;' \
        'build)' \
        "  printf '%s' \"\$CARGO_ENCODED_RUSTFLAGS\" | tr '\\037' '\\n' >'$work/rust.txt'" \
        '  "$CC_x86_64_unknown_linux_musl" -c file.c' \
        '  while [ "$1" != --target-dir ]; do shift; done' \
        '  mkdir -p "$2/x86_64-unknown-linux-musl/dist" && echo >"$2/x86_64-unknown-linux-musl/dist/linerate" ;;' \
        'esac'
    ! FETCHES_NOTHING=1 run "$copy/scripts/dist-build.sh" x86_64 full out || fail 'sources without a folder are no error'
    said 'no sources of packages' || fail 'the message does not say that the sources are missing'
    run "$copy/scripts/dist-build.sh" x86_64 full out || fail 'dist-build.sh fails'
    [ -e "$work/out" ] || fail 'dist-build.sh leaves no program'
    grep -qxF -- "--remap-path-prefix=$CARGO_HOME/registry/src/registry-1234=/crates" "$work/rust.txt" ||
        fail 'the program names the registry if its sources were fetched by this build'
    for file in rust zig; do
        [ "$(grep -cE -- "prefix(-map)?=$copy=/linerate\$" "$work/$file.txt")" -eq 1 ] ||
            fail "a path with blanks does not reach the compiler ($file.txt)"
    done
    grep -qxF -- "-ffile-prefix-map=$CARGO_HOME/registry/src/registry-1234=/crates" "$work/zig.txt" ||
        fail 'C code names the registry if its sources were fetched by this build'
}

# The licences of what is really compiled, with other libraries of C and Rust than those of the build.
licences_of_everything() {
    local rust=$work/rust zig=$work/zig part
    bin=$work/none
    mkdir -p "$rust/library/vendor/part-1.0" "$zig/lib/libc/musl" "$zig/lib/libunwind"
    echo 'Copyright of Rust' >"$rust/COPYRIGHT"
    printf '%s\n' 'name = "part"' 'version = "1.0"' 'license = "MIT/Apache-2.0"' >"$rust/library/vendor/part-1.0/Cargo.toml"
    echo 'Copyright of zig' >"$zig/LICENSE"
    echo 'Copyright of LLVM' >"$zig/lib/libunwind/LICENSE.TXT"
    echo 'Copyright of musl' >"$zig/lib/libc/musl/COPYRIGHT"
    licences=("$top/scripts/third-party.py" "$work/licences.txt" --zig "$zig" --rust "$rust")
    CARGO_HOME=$users_cargo_home run "${licences[@]}" || fail 'the licences cannot be written'
    for part in 'linerate: ' 'musl, ' 'compiler_rt ' 'libunwind ' "Rust's " 'part 1.0: MIT OR Apache-2.0 [[]1]' \
        'SQLite [0-9]' 'ring [0-9]' 'zstd-sys [0-9]' 'preact [0-9]' 'Copyright of Rust' 'Copyright of zig' 'Copyright of musl' \
        'Copyright of LLVM' \
        'UNICODE LICENSE V3' 'Redistribution and use in source and binary forms'; do
        grep -q "^$part" "$work/licences.txt" || fail "the licences do not name $part"
    done
    ! grep -F "$top" "$work/licences.txt" || fail 'the licences name a folder of this machine'
    ! grep -F "$users_cargo_home" "$work/licences.txt" || fail 'the licences name a folder of this machine'
    # A part that has to have a text, and has none.
    sed -i 's#MIT/Apache-2.0#MIT#' "$rust/library/vendor/part-1.0/Cargo.toml"
    ! CARGO_HOME=$users_cargo_home run "${licences[@]}" || fail 'a licence without its text is no error'
    said 'no text of the licence of part 1.0 (MIT)' || fail 'the message does not name the part without a text'
}

# A program that only says what dist-check.sh waits for, in place of chroot(8), which gets a root and a program.
stub_chroot() {
    stub "$bin/chroot" 'case $3 in' \
        'serve) echo "listening on 127.0.0.1:1" >&2; exec sleep 60 ;;' \
        "test) echo '{\"flows\":[{\"name\":\"a\",\"receiver\":{\"bytes\":1}},{\"name\":\"b\",\"receiver\":{\"bytes\":1}}]}' ;;" \
        "history) echo '{\"runs\":[1]}' ;;" 'esac'
    stub "$bin/unshare" 'shift; exec "$@"'
    stub "$bin/readelf" 'exit 0'
    stub "$bin/uname" 'echo x86_64'
    stub "$bin/cargo" 'exit 0'
}

check_of_too_large_programs() {
    sources 'too large'
    stub_chroot
    export ARCHITECTURES=x86_64 BUILDS=full REBUILD=no
    run "$copy/scripts/dist.sh" || fail 'make dist fails for one program'
    run "$copy/scripts/dist-check.sh" || fail 'make dist-check refuses good files'
    truncate -s 14000001 "$copy/dist/linerate-x86_64-linux-musl"
    run "$copy/scripts/dist-sums.sh" "$copy/dist"
    ! run "$copy/scripts/dist-check.sh" || fail 'a program that is too large is no error'
    said 'too large: dist/linerate-x86_64-linux-musl' || fail 'the message does not name the program that is too large'
    said 'dist/SHA256SUMS fits' || fail 'nothing is checked after a program that is too large'
    echo /cargo/registry/src/registry-1234/ring/lib.rs >"$copy/dist/linerate-x86_64-linux-musl"
    ! run "$copy/scripts/dist-check.sh" || fail 'a program may name folders of the registry'
    said 'names the registry' || fail 'the message does not say that the program names the registry'
    unset ARCHITECTURES BUILDS REBUILD
}

check_with_a_second_build() {
    sources 'second build'
    stub_chroot
    git -C "$copy" init --quiet
    echo '# our registry' >"$CARGO_HOME/config.toml"
    export ARCHITECTURES=x86_64
    for builds in core 'full core'; do
        export BUILDS=$builds
        run "$copy/scripts/dist.sh" || fail "make dist fails for $BUILDS"
        run "$copy/scripts/dist-check.sh" || fail "make dist-check fails for $BUILDS"
        for name in $(sums); do
            said "  $name" || fail "make dist-check does not compare $name"
        done
        grep -q 'built in: .* .*, cargo: .*/cargo-home,' "$SEEN" ||
            fail 'the second build is in no folder with a blank, or has the cache of the first'
        grep -qx '# our registry' "$SEEN" || fail 'the second build has lost the registry of the user'
    done
    unset ARCHITECTURES BUILDS
}

image_that_is_too_large() {
    sources image
    stub "$bin/uname" 'echo another'
    mkdir -p "$copy/dist" "$work/image root"
    touch "$copy/dist/"{linerate-x86_64-linux-musl,THIRD-PARTY.txt} "$work/image root/"{linerate,THIRD-PARTY.txt}
    local config='{"Docker":{"config":{"User":"65532:65532","Entrypoint":["/linerate"],"Cmd":["serve"]}}}'
    stub "$bin/buildah" 'shift 6' 'case $1 in' \
        'push) file=${4#docker-archive:}; truncate -s "$SIZE" "${file%%:*}" ;;' \
        "inspect) echo '$config' ;;" 'from) echo container ;;' "mount) echo '$work/image root' ;;" 'esac'
    SIZE=15000000 run "$copy/scripts/container.sh" || fail 'make container refuses a good image'
    ! SIZE=15000001 run "$copy/scripts/container.sh" || fail 'an image that is too large is no error'
    said 'not run' && said 'too large' || fail 'an image that is too large is not tried'
}

dist_of_some_programs
dist_with_a_key
package_on_another_processor
paths_of_a_build
licences_of_everything
check_of_too_large_programs
check_with_a_second_build
image_that_is_too_large
echo 'the scripts of releases: passed'
