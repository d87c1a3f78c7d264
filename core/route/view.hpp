// What one group of clients sees: the lanes for their capabilities (and, where a server is per
// client, for their session), merged into one catalogue. Owner: the Router. Thread: [io].
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalogue.hpp"
#include "route/exchange.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class Lane;
class Router;
struct Session;

struct View {
  Router *router = nullptr;
  ClientCaps caps = 0;
  std::uint64_t session = 0;  // 0: shared by all clients with these capabilities
  bool pinned = false;        // kept without clients

  std::vector<Lane *> lanes;  // those in use, in the profile's order
  std::vector<Session *> clients;

  // Built when asked for after a change; filtered ones per principal where a policy filters.
  std::shared_ptr<const Catalogue> catalogue;
  std::map<std::string, std::shared_ptr<const Catalogue>> filtered;
  // What clients have listed, or were told of: a change is announced against this.
  std::shared_ptr<const Catalogue> shown;
  std::uint64_t version = 1;  // of the catalogue; part of cursors
  bool announcing = false;

  // Requests that came before every server had answered or failed.
  struct Waiter {
    ReplyTo reply;
    std::string message;
  };
  std::vector<Waiter> waiters;
  std::uint64_t deadline_timer = 0;
  bool deadline_passed = false;
  std::uint64_t idle_timer = 0;
};

}  // namespace bulkhead
