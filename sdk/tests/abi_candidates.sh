#!/bin/sh
# abi_candidates.sh SDK_DIR: checks how check_slots.sh compares release candidates: each incompatible
# change needs one entry in the file of accepted breaks, and each entry needs one change.
set -eu
sdk=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
mkdir -p "$work/golden" "$work/include/bulkhead"

# Makes a copy of the headers with the version 9.0-rcN, or 9.0 if N is 0.
candidate() {
  rm -rf "$work/include/bulkhead/abi"
  cp -R "$sdk/include/bulkhead/abi" "$work/include/bulkhead/abi"
  sed -i -e '/^#define BH_ABI_RC /d' -e 's/^#define BH_ABI_MAJOR .*/#define BH_ABI_MAJOR 9u/' \
    -e "s/^#define BH_ABI_MINOR .*/#define BH_ABI_MINOR 0u\n#define BH_ABI_RC $1u/" "$work/include/bulkhead/abi/core.h"
  # Each header needs a state.
  find "$work/include" -name '*.h' -exec grep -LE '\* Since [0-9.]+ (Stable|Draft)' {} + | while read -r header; do
    case $header in */draft/*) state=Draft ;; *) state=Stable ;; esac
    sed -i "1s|^|/* Since 9.0. $state. */\n|" "$header"
  done
}
change() { # FILE SED-SCRIPT
  sed -i "$2" "$work/include/bulkhead/abi/$1"
  if cmp -s "$work/include/bulkhead/abi/$1" "$sdk/include/bulkhead/abi/$1"; then
    echo "the change of $1 changed nothing: $2"
    exit 1
  fi
}
keep() { "$sdk/abi/dump_slots.sh" "$work/include" >"$work/golden/$1.txt"; }
entries() { printf '# Entries.\n\n' >"$work/accepted"; [ $# -eq 0 ] || printf '%s\n' "$@" >>"$work/accepted"; }
# expect accepted|rejected WHAT [TEXT]: TEXT is in the output.
expect() {
  if "$sdk/abi/check_slots.sh" "$work/include" "$work/golden" "$work/accepted" >"$work/out" 2>&1; then got=accepted; else got=rejected; fi
  if [ "$got" != "$1" ] || { [ $# -eq 3 ] && ! grep -qF "$3" "$work/out"; }; then
    echo "FAILED: $2 was $got; expected: $1 ${3:-}"
    cat "$work/out"
    failures=1
  fi
}
slot=plugin.h:bh_plugin.drain
signature='s/(\*drain)(void \*self, uint64_t/(*drain)(void *self, uint32_t/'

candidate 1
keep 9.0-rc1
entries
expect accepted "the first candidate"
entries "9.0-rc1 $slot a reason"
expect rejected "an entry for a change that has not been made" "no break matches the entry 9.0-rc1 $slot"

candidate 2
change ext/tools.h 's/^} bh_host_tools;/  void (*later)(void *ctx);\n&/'
keep 9.0-rc2
entries
expect accepted "an additional member at the end"

candidate 2
change plugin.h "$signature"
keep 9.0-rc2
expect rejected "an incompatible change without an entry" "not accepted, from 9.0-rc1 $slot"
entries "9.0-rc1 $slot a reason"
expect accepted "an incompatible change with an entry"
entries "9.0-rc1 $slot"
expect rejected "an entry without a reason" "no reason"
entries "9.0-rc1 $slot a reason" "9.0-rc1 $slot another reason"
expect rejected "two entries for a change" "two entries"
entries "9.0-rc1 $slot a reason" "9.0-rc1 plugin.h:bh_plugin.stop a reason"
expect rejected "an entry too many" "no break matches the entry 9.0-rc1 plugin.h:bh_plugin.stop"
entries "9.0-rc2 $slot a reason"
expect rejected "an entry for another candidate" "not accepted, from 9.0-rc1 $slot"
entries "9.0-rc1 $slot a reason"
change plugin.h 's/void (\*stop)/bh_status (*stop)/'
keep 9.0-rc2
expect rejected "a second change with one entry" "not accepted, from 9.0-rc1 plugin.h:bh_plugin.stop"
mv "$work/golden/9.0-rc1.txt" "$work/rc1.txt"
expect rejected "a candidate whose predecessor has no golden file" "9.0-rc1.txt is missing"
mv "$work/rc1.txt" "$work/golden/9.0-rc1.txt"

# The entry of the second candidate remains valid for the third.
candidate 2
change plugin.h "$signature"
keep 9.0-rc2
candidate 3
change plugin.h "$signature"
keep 9.0-rc3
expect accepted "a third candidate without changes"
candidate 0
change plugin.h "$signature"
keep 9.0
expect accepted "a release that equals the last candidate"
change plugin.h 's/void (\*stop)/bh_status (*stop)/'
keep 9.0
entries "9.0-rc1 $slot a reason" "9.0-rc3 plugin.h:bh_plugin.stop a reason"
expect rejected "a release with an incompatible change" "not compatible with 9.0-rc3: plugin.h:bh_plugin.stop"

# A draft may change from candidate to candidate.
candidate 1
keep 9.0-rc1
candidate 2
change ext/draft/mask.h 's/(\*mask)(void \*ctx, bh_str text,/(*mask)(void *ctx, uint32_t more, bh_str text,/'
keep 9.0-rc2
entries
expect accepted "a changed draft"

candidate 1
entries
printf '#define BH_NEW 1\n' >"$work/include/bulkhead/abi/ext/new.h"
keep 9.0-rc1
expect rejected "a header without a state" "ext/new.h: the first comment does not state"
exit $failures
