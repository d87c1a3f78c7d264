// A lane over a connector: handshake, listing, sending, reconnecting.
//
// Runs on the I/O thread. Owned by the Upstream.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "route/lane.hpp"
#include "route/listening.hpp"
#include "route/opening.hpp"
#include "route/request_headers.hpp"
#include "route/request_meta.hpp"
#include "route/server_edge.hpp"
#include "route/waiting_calls.hpp"

namespace bulkhead {

class WireLane final : public Lane, private Listening::Wire {
 public:
  // Limit for the tasks/cancel requests of the lane itself that are open. A server can cause any
  // number of them.
  static constexpr std::size_t max_cancels = 16;

  WireLane(LaneHost &host, Upstream &upstream, ClientCaps caps, std::uint64_t session)
      : Lane(host, upstream, caps, session), listening_(host.reactor(), *this) {}
  ~WireLane() override;

  void start() override;
  void close() override;
  void submit(Exchange &exchange, const CallInHand &hand) override;
  void retract(std::uint64_t exchange, bool sent, std::string_view reason,
               const mcp::Scan *reason_scan) override;
  void abandon(std::uint64_t exchange) override;
  void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) override;
  bool reports(const Watch &watch) const override {
    return watch.on && (takes(mcp::Method::resources_subscribe) || listening_.is_open());
  }
  bool takes(mcp::Method method) const override { return edge_ == nullptr || edge_->has(method); }
  void request_quietly(mcp::Method method, std::string_view params) override;
  void inherit(const Lane &former) override;
  void redefined() override;
  void pump() override;
  void recall() override;
  bool opened() const override { return edge_ != nullptr && handle_ != 0; }
  std::string_view revision() const noexcept override {
    return handle_ == 0 || edge_ == nullptr ? std::string_view{} : revision_;
  }
  std::optional<ListHints> list_hints(ItemKind kind, std::uint64_t now_ns) const override;
  void refresh(ItemKind kind, std::uint64_t now_ns) override;
  bool lazy() const override;
  bool unknown() const override;

  // ---- from the connector ----
  void down(const Error &error, std::uint32_t retry_after_ms);
  // Handles the response to one of the lane's own exchanges. `error` is set if there is no
  // response. `retry_after_ms` is the time that the server has asked to wait, or 0.
  void own_answer(Exchange &exchange, const mcp::Scan *scan, std::string_view message,
                  const Error *error, std::uint32_t retry_after_ms = 0);
  // Returns the form of the server's responses, or null if they have the form that revisions with
  // sessions define.
  const AnswerForm *answer_form() const noexcept {
    return edge_ == nullptr ? nullptr : edge_->answer_form();
  }
  // Called when a request has failed in a way that suggests a server of another protocol
  // generation. If the server uses HTTP, it may have been replaced by such a server without the
  // lane noticing. The lane therefore sends server/discover, and opens a new connection if the
  // server rejects this request.
  void recheck();
  // Called when the server has rejected the call because of its headers. Reads the list of tools
  // again and then sends the call again, but only once for each call. Returns false if the call is
  // not sent again, so the client must receive a response.
  bool renew_headers(Exchange &exchange);
  // Returns true if the error shows that a server over HTTP was replaced by one without sessions.
  bool denies_sessions(const Message &answer) const;
  // Opens a new connection because the server has been replaced.
  void reopen();
  // Called when the server has acknowledged subscriptions/listen.
  void listen_acknowledged(const Message &message);
  // Called when the server has sent notifications/cancelled. A stdio server ends
  // subscriptions/listen in this way. Returns false if the notification is about another request.
  bool listen_cancelled(const Message &message);
  // Called when the server has reported that a list has changed.
  void list_changed(ItemKind kind);
  // Cancels a task that no client has received, with the best effort: sends tasks/cancel, unless
  // there is no connection, the server does not declare this method, or max_cancels of these
  // requests are open. The response is discarded, and these requests do not count towards the
  // server's max_in_flight. `id` is the server's, as a JSON string.
  void cancel_task(std::string_view id);
  // Called with a result that does not belong to an open exchange. Usually, its call has ended, but
  // the server may send any id. If the result describes a task that no client has received, cancels
  // the task.
  void cancel_stray_task(std::string_view result);

  bh_lane handle() const noexcept override { return handle_; }

 private:
  // Prefixes the text with the server's name, unless the connector has already done so.
  std::string about(std::string_view text) const;
  struct Listing {
    bool running = false;
    bool first = false;  // must finish before the lane is ready
    bool again = false;
    ItemList incoming;
    std::string cursor;       // JSON token of the requested page
    std::size_t page_at = 0;  // index of the last page's first item in incoming.items
    std::uint32_t pages = 0;
    ListHints hints;  // of the pages so far
  };

