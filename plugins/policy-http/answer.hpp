// Strict parsing of the decision point's answer. An invalid answer rejects the call.
#pragma once

#include <bulkhead/abi/ext/policy.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "policy-http/question.hpp"

namespace policy_http {

struct Answer {
  static constexpr std::size_t max_rule = 256, max_reason = 1024;

  std::uint32_t verdict = BH_VERDICT_BLOCK;  // a BH_VERDICT_* value
  std::string rule, reason;                  // sanitized
  std::string rewritten;                     // JSON text, set with BH_VERDICT_REWRITE
  std::uint64_t ttl_ms = 0;                  // how long the answer is valid for the same question
};

// Parses an answer. Returns the reason if the answer is invalid, otherwise an empty string.
std::string read_answer(Style style, const Question &question, std::string_view body, Answer *out);

}  // namespace policy_http
