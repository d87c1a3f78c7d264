#!/bin/sh
# Tests the session database under load, on a full disk and with 50 kills (records.mjs).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
status=0
"$here/../e2e/run.sh" "$here/records.mjs" "$@" || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || exit "$status"
TELEMETRY_ROUNDS=50 "$here/../e2e/run.sh" "$here/../e2e/telemetry.mjs" 'a kill -9'
for case in 'killed at any moment*' 'full: what was said*'; do
  BULKHEAD_CRASH_ROUNDS=50 "${BULKHEAD_BUILD:-$here/../../build}/tests/telemetry_sqlite_test" "$case"
done
