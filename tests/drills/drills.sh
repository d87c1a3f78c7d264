#!/bin/sh
# Runs the long drills of `make test-full` (drills.mjs). The variable BULKHEAD names the program.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
status=0
"$here/../e2e/run.sh" "$here/drills.mjs" "$@" || status=$?
[ "$status" = 77 ] || exit "$status"
