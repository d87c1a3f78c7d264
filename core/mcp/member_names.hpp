// Detects members of the same object whose names some decoders could confuse.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "mcp/json_names.hpp"

namespace bulkhead::mcp::json {

struct KnownName {
  std::string_view text;
  std::uint64_t hash;
  bool alone;  // whether names that differ from this one only in case are rejected
  constexpr KnownName(const char *name, bool alone_ = true)
      : text(name), hash(folded_hash_of(name)), alone(alone_) {}
};

// Checks the member names of one object.
//
// Each known name may occur once. If its `alone` is true, names that differ from it only in case
// are rejected. If max_members is 0, nothing else is checked; only in this mode can `alone` be
// false. If max_members is not 0, it limits the number of members, and no two members may have
// names that fold to the same text.
//
// Names are compared by a 64-bit hash of their folded text. Different names with equal hashes are
// rejected too, but such names occur only if a sender constructs them deliberately.
class MemberNames {
 public:
  static constexpr std::uint32_t capacity = 256;

  struct Found {
    int known = -1;                 // index of the known name; -1 if unknown
    const char *problem = nullptr;  // null, or the problem as a static string
  };

  MemberNames(const KnownName *known, unsigned known_count, std::uint32_t max_members) noexcept
      : known_(known), known_count_(known_count), max_(std::min(max_members, capacity)) {}

  // `readable` is the end of the readable memory after the name.
  Found add(std::string_view inside, const char *readable) noexcept {
    // Most names are known names in their exact form, for which no hash is needed.
    for (unsigned i = 0; i < known_count_; ++i) {
      if (is_exact(known_[i].text, inside)) return count_known(i);
    }
    return add_by_hash(inside, readable);
  }

  // The number of unknown names, and the known names that have occurred (one bit per index).
  std::uint32_t unknown() const noexcept { return unknown_; }
  std::uint32_t seen() const noexcept { return seen_; }

 private:
  static constexpr const char *too_many = "too many members";

  // Adds a name that is not a known name in its exact form. Not inlined, so that add() has to save
  // fewer registers.
  [[gnu::noinline]] Found add_by_hash(std::string_view inside, const char *readable) noexcept {
    bool plain = false;
    const std::uint64_t hash = folded_hash(inside, readable, &plain);
    for (unsigned i = 0; i < known_count_; ++i) {
      if (known_[i].hash == hash) return add_known(i, inside, plain);
    }
    ++unknown_;
    if (max_ == 0) return {};
    for (std::uint32_t i = 0; i < others_; ++i) {
      if (hashes_[i] == hash) return {-1, "two member names differ only in letter case"};
    }
    if (!count()) return {-1, too_many};
    hashes_[others_++] = hash;
    return {};
  }

  // Compares the first bytes separately, because few names of the same length have the same first
  // byte.
  static bool is_exact(std::string_view known, std::string_view inside) noexcept {
    return known.size() == inside.size() && known.front() == inside.front() && known == inside;
  }

  // Adds a name that folds to the text of a known name but is not written like it: it contains
  // escape sequences, or differs in letter case.
  Found add_known(unsigned i, std::string_view inside, bool plain) noexcept {
    if (!plain && same_text(inside, known_[i].text)) return count_known(i);
    if (!known_[i].alone) return ++unknown_, Found{};
    return {-1, "a member name differs from a known name only in letter case"};
  }
  Found count_known(unsigned i) noexcept {
    const int known = static_cast<int>(i);
    if ((seen_ >> i & 1) != 0) return {known, "duplicate member"};
    seen_ |= 1u << i;
    if (max_ != 0 && !count()) return {known, too_many};
    return {known, nullptr};
  }
  bool count() noexcept { return members_ < max_ && ++members_ > 0; }

  const KnownName *known_;
  unsigned known_count_;
  std::uint32_t max_;
  std::uint32_t members_ = 0;
  std::uint32_t others_ = 0;
  std::uint32_t seen_ = 0;
  std::uint32_t unknown_ = 0;
  std::uint64_t hashes_[capacity];  // hashes of unknown names; the first others_ entries are valid
};

}  // namespace bulkhead::mcp::json
