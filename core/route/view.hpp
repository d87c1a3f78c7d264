// What one group of clients sees: the lanes for their capabilities (and, where a server is per
// client, for their session), merged into one catalogue. Owner: Views. Thread: [io].
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

// What one principal is shown of a view, where a policy filters. Kept by FilteredLists.
struct FilteredList {
  FilteredLists *owner = nullptr;
  View *view = nullptr;
  std::shared_ptr<const Catalogue> catalogue;  // null: not asked yet, or not all is answered
  // A round of questions: one per item, in the order in which the catalogue is built.
  std::uint32_t round = 0;         // its number; 0: none is under way
  std::vector<std::int8_t> shown;  // 1, 0, or -1: not answered
  std::uint32_t open = 0;          // answers that are missing
  std::uint64_t timer = 0;         // runs from the first question on, also over several rounds
  bool late = false;               // not all was answered in time: it is for those who wait only
};

struct View {
  Views *owner = nullptr;
  ClientCaps caps = 0;
  std::uint64_t session = 0;  // 0: shared by all clients with these capabilities
  bool pinned = false;        // kept without clients

  std::vector<Lane *> lanes;  // those in use, in the profile's order
  std::vector<Session *> clients;

  // Built when asked for after a change; filtered ones per principal where a policy filters.
  std::shared_ptr<const Catalogue> catalogue;
  std::map<std::string, FilteredList> filtered;
  // What clients have listed, or were told of: a change is announced against this.
  std::shared_ptr<const Catalogue> shown;
  std::uint64_t version = 1;  // of the catalogue; part of cursors
  bool announcing = false;

  // Requests that came before every server had answered or failed, or the policy about their list.
  struct Waiter {
    ReplyTo reply;
    ParkedMessage message;
    std::string process_name;  // that has sent it
    std::uint64_t start_ns = 0;
  };
  std::vector<Waiter> waiters;
  std::uint64_t deadline_timer = 0;
  bool deadline_passed = false;
  std::uint64_t idle_timer = 0;
};

// Nothing more can be expected: each server has answered or failed, or is shown as it was before.
bool is_settled(const View &view);
// The lists of its lanes as one; of those that `keep` lets in, all if it is empty.
std::shared_ptr<const Catalogue> build_catalogue(const View &view, const Names &names,
                                                 const Catalogue::Keep &keep);

}  // namespace bulkhead
