// Opens a connection: determines the protocol generation, sends the opening requests and handles
// the responses.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "bulkhead/cpp/clock.hpp"
#include "mcp/methods.hpp"
#include "route/lane_host.hpp"
#include "route/splice.hpp"
#include "route/stateless_server_edge.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

// Returns what the failure of an opening request says about the server's protocol generation. Over
// HTTP, a server of another generation responds with a status such as 400, 404 or 405, which the
// connector reports as a protocol error.
Opening::Refusal meaning_of(bh_status failure) {
  switch (failure) {
    case BH_E_PROTOCOL:
      return Opening::Refusal::no_generation;
    case BH_E_AUTH:
    case BH_E_DENIED:
    case BH_E_UNAVAILABLE:
    case BH_E_TIMEOUT:
      return Opening::Refusal::connection;
    default:
      return Opening::Refusal::unclear;
  }
}

// Plugins may connect to servers of other types.
bool uses_http(const ServerDef &def) {
  return def.type.empty() ? !def.url.empty() : def.type == "http";
}

constexpr std::int32_t header_mismatch = -32020;

bool has_code(std::string_view error, std::initializer_list<std::int32_t> codes) {
  const std::string_view token = mcp::member(error, "code");
  return std::any_of(codes.begin(), codes.end(),
                     [token](std::int32_t code) { return token == std::to_string(code); });
}

// Returns true if only servers without sessions respond to server/discover with this error. It
// concerns the request itself, so initialize would not help.
bool is_of_stateless_server(std::string_view error) {
  return has_code(error, {header_mismatch, code::missing_capability});
}

// Returns true if a server of another generation may respond to server/discover with this error.
bool denies_discover(std::string_view error) {
  return has_code(error, {code::method_not_found, code::invalid_request, code::invalid_params,
                          code::unsupported_revision});
}

// Returns true if the error is "unsupported revision" and names the revision without sessions among
// the supported revisions.
bool supports_stateless(std::string_view error) {
  if (!has_code(error, {code::unsupported_revision})) return false;
  const std::string_view data = mcp::member(error, "data");
  const std::string_view supported =
      data.starts_with('{') ? mcp::member(data, "supported") : std::string_view{};
  return supported.find(StatelessServerEdge::revision) != std::string_view::npos;
}

// Returns true if the opening has failed because server/discover and then initialize have timed
// out. `last` is the error of the last one. The server may have hung on server/discover.
bool hung_on_probe(const Opening &opening, const Error &last) {
  const bool both_sent = opening.probing() && !opening.watches_silence();
  return both_sent && last.code == BH_E_TIMEOUT && opening.error().code == BH_E_TIMEOUT;
}

}  // namespace

std::uint64_t WireLane::connect_timeout_ms() const {
  return upstream_.def().connect_timeout_ms.value_or(host_.limits().connect_timeout_ms);
}

void WireLane::open_conversation() {
  const std::uint64_t now_s = bh::unix_s();
  opening_.begin(upstream_.protocol.first(now_s), upstream_.protocol.second(now_s));
  opening_since_ns_ = host_.reactor().now_ns();
  send_opening();
}

// All opening requests for a connection share one connect time-out.
void WireLane::send_opening() {
  const ServerEdge &edge = opening_.edge();
  const std::uint64_t passed_ms = (host_.reactor().now_ns() - opening_since_ns_) / 1'000'000;
  const std::uint64_t whole_ms = connect_timeout_ms();
  Exchange *e = own_exchange(Purpose::handshake, edge.opening_method(),
                             whole_ms > passed_ms ? whole_ms - passed_ms : 1);
  if (e == nullptr) return attempt_failed({BH_E_LIMIT, "too many exchanges are open"}, 0);
  opening_.sending(e->id);
  const std::string text = opening_request(edge, e->id);
  const bh_str part = bh::str(text);
  const bh_lane handle = handle_;
  send_request(*e, &part, 1, edge.stateless() ? BH_LANE_REPEATABLE : BH_LANE_INITIALIZE,
               conversation_.headers_for(edge, edge.opening_method()));
  if (handle_ == handle && conversation_.edge() == nullptr) watch_silence();
}

