#!/usr/bin/env bash
# tidy-changed.sh BUILD [BASE]: runs clang-tidy on the .cpp files that differ from BASE. The default
# is the merge base with origin/main, or else the parent of the last commit. Without either, all
# files are checked.
set -euo pipefail
build=${1:?the build folder with compile_commands.json}
base=${2:-$(git merge-base HEAD origin/main 2>/dev/null || true)}
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
  base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
fi
mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp' | grep -v '^tests/fuzz/' |
  while read -r file; do
    grep -q "\"file\": \".*/$file\"" "$build/compile_commands.json" && echo "$file"
  done || true)
if [ ${#files[@]} -eq 0 ]; then
  echo "nothing changed since $base"
  exit 0
fi
# Remembers files without findings. They are checked again only if the file, its includes or the
# checks change.
mkdir -p "$build/tidy-clean"
tidy_one() {  # BUILD CHECKS FILE
  local whole key
  whole=$(scripts/preprocessed.py "$1/compile_commands.json" "$3" | cat .clang-tidy - | sha256sum) || return
  key=$1/tidy-clean/$(sha256sum <<<"$2 $3 $whole" | cut -c1-40)
  [ -e "$key" ] && return
  clang-tidy-19 -p "$1" --quiet --warnings-as-errors='*' --checks="$2" "$3" && touch "$key"
}
export -f tidy_one
tidy() {  # EXTRA-CHECKS; the files are read from standard input
  xargs -r -P "${JOBS:-$(nproc)}" -I '{}' bash -c 'set -o pipefail; tidy_one "$@"' tidy_one "$build" "$1" '{}'
}
status=0
printf '%s\n' "${files[@]}" | { grep -v '_test\.cpp$' || true; } | tidy '' || status=1
# clang-tidy does not know that a failed REQUIRE(x) aborts the test.
printf '%s\n' "${files[@]}" | { grep '_test\.cpp$' || true; } |
  tidy '-bugprone-unchecked-optional-access' || status=1
exit $status
