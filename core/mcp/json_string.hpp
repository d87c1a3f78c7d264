// Finds the end of a JSON string, and validates escape sequences, control characters and UTF-8.
//
// There is one variant per instruction set; all return the same results. string_end() uses the
// fastest one that the processor supports. Without AVX2, non-ASCII text is validated one character
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#define BULKHEAD_SSE2 1
#endif

namespace bulkhead::mcp::json {

// An error and its position. `what` is a static string.
struct Fault {
  const char *what = "";
  const char *at = nullptr;
};

// `p` is the position after the opening quote. Returns the position after the closing quote. For an
// invalid string, returns nullptr and sets *fault. Reads only [p, end). Thread-safe.
using StringEnd = const char *(*)(const char *p, const char *end, Fault *fault) noexcept;

// Runs the fastest variant that the processor supports. If fewer than 16 bytes are left, runs the
// scalar variant.
const char *string_end_long(const char *p, const char *end, Fault *fault) noexcept;

#if BULKHEAD_SSE2
// Returns a bit mask that marks each of the 16 bytes at p that is a quote, a backslash, a control
// character or not ASCII. One signed comparison detects both bytes below 0x20 and bytes 0x80 and
// above.
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
  // Most strings in a message are short, so they are handled inline.
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

// The variants that the processor supports, for tests and measurements. The fastest is first; the
// last is plain C++. Each has the name of its instruction set.
struct StringEndVariant {
  const char *name;
  StringEnd function;
};
struct StringEndVariants {
  StringEndVariant list[3];
  unsigned count;
};
StringEndVariants string_end_variants() noexcept;

}  // namespace bulkhead::mcp::json
