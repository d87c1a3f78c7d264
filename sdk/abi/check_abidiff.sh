#!/bin/sh
# check_abidiff.sh INCLUDE_DIR GOLDEN_DIR [CC [CACHE_DIR]]: compares the ABI headers with the golden files by
# abidiff (libabigail), which reads the types from debug information.
#
# An anchor library has one function for each public struct and typedef, so that its debug information
# contains all of them. It is built from the headers, and from the header that header_of.sh makes of a
# golden file.
#
#  1. For the version in core.h, there must be no difference.
#  2. Compared with the version before, of the same major version, only members at the end of structs
#     that begin with their size may be added. Drafts are not compared.
#
# CACHE_DIR keeps the anchor libraries of golden files, for tests that compare many headers with them.
set -eu
here=${0%/*}
. "$here/versions.sh"
include=$1
golden=$2
cc=${3:-cc}
cache=${4:-}
if ! command -v abidiff >/dev/null; then
  echo "abidiff is not installed: run scripts/install-packages.sh test" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/dump_slots.sh" "$include" >"$work/now"
version=$(abi_version "$work/now")
awk '/^file / { print "#include \"bulkhead/abi/" $2 "\"" }' "$work/now" >"$work/headers.h"

# anchor DUMP HEADER LIBRARY FILES: builds the anchor library for the types that DUMP has. FILES is
# `all` or `stable`.
anchor() {
  {
    echo "#include \"$2\""
    awk -v files="$4" '
      function name_of(s) {
        if (match(s, /\(\*[A-Za-z_0-9]+\)/)) return substr(s, RSTART + 2, RLENGTH - 3)
        sub(/;$/, "", s)
        match(s, /[A-Za-z_0-9]+$/)
        return substr(s, RSTART, RLENGTH)
      }
      /^file / { wanted = files == "all" || $2 !~ /^ext\/draft\//; next }
      /^state / { wanted = files == "all" || $2 == "stable"; next }
      wanted && /^(struct|typedef) / {
        name = name_of($0)
        print "void anchor_" name "(" name " *p);\nvoid anchor_" name "(" name " *p) { (void)p; }"
      }' "$1"
  } >"$work/anchor.c"
  "$cc" -std=c11 -g -shared -fPIC -I "$include" -o "$3" "$work/anchor.c" || {
    echo "The anchor library cannot be built: a type of $1 is missing or has changed." >&2
    exit 1
  }
}
# anchor_of_golden VERSION FILES: sets `was` to the anchor library of a golden file.
anchor_of_golden() {
  was=${cache:-$work}/$(cksum <"$golden/$1.txt" | tr ' ' -)-$2.so
  [ ! -f "$was" ] || return 0
  "$here/header_of.sh" "$golden/$1.txt" >"$work/golden.h"
  anchor "$golden/$1.txt" "$work/golden.h" "$work/golden.so" "$2"
  mv "$work/golden.so" "$was"
}

anchor_of_golden "$version" all
anchor "$work/now" "$work/headers.h" "$work/is.so" all
if ! abidiff "$was" "$work/is.so"; then
  echo "abidiff: the types in the ABI headers are not those of $golden/$version.txt (see $0)." >&2
  exit 1
fi

# The version before is compatible with those before it.
baselines=$(abi_baselines "$golden" "$version")
old=$(printf '%s\n' "$baselines" | tail -n 1)
[ -n "$old" ] || exit 0
anchor_of_golden "$old" stable
anchor "$golden/$old.txt" "$work/headers.h" "$work/is.so" stable
# The structs that have additional members at the end, and differ in nothing else. abidiff reports them
# as changed, because their size is another one.
awk '
  FILENAME != last { last = FILENAME; side++; type = "" }
  /^struct / { type = $2; n = 0; if (side == 1) types[type] = 1; next }
  /^  / && type != "" {
    n = ++count[side, type]
    line = $0
    if (side == 1 && line ~ / reserved[a-z0-9_]*$/) reserved[type, n] = 1
    if (reserved[type, n]) sub(/[a-z0-9_]+$/, "reserved", line) # check_slots.sh permits another name
    member[side, type, n] = line
    next
  }
  { type = "" }
  END {
    for (t in types) {
      if (member[1, t, 1] != "  uint32_t size" || count[2, t] <= count[1, t]) continue
      equal = 1
      for (i = 1; i <= count[1, t]; i++) if (member[1, t, i] != member[2, t, i]) equal = 0
      if (equal) print "[suppress_type]\n  name = " t "\n  type_kind = struct\n  has_data_member_inserted_at = end\n"
    }
  }' "$golden/$old.txt" "$work/now" >"$work/suppressions"
if ! abidiff --suppressions "$work/suppressions" "$was" "$work/is.so"; then
  echo "abidiff: the ABI headers are not compatible with $golden/$old.txt (see $0)." >&2
  exit 1
fi
