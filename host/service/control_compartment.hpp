// The compartment that owns the service socket: it alone reads what local clients send. The
// supervisor gets typed questions from it (service_protocol.hpp), as frames of the request socket:
// kind: the ServiceRequest, exchange: a number of ours, code: the answer's status.
//
// Owner: the compartment's process. Thread: the reactor's.
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
  // `broken`: the supervisor cannot be asked any more, and this process is of no use.
  ControlCompartment(Reactor &reactor, OwnedFd listener, OwnedFd requests,
                     std::function<void()> broken);

 private:
  void admit(int fd, std::function<void(bool)> done);
  void take_metrics_listener(OwnedFd listener);
  void ask(ServiceRequest request, const std::string &value, ServiceReply reply, int fd = -1);
  void frame(link::Channel &channel, const link::Frame &frame, std::string_view payload,
             OwnedFd fd) override;
  void closed(link::Channel &channel, std::string_view reason) override;

  Reactor &reactor_;
  const OwnedFd listener_;
  const std::function<void()> broken_;
  link::Channel channel_;
  std::map<std::uint64_t, ServiceReply> waiting_;  // by number; at most max_service_questions
  std::uint64_t last_ = 0;
  ServiceApi api_;
  std::optional<MetricsServer> metrics_;
};

// For run_compartment().
std::shared_ptr<void> make_control_compartment(Reactor &reactor, OwnedFd listener, OwnedFd requests,
                                               std::function<void()> end);

}  // namespace bulkhead::program
