#!/usr/bin/env bash
# abi_versions.sh SDK_DIR LOAD_CHECK [CC [CXX]]: runs plugins and hosts of different ABI versions with
# each other. LOAD_CHECK is the program that loads plugins as the host does.
#  1. Plugins that were built with the headers of an earlier version of the same major version run in
#     this host. Their sources are in sdk/abi/plugins/VERSION (see update.sh), and their headers are made
#     of the golden file. A version without plugins is an error. Without an earlier version, this part
#     runs with the templates and the golden file of the current version.
#  2. Plugins that are built with the headers of a synthetic next minor version run in this host if they
#     need only the version of this host. Otherwise they are rejected, and the error names both versions.
#  3. A plugin that is built with today's headers runs in a host (the one for tests) that is built with
#     the headers of the synthetic version.
set -euo pipefail
umask 022
sdk=$(realpath "$1")
load_check=$(realpath "$2")
cc=${3:-cc}
cxx=${4:-c++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=/dev/null
. "$sdk/abi/versions.sh"
"$sdk/abi/dump_slots.sh" "$sdk/include" >"$work/slots"
version=$(abi_version "$work/slots")
major=${version%%.*}
minor=${version#*.}
minor=${minor%-rc*}
next=$major.$((minor + 1))
entry=$(sed -nE 's/^#define BH_PLUGIN_ENTRY_SYMBOL "(.*)"$/\1/p' "$work/slots")
echo "{ global: $entry; local: *; };" >"$work/plugin.map"

# build_plugin FOLDER SOURCE INCLUDE_DIR NEEDED [OPTION...]: builds a plugin and its manifest, whose ID
# and extension are those of the source.
build_plugin() {
  local folder=$1 source=$2 include=$3 needed=$4 id provides
  shift 4
  id=$(sed -nE 's/^#define PLUGIN_ID "(.*)"$/\1/p' "$source")
  provides=$(sed -nE 's/.*provides\[\] = \{BH_EXT_([A-Z]+), NULL\}.*/\1/p' "$source" | tr A-Z a-z)
  if [ -z "$id" ] || [ -z "$provides" ]; then
    echo "$source defines no PLUGIN_ID and no provides[]" >&2
    return 1
  fi
  mkdir -p "$folder"
  "$cc" -std=gnu11 -O1 -shared -fPIC -fvisibility=hidden -Wl,-z,defs "-Wl,--version-script=$work/plugin.map" \
    -I "$include" -o "$folder/$id.so" "$source" "$@"
  printf 'id = "%s"\nversion = "1.0.0"\nabi_major = %s\nabi_minor_needed = %s\nprovides = ["bh.%s/1"]\n' \
    "$id" "$major" "$needed" "$provides" >"$folder/$id.plugin.toml"
}
run() { "$load_check" "$@" >"$work/log" 2>&1 || { echo "FAILED: load_check $*"; cat "$work/log"; exit 1; }; }
# rejected FOLDER WHAT: the library in FOLDER is not loaded, because it needs the next version.
rejected() {
  local words=("requires plugin ABI $next" "offers $major.$minor") word
  if "$load_check" "$1" >"$work/log" 2>&1; then
    echo "FAILED: $2 was loaded"
    exit 1
  fi
  for word in "${words[@]}"; do
    grep -qF "$word" "$work/log" || { echo "FAILED: the error for $2 lacks: $word"; cat "$work/log"; exit 1; }
  done
}
# try_version VERSION SOURCE...: part 1 for one version.
try_version() {
  local version=$1 header source include=$work/include-$1
  shift
  mkdir -p "$include/bulkhead/abi/ext"
  { echo "#pragma once"; "$sdk/abi/header_of.sh" "$sdk/abi/golden/$version.txt"; } >"$include/bulkhead/abi/all.h"
  for header in plugin.h host.h ext/{tools,policy,connector}.h; do
    echo '#include <bulkhead/abi/all.h>' >"$include/bulkhead/abi/$header"
  done
  for source; do build_plugin "$work/plugins-$version" "$source" "$include" 0; done
  run "$work/plugins-$version"
  if [ -e "$work/plugins-$version/hello-tools-c.so" ]; then
    run "$work/plugins-$version" hello-tools-c echo '{"say":"hi"}'
    grep -q 'hi' "$work/log"
  fi
  echo "plugins of ABI $version run in ABI $version_here: $#"
}
version_here=$version
shopt -s nullglob
templates=("$sdk"/template/{tools,policy,connector}-c/*_c.c) # those of stable extensions

baselines=
[ "$major" = 0 ] || baselines=$(abi_baselines "$sdk/abi/golden" "$version")
tried=0
for old in $baselines; do
  case $old in *-rc*) continue ;; esac # only the same candidate loads such a plugin
  sources=("$sdk/abi/plugins/$old"/*.c)
  [ ${#sources[@]} -gt 0 ] || { echo "FAILED: sdk/abi/plugins/$old has no plugins"; exit 1; }
  try_version "$old" "${sources[@]}"
  tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || try_version "$version" "${templates[@]}"

# The synthetic version: additional members at the end of structs that begin with their size.
cp -R "$sdk/include" "$work/next"
sed -i "s/^#define BH_ABI_MINOR .*/#define BH_ABI_MINOR ${next#*.}u/" "$work/next/bulkhead/abi/core.h"
later='s/^} \(bh_host\|bh_host_tools\|bh_tools\|bh_policy\|bh_plugin\|bh_entry\|bh_descriptor\);/  void (*later)(void *ctx);\n&/
  s/^} \(bh_call_info\|bh_policy_request\|bh_verdict\|bh_result\);/  bh_str later;\n&/'
sed -i "$later" "$work"/next/bulkhead/abi/{host,plugin,ext/tools,ext/policy}.h
[ "$(grep -rhc 'later;$\|later)(void' "$work/next/bulkhead/abi" | awk '{ n += $1 } END { print n }')" = 11 ] ||
  { echo "FAILED: the additional members were not inserted"; exit 1; }

for source in "${templates[@]}"; do build_plugin "$work/needs-this" "$source" "$work/next" 0; done
run "$work/needs-this"
run "$work/needs-this" hello-tools-c echo '{"say":"hi"}'
tools=$sdk/template/tools-c/hello_tools_c.c
wrapped() { # FOLDER NEEDED-BY-MANIFEST NEEDED-BY-CODE
  "$cc" -std=gnu11 -fPIC -fvisibility=hidden "-D$entry=inner_entry" -I "$work/next" -c -o "$work/inner.o" "$tools"
  "$cc" -std=gnu11 -fPIC -fvisibility=hidden "-DENTRY=$entry" "-DNEEDED=$3" -I "$work/next" -c -o "$work/outer.o" "$sdk/tests/next_minor.c"
  printf '#define PLUGIN_ID "hello-tools-c"\n/* provides[] = {BH_EXT_TOOLS, NULL} */\n' >"$work/empty.c"
  build_plugin "$work/$1" "$work/empty.c" "$work/next" "$2" "$work/inner.o" "$work/outer.o"
}
wrapped older-host 0 0
run "$work/older-host" hello-tools-c echo '{"say":"hi"}'
wrapped needs-next-manifest "${next#*.}" "${next#*.}"
rejected "$work/needs-next-manifest" "a plugin whose manifest needs $next"
wrapped needs-next-code 0 "${next#*.}"
rejected "$work/needs-next-code" "a plugin whose code needs $next"
echo "plugins of ABI $next run in ABI $version if they need no more, and are rejected otherwise"

build_plugin "$work/today" "$tools" "$sdk/include" 0
"$cxx" -std=c++20 -O0 -I "$work/next" -o "$work/next-host" "$sdk/template/tools-c/hello_tools_c_test.cpp" -ldl -pthread
"$work/next-host" "$work/today/hello-tools-c.so" >"$work/log" 2>&1 ||
  { echo "FAILED: a plugin of ABI $version in a host of ABI $next"; cat "$work/log"; exit 1; }
"$work/next-host" "$work/needs-this/hello-tools-c.so" >"$work/log" 2>&1 ||
  { echo "FAILED: a plugin of ABI $next in a host of ABI $next"; cat "$work/log"; exit 1; }
echo "a plugin of ABI $version runs in a host of ABI $next"