  void connect();
  void open_conversation();
  void continue_opening(Opening::Step step);
  void send_opening();
  void watch_silence();
  void opening_answered(std::uint64_t exchange, const mcp::Scan *scan, std::string_view message,
                        const Error *error);
  Error rejection(std::uint64_t exchange, const mcp::Scan &scan, std::string_view message) const;
  void opened_with(const ServerEdge &edge, ServerEdge::Opened opened);
  void start_first_lists();
  bool ended_on_probe(const Error &error);
  std::uint64_t connect_timeout_ms() const;
  void rechecked(const mcp::Scan *scan, std::string_view message, const Error *error);
  std::string opening_request(const ServerEdge &edge, std::uint64_t exchange) const;
  const RequestMeta &meta_for(const Session *client, bool tasks = false);
  TaskRole task_role(const Call &call, const CallInHand &hand) const;
  // Returns true if the server has sessions and declares that it can run tool calls as tasks.
  bool runs_session_tasks() const;
  bool tool_supports_tasks(const Resolved &tool) const;
  // Prepares the conversion of a call that concerns a task, if the client and the server are of
  // different generations. Returns false if no conversion is necessary.
  static bool bridge_task(Call &call, bool same_generation);
  // Returns the request with only the members that reduced_request() keeps.
  static CallInHand reduced(const CallInHand &hand);
  // Returns how many tasks/cancel requests of the lane itself are open.
  std::size_t open_cancels();
  void start_listing(ItemKind kind);
  void request_page(ItemKind kind, std::string_view cursor_token);
  void page_answered(ItemKind kind, const mcp::Scan *scan, std::string_view message,
                     const Error *error);
  void retry_list(const std::string &reason);
  void listing_done(ItemKind kind, bool ok);
  void release_held();
  void report_left_out(ItemKind kind, const ItemList &list) const;
  void keep_list();
  void become_ready();
  void attempt_failed(const Error &error, std::uint32_t retry_after_ms);
  // Decides whether and when a lost connection is replaced.
  void regain(bool was_ready, std::uint32_t retry_after_ms);
  void drop_wire();
  void fail_exchanges(const Error &error, bool also_queued);
  void schedule_retry(std::uint32_t retry_after_ms);
  void start_grace();
  void send_call(Exchange &exchange, const CallInHand &hand);
  bool wait(Exchange &exchange, const CallInHand &hand);
  bool may_start_for_call() const;
  void start_for_call();
  void watch_idleness();
  void stop_if_idle();
  Exchange *own_exchange(Purpose purpose, mcp::Method method, std::uint64_t timeout_ms);
  // Resource subscriptions at a server without sessions.
  void take_subscription(Exchange &exchange);
  void answer_subscription(std::uint64_t exchange, bool accepted, std::string_view failure);
  void answer_subscriptions(std::uint64_t listen, std::string_view failure);
  void listen_answered(std::uint64_t exchange, const mcp::Scan *scan, std::string_view message,
                       const Error *failure);
  // Listening::Wire
  std::vector<std::string> watched() const override;
  bool send_listen(const std::string &filter, std::uint64_t *exchange) override;
  void end_listen(std::uint64_t exchange) override;
  void changes_missed(bool interrupted) override;
  void accepted(std::uint64_t exchange, std::string_view uris) override;
  void rejected(std::uint64_t exchange, std::string_view reason) override;
  bool send_request(Exchange &exchange, const bh_str *parts, std::uint32_t count,
                    std::uint32_t flags, std::span<const bh_header> headers = {});
  // Sends a request of the lane itself. `params` is a JSON object.
  void send_own(Exchange &exchange, std::string_view params, std::span<const bh_header> headers);
  // Returns the headers for a request that uses this edge. The result is empty if the server needs
  // none.
  Result<std::span<const bh_header>> headers_for(const ServerEdge &edge,
                                                 const RequestHeaders::Values &values);
  std::span<const bh_header> headers_for(const ServerEdge &edge, mcp::Method method);

  Opening opening_;
  const ServerEdge *edge_ = nullptr;  // of this connection, when its generation is known
  std::string revision_;              // if edge_ is known
  Listening listening_;
  RequestHeaders headers_;  // of its requests
  // The _meta members of this connection's requests, by the client's log level and the declared
  // capabilities.
  std::map<std::pair<int, ClientCaps>, RequestMeta> metas_;
  bh_lane handle_ = 0;    // of the current connection; 0 if there is none
  void *wire_ = nullptr;  // the connector's pointer
  bool pumping_ = false;
  bool rechecking_ = false;
  bool losing_ = false;            // the connection was lost; regain() has not decided yet
  std::uint32_t first_lists_ = 0;  // pending first list requests of this connection
  std::uint32_t list_failures_ = 0;
  std::uint32_t retry_after_ms_ = 0;  // that came with the last response to a request of the lane
  std::uint32_t failures_ = 0;
  std::uint64_t ready_since_ns_ = 0;
  std::uint64_t last_use_ns_ = 0;
  std::uint64_t retry_timer_ = 0;
  std::uint64_t idle_timer_ = 0;
  std::uint64_t grace_timer_ = 0;
  std::uint64_t silence_timer_ = 0;
  std::uint64_t opening_since_ns_ = 0;
  WaitingCalls queue_;
  std::vector<std::uint64_t> held_;  // exchanges of calls that wait for a new list of tools
  // Exchanges of the lane's own tasks/cancel requests; some may have ended.
  std::vector<std::uint64_t> cancels_;
  std::array<Listing, item_kinds> listings_;
  std::array<ListAge, item_kinds> ages_;  // of the lists from this connection
};

}  // namespace bulkhead
