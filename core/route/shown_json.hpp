// Formats the arguments of a call for display to a human approver: masks secrets and makes hidden
// characters visible.
//
// Thread-safe; allocates.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

struct ShownJson {
  std::string text;
  bool cut = false;  // cut to max_bytes, so the text is not valid JSON
};

// Formats a validated JSON text in one pass, which stops after max_bytes of output.
//
// The value of a member with the name of a credential is replaced with "***", unless it is a number
// or a boolean. In all other texts, the parts that look like a credential are masked: the prefixes
// of well-known tokens, user:password@ in a URL, NAME=VALUE with such a name, the text after
// "Bearer" or "Basic", and private keys. Escapes and percent-encoding are decoded before the
// comparison. A string that contains JSON is masked as JSON, up to 8 levels deep. Hidden characters
// (direction marks, zero-width characters) are written as \u escapes.
//
// Masking protects against shoulder surfing only: it recognizes shapes, not secrets.
ShownJson shown_json(std::string_view json, std::size_t max_bytes);

// The same for a single text that is not JSON.
std::string masked_text(std::string_view text);

// Returns at most max_bytes, in whole characters, with hidden characters as \u escapes.
std::string visible_text(std::string_view text, std::size_t max_bytes);

}  // namespace bulkhead
