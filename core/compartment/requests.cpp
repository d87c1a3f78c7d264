#include "compartment/requests.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "compartment/blocking_frame.hpp"

namespace bulkhead {
namespace {

struct Answer {
  std::string payload;
  OwnedFd fd;
};

Result<Answer> ask(int socket, control::Request what, const std::string &payload) {
  link::Frame frame;
  frame.kind = what;
  if (!send_frame(socket, frame, payload)) {
    return fail(BH_E_UNAVAILABLE, "the supervisor does not answer");
  }
  Answer answer;
  if (!receive_frame(socket, control::request_timeout_ms, control::max_request_bytes, &frame,
                     &answer.payload, &answer.fd)) {
    return fail(BH_E_UNAVAILABLE, "the supervisor does not answer");
  }
  const auto status = static_cast<bh_status>(frame.code);
  if (status != BH_OK) return fail(status, std::move(answer.payload));
  return answer;
}

}  // namespace

HostServices services_over(int socket) {
  HostServices services;
  services.get_secret = [socket](const std::string &instance,
                                 std::string_view name) -> Result<std::string> {
    const control::Secret secret{instance, std::string(name), {}};
    auto answer = ask(socket, control::get_secret, to_bytes(secret));
    if (!answer) return std::unexpected(answer.error());
    return std::move(answer->payload);
  };
  services.put_secret = [socket](const std::string &instance, std::string_view name,
                                 std::string_view value) -> Result<void> {
    const control::Secret secret{instance, std::string(name), std::string(value)};
    auto answer = ask(socket, control::put_secret, to_bytes(secret));
    if (!answer) return std::unexpected(answer.error());
    return {};
  };
  services.listen = [socket](std::string_view address,
                             std::string_view as_configured) -> Result<OwnedFd> {
    const control::Listen wanted{std::string(address), std::string(as_configured)};
    auto answer = ask(socket, control::listen, to_bytes(wanted));
    if (!answer) return std::unexpected(answer.error());
    if (!answer->fd) return fail(BH_E_INTERNAL, "the supervisor sent no socket");
    return std::move(answer->fd);
  };
  return services;
}

}  // namespace bulkhead
