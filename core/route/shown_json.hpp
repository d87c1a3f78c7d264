// Formats a call's arguments for display to a human approver: masks credentials and makes hidden
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
  bool cut = false;  // truncated to max_bytes, so the text is not valid JSON
};

// Formats a validated JSON text in one pass, which stops after max_bytes of output.
//
// If a member's name looks like a credential, its value is replaced with "***", unless it is a
// number or a boolean. In all other texts, parts that look like a credential are masked: the
// prefixes of well-known tokens, user:password@ in a URL, NAME=VALUE with such a name, the text
// after "Bearer" or "Basic", and private keys. Escapes and percent-encoding are decoded before the
// comparison. A string that contains JSON is masked as JSON, up to 8 levels deep. Hidden characters
// (direction marks, zero-width characters) are written as \u escapes.
//
// Masking protects only against shoulder surfing: it recognizes the form of credentials, not their
// values.
ShownJson shown_json(std::string_view json, std::size_t max_bytes);

// Masks a single string that is not JSON, following the same rules.
std::string masked_text(std::string_view text);

// Returns at most max_bytes of the text without splitting characters. Hidden characters are written
// as \u escapes.
std::string visible_text(std::string_view text, std::size_t max_bytes);

}  // namespace bulkhead
