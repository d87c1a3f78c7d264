#include "mcp/json_string.hpp"

#include <atomic>
#include <cstring>

#if BULKHEAD_SSE2
#include <immintrin.h>

#include "bulkhead/cpp/text.hpp"
#endif

namespace bulkhead::mcp::json {
namespace {

using u8 = unsigned char;

const char *fail(Fault *fault, const char *what, const char *at) noexcept {
  *fault = {what, at};
  return nullptr;
}

// Returns the position after the escape sequence whose backslash is at `p`.
inline const char *escape_end(const char *p, const char *end, Fault *fault) noexcept {
  if (end - p < 2) return fail(fault, "unterminated string", end);
  switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      return p + 2;
    case 'u':
      break;
    default:
      return fail(fault, "unknown escape in a string", p);
  }
  if (end - p < 6 || bh::hex_value(p[2]) < 0 || bh::hex_value(p[3]) < 0 ||
      bh::hex_value(p[4]) < 0 || bh::hex_value(p[5]) < 0) {
    return fail(fault, "\\u requires four hexadecimal digits", p);
  }
  return p + 6;
}

// Consumes one escape sequence or non-ASCII character. Fails for invalid characters. The caller has
// checked that the byte is not a closing quote.
inline const char *step_special(const char *p, const char *end, Fault *fault) noexcept {
  if (*p == '\\') return escape_end(p, end, fault);
  if (static_cast<u8>(*p) < 0x20) return fail(fault, "control character in a string", p);
  const std::size_t n = bh::utf8_length({p, static_cast<std::size_t>(end - p)});
  if (n == 0) return fail(fault, "not valid UTF-8", p);
  return p + n;
}

inline bool is_plain(char c) noexcept {
  return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\';
}

const char *string_end_scalar(const char *p, const char *end, Fault *fault) noexcept {
  while (p < end) {
    if (is_plain(*p)) {
      ++p;
    } else if (*p == '"') {
      return p + 1;
    } else {
      p = step_special(p, end, fault);
      if (p == nullptr) return nullptr;
    }
  }
  return fail(fault, "unterminated string", end);
}

#if BULKHEAD_SSE2
const char *string_end_sse2(const char *p, const char *end, Fault *fault) noexcept {
  while (end - p >= 16) {
    const unsigned bits = special_bits(p);
    if (bits == 0) {
      p += 16;
      continue;
    }
    p += __builtin_ctz(bits);
    if (*p == '"') return p + 1;
    // Non-ASCII characters usually occur in runs, so consume the whole run.
    do {
      p = step_special(p, end, fault);
      if (p == nullptr) return nullptr;
    } while (p < end && static_cast<signed char>(*p) < 0);
  }
  return string_end_scalar(p, end, fault);
}

// Validates UTF-8 as described by Keiser and Lemire in "Validating UTF-8 In Less Than One
// Instruction Per Byte" (2021). Three tables are indexed by adjacent nibbles, and each returns the
// errors that are possible for its nibble. An error has occurred if all three tables return it. In
// addition, the positions that must hold a second or third continuation byte are compared with the
// positions that actually do.
namespace utf8_table {
constexpr char too_short = 1;        // a lead byte without a continuation
constexpr char too_long = 2;         // a continuation after ASCII
constexpr char overlong_3 = 4;       // E0 80..9F
constexpr char too_large = 8;        // F4 90 and above
constexpr char surrogate = 16;       // ED A0..BF
constexpr char overlong_2 = 32;      // C0, C1
constexpr char too_large_1000 = 64;  // F5 and above with 80..8F
constexpr char overlong_4 = 64;      // F0 80..8F
constexpr char two_conts = static_cast<char>(128);
constexpr char carry = static_cast<char>(too_short | too_long | two_conts);

constexpr char set(int a, int b = 0, int c = 0, int d = 0, int e = 0) {
  return static_cast<char>(a | b | c | d | e);
}

alignas(16) constexpr char first_high[16] = {too_long,
                                             too_long,
                                             too_long,
                                             too_long,
                                             too_long,
                                             too_long,
                                             too_long,
                                             too_long,
                                             two_conts,
                                             two_conts,
                                             two_conts,
                                             two_conts,
                                             set(too_short, overlong_2),
                                             too_short,
                                             set(too_short, overlong_3, surrogate),
                                             set(too_short, too_large, too_large_1000, overlong_4)};
alignas(16) constexpr char first_low[16] = {set(carry, overlong_3, overlong_2, overlong_4),
                                            set(carry, overlong_2),
                                            carry,
                                            carry,
                                            set(carry, too_large),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000, surrogate),
                                            set(carry, too_large, too_large_1000),
                                            set(carry, too_large, too_large_1000)};
alignas(16) constexpr char second_high[16] = {
    too_short,
    too_short,
    too_short,
    too_short,
    too_short,
    too_short,
    too_short,
    too_short,
    set(too_long, overlong_2, two_conts, overlong_3, too_large_1000 | overlong_4),
    set(too_long, overlong_2, two_conts, overlong_3, too_large),
    set(too_long, overlong_2, two_conts, surrogate, too_large),
    set(too_long, overlong_2, two_conts, surrogate, too_large),
    too_short,
    too_short,
    too_short,
    too_short};
// The largest value that each byte of a block can have if no character is incomplete at the end of
// the block. Only the last three bytes are restricted.
alignas(32) constexpr u8 complete_limit[32] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,      255,      255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0xF0 - 1, 0xE0 - 1, 0xC0 - 1};
}  // namespace utf8_table

