#!/usr/bin/env bash
# as_ordinary.sh BUILD COMMAND ARG...: runs COMMAND as an unprivileged user, with a tree and a build
# directory that belong to root. HOME and TMPDIR are a new directory of that user.
#
# If an unprivileged user runs the script, it exits with 77 (skipped), because all tests then run as
# an unprivileged user anyway. If root runs it, no test is skipped, and a failure is reported with
# its reason.
#
# If only root can access the tree (because it is in /root or was cloned with umask 077), COMMAND
# runs in a mount namespace in which the same path contains a readable copy of the tree's files and
# the build directory itself.
set -euo pipefail
uid=60999  # belongs to no account
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$(cd "$1" && pwd -P)
shift
if [ "$(id -u)" != 0 ]; then
  echo "SKIP: user $(id -u) is an ordinary one, and ran these tests without this script"
  exit 77
fi

fail() {
  echo "as_ordinary.sh: $*" >&2
  exit 1
}
as_user() { setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all -- "$@"; }
command -v setpriv >/dev/null || fail "setpriv is missing: apt-get install util-linux"

# Prints a file or directory that the user cannot read. Prints nothing if there is none.
unreadable() {
  as_user test -x "$tree" || { echo "$tree" && return; }
  as_user find "$tree" \( -path "$tree/build*" -o -path "$tree/.git" \) -prune -o ! -readable -print -quit 2>&1 | head -1
  as_user find "$build/bin" "$build/lib" "$build/tests" ! -readable -print -quit 2>&1 | head -1
}

# Makes the tree readable under the same path in a private mount namespace. $1 is an empty directory
# for mounts.
show_tree() {
  local hold=$1 top part
  mount -t tmpfs -o mode=755 tmpfs "$hold" || fail "no file system can be mounted here, and $(unreadable) is closed to other users"
  mkdir "$hold/tree" "$hold/build" "$hold/npm"
  mount --rbind "$build" "$hold/build"
  tar -C "$tree" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$hold/tree" --no-same-owner -xf -
  chmod -R go+rX "$hold/tree"
  [ ! -d "$tree/build/npm" ] || mount --rbind "$tree/build/npm" "$hold/npm"
  # Mounts over the topmost directory of the path that the user cannot enter, or else over the tree
  # itself.
  top=$tree
  part=$tree
  while [ "$part" != / ]; do
    as_user test -x "$part" || top=$part
    part=$(dirname "$part")
  done
  mount -t tmpfs -o mode=755 tmpfs "$top"
  mkdir -p "$tree"
  mount --bind "$hold/tree" "$tree"
  mkdir -p "$tree/build/npm" 2>/dev/null || true
  mkdir -p "$build"
  mount --rbind "$hold/build" "$build"
  [ "$build" = "$tree/build" ] || [ ! -d "$hold/npm/node_modules" ] || mount --rbind "$hold/npm" "$tree/build/npm"
}

if [ -n "${AS_ORDINARY_HOLD:-}" ]; then
  show_tree "$AS_ORDINARY_HOLD"
elif [ -n "$(unreadable)" ]; then
  hold=$(mktemp -d)
  status=0
  AS_ORDINARY_HOLD=$hold unshare --mount --propagation private "${BASH_SOURCE[0]}" "$build" "$@" || status=$?
  rmdir "$hold"
  exit $status
fi
closed=$(unreadable)
[ -z "$closed" ] || fail "an ordinary user cannot read $closed: chmod -R go+rX it"
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
chown $uid:$uid "$home"
cd "$home"
status=0
# The tests detect sanitizer builds by these variables.
sanitizer=()
for name in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS ASAN_SYMBOLIZER_PATH; do
  [ -z "${!name:-}" ] || sanitizer+=("$name=${!name}")
done
as_user env -i "${sanitizer[@]}" PATH="$PATH" HOME="$home" TMPDIR="$home" USER=tester LOGNAME=tester \
  BULKHEAD_BUILD="$build" BULKHEAD_NPM_DIR="${BULKHEAD_NPM_DIR:-$tree/build/npm}" \
  ${BULKHEAD_ALLOW_SKIP:+BULKHEAD_ALLOW_SKIP="$BULKHEAD_ALLOW_SKIP"} "$@" || status=$?
exit $status
