// The member names of the JSON objects that are open at some place of a text, to tell whether an
// object has one of them twice, in whatever spelling.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "mcp/json_names.hpp"

namespace bulkhead::mcp::json {

// One text, whose names it borrows. A name with escapes is unescaped once, when it comes: sorting
// compares bytes only. Memory: 16 bytes for each name of the open objects, and the text's size once
// a name has an escape (what is unescaped is never longer, and only what is written is touched).
// Thread: one.
class OpenNames {
 public:
  explicit OpenNames(std::string_view text) noexcept : text_size_(text.size()) {}

  void open_object() { objects_.push_back(names_.size()); }

  // The inside of a validated string token of the text; each token once.
  void add(std::string_view inside) {
    names_.push_back(inside.find('\\') == inside.npos ? inside : unescaped(inside));
  }

  // Of the innermost object: has it a name twice? Its names are forgotten.
  bool close_object() {
    const auto begin = names_.begin() + static_cast<std::ptrdiff_t>(objects_.back());
    std::sort(begin, names_.end());
    const bool twice = std::adjacent_find(begin, names_.end()) != names_.end();
    names_.resize(objects_.back());
    objects_.pop_back();
    return twice;
  }

  std::size_t unescaped_characters() const noexcept { return characters_; }  // so far

 private:
  std::string_view unescaped(std::string_view inside) {
    if (!room_) room_ = std::make_unique_for_overwrite<char[]>(text_size_);
    char *const begin = room_.get() + used_;
    char *at = begin;
    for (Unescape name(inside); !name.done(); ++characters_) {
      char bytes[4];
      const unsigned n = encode_utf8(name.next(), bytes);
      std::memcpy(at, bytes, n);
      at += n;
    }
    used_ += static_cast<std::size_t>(at - begin);
    return {begin, static_cast<std::size_t>(at - begin)};
  }

  std::vector<std::string_view> names_;  // innermost object last
  std::vector<std::size_t> objects_;     // where each one's names begin
  std::unique_ptr<char[]> room_;
  std::size_t text_size_, used_ = 0, characters_ = 0;
};

}  // namespace bulkhead::mcp::json
