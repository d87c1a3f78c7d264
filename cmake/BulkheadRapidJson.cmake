# Finds RapidJSON 1.1.0 as packaged by distributions, and corrects a copy:
#  - const-assignment: document.h declares an assignment operator that writes const members, which
#    clang rejects (Debian 12; fixed in Debian 13).
#  - exponent: reader.h adds to an exponent near INT_MIN, which overflows (CVE-2024-38517; Debian 12;
#    fixed in Debian 13).
#  - low-surrogate: reader.h produces invalid UTF-8 for the escape of a low surrogate without a
#    preceding high surrogate.
#  - full-precision: strtod.h converts some numbers with more digits than a double can represent to
#    unrelated values (18446744073709551615.5 to -2.5e263), and reads beyond the end of a table for
#    others. It is replaced by from_chars() of the standard library.
include(BulkheadCorrections)
find_path(RAPIDJSON_INCLUDE rapidjson/document.h)
if(NOT RAPIDJSON_INCLUDE)
  message(FATAL_ERROR "RapidJSON is missing: apt-get install rapidjson-dev")
endif()

bulkhead_correction(RapidJSON const-assignment FILE document.h
  FROM "GenericStringRef& operator=(const GenericStringRef& rhs) { s = rhs.s; length = rhs.length; }"
  TO "GenericStringRef& operator=(const GenericStringRef& rhs) = delete;")
# 100,000,000 exceeds the exponent of any double, and is far enough from INT_MIN that the digits
# after the point can be added.
bulkhead_correction(RapidJSON exponent FILE reader.h
  FROM "if (exp >= 214748364) {" TO "if (exp >= 100000000) {")
set(surrogate "if (RAPIDJSON_UNLIKELY(codepoint >= 0xD800 && codepoint <= 0xDBFF)) {")
bulkhead_correction(RapidJSON low-surrogate FILE reader.h FROM "${surrogate}"
  TO "if (RAPIDJSON_UNLIKELY(codepoint >= 0xDC00 && codepoint <= 0xDFFF)) RAPIDJSON_PARSE_ERROR(kParseErrorStringUnicodeSurrogateInvalid, escapeOffset); ${surrogate}")
bulkhead_correction(RapidJSON full-precision FILE internal/strtod.h FROM [==[#include "pow10.h"]==]
  TO [==[#include "pow10.h"
#include <charconv>
#include <limits>
#include <string>]==])
bulkhead_correction(RapidJSON full-precision FILE internal/strtod.h FROM "inline double StrtodFullPrecision("
  TO [==[
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
bulkhead_correction(RapidJSON full-precision FILE internal/strtod.h FROM "    // Trim leading zeros" TO [==[
    return StrtodExact(decimals, length, static_cast<long long>(exp) +
                       static_cast<long long>(decimalPosition) - static_cast<long long>(length));
    // Trim leading zeros]==])

set(probes "${CMAKE_CURRENT_LIST_DIR}/probes")
bulkhead_correct(RapidJSON SOURCE "${RAPIDJSON_INCLUDE}" COPY "${CMAKE_BINARY_DIR}/rapidjson/include"
  FOLDER rapidjson VERSION "1.1.0"
  PROBES "${probes}/const-assignment.compiles.cpp" "${probes}/rapidjson_reader.cpp")

add_library(bulkhead_rapidjson INTERFACE)
target_include_directories(bulkhead_rapidjson SYSTEM INTERFACE "${CMAKE_BINARY_DIR}/rapidjson/include")
target_compile_definitions(bulkhead_rapidjson INTERFACE RAPIDJSON_HAS_STDSTRING=1)
