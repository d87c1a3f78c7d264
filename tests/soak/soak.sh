#!/bin/sh
# Runs the soak test; see soak.mjs. SOAK_SECONDS is the duration (600). BULKHEAD names the program.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../e2e/run.sh" "$here/soak.mjs" "$@"
