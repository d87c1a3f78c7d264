// The framing of the aggregator protocol. Header only; C++20.
//
//   NDJSON       one JSON text per line, of at most 1 MiB without the newline
//   MessagePack  a length (four bytes, most significant first), then one packed value of at most
//                16 MiB; maps have string keys
//
// The first byte that is not white space identifies the format: a valid length begins with a byte
// that is 0 or 1, whereas a JSON text begins with a printable character.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "msgpack.hpp"

namespace bh::aggregator {

enum class Codec : std::uint8_t { automatic, ndjson, msgpack };

inline constexpr std::size_t max_line = 1u << 20;
inline constexpr std::size_t max_frame = 16u << 20;

// Splits a stream into messages. Memory is allocated only for bytes that have arrived, not for
// announced lengths.
class FrameCutter {
 public:
  enum class Next : std::uint8_t {
    message,   // message() returns a message
    more,      // more bytes are needed
    too_long,  // a line exceeds the limit and is skipped; reported once
    broken     // a length exceeds the limit, so the next message cannot be located
  };

  explicit FrameCutter(Codec codec) noexcept : codec_(codec) {}

  // Returns the codec. It is `automatic` until a byte other than white space has arrived.
  Codec codec() const noexcept { return codec_; }

  void add(std::string_view bytes) {
    if (at_ > 0 && (at_ == buffer_.size() || at_ > compact_at)) {
      buffer_.erase(0, at_);
      searched_ -= std::min(searched_, at_);
      at_ = 0;
    }
    // Frees the buffer if it has become very large.
    if (buffer_.empty() && buffer_.capacity() > kept_capacity) buffer_ = std::string();
    buffer_.append(bytes);
  }

  Next next() {
    if (codec_ == Codec::automatic && !detect()) return Next::more;
    return codec_ == Codec::ndjson ? next_line() : next_packed();
  }

  // Returns the message that next() found: a line or a packed value. Valid until the next call to
  // add() or next().
  std::string_view message() const noexcept { return message_; }

  // Must be called at the end of the stream. Returns true if the stream ends with a line that has
  // no newline. message() then returns this line.
  bool last_line() {
    if (codec_ != Codec::ndjson || skipping_) return false;
    message_ = json::trimmed(rest());
    at_ = buffer_.size();
    return !message_.empty();
  }

 private:
  static constexpr std::size_t compact_at = 256u << 10;
  static constexpr std::size_t kept_capacity = 1u << 20;

  std::string_view rest() const noexcept { return std::string_view(buffer_).substr(at_); }

  bool detect() {
    while (at_ < buffer_.size() && json::detail::is_space(buffer_[at_])) ++at_;
    if (at_ == buffer_.size()) return false;
    codec_ = static_cast<unsigned char>(buffer_[at_]) < 0x20 ? Codec::msgpack : Codec::ndjson;
    return true;
  }

  Next next_line() {
    for (;;) {
      const std::size_t end = buffer_.find('\n', std::max(at_, searched_));
      if (end == std::string::npos) return unfinished_line();
      searched_ = 0;
      const std::string_view line = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      if (skipping_) {
        skipping_ = false;
        continue;
      }
      if (line.size() > max_line) return Next::too_long;
      message_ = json::trimmed(line);
      if (!message_.empty()) return Next::message;
    }
  }

  Next unfinished_line() {
    searched_ = buffer_.size();
    if (!skipping_ && rest().size() <= max_line) return Next::more;
    buffer_.clear();
    at_ = searched_ = 0;
    if (skipping_) return Next::more;
    skipping_ = true;
    return Next::too_long;
  }

  Next next_packed() {
    const std::string_view bytes = rest();
    if (bytes.size() < 4) return Next::more;
    std::size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    if (length > max_frame) return Next::broken;
    if (bytes.size() - 4 < length) return Next::more;
    message_ = bytes.substr(4, length);
    at_ += 4 + length;
    return Next::message;
  }

  Codec codec_;
  std::string buffer_;
  std::size_t at_ = 0;        // bytes before this offset have been returned
  std::size_t searched_ = 0;  // there is no newline between at_ and this offset
  bool skipping_ = false;     // skipping the rest of a line that is too long
  std::string_view message_;
};

// Encodes `text`, which is JSON, as a message and appends it to *out. Returns null on success.
// Otherwise, returns the reason why the text cannot be sent, and leaves *out unchanged.
inline const char *append_message(Codec codec, std::string_view text, std::string *out) {
  const std::size_t before = out->size();
  if (codec == Codec::ndjson) {
    if (text.size() > max_line) return "it is larger than a line of 1 MiB";
    out->append(text);
    // In JSON, newlines can occur only as white space between tokens, because newlines in strings
    // are escaped.
    std::replace(out->begin() + static_cast<std::ptrdiff_t>(before), out->end(), '\n', ' ');
    out->push_back('\n');
    return nullptr;
  }
  out->append(4, '\0');
  const char *why = msgpack::from_json(text, out);
  const std::size_t length = out->size() - before - 4;
  if (why == nullptr && length > max_frame) why = "it is larger than a message of 16 MiB";
  if (why != nullptr) {
    out->resize(before);
    return why;
  }
  for (unsigned i = 0; i < 4; ++i) {
    (*out)[before + i] = static_cast<char>(length >> (24 - 8 * i) & 0xFF);
  }
  return nullptr;
}

// Decodes a message from FrameCutter. Sets *text to its JSON, which points into the message or into
// *scratch. Returns null on success, and an error message otherwise.
inline const char *decode_message(Codec codec, std::string_view message, std::string *scratch,
                                  std::string_view *text) {
  if (codec == Codec::ndjson) {
    *text = message;
    return json::valid(message) ? nullptr : "it is not JSON";
  }
  scratch->clear();
  const char *why = msgpack::to_json(message, scratch);
  *text = *scratch;
  return why;
}

}  // namespace bh::aggregator
