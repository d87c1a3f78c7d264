// Configured values of a server, kept out of what is written of it: its log, error texts.
//
// Thread: any; one at a time.
#pragma once

#include <bulkhead/cpp/decoded.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

// Finds values as they are, behind escapes of JSON and of URLs, in base64, and with colour codes,
// control characters or line ends in them. Immutable once it is made.
class HiddenValues {
 public:
  static constexpr unsigned max_layers = 8;     // of escapes in one another
  static constexpr std::size_t least_told = 4;  // so much of a value's beginning is hidden, too,
                                                // where the stream ends within it

  HiddenValues() = default;
  explicit HiddenValues(std::vector<std::string> values);

  bool empty() const noexcept { return values_.empty(); }
  // The text with "***" in place of each of them. ended: nothing follows; what the text ends with
  // may be the beginning of one.
  std::string mask(std::string_view text, bool ended = true) const;
  // How much of the text's end has to wait for what follows: it may be the beginning of a value, or
  // is one that a longer one begins with.
  std::size_t open_end(std::string_view text) const;
  // No more than so many bytes have to wait, whatever comes.
  std::size_t most_open() const noexcept { return most_open_; }

 private:
  using Range = bh::Decoded::Range;
  struct Value {
    std::string text;
    std::vector<std::size_t> borders;  // of each beginning: the longest that it also ends with
  };
  void add(std::string text);
  void add_base64(std::string_view text);
  template <class F>
  void each_layer(std::string_view text, F f) const;
  std::size_t beginning_in(std::string_view layer) const;
  std::vector<Range> find(std::string_view text) const;
  Range beginning_at_end(std::string_view text, std::size_t broken) const;

  std::vector<Value> values_;
  std::size_t most_open_ = 0;
};

// The same for a stream that comes in pieces.
class StreamMask {
 public:
  void use(std::vector<std::string> values) { hidden_ = HiddenValues(std::move(values)); }
  // What can be written of the piece and of what waited.
  std::string add(std::string_view piece);
  // The stream has ended: what waited.
  std::string finish();
  // For a text that stands alone.
  std::string mask(std::string_view text) const { return hidden_.mask(text); }

 private:
  HiddenValues hidden_;
  std::string waiting_;
};

}  // namespace connector_stdio
