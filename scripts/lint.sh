#!/usr/bin/env bash
# Checks the formatting, the shell scripts and the rules of HACKING.md. With --rules, checks only the
# rules, which requires no other program than git. Exits with 77 if --rules has no git tree to check.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { echo "$*" >&2; bad=1; }

if [ "${1:-}" = --rules ]; then
  git ls-files --error-unmatch scripts/lint.sh >/dev/null 2>&1 || { echo "SKIP: not a git tree"; exit 77; }
else
  git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs -r clang-format-19 --dry-run -Werror || bad=1
  { git ls-files '*.sh'; echo .ci/run; } | xargs -r shellcheck -S warning || bad=1
fi

if git grep -nE '#include *[<"](\.\./)*(core|host)/' -- plugins sdk; then
  complain "plugins/ and sdk/ must include the SDK only"
fi
rooms=(common check command_line state trust sources service swap supervisor shared gateway records approve kit commands)
for i in "${!rooms[@]}"; do
  for later in "${rooms[@]:i+1}"; do
    if git grep -n "#include \"$later/" -- "host/${rooms[i]}" ':!*_test.cpp'; then
      complain "host/${rooms[i]} must not include host/$later (HACKING.md)"
    fi
  done
done
while read -r room later; do
  if git grep -nE "#include \"($later)/" -- "core/$room" ':!*_test*'; then
    complain "core/$room comes before core/$later, and does not include it (docs/architecture.md)"
  fi
done <<'END'
profile corporation|formats|layers
corporation formats|layers
formats corporation|layers
END
# The parts of the request path declare the interfaces that they need (docs/architecture.md). Test
# worlds may connect all parts.
if git grep -nE '#include *[<"]([a-z_.]+/)*router\.hpp[>"]' -- core/route ':!core/route/router.cpp' \
  ':!*_test.cpp' ':!*_world.hpp'; then
  complain "core/route: only router.cpp includes router.hpp; declare the interface that the part needs"
fi
if git grep -nE '#include *[<"]((\.\./)+|bulkhead/)?host\.hpp[>"]' -- core ':!core/embed' \
  ':!core/compartment'; then
  complain "core/: only embed and compartment include host.hpp, the public header of the library"
fi
if git grep -nIE '\b(TODO|FIXME|XXX)\b' -- core host plugins sdk; then
  complain "unfinished: complete it, remove it, or file an issue"
fi
if git grep -nE '\bco_(await|return|yield)\b' -- '*.cpp' '*.hpp'; then
  complain "g++ 12.2 miscompiles coroutines"
fi
# Rejects phrases for which the plain-English list has a better term. Paths may be added to this
# list but not removed.
plain=(README.md HACKING.md SECURITY.md CHANGELOG.md docs tests/README.md core host plugins sdk
  tests/{breakout,build,cel,conformance,fixtures,fuzz,guest,interop,judges,matrix,npm,policy,redteam,e2e,drills,soak,plugin_check}
  'tests/*.cpp' tests/CMakeLists.txt CMakeLists.txt .clang-tidy .ci scripts cmake Makefile examples bench)
# Excludes values in JSON and in tests that contain such a word, web pages for tests, the first ABI
# headers, and SQL that verification compares.
apart=(':!core/route/approvals.cpp' ':!core/embed/approval_test.cpp' ':!core/formats/capsem_profile_test.cpp'
  ':!core/mcp/description_audit_test.cpp'
  ':!plugins/builtin-http/pages' ':!tests/fuzz/corpus' ':!tests/fixtures/first_abi/include'
  ':!plugins/record-store/schema.cpp' ':!scripts/lint.sh' ':!bench/RESULTS.md')
phrases='\b((are|is) (others?|another)( one)? now|of no use|useless|whoever|nobody|any more|meanwhile|(is|are|was) told'
phrases+='|(has heard|hear) of|what becomes of|(goes|go) on|lets? go|on record|good order|the way of (a|one|the)'
phrases+='|a person (is|was|has been) asked|finds? no place|found no place|whole again|seldom|has a word)\b'
if git grep -niE "$phrases" -- "${plain[@]}" "${apart[@]}"; then
  complain "use plain terms: name the subject, use the standard word (HACKING.md)"
fi
# Installed documents may link only to installed documents (see the install rules in
# host/CMakeLists.txt).
for page in README.md HACKING.md SECURITY.md CHANGELOG.md docs/*.md; do
  while read -r link; do
    target=$(realpath -m --relative-to=. "$(dirname "$page")/${link%%#*}")
    case $target in
      README.md | HACKING.md | SECURITY.md | CHANGELOG.md | LICENSE) ;;
      docs/*.md) [ -f "$target" ] || complain "$page links to $link, which does not exist" ;;
      *) complain "$page links to $link, which is not installed" ;;
    esac
  done < <(grep -oE '\]\([^)#:` ]+(#[^)]*)?\)' "$page" | sed -E 's/^\]\((.*)\)$/\1/')
done
# The part of the changelog that describes the newest version, with the lines before it.
if [ "$(awk '/^## / && ++n == 2 { exit } { print }' CHANGELOG.md | wc -l)" -gt 70 ]; then
  complain "CHANGELOG.md: at most 70 lines, of what a user gets in this version"
fi
exit $bad
