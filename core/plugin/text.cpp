#include "plugin/text.hpp"

#include <algorithm>

namespace bulkhead {
std::string error_text(const bh_error &error, std::string_view fallback) {
  const std::size_t n = std::min<std::size_t>(error.n, sizeof error.text);
  std::string text = bh::one_line({error.text, n}, sizeof error.text);
  return text.empty() ? std::string(fallback) : text;
}

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace bulkhead
