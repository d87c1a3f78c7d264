// The gateway's key for what its telemetry keeps: made when first used, in
// <state_dir>/secrets/@audit, where no plugin's secrets are (no instance has such a name). Its
// public half is in <state_dir>/audit/supervisor, and the lists of what was signed for the chains
// of each instance in <state_dir>/audit/signed.
//
// Thread: any; blocks on files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/archive.hpp"
#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t max_statement_bytes = 512;
// Of one instance's list; then it is thinned: of its older lines only the first of each hour stays,
// of each day if that is not enough.
inline constexpr std::uint64_t max_audit_list_bytes = 8u << 20;
inline constexpr std::uint32_t max_audit_chains = 64;  // of one instance

struct AuditSignature {
  std::uint64_t unix_s = 0;
  std::string public_key, signature;  // 32 and 64 bytes
};
template <class Ar>
void archive(Ar &ar, AuditSignature &v) {
  auto &[unix_s, public_key, signature] = v;
  ar(unix_s, public_key, signature);
}

// Signs and, if it is about a chain ("chain C seq N head HASH"), puts it on the instance's list.
// For a chain no place is signed that is not behind the one signed last, but that one again.
// BH_E_DENIED then; BH_E_INVALID: the statement is too long, is not printable ASCII, or speaks of a
// chain in another form. A list that cannot be written is an error, too: nothing is signed then.
Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement);

// A line of a list.
struct SignedPlace {
  std::uint64_t unix_s = 0, seq = 0;
  std::uint32_t chain = 0;
  std::string head;  // 64 hex digits
};
std::optional<SignedPlace> parse_signed_line(std::string_view line);  // without its end
// Of one instance, as they were signed. A line that was cut off is left out. Empty: there is none.
std::vector<SignedPlace> signed_places(const std::string &state_dir, const std::string &instance);
// The instances that have a list.
std::vector<std::string> signed_instances(const std::string &state_dir);

}  // namespace bulkhead
