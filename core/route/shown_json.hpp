// Formats the arguments of a call for a human approver: masks credentials and makes hidden
// characters visible.
//
// Thread-safe; allocates memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

struct ShownJson {
  std::string text;
  bool cut = false;  // the text was truncated, so it is not valid JSON
};

// Formats validated JSON. Stops after max_bytes of output.
//
// If the name of a member looks like the name of a credential, its value is replaced with "***"
// unless it is a number, a boolean or null. In all other strings, the following parts are masked:
// tokens with a well-known prefix, user:password@ in URLs, the value of NAME=VALUE if NAME looks
// like the name of a credential, the word after "Bearer" or "Basic" if it is longer than five
// characters, and private keys. Escape sequences and percent-encoding are decoded before strings
// are examined. A string that contains JSON is masked as JSON, up to 8 levels deep. Hidden
// characters (direction marks, zero-width characters) are written as \u escape sequences. Line
// breaks and tabs between tokens are written as spaces, so the result is a single line.
//
// Security: masking only protects against people who see the screen by chance. It recognizes
// typical forms of credentials and misses all others.
ShownJson shown_json(std::string_view json, std::size_t max_bytes);

// Masks a string that is not JSON. The same parts are masked as in strings in shown_json(). Hidden
// characters are not changed.
std::string masked_text(std::string_view text);

// Truncates the text to at most max_bytes at a character boundary, writes hidden characters, except
// line feeds and tabs, as \u escape sequences, and replaces invalid UTF-8 with U+FFFD.
std::string visible_text(std::string_view text, std::size_t max_bytes);
// Like visible_text(), but also escapes line feeds and tabs, so the result is a single line.
std::string visible_line(std::string_view text, std::size_t max_bytes);

}  // namespace bulkhead
