#include "profile/revision.hpp"

#include <algorithm>

namespace bulkhead {

namespace {

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool is_revision(std::string_view text) {
  return text.size() >= 11 && text.size() <= 32 && text[4] == '.' && text[9] == '.' &&
         digits(text.substr(0, 4)) && digits(text.substr(5, 4)) && digits(text.substr(10));
}

bool is_profile_id(std::string_view text) {
  return text.size() >= 3 && text.size() <= 64 && text[0] != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool comes_before(std::string_view a, std::string_view b) {
  const std::string_view day_a = a.substr(0, 9), day_b = b.substr(0, 9);
  if (day_a != day_b) return day_a < day_b;
  const auto number = [](std::string_view text) {
    text.remove_prefix(10);
    return text.substr(std::min(text.find_first_not_of('0'), text.size()));
  };
  const std::string_view n_a = number(a), n_b = number(b);
  return n_a.size() != n_b.size() ? n_a.size() < n_b.size() : n_a < n_b;
}

}  // namespace bulkhead
