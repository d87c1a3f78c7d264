#!/bin/sh
# Causes random faults under load (faults.mjs). Arguments: number of faults (default 200) and seed
# (default random).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
status=0
"$here/../e2e/run.sh" "$here/faults.mjs" "$@" || status=$?
[ "$status" = 77 ] || exit "$status"
