// The framing of the aggregator protocol. Header only; C++20.
//
//   NDJSON       one JSON text per line, at most 1 MiB without the newline
//   MessagePack  a length (four bytes, most significant byte first), then one packed value of at
//                most 16 MiB; maps have named fields
//
// The first byte distinguishes the formats: a valid length begins with 0 or 1, a JSON text with a
// printable character.
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

// Splits a stream into messages. Memory grows with the received bytes; an announced length does not
// reserve memory.
class FrameCutter {
 public:
  enum class Next : std::uint8_t {
    message,   // message() returns one message
    more,      // more bytes are needed
    too_long,  // a line exceeds the limit and is skipped; reported once
    broken     // a length exceeds the limit, so the next message cannot be located
  };

  explicit FrameCutter(Codec codec) noexcept : codec_(codec) {}

  // Returns the codec. It is automatic until the first non-whitespace byte has arrived.
  Codec codec() const noexcept { return codec_; }

  void add(std::string_view bytes) {
    if (at_ > 0 && (at_ == buffer_.size() || at_ > compact_at)) {
      buffer_.erase(0, at_);
      searched_ -= std::min(searched_, at_);
      at_ = 0;
    }
    // Releases the buffer of a very long message.
    if (buffer_.empty() && buffer_.capacity() > kept_capacity) buffer_ = std::string();
    buffer_.append(bytes);
  }

  Next next() {
    if (codec_ == Codec::automatic && !detect()) return Next::more;
    return codec_ == Codec::ndjson ? next_line() : next_packed();
  }

  // Returns the message after Next::message: a line or a packed value. Valid until add() or next()
  // is called.
  std::string_view message() const noexcept { return message_; }

  // Returns true if there is a last line without a newline. Call it at the end of the stream;
  // message() then returns the line.
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
  bool skipping_ = false;     // skipping the end of a line that is too long
  std::string_view message_;
};

// Appends one encoded message. `text` is JSON. Returns null on success. Otherwise, returns the
// reason why the message cannot be sent, and *out is unchanged.
inline const char *append_message(Codec codec, std::string_view text, std::string *out) {
  const std::size_t before = out->size();
  if (codec == Codec::ndjson) {
    if (text.size() > max_line) return "it is larger than a line of 1 MiB";
    out->append(text);
    // Raw newlines are white space between tokens; in strings, they are escaped.
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

// Sets *text to the JSON of a message from FrameCutter. *text refers to the message or to *scratch.
// Returns null on success, otherwise the error.
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
