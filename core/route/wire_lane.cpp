#include "route/wire_lane.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/methods.hpp"
#include "route/client_meta.hpp"
#include "route/lane_host.hpp"
#include "route/removed_members.hpp"
#include "route/repeated_request.hpp"
#include "route/splice.hpp"
#include "route/stateless_server_edge.hpp"
#include "route/task_answers.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// Returns the range of `part`, which points into `message`.
mcp::Range range_in(std::string_view message, std::string_view part) {
  if (part.empty()) return {};
  const auto begin = static_cast<std::uint32_t>(part.data() - message.data());
  return {begin, begin + static_cast<std::uint32_t>(part.size())};
}

// Removes `task` from the params of a tools/call request.
void remove_task_param(Splice *splice, const Message &request) {
  const mcp::Scan &scan = *request.scan;
  if (!scan.extra_params || scan.method != mcp::Method::tools_call) return;
  RemovedMembers removed(request.bytes);
  mcp::for_each_member(request[scan.params], [&](std::string_view key, std::string_view value) {
    if (!mcp::json::same_text(key.substr(1, key.size() - 2), "task")) return;
    removed.add({range_in(request.bytes, key).begin, range_in(request.bytes, value).end});
  });
  for (const mcp::Range range : removed.ranges()) splice->remove(range);
}

}  // namespace

WireLane::WireLane(LaneHost &host, Upstream &upstream, ClientCaps caps, std::uint64_t session)
    : Lane(host, upstream, caps, session),
      conversation_(upstream.def(), server_caps_, caps),
      connection_(*this, host, *this),
      opening_(*this, host, conversation_, connection_, *this),
      tasks_(*this, host, conversation_, connection_),
      lists_(*this, host, items_, conversation_, connection_, *this),
      subscriptions_(*this, host, conversation_, connection_, lists_),
      reconnects_(host, this, bh::callback<&WireLane::retry>(this)),
      idle_(*this, host, *this),
      queue_(*this, host) {}

WireLane::~WireLane() {
  host_.reactor().forget(this);
}

// ---- connecting ------------------------------------------------------------------------------

void WireLane::start() {
  settled_ = false;
  connect();
}

void WireLane::connect() {
  state_ = LaneState::connecting;
  conversation_.end();
  log_level_sent = -1;
  lists_.reset();
  std::uint32_t retry_after_ms = 0;
  const Result<void> opened =
      connection_.open(host_.register_wire(this), opening_.timeout_ms(), &retry_after_ms);
  if (!opened) return attempt_failed(opened.error(), retry_after_ms);
  host_.lane_changed(*this);
  opening_.start();
}

void WireLane::become_ready() {
  state_ = LaneState::ready;
  settled_ = true;
  listed_ = true;
  recalled_ = false;
  reason_.clear();
  reconnects_.ready();
  host_.reactor().timer_cancel(grace_timer_);
  grace_timer_ = 0;
  host_.items_changed(*this);
  host_.lane_ready(*this);
  host_.lane_changed(*this);
  lists_.keep();
  const bh_lane handle = connection_.handle();
  pump();
  if (connection_.handle() != handle) return;
  idle_.watch();
  upstream_.fill_pool(*this);
}

// ---- sending ---------------------------------------------------------------------------------

void WireLane::submit(Exchange &e, const CallInHand &hand) {
  idle_.used();
  if (state_ == LaneState::ready && queue_.empty() && in_flight < upstream_.def().max_in_flight) {
    return send_call(e, hand);
  }
  const bool starts = may_start_for_call();
  if (!starts && (state_ == LaneState::waiting || state_ == LaneState::closed)) {
    return host_.fail_call(*e.call, code::internal_error,
                           "server \"" + upstream_.name() + "\" is not available: " + reason_,
                           BH_OUTCOME_ERROR);
  }
  if (queue_.add(e, hand) && starts && !losing_) start_for_call();
}

