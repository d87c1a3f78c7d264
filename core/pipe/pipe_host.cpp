#include "pipe/pipe_host.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"

namespace bulkhead::pipe {
namespace {

constexpr bh_session only_session = 1;
constexpr std::uint64_t write_stall_ms = 330'000;  // after the client's input has ended
constexpr std::uint64_t connect_timeout_ms = 5'000;

bh_limits limits_of(const Options &options) {
  return {.size = sizeof(bh_limits),
          .reserved = 0,
          .message_bytes = options.message_bytes,
          .header_bytes = 0,
          .sessions = 1,
          .session_idle_ms = 0,
          .event_buffer_bytes = 0,
          .write_queue_bytes = options.queue_bytes,
          .write_stall_ms = write_stall_ms,
          .connect_timeout_ms = connect_timeout_ms,
          .request_read_ms = 0,
          .shutdown_grace_ms = 0,
          .in_flight_per_session = 4096};
}

}  // namespace

struct PipeHost::Receiver {
  PipeHost &host;

  static Receiver of(void *ctx) noexcept { return {LinkedPlugin::owner_of<PipeHost>(ctx)}; }

  bh_status session_open(const bh_peer &peer, bh_session *out, bh_error *error) const {
    const bh_status status = host.open_session(peer, out);
    return status == BH_OK ? BH_OK : bh::fail(error, status, "a pipe supports only one client");
  }
  bh_status deliver(const bh_incoming &in, bh_delivery *out) const {
    if (in.session == 0) return BH_E_UNSUPPORTED;  // a pipe has only one session
    if (in.session != only_session || !host.session_open_) return BH_STALE;
    host.deliver(bh::view(in.message), out);
    return BH_OK;
  }
  void stream_gone(bh_session, std::uint64_t) const {}
  void session_close(bh_session, std::uint32_t how) const { host.session_close(how); }
  bh_status check_revision(bh_session, std::string_view) const { return BH_OK; }
  void finished() const {}                                      // session_close() reports the same
  void set_process_name(bh_session, std::string_view) const {}  // a relay has one parent process
  void output_full(bool full) const { host.output_full(full); }

