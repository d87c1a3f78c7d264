#include "link/server_stub.hpp"

#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"
#include "link/frames.hpp"
#include "link/texts.hpp"
#include "reactor/post_owned.hpp"

namespace bulkhead::link {
namespace {

// Returns the error message for a plugin that this process does not run. During a reload, the
// client stub may refer to a plugin that only the next or the previous process runs.
std::string absent(std::string_view id) {
  return "this compartment is not running plugin \"" + std::string(id) + "\"";
}

// Removes the headers from the start of a payload. Returns false if they violate the protocol.
bool take_headers(std::uint32_t bytes, std::string_view *payload, std::vector<bh_header> *out) {
  if (bytes == 0) return true;
  HeadersText text;
  if (bytes > max_header_bytes || bytes > payload->size()) return false;
  if (!from_bytes(payload->substr(0, bytes), &text)) return false;
  payload->remove_prefix(bytes);
  for (const auto &[name, value] : text.headers) out->push_back({bh::str(name), bh::str(value)});
  return bh::check_headers(*out, nullptr) == BH_OK;
}

LaneFailure to_failure(const bh_error &error) {
  return {{error.code, std::string(bh::text(error))}, error.retry_after_ms};
}

void send_failure(Channel &channel, Frame frame, const LaneFailure &failure) {
  frame.code = static_cast<std::uint32_t>(failure.error.code);
  frame.value = failure.retry_after_ms;
  const FailureText text{failure.error.text,
                         failure.scope,
                         {failure.challenges.begin(), failure.challenges.end()},
                         failure.http_status};
  channel.send(frame, to_bytes(text));
}

}  // namespace

struct ServerStub::Lane final : Channel::Receiver {
  ServerStub *stub = nullptr;
  bh_lane handle = 0;
  const ServedPlugin *plugin = nullptr;
  void *wire = nullptr;  // from the plugin; null if not open yet, or closing
  bool closing = false;  // lane_close() was called, and the plugin has not called lane_closed yet
  std::unique_ptr<Channel> channel;

  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    if (frame.kind == FrameKind::lane_close) return stub->close(*this);
    if (wire == nullptr) return;
    switch (frame.kind) {
      case FrameKind::lane_send:
      case FrameKind::lane_initialize:
      case FrameKind::lane_repeatable:
        return pass_on(frame, payload);
      case FrameKind::lane_ready:
        return plugin->connector->lane_ready(plugin->self, wire, bh::str(payload));
      case FrameKind::lane_abandon:
        return plugin->connector->lane_abandon(plugin->self, wire, frame.exchange);
      default:
        return;
    }
  }
  void closed(Channel &, std::string_view) override { stub->close(*this); }

  void pass_on(const Frame &frame, std::string_view payload) {
    bh_error error = bh::make_error();
    std::vector<bh_header> headers;
    if (!take_headers(header_bytes(frame.code), &payload, &headers)) {
      bh::fail(&error, BH_E_INVALID, "cannot parse the message headers");
      if (message_kind(frame.code) == BH_LANE_REQUEST) {
        stub->exchange_failed(handle, frame.exchange, to_failure(error));
      }
      return;
    }
    const bh_str part = bh::str(payload);
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = message_kind(frame.code);
    message.headers = headers.data();
    message.header_count = static_cast<std::uint32_t>(headers.size());
    message.exchange = frame.exchange;
    message.deadline_ns = frame.value;
    message.flags = frame.kind == FrameKind::lane_initialize   ? BH_LANE_INITIALIZE
                    : frame.kind == FrameKind::lane_repeatable ? BH_LANE_REPEATABLE
                                                               : 0;
    message.part_count = 1;
    message.parts = &part;
    const bh_lane lane = handle;
    ServerStub &owner = *stub;
    if (plugin->connector->lane_send(plugin->self, wire, &message, &error) == BH_OK) return;
    // The client stub receives the plugin's immediate error as a failed exchange.
    if (message.kind == BH_LANE_REQUEST)
      owner.exchange_failed(lane, frame.exchange, to_failure(error));
  }
};