void WireLane::send_call(Exchange &e, const CallInHand &given) {
  const ServerEdge &edge = *conversation_.edge();
  const bool stateless = edge.stateless();
  const bool same_generation = (e.call->request.reply.form != nullptr) == stateless;
  e.call->task = tasks_.role(*e.call, given);
  const bool bridges = ServerTasks::bridge(*e.call, same_generation);
  e.call->connection = may_take_headers(upstream_.def()) ? 0 : connection_.handle();
  if (given.target.connection != 0 && given.target.connection != connection_.handle()) {
    return host_.fail_call(*e.call, code::invalid_params, task_not_found, BH_OUTCOME_ERROR);
  }
  // A request that no policy evaluates is reduced, so that it cannot carry other data.
  const bool about_task = e.call->task == TaskRole::about;
  const bool reduces = e.method == mcp::Method::resources_unsubscribe ||
                       (about_task && (bridges || e.method != mcp::Method::tasks_update));
  std::optional<CallInHand> reduced_hand;
  if (reduces) reduced_hand = ServerTasks::reduced(given);
  const CallInHand &hand = reduces ? *reduced_hand : given;
  const mcp::Method method = bridges ? e.call->bridge->send : hand.message.scan->method;
  if (!takes(method)) {
    if (!is_task_method(method)) return subscriptions_.take(e);
    return host_.fail_call(*e.call, code::invalid_params,
                           connection_.about("MCP " + conversation_.revision() + " does not have " +
                                             std::string(mcp::to_string(method))),
                           BH_OUTCOME_ERROR);
  }
  const mcp::Scan &scan = *hand.message.scan;
  const Digits id(e.id);
  Splice splice(hand.message.bytes);
  splice.replace(scan.id, id.view());
  splice.replace(hand.target.range, hand.target.resolved.original_token);
  splice.replace(scan.progress_token, id.view());
  if (!hand.arguments.empty()) splice.replace(scan.arguments, hand.arguments);
  // A state without a token of the server was issued while the server had sessions.
  const std::string_view state = Repetition::of(hand.message).state;
  if (stateless ? !state.empty() && hand.state.empty() : !hand.state.empty()) {
    return host_.fail_call(
        *e.call, code::invalid_params,
        connection_.about("requestState is from before a change of the server's protocol "
                          "revision: send the request without it"),
        BH_OUTCOME_ERROR);
  }
  if (!state.empty() && stateless) {
    splice.replace(range_in(hand.message.bytes, state), hand.state);
  }
  if (!same_generation) {
    Repetition::remove_foreign(&splice, hand.message);
  } else if (e.call->task == TaskRole::none) {
    remove_task_param(&splice, hand.message);
  }
  // The server may send requests about the task before it responds, so the task is noted first.
  if (e.call->task == TaskRole::about) note_task(*e.call, hand.target.resolved.original_token);
  const bool has_meta = remove_client_meta(&splice, hand.message, stateless);
  e.call->answer_form = edge.answer_form();
  e.call->declared = caps_;
  const bool tasks = e.call->task != TaskRole::none;
  if (stateless)
    conversation_.meta_for(e.call->session, tasks).add_to(&splice, hand.message, has_meta);
  std::string method_text;
  if (method != scan.method) {
    method_text.append("\"").append(mcp::to_string(method)).append("\"");
    splice.replace(scan.method_text, method_text);
  }
  if (!same_generation && e.call->task == TaskRole::creates) {
    splice.insert(scan.params.begin + 1, R"("task":{},)");
  }
  // A client of the same revision as the server repeats its request itself, unless each of the
  // server's requests must be evaluated. Otherwise, the gateway repeats the request.
  const bool bridged = stateless && e.call->request.reply.form == nullptr;
  if (stateless && !bridged && e.call->judges_inputs && may_be_repeated(e.method)) {
    keep_for_input(*e.call, hand, caps_);
  }
  const bool repeats = bridged ? may_be_repeated(e.method) || e.call->bridge != nullptr
                               : e.call->bridge != nullptr && is_task_method(e.method);
  if (repeats && !keep_for_input(*e.call, hand, caps_)) {
    return host_.fail_call(*e.call, code::invalid_params,
                           "params.inputResponses and params.requestState are not allowed in this "
                           "request: they are members of MCP " +
                               std::string(StatelessServerEdge::revision),
                           BH_OUTCOME_ERROR);
  }
  if (e.call->input != nullptr) {
    if (e.call->input->rounds != 0 && !stateless) {
      return host_.fail_call(
          *e.call, code::internal_error,
          connection_.about("the client's input is from before a change of the server's "
                            "protocol revision: send the request again"),
          BH_OUTCOME_ERROR);
    }
    splice.insert(scan.params.begin + 1, e.call->input->members);
  }
  const bh_str *parts = splice.parts();
  if (parts == nullptr) {
    return host_.fail_call(*e.call, code::internal_error, Splice::failure, BH_OUTCOME_ERROR);
  }
  const std::uint32_t flags = mcp::is_read(method) ? BH_LANE_REPEATABLE : 0;
  if (!stateless) return void(connection_.send_request(e, parts, splice.count(), flags));
  std::string name;
  const auto headers = conversation_.headers_for(
      edge,
      {method, mcp::to_string(method), mcp::unquote(hand.target.resolved.original_token, &name),
       hand.arguments.empty() ? hand.message[scan.arguments] : hand.arguments});
  if (!headers) {
    return host_.fail_call(*e.call, code::invalid_params, connection_.about(headers.error().text),
                           BH_OUTCOME_ERROR);
  }
  connection_.send_request(e, parts, splice.count(), flags, *headers);
}

