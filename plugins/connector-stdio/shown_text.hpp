// A text without what a terminal does not show: colour codes and other escape sequences, control
// characters, line ends, characters without width. And where each of its bytes came from. For
// masks, as bh::Decoded: a credential is found as it is read, and replaced where it stands.
#pragma once

#include <bulkhead/cpp/decoded.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

// Thread: any. Allocates.
class ShownText {
 public:
  using Range = bh::Decoded::Range;

  // nullopt: all of the text is shown.
  static std::optional<ShownText> of(std::string_view text);
  // As of(); the text itself where all of it is shown.
  static std::string all_of(std::string_view text);

  std::string_view text() const noexcept { return text_; }
  // Where [begin, end) of text() came from. begin < end <= text().size().
  Range source(std::size_t begin, std::size_t end) const noexcept {
    return {places_[begin], places_[end - 1] + 1};
  }

 private:
  std::string text_;
  std::vector<std::size_t> places_;  // of each byte of text_
};

}  // namespace connector_stdio
