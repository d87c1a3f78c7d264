#include "route/server_opening.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "bulkhead/cpp/clock.hpp"
#include "mcp/methods.hpp"
#include "route/lane_host.hpp"
#include "route/stateless_server_edge.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// Returns what the failure of an opening request shows about the server's protocol generation. Over
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

// Returns true for HTTP servers, and false for other types, which may be those of plugins.
bool uses_http(const ServerDef &def) {
  return def.type.empty() ? !def.url.empty() : def.type == "http";
}

constexpr std::int32_t header_mismatch = -32020;

bool has_code(std::string_view error, std::initializer_list<std::int32_t> codes) {
  const std::string_view token = mcp::member(error, "code");
  return std::any_of(codes.begin(), codes.end(),
                     [token](std::int32_t code) { return token == std::to_string(code); });
}

// Returns true if only servers without sessions respond to server/discover with this error. The
// error concerns the request itself, so initialize would not help.
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
// out. `last` is the error of the request that failed last. The server may have hung on
// server/discover.
bool hung_on_probe(const Opening &opening, const Error &last) {
  const bool both_sent = opening.probing() && !opening.watches_silence();
  return both_sent && last.code == BH_E_TIMEOUT && opening.error().code == BH_E_TIMEOUT;
}

}  // namespace

void ServerOpening::stop() {
  host_.reactor().timer_cancel(silence_timer_);
  silence_timer_ = 0;
  rechecking_ = false;
}

std::uint64_t ServerOpening::timeout_ms() const {
  return lane_.upstream().def().connect_timeout_ms.value_or(host_.limits().connect_timeout_ms);
}

void ServerOpening::start() {
  const std::uint64_t now_s = bh::unix_s();
  opening_.begin(lane_.upstream().protocol.first(now_s), lane_.upstream().protocol.second(now_s));
  since_ns_ = host_.reactor().now_ns();
  send();
}

// All opening requests for a connection share one connect time-out.
void ServerOpening::send() {
  const ServerEdge &edge = opening_.edge();
  const std::uint64_t passed_ms = (host_.reactor().now_ns() - since_ns_) / 1'000'000;
  const std::uint64_t whole_ms = timeout_ms();
  Exchange *e = wire_.own_exchange(Purpose::handshake, edge.opening_method(),
                                   whole_ms > passed_ms ? whole_ms - passed_ms : 1);
  if (e == nullptr) return owner_.attempt_failed({BH_E_LIMIT, "too many exchanges are open"}, 0);
  opening_.sending(e->id);
  const bh_lane handle = lane_.handle();
  wire_.send_own(*e, edge.opening_params(lane_.caps()),
                 edge.stateless() ? BH_LANE_REPEATABLE : BH_LANE_INITIALIZE,
                 conversation_.headers_for(edge, edge.opening_method()));
  if (lane_.handle() == handle && conversation_.edge() == nullptr) watch_silence();
}

void ServerOpening::recheck() {
  const bool possible = lane_.state() == LaneState::ready && conversation_.stateless();
  if (!possible || rechecking_ || !may_take_headers(lane_.upstream().def())) return;
  const ServerEdge &edge = *conversation_.edge();
  Exchange *e = wire_.own_exchange(Purpose::quiet, edge.opening_method(), timeout_ms());
  if (e == nullptr) return;
  rechecking_ = true;
  wire_.send_own(*e, edge.opening_params(lane_.caps()), BH_LANE_REPEATABLE,
                 conversation_.headers_for(edge, edge.opening_method()));
}

void ServerOpening::rechecked(const mcp::Scan *scan, std::string_view message, const Error *error) {
  rechecking_ = false;
  if (lane_.state() != LaneState::ready || conversation_.edge() == nullptr) return;
  const bool refused = error != nullptr ? error->code == BH_E_PROTOCOL
                       : scan->kind == mcp::Kind::error
                           ? denies_discover(scan->error.in(message))
                           : !conversation_.edge()->opened(scan->result.in(message)).has_value();
  if (refused) owner_.reopen();
}

bool ServerOpening::denies_sessions(const Message &answer) const {
  if (!conversation_.has_sessions() || !may_take_headers(lane_.upstream().def())) return false;
  return answer.scan->kind == mcp::Kind::error && supports_stateless(answer[answer.scan->error]);
}

