// A list of the headers that the gateway composes for a message. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/header_value.hpp"

namespace bulkhead::mcp {

// A list that has been cleared can be reused without allocating memory, unless it grows larger than
// before. This class does not enforce the limits of bh_header; bh::check_headers() does.
class HeaderList {
 public:
  void clear() noexcept {
    text_.clear();
    entries_.clear();
  }
  bool empty() const noexcept { return entries_.empty(); }

  // Adds a header. `text` is any UTF-8 text; it is encoded if necessary.
  void add(std::string_view name, std::string_view text) {
    Entry entry{text_.size(), 0, 0};
    text_.append(name);
    entry.value = text_.size();
    append_header_value(&text_, text);
    entry.end = text_.size();
    entries_.push_back(entry);
  }

  // The returned headers are valid until the list changes.
  std::span<const bh_header> all() {
    headers_.clear();
    const std::string_view text = text_;
    for (const Entry &e : entries_) {
      headers_.push_back({bh::str(text.substr(e.begin, e.value - e.begin)),
                          bh::str(text.substr(e.value, e.end - e.value))});
    }
    return headers_;
  }

 private:
  struct Entry {
    std::size_t begin, value, end;  // offsets in text_
  };

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<bh_header> headers_;
};

}  // namespace bulkhead::mcp
