// The log of changes to the installed plugins: who replaced which version, and when.
//
// The log is the file plugins.log in the state folder, which servers cannot access. It has one JSON
// object per line and is only appended to. When it exceeds max_bytes, it is renamed to
// plugins.log.1, which replaces the previous plugins.log.1. Thread-safe. Every function accesses
// the disk.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

struct PluginEvent {
  std::uint64_t at = 0;  // milliseconds since 1970
  // "add", "remove", "failed" (an add or remove that was logged but did not happen), "swap",
  // "rollback", "quarantine" or "clear".
  std::string event;
  std::string id, version;
  std::string sha256;  // of the library, in lowercase hexadecimal; may be empty
  std::string signer;  // the ID of the key; empty: not signed
  std::string note;    // details, such as the replaced version; may be empty
};

class PluginLog {
 public:
  static constexpr std::size_t max_bytes = 1u << 20;
  static constexpr std::size_t max_note_bytes = 1024;

  static constexpr std::uint64_t lock_wait_ms = 2'000;

  explicit PluginLog(std::string state_dir)
      : folder_(std::move(state_dir)), path_(folder_ + "/plugins.log") {}

  // Appends a line and waits until it is on the disk. Creates the folder if it is missing.
  Result<void> append(const PluginEvent &event);
  // Returns the events of both files, oldest first. Damaged lines are skipped.
  Result<std::vector<PluginEvent>> read() const;

 private:
  const std::string folder_, path_;
};

}  // namespace bulkhead::program
