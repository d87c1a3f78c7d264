// Handles requests from the control compartment. Regardless of what clients send, only typed values
// arrive here.
#include <unistd.h>

#include <utility>

#include "common/peer.hpp"
#include "supervisor/supervisor_child.hpp"

namespace bulkhead::program {

void Supervisor::on_service_request(Child &child, const link::Frame &frame,
                                    std::string_view payload, const OwnedFd &fd) {
  link::Frame answer;
  answer.kind = frame.kind;
  answer.exchange = frame.exchange;
  const auto request = static_cast<ServiceRequest>(frame.kind);
  if (request == ServiceRequest::admit) {
    const bool may = fd && peer_may_ask(fd.get(), ::getpid());
    return answer_service(child, answer, {may ? BH_OK : BH_E_DENIED, {}});
  }
  if (request == ServiceRequest::metrics_listener) {
    // The listener is sent only once to each process. Otherwise, descriptors would accumulate in
    // the socket if the process does not read its messages.
    if (std::exchange(metrics_given_, child.life) == child.life) return;
    answer.code =
        static_cast<std::uint32_t>(service_.metrics_listener < 0 ? BH_E_NOT_FOUND : BH_OK);
    child.request->send(answer, std::string_view(), service_.metrics_listener);
    return;
  }
  if (!service_.ask || child.questions >= max_service_questions ||
      payload.size() > max_question_bytes) {
    return answer_service(child, answer, refuse_with(BH_E_LIMIT, "too many requests are pending"));
  }
  ++child.questions;
  service_.ask(
      request, std::string(payload),
      [this, &child, answer, life = std::weak_ptr(child.life)](const ServiceAnswer &given) {
        if (life.expired()) return;
        --child.questions;
        answer_service(child, answer, given);
      });
}

void Supervisor::answer_service(Child &child, link::Frame frame, const ServiceAnswer &answer) {
  frame.code = static_cast<std::uint32_t>(answer.code);
  if (child.request->send(frame, answer.value) != BH_E_LIMIT) return;
  const ServiceAnswer refusal = refuse_with(BH_E_LIMIT, "the response is too large");
  frame.code = static_cast<std::uint32_t>(refusal.code);
  child.request->send(frame, refusal.value);
}

}  // namespace bulkhead::program
