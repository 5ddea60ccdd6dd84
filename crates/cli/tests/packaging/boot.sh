#!/usr/bin/env bash
# Boots systemd in namespaces of its own, over the machine's file system, of which nothing is changed: what is written goes
# to memory. Installs a package there, runs a script as a service, and ends when that has ended.
# Usage: boot.sh PACKAGE SCRIPT OUTPUT
#   OUTPUT is a folder: what the script prints is in `said` there, its exit status in `status`.
# Exit status 0: the script has run, 77: namespaces or systemd cannot be had here, with the reason on standard error.
set -euo pipefail

lacks() {
    echo "$*" >&2
    exit 77
}

if [ "${1:-}" != --inside ]; then
    package=$(realpath "$1") script=$(realpath "$2") output=$(realpath "$3")
    [ "$(id -u)" = 0 ] || lacks "booting systemd takes root"
    [ -x /lib/systemd/systemd ] || lacks "systemd is not installed"
    unshare -m -p -C -u -i -n --fork true 2>/dev/null || lacks "namespaces cannot be made"
    # A control group of its own in every hierarchy, which is all that systemd sees of it.
    name=millrace-boot-$$
    groups=()
    leave() {
        for group in "${groups[@]}"; do
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
        done
    }
    trap leave EXIT
    while read -r _ hierarchy type _; do
        [[ $type == cgroup || $type == cgroup2 ]] || continue
        mkdir "$hierarchy/$name" 2>/dev/null || lacks "control groups cannot be made"
        groups+=("$hierarchy/$name")
        # A group of cpuset (version 1) takes nobody before it has processors and memory.
        for file in cpuset.cpus cpuset.mems; do
            if [ -e "$hierarchy/tasks" ] && [ -e "$hierarchy/$file" ]; then
                cat "$hierarchy/$file" >"$hierarchy/$name/$file"
            fi
        done
    done </proc/self/mounts
    [ ${#groups[@]} -gt 0 ] || lacks "there are no control groups"
    (
        for group in "${groups[@]}"; do
            echo "$BASHPID" >"$group/cgroup.procs" || lacks "a control group cannot be entered"
        done
        exec timeout -k 5 240 unshare -m -p -C -u -i -n --fork --kill-child --propagation private \
            "$0" --inside "$package" "$script" "$output" "${groups[@]}" </dev/null
    ) >"$output/boot" 2>&1 || true
    [ -e "$output/status" ] || {
        tail -n 20 "$output/boot" >&2
        lacks "systemd does not boot here"
    }
    exit 0
fi

package=$2 script=$3 output=$4
shift 4
work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
root=$work/root
mkdir -p "$root/mnt/output"
mount --bind "$output" "$root/mnt/output"
cp "$package" "$root/mnt/package.deb"
# Installing a package makes the index of manuals anew, which takes longer than all that is looked at here.
rm -f "$root/var/lib/man-db/auto-update"
install -m 755 "$script" "$root/mnt/script"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
# Version 1 has its hierarchies in folders of a file system in memory, version 2 is one at the place itself.
[ "$1" = "/sys/fs/cgroup/$(basename "$1")" ] || mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
for group in "$@"; do
    hierarchy=$(dirname "$group")
    mkdir -p "$root$hierarchy"
    mount --bind "$group" "$root$hierarchy"
done
for folder in run tmp dev; do
    mount -t tmpfs tmpfs "$root/$folder"
done
for device in null zero full random urandom tty net/tun; do
    [ -e "/dev/$device" ] || continue
    mkdir -p "$(dirname "$root/dev/$device")"
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
# What the machine has as modules of packages may be missing by name; the files are there.
PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" dpkg --force-depends -i /mnt/package.deb
for unit in systemd-udevd systemd-udev-trigger systemd-timesyncd systemd-networkd networking apparmor dbus; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
done
for unit in systemd-udevd-kernel systemd-udevd-control; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.socket"
done
cat >"$root/etc/systemd/system/script.service" <<UNIT
[Unit]
DefaultDependencies=no
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/mnt/script >/mnt/output/said 2>&1; echo \$\$? >/mnt/output/status'
ExecStopPost=/bin/systemctl --no-block exit
TimeoutStartSec=200
UNIT
cat >"$root/etc/systemd/system/script.target" <<UNIT
[Unit]
Requires=basic.target
Wants=script.service
UNIT
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" \
    /lib/systemd/systemd --system --log-target=console --show-status=no --unit=script.target
