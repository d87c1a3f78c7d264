#!/bin/sh
# includes.sh TREE: checks that no file of a plugin or the SDK includes a header of core/ or host/,
# under any path that core's include folder permits.
set -eu
cd "$1"
rooms=$(cd core && find . -mindepth 1 -maxdepth 1 -type d | sed 's|^\./||' | paste -sd '|' -)
found=$(grep -rnE --include='*.c' --include='*.h' --include='*.cpp' --include='*.hpp' \
  "#[[:space:]]*include[[:space:]]*[<\"](\.\./)*(core|host|$rooms)/" plugins sdk examples/plugins || true)
# A path such as "bulkhead/FOLDER/..." does not match: it is a header of the SDK, even if core/ has
# a folder with the same name.
if [ -n "$found" ]; then
  echo "These include what is not in the SDK:"
  echo "$found"
  exit 1
fi
# Checks that the build rules of plugins do not use include folders of core/ or host/.
found=$(grep -rnE --include=CMakeLists.txt 'bulkhead_core_headers|[/ (]core/|[/ (]host/' plugins sdk \
  examples/plugins || true)
if [ -n "$found" ]; then
  echo "These build rules give a plugin more than the SDK:"
  echo "$found"
  exit 1
fi
