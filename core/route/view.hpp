// A view is what one group of clients sees: one lane of each server, merged into one catalogue.
// Clients with the same capabilities share a view, unless a server needs a separate lane for each
// client (Upstream::has_own_lane). In that case, each session has its own view, and sessionless
// requests share a view only if they have the same request scope (RequestScopes).
//
// Owner: Views. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalogue.hpp"
#include "route/message.hpp"
#include "route/protocol.hpp"
#include "route/reply_to.hpp"

namespace bulkhead {

class FilteredLists;
class Lane;
class Views;
struct Session;
struct View;

// The items of a view that one principal may see, if a policy filters lists. Managed by
// FilteredLists.
struct FilteredList {
  FilteredLists *owner = nullptr;
  View *view = nullptr;
  std::shared_ptr<const Catalogue> catalogue;  // null if not all items have been decided
  // The current round of policy requests: one request per item, in catalogue order.
  std::uint32_t round = 0;         // 0 if there is no current round
  std::vector<std::int8_t> shown;  // for each item: 1 (shown), 0 (hidden) or -1 (undecided)
  std::uint32_t open = 0;          // number of undecided items
  std::uint64_t timer = 0;         // started with the first round; may run across several rounds
  // True if a decision has timed out. The list is then used only for the requests that are already
  // waiting for it.
  bool late = false;
};

struct View {
  Views *owner = nullptr;
  ClientCaps caps = 0;
  // 0 if the view is shared by all clients with these capabilities. Otherwise, the handle of its
  // session or, for sessionless requests, a key of RequestScopes.
  std::uint64_t session = 0;
  bool pinned = false;   // the view is kept even if it has no clients
  bool retired = false;  // the view and its lanes are removed as soon as it has no clients
  bool ended = false;    // no client can join it; it is removed as soon as it has no clients

  std::vector<Lane *> lanes;  // in profile order
  std::vector<Session *> clients;

  // `catalogue` and `filtered` are both built on first use after a change. `filtered` is keyed by
  // principal and used only if a policy filters lists.
  std::shared_ptr<const Catalogue> catalogue;
  std::map<std::string, FilteredList> filtered;
  // The catalogue that clients were last shown. Clients are notified of later changes to it.
  std::shared_ptr<const Catalogue> shown;
  bool announcing = false;

  // A parked request. It waits until every server has responded or failed, or until the policy has
  // decided on every item in a list, or until a time-out expires.
  struct Waiter {
    ReplyTo reply;
    ParkedMessage message;
    std::string process_name;  // client process that sent the request
    std::uint64_t start_ns = 0;
  };
  std::vector<Waiter> waiters;
  std::uint64_t deadline_timer = 0;
  bool deadline_passed = false;
  std::uint64_t idle_timer = 0;
};

// Returns true if each server in the view has responded, has failed, is represented by its stored
// list, or is lazy and has not been started.
bool is_settled(const View &view);
// Merges the lists of the view's lanes. `keep` selects the items to include. If `keep` is empty,
// all items are included.
std::shared_ptr<const Catalogue> build_catalogue(const View &view, const Names &names,
                                                 const Catalogue::Keep &keep);

}  // namespace bulkhead
