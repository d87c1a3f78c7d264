// Implements the string functions and size(). The checker compiles literal patterns, so the
// matches() function here handles only patterns from variables.
#include <bulkhead/cpp/text.hpp>

#include <algorithm>

#include "functions.hpp"
#include "regex.hpp"

namespace bulkhead::cel {
namespace {

Value size_of_string(Context &context, const Value *a) {
  if (!context.charge_text(a[0].text().size())) return Value::error("");
  return Value::of(static_cast<std::int64_t>(bh::count_characters(a[0].text())));
}
Value size_of_bytes(Context &, const Value *a) {
  return Value::of(static_cast<std::int64_t>(a[0].text().size()));
}
Value size_of_list(Context &, const Value *a) {
  return Value::of(static_cast<std::int64_t>(a[0].list_size()));
}
Value size_of_map(Context &, const Value *a) {
  return Value::of(static_cast<std::int64_t>(a[0].map_size()));
}
Value contains(Context &context, const Value *a) {
  const std::string_view text = a[0].text();
  const std::string_view part = a[1].text();
  // In the worst case, `part` is compared at each position of the text.
  if (!context.charge((text.size() / 16 + 1) * (part.size() / 16 + 1))) return Value::error("");
  return Value::of(text.find(part) != std::string_view::npos);
}
Value starts_with(Context &context, const Value *a) {
  if (!context.charge_text(a[1].text().size())) return Value::error("");
  return Value::of(a[0].text().starts_with(a[1].text()));
}
Value ends_with(Context &context, const Value *a) {
  if (!context.charge_text(a[1].text().size())) return Value::error("");
  return Value::of(a[0].text().ends_with(a[1].text()));
}
Value matches(Context &context, const Value *a) {
  // The size limit is lower for patterns from variables, because compiling a pattern costs far more
  // than matching it.
  constexpr std::size_t longest = 256;
  if (a[1].text().size() > longest) return Value::error("the regular expression is too long");
  if (!context.charge(1000 + 50 * a[1].text().size())) return Value::error("");
  const Regex regex(a[1].text());
  // Even a short pattern, such as a Unicode class or a repetition, can compile to thousands of
  // instructions.
  if (!context.charge(regex.steps_to_compile())) return Value::error("");
  if (!regex.ok()) return Value::error("invalid regular expression");
  // The automaton of a malicious pattern may have too many states to cache. The time for matching
  // each byte of the text is then proportional to the size of the pattern.
  if (!context.charge(a[0].text().size() / 4 * (regex.size() / 64))) return Value::error("");
  return regex.search(context, a[0].text());
}

}  // namespace

std::span<const Overload> text_overloads() {
  using enum Kind;
  static constexpr Overload table[] = {
      {"size", false, 1, {kString, kDyn}, kInt, size_of_string},
      {"size", false, 1, {kBytes, kDyn}, kInt, size_of_bytes},
      {"size", false, 1, {kList, kDyn}, kInt, size_of_list},
      {"size", false, 1, {kMap, kDyn}, kInt, size_of_map},
      {"size", true, 1, {kString, kDyn}, kInt, size_of_string},
      {"size", true, 1, {kBytes, kDyn}, kInt, size_of_bytes},
      {"size", true, 1, {kList, kDyn}, kInt, size_of_list},
      {"size", true, 1, {kMap, kDyn}, kInt, size_of_map},
      {"contains", true, 2, {kString, kString}, kBool, contains},
      {"startsWith", true, 2, {kString, kString}, kBool, starts_with},
      {"endsWith", true, 2, {kString, kString}, kBool, ends_with},
      {"matches", true, 2, {kString, kString}, kBool, matches},
      {"matches", false, 2, {kString, kString}, kBool, matches},
  };
  return table;
}

}  // namespace bulkhead::cel
