#include "trust/version_order.hpp"

#include <algorithm>
#include <optional>

namespace bulkhead::program {
namespace {

struct VersionText {
  std::string_view numbers, suffix;
  bool has_suffix = false;
};

VersionText split_version(std::string_view version) {
  version = version.substr(0, version.find('+'));
  const std::size_t dash = version.find('-');
  if (dash == version.npos) return {version, {}, false};
  return {version.substr(0, dash), version.substr(dash + 1), true};
}

// Removes the first part from the text. Returns nullopt if the text is empty.
std::optional<std::string_view> consume_part(std::string_view *text) {
  if (text->empty()) return std::nullopt;
  const std::size_t end = std::min(text->find('.'), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

bool is_number(std::string_view part) {
  return part.find_first_not_of("0123456789") == part.npos;
}

std::weak_ordering compare_parts(std::string_view a, std::string_view b) {
  if (is_number(a) != is_number(b))
    return is_number(a) ? std::weak_ordering::less : std::weak_ordering::greater;
  if (is_number(a)) {
    // Numbers of any length: without leading zeros, a longer number is larger.
    a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
    b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
    if (a.size() != b.size()) return a.size() <=> b.size();
  }
  return a.compare(b) <=> 0;
}

// If `missing_is_zero` is false, a text that is a beginning of the other one precedes it.
std::weak_ordering compare_lists(std::string_view a, std::string_view b, bool missing_is_zero) {
  for (;;) {
    const auto one = consume_part(&a), other = consume_part(&b);
    if (!one && !other) return std::weak_ordering::equivalent;
    if (!missing_is_zero && one.has_value() != other.has_value())
      return one ? std::weak_ordering::greater : std::weak_ordering::less;
    const auto order = compare_parts(one.value_or("0"), other.value_or("0"));
    if (order != 0) return order;
  }
}

}  // namespace

std::weak_ordering compare_versions(std::string_view a, std::string_view b) {
  const VersionText one = split_version(a), other = split_version(b);
  const auto order = compare_lists(one.numbers, other.numbers, true);
  if (order != 0) return order;
  if (one.has_suffix != other.has_suffix)
    return one.has_suffix ? std::weak_ordering::less : std::weak_ordering::greater;
  return compare_lists(one.suffix, other.suffix, false);
}

}  // namespace bulkhead::program
