// Properties of HTML elements and attributes that affect the text.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace builtin_http {

// Returns the number of line breaks around an element: 0 for inline, 1 for a block, 2 for a
// paragraph.
int apart(GumboTag tag);

// Returns the Markdown delimiter of an emphasis element ("**", "*", "~~"), or an empty string for
// other elements.
std::string_view mark_of(GumboTag tag);

// Returns true for elements that contain code, keyboard input or program output.
inline bool is_code(GumboTag tag) {
  return tag == GUMBO_TAG_CODE || tag == GUMBO_TAG_KBD || tag == GUMBO_TAG_SAMP;
}

inline bool is_heading(GumboTag tag) {
  return tag >= GUMBO_TAG_H1 && tag <= GUMBO_TAG_H6;
}

// Returns true for elements without visible text: scripts, graphics, hidden elements.
bool is_hidden(const GumboElement &element);

// Returns a link's URL in Markdown form, or an empty string if the link must be dropped.
std::string link_target(std::string_view href);

// Returns the language from a list of CSS classes: "python" for "highlight language-python".
// Returns an empty string if there is none.
std::string_view language_of(std::string_view classes);

// Parses a positive number from an attribute such as colspan. Returns at most `most`, and 1 if the
// text is invalid.
unsigned number_of(std::string_view text, unsigned most);

}  // namespace builtin_http
