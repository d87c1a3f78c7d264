// Writes the tool definitions that a gateway receives to the pin store. Writes are made one at a
// time on a pool thread, so the event loop never blocks. Used on the reactor thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reactor/reactor.hpp"
#include "state/pin_store.hpp"

namespace bulkhead::program {

class PinWriter {
 public:
  // Maximum number of definitions that may wait for the current write to finish. A batch that would
  // exceed it is dropped with a warning; the gateway reports its definitions again after a reload
  // or restart.
  static constexpr std::size_t most_waiting = most_pins;

  // Limit on the total size of the waiting definitions, in bytes of JSON. If a definition would
  // exceed it, only the definition's hash is stored.
  static constexpr std::size_t most_waiting_bytes = PinStore::max_definition_bytes;

  struct Hooks {
    std::function<void(std::string_view text)> warn;
    // Called after each write with all stored pins.
    std::function<void(const std::vector<StoredPin> &)> on_stored;
  };

  // The reactor is borrowed. It must be destroyed before this object, because its pool threads may
  // still be writing.
  PinWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~PinWriter();  // writes the pending definitions
  PinWriter(const PinWriter &) = delete;
  PinWriter &operator=(const PinWriter &) = delete;

  // Sets the profile's servers and their pins. Called at startup and after each reload.
  void set_profile(const Profile &profile) { terms_ = pin_terms(profile); }
  void add(std::vector<PinNews> news);
  // Calls `done` when everything passed to add() has been written or could not be written. The call
  // is made immediately or later from the loop, and never after this object is destroyed.
  void when_written(std::function<void()> done);

 private:
  struct Job {
    PinWriter *writer = nullptr;
    std::vector<PinNews> news;
    PinTerms terms;
    Result<std::vector<StoredPin>> outcome;
    bool worked = false;
  };

  void write();
  void written();

  Reactor &reactor_;
  const PinStore store_;
  const Hooks hooks_;
  PinTerms terms_;
  std::vector<PinNews> waiting_;
  std::vector<std::function<void()>> awaited_;
  std::unique_ptr<Job> job_;
};

}  // namespace bulkhead::program
