// Members of a JSON object that are removed: the byte ranges to cut, with the commas that go with
// them. All other bytes stay.
//
// Borrows the text. Never allocates.
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

  // The text must be validated JSON; the ranges that follow are positions in it.
  explicit RemovedMembers(std::string_view text) noexcept : text_(text) {}

  // Adds a member, from its name to the end of its value. Members are added in the order of the
  // text. Returns false if there are too many ranges; it is then not added.
  bool add(mcp::Range member) noexcept {
    if (count_ != 0 && only_separates(ranges_[count_ - 1].end, member.begin)) {
      ranges_[count_ - 1].end = member.end;
      return true;
    }
    if (count_ == max_ranges) return false;
    ranges_[count_++] = member;
    return true;
  }

  // Call it once, after the last member.
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
  // The comma behind the range; behind the last members of an object, the comma in front of them.
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