// 32 bytes of FF, followed by 32 zero bytes. The 32 bytes at offset 32 - k form a mask for the
// first k bytes of a block.
struct KeepTable {
  u8 bytes[64];
  constexpr KeepTable() : bytes() {
    for (int i = 0; i < 32; ++i) bytes[i] = 0xFF;
  }
};
alignas(64) constexpr KeepTable keep_table;

#define BULKHEAD_AVX2 __attribute__((target("avx2")))

BULKHEAD_AVX2 inline __m256i load32(const void *p) noexcept {
  return _mm256_loadu_si256(static_cast<const __m256i *>(p));
}

BULKHEAD_AVX2 inline __m256i table32(const char *t) noexcept {
  return _mm256_broadcastsi128_si256(*reinterpret_cast<const __m128i *>(t));
}

// Returns, for each byte of v, the byte that is N positions before it. The first N bytes are taken
// from the previous block.
template <int N>
BULKHEAD_AVX2 inline __m256i before(__m256i previous, __m256i v) noexcept {
  return _mm256_alignr_epi8(v, _mm256_permute2x128_si256(previous, v, 0x21), 16 - N);
}

// Returns a vector with non-zero bytes where v, which follows `previous`, is not valid UTF-8.
BULKHEAD_AVX2 inline __m256i utf8_faults(__m256i previous, __m256i v) noexcept {
  const __m256i nibble = _mm256_set1_epi8(0x0F);
  const __m256i one = before<1>(previous, v);
  const __m256i a = _mm256_shuffle_epi8(table32(utf8_table::first_high),
                                        _mm256_and_si256(_mm256_srli_epi16(one, 4), nibble));
  const __m256i b =
      _mm256_shuffle_epi8(table32(utf8_table::first_low), _mm256_and_si256(one, nibble));
  const __m256i c = _mm256_shuffle_epi8(table32(utf8_table::second_high),
                                        _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
  const __m256i special = _mm256_and_si256(_mm256_and_si256(a, b), c);
  const __m256i third = _mm256_subs_epu8(before<2>(previous, v), _mm256_set1_epi8(0xE0 - 0x80));
  const __m256i fourth = _mm256_subs_epu8(before<3>(previous, v), _mm256_set1_epi8(0xF0 - 0x80));
  const __m256i must_continue =
      _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(static_cast<char>(0x80)));
  return _mm256_xor_si256(must_continue, special);
}

// The state of UTF-8 validation between two blocks.
struct Utf8State {
  __m256i previous;
  __m256i unfinished;
  __m256i faults;
};

