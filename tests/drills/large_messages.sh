#!/bin/sh
# Measures the delay that large messages cause for other clients, with and without rules
# (large_messages.mjs). The machine should be idle.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
status=0
"$here/../e2e/run.sh" "$here/large_messages.mjs" "$@" || status=$?
[ "$status" = 77 ] || exit "$status"
