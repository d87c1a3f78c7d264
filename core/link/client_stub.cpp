#include "link/client_stub.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"
#include "link/frames.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {
namespace {

constexpr std::size_t list_kinds = 4;
constexpr std::uint64_t close_margin_ms = 1'000;
constexpr std::string_view queue_full = "it reads too slowly: its queue is full";

std::uint32_t clamp_ms(std::uint64_t ms) {
  return ms > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(ms);
}

// Reads the failure in a lane_failed or lane_down frame. The sender may be compromised.
LaneFailure read_failure(const Frame &frame, std::string_view payload) {
  constexpr std::size_t most_bytes = 2 * BH_CHALLENGE_BYTES + 4096;  // with error and lengths
  FailureText text;
  if (payload.size() > most_bytes || !from_bytes(payload, &text)) {
    return {BH_E_PROTOCOL, "the reason could not be read"};
  }
  LaneFailure out({static_cast<bh_status>(frame.code),
                   std::string(bh::cut_text(text.error, sizeof(bh_error::text)))},
                  clamp_ms(frame.value));
  out.http_status = text.http_status;
  out.set_scope(text.scope);
  for (const std::string_view challenge : text.challenges) {
    if (!out.add_challenge(challenge)) break;
  }
  return out;
}

std::string archive_headers(std::span<const bh_header> headers) {
  HeadersText text;
  for (const bh_header &header : headers) {
    text.headers.emplace_back(bh::view(header.name), bh::view(header.value));
  }
  return to_bytes(text);
}

bh_status send_behind(Channel &channel, const Frame &frame, std::string_view archived,
                      const bh_lane_message &message) {
  std::vector<bh_str> parts{bh::str(archived)};
  parts.insert(parts.end(), message.parts, message.parts + message.part_count);
  return channel.send(frame, parts.data(), message.part_count + 1);
}

}  // namespace

struct ClientStub::Plugin {
  ClientStub *stub = nullptr;
  std::string id;
  std::optional<std::uint32_t> number;  // number on the current trunk, once assigned
  std::string failure;
  bool listed = false;
  std::uint32_t features = 0;  // valid once all lists have arrived
  struct List {
    bool has = false;
    std::string json;
  };
  std::array<List, list_kinds> lists;
};

struct ClientStub::Lane final : Channel::Receiver {
  ClientStub *stub = nullptr;
  Plugin *plugin = nullptr;
  bh_lane handle = 0;
  std::string server;
  std::uint64_t connect_timeout_ms = 0;
  std::unique_ptr<Channel> channel;
  OwnedFd server_end;  // set until it is sent to the server stub
  bool down = false, closing = false;
  std::uint64_t close_timer = 0;

  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    ClientStubEvents &events = stub->events_;
    switch (frame.kind) {
      case lane_message:
        if (!closing && !down) events.lane_message(handle, frame.exchange, payload);
        return;
      case lane_failed:
        if (!closing && !down) {
          events.lane_exchange_failed(handle, frame.exchange, read_failure(frame, payload));
        }
        return;
      case FrameKind::lane_down:
        return stub->lane_lost(*this, read_failure(frame, payload));
      case FrameKind::lane_closed:
        if (closing) stub->end_lane(*this);
        return;
      default:
        return;
    }
  }
  void closed(Channel &, std::string_view reason) override {
    if (closing) return stub->end_lane(*this);
    stub->lane_lost(*this, {BH_E_IO, stub->about(reason)});
  }
};

struct ClientStub::Trunk final : Channel::Receiver {
  explicit Trunk(ClientStub &owner) : stub(owner) {}
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    stub.on_trunk(*this, frame, payload);
  }
  void closed(Channel &, std::string_view reason) override { stub.trunk_lost(*this, reason); }
  ClientStub &stub;
  std::unique_ptr<Channel> channel;
  std::unordered_set<bh_call> calls;
};

ClientStub::ClientStub(Reactor &reactor, std::string compartment, const bh_limits &limits,
                       ClientStubEvents &events)
    : reactor_(reactor), compartment_(std::move(compartment)), limits_(limits), events_(events) {}

ClientStub::~ClientStub() {
  reactor_.forget(this);
}

std::string ClientStub::about(std::string_view what) const {
  return "compartment \"" + compartment_ + "\": " + std::string(what);
}

// ---- the trunk -------------------------------------------------------------------------------

