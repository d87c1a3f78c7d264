// Computes the byte ranges to cut from JSON text in order to remove members of an object, including
// their commas. All other bytes stay unchanged.
//
// Borrows the text. Allocates no memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead {

class RemovedMembers {
 public:
  static constexpr std::size_t max_ranges = 8;

  // `text` must be valid JSON. All ranges are positions in this text.
  explicit RemovedMembers(std::string_view text) noexcept : text_(text) {}

  // Adds a member, given as the range from the start of its name to the end of its value. Members
  // must be added in the order in which they appear in the text. If there are too many ranges,
  // returns false and does not add the member.
  bool add(mcp::Range member) noexcept {
    if (count_ != 0 && only_separates(ranges_[count_ - 1].end, member.begin)) {
      ranges_[count_ - 1].end = member.end;
      return true;
    }
    if (count_ == max_ranges) return false;
    ranges_[count_++] = member;
    return true;
  }

  // Returns the ranges to cut. Must be called exactly once, after all members have been added.
  std::span<const mcp::Range> ranges() noexcept {
    for (std::size_t i = 0; i < count_; ++i) take_comma(&ranges_[i]);
    return {ranges_.data(), count_};
  }

 private:
  static bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  bool only_separates(std::uint32_t from, std::uint32_t to) const noexcept {
    for (std::uint32_t i = from; i < to; ++i) {
      if (!is_space(text_[i]) && text_[i] != ',') return false;
    }
    return true;
  }
  // Extends the range to include the comma after it. If there is no such comma, because the range
  // ends at the object's last member, extends it to include the comma before it.
  void take_comma(mcp::Range *range) const noexcept {
    std::uint32_t end = range->end;
    while (end < text_.size() && is_space(text_[end])) ++end;
    if (end < text_.size() && text_[end] == ',') {
      range->end = end + 1;
      return;
    }
    std::uint32_t begin = range->begin;
    while (begin > 0 && is_space(text_[begin - 1])) --begin;
    if (begin > 0 && text_[begin - 1] == ',') range->begin = begin - 1;
  }

  std::string_view text_;
  std::array<mcp::Range, max_ranges> ranges_{};
  std::size_t count_ = 0;
};

}  // namespace bulkhead
