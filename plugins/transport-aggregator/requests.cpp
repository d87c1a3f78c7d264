// Handles the client's requests and the host's responses.
#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/cpp/messages.hpp>

#include <algorithm>
#include <utility>

#include "transport-aggregator/replies.hpp"
#include "transport-aggregator/transport_aggregator.hpp"

namespace transport_aggregator {
namespace {

namespace json = bh::json;

// The handshake declares no capabilities, because this client cannot handle server-initiated
// requests.
constexpr std::string_view initialize =
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
    R"("capabilities":{},"clientInfo":{"name":"aggregator","version":"0.1.0"}}})";
constexpr std::string_view initialized =
    R"({"jsonrpc":"2.0","method":"notifications/initialized"})";

// Added to the connect time-out of the servers, so that the failure of a server is reported first.
constexpr std::uint64_t connect_margin_ms = 1'000;

}  // namespace

void TransportAggregator::open_session() {
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.transport = bh::str("aggregator");
  bh_error error = bh::make_error();
  if (up_->session_open(host_.ctx(), &peer, &session_, &error) != BH_OK) {
    session_ = 0;
    return host_.log(BH_LOG_ERROR, "cannot open a session: " + std::string(bh::text(error)));
  }
  deliver(next_stream_++, std::string(initialize));
}

// ---- messages ----------------------------------------------------------------------------------

void TransportAggregator::on_message(std::string_view message) {
  std::string_view text;
  const char *why = bh::aggregator::decode_message(cutter_.codec(), message, &scratch_, &text);
  if (why == nullptr) {
    on_text(text);
  } else if (phase_ == Phase::definitions) {
    first_message({});
  } else {
    skipped(why);
  }
  if (scratch_.capacity() > bh::aggregator::max_line) scratch_ = std::string();
}

void TransportAggregator::on_text(std::string_view text) {
  if (phase_ == Phase::definitions) return first_message(text);
  handle(text);
}

// If the first message does not contain the definitions, the session ends, because without servers
// the replies to all later requests would be wrong.
void TransportAggregator::first_message(std::string_view text) {
  if (text.starts_with('[')) {
    phase_ = Phase::connecting;
    return replace(0, text, true);
  }
  host_.log(BH_LOG_ERROR, "the first message is not the array of server definitions");
  Request request;
  if (parse_request(text, &request).has_id) {
    fail(request.id, "the first message must be the array of server definitions");
  }
  end();
}

void TransportAggregator::skipped(const char *why) {
  if (skip_logs_ > max_skip_logs) return;
  std::string line = std::string("a message is skipped: ") + why;
  if (skip_logs_++ == max_skip_logs) line = "further skipped messages are not logged";
  host_.log(BH_LOG_WARN, line);
}

void TransportAggregator::handle(std::string_view text) {
  Request request;
  const RequestError error = parse_request(text, &request);
  if (error.what != nullptr) {
    if (!error.has_id) return skipped(error.what);
    return fail(request.id, error.what);
  }
  if (request.method == Method::shutdown) return shut_down(request.id);
  if (open_requests() >= max_open) {
    return fail(request.id, "more than " + std::to_string(max_open) +
                                " requests are pending; this request was not run");
  }
  if (request.method == Method::refresh) return replace(request.id, request.servers, false);
  if (phase_ == Phase::connecting || !initialized_) return wait(request.id, text);
  run(request, text);
}

void TransportAggregator::run(const Request &request, std::string_view text) {
  if (request.method <= Method::list_prompts) return list(request, text);
  forward(request);
}

void TransportAggregator::wait(std::uint64_t id, std::string_view text) {
  if (waiting_bytes_ + text.size() > up_->limits->message_bytes) {
    return fail(id, "too many bytes of requests are queued; this request was not run");
  }
  waiting_bytes_ += text.size();
  waiting_.push_back({id, std::string(text)});
}

void TransportAggregator::run_waiting() {
  retry_timer_ = 0;
  if (phase_ != Phase::serving || !initialized_) return;
  for (std::size_t n = waiting_.size(); n > 0 && !waiting_.empty(); --n) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= next.text.size();
    Request request;
    parse_request(next.text, &request);
    run(request, next.text);
  }
  flush_later();
}

// ---- the methods -------------------------------------------------------------------------------

void TransportAggregator::list(const Request &request, std::string_view text) {
  bh_buf listed{};
  bh_error error = bh::make_error();
  const std::uint32_t kind = listed_kind(request.method);
  const bh_status status = kind == 0
                               ? control_->list_servers(host_.ctx(), &listed, &error)
                               : control_->list_items(host_.ctx(), session_, kind, &listed, &error);
  if (status == BH_WOULD_BLOCK) {  // the list may become available soon
    if (retry_timer_ == 0) {
      retry_timer_ = host_.timer_start(
          retry_ms, bh::contained_callback<&TransportAggregator::run_waiting>(this));
    }
    return wait(request.id, text);
  }
  if (status != BH_OK) return fail(request.id, bh::text(error));
  const bh::Buf owned(listed);
  queue(kind == 0 ? servers_reply(request.id, owned.view())
                  : items_reply(request.id, request.method, owned.view()));
}