void ClientStub::attach(OwnedFd trunk) {
  if (trunk_ != nullptr) {
    retire_trunk();
    lose_lanes({BH_E_IO, about("it was replaced")});
  }
  gave_up_.clear();
  for (auto &[id, plugin] : plugins_) plugin->failure.clear();
  trunk_ = std::make_unique<Trunk>(*this);
  trunk_->channel =
      std::make_unique<Channel>(reactor_, std::move(trunk), *trunk_, limits_.message_bytes + 4096,
                                limits_.write_queue_bytes, false);
  std::vector<Lane *> left;
  for (auto &[lane, owned] : lanes_) {
    if (lane->server_end && !lane->down && !hand_over(*lane)) left.push_back(lane);
  }
  for (Lane *lane : left) {
    if (lanes_.contains(lane)) lane_lost(*lane, {BH_E_LIMIT, about(queue_full)});
  }
  send_waiting();
}

// Queues a call for the compartment's next process. Returns false if too much is already queued.
bool ClientStub::wait(const Frame &frame, std::string_view payload) {
  if (waiting_.size() >= max_waiting ||
      waiting_bytes_ + payload.size() > limits_.write_queue_bytes) {
    return false;
  }
  waiting_.push_back({frame, std::string(payload)});
  waiting_bytes_ += payload.size();
  return true;
}

void ClientStub::send_waiting() {
  waiting_bytes_ = 0;
  for (const Waiting &one : std::exchange(waiting_, {})) {
    if (trunk_ != nullptr && trunk_->channel->send(one.frame, one.payload) == BH_OK) {
      trunk_->calls.insert(one.frame.exchange);
    } else {
      events_.call_failed(one.frame.exchange, {BH_E_LIMIT, about(queue_full)});
    }
  }
}

void ClientStub::fail_waiting(const Error &error) {
  waiting_bytes_ = 0;
  for (const Waiting &one : std::exchange(waiting_, {})) {
    events_.call_failed(one.frame.exchange, error);
  }
}

void ClientStub::give_up(const std::string &reason) {
  gave_up_ = about(reason);
  std::vector<Lane *> waiting;
  for (auto &[lane, owned] : lanes_) {
    if (lane->server_end && !lane->down) waiting.push_back(lane);
  }
  for (Lane *lane : waiting) {
    if (lanes_.contains(lane)) lane_lost(*lane, {BH_E_UNAVAILABLE, gave_up_});
  }
  for (auto &[id, plugin] : plugins_) plugin->failure = gave_up_;
  fail_waiting({BH_E_UNAVAILABLE, gave_up_});
}

// Stops sending new calls to the current process, which is about to exit. New calls wait for the
// next process.
void ClientStub::retire_trunk() {
  for (auto &[id, plugin] : plugins_) plugin->number.reset();
  ending_.push_back(std::move(trunk_));
  if (ending_.size() > max_ending) trunk_lost(*ending_.front(), "it was replaced");
}

void ClientStub::trunk_lost(Trunk &trunk, std::string_view reason) {
  if (&trunk == trunk_.get()) {
    const std::unique_ptr<Trunk> lost = std::move(trunk_);
    for (auto &[id, plugin] : plugins_) plugin->number.reset();
    fail_calls(*lost, reason);
    return lose_lanes({BH_E_IO, about(reason)});
  }
  const auto at = std::find_if(ending_.begin(), ending_.end(),
                               [&](const auto &one) { return one.get() == &trunk; });
  if (at == ending_.end()) return;
  const std::unique_ptr<Trunk> lost = std::move(*at);
  ending_.erase(at);
  fail_calls(*lost, reason);
}

void ClientStub::fail_calls(Trunk &trunk, std::string_view reason) {
  const Error error{BH_E_IO, about(reason)};
  for (const bh_call call : std::exchange(trunk.calls, {})) events_.call_failed(call, error);
}

// Reports all lanes that were sent to the process as down, and ends those that are being closed.
// Usually each lane's socket reports the loss, but not if the process continues to run after its
// trunk has been closed.
void ClientStub::lose_lanes(const Error &error) {
  std::vector<Lane *> open;
  for (auto &[lane, owned] : lanes_) {
    if (!lane->server_end) open.push_back(lane);
  }
  for (Lane *lane : open) {
    if (!lanes_.contains(lane)) continue;
    if (lane->closing) {
      end_lane(*lane);
    } else {
      lane_lost(*lane, error);
    }
  }
}

ClientStub::Trunk *ClientStub::trunk_of(bh_call call) {
  if (trunk_ != nullptr && trunk_->calls.contains(call)) return trunk_.get();
  for (const auto &trunk : ending_) {
    if (trunk->calls.contains(call)) return trunk.get();
  }
  return nullptr;
}

