// Handles the messages of tools plugins: results and progress of calls, changed lists and updated
// resources. The counterpart for servers behind connectors is WireEdge.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/ext/tools.h"
#include "reactor/reactor.hpp"
#include "route/call_answers.hpp"
#include "route/call_ends.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/gate.hpp"
#include "route/notifications.hpp"
#include "route/recorder.hpp"
#include "route/subscriptions.hpp"
#include "route/upstream.hpp"

namespace bulkhead {

class ToolsEdge {
 public:
  struct Needs {
    Reactor &reactor;
    ExchangeTable &exchanges;
    CallAnswers &call_answers;
    CallEnds &ends;
    ClientAnswers &answers;
    const Gate &gate;
    Notifications &notifications;
    Subscriptions &subscriptions;
    Recorder &recorder;
    RouterCounters &counters;
    std::function<void(std::int32_t level, std::string_view text)> log;
  };
  explicit ToolsEdge(Needs needs) : needs_(std::move(needs)) {}
  ~ToolsEdge() { needs_.reactor.forget(this); }
  ToolsEdge(const ToolsEdge &) = delete;
  ToolsEdge &operator=(const ToolsEdge &) = delete;

  // ---- messages about a call ----
  // Handles the result or the JSON-RPC error of a call. `kind` is BH_RESULT_*. Returns BH_STALE if
  // the call is unknown or has finished.
  bh_status complete(bh_call call, std::uint32_t kind, std::string_view json);
  // Called when the plugin has refused the call or its process has exited. The call fails.
  void refused(bh_call call, const Error &error);
  // Called when the plugin has returned BH_OK, which means that it must already have called
  // complete(). If it has not, the call fails in a later iteration of the event loop.
  void expect_completed(bh_call call);
  void progress(bh_call call, double progress, double total, std::string_view message);
  // Records an event that belongs to a call; see bh_host_event.
  void event(bh_call call, std::uint32_t kind, std::string_view detail);

  // ---- messages about the plugin ----
  // `abi_kind` is a BH_LIST_* value. Other values are ignored.
  static void list_changed(Upstream &upstream, std::uint32_t abi_kind);
  // Called when the plugin has started in another process, for the first time or again. Restores
  // the subscriptions.
  static void began(Upstream &upstream);
  void resource_updated(Upstream &upstream, std::string_view uri);

 private:
  void ask_for_input(Call &call, bh_call id, std::string_view json);
  void refuse_answer(Call &call);

  const Needs needs_;
};

}  // namespace bulkhead
