#include "record-store/sha256.hpp"

#include <sodium.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace record_store {
namespace {

[[maybe_unused]] constexpr std::size_t block_bytes = 64;

Hash by_libsodium(std::string_view bytes) {
  Hash out;
  crypto_hash_sha256(out.data(), reinterpret_cast<const unsigned char *>(bytes.data()),
                     bytes.size());
  return out;
}

#if defined(__x86_64__)

alignas(16) constexpr std::uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

bool has_instructions() {
  constexpr unsigned sha = 1u << 29;  // bit of EBX, CPUID leaf 7
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0 &&
         __builtin_cpu_supports("sse4.1");
}

// The hash state in the layout that the SHA instructions require.
struct State {
  __m128i abef, cdgh;
};

// Hashes whole blocks. Each step of the inner loop performs four rounds; `m` has the last 64 bytes
// of the message schedule.
__attribute__((target("sha,sse4.1"))) void hash_blocks(State *state, const char *p,
                                                       std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef = state->abef, cdgh = state->cdgh;
  for (; blocks > 0; --blocks, p += block_bytes) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i m[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i &now = m[i % 4];
      if (i < 4) {
        now =
            _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p) + i), big_endian);
      } else {
        const __m128i one_ago = m[(i + 3) % 4];
        now = _mm_sha256msg1_epu32(now, m[(i + 1) % 4]);
        now = _mm_add_epi32(now, _mm_alignr_epi8(one_ago, m[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(now, one_ago);
      }
      __m128i k = _mm_add_epi32(
          now, _mm_load_si128(reinterpret_cast<const __m128i *>(round_constants) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
      k = _mm_shuffle_epi32(k, 0x0e);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, k);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  *state = {abef, cdgh};
}

Hash by_instructions(std::string_view bytes) {
  State state{_mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f,
                            static_cast<int>(0x9b05688c)),
              _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
  const std::size_t whole = bytes.size() / block_bytes;
  hash_blocks(&state, bytes.data(), whole);
  // Builds the padded end of the input. It consists of the remaining bytes, a 1 bit, zeros and, at
  // the end of the last block, the length in bits.
  char last[2 * block_bytes] = {};
  const std::string_view rest = bytes.substr(whole * block_bytes);
  rest.copy(last, rest.size());
  last[rest.size()] = static_cast<char>(0x80);
  const std::size_t blocks = rest.size() + 9 <= block_bytes ? 1 : 2;
  const std::uint64_t bits = __builtin_bswap64(std::uint64_t{bytes.size()} * 8);
  std::memcpy(last + blocks * block_bytes - sizeof bits, &bits, sizeof bits);
  hash_blocks(&state, last, blocks);
  std::uint32_t abef[4], cdgh[4];  // lowest element first: f, e, b, a and h, g, d, c
  std::memcpy(abef, &state.abef, sizeof abef);
  std::memcpy(cdgh, &state.cdgh, sizeof cdgh);
  const std::uint32_t words[8] = {abef[3], abef[2], cdgh[3], cdgh[2],
                                  abef[1], abef[0], cdgh[1], cdgh[0]};
  Hash out;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t word = __builtin_bswap32(words[i]);
    std::memcpy(out.data() + 4 * i, &word, sizeof word);
  }
  return out;
}

#endif

}  // namespace

Hash sha256(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool instructions = has_instructions();
  if (instructions) return by_instructions(bytes);
#endif
  return by_libsodium(bytes);
}

}  // namespace record_store
