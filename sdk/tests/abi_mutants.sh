#!/usr/bin/env bash
# abi_mutants.sh SDK_DIR [CC]: checks that the three gates of the ABI reject modified headers:
# `slots` (check_slots.sh), `layout` (check_layout.sh) and `abidiff` (check_abidiff.sh).
#
# Each mutation is applied to the headers of a next minor version, which are compared with the golden
# files of the current version, and some of them also to the headers of the current version. For each
# mutation, the gates that reject it are listed. The test fails if another gate rejects the mutation, or
# if one of the listed gates does not.
set -euo pipefail
sdk=$(realpath "$1")
export sdk
export CC=${2:-cc}
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
# shellcheck source=/dev/null
. "$sdk/abi/versions.sh"
mkdir "$work/anchors"
"$sdk/abi/dump_slots.sh" "$sdk/include" >"$work/slots"
version=$(abi_version "$work/slots")
plain=${version%-rc*}
export version next=${plain%.*}.$((${plain#*.} + 1))

# headers_of NAME: makes a copy of the headers and the golden files.
headers_of() {
  mkdir -p "$work/$1/golden" "$work/$1/include/bulkhead"
  cp -R "$sdk/include/bulkhead/abi" "$work/$1/include/bulkhead/abi"
  cp -R "$sdk"/abi/golden/. "$work/$1/golden"
}
# Makes NAME the next minor version, whose only baseline is the current version, and takes its golden
# files from its headers.
become_next() {
  local core=$work/$1/include/bulkhead/abi/core.h golden=$work/$1/golden
  sed -i -e "s/^#define BH_ABI_MINOR .*/#define BH_ABI_MINOR ${next#*.}u/" -e "s/^#define BH_ABI_RC .*/#define BH_ABI_RC 0u/" "$core"
  "$sdk/abi/dump_slots.sh" "$work/$1/include" >"$golden/$next.txt"
  # If these headers do not compile, the gates report it.
  "$sdk/abi/dump_layout.sh" "$work/$1/include" "$CC" -std=c11 >"$golden/layout/$next.txt" 2>/dev/null || true
}
# Prints the gates that reject the headers of NAME, in alphabetical order.
rejecting() {
  local folder=$work/$1 gates=
  "$sdk/abi/check_abidiff.sh" "$folder/include" "$folder/golden" "$CC" "$work/anchors" >"$folder/abidiff.log" 2>&1 || gates+=" abidiff"
  "$sdk/abi/check_layout.sh" "$folder/include" "$folder/golden" "$CC" >"$folder/layout.log" 2>&1 || gates+=" layout"
  "$sdk/abi/check_slots.sh" "$folder/include" "$folder/golden" >"$folder/slots.log" 2>&1 || gates+=" slots"
  echo "${gates# }"
}
# try "WHAT @ FILE @ SED-SCRIPT @ SAME @ NEXT": SAME and NEXT are the gates that reject the mutation in
# the same version and in the next minor version: names of gates, `all` or `none`. `-`: not tried.
try() {
  local what file script same next_one name found expected folder
  IFS=$'\t' read -r what file script same next_one <<<"${1// @ /$'\t'}"
  for name in same next; do
    [ "$name" = same ] && expected=$same || expected=$next_one
    [ "$expected" != - ] || continue
    case $expected in all) expected="abidiff layout slots" ;; none) expected= ;; esac
    folder=$(printf '%s' "$what" | tr -c a-z0-9 -).$name
    headers_of "$folder"
    sed -i -E "$script" "$work/$folder/include/bulkhead/abi/$file"
    if cmp -s "$work/$folder/include/bulkhead/abi/$file" "$sdk/include/bulkhead/abi/$file"; then
      echo "FAILED: $what: the mutation changed nothing in $file"
      return 1
    fi
    [ "$name" = same ] || become_next "$folder"
    found=$(rejecting "$folder")
    if [ "$found" != "$expected" ]; then
      echo "FAILED: $what ($name): rejected by [$found], expected [$expected]"
      cat "$work/$folder"/*.log
      return 1
    fi
    rm -rf "${work:?}/$folder"
  done
}
export -f headers_of become_next rejecting try

cat >"$work/mutants" <<'MUTANTS'
no change @ core.h @ 1s/^/\n/ @ none @ none
a member at the end @ ext/tools.h @ s/^\} bh_host_tools;/  void (*later)(void *ctx);\n&/ @ all @ none
a member in the middle @ ext/policy.h @ s/^  bh_status \(\*decided\)/  void (*later)(void *ctx);\n&/ @ - @ all
two members exchanged @ host.h @ s/^  bh_str version;/  bh_str swapped;/; s/^  bh_str name; .*/  bh_str version;/; s/bh_str swapped;/bh_str name;/ @ - @ all
a removed member @ host.h @ /\(\*log_enabled\)/d @ - @ all
a member with another type of the same size @ plugin.h @ s/const bh_descriptor \*\(\*descriptor\)\(uint32_t i\)/const void *(*descriptor)(uint32_t i)/ @ - @ abidiff slots
a smaller member @ ext/tools.h @ s/uint64_t deadline_ns;/uint32_t deadline_ns;/ @ - @ all
a changed signature @ plugin.h @ s/\(\*drain\)\(void \*self, uint64_t/(*drain)(void *self, uint32_t/ @ - @ abidiff slots
a changed return type @ plugin.h @ s/void \(\*stop\)/bh_status (*stop)/ @ abidiff slots @ abidiff slots
an additional parameter @ ext/policy.h @ s/\(\*filter\)\(void \*self,/(*filter)(void *self, uint32_t more,/ @ - @ abidiff slots
a renamed member @ host.h @ s/\(\*log_enabled\)/(*enabled)/ @ - @ layout slots
a larger struct without size @ core.h @ s/^\} bh_str;/  uint64_t more;\n&/ @ - @ all
a larger array @ core.h @ s/char text\[480\]/char text[512]/ @ - @ all
a packed struct @ ext/connector.h @ s/^typedef struct bh_lane_message \{/#pragma pack(push, 4)\n&/; s/^\} bh_lane_message;/&\n#pragma pack(pop)/ @ layout @ layout
a changed error code @ core.h @ s/BH_E_IO = -9/BH_E_IO = -19/ @ - @ layout slots
a new error code @ core.h @ s/BH_E_INTERNAL = -14 /BH_E_INTERNAL = -14, BH_E_MORE = -15 / @ layout slots @ none
a removed error code @ core.h @ /BH_E_PROTOCOL = -12/d @ - @ layout slots
an error code without a number @ core.h @ s/BH_E_INTERNAL = -14 /BH_E_INTERNAL = -14, BH_E_MORE / @ - @ slots
a changed limit @ core.h @ s/BH_HEADER_COUNT = 64/BH_HEADER_COUNT = 32/ @ - @ layout slots
a changed extension ID @ ext/tools.h @ s|"bh.tools/1"|"bh.tools/2"| @ slots @ slots
a changed macro @ plugin.h @ s/"bh_config_schema"/"bh_schema"/ @ - @ slots
a smaller handle @ ext/tools.h @ s/typedef uint64_t bh_call/typedef uint32_t bh_call/ @ - @ abidiff slots
a removed struct @ host.h @ /^typedef struct bh_host_store \{/,/^\} bh_host_store;/d @ - @ all
a name for a reserved member @ ext/tools.h @ /^typedef struct bh_tools /,/^\} bh_tools;/s/uint32_t reserved;/uint32_t more;/ @ layout slots @ none
a new member and a changed signature @ ext/tools.h @ s/^\} bh_host_tools;/  void (*later)(void *ctx);\n&/; s/\(\*resource_updated\)\(void \*ctx, /&uint32_t more, / @ - @ abidiff slots
a changed signature in a draft @ ext/draft/mask.h @ s/\(\*mask\)\(void \*ctx, bh_str text,/(*mask)(void *ctx, uint32_t more, bh_str text,/ @ - @ slots
a changed signature in a draft with a new ID @ ext/draft/mask.h @ s/\(\*mask\)\(void \*ctx, bh_str text,/(*mask)(void *ctx, uint32_t more, bh_str text,/; s|"bh.host.mask/1"|"bh.host.mask/2"| @ abidiff slots @ none
a stable header that becomes a draft @ ext/tools.h @ 1s|^|/* Since 1.0. Draft. */\n| @ - @ slots
MUTANTS
failures=0
tr '\n' '\0' <"$work/mutants" | xargs -0 -P "$(nproc)" -I{} bash -c 'set -euo pipefail; try "$1"' try {} || failures=1
echo "$(wc -l <"$work/mutants") mutants of version $version, as $next"
exit $failures
