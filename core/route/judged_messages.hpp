// Completes messages beside calls once the policy has judged them: sends on what may pass, tells
// their sender what was refused. Owner: the Router. Thread: [io].
#pragma once

#include <string_view>

#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/client_answers.hpp"
#include "route/judged_events.hpp"
#include "route/subscriptions.hpp"
#include "route/upstreams.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

class JudgedMessages final : public JudgedEvents::Outcome {
 public:
  struct Needs {
    const Upstreams &upstreams;
    WireEdge &wires;
    Asks &asks;
    CallTable &calls;
    ClientAnswers &answers;
    Subscriptions &subscriptions;
  };
  explicit JudgedMessages(Needs needs) : needs_(needs) {}

  void pass(const JudgedEvent &event) override;
  void refused(const JudgedEvent &event) override;
  bool serves(std::string_view server) const override;

 private:
  const Needs needs_;
};

}  // namespace bulkhead
