// Masks the end of truncated text.
#include <bulkhead/cpp/decoded.hpp>
#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "telemetry-sqlite/mask.hpp"
#include "telemetry-sqlite/mask_parts.hpp"

namespace telemetry_sqlite {

using bh::Decoded;

namespace {

// If the text ends with an incomplete escape sequence, returns its length. Otherwise, returns 0.
std::size_t half_escape(std::string_view text) noexcept {
  for (std::size_t n = 1; n <= std::min<std::size_t>(text.size(), 5); ++n) {
    const std::string_view end = text.substr(text.size() - n);
    if (end[0] != '\\' && end[0] != '%') continue;
    const bool unit = end.starts_with("\\u");
    const std::string_view digits = end.substr(unit ? 2 : 1);
    const bool hex =
        std::all_of(digits.begin(), digits.end(), [](char c) { return bh::hex_value(c) >= 0; });
    const std::size_t most_digits = unit ? 3 : end[0] == '%' ? 1 : 0;
    // A backslash that is preceded by an odd number of backslashes completes an escape sequence.
    const std::size_t before = text.substr(0, text.size() - n).find_last_not_of('\\') + 1;
    const bool odd = end[0] == '%' || (text.size() - n - before) % 2 == 0;
    return hex && odd && digits.size() <= most_digits ? n : 0;
  }
  return 0;
}

// If the text ends within the password of a URL, returns the position of the password. Otherwise,
// returns the size of the text. A port is also returned, because the text may end before the '@'.
std::size_t cut_password(std::string_view text) noexcept {
  std::size_t from = 0;
  for (const std::string_view start : {url_begin, escaped_url_begin}) {
    const std::size_t at = text.rfind(start);
    if (at != text.npos) from = std::max(from, at + start.size());
  }
  const std::size_t colon = text.find(':', from);
  const bool cut = text.find_first_of("/?#\"\\ ", from) == text.npos;
  return from != 0 && colon != text.npos && cut ? colon + 1 : text.size();
}

// Returns the position at which the last word of the text starts.
std::size_t last_word(std::string_view text) noexcept {
  constexpr std::size_t most = 512;
  std::size_t n = 0;
  while (n < std::min(most, text.size()) && is_token_char(text[text.size() - 1 - n])) ++n;
  return text.size() - n;
}

}  // namespace

void mask_cut_end(std::string *text, std::uint64_t *count) {
  constexpr std::size_t looked_at = 4096;  // escape sequences can make a word longer than 512 bytes
  const std::size_t half = half_escape(*text), end = text->size() - half;
  const std::size_t from = end - std::min(end, looked_at);
  const std::string_view window = std::string_view(*text).substr(from, end - from);
  std::vector<Decoded> layers;
  std::size_t word = last_word(window);
  const std::size_t password = cut_password(window);
  while (layers.size() < max_layers) {
    auto layer = Decoded::of(layers.empty() ? window : layers.back().text(), Decoded::Layer::both);
    if (!layer) break;
    // An escape sequence is part of the word if the decoded character is.
    if (layers.empty()) word = window.size();
    layers.push_back(std::move(*layer));
    const std::string_view below = layers.back().text();
    Decoded::Range at{std::min(last_word(below), cut_password(below)), below.size()};
    if (at.begin == at.end) continue;
    for (auto outer = layers.rbegin(); outer != layers.rend(); ++outer) {
      at = outer->source(at.begin, at.end);
    }
    word = std::min(word, at.begin);
  }
  word = std::min(word, password);
  if (window.size() - word < 2 && half == 0) return;
  text->replace(from + word, text->npos, mask);
  ++*count;
}

}  // namespace telemetry_sqlite
