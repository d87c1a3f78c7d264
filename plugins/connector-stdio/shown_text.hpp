// Reduces a string to what a terminal displays, by removing escape sequences, control characters,
// line endings and zero-width characters. The source position of each remaining byte is stored, so
// that a credential found in the result can be masked in the source.
#pragma once

#include <bulkhead/cpp/decoded.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

class ShownText {
 public:
  using Range = bh::Decoded::Range;

  // Returns the text without the parts that are not displayed, or nullopt if there are no such
  // parts.
  static std::optional<ShownText> of(std::string_view text);
  // Returns the text without the parts that are not displayed.
  static std::string all_of(std::string_view text);

  std::string_view text() const noexcept { return text_; }
  // Returns the range in the source that corresponds to the range [begin, end) of text(). Requires
  // begin < end <= text().size().
  Range source(std::size_t begin, std::size_t end) const noexcept {
    return {places_[begin], places_[end - 1] + 1};
  }

 private:
  std::string text_;
  std::vector<std::size_t> places_;  // source position of each byte of text_
};

}  // namespace connector_stdio
