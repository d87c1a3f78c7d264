// Stores the lists of servers that a gateway receives, one write at a time and never on the loop.
// Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "reactor/reactor.hpp"
#include "state/list_store.hpp"

namespace bulkhead::program {

class ListKeeper {
 public:
  struct Hooks {
    std::function<void(std::string_view text)> warn;
    // Called with the stored lists of this server after a change.
    std::function<void(const std::string &server, const KeptLists &lists)> kept;
  };

  // The reactor is borrowed. It must be destroyed before this object: its threads may still write.
  ListKeeper(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~ListKeeper();  // writes pending lists
  ListKeeper(const ListKeeper &) = delete;
  ListKeeper &operator=(const ListKeeper &) = delete;

  // Sets the profile's servers and their stored lists; called at the start and after a reload.
  void use(const Profile &profile);
  // Ignores news of a server that does not exist or has a different definition by now.
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
  std::map<std::string, KeptLists> known_;  // by server of the profile
  std::set<std::string> waiting_;           // servers whose lists are to be written
  std::unique_ptr<Job> job_;
};

}  // namespace bulkhead::program
