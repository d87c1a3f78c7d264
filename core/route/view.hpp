// A view: the items that one group of clients sees. It merges the lanes for the clients'
// capabilities into one catalogue. If a server runs per client, the view also depends on the
// session.
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

// The part of a view that one principal may see if a policy filters lists. Managed by
// FilteredLists.
struct FilteredList {
  FilteredLists *owner = nullptr;
  View *view = nullptr;
  std::shared_ptr<const Catalogue> catalogue;  // null if not completely decided
  // A round of policy requests: one for each item, in catalogue order.
  std::uint32_t round = 0;         // number of the open round, or 0
  std::vector<std::int8_t> shown;  // 1, 0, or -1 if not decided
  std::uint32_t open = 0;          // undecided items
  std::uint64_t timer = 0;         // starts with the first request; may span several rounds
  // Set if a decision timed out. The list is then valid only for pending requests.
  bool late = false;
};

struct View {
  Views *owner = nullptr;
  ClientCaps caps = 0;
  // 0 if shared by all clients with these capabilities; otherwise the session, or for sessionless
  // requests their scope (request_scopes.hpp).
  std::uint64_t session = 0;
  bool pinned = false;  // kept even without clients

  std::vector<Lane *> lanes;  // in the order of the profile
  std::vector<Session *> clients;

  // Built on first use after a change. `filtered` is keyed by principal and is used only if a
  // policy filters lists.
  std::shared_ptr<const Catalogue> catalogue;
  std::map<std::string, FilteredList> filtered;
  // The catalogue that clients know. Changes relative to it are announced.
  std::shared_ptr<const Catalogue> shown;
  std::uint64_t version = 1;  // of the catalogue; part of cursors
  bool announcing = false;

  // A request that waits until every server has responded or failed, or until the policy has
  // decided about the items in its list.
  struct Waiter {
    ReplyTo reply;
    ParkedMessage message;
    std::string process_name;  // of the client process that sent it
    std::uint64_t start_ns = 0;
  };
  std::vector<Waiter> waiters;
  std::uint64_t deadline_timer = 0;
  bool deadline_passed = false;
  std::uint64_t idle_timer = 0;
};

// Returns true if each of the view's servers has responded or failed, or is shown with its stored
// list.
bool is_settled(const View &view);
// Merges the lists of the view's lanes. `keep` selects the items to include; if it is empty, all
// items are included.
std::shared_ptr<const Catalogue> build_catalogue(const View &view, const Names &names,
                                                 const Catalogue::Keep &keep);

}  // namespace bulkhead
