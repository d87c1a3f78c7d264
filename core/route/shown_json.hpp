// Arguments of a call for the eyes of a person: secrets masked, what would not be seen made
// visible.
//
// Thread: any; allocates.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

struct ShownJson {
  std::string text;
  bool cut = false;  // cut to max_bytes; the text is not valid JSON then
};

// A validated JSON text in one pass: it stops when max_bytes of output are there. Values of members
// whose name is that of a credential become "***" (but numbers and booleans under such a name), and
// in every other text what has the shape of a credential does: the prefixes of well-known tokens,
// user:password@ of a URL, NAME=VALUE with such a name, what follows "Bearer" or "Basic", private
// keys. Names and texts count as what escapes in them stand for, percent-encoding included, and
// JSON that is itself a string is masked as JSON, up to 8 layers. Hidden characters (marks of
// direction, zero-width ones) are written as \u escapes. A mask is a courtesy to who looks over a
// shoulder: it knows shapes, not secrets.
ShownJson shown_json(std::string_view json, std::size_t max_bytes);

// The same for one text that is not JSON.
std::string masked_text(std::string_view text);

// At most max_bytes, whole characters, hidden ones as \u escapes.
std::string visible_text(std::string_view text, std::size_t max_bytes);

}  // namespace bulkhead
