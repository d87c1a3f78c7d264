// Masks values from a server's definition in the server's log and in error messages.
//
// An object may be used on any thread, but by only one thread at a time.
#pragma once

#include <bulkhead/cpp/decoded.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace connector_stdio {

// Finds values even if they are written with JSON or URL escapes, encoded in base64 (values of at
// least 12 bytes), or split by colour codes, control characters or line endings. Immutable after
// construction.
class HiddenValues {
 public:
  static constexpr unsigned max_layers = 8;  // nested levels of escapes that are decoded
  // If a stream ends with a prefix of a value, the prefix is masked only if it has at least this
  // many bytes.
  static constexpr std::size_t min_masked_prefix = 4;

  HiddenValues() = default;
  explicit HiddenValues(std::vector<std::string> values);

  bool empty() const noexcept { return values_.empty(); }
  // Replaces each occurrence of a value with "***". If `ended` is true, no more text follows, so a
  // prefix of a value at the end of the text is masked too.
  std::string mask(std::string_view text, bool ended = true) const;
  // Returns how many bytes at the end of the text must be held back until more text arrives. These
  // bytes are a prefix of a value, or a complete value that may be the start of a longer one.
  std::size_t open_end(std::string_view text) const;
  // Returns how many bytes may be held back. If open_end() returns more, StreamMask masks the text
  // as if it had ended.
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
  // Adds a piece of the stream. Returns the masked text that can be written now.
  std::string add(std::string_view piece);
  // Ends the stream and returns the rest of the masked text.
  std::string finish();
  // Masks a complete string, independently of the stream.
  std::string mask(std::string_view text) const { return hidden_.mask(text); }

 private:
  HiddenValues hidden_;
  std::string waiting_;
};

}  // namespace connector_stdio