struct ServerStub::TrunkReceiver final : Channel::Receiver {
  explicit TrunkReceiver(ServerStub &owner) : stub(owner) {}
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd fd) override {
    stub.on_trunk(frame, payload, std::move(fd));
  }
  void closed(Channel &, std::string_view) override {
    const auto on_lost = std::exchange(stub.on_lost_, nullptr);
    stub.trunk_lost();
    if (on_lost) on_lost();
  }
  ServerStub &stub;
};

ServerStub::ServerStub(Reactor &reactor, const bh_limits &limits,
                       const std::vector<ServedPlugin> &plugins,
                       const std::map<std::string, std::string> &definitions)
    : reactor_(reactor),
      limits_(limits),
      plugins_(plugins),
      definitions_(definitions),
      receiver_(std::make_unique<TrunkReceiver>(*this)) {}

ServerStub::~ServerStub() {
  reactor_.forget(this);
}

const ServedPlugin *ServerStub::find(std::uint32_t number) const {
  return number < plugins_.size() ? &plugins_[number] : nullptr;
}

std::optional<std::uint32_t> ServerStub::find(std::string_view id) const {
  for (std::uint32_t number = 0; number < plugins_.size(); ++number) {
    if (plugins_[number].id == id) return number;
  }
  return std::nullopt;
}

// ---- the trunk -------------------------------------------------------------------------------

void ServerStub::attach(OwnedFd trunk, std::function<void()> on_lost) {
  if (trunk_ != nullptr) trunk_lost();
  on_lost_ = std::move(on_lost);
  trunk_ = std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_,
                                     limits_.message_bytes + 4096, limits_.write_queue_bytes, true);
  if (draining_) return send_draining();  // the next process sends its lists
  for (std::uint32_t number = 0; number < plugins_.size(); ++number) send_plugin(number);
}

void ServerStub::drain() {
  draining_ = true;
  if (trunk_ != nullptr) send_draining();
}

void ServerStub::send_draining() {
  calls_ended_ = false;
  Frame frame;
  frame.kind = FrameKind::calls_draining;
  trunk_->send(frame);
}

bool ServerStub::drained() const {
  if (trunk_ == nullptr || !trunk_->open()) return true;
  return calls_ended_ && by_exchange_.empty() && trunk_->queued() == 0;
}

void ServerStub::trunk_lost() {
  trunk_.reset();
  close_lanes();
  by_exchange_.clear();
  std::vector<std::pair<bh_call, Call>> calls;
  calls_.for_each([&](bh_call id, Call &call) {
    if (!call.cancelled) calls.emplace_back(id, call);
    call.cancelled = true;
    call.wanted = false;
  });
  bh_cancel cancel{};
  cancel.size = sizeof cancel;
  cancel.reason = BH_CANCEL_HOST_LOST;
  for (const auto &[id, call] : calls) {
    if (calls_.get(id) == nullptr) continue;  // completed by an earlier call_cancel()
    const ServedPlugin &plugin = plugins_[call.plugin];
    if (plugin.tools != nullptr) plugin.tools->call_cancel(plugin.self, id, &cancel);
  }
  end_subscriptions();
}

void ServerStub::on_trunk(const Frame &frame, std::string_view payload, OwnedFd fd) {
  switch (frame.kind) {
    case FrameKind::lane_open:
      if (fd) open_lane(frame, payload, std::move(fd));
      return;
    case FrameKind::call_begin:
      return begin_call(frame, payload);
    case FrameKind::call_cancel:
      return cancel_call(frame, payload);
    case FrameKind::calls_ended:
      calls_ended_ = draining_;
      return;
    case FrameKind::tools_wanted:
      if (draining_) return;  // the next process sends its lists
      if (const auto number = find(payload)) send_plugin(*number);
      return;
    default:
      return;
  }
}

// ---- lanes -----------------------------------------------------------------------------------

