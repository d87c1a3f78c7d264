// Lists, page by page, as a client asks for them; and what a session sees item by item, for plugins
// that translate. Owner: the Router. Thread: [io].
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

// Of what this method asks for a list; nothing: it does not.
std::optional<ItemKind> listed_kind(mcp::Method method);
// The profile offers this method.
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
    // The session's client has seen a list of a kind for the first time: the journal is to know.
    std::function<void(const Session &session)> on_listed;
  };
  // cursor_key: random.
  ListRequests(std::uint64_t cursor_key, Needs needs)
      : cursors_(cursor_key), needs_(std::move(needs)) {}

  // Answers a request for a list, or lets it wait until the list is known.
  void answer(Session &session, Incoming &request, ItemKind kind);
  // JSON for bh_host_control.list_items; only for sessions of that end (BH_STALE).
  // BH_E_UNAVAILABLE: the session is not initialized. BH_WOULD_BLOCK: the list is not known yet.
  bh_status items(bh_session session, const ClientEnd *end, ItemKind kind, std::string *out);

 private:
  void append_items(const Lane &lane, std::uint32_t source, ItemKind kind, const Catalogue &seen,
                    std::unordered_set<std::string> *done, std::string *out) const;

  const ListCursors cursors_;
  const Needs needs_;
};

}  // namespace bulkhead
