#!/usr/bin/env bash
# Tests the checksums and signature of `make dist` with keys that disappear: as users verify them, docs/guide/install.md.
set -euo pipefail
sums=$(cd "$(dirname "$0")" && pwd)/dist-sums.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir dist
echo one >dist/linerate-a
echo two >dist/linerate-b
for key in ours theirs; do ssh-keygen -q -t ed25519 -N '' -C "$key" -f "$key"; done
echo "releases@linerate $(cut -d ' ' -f 1,2 ours.pub)" >signers

fail() {
    echo "error: $1" >&2
    exit 1
}
verified() {
    ssh-keygen -Y verify -f signers -I releases@linerate -n linerate-release -s dist/SHA256SUMS.sig <dist/SHA256SUMS &>/dev/null &&
        (cd dist && sha256sum --check --strict --quiet SHA256SUMS &>/dev/null)
}

LINERATE_SIGNING_KEY=$work/ours "$sums" dist >/dev/null
[ "$(cut -d ' ' -f 3 dist/SHA256SUMS | xargs)" = 'linerate-a linerate-b' ] || fail 'not all files, or others, have a checksum'
verified || fail 'a good signature is refused'
rm dist/SHA256SUMS.sig
LINERATE_SIGNING_KEY=ours "$sums" dist >/dev/null || fail 'a key in the folder of the caller is not found'
verified || fail 'the signature with a key in the folder of the caller is refused'

echo changed >>dist/linerate-a
! verified || fail 'a changed file is accepted'
(cd dist && sha256sum linerate-a linerate-b >SHA256SUMS)
! verified || fail 'changed checksums are accepted'
LINERATE_SIGNING_KEY=$work/theirs "$sums" dist >/dev/null
! verified || fail 'the signature of somebody else is accepted'

said=$(env -u LINERATE_SIGNING_KEY "$sums" dist 2>&1)
[[ $said == *'NOT SIGNED'* ]] || fail 'nothing says that there is no signature'
[ ! -e dist/SHA256SUMS.sig ] || fail 'an old signature stays'
! LINERATE_SIGNING_KEY=$work/absent "$sums" dist &>/dev/null || fail 'a key that is not there is no error'
[ ! -e dist/SHA256SUMS.sig ] || fail 'there is a signature without a key'
echo 'checksums and signatures of releases: passed'
