#include "pipe/handshake.hpp"

#include <utility>

#include "pipe/line.hpp"

namespace bulkhead::pipe {
namespace {

constexpr std::string_view initialized_notification =
    R"({"jsonrpc":"2.0","method":"notifications/initialized"})";

}  // namespace

void Handshake::on_sent(std::uint32_t kind, std::uint64_t exchange, std::string_view method,
                        std::string_view text) {
  if (kind == BH_LANE_REQUEST && method == "\"initialize\"") {
    sent_exchange_ = 0;
    sent_.clear();
    initialize_.clear();
    initialized_ = false;
    repeated_ = 0;
    if (text.size() > limits_.max_handshake_bytes) return;
    sent_exchange_ = exchange;
    sent_ = text;
  } else if (kind == BH_LANE_NOTIFICATION && !initialized_) {
    initialized_ = classify(text).method == "\"notifications/initialized\"";
  }
}

Handshake::Answer Handshake::on_answer(std::uint64_t exchange, std::string_view text) {
  if (exchange == 0) return Answer::of_client;
  if (exchange == repeated_) {
    repeated_ = 0;
    return classify(text).has_result ? Answer::of_repetition : Answer::repetition_refused;
  }
  if (exchange == sent_exchange_) {
    sent_exchange_ = 0;
    if (classify(text).has_result) initialize_ = std::move(sent_);
    sent_.clear();
  }
  return Answer::of_client;
}

void Handshake::repeat(Ends &ends, std::uint64_t exchange) {
  repeated_ = exchange;
  const auto sent = ends.send(BH_LANE_REQUEST, repeated_, initialize_);
  if (sent && initialized_) {
    static_cast<void>(ends.send(BH_LANE_NOTIFICATION, 0, initialized_notification));
  }
}

}  // namespace bulkhead::pipe
