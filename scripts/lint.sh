#!/usr/bin/env bash
# What a reviewer should not have to look for: format, shell mistakes, and the rules of this tree.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { echo "$*" >&2; bad=1; }

git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs -r clang-format-19 --dry-run -Werror || bad=1
{ git ls-files '*.sh'; echo .ci/run; } | xargs -r shellcheck -S warning || bad=1

if git grep -nE '#include *[<"](\.\./)*(core|host)/' -- plugins sdk; then
  complain "plugins/ and sdk/ see the SDK only"
fi
rooms=(common command_line keep sources service supervisor gateway records approve commands)
for i in "${!rooms[@]}"; do
  for later in "${rooms[@]:i+1}"; do
    if git grep -n "#include \"$later/" -- "host/${rooms[i]}" ':!*_test.cpp'; then
      complain "host/${rooms[i]} comes before host/$later, and does not include it (HACKING.md)"
    fi
  done
done
if git grep -nIE '\b(TODO|FIXME|XXX)\b' -- core host plugins sdk; then
  complain "left open: finish it, remove it, or file it as an issue"
fi
if git grep -nE '\bco_(await|return|yield)\b' -- '*.cpp' '*.hpp'; then
  complain "g++ 12.2 miscompiles coroutines"
fi
exit $bad