void ServerStub::open_lane(const Frame &frame, std::string_view payload, OwnedFd socket) {
  auto lane = std::make_shared<Lane>();
  lane->stub = this;
  lane->channel = std::make_unique<Channel>(
      reactor_, std::move(socket), *lane, limits_.message_bytes, limits_.write_queue_bytes, false);
  lane->channel->accept(limits_.message_bytes + max_header_bytes);
  if (lanes_.size() >= max_lanes) return refuse_lane(*lane->channel);
  const bh_lane handle = lane->handle = lanes_.insert(lane);
  LaneText text;
  bh_error error = bh::make_error();
  if (!from_bytes(payload, &text)) {
    bh::fail(&error, BH_E_INVALID, "cannot parse the connection request");
    return lane_down(handle, to_failure(error));
  }
  if (find_wire(frame, text, *lane, &error) != BH_OK) lane_down(handle, to_failure(error));
}

bh_status ServerStub::find_wire(const Frame &frame, const LaneText &text, Lane &lane,
                                bh_error *error) {
  const auto number = find(text.plugin);
  if (!number) return bh::fail(error, BH_E_UNAVAILABLE, absent(text.plugin));
  const ServedPlugin &plugin = plugins_[*number];
  if (plugin.connector == nullptr) {
    return bh::fail(error, BH_E_UNAVAILABLE,
                    plugin.failure.empty() ? "the plugin is not a connector" : plugin.failure);
  }
  const auto definition = definitions_.find(text.server);
  if (definition == definitions_.end()) {
    return bh::fail(error, BH_E_NOT_FOUND, "this compartment does not have that server");
  }
  lane.plugin = &plugin;
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str(text.server);
  info.definition = bh::str(definition->second);
  info.connect_timeout_ms = frame.value;
  void *wire = nullptr;
  const bh_status status =
      plugin.connector->lane_open(plugin.self, lane.handle, &info, &wire, error);
  if (status == BH_OK) lane.wire = wire;
  return status;
}

// Reports to the client stub that the lane is rejected. The caller closes the lane's socket.
void ServerStub::refuse_lane(Channel &lane) {
  Frame frame;
  frame.kind = FrameKind::lane_down;
  frame.code = static_cast<std::uint32_t>(BH_E_LIMIT);
  FailureText text;
  text.error = "this compartment has too many connections to servers";
  lane.send(frame, to_bytes(text));
  lane.flush();
}

void ServerStub::close(Lane &lane) {
  const std::shared_ptr<Lane> *held = lanes_.get(lane.handle);
  if (held == nullptr) return;
  const std::shared_ptr<Lane> keep = *held;
  if (void *wire = std::exchange(lane.wire, nullptr); wire != nullptr) {
    lane.closing = true;
    return lane.plugin->connector->lane_close(lane.plugin->self, wire);  // lane_closed follows
  }
  if (!lane.closing) lane_closed(lane.handle);  // the plugin never opened it
}

void ServerStub::close_lanes() {
  std::vector<std::shared_ptr<Lane>> lanes;
  lanes_.for_each([&](bh_lane, std::shared_ptr<Lane> &lane) { lanes.push_back(lane); });
  for (const auto &lane : lanes) {
    if (lane->wire != nullptr) close(*lane);
  }
}

void ServerStub::message(bh_lane handle, std::uint64_t exchange, std::string_view message) {
  const std::shared_ptr<Lane> *lane = lanes_.get(handle);
  if (lane == nullptr || (*lane)->wire == nullptr) return;
  Frame frame;
  frame.kind = FrameKind::lane_message;
  frame.exchange = exchange;
  if ((*lane)->channel->send(frame, message) != BH_E_LIMIT) return;
  const LaneFailure full{BH_E_LIMIT,
                         "its response queue is full because the gateway does not read it"};
  if (exchange != 0) return exchange_failed(handle, exchange, full);
  lane_down(handle, full);
}

