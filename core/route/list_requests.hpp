// Handles list requests with pagination. Also enumerates the items that a session sees, for plugins
// that translate items.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

#include "catalog/names.hpp"
#include "profile/profile.hpp"
#include "route/client_answers.hpp"
#include "route/list_cursors.hpp"
#include "route/views.hpp"

namespace bulkhead {

// Returns the kind of items that the method lists, or nullopt if it is not a list method.
std::optional<ItemKind> listed_kind(mcp::Method method);
// Returns false if the profile does not offer this method to clients.
bool is_exposed(const Expose &expose, mcp::Method method);

class ListRequests {
 public:
  struct Needs {
    Sessions &sessions;
    Views &views;
    const Names &names;
    const Profile &profile;
    Recorder &recorder;
    ClientAnswers &answers;
    // Called when the client receives a list of some kind for the first time, so that the session
    // journal can record this.
    std::function<void(const Session &session)> on_listed;
  };
  // `cursor_key` must be random; see ListCursors.
  ListRequests(std::uint64_t cursor_key, Needs needs)
      : cursors_(cursor_key), needs_(std::move(needs)) {}

  // Responds to a list request, or parks the request until the list is known.
  void answer(Session &session, Incoming &request, ItemKind kind);
  // Composes the result of bh_host_control.list_items. Returns BH_STALE if there is no such session
  // or it belongs to another ClientEnd, BH_E_UNAVAILABLE if the session has not been initialized,
  // and BH_WOULD_BLOCK if the list is not known yet.
  bh_status items(bh_session session, const ClientEnd *end, ItemKind kind, std::string *out);

 private:
  ListHints hints(const View &view, ItemKind kind, std::uint64_t now_ns) const;
  void append_items(const Lane &lane, std::uint32_t source, ItemKind kind, const Catalogue &seen,
                    std::unordered_set<std::string> *done, std::string *out) const;

  const ListCursors cursors_;
  const Needs needs_;
};

}  // namespace bulkhead
