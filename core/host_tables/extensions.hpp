// Class templates that generate the host's extension tables. Each function in a table finds the
// receiver for the plugin's ctx and calls the corresponding member function of the receiver. A
// function that the ABI marks [any] may be called on any thread. If it is not called on the reactor
// thread, the call is posted to the event loop with copies of its arguments (a bh_buf is moved).
//
// A Receiver has `static R of(void *ctx)`, where R is a reference or a small value, and the members
// that each table's comment lists. Every host has its own Receiver. There are no virtual functions,
// and memory is allocated only to copy arguments and for posted calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/lane_failure.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/abi/ext/draft/flow.h"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/abi/ext/draft/wire.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/abi/ext/transport.h"
#include "bulkhead/cpp/basics.hpp"
#include "reactor/post_owned.hpp"

namespace bulkhead::host_tables {

// Runs f(receiver) on the reactor thread, after the current events. Returns BH_E_LIMIT if the
// reactor's queue is full. The Receiver must have reactor() and owner(); the latter returns the
// argument for Reactor::forget().
template <class Receiver, class F>
bh_status post(void *ctx, F f) {
  auto &&receiver = Receiver::of(ctx);
  return post_owned(receiver.reactor(), receiver.owner(),
                    [ctx, f = std::move(f)] { f(Receiver::of(ctx)); });
}

// If called on the reactor thread, runs f(receiver) immediately; otherwise posts it. The Receiver
// must have on_loop_thread() and the members that post() needs.
template <class Receiver, class F>
bh_status on_loop(void *ctx, F f) {
  auto &&receiver = Receiver::of(ctx);
  if (!receiver.on_loop_thread()) return post<Receiver>(ctx, std::move(f));
  f(receiver);
  return BH_OK;
}

// The Receiver must have session_open, deliver, stream_gone, session_close, check_revision,
// finished and set_process_name, with the arguments of the table's functions except ctx.
template <class Receiver>
struct TransportTable {
  static constexpr std::string_view id = BH_EXT_HOST_TRANSPORT;
  const bh_host_transport table;

  explicit TransportTable(const bh_limits &limits) noexcept
      : table{sizeof table,  0,
              &limits,       session_open,
              deliver,       stream_gone,
              session_close, check_revision,
              finished,      set_process_name} {}

 private:
  static bh_status session_open(void *ctx, const bh_peer *peer, bh_session *out, bh_error *error) {
    return Receiver::of(ctx).session_open(*peer, out, error);
  }
  static bh_status deliver(void *ctx, const bh_incoming *message, bh_delivery *out) {
    return Receiver::of(ctx).deliver(*message, out);
  }
  static void stream_gone(void *ctx, bh_session session, std::uint64_t stream) {
    Receiver::of(ctx).stream_gone(session, stream);
  }
  static void session_close(void *ctx, bh_session session, std::uint32_t how) {
    Receiver::of(ctx).session_close(session, how);
  }
  static bh_status check_revision(void *ctx, bh_session session, bh_str revision) {
    return Receiver::of(ctx).check_revision(session, bh::view(revision));
  }
  static void finished(void *ctx) { Receiver::of(ctx).finished(); }
  static void set_process_name(void *ctx, bh_session session, bh_str name) {
    Receiver::of(ctx).set_process_name(session, bh::view(name));
  }
};

// The Receiver must have output_full(full).
template <class Receiver>
struct FlowTable {
  static constexpr std::string_view id = BH_EXT_HOST_FLOW;
  const bh_host_flow table;

  explicit FlowTable(const bh_limits &) noexcept : table{sizeof table, 0, output_full} {}

 private:
  static void output_full(void *ctx, bh_session, std::uint32_t full) {
    Receiver::of(ctx).output_full(full != 0);
  }
};

// The Receiver must have lane_message(lane, exchange, text), lane_exchange_failed(lane, exchange,
// const LaneFailure &), lane_down(lane, const LaneFailure &) and lane_closed(lane).
template <class Receiver>
struct ConnectorTable {
  static constexpr std::string_view id = BH_EXT_HOST_CONNECTOR;
  const bh_host_connector table;

  explicit ConnectorTable(const bh_limits &limits) noexcept
      : table{sizeof table, 0, &limits, message, exchange_failed, lane_down, lane_closed} {}

 private:
  static void message(void *ctx, bh_lane lane, std::uint64_t exchange, bh_str text) {
    Receiver::of(ctx).lane_message(lane, exchange, bh::view(text));
  }
  static void exchange_failed(void *ctx, bh_lane lane, std::uint64_t exchange,
                              const bh_lane_failure *failure) {
    Receiver::of(ctx).lane_exchange_failed(lane, exchange, LaneFailure(failure));
  }
  static void lane_down(void *ctx, bh_lane lane, const bh_lane_failure *failure) {
    Receiver::of(ctx).lane_down(lane, LaneFailure(failure));
  }
  static void lane_closed(void *ctx, bh_lane lane) { Receiver::of(ctx).lane_closed(lane); }
};

// The Receiver must have lane_connected(lane) and lane_full(lane, full).
template <class Receiver>
struct WireTable {
  static constexpr std::string_view id = BH_EXT_HOST_WIRE;
  const bh_host_wire table;

  explicit WireTable(const bh_limits &) noexcept
      : table{sizeof table, 0, lane_connected, lane_full} {}

