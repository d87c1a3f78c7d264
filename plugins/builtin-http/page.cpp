#include "builtin-http/page.hpp"

#include <algorithm>

#include "builtin-http/html_text.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char &c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

std::string_view trimmed(std::string_view text) {
  const std::string_view space = " \t\r\n\"'";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::string media_type(std::string_view content_type) {
  return lowered(trimmed(content_type.substr(0, content_type.find(';'))));
}

// The value behind "charset=", up to a delimiter; empty if there is none.
std::string charset_in(std::string_view text) {
  const std::string low = lowered(text);
  const std::size_t at = low.find("charset=");
  if (at == low.npos) return {};
  std::string_view value = std::string_view(low).substr(at + 8);
  if (value.starts_with('"') || value.starts_with('\'')) value.remove_prefix(1);
  return std::string(value.substr(0, value.find_first_of("\"'; />")));
}

// The 32 characters in which Windows-1252 is not ISO-8859-1; 0: there is none. Pages that say
// ISO-8859-1 mean Windows-1252, too, as browsers have it.
constexpr char16_t windows_1252[32] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

std::string from_windows_1252(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 8);
  for (const char b : bytes) {
    unsigned c = static_cast<unsigned char>(b);
    if (c >= 0x80 && c < 0xA0) c = windows_1252[c - 0x80] == 0 ? 0xFFFD : windows_1252[c - 0x80];
    if (c < 0x80) {
      out += b;
    } else if (c < 0x800) {
      out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  return out;
}

bool is_html(const std::string &type, std::string_view text) {
  if (type == "text/html" || type == "application/xhtml+xml") return true;
  if (!type.empty()) return false;
  const std::string start = lowered(text.substr(0, 1024));
  return start.find("<html") != start.npos || start.find("<!doctype html") != start.npos;
}

std::string answer(const Url &url, std::string_view text, const PageRequest &request) {
  if (request.start_index > 0 && request.start_index >= text.size()) {
    return tool_kit::error_result("start_index " + std::to_string(request.start_index) +
                                  " is behind the end; the content has " +
                                  std::to_string(text.size()) + " bytes");
  }
  const std::size_t begin = tool_kit::cut_at(text, request.start_index);
  const std::size_t length = std::min<std::uint64_t>(request.max_length, text.size() - begin);
  std::size_t end = tool_kit::cut_at(text, begin + length);
  // A first character longer than max_length: no call may give nothing and stay where it is.
  for (std::size_t n = length; end <= begin && end < text.size(); ++n) {
    end = tool_kit::cut_at(text, begin + n);
  }
  std::string out = "URL: " + url.text() + "\nDomain: " + url.host +
                    "\nContent length: " + std::to_string(text.size()) + "\n";
  if (begin > 0 || end < text.size()) {
    out += "Showing: " + std::to_string(begin) + ".." + std::to_string(end) + "\n";
  }
  if (end < text.size()) {
    out += "Remaining: " + std::to_string(text.size() - end) +
           " bytes; next start_index: " + std::to_string(end) + "\n";
  }
  return tool_kit::text_result(out + "\n" + std::string(text.substr(begin, end - begin)));
}

}  // namespace

std::string binary_type(std::string_view content_type) {
  static constexpr std::string_view families[] = {"image/", "audio/", "video/", "font/"};
  static constexpr std::string_view parts[] = {"octet-stream", "pdf",  "zip",         "gzip",
                                               "x-tar",        "wasm", "x-executable"};
  const std::string type = media_type(content_type);
  if (type == "image/svg+xml") return {};
  for (const std::string_view f : families) {
    if (type.starts_with(f)) return type;
  }
  if (!type.starts_with("application/")) return {};
  for (const std::string_view p : parts) {
    if (type.find(p) != type.npos) return type;
  }
  return {};
}

bool to_utf8(std::string &&body, std::string_view content_type, std::string *out,
             std::string *problem) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  std::string charset = charset_in(content_type);
  if (body.starts_with(mark)) {
    body.erase(0, mark.size());
    charset = "utf-8";
  } else if (charset.empty() && is_html(media_type(content_type), body)) {
    charset = charset_in(std::string_view(body).substr(0, 1024));
  }
  const bool utf8 = charset == "utf-8" || charset == "utf8" || charset == "us-ascii" ||
                    charset == "ascii" || charset.empty();
  const bool latin = charset == "iso-8859-1" || charset == "latin1" || charset == "iso8859-1" ||
                     charset == "windows-1252" || charset == "cp1252";
  if (!utf8 && !latin) {
    *problem = "the character set \"" + charset.substr(0, 40) + "\" is not supported";
    return false;
  }
  if (latin || (charset.empty() && !tool_kit::is_utf8(body))) {
    *out = from_windows_1252(body);
  } else {
    *out = tool_kit::is_utf8(body) ? std::move(body) : tool_kit::repaired(body);
  }
  return true;
}

std::string page_result(const Url &url, std::string_view content_type, std::string &&body,
                        const PageRequest &request, const std::atomic<bool> &cancelled) {
  std::string text;
  std::string problem;
  const std::string type = media_type(content_type);
  const bool raw = request.format == Format::raw;
  if (raw && !binary_type(content_type).empty()) {
    text = tool_kit::repaired(body);
  } else if (!to_utf8(std::move(body), content_type, &text, &problem)) {
    return tool_kit::error_result(problem);
  }
  if (!raw && text.find('\0') != text.npos) {
    return tool_kit::error_result("binary content: " + url.text() +
                                  " holds bytes that are no text; format \"raw\" gives them");
  }
  if (!raw && is_html(type, text)) {
    std::string page;
    if (!html_to_text(text, request.format == Format::markdown, cancelled, &page, &problem)) {
      return tool_kit::error_result(problem);
    }
    text = std::move(page);
  }
  return answer(url, text, request);
}

}  // namespace builtin_http
