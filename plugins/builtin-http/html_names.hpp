// Determines how HTML elements and attributes affect the converted text.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace builtin_http {

// Returns the number of line breaks before and after an element: 1 for a block, 2 for a paragraph,
// and 0 for inline elements and for elements that html_text.cpp separates itself, such as lists.
int apart(GumboTag tag);

// Returns the Markdown delimiter of an emphasis element ("**", "*" or "~~"). Returns an empty
// string for other elements.
std::string_view mark_of(GumboTag tag);

inline bool is_code(GumboTag tag) {
  return tag == GUMBO_TAG_CODE || tag == GUMBO_TAG_KBD || tag == GUMBO_TAG_SAMP;
}

inline bool is_heading(GumboTag tag) {
  return tag >= GUMBO_TAG_H1 && tag <= GUMBO_TAG_H6;
}

// Returns true if the element has no visible text, such as a script, a graphic or a hidden element.
bool is_hidden(const GumboElement &element);

// Returns a URL as a Markdown link target. Returns an empty string if the link must be dropped.
std::string link_target(std::string_view href);

// Returns the programming language from CSS classes: "python" for "highlight language-python".
// Returns an empty string if there is none.
std::string_view language_of(std::string_view classes);

// Parses a positive number from an attribute such as colspan. The result is limited to `most`.
// Returns 1 if `text` is invalid.
unsigned number_of(std::string_view text, unsigned most);

}  // namespace builtin_http
