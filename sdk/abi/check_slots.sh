#!/bin/sh
# check_slots.sh INCLUDE_DIR GOLDEN_DIR: compares the ABI headers with the golden files.
#
#  1. The slots in the headers must be those in golden/MAJOR.MINOR.txt for the version in core.h.
#     To change the ABI before that version is released, regenerate the file:
#       sdk/abi/dump_slots.sh sdk/include > sdk/abi/golden/MAJOR.MINOR.txt
#  2. Compared with earlier minor versions of the same major version, members may only have been
#     appended, and only to enums and to structs that start with their size.
# If a golden file is missing, the check fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
include=$1
golden=$2
now=$(mktemp)
trap 'rm -f "$now"' EXIT
"$here/dump_slots.sh" "$include" >"$now"
major=$(sed -n 's/^#define BH_ABI_MAJOR \([0-9]*\)u$/\1/p' "$now")
minor=$(sed -n 's/^#define BH_ABI_MINOR \([0-9]*\)u$/\1/p' "$now")

if ! diff -u "$golden/$major.$minor.txt" "$now"; then
  echo "The ABI headers are not what $golden/$major.$minor.txt says (see $0)." >&2
  exit 1
fi

for old in "$golden/$major".*.txt; do
  [ "$old" = "$golden/$major.$minor.txt" ] && continue
  # Blocks are identified by file and struct name, and enums by their first member.
  awk -v old="$old" '
    function finish() { if (key != "") { blocks[side, key] = body; known[side, key] = 1 } key = "" }
    function begin(k) { finish(); key = file "|" k; body = "" }
    FNR == 1 { finish(); side++ }
    /^file / { finish(); file = $2; next }
    /^struct / { begin($0); next }
    /^enum$/ { begin("enum"); unnamed = 1; next }
    /^  / {
      if (unnamed) { key = file "|enum " $1; unnamed = 0 }
      body = body $0 "\n"
      next
    }
    { if ($0 !~ /BH_ABI_MINOR/) begin($0) }
    END {
      finish()
      for (k in known) {
        split(k, part, SUBSEP)
        if (part[1] != 1) continue
        name = part[2]
        was = blocks[1, name]
        is = blocks[2, name]
        may_grow = name ~ /\|enum / || was ~ /^  uint32_t size\n/
        if (!((2, name) in known)) bad = "is gone"
        else if (is == was) continue
        else if (!may_grow) bad = "must not change: it is passed by value"
        else if (substr(is, 1, length(was)) != was) bad = "changed other than at its end"
        else continue
        print old ": " name ": " bad
        failed = 1
      }
      exit failed
    }' "$old" "$now" || exit 1
done
