#!/usr/bin/env bash
# alone.sh SDK_DIR [--all]: checks that every SDK header can be included first.
#  - Each header of abi/ must compile alone as C11, C++17, C++20 and C++23 with every installed g++ 12
#    to 14 and clang++ 14 to 19, and with $CXX. Each other header must compile alone as C++20 with
#    the newest clang++; with --all, with all of these compilers. (The build does this with $CXX, too:
#    sdk_headers_alone.) All headers together must compile as C++20 and C++23 with all of them. The
#    script prints the versions of the compilers. It fails if one of them is installed but has not
#    compiled all headers, or if there is no g++ or no clang++.
#  - Each .hpp header must include the standard headers for all names that it uses. Compiling does
#    not prove this, because standard headers include others, which differ between library versions.
set -euo pipefail
cd "$1"
scope=${2:-}
# The installed package has all headers in one folder.
mapfile -t headers < <(find include aggregator/include -name '*.h' -o -name '*.hpp' | sort)
[ ${#headers[@]} -gt 0 ] || { echo "no headers in $PWD" >&2; exit 1; }
fail=0

# Each rule is a standard header and a pattern for the names that it declares.
std='std::'
rules=(
  "cstdint $std(u?int(8|16|32|64|ptr|max)_t)\\b"
  "cstddef $std(size_t|ptrdiff_t|nullptr_t|byte|max_align_t)\\b"
  "cstring (std::|[^_a-z>.:])(memcpy|memcmp|memmove|memset|memchr|strlen|strcmp|strchr|strerror)\\("
  "cerrno \\berrno\\b|\\bE(INTR|AGAIN|NOENT|EXIST|INVAL|PIPE)\\b"
  "cstdlib $std(getenv|abort|free|malloc|strtoll?|strtoull?|exit)\\b|\\bmkdtemp\\("
  "cstdio $std(FILE|fopen|fputs|fprintf|snprintf|fflush)\\b"
  "ctime $std(time|timespec|tm|gmtime)\\b"
  "cmath $std(isnan|isfinite|isinf|floor|ceil|trunc|ldexp|signbit)\\b"
  "csignal $std(signal|raise)\\("
  "algorithm $std(min|max|clamp|sort|find|find_if|any_of|all_of|none_of|copy|copy_n|equal|remove_if|reverse|count|lower_bound|upper_bound)\\("
  "array ${std}array\\b"
  "atomic ${std}atomic\\b"
  "bit $std(bit_cast|endian|bit_width|countl_zero|popcount)\\b"
  "charconv $std(from_chars|to_chars)\\b"
  "chrono ${std}chrono\\b"
  "concepts $std(same_as|convertible_to|invocable|integral|derived_from|constructible_from|default_initializable)\\b"
  "condition_variable ${std}condition_variable\\b"
  "deque ${std}deque\\b"
  "exception $std(exception|exception_ptr|terminate|current_exception)\\b"
  "filesystem ${std}filesystem\\b"
  "functional $std(function|less|hash|reference_wrapper|invoke|ref|cref)\\b"
  "future $std(future|promise|async)\\b"
  "initializer_list ${std}initializer_list\\b"
  "limits ${std}numeric_limits\\b"
  "map $std(map|multimap)\\b"
  "memory $std(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this|addressof)\\b"
  "mutex $std(mutex|lock_guard|unique_lock|scoped_lock|recursive_mutex|once_flag|call_once)\\b"
  "new $std(nothrow|bad_alloc)\\b"
  "optional $std(optional|nullopt|make_optional)\\b"
  "set $std(set|multiset)\\b"
  "span ${std}span\\b"
  "stdexcept $std(runtime_error|logic_error|invalid_argument|out_of_range|length_error)\\b"
  "string $std(string|to_string|stoi|stoll|stoull|getline)\\b"
  "string_view ${std}string_view\\b"
  "thread $std(thread|jthread|this_thread)\\b"
  "tuple $std(tuple|tie|make_tuple|forward_as_tuple)\\b"
  "type_traits $std(is_[a-z_]+_v|enable_if_t|decay_t|remove_[a-z]+_t|conditional_t|true_type|false_type|void_t|invoke_result_t)\\b"
  "unordered_map ${std}unordered_map\\b"
  "utility $std(move|forward|exchange|swap|pair|make_pair|as_const|in_place|declval|piecewise_construct)\\b"
  "variant $std(variant|monostate|visit|get_if|holds_alternative)\\b"
  "vector ${std}vector\\b"
)
for header in "${headers[@]}"; do
  [[ $header == *.hpp ]] || continue
  code=$(sed -E 's|//.*$||; s|"([^"\\]\|\\.)*"|""|g' "$header")
  for rule in "${rules[@]}"; do
    name=${rule%% *}
    if used=$(grep -nE "${rule#* }" <<<"$code") && ! grep -qE "^#[[:space:]]*include <($name|${name#c}\\.h)>" "$header"; then
      echo "$header uses what <$name> declares and does not include it, line ${used%%$'\n'*}"
      fail=1
    fi
  done
done

supported=("g++ "{12,13,14} "clang "{14,15,16,17,18,19})
# Prints the name and the complete version of a compiler.
version_of() {
  local kind=g++
  case $("$1" --version 2>/dev/null) in *clang*) kind=clang ;; esac
  echo "$kind $("$1" -dumpfullversion -dumpversion 2>/dev/null || "$1" -dumpversion)"
}
compilers=()
seen=" "
installed=()  # the supported versions that are installed, also those without a command of this name
for compiler in "${CXX:-}" g++-{12,13,14} clang++-{14,15,16,17,18,19} g++ clang++ \
  /usr/lib/llvm-{14,15,16,17,18,19}/bin/clang++; do
  path=$(command -v "${compiler:-none}" || true)
  [ -n "$path" ] || continue
  version=$(version_of "$path" || true)
  major=${version%%.*}
  known=no
  for one in "${supported[@]}"; do [ "$one" != "$major" ] || known=yes; done
  case $compiler in  # the name of the command counts, even if the command does not work
    clang++-[0-9]*) installed+=("clang ${compiler##*-}") ;;
    g++-[0-9]*) installed+=("g++ ${compiler##*-}") ;;
    *) [ "$known" = no ] || installed+=("$major") ;;
  esac
  [ "$known" = yes ] || [ "$compiler" = "${CXX:-}" ] || continue
  path=$(realpath "$path")
  [[ $seen != *" $path "* ]] || continue
  seen+="$path "
  compilers+=("$compiler")
