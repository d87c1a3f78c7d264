#!/usr/bin/env bash
# bench.sh [arguments for run.mjs]: runs the micro-benchmarks of this tree. If BENCH_TOOLS is set,
# runs the tools in that directory instead, with this tree's program.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
build=${BUILD:-build}
program=$(realpath "$build")/bin/bulkhead
umask 022

if [ -n "${BENCH_TOOLS:-}" ]; then
  tools=$(realpath "$BENCH_TOOLS")
  [ -f "$tools/run.mjs" ] || { echo "BENCH_TOOLS=$BENCH_TOOLS has no run.mjs" >&2; exit 2; }
  scripts/install-packages.sh build bench
  export BENCH_DIR=${BENCH_DIR:-$HOME/.cache/mcp-bench}
  if [ ! -x "$BENCH_DIR/bin/load" ] && [ -x "$tools/build.sh" ]; then
    "$tools/build.sh"
  fi
  cd "$tools"
  GATEWAY_BIN="$program" node run.mjs --only "${BENCH_ONLY:-ours,relay,direct,nginx,haproxy,socat}" "$@"
  GATEWAY_BIN="$program" exec node "$here/bench/sessions_512.mjs"
fi

cmake -S . -B build-bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DBULKHEAD_BENCH=ON \
  -DBULKHEAD_TESTS=OFF >/dev/null
cmake --build build-bench -j "${JOBS:-$(nproc)}"
found=0
for bench in build-bench/bin/micro_*; do
  [ -f "$bench" ] && [ -x "$bench" ] || continue
  found=1
  echo "== $(basename "$bench")"
  BULKHEAD="$program" "$bench" "$@"
done
if [ "$found" = 0 ]; then
  echo "no micro-benchmark was built" >&2
  exit 1
fi
