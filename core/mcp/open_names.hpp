// Detects duplicate member names in JSON objects, even if the names are escaped differently. Keeps
// the names of all objects that are open at the current position in the text.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "bulkhead/cpp/text.hpp"
#include "mcp/json_names.hpp"

namespace bulkhead::mcp::json {

// The text must outlive this object. A name with escape sequences is unescaped once, when it is
// added, so that names can be sorted by their bytes. Needs 16 bytes of memory for each name in the
// open objects. The first name with an escape sequence reserves a buffer of the text's size,
// because unescaped names are never longer; untouched pages of the buffer use no memory. Used on
// one thread.
class OpenNames {
 public:
  explicit OpenNames(std::string_view text) noexcept : text_size_(text.size()) {}

  void open_object() { objects_.push_back(names_.size()); }

  // `inside` is a validated string token of the text, without quotes. A token must not be added
  // twice.
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

  std::size_t unescaped_characters() const noexcept { return characters_; }  // total so far

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

  std::vector<std::string_view> names_;  // those of the innermost object are last
  std::vector<std::size_t> objects_;     // for each object, the index of its first name
  std::unique_ptr<char[]> room_;
  std::size_t text_size_, used_ = 0, characters_ = 0;
};

}  // namespace bulkhead::mcp::json