// Over HTTP, initialize is sent only after half of the connect time-out: the connector may be
// waiting for the time in Retry-After before it sends server/discover again. If initialize overtook
// that request, a busy server that supports both generations could be opened with the older one.
void ServerOpening::watch_silence() {
  if (!opening_.watches_silence() || silence_timer_ != 0) return;
  const std::uint64_t half = timeout_ms() / 2;
  const std::uint64_t wait_ms =
      uses_http(lane_.upstream().def()) ? half : std::min(Opening::silence_ms, half);
  silence_timer_ =
      host_.reactor().timer_start(&lane_, wait_ms, bh::callback(this, [](ServerOpening &self) {
        self.silence_timer_ = 0;
        if (self.conversation_.edge() == nullptr && self.lane_.handle() != 0) {
          self.advance(self.opening_.silent(), 0);
        }
      }));
}

void ServerOpening::advance(Opening::Step step, std::uint32_t retry_after_ms) {
  switch (step) {
    case Opening::Step::wait:
      return;
    case Opening::Step::send:
      return send();
    case Opening::Step::fail:
      return owner_.attempt_failed(opening_.error(), retry_after_ms);
  }
}

void ServerOpening::answered(std::uint64_t exchange, const mcp::Scan *scan,
                             std::string_view message, const Error *error,
                             std::uint32_t retry_after_ms) {
  if (conversation_.edge() != nullptr || lane_.handle() == 0)
    return;  // the other request has decided, or there is no connection
  if (error != nullptr) {
    const Opening::Step step = opening_.refused(exchange, *error, meaning_of(error->code));
    if (step == Opening::Step::fail && hung_on_probe(opening_, *error) &&
        !may_take_headers(lane_.upstream().def())) {
      lane_.upstream().protocol.ended_on_probe();
    }
    return advance(step, retry_after_ms);
  }
  if (scan->kind == mcp::Kind::error) {
    const bool probe = opening_.edge_of(exchange).stateless();
    if (probe && supports_stateless(scan->error.in(message)) && opening_.repeat(exchange)) {
      return send();
    }
    if (probe && is_of_stateless_server(scan->error.in(message))) {
      return owner_.attempt_failed(rejection(exchange, *scan, message), 0);
    }
    return advance(opening_.refused(exchange, rejection(exchange, *scan, message),
                                    Opening::Refusal::no_generation),
                   retry_after_ms);
  }
  const ServerEdge &edge = opening_.edge_of(exchange);
  auto opened = edge.opened(scan->result.in(message));
  if (!opened) {
    return advance(opening_.refused(exchange, opened.error(), Opening::Refusal::no_generation),
                   retry_after_ms);
  }
  if (Exchange *other = host_.exchanges().get(opening_.other_than(exchange))) {
    const std::uint64_t id = other->id;
    lane_.abandon(id);
    if (Exchange *still = host_.exchanges().get(id)) host_.drop(*still);
  }
  if (lane_.handle() == 0) return;
  conversation_.begin(edge, opened->revision);
  host_.reactor().timer_cancel(silence_timer_);
  silence_timer_ = 0;
  if (opening_.certain()) lane_.upstream().protocol.decided(edge, opened->revision, bh::unix_s());
  owner_.opened_with(edge, *std::move(opened));
}

// The server's error may repeat credentials from the request. They are masked before the text is
// truncated to 300 bytes, because part of a credential would not be recognized.
Error ServerOpening::rejection(std::uint64_t exchange, const mcp::Scan &scan,
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

bool ServerOpening::ended_on_probe(const Error &error) {
  const bool ended = error.code == BH_E_UNAVAILABLE && lane_.state() == LaneState::connecting;
  if (!ended || conversation_.edge() != nullptr || lane_.draining() || !opening_.probing())
    return false;
  lane_.upstream().protocol.ended_on_probe();
  host_.log(BH_LOG_INFO,
            wire_.about("it exited when the gateway requested its protocol revision (" +
                        host_.without_credentials(error.text).value_or("reason unknown") +
                        "); it is being restarted and opened with initialize"));
  return true;
}

}  // namespace bulkhead
