// The definitions of servers' tools that were approved, and what was seen since, on disk.
//
// One file, pins/pins.json in the state folder, ours and closed to others, replaced as a whole. Two
// processes may change it at once: each change holds the lock beside it. What descriptions say is
// untrusted; whoever shows them uses verbatim().
//
// Thread: any; every function reads or writes the file anew.
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
  std::string file;  // absolute, that defines the server; empty: no file does
  ToolPin pin;
  std::string text, seen_text;  // the beginnings of the descriptions of pin.hash and pin.seen
  // Seconds since 1970; 0: never.
  std::uint64_t first_seen = 0, seen_at = 0, approved_at = 0;
};

// What a gateway may add by itself.
struct PinTerms {
  std::map<std::string, std::string> files;  // of its servers, by name
  std::set<std::string> first_use;           // those that nothing is approved of yet
  bool accept_new = false;
};
// As the profile has it, with what is known in `profile.pinned`.
PinTerms pin_terms(const Profile &profile);

class PinStore {
 public:
  static constexpr std::size_t max_bytes = 32u << 20;  // of pins.json
  static constexpr std::uint64_t lock_wait_ms = 5'000;

  explicit PinStore(const std::string &state_dir) : folder_(state_dir + "/pins") {}

  // Nothing is made. No file: no pins. A file that is damaged, not ours or open to others is an
  // error.
  Result<std::vector<StoredPin>> read() const;
  // Those of the servers that `terms` has.
  static std::vector<ToolPin> known(const std::vector<StoredPin> &all, const PinTerms &terms);

  // Reads, changes and writes; what there is then. Nothing is written when `change` says false.
  Result<std::vector<StoredPin>> update(
      const std::function<bool(std::vector<StoredPin> &)> &change) const;
  // What a gateway has seen. An approved definition stays, whatever the news say, and one is
  // approved by them only within the terms.
  Result<std::vector<StoredPin>> merge(const std::vector<PinNews> &news,
                                       const PinTerms &terms) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

}  // namespace bulkhead::program
