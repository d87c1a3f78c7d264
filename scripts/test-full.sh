#!/usr/bin/env bash
# The second tier: what is run before an issue is called resolved. Builds go to build-*/ beside
# build/; each step says its name, and the first failure ends the run. TIDY_BASE: the commit since
# which files count as changed for clang-tidy (default: what tidy-changed.sh finds).
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
umask 022

step() { printf '\n== %s\n' "$*"; }

scripts/install-packages.sh build test full
scripts/kernel-features.sh

step "clang 19 -Werror, AddressSanitizer and UndefinedBehaviorSanitizer"
cmake --preset asan >/dev/null
cmake --build build-asan -j "$jobs"
ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  ctest --test-dir build-asan -j "$jobs" --output-on-failure -LE e2e
# The program and its plugins; what they report as they end makes the test that ran them fail.
ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  ctest --test-dir build-asan -j "$jobs" --output-on-failure -L e2e -E '^e2e_speed$'

# ThreadSanitizer's run-time has a thread of its own, with which no process can enter a user namespace,
# and does not survive a child on its parent's memory: tests that start sandboxes (no_tsan) are left
# out. So nothing but review watches the threads that start children (core/sandbox/starters.cpp): they take
# a plan from a queue under one lock and give it back under it; between, nobody else looks at the
# plan but for the words that it names.
step "ThreadSanitizer"
cmake --preset tsan >/dev/null
cmake --build build-tsan -j "$jobs"
TSAN_OPTIONS="halt_on_error=1 external_symbolizer_path=/usr/bin/llvm-symbolizer-19" \
  ctest --test-dir build-tsan -j "$jobs" --output-on-failure -LE 'e2e|no_tsan'

step "drills"
for drill in tests/drills/*.sh; do
  echo "-- $drill"
  "$drill"
done

step "attacks on rules and sandboxes"
for attack in tests/redteam/*.mjs; do
  echo "-- $attack"
  tests/e2e/run.sh "$attack"
done

step "clang-tidy on the files that changed"
cmake --preset clang >/dev/null  # for its compile commands
scripts/tidy-changed.sh build-clang "${TIDY_BASE:-}"