void WireLane::pump() {
  if (pumping_ || queue_.empty() || state_ != LaneState::ready) return;
  pumping_ = true;
  while (!queue_.empty() && state_ == LaneState::ready &&
         in_flight < upstream_.def().max_in_flight) {
    Exchange *e = queue_.take();
    if (e == nullptr) continue;
    const std::unique_ptr<ParkedCall> parked = take_from_lane(*e->call);
    send_call(*e, parked->in_hand());
  }
  pumping_ = false;
}

void WireLane::retract(std::uint64_t exchange, bool sent, const Retraction &why) {
  if (!sent) {
    queue_.remove(exchange);
    return;
  }
  connection_.retract(exchange, why.notification, why.scan);
}

void WireLane::abandon(std::uint64_t exchange) {
  connection_.abandon(exchange);
}

void WireLane::send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) {
  connection_.send(kind, parts, count);
}

void WireLane::request_quietly(mcp::Method method, std::string_view params) {
  if (state_ != LaneState::ready) return;
  if (!takes(method)) {
    // The server's revision does not have this method. Instead of logging/setLevel, each request
    // has the level in its _meta. The other methods are resources/subscribe and unsubscribe, which
    // subscriptions/listen replaces.
    if (method != mcp::Method::logging_set_level) subscriptions_.listening().watches_changed();
    return;
  }
  Exchange *e = connection_.own_exchange(Purpose::quiet, method, host_.limits().request_timeout_ms);
  if (e == nullptr) return;
  connection_.send_own(*e, conversation_.meta_for(nullptr).added_to(params), 0,
                       conversation_.headers_for(*conversation_.edge(), method));
}

void WireLane::own_answer(Exchange &e, const mcp::Scan *scan, std::string_view message,
                          const Error *error, std::uint32_t retry_after_ms) {
  const Purpose purpose = e.purpose;
  const mcp::Method method = e.method;
  const std::uint64_t id = e.id;
  const auto kind = static_cast<ItemKind>(e.list_kind);
  host_.drop(e);
  if (purpose == Purpose::list) return lists_.answered(kind, scan, message, error, retry_after_ms);
  if (purpose == Purpose::listen) return subscriptions_.answered(id, scan, message, error);
  const bool discovered = purpose == Purpose::quiet && method == mcp::Method::server_discover;
  if (discovered) return opening_.rechecked(scan, message, error);
  if (purpose == Purpose::handshake) {
    opening_.answered(id, scan, message, error, retry_after_ms);
  }
}

}  // namespace bulkhead
