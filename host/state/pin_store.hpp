// The pin store: approved tool definitions of servers, and later changes, on disk.
//
// The store is one private file, pins/pins.json in the state folder, which is replaced atomically.
// Several processes may change it: each holds the lock file beside it during a change. Descriptions
// are untrusted; display them with verbatim().
//
// Thread-safe. Every function accesses the file.
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
  std::string file;  // absolute path of the file that defines the server; empty: no file
  ToolPin pin;
  std::string text, seen_text;  // the beginnings of the descriptions for pin.hash and pin.seen
  // The definitions for pin.hash and pin.seen, valid JSON. Empty if too long, if the file's limit
  // for definitions was reached, or if stored by a version that did not store definitions.
  std::string definition = {}, seen_definition = {};
  // Seconds since 1970, or 0 for never.
  std::uint64_t first_seen = 0, seen_at = 0, approved_at = 0;
};

// Determines which pins a gateway may approve without the user.
struct PinTerms {
  std::map<std::string, std::string> files;  // the defining files, by server
  std::set<std::string> first_use;           // servers without an approved definition
  bool accept_new = false;
};
// Derives the terms from the profile and the known pins in `profile.pinned`.
PinTerms pin_terms(const Profile &profile);

class PinStore {
 public:
  static constexpr std::size_t max_bytes = 32u << 20;  // size limit of pins.json
  // Limit for all definitions in the file, in bytes of JSON text. Further definitions are not
  // stored.
  static constexpr std::size_t max_definition_bytes = 16u << 20;
  static constexpr std::uint64_t lock_wait_ms = 5'000;

  explicit PinStore(const std::string &state_dir) : folder_(state_dir + "/pins") {}

  // Returns the stored pins, none if there is no file. Creates no file. Returns an error if the
  // file is damaged, belongs to another user or is accessible to others.
  Result<std::vector<StoredPin>> read() const;
  // Returns the pins of the servers in `terms`.
  static std::vector<ToolPin> known(const std::vector<StoredPin> &all, const PinTerms &terms);

  // Reads the pins, changes them, writes them and returns the result. Writes nothing if `change`
  // returns false.
  Result<std::vector<StoredPin>> update(
      const std::function<bool(std::vector<StoredPin> &)> &change) const;
  // Adds the definitions that a gateway has observed. They never replace an approved definition,
  // and new definitions are approved only as `terms` allows.
  Result<std::vector<StoredPin>> merge(const std::vector<PinNews> &news,
                                       const PinTerms &terms) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

}  // namespace bulkhead::program
