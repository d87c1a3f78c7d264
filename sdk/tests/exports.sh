#!/bin/sh
# exports.sh NM PLUGIN_DIR...: checks that every plugin exports only its entry function, and has no
# STB_GNU_UNIQUE symbol, which would keep the plugin mapped. Each plugin must also have a manifest.
set -eu
nm=$1
shift
find "$@" -name '*.so' | {
  n=0
  failures=0
  while IFS= read -r plugin; do
    n=$((n + 1))
    symbols=$("$nm" -D --defined-only "$plugin" | awk '{ print $(NF - 1) " " $NF }')
    if [ "$symbols" != "T bh_plugin_entry_v1" ]; then
      echo "$plugin exports other things than bh_plugin_entry_v1:"
      echo "$symbols"
      failures=1
    fi
    if [ ! -f "${plugin%.so}.plugin.toml" ]; then
      echo "$plugin has no manifest beside it"
      failures=1
    fi
  done
  if [ "$n" = 0 ]; then
    echo "there is no plugin in $*"
    exit 1
  fi
  echo "$n plugins"
  exit $failures
}
