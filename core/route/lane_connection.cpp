#include "route/lane_connection.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/methods.hpp"
#include "route/lane_host.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"

namespace bulkhead {

Result<void> LaneConnection::open(bh_lane handle, std::uint64_t timeout_ms,
                                  std::uint32_t *retry_after_ms) {
  const Upstream &upstream = lane_.upstream();
  const std::string definition = upstream.def().to_json();
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str(upstream.name());
  info.definition = bh::str(definition);
  info.connect_timeout_ms = timeout_ms;
  bh_error error = bh::make_error();
  handle_ = handle;
  wire_ = nullptr;
  const bh_status status =
      upstream.connector->lane_open(upstream.self, handle_, &info, &wire_, &error);
  if (status == BH_OK) return {};
  host_.forget_wire(handle_);
  handle_ = 0;
  *retry_after_ms = error.retry_after_ms;
  return fail(status, std::string(bh::text(error)));
}

void LaneConnection::opened(std::string_view revision) {
  const Upstream &upstream = lane_.upstream();
  upstream.connector->lane_ready(upstream.self, wire_, bh::str(revision));
}

void LaneConnection::close() {
  host_.detach_wire(std::exchange(handle_, 0));
  void *wire = std::exchange(wire_, nullptr);
  host_.lane_lost(lane_);
  const Upstream &upstream = lane_.upstream();
  upstream.connector->lane_close(upstream.self, wire);
}

Exchange *LaneConnection::own_exchange(Purpose purpose, mcp::Method method,
                                       std::uint64_t timeout_ms) {
  Exchange *e = host_.exchanges().open();
  if (e == nullptr) return nullptr;
  e->purpose = purpose;
  e->method = method;
  e->start_ns = host_.reactor().now_ns();
  e->timeout_ms = timeout_ms;
  lane_.attach(*e);
  if (timeout_ms != 0) host_.arm(*e, timeout_ms);
  return e;
}

bool LaneConnection::send_request(Exchange &e, const bh_str *parts, std::uint32_t count,
                                  std::uint32_t flags, std::span<const bh_header> headers) {
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = BH_LANE_REQUEST;
  message.exchange = e.id;
  if (e.timeout_ms != 0) {
    message.deadline_ns = host_.reactor().now_ns() + e.timeout_ms * 1'000'000u;
  }
  message.flags = flags;
  message.part_count = count;
  message.parts = parts;
  message.headers = headers.data();
  message.header_count = static_cast<std::uint32_t>(headers.size());
  const std::uint64_t id = e.id;
  e.sent = true;
  if (e.takes_place) ++lane_.in_flight;
  bh_error error = bh::make_error();
  const bh_status status =
      lane_.upstream().connector->lane_send(lane_.upstream().self, wire_, &message, &error);
  if (status == BH_OK) return true;
  Exchange *still = host_.exchanges().get(id);
  if (still == nullptr) return false;
  const Error failure{status, std::string(bh::text(error))};
  if (still->purpose == Purpose::call) {
    host_.fail_call(*still->call, status == BH_E_LIMIT ? code::timeout : code::internal_error,
                    about(failure.text), BH_OUTCOME_ERROR);
  } else {
    owner_.own_answer(*still, nullptr, {}, &failure);
  }
  return false;
}

void LaneConnection::retract(std::uint64_t exchange, std::string_view reason,
                             const mcp::Scan *reason_scan) {
  if (handle_ == 0) return;
  const Digits id(exchange);
  if (reason_scan != nullptr) {
    const std::string text = compose_cancelled(id.view(), reason, *reason_scan);
    const bh_str part = bh::str(text);
    send(BH_LANE_NOTIFICATION, &part, 1);
  } else {
    const bh_str parts[] = {
        bh::str(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)"),
        bh::str(id.view()), bh::str("}}")};
    send(BH_LANE_NOTIFICATION, parts, 3);
  }
  abandon(exchange);
}

void LaneConnection::abandon(std::uint64_t exchange) {
  if (handle_ != 0)
    lane_.upstream().connector->lane_abandon(lane_.upstream().self, wire_, exchange);
}

void LaneConnection::send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) {
  if (handle_ == 0) return;
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = kind;
  message.part_count = count;
  message.parts = parts;
  bh_error error = bh::make_error();
  if (lane_.upstream().connector->lane_send(lane_.upstream().self, wire_, &message, &error) !=
      BH_OK) {
    host_.log(BH_LOG_WARN, "server \"" + lane_.upstream().name() +
                               "\": a message was lost: " + std::string(bh::text(error)));
  }
}

void LaneConnection::send_own(Exchange &e, std::string_view params, std::uint32_t flags,
                              std::span<const bh_header> headers) {
  const Digits id(e.id);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"),
                          bh::str(id.view()),
                          bh::str(R"(,"method":")"),
                          bh::str(mcp::to_string(e.method)),
                          bh::str(params.empty() ? R"(")" : R"(","params":)"),
                          bh::str(params),
                          bh::str("}")};
  send_request(e, parts, 7, flags, headers);
}

std::string LaneConnection::about(std::string_view text) const {
  const std::string name = "server \"" + lane_.upstream().name() + "\"";
  return text.starts_with(name) ? std::string(text) : (name + ": ").append(text);
}

}  // namespace bulkhead