 private:
  static void lane_connected(void *ctx, bh_lane lane) { Receiver::of(ctx).lane_connected(lane); }
  static void lane_full(void *ctx, bh_lane lane, std::uint32_t full) {
    Receiver::of(ctx).lane_full(lane, full != 0);
  }
};

// The Receiver must have call_complete(call, kind, json) -> bh_status, call_progress(call, value,
// total, message), list_changed(kind) and resource_updated(uri).
template <class Receiver>
struct ToolsTable {
  static constexpr std::string_view id = BH_EXT_HOST_TOOLS;
  const bh_host_tools table;

  explicit ToolsTable(const bh_limits &) noexcept
      : table{sizeof table, 0, complete, progress, list_changed, resource_updated} {}

 private:
  static bh_status complete(void *ctx, bh_call call, const bh_result *result) {
    bh::Buf json(result->json);
    const std::uint32_t kind = result->kind;
    auto &&receiver = Receiver::of(ctx);
    if (receiver.on_loop_thread()) return receiver.call_complete(call, kind, json.view());
    return post<Receiver>(ctx, [call, kind, json = std::move(json)](auto &&to) {
      static_cast<void>(to.call_complete(call, kind, json.view()));
    });
  }
  static void progress(void *ctx, bh_call call, const bh_progress *progress) {
    on_loop<Receiver>(ctx, [call, value = progress->progress, total = progress->total,
                            text = std::string(bh::view(progress->message))](auto &&receiver) {
      receiver.call_progress(call, value, total, text);
    });
  }
  static void list_changed(void *ctx, const bh_list_info *info) {
    on_loop<Receiver>(ctx, [kind = info->kind](auto &&receiver) { receiver.list_changed(kind); });
  }
  static void resource_updated(void *ctx, bh_str uri) {
    on_loop<Receiver>(ctx, [text = std::string(bh::view(uri))](auto &&receiver) {
      receiver.resource_updated(text);
    });
  }
};

// The Receiver must have call_event(call, kind, detail). Events whose detail exceeds BH_EVENT_BYTES
// are dropped.
template <class Receiver>
struct EventTable {
  static constexpr std::string_view id = BH_EXT_HOST_EVENT;
  const bh_host_event table;

  explicit EventTable(const bh_limits &) noexcept : table{sizeof table, 0, event} {}

 private:
  static void event(void *ctx, bh_call call, std::uint32_t kind, bh_str detail) {
    if (detail.n > BH_EVENT_BYTES) return;
    on_loop<Receiver>(ctx, [call, kind, text = std::string(bh::view(detail))](auto &&receiver) {
      receiver.call_event(call, kind, text);
    });
  }
};

// All calls are posted, because a policy may call these functions inside decide(), observe() or
// filter(). The Receiver must have static copy(const bh_verdict &), which returns a verdict that
// owns its strings, and policy_decided(number, copy), policy_filtered(question, listed) and
// policy_changed().
template <class Receiver>
struct PolicyTable {
  static constexpr std::string_view id = BH_EXT_HOST_POLICY;
  const bh_host_policy table;

  explicit PolicyTable(const bh_limits &) noexcept
      : table{sizeof table, 0, decided, changed, filtered} {}

 private:
  static bh_status decided(void *ctx, std::uint64_t number, const bh_verdict *verdict) {
    return post<Receiver>(ctx, [number, copy = Receiver::copy(*verdict)](auto &&receiver) {
      receiver.policy_decided(number, copy);
    });
  }
  static void changed(void *ctx) {
    post<Receiver>(ctx, [](auto &&receiver) { receiver.policy_changed(); });
  }
  static bh_status filtered(void *ctx, std::uint64_t question, std::uint32_t listed) {
    return post<Receiver>(ctx, [question, listed](auto &&receiver) {
      receiver.policy_filtered(question, listed == 1);
    });
  }
};

// All calls are posted, because a plugin may call this function inside batch(), and the client
// calls that resume after the commit may add records. The Receiver must have
// records_committed(below).
template <class Receiver>
struct TelemetryTable {
  static constexpr std::string_view id = BH_EXT_HOST_TELEMETRY;
  const bh_host_telemetry table;

  explicit TelemetryTable(const bh_limits &) noexcept : table{sizeof table, 0, committed} {}

 private:
  static void committed(void *ctx, std::uint64_t below) {
    post<Receiver>(ctx, [below](auto &&receiver) { receiver.records_committed(below); });
  }
};

// The Receiver must have http_service(void **self) -> const bh_http_service *, and a static member
// http_missing, which is the error message to return if there is no service.
template <class Receiver>
struct HttpTable {
  static constexpr std::string_view id = BH_EXT_HOST_HTTP;
  const bh_host_http table;

  explicit HttpTable(const bh_limits &) noexcept : table{sizeof table, 0, start, cancel} {}

 private:
  static bh_status start(void *ctx, const bh_http_request *request, const bh_http_handler *handler,
                         void *user, bh_http_id *out, bh_error *error) {
    void *self = nullptr;
    const bh_http_service *service = Receiver::of(ctx).http_service(&self);
    if (service == nullptr) return bh::fail(error, BH_E_UNSUPPORTED, Receiver::http_missing);
    return service->start(self, request, handler, user, out, error);
  }
  static bh_status cancel(void *ctx, bh_http_id request) {
    void *self = nullptr;
    const bh_http_service *service = Receiver::of(ctx).http_service(&self);
    return service == nullptr ? BH_STALE : service->cancel(self, request);
  }
};

}  // namespace bulkhead::host_tables
