#include "builtin-http/content_type.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>

namespace builtin_http {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::string_view space = " \t\r\n\"'";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

}  // namespace

std::string media_type(std::string_view content_type) {
  return bh::lowered(trimmed(content_type.substr(0, content_type.find(';'))));
}

std::string charset_parameter(std::string_view text) {
  const std::string low = bh::lowered(text);
  std::size_t at = low.find("charset");
  if (at == low.npos) return {};
  at = low.find_first_not_of(" \t\r\n", at + 7);
  if (at == low.npos || low[at] != '=') return {};
  at = low.find_first_not_of(" \t\r\n\"'", at + 1);
  if (at == low.npos) return {};
  return low.substr(at, low.find_first_of("\"'; />", at) - at);
}

std::string binary_type(std::string_view content_type) {
  static constexpr std::string_view families[] = {"image/", "audio/", "video/", "font/"};
  static constexpr std::string_view parts[] = {"octet-stream", "pdf",  "zip",         "gzip",
                                               "x-tar",        "wasm", "x-executable"};
  const std::string type = media_type(content_type);
  if (type == "image/svg+xml") return {};
  const bool of_family = std::any_of(std::begin(families), std::end(families),
                                     [&](std::string_view f) { return type.starts_with(f); });
  if (of_family) return type;
  const bool has_part = type.starts_with("application/") &&
                        std::any_of(std::begin(parts), std::end(parts),
                                    [&](std::string_view p) { return type.find(p) != type.npos; });
  return has_part ? type : std::string();
}

bool is_html(std::string_view content_type, std::string_view text) {
  const std::string type = media_type(content_type);
  if (type == "text/html" || type == "application/xhtml+xml") return true;
  if (!type.empty()) return false;
  const std::string start = bh::lowered(text.substr(0, 1024));
  return start.find("<html") != start.npos || start.find("<!doctype html") != start.npos;
}

}  // namespace builtin_http
