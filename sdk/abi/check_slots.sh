#!/bin/sh
# check_slots.sh INCLUDE_DIR GOLDEN_DIR [ACCEPTED_BREAKS]: compares the slots of the ABI headers with
# the golden files.
#
#  1. The slots must be those in GOLDEN_DIR/VERSION.txt for the version in core.h. To change the ABI
#     before that version is released, run sdk/abi/update.sh, which writes this file.
#  2. The slots of earlier minor versions of the same major version must not change; see breaks.awk.
#     A draft may change if an extension ID in its header changes.
#  3. The stable slots of a release candidate change only as ACCEPTED_BREAKS (default:
#     accepted-breaks.txt) lists. Each entry must match one change.
# If a golden file is missing, the check fails.
set -eu
here=${0%/*}
. "$here/versions.sh"
include=$1
golden=$2
accepted=${3:-$here/accepted-breaks.txt}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
now=$work/now
"$here/dump_slots.sh" "$include" >"$now"
version=$(abi_version "$now")
failed=0

# The value of a constant must not depend on the constants before it.
if ! awk '/^file / { file = $2 }
  /^[^ ]/ { constants = $0 == "enum" }
  constants && /^  / && !/=/ { print file ": " $1 " has no explicit value"; bad = 1 }
  END { exit bad }' "$now"; then
  failed=1
fi
# Major version 0 had no states.
if ! awk -v version="$version" 'function finish() {
    if (file == "" || stated || version ~ /^0\./) return
    print file ": the first comment does not state the version and the state, as in \"Since 1.0. Stable.\""
    bad = 1
  }
  /^file / { finish(); file = $2; stated = 0 }
  /^state / { stated = 1 }
  END { finish(); exit bad }' "$now"; then
  failed=1
fi

if ! diff -u "$golden/$version.txt" "$now"; then
  echo "The slots of the ABI headers are not those of $golden/$version.txt (see $0)." >&2
  exit 1
fi

# breaks OLD NEW DRAFTS: prints the breaks that are not permitted. If DRAFTS is `with-id`, an
# incompatible change of a draft needs a new extension ID, so that no plugin receives a table that it
# does not expect. Otherwise, drafts may change.
breaks() {
  awk -f "$here/breaks.awk" "$1" "$2" >"$work/all"
  awk -F '[ :\t]' -v drafts="$3" 'FNR == 1 { input++ }
    input == 1 && $1 == "file" { file = $2; draft[file] = file ~ /^ext\/draft\// }
    input == 1 && $1 == "state" { draft[file] = $2 == "draft" }
    input == 1 { next }
    input == 2 { if ($2 ~ /^BH_EXT_/) new_id[$1] = 1; next }
    !draft[$1] { print; next }
    drafts == "with-id" && !new_id[$1] { print $0 "; an incompatible change of a draft needs a new extension ID" }
    ' "$1" "$work/all" "$work/all"
}
golden_of() { if [ "$1" = "$version" ]; then echo "$now"; else echo "$golden/$1.txt"; fi; }

baselines=$(abi_baselines "$golden" "$version")
for old in $baselines; do
  breaks "$golden/$old.txt" "$now" with-id >"$work/breaks"
  if [ -s "$work/breaks" ]; then
    sed "s/^/not compatible with $old: /" "$work/breaks"
    failed=1
  fi
done

abi_candidate_pairs "$golden" "$version" >"$work/pairs"
: >"$work/candidates"
while read -r old new; do
  # A plugin that was built with a candidate is loaded only by this candidate.
  breaks "$(golden_of "$old")" "$(golden_of "$new")" any | sed "s/^/$old /" >>"$work/candidates"
done <"$work/pairs"
awk -v file="$accepted" '
  FILENAME == file && (/^[ \t]*#/ || NF == 0) { next }
  FILENAME == file {
    if (NF < 3) { print file ": an entry has no reason: " $0; bad = 1 }
    if (($1, $2) in entry) { print file ": two entries for " $1 " " $2; bad = 1 }
    entry[$1, $2] = 1
    next
  }
  {
    line = $0
    slot = $2
    if (($1, slot) in entry) used[$1, slot] = 1
    else { print "not accepted, from " line; bad = 1 }
  }
  END {
    for (e in entry) {
      if (e in used) continue
      split(e, part, SUBSEP)
      print file ": no break matches the entry " part[1] " " part[2]
      bad = 1
    }
    exit bad
  }' "$accepted" "$work/candidates" || failed=1
exit $failed