void TransportAggregator::replace(std::uint64_t id, std::string_view servers, bool first) {
  std::vector<std::string> notes;
  const std::string definitions = translate_definitions(servers, slow_, &notes);
  for (const std::string &note : notes) host_.log(BH_LOG_WARN, note);
  replacing_.push_back(std::make_unique<Replacing>(Replacing{this, id, first}));
  bh_error error = bh::make_error();
  const bh_status status = control_->replace_servers(
      host_.ctx(), bh::str(definitions), up_->limits->connect_timeout_ms + connect_margin_ms,
      replaced, replacing_.back().get(), &error);
  if (status == BH_PENDING) return;
  replacing_.pop_back();
  if (!first) return fail(id, bh::text(error));
  host_.log(BH_LOG_ERROR, "the server definitions were rejected: " + std::string(bh::text(error)));
  end();
}

// Called by the host on the reactor thread when it has replaced the servers.
void TransportAggregator::replaced(void *arg, bh_str report) {
  bh::guarded(nullptr, [&] {
    const Replacing done = *static_cast<Replacing *>(arg);
    TransportAggregator &self = *done.self;
    std::erase_if(self.replacing_, [arg](const auto &each) { return each.get() == arg; });
    self.log_report(bh::view(report));
    if (self.phase_ == Phase::ended) return BH_OK;
    if (!done.first) {
      self.queue(reply(done.id, "ok", "true"));
    } else {
      self.phase_ = Phase::serving;
      self.run_waiting();
    }
    self.flush_later();
    return BH_OK;
  });
}

// Logs skipped definitions, which list_servers does not show. Failed servers are not logged,
// because list_servers shows them.
void TransportAggregator::log_report(std::string_view report) const {
  if (!json::valid(report)) return;
  json::for_each_element(json::member(report, "refused"), [this](std::string_view entry) {
    const std::string_view name = json::member(entry, "name");
    const std::string_view reason = json::member(entry, "reason");
    if (!name.starts_with('"') || !reason.starts_with('"')) return true;
    host_.log(BH_LOG_WARN, "server " + std::string(name) + " is skipped: " + json::unquote(reason));
    return true;
  });
}

void TransportAggregator::forward(const Request &request) {
  const std::uint64_t stream = next_stream_++;
  std::string message = R"({"jsonrpc":"2.0","id":)" + std::to_string(stream) + R"(,"method":")";
  switch (request.method) {
    case Method::call_tool:
      message += R"(tools/call","params":{"name":)";
      break;
    case Method::read_resource:
      message += R"(resources/read","params":{"uri":)";
      break;
    default:
      message += R"(prompts/get","params":{"name":)";
  }
  message += request.target;
  if (!request.arguments.empty()) message.append(R"(,"arguments":)").append(request.arguments);
  message += "}}";
  open_.emplace(stream, Open{request.id, request.method});
  deliver(stream, message);
}

void TransportAggregator::deliver(std::uint64_t stream, const std::string &message) {
  bh_delivery delivery{};
  delivery.size = sizeof delivery;
  const bh_incoming incoming = bh::incoming(session_, stream, message);
  const bh_status status = up_->deliver(host_.ctx(), &incoming, &delivery);
  if (status == BH_OK) return;
  const auto at = open_.find(stream);
  if (at == open_.end()) return;
  const std::uint64_t id = at->second.id;
  open_.erase(at);
  fail(id, "the aggregator's session is closed");
}

// Replies may be sent out of order, because clients match them to requests by ID.
bh_status TransportAggregator::send(const bh_outgoing &message) {
  if (session_ == 0 || message.session != session_) return BH_STALE;
  if (message.kind != BH_OUT_ANSWER) return BH_OK;  // the protocol has no events
  std::string text;
  for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
  const std::string_view result = json::member(text, "result");
  if (message.stream == handshake_stream) {
    initialized_ = !result.empty();
    if (!initialized_) {
      host_.log(BH_LOG_ERROR, "the handshake with the host failed");
      disconnected_ = true;  // deferred, because the host is calling this function
      flush_later();
      return BH_OK;
    }
    deliver(0, std::string(initialized));
    run_waiting();
    return BH_OK;
  }
  const auto at = open_.find(message.stream);
  if (at == open_.end()) return BH_OK;
  const std::uint64_t id = at->second.id;
  open_.erase(at);
  const std::string_view why = json::member(json::member(text, "error"), "message");
  if (!result.empty()) {
    queue(reply(id, "result", result));
  } else if (why.starts_with('"')) {
    queue(reply(id, "error", why));
  } else {
    fail(id, "the request ended without a response");
  }
  return BH_OK;
}

void TransportAggregator::fail(std::uint64_t id, std::string_view why) {
  queue(error_reply(id, why));
}

void TransportAggregator::fail_all(std::string_view why) {
  for (const auto &[stream, open] : std::exchange(open_, {})) fail(open.id, why);
  for (const Waiting &waiting : std::exchange(waiting_, {})) fail(waiting.id, why);
  waiting_bytes_ = 0;
  for (const auto &replacing : replacing_) {  // not erased, because the host has their addresses
    if (!replacing->first) fail(replacing->id, why);
  }
}

void TransportAggregator::shut_down(std::uint64_t id) {
  queue(reply(id, "ok", "true"));
  fail_all("the aggregator is shutting down");
  end();
}

}  // namespace transport_aggregator