std::string WireLane::opening_request(const ServerEdge &edge, std::uint64_t exchange) const {
  std::string text = R"({"jsonrpc":"2.0","id":)";
  text.append(std::to_string(exchange))
      .append(R"(,"method":")")
      .append(mcp::to_string(edge.opening_method()))
      .append(R"(","params":)")
      .append(edge.opening_params(caps_))
      .append("}");
  return text;
}

void WireLane::recheck() {
  const bool possible = state_ == LaneState::ready && conversation_.stateless();
  if (!possible || rechecking_ || !may_take_headers(upstream_.def())) return;
  const ServerEdge &edge = *conversation_.edge();
  Exchange *e = own_exchange(Purpose::quiet, edge.opening_method(), connect_timeout_ms());
  if (e == nullptr) return;
  rechecking_ = true;
  const std::string text = opening_request(edge, e->id);
  const bh_str part = bh::str(text);
  send_request(*e, &part, 1, BH_LANE_REPEATABLE,
               conversation_.headers_for(edge, edge.opening_method()));
}

void WireLane::rechecked(const mcp::Scan *scan, std::string_view message, const Error *error) {
  rechecking_ = false;
  if (state_ != LaneState::ready || conversation_.edge() == nullptr) return;
  const bool refused = error != nullptr ? error->code == BH_E_PROTOCOL
                       : scan->kind == mcp::Kind::error
                           ? denies_discover(scan->error.in(message))
                           : !conversation_.edge()->opened(scan->result.in(message)).has_value();
  if (refused) reopen();
}

bool WireLane::denies_sessions(const Message &answer) const {
  if (!conversation_.has_sessions() || !may_take_headers(upstream_.def())) return false;
  return answer.scan->kind == mcp::Kind::error && supports_stateless(answer[answer.scan->error]);
}

void WireLane::reopen() {
  if (state_ != LaneState::ready) return;
  attempt_failed({BH_E_PROTOCOL, "the server no longer supports MCP " + conversation_.revision() +
                                     "; it is opened again"},
                 0);
}

// Over HTTP, the connector may be waiting for the time in Retry-After before it sends the request
// again. If initialize overtook it, a busy server that supports both generations could be opened
// with the older one. A server that never responds still gets initialize.
void WireLane::watch_silence() {
  if (!opening_.watches_silence() || silence_timer_ != 0) return;
  const std::uint64_t half = connect_timeout_ms() / 2;
  const std::uint64_t wait_ms =
      uses_http(upstream_.def()) ? half : std::min(Opening::silence_ms, half);
  silence_timer_ =
      host_.reactor().timer_start(this, wait_ms, bh::callback(this, [](WireLane &self) {
                                    self.silence_timer_ = 0;
                                    if (self.conversation_.edge() == nullptr && self.handle_ != 0) {
                                      self.continue_opening(self.opening_.silent());
                                    }
                                  }));
}

void WireLane::continue_opening(Opening::Step step) {
  switch (step) {
    case Opening::Step::wait:
      return;
    case Opening::Step::send:
      return send_opening();
    case Opening::Step::fail:
      return attempt_failed(opening_.error(), retry_after_ms_);
  }
}

