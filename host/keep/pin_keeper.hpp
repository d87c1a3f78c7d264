// Writes what a gateway learns of its servers' tools into the pin store, one write at a time and
// never on the loop. Thread: the reactor's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "keep/pin_store.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

class PinKeeper {
 public:
  // News that wait for the write before; what is beyond is dropped, logged, and learned again the
  // next time.
  static constexpr std::size_t most_waiting = most_pins;

  struct Hooks {
    std::function<void(std::string_view text)> warn;
    // What is known of the profile's servers now.
    std::function<void(std::vector<ToolPin>)> kept;
  };

  // The reactor is borrowed. It must end before this does: its threads may still write.
  PinKeeper(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~PinKeeper();  // writes what waits
  PinKeeper(const PinKeeper &) = delete;
  PinKeeper &operator=(const PinKeeper &) = delete;

  // Which servers there are, and what is known of them; at first, and after a reload.
  void use(const Profile &profile) { terms_ = pin_terms(profile); }
  void take(std::vector<PinNews> news);
  // Calls done once all that take() has got so far is in the store, or could not be written: now or
  // later, from the loop. Not at all when this ends before.
  void when_written(std::function<void()> done);

 private:
  struct Job {
    PinKeeper *keeper = nullptr;
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
