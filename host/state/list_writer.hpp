// Stores the lists that a gateway receives from servers, one write at a time and never on the loop.
// Runs on the reactor thread.
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
    // Called after a change, with the stored lists of this server.
    std::function<void(const std::string &server, const KeptLists &lists)> on_stored;
  };

  // The reactor is borrowed. It must be destroyed before this object, because its threads may still
  // write.
  ListWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks);
  ~ListWriter();  // writes pending lists
  ListWriter(const ListWriter &) = delete;
  ListWriter &operator=(const ListWriter &) = delete;

  // Sets the profile's servers and their stored lists. Called at start and after a reload.
  void set_profile(const Profile &profile);
  // Lists are ignored if the server no longer exists or has a different definition.
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
  std::set<std::string> waiting_;           // servers with lists to be written
  std::unique_ptr<Job> job_;
};

}  // namespace bulkhead::program
