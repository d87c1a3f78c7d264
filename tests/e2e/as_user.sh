#!/bin/sh
# as_user.sh SCRIPT.mjs...: runs test scripts as an ordinary user, over a program that belongs to root. Exit 77
# (skipped) for an ordinary user, who runs all scripts as one.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
failed=0
for script; do
  echo "== $script"
  "$here/../as_ordinary.sh" "${BULKHEAD_BUILD:-$root/build}" "$here/run.sh" "$here/$script" || {
    status=$?
    [ $status != 77 ] || exit 77
    failed=1
  }
done
exit $failed
