#!/usr/bin/env bash
# boot.sh ROOT [SECONDS]: runs ROOT/test.sh as root in a virtual machine, and exits with its status.
#
# The machine is QEMU with Debian's cloud kernel. Its file system is a copy of ROOT in memory, to
# which the commands of busybox are added. It has no network card, no disk and no access to this
# machine. Unlike a container, it has its own kernel, with cgroups v2 and with AF_VSOCK between its
# own processes (CID 1). The kernel package (27 MB) is downloaded once and unpacked, but not
# installed.
#
# Exits with 77 if QEMU, busybox, cpio or the kernel is missing (set "guest" in
# scripts/install-packages.sh), and with 124 if test.sh does not finish within SECONDS (default
# 120).
set -euo pipefail

root=$(cd "${1:?usage: boot.sh ROOT [SECONDS]}" && pwd)
seconds=${2:-120}
cache=${BULKHEAD_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/bulkhead-guest}
modules=(vsock vmw_vsock_virtio_transport_common vsock_loopback)

skip() { echo "SKIP guest: $*"; exit 77; }
for tool in qemu-system-x86_64 busybox cpio dpkg-deb xz; do
  command -v "$tool" >/dev/null || skip "no $tool here"
done

unpack_kernel() {
  local package new
  package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
    awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ {print $2; exit}')
  [ -n "$package" ] || skip "apt knows no linux-image-cloud-amd64"
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/new.XXXXXX")
  (cd "$new" && apt-get -qq -o APT::Sandbox::User=root download "$package") ||
    { rm -rf "$new"; skip "$package cannot be downloaded"; }
  dpkg-deb --fsys-tarfile "$new"/*.deb |
    tar -x -C "$new" --wildcards './boot/vmlinuz-*' '*/lib/modules/*/kernel/net/vmw_vsock/*'
  rm "$new"/*.deb
  mv -T "$new" "$cache/kernel" 2>/dev/null || rm -rf "$new"  # another run has created it
}
[ -d "$cache/kernel" ] || unpack_kernel

work=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-guest.XXXXXX")
machine=
cleanup() {
  [ -z "$machine" ] || kill "$machine" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

cp -a "$root" "$work/root"
mkdir -p "$work/root"/{bin,dev,proc,sys,tmp,run,etc,lib/vsock}
cp "$(command -v busybox)" "$work/root/bin/busybox"
# The modules are in /lib or /usr/lib. Since Debian 13, they are compressed.
for module in "${modules[@]}"; do
  file=$(find "$cache/kernel" -name "$module.ko" -o -name "$module.ko.xz" | head -1)
  case "$file" in
    *.xz) xz -dc "$file" >"$work/root/lib/vsock/$module.ko" ;;
    *.ko) cp "$file" "$work/root/lib/vsock/" ;;
    *) echo "the kernel in $cache/kernel has no module $module" >&2; exit 1 ;;
  esac
done
cat >"$work/root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TERM=dumb
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
mkdir -p /dev/shm /root; mount -t tmpfs -o mode=1777 tmp /tmp; mount -t tmpfs run /run
mount -t tmpfs shm /dev/shm
# Enables accounting for child groups, as a service manager does.
mount -t cgroup2 groups /sys/fs/cgroup && echo '+pids +memory' >/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
stty -F /dev/ttyS0 -opost
for module in ${modules[*]}; do insmod /lib/vsock/\$module.ko || echo "cannot load \$module"; done
sh /test.sh </dev/null
echo "@@ the test ended with \$?"
poweroff -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . -print0 | cpio --quiet -0 -o -H newc -R 0:0) | gzip -1 >"$work/initrd"

# QEMU emulates the processor, because nested KVM often fails and the tests need no speed.
timeout "$seconds" qemu-system-x86_64 -machine pc,accel=tcg -cpu max -smp 1 -m 768 \
  -nodefaults -no-user-config -display none -no-reboot -nic none -serial stdio \
  -kernel "$cache"/kernel/boot/vmlinuz-* -initrd "$work/initrd" \
  -append 'console=ttyS0 quiet loglevel=0 panic=-1 mitigations=off' \
  </dev/null >"$work/out" 2>"$work/errors" &
machine=$!
status=0
wait "$machine" || status=$?
machine=
tr -d '\r' <"$work/out" | grep -v '^@@ ' || true
[ "$status" != 124 ] || { echo "the guest was not done after $seconds s"; exit 124; }
ended=$(tr -d '\r' <"$work/out" | sed -n 's/^@@ the test ended with \([0-9]*\)$/\1/p')
[ -n "$ended" ] || { cat "$work/errors"; echo "the guest ended without a result"; exit 1; }
exit "$ended"
