#include "route/wire_lane.hpp"

#include <algorithm>
#include <utility>

#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_pages = 10'000;
// A server that was lost or did not start so often in a row is not started for a call any more.
constexpr std::uint32_t max_crashes = 3;
constexpr std::uint32_t max_list_failures = 5;  // of a connection's first tools/list
// A connection that stood this long ends a series of failures: the next loss is retried at once.
constexpr std::uint64_t steady_ns = 10'000'000'000u;

// Takes the page that begins at item `second` off again if it is the same as the one at `first`.
void drop_repeated_page(ItemList *list, std::size_t first, std::size_t second) {
  const auto bytes_from = [list](std::size_t item) {
    return item < list->items.size() ? list->items[item].raw.begin
                                     : static_cast<std::uint32_t>(list->bytes.size());
  };
  const std::string_view bytes = list->bytes;
  const std::uint32_t at = bytes_from(second);
  if (bytes.substr(bytes_from(first), at - bytes_from(first)) != bytes.substr(at)) return;
  list->bytes.resize(at);
  list->items.resize(second);
}

std::uint64_t jitter(std::uint64_t ms) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return ms - ms / 4 + random() % (ms / 2 + 1);
}

}  // namespace

WireLane::~WireLane() {
  router_.reactor().forget(this);
}

// ---- connecting ------------------------------------------------------------------------------

void WireLane::start() {
  settled_ = false;
  connect();
}

bool WireLane::lazy() const {
  return upstream_.def().lazy;
}

void WireLane::connect() {
  state_ = LaneState::connecting;
  handshaken_ = false;
  first_lists_ = 0;
  log_level_sent = -1;
  list_failures_ = 0;
  for (Listing &listing : listings_) listing = {};
  const std::string definition = upstream_.def().to_json();
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str(upstream_.name());
  info.definition = bh::str(definition);
  info.connect_timeout_ms =
      upstream_.def().connect_timeout_ms.value_or(router_.limits().connect_timeout_ms);
  bh_error error = bh::make_error();
  handle_ = router_.register_wire(this);
  wire_ = nullptr;
  const bh_status status =
      upstream_.connector->lane_open(upstream_.self, handle_, &info, &wire_, &error);
  if (status != BH_OK) {
    router_.forget_wire(handle_);
    handle_ = 0;
    return attempt_failed({status, std::string(bh::text(error))}, error.retry_after_ms);
  }
  router_.lane_changed(*this);
  handshake();
}

void WireLane::handshake() {
  const std::uint64_t timeout =
      upstream_.def().connect_timeout_ms.value_or(router_.limits().connect_timeout_ms);
  Exchange *e = own_exchange(Purpose::handshake, mcp::Method::initialize, timeout);
  if (e == nullptr) return attempt_failed({BH_E_LIMIT, "too many exchanges are open"}, 0);
  const Digits id(e->id);
  const std::string caps = compose_client_caps(caps_);
  std::string text = R"({"jsonrpc":"2.0","id":)";
  text.append(id.view())
      .append(R"(,"method":"initialize","params":{"protocolVersion":")")
      .append(revisions[newest_revision])
      .append(R"(","capabilities":)")
      .append(caps)
      .append(R"(,"clientInfo":{"name":"bulkhead","version":")" BULKHEAD_VERSION "\"}}}");
  const bh_str part = bh::str(text);
  send_request(*e, &part, 1, BH_LANE_INITIALIZE);
}

