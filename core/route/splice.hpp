// A message with a few byte ranges replaced, as parts for a gathering write: nothing is copied.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {

// Decimal digits of a number, kept in place.
class Digits {
 public:
  explicit Digits(std::uint64_t value) noexcept {
    n_ = static_cast<std::size_t>(
        std::to_chars(text_.data(), text_.data() + text_.size(), value).ptr - text_.data());
  }
  std::string_view view() const noexcept { return {text_.data(), n_}; }

 private:
  std::array<char, 20> text_;
  std::size_t n_ = 0;
};

class Splice {
 public:
  static constexpr std::uint32_t max_edits = 4;

  explicit Splice(std::string_view message) noexcept : message_(message) {}

  // Ranges must not overlap; empty ones are ignored. The text must outlive parts().
  void replace(mcp::Range range, std::string_view with) noexcept {
    if (range.empty() || edits_ == max_edits) return;
    std::uint32_t at = edits_++;
    for (; at > 0 && edit_[at - 1].range.begin > range.begin; --at) edit_[at] = edit_[at - 1];
    edit_[at] = {range, with};
  }

  // The parts, in order; valid as long as this object and its texts.
  const bh_str *parts() noexcept {
    count_ = 0;
    std::uint32_t from = 0;
    for (std::uint32_t i = 0; i < edits_; ++i) {
      add(message_.substr(from, edit_[i].range.begin - from));
      add(edit_[i].with);
      from = edit_[i].range.end;
    }
    add(message_.substr(from));
    return parts_.data();
  }
  std::uint32_t count() const noexcept { return count_; }

 private:
  struct Edit {
    mcp::Range range;
    std::string_view with;
  };
  void add(std::string_view part) noexcept {
    if (!part.empty()) parts_[count_++] = bh::str(part);
  }

  std::string_view message_;
  std::array<Edit, max_edits> edit_;
  std::uint32_t edits_ = 0;
  std::array<bh_str, 2 * max_edits + 1> parts_;
  std::uint32_t count_ = 0;
};

// Decimal digits (also as a JSON string) to a number; 0 if it is none.
inline std::uint64_t parse_number(std::string_view token) noexcept {
  if (token.size() >= 2 && token.front() == '"') token = token.substr(1, token.size() - 2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  return error == std::errc{} && end == token.data() + token.size() ? value : 0;
}

}  // namespace bulkhead
