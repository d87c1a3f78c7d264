// Creates the JSON body of a request to the decision point.
#pragma once

#include <bulkhead/abi/ext/policy.h>

#include <string>
#include <string_view>

#include "policy-http/config.hpp"

namespace policy_http {

inline constexpr std::string_view spec_version = "policy-hook/v0";

struct Question {
  bool response = false;
  std::string decision_id;  // random; the response must have the same ID
  std::string body;
  // Digest of everything that the decision depends on: the body without spec_version, decision_id,
  // trace_id and audit_context.
  std::string key;
};

// `text` is the result if `response` is true, otherwise the arguments. Throws only std::bad_alloc.
Question make_question(const Config &config, const bh_policy_request &request, bool response,
                       std::string_view text);

}  // namespace policy_http
