// The host's side of the extensions: each function finds its instance by ctx and forwards to the
// router. Functions tagged [any] are posted to the loop when they come from another thread.
#include <memory>
#include <string>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/basics.hpp"
#include "embed/host_impl.hpp"
#include "reactor/post_owned.hpp"

namespace bulkhead {
namespace {

Part &part_of(void *ctx) noexcept {
  return *static_cast<Part *>(Instance::of(ctx).user);
}
HostImpl &host_of(void *ctx) noexcept {
  return *part_of(ctx).host;
}
Router &router_of(void *ctx) noexcept {
  return host_of(ctx).router();
}

// Runs f on the loop's thread in a later turn.
template <class F>
bh_status post_to_loop(void *ctx, F f) {
  HostImpl &host = host_of(ctx);
  return post_owned(host.reactor(), &host, std::move(f));
}

// The same, at once if this is the loop's thread.
template <class F>
bh_status on_loop(void *ctx, F f) {
  if (!host_of(ctx).on_loop_thread()) return post_to_loop(ctx, std::move(f));
  f();
  return BH_OK;
}

// ---- transport -------------------------------------------------------------------------------

bh_status session_open(void *ctx, const bh_peer *peer, bh_session *out, bh_error *error) {
  return router_of(ctx).clients().open(*part_of(ctx).end, *peer, out, error);
}
bh_status deliver_message(void *ctx, const bh_incoming *message, bh_delivery *out) {
  ClientEnd *end = part_of(ctx).end.get();
  if (end == nullptr) return BH_E_UNSUPPORTED;  // not a transport
  return router_of(ctx).clients().deliver_message(*end, *message, out);
}
// Of transports that know no other way.
bh_status deliver(void *ctx, bh_session session, std::uint64_t stream, bh_str message,
                  bh_delivery *out) {
  if (session == 0) return BH_STALE;
  bh_incoming incoming{};
  incoming.size = sizeof incoming;
  incoming.session = session;
  incoming.stream = stream;
  incoming.message = message;
  return deliver_message(ctx, &incoming, out);
}
void stream_gone(void *ctx, bh_session session, std::uint64_t stream) {
  // In the revisions with sessions a lost stream is not a cancellation: the call goes on, and its
  // answer is kept by the transport or dropped.
  const ClientEnd *end = part_of(ctx).end.get();
  if (session == 0 && end != nullptr) router_of(ctx).clients().stream_gone(*end, stream);
}
void session_close(void *ctx, bh_session session, std::uint32_t how) {
  router_of(ctx).clients().close(session, how);
}
bh_status check_revision(void *, bh_session, bh_str revision) {
  return find_revision(bh::view(revision)).has_value() ? BH_OK : BH_E_INVALID;
}
void set_process_name(void *ctx, bh_session session, bh_str name) {
  router_of(ctx).clients().set_process_name(session, bh::view(name));
}
void finished(void *ctx) {
  host_of(ctx).transport_finished(part_of(ctx));
}

// ---- connector -------------------------------------------------------------------------------

Error to_error(const bh_error *error) {
  if (error == nullptr) return {BH_E_INTERNAL, "the connector gave no reason"};
  return {error->code, std::string(bh::text(*error))};
}
void upstream_message(void *ctx, bh_lane lane, std::uint64_t exchange, bh_str message) {
  router_of(ctx).wires().message(lane, exchange, bh::view(message));
}
void exchange_failed(void *ctx, bh_lane lane, std::uint64_t exchange, const bh_error *error) {
  router_of(ctx).wires().exchange_failed(lane, exchange, to_error(error));
}
void lane_down(void *ctx, bh_lane lane, const bh_error *error) {
  router_of(ctx).wires().down(lane, to_error(error), error == nullptr ? 0 : error->retry_after_ms);
}
void lane_closed(void *ctx, bh_lane lane) {
  router_of(ctx).wires().closed(lane);
}

// ---- tools -----------------------------------------------------------------------------------

bh_status complete(void *ctx, bh_call call, const bh_result *result) {
  auto json = std::make_shared<bh::Buf>(result->json);
  const std::uint32_t kind = result->kind;
  if (host_of(ctx).on_loop_thread()) {
    return router_of(ctx).tools().complete(call, kind, json->view());
  }
  return on_loop(
      ctx, [ctx, call, kind, json] { router_of(ctx).tools().complete(call, kind, json->view()); });
}
void progress(void *ctx, bh_call call, double value, double total, bh_str message) {
  on_loop(ctx, [ctx, call, value, total, text = std::string(bh::view(message))] {
    router_of(ctx).tools().progress(call, value, total, text);
  });
}
void event(void *ctx, bh_call call, std::uint32_t kind, bh_str detail) {
  if (detail.n > BH_EVENT_BYTES) return;
  on_loop(ctx, [ctx, call, kind, text = std::string(bh::view(detail))] {
    router_of(ctx).tools().event(call, kind, text);
  });
}
void list_changed(void *ctx, std::uint32_t kind) {
  on_loop(ctx, [ctx, kind] {
    Part &part = part_of(ctx);
    if (part.upstream != nullptr) part.host->router().tools().list_changed(*part.upstream, kind);
  });
}
void resource_updated(void *ctx, bh_str uri) {
  on_loop(ctx, [ctx, text = std::string(bh::view(uri))] {
    Part &part = part_of(ctx);
    if (part.upstream != nullptr)
      part.host->router().tools().resource_updated(*part.upstream, text);
  });
}

// ---- policy ----------------------------------------------------------------------------------

bh_status decided(void *ctx, std::uint64_t exchange, const bh_verdict *verdict) {
  // Always posted: decide() or observe() may call this before it returns BH_PENDING.
  return post_to_loop(ctx, [ctx, exchange, decision = Gate::from(*verdict)] {
    host_of(ctx).policy_answered(exchange, decision, part_of(ctx).instance->self());
  });
}
bh_status filtered(void *ctx, std::uint64_t question, std::uint32_t listed) {
  return post_to_loop(ctx, [ctx, question, listed] {
    host_of(ctx).policy_shown(question, listed == 1, part_of(ctx).instance->self());
  });
}
// Posted: filter() may call this while a list is being built.
void changed(void *ctx) {
  post_to_loop(ctx, [ctx] { router_of(ctx).reload().policy_changed(); });
}

// ---- telemetry -------------------------------------------------------------------------------

// Posted: batch() may call this, and what waits for it may offer more.
void committed(void *ctx, std::uint64_t below) {
  post_to_loop(ctx, [ctx, below] {
    Router &router = router_of(ctx);
    router.recorder().set_committed(part_of(ctx).instance->self(), below);
    router.records_committed();
  });
}

// ---- http, answered by the service plugin ----------------------------------------------------

bh_status http_start(void *ctx, const bh_http_request *request, const bh_http_handler *handler,
                     void *user, bh_http_id *out, bh_error *error) {
  void *self = nullptr;
  const bh_http_service *service = host_of(ctx).http_service(&self);
  if (service == nullptr) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    "no plugin of this profile offers an HTTP client (services.http)");
  }
  return service->start(self, request, handler, user, out, error);
}
bh_status http_cancel(void *ctx, bh_http_id id) {
  void *self = nullptr;
  const bh_http_service *service = host_of(ctx).http_service(&self);
  return service == nullptr ? BH_STALE : service->cancel(self, id);
}

