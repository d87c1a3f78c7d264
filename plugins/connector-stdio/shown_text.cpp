#include "connector-stdio/shown_text.hpp"

#include <algorithm>
#include <utility>

#include "stdio-lines/text.hpp"

namespace connector_stdio {
namespace {

bool is_control(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

// If the text starts with a zero-width or C1 control character, returns the character's length, or
// the number of available bytes if the character is incomplete. Otherwise, returns 0.
std::size_t invisible(std::string_view text) noexcept {
  static constexpr std::string_view characters[] = {"\xC2\xAD",     "\xE2\x80\x8B", "\xE2\x80\x8C",
                                                    "\xE2\x80\x8D", "\xE2\x80\x8E", "\xE2\x80\x8F",
                                                    "\xE2\x81\xA0", "\xEF\xBB\xBF"};
  if (text.size() >= 2 && text[0] == '\xC2' && (text[1] & '\xE0') == '\x80') return 2;
  for (const std::string_view character : characters) {
    if (text.substr(0, character.size()) == character.substr(0, text.size())) {
      return std::min(text.size(), character.size());
    }
  }
  return 0;
}

// If an escape sequence or an invisible character starts at `i`, returns its length in bytes.
// Otherwise, returns 0.
std::size_t hidden_bytes(std::string_view text, std::size_t i) noexcept {
  if (const std::size_t behind = stdio_lines::skip_escape(text, i); behind != i) {
    return std::min(behind, text.size()) - i;
  }
  return is_control(text[i]) ? 1 : invisible(text.substr(i));
}

}  // namespace

std::optional<ShownText> ShownText::of(std::string_view text) {
  ShownText out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t skipped = hidden_bytes(text, i);
    // Overstriking ("x\bx") displays a character only once, possibly in bold.
    if (skipped != 0 && text[i] == '\b' && !out.text_.empty()) {
      out.text_.pop_back();
      out.places_.pop_back();
    }
    if (skipped == 0) {
      out.text_ += text[i];
      out.places_.push_back(i);
    }
    i += std::max<std::size_t>(skipped, 1);
  }
  if (out.text_.size() == text.size()) return std::nullopt;
  return out;
}

std::string ShownText::all_of(std::string_view text) {
  auto shown = of(text);
  return shown ? std::move(shown->text_) : std::string(text);
}

}  // namespace connector_stdio
