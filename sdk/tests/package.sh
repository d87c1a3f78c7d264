#!/bin/sh
# Installs the SDK into an empty prefix. Then builds the templates and an aggregator client outside
# this repository, and checks that the core can load and use the plugins.
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

# The aggregator client is a component. find_package() must fail before it is installed, and succeed
# afterwards.
mkdir "$work/client"
cat >"$work/client/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES CXX)
find_package(Bulkhead 0.1 REQUIRED COMPONENTS Aggregator)
add_executable(client client.cpp)
target_link_libraries(client PRIVATE bulkhead::aggregator)
END
cat >"$work/client/client.cpp" <<'END'
#include <bulkhead-aggregator/client.hpp>
int main() {
  bh::aggregator::Options options;
  options.program = "/nonexistent/bulkhead";
  bh::aggregator::Client client(options);
  return client.list_tools().ok() ? 1 : 0;
}
END
configure() {
  "$CMAKE" -S "$work/client" -B "$work/client/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_CXX_COMPILER="$CXX" >"$work/log" 2>&1
}
if configure || ! grep -q "no component Aggregator" "$work/log"; then
  cat "$work/log"
  exit 1
fi
{ "$CMAKE" --install "$BUILD" --component aggregator --prefix "$work/prefix" && configure &&
  "$CMAKE" --build "$work/client/build"; } >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
"$work/client/build/client"