void WireLane::handshake_answered(const mcp::Scan &scan, std::string_view message) {
  if (scan.kind == mcp::Kind::error) {
    return attempt_failed({BH_E_PROTOCOL, "refused initialize: " +
                                              std::string(scan.error.in(message).substr(0, 300))},
                          0);
  }
  const std::string_view result = scan.result.in(message);
  const bool object = result.starts_with('{');
  std::string scratch;
  const std::string_view version_token =
      object ? mcp::member(result, "protocolVersion") : std::string_view{};
  const std::string version(version_token.starts_with('"') ? mcp::unquote(version_token, &scratch)
                                                           : std::string_view{});
  if (!find_revision(version).has_value()) {
    return attempt_failed({BH_E_PROTOCOL, "speaks MCP revision \"" + version.substr(0, 40) +
                                              "\", which this gateway does not know"},
                          0);
  }
  const std::string_view caps = mcp::member(result, "capabilities");
  server_caps_ = parse_server_caps(caps.starts_with('{') ? caps : std::string_view("{}"));
  const std::string_view instructions = mcp::member(result, "instructions");
  instructions_ = instructions.starts_with('"')
                      ? std::string(mcp::unquote(instructions, &scratch).substr(0, 8192))
                      : std::string();
  handshaken_ = true;
  const bh_lane handle = handle_;  // a connector may lose the connection inside any call
  upstream_.connector->lane_ready(upstream_.self, wire_, bh::str(version));
  const bh_str initialized = bh::str(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  send(BH_LANE_NOTIFICATION, &initialized, 1);
  if (handle_ != handle) return;
  // All lists at once: one round trip, not four. The count is raised first, since a connector may
  // answer inside the call.
  std::array<bool, item_kinds> wanted = {server_caps_.tools, server_caps_.resources,
                                         server_caps_.resources, server_caps_.prompts};
  first_lists_ = 1;
  for (const bool want : wanted) first_lists_ += want ? 1 : 0;
  if (handle_ != handle) return;
  for (const ItemKind kind : all_item_kinds) {
    listings_[static_cast<std::size_t>(kind)].first = wanted[static_cast<std::size_t>(kind)];
  }
  for (const ItemKind kind : all_item_kinds) {
    if (!wanted[static_cast<std::size_t>(kind)]) {
      items_[static_cast<std::size_t>(kind)] = {};
    } else if (handle_ == handle) {
      start_listing(kind);
      // A change that was reported before this is in the answer.
    }
  }
  if (handle_ == handle && first_lists_ != 0 && --first_lists_ == 0) become_ready();
}

// ---- listing ---------------------------------------------------------------------------------

void WireLane::start_listing(ItemKind kind) {
  Listing &listing = listings_[static_cast<std::size_t>(kind)];
  if (listing.running) {
    listing.again = true;  // one more afterwards, however many changes were reported
    return;
  }
  const bool first = listing.first;
  listing = {};
  listing.first = first;
  listing.running = true;
  request_page(kind, {});
}

void WireLane::request_page(ItemKind kind, std::string_view cursor_token) {
  Exchange *e =
      own_exchange(Purpose::list, facts(kind).list_method, router_.limits().request_timeout_ms);
  if (e == nullptr) return listing_done(kind, false);
  e->list_kind = static_cast<std::uint8_t>(kind);
  listings_[static_cast<std::size_t>(kind)].cursor = cursor_token;
  const Digits id(e->id);
  std::string text = R"({"jsonrpc":"2.0","id":)";
  text.append(id.view()).append(R"(,"method":")").append(facts(kind).list_method_text).append("\"");
  if (!cursor_token.empty())
    text.append(R"(,"params":{"cursor":)").append(cursor_token).append("}");
  text.append("}");
  const bh_str part = bh::str(text);
  send_request(*e, &part, 1, 0);
}

void WireLane::page_answered(ItemKind kind, const mcp::Scan *scan, std::string_view message,
                             const Error *error) {
  Listing &listing = listings_[static_cast<std::size_t>(kind)];
  const std::string method(facts(kind).list_method_text);
  std::string failure;
  if (error != nullptr) {
    failure = error->text;
  } else if (scan->kind == mcp::Kind::error) {
    failure = method + " failed: " + std::string(scan->error.in(message).substr(0, 300));
  } else {
    const std::size_t page_at = listing.incoming.items.size();
    auto next = append_page(kind, scan->result.in(message), upstream_.def(), router_.limits(),
                            &listing.incoming);
    // A server that ignores cursors would send its one page for ever.
    const bool again =
        next.has_value() && next->has_value() && listing.pages != 0 && **next == listing.cursor;
    if (again) drop_repeated_page(&listing.incoming, listing.page_at, page_at);
    if (next.has_value() && next->has_value() && !again && ++listing.pages < max_pages) {
      listing.page_at = page_at;
      return request_page(kind, **next);
    }
    if (!next.has_value()) failure = next.error().text;
  }
  if (!failure.empty()) {
    router_.log(BH_LOG_WARN, "server \"" + upstream_.name() + "\": " + failure);
    // Without its tools a server is not there: better a visible failure that is retried than a
    // server that is "ready" with nothing. It is asked again first, since a new connection would
    // begin its warm-up anew.
    if (kind == ItemKind::tool && listing.first) {
      if (list_failures_++ < max_list_failures) return retry_list(failure);
      return attempt_failed({BH_E_PROTOCOL, failure}, 0);
    }
  }
  listing_done(kind, failure.empty());
}

