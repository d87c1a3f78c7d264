// Shared by the parsers for request and response heads. Splits a head into lines, and parses the
// fields that determine where a message ends and whether its connection persists.
#pragma once

#include <cstdint>
#include <string_view>

#include "http-codec/text.hpp"

namespace http_codec {

// Splits a head into lines. Each byte is scanned once, however the input is split. Bare CR, bare LF
// and control characters other than a tab are invalid.
class HeadLines {
 public:
  enum class Step : std::uint8_t { line, more, invalid };

  // Finds the next line. `data` contains all bytes since the start of the head. `line` does not
  // include its CR LF.
  Step next(std::string_view data, std::string_view &line) noexcept {
    const char *const end = data.data() + data.size();
    const char *const at = find_control(data.data() + scanned_, end);
    scanned_ = static_cast<std::uint32_t>(at - data.data());
    if (end - at < 2) return at == end || *at == '\r' ? Step::more : Step::invalid;
    if (at[0] != '\r' || at[1] != '\n') return Step::invalid;
    line = data.substr(start_, scanned_ - start_);
    start_ = scanned_ += 2;
    return Step::line;
  }

  // Returns the position of the next line.
  std::uint32_t start() const noexcept { return start_; }

 private:
  std::uint32_t start_ = 0, scanned_ = 0;
};

// Parses "Name: value". Returns false if the line is not a field. The name must be a token, so
// folded lines and spaces before the colon are rejected.
inline bool split_field(std::string_view line, std::string_view &name,
                        std::string_view &value) noexcept {
  const std::size_t colon = token_size(line);
  if (colon == 0 || colon == line.size() || line[colon] != ':') return false;
  name = line.substr(0, colon);
  value = trim(line.substr(colon + 1));
  return true;
}

// The fields that determine the framing of the message and whether the connection persists.
// Functions that return a string return the reason why a value is invalid, or null if it is valid.
struct MessageFields {
  bool chunked = false;
  bool has_length = false;
  bool close = false;       // Connection: close
  bool keep_alive = false;  // Connection: keep-alive
  std::uint64_t content_length = 0;

  // A comma-separated list is invalid, even if all lengths in it are equal. If the field is
  // repeated, its values must be equal.
  const char *read_length(std::string_view value) noexcept {
    std::uint64_t length = 0;
    if (!parse_decimal(value, &length)) return "a malformed Content-Length";
    if (has_length && length != content_length) return "two different Content-Length fields";
    has_length = true;
    content_length = length;
    return nullptr;
  }
  const char *read_coding(std::string_view value) noexcept {
    if (chunked || !equals_lower(value, "chunked")) {
      return "a transfer coding other than chunked";
    }
    chunked = true;
    return nullptr;
  }
  void read_connection(std::string_view value) noexcept {
    for_each_element(value, [this](std::string_view option) {
      if (equals_lower(option, "close")) close = true;
      if (equals_lower(option, "keep-alive")) keep_alive = true;
    });
  }
  const char *check_framing(bool http_1_0) const noexcept {
    if (chunked && has_length) return "both a transfer coding and a Content-Length";
    if (chunked && http_1_0) return "a transfer coding in HTTP/1.0";
    return nullptr;
  }
  bool persistent(bool http_1_0) const noexcept { return !close && (!http_1_0 || keep_alive); }
};

}  // namespace http_codec
