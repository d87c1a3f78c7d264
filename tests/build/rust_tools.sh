#!/usr/bin/env bash
# rust_tools.sh TREE: tests examples/rust-tools/build.sh. A change of the ABI headers must break the
# build of the plugin, and a missing Rust compiler must be reported. CC and RUSTC name the compilers.
set -euo pipefail
tree=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=$tree/examples/rust-tools/build.sh
bad() {
  echo "FAIL: $*"
  cat "$work/log"
  exit 1
}
build() { "$script" "$work/include" "$work/out" "$@" >"$work/log" 2>&1; }

cp -R "$tree/sdk/include" "$work/include"
RUSTC=$work/none build --optional || bad "a missing compiler is an error with --optional"
grep -q "rust-tools is not built: .*$work/none.*apt-get install rustc" "$work/log" || bad "no clear message"
grep -q "$work/none" "$work/out/rust-tools.skip" || bad "the reason is not in rust-tools.skip"
if RUSTC=$work/none build; then bad "a missing compiler is no error"; fi
[ ! -e "$work/out/rust-tools.so" ] || bad "a library without a compiler"

if ! "${RUSTC:-rustc}" --version >/dev/null 2>&1; then
  echo "SKIP: changes of the headers: the Rust compiler \"${RUSTC:-rustc}\" does not run"
  exit 77
fi
# breaks HEADER EDIT MESSAGE: the build must fail with this message if the header is changed.
breaks() {
  rm -rf "$work/include"
  cp -R "$tree/sdk/include" "$work/include"
  sed -i -E "$2" "$work/include/bulkhead/abi/$1"
  ! cmp -s "$tree/sdk/include/bulkhead/abi/$1" "$work/include/bulkhead/abi/$1" || bad "$2 changes nothing in $1"
  if build; then bad "$2 in $1 does not break the build"; fi
  grep -qF "$3" "$work/log" || bad "$2 in $1: the message is not \"$3\""
}
breaks ext/tools.h 's/^  uint32_t \(\*features\).*/&\n  void (*later)(void *self);/' "bh_tools has another size"
breaks ext/tools.h 's/^  bh_status \(\*complete\).*/  void (*first)(void *self);\n&/' "bh_host_tools.complete has another offset"
breaks core.h 's/char text\[480\]/char text[496]/' "bh_error.text has another offset or size"
breaks host.h 's/int32_t \(\*log_enabled\)/int64_t (*log_enabled)/' "bh_host.log_enabled has another type"
breaks core.h 's/typedef int32_t bh_status/typedef int64_t bh_status/' "bh_status is not int32_t"
breaks plugin.h 's/^(#define BH_SCHEMA_SECTION) .*/\1 "another_section"/' "BH_SCHEMA_SECTION"

rm -rf "$work/include"
cp -R "$tree/sdk/include" "$work/include"
build || bad "the unchanged headers"
[ -s "$work/out/rust-tools.so" ] && [ ! -e "$work/out/rust-tools.skip" ] || bad "no library"
cmp -s "$tree/examples/rust-tools/rust-tools.plugin.toml" "$work/out/rust-tools.plugin.toml" || bad "no manifest"
echo "changes of the headers break the build"