void WireLane::retry_list(const std::string &reason) {
  listings_[static_cast<std::size_t>(ItemKind::tool)].running = false;
  state_ = LaneState::waiting;
  settled_ = true;
  reason_ = reason;
  ++failures_;
  schedule_retry(0);
  router_.lane_changed(*this);
}

void WireLane::listing_done(ItemKind kind, bool ok) {
  Listing &listing = listings_[static_cast<std::size_t>(kind)];
  ItemList &items = items_[static_cast<std::size_t>(kind)];
  listing.running = false;
  const bool first = std::exchange(listing.first, false);
  if (ok && !(items == listing.incoming)) {
    items = std::move(listing.incoming);
    items.bytes.shrink_to_fit();
    items.items.shrink_to_fit();
    if (!first) {
      router_.items_changed(*this);
      router_.lane_changed(*this);
    }
  } else if (!ok && first) {
    items = {};
  }
  listing.incoming = {};
  if (first && first_lists_ != 0 && --first_lists_ == 0) become_ready();
  if (listing.again && handle_ != 0) start_listing(kind);
}

void WireLane::list_changed(ItemKind kind) {
  if (handshaken_ && handle_ != 0) start_listing(kind);
}

void WireLane::inherit(const Lane &former) {
  if (!former.listed()) return;
  for (const ItemKind kind : all_item_kinds) {
    items_[static_cast<std::size_t>(kind)] = former.items(kind);
  }
  hide_tools(upstream_.def(), &items_[static_cast<std::size_t>(ItemKind::tool)]);
  server_caps_ = former.server_caps();
  instructions_ = former.instructions();
  listed_ = true;
  start_grace();
}

// What is hidden now goes at once, also out of a list that is just coming; what is no longer hidden
// comes with a new list.
void WireLane::redefined() {
  const auto tools = static_cast<std::size_t>(ItemKind::tool);
  Listing &listing = listings_[tools];
  if (hide_tools(upstream_.def(), &listing.incoming)) listing.page_at = 0;
  if (hide_tools(upstream_.def(), &items_[tools])) {
    router_.items_changed(*this);
    router_.lane_changed(*this);
  }
  list_changed(ItemKind::tool);
  pump();
}

void WireLane::become_ready() {
  state_ = LaneState::ready;
  settled_ = true;
  listed_ = true;
  reason_.clear();
  ready_since_ns_ = router_.reactor().now_ns();
  router_.reactor().timer_cancel(grace_timer_);
  router_.reactor().timer_cancel(retry_timer_);
  grace_timer_ = retry_timer_ = 0;
  router_.items_changed(*this);
  router_.lane_ready(*this);
  router_.lane_changed(*this);
  const bh_lane handle = handle_;
  pump();
  if (handle_ != handle) return;
  watch_idleness();
  upstream_.fill_pool(*this);
}

// ---- lazily ------------------------------------------------------------------------------------

bool WireLane::unknown() const {
  return lazy() && !listed_ && may_start_for_call();
}

// Without a connection: lazy and not needed so far, or lost a moment ago. After some losses in a
// row it is not the call that wants it back, but the call that kills it.
bool WireLane::may_start_for_call() const {
  if (handle_ != 0 || draining_ || failures_ >= max_crashes) return false;
  return sleeps() || (state_ == LaneState::waiting && (lazy() || restarts_ > 0));
}

void WireLane::start_for_call() {
  router_.reactor().timer_cancel(retry_timer_);
  retry_timer_ = 0;
  connect();
}

