#include "builtin-http/head_text.hpp"

#include <algorithm>

namespace builtin_http {
namespace {

struct Reason {
  std::uint32_t status;
  std::string_view text;
};
// HTTP/2 responses contain no reason phrases, so they are taken from this table.
constexpr Reason reasons[] = {{200, "OK"},
                              {201, "Created"},
                              {202, "Accepted"},
                              {204, "No Content"},
                              {206, "Partial Content"},
                              {301, "Moved Permanently"},
                              {302, "Found"},
                              {303, "See Other"},
                              {304, "Not Modified"},
                              {307, "Temporary Redirect"},
                              {308, "Permanent Redirect"},
                              {400, "Bad Request"},
                              {401, "Unauthorized"},
                              {403, "Forbidden"},
                              {404, "Not Found"},
                              {405, "Method Not Allowed"},
                              {406, "Not Acceptable"},
                              {408, "Request Timeout"},
                              {409, "Conflict"},
                              {410, "Gone"},
                              {411, "Length Required"},
                              {412, "Precondition Failed"},
                              {413, "Content Too Large"},
                              {415, "Unsupported Media Type"},
                              {422, "Unprocessable Content"},
                              {429, "Too Many Requests"},
                              {500, "Internal Server Error"},
                              {501, "Not Implemented"},
                              {502, "Bad Gateway"},
                              {503, "Service Unavailable"},
                              {504, "Gateway Timeout"}};

std::string_view reason_of(std::uint32_t status) {
  const auto at = std::find_if(std::begin(reasons), std::end(reasons),
                               [&](const Reason &r) { return r.status == status; });
  return at == std::end(reasons) ? std::string_view() : at->text;
}

bool is_printable(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c == '\t' || (c >= 0x20 && c < 0x7F); });
}

}  // namespace

std::string_view shown_value(const Header &header) {
  return is_printable(header.value) ? std::string_view(header.value) : "<binary>";
}

std::string head_text(const Response &response) {
  std::string out = "URL: " + response.url.text() + "\nStatus: " + std::to_string(response.status);
  const std::string_view reason = reason_of(response.status);
  if (!reason.empty()) out.append(" ").append(reason);
  out += "\n\nHeaders:\n";
  for (const Header &h : response.headers) {
    out.append("  ").append(h.name).append(": ").append(shown_value(h)).append("\n");
  }
  return out;
}

}  // namespace builtin_http
