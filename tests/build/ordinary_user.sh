#!/usr/bin/env bash
# ordinary_user.sh TREE: tests that the tests for an unprivileged user run as one if root starts
# them. This must work even if only root can access the tree, and with any umask at the time of the
# clone.
set -euo pipefail
tree=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad() {
  echo "FAIL: $*"
  cat "$work/log"
  exit 1
}
chmod 755 "$work"

# tree_at FOLDER: creates a tree with the scripts, and with a run.sh that prints its user and
# arguments.
tree_at() {
  mkdir -p "$1/tests/e2e" "$1/build/bin" "$1/build/lib" "$1/build/tests" "$1/build/npm"
  cp "$tree/tests/e2e/as_user.sh" "$1/tests/e2e/"
  cp "$tree/tests/as_ordinary.sh" "$1/tests/" 2>/dev/null || true
  echo 'a test script' >"$1/tests/e2e/one.mjs"
  printf '#!/bin/sh\ncat "$1"; cat "$BULKHEAD_BUILD/bin/program"; echo x >"$HOME/f" && id -u; echo "$1 $HOME"\n[ "$(id -u)" != 0 ] || exit 1\n' >"$1/tests/e2e/run.sh"
  echo 'a program' >"$1/build/bin/program"
  chmod 755 "$1/tests/e2e/run.sh"
  chmod -R go+rX "$1/build"
}
run() {
  local status=0
  BULKHEAD_BUILD=$1/build "$1/tests/e2e/as_user.sh" one.mjs one.mjs >"$work/log" 2>&1 || status=$?
  if [ "$(id -u)" != 0 ]; then
    [ $status = 77 ] && grep -q SKIP "$work/log" || bad "an ordinary user: exit code $status"
    return
  fi
  [ $status = 0 ] || bad "$2: exit code $status"
  [ "$(grep -c '^a test script$' "$work/log")" = 2 ] || bad "$2: the script was not read twice"
  [ "$(grep -c '^a program$' "$work/log")" = 2 ] || bad "$2: the program was not read"
  [ "$(grep -cx '[1-9][0-9]*' "$work/log")" = 2 ] || bad "$2: not run as an ordinary user"
  grep -q "^$1/tests/e2e/one.mjs " "$work/log" || bad "$2: under another path"
}

tree_at "$work/open"
run "$work/open" "an open tree"
umask 077
tree_at "$work/closed"
run "$work/closed" "a tree cloned under umask 077"
mkdir "$work/home"
umask 022
tree_at "$work/home/deep/tree"
run "$work/home/deep/tree" "a tree in root's home"
# If such a test fails, the failure is reported.
echo 'exit 3' >>"$work/open/tests/e2e/run.sh"
if [ "$(id -u)" = 0 ] && BULKHEAD_BUILD=$work/open/build "$work/open/tests/e2e/as_user.sh" one.mjs >"$work/log" 2>&1; then
  bad "a failure was lost"
fi
# All mounts and directories are removed afterwards.
! grep -q "$work" /proc/self/mounts || bad "mounts were left"
echo "ordinary users: run as they should be"
