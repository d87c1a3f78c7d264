#!/bin/sh
# build.sh INCLUDE OUT [--test] [--optional]: builds OUT/rust-tools.so and copies its manifest to OUT.
# INCLUDE is the folder that contains bulkhead/abi. The variables CC and RUSTC name the compilers
# (default: cc and rustc), and RUSTFLAGS has additional options for rustc.
#
# --test also builds OUT/rust-tools-test, which runs the unit tests. With --optional, a missing Rust
# compiler is not an error: its absence is reported in the file OUT/rust-tools.skip.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
include=$1
out=$2
shift 2
tests=
optional=
for option in "$@"; do
  case $option in
    --test) tests=1 ;;
    --optional) optional=1 ;;
    *) echo "$0: unknown option $option" >&2; exit 2 ;;
  esac
done
cc=${CC:-cc}
rustc=${RUSTC:-rustc}

mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)
rm -f "$out/rust-tools.so" "$out/rust-tools-test" "$out/rust-tools.skip"
if ! "$rustc" --version >/dev/null 2>&1; then
  reason="the Rust compiler \"$rustc\" does not run (Debian: apt-get install rustc)"
  echo "rust-tools is not built: $reason" >&2
  [ -n "$optional" ] || exit 1
  echo "$reason" >"$out/rust-tools.skip"
  exit 0
fi

# The layout of the ABI's structs, for the assertions in src/abi.rs.
"$cc" -std=c11 -I "$include" "$here/src/layout.c" -o "$out/layout"
"$out/layout" "$out/layout.rs"

export OUT_DIR="$out"
# shellcheck disable=SC2086  # RUSTFLAGS is a list of options
compile() { "$rustc" --edition 2021 --crate-name rust_tools -C linker="$cc" ${RUSTFLAGS:-} "$@" "$here/src/lib.rs"; }
[ -z "$tests" ] || compile --test -o "$out/rust-tools-test"
compile --crate-type cdylib -C opt-level=2 -C panic=unwind -C strip=debuginfo -C link-arg=-Wl,-z,defs \
  -o "$out/rust-tools.so"
cp "$here/rust-tools.plugin.toml" "$out/"
