#include "service/metrics_server.hpp"

#include <utility>

#include "common/http_text.hpp"
#include "plugin/services.hpp"
#include "profile/tcp_address.hpp"
#include "service/metrics_text.hpp"

namespace bulkhead::program {

Result<OwnedFd> open_metrics_listener(const std::string &address) {
  const auto bytes = tcp_sockaddr(address);
  if (!bytes) return fail(BH_E_INVALID, "gateway.metrics_listen: " + address + " is no address");
  auto opened = open_listener(*bytes, address, SocketFile::own_user);
  if (!opened) return fail(opened.error().code, "gateway.metrics_listen: " + opened.error().text);
  return opened;
}

ControlAnswer metrics_answer(const std::string &value) {
  ServiceStatus status;
  if (!from_bytes(value, &status)) return {500, error_body("the gateway's answer is damaged")};
  return {200, metrics_text(status), metrics_type};
}

MetricsServer::MetricsServer(Reactor &reactor, OwnedFd listener, AskService ask)
    : listener_(std::move(listener)),
      ask_(std::move(ask)),
      server_(
          reactor, listener_.get(), [](int, const std::function<void(bool)> &done) { done(true); },
          [this](const ControlRequest &request, ControlServer::Reply reply) {
            handle(request, std::move(reply));
          }) {}

void MetricsServer::handle(const ControlRequest &request, ControlServer::Reply reply) const {
  if (request.path != "/metrics") return reply({404, error_body("only /metrics is here")});
  if (request.method != "GET") return reply({405, error_body("this path takes GET")});
  ask_(ServiceRequest::status, {}, [reply = std::move(reply)](const ServiceAnswer &answer) {
    reply(answer.code == BH_OK ? metrics_answer(answer.value)
                               : ControlAnswer{503, error_body("the gateway is busy")});
  });
}

}  // namespace bulkhead::program
