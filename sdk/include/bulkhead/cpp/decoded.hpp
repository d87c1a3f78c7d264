// Decodes the escape sequences in a text and maps each decoded byte to its source. Used for masking
// credentials: they are found in the decoded text and replaced in the source. Header only; C++20.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bh {

// Thread-safe. If the text has no escape sequences, of() allocates no memory and makes at most two
// comparisons per byte.
class Decoded {
 public:
  // `json` decodes \n, \/, \u0061 and so on, wherever there is a backslash. Invalid escape
  // sequences are left unchanged. UTF-16 code units become UTF-8, and lone surrogates become
  // U+FFFD. `percent` decodes %XX. `both` decodes all of these in the same pass.
  enum class Layer : std::uint8_t { json, percent, both };

  struct Range {
    std::size_t begin = 0, end = 0;
  };

  // Returns nullopt if the text has no escape sequences of this layer.
  static std::optional<Decoded> of(std::string_view text, Layer layer) {
    Decoded out;
    std::size_t from = 0;  // text before this offset has been appended to out.text_
    std::size_t at = next(text, 0, layer);
    while (at < text.size()) {
      char bytes[4];
      std::size_t n = 0;
      const std::size_t taken = escape(text.substr(at), layer, bytes, &n);
      if (taken != 0) {
        out.text_.append(text.substr(from, at - from)).append(bytes, n);
        from = at + taken;
        out.steps_.push_back({out.text_.size(), from, static_cast<std::uint8_t>(n),
                              static_cast<std::uint8_t>(taken)});
      }
      at = next(text, at + std::max<std::size_t>(taken, 1), layer);
    }
    if (from == 0) return std::nullopt;
    out.text_.append(text.substr(from));
    return out;
  }

  // Removes up to `layers` layers of JSON and percent escapes.
  static std::string all_of(std::string_view text, unsigned layers) {
    std::string out(text);
    for (; layers != 0; --layers) {
      auto next_text = of(out, Layer::both);
      if (!next_text) break;
      out = std::move(next_text->text_);
    }
    return out;
  }

  std::string_view text() const noexcept { return text_; }

  // Returns the range of the source that corresponds to [begin, end) of text(). The range includes
  // whole escape sequences. Requires begin < end <= text().size().
  Range source(std::size_t begin, std::size_t end) const noexcept {
    return {place(begin, false), place(end - 1, true)};
  }

 private:
  // One escape sequence: its size and the offset after it, both in the decoded text and in the
  // source.
  struct Step {
    std::size_t decoded_end, source_end;
    std::uint8_t decoded_size, source_size;
  };

  static std::size_t next(std::string_view text, std::size_t from, Layer layer) noexcept {
    if (from >= text.size()) return text.size();
    if (layer == Layer::both) {
      while (from < text.size() && text[from] != '\\' && text[from] != '%') ++from;
      return from;
    }
    const std::size_t at = text.find(layer == Layer::json ? '\\' : '%', from);
    return std::min(at, text.size());
  }

  static int hex(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }
  // Returns the value of the n hexadecimal digits at `from`, or -1 if there are fewer than n.
  static std::int32_t digits(std::string_view text, std::size_t from, std::size_t n) noexcept {
    if (text.size() < from + n) return -1;
    std::int32_t value = 0;
    for (std::size_t i = from; i < from + n; ++i) {
      const int digit = hex(text[i]);
      if (digit < 0) return -1;
      value = value * 16 + digit;
    }
    return value;
  }

  static std::size_t put_utf8(std::uint32_t c, char *out) noexcept {
    const auto tail = [c](unsigned shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) {
      out[0] = static_cast<char>(c);
      return 1;
    }
    if (c < 0x800) {
      out[0] = static_cast<char>(0xC0 | c >> 6);
      out[1] = tail(0);
      return 2;
    }
    if (c < 0x10000) {
      out[0] = static_cast<char>(0xE0 | c >> 12);
      out[1] = tail(6);
      out[2] = tail(0);
      return 3;
    }
    out[0] = static_cast<char>(0xF0 | c >> 18);
    out[1] = tail(12);
    out[2] = tail(6);
    out[3] = tail(0);
    return 4;
  }

  // Decodes the escape sequence at the start of the text. Returns its size, or 0 if there is none.
  static std::size_t escape(std::string_view text, Layer layer, char *out,
                            std::size_t *n) noexcept {
    if (text[0] == '%') {
      const std::int32_t byte = layer == Layer::json ? -1 : digits(text, 1, 2);
      if (byte < 0) return 0;
      out[0] = static_cast<char>(byte);
      *n = 1;
      return 3;
    }
    if (layer == Layer::percent || text.size() < 2) return 0;
    constexpr std::string_view letters = R"("\/bfnrt)", meant = "\"\\/\b\f\n\r\t";
    const std::size_t letter = letters.find(text[1]);
    if (letter != letters.npos) {
      out[0] = meant[letter];
      *n = 1;
      return 2;
    }
    const std::int32_t unit = text[1] == 'u' ? digits(text, 2, 4) : -1;
    if (unit < 0) return 0;
    auto c = static_cast<std::uint32_t>(unit);
    std::size_t taken = 6;
    if (c >= 0xD800 && c <= 0xDFFF) {
      const bool pair = c <= 0xDBFF && text.substr(6, 2) == "\\u";
      const std::int32_t low = pair ? digits(text, 8, 4) : -1;
      const bool fits = low >= 0xDC00 && low <= 0xDFFF;
      c = fits ? 0x10000 + ((c - 0xD800) << 10) + (static_cast<std::uint32_t>(low) - 0xDC00)
               : 0xFFFD;
      if (fits) taken = 12;
    }
    *n = put_utf8(c, out);
    return taken;
  }

  // Finds the source of the decoded byte at `at`. Returns the offset at which this source starts
  // or, if `end` is true, the offset at which it ends.
  std::size_t place(std::size_t at, bool end) const noexcept {
    const auto behind = std::upper_bound(
        steps_.begin(), steps_.end(), at,
        [](std::size_t value, const Step &step) { return value < step.decoded_end; });
    if (behind != steps_.end() && at + behind->decoded_size >= behind->decoded_end) {
      return end ? behind->source_end : behind->source_end - behind->source_size;
    }
    const std::size_t shift =
        behind == steps_.begin() ? 0 : (behind - 1)->source_end - (behind - 1)->decoded_end;
    return at + shift + (end ? 1 : 0);
  }

  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace bh
