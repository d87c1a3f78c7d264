// Strictly parses the responses of the decision point. An invalid response means that the call or
// result is rejected.
#pragma once

#include <bulkhead/abi/ext/policy.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "policy-http/question.hpp"

namespace policy_http {

struct Answer {
  static constexpr std::size_t max_rule = 256, max_reason = 1024;

  std::uint32_t verdict = BH_VERDICT_BLOCK;  // one of BH_VERDICT_*
  std::string rule, reason;                  // sanitized
  std::string rewritten;                     // JSON text, set with BH_VERDICT_REWRITE
  std::uint64_t ttl_ms = 0;                  // how long the response may be cached
};

// Parses a response. Returns the error, or an empty string on success.
std::string read_answer(Style style, const Question &question, std::string_view body, Answer *out);

}  // namespace policy_http