void WireLane::opening_answered(std::uint64_t exchange, const mcp::Scan *scan,
                                std::string_view message, const Error *error) {
  if (conversation_.edge() != nullptr || handle_ == 0) return;  // the other request has decided
  if (error != nullptr) {
    const Opening::Step step = opening_.refused(exchange, *error, meaning_of(error->code));
    if (step == Opening::Step::fail && hung_on_probe(opening_, *error) &&
        !may_take_headers(upstream_.def())) {
      upstream_.protocol.ended_on_probe();
    }
    return continue_opening(step);
  }
  if (scan->kind == mcp::Kind::error) {
    const bool probe = opening_.edge_of(exchange).stateless();
    if (probe && supports_stateless(scan->error.in(message)) && opening_.repeat(exchange)) {
      return send_opening();
    }
    if (probe && is_of_stateless_server(scan->error.in(message))) {
      return attempt_failed(rejection(exchange, *scan, message), 0);
    }
    return continue_opening(opening_.refused(exchange, rejection(exchange, *scan, message),
                                             Opening::Refusal::no_generation));
  }
  const ServerEdge &edge = opening_.edge_of(exchange);
  auto opened = edge.opened(scan->result.in(message));
  if (!opened) {
    return continue_opening(
        opening_.refused(exchange, opened.error(), Opening::Refusal::no_generation));
  }
  if (Exchange *other = host_.exchanges().get(opening_.other_than(exchange))) {
    const std::uint64_t id = other->id;
    abandon(id);
    if (Exchange *still = host_.exchanges().get(id)) host_.drop(*still);
  }
  if (handle_ != 0) opened_with(edge, *std::move(opened));
}

// The server's error may repeat credentials from the request. They are masked before the text is
// truncated, because part of a credential would not be recognized.
Error WireLane::rejection(std::uint64_t exchange, const mcp::Scan &scan,
                          std::string_view message) const {
  const std::string_view error = scan.error.in(message);
  const auto said = host_.without_credentials(error.substr(0, 8'192));
  const std::string_view code = mcp::member(error, "code");
  const bool number = code.find_first_not_of("-0123456789") == std::string_view::npos;
  const std::string shown = said.has_value() ? ": " + said->substr(0, 300)
                            : number         ? " with error " + std::string(code.substr(0, 12))
                                             : " with an error";
  const std::string method(mcp::to_string(opening_.edge_of(exchange).opening_method()));
  return {BH_E_PROTOCOL, "rejected " + method + shown};
}

void WireLane::opened_with(const ServerEdge &edge, ServerEdge::Opened opened) {
  conversation_.begin(edge, opened.revision);
  host_.reactor().timer_cancel(silence_timer_);
  silence_timer_ = 0;
  if (opening_.certain()) upstream_.protocol.decided(edge, opened.revision, bh::unix_s());
  server_caps_ = opened.caps;
  instructions_ = std::move(opened.instructions);
  const bh_lane handle = handle_;  // a connector may lose the connection inside any call
  upstream_.connector->lane_ready(upstream_.self, wire_, bh::str(opened.revision));
  if (handle_ != handle) return;
  const bh_str confirmation = bh::str(edge.confirmation());
  if (confirmation.n != 0) send(BH_LANE_NOTIFICATION, &confirmation, 1);
  // Subscribe before reading the lists, so that no change is missed after a list has been read. See
  // changes_missed() for connections that do not keep the order of messages.
  if (handle_ == handle && edge.stateless()) subscriptions_.listening().start(server_caps_);
  if (handle_ == handle) lists_.start_all();
}

// Some servers exit when they receive a request before initialize. Such a server is restarted
// immediately, but only once for each connection that has begun with server/discover, and
// initialize is then the first request. The exit does not count as a failure. Returns true if the
// server is restarted.
bool WireLane::ended_on_probe(const Error &error) {
  const bool ended = error.code == BH_E_UNAVAILABLE && state_ == LaneState::connecting;
  if (!ended || conversation_.edge() != nullptr || draining_ || !opening_.probing()) return false;
  upstream_.protocol.ended_on_probe();
  host_.log(BH_LOG_INFO, about("it exited when the gateway requested its protocol revision (" +
                               host_.without_credentials(error.text).value_or("reason unknown") +
                               "); it is being restarted and opened with initialize"));
  losing_ = true;
  drop_wire();
  fail_exchanges(error, false);
  losing_ = false;
  connect();
  return true;
}

}  // namespace bulkhead
