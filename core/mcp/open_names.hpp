// The member names of the JSON objects that are open at a position in a text. Used to detect
// duplicate names, however they are escaped.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "bulkhead/cpp/text.hpp"
#include "mcp/json_names.hpp"

namespace bulkhead::mcp::json {

// Borrows the names from one text. A name with escapes is unescaped once, when it is added, so
// sorting compares only bytes. Memory: 16 bytes for each name of the open objects, plus the text's
// size once a name has an escape (unescaped names are never longer; untouched pages are not used).
// Used on one thread.
class OpenNames {
 public:
  explicit OpenNames(std::string_view text) noexcept : text_size_(text.size()) {}

  void open_object() { objects_.push_back(names_.size()); }

  // `inside` is a validated string token of the text, without quotes. Each token is added once.
  void add(std::string_view inside) {
    names_.push_back(inside.find('\\') == inside.npos ? inside : unescaped(inside));
  }

  // Closes the innermost object and discards its names. Returns true if a name occurred twice.
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
      const std::size_t n = bh::encode_utf8(name.next(), bytes);
      std::memcpy(at, bytes, n);
      at += n;
    }
    used_ += static_cast<std::size_t>(at - begin);
    return {begin, static_cast<std::size_t>(at - begin)};
  }

  std::vector<std::string_view> names_;  // the innermost object's names are last
  std::vector<std::size_t> objects_;     // index of each object's first name
  std::unique_ptr<char[]> room_;
  std::size_t text_size_, used_ = 0, characters_ = 0;
};

}  // namespace bulkhead::mcp::json
