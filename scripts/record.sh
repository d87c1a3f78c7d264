#!/usr/bin/env bash
# The third tier, for the record: every fuzzer for FUZZ_SECONDS of processor time, then the soak.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-900}
jobs=${JOBS:-$(nproc)}
umask 022

scripts/install-packages.sh build full
cmake --preset fuzz >/dev/null
cmake --build build-fuzz -j "$jobs"

fuzz() {
  local fuzzer=$1 name corpora seeds
  name=$(basename "$fuzzer")
  corpora=("build-fuzz/corpus/$name")  # what is new goes into the first
  mkdir -p "${corpora[0]}" build-fuzz/findings
  for seeds in "tests/fuzz/corpus/$name" "tests/fuzz/corpus/${name%_fuzz}"; do
    [ ! -d "$seeds" ] || corpora+=("$seeds")
  done
  echo "== $name, $seconds s"
  # -timeout: one input; -rss_limit_mb: an input that makes the parser allocate without bound.
  "$fuzzer" "${corpora[@]}" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/findings/$name-" >"build-fuzz/$name.log" 2>&1 || {
    tail -40 "build-fuzz/$name.log"
    echo "FINDING in $name, see build-fuzz/findings" >&2
    return 1
  }
  grep -E '^(stat::number_of_executed_units|stat::peak_rss_mb)' "build-fuzz/$name.log"
}
export -f fuzz
export seconds

mapfile -t fuzzers < <(find build-fuzz/fuzz -maxdepth 1 -type f -executable | sort)
[ ${#fuzzers[@]} -gt 0 ] || { echo "no fuzzer was built" >&2; exit 1; }
printf '%s\n' "${fuzzers[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz {}'

for soak in tests/soak/*.sh tests/soak/*.mjs; do
  [ -x "$soak" ] || continue
  echo "== $soak"
  BULKHEAD="$PWD/build/bin/bulkhead" "$soak"
done