void ClientStub::on_trunk(Trunk &trunk, const Frame &frame, std::string_view payload) {
  switch (frame.kind) {
    case FrameKind::call_complete:
    case call_refused:
    case FrameKind::call_progress:
    case FrameKind::call_event:
      return on_call(trunk, frame, payload);
    case calls_draining: {
      if (&trunk == trunk_.get()) retire_trunk();
      Frame ended;
      ended.kind = calls_ended;
      trunk.channel->send(ended);
      return;
    }
    default:
      // Lists from a process that is about to exit are ignored.
      if (&trunk == trunk_.get()) on_plugin(frame, payload);
      return;
  }
}

void ClientStub::on_plugin(const Frame &frame, std::string_view payload) {
  if (frame.kind == plugin_named) return name(frame.plugin, payload);
  Plugin *plugin = find(frame.plugin);
  if (plugin == nullptr) return;
  switch (frame.kind) {
    case tools_list: {
      if (frame.code < 1 || frame.code > list_kinds) return;
      plugin->lists[frame.code - 1] = {frame.value == 1, std::string(payload)};
      return;
    }
    case tools_listed:
      plugin->failure.clear();
      plugin->listed = true;
      plugin->features = frame.code;
      for (std::uint32_t kind = BH_LIST_TOOLS; kind <= BH_LIST_PROMPTS; ++kind) {
        events_.tools_changed(plugin->id, kind);
      }
      return events_.tools_began(plugin->id);
    case FrameKind::tools_changed:
      return events_.tools_changed(plugin->id, frame.code);
    case plugin_failed:
      plugin->failure = about(payload);
      return events_.tools_changed(plugin->id, BH_LIST_TOOLS);
    case FrameKind::resource_updated:
      return events_.resource_updated(plugin->id, payload);
    default:
      return;
  }
}

void ClientStub::on_call(Trunk &trunk, const Frame &frame, std::string_view payload) {
  switch (frame.kind) {
    case FrameKind::call_complete:
      if (trunk.calls.erase(frame.exchange) == 1) {
        events_.call_complete(frame.exchange, frame.code, payload);
      }
      return;
    case call_refused:
      return on_refused(trunk, frame, payload);
    case FrameKind::call_progress: {
      Progress progress;
      if (trunk.calls.contains(frame.exchange) && from_bytes(payload, &progress)) {
        events_.call_progress(frame.exchange, progress.value, progress.total, progress.message);
      }
      return;
    }
    case FrameKind::call_event:
      if (trunk.calls.contains(frame.exchange))
        events_.call_event(frame.exchange, frame.code, payload);
      return;
    default:
      return;
  }
}

void ClientStub::on_refused(Trunk &trunk, const Frame &frame, std::string_view payload) {
  if (trunk.calls.erase(frame.exchange) == 0) return;
  if (frame.code == static_cast<std::uint32_t>(BH_WOULD_BLOCK)) return begin_again(frame, payload);
  events_.call_failed(frame.exchange, {static_cast<bh_status>(frame.code), std::string(payload)});
}

// Queues a call for the next process, because the current process is being replaced and refused to
// start the call.
void ClientStub::begin_again(const Frame &refused, std::string_view payload) {
  Frame again;
  again.kind = FrameKind::call_begin;
  again.code = refused.plugin;
  again.exchange = refused.exchange;
  again.value = refused.value;
  if (!wait(again, payload)) {
    return events_.call_failed(
        refused.exchange,
        {BH_E_LIMIT, about("it is being restarted, and too many calls are waiting for it")});
  }
  if (trunk_ != nullptr) send_waiting();
}

// ---- lanes -----------------------------------------------------------------------------------

// Sends the lane's socket to the process. Returns false if the queue of the trunk is full.
bool ClientStub::hand_over(Lane &lane) {
  Frame frame;
  frame.kind = FrameKind::lane_open;
  frame.value = lane.connect_timeout_ms;
  const std::string text = to_bytes(LaneText{lane.plugin->id, lane.server});
  if (trunk_->channel->send(frame, text, lane.server_end.get()) != BH_OK) return false;
  lane.server_end.reset();
  return true;
}

void ClientStub::lane_lost(Lane &lane, const LaneFailure &failure) {
  if (lane.down) return;
  lane.down = true;
  if (!lane.closing) events_.lane_down(lane.handle, failure);
}

void ClientStub::end_lane(Lane &lane) {
  const bh_lane handle = lane.handle;
  reactor_.timer_cancel(lane.close_timer);
  lanes_.erase(&lane);
  events_.lane_closed(handle);
}

// ---- plugins ---------------------------------------------------------------------------------

