#include "route/place_lane.hpp"

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
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

PlaceLane::~PlaceLane() = default;

void PlaceLane::start() {
  bool ok = true;
  state_ = LaneState::connecting;
  reason_.clear();
  for (const ItemKind kind : all_item_kinds) {
    const bh_status status = load(kind);
    if (status == BH_PENDING) return router_.lane_changed(*this);  // list_changed() comes
    ok = status == BH_OK && ok;
  }
  state_ = ok ? LaneState::ready : LaneState::waiting;
  settled_ = true;
  listed_ = ok;
  router_.items_changed(*this);
  router_.lane_changed(*this);
}

bh_status PlaceLane::load(ItemKind kind) {
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
  const auto appended = append_page(kind, result, upstream_.def(), router_.limits(), &items);
  if (!appended.has_value()) {
    reason_ = appended.error().text;
    return BH_E_PROTOCOL;
  }
  items_[static_cast<std::size_t>(kind)] = std::move(items);
  return BH_OK;
}

void PlaceLane::list_changed(ItemKind kind) {
  if (state_ == LaneState::waiting || state_ == LaneState::connecting) return start();
  if (state_ != LaneState::ready) return;
  reason_.clear();
  const bh_status status = load(kind);
  if (status == BH_PENDING) return;
  if (status != BH_OK) {
    // As of a server on a wire: a list that cannot be read again is better than none.
    router_.log(BH_LOG_WARN, "server \"" + upstream_.name() + "\": " + reason_);
    return router_.lane_changed(*this);
  }
  router_.items_changed(*this);
  router_.lane_changed(*this);
}

void PlaceLane::close() {
  state_ = LaneState::closed;
}

void PlaceLane::submit(Exchange &e, const Submission &submission) {
  if (state_ != LaneState::ready) {
    return router_.fail_exchange(e, code::internal_error,
                                 "server \"" + upstream_.name() + "\" is not available: " + reason_,
                                 BH_OUTCOME_ERROR);
  }
  if (in_flight >= upstream_.def().max_in_flight) {
    return router_.fail_exchange(e, code::timeout,
                                 "server \"" + upstream_.name() + "\" is busy: " +
                                     std::to_string(in_flight) + " calls run already",
                                 BH_OUTCOME_ERROR);
  }
  const std::string name = e.name;  // the exchange may end inside the call
  bh_call_info info{};
  info.size = sizeof info;
  info.flags = e.client_token.empty() ? 0 : BH_CALL_PROGRESS;
  info.method = bh::str(mcp::to_string(e.method));
  info.name = bh::str(name);
  info.arguments =
      bh::str(submission.arguments.empty() ? submission.scan->arguments.in(submission.message)
                                           : submission.arguments);
  info.deadline_ns = router_.reactor().now_ns() + e.timeout_ms * 1'000'000u;
  e.sent = true;
  ++in_flight;
  const std::uint64_t id = e.id;
  bh_error error = bh::make_error();
  const bh_status status = upstream_.tools->call_begin(upstream_.self, id, &info, &error);
  if (status == BH_OK || status == BH_PENDING) return;
  router_.tools_refused(id, {status, std::string(bh::text(error))});
}

void PlaceLane::retract(std::uint64_t exchange, bool sent, std::string_view, const mcp::Scan *) {
  if (sent) upstream_.tools->call_cancel(upstream_.self, exchange);
}

}  // namespace bulkhead
