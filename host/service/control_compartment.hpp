// Runs in the compartment that accepts connections on the service socket. This is the only process
// that parses input from clients of that socket.
//
// Forwards the clients' requests to the supervisor as typed values (service_protocol.hpp), in
// frames on the request socket. In a frame, `kind` is the ServiceRequest, `exchange` is the request
// number, and `code` is the status of the response.
//
// Owned by the compartment's process. Runs on the reactor thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/owned_fd.hpp"
#include "link/channel.hpp"
#include "service/metrics_server.hpp"
#include "service/service_api.hpp"

namespace bulkhead::program {

class ControlCompartment final : public link::Channel::Receiver {
 public:
  // `broken` is called if the supervisor is unreachable; the process should then exit.
  ControlCompartment(Reactor &reactor, OwnedFd listener, OwnedFd requests,
                     std::function<void()> broken);

 private:
  void admit(int fd, std::function<void(bool)> done);
  void on_metrics_listener(OwnedFd listener);
  void ask(ServiceRequest request, const std::string &value, ServiceReply reply, int fd = -1);
  void frame(link::Channel &channel, const link::Frame &frame, std::string_view payload,
             OwnedFd fd) override;
  void closed(link::Channel &channel, std::string_view reason) override;

  Reactor &reactor_;
  const OwnedFd listener_;
  const std::function<void()> broken_;
  link::Channel channel_;
  // The pending replies, by request number. Contains at most max_service_questions entries.
  std::map<std::uint64_t, ServiceReply> waiting_;
  std::uint64_t last_ = 0;
  ServiceApi api_;
  std::optional<MetricsServer> metrics_;
};

// Called by run_compartment().
std::shared_ptr<void> make_control_compartment(Reactor &reactor, OwnedFd listener, OwnedFd requests,
                                               std::function<void()> end);

}  // namespace bulkhead::program
