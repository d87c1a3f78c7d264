#include "route/place_lane.hpp"

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/text.hpp"
#include "route/lane_host.hpp"
#include "route/recorder.hpp"
#include "route/repeated_request.hpp"
#include "route/session.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

std::uint32_t abi_kind(ItemKind kind) {
  switch (kind) {
    case ItemKind::tool:
      return BH_LIST_TOOLS;
    case ItemKind::resource:
      return BH_LIST_RESOURCES;
    case ItemKind::resource_template:
      return BH_LIST_TEMPLATES;
    default:
      return BH_LIST_PROMPTS;
  }
}

// Returns the valid traceparent of the request's _meta, or an empty text.
std::string_view traceparent_of(const Message &request, std::string *scratch) {
  const std::string_view meta = request[request.scan->meta];
  const std::string_view token =
      meta.starts_with('{') ? mcp::member(meta, "traceparent") : std::string_view{};
  if (!token.starts_with('"')) return {};
  const std::string_view value = mcp::unquote(token, scratch);
  return trace_of(value).empty() ? std::string_view{} : value;
}

// Returns the flags for the input that a client with these capabilities supports.
std::uint32_t input_flags(ClientCaps caps) {
  // A client that declares elicitation without modes supports forms.
  const bool modes = (caps & (cap::elicitation_form | cap::elicitation_url)) != 0;
  const bool form = (caps & (modes ? cap::elicitation_form : cap::elicitation)) != 0;
  std::uint32_t flags = 0;
  if (form) flags |= BH_CALL_ELICITATION;
  if ((caps & cap::elicitation_url) != 0) flags |= BH_CALL_ELICITATION_URL;
  if ((caps & cap::sampling) != 0) flags |= BH_CALL_SAMPLING;
  return flags;
}

}  // namespace

// Texts that a bh_call_info borrows.
struct ToolsLane::Inputs {
  std::string members, state;
};

ToolsLane::~ToolsLane() = default;

void ToolsLane::start() {
  bool ok = true;
  state_ = LaneState::connecting;
  reason_.clear();
  for (const ItemKind kind : all_item_kinds) {
    const bh_status status = load(kind);
    // The plugin will call list_changed() when it is ready.
    if (status == BH_PENDING) return host_.lane_changed(*this);
    ok = status == BH_OK && ok;
  }
  state_ = ok ? LaneState::ready : LaneState::waiting;
  settled_ = true;
  listed_ = ok;
  if (ok) read_features();
  host_.items_changed(*this);
  if (ok) host_.lane_ready(*this);
  host_.lane_changed(*this);
}

void ToolsLane::read_features() {
  const bh_tools *tools = upstream_.tools;
  const bool more = BH_HAS(bh_tools, tools, features) && tools->features != nullptr;
  const std::uint32_t features = more ? tools->features(upstream_.self) : 0;
  server_caps_.subscribe = (features & BH_TOOLS_SUBSCRIBE) != 0;
  server_caps_.asks_input = (features & BH_TOOLS_ASKS_INPUT) != 0;
  if (!server_caps_.subscribe) end_watches();
}

// Marks all watches as not accepted by the plugin. Called if the plugin does not support
// subscriptions, for example after a restart.
void ToolsLane::end_watches() {
  std::size_t ended = 0;
  for (auto &[uri, watch] : watches) ended += std::exchange(watch.on, false) ? 1 : 0;
  if (ended == 0) return;
  host_.log(BH_LOG_WARN, "server \"" + upstream_.name() +
                             "\" no longer supports resource subscriptions; " +
                             std::to_string(ended) + " resources are no longer watched");
}

void ToolsLane::began() {
  if (state_ != LaneState::ready) return;  // start() will read the features
  read_features();
  host_.lane_ready(*this);
}

