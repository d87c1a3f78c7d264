#!/bin/sh
# Installs the SDK into an empty prefix. Then builds the templates, a plugin of this repository, the
# example that embeds the core and an aggregator client outside of this repository, and checks that
# the core can load and use the plugins.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
"$CMAKE" --install "$BUILD" --component sdk --prefix "$work/prefix" >"$work/log" || {
  cat "$work/log"
  exit 1
}
# Each template becomes a plugin with another name. Without the program, the template itself is built.
bulkhead="$BUILD/bin/bulkhead"
templates=0
for folder in "$work/prefix/share/bulkhead/template"/*; do
  template=$(basename "$folder")
  kind=${template%-*}
  language=c
  [ "${template##*-}" = c ] || language=c++
  if [ -x "$bulkhead" ]; then
    id=my-$template
    "$bulkhead" plugin new "$kind" "$id" "$work/$template" --lang "$language" >"$work/log"
  else
    id=hello-${template%-cpp}
    cp -R "$folder" "$work/$template"
  fi
  {
    "$CMAKE" -S "$work/$template" -B "$work/$template/build" \
      -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
      -DCMAKE_C_FLAGS="-Wall -Wextra -Wshadow -Werror" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror" &&
      "$CMAKE" --build "$work/$template/build" &&
      (cd "$work/$template/build" && "$(dirname "$CMAKE")/ctest" --output-on-failure --no-tests=error) &&
      "$CMAKE" --install "$work/$template/build" --prefix "$work/prefix"
  } >"$work/log" 2>&1 || {
    echo "$template:"
    cat "$work/log"
    exit 1
  }
  echo "$template: built and tested as $id"
  [ "$template" != tools-cpp ] || tools=$id
  [ "$template" != tools-c ] || tools_c=$id
  templates=$((templates + 1))
done
[ "$templates" -ge 10 ]
plugins=$(find "$work/prefix" -type d -path '*/bulkhead/plugins')
"$BUILD/tests/load_check" "$plugins"
"$BUILD/tests/load_check" "$plugins" "$tools" echo '{"say":"\"hi\""}' wait '{}'
"$BUILD/tests/load_check" "$plugins" "$tools_c" echo '{"say":"\"hi\""}'

# A plugin folder of this repository needs only the installed SDK.
repository=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
mkdir "$work/own"
cp -R "$repository/plugins/policy-allow" "$work/own"
cat >"$work/own/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(own LANGUAGES C CXX)
find_package(Bulkhead 0.1 REQUIRED)
add_library(bulkhead_flags INTERFACE)  # the compiler flags of the repository
add_subdirectory(policy-allow)
END
{ "$CMAKE" -S "$work/own" -B "$work/own/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" && "$CMAKE" --build "$work/own/build" &&
  "$BUILD/tests/load_check" "$work/own/build/policy-allow"; } >"$work/log" 2>&1 || {
  echo "plugins/policy-allow with the installed SDK:"
  cat "$work/log"
  exit 1
}

# The core is a component. The example that embeds it runs with the plugins that were built above.
cp -R "$repository/examples/embed" "$work/embed"
lines=$(grep -c '' "$work/embed/embed.cpp")
[ "$lines" -le 60 ]
{ "$CMAKE" --install "$BUILD" --component host --prefix "$work/prefix" &&
  "$CMAKE" -S "$work/embed" -B "$work/embed/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror" &&
  "$CMAKE" --build "$work/embed/build"; } >"$work/log" 2>&1 || {
  echo "examples/embed with the installed core:"
  cat "$work/log"
  exit 1
}
"$work/embed/build/embed" "$plugins" "$tools" "$tools_c" 2>"$work/log" || {
  cat "$work/log"
  exit 1
}

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