void WireLane::watch_idleness() {
  last_use_ns_ = router_.reactor().now_ns();
  if (!lazy() || upstream_.def().idle_stop_ms == 0 || idle_timer_ != 0) return;
  idle_timer_ = router_.reactor().timer_start(
      this, upstream_.def().idle_stop_ms,
      [](void *arg) {
        auto &self = *static_cast<WireLane *>(arg);
        self.idle_timer_ = 0;
        self.stop_if_idle();
      },
      this);
}

// What it lists stays listed, so that nobody sees that it has gone.
void WireLane::stop_if_idle() {
  if (state_ != LaneState::ready || !lazy()) return;
  const std::uint64_t bound = upstream_.def().idle_stop_ms * 1'000'000u;
  const std::uint64_t now = router_.reactor().now_ns();
  const bool used = exchanges.head != nullptr || !queue_.empty() || router_.is_subscribed(*this);
  if (used) last_use_ns_ = now;
  if (used || now - last_use_ns_ < bound) {
    const std::uint64_t last_use = last_use_ns_;
    watch_idleness();
    last_use_ns_ = last_use;
    return;
  }
  state_ = LaneState::idle;
  failures_ = 0;
  reason_.clear();
  drop_wire();
  router_.lane_changed(*this);
}

// ---- losing and regaining ----------------------------------------------------------------------

void WireLane::down(const Error &error, std::uint32_t retry_after_ms) {
  if (state_ == LaneState::closed) return;
  attempt_failed(error, retry_after_ms);
}

// This connection is over: because it never got ready, or because it was lost.
void WireLane::attempt_failed(const Error &error, std::uint32_t retry_after_ms) {
  const bool was_ready = state_ == LaneState::ready;
  const std::uint64_t now = router_.reactor().now_ns();
  if (was_ready) {
    ++restarts_;
    if (now - ready_since_ns_ >= steady_ns) failures_ = 0;
  } else {
    ++failures_;
  }
  state_ = LaneState::waiting;
  settled_ = true;
  reason_ = error.text;
  router_.log(BH_LOG_WARN, "server \"" + upstream_.name() + "\": " + reason_);
  // What was sent may have run and is never repeated; what was not sent waits for the retry, but
  // only where the connection stood before. A client may call again inside of this: such calls are
  // queued, and what is decided below is decided for them too.
  losing_ = true;
  drop_wire();
  fail_exchanges(error, !was_ready || draining_);
  losing_ = false;
  if (!draining_) regain(was_ready, retry_after_ms);
  router_.lane_changed(*this);
}

void WireLane::regain(bool was_ready, std::uint32_t retry_after_ms) {
  if (was_ready) ++failures_;
  if (lazy() && failures_ >= max_crashes) {
    reason_ += " (the third time in a row; it is not started again before a reload)";
    if (listed_) start_grace();
    return fail_exchanges({BH_E_UNAVAILABLE, reason_}, true);
  }
  if (!lazy() && was_ready) start_grace();
  const bool wanted = !queue_.empty() && may_start_for_call();
  const bool at_once = !lazy() && was_ready && failures_ == 1;
  if (wanted || at_once) return start_for_call();
  if (!lazy()) schedule_retry(retry_after_ms);
}

void WireLane::drop_wire() {
  if (handle_ == 0) return;
  const bh_lane handle = handle_;
  handle_ = 0;
  router_.detach_wire(handle);
  void *wire = wire_;
  wire_ = nullptr;
  router_.lane_lost(*this);
  upstream_.connector->lane_close(upstream_.self, wire);
}

void WireLane::fail_exchanges(const Error &error, bool also_queued) {
  const std::string text = "server \"" + upstream_.name() + "\": " + error.text;
  std::vector<std::uint64_t> ids;
  for (Exchange *e = exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->purpose != Purpose::call || e->sent || also_queued) ids.push_back(e->id);
  }
  pumping_ = true;  // nothing is sent while the lane is between connections
  for (const std::uint64_t id : ids) {
    Exchange *e = router_.exchanges().get(id);
    if (e == nullptr) continue;
    if (e->purpose == Purpose::call) {
      router_.fail_exchange(*e, code::internal_error, text, BH_OUTCOME_ERROR);
    } else {
      router_.drop(*e);
    }
  }
  pumping_ = false;
  std::erase_if(queue_,
                [this](const Queued &q) { return router_.exchanges().get(q.exchange) == nullptr; });
}

