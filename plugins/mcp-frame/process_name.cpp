#include "mcp-frame/process_name.hpp"

#include <bulkhead/cpp/text.hpp>

#include "mcp-frame/frame.hpp"

namespace mcp_frame {
namespace {

// Returns true for characters that are replaced: spaces and control characters, including those of
// Latin-1 (C2 80 to C2 9F).
bool is_replaced(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first <= ' ' || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string clean_process_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t n = bh::utf8_length(name.substr(i));
    const std::string_view character = name.substr(i, n);
    const bool replaced = n == 0 || is_replaced(character);
    const std::string_view written = replaced ? "_" : character;
    if (out.size() + written.size() > max_name) break;
    out += written;
    i += n == 0 ? 1 : n;
  }
  return out;
}

}  // namespace mcp_frame
