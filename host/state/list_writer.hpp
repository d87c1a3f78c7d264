// Stores the lists that a gateway receives from servers. Files are written one at a time on a pool
// thread, so the reactor never blocks. Used on the reactor thread.
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
    // Called after the lists of a server have changed.
    std::function<void(const std::string &server, const KeptLists &lists)> on_stored;
  };

  // The reactor is borrowed. It must be destroyed before this object, because its pool threads may
  // still be writing.
  ListWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~ListWriter();  // writes the pending lists
  ListWriter(const ListWriter &) = delete;
  ListWriter &operator=(const ListWriter &) = delete;

  // Sets the profile's servers and their stored lists. Called at startup and after each reload.
  void set_profile(const Profile &profile);
  // Stores a list, unless the server has been removed or its definition has changed.
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
  std::map<std::string, KeptLists> known_;  // key: the server's name
  std::set<std::string> waiting_;           // servers whose lists must be written
  std::unique_ptr<Job> job_;
};

}  // namespace bulkhead::program