BULKHEAD_AVX2 inline void add_block(Utf8State *state, __m256i v) noexcept {
  if (_mm256_movemask_epi8(v) == 0) {
    state->faults = _mm256_or_si256(state->faults, state->unfinished);
    state->unfinished = _mm256_setzero_si256();
  } else {
    state->faults = _mm256_or_si256(state->faults, utf8_faults(state->previous, v));
    state->unfinished = _mm256_subs_epu8(v, load32(utf8_table::complete_limit));
  }
  state->previous = v;
}

// Returns a bit mask of the special bytes: quotes, backslashes and control characters.
BULKHEAD_AVX2 inline std::uint32_t stop_bits(__m256i v) noexcept {
  const __m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
  const __m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));
  const __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(v, _mm256_set1_epi8(0x1F)), v);
  return static_cast<std::uint32_t>(
      _mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), control)));
}

// Loads the block at p. At the end of the text, pads the block with zeros, which count as special
// bytes.
BULKHEAD_AVX2 inline __m256i block_at(const char *p, const char *end) noexcept {
  if (end - p >= 32) return load32(p);
  alignas(32) char block[32] = {};
  if (p != end) std::memcpy(block, p, static_cast<std::size_t>(end - p));
  return load32(block);
}

// Skips the escape sequences in the block at p. On entry, *stops is the bit mask of special bytes.
// On return, only its bits from the closing quote or the first error onward are still set. Returns
// true if the first byte of the next block belongs to an escape sequence that starts in this block.
inline bool skip_escapes(const char *p, const char *end, std::uint32_t *stops) noexcept {
  Fault ignored;
  while (*stops != 0) {
    const int k = __builtin_ctz(*stops);
    if (end - p <= k || p[k] != '\\' || escape_end(p + k, end, &ignored) == nullptr) return false;
    // Within an escape sequence, only the byte after the backslash can be special.
    if (k == 31) {
      *stops = 0;
      return true;
    }
    *stops &= ~(std::uint32_t{3} << k);
  }
  return false;
}

BULKHEAD_AVX2 const char *string_end_avx2(const char *p, const char *end, Fault *fault) noexcept {
  const char *const start = p;
  const __m256i zero = _mm256_setzero_si256();
  Utf8State state{zero, zero, zero};
  bool first_escaped = false;
  for (;;) {
    const __m256i v = block_at(p, end);
    std::uint32_t stops = stop_bits(v);
    if (first_escaped) stops &= ~std::uint32_t{1};
    first_escaped = skip_escapes(p, end, &stops);
    if (stops == 0) {
      add_block(&state, v);
      p += 32;
      continue;
    }
    const int k = __builtin_ctz(stops);
    add_block(&state, _mm256_and_si256(v, load32(keep_table.bytes + 32 - k)));
    const bool closed = end - p > k && p[k] == '"';
    if (closed && _mm256_testz_si256(state.faults, state.faults) != 0) return p + k + 1;
    return string_end_scalar(start, end, fault);  // reports the error and its position
  }
}
#endif

const char *choose_and_run(const char *p, const char *end, Fault *fault) noexcept;

// Initially points to a function that selects the variant for this processor, so that strings can
// be parsed even during static initialization.
std::atomic<StringEnd> chosen{&choose_and_run};

const char *choose_and_run(const char *p, const char *end, Fault *fault) noexcept {
  const StringEnd best = string_end_variants().list[0].function;
  chosen.store(best, std::memory_order_relaxed);
  return best(p, end, fault);
}

}  // namespace

const char *string_end_long(const char *p, const char *end, Fault *fault) noexcept {
  if (end - p < 16) return string_end_scalar(p, end, fault);
  return chosen.load(std::memory_order_relaxed)(p, end, fault);
}

StringEndVariants string_end_variants() noexcept {
  StringEndVariants variants{};
#if BULKHEAD_SSE2
  if (__builtin_cpu_supports("avx2")) {
    variants.list[variants.count++] = {"avx2", string_end_avx2};
  }
  variants.list[variants.count++] = {"sse2", string_end_sse2};
#endif
  variants.list[variants.count++] = {"scalar", string_end_scalar};
  return variants;
}

}  // namespace bulkhead::mcp::json
