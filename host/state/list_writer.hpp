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

class ListWriter {
 public:
  struct Hooks {
    std::function<void(std::string_view text)> warn;
    // Called with the stored lists of this server after a change.
    std::function<void(const std::string &server, const KeptLists &lists)> on_stored;
  };

  // The reactor is borrowed. It must be destroyed before this object: its threads may still write.
  ListWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~ListWriter();  // writes pending lists
  ListWriter(const ListWriter &) = delete;
  ListWriter &operator=(const ListWriter &) = delete;

  // Sets the profile's servers and their stored lists; called at the start and after a reload.
  void set_profile(const Profile &profile);
  // Ignores news of a server that does not exist or has a different definition by now.
  void add(ListNews news);

 private:
  struct Job {
    ListWriter *writer = nullptr;
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
