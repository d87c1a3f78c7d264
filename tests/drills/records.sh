#!/bin/sh
# Tests the session database under load, on a full disk and with 50 kills (records.mjs).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
status=0
"$here/../e2e/run.sh" "$here/records.mjs" "$@" || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || exit "$status"
status=0
TELEMETRY_ROUNDS=50 "$here/../e2e/run.sh" "$here/../e2e/telemetry.mjs" 'kill -9 of all processes'
# Catch2 2 exits with 0 if no test has the tag, so the number of tests is compared.
report=$(BULKHEAD_CRASH_ROUNDS=50 "${BULKHEAD_BUILD:-$here/../../build}/tests/telemetry_sqlite_test" '[kill]') || status=$?
echo "$report"
[ "$status" = 0 ] || exit "$status"
echo "$report" | grep -q 'All tests passed .* in 2 test cases'
