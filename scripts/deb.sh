#!/usr/bin/env bash
# Builds target/millrace_VERSION_ARCHITECTURE.deb from what scripts/install.sh installs.
# PROFILE as for scripts/install.sh; OUT is the folder of the package, target by default, which has one package afterwards.
# VERSION: by default that of Cargo.toml, the number of commits, and the last one, so that a newer state is an upgrade.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${PROFILE:-release}
out=${OUT:-target}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if [ -n "${VERSION:-}" ]; then
    version=$VERSION
elif commit=$(git rev-parse --short HEAD 2>/dev/null); then
    version=$version+$(git rev-list --count HEAD).g$commit
fi
architecture=$(dpkg --print-architecture)
# Whoever builds packages for others names themselves by Debian's variables.
maintainer="${DEBFULLNAME:-Millrace} <${DEBEMAIL:-millrace@example.org}>"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

DESTDIR=$root PREFIX=/usr PROFILE=$profile scripts/install.sh >/dev/null

# Debian's places, where they differ from those of other systems.
install -d "$root/usr/share/zsh/vendor-completions" "$root/DEBIAN"
mv "$root/usr/share/zsh/site-functions/_millrace" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
doc=$root/usr/share/doc/millrace
mv "$doc/LICENSE" "$doc/copyright"
printf 'millrace (%s) unstable; urgency=low\n\n  * The state of the repository at %s.\n\n -- %s  %s\n' \
    "$version" "$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')" "$maintainer" "$(date -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}")" |
    gzip -9n >"$doc/changelog.gz"

# Shared libraries as the command needs them: dpkg-shlibdeps reads them from the program, and wants a control file.
install -d "$work/debian"
printf 'Source: millrace\n\nPackage: millrace\nArchitecture: %s\n' "$architecture" >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "$root/usr/bin/millrace" | sed -n 's/^shlibs:Depends=//p')
if [ -z "$libraries" ]; then
    echo "deb: dpkg-shlibdeps names no libraries of $root/usr/bin/millrace" >&2
    exit 1
fi
# clang compiles functions when they are run; libbpf-dev and linux-libc-dev have the headers of the XDP dialect;
# systemd or adduser makes the service's user. Guests of DPDK and captures are the user's choice.
depends="$libraries, clang-19 | clang-18 | clang-20 | clang (>= 1:18), libbpf-dev, linux-libc-dev, libsodium23, adduser | systemd"

cat >"$root/DEBIAN/control" <<CONTROL
Package: millrace
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Suggests: iproute2, tcpdump
Section: net
Priority: optional
Description: network functions written for one packet at a time
 Millrace proves that a network function written as sequential C is safe, works
 out how it can use many cores, compiles it to native code for bursts of
 packets, and verifies the parallel run against the sequential one. XDP
 programs run as they are, and unmodified programs as guests in a chain.
 .
 The package has the command, the bundled functions, headers for authors, and
 the service millrace@NAME for a chain file /etc/millrace/NAME.toml.
CONTROL
(cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root"/DEBIAN/{control,conffiles,md5sums}
find "$root" -type d -exec chmod 755 {} +

# The page for operators names it by a pattern.
mkdir -p "$out"
rm -f "$out"/millrace_*_"$architecture".deb
package=$out/millrace_${version}_$architecture.deb
compression=(-Zxz)
[ "$profile" = release ] || compression=(-Zgzip -z1)
dpkg-deb --root-owner-group "${compression[@]}" --build "$root" "$package" >/dev/null
echo "deb: $package, $(du -h "$package" | cut -f1): sudo apt-get install $(realpath "$package")"