void ServerStub::exchange_failed(bh_lane handle, std::uint64_t exchange,
                                 const LaneFailure &failure) {
  const std::shared_ptr<Lane> *lane = lanes_.get(handle);
  if (lane == nullptr) return;
  Frame frame;
  frame.kind = FrameKind::lane_failed;
  frame.exchange = exchange;
  send_failure(*(*lane)->channel, frame, failure);
}

void ServerStub::lane_down(bh_lane handle, const LaneFailure &failure) {
  const std::shared_ptr<Lane> *lane = lanes_.get(handle);
  if (lane == nullptr) return;
  Frame frame;
  frame.kind = FrameKind::lane_down;
  send_failure(*(*lane)->channel, frame, failure);
}

void ServerStub::lane_closed(bh_lane handle) {
  const std::shared_ptr<Lane> *held = lanes_.get(handle);
  if (held == nullptr) return;
  const std::shared_ptr<Lane> lane = *held;
  Frame frame;
  frame.kind = FrameKind::lane_closed;
  lane->channel->send(frame);
  lane->channel->flush();
  lanes_.erase(handle);
}

// ---- tools -----------------------------------------------------------------------------------

void ServerStub::send_plugin(std::uint32_t number) {
  const ServedPlugin &plugin = plugins_[number];
  Frame frame;
  frame.plugin = number;
  frame.kind = FrameKind::plugin_named;
  trunk_->send(frame, plugin.id);
  if (!plugin.failure.empty()) {
    frame.kind = FrameKind::plugin_failed;
    trunk_->send(frame, plugin.failure);
  } else if (plugin.tools != nullptr) {
    send_lists(number);
  }
}

// Sends all lists of a tools plugin. tools_listed follows only if all lists were sent, because it
// clears an earlier failure at the client stub.
void ServerStub::send_lists(std::uint32_t number) {
  const ServedPlugin &plugin = plugins_[number];
  bool all = true;
  for (std::uint32_t kind = BH_LIST_TOOLS; kind <= BH_LIST_PROMPTS; ++kind) {
    all = send_list(number, kind) && all;
  }
  if (!all) return void(unlisted_.insert(number));
  unlisted_.erase(number);
  Frame frame;
  frame.plugin = number;
  frame.kind = FrameKind::tools_listed;
  const bool more = BH_HAS(bh_tools, plugin.tools, features) && plugin.tools->features != nullptr;
  frame.code = more ? plugin.tools->features(plugin.self) : 0;
  trunk_->send(frame);
}

// Returns false if the list is not available. If list() is pending, the plugin reports a change
// later, so only a failure is reported to the client stub.
bool ServerStub::send_list(std::uint32_t number, std::uint32_t kind) {
  const ServedPlugin &plugin = plugins_[number];
  bh_buf buf{};
  bh_error error = bh::make_error();
  bh_list_info info{};  // all clients share the list
  info.size = sizeof info;
  info.kind = kind;
  const bh_status status = plugin.tools->list(plugin.self, &info, &buf, &error);
  const bh::Buf owned(buf);
  Frame frame;
  frame.plugin = number;
  if (status == BH_PENDING) return false;
  if (status != BH_OK && status != BH_E_UNSUPPORTED) {
    frame.kind = FrameKind::plugin_failed;
    trunk_->send(frame, bh::text(error));
    return false;
  }
  frame.kind = FrameKind::tools_list;
  frame.code = kind;
  frame.value = status == BH_OK ? 1 : 0;
  trunk_->send(frame, owned.view());
  return true;
}

void ServerStub::list_changed(std::uint32_t number, std::uint32_t kind) {
  const ServedPlugin *plugin = find(number);
  if (trunk_ == nullptr || plugin == nullptr || plugin->tools == nullptr) return;
  if (kind < BH_LIST_TOOLS || kind > BH_LIST_PROMPTS) return;
  if (unlisted_.contains(number)) return send_lists(number);
  if (!send_list(number, kind)) return void(unlisted_.insert(number));
  Frame frame;
  frame.kind = FrameKind::tools_changed;
  frame.plugin = number;
  frame.code = kind;
  trunk_->send(frame);
}