ClientStub::Plugin *ClientStub::find(std::uint32_t number) {
  const auto at = std::find_if(plugins_.begin(), plugins_.end(),
                               [&](const auto &entry) { return entry.second->number == number; });
  return at == plugins_.end() ? nullptr : at->second.get();
}

// Assigns a number to a plugin. After a reload, the other process is often ready before the plugin
// is known here. The plugin's lists are then dropped, and requested again once the plugin is known.
void ClientStub::name(std::uint32_t number, std::string_view id) {
  if (Plugin *other = find(number)) other->number.reset();
  const auto at = plugins_.find(id);
  if (at != plugins_.end()) at->second->number = number;
}

std::string_view ClientStub::failure(const std::string &id) const {
  const auto at = plugins_.find(id);
  return at == plugins_.end() ? std::string_view() : at->second->failure;
}

void *ClientStub::plugin(const std::string &id) {
  auto &plugin = plugins_[id];
  if (plugin == nullptr) {
    plugin = std::make_unique<Plugin>();
    plugin->stub = this;
    plugin->id = id;
  }
  return plugin.get();
}

void *ClientStub::fresh_tools(const std::string &id) {
  auto &fresh = *static_cast<Plugin *>(plugin(id));
  fresh.failure = gave_up_;
  fresh.listed = false;
  fresh.features = 0;
  fresh.lists = {};
  if (trunk_ != nullptr) {
    Frame frame;
    frame.kind = tools_wanted;
    trunk_->channel->send(frame, id);
  }
  return &fresh;
}

// ---- tables ----------------------------------------------------------------------------------

struct ClientStubFunctions {
  using Plugin = ClientStub::Plugin;
  using Lane = ClientStub::Lane;

  static bh_status lane_open(void *self, bh_lane handle, const bh_lane_info *info, void **out,
                             bh_error *error) {
    auto &plugin = *static_cast<Plugin *>(self);
    ClientStub &stub = *plugin.stub;
    if (!stub.gave_up_.empty()) return bh::fail(error, BH_E_UNAVAILABLE, stub.gave_up_);
    auto pair = socket_pair();
    if (!pair) return bh::fail(error, pair.error().code, pair.error().text);
    auto lane = std::make_unique<Lane>();
    lane->stub = &stub;
    lane->plugin = &plugin;
    lane->handle = handle;
    lane->server = bh::view(info->server);
    lane->connect_timeout_ms = info->connect_timeout_ms;
    lane->server_end = std::move(pair->second);
    lane->channel = std::make_unique<Channel>(stub.reactor_, std::move(pair->first), *lane,
                                              stub.limits_.message_bytes + max_header_bytes,
                                              stub.limits_.write_queue_bytes, false);
    lane->channel->accept(stub.limits_.message_bytes);
    if (stub.trunk_ != nullptr && !stub.hand_over(*lane)) {
      return bh::fail(error, BH_E_LIMIT, stub.about(queue_full));
    }
    *out = lane.get();
    stub.lanes_.emplace(lane.get(), std::move(lane));
    return BH_OK;
  }

  static bh_status lane_send(void *, void *self, const bh_lane_message *message, bh_error *error) {
    auto &lane = *static_cast<Lane *>(self);
    const auto headers = bh::headers(*message);
    if (const bh_status s = bh::check_headers(headers, error); s != BH_OK) return s;
    const std::string archived = headers.empty() ? std::string() : archive_headers(headers);
    Frame frame;
    frame.kind = (message->flags & BH_LANE_INITIALIZE) != 0   ? FrameKind::lane_initialize
                 : (message->flags & BH_LANE_REPEATABLE) != 0 ? FrameKind::lane_repeatable
                                                              : FrameKind::lane_send;
    frame.code = lane_code(message->kind, archived.size());
    frame.exchange = message->exchange;
    frame.value = message->deadline_ns;
    const bh_status status = archived.empty()
                                 ? lane.channel->send(frame, message->parts, message->part_count)
                                 : send_behind(*lane.channel, frame, archived, *message);
    if (status == BH_OK) return BH_OK;
    if (status == BH_E_LIMIT) {
      return bh::fail(error, BH_E_LIMIT, queue_full);
    }
    return bh::fail(error, BH_E_UNAVAILABLE, lane.stub->about("the process exited"));
  }

  static void lane_ready(void *, void *self, bh_str revision) {
    Frame frame;
    frame.kind = FrameKind::lane_ready;
    static_cast<Lane *>(self)->channel->send(frame, bh::view(revision));
  }

  static void lane_abandon(void *, void *self, std::uint64_t exchange) {
    Frame frame;
    frame.kind = FrameKind::lane_abandon;
    frame.exchange = exchange;
    static_cast<Lane *>(self)->channel->send(frame);
  }

