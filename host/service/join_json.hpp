// Formats and parses the body of POST /join: {"key": "...", "marks": {"PART": "HASH", ...}}, and
// its responses.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

std::string join_request_json(const JoinRequest &request);

// Parses the body. If it is invalid, returns BH_E_INVALID with the reason.
Result<JoinRequest> read_join_request(std::string_view body);

// Formats and parses the response that rejects a request: "error", "parts", "loaded_ms". If the
// response does not have this form, the result is empty.
std::string join_refusal_json(const Refusal &refusal);
Refusal read_join_refusal(std::string_view body);

// Parses the response to POST /join. Returns nullopt if the response does not match this version's
// format.
std::optional<JoinAnswer> read_join_answer(std::string_view body);

}  // namespace bulkhead::program
