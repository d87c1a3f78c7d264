#!/bin/sh
# reference.sh SDK_DIR RULES_MD PYTHON: checks that each function of the ABI headers has a page in the
# reference, and that reference.py fails if a function has no comment, no thread tag, or an unknown
# status code.
set -eu
sdk=$1
rules=$2
python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
"$python" "$sdk/abi/reference.py" "$sdk" "$rules" "$work/out"
# bh_buf is passed by value; its comment describes release().
"$sdk/abi/dump_slots.sh" "$sdk/include" | awk '
  /^[^ ]/ { type = /^struct / ? $2 : "" }
  type != "" && type != "bh_buf" && match($0, /\(\*[a-z_0-9]+\)/) { print type "." substr($0, RSTART + 2, RLENGTH - 3) }' >"$work/slots"
[ "$(wc -l <"$work/slots")" -gt 50 ]
while read -r slot; do
  if ! grep -q '^| thread and blocking | ' "$work/out/$slot.md"; then
    echo "FAILED: no page for $slot"
    failures=1
  fi
done <"$work/slots"
# All links between the pages exist.
grep -ohE '\]\([A-Za-z0-9_.-]+\.md\)' "$work"/out/*.md | sort -u | sed 's/^](\(.*\))$/\1/' | while read -r link; do
  [ -f "$work/out/$link" ] || { echo "FAILED: a link to $link, which does not exist"; exit 1; }
done || failures=1

fails() { # WHAT SED-SCRIPT TEXT
  rm -rf "$work/sdk" "$work/none"
  mkdir -p "$work/sdk/include/bulkhead"
  cp -R "$sdk/include/bulkhead/abi" "$work/sdk/include/bulkhead/abi"
  ln -s "$sdk/template" "$work/sdk/template"
  sed -i "$2" "$work/sdk/include/bulkhead/abi/host.h"
  if "$python" "$sdk/abi/reference.py" "$work/sdk" "$rules" "$work/none" >"$work/log" 2>&1 ||
    ! grep -qF "$3" "$work/log" || [ -e "$work/none" ]; then
    echo "FAILED: $1 was accepted, or has another message"
    cat "$work/log"
    failures=1
  fi
}
fails "a function without a comment" 's|^} bh_host;|  void (*later)(void *ctx);\n&|' "host.h: bh_host.later has no comment"
fails "a function without a thread tag" 's|^} bh_host;|  /* Does nothing. */\n  void (*later)(void *ctx);\n&|' "host.h: bh_host.later has no thread tag"
fails "an unknown status code" 's|^} bh_host;|  /* Returns BH_E_NEW. [io] */\n  bh_status (*later)(void *ctx);\n&|' "bh_host.later names BH_E_NEW"
exit $failures
