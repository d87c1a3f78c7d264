// Implements the hash function from the paper "BLAKE3: one function, fast everywhere". Chunks of
// 1024 bytes are the leaves of a binary tree in which every left subtree is full.
#include "profile/blake3.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace bulkhead {
namespace {

using Words = std::array<std::uint32_t, 8>;
using Block = std::array<std::uint32_t, 16>;

constexpr Words kInitial = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                            0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
constexpr std::size_t kBlockBytes = 64, kChunkBytes = 1024;
enum Flag : std::uint32_t { kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8 };

void mix(Block &v, std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::uint32_t x,
         std::uint32_t y) {
  v[a] = v[a] + v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] = v[c] + v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] = v[a] + v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] = v[c] + v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

Words compress(const Words &chain, Block m, std::uint64_t counter, std::uint32_t bytes,
               std::uint32_t flags) {
  static constexpr std::size_t kOrder[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
  Block v;
  std::copy(chain.begin(), chain.end(), v.begin());
  std::copy(kInitial.begin(), kInitial.begin() + 4, v.begin() + 8);
  v[12] = static_cast<std::uint32_t>(counter);
  v[13] = static_cast<std::uint32_t>(counter >> 32);
  v[14] = bytes;
  v[15] = flags;
  for (int round = 0; round < 7; ++round) {
    for (std::size_t i = 0; i < 4; ++i) mix(v, i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1]);
    for (std::size_t i = 0; i < 4; ++i)
      mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[8 + 2 * i], m[9 + 2 * i]);
    const Block old = m;
    for (std::size_t i = 0; i < 16; ++i) m[i] = old[kOrder[i]];
  }
  Words out;
  for (std::size_t i = 0; i < 8; ++i) out[i] = v[i] ^ v[i + 8];
  return out;
}

Block load(std::string_view bytes) {
  unsigned char padded[kBlockBytes] = {};
  std::memcpy(padded, bytes.data(), bytes.size());
  Block out;
  for (std::size_t i = 0; i < 16; ++i)
    out[i] = static_cast<std::uint32_t>(padded[4 * i]) | padded[4 * i + 1] << 8 |
             padded[4 * i + 2] << 16 | static_cast<std::uint32_t>(padded[4 * i + 3]) << 24;
  return out;
}

Words hash_chunk(std::string_view chunk, std::uint64_t counter, std::uint32_t root) {
  Words chain = kInitial;
  std::uint32_t flags = kChunkStart;
  for (std::size_t at = 0;; at += kBlockBytes) {
    const std::string_view block = chunk.substr(at, kBlockBytes);
    const bool last = at + kBlockBytes >= chunk.size();
    if (last) flags |= kChunkEnd | root;
    chain = compress(chain, load(block), counter, static_cast<std::uint32_t>(block.size()), flags);
    if (last) return chain;
    flags = 0;
  }
}

Words hash_parent(const Words &left, const Words &right, std::uint32_t root) {
  Block block;
  std::copy(left.begin(), left.end(), block.begin());
  std::copy(right.begin(), right.end(), block.begin() + 8);
  return compress(kInitial, block, 0, kBlockBytes, kParent | root);
}

// The recursion depth is logarithmic in the number of chunks.
Words hash_tree(std::string_view bytes, std::uint64_t first_chunk, std::uint32_t root) {
  if (bytes.size() <= kChunkBytes) return hash_chunk(bytes, first_chunk, root);
  // the number of full chunks before the last chunk
  const std::uint64_t chunks = (bytes.size() - 1) / kChunkBytes;
  const std::uint64_t left = std::bit_floor(chunks);
  return hash_parent(hash_tree(bytes.substr(0, left * kChunkBytes), first_chunk, 0),
                     hash_tree(bytes.substr(left * kChunkBytes), first_chunk + left, 0), root);
}

}  // namespace

std::string blake3_hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const std::uint32_t word : hash_tree(bytes, 0, kRoot)) {
    for (int shift = 0; shift < 32; shift += 8) {
      out += kHex[word >> (shift + 4) & 15];
      out += kHex[word >> shift & 15];
    }
  }
  return out;
}

}  // namespace bulkhead
