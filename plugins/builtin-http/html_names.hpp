// Properties of HTML elements and attributes that matter for text.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace builtin_http {

// Line breaks around an element: 0 for inline, 1 for a block, 2 for a paragraph.
int apart(GumboTag tag);

// Returns the Markdown mark of an emphasis element ("**", "*", "~~"), or an empty string for other
// elements.
std::string_view mark_of(GumboTag tag);

// Returns true for code, keyboard input and terminal output.
inline bool is_code(GumboTag tag) {
  return tag == GUMBO_TAG_CODE || tag == GUMBO_TAG_KBD || tag == GUMBO_TAG_SAMP;
}

inline bool is_heading(GumboTag tag) {
  return tag >= GUMBO_TAG_H1 && tag <= GUMBO_TAG_H6;
}

// Returns true if the element has no visible text: scripts, graphics, hidden elements.
bool is_hidden(const GumboElement &element);

// Returns the URL of a link as written in Markdown, or an empty string if the link must be dropped.
std::string link_target(std::string_view href);

// Returns the language named by a class: "python" for "highlight language-python". Returns an empty
// string if there is none.
std::string_view language_of(std::string_view classes);

// Parses a positive number from an attribute such as colspan. The result is limited to `most`; it
// is 1 if the text is invalid.
unsigned number_of(std::string_view text, unsigned most);

}  // namespace builtin_http
