#include "service/control_compartment.hpp"

#include <utility>

namespace bulkhead::program {

ControlCompartment::ControlCompartment(Reactor &reactor, OwnedFd listener, OwnedFd requests,
                                       std::function<void()> broken)
    : reactor_(reactor),
      listener_(std::move(listener)),
      broken_(std::move(broken)),
      channel_(reactor, std::move(requests), *this, max_service_frame_bytes,
               max_service_queue_bytes, true),
      api_(
          reactor, listener_.get(),
          [this](int fd, std::function<void(bool)> done) { admit(fd, std::move(done)); },
          [this](ServiceRequest request, const std::string &value, ServiceReply reply) {
            ask(request, value, std::move(reply));
          }) {
  link::Frame frame;
  frame.kind = static_cast<std::uint16_t>(ServiceRequest::metrics_listener);
  channel_.send(frame, std::string_view());
}

void ControlCompartment::on_metrics_listener(OwnedFd listener) {
  if (!listener || metrics_) return;
  metrics_.emplace(reactor_, std::move(listener),
                   [this](ServiceRequest request, const std::string &value, ServiceReply reply) {
                     ask(request, value, std::move(reply));
                   });
}

// Asks the supervisor whether the peer is admitted. This process cannot decide, because it has no
// access to /proc and may be in a user namespace in which it cannot tell other users apart.
void ControlCompartment::admit(int fd, std::function<void(bool)> done) {
  ask(
      ServiceRequest::admit, {},
      [done = std::move(done)](const ServiceAnswer &answer) { done(answer.code == BH_OK); }, fd);
}

void ControlCompartment::ask(ServiceRequest request, const std::string &value, ServiceReply reply,
                             int fd) {
  if (waiting_.size() >= max_service_questions) {
    return reply(refuse_with(BH_E_LIMIT, "the gateway is busy"));
  }
  link::Frame frame;
  frame.kind = static_cast<std::uint16_t>(request);
  frame.exchange = ++last_;
  const bh_status sent = channel_.send(frame, value, fd);
  if (sent != BH_OK) return reply(refuse_with(sent, "the gateway is busy"));
  waiting_.emplace(frame.exchange, std::move(reply));
}

void ControlCompartment::frame(link::Channel &, const link::Frame &frame, std::string_view payload,
                               OwnedFd fd) {
  if (frame.kind == static_cast<std::uint16_t>(ServiceRequest::metrics_listener)) {
    return on_metrics_listener(std::move(fd));
  }
  const auto at = waiting_.find(frame.exchange);
  if (at == waiting_.end()) return;
  const ServiceReply reply = std::move(at->second);
  waiting_.erase(at);
  reply({static_cast<bh_status>(frame.code), std::string(payload)});
}

void ControlCompartment::closed(link::Channel &, std::string_view) {
  broken_();
}

std::shared_ptr<void> make_control_compartment(Reactor &reactor, OwnedFd listener, OwnedFd requests,
                                               std::function<void()> end) {
  return std::make_shared<ControlCompartment>(reactor, std::move(listener), std::move(requests),
                                              std::move(end));
}

}  // namespace bulkhead::program
