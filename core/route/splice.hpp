// Edits a message by replacing, removing or inserting byte ranges. The result is a list of parts
// for a gathering write, so the message is not copied.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {

// Stores the decimal digits of a number, without heap allocation.
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

// A message with at most max_edits edits, which can be added in any order. If an edit is invalid
// (too many edits, overlapping ranges, or a range outside the message), all edits are discarded,
// because a message must never be sent with an edit missing. Borrows the message and the inserted
// strings. Not thread-safe. Allocates no memory.
class Splice {
 public:
  static constexpr std::uint32_t max_edits = 12;
  static constexpr const char *failure =
      "the gateway could not rewrite the message: the edits are invalid, or there are too many";

  explicit Splice(std::string_view message) noexcept : message_(message) {}

  // An empty range stands for an absent member; in this case, nothing is replaced.
  void replace(mcp::Range range, std::string_view with) noexcept {
    if (!range.empty()) edit(range, with);
  }
  void remove(mcp::Range range) noexcept { replace(range, {}); }
  // Inserts text before the byte at `at`, or at the end if `at` is the size of the message. Strings
  // that are inserted at the same position appear in the order of the calls, before a replaced
  // range that begins there.
  void insert(std::uint32_t at, std::string_view text) noexcept {
    if (!text.empty()) edit({at, at}, text);
  }

  // Returns false if an edit was invalid. In this case, parts() returns null.
  bool ok() const noexcept { return ok_; }

  // Returns the parts of the edited message, or null if !ok(). The parts are valid while this
  // object, the message and the inserted strings exist.
  const bh_str *parts() noexcept {
    count_ = 0;
    if (!ok_) return nullptr;
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

  void edit(mcp::Range range, std::string_view with) noexcept {
    if (edits_ == max_edits || range.end < range.begin || range.end > message_.size()) {
      ok_ = false;
      return;
    }
    std::uint32_t at = edits_;
    while (at > 0 && goes_before(range, edit_[at - 1].range)) --at;
    if ((at > 0 && edit_[at - 1].range.end > range.begin) ||
        (at < edits_ && range.end > edit_[at].range.begin)) {
      ok_ = false;
      return;
    }
    for (std::uint32_t i = edits_++; i > at; --i) edit_[i] = edit_[i - 1];
    edit_[at] = {range, with};
  }
  static bool goes_before(mcp::Range a, mcp::Range b) noexcept {
    return a.begin < b.begin || (a.begin == b.begin && a.empty() && !b.empty());
  }
  void add(std::string_view part) noexcept {
    if (!part.empty()) parts_[count_++] = bh::str(part);
  }

  std::string_view message_;
  std::array<Edit, max_edits> edit_;
  std::uint32_t edits_ = 0;
  bool ok_ = true;
  std::array<bh_str, 2 * max_edits + 1> parts_;
  std::uint32_t count_ = 0;
};

// Parses decimal digits, optionally quoted as a JSON string. Returns 0 if the token is not a
// number.
inline std::uint64_t parse_number(std::string_view token) noexcept {
  if (token.size() >= 2 && token.front() == '"') token = token.substr(1, token.size() - 2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  return error == std::errc{} && end == token.data() + token.size() ? value : 0;
}

}  // namespace bulkhead
