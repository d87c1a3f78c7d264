#include "route/place_lane.hpp"

#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "route/lane_host.hpp"
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

}  // namespace

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
  const bh_status status = upstream_.tools->list(upstream_.self, abi_kind(kind), &buf, &error);
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
  // Plugins have no tasks. The task belongs to a former server that had the same name.
  if (is_task_method(e.method)) {
    return host_.fail_call(*e.call, code::invalid_params,
                           "Task not found: server \"" + upstream_.name() + "\" has no tasks",
                           BH_OUTCOME_ERROR);
  }
  if (state_ != LaneState::ready) {
    return host_.fail_call(*e.call, code::internal_error,
                           "server \"" + upstream_.name() + "\" is not available: " + reason_,
                           BH_OUTCOME_ERROR);
  }
  if (in_flight >= upstream_.def().max_in_flight) {
    return host_.fail_call(*e.call, code::timeout,
                           "server \"" + upstream_.name() + "\" is busy: " +
                               std::to_string(in_flight) + " calls are already running",
                           BH_OUTCOME_ERROR);
  }
  const std::uint64_t id = e.id;
  bh_error error = bh::make_error();
  const bh_status status = begin(
      e, e.call->request.progress_token.empty() ? 0 : BH_CALL_PROGRESS,
      hand.arguments.empty() ? hand.message[hand.message.scan->arguments] : hand.arguments, &error);
  if (status == BH_OK) return host_.expect_completed(id);
  if (status == BH_PENDING) return;
  host_.tools_refused(id, {status, std::string(bh::text(error))});
}

// The exchange may have been closed when this function returns.
bh_status ToolsLane::begin(Exchange &e, std::uint32_t flags, std::string_view arguments,
                           bh_error *error) {
  const std::string name = e.call != nullptr ? e.call->name : e.name;
  bh_call_info info{};
  info.size = sizeof info;
  info.flags = flags;
  info.method = bh::str(mcp::to_string(e.method));
  info.name = bh::str(name);
  info.arguments = bh::str(arguments);
  info.deadline_ns = host_.reactor().now_ns() + e.timeout_ms * 1'000'000u;
  e.sent = true;
  if (e.takes_place) ++in_flight;
  return upstream_.tools->call_begin(upstream_.self, e.id, &info, error);
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
  const bh_status status = begin(*e, 0, {}, &error);
  if (status == BH_OK) return host_.expect_completed(id);
  if (status == BH_PENDING) return;
  host_.log(BH_LOG_WARN, "server \"" + upstream_.name() +
                             "\": " + std::string(mcp::to_string(method)) +
                             " was rejected: " + std::string(bh::text(error)));
  host_.tools_refused(id, {status, {}});
}

void ToolsLane::retract(std::uint64_t exchange, bool sent, std::string_view, const mcp::Scan *) {
  if (sent) upstream_.tools->call_cancel(upstream_.self, exchange);
}

}  // namespace bulkhead
