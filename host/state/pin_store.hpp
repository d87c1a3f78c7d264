// The pin store: the approved definitions of servers' tools and later changes, on disk.
//
// One private file, pins/pins.json in the state folder, replaced atomically. Two processes may
// change it concurrently: each change holds the lock file beside it. Descriptions are untrusted;
// use verbatim() to show them.
//
// Thread: any; every function accesses the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

struct StoredPin {
  std::string file;  // absolute path of the file that defines the server; empty: none
  ToolPin pin;
  std::string text, seen_text;  // the beginnings of the descriptions of pin.hash and pin.seen
  // Seconds since 1970; 0: never.
  std::uint64_t first_seen = 0, seen_at = 0, approved_at = 0;
};

// The pins that a gateway may add without the user.
struct PinTerms {
  std::map<std::string, std::string> files;  // the defining files, by server
  std::set<std::string> first_use;           // servers without any approved definition
  bool accept_new = false;
};
// Derived from the profile and the known pins in `profile.pinned`.
PinTerms pin_terms(const Profile &profile);

class PinStore {
 public:
  static constexpr std::size_t max_bytes = 32u << 20;  // size limit of pins.json
  static constexpr std::uint64_t lock_wait_ms = 5'000;

  explicit PinStore(const std::string &state_dir) : folder_(state_dir + "/pins") {}

  // Creates nothing. Without a file: no pins. An error if the file is damaged, belongs to another
  // user or is open to others.
  Result<std::vector<StoredPin>> read() const;
  // The pins of the servers in `terms`.
  static std::vector<ToolPin> known(const std::vector<StoredPin> &all, const PinTerms &terms);

  // Reads, changes and writes the pins; returns the result. Writes nothing if `change` returns
  // false.
  Result<std::vector<StoredPin>> update(
      const std::function<bool(std::vector<StoredPin> &)> &change) const;
  // Adds what a gateway has seen. News never replace an approved definition, and approve one only
  // within the terms.
  Result<std::vector<StoredPin>> merge(const std::vector<PinNews> &news,
                                       const PinTerms &terms) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

}  // namespace bulkhead::program
