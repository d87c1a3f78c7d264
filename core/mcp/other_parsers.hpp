// Two JSON libraries as judges of the scanner, with what is known to differ taken out. For tests
// and fuzzing only.
#pragma once

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace bulkhead::mcp::testing {

enum class Verdict { valid, invalid, unsure };

// Numbers that no double or 64-bit integer holds, and lone surrogate escapes, are errors for both
// libraries; each also has a nesting bound or none at all.
inline bool may_be_beyond_bounds(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; }) > 900;
}

// simdjson 3.11 and later has an error of its own for integers beyond 64 bits, which earlier ones
// do not.
inline bool has_long_integer(std::string_view text) {
  std::size_t run = 0;
  for (const char c : text) {
    run = c >= '0' && c <= '9' ? run + 1 : 0;
    if (run > 18) return true;
  }
  return false;
}

inline Verdict ask_simdjson(simdjson::dom::parser *parser, std::string_view text) {
  if (may_be_beyond_bounds(text)) return Verdict::unsure;
  const simdjson::padded_string padded(text);
  switch (parser->parse(padded).error()) {
    case simdjson::SUCCESS:
      return Verdict::valid;
    case simdjson::NUMBER_ERROR:  // also for wrong grammar: the other library tells those apart
      return Verdict::unsure;
    case simdjson::STRING_ERROR:
      return text.find("\\u") == text.npos ? Verdict::invalid : Verdict::unsure;
    default:
      return has_long_integer(text) ? Verdict::unsure : Verdict::invalid;
  }
}

// A long number or exponent makes RapidJSON compute on and on, or overflow (CVE-2024-38517).
inline bool has_long_number(std::string_view text) {
  std::size_t run = 0;
  for (const char c : text) {
    run = c >= '0' && c <= '9' ? run + 1 : 0;
    if (run > 60) return true;
  }
  for (std::size_t e = text.find_first_of("eE"); e != text.npos;
       e = text.find_first_of("eE", e + 1)) {
    std::size_t i = e + 1;
    while (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    std::size_t digits = 0;
    while (i + digits < text.size() && text[i + digits] >= '0' && text[i + digits] <= '9') ++digits;
    if (digits > 4) return true;
  }
  return false;
}

inline Verdict ask_rapidjson(std::string_view text) {
  // A NUL ends the text for RapidJSON, wherever it stands.
  if (text.find('\0') != text.npos || has_long_number(text)) return Verdict::unsure;
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::BaseReaderHandler<> handler;
  rapidjson::Reader reader;
  switch (reader.Parse<flags>(stream, handler).Code()) {
    case rapidjson::kParseErrorNone:
      return may_be_beyond_bounds(text) ? Verdict::unsure : Verdict::valid;
    case rapidjson::kParseErrorNumberTooBig:
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return Verdict::unsure;
    default:
      return Verdict::invalid;
  }
}

}  // namespace bulkhead::mcp::testing