  void lane_message(bh_lane lane, std::uint64_t exchange, std::string_view text) const {
    host.route_->message(lane, exchange, text);
  }
  void lane_exchange_failed(bh_lane lane, std::uint64_t exchange,
                            const LaneFailure &failure) const {
    host.route_->exchange_failed(lane, exchange, failure.error);
  }
  void lane_down(bh_lane lane, const LaneFailure &failure) const {
    host.route_->lane_down(lane, failure.error);
  }
  void lane_closed(bh_lane) const {}
  void lane_connected(bh_lane lane) const { host.route_->connected(lane); }
  void lane_full(bh_lane lane, bool full) const { host.route_->lane_full(lane, full); }
};

PipeHost::PipeHost(Options options)
    : options_(std::move(options)),
      plugin_limits_(limits_of(options_)),
      connector_tables_(plugin_limits_),
      transport_tables_(plugin_limits_) {}

PipeHost::~PipeHost() {
  // The transport is destroyed first, so that it can write pending output to the client.
  transport_.reset();
  connector_.reset();
  route_.reset();
}

Result<std::unique_ptr<PipeHost>> PipeHost::create(Options options) {
  std::unique_ptr<PipeHost> made(new PipeHost(std::move(options)));
  if (auto started = made->start(); !started) return std::unexpected(started.error());
  return made;
}

Result<void> PipeHost::start() {
  auto reactor = Reactor::create();
  if (!reactor) return std::unexpected(reactor.error());
  reactor_ = std::move(*reactor);
  route_ = std::make_unique<Route>(*reactor_, static_cast<Ends &>(*this), options_.endpoint,
                                   options_.limits);
  connector_ = std::make_unique<LinkedPlugin>(*reactor_, options_.log, connector_tables_, this);
  transport_ = std::make_unique<LinkedPlugin>(*reactor_, options_.log, transport_tables_, this);
  if (auto up = connector_->start(*options_.connector(), options_.connector_config); !up) return up;
  if (auto up = transport_->start(*options_.transport(), options_.transport_config); !up) return up;
  connector_table_ = connector_->ext<bh_connector>(BH_EXT_CONNECTOR);
  transport_table_ = transport_->ext<bh_transport>(BH_EXT_TRANSPORT);
  flow_ = transport_->ext<bh_flow>(BH_EXT_FLOW);
  wire_ = connector_->ext<bh_wire>(BH_EXT_WIRE);
  if (connector_table_ == nullptr || transport_table_ == nullptr || flow_ == nullptr ||
      wire_ == nullptr || !BH_HAS(bh_wire, wire_, lane_hold)) {
    return fail(BH_E_UNSUPPORTED, "a pipe requires a transport with " BH_EXT_FLOW
                                  " and a connector with " BH_EXT_WIRE " that provides lane_hold");
  }
  bh_error error = bh::make_error();
  const bh_status status = transport_table_->listen(transport_->self(), &error);
  if (status != BH_OK) return fail(status, std::string(bh::text(error)));
  return {};
}

Result<void> PipeHost::run() {
  while (!stopping_.load(std::memory_order_relaxed) && (!done_ || output_waits())) {
    reactor_->poll(-1);
  }
  transport_->stop();
  connector_->stop();
  if (failure_) return std::unexpected(*failure_);
  return {};
}

void PipeHost::request_stop() noexcept {
  stopping_.store(true);
  reactor_->wake();
}

// ---- calls of the transport ------------------------------------------------------------------

bh_status PipeHost::open_session(const bh_peer &peer, bh_session *out) {
  if (std::exchange(session_open_, true)) return BH_E_LIMIT;
  *out = only_session;
  process_name_ = bh::view(peer.process_name);
  route_->start();
  return BH_OK;
}

void PipeHost::deliver(std::string_view text, bh_delivery *out) {
  out->kind = route_->from_client(text) ? BH_DELIVERED_ANSWER : BH_DELIVERED_NOTHING;
  out->flags = 0;
}

void PipeHost::session_close(std::uint32_t how) {
  if (how == BH_SESSION_INPUT_ENDED) return route_->input_ended();
  session_open_ = false;
  route_->client_gone();
}

void PipeHost::output_full(bool full) {
  client_full_ = full;
  route_->client_full(full);
}

void PipeHost::hold_client(bool hold) {
  flow_->hold_input(transport_->self(), only_session, hold ? 1 : 0);
}

void PipeHost::to_client(std::string_view message) {
  if (!session_open_) return;
  const bh_str part = bh::str(message);
  bh_outgoing out{};
  out.size = sizeof out;
  out.kind = BH_OUT_EVENT;  // the general stream carries every message as one line
  out.session = only_session;
  out.part_count = 1;
  out.parts = &part;
  const bh_status status = transport_table_->send(transport_->self(), &out);
  if (status == BH_E_LIMIT) {
    // Not expected unless memory is exhausted: the lane is paused while the client has unread
    // output.
    failure_ = Error{status, "the output queue for the client is full, or out of memory"};
  }
}

// ---- calls to the connector ------------------------------------------------------------------

Result<void> PipeHost::open_lane(bh_lane lane) {
  auto definition = options_.definition(process_name_);
  if (!definition) return std::unexpected(definition.error());
  definition_ = *std::move(definition);
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str(options_.endpoint);
  info.definition = bh::str(definition_);
  info.connect_timeout_ms = connect_timeout_ms;
  bh_error error = bh::make_error();
  const bh_status status =
      connector_table_->lane_open(connector_->self(), lane, &info, &lane_, &error);
  if (status != BH_OK) return fail(status, std::string(bh::text(error)));
  return {};
}

Result<void> PipeHost::send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) {
  const bh_str part = bh::str(text);
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = kind;
  message.exchange = exchange;
  message.part_count = 1;
  message.parts = &part;
  bh_error error = bh::make_error();
  const bh_status status = connector_table_->lane_send(connector_->self(), lane_, &message, &error);
  if (status != BH_OK) return fail(status, std::string(bh::text(error)));
  return {};
}

void PipeHost::finish_lane() {
  wire_->lane_finish(connector_->self(), lane_);
}

void PipeHost::close_lane() {
  connector_table_->lane_close(connector_->self(), std::exchange(lane_, nullptr));
}

void PipeHost::hold_lane(bool hold) {
  wire_->lane_hold(connector_->self(), lane_, hold ? 1 : 0);
}

void PipeHost::done(std::string_view failure) {
  if (!failure.empty()) failure_ = Error{BH_E_UNAVAILABLE, std::string(failure)};
  done_ = true;
}

}  // namespace bulkhead::pipe