class TransportEnd final : public ClientEnd {
 public:
  TransportEnd(const bh_transport *table, void *self) : table_(table), self_(self) {}
  void send(const bh_outgoing &message) override { table_->send(self_, &message); }
  void session_ended(bh_session session, std::string_view reason) override {
    table_->session_ended(self_, session, bh::str(reason));
  }

 private:
  const bh_transport *table_;
  void *self_;
};

class LocalClientImpl final : public LocalClient, private ClientEnd {
  using OnMessage = std::function<void(std::string_view)>;

 public:
  LocalClientImpl(HostImpl &host, OnMessage on_message)
      : host_(host), on_message_(std::make_shared<const OnMessage>(std::move(on_message))) {
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("local");
    peer.principal = bh::str("local");
    host_.router().clients().open(*this, peer, &session_, nullptr);
  }
  ~LocalClientImpl() override {
    if (session_ != 0) host_.router().clients().close(session_, BH_SESSION_GONE);
  }
  void send(std::string_view message) override {
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    if (session_ != 0) host_.router().clients().deliver(session_, 0, message, &delivery);
  }

 private:
  void send(const bh_outgoing &message) override {
    std::string text;
    for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
    const auto keep = on_message_;  // the client may be destroyed in there
    if (!text.empty()) (*keep)(text);
  }
  void session_ended(bh_session, std::string_view) override { session_ = 0; }

  HostImpl &host_;
  const std::shared_ptr<const OnMessage> on_message_;
  bh_session session_ = 0;
};

}  // namespace

HostTables::HostTables(const bh_limits *limits)
    : transport_{sizeof(bh_host_transport),
                 0,
                 limits,
                 session_open,
                 deliver,
                 stream_gone,
                 session_close,
                 check_revision,
                 finished,
                 set_process_name,
                 deliver_message},
      connector_{sizeof(bh_host_connector), 0,         limits,     upstream_message,
                 exchange_failed,           lane_down, lane_closed},
      tools_{sizeof(bh_host_tools), 0, complete, progress, list_changed, resource_updated},
      policy_{sizeof(bh_host_policy), 0, decided, changed, filtered},
      http_{sizeof(bh_host_http), 0, http_start, http_cancel},
      event_{sizeof(bh_host_event), 0, event},
      telemetry_{sizeof(bh_host_telemetry), 0, committed},
      resume_(resume_functions()),
      control_(control_functions()) {}

const void *HostTables::find(std::string_view id, const Part *part) const noexcept {
  if (id == BH_EXT_HOST_TRANSPORT) return &transport_;
  if (id == BH_EXT_HOST_CONNECTOR) return &connector_;
  if (id == BH_EXT_HOST_TOOLS) return &tools_;
  if (id == BH_EXT_HOST_POLICY) return &policy_;
  if (id == BH_EXT_HOST_HTTP) return &http_;
  if (id == BH_EXT_HOST_EVENT) return &event_;
  if (id == BH_EXT_HOST_TELEMETRY) return &telemetry_;
  if (id == BH_EXT_HOST_RESUME && part != nullptr && part->host->sealer().usable()) return &resume_;
  if (id == BH_EXT_HOST_CONTROL && part != nullptr && part->granted("control")) return &control_;
  return nullptr;
}

std::unique_ptr<ClientEnd> make_transport_end(Instance &instance) {
  return std::make_unique<TransportEnd>(instance.ext<bh_transport>(BH_EXT_TRANSPORT),
                                        instance.self());
}

std::unique_ptr<LocalClient> make_local_client(
    HostImpl &host, std::function<void(std::string_view message)> on_message) {
  return std::make_unique<LocalClientImpl>(host, std::move(on_message));
}

}  // namespace bulkhead
