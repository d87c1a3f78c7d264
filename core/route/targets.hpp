// Resolves the name in a client's call to a lane and the server's original name. The name is
// resolved only once, so the policy evaluates the same target to which the call is sent.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/names.hpp"
#include "route/client_answers.hpp"
#include "route/gate.hpp"
#include "route/target.hpp"
#include "route/upstreams.hpp"
#include "route/views.hpp"

namespace bulkhead {

class Targets {
 public:
  struct Needs {
    const Upstreams &upstreams;
    Views &views;
    const Names &names;
    const Gate &gate;
    ClientAnswers &answers;
  };
  explicit Targets(Needs needs) : needs_(needs) {}

  // Finds the target of the request. Returns false if an error response was sent instead, or if the
  // request was parked until all servers that might offer the name have responded.
  bool find(Session &session, Incoming &request, Target *out);

 private:
  void refuse_held(Session &session, Incoming &request, ItemKind kind, std::string_view name,
                   const std::vector<std::string_view> &holders);
  bool answer_unavailable(const Session &session, Incoming &request, std::string_view server);
  std::string why_not(const Lane &lane) const;
  void not_found(Session &session, Incoming &request, ItemKind kind, std::string_view name);

  const Needs needs_;
};

}  // namespace bulkhead
