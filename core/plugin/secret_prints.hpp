// Finds and masks the gateway's credentials in text. Only keyed hashes of the credentials are
// stored, so that a process can mask credentials in records without knowing them.
//
// mask() is thread-safe after the last call of add().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/cpp/decoded.hpp"

namespace bulkhead {

class SecretPrints {
 public:
  // Values outside these bounds are ignored. Shorter ones would also match unrelated text.
  static constexpr std::size_t least_bytes = 8, most_bytes = 4096;
  // each value has up to three prints; prints beyond this limit are not added
  static constexpr std::size_t max_prints = 2'048;
  // For a text of n bytes, at most hashed_at_least + hashed_per_byte * n bytes are hashed. If that
  // is not enough, the whole text is masked.
  static constexpr std::uint64_t hashed_per_byte = 32, hashed_at_least = 64 << 10;

  SecretPrints() = default;
  explicit SecretPrints(std::string key) : key_(std::move(key)) {}  // 32 bytes

  // Maximum number of nested escape layers that are removed. For example, a URL inside JSON inside
  // a JSON string has several layers. Text that is nested more deeply is not searched.
  static constexpr unsigned max_layers = 8;

  void add(std::string_view value);
  bool empty() const noexcept { return prints_.empty(); }
  // Replaces each value in the text with "***", and adds the number of replacements to *count.
  // Values are found even if they contain JSON escapes (\u003d, \/) or URL escapes (%3D, in either
  // case). The cost is one pass per escape layer in the text, independent of the number of values,
  // plus a limited number of hashed bytes.
  std::string mask(std::string_view text, std::uint64_t *count) const;

  bool operator==(const SecretPrints &) const = default;

 private:
  static constexpr std::size_t begin_bytes = least_bytes, end_bytes = least_bytes;

  struct Print {
    std::uint32_t bytes = 0;
    // Hashes of the first and last 8 bytes. The whole value is hashed only if both match.
    std::uint16_t begin = 0, end = 0;
    std::string hash;
    bool operator==(const Print &) const = default;
  };
  template <class Ar>
  friend void archive(Ar &ar, Print &v) {
    auto &[bytes, begin, end, hash] = v;
    ar(bytes, begin, end, hash);
  }
  template <class Ar>
  friend void archive(Ar &ar, SecretPrints &v) {
    ar(v.key_, v.prints_);
    if constexpr (Ar::reading) v.note_begins();
  }

  void add_text(std::string_view value);
  void note_begins();
  bool find(std::string_view text, std::uint64_t *budget,
            std::vector<bh::Decoded::Range> *found) const;
  std::optional<std::size_t> length_at(std::string_view text, std::uint16_t begin,
                                       std::uint64_t *budget) const;
  std::uint64_t factor() const noexcept;

  std::string key_;
  std::vector<Print> prints_;  // sorted by `begin`, then by decreasing length
  // A bit set of all `begin` values. It is tested once per position in the text.
  std::array<std::uint64_t, 1'024> begins_{};
};

}  // namespace bulkhead
