#!/bin/sh
# The soak; see soak.mjs. SOAK_SECONDS: how long (600). BULKHEAD names the program.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../e2e/run.sh" "$here/soak.mjs" "$@"
