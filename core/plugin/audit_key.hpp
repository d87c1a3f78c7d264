// The gateway's key for what its telemetry keeps: made when first used, in
// <state_dir>/secrets/@audit, where no plugin's secrets are (no instance has such a name). Its
// public half and the list of all that was signed are in <state_dir>/audit/supervisor.
//
// Thread: any; blocks on files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/archive.hpp"
#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t max_statement_bytes = 512;
inline constexpr std::uint64_t max_audit_list_bytes = 8u << 20;  // then a new one begins; the one
                                                                 // before it is kept as .1

struct AuditSignature {
  std::uint64_t unix_s = 0;
  std::string public_key, signature;  // 32 and 64 bytes
};
template <class Ar>
void archive(Ar &ar, AuditSignature &v) {
  auto &[unix_s, public_key, signature] = v;
  ar(unix_s, public_key, signature);
}

// BH_E_INVALID: the statement is too long, or is not printable ASCII.
Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement);

}  // namespace bulkhead
