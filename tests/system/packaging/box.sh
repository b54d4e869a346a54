#!/bin/sh
# A machine within the machine: the real service manager as process 1 over a throw-away copy of this machine's files, in name spaces
# and a control group of its own. The network is this machine's, so that brokers and servers of the test can be reached.
#
#   box.sh enter NAME DIR REPOSITORY     needs root; ends when this process is killed
#   box.sh clean NAME                    removes the control group afterwards
#
# Nothing here touches the machine: every mount is in a name space that ends with the box, changes to files go into memory, and no
# unit is started that would load modules, set kernel parameters or look for devices.
set -eu

groups() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }

case $1 in
enter)
    group=$(groups)/$2
    mkdir "$group"
    echo $$ > "$group/cgroup.procs"
    exec unshare --mount --pid --fork --kill-child --uts --ipc --cgroup sh "$0" inside "$3" "$4"
    ;;
clean)
    find "$(groups)/$2" -depth -type d -exec rmdir {} + 2>/dev/null || true
    exit 0
    ;;
esac

box=$2 repository=$3 root=$2/root
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$box"
mkdir "$box/upper" "$box/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$box/upper,workdir=$box/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mkdir -p "$root$repository"
mount --bind -o ro "$repository" "$root$repository"

for folder in "$root/etc/systemd/system" "$root/lib/systemd/system" "$root/usr/lib/systemd/system"; do
    [ -d "$folder" ] || continue
    find "$folder" -maxdepth 1 -type d -name '*.wants' -exec rm -rf {} +
done
cat > "$root/etc/systemd/system/box.target" <<UNIT
[Unit]
DefaultDependencies=no
Requires=systemd-journald.socket systemd-journald-dev-log.socket
UNIT
for unit in systemd-sysctl systemd-modules-load systemd-udevd systemd-remount-fs systemd-random-seed systemd-binfmt; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
done
: > "$root/etc/fstab"
# As a machine has it, and as the handing over of credentials needs it.
mount --make-rshared "$root"
exec chroot "$root" env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=box.target
