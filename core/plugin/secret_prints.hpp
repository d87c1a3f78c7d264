// Finds the gateway's own credentials in texts without having them: by keyed hashes of their
// values.
//
// For the process that keeps records: it must not hold what it is to mask. Immutable once it is
// made; mask() from any thread.
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
  // Shorter ones would be found in texts that have nothing to do with them.
  static constexpr std::size_t least_bytes = 8, most_bytes = 4096;
  static constexpr std::size_t max_prints = 2'048;  // one to three a value; further ones are not
                                                    // looked for
  // A text for which more bytes would have to be hashed, since it was made to look like credentials
  // nearly everywhere, is masked as a whole.
  static constexpr std::uint64_t hashed_per_byte = 32, hashed_at_least = 64 << 10;

  SecretPrints() = default;
  explicit SecretPrints(std::string key) : key_(std::move(key)) {}  // 32 bytes

  // How deep escapes may lie in one another: JSON in a string of JSON, a URL in it. What lies
  // deeper is not looked at.
  static constexpr unsigned max_layers = 8;

  void add(std::string_view value);
  bool empty() const noexcept { return prints_.empty(); }
  // The text with "***" in place of each of them; *count grows by how many there were. Found as it
  // is and behind escapes of JSON (\u003d, \/) and of URLs (%3D), whoever has written them and in
  // which case of letters. A pass over the text for each layer of escapes in it, however many
  // values there are, and a bounded number of bytes hashed.
  std::string mask(std::string_view text, std::uint64_t *count) const;

  bool operator==(const SecretPrints &) const = default;

 private:
  static constexpr std::size_t begin_bytes = least_bytes, end_bytes = least_bytes;

  struct Print {
    std::uint32_t bytes = 0;
    std::uint16_t begin = 0, end = 0;  // of its first and last 8 bytes; what fits is hashed
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
  std::array<std::uint64_t, 1'024> begins_{};  // which there are: one look for each place of a text
};

}  // namespace bulkhead
