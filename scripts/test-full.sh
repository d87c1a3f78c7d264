#!/usr/bin/env bash
# Runs the second test tier, which must pass before an issue is closed. Builds into build-*/. Prints
# the name of each step and stops at the first failure. TIDY_BASE is the base commit for clang-tidy
# (default: see tidy-changed.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
umask 022

step() { printf '\n== %s\n' "$*"; }

scripts/install-packages.sh build test full
scripts/kernel-features.sh

step "SDK headers alone with every installed compiler"
sdk/tests/alone.sh "$PWD/sdk" --all

step "clang 19 -Werror, AddressSanitizer and UndefinedBehaviorSanitizer"
cmake --preset asan >/dev/null
cmake --build build-asan -j "$jobs"
ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  ctest --test-dir build-asan -j "$jobs" --output-on-failure -LE 'e2e|toolchain'
# If the program or a plugin prints a sanitizer report at exit, the test that ran it fails.
ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  ctest --test-dir build-asan -j "$jobs" --output-on-failure -L e2e -E '^e2e_speed$'

# ThreadSanitizer starts a thread, so a process that runs under it cannot enter a user namespace. It
# also does not support child processes that share memory with their parent. Tests that start
# sandboxes (no_tsan) are therefore skipped. The threads that start child processes
# (core/sandbox/starters.cpp) are checked only by review: they take a plan from a queue under a lock
# and return it under the same lock, and until then other threads access only the plan's atomic
# members.
step "ThreadSanitizer"
cmake --preset tsan >/dev/null
cmake --build build-tsan -j "$jobs"
TSAN_OPTIONS="halt_on_error=1 external_symbolizer_path=/usr/bin/llvm-symbolizer-19" \
  ctest --test-dir build-tsan -j "$jobs" --output-on-failure -LE 'e2e|no_tsan|toolchain'

step "all cells of the matrix"
tests/e2e/run.sh tests/matrix/matrix.mjs --all

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
