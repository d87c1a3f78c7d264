#include "builtin-http/page.hpp"

#include <bulkhead/cpp/text.hpp>

#include <utility>

#include "builtin-http/charset.hpp"
#include "builtin-http/content_type.hpp"
#include "builtin-http/html_text.hpp"

namespace builtin_http {

bool page_text(Response *response, Format format, const std::atomic<bool> &cancelled,
               std::string *text, std::string *problem) {
  const std::string type(response->header("content-type"));
  const bool raw = format == Format::raw;
  if (raw && !binary_type(type).empty()) {
    *text = bh::repaired_utf8(response->body);
    return true;
  }
  if (!to_utf8(std::move(response->body), type, cancelled, text, problem)) return false;
  if (raw) return true;
  if (text->find('\0') != text->npos) {
    *problem = "binary content: " + response->url.text() +
               " contains bytes that are not text; use fetch_http with format \"raw\"";
    return false;
  }
  if (!is_html(type, *text)) return true;
  std::string out;
  if (!html_to_text(*text, format == Format::markdown, cancelled, &out, problem)) return false;
  // The HTML parser can output surrogates for numeric character references that overflow.
  *text = bh::is_utf8(out) ? std::move(out) : bh::repaired_utf8(out);
  return true;
}

}  // namespace builtin_http