  static void lane_close(void *, void *self) {
    auto &lane = *static_cast<Lane *>(self);
    lane.closing = true;
    Frame frame;
    frame.kind = FrameKind::lane_close;
    // If the lane's socket was never sent to the process, or is already closed, lane_closed cannot
    // arrive.
    ClientStub &stub = *lane.stub;
    if (lane.server_end || lane.channel->send(frame) != BH_OK) return stub.end_lane(lane);
    // A child process has two grace periods: one after its stdin is closed, and one after SIGTERM.
    // After both of them, the lane is treated as closed even if lane_closed has not arrived.
    lane.close_timer = stub.reactor_.timer_start(
        &stub, 2 * stub.limits_.shutdown_grace_ms + close_margin_ms,
        bh::callback(&lane, [](Lane &late) { late.stub->end_lane(late); }));
  }

  static bh_status list(void *self, const bh_list_info *info, bh_buf *out, bh_error *error) {
    const std::uint32_t kind = info->kind;
    const auto &plugin = *static_cast<Plugin *>(self);
    if (!plugin.failure.empty()) return bh::fail(error, BH_E_UNAVAILABLE, plugin.failure);
    if (!plugin.listed) return BH_PENDING;
    if (kind < 1 || kind > list_kinds || !plugin.lists[kind - 1].has) return BH_E_UNSUPPORTED;
    *out = bh::buf(std::string(plugin.lists[kind - 1].json));
    return BH_OK;
  }

  static bh_status call_begin(void *self, bh_call call, const bh_call_info *info, bh_error *error) {
    auto &plugin = *static_cast<Plugin *>(self);
    ClientStub &stub = *plugin.stub;
    if (!plugin.failure.empty()) return bh::fail(error, BH_E_UNAVAILABLE, plugin.failure);
    Frame frame;
    frame.kind = FrameKind::call_begin;
    frame.code = info->flags;
    frame.exchange = call;
    frame.value = info->deadline_ns;
    const CallText text{plugin.id,
                        bh::view(info->method),
                        bh::view(info->name),
                        bh::view(info->arguments),
                        bh::view(info->principal),
                        bh::view(info->traceparent),
                        bh::view(info->input_responses),
                        bh::view(info->request_state),
                        info->session};
    if (stub.trunk_ == nullptr) {
      if (stub.wait(frame, to_bytes(text))) return BH_PENDING;
      return bh::fail(error, BH_E_LIMIT,
                      stub.about("it is being restarted, and too many calls are waiting for it"));
    }
    if (stub.trunk_->channel->send(frame, to_bytes(text)) != BH_OK) {
      return bh::fail(error, BH_E_LIMIT, stub.about(queue_full));
    }
    stub.trunk_->calls.insert(call);
    return BH_PENDING;
  }

  static void call_cancel(void *self, bh_call call, const bh_cancel *cancel) {
    const auto &plugin = *static_cast<Plugin *>(self);
    ClientStub &stub = *plugin.stub;
    const auto waits = std::find_if(stub.waiting_.begin(), stub.waiting_.end(),
                                    [call](const auto &one) { return one.frame.exchange == call; });
    if (waits != stub.waiting_.end()) {
      stub.waiting_bytes_ -= waits->payload.size();
      stub.waiting_.erase(waits);
      return;
    }
    ClientStub::Trunk *trunk = stub.trunk_of(call);
    if (trunk == nullptr) return;
    Frame frame;
    frame.kind = FrameKind::call_cancel;
    frame.code = cancel->reason;
    frame.exchange = call;
    trunk->calls.erase(call);  // if the process refuses it, the next process must not begin it
    trunk->channel->send(frame, bh::view(cancel->text));
  }

  static std::uint32_t features(void *self) { return static_cast<Plugin *>(self)->features; }
};

const bh_connector &ClientStub::connector() noexcept {
  static constexpr bh_connector table{sizeof(bh_connector),
                                      0,
                                      ClientStubFunctions::lane_open,
                                      ClientStubFunctions::lane_send,
                                      ClientStubFunctions::lane_ready,
                                      ClientStubFunctions::lane_abandon,
                                      ClientStubFunctions::lane_close};
  return table;
}

const bh_tools &ClientStub::tools() noexcept {
  static constexpr bh_tools table{sizeof(bh_tools),
                                  0,
                                  ClientStubFunctions::list,
                                  ClientStubFunctions::call_begin,
                                  ClientStubFunctions::call_cancel,
                                  ClientStubFunctions::features};
  return table;
}

}  // namespace bulkhead::link
