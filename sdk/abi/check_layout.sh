#!/bin/sh
# check_layout.sh INCLUDE_DIR GOLDEN_DIR [CC [CXX...]]: compares the layout of the ABI headers with
# GOLDEN_DIR/layout/VERSION.txt for the version in core.h, with each of the compilers: CC as C11, the
# others as C++17. Then compares it with the earlier versions: in stable headers, no
# member and no constant may change, and only structs that begin with their size may grow. The golden
# files are those of x86-64; aarch64 has the same layout.
set -eu
here=${0%/*}
. "$here/versions.sh"
include=$1
golden=$2
shift 2
[ $# -gt 0 ] || set -- cc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/dump_slots.sh" "$include" >"$work/slots"
version=$(abi_version "$work/slots")

language="-std=c11"
for compiler; do
  # shellcheck disable=SC2086  # two options
  "$here/dump_layout.sh" "$include" "$compiler" $language >"$work/now" || exit 1
  if ! diff -u "$golden/layout/$version.txt" "$work/now"; then
    echo "With $compiler $language, the layout is not that of $golden/layout/$version.txt (see $0)." >&2
    exit 1
  fi
  language="-x c++ -std=c++17"
done

failed=0
baselines=$(abi_baselines "$golden" "$version")
for old in $baselines; do
  if [ ! -f "$golden/layout/$old.txt" ]; then
    echo "$golden/layout/$old.txt is missing: the layout cannot be compared with this version" >&2
    exit 1
  fi
  awk -v old="$old" '
    FILENAME != last { last = FILENAME; side++ }
    side == 1 && /^file / { file = $2; stable[file] = file !~ /^ext\/draft\// }
    side == 1 && /^state / { stable[file] = $2 == "stable" }
    side == 1 { next }
    /^file / { file = $2; type = ""; next }
    !stable[file] { next }
    /^struct / { type = $2; members = 0; line[side, type] = $3; align[side, type] = $4; if (side == 2) types[type] = file; next }
    /^constant / { if (side == 2) constants[$2] = file; line[side, $2] = $3; next }
    {
      slot = type "." $1
      line[side, slot] = $2 " " $3
      if (++members == 1) begins[type] = $1
      if (side == 2) slots[slot] = file
    }
    function same(name, file) {
      if (line[2, name] == line[3, name]) return
      # A reserved member may have got a name; check_slots.sh compares the names.
      if (name ~ /\.reserved/ && line[3, name] == "") return
      print "not compatible with " old ": " file ":" name " was [" line[2, name] "], and is [" line[3, name] "]"
      bad = 1
    }
    END {
      for (s in slots) same(s, slots[s])
      for (c in constants) if (c != "BH_ABI_MINOR") same(c, constants[c])
      for (t in types) {
        if (begins[t] != "size") same(t, types[t])
        if (align[2, t] != align[3, t] || line[3, t] + 0 < line[2, t] + 0) {
          print "not compatible with " old ": " types[t] ":" t " has another alignment or is smaller"
          bad = 1
        }
      }
      exit bad
    }' "$golden/$old.txt" "$golden/layout/$old.txt" "$work/now" || failed=1
done
exit $failed
