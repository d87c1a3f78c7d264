#!/bin/sh
# as_user.sh SCRIPT.mjs...: runs test scripts as an unprivileged user with a program that belongs to
# root. If an unprivileged user runs it, it exits with 77 (skipped), because all scripts then run as
# that user anyway.
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
