#!/bin/sh
# Runs the soak test (soak.mjs). SOAK_SECONDS is the duration (default 600). The variable BULKHEAD
# names the program.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../e2e/run.sh" "$here/soak.mjs" "$@"
