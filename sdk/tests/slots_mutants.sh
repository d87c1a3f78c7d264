#!/bin/sh
# Checks that check_slots.sh rejects modified headers: any change within a minor version, and any
# change other than appending members since an earlier minor version.
set -eu
sdk=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check="$sdk/abi/check_slots.sh"
failures=0

fresh() {
  rm -rf "$work/include" "$work/golden"
  mkdir "$work/golden"
  cp -R "$sdk/include" "$work/include"
}
mutate() {  # FILE SED-SCRIPT
  sed -i "$2" "$work/include/bulkhead/abi/$1"
  if cmp -s "$work/include/bulkhead/abi/$1" "$sdk/include/bulkhead/abi/$1"; then
    echo "the mutation of $1 changed nothing: $2"
    exit 1
  fi
}
expect() {  # refused|accepted WHAT
  if "$check" "$work/include" "$work/golden" >"$work/out" 2>&1; then got=accepted; else got=refused; fi
  if [ "$got" != "$1" ]; then
    echo "FAILED: $2 was $got"
    cat "$work/out"
    failures=1
  fi
}
# Applies a change to the headers and compares them, first with the golden file of the same minor
# version, and then, as a new minor version, with the earlier golden file.
try() {  # WHAT FILE SED-SCRIPT VERDICT-AS-NEW-MINOR
  fresh
  cp "$sdk"/abi/golden/*.txt "$work/golden/"
  mutate "$2" "$3"
  expect refused "$1 (same minor)"
  fresh
  mutate "$2" "$3"
  "$sdk/abi/dump_slots.sh" "$sdk/include" >"$work/golden/0.1.txt"
  sed -i 's/^#define BH_ABI_MINOR .*/#define BH_ABI_MINOR 2u/' "$work/include/bulkhead/abi/core.h"
  "$sdk/abi/dump_slots.sh" "$work/include" >"$work/golden/0.2.txt"
  expect "$4" "$1 (new minor)"
}

fresh
cp "$sdk"/abi/golden/*.txt "$work/golden/"
expect accepted "no change"
rm "$work"/golden/*
expect refused "a missing golden file"

append='/bh_status (\*decided)/i\  void (*later)(void *ctx);'
try "a member in the middle" ext/policy.h "$append" refused
try "a member at the end" ext/tools.h '/^} bh_host_tools;/i\  void (*later)(void *ctx);' accepted
try "a removed member" host.h '/(\*log_enabled)/d' refused
try "a changed signature" plugin.h 's/(\*drain)(void \*self, uint64_t/(*drain)(void *self, uint32_t/' refused
try "a changed return type" plugin.h 's/void (\*stop)/bh_status (*stop)/' refused
try "a renamed member" host.h 's/(\*log_enabled)/(*enabled)/' refused
try "a grown struct without size" core.h '/^} bh_str;/i\  uint64_t more;' refused
try "a changed enum value" core.h 's/BH_E_IO = -9/BH_E_IO = -19/' refused
try "a new enum value" core.h 's/BH_E_INTERNAL = -14 .*/BH_E_INTERNAL = -14, BH_E_MORE = -15/' accepted
try "a changed extension id" ext/tools.h 's|"bh.tools/1"|"bh.tools/2"|' refused
try "a wider handle" ext/tools.h 's/typedef uint64_t bh_call/typedef uint32_t bh_call/' refused
exit $failures