bh_status ToolsLane::load(ItemKind kind) {
  ItemList items;
  bh_buf buf{};
  bh_error error = bh::make_error();
  bh_list_info info{};  // all clients share the list
  info.size = sizeof info;
  info.kind = abi_kind(kind);
  const bh_status status = upstream_.tools->list(upstream_.self, &info, &buf, &error);
  const bh::Buf owned(buf);
  if (status == BH_PENDING) return status;
  if (status == BH_E_UNSUPPORTED) {
    items_[static_cast<std::size_t>(kind)] = {};
    return BH_OK;
  }
  if (status != BH_OK) {
    reason_ =
        "cannot list its " + std::string(facts(kind).noun) + "s: " + std::string(bh::text(error));
    return status;
  }
  if (!mcp::valid_json(owned.view())) {
    reason_ = "its list of " + std::string(facts(kind).noun) + "s is not valid JSON";
    return BH_E_PROTOCOL;
  }
  const std::string result =
      "{\"" + std::string(facts(kind).member) + "\":" + std::string(owned.view()) + "}";
  const auto appended = append_page(kind, result, upstream_.def(), host_.limits(), &items);
  if (!appended.has_value()) {
    reason_ = appended.error().text;
    return BH_E_PROTOCOL;
  }
  items_[static_cast<std::size_t>(kind)] = std::move(items);
  return BH_OK;
}

void ToolsLane::list_changed(ItemKind kind) {
  if (state_ == LaneState::waiting || state_ == LaneState::connecting) return start();
  if (state_ != LaneState::ready) return;
  reason_.clear();
  const bh_status status = load(kind);
  if (status == BH_PENDING) return;
  if (status != BH_OK) {
    // As with servers behind connectors, the lane keeps its previous list.
    host_.log(BH_LOG_WARN, "server \"" + upstream_.name() + "\": " + reason_);
    return host_.lane_changed(*this);
  }
  host_.items_changed(*this);
  host_.lane_changed(*this);
}

void ToolsLane::close() {
  state_ = LaneState::closed;
  std::vector<std::uint64_t> own;
  for (Exchange *e = exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->purpose != Purpose::call) own.push_back(e->id);
  }
  for (const std::uint64_t id : own) {
    if (Exchange *e = host_.exchanges().get(id)) host_.drop(*e);
  }
}

void ToolsLane::submit(Exchange &e, const CallInHand &hand) {
  const auto refuse = [&](std::int32_t code, const std::string &why) {
    host_.fail_call(*e.call, code, "server \"" + upstream_.name() + "\" " + why, BH_OUTCOME_ERROR);
  };
  // Plugins have no tasks. The task belongs to a former server that had the same name.
  if (is_task_method(e.method)) {
    return host_.fail_call(*e.call, code::invalid_params,
                           "Task not found: server \"" + upstream_.name() + "\" has no tasks",
                           BH_OUTCOME_ERROR);
  }
  const bool subscribes = e.method == mcp::Method::resources_subscribe ||
                          e.method == mcp::Method::resources_unsubscribe;
  if (!may_be_repeated(e.method) && !(subscribes && server_caps_.subscribe)) {
    return refuse(code::method_not_found,
                  "does not support " + std::string(mcp::to_string(e.method)));
  }
  if (state_ != LaneState::ready) {
    return refuse(code::internal_error, "is not available: " + reason_);
  }
  if (in_flight >= upstream_.def().max_in_flight) {
    return refuse(code::timeout,
                  "is busy: " + std::to_string(in_flight) + " calls are already running");
  }
  const bool repeated =
      !hand.state.empty() || (e.call->input != nullptr && e.call->input->rounds != 0);
  if (repeated && !server_caps_.asks_input) {
    return refuse(code::invalid_params,
                  "was replaced by a version that does not ask for input: send the request again "
                  "without inputResponses and requestState");
  }
  const mcp::Scan &scan = *hand.message.scan;
  bh_call_info info{};
  if (!e.call->request.progress_token.empty()) info.flags |= BH_CALL_PROGRESS;
  info.arguments = bh::str(hand.arguments.empty() ? hand.message[scan.arguments] : hand.arguments);
  std::string scratch;
  if (const Session *client = e.call->session; client != nullptr) {
    info.session = client->client();
    info.principal = bh::str(client->principal);
  }
  info.traceparent = bh::str(traceparent_of(hand.message, &scratch));
  Inputs inputs;
  if (server_caps_.asks_input) offer_input(*e.call, hand, &info, &inputs);
  const std::uint64_t id = e.id;
  bh_error error = bh::make_error();
  const bh_status status = begin(e, info, &error);
  if (status == BH_OK) return host_.expect_completed(id);
  if (status == BH_PENDING) return;
  host_.tools_refused(id, {status, std::string(bh::text(error))});
}

