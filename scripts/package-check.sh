#!/usr/bin/env bash
# Tries the Debian package as root: lintian, a fresh root in which it is installed, measured against and purged, and
# the units of its service. Then it tries in that root what `make demo` and `make test` install to compile with. Needs
# dist/linerate_VERSION_amd64.deb (make dist).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
    echo "start this as root: it makes a root directory with other users' files" >&2
    exit 1
fi
deb=$(ls dist/linerate_*_amd64.deb)
scripts/need.sh lintian:lintian mmdebstrap:mmdebstrap systemd-analyze:systemd setpriv:util-linux unshare:util-linux

echo "== lintian"
# A static program is what the package promises.
lintian --fail-on error,warning --suppress-tags statically-linked-binary,initial-upload-closes-no-bugs "$deb"

work=$(mktemp -d)
root=$work/root
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

echo "== a fresh root"
mmdebstrap --quiet --variant=minbase --include=systemd --mode=root bookworm "$root" >"$work/mmdebstrap.log" 2>&1 ||
    { cat "$work/mmdebstrap.log" >&2; exit 1; }
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev \) -prune -o -print | sort); }
files >"$work/before"
# What dpkg itself remembers is not of the package.
noise='^\./var/(lib/dpkg/|log/|cache/|lib/systemd)'

began=$(date +%s)
cp "$deb" "$root/package.deb"
chroot "$root" dpkg -i /package.deb >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; exit 1; }
rm "$root/package.deb"
echo "== licences and changes"
documents=usr/share/doc/linerate
chroot "$root" dpkg -L linerate >"$work/list"
for file in copyright THIRD-PARTY.txt.gz changelog.gz; do
    grep -qx "/$documents/$file" "$work/list" || { echo "the package has no $file" >&2; exit 1; }
done
zcat "$root/$documents/THIRD-PARTY.txt.gz" >"$work/licences"
for part in musl SQLite ring; do
    grep -qw "$part" "$root/$documents/copyright" || { echo "the copyright does not name $part" >&2; exit 1; }
    grep -qw "^$part" "$work/licences" || { echo "THIRD-PARTY.txt does not name $part" >&2; exit 1; }
done

echo "== units"
# The manual page in the root is not that of this machine.
mistakes=$(systemd-analyze verify --root="$root" linerate.service linerate.socket 2>&1 | grep -v 'man linerate-serve' || true)
[ -z "$mistakes" ] || { echo "$mistakes" >&2; exit 1; }
systemd-analyze security --offline=true --root="$root" --threshold=20 linerate.service | tail -1

echo "== started as the unit would"
chroot "$root" linerate serve --config /etc/linerate/linerate.toml --check-config
install -d -o 65533 -g 65533 -m 700 "$root/var/lib/linerate" "$root/run/linerate-server"
# In a network of its own, which has only the loopback interface.
unshare --net sh -c 'ip link set lo up; exec "$@"' sh \
    chroot "$root" setpriv --reuid 65533 --regid 65533 --clear-groups --bounding-set=-all --no-new-privs \
    env XDG_DATA_HOME=/var/lib LINERATE_RUN=/run/linerate-server \
    /usr/bin/linerate serve --config /etc/linerate/linerate.toml 2>"$work/serve.log" &
server=$!
for _ in $(seq 100); do
    grep -q 'listening on' "$work/serve.log" && break
    kill -0 "$server" || { cat "$work/serve.log" >&2; exit 1; }
    sleep 0.1
done
nsenter --net="/proc/$server/ns/net" chroot "$root" linerate test 127.0.0.1 -t 1 --archive :memory: >"$work/test.log" 2>&1 ||
    { cat "$work/test.log" "$work/serve.log" >&2; exit 1; }
echo "from the package to the first result: $(($(date +%s) - began)) s"
sed -n 1,12p "$work/test.log"
kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
[ "$code" -eq 143 ] || { echo "the server ended with $code" >&2; exit 1; }
for page in linerate linerate-serve linerate-lab-up; do
    [ -s "$root/usr/share/man/man1/$page.1.gz" ] || { echo "there is no page $page(1)" >&2; exit 1; }
done

echo "== removed and purged"
printf '# changed\n' >>"$root/etc/linerate/linerate.toml"
chroot "$root" dpkg -r linerate >"$work/remove.log" 2>&1
grep -qx '# changed' "$root/etc/linerate/linerate.toml" || { echo "removing has deleted the configuration" >&2; exit 1; }
chroot "$root" dpkg -P linerate >>"$work/remove.log" 2>&1 || { cat "$work/remove.log" >&2; exit 1; }
files >"$work/after"
if diff <(grep -Ev "$noise" "$work/before") <(grep -Ev "$noise" "$work/after"); then
    echo "nothing is left"
else
    echo "the purge left files" >&2
    exit 1
fi

echo "== what make demo and make test compile with, in the same root"
# The demo ends after it has installed what it needs, as Rust is no part of that.
mkdir -p "$root/linerate/scripts"
cp scripts/{demo,need}.sh "$root/linerate/scripts"
# With the name servers and the settings of apt, such as a proxy, of this machine.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d"
chroot "$root" /linerate/scripts/demo.sh >"$work/demo.log" 2>&1 || true
grep -q 'missing: Rust' "$work/demo.log" || { cat "$work/demo.log" >&2; exit 1; }
chroot "$root" /linerate/scripts/need.sh python3-venv:python3-venv >"$work/need.log" 2>&1 || { cat "$work/need.log" >&2; exit 1; }
printf '#include <stdio.h>\nint main(void) { return puts("compiled") < 0; }\n' >"$root/linerate/program.c"
chroot "$root" sh -c 'cd /linerate && cc -o program program.c && ./program && python3 -m venv environment &&
    environment/bin/python -m pip --version' || { cat "$work/demo.log" >&2; exit 1; }

echo "== size"
bytes=$(stat -c %s "$deb")
echo "$deb: $bytes bytes"
[ "$bytes" -le 5000000 ] || { echo "the package is larger than 5 MB" >&2; exit 1; }
