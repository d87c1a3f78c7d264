// A lane over a connector. This class holds the lane's state and its calls, and decides when its
// connection is opened or closed. The parts of the lane implement the rest and report to it through
// their Owner interfaces.
//
// Runs on the reactor thread. Owned by the Upstream.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/lane_failure.hpp"
#include "base/log_limit.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "route/conversation.hpp"
#include "route/idle_stop.hpp"
#include "route/lane.hpp"
#include "route/lane_connection.hpp"
#include "route/lane_queue.hpp"
#include "route/reconnects.hpp"
#include "route/server_lists.hpp"
#include "route/server_opening.hpp"
#include "route/server_subscriptions.hpp"
#include "route/server_tasks.hpp"

namespace bulkhead {

class WireLane final : public Lane,
                       private LaneConnection::Owner,
                       private ServerOpening::Owner,
                       private ServerLists::Owner,
                       private IdleStop::Owner {
 public:
  WireLane(LaneHost &host, Upstream &upstream, ClientCaps caps, std::uint64_t session);
  ~WireLane() override;

  void start() override;
  void close() override;
  void submit(Exchange &exchange, const CallInHand &hand) override;
  void retract(std::uint64_t exchange, bool sent, const Retraction &why) override;
  void abandon(std::uint64_t exchange) override;
  void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) override;
  bool reports(const Watch &watch) const override { return subscriptions_.reports(watch); }
  bool takes(mcp::Method method) const override { return conversation_.takes(method); }
  void request_quietly(mcp::Method method, std::string_view params) override;
  void inherit(const Lane &former) override;
  void redefined() override;
  void pump() override;
  void recall() override;
  bool opened() const override { return conversation_.edge() != nullptr && handle() != 0; }
  std::string_view revision() const noexcept override {
    return opened() ? std::string_view(conversation_.revision()) : std::string_view{};
  }
  std::optional<ListHints> list_hints(ItemKind kind, std::uint64_t now_ns) const override;
  void refresh(ItemKind kind, std::uint64_t now_ns) override;
  bool lazy() const override;
  bool unknown() const override;

  // ---- from the connector ----
  void down(const Error &error, std::uint32_t retry_after_ms);
  // Logs the challenges of a server that requires credentials, at most once in 10 s.
  void challenged(const LaneFailure &failure);
  void own_answer(Exchange &exchange, const mcp::Scan *scan, std::string_view message,
                  const Error *error, std::uint32_t retry_after_ms = 0) override;
  // Returns the form of the server's responses, or null if they have the form that revisions with
  // sessions define.
  const AnswerForm *answer_form() const noexcept {
    const ServerEdge *edge = conversation_.edge();
    return edge == nullptr ? nullptr : edge->answer_form();
  }
  // Called when the server has rejected the call because of its headers. For tools/call, reads the
  // list of tools again. If the call's request was kept (Call::input), then sends the call again,
  // but only once for each call. Returns false if the call is not sent again, so the client must
  // receive a response.
  bool renew_headers(Exchange &exchange);
  // Opens a new connection because the server has been replaced.
  void reopen() override;
  ServerOpening &opening() noexcept { return opening_; }
  ServerLists &lists() noexcept { return lists_; }
  ServerTasks &tasks() noexcept { return tasks_; }
  ServerSubscriptions &subscriptions() noexcept { return subscriptions_; }
  bh_lane handle() const noexcept override { return connection_.handle(); }

 private:
  void connect();
  // Called when the next attempt is due.
  void retry();
  // Decides whether and when a lost connection is replaced.
  void regain(bool was_ready, std::uint32_t retry_after_ms);
  void drop_wire();
  void fail_exchanges(const Error &error, bool also_queued);
  void start_grace();
  void send_call(Exchange &exchange, const CallInHand &hand);
  bool may_start_for_call() const;
  void start_for_call();
  // ServerOpening::Owner
  void opened_with(const ServerEdge &edge, ServerEdge::Opened opened) override;
  void attempt_failed(const Error &error, std::uint32_t retry_after_ms) override;
  // ServerLists::Owner
  void become_ready() override;
  void tools_failed(const std::string &reason, bool again, std::uint32_t retry_after_ms) override;
  void tools_read() override;
  // IdleStop::Owner
  bool busy() override;
  void stop_idle() override;

  Conversation conversation_;
  LaneConnection connection_;
  ServerOpening opening_;
  ServerTasks tasks_;
  ServerLists lists_;
  ServerSubscriptions subscriptions_;
  Reconnects reconnects_;
  IdleStop idle_;
  bool pumping_ = false;
  bool losing_ = false;  // the connection was lost; regain() has not decided yet
  std::uint64_t grace_timer_ = 0;
  LaneQueue queue_;
  std::vector<std::uint64_t> held_;  // exchanges of calls that wait for a new list of tools
  LogLimit challenges_;              // see challenged()
};

}  // namespace bulkhead
