#!/usr/bin/env bash
# foreign_cache.sh TREE: tests the Makefile with build directories that belong to something else: a
# copied tree, a moved tree, another build directory, or another compiler. Files of the other tree
# must never be compiled or installed.
set -euo pipefail
tree=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
unset MAKEFLAGS MAKELEVEL CXX DESTDIR || true
bad() {
  echo "FAIL: $*"
  cat "$work/log"
  exit 1
}

# A small project is built with the real Makefile.
mkdir -p "$work/a/scripts" "$work/bin"
cp "$tree/Makefile" "$work/a/"
cp "$tree/scripts/configure.sh" "$work/a/scripts/" 2>/dev/null || true
printf '#!/bin/sh\n' >"$work/a/scripts/install-packages.sh"
chmod +x "$work/a/scripts"/*
cat >"$work/a/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
add_executable(bulkhead main.cpp)
add_custom_target(bulkhead_all DEPENDS bulkhead)
install(TARGETS bulkhead)
END
# says FOLDER TEXT: checks that the program in FOLDER prints TEXT.
write() { printf '#include <cstdio>\nint main() { std::puts("%s"); }\n' "$2" >"$work/$1/main.cpp"; }
make_in() { make -s -C "$work/$1" "${@:2}" >"$work/log" 2>&1; }
says() { [ "$("$work/$1")" = "$2" ] || bad "$1 is not of $2"; }

write a "tree a"
make_in a build || bad "the first build"
says a/build/bin/bulkhead "tree a"
! grep -q 'building from scratch' "$work/log" || bad "a fresh tree was taken for a foreign one"

# If nothing has changed, the build directory is not configured again.
touch -d 2001-01-01 "$work/a/build/CMakeFiles/TargetDirectories.txt"
make_in a build || bad "the second build"
[ "$(stat -c %Y "$work/a/build/CMakeFiles/TargetDirectories.txt")" -lt 1000000000 ] || bad "configured without need"
# A symbolic link to the tree counts as the same tree.
ln -s a "$work/link"
make_in link build || bad "the build by a link"
! grep -q 'building from scratch' "$work/log" || bad "a link to a tree was taken for a foreign one"

# A copy of the tree with its build directory, while the original exists.
cp -a "$work/a" "$work/b"
write b "tree b"
make_in b install PREFIX="$work/prefix" || bad "the build of a copy"
grep -q "build was configured for the tree $work/a: configuring and building from scratch" "$work/log" || bad "no message for a copy"
says b/build/bin/bulkhead "tree b"
says prefix/bin/bulkhead "tree b"
says a/build/bin/bulkhead "tree a"

# A moved tree.
mv "$work/b" "$work/c"
write c "tree c"
make_in c build || bad "the build of a moved tree"
says c/build/bin/bulkhead "tree c"

# A copy of the build directory in the same tree.
cp -a "$work/c/build" "$work/c/build-two"
write c "tree c, two"
make_in c build BUILD=build-two || bad "the build in a copied folder"
grep -q "build-two was configured for the build folder $work/c/build:" "$work/log" || bad "no message for a copied folder"
says c/build-two/bin/bulkhead "tree c, two"
says c/build/bin/bulkhead "tree c"

# A different version of the compiler under the same name, for example if another system mounts the
# tree.
cat >"$work/bin/c++" <<'END'
#!/bin/sh
case "$*" in *-dumpfullversion*) cat "$(dirname "$0")/version"; exit ;; esac
exec /usr/bin/c++ "$@"
END
chmod +x "$work/bin/c++"
/usr/bin/c++ -dumpfullversion -dumpversion >"$work/bin/version"
CXX=$work/bin/c++ make_in c build BUILD=build-three || bad "the build with a compiler by name"
make_in c build BUILD=build-three || bad "the second build with it"
! grep -q 'building from scratch' "$work/log" || bad "the same compiler was taken for another one"
echo 99.1.0 >"$work/bin/version"
CXX=$work/bin/c++ make_in c build BUILD=build-three || bad "the build with another compiler"
grep -q "build-three was configured for version .* of $work/bin/c++, which is now 99.1.0" "$work/log" ||
  bad "no message for another compiler"
rm "$work/bin/c++"
make_in c build BUILD=build-three || bad "the build without the compiler"
grep -q "build-three was configured for the compiler $work/bin/c++, which does not exist" "$work/log" ||
  bad "no message for a compiler that is gone"
says c/build-three/bin/bulkhead "tree c, two"
echo "copied and moved trees, copied build folders and other compilers are noticed"
