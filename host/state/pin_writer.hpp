// Stores the tool definitions that a gateway observes in the pin store, one write at a time and
// never on the loop. Runs on the reactor thread.
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
  // Maximum number of observations that wait for the previous write. Additional observations are
  // dropped and logged; the gateway reports them again later.
  static constexpr std::size_t most_waiting = most_pins;

  // Maximum size of the definitions in these observations. Beyond it, definitions are dropped and
  // only their hashes are stored.
  static constexpr std::size_t most_waiting_bytes = PinStore::max_definition_bytes;

  struct Hooks {
    std::function<void(std::string_view text)> warn;
    // Called after a write with the pins of the profile's servers.
    std::function<void(std::vector<ToolPin>)> on_stored;
  };

  // The reactor is borrowed. It must be destroyed before this object, because its threads may still
  // write.
  PinWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~PinWriter();  // writes pending news
  PinWriter(const PinWriter &) = delete;
  PinWriter &operator=(const PinWriter &) = delete;

  // Sets the profile's servers and their pins. Called at start and after a reload.
  void set_profile(const Profile &profile) { terms_ = pin_terms(profile); }
  void add(std::vector<PinNews> news);
  // Calls `done` when all news passed to add() has been stored or has failed: immediately, or later
  // from the loop. `done` is not called if this object is destroyed first.
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
