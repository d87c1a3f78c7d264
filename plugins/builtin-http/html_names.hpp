// Properties of HTML elements and attributes that matter for text.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace builtin_http {

// Line breaks around an element: 0 inline, 1 block, 2 paragraph.
int apart(GumboTag tag);

// The Markdown mark of an emphasis element ("**", "*", "~~"); empty: none.
std::string_view mark_of(GumboTag tag);

// True for code, keyboard input and terminal output.
inline bool is_code(GumboTag tag) {
  return tag == GUMBO_TAG_CODE || tag == GUMBO_TAG_KBD || tag == GUMBO_TAG_SAMP;
}

inline bool is_heading(GumboTag tag) {
  return tag >= GUMBO_TAG_H1 && tag <= GUMBO_TAG_H6;
}

// True if the element has no visible text: scripts, graphics, hidden elements.
bool is_hidden(const GumboElement &element);

// The URL of a link as written in Markdown; empty: the link is dropped.
std::string link_target(std::string_view href);

// The language of a class: "python" for "highlight language-python"; empty: none.
std::string_view language_of(std::string_view classes);

// Parses a positive number of an attribute such as colspan, limited to `most`; 1 if invalid.
unsigned number_of(std::string_view text, unsigned most);

}  // namespace builtin_http