void WireLane::schedule_retry(std::uint32_t retry_after_ms) {
  const Limits &limits = router_.limits();
  const std::uint32_t doublings = std::min<std::uint32_t>(failures_ > 0 ? failures_ - 1 : 0, 16);
  const std::uint64_t backoff = std::min(limits.retry_min_ms << doublings, limits.retry_max_ms);
  const std::uint64_t delay = std::max<std::uint64_t>(
      jitter(backoff), std::min<std::uint64_t>(retry_after_ms, limits.retry_max_ms));
  router_.reactor().timer_cancel(retry_timer_);
  retry_timer_ = router_.reactor().timer_start(
      this, delay,
      [](void *arg) {
        auto &self = *static_cast<WireLane *>(arg);
        self.retry_timer_ = 0;
        if (self.state_ != LaneState::waiting) return;
        if (self.handle_ == 0) return self.connect();
        self.state_ = LaneState::connecting;
        self.start_listing(ItemKind::tool);
      },
      this);
}

// The tools of a lost server stay listed for a moment: most come back within it, and every client
// would otherwise fetch its list twice.
void WireLane::start_grace() {
  if (grace_timer_ != 0) return;
  grace_timer_ = router_.reactor().timer_start(
      this, router_.limits().grace_ms,
      [](void *arg) {
        auto &self = *static_cast<WireLane *>(arg);
        self.grace_timer_ = 0;
        if (self.state_ == LaneState::ready) return;
        self.listed_ = false;
        self.router_.items_changed(self);
        self.router_.lane_changed(self);
      },
      this);
}

void WireLane::close() {
  state_ = LaneState::closed;
  reason_ = "the gateway has closed it";
  fail_exchanges({BH_E_CANCELLED, "its connection is being closed"}, true);
  queue_.clear();
  router_.reactor().timer_cancel(retry_timer_);
  router_.reactor().timer_cancel(grace_timer_);
  router_.reactor().timer_cancel(idle_timer_);
  retry_timer_ = grace_timer_ = idle_timer_ = 0;
  drop_wire();
}

// ---- sending ---------------------------------------------------------------------------------

Exchange *WireLane::own_exchange(Purpose purpose, mcp::Method method, std::uint64_t timeout_ms) {
  Exchange *e = router_.exchanges().open();
  if (e == nullptr) return nullptr;
  e->purpose = purpose;
  e->method = method;
  e->start_ns = router_.reactor().now_ns();
  router_.attach(*e, *this);
  router_.arm(*e, timeout_ms);
  return e;
}

// False: not sent, and the exchange has ended. True says nothing about the exchange: the answer may
// have come inside.
bool WireLane::send_request(Exchange &e, const bh_str *parts, std::uint32_t count,
                            std::uint32_t flags) {
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = BH_LANE_REQUEST;
  message.exchange = e.id;
  message.deadline_ns = router_.reactor().now_ns() + e.timeout_ms * 1'000'000u;
  message.flags = flags;
  message.part_count = count;
  message.parts = parts;
  const std::uint64_t id = e.id;
  e.sent = true;
  ++in_flight;
  bh_error error = bh::make_error();
  const bh_status status = upstream_.connector->lane_send(upstream_.self, wire_, &message, &error);
  if (status == BH_OK) return true;
  Exchange *still = router_.exchanges().get(id);
  if (still == nullptr) return false;
  const Error failure{status, std::string(bh::text(error))};
  if (still->purpose == Purpose::call) {
    router_.fail_exchange(*still, status == BH_E_LIMIT ? code::timeout : code::internal_error,
                          "server \"" + upstream_.name() + "\": " + failure.text, BH_OUTCOME_ERROR);
  } else {
    own_answer(*still, nullptr, {}, &failure);
  }
  return false;
}

