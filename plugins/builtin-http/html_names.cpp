#include "builtin-http/html_names.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <charconv>

#include "builtin-http/html_tree.hpp"

namespace builtin_http {
namespace {

std::string lowered_without_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\n') {
      out += bh::lower(c);
    }
  }
  return out;
}

bool is_original_name(const GumboElement &e, std::string_view name) {
  GumboStringPiece piece = e.original_tag;
  gumbo_tag_from_original_text(&piece);
  return std::string_view(piece.data == nullptr ? "" : piece.data, piece.length) == name;
}

}  // namespace

int apart(GumboTag tag) {
  switch (tag) {
    case GUMBO_TAG_P:
    case GUMBO_TAG_BLOCKQUOTE:
    case GUMBO_TAG_TABLE:
    case GUMBO_TAG_DL:
    case GUMBO_TAG_FIGURE:
      return 2;
    case GUMBO_TAG_ADDRESS:
    case GUMBO_TAG_ARTICLE:
    case GUMBO_TAG_ASIDE:
    case GUMBO_TAG_BODY:
    case GUMBO_TAG_CAPTION:
    case GUMBO_TAG_CENTER:
    case GUMBO_TAG_DD:
    case GUMBO_TAG_DETAILS:
    case GUMBO_TAG_DIV:
    case GUMBO_TAG_DT:
    case GUMBO_TAG_FIELDSET:
    case GUMBO_TAG_FIGCAPTION:
    case GUMBO_TAG_FOOTER:
    case GUMBO_TAG_FORM:
    case GUMBO_TAG_HEADER:
    case GUMBO_TAG_HGROUP:
    case GUMBO_TAG_MAIN:
    case GUMBO_TAG_NAV:
    case GUMBO_TAG_OPTION:
    case GUMBO_TAG_SECTION:
    case GUMBO_TAG_SUMMARY:
    case GUMBO_TAG_TD:
    case GUMBO_TAG_TH:
    case GUMBO_TAG_TR:
      return 1;
    default:
      return 0;
  }
}

std::string_view mark_of(GumboTag tag) {
  switch (tag) {
    case GUMBO_TAG_STRONG:
    case GUMBO_TAG_B:
      return "**";
    case GUMBO_TAG_EM:
    case GUMBO_TAG_I:
      return "*";
    case GUMBO_TAG_DEL:
    case GUMBO_TAG_S:
    case GUMBO_TAG_STRIKE:
      return "~~";
    default:
      return {};
  }
}

bool is_hidden(const GumboElement &e) {
  switch (e.tag) {
    case GUMBO_TAG_SCRIPT:
    case GUMBO_TAG_STYLE:
    case GUMBO_TAG_NOSCRIPT:
    case GUMBO_TAG_SVG:
    case GUMBO_TAG_TEMPLATE:
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_HEAD:
    case GUMBO_TAG_ANNOTATION_XML:
      return true;
    case GUMBO_TAG_UNKNOWN:
      if (is_original_name(e, "annotation")) return true;  // TeX source of a MathML formula
      break;
    default:
      break;
  }
  if (gumbo_get_attribute(&e.attributes, "hidden") != nullptr) return true;
  const std::string_view style = attribute(e, "style");
  return !style.empty() && lowered_without_spaces(style).find("display:none") != std::string::npos;
}

std::string link_target(std::string_view href) {
  constexpr std::size_t max_href = 2000;
  const auto is_space = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!href.empty() && is_space(href.front())) href.remove_prefix(1);
  while (!href.empty() && is_space(href.back())) href.remove_suffix(1);
  const std::string start = bh::lowered(href.substr(0, 11));
  if (href.size() > max_href || start.starts_with("javascript:") || start.starts_with("data:")) {
    return {};
  }
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : href) {
    const auto b = static_cast<unsigned char>(c);
    if (b <= ' ' || c == '(' || c == ')' || c == '<' || c == '>') {
      out += {'%', hex[b >> 4], hex[b & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view language_of(std::string_view classes) {
  for (const std::string_view before : {"language-", "lang-", "highlight-source-", "brush:"}) {
    const std::size_t at = classes.find(before);
    if (at == classes.npos || (at > 0 && classes[at - 1] != ' ')) continue;
    const std::string_view rest = classes.substr(at + before.size());
    const auto end = std::find_if_not(rest.begin(), rest.end(), [](char c) {
      return bh::is_letter_or_digit(c) || c == '+' || c == '#' || c == '-' || c == '_';
    });
    return rest.substr(0, std::min<std::size_t>(static_cast<std::size_t>(end - rest.begin()), 30));
  }
  return {};
}

unsigned number_of(std::string_view text, unsigned most) {
  unsigned n = 1;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return std::clamp(n, 1u, most);
}

}  // namespace builtin_http
