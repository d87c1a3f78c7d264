#!/usr/bin/env bash
# Prints a line "SKIP feature: reason" for each kernel feature that the tests use and this kernel
# lacks. Always succeeds, because tests skip what the kernel does not support.
set -u

skip() { echo "SKIP $1: $2"; }

[ -e /proc/net/if_inet6 ] && grep -q '^0\{31\}1 ' /proc/net/if_inet6 ||
  skip ipv6-loopback "no ::1 here; listeners are tested on 127.0.0.1 only"
[ -e /proc/self/smaps_rollup ] ||
  skip smaps_rollup "memory is read from /proc/self/status instead of proportional set size"
[ -e "/proc/$$/task/$$/children" ] ||
  skip proc-children "CONFIG_PROC_CHILDREN is off; process trees are read from /proc/*/stat"
bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)
[ "$bits" -le 30 ] ||
  skip tsan-address-space "vm.mmap_rnd_bits is $bits; ThreadSanitizer may need setarch -R"
exit 0
