#!/usr/bin/env bash
# configure.sh BUILD: configures the build directory BUILD of this tree if necessary.
#
# The build directory may belong to another tree, because it was copied or moved with the tree, or
# to another compiler. It would then compile and install the files of the other tree. In that case
# it is configured again, and its build results are removed.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
cache=$build/CMakeCache.txt

# Prints how the configuration of BUILD differs from this tree. Prints nothing if it does not
# differ.
foreign() {
  local home folder compiler version now
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  folder=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache")
  compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")
  version=$(sed -n 's/^CMAKE_CACHE_\(MAJOR\|MINOR\|PATCH\)_VERSION:INTERNAL=//p' "$cache" | paste -sd .)
  version=$(sed -n 's/^set(CMAKE_CXX_COMPILER_VERSION "\(.*\)")$/\1/p' \
    "$build/CMakeFiles/$version/CMakeCXXCompiler.cmake" 2>/dev/null || true)
  # A symbolic link to the directory counts as the same directory.
  if [ ! "$home" -ef . ]; then
    echo "the tree ${home:-unknown}"
  elif [ ! "$folder" -ef "$build" ]; then
    echo "the build folder ${folder:-unknown}"
  elif ! now=$("$compiler" -dumpfullversion -dumpversion 2>/dev/null); then
    echo "the compiler ${compiler:-unknown}, which does not exist"
  elif [ "$now" != "$version" ]; then
    echo "version ${version:-unknown} of $compiler, which is now $now"
  fi
}

# Plugins that other users can modify are not loaded, so the tree is built with umask 022.
umask 022
if [ -f "$cache" ]; then
  was=$(foreign)
  if [ -n "$was" ]; then
    echo "$build was configured for $was: configuring and building from scratch" >&2
    cmake --fresh -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release
    cmake --build "$build" --target clean
    exit
  fi
fi
[ -f "$build/build.ninja" ] && [ -f "$cache" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release
