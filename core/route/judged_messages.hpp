// Carries out policy decisions about messages other than calls. An allowed message is forwarded. If
// a server's request or its answer is refused, that server receives a refusal. A refused
// notification is dropped, and a refused subscription is removed.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/client_answers.hpp"
#include "route/judged_events.hpp"
#include "route/subscriptions.hpp"

namespace bulkhead {

class JudgedMessages final : public JudgedEvents::Outcome {
 public:
  struct Needs {
    std::function<Lane *(bh_lane)> find_lane;  // returns null if the lane's connection is closed
    Asks &asks;
    CallTable &calls;
    ClientAnswers &answers;
    Subscriptions &subscriptions;
  };
  explicit JudgedMessages(Needs needs) : needs_(std::move(needs)) {}

  void pass(const JudgedEvent &event) override;
  void refused(const JudgedEvent &event) override;

 private:
  const Needs needs_;
};

}  // namespace bulkhead