void ServerStub::resource_updated(std::uint32_t number, std::string_view uri) {
  if (trunk_ == nullptr || find(number) == nullptr) return;
  Frame frame;
  frame.kind = FrameKind::resource_updated;
  frame.plugin = number;
  trunk_->send(frame, uri);
}

// Records a subscribe or unsubscribe request. Returns false if the subscription limit has been
// reached.
bool ServerStub::note_subscription(std::uint32_t plugin, const CallText &text) {
  if (text.method == "resources/unsubscribe") {
    subscriptions_.erase({plugin, std::string(text.name)});
  }
  if (text.method != "resources/subscribe") return true;
  if (subscriptions_.size() >= max_subscriptions) return false;
  subscriptions_.emplace(plugin, text.name);
  return true;
}

// Ends all subscriptions after the client stub has disconnected. The next client stub subscribes
// again.
void ServerStub::end_subscriptions() {
  for (const auto &[number, uri] : std::exchange(subscriptions_, {})) {
    const ServedPlugin &plugin = plugins_[number];
    const bh_call call = calls_.insert({0, number, false});
    bh_call_info info{};
    info.size = sizeof info;
    info.method = bh::str("resources/unsubscribe");
    info.name = bh::str(uri);
    bh_error error = bh::make_error();
    const bh_status status = plugin.tools->call_begin(plugin.self, call, &info, &error);
    if (status != BH_OK && status != BH_PENDING) calls_.erase(call);
  }
}

// Starts a call or reports why it cannot be started. The client stub waits for a response to every
// call, so no call may be dropped.
void ServerStub::begin_call(const Frame &frame, std::string_view payload) {
  if (draining_ && trunk_ != nullptr) {
    Frame later;
    later.kind = FrameKind::call_refused;
    later.exchange = frame.exchange;
    later.code = static_cast<std::uint32_t>(BH_WOULD_BLOCK);
    later.plugin = frame.code;
    later.value = frame.value;
    trunk_->send(later, payload);
    return;
  }
  bh_error error = bh::make_error();
  const bh_status status = call_plugin(frame, payload, &error);
  if (status == BH_OK) return expect_completed(frame.exchange);
  if (status == BH_PENDING || trunk_ == nullptr) return;
  Frame refused;
  refused.kind = FrameKind::call_refused;
  refused.exchange = frame.exchange;
  refused.code = static_cast<std::uint32_t>(status);
  trunk_->send(refused, bh::text(error));
}

// Called if the plugin's call function has reported that the call is complete. If the result was
// reported on another thread, it has already been posted and is handled before the function posted
// here.
void ServerStub::expect_completed(std::uint64_t exchange) {
  const auto at = by_exchange_.find(exchange);
  if (at == by_exchange_.end()) return;
  post_owned(reactor_, this, [this, call = at->second] {
    const Call *found = calls_.get(call);
    if (found == nullptr) return;
    const Call unfinished = *found;
    calls_.erase(call);
    if (!unfinished.wanted || trunk_ == nullptr) return;
    by_exchange_.erase(unfinished.exchange);
    Frame refused;
    refused.kind = FrameKind::call_refused;
    refused.exchange = unfinished.exchange;
    refused.code = static_cast<std::uint32_t>(BH_E_PROTOCOL);
    trunk_->send(refused, "the plugin returned BH_OK without a result: it did not call complete()");
  });
}