// The exchange may have been closed when this function returns.
bh_status ToolsLane::begin(Exchange &e, bh_call_info info, bh_error *error) {
  const std::string name = e.call != nullptr ? e.call->name : e.name;
  info.size = sizeof info;
  info.method = bh::str(mcp::to_string(e.method));
  info.name = bh::str(name);
  info.deadline_ns = host_.reactor().now_ns() + e.timeout_ms * 1'000'000u;
  e.sent = true;
  if (e.takes_place) ++in_flight;
  return upstream_.tools->call_begin(upstream_.self, e.id, &info, error);
}

// Prepares the call for a result that asks for input: states the input that the client supports,
// passes on the input that the client has already given, and keeps the request if the gateway
// repeats it for the client.
void ToolsLane::offer_input(Call &call, const CallInHand &hand, bh_call_info *info,
                            Inputs *inputs) {
  call.answer_form = nullptr;  // set if the plugin asks; see ToolsEdge
  if (!may_be_repeated(call.method)) return;
  // No key of the profile allows plugins to read the clients' roots.
  call.declared =
      call.session == nullptr ? 0 : call.session->caps & ~(cap::roots | cap::roots_changed);
  // A client of MCP 2026-07-28 repeats its request itself, unless the policy evaluates its input.
  const bool repeats = call.request.reply.form != nullptr && !call.judges_inputs;
  if (!repeats && !keep_for_input(call, hand, call.declared)) return;
  info->flags |= input_flags(call.declared);
  std::string_view state = hand.state;
  if (call.input != nullptr && call.input->rounds != 0) {
    inputs->members = "{" + call.input->members + R"("":0})";
    info->input_responses = bh::str(mcp::member(inputs->members, "inputResponses"));
    state = mcp::member(inputs->members, "requestState");
  } else if (!state.empty()) {  // the gateway has sealed it for this request
    info->input_responses = bh::str(Repetition::of(hand.message).responses);
  }
  if (!state.empty()) info->request_state = bh::str(mcp::unquote(state, &inputs->state));
}

// Used only for subscriptions: no other request is sent to a plugin on behalf of several clients.
void ToolsLane::request_quietly(mcp::Method method, std::string_view params) {
  if (state_ != LaneState::ready || !server_caps_.subscribe) return;
  Exchange *e = host_.exchanges().open();
  if (e == nullptr) return;
  std::string scratch;
  e->purpose = Purpose::quiet;
  // Hundreds of these requests may be sent together and must not use up the limit on calls.
  e->takes_place = false;
  e->method = method;
  e->name.assign(mcp::unquote(mcp::member(params, "uri"), &scratch));
  e->start_ns = host_.reactor().now_ns();
  attach(*e);
  host_.arm(*e, host_.limits().request_timeout_ms);
  const std::uint64_t id = e->id;
  bh_error error = bh::make_error();
  const bh_status status = begin(*e, {}, &error);
  if (status == BH_OK) return host_.expect_completed(id);
  if (status == BH_PENDING) return;
  host_.log(BH_LOG_WARN, "server \"" + upstream_.name() +
                             "\": " + std::string(mcp::to_string(method)) +
                             " was rejected: " + std::string(bh::text(error)));
  host_.tools_refused(id, {status, {}});
}

void ToolsLane::retract(std::uint64_t exchange, bool sent, const Retraction &why) {
  if (!sent) return;
  bh_cancel cancel{};
  cancel.size = sizeof cancel;
  cancel.reason = why.reason;
  std::string scratch;
  if (why.scan != nullptr) {
    const std::string_view params = why.scan->params.in(why.notification);
    const std::string_view text =
        params.starts_with('{') ? mcp::member(params, "reason") : std::string_view{};
    if (text.starts_with('"')) {
      cancel.text = bh::str(bh::cut_text(mcp::unquote(text, &scratch), BH_CANCEL_BYTES));
    }
  }
  upstream_.tools->call_cancel(upstream_.self, exchange, &cancel);
}

}  // namespace bulkhead
