// Questions and answers about approvals as the service API writes and reads them.
#pragma once

#include <string>
#include <string_view>

#include "compartment/approvals.hpp"

namespace bulkhead::program {

// {"waiting":1,"pending":[{"id":...}]}; `now_unix_ms` for what is left of each one's time.
std::string approvals_json(const ApprovalList &list, std::uint64_t now_unix_ms);

// The body of POST /confirm/{id}:
// {"decision":"allow"|"deny","scope":"once"|"session"|{"minutes":N}, "surface":"terminal"|"api"};
// scope and surface may be missing. BH_E_INVALID says what is wrong.
Result<ApprovalAnswer> read_approval_answer(std::string_view body, std::string_view id);

// The body of POST /confirm/watch: {"seconds":N} or nothing.
Result<ApprovalWatch> read_approval_watch(std::string_view body);

}  // namespace bulkhead::program
