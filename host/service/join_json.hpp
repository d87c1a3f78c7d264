// Returns the body of POST /join: {"key": "...", "marks": {"PART": "HASH", ...}}.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

std::string join_request_json(const JoinRequest &request);

// Returns BH_E_INVALID with the reason if the body is invalid.
Result<JoinRequest> read_join_request(std::string_view body);

// Parses the response to POST /join. Returns nullopt if it is not a response of this version.
std::optional<JoinAnswer> read_join_answer(std::string_view body);

}  // namespace bulkhead::program
