#!/usr/bin/env bash
# Installs the command, functions, headers, manual pages, completions and the systemd unit.
# Usage: scripts/install.sh, with these variables:
#   PREFIX      /usr/local; everything but the configuration lies below it
#   SYSCONFDIR  /etc; the configuration is in millrace there
#   DESTDIR     a folder in front of all paths, for packages
#   PROFILE     release; the profile of the build whose command is installed
#   MILLRACE_COMMAND  that command, where it lies elsewhere
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

prefix=${PREFIX:-/usr/local}
etc=${SYSCONFDIR:-/etc}
destdir=${DESTDIR:+$(realpath -m "$DESTDIR")}
profile=${PROFILE:-release}
for path in "$prefix" "$etc"; do
    if [[ $path != /* || $path == *[[:space:]\|\&]* ]]; then
        echo "install: $path: write the whole path, without spaces" >&2
        exit 2
    fi
done
folder=$profile
[ "$profile" != dev ] || folder=debug
command=${MILLRACE_COMMAND:-${CARGO_TARGET_DIR:-target}/$folder/millrace}
if [ ! -x "$command" ]; then
    echo "install: $command is not built: run \`make build\` first, without sudo" >&2
    exit 2
fi

# Puts a file in its place, with mode 644 unless another is given.
put() {
    install -D -m "${3:-644}" "$1" "$destdir$2"
}
# Puts files below a folder, under the names that they have here.
put_below() {
    local below=$destdir$1
    shift
    install -d "$below"
    cp --parents --no-preserve=mode -t "$below" "$@"
}
# The same as put, of a text in which the unit's paths are filled in.
fill() {
    local made
    made=$(mktemp)
    sed -e "s|@BINDIR@|$prefix/bin|; s|/etc/millrace|$etc/millrace|" "$1" >"$made"
    put "$made" "$2"
    rm -f "$made"
}

put "$command" "$prefix/bin/millrace" 755

# Functions with their tests and pages, and the headers for authors; the command has its own copy of the headers.
mapfile -t files < <(find nfs -type f \( -name '*.c' -o -name '*.h' -o -name '*.md' -o -name '*.pkt' -o -path '*/tests/*' \) | sort)
put_below "$prefix/share/millrace" "${files[@]}"
mapfile -t files < <(find include/millrace -type f | sort)
put_below "$prefix" "${files[@]}"

manual=$(mktemp -d)
trap 'rm -rf "$manual"' EXIT
"$command" manual "$manual" >/dev/null
gzip -9n "$manual"/man1/*.1
install -D -m 644 -t "$destdir$prefix/share/man/man1" "$manual"/man1/*.gz
put "$manual/completions/millrace.bash" "$prefix/share/bash-completion/completions/millrace"
put "$manual/completions/_millrace" "$prefix/share/zsh/site-functions/_millrace"
put "$manual/completions/millrace.fish" "$prefix/share/fish/vendor_completions.d/millrace.fish"

shopt -s nullglob
put_below "$prefix/share/doc/millrace" README.md LICENSE docs/*.md docs/*.svg docs/measurements/*.md
(cd packaging && put_below "$prefix/share/doc/millrace" examples/*/*)

# systemd reads units and users below /usr/local, too.
for unit in millrace@.service millrace-node@.service; do
    fill "packaging/$unit" "$prefix/lib/systemd/system/$unit"
done
put packaging/millrace.sysusers "$prefix/lib/sysusers.d/millrace.conf"
put packaging/edge.toml "$etc/millrace/edge.toml.example"

# Where systemd looks for units; in another place there is nothing for it to take.
if [ -z "$destdir" ] && [[ $prefix == /usr || $prefix == /usr/local ]] && [ -d /run/systemd/system ]; then
    systemd-sysusers "$prefix/lib/sysusers.d/millrace.conf"
    systemctl daemon-reload
fi
echo "install: $destdir$prefix/bin/millrace; functions in $destdir$prefix/share/millrace/nfs"
