#include "service/metrics_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "plugin/services.hpp"
#include "profile/tcp_address.hpp"
#include "service/metrics_text.hpp"

namespace bulkhead::program {

namespace {

bool is_loopback(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0) return true;
  if (address.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr);
  }
  const auto &four = reinterpret_cast<const sockaddr_in &>(address);
  return (ntohl(four.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
}

// Protects against DNS rebinding. A web page can make its own host name resolve to 127.0.0.1, but
// its requests then contain that name in the Host header.
bool names_this_machine(std::string_view host) {
  if (host.empty() || host.starts_with('[')) return true;
  const std::string name(host.substr(0, host.find(':')));
  in_addr unused{};
  return name == "localhost" || ::inet_pton(AF_INET, name.c_str(), &unused) == 1;
}

}  // namespace

Result<OwnedFd> open_metrics_listener(const std::string &address) {
  const auto bytes = tcp_sockaddr(address);
  if (!bytes)
    return fail(BH_E_INVALID, "gateway.metrics_listen: " + address + " is not a valid address");
  auto opened = open_listener(*bytes, address, SocketFile::own_user);
  if (!opened) return fail(opened.error().code, "gateway.metrics_listen: " + opened.error().text);
  return opened;
}

ControlAnswer metrics_answer(const std::string &value) {
  ServiceStatus status;
  if (!from_bytes(value, &status)) return {500, error_body("the gateway sent an invalid response")};
  return {200, metrics_text(status), metrics_type};
}

MetricsServer::MetricsServer(Reactor &reactor, OwnedFd listener, AskService ask)
    : listener_(std::move(listener)),
      for_this_machine_(is_loopback(listener_.get())),
      ask_(std::move(ask)),
      server_(
          reactor, listener_.get(), [](int, const std::function<void(bool)> &done) { done(true); },
          [this](const ControlRequest &request, ControlServer::Reply reply) {
            handle(request, std::move(reply));
          }) {}

void MetricsServer::handle(const ControlRequest &request, ControlServer::Reply reply) const {
  if (for_this_machine_ && !names_this_machine(request.host)) {
    return reply({403, error_body("use the IP address or localhost in the URL")});
  }
  if (request.path != "/metrics")
    return reply({404, error_body("unknown path; this server provides only /metrics")});
  if (request.method != "GET") return reply({405, error_body("method not allowed; use GET")});
  ask_(ServiceRequest::status, {}, [reply = std::move(reply)](const ServiceAnswer &answer) {
    reply(answer.code == BH_OK ? metrics_answer(answer.value)
                               : ControlAnswer{503, error_body("the gateway is busy")});
  });
}

}  // namespace bulkhead::program
