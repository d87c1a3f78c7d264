// What the names and attributes of HTML's elements mean for their text.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace builtin_http {

// Lines that an element stands apart from the others by: 0 inline, 1 block, 2 paragraph.
int apart(GumboTag tag);

// The mark of an element that is emphasis ("**", "*", "~~"); empty: it is none.
std::string_view mark_of(GumboTag tag);

// Is it a piece of code, or of what one types or sees in a terminal?
inline bool is_code(GumboTag tag) {
  return tag == GUMBO_TAG_CODE || tag == GUMBO_TAG_KBD || tag == GUMBO_TAG_SAMP;
}

inline bool is_heading(GumboTag tag) {
  return tag >= GUMBO_TAG_H1 && tag <= GUMBO_TAG_H6;
}

// Is nothing of the element a text to be read: scripts, drawings, what is marked as hidden?
bool is_hidden(const GumboElement &element);

// How a link's address stands in Markdown; empty: not worth one.
std::string link_target(std::string_view href);

// "python" of a class "highlight language-python"; empty: it names none.
std::string_view language_of(std::string_view classes);

// A positive number of an attribute like colspan: from 1 to most; 1 if it is none.
unsigned number_of(std::string_view text, unsigned most);

}  // namespace builtin_http
