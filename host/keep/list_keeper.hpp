// Writes what a gateway learns of its servers' lists into their store, one write at a time and
// never on the loop. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "keep/list_store.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

class ListKeeper {
 public:
  struct Hooks {
    std::function<void(std::string_view text)> warn;
    // What is known of this server now.
    std::function<void(const std::string &server, const KeptLists &lists)> kept;
  };

  // The reactor is borrowed. It must end before this does: its threads may still write.
  ListKeeper(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~ListKeeper();  // writes what waits
  ListKeeper(const ListKeeper &) = delete;
  ListKeeper &operator=(const ListKeeper &) = delete;

  // Which servers there are, and what is known of them; at first, and after a reload.
  void use(const Profile &profile);
  // Of a server that is not there, or has another definition by now: dropped.
  void take(ListNews news);

 private:
  struct Job {
    ListKeeper *keeper = nullptr;
    std::string server;
    KeptLists lists;
    Result<void> outcome;
    bool worked = false;
  };

  void write();
  void written();

  Reactor &reactor_;
  const ListStore store_;
  const Hooks hooks_;
  std::map<std::string, KeptLists> known_;  // of the profile's servers
  std::set<std::string> waiting_;           // of these, to be written
  std::unique_ptr<Job> job_;
};

}  // namespace bulkhead::program
