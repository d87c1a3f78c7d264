# Debian's RapidJSON 1.1.0 needs five corrections, made on a copy at build time:
#  - document.h declares an assignment operator that writes const members; clang refuses it;
#  - reader.h adds to an exponent that is near INT_MIN (CVE-2024-38517);
#  - reader.h makes invalid UTF-8 of a low surrogate escape without a high one before it;
#  - strtod.h counts the leading zero bits of zero, which has none to count from, for 0.000... with
#    more than 22 zeros (undefined in C++);
#  - strtod.h rounds 18446744073709551615.5 and the like, wherever their point is, up to zero.
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
  set(trailing "    // Trim trailing zeros")
  rapidjson_correct(internal/strtod.h "${trailing}" "    if (*decimals == '0') return 0.0;\n${trailing}")
  rapidjson_correct(internal/strtod.h "decimals[i] > '5')" "decimals[i] >= '5')")
  file(WRITE "${copy}/.corrected-${version}" "")
endif()

add_library(bulkhead_rapidjson INTERFACE)
target_include_directories(bulkhead_rapidjson SYSTEM INTERFACE "${copy}")
target_compile_definitions(bulkhead_rapidjson INTERFACE RAPIDJSON_HAS_STDSTRING=1)
