#!/bin/sh
# Installs the SDK into an empty prefix, builds the templates against it outside this tree, and has
# the core load and use what came out.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
"$CMAKE" --install "$BUILD" --component sdk --prefix "$work/prefix" >"$work/log" || {
  cat "$work/log"
  exit 1
}
for template in tools-c tools-cpp; do
  cp -R "$work/prefix/share/bulkhead/template/$template" "$work/$template"
  {
    "$CMAKE" -S "$work/$template" -B "$work/$template/build" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
      -DCMAKE_C_FLAGS="-Wall -Wextra -Wshadow -Werror" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror" &&
      "$CMAKE" --build "$work/$template/build" &&
      "$CMAKE" --install "$work/$template/build" --prefix "$work/prefix"
  } >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
done
plugins=$(find "$work/prefix" -type d -path '*/bulkhead/plugins')
"$BUILD/tests/load_check" "$plugins" hello-tools echo '{"say":"\"hi\""}' wait '{}'
"$BUILD/tests/load_check" "$plugins" hello-tools-c echo '{"say":"\"hi\""}'
