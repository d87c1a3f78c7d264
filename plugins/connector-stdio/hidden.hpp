// Masks a server's configured values in its log and in error messages.
//
// An object may be used on any thread, but by only one thread at a time.
#pragma once

#include <bulkhead/cpp/decoded.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

// Finds values in several forms: plain, as JSON or URL escapes, in base64, and split by colour
// codes, control characters or line endings. Immutable after construction.
class HiddenValues {
 public:
  static constexpr unsigned max_layers = 8;  // nested levels of escapes that are decoded
  // At the end of a stream, prefixes of a value that are shorter than this are not masked.
  static constexpr std::size_t min_masked_prefix = 4;

  HiddenValues() = default;
  explicit HiddenValues(std::vector<std::string> values);

  bool empty() const noexcept { return values_.empty(); }
  // Replaces each occurrence of a value with "***". If `ended` is true, no more text follows, and a
  // prefix of a value at the end of the text is masked too.
  std::string mask(std::string_view text, bool ended = true) const;
  // Returns the number of bytes at the end of the text that must be held back until more text
  // arrives. These bytes are a prefix of a value, or a value that may be the start of a longer
  // value.
  std::size_t open_end(std::string_view text) const;
  // Returns the maximum result of open_end().
  std::size_t max_open() const noexcept { return max_open_; }

 private:
  using Range = bh::Decoded::Range;
  struct Value {
    std::string text;
    std::vector<std::size_t> borders;  // KMP failure function: the longest border of each prefix
  };
  void add(std::string text);
  void add_base64(std::string_view text);
  template <class F>
  void each_layer(std::string_view text, F f) const;
  std::size_t beginning_in(std::string_view layer) const;
  std::vector<Range> find(std::string_view text) const;
  Range beginning_at_end(std::string_view text, std::size_t broken) const;

  std::vector<Value> values_;
  std::size_t max_open_ = 0;
};

// Masks a stream that arrives in pieces.
class StreamMask {
 public:
  void use(std::vector<std::string> values) { hidden_ = HiddenValues(std::move(values)); }
  // Adds a piece and returns the masked text that is ready to be written.
  std::string add(std::string_view piece);
  // Returns the masked rest of the stream.
  std::string finish();
  // Masks a complete string, independent of the stream.
  std::string mask(std::string_view text) const { return hidden_.mask(text); }

 private:
  HiddenValues hidden_;
  std::string waiting_;
};

}  // namespace connector_stdio
