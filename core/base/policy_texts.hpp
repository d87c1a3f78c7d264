// Lists the string members of bh_policy_request for code that copies, measures or sends requests.
// If a string member is added to the ABI, it must also be added to this list and to the code that
// sets its value.
#pragma once

#include <array>
#include <span>

#include "bulkhead/abi/ext/policy.h"

namespace bulkhead {

using PolicyTextMember = bh_str bh_policy_request::*;

inline constexpr std::array<PolicyTextMember, 15> all_policy_texts = {
    &bh_policy_request::arguments,    &bh_policy_request::transport,
    &bh_policy_request::peer,         &bh_policy_request::principal,
    &bh_policy_request::process_name, &bh_policy_request::method,
    &bh_policy_request::server,       &bh_policy_request::name,
    &bh_policy_request::meta,         &bh_policy_request::definition_hash,
    &bh_policy_request::definition,   &bh_policy_request::argument,
    &bh_policy_request::context,      &bh_policy_request::extra,
    &bh_policy_request::claimed_name,
};
// All string members except `arguments`, which may be large and is handled separately.
inline constexpr std::span<const PolicyTextMember, 14> policy_texts(&all_policy_texts[1], 14);

}  // namespace bulkhead