void WireLane::submit(Exchange &e, const Submission &submission) {
  const Digits id(e.id);
  Splice splice(submission.message);
  splice.replace(submission.scan->id, id.view());
  splice.replace(submission.target, submission.original_token);
  splice.replace(submission.scan->progress_token, id.view());
  if (!submission.arguments.empty()) {
    splice.replace(submission.scan->arguments, submission.arguments);
  }
  const bh_str *parts = splice.parts();
  last_use_ns_ = router_.reactor().now_ns();
  if (state_ == LaneState::ready && queue_.empty() && in_flight < upstream_.def().max_in_flight) {
    send_request(e, parts, splice.count(), 0);
    return;
  }
  const bool starts = may_start_for_call();
  if (!starts && (state_ == LaneState::waiting || state_ == LaneState::closed)) {
    return router_.fail_exchange(e, code::internal_error,
                                 "server \"" + upstream_.name() + "\" is not available: " + reason_,
                                 BH_OUTCOME_ERROR);
  }
  if (queue_.size() >= router_.limits().queued_per_server) {
    return router_.fail_exchange(e, code::timeout,
                                 "server \"" + upstream_.name() +
                                     "\" is busy: " + std::to_string(queue_.size()) +
                                     " calls wait already (limits.queued_per_server)",
                                 BH_OUTCOME_ERROR);
  }
  Queued &queued = queue_.emplace_back();
  queued.exchange = e.id;
  for (std::uint32_t i = 0; i < splice.count(); ++i) queued.bytes.append(bh::view(parts[i]));
  if (starts && !losing_) start_for_call();
}

void WireLane::pump() {
  if (pumping_ || queue_.empty() || state_ != LaneState::ready) return;
  pumping_ = true;
  while (!queue_.empty() && state_ == LaneState::ready &&
         in_flight < upstream_.def().max_in_flight) {
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    Exchange *e = router_.exchanges().get(next.exchange);
    if (e == nullptr) continue;
    const bh_str part = bh::str(next.bytes);
    send_request(*e, &part, 1, 0);
  }
  pumping_ = false;
}

void WireLane::retract(std::uint64_t exchange, bool sent, std::string_view reason,
                       const mcp::Scan *reason_scan) {
  if (!sent) {
    std::erase_if(queue_, [exchange](const Queued &q) { return q.exchange == exchange; });
    return;
  }
  if (handle_ == 0) return;
  const Digits id(exchange);
  if (reason_scan != nullptr) {
    Splice splice(reason);
    splice.replace(reason_scan->request_id, id.view());
    const bh_str *parts = splice.parts();
    send(BH_LANE_NOTIFICATION, parts, splice.count());
  } else {
    const bh_str parts[] = {
        bh::str(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)"),
        bh::str(id.view()), bh::str("}}")};
    send(BH_LANE_NOTIFICATION, parts, 3);
  }
  abandon(exchange);
}

void WireLane::abandon(std::uint64_t exchange) {
  if (handle_ != 0) upstream_.connector->lane_abandon(upstream_.self, wire_, exchange);
}

void WireLane::send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) {
  if (handle_ == 0) return;
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = kind;
  message.part_count = count;
  message.parts = parts;
  bh_error error = bh::make_error();
  if (upstream_.connector->lane_send(upstream_.self, wire_, &message, &error) != BH_OK) {
    router_.log(BH_LOG_WARN, "server \"" + upstream_.name() +
                                 "\": a message was lost: " + std::string(bh::text(error)));
  }
}

void WireLane::request_quietly(mcp::Method method, std::string_view params) {
  if (state_ != LaneState::ready) return;
  Exchange *e = own_exchange(Purpose::quiet, method, router_.limits().request_timeout_ms);
  if (e == nullptr) return;
  const Digits id(e->id);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"),
                          bh::str(id.view()),
                          bh::str(R"(,"method":")"),
                          bh::str(mcp::to_string(method)),
                          bh::str(R"(","params":)"),
                          bh::str(params),
                          bh::str("}")};
  send_request(*e, parts, 7, 0);
}

void WireLane::own_answer(Exchange &e, const mcp::Scan *scan, std::string_view message,
                          const Error *error) {
  const Purpose purpose = e.purpose;
  const auto kind = static_cast<ItemKind>(e.list_kind);
  router_.drop(e);
  if (purpose == Purpose::list) return page_answered(kind, scan, message, error);
  if (purpose != Purpose::handshake) return;
  if (error != nullptr) return attempt_failed(*error, 0);
  handshake_answered(*scan, message);
}

}  // namespace bulkhead
