// Parses JSON with two other libraries to verify the scanner's results. If a library is known to
// treat some input differently, the verdict for that input is `unsure`. Only for tests and fuzzing.
#pragma once

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace bulkhead::mcp::testing {

enum class Verdict { valid, invalid, unsure };

// Returns true if the text may exceed a library's nesting limit, which differs between the two
// libraries.
inline bool may_exceed_limits(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; }) > 900;
}

// Returns true if the text may contain an integer that does not fit into 64 bits. Before version
// 3.11, simdjson does not report a separate error for such integers.
inline bool has_long_integer(std::string_view text) {
  std::size_t run = 0;
  for (const char c : text) {
    run = c >= '0' && c <= '9' ? run + 1 : 0;
    if (run > 18) return true;
  }
  return false;
}

inline Verdict ask_simdjson(simdjson::dom::parser *parser, std::string_view text) {
  // Later versions of simdjson skip a byte order mark.
  if (may_exceed_limits(text) || text.starts_with("\xEF\xBB\xBF")) return Verdict::unsure;
  const simdjson::padded_string padded(text);
  switch (parser->parse(padded).error()) {
    case simdjson::SUCCESS:
      return Verdict::valid;
    case simdjson::NUMBER_ERROR:
      // The number may be out of range or invalid JSON. The other library detects the latter.
      return Verdict::unsure;
    case simdjson::STRING_ERROR:
      return text.find("\\u") == text.npos ? Verdict::invalid : Verdict::unsure;
    default:
      return has_long_integer(text) ? Verdict::unsure : Verdict::invalid;
  }
}

// Returns true if the text has a long number or exponent. RapidJSON may overflow or take a very
// long time when it parses one (CVE-2024-38517).
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
  // RapidJSON treats the first NUL as the end of the text.
  if (text.find('\0') != text.npos || has_long_number(text)) return Verdict::unsure;
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::BaseReaderHandler<> handler;
  rapidjson::Reader reader;
  switch (reader.Parse<flags>(stream, handler).Code()) {
    case rapidjson::kParseErrorNone:
      return may_exceed_limits(text) ? Verdict::unsure : Verdict::valid;
    case rapidjson::kParseErrorNumberTooBig:
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return Verdict::unsure;
    default:
      return Verdict::invalid;
  }
}

}  // namespace bulkhead::mcp::testing
