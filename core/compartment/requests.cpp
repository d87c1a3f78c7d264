#include "compartment/requests.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "compartment/blocking_frame.hpp"

namespace bulkhead {
namespace {

struct Answer {
  std::string payload;
  OwnedFd fd;
};

class Requests {
 public:
  explicit Requests(int socket) : socket_(socket) {}

  Result<Answer> ask(control::Request what, const std::string &payload) {
    const std::lock_guard one_at_a_time(mutex_);
    link::Frame frame;
    frame.kind = what;
    frame.exchange = ++asked_;
    if (!send_frame(socket_, frame, payload)) {
      return fail(BH_E_UNAVAILABLE, "the supervisor did not respond");
    }
    Answer answer;
    do {  // skips late responses to requests that timed out
      answer = {};
      if (!receive_frame(socket_, control::request_timeout_ms, control::max_request_bytes, &frame,
                         &answer.payload, &answer.fd)) {
        return fail(BH_E_UNAVAILABLE, "the supervisor did not respond");
      }
    } while (frame.exchange != asked_);
    const auto status = static_cast<bh_status>(frame.code);
    if (status != BH_OK) return fail(status, std::move(answer.payload));
    return answer;
  }

  Result<OwnedFd> ask_for_socket(control::Request what, const control::Listen &wanted) {
    auto answer = ask(what, to_bytes(wanted));
    if (!answer) return std::unexpected(answer.error());
    if (!answer->fd) return fail(BH_E_INTERNAL, "the supervisor sent no socket");
    return std::move(answer->fd);
  }

 private:
  const int socket_;
  std::mutex mutex_;
  std::uint64_t asked_ = 0;
};

}  // namespace

HostServices services_over(int socket) {
  HostServices services;
  const auto requests = std::make_shared<Requests>(socket);
  services.get_secret = [requests](const std::string &instance,
                                   std::string_view name) -> Result<std::string> {
    const control::Secret secret{instance, std::string(name), {}};
    auto answer = requests->ask(control::get_secret, to_bytes(secret));
    if (!answer) return std::unexpected(answer.error());
    return std::move(answer->payload);
  };
  services.put_secret = [requests](const std::string &instance, std::string_view name,
                                   std::string_view value) -> Result<void> {
    const control::Secret secret{instance, std::string(name), std::string(value)};
    auto answer = requests->ask(control::put_secret, to_bytes(secret));
    if (!answer) return std::unexpected(answer.error());
    return {};
  };
  services.sign = [requests](const std::string &instance,
                             std::string_view statement) -> Result<AuditSignature> {
    const control::Secret wanted{instance, "statement", std::string(statement)};
    auto answer = requests->ask(control::sign, to_bytes(wanted));
    if (!answer) return std::unexpected(answer.error());
    AuditSignature made;
    if (!from_bytes(answer->payload, &made))
      return fail(BH_E_INTERNAL, "malformed response from the supervisor");
    return made;
  };
  services.listen = [requests](std::string_view address, std::string_view as_configured,
                               SocketFile file) -> Result<OwnedFd> {
    return requests->ask_for_socket(
        control::listen,
        {std::string(address), std::string(as_configured), file == SocketFile::everybody});
  };
  services.will_dial = [requests](std::string_view address) -> Result<void> {
    const control::Listen wanted{std::string(address), {}, false};
    auto answer = requests->ask(control::will_dial, to_bytes(wanted));
    if (!answer) return std::unexpected(answer.error());
    return {};
  };
  services.dial = [requests](std::string_view address) -> Result<OwnedFd> {
    return requests->ask_for_socket(control::dial, {std::string(address), {}, false});
  };
  return services;
}

}  // namespace bulkhead