done
[ ${#compilers[@]} -gt 0 ] || { echo "no compiler is installed, and CXX names none" >&2; exit 1; }
# shellcheck disable=SC2317  # called by xargs
check() {
  local flags=(-I include -I aggregator/include -fsyntax-only -Wall -Wextra -Wshadow -Wpedantic -Werror) failed=0
  local name=${2#*include/}
  local standards=(c++20) standard
  [[ $2 != *.h ]] || standards+=(c11 c++17 c++2b) # c++2b: the name of C++23 that all compilers have
  for standard in "${standards[@]}"; do
    # A C file must not be empty.
    "$1" "${flags[@]}" -x "${standard%%[0-9]*}" "-std=$standard" - <<<"#include <$name>
extern int not_empty;" || { echo "$2 does not compile alone as $standard with $1" && failed=1; }
  done
  [ "$failed" = 1 ] || echo "$2" >>"$3"
  return "$failed"
}
export -f check
# Reports whether the compiler compiles each header alone.
alone_with() {
  [ "$scope" = --all ] || [ "$1" = "$newest_clang" ]
}
newest=0 newest_clang=
for compiler in "${compilers[@]}"; do
  version=$(version_of "$compiler")
  number=${version#clang }
  if [[ $version == clang* ]] && [ "${number%%.*}" -gt "$newest" ]; then
    newest=${number%%.*} newest_clang=$compiler
  fi
done
mapfile -t abi_headers < <(printf '%s\n' "${headers[@]}" | grep '\.h$')
done_headers=$(mktemp)
trap 'rm -f "$done_headers"' EXIT
ran=()
for compiler in "${compilers[@]}"; do
  : >"$done_headers"
  alone=("${abi_headers[@]}")
  ! alone_with "$compiler" || alone=("${headers[@]}")
  printf '%s\0' "${alone[@]}" |
    xargs -0 -P "$(nproc)" -I{} bash -c 'check "$@"' check "$compiler" {} "$done_headers" || fail=1
  together=yes
  for standard in c++20 c++2b; do
    for header in "${headers[@]}"; do echo "#include <${header#*include/}>"; done |
      "$compiler" -I include -I aggregator/include -fsyntax-only -Wall -Wextra -Werror -x c++ "-std=$standard" - || {
      echo "the headers together do not compile as $standard with $compiler"
      fail=1 together=no
    }
  done
  version=$(version_of "$compiler")
  count=$(wc -l <"$done_headers")
  echo "$version ($compiler): all headers together: $together; alone: $count of ${#alone[@]}"
  [ "$count" -ne ${#alone[@]} ] || [ "$together" = no ] || ran+=("${version%%.*}")
done
missing=()
for one in "${supported[@]}"; do
  if [[ " ${installed[*]/%/,} " != *" $one, "* ]]; then
    missing+=("$one")
  elif [[ " ${ran[*]/%/,} " != *" $one, "* ]]; then
    echo "$one is installed, but has not compiled all headers"
    fail=1
  fi
done
for kind in g++ clang; do
  [[ " ${ran[*]}" == *" $kind "* ]] || { echo "$kind is not installed: run scripts/install-packages.sh test"; fail=1; }
done
[ ${#missing[@]} -eq 0 ] || (IFS=,; echo "not installed: ${missing[*]}")
exit $fail
