#!/usr/bin/env bash
# Runs the third test tier: each fuzzer for FUZZ_SECONDS of processor time, the soak test, and the
# README's commands on fresh systems with Debian 12 and 13. FUZZERS="scan sse" selects fuzzers.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-900}
jobs=${JOBS:-$(nproc)}
umask 022

scripts/install-packages.sh build full
cmake --preset fuzz >/dev/null
cmake --build build-fuzz -j "$jobs" --target fuzzers

# libFuzzer's time limit is wall time, of which a busy machine gives the fuzzer only a part. The
# fuzzer is therefore run repeatedly until it has used its processor time. Each run continues with
# the inputs that earlier runs found.
fuzz() {
  local name=$1 log="build-fuzz/$1.log" spent=0 corpora piece units
  corpora=("build-fuzz/corpus/$name" "tests/fuzz/corpus/$name")  # new inputs are written to the first corpus
  mkdir -p "${corpora[0]}" build-fuzz/findings
  : >"$log"
  local dict=()
  [ ! -f "tests/fuzz/$name.dict" ] || dict=("-dict=tests/fuzz/$name.dict")
  while [ "$spent" -lt "$seconds" ]; do
    piece=$((seconds - spent < 60 ? seconds - spent : 60))
    # -timeout applies to each input. -rss_limit_mb detects unlimited allocation.
    "build-fuzz/fuzz/$name" "${corpora[@]}" -max_total_time="$piece" -timeout=10 \
      -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 "${dict[@]}" \
      -artifact_prefix="build-fuzz/findings/$name-" >>"$log" 2>&1 || {
      tail -40 "$log"
      echo "FINDING in $name, see build-fuzz/findings" >&2
      return 1
    }
    times >"build-fuzz/$name.times"  # without a pipe, which would start another process
    spent=$(awk 'NR == 2 {  # user and system time of children
      for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += part[1] * 60 + part[2] }
      print int(sum)
    }' "build-fuzz/$name.times")
  done
  units=$(awk '/^stat::number_of_executed_units/ { sum += $2 } END { print sum }' "$log")
  echo "$name: $spent s of processor time, $units inputs, no finding"
}
export -f fuzz
export seconds

read -ra fuzzers <<<"${FUZZERS:-$(find build-fuzz/fuzz -type f -executable -printf '%f ')}"
[ ${#fuzzers[@]} -gt 0 ] || { echo "no fuzzer was built" >&2; exit 1; }
printf '%s\n' "${fuzzers[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz {}'

for soak in tests/soak/*.sh tests/soak/*.mjs; do
  [ -x "$soak" ] || continue
  echo "== $soak"
  BULKHEAD="$PWD/build/bin/bulkhead" "$soak"
done

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
for suite in bookworm trixie; do
  "${as_root[@]}" scripts/distro.sh "$suite"
done
