#include "builtin-http/message.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>

namespace builtin_http {

bool same_name(std::string_view a, std::string_view b) {
  return bh::equal_ignoring_case(a, b);
}

std::string_view Response::header(std::string_view name) const {
  const auto at = std::find_if(headers.begin(), headers.end(),
                               [&](const Header &h) { return same_name(h.name, name); });
  return at == headers.end() ? std::string_view() : std::string_view(at->value);
}

}  // namespace builtin_http