bh_status ServerStub::call_plugin(const Frame &frame, std::string_view payload, bh_error *error) {
  CallText text;
  if (!from_bytes(payload, &text)) {
    return bh::fail(error, BH_E_INVALID, "cannot parse the call");
  }
  const auto number = find(text.plugin);
  if (!number) return bh::fail(error, BH_E_UNAVAILABLE, absent(text.plugin));
  const ServedPlugin &plugin = plugins_[*number];
  if (plugin.tools == nullptr) {
    return bh::fail(error, BH_E_UNAVAILABLE,
                    plugin.failure.empty() ? "the plugin has no tools" : plugin.failure);
  }
  if (calls_.size() >= max_calls) {
    return bh::fail(error, BH_E_LIMIT, "this compartment has too many calls in flight");
  }
  if (!note_subscription(*number, text)) {
    return bh::fail(error, BH_E_LIMIT, "this compartment has too many subscriptions");
  }
  const bh_call call = calls_.insert({frame.exchange, *number, true});
  by_exchange_[frame.exchange] = call;
  bh_call_info info{};
  info.size = sizeof info;
  info.flags = frame.code;
  info.method = bh::str(text.method);
  info.name = bh::str(text.name);
  info.arguments = bh::str(text.arguments);
  info.deadline_ns = frame.value;
  info.session = text.session;
  info.principal = bh::str(text.principal);
  info.traceparent = bh::str(text.traceparent);
  info.input_responses = bh::str(text.input_responses);
  info.request_state = bh::str(text.request_state);
  const bh_status status = plugin.tools->call_begin(plugin.self, call, &info, error);
  if (status == BH_OK || status == BH_PENDING) return status;
  calls_.erase(call);
  by_exchange_.erase(frame.exchange);
  if (status < 0) return status;
  // The link has its own meaning for some positive values.
  return bh::fail(error, BH_E_INTERNAL, "the plugin returned the status " + std::to_string(status));
}

void ServerStub::cancel_call(const Frame &frame, std::string_view text) {
  const auto at = by_exchange_.find(frame.exchange);
  Call *const call = at == by_exchange_.end() ? nullptr : calls_.get(at->second);
  if (call == nullptr || call->cancelled) return;
  call->cancelled = true;
  const ServedPlugin &plugin = plugins_[call->plugin];
  bh_cancel cancel{};
  cancel.size = sizeof cancel;
  cancel.reason = frame.code;
  cancel.text = bh::str(bh::cut_text(text, BH_CANCEL_BYTES));
  plugin.tools->call_cancel(plugin.self, at->second, &cancel);
}

bh_status ServerStub::complete(bh_call id, std::uint32_t kind, std::string_view json) {
  const Call *found = calls_.get(id);
  if (found == nullptr) return BH_STALE;
  const Call call = *found;
  calls_.erase(id);
  if (!call.wanted || trunk_ == nullptr) return BH_STALE;
  by_exchange_.erase(call.exchange);
  Frame frame;
  frame.kind = FrameKind::call_complete;
  frame.plugin = call.plugin;
  frame.exchange = call.exchange;
  frame.code = kind;
  if (trunk_->send(frame, json) == BH_OK) return BH_OK;
  frame.kind = FrameKind::call_refused;
  frame.code = static_cast<std::uint32_t>(BH_E_LIMIT);
  trunk_->send(frame, "its result exceeds the message size limit, or too many results are queued");
  return BH_OK;
}

void ServerStub::progress(bh_call id, double value, double total, std::string_view message) {
  const Call *call = calls_.get(id);
  if (call == nullptr || !call->wanted || trunk_ == nullptr) return;
  Frame frame;
  frame.kind = FrameKind::call_progress;
  frame.plugin = call->plugin;
  frame.exchange = call->exchange;
  trunk_->send(frame, to_bytes(Progress{value, total, std::string(message)}));
}

void ServerStub::event(bh_call id, std::uint32_t kind, std::string_view detail) {
  const Call *call = calls_.get(id);
  if (call == nullptr || !call->wanted || trunk_ == nullptr) return;
  if (detail.size() > BH_EVENT_BYTES) return;
  Frame frame;
  frame.kind = FrameKind::call_event;
  frame.plugin = call->plugin;
  frame.exchange = call->exchange;
  frame.code = kind;
  trunk_->send(frame, detail);
}

}  // namespace bulkhead::link
