#!/usr/bin/env bash
# Writes SHA256SUMS of all files in a folder, and SHA256SUMS.sig with the SSH key that LINERATE_SIGNING_KEY names:
# dist-sums.sh FOLDER. Without a key, the sums are unsigned.
set -euo pipefail

# The path of the key is one of the caller's folder.
key=${LINERATE_SIGNING_KEY:+$(realpath -m "$LINERATE_SIGNING_KEY")}
cd "$1"

# A signature of other sums would be worse than none.
rm -f SHA256SUMS SHA256SUMS.sig
find . -maxdepth 1 -type f ! -name '.*' -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >.sums
mv .sums SHA256SUMS
if [ -n "$key" ]; then
    [ -e "$key" ] || { echo "LINERATE_SIGNING_KEY: there is no file $LINERATE_SIGNING_KEY" >&2 && exit 1; }
    ssh-keygen -q -Y sign -f "$key" -n linerate-release SHA256SUMS
    echo "signed: $1/SHA256SUMS.sig"
else
    echo "NOT SIGNED: set LINERATE_SIGNING_KEY to the file of an SSH key to sign $1/SHA256SUMS" >&2
fi
