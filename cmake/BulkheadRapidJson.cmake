# Debian's RapidJSON 1.1.0 needs four corrections, made on a copy at build time:
#  - document.h declares an assignment operator that writes const members; clang refuses it;
#  - reader.h adds to an exponent that is near INT_MIN (CVE-2024-38517);
#  - reader.h makes invalid UTF-8 of a low surrogate escape without a high one before it;
#  - strtod.h, for numbers of more than a double's digits, rounds some to values that have nothing to
#    do with them (18446744073709551615.5 to -2.5e263), and reads far behind a table for others. The
#    standard library's from_chars() takes its place.
# Each correction must apply exactly, else the configure step stops: a newer package is looked at by
# a person, not patched blindly.
set(source "/usr/include/rapidjson")
set(copy "${CMAKE_BINARY_DIR}/rapidjson/include")
if(NOT EXISTS "${source}/document.h")
  message(FATAL_ERROR "RapidJSON is missing: apt-get install rapidjson-dev")
endif()
function(rapidjson_correct file from to)
  file(READ "${copy}/rapidjson/${file}" text)
  string(FIND "${text}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "RapidJSON's ${file} is not the one this correction was made for: ${from}")
  endif()
  string(REPLACE "${from}" "${to}" text "${text}")
  file(WRITE "${copy}/rapidjson/${file}" "${text}")
endfunction()

# Made once for each version of this file: a new copy at each configure would rebuild its users.
file(SHA256 "${CMAKE_CURRENT_LIST_FILE}" version)
if(NOT EXISTS "${copy}/.corrected-${version}")
  file(REMOVE_RECURSE "${copy}")
  file(MAKE_DIRECTORY "${copy}")
  file(COPY "${source}" DESTINATION "${copy}")
  rapidjson_correct(document.h
    "GenericStringRef& operator=(const GenericStringRef& rhs) { s = rhs.s; length = rhs.length; }"
    "GenericStringRef& operator=(const GenericStringRef& rhs) = delete;")
  # 100,000,000: far below any double, and far enough from INT_MIN for the digits behind the point.
  rapidjson_correct(reader.h "if (exp >= 214748364) {" "if (exp >= 100000000) {")
  set(surrogate "if (RAPIDJSON_UNLIKELY(codepoint >= 0xD800 && codepoint <= 0xDBFF)) {")
  rapidjson_correct(reader.h "${surrogate}"
    "if (RAPIDJSON_UNLIKELY(codepoint >= 0xDC00 && codepoint <= 0xDFFF)) RAPIDJSON_PARSE_ERROR(kParseErrorStringUnicodeSurrogateInvalid, escapeOffset); ${surrogate}")
  rapidjson_correct(internal/strtod.h [==[#include "pow10.h"]==]
    [==[#include "pow10.h"
#include <charconv>
#include <limits>
#include <string>]==])
  rapidjson_correct(internal/strtod.h "inline double StrtodFullPrecision(" [==[
// The digits, times ten to the power of `exp`.
inline double StrtodExact(const char* decimals, size_t length, long long exp) {
    std::string text(decimals, length);
    text.append("e").append(std::to_string(exp));
    double d = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), d).ec == std::errc()) return d;
    while (length > 0 && *decimals == '0') { ++decimals; --length; }
    const bool large = length > 0 && exp + static_cast<long long>(length) > 0;
    return large ? std::numeric_limits<double>::infinity() : 0.0;
}

inline double StrtodFullPrecision(]==])
  rapidjson_correct(internal/strtod.h "    // Trim leading zeros" [==[
    return StrtodExact(decimals, length, static_cast<long long>(exp) +
                       static_cast<long long>(decimalPosition) - static_cast<long long>(length));
    // Trim leading zeros]==])
  file(WRITE "${copy}/.corrected-${version}" "")
endif()

add_library(bulkhead_rapidjson INTERFACE)
target_include_directories(bulkhead_rapidjson SYSTEM INTERFACE "${copy}")
target_compile_definitions(bulkhead_rapidjson INTERFACE RAPIDJSON_HAS_STDSTRING=1)
