// Reads and writes the JSON of approval requests in the service API.
#pragma once

#include <string>
#include <string_view>

#include "compartment/approvals.hpp"

namespace bulkhead::program {

// Returns {"waiting":1,"pending":[{"id":...}],"granted":[{"id":...,"scope":...}]}. In each entry,
// `expires_in_ms` is relative to `now_unix_ms`.
std::string approvals_json(const ApprovalList &list, std::uint64_t now_unix_ms);

// Parses the body of POST /confirm/{id}:
// {"decision":"allow"|"deny"|"revoke",
//  "scope":"once"|"session"|{"minutes":N}|{"tool":true}|{"tool":true,"minutes":N},
//  "surface":"terminal"|"api"}
// Scope and surface are optional. Returns BH_E_INVALID with the reason if the body is invalid.
Result<ApprovalAnswer> read_approval_answer(std::string_view body, std::string_view id);

// Parses the body of POST /confirm/watch, which is {"seconds":N} (1 to 60) or empty (5 seconds).
Result<ApprovalWatch> read_approval_watch(std::string_view body);

}  // namespace bulkhead::program
