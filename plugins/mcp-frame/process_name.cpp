#include "mcp-frame/process_name.hpp"

#include <bulkhead/cpp/text.hpp>

#include "mcp-frame/frame.hpp"

namespace mcp_frame {

std::string clean_process_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t n = 0;
    const char32_t c = bh::first_character(name.substr(i), &n);
    const bool malformed = n == 1 && c == bh::replacement_character;
    const bool replaced = malformed || c == ' ' || bh::is_unprintable(c);
    const std::string_view written = replaced ? "_" : name.substr(i, n);
    if (out.size() + written.size() > max_name) break;
    out += written;
    i += n;
  }
  return out;
}

}  // namespace mcp_frame
