// Finds the gateway's own credentials in texts without storing them, by keyed hashes of their
// values. The process that keeps records uses it, since it must not hold the credentials that it
// masks.
//
// Immutable after construction; mask() may be called on any thread.
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
  // Shorter values would also match unrelated text.
  static constexpr std::size_t least_bytes = 8, most_bytes = 4096;
  static constexpr std::size_t max_prints = 2'048;  // one to three per value; further values are
                                                    // ignored
  // A text that matches nearly everywhere, so that more bytes would have to be hashed, is masked as
  // a whole.
  static constexpr std::uint64_t hashed_per_byte = 32, hashed_at_least = 64 << 10;

  SecretPrints() = default;
  explicit SecretPrints(std::string key) : key_(std::move(key)) {}  // 32 bytes

  // How many layers of escapes are removed, such as JSON in a JSON string, with a URL in it. Deeper
  // layers are not searched.
  static constexpr unsigned max_layers = 8;

  void add(std::string_view value);
  bool empty() const noexcept { return prints_.empty(); }
  // Returns the text with "***" in place of each value; adds their number to *count. Values are
  // found unescaped and behind escapes of JSON (\u003d, \/) and URLs (%3D), in any form and letter
  // case. The cost is one pass for each layer of escapes in the text, regardless of the number of
  // values, and a limited number of bytes hashed.
  std::string mask(std::string_view text, std::uint64_t *count) const;

  bool operator==(const SecretPrints &) const = default;

 private:
  static constexpr std::size_t begin_bytes = least_bytes, end_bytes = least_bytes;

  struct Print {
    std::uint32_t bytes = 0;
    std::uint16_t begin = 0, end = 0;  // its first and last 8 bytes; only candidates that match are
                                       // hashed
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
  std::vector<Print> prints_;                  // by begin, then length, the longest first
  std::array<std::uint64_t, 1'024> begins_{};  // a set of all `begin`s: one test for each position
                                               // of a text
};

}  // namespace bulkhead
