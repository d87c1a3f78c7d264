#!/bin/sh
# as_user.sh SCRIPT.mjs...: runs test scripts as an ordinary user, over a program that belongs to root.
# Exit 77 (skipped) where that cannot be.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
build=${BULKHEAD_BUILD:-$root/build}
uid=60999 # of no account
if [ "$(id -u)" != 0 ]; then
  echo "SKIP: only root can become another user (and who is not root runs all the others as one)"
  exit 77
fi
as_user() {
  setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all -- "$@"
}
if ! as_user test -r "$build/bin/bulkhead" || ! as_user test -r "$here/run.sh"; then
  echo "SKIP: $root is not readable for others"
  exit 77
fi
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
chown $uid:$uid "$home"
failed=0
for script; do
  echo "== $script"
  as_user env HOME="$home" TMPDIR="$home" USER=tester LOGNAME=tester "$here/run.sh" "$here/$script" || failed=1
done
exit $failed
