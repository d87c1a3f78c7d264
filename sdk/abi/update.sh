#!/bin/sh
# update.sh [CC]: writes the golden files of the version in core.h. To be run after a change of the ABI
# headers, as long as that version is not released. For a new version, change BH_ABI_MINOR or BH_ABI_RC
# first; the golden files of earlier versions must not change.
#
# A released version also gets the sources of plugins in C, which all later versions must be able to run
# (sdk/tests/abi_versions.sh).
set -eu
here=${0%/*}
. "$here/versions.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/dump_slots.sh" "$here/../include" >"$work/slots"
"$here/dump_layout.sh" "$here/../include" "${1:-cc}" -std=c11 >"$work/layout"
version=$(abi_version "$work/slots")
mkdir -p "$here/golden/layout"
cp "$work/slots" "$here/golden/$version.txt"
cp "$work/layout" "$here/golden/layout/$version.txt"
case $version in
  0.* | *-rc*) ;;
  *)
    mkdir -p "$here/plugins/$version"
    for kind in tools policy connector; do
      cp "$here/../template/$kind-c"/*_c.c "$here/plugins/$version"
    done
    ;;
esac
echo "sdk/abi/golden: $version"
