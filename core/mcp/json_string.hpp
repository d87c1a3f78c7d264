// Finding the end of a JSON string while checking it: escapes, control characters, UTF-8.
//
// One function per instruction set, all with the same answers; string_end() takes the fastest one
// that this processor has. A processor without AVX2 checks non-ASCII text byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#define BULKHEAD_SSE2 1
#endif

namespace bulkhead::mcp::json {

// What was wrong and where. what is static text.
struct Fault {
  const char *what = "";
  const char *at = nullptr;
};

// p: just behind the opening quote. Returns the place behind the closing quote, or nullptr with
// *fault filled. Reads nothing outside [p, end). Thread: any.
using StringEnd = const char *(*)(const char *p, const char *end, Fault *fault) noexcept;

// The fastest variant that this processor can run.
const char *string_end_long(const char *p, const char *end, Fault *fault) noexcept;

#if BULKHEAD_SSE2
// Bits of the 16 bytes at p that are not plain ASCII: one signed comparison finds both < 0x20 and
// >= 0x80.
inline unsigned special_bits(const char *p) noexcept {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
  const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
  const __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
  const __m128i other = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), other)));
}
#endif

inline const char *string_end(const char *p, const char *end, Fault *fault) noexcept {
#if BULKHEAD_SSE2
  // Most strings of a message are short: no call for them.
  if (end - p >= 16) {
    const unsigned bits = special_bits(p);
    if (bits != 0) {
      const char *stop = p + __builtin_ctz(bits);
      if (*stop == '"') return stop + 1;
    }
  }
#endif
  return string_end_long(p, end, fault);
}

// The variants, for tests and measurements; best to worst, each with the name of what it needs.
// Only those that this processor can run are listed; the last is plain C++.
struct StringEndVariant {
  const char *name;
  StringEnd function;
};
struct StringEndVariants {
  StringEndVariant list[3];
  unsigned count;
};
StringEndVariants string_end_variants() noexcept;

// Length of the well-formed UTF-8 sequence at p (1 to 4), 0 if there is none (RFC 3629).
unsigned utf8_length(const char *p, const char *end) noexcept;

// How many bytes from p on can stand in a JSON string as they are: printable ASCII but `"` and `\`.
std::size_t plain_prefix(const char *p, const char *end) noexcept;

}  // namespace bulkhead::mcp::json
