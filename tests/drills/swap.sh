#!/bin/sh
# Swaps a tools plugin under load (swap.mjs). Argument: number of swaps (default 100).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
status=0
"$here/../e2e/run.sh" "$here/swap.mjs" "$@" || status=$?
[ "$status" = 77 ] || exit "$status"
