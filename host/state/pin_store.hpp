// Stores the approved tool definitions of servers, and definitions that changed after their
// approval.
//
// The store is a private file, pins/pins.json in the state directory. The file is replaced
// atomically. A process that changes it locks a lock file in the same directory. The stored
// descriptions are untrusted: display them with verbatim().
//
// Thread-safe. Every function accesses the disk.
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
  std::string file;  // absolute path of the file that defines the server, or empty
  ToolPin pin;
  std::string text, seen_text;  // the beginnings of the descriptions in the two definitions below
  // The definitions for pin.hash and pin.seen, as JSON. A definition is empty if it is not valid
  // JSON, if it would exceed a size limit (such as max_definition_bytes), or if an earlier version
  // stored the pin.
  std::string definition = {}, seen_definition = {};
  // Seconds since 1970; 0 for never.
  std::uint64_t first_seen = 0, seen_at = 0, approved_at = 0;
};

// Determines which definitions are approved without asking the user.
struct PinTerms {
  std::map<std::string, std::string> files;  // server -> file that defines it
  std::set<std::string> first_use;           // servers without an approved definition
  bool accept_new = false;
};
// Derives the terms from the profile and its known pins (`profile.pinned`).
PinTerms pin_terms(const Profile &profile);

class PinStore {
 public:
  static constexpr std::size_t max_bytes = 32u << 20;  // size limit of pins.json
  // Limit on the total size of the definitions in pins.json, in bytes of JSON. Definitions that
  // exceed it are not stored.
  static constexpr std::size_t max_definition_bytes = 16u << 20;
  static constexpr std::uint64_t lock_wait_ms = 5'000;

  explicit PinStore(const std::string &state_dir) : folder_(state_dir + "/pins") {}

  // Returns the stored pins, or none if the file does not exist. Does not create the file. Returns
  // an error if the file is damaged, belongs to another user or is accessible to others.
  Result<std::vector<StoredPin>> read() const;
  // Returns the pins of the servers in `terms`.
  static std::vector<ToolPin> known(const std::vector<StoredPin> &all, const PinTerms &terms);

  // Reads the pins, calls `change`, and writes the pins if `change` returns true. Returns the pins.
  Result<std::vector<StoredPin>> update(
      const std::function<bool(std::vector<StoredPin> &)> &change) const;
  // Adds the definitions that a gateway has received from servers. A new definition never replaces
  // an approved one, and is approved only if `terms` allows it.
  Result<std::vector<StoredPin>> merge(const std::vector<PinNews> &news,
                                       const PinTerms &terms) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

}  // namespace bulkhead::program
